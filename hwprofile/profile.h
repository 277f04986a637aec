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

#include "base/digest.h"
#include "base/error.h"

#define MOESIM_TABLE_MAX 64u     /* most points of one axis of a table */

enum moesim_time_mode { MOESIM_TIME_COUNT = 0, MOESIM_TIME_PAPER = 1, MOESIM_TIME_MODEL = 2 };

/* One constant. SI units: s, B/s, B. n 0: not measured (derived or taken over). spread: coefficient of variation; residual:
 * relative fit residual; NaN where unknown. */
typedef struct moesim_constant {
    double value;
    uint64_t n;
    double spread, residual;
    bool given;
} moesim_constant;

/* CPU: seconds of one expert of `expert_bytes` by tokens; strictly ascending tokens. Linear between points, by the last
 * slope beyond the last one; scaled by bytes for other sizes (the time is a stream of the weights from DRAM). */
typedef struct moesim_cpu_table {
    uint32_t points;
    double tokens[MOESIM_TABLE_MAX], seconds[MOESIM_TABLE_MAX];
    double expert_bytes;
} moesim_cpu_table;

/* GPU: seconds of one grouped call by (experts, tokens per expert); bilinear, clamped below, last slope above; scaled by
 * bytes. */
typedef struct moesim_gpu_table {
    uint32_t num_experts, num_tokens;
    double experts[MOESIM_TABLE_MAX], tokens[MOESIM_TABLE_MAX];
    double seconds[MOESIM_TABLE_MAX][MOESIM_TABLE_MAX];     /* [experts][tokens] */
    double expert_bytes;
} moesim_gpu_table;

typedef struct moesim_profile {
    char name[64];
    char label[32];              /* measured | provisional | derived | neutral */
    char description[512];
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

/* NULL-ended. */
const char *const *moesim_profile_names(void);

/* One override "key=value[unit]", keys as printed by moesim_profile_print: "link.bandwidth=64GB/s", "other.host=0",
 * "cpu.step=12us". Bare numbers: GB/s (10^9 bytes) for bandwidths, seconds for times. */
moesim_code moesim_profile_set(moesim_profile *profile, const char *text, moesim_error *err);

/* Row i of the constants (for `profile show` and result files); false past the end. */
typedef struct moesim_profile_row { const char *key, *unit, *help; const moesim_constant *constant; } moesim_profile_row;
bool moesim_profile_get_row(const moesim_profile *profile, size_t i, moesim_profile_row *out);

double moesim_profile_cpu_s(const moesim_profile *profile, double tokens, double expert_bytes);
double moesim_profile_gpu_s(const moesim_profile *profile, double experts, double tokens_per_expert, double expert_bytes);

#endif
