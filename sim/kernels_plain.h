/* SPDX-License-Identifier: Apache-2.0
 *
 * Primitives of sim/kernels.c in plain C. Arrays of keys are dense: entry e stands for expert e, words·64 entries.
 */
#ifndef MOESIM_SIM_KERNELS_PLAIN_H
#define MOESIM_SIM_KERNELS_PLAIN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "moesim/policy.h"

#define KERNELS_NONE INT64_MIN   /* key of what cannot be kept */

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

/* Integer that orders as the double does; −0 equals 0. Not for NaN. Never KERNELS_NONE. */
static inline int64_t kernels_ordered(double x)
{
    int64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 63) & INT64_MAX);
}

/* Keys of the members of `set`, dense and packed; returns how many are packed. *bad: a member's x is NaN or, unless NULL, its
 * also[e]. drop: members of −∞ get no key. */
static inline uint32_t kernels_map(const double *x, const double *also, const uint64_t *set, uint32_t words, int drop,
                                   int64_t *dense, int64_t *packed, int *bad)
{
    uint32_t n = 0;
    for (uint32_t e = 0; e < words * 64; e++)
        dense[e] = KERNELS_NONE;
    MOESIM_EACH_BIT(e, set, words, {
        *bad |= isnan(x[e]) || (also != NULL && isnan(also[e]));
        if (!drop || x[e] != -INFINITY)
            packed[n++] = dense[e] = kernels_ordered(x[e]);
    });
    return n;
}

static inline uint32_t kernels_map_keys(const uint64_t *key, const uint64_t *set, uint32_t words, int64_t *dense,
                                        int64_t *packed)
{
    uint32_t n = 0;
    for (uint32_t e = 0; e < words * 64; e++)
        dense[e] = KERNELS_NONE;
    MOESIM_EACH_BIT(e, set, words, {
        dense[e] = (int64_t)(key[e] ^ (UINT64_C(1) << 63));
        packed[n] = dense[e];
        n += dense[e] != KERNELS_NONE;
    });
    return n;
}

/* Writes the elements within [low, high] in order and returns how many; *above counts those over high. `to` has room for
 * n + 4. */
static inline uint32_t kernels_between(const int64_t *from, uint32_t n, int64_t low, int64_t high, int64_t *to,
                                       uint32_t *above)
{
    uint32_t in = 0, over = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t x = from[i];
        to[in] = x;
        in += (uint32_t)(x >= low) & (uint32_t)(x <= high);
        over += x > high;
    }
    *above = over;
    return in;
}

/* The k-th greatest (k from 1) of eight elements: the least of those that fewer than k exceed. */
static inline int64_t kernels_kth_of_few(const int64_t *x, uint32_t k)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t above = 0;
        for (uint32_t j = 0; j < 8; j++)
            above += x[j] > x[i];
        least = above < k && x[i] < least ? x[i] : least;
    }
    return least;
}

static inline void kernels_mark_above(const int64_t *dense, uint32_t words, int64_t bound, uint64_t *out)
{
    for (uint32_t w = 0; w < words; w++) {
        uint64_t bits = 0;
        for (uint32_t i = 0; i < 64; i++)
            bits |= (uint64_t)(dense[w * 64 + i] > bound) << i;
        out[w] = bits;
    }
}

#endif
