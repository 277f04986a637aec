/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner loops, compiled once per instruction set; KERNELS_SUFFIX (_base, _avx2) names the variant.
 *
 * Selection works on dense arrays of ordered 64-bit integers: entry e stands for expert e, entries that cannot be kept hold
 * the least integer. A threshold is narrowed until at most `slots` entries lie above it; a group of equal entries on the
 * threshold is settled by the next criterion.
 */
#include "sim/kernels.h"

#include <string.h>

#include "base/bits.h"
#include "moesim/policy.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define MAX_WORDS 16u
#define MAX_EXPERTS (MAX_WORDS * 64u)
#define NOT_ELIGIBLE INT64_MIN

static void collect(const uint16_t *expert, size_t stride, uint32_t rows, uint32_t k, uint64_t *active, uint32_t words)
{
    uint64_t set[MAX_WORDS + 1];
    memcpy(set, active, words * sizeof *set);
    for (uint32_t i = 0; i < rows; i++) {
        const uint16_t *id = expert + i * stride;
        for (uint32_t s = 0; s < k; s++) {
            if (id[s] != MOESIM_NO_ROUTE)
                set[id[s] >> 6] |= UINT64_C(1) << (id[s] & 63u);
        }
    }
    memcpy(active, set, words * sizeof *set);
}

/* Ordered integer of a double: −0 equals 0, −∞ is NOT_ELIGIBLE's neighbour; NaN is not handled here. */
static inline int64_t ordered(double x)
{
    int64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 63) & INT64_MAX);
}

static uint32_t count_above(const int64_t *key, uint32_t n, int64_t bound)
{
    int64_t above = 0;
    for (uint32_t i = 0; i < n; i++)
        above -= -(int64_t)(key[i] > bound);
    return (uint32_t)above;
}

static void mark_above(const int64_t *key, uint32_t words, int64_t bound, uint64_t *out)
{
    for (uint32_t w = 0; w < words; w++) {
        uint64_t bits = 0;
        for (uint32_t i = 0; i < 64; i++)
            bits |= (uint64_t)(key[w * 64 + i] > bound) << i;
        out[w] = bits;
    }
}

/* Splits the eligible entries: *sure gets those that are certainly among the best `slots`, *tied the group of equal keys on
 * the boundary (empty if there is none), of which slots − |sure| more are kept. */
static void split(const int64_t *key, uint32_t words, uint32_t slots, uint64_t *sure, uint64_t *tied)
{
    const uint32_t n = words * 64;
    int64_t low = INT64_MAX, high = INT64_MIN;
    memset(tied, 0, words * sizeof *tied);
    if (count_above(key, n, NOT_ELIGIBLE) <= slots) {
        mark_above(key, words, NOT_ELIGIBLE, sure);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        high = key[i] > high ? key[i] : high;
        low = key[i] != NOT_ELIGIBLE && key[i] < low ? key[i] : low;
    }
    /* Invariant: more than slots entries lie at or above low, at most slots above high. */
    while (low < high) {
        int64_t middle = (int64_t)((uint64_t)low + ((uint64_t)high - (uint64_t)low) / 2);
        uint32_t above = count_above(key, n, middle);
        if (above == slots) {
            mark_above(key, words, middle, sure);
            return;
        }
        if (above > slots)
            low = middle + 1;
        else
            high = middle;
    }
    mark_above(key, words, low, sure);
    mark_above(key, words, low - 1, tied);
    for (uint32_t w = 0; w < words; w++)
        tied[w] &= ~sure[w];
}

/* Adds the `n` lowest ids of set to keep. */
static void keep_lowest(const uint64_t *set, uint32_t words, uint32_t n, uint64_t *keep)
{
    for (uint32_t w = 0; w < words && n > 0; w++) {
        uint64_t bits = set[w];
        uint32_t here = (uint32_t)__builtin_popcountll(bits);
        if (here <= n) {
            keep[w] |= bits;
            n -= here;
            continue;
        }
        for (; n > 0; n--, bits &= bits - 1)
            keep[w] |= bits & -bits;
    }
}

/* Adds `n` of the equal entries in tied to keep: residents first, then lower ids. */
static void keep_residents(const uint64_t *tied, const uint64_t *resident, uint32_t words, uint32_t n, uint64_t *keep)
{
    uint64_t in[MAX_WORDS], out[MAX_WORDS];
    for (uint32_t w = 0; w < words; w++) {
        in[w] = tied[w] & resident[w];
        out[w] = tied[w] & ~resident[w];
    }
    uint32_t residents = moesim_bits_count(in, words);
    keep_lowest(in, words, n, keep);
    if (n > residents)
        keep_lowest(out, words, n - residents, keep);
}

static int select_best(const double *value, const double *tie, const uint64_t *candidates, const uint64_t *resident,
                       uint32_t words, uint32_t slots, uint64_t *keep)
{
    int64_t key[MAX_EXPERTS];
    uint64_t tied[MAX_WORDS], sure[MAX_WORDS];
    int nan = 0;
    for (uint32_t e = 0; e < words * 64; e++) {
        const int candidate = (int)((candidates[e >> 6] >> (e & 63u)) & 1u);
        nan |= candidate & ((value[e] != value[e]) | (tie[e] != tie[e]));
        key[e] = candidate && value[e] > -__builtin_inf() ? ordered(value[e]) : NOT_ELIGIBLE;
    }
    if (nan)
        return 1;
    split(key, words, slots, keep, tied);
    uint32_t group = moesim_bits_count(tied, words);
    if (group == 0)
        return 0;
    uint32_t left = slots - moesim_bits_count(keep, words);
    for (uint32_t e = 0; e < words * 64; e++)
        key[e] = moesim_bit_test(tied, e) ? ordered(tie[e]) : NOT_ELIGIBLE;
    split(key, words, left, sure, tied);
    for (uint32_t w = 0; w < words; w++)
        keep[w] |= sure[w];
    keep_residents(tied, resident, words, left - moesim_bits_count(sure, words), keep);
    return 0;
}

static void select_key(const uint64_t *key, const uint64_t *candidates, const uint64_t *resident, uint32_t words,
                       uint32_t slots, uint64_t *keep)
{
    int64_t shifted[MAX_EXPERTS];
    uint64_t tied[MAX_WORDS], zero[MAX_WORDS] = { 0 };
    /* Key 0 would fall on NOT_ELIGIBLE: those entries are the last group, settled apart. */
    for (uint32_t e = 0; e < words * 64; e++) {
        const uint64_t candidate = (candidates[e >> 6] >> (e & 63u)) & 1u;
        shifted[e] = candidate ? (int64_t)(key[e] ^ (UINT64_C(1) << 63)) : NOT_ELIGIBLE;
        zero[e >> 6] |= (candidate & (key[e] == 0)) << (e & 63u);
    }
    split(shifted, words, slots, keep, tied);
    uint32_t left = slots - moesim_bits_count(keep, words);
    if (moesim_bits_count(tied, words) == 0)
        memcpy(tied, zero, sizeof zero);
    keep_residents(tied, resident, words, left, keep);
}

extern const moesim_kernels JOIN(moesim_kernels, KERNELS_SUFFIX);
const moesim_kernels JOIN(moesim_kernels, KERNELS_SUFFIX) = {
    .name = KERNELS_NAME, .collect = collect, .select = select_best, .select_key = select_key,
};
