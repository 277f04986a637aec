/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of measure: the table of measurements. Private to hwprofile/.
 */
#ifndef MOESIM_HWPROFILE_MEASURE_PARTS_H
#define MOESIM_HWPROFILE_MEASURE_PARTS_H

#include "hwprofile/measure.h"

#define MOESIM_EVENT_EXPERTS 64u             /* most of one event here */

/* A device under measurement. */
typedef struct moesim_bench {
    const moesim_device_ops *ops;
    moesim_device *device;
    moesim_device_config config;
    const moesim_measure_cpu *cpu;
    void *team;                              /* of team_threads; 0: none open */
    uint32_t team_threads, threads;          /* threads: of the device's own team */
    uint64_t expert_bytes;
    double window;
    bool quick, filled;                      /* filled: slots of hits hold what they should */
    uint32_t next_slot, next_moved, next_pool;
    moesim_device_expert expert[MOESIM_EVENT_EXPERTS];
    uint16_t row[MOESIM_EVENT_EXPERTS][MOESIM_MEASURE_TOKENS];
} moesim_bench;

/* Points of one measurement, in the order of measuring. */
typedef struct moesim_plan { moesim_raw_key key[MOESIM_RAW_POINTS / MOESIM_RAW_SWEEPS]; size_t n; } moesim_plan;
void moesim_plan_add(moesim_plan *plan, moesim_raw_key key);

typedef struct moesim_measurement {
    const char *what;
    bool other;                              /* on the device that executes `other` */
    uint32_t kind, second;                   /* MOESIM_RAW_KINDS: one value a sample */
    double work;                             /* seconds that a sample should last: so many repetitions; 0: one */
    moesim_code (*plan)(moesim_bench *bench, moesim_plan *plan, moesim_error *err);
    moesim_code (*sample)(moesim_bench *bench, const moesim_raw_key *key, uint32_t repeat, double value[2],
                          moesim_error *err);
} moesim_measurement;

extern const moesim_measurement moesim_measurements[];       /* what NULL ends */

/* Makes `threads` of the CPU ready in bench->team; those of the device itself where threads are all. */
moesim_code moesim_bench_team(moesim_bench *bench, uint32_t threads, moesim_error *err);

/* 1, 2, 4, … and all threads, ascending; first and last only where quick. Returns how many. */
size_t moesim_bench_threads(const moesim_bench *bench, uint32_t out[16]);

/* Whole events: gate, work, gate (measure_event.c). */
moesim_code moesim_event_plan_hits(moesim_bench *bench, moesim_plan *plan, moesim_error *err);
moesim_code moesim_event_plan_moved(moesim_bench *bench, moesim_plan *plan, moesim_error *err);
moesim_code moesim_event_plan_cpu(moesim_bench *bench, moesim_plan *plan, moesim_error *err);
moesim_code moesim_event_plan_both(moesim_bench *bench, moesim_plan *plan, moesim_error *err);
moesim_code moesim_event_sample(moesim_bench *bench, const moesim_raw_key *key, uint32_t repeat, double value[2],
                                moesim_error *err);

#endif
