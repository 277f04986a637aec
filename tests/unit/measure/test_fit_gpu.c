/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU's constants where computing is slow, where it and copies hinder each other, where there is nothing to find.
 */
#include "tests/unit/measure/fitting.h"

/* Computing takes longer than copying: what follows a copy is told from it all the same. */
START_TEST(slow_gpu)
{
    fake = fake_usual;
    fake.gpu_first = 300e-6;
    fake_measure(false, &raw);
    fit_ok(&options);
    for (uint32_t j = 0; j < profile.gpu.num_tokens; j++)
        near("gpu.table[0]", profile.gpu.seconds[0][j], fake_grouped(1, profile.gpu.tokens[j]), 1e-3);
    near("gpu.arrival", profile.gpu_arrival.value, fake.arrival, 0.02);
    moesim_raw_fini(&raw);
}
END_TEST

/* A device that computes slower beside its copies: whichever is longer, each moved expert takes so much more. */
START_TEST(copies_beside)
{
    for (int slow = 0; slow < 2; slow++) {
        fake = fake_usual;
        fake.gpu_first = slow ? 300e-6 : fake_usual.gpu_first;
        fake.gpu_token = slow ? 30e-6 : fake_usual.gpu_token;
        fake.beside = 40e-6;
        fake_measure(false, &raw);
        fit_ok(&options);
        near("gpu.moved", profile.gpu_moved.value, fake.beside, 0.02);
        near("gpu.table", profile.gpu.seconds[0][0], fake_grouped(1, 1), 1e-3);
        near("gpu.arrival", profile.gpu_arrival.value, fake.arrival, 0.05);
        ck_assert_double_le(profile.gpu_moved.residual, 0.05);
        moesim_raw_fini(&raw);
    }
}
END_TEST

static bool is_moved(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_EVENT_MOVED; }
static bool moved_again(const moesim_raw_point *p) { return is_moved(p) && p->sweep > 0; }
static bool not_two_moved(const moesim_raw_point *p) { return is_moved(p) && p->key.experts != 2; }

/* Two points, as one sweep of quick samples has them, are a slope too. */
START_TEST(two_points)
{
    fake = fake_usual;
    fake.gpu_first = 300e-6;
    fake.beside = 40e-6;
    fake_measure(true, &raw);
    without(moved_again);
    fit_ok(&options);
    near("gpu.moved", profile.gpu_moved.value, fake.beside, 0.02);
    moesim_raw_fini(&raw);
}
END_TEST

/* Less than 3 % of the longer one is not told from noise, and one number of experts has no slope. */
START_TEST(nothing_beside)
{
    fake = fake_usual;
    fake.beside = 2e-6;
    fake_measure(false, &raw);
    fit_ok(&options);
    ck_assert_double_eq(profile.gpu_moved.value, 0.0);
    ck_assert_ptr_nonnull(strstr(profile.gpu_moved.note, "nothing that shows"));
    moesim_raw_fini(&raw);
    fake.beside = 40e-6;
    fake_measure(false, &raw);
    without(not_two_moved);
    fit_ok(&options);
    ck_assert_double_eq(profile.gpu_moved.value, 0.0);
    ck_assert_ptr_nonnull(strstr(profile.gpu_moved.note, "tell no slope"));
    moesim_raw_fini(&raw);
}
END_TEST

/* What follows a copy takes longer than the copy: it is a latency all the same, and no work of each expert. */
START_TEST(long_arrival)
{
    fake = fake_usual;
    fake.arrival = 300e-6;
    fake_measure(false, &raw);
    fit_ok(&options);
    near("gpu.arrival", profile.gpu_arrival.value, fake.arrival, 1e-3);
    near("gpu.launch", profile.gpu_launch.value, fake.launch, 1e-2);
    near("gpu.table", profile.gpu.seconds[0][0], fake_grouped(1, 1), 1e-3);
    ck_assert_double_le(profile.gpu_arrival.residual, 1e-3);
    moesim_raw_fini(&raw);
}
END_TEST

/* Less than nothing is no cost. */
START_TEST(nothing_follows)
{
    fake = fake_usual;
    fake.launch = fake.arrival = -3e-6;
    fake_measure(false, &raw);
    fit_ok(&options);
    ck_assert_double_eq(profile.gpu_launch.value, 0.0);
    ck_assert_double_eq(profile.gpu_arrival.value, 0.0);
    moesim_raw_fini(&raw);
}
END_TEST

/* Sixteen experts that seem to take half as long: no more than those of eight, and no less. */
START_TEST(raised)
{
    fake = fake_usual;
    fake_measure(false, &raw);
    for (size_t i = 0; i < raw.num_points; i++)
        if (raw.point[i].key.kind == MOESIM_RAW_GROUPED && raw.point[i].key.experts == 16)
            fake_spoil(&raw, &raw.point[i], 0.5);
    fit_ok(&options);
    ck_assert_double_eq(profile.gpu.experts[3], 8.0);
    for (uint32_t j = 0; j < profile.gpu.num_tokens; j++)
        ck_assert_double_eq(profile.gpu.seconds[4][j], profile.gpu.seconds[3][j]);
    moesim_raw_fini(&raw);
}
END_TEST

RUN_TESTS("fit gpu", slow_gpu, copies_beside, two_points, nothing_beside, long_arrival, nothing_follows, raised)
