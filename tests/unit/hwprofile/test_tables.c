/* SPDX-License-Identifier: Apache-2.0
 *
 * Interpolation against values computed by hand.
 */
#include <math.h>

#include "tests/unit/hwprofile/hw.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-15)

/* tokens 1, 2, 4: 100, 110, 150 us for 1 MB */
START_TEST(cpu)
{
    static const struct { double tokens, us; } row[] = {
        { 0.5, 100 }, { 1, 100 }, { 1.5, 105 }, { 2, 110 }, { 3, 130 }, { 4, 150 }, { 5, 170 }, { 10, 270 },
    };
    moesim_profile p;
    hw_good(&p);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        NEAR(moesim_profile_cpu_s(&p, row[i].tokens, 1e6), row[i].us * 1e-6);
        NEAR(moesim_profile_cpu_s(&p, row[i].tokens, 2.5e6), row[i].us * 2.5e-6);
    }
    ck_assert_double_eq(moesim_profile_cpu_s(&p, 0, 1e6), 0);
    ck_assert_double_eq(moesim_profile_cpu_s(&p, NAN, 1e6), 0);
}
END_TEST

/* experts 1, 3 by tokens 2, 4: 10 14 / 20 28 us */
START_TEST(gpu)
{
    static const struct { double experts, tokens, us; } row[] = {
        { 1, 2, 10 },  { 1, 4, 14 },  { 3, 2, 20 },  { 3, 4, 28 },  { 2, 3, 18 },    { 1, 1, 10 },
        { 0.5, 1, 10 }, { 3, 1, 20 },  { 1, 6, 18 },  { 5, 2, 30 },  { 5, 6, 54 },   { 2, 2, 15 },
    };
    moesim_profile p;
    hw_good(&p);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        NEAR(moesim_profile_gpu_s(&p, row[i].experts, row[i].tokens, 1e6), row[i].us * 1e-6);
        NEAR(moesim_profile_gpu_s(&p, row[i].experts, row[i].tokens, 5e5), row[i].us * 5e-7);
    }
    ck_assert_double_eq(moesim_profile_gpu_s(&p, 0, 1, 1e6), 0);
    ck_assert_double_eq(moesim_profile_gpu_s(&p, 1, 0, 1e6), 0);
}
END_TEST

/* The points of a table come back bit for bit. */
START_TEST(points)
{
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    for (const char *const *name = moesim_profile_names(); *name != NULL; name++) {
        ck_assert_int_eq(moesim_profile_load(*name, &p, &err), MOESIM_OK);
        for (uint32_t i = 0; i < p.cpu.points; i++)
            ck_assert_double_eq(moesim_profile_cpu_s(&p, p.cpu.tokens[i], p.cpu.expert_bytes), p.cpu.seconds[i]);
        for (uint32_t i = 0; i < p.gpu.num_experts; i++)
            for (uint32_t j = 0; j < p.gpu.num_tokens; j++)
                ck_assert_double_eq(moesim_profile_gpu_s(&p, p.gpu.experts[i], p.gpu.tokens[j], p.gpu.expert_bytes),
                                    p.gpu.seconds[i][j]);
    }
}
END_TEST

/* A falling end is not continued: the time would turn negative. */
START_TEST(falling)
{
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(hw_parse(hw_text("[100, 110, 150]", "[100, 110, 50]"), &p, &err), MOESIM_OK);
    NEAR(moesim_profile_cpu_s(&p, 3, 1e6), 80e-6);
    NEAR(moesim_profile_cpu_s(&p, 1000, 1e6), 50e-6);
    ck_assert_int_eq(hw_parse(hw_text("[[10, 14], [20, 28]]", "[[10, 4], [5, 3]]"), &p, &err), MOESIM_OK);
    NEAR(moesim_profile_gpu_s(&p, 1000, 1000, 1e6), 3e-6);
}
END_TEST

RUN_TESTS("tables", cpu, gpu, points, falling)
