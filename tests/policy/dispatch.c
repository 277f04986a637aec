/* SPDX-License-Identifier: Apache-2.0
 *
 * Dispatch of the policies by hand: which scores order the misses, the running mean, what is refused; and that the state of
 * every policy may be moved between two calls. Costs are those of hand.c: T_H2D = 1, 1 per token on the CPU.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/kit.h"
#include "policies/kit_split.h"
#include "tests/policy/hand.h"
#include "tests/policy/variants.h"

#define IDS(...) (const uint16_t[]){ __VA_ARGS__ }
#define REALS(...) (const double[]){ __VA_ARGS__ }
#define COUNTS(...) (const uint32_t[]){ __VA_ARGS__ }

/* ---- which scores ---------------------------------------------------------------------------------------------------- */

/* Four misses of one token: ρ = ½, two are moved, those of the highest p. */
START_TEST(test_scores)
{
    static const struct { const char *policy; uint64_t cpu; } row[] = {
        { "oled:dispatch=reuse", 0x3 },
        { "oled:dispatch=reuse,confidence=deferred", 0x3 },       /* what this pass produces does not exist yet */
        { "oled:dispatch=reuse,confidence=hindsight", 0xc },
        { "oled:dispatch=reuse,confidence=none", 0x5 },
        { "oled-full", 0x3 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct hand h;
        const struct hand_event event = {
            .kind = MOESIM_DENOISE, .clock = 1, .n = 4, .ids = IDS(0, 1, 2, 3), .count = COUNTS(1, 1, 1, 1),
            .mass = REALS(1, 3, 2, 4), .weighted = REALS(1, 2, 3, 4), .hindsight = REALS(4, 3, 2, 1) };
        hand_open(&h, row[i].policy, 1, 8, 2, 8);
        ck_assert_uint_eq(h.traits & MOESIM_MOVES_ALL, 0);
        hand_dispatch(&h, &event);
        ck_assert_msg(h.cpu == row[i].cpu, "%s leaves 0x%x to the CPU", row[i].policy, (unsigned)h.cpu);
        if (strstr(row[i].policy, "deferred") == NULL) {
            hand_retain(&h, &event);
            ck_assert_uint_eq(h.resident[0], 0xf & ~row[i].cpu);
        }
        hand_close(&h);
    }
}
END_TEST

/* Hits take no part; copies by falling p, equal ones by ascending id. */
START_TEST(test_order)
{
    struct hand h;
    hand_open(&h, "oled:dispatch=load", 1, 8, 2, 8);
    h.resident[0] = 1 << 3;
    hand_dispatch(&h, &(const struct hand_event){ .kind = MOESIM_DENOISE, .clock = 1, .n = 5, .ids = IDS(1, 2, 3, 5, 6),
        .count = COUNTS(9, 1, 1, 8, 3), .mass = REALS(1, 2, 9, 2, 5), .weighted = REALS(1, 2, 9, 2, 5) });
    ck_assert_uint_eq(h.misses, 4);
    ck_assert_int_eq(memcmp(h.order, IDS(6, 2, 5, 1), 8), 0);
    ck_assert_uint_eq(h.cpu, 1 << 2);     /* link 3, CPU 1; with expert 6 there too 2 and 4 */
    hand_close(&h);
}
END_TEST

/* One second per unit of p outweighs what the link saves. */
START_TEST(test_lambda)
{
    static const struct { const char *policy; uint64_t cpu; } row[] = {
        { "oled:dispatch=reuse,lambda=0", 0x3 }, { "oled:dispatch=reuse,lambda=100", 0x1 },
        { "oled:dispatch=load,lambda=0", 0x3 }, { "oled:dispatch=all", 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct hand h;
        const struct hand_event event = { .kind = MOESIM_DENOISE, .clock = 1, .n = 4, .ids = IDS(0, 1, 2, 3),
            .count = COUNTS(1, 1, 1, 1), .mass = REALS(1, 2, 3, 4), .weighted = REALS(1, 2, 3, 4) };
        hand_open(&h, row[i].policy, 1, 8, 2, 8);
        ck_assert_int_eq((h.traits & MOESIM_MOVES_ALL) != 0, row[i].cpu == 0);
        if (row[i].cpu != 0)
            hand_dispatch(&h, &event);
        ck_assert_msg(h.cpu == row[i].cpu, "%s leaves 0x%x to the CPU", row[i].policy, (unsigned)h.cpu);
        hand_close(&h);
    }
}
END_TEST

/* ---- n̄ --------------------------------------------------------------------------------------------------------------- */

/* A random event of layer `at` % 2 with everything that a policy may read; nothing is shown that stays the same. */
struct drawn {
    uint16_t ids[24];
    uint32_t count[24], masked[24];
    double mass[24], weighted[24], hindsight[24], class_sum[24];
    uint64_t next[24];
    uint16_t expert[4][2], previous[4][2];
    moesim_row row[4];
    struct hand_event event;
};

static void draw(struct drawn *d, uint64_t at, uint64_t *seed)
{
    uint32_t n = 0;
    for (uint16_t e = 0; e < 24; e++) {
        if (kit_random(seed) % 3 == 0)
            continue;
        d->ids[n] = e;
        d->count[n] = 1 + (uint32_t)(kit_random(seed) % (at % 3 == 0 ? 12 : 2));
        d->masked[n] = (uint32_t)(kit_random(seed) % (d->count[n] + 1));
        d->mass[n] = kit_random_real(seed);
        d->weighted[n] = kit_random_real(seed);
        d->hindsight[n] = kit_random_real(seed);
        d->class_sum[n] = 3 * kit_random_real(seed);
        d->next[n] = kit_random(seed) % 8 == 0 ? MOESIM_NEVER : at + 1 + kit_random(seed) % 9;
        n++;
    }
    for (uint32_t r = 0; r < 4; r++) {
        for (uint32_t k = 0; k < 2; k++) {
            d->expert[r][k] = (uint16_t)(kit_random(seed) % 24);
            d->previous[r][k] = (uint16_t)(kit_random(seed) % 24);
        }
        d->row[r] = (moesim_row){ .request = r / 2, .kind = MOESIM_DENOISE, .input = (uint8_t)(kit_random(seed) % 3),
                                  .confidence = (float)kit_random_real(seed), .expert = d->expert[r],
                                  .previous = d->previous[r] };
    }
    d->event = (struct hand_event){
        .layer = (uint32_t)(at % 2), .kind = at % 7 == 0 ? MOESIM_PREFILL : at % 11 == 0 ? MOESIM_COMMIT : MOESIM_DENOISE,
        .first = at % 5 == 0, .num_masked = 2, .clock = at, .n = n, .ids = d->ids, .mass = d->mass, .weighted = d->weighted,
        .hindsight = d->hindsight, .class_sum = d->class_sum, .count = d->count, .masked = d->masked, .next_use = d->next,
        .next_active = kit_random(seed) & 0xffffff, .num_rows = 4, .row = d->row };
}

/* What stage 1 and 2 leave to the CPU with this n̄. */
static uint64_t left(const struct hand *h, const struct drawn *d, double mean)
{
    uint32_t tokens[24];
    uint16_t id[24];
    double p[24], total = 0;
    uint64_t cpu = 0;
    kit_split split;
    kit_misses m = { .tokens = tokens, .p = p, .h2d_s = 1, .cpu_s = hand_costs->cpu_s, .cpu_tokens = hand_costs->cpu_tokens };
    for (uint32_t i = 0; i < d->event.n; i++)
        total += d->weighted[i];
    for (uint32_t i = 0; i < d->event.n; i++) {
        if ((h->resident[d->event.layer] >> d->ids[i] & 1) != 0)
            continue;
        id[m.n] = d->ids[i];
        tokens[m.n] = d->count[i];
        p[m.n++] = d->weighted[i] / total;
    }
    kit_split_reuse(&m, kit_rho(&m, mean), 0, &split);
    for (uint32_t r = 0; r < m.n; r++)
        cpu |= split.moved[r] ? 0 : UINT64_C(1) << id[split.order[r]];
    return cpu;
}

/* Over all layers and decode events, this one included; a prefill for itself. */
START_TEST(test_mean)
{
    static struct drawn d;
    struct hand h;
    uint64_t seed = 3, tokens = 0, misses = 0;
    uint32_t alone = 0;
    hand_open(&h, "oled:dispatch=reuse", 2, 24, 4, 5);
    for (uint64_t at = 1; at <= 300; at++) {
        uint64_t now = 0, n = 0;
        draw(&d, at, &seed);
        for (uint32_t i = 0; i < d.event.n; i++) {
            const int miss = (h.resident[d.event.layer] >> d.ids[i] & 1) == 0;
            now += miss ? d.count[i] : 0;
            n += (uint64_t)miss;
        }
        if (n == 0)
            continue;
        const double own = (double)now / (double)n;
        tokens += d.event.kind != MOESIM_PREFILL ? now : 0;
        misses += d.event.kind != MOESIM_PREFILL ? n : 0;
        const uint64_t expected = left(&h, &d, d.event.kind != MOESIM_PREFILL ? (double)tokens / (double)misses : own);
        alone += expected != left(&h, &d, own);
        hand_dispatch(&h, &d.event);
        ck_assert_uint_eq(h.cpu, expected);
        hand_retain(&h, &d.event);
    }
    ck_assert_uint_gt(alone, 20);
    hand_close(&h);
}
END_TEST

/* ---- surv, ideal, refusals ------------------------------------------------------------------------------------------- */

/* The order of copies is that of the values which retain gives afterwards, in every kind of pass and both forms. */
START_TEST(test_surv_order)
{
    static const char *const policies[] = { "surv:dispatch=reuse", "surv:dispatch=load,form=full",
                                            "surv:dispatch=reuse,boundary=masked" };
    static struct drawn d;
    uint64_t seed = 4;
    uint32_t on_cpu = 0;
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        struct hand h;
        hand_open(&h, policies[p], 2, 24, 2, 6);
        for (uint64_t at = 1; at <= 200; at++) {
            draw(&d, at, &seed);
            d.event.num_masked = at % 4 == 0;
            hand_dispatch(&h, &d.event);
            on_cpu += (uint32_t)__builtin_popcountll(h.cpu);
            const uint64_t cpu = h.cpu;
            hand_retain(&h, &d.event);
            ck_assert_uint_eq(h.resident[d.event.layer] & cpu, 0);
            for (uint32_t r = 1; r < h.misses; r++)
                ck_assert_msg(h.value[h.order[r - 1]] >= h.value[h.order[r]] - 1e-12, "%s at %u", policies[p], (unsigned)at);
        }
        hand_close(&h);
    }
    ck_assert_uint_gt(on_cpu, 200);
}
END_TEST

START_TEST(test_ideal)
{
    static const char *const policies[] = { "ideal", "ideal-pooled" };
    for (size_t i = 0; i < 2; i++) {
        struct hand h;
        hand_open(&h, policies[i], 2, 8, 2, 4);
        ck_assert_uint_eq(h.traits & MOESIM_MOVES_ALL, 0);
        hand_dispatch(&h, &(const struct hand_event){ .kind = MOESIM_DENOISE, .clock = 1, .layer = 1, .n = 4,
                                                      .ids = IDS(1, 2, 5, 7), .count = COUNTS(9, 1, 8, 2) });
        ck_assert_uint_eq(h.cpu, 1 << 2);     /* link 3, CPU 1; with expert 7 there too 2 and 3 */
        ck_assert_int_eq(memcmp(h.order, IDS(1, 2, 5, 7), 8), 0);
        hand_close(&h);
        const moesim_costs *costs = hand_costs;
        hand_costs = NULL;
        hand_open(&h, policies[i], 2, 8, 2, 4);
        ck_assert_uint_eq(h.traits & MOESIM_MOVES_ALL, MOESIM_MOVES_ALL);
        hand_costs = costs;
        hand_close(&h);
    }
}
END_TEST

START_TEST(test_refused)
{
    static const struct { const char *policy, *says; int costs; } row[] = {
        { "oled:lambda=1", "lambda takes effect only with dispatch=reuse", 1 },
        { "oled:dispatch=load,lambda=1", "lambda takes effect only with dispatch=reuse", 1 },
        { "surv:lambda=1", "lambda takes effect only with dispatch=reuse", 1 },
        { "oled-full", "need the costs of a hardware profile", 0 },
        { "oled:dispatch=load", "need the costs of a hardware profile", 0 },
        { "surv:dispatch=reuse", "need the costs of a hardware profile", 0 },
    };
    const moesim_costs *costs = hand_costs;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct hand h;
        char error[256];
        hand_costs = row[i].costs ? costs : NULL;
        ck_assert_int_ne(hand_try_open(&h, row[i].policy, 2, 8, 2, 4, 0, 1, error), 0);
        ck_assert_msg(strstr(error, row[i].says) != NULL, "%s: %s", row[i].policy, error);
        hand_close(&h);
    }
    hand_costs = costs;
}
END_TEST

/* ---- state ----------------------------------------------------------------------------------------------------------- */

static void one_event(struct hand *h, const struct variant *v, const struct hand_event *event)
{
    if (v->dispatches)
        hand_dispatch(h, event);
    if ((v->traits & MOESIM_RETAIN_AT_PASS) != 0)
        hand_retain_pass(h, event);
    else
        hand_retain(h, event);
    if (h->spec.policy->boundary != NULL && event->clock % 5 == 0)
        hand_boundary(h, event->clock);
}

/* A state that is copied to fresh memory before every call, the old one overwritten, decides like one that stays. */
START_TEST(test_moved)
{
    static struct variant list[MAX_VARIANTS];
    static struct drawn d;
    const size_t num = variants(list);
    ck_assert_uint_gt(num, 30);
    for (size_t i = 0; i < num; i++) {
        struct hand moved, still;
        uint64_t seed = 6;
        hand_open(&moved, list[i].text, 2, 24, 2, 6);
        hand_open(&still, list[i].text, 2, 24, 2, 6);
        still.still = true;
        const uintptr_t where = (uintptr_t)still.state;
        for (uint64_t at = 1; at <= 60; at++) {
            draw(&d, at, &seed);
            one_event(&moved, &list[i], &d.event);
            one_event(&still, &list[i], &d.event);
            for (uint32_t e = 0; e < 24; e++)
                ck_assert_msg(!(moved.value[e] < still.value[e]) && !(moved.value[e] > still.value[e]) &&
                              !(moved.tie[e] < still.tie[e]) && !(moved.tie[e] > still.tie[e]), "%s: expert %u at %u",
                              list[i].text, e, (unsigned)at);
            ck_assert_mem_eq(moved.resident, still.resident, sizeof moved.resident);
            ck_assert_mem_eq(moved.slots, still.slots, sizeof moved.slots);
            ck_assert_mem_eq(moved.order, still.order, sizeof moved.order);
        }
        /* same bytes: nothing in them depends on where they lie */
        ck_assert_msg(memcmp(moved.state, still.state, still.state_bytes) == 0, "%s: its state depends on where it is",
                      list[i].text);
        ck_assert_uint_eq(where, (uintptr_t)still.state);
        hand_close(&moved);
        hand_close(&still);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dispatch");
    TCase *tests = tcase_create("dispatch");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_scores);
    tcase_add_test(tests, test_order);
    tcase_add_test(tests, test_lambda);
    tcase_add_test(tests, test_mean);
    tcase_add_test(tests, test_surv_order);
    tcase_add_test(tests, test_ideal);
    tcase_add_test(tests, test_refused);
    tcase_add_test(tests, test_moved);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
