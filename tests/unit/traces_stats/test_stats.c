/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of traces: a trace small enough to be worked by hand, orders that must not matter, the sample against an
 * independent computation, and the file that is written.
 */
#include <hdf5.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "tests/support/support.h"
#include "tests/unit/base/runner.h"
#include "traces/stats.h"

#define NONE MOESIM_NO_ROUTE
#define TOLERANCE 1e-12

struct row { uint16_t ids[2]; uint8_t state; float confidence; };

/* The decode passes of the hand-worked request: one layer, 8 experts, top 2, blocks of 2 positions.
 *
 *   pass            position 10 / 12      position 11 / 13      A
 *   0 denoise b 0   {0 1} masked  .95     {0 2} commits .05     {0 1 2}
 *   1 denoise b 0   {0 3} commits .55     {4 5} earlier .25     {0 3 4 5}
 *   2 commit  b 0   {0 3} earlier  -      {4 6} earlier  -      {0 3 4 6}
 *   3 denoise b 1   {0 1} commits 1.0     {7  } masked  .0      {0 1 7}
 */
static const struct { uint8_t kind; int32_t block, step, position; struct row row[2]; } hand[4] = {
    { 1, 0, 0, 10, { { { 0, 1 }, 0, .95f }, { { 0, 2 }, 1, .05f } } },
    { 1, 0, 1, 10, { { { 0, 3 }, 1, .55f }, { { 4, 5 }, 2, .25f } } },
    { 2, 0, 2, 10, { { { 0, 3 }, 2, NAN }, { { 4, 6 }, 2, NAN } } },
    { 1, 1, 0, 12, { { { 0, 1 }, 1, 1.0f }, { { 7, NONE }, 0, .0f } } },
};

/* Adds one of the passes above; reversed: its rows in the other order. */
static void add_hand_pass(struct test_trace *t, uint32_t request, size_t k, bool reversed)
{
    const size_t p = test_trace_add_pass(t, request, hand[k].kind, hand[k].block, hand[k].step, 2, hand[k].position);
    for (size_t i = 0; i < 2; i++) {
        const size_t row = test_trace_row(t, p) + i, from = reversed ? 1 - i : i;
        const struct row *r = &hand[k].row[from];
        t->position[row] = hand[k].position + (int32_t)from;
        t->state[row] = r->state;
        t->confidence[row] = r->confidence;
        test_trace_route(t, row, 0, r->ids[1] == NONE ? 1 : 2, r->ids);
    }
}

static void begin(struct test_trace *t, uint32_t requests)
{
    static const uint16_t prompt[2] = { 6, 7 };
    test_trace_init(t, 1, 8, 2, 2);
    for (uint32_t q = 0; q < requests; q++) {
        test_trace_add_request(t, "hand", 1, -1);
        const size_t p = test_trace_add_pass(t, q, MOESIM_PASS_PREFILL, -1, 0, 1, 0);
        test_trace_route(t, test_trace_row(t, p), 0, 2, prompt);
    }
}

/* Writes t, computes its statistics, and lets t go. */
static void compute(struct test_trace *t, const char *name, moesim_trace_stats *out)
{
    moesim_trace *trace = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    const char *path = test_path(name);
    test_trace_write(t, path);
    test_trace_fini(t);
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_stats_compute(trace, out, &err) == MOESIM_OK, "%s", err.text);
    moesim_trace_close(&trace);
}

static void check_mean(const moesim_mean *mean, double value, uint64_t n)
{
    ck_assert_uint_eq(mean->n, n);
    if (n == 0)
        ck_assert(isnan(moesim_mean_value(mean)));
    else
        ck_assert_double_eq_tol(moesim_mean_value(mean), value, TOLERANCE);
}

/* What the table above gives, `times` over. Lag 1: passes 0→1 share {0}, 1→2 share {0 3 4}; lag 2: 0→2 share {0};
 * boundary 2→3 share {0}. */
static void check_hand(const moesim_trace_stats *s, uint64_t times)
{
    ck_assert_uint_eq(s->passes[MOESIM_PASS_PREFILL], times);
    ck_assert_uint_eq(s->passes[MOESIM_PASS_DENOISE], 3 * times);
    ck_assert_uint_eq(s->passes[MOESIM_PASS_COMMIT], times);
    ck_assert_uint_eq(s->rows[MOESIM_PASS_DENOISE], 6 * times);
    ck_assert_uint_eq(s->decode_passes, 4 * times);
    ck_assert_uint_eq(s->active_sum[0], 14 * times);
    ck_assert_uint_eq(s->active_hist[3], 2 * times);
    ck_assert_uint_eq(s->active_hist[4], 2 * times);
    ck_assert_uint_eq(s->committed, 3 * times);
    check_mean(&s->overlap_new[1], (1.0 / 4 + 3.0 / 4) / 2, 2 * times);
    check_mean(&s->overlap_old[1], (1.0 / 3 + 3.0 / 4) / 2, 2 * times);
    check_mean(&s->overlap_new[2], 1.0 / 4, times);
    check_mean(&s->overlap_old[2], 1.0 / 3, times);
    check_mean(&s->overlap_new[3], 0.0, 0);
    check_mean(&s->boundary_new, 1.0 / 3, times);
    check_mean(&s->boundary_old, 1.0 / 4, times);
    /* 0→1: position 10 keeps 1 of 2 (masked), 11 keeps 0 (committed by pass 0);
     * 1→2: position 10 keeps 2 (committed by pass 1), 11 keeps 1 of 2 (committed earlier). */
    check_mean(&s->persistence[MOESIM_STATS_ALL][1], (.5 + 0 + 1 + .5) / 4, 4 * times);
    check_mean(&s->persistence[MOESIM_STATS_MASKED][1], .5, times);
    check_mean(&s->persistence[MOESIM_STATS_JUST][1], .5, 2 * times);
    check_mean(&s->persistence[MOESIM_STATS_LONG][1], .5, times);
    check_mean(&s->persistence[MOESIM_STATS_MASKED][2], .5, times);
    check_mean(&s->persistence[MOESIM_STATS_JUST][2], 0.0, times);
    check_mean(&s->persistence[MOESIM_STATS_LONG][2], 0.0, 0);
    /* Input masked: the rows that commit too. Row (1, 11) was committed before, so it counts among all rows alone. */
    static const struct { uint32_t bin, kept; bool masked; } samples[] = {
        { 9, 1, true }, { 0, 0, true }, { 5, 2, true }, { 2, 1, false },
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        for (int all = 0; all < 2; all++) {
            const uint64_t n = samples[i].masked || all ? times : 0;
            ck_assert_uint_eq(s->stability[all].n[samples[i].bin], n);
            ck_assert_uint_eq(s->stability[all].level[samples[i].bin][samples[i].kept], n);
            ck_assert_uint_eq(s->stability[all].kept[samples[i].bin], n * samples[i].kept);
        }
    }
}

START_TEST(worked_by_hand)
{
    struct test_trace t;
    moesim_trace_stats s;
    begin(&t, 1);
    for (size_t k = 0; k < 4; k++)
        add_hand_pass(&t, 0, k, false);
    compute(&t, "hand.h5", &s);
    check_hand(&s, 1);
    ck_assert_double_eq_tol(moesim_trace_stats_active(&s), 3.5, TOLERANCE);
    const moesim_regime r = moesim_trace_stats_regime(&s, 3);
    ck_assert_double_eq_tol(r.mean, 3.5 / 3, TOLERANCE);
    ck_assert_double_eq_tol(r.p95, 4.0 / 3, TOLERANCE);
    ck_assert_double_eq_tol(r.above_one, .5, TOLERANCE);
    ck_assert(isnan(moesim_trace_stats_regime(&s, 0).mean));
    moesim_trace_stats_fini(&s);
}
END_TEST

/* A dummy pass between two passes of a block is as if it were not there. */
START_TEST(dummy_passes_do_not_count)
{
    static const uint16_t other[2] = { 5, 6 };
    struct test_trace t;
    moesim_trace_stats s;
    begin(&t, 1);
    for (size_t k = 0; k < 4; k++) {
        add_hand_pass(&t, 0, k, false);
        const size_t p = test_trace_add_pass(&t, 0, MOESIM_PASS_DUMMY, 0, 0, 1, 10);
        test_trace_route(&t, test_trace_row(&t, p), 0, 2, other);
    }
    compute(&t, "dummy.h5", &s);
    check_hand(&s, 1);
    ck_assert_uint_eq(s.passes[MOESIM_PASS_DUMMY], 4);
    moesim_trace_stats_fini(&s);
}
END_TEST

START_TEST(order_of_rows_does_not_matter)
{
    struct test_trace t;
    moesim_trace_stats s;
    begin(&t, 1);
    for (size_t k = 0; k < 4; k++)
        add_hand_pass(&t, 0, k, k % 2 == 1);
    compute(&t, "reversed.h5", &s);
    check_hand(&s, 1);
    moesim_trace_stats_fini(&s);
}
END_TEST

START_TEST(requests_may_interleave)
{
    struct test_trace t;
    moesim_trace_stats s;
    begin(&t, 3);
    for (size_t k = 0; k < 4; k++)
        for (uint32_t q = 0; q < 3; q++)
            add_hand_pass(&t, q, k, false);
    compute(&t, "interleaved.h5", &s);
    check_hand(&s, 3);
    moesim_trace_stats_fini(&s);
}
END_TEST

/* Passes without rows and traces without decode passes give undefined means, not numbers. */
START_TEST(nothing_to_compare)
{
    struct test_trace t;
    moesim_trace_stats s;
    begin(&t, 1);
    compute(&t, "prefill.h5", &s);
    ck_assert_uint_eq(s.decode_passes, 0);
    ck_assert(isnan(moesim_trace_stats_active(&s)));
    ck_assert(isnan(moesim_trace_stats_regime(&s, 4).p95));
    moesim_trace_stats_fini(&s);
    begin(&t, 1);
    test_trace_add_pass(&t, 0, MOESIM_PASS_DENOISE, 0, 0, 0, 10);
    test_trace_add_pass(&t, 0, MOESIM_PASS_DENOISE, 0, 1, 0, 10);
    compute(&t, "empty.h5", &s);
    ck_assert_uint_eq(s.decode_passes, 2);
    ck_assert_uint_eq(s.active_hist[0], 2);
    check_mean(&s.overlap_new[1], 0.0, 0);
    moesim_trace_stats_fini(&s);
}
END_TEST

/* Twelve passes of one block: lag 10 compares the first with the eleventh, and nothing is compared at 11. */
START_TEST(lags_end_at_ten)
{
    struct test_trace t;
    moesim_trace_stats s;
    test_trace_init(&t, 1, 16, 1, 1);
    test_trace_add_request(&t, "lags", 0, -1);
    for (uint16_t i = 0; i < 12; i++) {
        const uint16_t id = i == 10 ? 0 : i;     /* pass 10 repeats the route of pass 0, nothing else repeats */
        const size_t p = test_trace_add_pass(&t, 0, MOESIM_PASS_DENOISE, 0, i, 1, 5);
        test_trace_route(&t, test_trace_row(&t, p), 0, 1, &id);
    }
    compute(&t, "lags.h5", &s);
    for (uint32_t lag = 1; lag <= 10; lag++)
        check_mean(&s.overlap_new[lag], lag == 10 ? .5 : 0.0, 12 - lag);
    check_mean(&s.persistence[MOESIM_STATS_ALL][10], .5, 2);
    moesim_trace_stats_fini(&s);
}
END_TEST

/* Requests that are all open at once share one budget: 128 MiB, where one request of this shape takes 1.4 MiB. */
START_TEST(open_requests_are_bounded)
{
    struct test_trace t;
    moesim_trace *trace = NULL;
    moesim_trace_stats s;
    moesim_error err = MOESIM_ERROR_INIT;
    const char *path = test_path("open.h5");
    test_trace_init(&t, 1024, 1024, 1, 1);
    for (uint32_t q = 0; q < 100; q++)
        test_trace_add_request(&t, "open", 0, -1);
    for (int32_t step = 0; step < 2; step++)
        for (uint32_t q = 0; q < 100; q++)
            test_trace_add_pass(&t, q, MOESIM_PASS_DENOISE, 0, step, 1, 0);
    test_trace_write(&t, path);
    test_trace_fini(&t);
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_int_eq(moesim_trace_stats_compute(trace, &s, &err), MOESIM_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "moesim trace select"));
    moesim_trace_stats_fini(&s);
    moesim_trace_close(&trace);
}
END_TEST

/* Numbers of a separate computation with NumPy, written from the definitions alone: sets and dictionaries of Python over
 * h5py arrays; passes of kind 1 and 2 grouped by (request, block), rows matched by position, stability bins floor(10·c). */
static void check_sample(const moesim_trace_stats *s)
{
    static const uint64_t n[2][10] = {
        { 4200, 11960, 4860, 3000, 3160, 3120, 2360, 2340, 3240, 3420 },
        { 4240, 12000, 5160, 3680, 4360, 4760, 4860, 6000, 11180, 23760 },
    };
    static const uint64_t kept[2][10] = {
        { 28044, 80214, 31190, 18912, 19306, 18464, 12609, 11411, 15283, 6719 },
        { 28350, 80490, 33493, 24064, 28392, 30873, 31442, 39160, 74882, 159232 },
    };
    static const uint64_t full[2][10] = {
        { 1239, 3886, 1293, 789, 977, 936, 419, 449, 403, 0 },
        { 1265, 3895, 1510, 1267, 1772, 2019, 2077, 2926, 5626, 13481 },
    };
    ck_assert_uint_eq(s->decode_passes, 269);
    ck_assert_uint_eq(s->active_sum[0], 13735);
    ck_assert_uint_eq(s->active_sum[19], 13946);
    ck_assert_uint_eq(s->committed, 304);
    ck_assert_double_eq_tol(moesim_trace_stats_active(s), 57.014869888475836, 1e-10);
    check_mean(&s->overlap_new[1], 0.8262986594937672, 5000);
    check_mean(&s->overlap_old[1], 0.9034056888587757, 5000);
    check_mean(&s->overlap_new[10], 0.3524586648733698, 1580);
    check_mean(&s->overlap_old[10], 0.7261236925954399, 1580);
    check_mean(&s->boundary_new, 0.5096490469899644, 340);
    check_mean(&s->boundary_old, 0.14460568805020013, 340);
    check_mean(&s->persistence[MOESIM_STATS_ALL][1], 0.828715625, 80000);
    check_mean(&s->persistence[MOESIM_STATS_MASKED][1], 0.8097526700393479, 35580);
    check_mean(&s->persistence[MOESIM_STATS_JUST][1], 0.23980263157894738, 6080);
    check_mean(&s->persistence[MOESIM_STATS_LONG][1], 0.9397039645279082, 38340);
    check_mean(&s->persistence[MOESIM_STATS_ALL][10], 0.25973595727848103, 25280);
    check_mean(&s->persistence[MOESIM_STATS_MASKED][10], 0.15676448170731708, 19680);
    check_mean(&s->persistence[MOESIM_STATS_JUST][10], 0.2201530612244898, 1960);
    check_mean(&s->persistence[MOESIM_STATS_LONG][10], 0.8377747252747253, 3640);
    for (size_t i = 0; i < 2; i++) {
        for (size_t b = 0; b < 10; b++) {
            ck_assert_uint_eq(s->stability[i].n[b], n[i][b]);
            ck_assert_uint_eq(s->stability[i].kept[b], kept[i][b]);
            ck_assert_uint_eq(s->stability[i].level[b][8], full[i][b]);
        }
    }
    ck_assert_double_eq_tol(moesim_trace_stats_regime(s, 40).p95, 2.0, TOLERANCE);
    ck_assert_double_eq_tol(moesim_trace_stats_regime(s, 40).above_one, 4214.0 / 5380, TOLERANCE);
}

static void read_reals(const char *path, const char *name, size_t n, double *out)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t data = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(data);
    ck_assert_int_ge(data, 0);
    ck_assert_int_eq((int)H5Sget_simple_extent_npoints(space), (int)n);
    ck_assert_int_ge(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, out), 0);
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(file);
}

static void check_file(const moesim_trace_stats *s, const moesim_trace_info *info)
{
    static const uint32_t caches[] = { 40, 100 };
    char first[MOESIM_DIGEST_CHARS], second[MOESIM_DIGEST_CHARS];
    double value[257];
    moesim_error err = MOESIM_ERROR_INIT;
    const char *path = test_path("stats.h5"), *again = test_path("again.h5");
    ck_assert_msg(moesim_trace_stats_write(s, info, caches, 2, path, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_int_eq(moesim_trace_stats_write(s, info, caches, 2, again, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_digest_file(path, first, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_digest_file(again, second, &err), MOESIM_OK);
    ck_assert_str_eq(first, second);
    read_reals(path, "/overlap/over_new", 10, value);
    ck_assert_double_eq_tol(value[0], 0.8262986594937672, TOLERANCE);
    ck_assert_double_eq_tol(value[9], 0.3524586648733698, TOLERANCE);
    read_reals(path, "/stability/masked_level", 90, value);
    ck_assert_double_eq(value[8], 1239.0);
    ck_assert_double_eq(value[9 * 9 + 8], 0.0);
    read_reals(path, "/activation/histogram", 257, value);
    double events = 0.0;
    for (size_t i = 0; i < 257; i++)
        events += value[i];
    ck_assert_double_eq(events, 5380.0);
    read_reals(path, "/regime/p95", 2, value);
    ck_assert_double_eq_tol(value[0], 2.0, TOLERANCE);
    ck_assert_int_ne(moesim_trace_stats_write(s, info, caches, 2, "/nonexistent/stats.h5", &err), MOESIM_OK);
}

START_TEST(sample)
{
    moesim_trace *trace = NULL;
    moesim_trace_stats s;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_trace_open(SAMPLE, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_stats_compute(trace, &s, &err) == MOESIM_OK, "%s", err.text);
    check_sample(&s);
    check_file(&s, moesim_trace_get_info(trace));
    moesim_trace_stats_fini(&s);
    moesim_trace_close(&trace);
}
END_TEST

RUN_TESTS("stats", worked_by_hand, dummy_passes_do_not_count, order_of_rows_does_not_matter, requests_may_interleave,
          nothing_to_compare, lags_end_at_ten, open_requests_are_bounded, sample)
