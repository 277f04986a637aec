/* SPDX-License-Identifier: Apache-2.0
 *
 * AVX-512F: as AVX2 (cpu_kernel_avx2.c), twice as wide: 32 weights a step, of 32 activations the 16 even ones first.
 */
#include "hwprofile/cpu_parts.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "hwprofile/device_memory.h"

#define KERNEL_TARGET __attribute__((target("avx512f")))
#define KERNEL_STEP 32u
#define KERNEL_WIDE 4u
#define INLINE static inline __attribute__((always_inline)) KERNEL_TARGET

typedef float kernel_element;
typedef __m512 kernel_acc;
typedef struct kernel_w { __m512 even, odd; } kernel_w;
typedef kernel_w kernel_x;
typedef __m512i kernel_bits;

INLINE kernel_acc kernel_zero(void)
{
    return _mm512_setzero_ps();
}

INLINE kernel_w kernel_load_w(const uint16_t *p)
{
    const __m512i pairs = _mm512_loadu_si512(p);
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    return (kernel_w){ _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
                       _mm512_castsi512_ps(_mm512_and_si512(pairs, upper)) };
}

INLINE kernel_x kernel_load_x(const float *p)
{
    return (kernel_x){ _mm512_loadu_ps(p), _mm512_loadu_ps(p + 16) };
}

INLINE kernel_acc kernel_multiply(kernel_acc acc, kernel_w w, kernel_x x)
{
    return _mm512_fmadd_ps(w.odd, x.odd, _mm512_fmadd_ps(w.even, x.even, acc));
}

INLINE float kernel_sum(kernel_acc acc)
{
    return _mm512_reduce_add_ps(acc);
}

INLINE kernel_bits kernel_none(void)
{
    return _mm512_setzero_si512();
}

INLINE kernel_bits kernel_or(kernel_bits sum, const char *p)
{
    return _mm512_or_si512(sum, _mm512_load_si512(p));
}

INLINE uint64_t kernel_any(kernel_bits sum)
{
    return (uint64_t)_mm512_reduce_or_epi64(sum);
}

#include "hwprofile/cpu_kernel_vector.h"

static void prepare(const uint16_t *x, uint32_t k, void *out)
{
    float *f = out;
    for (uint32_t i = 0; i < k; i += 32, f += 32)
        for (uint32_t j = 0; j < 16; j++) {
            f[j] = moesim_bf16_to_float(x[i + 2 * j]);
            f[16 + j] = moesim_bf16_to_float(x[i + 2 * j + 1]);
        }
}

static bool supported(void)
{
    return __builtin_cpu_supports("avx512f");
}

const moesim_cpu_kernel moesim_cpu_avx512 = { "avx512", supported, sizeof(float), prepare, kernel_block, kernel_read,
                                              NULL };

#endif
