/* SPDX-License-Identifier: Apache-2.0
 *
 * The few inner loops that pay for vector instructions. One source (sim/kernels.c) is compiled for the baseline and for AVX2
 * (and AVX-512 where it pays); the table is chosen once at run time, MOESIM_CPU=base|avx2|avx512 overrides downwards.
 * All variants give the same bytes (no fused multiply-add, no reordering of sums).
 */
#ifndef MOESIM_SIM_KERNELS_H
#define MOESIM_SIM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Where the boundary of the selection before was, for the next one of the same layer; zeroed: nowhere yet. A hint says where
 * to look first, never what is kept. */
typedef struct moesim_hint {
    uint64_t boundary;           /* key */
    uint64_t half;               /* half the width of the range to look at; 0: a group of equal keys was there */
    uint64_t drift;              /* how far it moves (modulo 2^64): last of all at a group of equal keys, else on average */
    uint64_t known;
} moesim_hint;

typedef struct moesim_kernels {
    const char *name;

    /* Sets bits of the experts of `rows` rows (row i starts at expert + i*stride, K ids, 65535 skipped) in active[words]. */
    void (*collect)(const uint16_t *expert, size_t stride, uint32_t rows, uint32_t k, uint64_t *active, uint32_t words);

    /* Keeps the best `slots` candidates by (value, tie, resident, lower id); value −∞ never kept. value and tie are indexed by
     * expert id (arrays of words*64 entries). Writes keep[words]. Returns 0, or 1 if a candidate's value or tie is NaN.
     * hint: two, of values and of ties, or NULL. */
    int (*select)(const double *value, const double *tie, const uint64_t *candidates, const uint64_t *resident,
                  uint32_t words, uint32_t slots, uint64_t *keep, moesim_hint *hint);

    /* The same by one integer key per expert (higher is better; equal keys: resident, then lower id). hint: one, or NULL. */
    void (*select_key)(const uint64_t *key, const uint64_t *candidates, const uint64_t *resident, uint32_t words,
                       uint32_t slots, uint64_t *keep, moesim_hint *hint);

    /* Writes the members ascending and returns how many; up to 4 entries beyond them are overwritten. */
    uint32_t (*list)(const uint64_t *active, uint32_t words, uint16_t *list);

    /* number has an entry for each member of `all`, ascending: writes those of the members that are in `some` too to `in`, the
     * others to `out`, and returns how many are in. Both have room for as many as `all` has members; what lies
     * behind the numbers written is overwritten. */
    uint32_t (*part)(const uint64_t *all, const uint64_t *some, uint32_t words, const uint32_t *number, uint32_t *in,
                     uint32_t *out);
} moesim_kernels;

/* Chosen once; thread-safe. */
const moesim_kernels *moesim_kernels_get(void);

/* MOESIM_E_USAGE where MOESIM_CPU in the environment asks for a variant that is not among moesim_kernels_all(). */
moesim_code moesim_kernels_check(moesim_error *err);

/* Every variant this machine can run, NULL-ended, for tests and benchmarks; [0] is the baseline. */
const moesim_kernels *const *moesim_kernels_all(void);

#endif
