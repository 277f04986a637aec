/* SPDX-License-Identifier: Apache-2.0
 *
 * AVX2 and FMA. A bf16 is the upper half of a float: of 8 pairs of weights the even ones are shifted up, the odd ones masked.
 * Activations are prepared to match: floats, of 16 the 8 even ones first.
 */
#include "hwprofile/cpu_parts.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "hwprofile/device_memory.h"

#define KERNEL_TARGET __attribute__((target("avx2,fma")))
#define KERNEL_STEP 16u
#define KERNEL_WIDE 2u
#define INLINE static inline __attribute__((always_inline)) KERNEL_TARGET

typedef float kernel_element;
typedef __m256 kernel_acc;
typedef struct kernel_w { __m256 even, odd; } kernel_w;
typedef kernel_w kernel_x;
typedef __m256i kernel_bits;

INLINE kernel_acc kernel_zero(void)
{
    return _mm256_setzero_ps();
}

INLINE kernel_w kernel_load_w(const uint16_t *p)
{
    const __m256i pairs = _mm256_loadu_si256((const __m256i *)(const void *)p);
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000u);
    return (kernel_w){ _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
                       _mm256_castsi256_ps(_mm256_and_si256(pairs, upper)) };
}

INLINE kernel_x kernel_load_x(const float *p)
{
    return (kernel_x){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}

INLINE kernel_acc kernel_multiply(kernel_acc acc, kernel_w w, kernel_x x)
{
    return _mm256_fmadd_ps(w.odd, x.odd, _mm256_fmadd_ps(w.even, x.even, acc));
}

INLINE float kernel_sum(kernel_acc acc)
{
    __m128 v = _mm_add_ps(_mm256_castps256_ps128(acc), _mm256_extractf128_ps(acc, 1));
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    v = _mm_add_ss(v, _mm_movehdup_ps(v));
    return _mm_cvtss_f32(v);
}

INLINE kernel_bits kernel_none(void)
{
    return _mm256_setzero_si256();
}

INLINE kernel_bits kernel_or(kernel_bits sum, const char *p)
{
    return _mm256_or_si256(sum, _mm256_load_si256((const __m256i *)(const void *)p));
}

INLINE uint64_t kernel_any(kernel_bits sum)
{
    const __m128i v = _mm_or_si128(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    return (uint64_t)_mm_cvtsi128_si64(v) | (uint64_t)_mm_extract_epi64(v, 1);
}

#include "hwprofile/cpu_kernel_vector.h"

static void prepare(const uint16_t *x, uint32_t k, void *out)
{
    float *f = out;
    for (uint32_t i = 0; i < k; i += 16, f += 16)
        for (uint32_t j = 0; j < 8; j++) {
            f[j] = moesim_bf16_to_float(x[i + 2 * j]);
            f[8 + j] = moesim_bf16_to_float(x[i + 2 * j + 1]);
        }
}

static bool supported(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const moesim_cpu_kernel moesim_cpu_avx2 = { "avx2", supported, sizeof(float), prepare, kernel_block, kernel_read,
                                            NULL };

#endif
