/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner loops, compiled once per instruction set; KERNELS_SUFFIX (_base, _avx2) names the variant.
 *
 * Selection never moves keys. It marks, as a bitset, what is not below a pivot taken from samples; one side of the pivot is
 * settled then and the search goes on in the other, until a few are left, which are sorted. A group of equal keys on the
 * boundary is settled by the next criterion.
 */
#include "sim/kernels.h"

#include <math.h>
#include <string.h>
#ifdef __BMI2__
#include <immintrin.h>
#endif

#include "base/bits.h"
#ifdef __AVX2__
#include "sim/kernels_avx2.h"
#else
#include "sim/kernels_plain.h"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define MAX_WORDS 16u

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

/* ---- selection ------------------------------------------------------------------------------------------------- */

#define SAMPLES 8u

/* Keys by expert: doubles without NaN, or unsigned integers. The kind is a constant wherever these functions are inlined. */
typedef struct key_array {
    const double *value;
    const uint64_t *key;         /* NULL: doubles */
} key_array;

#define KERNEL static inline __attribute__((always_inline))

/* The key of one expert as an unsigned integer of the same order; −0 equals 0. */
KERNEL uint64_t key_of(const key_array a, uint32_t e)
{
    uint64_t bits;
    if (a.key != NULL)
        return a.key[e];
    const double x = a.value[e] + 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((uint64_t)((int64_t)bits >> 63) | UINT64_C(1) << 63);
}

/* Members of `set` whose key is at least `bound` (as key_of gives it), or above it. */
KERNEL void mark(const key_array a, const uint64_t *set, uint32_t words, uint64_t bound, int above, uint64_t *out)
{
    double x;
    if (a.key != NULL) {
        kernels_mark_keys(a.key, set, words, bound, above, out);
        return;
    }
    bound ^= (bound >> 63) != 0 ? UINT64_C(1) << 63 : UINT64_MAX;
    memcpy(&x, &bound, sizeof x);
    kernels_mark(a.value, set, words, x, above, out);
}

/* Sorts eight keys, greatest first, without branches. */
KERNEL void sort_few(uint64_t *x)
{
    static const uint8_t pair[19][2] = {
        { 0, 2 }, { 1, 3 }, { 4, 6 }, { 5, 7 }, { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 }, { 0, 1 }, { 2, 3 },
        { 4, 5 }, { 6, 7 }, { 2, 4 }, { 3, 5 }, { 1, 4 }, { 3, 6 }, { 1, 2 }, { 3, 4 }, { 5, 6 },
    };
#pragma GCC unroll 19
    for (uint32_t i = 0; i < 19; i++) {
        const uint64_t a = x[pair[i][0]], b = x[pair[i][1]];
        x[pair[i][0]] = a > b ? a : b;
        x[pair[i][1]] = a > b ? b : a;
    }
}

/* Keys of SAMPLES members of a set that has more: lowest and highest of each word, again and again. */
KERNEL void take_samples(const key_array a, const uint64_t *set, uint32_t words, uint64_t *sample)
{
    uint64_t rest[MAX_WORDS];
    uint32_t n = 0;
    memcpy(rest, set, words * sizeof *rest);
    for (uint32_t w = 0; n < SAMPLES; w = w + 1 < words ? w + 1 : 0) {
        if (rest[w] == 0)
            continue;
        const uint32_t low = (uint32_t)__builtin_ctzll(rest[w]), high = 63u - (uint32_t)__builtin_clzll(rest[w]);
        sample[n] = key_of(a, w * 64 + low);
        sample[n + 1] = key_of(a, w * 64 + high);
        n += low == high ? 1 : 2;
        rest[w] &= ~(UINT64_C(1) << low | UINT64_C(1) << high);
    }
}

/* Notes a boundary; half = 0: a group of equal keys. */
KERNEL void learn(moesim_hint *hint, uint64_t boundary, uint64_t half)
{
    if (hint == NULL)
        return;
    const int64_t moved = hint->known ? (int64_t)(boundary - hint->boundary) : 0, drift = (int64_t)hint->drift;
    *hint = (moesim_hint){ boundary, half, (uint64_t)(half == 0 ? moved : drift + (moved / 4 - drift / 4)), 1 };
}

/* A range around the boundary that holds a third as many keys as can be ranked, if they lie as densely as these n: wider ones
 * are found again more often, narrower ones are cheaper to rank. */
KERNEL void learn_from(moesim_hint *hint, const int64_t *x, uint32_t n, uint32_t kept)
{
    const uint64_t top = UINT64_C(1) << 63;
    int64_t least = x[0], most = x[0], bound = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
        bound = (kept >> i & 1) != 0 && x[i] < bound ? x[i] : bound;
    }
    learn(hint, (uint64_t)bound ^ top, ((uint64_t)most - (uint64_t)least) / (n - 1) * (KERNELS_FEW / 6) + 1);
}

/* The best k of the n ≤ KERNELS_FEW members of `open`, k < n, are added to sure, as far as ties allow; returns how many of
 * the equal ones in tied are due. */
KERNEL uint32_t settle_few(const key_array a, const uint64_t *open, uint32_t words, uint32_t k, uint64_t *sure, uint64_t *tied,
                           moesim_hint *hint)
{
    int64_t x[KERNELS_FEW + 3];
    uint32_t n = 0, equal;
    MOESIM_EACH_BIT(e, open, words, { x[n++] = (int64_t)(key_of(a, e) ^ UINT64_C(1) << 63); });
    uint32_t best = kernels_rank(x, n, k, &equal);
    if (hint != NULL)
        learn_from(hint, x, n, best | equal);
    k -= (uint32_t)__builtin_popcount(best);
    for (uint32_t w = 0; w < words; w++) {
        const uint32_t here = (uint32_t)__builtin_popcountll(open[w]);
        sure[w] |= kernels_expand(best, open[w]);
        tied[w] = kernels_expand(equal, open[w]);
        best = here < 32 ? best >> here : 0;
        equal = here < 32 ? equal >> here : 0;
    }
    return k;
}

/* A selection under way: `sure` is kept, of the n members of `open` the best k are still to be. */
typedef struct search {
    uint64_t open[MAX_WORDS], top[MAX_WORDS];
    uint32_t n, k;
} search;

/* The part of `open` in top is settled (all kept) if it has at most k members; else the search goes on in it. Returns 1 at the
 * end: exactly the k best were in top. */
KERNEL int narrow(search *s, uint32_t words, uint64_t *sure)
{
    const uint32_t here = moesim_bits_count(s->top, words);
    for (uint32_t w = 0; w < words; w++) {
        sure[w] |= here <= s->k ? s->top[w] : 0;
        s->open[w] = here <= s->k ? s->open[w] & ~s->top[w] : s->top[w];
    }
    s->n = here <= s->k ? s->n - here : here;
    s->k -= here <= s->k ? here : 0;
    return s->k == 0;
}

/* What is left of `open` is a group of equal keys. */
KERNEL uint32_t leave_tied(const search *s, uint32_t words, uint64_t *tied)
{
    memcpy(tied, s->open, words * sizeof *tied);
    return s->k;
}

/* Looks where the boundary should be if it moves on: a group of equal keys (a clock, mostly) as it did before, a range as it
 * does on average. Returns 1 when the search is at its end; *left tells how many of tied are due. */
KERNEL int try_hint(const key_array a, search *s, uint32_t words, uint64_t *sure, uint64_t *tied, moesim_hint *hint,
                    uint32_t *left)
{
    const uint64_t middle = hint->boundary + hint->drift;
    const uint64_t low = middle >= hint->half ? middle - hint->half : 0;
    const uint64_t high = middle + hint->half >= middle ? middle + hint->half : UINT64_MAX;
    uint64_t least[MAX_WORDS];
    uint32_t in = 0;
    *left = 0;
    mark(a, s->open, words, high, 1, s->top);
    mark(a, s->open, words, low, 0, least);
    const int too_low = moesim_bits_count(s->top, words) > s->k;
    if (narrow(s, words, sure))
        return 1;
    if (too_low)
        return 0;
    for (uint32_t w = 0; w < words; w++) {
        s->top[w] = s->open[w] & least[w];
        in += (uint32_t)__builtin_popcountll(s->top[w]);
    }
    if (in == 0 || (in == s->n && hint->half != 0))
        return 0;
    if (in <= s->k || hint->half != 0)
        return narrow(s, words, sure);
    /* all of them are equal */
    memcpy(tied, s->top, words * sizeof *tied);
    learn(hint, middle, 0);
    *left = s->k;
    return 1;
}

/* Of the members of `set`, *sure gets those that are certainly among the best `slots`, *tied a group of equal ones of which
 * the returned number is still to be kept (0: none, and tied means nothing). 0 < slots < |set|. */
KERNEL uint32_t split(const key_array a, const uint64_t *set, uint32_t words, uint32_t slots, uint64_t *sure, uint64_t *tied,
                      moesim_hint *hint)
{
    search s;                    /* not initialised as a whole: clearing its sets would cost more than a search */
    uint64_t sample[SAMPLES + 1];
    uint32_t left;
    s.n = moesim_bits_count(set, words);
    s.k = slots;
    memcpy(s.open, set, words * sizeof *set);
    memset(sure, 0, words * sizeof *sure);
    if (hint != NULL && hint->known && s.n > KERNELS_FEW && try_hint(a, &s, words, sure, tied, hint, &left))
        return left;
    while (s.n > KERNELS_FEW) {
        take_samples(a, s.open, words, sample);
        sort_few(sample);
        const uint32_t standing = (2 * (SAMPLES + 1) * s.k + s.n) / (2 * s.n);
        const uint64_t pivot = sample[standing < 1 ? 0 : standing > SAMPLES ? SAMPLES - 1 : standing - 1];
        const uint32_t before = s.n;
        mark(a, s.open, words, pivot, 0, s.top);
        if (narrow(&s, words, sure))
            return 0;
        if (s.n < before)
            continue;
        /* the pivot is the least: either it is the boundary, or it goes */
        mark(a, s.open, words, pivot, 1, s.top);
        const int boundary = moesim_bits_count(s.top, words) < s.k;
        if (narrow(&s, words, sure))
            return 0;
        if (boundary) {
            learn(hint, pivot, 0);
            return leave_tied(&s, words, tied);
        }
    }
    return settle_few(a, s.open, words, s.k, sure, tied, hint);
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

KERNEL int best_of(const double *value, const double *tie, const uint64_t *candidates, const uint64_t *resident,
                   uint32_t words, uint32_t slots, uint64_t *keep, moesim_hint *hint)
{
    uint64_t usable[MAX_WORDS], tied[MAX_WORDS], sure[MAX_WORDS], last[MAX_WORDS];
    if (kernels_usable(value, tie, candidates, words, usable))
        return 1;
    if (slots == 0 || moesim_bits_count(usable, words) <= slots) {
        for (uint32_t w = 0; w < words; w++)
            keep[w] = slots == 0 ? 0 : usable[w];
        return 0;
    }
    uint32_t left = split((key_array){ value, NULL }, usable, words, slots, keep, tied, hint);
    if (left > 0 && left < moesim_bits_count(tied, words)) {
        left = split((key_array){ tie, NULL }, tied, words, left, sure, last, hint != NULL ? hint + 1 : NULL);
        for (uint32_t w = 0; w < words; w++)
            keep[w] |= sure[w];
        memcpy(tied, last, words * sizeof *tied);
    }
    if (left > 0)
        keep_residents(tied, resident, words, left, keep);
    return 0;
}

KERNEL void best_keys(const uint64_t *key, const uint64_t *candidates, const uint64_t *resident, uint32_t words,
                      uint32_t slots, uint64_t *keep, moesim_hint *hint)
{
    uint64_t tied[MAX_WORDS];
    if (slots == 0 || moesim_bits_count(candidates, words) <= slots) {
        for (uint32_t w = 0; w < words; w++)
            keep[w] = slots == 0 ? 0 : candidates[w];
        return;
    }
    const uint32_t left = split((key_array){ NULL, key }, candidates, words, slots, keep, tied, hint);
    if (left > 0)
        keep_residents(tied, resident, words, left, keep);
}

/* Sets of up to 256 experts have a copy with unrolled loops. */
static int select_best(const double *value, const double *tie, const uint64_t *candidates, const uint64_t *resident,
                       uint32_t words, uint32_t slots, uint64_t *keep, moesim_hint *hint)
{
    return words == 4 ? best_of(value, tie, candidates, resident, 4, slots, keep, hint)
                      : best_of(value, tie, candidates, resident, words, slots, keep, hint);
}

static void select_key(const uint64_t *key, const uint64_t *candidates, const uint64_t *resident, uint32_t words,
                       uint32_t slots, uint64_t *keep, moesim_hint *hint)
{
    if (words == 4)
        best_keys(key, candidates, resident, 4, slots, keep, hint);
    else
        best_keys(key, candidates, resident, words, slots, keep, hint);
}

extern const moesim_kernels JOIN(moesim_kernels, KERNELS_SUFFIX);
const moesim_kernels JOIN(moesim_kernels, KERNELS_SUFFIX) = {
    .name = KERNELS_NAME, .collect = collect, .select = select_best, .select_key = select_key, .list = list,
    .part = kernels_part,
};
