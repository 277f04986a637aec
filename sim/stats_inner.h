/* SPDX-License-Identifier: Apache-2.0
 *
 * Resamples in blocks, and the sums over them. Internal to library `stats`.
 */
#ifndef MOESIM_SIM_STATS_INNER_H
#define MOESIM_SIM_STATS_INNER_H

#include <stdbool.h>

#include <gsl/gsl_rng.h>

#include "sim/stats.h"
#include "sim/stats_kernels.h"

/* The sums of one column of terms over every resample. */
typedef struct moesim_summed {
    double *term;                /* [n] */
    double *sum;                 /* [blocks · lanes] */
    uint64_t hash;               /* of term */
    uint64_t used;               /* number of the call that asked for it last; 0: never */
    uint64_t serial;             /* no other content of this bootstrap ever has it; from 1 */
} moesim_summed;

/* The interval of the ratio of two columns. */
typedef struct moesim_known {
    uint64_t num, den;           /* serials; 0: none */
    moesim_interval interval;
} moesim_known;

#define MOESIM_SUMMED 64u        /* columns that are remembered */
#define MOESIM_KNOWN 256u        /* intervals that are */
#define MOESIM_AT_ONCE 16u       /* ratios of one call of moesim_summed_get: two columns each must stay */

struct moesim_bootstrap {
    size_t n;
    uint32_t resamples, blocks;  /* blocks of MOESIM_LANES resamples; the last may be padded with empty ones */
    uint64_t seed;
    uint16_t *table;             /* [blocks][n][lanes] times drawn, or NULL: regenerate */
    bool borrowed;               /* the table is another bootstrap's */
    uint16_t *drawn;             /* [n][lanes] one block, when table is NULL */
    double *value;               /* [resamples] scratch */
    gsl_rng *rng;
    const moesim_stats_kernels *kernels;
    uint64_t calls, serials;
    moesim_summed summed[MOESIM_SUMMED];
    moesim_known known[MOESIM_KNOWN];
    size_t oldest;               /* of them */
};

/* The generator takes 32 bits: the rest is folded in, so that every bit of a seed counts. */
void moesim_seed_rng(gsl_rng *rng, uint64_t seed);

/* Block i of the resamples; blocks are asked for in order from 0. */
const uint16_t *moesim_resample_block(moesim_bootstrap *b, size_t i);

/* out[c]: the sums of column[c], [n] each, over every resample, in the order of the requests; valid until the next call.
 * Columns of equal content are summed once, and the ones met last are remembered: many cells share most of theirs.
 * columns ≤ 2 · MOESIM_AT_ONCE. */
moesim_code moesim_summed_get(moesim_bootstrap *b, const double *const *column, size_t columns, const moesim_summed **out,
                              moesim_error *err);
void moesim_summed_fini(moesim_bootstrap *b);

/* 95 % interval of the first n of b->value, which loses its order. */
moesim_interval moesim_percentiles(double *value, size_t n);

#endif
