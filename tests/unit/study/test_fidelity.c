/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors, residuals and intervals against answers worked out by hand.
 */
#include <math.h>

#include "tests/unit/base/runner.h"
#include "tests/unit/study/cells.h"

#define CLOSE(a, b) ck_assert_double_eq_tol(a, b, 1e-9)

static cells c;
static moesim_fidelity f;

static void compute(void)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_fidelity_compute(&c.in, &f, &err) == MOESIM_OK, "%s", err.text);
}

/* 4 counted events of 2 tokens. Predicted 3 ms each: 6 ms a token; measured 2 and 4 ms in turn: 4 and 8, mean 6. */
START_TEST(test_tpot_and_miss_time)
{
    cells_init(&c, 2, 2, 2);
    cells_reference(&c, 2, 0.5, 1);
    const size_t a = cells_add(&c, "lru", 20, 2, 3, 2);
    for (size_t e = 0; e < 4; e++)
        c.measured[a][1][e] = 4000000;
    compute();
    const moesim_fidelity_figure *t = &f.row[a].tpot, *m = &f.row[a].miss;
    CLOSE(t->predicted, 6e-3);
    CLOSE(t->measured, 6e-3);
    CLOSE(t->error, 0);
    /* the reference takes 1 ms of the prediction and 2 ms of the measurement */
    CLOSE(m->predicted, 5e-3);
    CLOSE(m->measured, 4e-3);
    CLOSE(m->error, 0.25);
    /* mean 6, sd 2 sqrt 2, t 12.7062047 with one degree of freedom: half width 25.4124 */
    ck_assert_double_eq_tol(t->measured_interval.lo, 6e-3 - 25.4124095e-3, 1e-8);
    ck_assert_double_eq_tol(t->measured_interval.hi, 6e-3 + 25.4124095e-3, 1e-8);
    ck_assert_double_eq_tol(m->measured_interval.lo, 4e-3 - 25.4124095e-3, 1e-8);
    ck_assert(isnan(f.row[0].miss.error));
    ck_assert_uint_eq(f.num_test, 1);
    moesim_fidelity_fini(&f);
}
END_TEST

START_TEST(test_uncounted_passes_say_nothing)
{
    cells_init(&c, 1, 3, 1);
    const size_t a = cells_add(&c, "lru", 20, 1, 2, 4);
    c.pass[0].request = MOESIM_NO_REQUEST;
    c.measured[a][0][0] = 4000000000u;
    compute();
    CLOSE(f.row[a].tpot.measured, 8e-3);
    CLOSE(f.row[a].tpot.error, -0.5);
    ck_assert_uint_eq(f.row[a].event.n, 2);
    ck_assert(isnan(f.row[a].miss.error));
    ck_assert(isnan(f.row[a].tpot.measured_interval.lo));
    moesim_fidelity_fini(&f);
}
END_TEST

START_TEST(test_mape_leaves_calibration_and_reference_out)
{
    cells_init(&c, 1, 4, 2);
    cells_reference(&c, 1, 9, 1);
    const size_t fitted = cells_add(&c, "lru", 40, 1, 50, 10);
    cells_add(&c, "lru", 20, 1, 11, 10);
    const size_t worst = cells_add(&c, "oled", 20, 1, 7, 10);
    c.cell[fitted].calibration = true;
    compute();
    const moesim_fidelity_errors *e = &f.variant[MOESIM_VARIANT_MODEL].tpot;
    ck_assert_uint_eq(e->n, 2);
    CLOSE(e->mape, 0.2);
    CLOSE(e->bias, -0.1);
    CLOSE(e->worst, 0.3);
    ck_assert_uint_eq(e->worst_cell, worst);
    /* of miss time: (11 - 9) / (10 - 1) - 1 and (7 - 9) / 9 - 1 */
    CLOSE(f.variant[MOESIM_VARIANT_MODEL].miss.mape, (7.0 / 9 + 11.0 / 9) / 2);
    moesim_fidelity_fini(&f);
}
END_TEST

START_TEST(test_effects_one_by_one)
{
    cells_init(&c, 1, 4, 2);
    const size_t a = cells_add(&c, "lru", 20, 1, 10, 10);
    for (size_t e = 0; e < 4; e++)
        c.predicted[a][MOESIM_VARIANT_NO_SYNC][e] = 8e-3;
    compute();
    CLOSE(f.variant[MOESIM_VARIANT_MODEL].tpot.mape, 0);
    CLOSE(f.variant[MOESIM_VARIANT_NO_SYNC].tpot.mape, 0.2);
    CLOSE(f.variant[MOESIM_VARIANT_NO_SYNC].event.p50, log(10.0 / 8));
    CLOSE(f.variant[MOESIM_VARIANT_NO_OVERLAP].tpot.mape, 0);
    ck_assert_uint_eq(f.variant[MOESIM_VARIANT_MODEL].miss.n, 0);
    ck_assert(isnan(f.variant[MOESIM_VARIANT_MODEL].miss.mape));
    moesim_fidelity_fini(&f);
}
END_TEST

/* 10 events predicted 1 ms, measured e^(k/10) ms, k = -2..7. Sorted |k|: 0 1 1 2 2 3 4 5 6 7. */
START_TEST(test_residuals)
{
    cells_init(&c, 1, 10, 1);
    const size_t a = cells_add(&c, "lru", 20, 1, 1, 1);
    for (int k = -2; k <= 7; k++)
        c.measured[a][0][k + 2] = (uint32_t)(exp(k / 10.0) * 1e6 + 0.5);
    compute();
    const moesim_residuals *r = &f.row[a].event;
    ck_assert_uint_eq(r->n, 10);
    ck_assert_double_eq_tol(r->bias, 0.2, 1e-6);
    ck_assert_double_eq_tol(r->p50, 0.2, 1e-6);
    ck_assert_double_eq_tol(r->p90, 0.6, 1e-6);
    ck_assert_double_eq_tol(r->p99, 0.7, 1e-6);
    ck_assert_uint_eq(f.row[a].pass.n, 10);
    moesim_fidelity_fini(&f);
}
END_TEST

START_TEST(test_residuals_by_layer_and_misses)
{
    static const uint16_t misses[8] = {0, 1, 2, 3, 4, 127, 128, 900};
    cells_init(&c, 2, 4, 1);
    const size_t a = cells_add(&c, "lru", 20, 1, 1, 1);
    for (size_t e = 0; e < 8; e++) {
        c.misses[a][e] = misses[e];
        c.measured[a][0][e] = e % 2 == 0 ? 2000000 : 1000000;
    }
    compute();
    CLOSE(f.layer[0].p50, log(2));
    CLOSE(f.layer[1].p50, 0);
    static const size_t count[MOESIM_MISS_CLASSES] = {1, 1, 2, 1, 0, 0, 0, 1, 2};
    for (size_t k = 0; k < MOESIM_MISS_CLASSES; k++)
        ck_assert_uint_eq(f.miss_class[k].n, count[k]);
    ck_assert(isnan(f.miss_class[4].p50));
    CLOSE(f.miss_class[0].p50, log(2));
    /* a pass of 2 + 1 ms is predicted 2 ms */
    CLOSE(f.pass.p50, log(1.5));
    moesim_fidelity_fini(&f);
}
END_TEST

/* What has no time on one side cannot be compared. */
START_TEST(test_no_time_no_residual)
{
    cells_init(&c, 1, 4, 1);
    const size_t a = cells_add(&c, "lru", 20, 1, 1, 0);
    compute();
    ck_assert_uint_eq(f.row[a].event.n, 0);
    ck_assert_uint_eq(f.row[a].pass.n, 0);
    ck_assert(isnan(f.row[a].tpot.error));
    ck_assert_uint_eq(f.variant[0].tpot.n, 0);
    moesim_fidelity_fini(&f);
}
END_TEST

/* Alike in every unit and repeat: nothing to draw can change the error. A unit that differs widens the interval to it. */
START_TEST(test_error_interval)
{
    cells_init(&c, 1, 32, 2);
    const size_t a = cells_add(&c, "lru", 20, 3, 6, 5), b = cells_add(&c, "oled", 20, 3, 5, 5);
    for (size_t p = 0; p < 32; p++)
        c.pass[p].first = p % 4 == 0;
    for (size_t r = 0; r < 3; r++)
        for (size_t e = 0; e < 8; e++)
            c.measured[b][r][e] = 10000000;
    compute();
    ck_assert(!f.unit_is_request);
    ck_assert_uint_eq(f.num_units, 4);
    CLOSE(f.row[a].tpot.error_interval.lo, 0.2);
    CLOSE(f.row[a].tpot.error_interval.hi, 0.2);
    /* k of 4 units drawn are the slow one: error 4 / (4 + k) - 1. k = 0 in 32 % of draws, k ≥ 3 in 5 %, 4 in 0.4 % */
    CLOSE(f.row[b].tpot.error_interval.hi, 0);
    CLOSE(f.row[b].tpot.error_interval.lo, 4.0 / 7 - 1);
    moesim_fidelity_fini(&f);
}
END_TEST

/* Blocks of one pass are put together, and a request's end always ends a unit. */
START_TEST(test_units)
{
    cells_init(&c, 1, 22, 2);
    cells_add(&c, "lru", 20, 1, 1, 1);
    for (size_t p = 0; p < 22; p++)
        c.pass[p].first = true;
    compute();
    ck_assert_uint_eq(f.num_units, 4);       /* 8 + 3, 8 + 3 */
    moesim_fidelity_fini(&f);
}
END_TEST

START_TEST(test_link_rate)
{
    cells_init(&c, 1, 4, 1);
    const size_t a = cells_add(&c, "lru", 20, 2, 1, 1);
    for (size_t e = 0; e < 4; e++) {
        c.bound[a][e] = e != 3;
        c.bytes[a][e] = e == 3 ? 7777 : 900000;
        c.busy[a][0][e] = c.busy[a][1][e] = 1000000;
    }
    c.busy[a][1][0] = 0;
    compute();
    CLOSE(f.row[a].link_rate / 1e9, 0.9);
    CLOSE(f.row[a].link_share, 0.9);
    CLOSE(f.least_link_share, 0.9);
    ck_assert_uint_eq(f.row[a].link_events, 3);
    moesim_fidelity_fini(&f);
    c.cell[a].busy_link = NULL;
    compute();
    ck_assert(isnan(f.row[a].link_share) && isnan(f.link_share));
    moesim_fidelity_fini(&f);
}
END_TEST

START_TEST(test_nothing_counted)
{
    moesim_error err = MOESIM_ERROR_INIT;
    cells_init(&c, 1, 2, 1);
    cells_add(&c, "lru", 20, 1, 1, 1);
    c.pass[0].request = c.pass[1].request = MOESIM_NO_REQUEST;
    ck_assert_int_eq(moesim_fidelity_compute(&c.in, &f, &err), MOESIM_E_USAGE);
    moesim_fidelity_fini(&f);
}
END_TEST

RUN_TESTS("fidelity", test_tpot_and_miss_time, test_uncounted_passes_say_nothing,
          test_mape_leaves_calibration_and_reference_out, test_effects_one_by_one, test_residuals,
          test_residuals_by_layer_and_misses, test_no_time_no_residual, test_error_interval, test_units, test_link_rate,
          test_nothing_counted)
