/* SPDX-License-Identifier: Apache-2.0
 *
 * Confidences, commits and stability of the generator's rows. No function of libm, so that the bytes do not depend on it.
 */
#include <math.h>

#include "traces/gen_run.h"

#define KEEP 0.5                 /* how often a masked row stays near its confidence */
#define NEAR 0.1

static double power(double x, uint32_t n)
{
    double y = 1.0;
    while (n-- > 0)
        y *= x;
    return y;
}

/* Mean number of denoise passes until none of `block` rows is masked. */
static double passes(uint32_t block, double chance)
{
    double mean[MOESIM_GEN_MAX_BLOCK + 1] = { 0.0 };
    for (uint32_t m = 1; m <= block; m++) {
        double p = power(1.0 - chance, m);
        mean[m] = 1.0 + p * mean[m - 1];           /* none reaches the threshold: the best one commits */
        for (uint32_t j = 1; j <= m; j++) {
            p *= (double)(m - j + 1) / j * chance / (1.0 - chance);
            mean[m] += p * mean[m - j];
        }
    }
    return mean[block];
}

double moesim_gen_commit_chance(uint32_t block, double tokens_per_pass)
{
    double lo = 0.0, hi = 0.999;
    for (int i = 0; i < 50 && block > 1; i++) {
        const double chance = (lo + hi) / 2.0;
        if (block / (passes(block, chance) + 1.0) < tokens_per_pass)
            lo = chance;
        else
            hi = chance;
    }
    return block > 1 ? lo : 0.0;
}

static void fill(double mean, double full, uint32_t k, double *below)
{
    const uint32_t n = k - 1;
    const double rest = full < 1.0 ? (mean - full) / (1.0 - full) : 0.0;   /* mean share where not all are kept */
    double q = n > 0 ? rest * k / n : 0.0;
    q = q < 0.0 ? 0.0 : q > 0.9999 ? 0.9999 : q;
    double p = power(1.0 - q, n), share[64];       /* [kept] */
    for (uint32_t kept = 0; kept < k; kept++) {
        share[kept] = p * (1.0 - full);
        p *= (double)(n - kept) / (kept + 1) * q / (1.0 - q);
    }
    below[0] = full;
    for (uint32_t d = 1; d <= k; d++)
        below[d] = below[d - 1] + share[k - d];
    below[k] = 2.0;                                /* above any draw */
}

void moesim_gen_drops_fill(const moesim_gen_stability *stability, uint32_t top_k, moesim_gen_drops *out)
{
    for (uint32_t c = 0; c < MOESIM_GEN_CLASSES; c++)
        for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++)
            fill(stability->mean[c][b], stability->full[c][b], top_k, out->below[c][b]);
}

void moesim_gen_drops_like(const moesim_gen_like *like, uint32_t top_k, moesim_gen_drops *out)
{
    for (uint32_t c = 0; c < MOESIM_GEN_CLASSES; c++)
        for (uint32_t b = 0; b < MOESIM_GEN_BINS; b++) {
            double below = 0.0;
            for (uint32_t d = 0; d <= top_k; d++)
                out->below[c][b][d] = below += like->kept[c][b][top_k - d];
            out->below[c][b][top_k] = 2.0;
        }
}

void moesim_gen_block_begin(moesim_gen_block *block)
{
    for (uint32_t r = 0; r < block->rows; r++) {
        block->masked[r] = true;
        block->level[r] = UINT32_MAX;
    }
}

static uint32_t masked_level(const moesim_gen_block *block, uint32_t before, moesim_rng *rng)
{
    if (moesim_rng_real(rng) < block->chance)
        return block->threshold + moesim_gen_below(rng, MOESIM_GEN_UNIT - block->threshold);
    if (before == UINT32_MAX || moesim_rng_real(rng) >= KEEP)
        return moesim_gen_below(rng, block->threshold);
    const double x = before + (moesim_rng_real(rng) - 0.5) * 2.0 * NEAR * block->threshold;
    return x < 0.0 ? 0 : x >= block->threshold ? block->threshold - 1 : (uint32_t)x;
}

/* Committed rows: between 1/2 and 1, mostly high. */
static uint32_t held_level(moesim_rng *rng)
{
    const uint32_t a = moesim_gen_below(rng, MOESIM_GEN_UNIT / 2), b = moesim_gen_below(rng, MOESIM_GEN_UNIT / 2);
    return MOESIM_GEN_UNIT / 2 + (a > b ? a : b);
}

uint32_t moesim_gen_block_denoise(moesim_gen_block *block, moesim_rng *rng)
{
    uint32_t best = 0, commits = 0, left = 0;
    for (uint32_t r = 0; r < block->rows; r++) {
        block->level[r] = block->masked[r] ? masked_level(block, block->level[r], rng) : held_level(rng);
        if (block->masked[r] && (!block->masked[best] || block->level[r] > block->level[best]))
            best = r;
    }
    for (uint32_t r = 0; r < block->rows; r++)
        commits += block->masked[r] && block->level[r] >= block->threshold;
    for (uint32_t r = 0; r < block->rows; r++) {
        const bool now = block->level[r] >= block->threshold || (commits == 0 && r == best);
        block->state[r] = !block->masked[r] ? MOESIM_STATE_COMMITTED : now ? MOESIM_STATE_COMMITTED_NOW : MOESIM_STATE_MASKED;
        block->confidence[r] = (float)block->level[r] / (float)MOESIM_GEN_UNIT;
        left += block->state[r] == MOESIM_STATE_MASKED;
    }
    return left;
}

void moesim_gen_block_advance(moesim_gen_block *block)
{
    for (uint32_t r = 0; r < block->rows; r++) {
        block->masked[r] = block->state[r] == MOESIM_STATE_MASKED;
        block->state[r] = block->masked[r] ? MOESIM_STATE_MASKED : MOESIM_STATE_COMMITTED;
        block->confidence[r] = NAN;                /* the commit pass computes none */
    }
}
