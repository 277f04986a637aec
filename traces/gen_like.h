/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator after a given trace: what is measured on it, what is drawn again from that, and the two-sample check.
 * Where a preset states targets, this states tables: sizes of the active sets and what leaves them by how much of the block is
 * still masked, commits, confidences, and how many experts a row keeps by its class and confidence.
 */
#ifndef MOESIM_TRACES_GEN_LIKE_H
#define MOESIM_TRACES_GEN_LIKE_H

#include "base/rng.h"
#include "traces/gen.h"
#include "traces/stats_past.h"

#define MOESIM_GEN_CELLS 80u     /* of confidence, 8 to a bin of the statistics; one more: not known */
#define MOESIM_GEN_BINS (MOESIM_STATS_BINS + 1u)   /* the last: confidence not known */
#define MOESIM_GEN_GROUPS 32u    /* of blocks, for standard errors */

static inline uint32_t moesim_gen_cell_bin(uint32_t cell) { return cell / (MOESIM_GEN_CELLS / MOESIM_STATS_BINS); }

/* Sums for the correlation of a row's confidence with that in the pass before. */
typedef struct moesim_gen_pairs { double n, x, y, xx, yy, xy; } moesim_gen_pairs;

/* Of decode passes; "masked" counts rows whose input was masked. Zeroed, with the shape set, before the first pass. */
typedef struct moesim_gen_measure {
    uint32_t block, layers, top_k, words;
    double threshold;            /* NaN: not recorded */
    uint32_t *member;            /* [M][words · 64] passes in which A holds the expert; NULL: not counted */
    uint64_t kept[MOESIM_GEN_CLASSES][MOESIM_GEN_BINS][65];      /* rows × layers by how many experts the next pass keeps */
    uint64_t cell[MOESIM_GEN_CLASSES][MOESIM_GEN_CELLS + 1];     /* rows of denoise passes by confidence */
    uint64_t commits[MOESIM_GEN_MAX_BLOCK + 1][MOESIM_GEN_MAX_BLOCK + 1];   /* denoise passes by masked, committed */
    uint64_t start[MOESIM_GEN_MAX_BLOCK + 1];                    /* blocks by masked in their first pass */
    moesim_mean size[MOESIM_GEN_MAX_BLOCK + 1];                  /* |A| by masked */
    moesim_mean leave[MOESIM_GEN_MAX_BLOCK + 1];                 /* share of A that the next pass lacks, by masked */
    moesim_gen_pairs pairs[MOESIM_GEN_CLASSES];                  /* by class in the pass before */
    uint64_t held[MOESIM_GEN_CELLS + 1];   /* rows of commit passes by confidence */
    uint64_t blocks, commit_passes;
    uint64_t idle;               /* denoise passes without masked rows */
    uint64_t edited, unrouted;   /* rows */
    uint64_t odd;                /* passes with another number of rows than the block's */
    uint64_t unordered;          /* passes that commit otherwise than from the threshold up, or the best row alone */
} moesim_gen_measure;

/* One decode pass, as statistics see it. */
void moesim_gen_measure_pass(void *cookie, const moesim_pass *pass, moesim_open_request *request);

typedef struct moesim_gen_like {
    moesim_trace_info info;      /* of the trace that this one is like, with its digest */
    moesim_text workload[MOESIM_GEN_MAX_WORKLOADS];
    int32_t *layer_id;           /* [M] this and the next two lie in one piece of memory that layer begins */
    uint64_t *expert_bytes;      /* [M] */
    double *layer;               /* [M] |A| over its mean */
    moesim_gen_measure seen;     /* of the trace */
    double size[MOESIM_GEN_MAX_BLOCK + 1], leave[MOESIM_GEN_MAX_BLOCK + 1];
    double cell[MOESIM_GEN_CLASSES][MOESIM_GEN_CELLS + 1];       /* weights */
    double kept[MOESIM_GEN_CLASSES][MOESIM_GEN_BINS][65];        /* probabilities */
    double near[MOESIM_GEN_CLASSES];       /* how often a row's confidence stays near its last one */
    double steady[MOESIM_GEN_CLASSES];     /* steadiness by class */
    double again[MOESIM_GEN_CLASSES];      /* how often a row gives up as many experts as before */
    double forget;               /* how often a row just committed does not come back to what it held as a masked one */
    double expire;               /* how often experts that leave from masked rows alone do not come back in their block */
    double idle, commit;         /* chances of one more pass without masks, and of a commit pass */
    bool ordered, prefill;
} moesim_gen_like;

/* ---- fitting (gen_like.c, gen_adjust.c) ---- */

/* Measures the trace and fills *config (whose `like` is allocated; release with moesim_gen_like_destroy) and stats [GROUPS]
 * (release each). What cannot be generated is MOESIM_E_USAGE with what it is. */
moesim_code moesim_gen_like_measure(moesim_trace *trace, moesim_gen_config *config, moesim_trace_stats *stats,
                                    moesim_error *err);
void moesim_gen_like_destroy(moesim_gen_config *config);

/* Fits comeback, and of the tables size, leave, cell, kept, steady, again, forget and expire, by repeated pilots; config is
 * checked. */
moesim_code moesim_gen_like_fit(moesim_gen_config *config, const moesim_trace_stats *stats, moesim_error *err);

/* ---- two-sample check (gen_compare.c) ---- */

enum moesim_gen_verdict { MOESIM_GEN_ALIKE, MOESIM_GEN_APART, MOESIM_GEN_FEW };   /* FEW: too few samples to tell */
extern const char *const moesim_gen_verdicts[];

typedef struct moesim_gen_line {
    char what[64];
    double trace, generated, tolerance;
    enum moesim_gen_verdict verdict;
} moesim_gen_line;

/* Compares all statistics of two traces of one shape, given in groups of blocks (GROUPS each). A difference is APART if
 * it is beyond a margin by more than two of its standard errors (delete-a-group jackknife over blocks); where both together are
 * more than four margins they tell nothing, and the verdict is FEW. Statistics without samples on both sides give no
 * line; on one side alone they are FEW.
 * Returns how many are APART. */
uint32_t moesim_gen_compare(const moesim_trace_stats *trace, const moesim_trace_stats *generated,
                            void (*line)(void *cookie, const moesim_gen_line *line), void *cookie);

#endif
