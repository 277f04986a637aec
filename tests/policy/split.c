/* SPDX-License-Identifier: Apache-2.0
 *
 * The split of misses between link and CPU: Figure 11 of the paper, the search by classes against one that tries every move
 * and swap, the split by load against all partitions.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "policies/kit.h"
#include "policies/kit_split.h"

#define MOST 64

/* Misses made by hand or at random. */
struct problem {
    kit_misses m;
    double p[MOST], cpu_s[17], rho, lambda;
    uint32_t tokens[MOST];
};

static double total_p(const struct problem *q, const unsigned char *gpu)
{
    double sum = 0;
    for (uint32_t i = 0; i < q->m.n; i++)
        sum += gpu[i] ? q->m.p[i] : 0;
    return sum;
}

static uint32_t number(const struct problem *q, const unsigned char *gpu)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->m.n; i++)
        n += gpu[i];
    return n;
}

/* T_comp in ticks of a set of misses on the GPU. */
static double time_of(const struct problem *q, const unsigned char *gpu)
{
    const double unit = kit_unit(&q->m);
    double cpu = 0;
    for (uint32_t i = 0; i < q->m.n; i++)
        cpu += gpu[i] ? 0 : kit_ticks(kit_cpu_s(&q->m, q->m.tokens[i]), unit);
    cpu += number(q, gpu) < q->m.n ? kit_ticks(q->m.step_s, unit) : 0;
    const double link = number(q, gpu) * kit_ticks(q->m.h2d_s, unit);
    return link > cpu ? link : cpu;
}

/* By miss, not by rank. */
static void moved_of(const struct problem *q, const kit_split *split, unsigned char *gpu)
{
    for (uint32_t r = 0; r < q->m.n; r++)
        gpu[split->order[r]] = split->moved[r];
}

/* ---- Figure 11 -------------------------------------------------------------------------------------------------- */

static const double fig_p[10] = { .25, .20, .15, .10, .08, .07, .06, .04, .03, .02 };
static const uint32_t fig_tokens[10] = { 3, 2, 3, 2, 1, 3, 3, 2, 2, 1 };
static const double linear[17] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const struct problem figure = { .m = { .n = 10, .tokens = fig_tokens, .p = fig_p, .h2d_s = 1, .cpu_s = linear,
                                              .cpu_tokens = 16 } };

static void expect(const kit_split *split, const char *set, double link, double cpu, double p)
{
    unsigned char gpu[MOST];
    double on_cpu = 0;
    moved_of(&figure, split, gpu);
    for (uint32_t i = 0; i < 10; i++) {
        ck_assert_int_eq(gpu[i], set[i] == 'G');
        on_cpu += gpu[i] ? 0 : fig_tokens[i];
    }
    ck_assert_double_eq(number(&figure, gpu), link);
    ck_assert_double_eq(on_cpu, cpu);
    ck_assert_double_eq_tol(total_p(&figure, gpu), p, 1e-12);
}

START_TEST(test_figure_11)
{
    kit_search s;
    kit_split split;
    kit_search_open(&s, &figure.m, .5, 0, &split);
    expect(&split, "GGGGG.....", 5, 11, .78);
    kit_step step = kit_best_step(&s);
    ck_assert(step.in != KIT_NONE && step.out == KIT_NONE);
    kit_take_step(&s, &step, split.moved);
    expect(&split, "GGGGGG....", 6, 8, .85);
    step = kit_best_step(&s);
    ck_assert(step.in != KIT_NONE && step.out != KIT_NONE);
    kit_take_step(&s, &step, split.moved);
    expect(&split, "GGGG.GG...", 6, 6, .83);
    step = kit_best_step(&s);
    ck_assert(step.in == KIT_NONE && step.out == KIT_NONE);
    kit_split_reuse(&figure.m, .5, 0, &split);
    expect(&split, "GGGG.GG...", 6, 6, .83);
}
END_TEST

/* The figure's answer is that of all 1024 partitions with the least time the one of highest priority. */
START_TEST(test_figure_11_optimum)
{
    unsigned char gpu[MOST], best[MOST] = { 0 };
    double best_time = 1e300, best_p = 0;
    for (uint32_t set = 0; set < 1024; set++) {
        for (uint32_t i = 0; i < 10; i++)
            gpu[i] = set >> i & 1;
        const double time = time_of(&figure, gpu), p = total_p(&figure, gpu);
        if (time < best_time || (time <= best_time && p > best_p + 1e-9)) {
            best_time = time;
            best_p = p;
            memcpy(best, gpu, 10);
        }
    }
    ck_assert_mem_eq(best, ((const unsigned char[]){ 1, 1, 1, 1, 0, 1, 1, 0, 0, 0 }), 10);
}
END_TEST

/* ---- at random ----------------------------------------------------------------------------------------------------- */

static double real(uint64_t *seed) { return kit_random_real(seed); }
static uint32_t below(uint64_t *seed, uint32_t n) { return (uint32_t)(kit_random(seed) % n); }

/* Few different priorities and tokens, so that ties are common; tables linear, flat at first, wild, or free. */
static void draw(struct problem *q, uint32_t most, uint64_t *seed)
{
    const uint32_t n = 1 + below(seed, most), kind = below(seed, 8), steps = 1 + below(seed, 30);
    const uint32_t tokens = 1 + below(seed, below(seed, 2) ? 3 : 20);
    const double base = real(seed), slope = real(seed);
    memset(q, 0, sizeof *q);
    for (uint32_t i = 0; i < n; i++) {
        q->p[i] = below(seed, 4) == 0 ? real(seed) : (double)below(seed, steps) / steps;
        q->tokens[i] = 1 + below(seed, tokens);
    }
    for (uint32_t t = 1; t <= 16; t++)
        q->cpu_s[t] = kind < 4 ? slope * t : kind < 6 ? base + slope * t : kind < 7 ? real(seed) : 0;
    q->m = (kit_misses){ .n = n, .tokens = q->tokens, .p = q->p, .cpu_s = q->cpu_s, .cpu_tokens = 1 + below(seed, 16),
                         .h2d_s = below(seed, 10) == 0 ? 0 : below(seed, 3) == 0 ? slope * below(seed, 4) : 2 * real(seed),
                         .step_s = below(seed, 2) == 0 ? 0 : real(seed) };
    q->rho = below(seed, 4) == 0 ? below(seed, 11) / 10.0 : real(seed);
    q->lambda = below(seed, 2) == 0 ? 0 : 4 * real(seed);
}

/* One candidate of the plain search: in to the GPU, out to the CPU; MOST: neither. */
struct candidate { double change, gain; uint32_t in, out; };

/* Order of the second half of semantics' rule: -1 where a comes before b by the ties, +1 where after. */
static int by_ties(const struct problem *q, const struct candidate *a, const struct candidate *b)
{
    const int kind_a = a->out == MOST ? 0 : a->in == MOST ? 1 : 2, kind_b = b->out == MOST ? 0 : b->in == MOST ? 1 : 2;
    const uint32_t *t = q->m.tokens;
    if (kind_a != kind_b)
        return kind_a < kind_b ? -1 : 1;
    if (a->in != MOST && t[a->in] != t[b->in])
        return t[a->in] > t[b->in] ? -1 : 1;
    if (a->out != MOST && t[a->out] != t[b->out])
        return t[a->out] < t[b->out] ? -1 : 1;
    if (a->in != MOST && (q->p[a->in] < q->p[b->in] || q->p[a->in] > q->p[b->in]))
        return q->p[a->in] > q->p[b->in] ? -1 : 1;
    if (a->out != MOST && (q->p[a->out] < q->p[b->out] || q->p[a->out] > q->p[b->out]))
        return q->p[a->out] < q->p[b->out] ? -1 : 1;
    if (a->in != b->in)
        return a->in < b->in ? -1 : 1;
    return a->out > b->out ? -1 : 1;
}

static void consider(const struct problem *q, unsigned char *gpu, double now, uint32_t in, uint32_t out, int *found,
                     struct candidate *best)
{
    const double gain = (in != MOST ? q->p[in] : 0) - (out != MOST ? q->p[out] : 0);
    if (in != MOST)
        gpu[in] = 1;
    if (out != MOST)
        gpu[out] = 0;
    const struct candidate c = { time_of(q, gpu) - now - q->lambda / kit_unit(&q->m) * gain, gain, in, out };
    if (in != MOST)
        gpu[in] = 0;
    if (out != MOST)
        gpu[out] = 1;
    if (!(c.change < 0 || (c.change <= 0 && c.gain > 0)))
        return;
    const int equal = *found && !(c.change < best->change) && !(c.change > best->change) && !(c.gain < best->gain) &&
                      !(c.gain > best->gain);
    if (!*found || c.change < best->change || (c.change <= best->change && c.gain > best->gain) ||
        (equal && by_ties(q, &c, best) < 0))
        *best = c;
    *found = 1;
}

/* Stage 1 and 2 word for word: every move and every swap of every pair is tried. `start` gets stage 1. */
static void plain(const struct problem *q, unsigned char *gpu, unsigned char *start)
{
    const uint32_t n = q->m.n, width = (n + 9) / 10;
    const double target = q->rho * n;
    memset(gpu, 0, n);
    for (uint32_t taken = 0; taken < (uint32_t)(target + .5 + 1e-9); taken++) {
        uint32_t best = MOST;
        for (uint32_t i = 0; i < n; i++)
            if (!gpu[i] && (best == MOST || q->p[i] > q->p[best]))
                best = i;
        gpu[best] = 1;
    }
    memcpy(start, gpu, n);
    for (uint32_t step = 0; step < n; step++) {
        struct candidate best = { 0, 0, MOST, MOST };
        const double now = time_of(q, gpu);
        const uint32_t moved = number(q, gpu);
        int found = 0;
        for (uint32_t a = 0; a < n; a++) {
            if (!gpu[a] && moved + 1 <= target + width + 1e-9)
                consider(q, gpu, now, a, MOST, &found, &best);
            if (gpu[a] && moved - 1 >= target - width - 1e-9)
                consider(q, gpu, now, MOST, a, &found, &best);
            for (uint32_t b = 0; b < n && !gpu[a]; b++)
                if (gpu[b])
                    consider(q, gpu, now, a, b, &found, &best);
        }
        if (!found)
            return;
        if (best.in != MOST)
            gpu[best.in] = 1;
        if (best.out != MOST)
            gpu[best.out] = 0;
    }
}

START_TEST(test_every_swap)
{
    static struct problem q;
    uint64_t seed = 17;
    uint32_t changed = 0, by_lambda = 0;
    for (int run = 0; run < 6000; run++) {
        unsigned char gpu[MOST], naive[MOST], start[MOST];
        kit_split split;
        draw(&q, run % 20 == 0 ? 60 : 16, &seed);
        kit_split_reuse(&q.m, q.rho, q.lambda, &split);
        moved_of(&q, &split, gpu);
        plain(&q, naive, start);
        ck_assert_msg(memcmp(gpu, naive, q.m.n) == 0, "run %d of %u misses: not the best of all moves and swaps", run, q.m.n);
        ck_assert(q.lambda > 0 || time_of(&q, gpu) <= time_of(&q, start));
        ck_assert(number(&q, gpu) <= q.rho * q.m.n + (q.m.n + 9) / 10 + 1e-9);
        ck_assert(number(&q, gpu) >= q.rho * q.m.n - (q.m.n + 9) / 10 - 1e-9);
        for (uint32_t r = 1; r < q.m.n; r++) {
            const uint32_t a = split.order[r - 1], b = split.order[r];
            ck_assert(q.p[a] > q.p[b] || (!(q.p[a] < q.p[b]) && a < b));
        }
        changed += memcmp(gpu, start, q.m.n) != 0;
        by_lambda += time_of(&q, gpu) > time_of(&q, start);
    }
    ck_assert_uint_gt(changed, 2000);
    ck_assert_uint_gt(by_lambda, 100);
}
END_TEST

START_TEST(test_load)
{
    static struct problem q;
    uint64_t seed = 19;
    for (int run = 0; run < 1500; run++) {
        unsigned char gpu[MOST], set[MOST];
        kit_split split;
        draw(&q, 11, &seed);
        kit_split_load(&q.m, &split);
        moved_of(&q, &split, gpu);
        const double time = time_of(&q, gpu);
        for (uint32_t bits = 0; bits < 1u << q.m.n; bits++) {
            for (uint32_t i = 0; i < q.m.n; i++)
                set[i] = bits >> i & 1;
            const double other = time_of(&q, set);
            ck_assert_msg(time < other || (time <= other && number(&q, gpu) >= number(&q, set)),
                          "run %d: %g with %u of %u on the GPU, but %g with %u", run, time, number(&q, gpu), q.m.n, other,
                          number(&q, set));
        }
    }
}
END_TEST

/* Few keys and many, with ties. */
START_TEST(test_rank)
{
    static kit_rank rank[KIT_MOST_MISSES];
    static double key[KIT_MOST_MISSES];
    uint64_t seed = 23;
    for (uint32_t n = 1; n <= KIT_MOST_MISSES; n += 1 + n / 30) {
        for (uint32_t i = 0; i < n; i++)
            key[i] = below(&seed, 2) == 0 ? real(&seed) : below(&seed, 9) / 8.0;
        kit_rank_keys(key, n, rank);
        for (uint32_t r = 0; r < n; r++)
            ck_assert_double_eq(rank[r].key, key[rank[r].index]);
        for (uint32_t r = 1; r < n; r++)   /* strictly, so that all indices differ */
            ck_assert(kit_rank_before(rank[r - 1], rank[r]) && !kit_rank_before(rank[r], rank[r - 1]));
    }
}
END_TEST

START_TEST(test_tables)
{
    const double table[] = { 0, 2, 3, 3.5 }, falling[] = { 0, 5, 4 };
    kit_misses m = { .n = 1, .cpu_s = table, .cpu_tokens = 3, .h2d_s = 1.75 };
    ck_assert_double_eq(kit_cpu_s(&m, 1.5), 2.5);
    ck_assert_double_eq(kit_cpu_s(&m, 2.5), 3.25);
    ck_assert_double_eq(kit_cpu_s(&m, 3), 3.5);
    ck_assert_double_eq(kit_cpu_s(&m, 7), 5.5);
    ck_assert_double_eq(kit_rho(&m, 3), 2.0 / 3);
    m = (kit_misses){ .n = 1, .cpu_s = falling, .cpu_tokens = 2 };
    ck_assert_double_eq(kit_cpu_s(&m, 9), 4);
    m.cpu_s = (const double[]){ 0, 0, 0, 0 };   /* one more than the table has: gcc warns of it under sanitizers */
    ck_assert_double_eq(kit_rho(&m, 2), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("split");
    TCase *tests = tcase_create("split");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_figure_11);
    tcase_add_test(tests, test_figure_11_optimum);
    tcase_add_test(tests, test_every_swap);
    tcase_add_test(tests, test_load);
    tcase_add_test(tests, test_rank);
    tcase_add_test(tests, test_tables);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
