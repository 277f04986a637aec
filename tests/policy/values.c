/* SPDX-License-Identifier: Apache-2.0
 *
 * Values, tie keys and what they keep, worked out by hand from semantics §1, §4 and §6.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/policy/hand.h"

#define IDS(...) (const uint16_t[]){ __VA_ARGS__ }
#define REALS(...) (const double[]){ __VA_ARGS__ }
#define COUNTS(...) (const uint32_t[]){ __VA_ARGS__ }
#define LONGS(...) (const uint64_t[]){ __VA_ARGS__ }

#define EVENT_OF(kind_, at, n_, ids_, ...) \
    (&(const struct hand_event){ .kind = kind_, .clock = at, .n = n_, .ids = ids_, __VA_ARGS__ })
#define EVENT(...) EVENT_OF(MOESIM_DENOISE, __VA_ARGS__)

static void close_to(double is, double should)
{
    ck_assert_double_eq_tol(is, should, 1e-12);
}

START_TEST(test_naive)
{
    struct hand h;
    hand_open(&h, "naive", 1, 8, 2, 3);
    hand_retain(&h, EVENT(1, 2, IDS(5, 6), .layer = 0));
    ck_assert_uint_eq(h.resident[0], 0x60);
    hand_retain(&h, EVENT(2, 2, IDS(1, 2), .layer = 0));
    /* the free slot keeps the value-0 resident of the lower id */
    ck_assert_uint_eq(h.resident[0], 0x26);
    close_to(h.value[1], 1);
    close_to(h.value[5], 0);
    close_to(h.tie[1], 0);
    hand_close(&h);
}
END_TEST

START_TEST(test_lru)
{
    struct hand h;
    hand_open(&h, "lru", 2, 8, 2, 3);
    hand_retain(&h, EVENT(1, 2, IDS(5, 6), .layer = 0));
    hand_retain(&h, EVENT(2, 1, IDS(6), .layer = 0));
    hand_retain(&h, EVENT(2, 1, IDS(7), .layer = 1));
    hand_retain(&h, EVENT(3, 2, IDS(0, 1), .layer = 0));
    close_to(h.value[0], 3);
    close_to(h.value[5], 1);
    close_to(h.value[6], 2);
    close_to(h.value[7], 0);   /* layer 1 is another story */
    ck_assert_uint_eq(h.resident[0], 0x43);
    hand_retain(&h, EVENT(4, 2, IDS(0, 1), .touch = LONGS(12, 11)));
    close_to(h.value[0], 12);   /* scope global: last touch */
    close_to(h.value[1], 11);
    hand_close(&h);
}
END_TEST

START_TEST(test_lfu)
{
    struct hand h;
    hand_open(&h, "lfu", 1, 8, 2, 1);
    hand_retain(&h, EVENT(1, 1, IDS(3), .layer = 0));
    hand_retain(&h, EVENT(2, 1, IDS(3), .layer = 0));
    hand_retain(&h, EVENT(3, 1, IDS(4), .layer = 0));
    ck_assert_uint_eq(h.resident[0], 0x08);
    hand_retain(&h, EVENT(4, 1, IDS(4), .layer = 0));
    ck_assert_uint_eq(h.resident[0], 0x10);   /* counts survive eviction; equal counts: later last */
    close_to(h.value[4], 2);
    close_to(h.tie[4], 4);
    close_to(h.value[3], 2);
    close_to(h.tie[3], 2);
    hand_close(&h);
}
END_TEST

START_TEST(test_lfu_decay)
{
    struct hand h;
    hand_open(&h, "lfu:decay=2", 1, 8, 2, 8);
    ck_assert_uint_eq(h.traits & MOESIM_KEYS_AGE, MOESIM_KEYS_AGE);
    hand_retain(&h, EVENT(1, 2, IDS(0, 1), .layer = 0));
    hand_retain(&h, EVENT(2, 1, IDS(0), .layer = 0));
    close_to(h.value[0], 2);
    hand_retain(&h, EVENT(3, 1, IDS(1), .layer = 0));   /* after pass 2 counts were 2 and 1: now 1 and .5 + 1 */
    close_to(h.value[0], 1);
    close_to(h.value[1], 1.5);
    hand_retain(&h, EVENT(8, 1, IDS(2), .layer = 0));   /* after passes 4 and 6 */
    close_to(h.value[0], .25);
    close_to(h.value[1], .375);
    close_to(h.value[2], 1);
    hand_retain(&h, EVENT(4000000, 1, IDS(3), .layer = 0));
    close_to(h.value[0], 0);
    hand_close(&h);
    hand_open(&h, "lfu", 1, 8, 2, 8);
    ck_assert_uint_eq(h.traits & MOESIM_KEYS_AGE, 0);
    ck_assert_int_eq(hand_key(&h, EVENT(UINT32_MAX, 1, IDS(2), .layer = 0)), 0);
    ck_assert_int_ne(hand_key(&h, EVENT(UINT64_C(1) << 32, 1, IDS(2), .layer = 0)), 0);   /* does not fit beside the count */
    hand_close(&h);
}
END_TEST

START_TEST(test_lfru)
{
    struct hand h;
    hand_open(&h, "lfru", 1, 8, 2, 2);
    for (uint64_t at = 1; at <= 3; at++)
        hand_retain(&h, EVENT(at, 1, IDS(3), .layer = 0));
    hand_retain(&h, EVENT(9, 2, IDS(1, 2), .layer = 0));
    close_to(h.value[3], 3.0 / 7);
    close_to(h.value[1], 1);
    close_to(h.tie[3], 3);
    ck_assert_uint_eq(h.resident[0], 0x06);
    hand_close(&h);
}
END_TEST

START_TEST(test_random)
{
    struct hand a, b, c;
    ck_assert_int_eq(hand_try_open(&a, "random", 1, 64, 8, 4, 0, 7, NULL), 0);
    ck_assert_int_eq(hand_try_open(&b, "random", 1, 64, 8, 4, 0, 7, NULL), 0);
    ck_assert_int_eq(hand_try_open(&c, "random", 1, 64, 8, 4, 0, 8, NULL), 0);
    int differ = 0;
    for (uint64_t at = 1; at <= 20; at++) {
        const uint16_t e = (uint16_t)(at * 2);
        hand_retain(&a, EVENT(at, 3, IDS(e, e + 1, e + 2), .layer = 0));
        hand_retain(&b, EVENT(at, 3, IDS(e, e + 1, e + 2), .layer = 0));
        hand_retain(&c, EVENT(at, 3, IDS(e, e + 1, e + 2), .layer = 0));
        ck_assert(a.resident[0] == b.resident[0]);
        differ |= a.resident[0] != c.resident[0];
        for (uint32_t x = 0; x < 3; x++)
            ck_assert(a.value[e + x] >= 0 && a.value[e + x] < 1);
    }
    ck_assert_int_eq(differ, 1);
    hand_close(&a);
    hand_close(&b);
    hand_close(&c);
}
END_TEST

START_TEST(test_belady)
{
    struct hand h;
    hand_open(&h, "belady", 2, 8, 2, 1);
    /* 0, 1, 0 with one slot: 1 is never used again and does not enter */
    hand_retain(&h, EVENT(1, 1, IDS(0), .next_use = LONGS(3)));
    hand_retain(&h, EVENT(2, 1, IDS(1), .next_use = LONGS(MOESIM_NEVER)));
    ck_assert_uint_eq(h.resident[0], 0x01);
    close_to(h.value[0], -3);
    ck_assert(h.value[1] < -1e18 && isfinite(h.value[1]));
    hand_retain(&h, EVENT(3, 1, IDS(0), .next_use = LONGS(MOESIM_NEVER)));
    ck_assert_uint_eq(h.resident[0], 0x01);   /* a free slot may hold it: no −∞ */
    hand_retain(&h, EVENT(3, 1, IDS(0), .layer = 1, .next_use = LONGS(9)));
    close_to(h.tie[0], -1);
    hand_close(&h);
}
END_TEST

START_TEST(test_belady_forced)
{
    struct hand h;
    hand_open(&h, "belady-forced", 1, 8, 2, 2);
    hand_retain(&h, EVENT(1, 2, IDS(0, 1), .next_use = LONGS(3, 4)));
    hand_retain(&h, EVENT(2, 1, IDS(2), .next_use = LONGS(MOESIM_NEVER)));
    ck_assert_uint_eq(h.resident[0], 0x05);   /* 2 must enter, 1 is used later than 0 */
    hand_retain(&h, EVENT(3, 3, IDS(0, 3, 4), .next_use = LONGS(9, 5, 6)));
    ck_assert_uint_eq(h.resident[0], 0x18);   /* |A| > C: the two of A used soonest */
    hand_close(&h);
    ck_assert_int_eq(hand_try_open(&h, "belady-forced", 1, 8, 2, 2, 1, 1, NULL), 0);
    hand_retain(&h, EVENT(1, 2, IDS(0, 1), .next_use = LONGS(3, 4)));
    hand_retain(&h, EVENT(2, 1, IDS(2), .next_use = LONGS(7)));
    close_to(h.value[2], -7);   /* scope global: the host admits, the next use orders */
    close_to(h.value[0], -3);
    hand_close(&h);
}
END_TEST

START_TEST(test_next_pass)
{
    struct hand h;
    hand_open(&h, "next-pass", 1, 8, 2, 2);
    hand_retain(&h, EVENT_OF(MOESIM_PREFILL, 1, 2, IDS(0, 1), .next_active = 0x2));
    close_to(h.value[0], 1 - pow(.95, 8));
    close_to(h.value[1], 2 + 1 - pow(.95, 8));
    hand_retain(&h, EVENT(2, 1, IDS(2), .next_active = 0x4));
    close_to(h.value[0], .95 * (1 - pow(.95, 8)));
    close_to(h.value[2], 2.05);
    close_to(h.tie[0], 1);
    close_to(h.tie[2], 2);
    ck_assert_uint_eq(h.resident[0], 0x05);   /* 0 and 1 are equal but for the id */
    hand_close(&h);
}
END_TEST

/* The key path orders all experts as value and tie do. */
START_TEST(test_keys_order)
{
    static const char *const policies[] = { "lfu", "lfu:decay=3", "belady", "belady-forced" };
    uint64_t seed = 5;
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        struct hand by_value, by_key;
        hand_open(&by_value, policies[p], 1, 24, 4, 24);
        hand_open(&by_key, policies[p], 1, 24, 4, 24);
        for (uint64_t at = 1; at <= 60; at++) {
            uint16_t ids[24];
            uint64_t next[24];
            uint32_t n = 0;
            for (uint16_t e = 0; e < 24; e++) {
                seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
                if ((seed >> 60) > 4)
                    continue;
                next[n] = (seed >> 40 & 7) == 0 ? MOESIM_NEVER : at + 1 + (seed >> 50 & 15);
                ids[n++] = e;
            }
            hand_retain(&by_value, EVENT(at, n, ids, .next_use = next));
            ck_assert_int_eq(hand_key(&by_key, EVENT(at, n, ids, .next_use = next)), 0);
            for (uint32_t a = 0; a < 24; a++) {
                for (uint32_t b = 0; b < 24; b++) {
                    const double va = by_value.value[a], vb = by_value.value[b], ta = by_value.tie[a], tb = by_value.tie[b];
                    const int above = va > vb || (!(va < vb) && ta > tb);
                    if (((by_value.resident[0] >> a) & (by_value.resident[0] >> b) & 1) != 0)
                        ck_assert_msg(above == (by_key.key[a] > by_key.key[b]), "%s: experts %u and %u at %u", policies[p], a,
                                      b, (unsigned)at);
                }
            }
        }
        hand_close(&by_value);
        hand_close(&by_key);
    }
}
END_TEST

START_TEST(test_surv)
{
    struct hand h;
    const double gone = pow(.95, 8);
    hand_open(&h, "surv", 1, 8, 2, 8);
    hand_retain(&h, EVENT_OF(MOESIM_PREFILL, 1, 1, IDS(0), .class_sum = REALS(6.8), .masked = COUNTS(0)));
    close_to(h.value[0], .3 * (1 - gone));
    hand_retain(&h, EVENT(2, 2, IDS(1, 2), .first = 1, .num_masked = 16, .class_sum = REALS(2.2, 4.1), .masked = COUNTS(1, 9)));
    close_to(h.value[1], 2.2 + .05 * (.1 + .1 / 4) + .3 * .05);
    close_to(h.value[2], 4.1 + .05 * (.1 + .1) + .3 * .05);
    close_to(h.value[0], .3 * .95 * (1 - gone));
    hand_retain(&h, EVENT(3, 1, IDS(1), .num_masked = 1, .class_sum = REALS(1.9), .masked = COUNTS(1)));
    close_to(h.value[1], 1.9 + .05 * (.1 + .9 * .025 + .025) + .3 * (.95 * .05 + .05));
    close_to(h.value[2], .05 * (.1 + .9 * .1) + .3 * .95 * .05);
    hand_retain(&h, EVENT_OF(MOESIM_COMMIT, 4, 1, IDS(2), .class_sum = REALS(6.8), .masked = COUNTS(0)));
    close_to(h.value[1], 10 * (.1 + .0475) + .3 * .95 * (.95 * .05 + .05));
    close_to(h.value[2], 10 * (.1 + .09) + .3 * (.95 * .95 * .05 + .05));
    close_to(h.tie[1], 3);
    close_to(h.tie[2], 4);
    close_to(h.tie[0], 1);
    hand_close(&h);
}
END_TEST

/* Value of expert 0 after a block of a first pass and a pass with one masked row, twice. */
static double second_block(const char *policy, int commits)
{
    struct hand h;
    uint64_t at = 1;
    hand_open(&h, policy, 1, 8, 2, 8);
    for (int block = 0; block < 2; block++) {
        hand_retain(&h, EVENT(at++, 1, IDS(0), .first = 1, .num_masked = 16, .class_sum = REALS(2.2), .masked = COUNTS(1)));
        hand_retain(&h, EVENT(at++, 1, IDS(0), .num_masked = 1, .class_sum = REALS(100), .masked = COUNTS(1)));
        if (commits && block == 0)
            hand_retain(&h, EVENT_OF(MOESIM_COMMIT, at++, 1, IDS(0), .class_sum = REALS(6.8), .masked = COUNTS(0)));
    }
    const double value = h.value[0];
    hand_close(&h);
    return value;
}

START_TEST(test_surv_boundary)
{
    ck_assert_double_lt(second_block("surv:boundary=masked", 1), 10);
    ck_assert_double_lt(second_block("surv:boundary=masked", 0), 10);
    ck_assert_double_gt(second_block("surv:boundary=commit", 0), 100);
    ck_assert_double_gt(second_block("surv", 1), 100);   /* the engine has commit passes */
    ck_assert_double_lt(second_block("surv", 0), 10);    /* it has none */
}
END_TEST

static double lasting(double survival)
{
    return -log(1 - survival);
}

/* S of form=full by hand; its table holds four decimals. Rows: masked with little confidence, the most confident masked one,
 * committed just now with a ghost, committed long ago with a ghost that another row uses; then another request's masked row
 * without a pass before it. */
START_TEST(test_surv_full)
{
    const moesim_row row[] = {
        { .input = MOESIM_ROW_MASKED, .confidence = .05f, .expert = IDS(0, 1) },
        { .input = MOESIM_ROW_MASKED, .confidence = .85f, .expert = IDS(0, MOESIM_NO_ROUTE) },
        { .input = MOESIM_ROW_JUST, .confidence = NAN, .expert = IDS(2, 0), .previous = IDS(0, 5) },
        { .input = MOESIM_ROW_LONG, .confidence = .99f, .expert = IDS(1, 2), .previous = IDS(0, MOESIM_NO_ROUTE) },
        { .request = 1, .input = MOESIM_ROW_MASKED, .confidence = NAN, .expert = IDS(3, 1) },
    };
    const double rest = .3 * .05, k = .05 * .025;
    struct hand h;
    hand_open(&h, "surv:form=full", 1, 8, 2, 8);
    hand_retain(&h, EVENT(1, 1, IDS(5), .num_masked = 3, .class_sum = REALS(0), .masked = COUNTS(0)));
    hand_retain(&h, EVENT(2, 4, IDS(0, 1, 2, 3), .num_masked = 3, .class_sum = REALS(99, 99, 99, 99),
                          .masked = COUNTS(2, 2, 0, 1), .num_rows = 5, .row = row));
    ck_assert_double_eq_tol(h.value[0], lasting(.98 * .965 + .02 * .461) + lasting(.16 * .965 + .84 * .461) + lasting(.973) +
                            .1567 + 2 * k + rest, 3e-4);
    ck_assert_double_eq_tol(h.value[1], lasting(.98 * .934 + .02 * .356) + lasting(.999) + lasting(.91 * .934 + .09 * .356) +
                            2 * k + rest, 3e-4);
    ck_assert_double_eq_tol(h.value[2], lasting(.990) + lasting(.996) + rest, 3e-4);
    ck_assert_double_eq_tol(h.value[3], lasting(.91 * .965 + .09 * .461) + k + rest, 3e-4);
    ck_assert_double_eq_tol(h.value[5], .0253 + .95 * rest, 3e-4);   /* a ghost that nobody uses */
    hand_retain(&h, EVENT_OF(MOESIM_COMMIT, 3, 1, IDS(0), .class_sum = REALS(99), .masked = COUNTS(0), .num_rows = 4,
                             .row = row));
    ck_assert_double_lt(h.value[0], 1);   /* the rows leave: no S */
    hand_close(&h);
}
END_TEST

/* A counter that is never fed again stops before the subnormal numbers, which are slow. */
START_TEST(test_surv_fades)
{
    struct hand h;
    hand_open(&h, "surv", 1, 8, 2, 8);
    hand_retain(&h, EVENT(1, 1, IDS(0), .first = 1, .num_masked = 16, .class_sum = REALS(2.2), .masked = COUNTS(4)));
    hand_retain(&h, EVENT(2, 1, IDS(1), .first = 1, .num_masked = 16, .class_sum = REALS(2.2), .masked = COUNTS(4)));
    ck_assert_double_gt(h.value[0], 0);
    for (uint64_t at = 3; at < 20000; at++)
        hand_retain(&h, EVENT(at, 1, IDS(1), .first = 1, .num_masked = 16, .class_sum = REALS(2.2), .masked = COUNTS(4)));
    ck_assert_double_ge(h.value[0], 0);
    ck_assert_double_lt(h.value[0], 1e-290);
    ck_assert_int_ne(fpclassify(h.value[0]), FP_SUBNORMAL);
    hand_close(&h);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("values");
    TCase *tests = tcase_create("values");
    tcase_add_test(tests, test_naive);
    tcase_add_test(tests, test_lru);
    tcase_add_test(tests, test_lfu);
    tcase_add_test(tests, test_lfu_decay);
    tcase_add_test(tests, test_lfru);
    tcase_add_test(tests, test_random);
    tcase_add_test(tests, test_belady);
    tcase_add_test(tests, test_belady_forced);
    tcase_add_test(tests, test_next_pass);
    tcase_add_test(tests, test_keys_order);
    tcase_add_test(tests, test_surv);
    tcase_add_test(tests, test_surv_boundary);
    tcase_add_test(tests, test_surv_full);
    tcase_add_test(tests, test_surv_fades);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
