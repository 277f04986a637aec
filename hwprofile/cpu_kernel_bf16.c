/* SPDX-License-Identifier: Apache-2.0
 *
 * AVX512-BF16: pairs of bf16 are multiplied and added up as floats by one instruction, activations stay as they are.
 */
#include "hwprofile/cpu_parts.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define KERNEL_TARGET __attribute__((target("avx512f,avx512bw,avx512bf16")))
#define KERNEL_STEP 32u
#define KERNEL_WIDE 4u
#define INLINE static inline __attribute__((always_inline)) KERNEL_TARGET

typedef uint16_t kernel_element;
typedef __m512 kernel_acc;
typedef __m512bh kernel_w;
typedef __m512bh kernel_x;
typedef __m512i kernel_bits;

INLINE kernel_acc kernel_zero(void)
{
    return _mm512_setzero_ps();
}

INLINE kernel_w kernel_load_w(const uint16_t *p)
{
    return (__m512bh)_mm512_loadu_si512(p);
}

INLINE kernel_x kernel_load_x(const uint16_t *p)
{
    return (__m512bh)_mm512_loadu_si512(p);
}

INLINE kernel_acc kernel_multiply(kernel_acc acc, kernel_w w, kernel_x x)
{
    return _mm512_dpbf16_ps(acc, w, x);
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
    memcpy(out, x, k * sizeof *x);
}

static bool supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16");
}

const moesim_cpu_kernel moesim_cpu_avx512bf16 = { "avx512bf16", supported, sizeof(uint16_t), prepare, kernel_block,
                                                  kernel_read, NULL };

#if defined(MOESIM_AMX)

static bool amx_supported(void)
{
    return supported() && moesim_cpu_amx_tiles.supported();
}

/* Tiles multiply experts; whatever else is asked of a kernel, the vectors do. */
const moesim_cpu_kernel moesim_cpu_amx = { "amx", amx_supported, sizeof(uint16_t), prepare, kernel_block, kernel_read,
                                           &moesim_cpu_amx_tiles };

#endif

#endif
