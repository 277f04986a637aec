/* SPDX-License-Identifier: Apache-2.0
 *
 * xoshiro256** 1.0 and splitmix64 (D. Blackman, S. Vigna, public domain reference code).
 */
#include "base/rng.h"

void moesim_rng_seed(moesim_rng *r, uint64_t seed)
{
    uint64_t x = seed;
    for (int i = 0; i < 4; i++) {
        x += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = x;
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        r->s[i] = z ^ (z >> 31);
    }
}

static uint64_t rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t moesim_rng_u64(moesim_rng *r)
{
    uint64_t *s = r->s;
    const uint64_t result = rotate(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double moesim_rng_real(moesim_rng *r)
{
    return (double)(moesim_rng_u64(r) >> 11) * 0x1.0p-53;
}

/* Lemire's method on the upper 32 bits: draws that would favour small results are thrown away. */
uint32_t moesim_rng_below(moesim_rng *r, uint32_t n)
{
    const uint32_t threshold = (uint32_t)(-n) % n;
    uint64_t product;
    do {
        product = (moesim_rng_u64(r) >> 32) * n;
    } while ((uint32_t)product < threshold);
    return (uint32_t)(product >> 32);
}
