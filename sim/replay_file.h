/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw replay files, `moesim-replay/1`: what `moesim-device replay` and `fidelity` measured, event by event. A result file
 * (sim/RESULT.md) of kind "replay" with tables of its own, so that h5py reads it and the same guards protect it;
 * replay/REPLAY.md is the format. A file is always written whole under a temporary name and renamed: at any moment the path
 * holds a valid file with every cell finished so far, or the one before. Only finished cells are ever stored.
 * One file belongs to one thread at a time.
 */
#ifndef MOESIM_SIM_REPLAY_FILE_H
#define MOESIM_SIM_REPLAY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

#define MOESIM_REPLAY_KIND "replay"
#define MOESIM_REPLAY_RAW "moesim-replay/1"
#define MOESIM_REPLAY_CELLS 65536u
#define MOESIM_REPLAY_ERROR 2e-2     /* no program that writes these files goes on after a larger relative error of an output */

enum moesim_replay_mode { MOESIM_REPLAY_LOCKED = 0, MOESIM_REPLAY_LIVE = 1 };

/* Everything that makes two files parts of one grid: all fields must agree but for trace and profile (paths),
 * cpus, moesim_version and planned_cells. Texts are owned, never NULL in a file that was read. */
typedef struct moesim_replay_config {
    char *trace, *trace_digest, *model_id;
    char *priced_as;             /* geometry of --as; "" for sizes given otherwise */
    char *device, *machine;      /* backend: "cuda", "host", "null"; name of the GPU, else of the CPU */
    char *isa, *cpus;            /* of the CPU experts, in force */
    char *profile, *profile_digest;      /* what policies that read costs were told; "" where none does */
    char *moesim_version;
    uint64_t num_layers, num_experts, top_k, hidden, intermediate;
    uint64_t request_begin, request_end, warmup, batch;
    uint64_t seed, staging, max_rows;
    uint64_t slots, pool;        /* experts in device memory (staging not included) and in the host's pool */
    uint64_t other, context;     /* 1: attention, router and shared experts were executed */
    uint64_t threads;            /* of the CPU experts */
    uint64_t pinned;             /* 0: pageable memory was allowed and used; times are not those of a real system */
    uint64_t planned_cells;      /* of the whole grid; fewer in the file: partial */
} moesim_replay_config;

/* What one policy at one capacity decided; [num_events] each, in the order of execution, the same for all of its cells. */
typedef struct moesim_replay_plan {
    char *policy, *options;      /* as given on the command line; all options in force */
    uint64_t cache;              /* slots per layer; the number of experts for full residency */
    double bandwidth;            /* B/s of the link that a policy which reads costs was told (0: the profile's); 0 for others */
    char decisions[MOESIM_DIGEST_CHARS];   /* digest of the decision log */
    bool full;                   /* full residency: nothing is moved or computed on the CPU */
    bool aliased;                /* fewer slots than residents: several experts read one slot (full residency alone) */
    uint64_t num_events;
    uint64_t *pass;              /* as in the decision log */
    uint32_t *layer, *rows;      /* rows of the event */
    uint8_t *counted;
    uint32_t *hits, *moved, *cpu;          /* |A∩R|, copied, computed on the CPU */
} moesim_replay_plan;

/* One execution of one plan at one bandwidth cap. Times are nanoseconds, [num_events of the plan] each. */
typedef struct moesim_replay_cell {
    uint32_t plan;               /* index into plan */
    uint32_t repeat;             /* from 0 */
    uint32_t order;              /* place in the order of execution of the whole grid, from 0 */
    uint32_t mode;               /* enum moesim_replay_mode */
    uint32_t session;            /* index into session: the machine, and the process that measured */
    double bandwidth_cap;        /* B/s; 0: none */
    char executed[MOESIM_DIGEST_CHARS];    /* digest of the decisions that were executed; equals the plan's */
    uint64_t verified;           /* experts whose outputs were held against the double-precision reference */
    double worst_error;          /* largest relative error (normwise) among them */
    uint32_t *ns;                /* from this event's gate to the next gate, or to the end of the pass */
    uint32_t *lead;              /* first event of a pass: from the end of the pass before to its gate; else 0 */
    uint32_t *link, *gpu, *busy_cpu;       /* busy times of the servers, as the device tells them */
    uint64_t *bytes;             /* over the link, a cap's further bytes not counted */
} moesim_replay_cell;

/* Facts of the device, "key\tvalue\n" a line. */
typedef struct moesim_replay_session { char *facts; } moesim_replay_session;

typedef struct moesim_replay_file {
    moesim_replay_config config;
    size_t num_plans, num_cells, num_sessions;
    moesim_replay_plan *plan;    /* owned, as all that follows */
    moesim_replay_cell *cell;    /* ordered by `order` after reading */
    moesim_replay_session *session;
} moesim_replay_file;

void moesim_replay_file_init(moesim_replay_file *f);
void moesim_replay_file_fini(moesim_replay_file *f);                 /* leaves it as after init */
bool moesim_replay_file_partial(const moesim_replay_file *f);        /* fewer cells than planned */

/* Building. Texts are copied. */
moesim_code moesim_replay_set(char **field, const char *text, moesim_error *err);
moesim_code moesim_replay_add_session(moesim_replay_file *f, const char *facts, uint32_t *index, moesim_error *err);
/* Zeroed arrays of num_events; *index is its place. Pointers to plans do not outlive the next call. */
moesim_code moesim_replay_add_plan(moesim_replay_file *f, const char *policy, const char *options, uint64_t cache,
                                   double bandwidth, uint64_t num_events, uint32_t *index, moesim_error *err);
/* Zeroed arrays for the plan's events; not yet part of the file: add_cell takes it over (and empties it), drop_cell frees
 * it. */
moesim_code moesim_replay_new_cell(const moesim_replay_file *f, uint32_t plan, moesim_replay_cell *out, moesim_error *err);
moesim_code moesim_replay_add_cell(moesim_replay_file *f, moesim_replay_cell *cell, moesim_error *err);
void moesim_replay_drop_cell(moesim_replay_cell *cell);

/* Look up; num_cells or num_plans where there is none. */
size_t moesim_replay_find_cell(const moesim_replay_file *f, uint32_t plan, double bandwidth_cap, uint32_t mode,
                               uint32_t repeat);
size_t moesim_replay_find_plan(const moesim_replay_file *f, const char *policy, const char *options, uint64_t cache,
                               double bandwidth);

/* Files. read: FORMAT errors for what is no raw replay file, or whose tables do not fit together. */
moesim_code moesim_replay_file_write(const moesim_replay_file *f, const char *path, moesim_error *err);
moesim_code moesim_replay_file_read(const char *path, moesim_replay_file *out, moesim_error *err);

/* MOESIM_OK with difference "" where both are parts of one grid; else MOESIM_E_USAGE with "name: a and b; …". */
moesim_code moesim_replay_same(const moesim_replay_config *a, const moesim_replay_config *b, char *difference, size_t bytes);

/* Union of n parts of one grid into *out (which need not be initialised). The parts are left empty. A cell that two parts have
 * is an error that names the later path, as is a plan that was decided differently; executions of full residency become further
 * repeats, unless their times are the same. */
moesim_code moesim_replay_merge(moesim_replay_file *part, const char *const *path, size_t n, moesim_replay_file *out,
                                moesim_error *err);

/* The value of a fact of a session, or "": copied to out. */
void moesim_replay_fact(const moesim_replay_session *session, const char *key, char *out, size_t bytes);

#endif
