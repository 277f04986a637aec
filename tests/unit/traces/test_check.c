/* SPDX-License-Identifier: Apache-2.0
 *
 * Row checks and widening against slow, plain counterparts.
 */
#include "tests/unit/base/runner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "traces/check.h"
#include "traces/half.h"

/* Every half-precision value: the fast path, the portable path, and the definition by powers of two. */
START_TEST(test_widen_all)
{
    static uint16_t half[65536];
    static float fast[65536], plain[65536];
    for (uint32_t i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    moesim_widen_half(half, fast, 65536);
    moesim_widen_half_scalar(half, plain, 65536);
    ck_assert_int_eq(memcmp(fast, plain, sizeof fast), 0);
    uint32_t wrong = 0;   /* counted: an assertion for each value would take most of the test's time */
    for (uint32_t i = 0; i < 65536; i++) {
        const int exponent = (int)(i >> 10 & 31), fraction = (int)(i & 1023);
        const double sign = i >> 15 ? -1.0 : 1.0;
        if (exponent == 31) {
            wrong += (fraction != 0 ? isnan(fast[i]) : isinf(fast[i])) ? 0u : 1u;
            continue;
        }
        const double want = exponent == 0 ? sign * ldexp(fraction, -24) : sign * ldexp(1024 + fraction, exponent - 25);
        wrong += (double)fast[i] != want || !signbit(fast[i]) != !signbit(want);
        wrong += moesim_half_from_float(fast[i]) != i;
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* Lengths that are not a multiple of the vector's. */
START_TEST(test_widen_tails)
{
    uint16_t half[40];
    for (size_t i = 0; i < 40; i++)
        half[i] = (uint16_t)(0x3c00 + 7 * i);
    for (size_t n = 0; n <= 33; n++) {
        float fast[41], plain[41];
        memset(fast, 0x55, sizeof fast);
        memset(plain, 0x55, sizeof plain);
        moesim_widen_half(half + 3, fast, n);
        moesim_widen_half_scalar(half + 3, plain, n);
        ck_assert_int_eq(memcmp(fast, plain, sizeof fast), 0);
    }
}
END_TEST

static bool plain_good(const uint16_t *id, uint32_t k, uint32_t experts)
{
    for (uint32_t i = 0; i < k; i++) {
        if (id[i] == 65535)
            continue;
        if (id[i] >= experts)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (id[j] == id[i])
                return false;
    }
    return true;
}

/* Mostly valid rows with seldom errors, for every K: the check says what plain loops say, and names the first bad row. */
START_TEST(test_expert_check)
{
    enum { ROWS = 3, LAYERS = 3 };
    moesim_rng rng;
    moesim_rng_seed(&rng, 7);
    uint32_t refused = 0, accepted = 0;
    for (uint32_t round = 0; round < 40000; round++) {
        uint16_t id[ROWS * LAYERS * 64];
        static moesim_trace_info info;
        const uint32_t k = 1 + moesim_rng_below(&rng, round % 4 == 0 ? 64 : 10);
        const uint32_t experts = k + moesim_rng_below(&rng, round % 2 == 0 ? 1025 - k : 8);
        info = (moesim_trace_info){.num_layers = LAYERS, .num_experts = experts, .top_k = k, .path = "file"};
        for (uint32_t g = 0; g < ROWS * LAYERS; g++)
            for (uint32_t i = 0, at = moesim_rng_below(&rng, experts); i < k; i++, at++)
                id[g * k + i] = (uint16_t)(moesim_rng_below(&rng, 9) == 0 ? 65535u : at % experts);
        const uint32_t where = moesim_rng_below(&rng, ROWS * LAYERS * k);
        if (moesim_rng_below(&rng, 2) == 0)
            id[where] = (uint16_t)(moesim_rng_below(&rng, 3) == 0 ? experts + moesim_rng_below(&rng, 65535u - experts)
                                                                  : moesim_rng_below(&rng, experts));
        uint32_t bad = 0;
        while (bad < ROWS * LAYERS && plain_good(id + bad * k, k, experts))
            bad++;
        moesim_error err = MOESIM_ERROR_INIT;
        const moesim_check check = {.info = &info, .name = "/x", .row = 100, .n = ROWS, .inner = {LAYERS, k}};
        const moesim_code code = moesim_check_expert(&check, id, &err);
        if (bad == ROWS * LAYERS) {
            accepted++;
            if (code != MOESIM_OK)
                ck_abort_msg("K %u, E %u: %s", k, experts, err.text);
            continue;
        }
        char want[64];
        refused++;
        (void)snprintf(want, sizeof want, "file: /x[%u, %u", 100 + bad / LAYERS, bad % LAYERS);
        if (code != MOESIM_E_FORMAT || strncmp(err.text, want, strlen(want)) != 0)
            ck_abort_msg("code %d, wanted %s: %s", (int)code, want, err.text);
    }
    ck_assert_uint_gt(refused, 5000);
    ck_assert_uint_gt(accepted, 5000);
}
END_TEST

/* The rules for half-precision values, for all 65536 of them. */
START_TEST(test_half_rules)
{
    static moesim_trace_info info = {.path = "file", .num_layers = 1, .top_k = 1, .num_experts = 1};
    const moesim_check check = {.info = &info, .name = "/x", .row = 0, .n = 1, .inner = {1, 1}};
    uint32_t wrong[4] = {0};
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t half = (uint16_t)i;
        float value;
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_widen_half_scalar(&half, &value, 1);
        const bool number = isfinite(value), gate = number && value >= 0.0f;
        wrong[0] += (moesim_check_gate_half(&check, &half, &err) == MOESIM_OK) != gate;
        wrong[1] += (moesim_check_gate_float(&check, &value, &err) == MOESIM_OK) != gate;
        wrong[2] += (moesim_check_prob(&check, &half, &err) == MOESIM_OK) != number;
        wrong[3] += (moesim_check_confidence(&check, &half, &err) == MOESIM_OK) !=
                    (isnan(value) || (value >= 0.0f && value <= 1.0f));
    }
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(wrong[i], 0);
}
END_TEST

RUN_TESTS("check", test_widen_all, test_widen_tails, test_expert_check, test_half_rules)
