/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops of resampling, once per instruction set: several resamples side by side, each added up in the order of the
 * requests, so that every variant gives the same digits. Internal to library `stats`.
 */
#ifndef MOESIM_SIM_STATS_KERNELS_H
#define MOESIM_SIM_STATS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define MOESIM_LANES 8u          /* resamples, or flips, side by side */

typedef struct moesim_stats_kernels {
    const char *name;            /* as the kernels of the same instruction set */
    /* sum[c][lane] = Σ_i drawn[i][lane] · column[c][i]; drawn: [n][lanes] */
    void (*add)(const uint16_t *drawn, size_t n, const double *const *column, size_t columns, double *const *sum);
    /* sum[lane] = Σ_i ±d[i], plus where bit i % 32 of bits[i / 32][lane] is set */
    void (*flip)(const uint64_t *bits, const double *d, size_t n, double sum[MOESIM_LANES]);
} moesim_stats_kernels;

extern const moesim_stats_kernels moesim_stats_kernels_base, moesim_stats_kernels_avx2;

#endif
