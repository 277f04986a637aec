/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports on what was executed: `moesim replay` (one cell) and `moesim fidelity` (a grid). From raw replay files and the
 * trace: the same decisions are made again, priced, and held against the measured times. fidelity_load.c makes a set out of
 * files, fidelity_table.c and fidelity_forms.c print it.
 */
#ifndef MOESIM_CLI_FIDELITY_H
#define MOESIM_CLI_FIDELITY_H

#include <stdio.h>

#include "base/args.h"
#include "hwprofile/profile.h"
#include "sim/replay_file.h"
#include "study/calibrate.h"
#include "study/fidelity.h"
#include "traces/trace.h"

#define MOESIM_MOST_RAW 64u

/* What the report is told; NULL or -1: not given. */
typedef struct moesim_fidelity_words {
    const char *trace;           /* NULL: the one that the raw file names */
    moesim_list raw;             /* parts of one grid, one path each */
    const char *witness;         /* a raw file of the same decisions, executed by another program */
    const char *profile;         /* NULL: what the raw file's policies were told, else the default */
    bool warned;                 /* moesim-device has just read the profile, and warned of it */
    const char *told;            /* what they were told; NULL: found by its digest */
    moesim_list set;
    const char *calibrate;       /* "none", "POLICY:CACHE"; NULL: lru, or the first policy, at the second capacity */
    const char *decisions;       /* a decision log that was executed, in place of a policy's name */
    uint64_t seed;
} moesim_fidelity_words;

/* What one plan of the raw file decided, again. */
typedef struct moesim_replayed {
    moesim_works works;
    char digest[MOESIM_DIGEST_CHARS];
} moesim_replayed;

/* Executions of one plan on one link. All arrays are owned; `cell` points into them. */
typedef struct moesim_executed {
    size_t plan;                 /* of the file */
    double cap;
    uint32_t mode;
    uint32_t repeats;
    const uint32_t **measured, **busy;   /* [repeats] into the file */
    moesim_prediction prediction[MOESIM_VARIANTS];
    uint16_t *misses;
} moesim_executed;

/* One raw file (or grid of parts) with its report. */
typedef struct moesim_fidelity_set {
    moesim_replay_file file;
    moesim_replayed *replayed;   /* [file.num_plans] */
    size_t num_cells;
    moesim_executed *executed;   /* [num_cells] */
    moesim_fidelity_cell *cell;  /* [num_cells] */
    moesim_fidelity_pass *pass;
    double *tokens;
    uint32_t num_requests;
    moesim_fidelity_input input;
    moesim_fidelity result;
} moesim_fidelity_set;

typedef struct moesim_fidelity_report {
    const moesim_fidelity_words *words;
    moesim_trace *trace;
    const moesim_trace_info *info;
    moesim_profile *profile, *told;      /* as given with --set; what policies that read costs were told, or NULL */
    moesim_profile *fitted;              /* with the calibration; equals `profile` without one */
    uint64_t *expert_bytes;
    bool calibrated;
    moesim_calibration calibration;
    char calibrated_on[512];             /* "lru at 40" */
    moesim_fidelity_set main, witness;   /* witness.num_cells 0: none */
} moesim_fidelity_report;

/* Reads files and trace, decides again, calibrates, predicts and compares. USAGE: another trace, a calibration cell that does
 * not exist, parts of different grids. Release with fini, also after an error. */
moesim_code moesim_fidelity_load(const moesim_fidelity_words *words, moesim_fidelity_report *out, moesim_error *err);
void moesim_fidelity_report_fini(moesim_fidelity_report *report);

/* One raw file after another: parts of one grid become one. */
moesim_code moesim_fidelity_read(const moesim_list *paths, moesim_replay_file *out, moesim_error *err);

/* One profile with mode model, as --set changes it (NULL: as it is); freed by the caller, also after an error. option: for
 * messages. quiet: its warnings are said elsewhere. */
moesim_code moesim_fidelity_profile(const char *option, const char *name, const moesim_list *set, bool quiet,
                                    moesim_profile **out, moesim_error *err);

/* "lru:40" to the length of the policy's name and the capacity. USAGE: something else. */
moesim_code moesim_fidelity_calibrate_words(const char *text, size_t *chars, uint64_t *cache, moesim_error *err);

/* Loads what policies were told and what predicts. USAGE: no profile is at hand that has the digest of what was told. */
moesim_code moesim_fidelity_profiles(moesim_fidelity_report *report, moesim_error *err);

/* Makes the decisions of every plan of the file again. */
moesim_code moesim_fidelity_decide(moesim_fidelity_report *report, moesim_fidelity_set *set, moesim_error *err);

/* Cells, calibration, predictions, figures. The set's decisions must have been made. */
moesim_code moesim_fidelity_compare(moesim_fidelity_report *report, moesim_fidelity_set *set, bool calibrate,
                                    moesim_error *err);

static inline const moesim_replay_plan *moesim_executed_plan(const moesim_fidelity_set *set, size_t cell)
{
    return &set->file.plan[set->executed[cell].plan];
}

/* The printed forms. */
void moesim_replay_print_table(const moesim_fidelity_report *report, FILE *out);
void moesim_fidelity_print_table(const moesim_fidelity_report *report, FILE *out);
void moesim_fidelity_print_markdown(const moesim_fidelity_report *report, FILE *out);
void moesim_fidelity_print_csv(const moesim_fidelity_report *report, FILE *out);
moesim_code moesim_fidelity_write(const moesim_fidelity_report *report, const char *path, moesim_error *err);
moesim_code moesim_fidelity_print_json(const moesim_fidelity_report *report, FILE *out, moesim_error *err);

#endif
