/* SPDX-License-Identifier: Apache-2.0
 *
 * Order of policies, best policy, regret and knees against answers worked out by hand.
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

/* At 20: predicted 1 2 3, measured 10 12 11: of three pairs the last is wrong. At 40: predicted 2 1, measured 10 15: wrong,
 * and picking costs a half. */
START_TEST(test_pairs)
{
    cells_init(&c, 1, 4, 1);
    cells_add(&c, "a", 20, 1, 1, 10);
    cells_add(&c, "b", 20, 1, 2, 12);
    cells_add(&c, "c", 20, 1, 3, 11);
    cells_add(&c, "a", 40, 1, 2, 10);
    cells_add(&c, "b", 40, 1, 1, 15);
    compute();
    const moesim_fidelity_order *o = &f.order;
    ck_assert_uint_eq(o->pairs, 4);
    ck_assert_uint_eq(o->right, 2);
    ck_assert_uint_eq(o->disjoint, 0);       /* one repeat: no interval */
    CLOSE(o->tau, 0);
    ck_assert_uint_eq(o->groups, 2);
    ck_assert_uint_eq(o->top1, 1);
    CLOSE(o->regret, 0.25);
    CLOSE(o->worst_regret, 0.5);
    moesim_fidelity_fini(&f);
}
END_TEST

/* Two repeats that differ by d have the interval mean ± 12.706 d / 2. */
static void spread(size_t cell, double mean, double d)
{
    for (size_t e = 0; e < 4; e++) {
        c.measured[cell][0][e] = (uint32_t)((mean - d / 2) * 1e6);
        c.measured[cell][1][e] = (uint32_t)((mean + d / 2) * 1e6);
    }
}

START_TEST(test_disjoint)
{
    cells_init(&c, 1, 4, 1);
    spread(cells_add(&c, "a", 20, 2, 1, 0), 10, 0.1);        /* 9.36 .. 10.64 */
    spread(cells_add(&c, "b", 20, 2, 3, 0), 12, 0.2);        /* 10.73 .. 13.27 */
    spread(cells_add(&c, "c", 20, 2, 2, 0), 14, 0.1);        /* 13.36 .. 14.64, predicted before b */
    spread(cells_add(&c, "d", 20, 2, 4, 0), 14.1, 0.1);
    compute();
    ck_assert_uint_eq(f.order.pairs, 6);
    ck_assert_uint_eq(f.order.disjoint, 5);
    ck_assert_uint_eq(f.order.disjoint_right, 4);
    ck_assert_uint_eq(f.order.right, 5);
    moesim_fidelity_fini(&f);
}
END_TEST

/* Predicted alike and measured apart: a tie is no order, and the worse one counts as picked. */
START_TEST(test_ties)
{
    cells_init(&c, 1, 4, 1);
    cells_add(&c, "a", 20, 1, 1, 10);
    cells_add(&c, "b", 20, 1, 1, 12);
    cells_add(&c, "c", 20, 1, 2, 13);
    compute();
    ck_assert_uint_eq(f.order.right, 2);
    CLOSE(f.order.tau, 2 / sqrt(2.0 * 3.0));
    ck_assert_uint_eq(f.order.top1, 0);
    CLOSE(f.order.regret, 0.2);
    moesim_fidelity_fini(&f);
}
END_TEST

START_TEST(test_calibration_is_no_pair)
{
    cells_init(&c, 1, 4, 1);
    cells_reference(&c, 1, 1, 1);
    cells_add(&c, "a", 20, 1, 1, 10);
    c.cell[cells_add(&c, "b", 20, 1, 2, 12)].calibration = true;
    c.cell[cells_add(&c, "d", 20, 1, 2, 12)].cap = 1e9;
    compute();
    ck_assert_uint_eq(f.order.pairs, 0);
    ck_assert_uint_eq(f.order.groups, 0);
    ck_assert(isnan(f.order.tau) && isnan(f.order.regret));
    moesim_fidelity_fini(&f);
}
END_TEST

/* Level 1.05. Predicted 3, 1.45, 1.01 at 20, 40, 60: between 40 and 60, 0.4 / 0.44 of the way. Measured 3, 1.05, 1 at 40. */
START_TEST(test_knees)
{
    cells_init(&c, 1, 4, 4);
    cells_reference(&c, 1, 1, 1);
    cells_add(&c, "a", 40, 1, 1.45, 1.05);
    cells_add(&c, "a", 20, 1, 3, 3);
    cells_add(&c, "a", 60, 1, 1.01, 1);
    cells_add(&c, "b", 20, 1, 1.02, 9);
    cells_add(&c, "b", 40, 1, 1.02, 8);
    cells_add(&c, "alone", 40, 1, 1.02, 8);
    compute();
    ck_assert_uint_eq(f.num_knees, 2);
    ck_assert_uint_eq(f.knee[0].cell, 2);
    CLOSE(f.knee[0].predicted, 40 + 20 * 0.4 / 0.44);
    ck_assert_double_eq_tol(f.knee[0].measured, 40, 1e-6);
    CLOSE(f.knee[1].predicted, 20);
    ck_assert(isnan(f.knee[1].measured));
    moesim_fidelity_fini(&f);
}
END_TEST

RUN_TESTS("order", test_pairs, test_disjoint, test_ties, test_calibration_is_no_pair, test_knees)
