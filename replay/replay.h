/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays of decisions on a device: one bench (a trace, a device that stays open, plans with their decision logs) executes
 * cells, each a plan at a bandwidth cap, and keeps their times in a raw file (sim/replay_file.h) that is written anew after
 * every cell. One thread at a time.
 */
#ifndef MOESIM_REPLAY_REPLAY_H
#define MOESIM_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hwprofile/device.h"
#include "hwprofile/profile.h"
#include "sim/decide.h"
#include "sim/replay_file.h"

/* What is asked for. Everything pointed to outlives the bench. */
typedef struct moesim_bench_config {
    moesim_trace *trace;         /* its digest has been computed */
    const char *trace_path;      /* as given */
    const moesim_device_ops *ops;
    int index;                   /* which device of the backend */
    uint32_t hidden, intermediate;
    const moesim_geometry *geometry;     /* of --as; NULL: sizes given otherwise */
    const moesim_profile *profile;       /* for policies that read costs; may be NULL */
    const char *profile_name, *profile_digest;   /* "" without */
    uint64_t request_begin, request_end, warmup;
    uint32_t batch, staging;     /* each ≥ 1 */
    uint64_t seed;
    size_t window_bytes;
    enum moesim_replay_mode mode;
    bool other, allow_pageable;
    uint32_t context;
    uint64_t host_pool, gpu_memory;      /* bytes; 0: by default */
    moesim_cpu_config cpu;
    FILE *out;                   /* what is done, line by line */
} moesim_bench_config;

typedef struct moesim_bench moesim_bench;

/* USAGE and LIMIT errors of the sizes. Nothing large is allocated yet. Caller destroys. */
moesim_code moesim_bench_create(const moesim_bench_config *config, moesim_bench **out, moesim_error *err);
void moesim_bench_destroy(moesim_bench **bench);     /* NULL allowed */

/* A policy at a capacity; bandwidth: of the link, B/s, for policies that read costs (0: the profile's). The decisions are
 * computed now. The same words again give the same plan. decisions: a log to execute instead, in place of the policy (given,
 * effective and cache are then those of the log, cell is ignored; live mode is refused). USAGE: policies that prefetch. */
typedef struct moesim_bench_plan {
    moesim_cell cell;
    const char *given, *effective;
    const char *decisions;       /* NULL: computed */
} moesim_bench_plan;
moesim_code moesim_bench_plan_add(moesim_bench *bench, const moesim_bench_plan *plan, uint32_t *index, moesim_error *err);

/* After all plans: sizes device and pool for the largest of them, says what is needed, opens the device. Full residency that
 * does not fit shares slots. file: what has been measured before, or empty after moesim_replay_file_init; taken over. A file of
 * another configuration is refused (USAGE, with the difference). Where the pool is not given, that of the file is taken. */
moesim_code moesim_bench_open(moesim_bench *bench, moesim_replay_file *file, moesim_error *err);

/* Executes a plan (index of plan_add) and adds the cell to the file, in memory. Warms up first. Verifies sampled events. An
 * interruption is MOESIM_E_INTERRUPTED; after it and after errors of the device the bench can only write and be destroyed. */
moesim_code moesim_bench_run(moesim_bench *bench, uint32_t plan, double bandwidth_cap, uint32_t repeat, uint32_t order,
                             moesim_error *err);

/* The file as it stands: of finished cells alone. */
moesim_replay_file *moesim_bench_file(moesim_bench *bench);

/* Is the cell in the file? */
bool moesim_bench_has(const moesim_bench *bench, uint32_t plan, double bandwidth_cap, uint32_t repeat);

/* Events of a plan. */
uint64_t moesim_bench_events(const moesim_bench *bench, uint32_t plan);

#endif
