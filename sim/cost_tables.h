/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of a costing, for the executors alone: effects are applied, tables are evaluated for every number of tokens of a
 * decode event, so that the hot path looks up and adds. All times are seconds. Tables equal moesim_profile_cpu_s and
 * moesim_profile_gpu_s (moved_s: and gpu.moved) bit for bit; sums over hits up to rounding.
 */
#ifndef MOESIM_SIM_COST_TABLES_H
#define MOESIM_SIM_COST_TABLES_H

#include "sim/costing.h"

#define MOESIM_MOST_EXPERTS 1024u    /* of one layer, as moesim/policy.h says */

/* Experts of one size. */
typedef struct moesim_cost_size {
    uint64_t bytes;
    double stream_s;             /* bytes / β: the part of a copy that streams from DRAM */
    double copy_s;               /* α + bytes / β */
    double gpu_scale, cpu_scale; /* bytes / bytes of the table */
} moesim_cost_size;

/* Tables of a profile by whole tokens, for experts of their own bytes. No costing of the profile changes them. */
typedef struct moesim_cost_rows {
    uint32_t max_tokens;
    double *moved_s;             /* [max_tokens + 1] g(1, n) + c */
    double *cpu_s;               /* [max_tokens + 1] t(n) */
    double (*grouped_s)[2];      /* [num_experts of the table − 1][max_tokens + 1] two rows by tokens; NULL without a table */
    bool rising;                 /* nowhere is the last row below the one before, so that it is continued by its slope */
    uint32_t *segment;           /* [MOST_EXPERTS + 1] of the experts axis, and where in it */
    double *at;
} moesim_cost_rows;

/* *out is set, to be destroyed, after an error too. */
moesim_code moesim_cost_rows_create(const moesim_profile *profile, uint32_t max_rows, moesim_cost_rows **out,
                                    moesim_error *err);
void moesim_cost_rows_destroy(moesim_cost_rows *rows);       /* NULL allowed */

struct moesim_costing {
    enum moesim_time_mode mode;
    const moesim_profile *profile;
    double bandwidth;
    uint32_t num_layers, max_rows, staging, num_sizes;
    bool overlap, owns_rows;
    double dram;                 /* B/s; infinite: not shared */
    double alpha;
    double other_gpu, other_host, sync, policy, head;
    double launch, arrival, moved, step, combine, return_alpha, return_bandwidth, hidden_bytes;
    double paper_copy, paper_tau, paper_layer;
    moesim_cost_size *size;      /* [num_sizes] */
    const moesim_cost_size **layer;  /* [M] */
    double *stream_s;            /* [M] of one copy (paper: all of it) */
    double *h2d_s, *cpu_view;    /* [M], [max_rows + 1] */
    moesim_cost_rows *rows;      /* NULL in paper and count mode; of another costing where not owned */
    moesim_costs view;
};

/* Bilinear g(experts, tokens): tokens first, then experts, 1 ≤ experts ≤ MOST_EXPERTS. */
double moesim_cost_grouped(const moesim_costing *c, const moesim_cost_size *size, uint32_t experts, double tokens);

/* One moved expert after its arrival, with what its copy took from computing. */
static inline double moesim_cost_moved(const moesim_costing *c, const moesim_cost_size *size, uint32_t tokens)
{
    const moesim_cost_rows *r = c->rows;
    return tokens <= r->max_tokens ? r->moved_s[tokens] * size->gpu_scale
                                   : moesim_cost_grouped(c, size, 1, tokens) + c->moved * size->gpu_scale;
}

/* One expert on the CPU. */
static inline double moesim_cost_cpu(const moesim_costing *c, const moesim_cost_size *size, uint32_t tokens)
{
    const moesim_cost_rows *r = c->rows;
    return tokens <= r->max_tokens ? r->cpu_s[tokens] * size->cpu_scale
                                   : moesim_profile_cpu_s(c->profile, tokens, (double)size->bytes);
}

/* max(1, (β + bytes / t(n)) / B): how much longer link and CPU take while both stream. */
double moesim_cost_stretch(const moesim_costing *c, const moesim_cost_size *size, uint32_t tokens);

/* All hits of an event as one grouped call: g0 and the mean of g(n_hits, n) over the tokens of each (sim/TIMING.md §3). */
double moesim_cost_hits(const moesim_costing *c, const moesim_cost_size *size, uint32_t n_hits, const uint32_t *tokens);

/* Activations to the host, or CPU results back. */
static inline double moesim_cost_return(const moesim_costing *c, uint32_t rows)
{
    return c->return_alpha + rows * c->hidden_bytes / c->return_bandwidth;
}

#endif
