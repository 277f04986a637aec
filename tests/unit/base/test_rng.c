/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator against numbers of the reference code, and the ranges of its draws.
 */
#include "base/rng.h"
#include "tests/unit/base/runner.h"

/* State {1, 2, 3, 4}: the first outputs of the authors' xoshiro256starstar.c, worked by hand for the first two:
 * rotl(2·5, 7)·9 = 1280·9 = 11520; then s[1] = 2^3^1 = 0, so 0. */
START_TEST(matches_reference)
{
    moesim_rng r = { { 1, 2, 3, 4 } };
    const uint64_t expected[] = { UINT64_C(11520), UINT64_C(0), UINT64_C(1509978240), UINT64_C(1215971899390074240) };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        ck_assert_uint_eq(moesim_rng_u64(&r), expected[i]);
}
END_TEST

/* The first outputs of splitmix64 from seed 0, as published with the reference code. */
START_TEST(seeds_through_splitmix64)
{
    moesim_rng r;
    moesim_rng_seed(&r, 0);
    ck_assert_uint_eq(r.s[0], UINT64_C(0xe220a8397b1dcdaf));
    ck_assert_uint_eq(r.s[1], UINT64_C(0x6e789e6aa1b965f4));
    ck_assert_uint_eq(r.s[2], UINT64_C(0x06c45d188009454f));
    ck_assert_uint_eq(r.s[3], UINT64_C(0xf88bb8a8724c81ec));
}
END_TEST

START_TEST(draws_stay_in_range)
{
    moesim_rng r;
    uint32_t seen = 0;
    moesim_rng_seed(&r, 7);
    for (int i = 0; i < 10000; i++) {
        const double x = moesim_rng_real(&r);
        ck_assert(x >= 0.0 && x < 1.0);
        const uint32_t k = moesim_rng_below(&r, 7);
        ck_assert_uint_lt(k, 7);
        seen |= 1u << k;
        ck_assert_uint_eq(moesim_rng_below(&r, 1), 0);
    }
    ck_assert_uint_eq(seen, 0x7f);
}
END_TEST

/* n = 3·2^30: of 2^32 draws a third would be left over, and without rejection some values would come twice as often. */
START_TEST(below_is_unbiased)
{
    const uint32_t n = 3u << 30;
    uint32_t by_rest[3] = { 0, 0, 0 };
    moesim_rng r;
    moesim_rng_seed(&r, 1);
    for (int i = 0; i < 30000; i++)
        by_rest[moesim_rng_below(&r, n) % 3]++;
    for (int i = 0; i < 3; i++)
        ck_assert_msg(by_rest[i] > 9600 && by_rest[i] < 10400, "rest %d: %u of 30000", i, by_rest[i]);
}
END_TEST

RUN_TESTS("rng", matches_reference, seeds_through_splitmix64, draws_stay_in_range, below_is_unbiased)
