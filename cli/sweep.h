/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim sweep` inside. The grid is cut into parts: one trace, batch size, profile and dtype each, run in one pass for all of
 * their cells (policy × capacity × bandwidth). A part becomes a result of its own; finished parts are merged and kept in a
 * partial file, so that a sweep that was killed goes on there. What is printed is made from the final result alone.
 */
#ifndef MOESIM_CLI_SWEEP_H
#define MOESIM_CLI_SWEEP_H

#include <stdint.h>
#include <stdio.h>

#include "base/args.h"
#include "base/digest.h"
#include "cli/modes.h"
#include "cli/pricing.h"
#include "policies/registry.h"
#include "sim/grid.h"
#include "sim/result.h"

#define MOESIM_SWEEP_TRACES 64u
#define MOESIM_SWEEP_POLICIES 256u
#define MOESIM_SWEEP_VALUES 256u     /* bandwidths; batch sizes */
#define MOESIM_NEAR 1.05             /* "within 5 % of full residency" */

#define MOESIM_UNSET UINT64_MAX      /* a number that was not given */

typedef struct moesim_sweep_options {
    moesim_modes modes;
    moesim_list trace, policy, cache, bandwidth, batch, profile, dtype;
    moesim_pricing_words pricing;    /* its profile and dtype are those of the part */
    moesim_range requests;
    uint64_t warmup, staging, prefetch_budget, seed, gpu_memory, context, workspace;
    bool curve;
    /* what does not change the result */
    uint64_t threads, window, checkpoint;
    const char *output, *csv, *from, *shard;
    int format;
    bool allow_large, old_format;
    const char *expected;        /* configuration that must come out, with --from; else NULL */
} moesim_sweep_options;

typedef struct moesim_sweep_trace {
    const char *path;
    moesim_trace *trace;
    const moesim_trace_info *info;
    char digest[MOESIM_DIGEST_CHARS];
    uint64_t request_begin, request_end;
} moesim_sweep_trace;

typedef struct moesim_sweep_part {
    const moesim_sweep_trace *trace;
    uint32_t batch;
    const char *profile;         /* as given; NULL: the default */
    int dtype;                   /* -1: not given */
    moesim_pricing pricing;
    moesim_cachelist cache;      /* slots per layer; bytes in scope global */
    char *memory;                /* the subtraction that led to the slots, owned; NULL without --gpu-memory */
    size_t first, cells;         /* in the whole grid */
    size_t first_group;          /* in the whole grid */
} moesim_sweep_part;

typedef struct moesim_sweep {
    const moesim_sweep_options *options;
    moesim_sweep_trace trace[MOESIM_SWEEP_TRACES];
    size_t num_traces;
    moesim_policy_spec policy[MOESIM_SWEEP_POLICIES + 1];
    size_t num_policies;         /* as asked for */
    bool floor;                  /* policy[num_policies] is `full`, added for the floor, once per bandwidth */
    double bandwidth[MOESIM_SWEEP_VALUES];
    size_t num_bandwidths;       /* at least 1; 0 B/s: the profile's */
    uint32_t batch[MOESIM_SWEEP_VALUES];
    size_t num_batches;
    moesim_list profile, dtype;  /* one word each, at least one; NULL: not given */
    char *profile_text, *dtype_text;
    moesim_sweep_part *part;
    size_t num_parts, num_cells, num_groups;
    uint64_t shard, shards;      /* 1 of 1: all */
    char *config;                /* canonical JSON, owned */
} moesim_sweep;

/* Cell j of a part. Cells of one group differ in bandwidth alone and lie together. */
typedef struct moesim_sweep_cell {
    const moesim_policy_spec *policy;
    uint64_t cache;
    double bandwidth;
    size_t group;                /* in the part */
} moesim_sweep_cell;
moesim_sweep_cell moesim_sweep_cell_at(const moesim_sweep *s, const moesim_sweep_part *part, size_t j);

/* Whether the group of cell j belongs to this shard. */
bool moesim_sweep_mine(const moesim_sweep *s, const moesim_sweep_part *part, size_t j);

/* sweep_plan.c: opens the traces, checks every word, lays out parts and cells, makes the configuration. */
moesim_code moesim_sweep_plan(moesim_sweep *s, moesim_error *err);

/* Nothing that is read may be written over, and nothing is begun that could not be written at the end. */
moesim_code moesim_sweep_check_files(const moesim_sweep *s, moesim_error *err);
void moesim_sweep_fini(moesim_sweep *s);

/* sweep_config.c: the configuration as JSON (malloc'd), and the options of a configuration that a result holds. The texts of
 * *out live as long as *keep, which the caller releases with json_decref. */
char *moesim_sweep_config(const moesim_sweep *s);
moesim_code moesim_sweep_from(const moesim_result *result, const char *path, moesim_sweep_options *out, json_t **keep,
                              moesim_error *err);
/* The attributes of every result of this sweep. */
moesim_code moesim_sweep_attributes(const moesim_sweep *s, moesim_result *r, moesim_error *err);

/* sweep_memory.c: slots per layer from --gpu-memory, with the subtraction as text. LIMIT: not one slot. */
moesim_code moesim_sweep_slots(const moesim_sweep_options *o, moesim_sweep_part *part, moesim_error *err);
/* How large the grid is; refuses absurd ones (LIMIT) unless --allow-large, and says the size of large ones. */
moesim_code moesim_sweep_size(const moesim_sweep *s, moesim_error *err);

/* How a part is replayed. */
moesim_run_params moesim_sweep_params(const moesim_sweep *s, const moesim_sweep_part *part);

/* sweep_run.c: runs what is not yet done. *out is the whole (of this shard); write: into options->output. */
moesim_code moesim_sweep_run(moesim_sweep *s, moesim_result *out, moesim_error *err);

/* sweep_result.c: tables of one part. cell[n], result[n] as run, index[n] in the part. */
moesim_code moesim_sweep_tables(const moesim_sweep *s, const moesim_sweep_part *part, const size_t *index,
                                const moesim_cell_result *result, size_t n, moesim_result *out, moesim_error *err);

/* sweep_bound.c: with --bound, adds what bounds them to the table of these cells. */
#define MOESIM_TPOT_BOUND "tpot_bound_ms"
moesim_code moesim_sweep_bound(const moesim_sweep *s, const moesim_sweep_part *part, const size_t *index,
                               const moesim_cell_result *result, size_t n, moesim_table *cells, moesim_error *err);

/* sweep_figures.c: adds the figures of these cells and their intervals; global: there are no slots. */
moesim_code moesim_sweep_figures(const moesim_sweep *s, const moesim_cell_result *result, size_t n, bool timed, bool global,
                                 moesim_table *cells, moesim_error *err);

/* sweep_find.c: what the cells say. */
typedef struct moesim_best {         /* of one part, capacity and bandwidth */
    size_t row, equal[4];            /* rows of /cells; equal: not distinguishable from the best */
    size_t num_equal, more;          /* more: further ones */
} moesim_best;

typedef struct moesim_knee {         /* of one part, policy and bandwidth, over capacities */
    size_t row;                      /* any cell of the curve */
    int64_t cache;                   /* -1: none of those swept */
    double tpot;                     /* there; NaN in count mode */
} moesim_knee;

typedef struct moesim_break_even {   /* of one part, policy and capacity, over bandwidths */
    size_t row;
    double gbps;                     /* NaN: above the largest */
    bool below;                      /* already at the smallest, gbps */
} moesim_break_even;

typedef struct moesim_findings {
    bool timed;
    size_t num_best, num_knees, num_breaks, num_floors;
    moesim_best *best;
    moesim_knee *knee;
    moesim_break_even *even;
    size_t *floor;                   /* rows of policy full, one per part and bandwidth */
} moesim_findings;

moesim_code moesim_sweep_find(const moesim_result *r, uint64_t seed, uint64_t threads, moesim_findings *out,
                              moesim_error *err);
void moesim_findings_fini(moesim_findings *f);

/* sweep_forms.c: table /cells, and the value of a column; NaN, 0 or "" where there is no such column. */
const moesim_table *moesim_sweep_cells(const moesim_result *r);
double moesim_cell_real(const moesim_table *t, const char *name, size_t row);
int64_t moesim_cell_whole(const moesim_table *t, const char *name, size_t row);
const char *moesim_cell_text(const moesim_table *t, const char *name, size_t row);

/* The printed forms; columns of CSV are keys of JSON. */
void moesim_sweep_table(const moesim_sweep *s, const moesim_result *r, const moesim_findings *f, FILE *out);
void moesim_sweep_csv(const moesim_result *r, FILE *out);
moesim_code moesim_sweep_json(const moesim_sweep *s, const moesim_result *r, const moesim_findings *f, FILE *out,
                              moesim_error *err);

#endif
