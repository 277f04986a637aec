/* SPDX-License-Identifier: Apache-2.0
 *
 * offline-cost against exhaustive search over retention and dispatch, on small random traces with prefill passes, warm-up
 * requests, dummy and empty passes. One path: equal. Two paths: never above the least Σ max(link, CPU) that any decisions
 * reach, where an expert that ran on the CPU does not stay. The search reads the trace as built, not through the library.
 * usage: test_bound_search [SEEDS [FIRST_SEED]]
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/bound/reads.h"

enum { MOST_EVENTS = 64, MOST_EXPERTS = 6, TOKENS = 64 };

static uint64_t seeds = 300, first_seed = 1;

/* The events of one layer, in order. */
struct problem {
    uint32_t experts, slots;
    double h2d;
    const double *cpu;           /* [TOKENS] */
    size_t num_events;
    struct { uint32_t active; bool counted; uint32_t tokens[MOST_EXPERTS]; } event[MOST_EVENTS];
};

static void extract(const struct test_trace *t, uint64_t warmup, uint32_t layer, struct problem *p)
{
    p->experts = t->info.num_experts;
    p->num_events = 0;
    for (size_t i = 0; i < t->num_passes; i++) {
        const moesim_pass *pass = &t->pass[i].pass;
        if (pass->kind == MOESIM_PASS_DUMMY)
            continue;
        if (p->num_events == MOST_EVENTS)
            test_die("the trace is too long for the search");
        memset(&p->event[p->num_events], 0, sizeof p->event[0]);
        for (size_t r = pass->row_begin; r < pass->row_end; r++) {
            for (uint32_t k = 0; k < t->info.top_k; k++) {
                const uint16_t id = t->expert[(r * t->info.num_layers + layer) * t->info.top_k + k];
                if (id == MOESIM_NO_ROUTE)
                    continue;
                p->event[p->num_events].active |= 1u << id;
                p->event[p->num_events].tokens[id]++;
            }
        }
        p->event[p->num_events++].counted = pass->kind != MOESIM_PASS_PREFILL && pass->request >= warmup;
    }
}

/* Cost of an event whose misses `moved` are copied and `cpu` computed by the host; one path: each the cheaper way. */
static double event_cost(const struct problem *p, size_t i, uint32_t moved, uint32_t cpu, enum moesim_paths paths)
{
    double link = 0, host = 0, sum = 0;
    for (uint32_t e = 0; e < p->experts; e++) {
        const double computed = p->cpu[p->event[i].tokens[e]];
        if ((moved >> e & 1u) != 0)
            link += p->h2d;
        if ((cpu >> e & 1u) != 0)
            host += computed;
        if (((moved | cpu) >> e & 1u) != 0)
            sum += fmin(p->h2d, computed);
    }
    if (!p->event[i].counted)
        return 0;
    return paths == MOESIM_PATHS_ONE ? sum : fmax(link, host);
}

/* next[keep] for all subsets `keep` of the candidates that fit. */
static void retain(const struct problem *p, uint32_t candidates, double cost, double *next)
{
    for (uint32_t keep = candidates;; keep = (keep - 1) & candidates) {
        if ((uint32_t)__builtin_popcount(keep) <= p->slots && cost < next[keep])
            next[keep] = cost;
        if (keep == 0)
            return;
    }
}

static double least(const struct problem *p, enum moesim_paths paths)
{
    double cost[1u << MOST_EXPERTS], next[1u << MOST_EXPERTS], best = INFINITY;
    const uint32_t states = 1u << p->experts;
    for (uint32_t s = 0; s < states; s++)
        cost[s] = s == 0 ? 0 : INFINITY;
    for (size_t i = 0; i < p->num_events; i++) {
        for (uint32_t s = 0; s < states; s++)
            next[s] = INFINITY;
        for (uint32_t s = 0; s < states; s++) {
            const uint32_t misses = p->event[i].active & ~s;
            if (isinf(cost[s]))
                continue;
            for (uint32_t moved = misses;; moved = (moved - 1) & misses) {
                if (moved == misses || (paths == MOESIM_PATHS_TWO && p->event[i].counted))
                    retain(p, s | moved, cost[s] + event_cost(p, i, moved, misses & ~moved, paths), next);
                if (moved == 0)
                    break;
            }
        }
        memcpy(cost, next, sizeof cost);
    }
    for (uint32_t s = 0; s < states; s++)
        best = cost[s] < best ? cost[s] : best;
    return best;
}

/* Sum of what the counted first uses weigh. */
static double first_uses(const struct problem *p)
{
    uint32_t seen = 0;
    double sum = 0;
    for (size_t i = 0; i < p->num_events; i++) {
        sum += event_cost(p, i, p->event[i].active & ~seen, 0, MOESIM_PATHS_ONE);
        seen |= p->event[i].active;
    }
    return sum;
}

struct instance {
    struct test_trace trace;
    struct test_shape shape;
    uint64_t warmup;
    double h2d[2], cpu[2][TOKENS];
    moesim_bound *bound;
    double *table;
};

/* CPU times from flat to steep, some falling with tokens; some costs 0. */
static void random_costs(moesim_rng *rng, struct instance *n)
{
    for (uint32_t l = 0; l < 2; l++) {
        const double flat = moesim_rng_real(rng), steep = moesim_rng_real(rng) * (moesim_rng_below(rng, 4) == 0 ? -0.1 : 1);
        n->h2d[l] = moesim_rng_below(rng, 12) == 0 ? 0 : 0.2 + 2 * moesim_rng_real(rng);
        for (uint32_t i = 0; i < TOKENS; i++)
            n->cpu[l][i] = i == 0 ? 0 : fmax(0, flat + steep * i);
    }
}

static void random_instance(uint64_t seed, struct instance *n)
{
    const char *path = test_path("bound.h5");
    moesim_rng rng;
    moesim_rng_seed(&rng, seed);
    struct test_shape *s = &n->shape;
    *s = (struct test_shape){ .layers = 1 + moesim_rng_below(&rng, 2), .requests = 1 + moesim_rng_below(&rng, 3) };
    s->experts = 3 + moesim_rng_below(&rng, MOST_EXPERTS - 2);
    s->top_k = 1 + moesim_rng_below(&rng, 3);
    s->block_length = 1 + moesim_rng_below(&rng, 5);
    s->blocks = 1 + moesim_rng_below(&rng, 2);
    s->prefill_rows = moesim_rng_below(&rng, 3);
    s->max_steps = 1 + moesim_rng_below(&rng, 4);
    s->commit_passes = moesim_rng_below(&rng, 2) == 0;
    s->empty_passes = s->dummy_passes = s->unused_slots = true;
    s->interleave = moesim_rng_below(&rng, 2) == 0;
    s->redraw = 0.2 + 0.6 * moesim_rng_real(&rng);
    n->warmup = moesim_rng_below(&rng, s->requests);
    random_costs(&rng, n);
    test_trace_random(&n->trace, s, seed);
    test_trace_write(&n->trace, path);
    n->bound = bound_read(path, n->warmup, 1);
    n->table = bound_cpu(n->bound, n->cpu[0], TOKENS);
}

static void release(struct instance *n)
{
    free(n->table);
    moesim_bound_close(&n->bound);
    test_trace_fini(&n->trace);
}

static double least_of_layers(const struct instance *n, uint32_t slots, enum moesim_paths paths, double *first)
{
    double sum = 0;
    *first = 0;
    for (uint32_t l = 0; l < n->shape.layers; l++) {
        struct problem p = { .slots = slots, .h2d = n->h2d[l], .cpu = n->cpu[l] };
        extract(&n->trace, n->warmup, l, &p);
        sum += least(&p, paths);
        *first += first_uses(&p);
    }
    return sum;
}

START_TEST(test_exhaustive)
{
    uint64_t tight = 0, cells = 0;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct instance n;
        double before[2] = { INFINITY, INFINITY };
        random_instance(seed, &n);
        for (uint32_t c = 0; c <= n.shape.experts; c++, cells++) {
            double first;
            const double one = least_of_layers(&n, c, MOESIM_PATHS_ONE, &first);
            const double two = least_of_layers(&n, c, MOESIM_PATHS_TWO, &first);
            const moesim_offline_cost got[2] = { bound_solve(n.bound, n.h2d, n.table, c, MOESIM_PATHS_TWO),
                                                 bound_solve(n.bound, n.h2d, n.table, c, MOESIM_PATHS_ONE) };
            ck_assert_msg(fabs(got[1].seconds - one) <= 1e-9 * (1 + one), "seed %llu C %u: one path %.17g, the search %.17g",
                          (unsigned long long)seed, c, got[1].seconds, one);
            ck_assert_msg(got[0].seconds <= two + 1e-9 * (1 + two), "seed %llu C %u: two paths %.17g above %.17g",
                          (unsigned long long)seed, c, got[0].seconds, two);
            for (uint32_t i = 0; i < 2; i++) {
                ck_assert_msg(got[i].seconds <= before[i] * (1 + 2e-9) + 1e-9, "seed %llu: %.17g at %u slots, %.17g with one "
                              "less", (unsigned long long)seed, got[i].seconds, c, before[i]);
                before[i] = got[i].seconds;
            }
            if (c == n.shape.experts)
                ck_assert_double_eq_tol(got[1].seconds, first, 1e-9);
            tight += got[0].seconds > 0.9 * two && two > 0;
        }
        release(&n);
    }
    ck_assert_uint_gt(tight, 0);
    printf("%llu traces, %llu cells: one path exact, two paths never above; within 10 %% of the optimum in %llu\n",
           (unsigned long long)seeds, (unsigned long long)cells, (unsigned long long)tight);
}
END_TEST

/* f(λ) is the one-path value at costs scaled by λ and 1 − λ: the search's value is f at its λ, and no λ gives more than
 * its upper limit. */
START_TEST(test_lambda)
{
    enum { STEPS = 50 };
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 10; seed++) {
        struct instance n;
        random_instance(seed, &n);
        const moesim_bound_info *info = moesim_bound_get_info(n.bound);
        const size_t entries = (size_t)info->kinds * info->layers;
        double *scaled = calloc(entries + 1, sizeof *scaled);
        const moesim_offline_cost got = bound_solve(n.bound, n.h2d, n.table, 1, MOESIM_PATHS_TWO);
        for (uint32_t i = 0; i <= STEPS + 1; i++) {
            const double lambda = i > STEPS ? got.lambda : (double)i / STEPS;
            const double h2d[2] = { lambda * n.h2d[0], lambda * n.h2d[1] };
            for (size_t k = 0; k < entries; k++)
                scaled[k] = (1 - lambda) * n.table[k];
            const double f = bound_solve(n.bound, h2d, scaled, 1, MOESIM_PATHS_ONE).seconds;
            ck_assert_msg(f <= got.upper + 1e-9, "seed %llu: f(%g) = %.17g above %.17g", (unsigned long long)seed, lambda, f,
                          got.upper);
            if (i > STEPS)
                ck_assert_double_eq_tol(f, got.seconds, 1e-9);
        }
        ck_assert_double_le(got.upper - got.seconds, 1e-9 * got.upper);
        free(scaled);
        release(&n);
    }
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    Suite *suite = suite_create("bound search");
    TCase *tc = tcase_create("bound search");
    tcase_set_timeout(tc, 3600);
    tcase_add_test(tc, test_exhaustive);
    tcase_add_test(tc, test_lambda);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
