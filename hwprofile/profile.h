/* SPDX-License-Identifier: Apache-2.0
 *
 * The hardware profile: what transfers and computation cost on one machine. A JSON file, hand-editable and versioned; each
 * constant carries unit, sample count, spread and fit residual. hwprofile/PROFILE.md is the format.
 * A profile is plain data after loading: const, shared by any number of threads.
 */
#ifndef MOESIM_HWPROFILE_PROFILE_H
#define MOESIM_HWPROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/digest.h"
#include "base/error.h"

#define MOESIM_TABLE_MAX 64u     /* most points of one axis of a table */

enum moesim_time_mode { MOESIM_TIME_COUNT = 0, MOESIM_TIME_PAPER = 1, MOESIM_TIME_MODEL = 2 };

/* One constant. SI units: s, B/s, B. n 0: not measured (derived or taken over). spread: coefficient of variation; residual:
 * relative fit residual; NaN where unknown. note: where it comes from, "" without. */
#define MOESIM_NOTE_CHARS 200u
typedef struct moesim_constant {
    double value;
    uint64_t n;
    double spread, residual;
    bool given;
    char note[MOESIM_NOTE_CHARS];
} moesim_constant;

/* CPU: seconds of one expert of `expert_bytes` by tokens; strictly ascending tokens. Linear between points, the first value
 * below them, by the last slope (0 if it falls) beyond the last one; scaled by bytes for other sizes (the time is a stream of
 * the weights from DRAM). points 0: no table. facts: n, spread (largest of any point), residual and note; value unused. */
typedef struct moesim_cpu_table {
    uint32_t points;
    double tokens[MOESIM_TABLE_MAX], seconds[MOESIM_TABLE_MAX];
    double expert_bytes;
    moesim_constant facts;
} moesim_cpu_table;

/* GPU: seconds of one grouped call by (experts, tokens per expert); bilinear, clamped below, last slope (0 if it falls) above,
 * tokens first; scaled by bytes. num_experts 0: no table. */
typedef struct moesim_gpu_table {
    uint32_t num_experts, num_tokens;
    double experts[MOESIM_TABLE_MAX], tokens[MOESIM_TABLE_MAX];
    double seconds[MOESIM_TABLE_MAX][MOESIM_TABLE_MAX];     /* [experts][tokens] */
    double expert_bytes;
    moesim_constant facts;
} moesim_gpu_table;

/* What the name of a profile is made of. */
#define MOESIM_PROFILE_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

typedef struct moesim_profile {
    char name[64];
    char label[32];              /* measured | provisional | derived | neutral | not measured */
    char description[512];
    char times_of[128];          /* model and machine that the constants of mode paper belong to; "" where not said */
    char raw_digest[MOESIM_DIGEST_CHARS];   /* of the file of raw samples that it was fitted to; "" without */
    char path[4096];             /* file, or "built-in NAME" */
    char digest[MOESIM_DIGEST_CHARS];   /* of the JSON text, overrides not included */
    char overrides[1024];        /* "link.bandwidth=64GB/s,…" as applied, "" without */
    uint32_t modes;              /* bit per enum moesim_time_mode */
    enum moesim_time_mode default_mode;    /* the first mode listed */

    moesim_constant link_alpha;              /* s per copy */
    moesim_constant link_bandwidth;          /* B/s, host to device, pinned */
    moesim_constant link_nominal_bandwidth;  /* B/s at which paper.t_h2d holds */
    moesim_constant return_alpha;            /* s, device to host and back (activations, CPU results) */
    moesim_constant return_bandwidth;        /* B/s */
    moesim_constant dram_bandwidth;          /* B/s that link and CPU share */
    moesim_constant cpu_step;                /* s once per event that uses the CPU */
    moesim_constant cpu_combine;             /* s to add CPU results to the layer's output */
    moesim_constant gpu_launch;              /* g0: s once per event with hits */
    moesim_constant gpu_arrival;             /* a: s from the end of a copy to the start of its expert; 0 where not given */
    moesim_constant gpu_moved;               /* c: s of GPU work that a copy (of gpu.table's size) adds; 0 where not given */
    moesim_constant other_gpu, other_host;   /* s per layer: attention, router, shared expert; host overhead */
    moesim_constant sync;                    /* s per layer: routing to the host, launch */
    moesim_constant head;                    /* s per pass: LM head and decoder */
    moesim_constant policy;                  /* s per layer: fixed policy cost */
    moesim_constant paper_t_h2d, paper_tau;  /* s per expert; s per token of a missed expert */
    moesim_constant paper_layer;             /* s per layer at full residency */
    moesim_cpu_table cpu;
    moesim_gpu_table gpu;
} moesim_profile;

/* `name`: a built-in profile (moesim_profile_names) or a file (a name with '/' or ending in .json). Unknown keys, missing,
 * negative, non-finite or contradictory constants, wrong units and tables that are too short or not ascending are errors that
 * name file, key and rule; tables whose seconds are not monotone are warned of. */
moesim_code moesim_profile_load(const char *name, moesim_profile *out, moesim_error *err);

/* The same from text in memory; `where` names it in messages and in out->path. Does not need a final zero. */
moesim_code moesim_profile_parse(const char *text, size_t bytes, const char *where, moesim_profile *out, moesim_error *err);

/* Is it a file that moesim_profile_load would read under this name? NULL is none. */
bool moesim_profile_is_file(const char *name);

/* NULL-ended; the first is the default of --profile. */
const char *const *moesim_profile_names(void);

/* One override "key=value[unit]", keys of moesim_profile_get_row: "link.bandwidth=64GB/s", "other.host=0", "cpu.step=12us".
 * Bare numbers: GB/s (10^9 bytes) for bandwidths, seconds for times. USAGE errors for unknown keys (the nearest is named), a
 * key given before, values and units that are none, and keys that no mode of the profile reads. Call moesim_profile_check
 * after the last one: two overrides may be right together only. */
moesim_code moesim_profile_set(moesim_profile *profile, const char *text, moesim_error *err);

/* "64", "64GB/s" or "64000 MB/s" to B/s, positive and finite; bare numbers are GB/s. USAGE errors begin with `what`. */
moesim_code moesim_profile_parse_bandwidth(const char *text, const char *what, double *out, moesim_error *err);

/* What the loader checks of the whole: nothing that a listed mode reads is missing, and nothing contradicts another
 * (FORMAT error): DRAM is no slower than the link or than what the CPU table streams. */
moesim_code moesim_profile_check(const moesim_profile *profile, moesim_error *err);

/* Writes it as a file that moesim_profile_load reads back bit for bit, overrides applied. The caller checks the stream. */
void moesim_profile_write(const moesim_profile *profile, FILE *out);

/* Row i of the constants (for `profile show` and result files), given or not; false past the end. unit: "s" or "B/s". */
typedef struct moesim_profile_row { const char *key, *unit, *help; const moesim_constant *constant; } moesim_profile_row;
bool moesim_profile_get_row(const moesim_profile *profile, size_t i, moesim_profile_row *out);

/* Interpolated tables, seconds; 0 for no tokens or no experts, or without a table. */
double moesim_profile_cpu_s(const moesim_profile *profile, double tokens, double expert_bytes);
double moesim_profile_gpu_s(const moesim_profile *profile, double experts, double tokens_per_expert, double expert_bytes);

#endif
