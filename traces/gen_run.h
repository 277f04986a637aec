/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoder of the generator: requests, passes, states, confidences. Internal to traces/gen*.c.
 */
#ifndef MOESIM_TRACES_GEN_RUN_H
#define MOESIM_TRACES_GEN_RUN_H

#include "traces/gen_layer.h"
#include "traces/gen_like.h"

/* Where passes go, in order; rows continues the last pass. */
typedef struct moesim_gen_sink {
    moesim_code (*request)(void *cookie, const moesim_trace_request *request, moesim_error *err);
    moesim_code (*pass)(void *cookie, const moesim_pass *pass, const moesim_rows *rows, moesim_error *err);
    moesim_code (*rows)(void *cookie, const moesim_rows *rows, moesim_error *err);
    void *cookie;
} moesim_gen_sink;

moesim_code moesim_gen_run(const moesim_gen_config *config, const moesim_gen_sink *sink, moesim_error *err);

/* ---- the decoder's chances (gen_chance.c) ---- */

/* Chance with which a masked row reaches the threshold, so that blocks of `block` rows, of which at least one commits in each
 * pass, commit tokens_per_pass on average (the commit pass included). */
double moesim_gen_commit_chance(uint32_t block, double tokens_per_pass);

/* below[class][bin][d]: chance that a row gives up at most d of its K experts. */
typedef struct moesim_gen_drops { double below[MOESIM_GEN_CLASSES][MOESIM_GEN_BINS][65]; } moesim_gen_drops;
void moesim_gen_drops_fill(const moesim_gen_stability *stability, uint32_t top_k, moesim_gen_drops *out);

/* The same for the distributions of a trace. */
void moesim_gen_drops_like(const moesim_gen_like *like, uint32_t top_k, moesim_gen_drops *out);

#define MOESIM_GEN_UNIT 2048u    /* confidences are multiples of 1/UNIT, which half precision holds exactly */

/* A block of rows as the decoder sees it. */
typedef struct moesim_gen_block {
    uint32_t rows, threshold;              /* threshold and level: in units */
    double chance;
    bool masked[MOESIM_GEN_MAX_BLOCK];     /* the input of the pass */
    double rank[MOESIM_GEN_MAX_BLOCK];     /* of the confidence among those of its class, like a trace */
    uint32_t level[MOESIM_GEN_MAX_BLOCK];
    uint8_t state[MOESIM_GEN_MAX_BLOCK];
    float confidence[MOESIM_GEN_MAX_BLOCK];
} moesim_gen_block;

void moesim_gen_block_begin(moesim_gen_block *block);

/* Confidences and states of one denoise pass; returns how many rows are still masked after it. */
uint32_t moesim_gen_block_denoise(moesim_gen_block *block, moesim_rng *rng);

/* The rows become input of the next pass. */
void moesim_gen_block_advance(moesim_gen_block *block);

/* The same like a trace (gen_like_block.c); the last gives a commit pass its confidences. */
void moesim_gen_like_begin(const moesim_gen_like *like, moesim_gen_block *block, moesim_rng *rng);
uint32_t moesim_gen_like_denoise(const moesim_gen_like *like, moesim_gen_block *block, moesim_rng *rng);
void moesim_gen_like_commit(const moesim_gen_like *like, moesim_gen_block *block, moesim_rng *rng);

/* Generates without a file and computes overlaps, persistence and stability; measure is filled where it is not NULL, with the
 * shape of config. */
moesim_code moesim_gen_fly(const moesim_gen_config *config, moesim_trace_stats *stats, moesim_gen_measure *measure,
                           moesim_error *err);

#endif
