/* SPDX-License-Identifier: Apache-2.0
 *
 * Half precision to float: by the F16C instructions where the processor has them, else bit by bit. Both give the same bits.
 */
#include "traces/check.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static float widen_one(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 31u, fraction = half & 0x3ffu, bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000u | fraction << 13 | (fraction != 0 ? 0x400000u : 0u);   /* NaN becomes quiet, as in F16C */
    } else if (exponent != 0) {
        bits = sign | (exponent + 112u) << 23 | fraction << 13;
    } else if (fraction == 0) {
        bits = sign;
    } else {
        for (exponent = 113; (fraction & 0x400u) == 0; exponent--)   /* subnormal: shift up to the leading one */
            fraction <<= 1;
        bits = sign | exponent << 23 | (fraction & 0x3ffu) << 13;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void moesim_widen_half_scalar(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = widen_one(in[i]);
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) static void widen_f16c(const uint16_t *in, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + i))));
    moesim_widen_half_scalar(in + i, out + i, n - i);
}

static bool has_f16c(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

void moesim_widen_half(const uint16_t *in, float *out, size_t n)
{
#if defined(__x86_64__)
    static int known;   /* 0 not asked yet, 1 no, 2 yes: the same answer from every thread */
    int have = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (have == 0) {
        have = has_f16c() ? 2 : 1;
        __atomic_store_n(&known, have, __ATOMIC_RELAXED);
    }
    if (have == 2) {
        widen_f16c(in, out, n);
        return;
    }
#endif
    moesim_widen_half_scalar(in, out, n);
}
