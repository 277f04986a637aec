/* SPDX-License-Identifier: Apache-2.0
 *
 * Primitives of sim/kernels.c in plain C. Arrays of doubles and keys hold words·64 entries, entry e for expert e; a set is
 * [words].
 */
#ifndef MOESIM_SIM_KERNELS_PLAIN_H
#define MOESIM_SIM_KERNELS_PLAIN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "moesim/policy.h"

static inline void kernels_collect(const uint16_t *expert, size_t stride, uint32_t rows, uint32_t k, uint64_t *active,
                                   uint32_t words)
{
    (void)words;
    for (uint32_t i = 0; i < rows; i++) {
        const uint16_t *id = expert + i * stride;
        for (uint32_t s = 0; s < k; s++) {
            if (id[s] != MOESIM_NO_ROUTE)
                moesim_bit_set(active, id[s]);
        }
    }
}

/* Most keys that are ranked among one another instead of searched. */
#define KERNELS_FEW 12u

/* Ranks n ≤ KERNELS_FEW keys, 1 ≤ k < n: bit i of the result is set for the best k, or for those certainly among them, when
 * *tied gets the equal ones on the boundary (else 0). */
static inline uint32_t kernels_rank(const int64_t *x, uint32_t n, uint32_t k, uint32_t *tied)
{
    uint32_t sure = 0, boundary = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t above = 0, equal = 0;
        for (uint32_t j = 0; j < n; j++) {
            above += x[j] > x[i];
            equal += x[j] == x[i];
        }
        sure |= (uint32_t)(above + equal <= k) << i;
        if (above < k && above + equal > k && above >= most) {
            most = above;
            boundary |= 1u << i;
        }
    }
    *tied = boundary;
    return sure;
}

/* The members of a word that stand where `rank` has a bit, counting from the lowest. */
static inline uint64_t kernels_expand(uint32_t rank, uint64_t word)
{
    uint64_t out = 0;
    for (; rank != 0; rank >>= 1, word &= word - 1)
        out |= (rank & 1) != 0 ? word & -word : 0;
    return out;
}

/* Members of `set` whose value is above −∞; true where the value or the tie of a member is NaN. */
static inline int kernels_usable(const double *value, const double *tie, const uint64_t *set, uint32_t words, uint64_t *out)
{
    int bad = 0;
    memcpy(out, set, words * sizeof *out);
    MOESIM_EACH_BIT(e, set, words, {
        bad |= isnan(value[e]) || isnan(tie[e]);
        if (!(value[e] > -INFINITY))
            moesim_bit_clear(out, e);
    });
    return bad;
}

/* Members of `set` whose double is at least `bound`, or above it. */
static inline void kernels_mark(const double *x, const uint64_t *set, uint32_t words, double bound, int above, uint64_t *out)
{
    memset(out, 0, words * sizeof *out);
    MOESIM_EACH_BIT(e, set, words, {
        if (above ? x[e] > bound : x[e] >= bound)
            moesim_bit_set(out, e);
    });
}

/* The same for unsigned keys. */
static inline void kernels_mark_keys(const uint64_t *key, const uint64_t *set, uint32_t words, uint64_t bound, int above,
                                     uint64_t *out)
{
    memset(out, 0, words * sizeof *out);
    MOESIM_EACH_BIT(e, set, words, {
        if (above ? key[e] > bound : key[e] >= bound)
            moesim_bit_set(out, e);
    });
}

static inline uint32_t kernels_part(const uint64_t *all, const uint64_t *some, uint32_t words, const uint32_t *number,
                                    uint32_t *in, uint32_t *out)
{
    uint32_t n = 0, rest = 0;
    for (uint32_t w = 0; w < words; w++) {
        for (uint64_t left = all[w]; left != 0; left &= left - 1) {
            const uint32_t is = (uint32_t)(some[w] >> __builtin_ctzll(left) & 1);
            in[n] = out[rest] = *number++;
            n += is;
            rest += 1 - is;
        }
    }
    return n;
}

#endif
