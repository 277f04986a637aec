/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoder of a trace that is to be like another: commits by how much is masked, confidences by what becomes of the row.
 */
#include <math.h>

#include "traces/gen_like.h"
#include "traces/gen_run.h"

#define JITTER 0.05              /* of the rank of a confidence that stays */

/* Index of a draw from n weights below `limit`; u in [0, 1). */
static uint32_t draw(const double *weight, uint32_t n, double u)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += weight[i];
    uint32_t i = 0, last = 0;
    for (double left = u * sum; i < n; left -= weight[i++]) {
        if (weight[i] > 0.0)
            last = i;
        if (left < weight[i])
            break;
    }
    return last;
}

static uint32_t draw_shares(const uint64_t *count, uint32_t n, double u)
{
    double weight[MOESIM_GEN_CELLS + 1];                  /* more than rows of a block */
    for (uint32_t i = 0; i < n; i++)
        weight[i] = (double)count[i];
    return draw(weight, n, u);
}

static uint32_t draw_count(const uint64_t *count, uint32_t n, moesim_rng *rng)
{
    return draw_shares(count, n, moesim_rng_real(rng));
}

/* Lowest unit of a cell. */
static uint32_t unit_of(uint32_t cell)
{
    return (cell * MOESIM_GEN_UNIT + MOESIM_GEN_CELLS - 1) / MOESIM_GEN_CELLS;
}

static float confidence_in(uint32_t cell, moesim_rng *rng)
{
    if (cell >= MOESIM_GEN_CELLS)
        return NAN;
    const uint32_t from = unit_of(cell);
    return (float)(from + moesim_gen_below(rng, unit_of(cell + 1) - from)) / (float)MOESIM_GEN_UNIT;
}

void moesim_gen_like_begin(const moesim_gen_like *like, moesim_gen_block *block, moesim_rng *rng)
{
    const uint32_t masked = draw_count(like->seen.start, block->rows + 1, rng);
    for (uint32_t r = 0; r < block->rows; r++) {
        block->masked[r] = r >= block->rows - masked;
        block->rank[r] = moesim_rng_real(rng);
    }
}

/* How many of `masked` rows commit: as often as in passes with as many masked rows, or the nearest number that has such. */
static uint32_t draw_commits(const moesim_gen_like *like, uint32_t masked, moesim_rng *rng)
{
    const uint32_t block = like->seen.block;
    for (uint32_t d = 0; d <= block; d++)
        for (int side = 0; side < 2; side++) {
            const uint32_t m = side == 0 ? masked + d : masked - d;
            uint64_t commits = 0;
            for (uint32_t j = 1; m <= block && j <= m; j++)
                commits += like->seen.commits[m][j];
            if (commits > 0) {
                const uint32_t n = draw_count(like->seen.commits[m], m + 1, rng);
                return n < masked ? n : masked;
            }
        }
    return masked;
}

static void move_ranks(const moesim_gen_like *like, moesim_gen_block *block, moesim_rng *rng)
{
    for (uint32_t r = 0; r < block->rows; r++) {
        const double near = like->near[block->masked[r] ? MOESIM_GEN_MASKED : MOESIM_GEN_LONG];
        double x = block->rank[r] + (moesim_rng_real(rng) - 0.5) * 2.0 * JITTER;
        if (moesim_rng_real(rng) >= near)
            x = moesim_rng_real(rng);
        block->rank[r] = x < 0.0 ? -x : x >= 1.0 ? 2.0 - x - 1e-9 : x;
    }
}

/* The n masked rows of the highest ranks commit. */
static void choose_commits(moesim_gen_block *block, uint32_t n)
{
    for (uint32_t r = 0; r < block->rows; r++)
        block->state[r] = block->masked[r] ? MOESIM_STATE_MASKED : MOESIM_STATE_COMMITTED;
    while (n-- > 0) {
        uint32_t best = MOESIM_GEN_MAX_BLOCK;
        for (uint32_t r = 0; r < block->rows; r++)
            if (block->state[r] == MOESIM_STATE_MASKED &&
                (best == MOESIM_GEN_MAX_BLOCK || block->rank[r] > block->rank[best]))
                best = r;
        block->state[best] = MOESIM_STATE_COMMITTED_NOW;
    }
}

/* Confidences of the rows that commit. Returns the cell below which the other masked rows lie, and their highest in *most. */
static uint32_t commit_confidences(const moesim_gen_like *like, moesim_gen_block *block, uint32_t commits, float *most,
                                   moesim_rng *rng)
{
    const uint32_t threshold = like->ordered ? (uint32_t)ceil(like->seen.threshold * MOESIM_GEN_CELLS - 1e-6) : 0;
    const uint32_t from = commits > 1 && threshold < MOESIM_GEN_CELLS ? threshold : 0;   /* several reached the threshold */
    uint32_t until = MOESIM_GEN_CELLS + 1;
    *most = 1.0f;
    for (uint32_t r = 0; r < block->rows; r++) {
        if (block->state[r] != MOESIM_STATE_COMMITTED_NOW)
            continue;
        const double *weight = like->cell[MOESIM_GEN_JUST] + from;
        const uint32_t cell = from + draw(weight, MOESIM_GEN_CELLS + 1 - from, moesim_rng_real(rng));
        block->confidence[r] = confidence_in(cell, rng);
        if (cell < threshold) {                        /* the best one: the others lie below */
            until = cell + 1;
            *most = block->confidence[r];
        }
    }
    return until;
}

uint32_t moesim_gen_like_denoise(const moesim_gen_like *like, moesim_gen_block *block, moesim_rng *rng)
{
    uint32_t masked = 0;
    float most;
    for (uint32_t r = 0; r < block->rows; r++)
        masked += block->masked[r];
    const uint32_t n = masked > 0 ? draw_commits(like, masked, rng) : 0;
    move_ranks(like, block, rng);
    choose_commits(block, n);
    const uint32_t until = commit_confidences(like, block, n, &most, rng);
    for (uint32_t r = 0; r < block->rows; r++) {
        const bool held = block->state[r] == MOESIM_STATE_COMMITTED;
        if (block->state[r] == MOESIM_STATE_COMMITTED_NOW)
            continue;
        const uint32_t cell = draw(like->cell[held ? MOESIM_GEN_LONG : MOESIM_GEN_MASKED],
                                   held ? MOESIM_GEN_CELLS + 1 : until, block->rank[r]);
        block->confidence[r] = confidence_in(cell, rng);
        if (!held && block->confidence[r] > most)
            block->confidence[r] = most;
    }
    return masked - n;
}

void moesim_gen_like_commit(const moesim_gen_like *like, moesim_gen_block *block, moesim_rng *rng)
{
    move_ranks(like, block, rng);
    for (uint32_t r = 0; r < block->rows; r++)
        block->confidence[r] = confidence_in(draw_shares(like->seen.held, MOESIM_GEN_CELLS + 1, block->rank[r]), rng);
}
