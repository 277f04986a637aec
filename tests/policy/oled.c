/* SPDX-License-Identifier: Apache-2.0
 *
 * oled by hand: Figure 9 of the paper, the tie key, the confidence modes, and layer-adaptive capacity.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/kit.h"
#include "policies/kit_adapt.h"
#include "tests/policy/hand.h"

#define IDS(...) (const uint16_t[]){ __VA_ARGS__ }
#define REALS(...) (const double[]){ __VA_ARGS__ }

static void close_to(double is, double should)
{
    ck_assert_double_eq_tol(is, should, 1e-12);
}

/* One denoise event of layer 0; scores stand for all three reductions. */
static void scored(struct hand *h, uint64_t at, uint32_t n, const uint16_t *ids, const double *score)
{
    hand_retain(h, &(const struct hand_event){ .kind = MOESIM_DENOISE, .clock = at, .n = n, .ids = ids, .mass = score,
                                               .weighted = score, .hindsight = score });
}

/* Token 1: confidence .8, gates E1 .5 E3 .5; token 2: confidence .4, gates E2 .3 E3 .7. */
START_TEST(test_figure_9)
{
    struct hand h;
    hand_open(&h, "oled", 1, 8, 2, 3);
    scored(&h, 1, 1, IDS(4), REALS(1));
    ck_assert_uint_eq(h.resident[0], 1 << 4);
    hand_retain(&h, &(const struct hand_event){ .kind = MOESIM_DENOISE, .clock = 2, .n = 3, .ids = IDS(1, 2, 3),
        .mass = REALS(.5, .3, .5 + .7), .weighted = REALS(.5 * .8, .3 * .4, .5 * .8 + .7 * .4) });
    ck_assert_double_eq_tol(h.value[1], .333, 5e-4);
    ck_assert_double_eq_tol(h.value[2], .100, 5e-4);
    ck_assert_double_eq_tol(h.value[3], .567, 5e-4);
    close_to(h.value[4], 0);
    ck_assert_uint_eq(h.resident[0], 1 << 1 | 1 << 2 | 1 << 3);   /* E4 leaves */
    hand_close(&h);
}
END_TEST

START_TEST(test_tie)
{
    struct hand h;
    hand_open(&h, "oled", 1, 8, 2, 8);
    scored(&h, 1, 2, IDS(0, 1), REALS(3, 1));
    close_to(h.tie[0], 1);             /* q is that of an earlier event */
    scored(&h, 2, 2, IDS(2, 3), REALS(1, 0));
    close_to(h.tie[0], 1 + .375);
    close_to(h.tie[1], 1 + .125);
    close_to(h.tie[2], 2);
    close_to(h.value[3], 0);
    scored(&h, 3, 2, IDS(0, 1), REALS(1, 0));
    close_to(h.value[0], 1);
    close_to(h.tie[0], 3 + .375);
    scored(&h, 4, 1, IDS(2), REALS(1));
    close_to(h.tie[0], 3 + .5);
    close_to(h.tie[1], 3 + .125);      /* p = 0 does not replace q */
    close_to(h.tie[2], 4 + .5);
    close_to(h.tie[3], 2);
    hand_close(&h);
}
END_TEST

START_TEST(test_confidence)
{
    static const struct { const char *policy; int late; double p; } row[] = {
        { "oled:confidence=lag1", 0, .75 }, { "oled:confidence=deferred", 1, .125 },
        { "oled:confidence=hindsight", 0, .125 }, { "oled:confidence=none", 0, .5 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct hand h;
        const struct hand_event event = { .kind = MOESIM_DENOISE, .clock = 1, .n = 2, .ids = IDS(0, 1), .mass = REALS(2, 2),
                                          .weighted = REALS(3, 1), .hindsight = REALS(1, 7) };
        hand_open(&h, row[i].policy, 1, 8, 2, 8);
        (row[i].late ? hand_retain_pass : hand_retain)(&h, &event);
        close_to(h.value[0], row[i].p);
        ck_assert_int_eq((h.traits & MOESIM_RETAIN_AT_PASS) != 0, row[i].late);
        ck_assert_int_eq((h.traits & MOESIM_NON_CAUSAL) != 0, strstr(row[i].policy, "hindsight") != NULL);
        hand_close(&h);
    }
}
END_TEST

/* Σ g·ψ = 0: the share of gate mass; no gate mass either: 0, never NaN. */
START_TEST(test_no_score)
{
    struct hand h;
    hand_open(&h, "oled", 1, 8, 2, 8);
    hand_retain(&h, &(const struct hand_event){ .kind = MOESIM_DENOISE, .clock = 1, .n = 2, .ids = IDS(0, 1),
                                                .mass = REALS(1, 3), .weighted = REALS(0, 0) });
    close_to(h.value[1], .75);
    scored(&h, 2, 2, IDS(0, 1), REALS(0, 0));
    close_to(h.value[1], 0);
    hand_retain(&h, &(const struct hand_event){ .kind = MOESIM_DENOISE, .clock = 3, .n = 0 });
    close_to(h.value[1], 0);
    hand_close(&h);
}
END_TEST

/* Five decode passes: layer 0 activates experts 0..a0-1, layer 1 experts 0..a1-1. */
static void five(struct hand *h, uint64_t from, uint32_t kind, uint32_t a0, uint32_t a1)
{
    static const uint16_t ids[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static const double score[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
    for (uint64_t at = from; at < from + 5; at++)
        for (uint32_t l = 0; l < 2; l++)
            hand_retain(h, &(const struct hand_event){ .layer = l, .kind = kind, .clock = at, .n = l == 0 ? a0 : a1,
                                                       .ids = ids, .mass = score, .weighted = score });
}

START_TEST(test_adapt_paper)
{
    struct hand h;
    hand_open(&h, "oled:adapt=on", 2, 16, 2, 4);
    five(&h, 1, MOESIM_PREFILL, 8, 2);          /* fills both, leaves no sample */
    five(&h, 6, MOESIM_DENOISE, 4, 2);
    ck_assert_uint_eq(hand_boundary(&h, 4), 0);
    ck_assert_uint_eq(h.slots[0], 4);
    hand_boundary(&h, 5);
    /* w = (4/16)(4/4), (2/16)(2/4): 8 slots as 4 : 1 → 6.4, 1.6, the latter clamped to K = 2 */
    ck_assert_uint_eq(h.slots[0], 6);
    ck_assert_uint_eq(h.slots[1], 2);
    hand_boundary(&h, 5);
    ck_assert_uint_eq(h.slots[0], 6);           /* once per five passes: a prefill may follow */
    five(&h, 11, MOESIM_DENOISE, 6, 6);         /* layer 0 hits 4, then 6 of 6; layer 1 2 of 2 */
    hand_boundary(&h, 10);
    ck_assert_uint_eq(h.slots[0] + h.slots[1], 8);
    ck_assert_uint_eq(h.slots[1], 4);           /* w as .933 : 1 → 3.86, 4.14: one left over, to the larger remainder */
    hand_close(&h);
}
END_TEST

START_TEST(test_adapt_forms)
{
    struct hand h;
    hand_open(&h, "oled:adapt=on,adapt-form=damped,enforce=eager", 2, 16, 1, 4);
    five(&h, 1, MOESIM_PREFILL, 8, 2);
    five(&h, 6, MOESIM_DENOISE, 4, 2);
    ck_assert_uint_eq(hand_boundary(&h, 5), 1);
    ck_assert_uint_eq(h.slots[0], 5);           /* √(4·4) : √(4·1) = 2 : 1 → 5.33, 2.67 → 5, 3 */
    ck_assert_uint_eq(h.slots[1], 3);
    hand_close(&h);
    hand_open(&h, "oled:adapt=on", 2, 16, 2, 4);
    hand_boundary(&h, 5);
    ck_assert_uint_eq(h.slots[0], 4);           /* no weight: the split stays */
    ck_assert_uint_eq(h.slots[1], 4);
    hand_close(&h);
    hand_open(&h, "oled:adapt=on", 2, 16, 2, 0);
    five(&h, 1, MOESIM_DENOISE, 4, 2);
    hand_boundary(&h, 5);
    ck_assert_uint_eq(h.slots[0], 0);
    hand_close(&h);
}
END_TEST

START_TEST(test_refused)
{
    static const struct { const char *policy; uint32_t global; const char *says; } row[] = {
        { "oled:adapt-form=damped", 0, "adapt-form takes effect only with adapt=on" },
        { "oled:enforce=eager", 0, "enforce takes effect only with adapt=on" },
        { "oled:adapt=on", 1, "scope global" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct hand h;
        char error[256];
        ck_assert_int_ne(hand_try_open(&h, row[i].policy, 2, 8, 2, 4, row[i].global, 1, error), 0);
        ck_assert_msg(strstr(error, row[i].says) != NULL, "%s", error);
        hand_close(&h);
    }
}
END_TEST

static void split(uint32_t total, uint32_t n, const double *w, uint32_t lo, uint32_t hi, uint32_t *out)
{
    double x[8];
    unsigned char fixed[8];
    kit_shares(total, w, n, lo, hi, x, fixed);
    kit_round_shares(total, x, n, hi, out);
}

START_TEST(test_split)
{
    static const struct { uint32_t total, lo, hi; double w[3]; uint32_t out[3]; } row[] = {
        { 30, 2, 16, { 10, 1, 1 }, { 16, 7, 7 } },
        { 12, 2, 16, { 0, 1, 1 }, { 2, 5, 5 } },
        { 20, 4, 10, { 100, 1, 0 }, { 10, 6, 4 } },
        { 10, 0, 16, { 1, 1, 1 }, { 4, 3, 3 } },      /* equal remainders: the lower layer */
        { 10, 0, 16, { 1, 2, 3 }, { 2, 3, 5 } },      /* 1.67, 3.33, 5 */
        { 9, 0, 16, { 0, 0, 0 }, { 3, 3, 3 } },
        { 30, 2, 10, { 5, 1, 0 }, { 10, 10, 10 } },
        { 6, 2, 10, { 5, 1, 0 }, { 2, 2, 2 } },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        uint32_t out[3];
        split(row[i].total, 3, row[i].w, row[i].lo, row[i].hi, out);
        for (uint32_t l = 0; l < 3; l++)
            ck_assert_msg(out[l] == row[i].out[l], "row %zu: layer %u gets %u, not %u", i, l, out[l], row[i].out[l]);
    }
}
END_TEST

/* On random weights: the sum is kept, the clamps hold, a heavier layer never gets less. */
START_TEST(test_split_random)
{
    uint64_t seed = 11;
    for (int run = 0; run < 2000; run++) {
        double w[8];
        uint32_t out[8], sum = 0;
        const uint32_t lo = (uint32_t)(kit_random(&seed) % 9), mean = lo + (uint32_t)(kit_random(&seed) % 40);
        const uint32_t hi = mean + (uint32_t)(kit_random(&seed) % 60);
        for (uint32_t l = 0; l < 8; l++)
            w[l] = kit_random(&seed) % 4 == 0 ? 0 : pow(kit_random_real(&seed), 6);
        split(mean * 8, 8, w, lo, hi, out);
        for (uint32_t l = 0; l < 8; l++) {
            sum += out[l];
            ck_assert(out[l] >= lo && out[l] <= hi);
            for (uint32_t k = 0; k < 8; k++)
                ck_assert(!(w[l] > w[k]) || out[l] >= out[k]);
        }
        ck_assert_uint_eq(sum, mean * 8);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oled");
    TCase *tests = tcase_create("oled");
    tcase_add_test(tests, test_figure_9);
    tcase_add_test(tests, test_tie);
    tcase_add_test(tests, test_confidence);
    tcase_add_test(tests, test_no_score);
    tcase_add_test(tests, test_adapt_paper);
    tcase_add_test(tests, test_adapt_forms);
    tcase_add_test(tests, test_refused);
    tcase_add_test(tests, test_split);
    tcase_add_test(tests, test_split_random);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
