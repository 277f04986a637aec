/* SPDX-License-Identifier: Apache-2.0
 *
 * Generator of synthetic traces of block diffusion (and, with blocks of one token, autoregressive decoding) that meet stated
 * statistics. Sets of active experts are built to size and overlap, pass after pass; within them the rows keep as many experts
 * as the stability of their confidence says (OLED-MoE §3.3, Fig. 10b). Two knobs that nothing states directly, the return of
 * experts that left and the steadiness of the best ranks, are fitted by bisection on the statistics of a short pilot.
 * The same configuration gives the same bytes. Memory does not depend on the length of the trace.
 */
#ifndef MOESIM_TRACES_GEN_H
#define MOESIM_TRACES_GEN_H

#include "traces/stats.h"
#include "traces/writer.h"

#define MOESIM_GEN_MAX_BLOCK 64u
#define MOESIM_GEN_MAX_WORKLOADS 16u
#define MOESIM_GEN_FAR 5u                 /* lag of the far targets: blocks of 16 have about eight passes */

/* What a row is to the next pass: still masked, committed by this pass, committed earlier. */
enum moesim_gen_class { MOESIM_GEN_MASKED, MOESIM_GEN_JUST, MOESIM_GEN_LONG, MOESIM_GEN_CLASSES };

/* Stability (share of a row's K experts that the next pass keeps) by class and confidence bin: its mean, and the probability
 * that it is 1. In between, kept experts are binomial. */
typedef struct moesim_gen_stability {
    double mean[MOESIM_GEN_CLASSES][MOESIM_STATS_BINS], full[MOESIM_GEN_CLASSES][MOESIM_STATS_BINS];
} moesim_gen_stability;

struct moesim_gen_like;          /* traces/gen_like.h */

typedef struct moesim_gen_config {
    const char *name;            /* the trace's model_id is "synthetic/NAME" */
    uint32_t layers, experts, top_k, block;   /* E >= 2K; block 1: autoregressive */
    uint32_t first_layer;        /* number of the first MoE layer in the model */
    uint64_t expert_bytes, hidden_size, expert_intermediate_size;   /* the last two: 0 = not written */
    double active;               /* mean |A| over layers and decode passes; 0: a share of block · K */
    double profile;              /* layers rise from active·(1 − profile) to active·(1 + profile) */
    double overlap, overlap_far; /* |A_i ∩ A_{i+d}| / |A_{i+d}| at lags d = 1 and MOESIM_GEN_FAR of a block */
    double boundary;             /* the same from a block's last pass to the first of the next */
    double persistence_far;      /* share of a position's experts held MOESIM_GEN_FAR passes later */
    double tokens_per_pass;      /* committed tokens per decode pass, the commit pass included */
    double threshold;            /* confidence from which the decoder commits */
    moesim_gen_stability stability;
    uint32_t requests, prompt, output;   /* lengths are means; they vary by half to both sides */
    const char *workload[MOESIM_GEN_MAX_WORKLOADS];   /* requests take turns */
    uint32_t workloads;
    uint32_t share[MOESIM_GEN_MAX_WORKLOADS];         /* of the requests; all 0: equal */
    uint64_t seed;
    double comeback, steadiness; /* 0 to 1, fitted by moesim_gen_fit: return of experts that left A; how much rows give up their
                                  * lowest ranks rather than others, and take what they held earlier */
    struct moesim_gen_like *like;  /* tables of a trace in place of the targets above, but for boundary; NULL: none */
} moesim_gen_config;

/* Stability by confidence alone, the row of OLED-MoE Fig. 10b (means: .60 at the lowest and .81 at the highest bin, straight
 * between); and by state alone, as measured on a small trained block-diffusion model. */
void moesim_gen_stability_paper(moesim_gen_stability *out);
void moesim_gen_stability_state(moesim_gen_stability *out);

/* Names of presets, NULL-ended; fills *out with preset `index`. */
extern const char *const moesim_gen_presets[];
void moesim_gen_preset(int index, moesim_gen_config *out);

/* Completes (active) and checks; MOESIM_E_USAGE names the value and what it may be. */
moesim_code moesim_gen_check(moesim_gen_config *config, moesim_error *err);

/* Fits comeback and steadiness; config is checked. */
moesim_code moesim_gen_fit(moesim_gen_config *config, moesim_error *err);

/* Mean |A| that layer l aims at. */
double moesim_gen_layer_target(const moesim_gen_config *config, uint32_t layer);

/* Writes the trace; config is checked and fitted. */
moesim_code moesim_gen_write(const moesim_gen_config *config, const char *path, const moesim_writer_options *options,
                             moesim_error *err);

#endif
