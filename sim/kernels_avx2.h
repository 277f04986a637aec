/* SPDX-License-Identifier: Apache-2.0
 *
 * Primitives of sim/kernels.c with AVX2; contracts as in sim/kernels_plain.h.
 */
#ifndef MOESIM_SIM_KERNELS_AVX2_H
#define MOESIM_SIM_KERNELS_AVX2_H
#ifdef __AVX2__

#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KERNELS_NONE INT64_MIN

/* Ids are below 1024, or 65535: the low eleven bits tell them apart, and an unused slot falls beyond every expert. */
#define ID_BITS 2048u

static inline __attribute__((always_inline)) void kernels_mark_ids(const uint16_t *expert, size_t stride, uint32_t rows,
                                                                   uint32_t k, uint8_t *map)
{
    for (uint32_t i = 0; i < rows; i++) {
        const uint16_t *id = expert + i * stride;
        for (uint32_t s = 0; s < k; s++)
            map[id[s] & (ID_BITS - 1)] = 0xff;
    }
}

static inline void kernels_collect(const uint16_t *expert, size_t stride, uint32_t rows, uint32_t k, uint64_t *active,
                                   uint32_t words)
{
    uint8_t map[ID_BITS] __attribute__((aligned(32)));
    memset(map, 0, words * 64);
    if (k == 8)
        kernels_mark_ids(expert, stride, rows, 8, map);
    else
        kernels_mark_ids(expert, stride, rows, k, map);
    for (uint32_t w = 0; w < words; w++) {
        const __m256i low = _mm256_load_si256((const __m256i *)(const void *)(map + w * 64));
        const __m256i high = _mm256_load_si256((const __m256i *)(const void *)(map + w * 64 + 32));
        active[w] |= (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32;
    }
}

/* For each mask of four lanes: the 32-bit lanes of the chosen ones, moved to the front. */
static const uint32_t KERNELS_FRONT[16][8] __attribute__((aligned(32))) = {
    { 0, 1, 2, 3, 4, 5, 6, 7 }, { 0, 1, 2, 3, 4, 5, 6, 7 }, { 2, 3, 0, 1, 4, 5, 6, 7 }, { 0, 1, 2, 3, 4, 5, 6, 7 },
    { 4, 5, 0, 1, 2, 3, 6, 7 }, { 0, 1, 4, 5, 2, 3, 6, 7 }, { 2, 3, 4, 5, 0, 1, 6, 7 }, { 0, 1, 2, 3, 4, 5, 6, 7 },
    { 6, 7, 0, 1, 2, 3, 4, 5 }, { 0, 1, 6, 7, 2, 3, 4, 5 }, { 2, 3, 6, 7, 0, 1, 4, 5 }, { 0, 1, 2, 3, 6, 7, 4, 5 },
    { 4, 5, 6, 7, 0, 1, 2, 3 }, { 0, 1, 4, 5, 6, 7, 2, 3 }, { 2, 3, 4, 5, 6, 7, 0, 1 }, { 0, 1, 2, 3, 4, 5, 6, 7 },
};

static inline uint32_t kernels_lanes(__m256i mask)
{
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(mask));
}

/* Writes four lanes, the chosen ones first; returns how many those are. */
static inline uint32_t kernels_pack(int64_t *to, __m256i x, uint32_t lanes)
{
    const __m256i front = _mm256_load_si256((const __m256i *)(const void *)KERNELS_FRONT[lanes]);
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permutevar8x32_epi32(x, front));
    return (uint32_t)__builtin_popcount(lanes);
}

static inline uint32_t kernels_map(const double *x, const double *also, const uint64_t *set, uint32_t words, int drop,
                                   int64_t *dense, int64_t *packed, int *bad)
{
    const __m256i none = _mm256_set1_epi64x(KERNELS_NONE), zero = _mm256_setzero_si256();
    const __m256d least = _mm256_set1_pd(-INFINITY);
    __m256i nan = zero;
    uint32_t n = 0;
    also = also != NULL ? also : x;
    for (uint32_t w = 0; w < words; w++) {
        const __m256i members = _mm256_set1_epi64x((int64_t)set[w]);
        __m256i bit = _mm256_set_epi64x(8, 4, 2, 1);
        for (uint32_t i = w * 64; i < (w + 1) * 64; i += 4, bit = _mm256_slli_epi64(bit, 4)) {
            const __m256d value = _mm256_add_pd(_mm256_loadu_pd(x + i), _mm256_setzero_pd());
            __m256i in = _mm256_cmpeq_epi64(_mm256_and_si256(members, bit), bit);
            const __m256d odd = _mm256_cmp_pd(value, _mm256_loadu_pd(also + i), _CMP_UNORD_Q);
            nan = _mm256_or_si256(nan, _mm256_and_si256(in, _mm256_castpd_si256(odd)));
            if (drop)
                in = _mm256_and_si256(in, _mm256_castpd_si256(_mm256_cmp_pd(value, least, _CMP_NEQ_UQ)));
            const __m256i bits = _mm256_castpd_si256(value);
            const __m256i flip = _mm256_srli_epi64(_mm256_cmpgt_epi64(zero, bits), 1);
            const __m256i key = _mm256_blendv_epi8(none, _mm256_xor_si256(bits, flip), in);
            _mm256_store_si256((__m256i *)(void *)(dense + i), key);
            n += kernels_pack(packed + n, key, kernels_lanes(in));
        }
    }
    *bad |= !_mm256_testz_si256(nan, nan);
    return n;
}

static inline uint32_t kernels_map_keys(const uint64_t *key, const uint64_t *set, uint32_t words, int64_t *dense,
                                        int64_t *packed)
{
    const __m256i none = _mm256_set1_epi64x(KERNELS_NONE);
    uint32_t n = 0;
    for (uint32_t w = 0; w < words; w++) {
        const __m256i members = _mm256_set1_epi64x((int64_t)set[w]);
        __m256i bit = _mm256_set_epi64x(8, 4, 2, 1);
        for (uint32_t i = w * 64; i < (w + 1) * 64; i += 4, bit = _mm256_slli_epi64(bit, 4)) {
            const __m256i in = _mm256_cmpeq_epi64(_mm256_and_si256(members, bit), bit);
            const __m256i value = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(key + i)), none);
            const __m256i shifted = _mm256_blendv_epi8(none, value, in);
            _mm256_store_si256((__m256i *)(void *)(dense + i), shifted);
            n += kernels_pack(packed + n, shifted, kernels_lanes(_mm256_cmpgt_epi64(shifted, none)));
        }
    }
    return n;
}

static inline uint32_t kernels_between(const int64_t *from, uint32_t n, int64_t low, int64_t high, int64_t *to,
                                       uint32_t *above)
{
    const __m256i least = _mm256_set1_epi64x(low), most = _mm256_set1_epi64x(high);
    uint32_t in = 0, over = 0;
    for (uint32_t i = 0; i < n; i += 4) {
        const uint32_t valid = n - i >= 4 ? 15 : (1u << (n - i)) - 1;
        const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
        const uint32_t higher = kernels_lanes(_mm256_cmpgt_epi64(x, most)) & valid;
        const uint32_t lower = kernels_lanes(_mm256_cmpgt_epi64(least, x));
        over += (uint32_t)__builtin_popcount(higher);
        in += kernels_pack(to + in, x, valid & ~(higher | lower));
    }
    *above = over;
    return in;
}

static inline int64_t kernels_kth_of_few(const int64_t *x, uint32_t k)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)x);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(x + 4));
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < 8; i++) {
        const __m256i one = _mm256_set1_epi64x(x[i]);
        const uint32_t above = kernels_lanes(_mm256_cmpgt_epi64(low, one)) |
                               kernels_lanes(_mm256_cmpgt_epi64(high, one)) << 4;
        const int64_t candidate = (uint32_t)__builtin_popcount(above) < k ? x[i] : INT64_MAX;
        least = candidate < least ? candidate : least;
    }
    return least;
}

static inline void kernels_mark_above(const int64_t *dense, uint32_t words, int64_t bound, uint64_t *out)
{
    const __m256i b = _mm256_set1_epi64x(bound);
    for (uint32_t w = 0; w < words; w++) {
        uint64_t bits = 0;
        for (uint32_t i = 0; i < 64; i += 4) {
            const __m256i x = _mm256_load_si256((const __m256i *)(const void *)(dense + w * 64 + i));
            bits |= (uint64_t)kernels_lanes(_mm256_cmpgt_epi64(x, b)) << i;
        }
        out[w] = bits;
    }
}

#endif
#endif
