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

#include "base/bits.h"

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

#define KERNELS_FEW 20u

/* above[i]: keys that are greater than key i. */
static inline uint32_t kernels_rank(const int64_t *x, uint32_t n, uint32_t k, uint32_t *tied)
{
    uint64_t above[KERNELS_FEW] __attribute__((aligned(32))), most = 0;
    const __m256i limit = _mm256_set1_epi64x((int64_t)k);
    uint32_t best = 0;
    for (uint32_t g = 0; g < n; g += 4) {
        const __m256i own = _mm256_loadu_si256((const __m256i *)(const void *)(x + g));
        __m256i count = _mm256_setzero_si256();
        for (uint32_t i = 0; i < n; i++)
            count = _mm256_sub_epi64(count, _mm256_cmpgt_epi64(_mm256_set1_epi64x(x[i]), own));
        _mm256_store_si256((__m256i *)(void *)(above + g), count);
        best |= (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(limit, count))) << g;
    }
    best &= UINT32_MAX >> (32 - n);
    *tied = 0;
    if ((uint32_t)__builtin_popcount(best) == k)
        return best;
    for (uint32_t i = 0; i < n; i++)
        most = (best >> i & 1) != 0 && above[i] > most ? above[i] : most;
    for (uint32_t i = 0; i < n; i++)
        *tied |= (uint32_t)((best >> i & 1) != 0 && above[i] == most) << i;
    return best & ~*tied;
}

static inline uint64_t kernels_expand(uint32_t rank, uint64_t word)
{
    return _pdep_u64(rank, word);
}

/* Masks of eight times four keys, one bit each: keys 0 and 1 of each four in the lower half, 2 and 3 in the upper. */
static inline __attribute__((always_inline)) uint32_t kernels_pack(const __m256d *m)
{
    __m256i pair[4];
    for (uint32_t i = 0; i < 4; i++)
        pair[i] = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castpd_ps(m[2 * i]), _mm256_castpd_ps(m[2 * i + 1]),
                                                        _MM_SHUFFLE(2, 0, 2, 0)));
    const __m256i low = _mm256_packs_epi32(pair[0], pair[1]), high = _mm256_packs_epi32(pair[2], pair[3]);
    return (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(low, high));
}

/* The word of 64 keys whose masks are packed in two halves. */
static inline uint64_t kernels_word(uint32_t first, uint32_t second)
{
    return _pdep_u64((first & 0xffffu) | second << 16, UINT64_C(0x3333333333333333)) |
           _pdep_u64(first >> 16 | (second & 0xffff0000u), UINT64_C(0xcccccccccccccccc));
}

static inline void kernels_mark(const double *x, const uint64_t *set, uint32_t words, double bound, int above, uint64_t *out)
{
    const __m256d b = _mm256_set1_pd(bound);
    for (uint32_t w = 0; w < words; w++) {
        uint32_t half[2];
        for (uint32_t h = 0; h < 2; h++) {
            __m256d m[8];
            for (uint32_t i = 0; i < 8; i++) {
                const __m256d v = _mm256_loadu_pd(x + w * 64 + h * 32 + i * 4);
                m[i] = above ? _mm256_cmp_pd(v, b, _CMP_GT_OQ) : _mm256_cmp_pd(v, b, _CMP_GE_OQ);
            }
            half[h] = kernels_pack(m);
        }
        out[w] = kernels_word(half[0], half[1]) & set[w];
    }
}

/* Most policies give every expert a value above −∞, and tie keys begin as 0: one pass without masks tells whether to look
 * closer. */
static inline int kernels_usable(const double *value, const double *tie, const uint64_t *set, uint32_t words, uint64_t *out)
{
    const __m256d bottom = _mm256_set1_pd(-INFINITY);
    __m256d odd = _mm256_setzero_pd(), good = _mm256_cmp_pd(bottom, bottom, _CMP_EQ_OQ);
    int bad = 0;
    for (uint32_t i = 0; i < words * 64; i += 8) {
        const __m256d first = _mm256_cmp_pd(_mm256_loadu_pd(value + i), bottom, _CMP_GT_OQ);
        const __m256d second = _mm256_cmp_pd(_mm256_loadu_pd(value + i + 4), bottom, _CMP_GT_OQ);
        good = _mm256_and_pd(good, _mm256_and_pd(first, second));
        odd = _mm256_or_pd(odd, _mm256_cmp_pd(_mm256_loadu_pd(tie + i), _mm256_loadu_pd(tie + i + 4), _CMP_UNORD_Q));
    }
    memcpy(out, set, words * sizeof *out);
    if (_mm256_movemask_pd(good) != 15) {
        kernels_mark(value, set, words, -INFINITY, 1, out);
        for (uint32_t w = 0; w < words; w++)
            for (uint64_t rest = set[w] & ~out[w]; rest != 0; rest &= rest - 1)
                bad |= isnan(value[w * 64 + (uint32_t)__builtin_ctzll(rest)]);
    }
    if (_mm256_movemask_pd(odd) != 0)
        MOESIM_EACH_BIT(e, set, words, { bad |= isnan(tie[e]); });
    return bad;
}

/* Signed compares order unsigned keys once the highest bit is turned over. */
static inline void kernels_mark_keys(const uint64_t *key, const uint64_t *set, uint32_t words, uint64_t bound, int above,
                                     uint64_t *out)
{
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN), b = _mm256_xor_si256(_mm256_set1_epi64x((int64_t)bound), sign);
    const uint64_t flip = above ? 0 : UINT64_MAX;
    for (uint32_t w = 0; w < words; w++) {
        uint32_t half[2];
        for (uint32_t h = 0; h < 2; h++) {
            __m256d m[8];
            for (uint32_t i = 0; i < 8; i++) {
                const __m256i *at = (const __m256i *)(const void *)(key + w * 64 + h * 32 + i * 4);
                const __m256i k = _mm256_xor_si256(_mm256_loadu_si256(at), sign);
                m[i] = _mm256_castsi256_pd(above ? _mm256_cmpgt_epi64(k, b) : _mm256_cmpgt_epi64(b, k));
            }
            half[h] = kernels_pack(m);
        }
        out[w] = (kernels_word(half[0], half[1]) ^ flip) & set[w];
    }
}

/* The lanes of v whose bits are set, in order, then anything; bits above the eighth do not matter. */
static inline __m256i kernels_squeeze(__m256i v, uint32_t bits)
{
    const uint64_t lanes = _pdep_u64(bits, 0x0101010101010101) * 0xff;
    const uint64_t from = _pext_u64(0x0706050403020100, lanes);
    return _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)from)));
}

/* Eight numbers at a time. */
static inline uint32_t kernels_part(const uint64_t *all, const uint64_t *some, uint32_t words, const uint32_t *number,
                                    uint32_t *in, uint32_t *out)
{
    uint64_t is[17] = {0};       /* bit k: member k of `all` is in `some` */
    uint32_t members = 0, n = 0, i = 0;
    for (uint32_t w = 0; w < words; w++) {
        const uint64_t bits = _pext_u64(some[w], all[w]);
        is[members / 64] |= bits << members % 64;
        is[members / 64 + 1] = members % 64 > 0 ? bits >> (64 - members % 64) : 0;
        members += (uint32_t)__builtin_popcountll(all[w]);
    }
    for (; i + 8 <= members; i += 8) {
        const uint32_t bits = (uint32_t)(is[i / 64] >> i % 64) & 0xff;
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(number + i));
        _mm256_storeu_si256((__m256i *)(void *)(in + n), kernels_squeeze(v, bits));
        _mm256_storeu_si256((__m256i *)(void *)(out + i - n), kernels_squeeze(v, ~bits));
        n += (uint32_t)__builtin_popcount(bits);
    }
    for (; i < members; i++) {
        const uint32_t one = (uint32_t)(is[i / 64] >> i % 64 & 1);
        in[n] = out[i - n] = number[i];
        n += one;
    }
    return n;
}

#endif
#endif
