/* SPDX-License-Identifier: Apache-2.0
 *
 * A device: slots for experts in its memory, a pool of experts in host memory, a link between them, and something that
 * computes. One table of functions, three backends: cuda (a GPU), host (its memory is host memory, its link a copying thread,
 * its arithmetic the CPU kernel), null (order only: nothing is copied or computed, every rule of use is checked).
 * `profile measure` and the replayer see this header alone.
 *
 * One thread drives a device; a device has threads of its own. Functions return MOESIM_OK or fill *err, naming the call, the
 * device and the remedy; after a failure only facts and close may be called.
 *
 * Arithmetic of an expert (all backends, bf16 weights and activations, fp32 accumulation):
 *   y = W_down · bf16( silu(W_gate · x) ∘ (W_up · x) ),  silu(v) = v / (1 + e^−v)
 * in memory gate [intermediate][hidden], up [intermediate][hidden], down [hidden][intermediate], row-major, one after another.
 */
#ifndef MOESIM_HWPROFILE_DEVICE_H
#define MOESIM_HWPROFILE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "hwprofile/cpu_expert.h"
#include "hwprofile/geometry.h"

#define MOESIM_DEVICE_ROWS_MAX 1024u     /* most rows of one event */
#define MOESIM_DEVICE_CAP_MIN 1e6        /* B/s, of a bandwidth cap */
#define MOESIM_DEVICE_CAP_MAX 1e13

/* What is asked for. All sizes are checked against what is free (GPU: cudaMemGetInfo; host: MemAvailable and the cgroup's
 * limit, whichever is less) before anything is allocated; the message says how much is needed and which option lowers it. */
typedef struct moesim_device_config {
    uint32_t hidden, intermediate;       /* multiples of 64; an expert is 3·hidden·intermediate·2 bytes */
    uint32_t max_rows;                   /* 1..MOESIM_DEVICE_ROWS_MAX */
    uint32_t top_k;                      /* most experts of a row; outputs are max_rows·top_k rows */
    uint32_t slots;                      /* experts in device memory, staging included */
    uint32_t pool;                       /* experts in host memory, filled with seeded random bf16 of sane magnitude */
    uint64_t seed;
    bool allow_pageable;                 /* go on with a warning where pinning fails (facts: "pinned" "no") */
    bool other;                          /* gate() executes attention, router and shared expert of `geometry` first */
    const moesim_geometry *geometry;     /* for other and head; outlives the device; may be NULL without them */
    uint32_t context;                    /* KV entries that attention reads, other only */
    double bandwidth_cap;                /* B/s; 0: none. A slower link: each copy is followed by further bytes of the pool into
                                            a scratch slot, so that an expert takes what it would at this rate */
    uint64_t memory_limit, host_limit;   /* bytes; 0: what is free, less a reserve (1 GiB or 5 %, whichever is more) */
    moesim_cpu_config cpu;               /* threads, instruction set, list of CPUs */
    int index;                           /* which GPU */
} moesim_device_config;

/* One expert of one event. row: [tokens] rows of the activations, ascending. slot is read for hits and moved, pool for moved
 * and cpu (for hits it says what the slot holds, for checks). */
typedef struct moesim_device_expert {
    uint32_t slot, pool, tokens;
    const uint16_t *row;
} moesim_device_expert;

typedef struct moesim_device_work {
    uint32_t num_rows;
    uint32_t n_hits, n_moved, n_cpu;     /* moved: in the order of their copies; cpu: in the order of computing */
    const moesim_device_expert *hits, *moved, *cpu;
} moesim_device_work;

/* What the event before a gate took; nanoseconds. `gate` is the host's monotonic clock at the moment when the routing of the
 * gated event had reached the host, so an event lasts from its own gate to the next one (or to end_pass), less what `other`
 * takes. busy_link: from the start of the first copy to the end of the last; 0 where a backend cannot tell. */
typedef struct moesim_device_times {
    uint64_t gate;
    uint64_t busy_link, busy_gpu, busy_cpu;
    uint64_t bytes;                      /* of moved experts; activations and a cap's further bytes not counted */
} moesim_device_times;

typedef struct moesim_device moesim_device;

/* One row of what a device is: "gpu" "NVIDIA H200", "driver", "cuda", "pcie" "gen5 x16" (under load), "numa", "pinned",
 * "isa", "threads", "cpu", "governor", "pool bytes", … */
typedef struct moesim_device_fact { const char *key; char value[128]; } moesim_device_fact;

typedef struct moesim_device_ops {
    const char *name, *help;
    /* Is there one at all? false: *why holds one sentence (no driver, no device); the command ends with status 77. */
    bool (*present)(int index, char why[256]);
    moesim_code (*open)(const moesim_device_config *config, moesim_device **out, moesim_error *err);
    void (*close)(moesim_device **device);              /* NULL allowed; waits for what runs, frees everything */
    /* Row i of the facts; false past the end. */
    bool (*fact)(moesim_device *device, size_t i, moesim_device_fact *out);

    /* ---- replay ------------------------------------------------------------------------------------------------ */
    /* Fills a slot from the pool and waits: residents before the run starts. */
    moesim_code (*fill)(moesim_device *device, uint32_t slot, uint32_t pool, moesim_error *err);
    /* Waits until everything before is done, executes `other` if configured, brings the routing of num_rows rows to the host
     * and returns: the gate is known. *times: see above. */
    moesim_code (*gate)(moesim_device *device, uint32_t num_rows, moesim_device_times *times, moesim_error *err);
    /* Executes one event: hits as one grouped call; copies in order, each waiting until its slot's last reader is done; every
     * moved expert computed as it arrives; CPU experts on the device's threads, activations and results over the link (a
     * result goes between two copies, not behind all); then all outputs of a row are added up. Returns when the host has
     * nothing left to do; the rest goes on until the next gate or end_pass. */
    moesim_code (*work)(moesim_device *device, const moesim_device_work *work, moesim_error *err);
    /* Ends a pass: waits as gate does; with_head executes the LM head over num_rows rows first. */
    moesim_code (*end_pass)(moesim_device *device, uint32_t num_rows, bool with_head, moesim_device_times *times,
                            moesim_error *err);
    /* After gate/end_pass: outputs of the event before, [routes][hidden], routes in the order hits, moved, cpu; poisoned with
     * NaN before each event. And the inputs, [num_rows][hidden] bf16, seeded, the same in every event. */
    moesim_code (*outputs)(moesim_device *device, float *out, size_t routes, moesim_error *err);
    moesim_code (*inputs)(moesim_device *device, uint16_t *out, uint32_t num_rows, moesim_error *err);
    /* Weights of a pool expert, for references; valid until close. */
    const uint16_t *(*weights)(const moesim_device *device, uint32_t pool);

    /* From the next copy on, the link is as slow as bandwidth_cap of the config would make it (0: none). Between passes. */
    moesim_code (*set_cap)(moesim_device *device, double bandwidth_cap, moesim_error *err);

    /* ---- measuring --------------------------------------------------------------------------------------------- */
    /* One sample each, in seconds, timed by the device where it has a clock, with work queued so that launches do not show,
     * over rotating buffers. `repeat` operations are queued; *seconds is the time of one. Verified by the backend: what was
     * copied is what lies there. */
    moesim_code (*time_copy)(moesim_device *device, size_t bytes, bool pinned, uint32_t streams, uint32_t repeat,
                             double *seconds, moesim_error *err);        /* host to device; bytes ≤ 256 MiB */
    moesim_code (*time_return)(moesim_device *device, size_t bytes, uint32_t repeat, double *to_host, double *to_device,
                               moesim_error *err);                       /* small copies both ways, latency included */
    moesim_code (*time_grouped)(moesim_device *device, uint32_t experts, uint32_t tokens, uint32_t repeat, double *seconds,
                                moesim_error *err);      /* one grouped call as for hits, at most `slots`, tokens each */
    moesim_code (*time_other)(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *device_s, double *host_s,
                              moesim_error *err);        /* config.other: one layer's `other`; host_s: what enqueuing adds */
    moesim_code (*time_head)(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds, moesim_error *err);
    moesim_code (*time_empty)(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds, moesim_error *err);
                                                         /* gate to gate with no work: the fixed time of an event */
    /* The link kept busy with copies of `bytes` while the caller uses the CPU; stop says how many bytes in how many seconds. */
    moesim_code (*load_begin)(moesim_device *device, size_t bytes, moesim_error *err);
    moesim_code (*load_end)(moesim_device *device, uint64_t *bytes, double *seconds, moesim_error *err);
    /* The device's CPU threads (cpu_expert.h), for measurements of CPU experts over the pool; owned by the device. */
    moesim_cpu_team *(*cpu)(moesim_device *device);
} moesim_device_ops;

struct moesim_device {
    const moesim_device_ops *ops;
};

/* host, null and, in builds with CUDA, cuda first; NULL-ended. */
const moesim_device_ops *const *moesim_device_backends(void);

/* USAGE for unknown names (the nearest is named); cuda in a build without it says how to get one that has it. */
moesim_code moesim_device_find(const char *name, const moesim_device_ops **out, moesim_error *err);

/* Sizes of the config against its rules (multiples of 64, 1..max, no overflow), before open: shared by all backends. */
moesim_code moesim_device_check(const moesim_device_config *config, moesim_error *err);

#endif
