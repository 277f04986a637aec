/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner loops, compiled once per instruction set; KERNELS_SUFFIX (_base, _avx2) names the variant.
 *
 * Selection maps doubles to integers of the same order, finds the key on the boundary by narrowing a range around it, and
 * marks what lies above in one pass. A group of equal keys on the boundary is settled by the next
 * criterion.
 */
#include "sim/kernels.h"

#include <string.h>

#include "base/bits.h"
#ifdef __AVX2__
#include "sim/kernels_avx2.h"
#else
#include "sim/kernels_plain.h"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define MAX_WORDS 16u
#define MAX_EXPERTS (MAX_WORDS * 64u)
#define ROOM (MAX_EXPERTS + 4u)   /* packing writes four entries at a time */

typedef struct keys {
    uint32_t n;                  /* packed */
    int64_t dense[MAX_EXPERTS] __attribute__((aligned(32)));
    int64_t packed[ROOM];
} keys;

static void collect(const uint16_t *expert, size_t stride, uint32_t rows, uint32_t k, uint64_t *active, uint32_t words)
{
    kernels_collect(expert, stride, rows, k, active, words);
}

/* The members of each set of four, moved to the front. */
static const uint16_t FOUR[16][4] = {
    { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 2, 0, 0, 0 }, { 0, 2, 0, 0 }, { 1, 2, 0, 0 },
    { 0, 1, 2, 0 }, { 3, 0, 0, 0 }, { 0, 3, 0, 0 }, { 1, 3, 0, 0 }, { 0, 1, 3, 0 }, { 2, 3, 0, 0 }, { 0, 2, 3, 0 },
    { 1, 2, 3, 0 }, { 0, 1, 2, 3 },
};

static uint32_t list(const uint64_t *active, uint32_t words, uint16_t *out)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < words; w++) {
        uint64_t bits = active[w], base = w * 64u * UINT64_C(0x0001000100010001);
        for (uint32_t i = 0; i < 16; i++, bits >>= 4, base += 4 * UINT64_C(0x0001000100010001)) {
            uint64_t four;
            memcpy(&four, FOUR[bits & 15], sizeof four);
            four += base;
            memcpy(out + n, &four, sizeof four);
            n += (uint32_t)__builtin_popcountll(bits & 15);
        }
    }
    return n;
}

/* Samples, and the length from which on they are no longer needed. */
#define FEW 8u

typedef struct range {
    int64_t low, high;           /* inclusive */
} range;

/* Where the k-th greatest of n > FEW elements probably lies: between the neighbours of its like among FEW samples, or open
 * where there is no neighbour. single: one element instead. */
static range choose_range(const int64_t *x, uint32_t n, uint32_t k, int single)
{
    int64_t sample[FEW];
    for (uint32_t i = 0; i < FEW; i++)
        sample[i] = x[i * n / FEW];
    const uint32_t standing = 1 + (k - 1) * FEW / n;
    if (single) {
        const int64_t middle = kernels_kth_of_few(sample, standing);
        return (range){ middle, middle };
    }
    return (range){ standing < FEW ? kernels_kth_of_few(sample, standing + 1) : KERNELS_NONE,
                    standing > 1 ? kernels_kth_of_few(sample, standing - 1) : INT64_MAX };
}

/* The k-th greatest of the packed keys, 1 ≤ k ≤ n; uses them up. Each round keeps what lies in a range that holds it; if a
 * round dropped nothing, the next one takes a single element, which it either returns or drops. */
static int64_t kth_greatest(keys *s, uint32_t k)
{
    int64_t spare[ROOM];
    int64_t *from = s->packed, *to = spare;
    uint32_t n = s->n, in = 0, above = 0;
    while (n > FEW) {
        range r = choose_range(from, n, k, in == n);
        in = kernels_between(from, n, r.low, r.high, to, &above);
        if (k <= above) {
            r = (range){ r.high + 1, INT64_MAX };
            in = kernels_between(from, n, r.low, r.high, to, &above);
        } else if (k > above + in) {
            r = (range){ KERNELS_NONE, r.low - 1 };
            in = kernels_between(from, n, r.low, r.high, to, &above);
        }
        if (r.low == r.high)
            return r.low;
        int64_t *swap = from;
        from = to;
        to = swap;
        k -= above;
        const uint32_t before = n;
        n = in;
        in = in == before ? n : 0;
    }
    for (uint32_t i = n; i < FEW; i++)
        from[i] = KERNELS_NONE;
    return kernels_kth_of_few(from, k);
}

/* Of the keys, *sure gets those that are certainly among the best `slots`, *tied a group of equal ones (empty if there is
 * none) of which the returned number is still to be kept. */
static uint32_t split(keys *s, uint32_t words, uint32_t slots, uint64_t *sure, uint64_t *tied)
{
    memset(tied, 0, words * sizeof *tied);
    if (slots == 0) {
        memset(sure, 0, words * sizeof *sure);
        return 0;
    }
    if (s->n <= slots) {
        kernels_mark_above(s->dense, words, KERNELS_NONE, sure);
        return 0;
    }
    const int64_t boundary = kth_greatest(s, slots);
    kernels_mark_above(s->dense, words, boundary - 1, sure);
    uint32_t over = moesim_bits_count(sure, words) - slots;
    if (over == 0)
        return 0;
    memcpy(tied, sure, words * sizeof *tied);
    kernels_mark_above(s->dense, words, boundary, sure);
    for (uint32_t w = 0; w < words; w++)
        tied[w] &= ~sure[w];
    return moesim_bits_count(tied, words) - over;
}

/* Adds the n lowest ids of set to keep. */
static void keep_lowest(const uint64_t *set, uint32_t words, uint32_t n, uint64_t *keep)
{
    for (uint32_t w = 0; w < words && n > 0; w++) {
        uint64_t bits = set[w];
        const uint32_t here = (uint32_t)__builtin_popcountll(bits);
        if (here <= n) {
            keep[w] |= bits;
            n -= here;
            continue;
        }
        for (; n > 0; n--, bits &= bits - 1)
            keep[w] |= bits & -bits;
    }
}

/* Adds n of the equal ones in tied to keep: residents first, then lower ids. */
static void keep_residents(const uint64_t *tied, const uint64_t *resident, uint32_t words, uint32_t n, uint64_t *keep)
{
    uint64_t in[MAX_WORDS], out[MAX_WORDS];
    for (uint32_t w = 0; w < words; w++) {
        in[w] = tied[w] & resident[w];
        out[w] = tied[w] & ~resident[w];
    }
    const uint32_t residents = moesim_bits_count(in, words);
    keep_lowest(in, words, n, keep);
    if (n > residents)
        keep_lowest(out, words, n - residents, keep);
}

static int select_best(const double *value, const double *tie, const uint64_t *candidates, const uint64_t *resident,
                       uint32_t words, uint32_t slots, uint64_t *keep)
{
    keys s;
    uint64_t tied[MAX_WORDS], sure[MAX_WORDS];
    int bad = 0;
    s.n = kernels_map(value, tie, candidates, words, 1, s.dense, s.packed, &bad);
    if (bad)
        return 1;
    uint32_t left = split(&s, words, slots, keep, tied);
    if (left == 0)
        return 0;
    s.n = kernels_map(tie, NULL, tied, words, 0, s.dense, s.packed, &bad);
    left = split(&s, words, left, sure, tied);
    for (uint32_t w = 0; w < words; w++)
        keep[w] |= sure[w];
    if (left > 0)
        keep_residents(tied, resident, words, left, keep);
    return 0;
}

/* Key 0 falls on KERNELS_NONE: those candidates are the last group, settled apart. */
static void select_key(const uint64_t *key, const uint64_t *candidates, const uint64_t *resident, uint32_t words,
                       uint32_t slots, uint64_t *keep)
{
    keys s;
    uint64_t tied[MAX_WORDS];
    s.n = kernels_map_keys(key, candidates, words, s.dense, s.packed);
    const uint32_t with_key = s.n;
    uint32_t left = split(&s, words, slots, keep, tied);
    if (with_key < slots) {
        kernels_mark_above(s.dense, words, KERNELS_NONE, tied);
        for (uint32_t w = 0; w < words; w++)
            tied[w] = candidates[w] & ~tied[w];
        left = slots - with_key;
    }
    if (left > 0)
        keep_residents(tied, resident, words, left, keep);
}

extern const moesim_kernels JOIN(moesim_kernels, KERNELS_SUFFIX);
const moesim_kernels JOIN(moesim_kernels, KERNELS_SUFFIX) = {
    .name = KERNELS_NAME, .collect = collect, .select = select_best, .select_key = select_key, .list = list,
};
