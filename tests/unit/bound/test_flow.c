/* SPDX-License-Identifier: Apache-2.0
 *
 * Interval selection against exhaustive search, its shape over capacities on larger lines, large profits, the budget.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sim/flow.h"

/* ck_assert writes a message each time, which inner loops cannot afford. */
#define require(condition) do { if (!(condition)) ck_abort_msg("not so: %s", #condition); } while (0)

enum { LINES = 400, MOST_POINTS = 256, KINDS = 8 };

static moesim_budget plenty(void)
{
    return (moesim_budget){ .limit = (size_t)1 << 28, .what = "test" };
}

/* Random spans in order of their ends; most are short, as uses of experts are. */
static void random_line(moesim_rng *rng, uint32_t points, uint32_t per_point, uint32_t many, moesim_line *line)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_budget budget = plenty();
    memset(line, 0, sizeof *line);
    for (uint32_t end = 1; end < points; end++) {
        for (uint32_t n = moesim_rng_below(rng, per_point + 1); n > 0; n--) {
            const uint32_t length = moesim_rng_below(rng, 2) == 0 ? 1 : 1 + moesim_rng_below(rng, end);
            const moesim_span span = { end - length, end, moesim_rng_below(rng, KINDS), 1 + moesim_rng_below(rng, many) };
            require(moesim_line_add(line, &span, &budget, &err) == MOESIM_OK);
        }
    }
    ck_assert_int_eq(moesim_line_finish(line, points, &budget, &err), MOESIM_OK);
}

/* Most profit of spans from i on, given what covers each gap. */
static int64_t exhaust(const moesim_line *l, uint32_t capacity, const int64_t *profit, uint32_t i, uint32_t *cover)
{
    if (i == l->num_spans)
        return 0;
    const moesim_span *s = &l->span[i];
    int64_t best = INT64_MIN;
    uint32_t kept = 0;
    for (;; kept++) {
        const int64_t value = (int64_t)kept * profit[s->kind] + exhaust(l, capacity, profit, i + 1, cover);
        best = value > best ? value : best;
        uint32_t most = 0;
        for (uint32_t p = s->begin; p < s->end; p++)
            most = cover[p] > most ? cover[p] : most;
        if (kept == s->many || most >= capacity)
            break;
        for (uint32_t p = s->begin; p < s->end; p++)
            cover[p]++;
    }
    for (uint32_t p = s->begin; p < s->end; p++)
        cover[p] -= kept;
    return best;
}

/* Profit of what the flow keeps, which must fit. */
static int64_t select_checked(moesim_flow *flow, const moesim_line *l, uint32_t capacity, const int64_t *profit)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const uint32_t *kept = NULL;
    uint32_t cover[MOST_POINTS] = { 0 };
    int64_t sum = 0;
    ck_assert_int_eq(moesim_flow_select(flow, l, capacity, profit, &kept, &err), MOESIM_OK);
    for (uint32_t i = 0; i < l->num_spans; i++) {
        require(kept[i] <= l->span[i].many);
        for (uint32_t p = l->span[i].begin; p < l->span[i].end; p++)
            cover[p] += kept[i];
        sum += (int64_t)kept[i] * profit[l->span[i].kind];
    }
    for (uint32_t p = 0; p < l->points; p++)
        require(cover[p] <= capacity);
    return sum;
}

START_TEST(test_exhaustive)
{
    uint64_t solved = 0;
    for (uint64_t seed = 1; seed <= LINES; seed++) {
        moesim_rng rng;
        moesim_line line;
        moesim_flow *flow = NULL;
        int64_t profit[KINDS];
        moesim_rng_seed(&rng, seed);
        random_line(&rng, 2 + moesim_rng_below(&rng, 4), 2, 3, &line);
        for (uint32_t k = 0; k < KINDS; k++)
            profit[k] = moesim_rng_below(&rng, 5) == 0 ? 0 : moesim_rng_below(&rng, seed % 2 == 0 ? 4 : 1000);
        ck_assert_int_eq(moesim_flow_create(line.points, line.num_spans, &flow, NULL), MOESIM_OK);
        for (uint32_t c = 0; c <= line.widest + 1; c++, solved++) {
            uint32_t cover[MOST_POINTS] = { 0 };
            const int64_t want = exhaust(&line, c, profit, 0, cover), got = select_checked(flow, &line, c, profit);
            ck_assert_msg(got == want, "seed %llu, capacity %u of %u: %lld, exhaustive search %lld", (unsigned long long)seed,
                          c, line.widest, (long long)got, (long long)want);
        }
        moesim_flow_destroy(&flow);
        moesim_line_fini(&line);
    }
    printf("%llu selections equal the exhaustive search\n", (unsigned long long)solved);
}
END_TEST

/* The profit over capacities is a minimum-cost flow's: concave, and everything at `widest`; the two starts meet half way. */
START_TEST(test_concave)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        moesim_rng rng;
        moesim_line line;
        moesim_flow *flow = NULL;
        int64_t profit[KINDS], before = 0, gain = INT64_MAX, all = 0;
        moesim_rng_seed(&rng, seed);
        random_line(&rng, MOST_POINTS, 4, 2, &line);
        for (uint32_t k = 0; k < KINDS; k++)
            profit[k] = moesim_rng_below(&rng, 1000);
        for (uint32_t i = 0; i < line.num_spans; i++)
            all += profit[line.span[i].kind] * line.span[i].many;
        ck_assert_int_eq(moesim_flow_create(line.points, line.num_spans, &flow, NULL), MOESIM_OK);
        for (uint32_t c = 0; c <= line.widest; c++) {
            const int64_t now = select_checked(flow, &line, c, profit);
            ck_assert_msg(c == 0 ? now == 0 : now - before <= gain && now >= before, "seed %llu capacity %u of %u: gain %lld "
                          "after %lld", (unsigned long long)seed, c, line.widest, (long long)(now - before),
                          (long long)gain);
            gain = c == 0 ? gain : now - before;
            before = now;
        }
        ck_assert_int_eq(before, all);
        ck_assert_int_eq(select_checked(flow, &line, UINT32_MAX, profit), all);
        moesim_flow_destroy(&flow);
        moesim_line_fini(&line);
    }
}
END_TEST

/* Two chains of intervals with the largest profits allowed, one slot: nothing overflows on a long line. */
START_TEST(test_large)
{
    enum { LONG = 1 << 18 };
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_budget budget = plenty();
    moesim_line line = { 0 };
    moesim_flow *flow = NULL;
    const uint32_t *kept = NULL;
    const int64_t most = INT64_C(1) << moesim_flow_bits(LONG + 1), profit[] = { most, most - 1 };
    ck_assert_int_gt(most, INT64_C(1) << 39);
    for (uint32_t end = 1; end <= LONG; end++) {
        for (uint32_t kind = 0; kind < 2; kind++) {
            const moesim_span span = { end - 1, end, kind, 1 + kind };
            require(moesim_line_add(&line, &span, &budget, &err) == MOESIM_OK);
        }
    }
    ck_assert_int_eq(moesim_line_finish(&line, LONG + 1, &budget, &err), MOESIM_OK);
    ck_assert_uint_eq(line.widest, 3);
    ck_assert_int_eq(moesim_flow_create(line.points, line.num_spans, &flow, &err), MOESIM_OK);
    for (uint32_t c = 1; c <= 2; c++) {
        ck_assert_int_eq(moesim_flow_select(flow, &line, c, profit, &kept, &err), MOESIM_OK);
        for (uint32_t i = 0; i < line.num_spans; i++)
            require(kept[i] == (line.span[i].kind == 0 ? 1 : c - 1));
    }
    moesim_flow_destroy(&flow);
    moesim_line_fini(&line);
    ck_assert_uint_eq(moesim_flow_bits(1), 40);
    ck_assert_uint_eq(moesim_flow_bits(UINT32_MAX), 27);
}
END_TEST

START_TEST(test_empty)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_budget budget = plenty();
    const int64_t profit[1] = { 1 };
    for (uint32_t points = 0; points < 3; points++) {
        moesim_line line = { 0 };
        moesim_flow *flow = NULL;
        ck_assert_int_eq(moesim_line_finish(&line, points, &budget, &err), MOESIM_OK);
        ck_assert_uint_eq(line.widest, 0);
        ck_assert_int_eq(moesim_flow_create(points, 0, &flow, &err), MOESIM_OK);
        ck_assert_int_eq(select_checked(flow, &line, 1, profit), 0);
        moesim_flow_destroy(&flow);
        moesim_line_fini(&line);
    }
}
END_TEST

START_TEST(test_budget)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_budget budget = { .limit = 4096, .what = "offline-cost" };
    moesim_line line = { 0 };
    moesim_code code = MOESIM_OK;
    uint32_t n = 0;
    for (; n < 4096 && code == MOESIM_OK; n++) {
        const moesim_span span = { n, n + 1, 0, 1 };
        code = moesim_line_add(&line, &span, &budget, &err);
    }
    ck_assert_int_eq(code, MOESIM_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "offline-cost"));
    ck_assert_ptr_nonnull(strstr(err.text, "--requests"));
    ck_assert_uint_ge(n, 100);
    ck_assert_uint_le(budget.used, budget.limit);
    ck_assert_int_eq(moesim_line_finish(&line, UINT32_MAX - 1, &budget, &err), MOESIM_E_LIMIT);
    moesim_line_fini(&line);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flow");
    TCase *tc = tcase_create("flow");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_exhaustive);
    tcase_add_test(tc, test_concave);
    tcase_add_test(tc, test_large);
    tcase_add_test(tc, test_empty);
    tcase_add_test(tc, test_budget);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
