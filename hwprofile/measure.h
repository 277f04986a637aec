/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures a machine through the functions of a device: every measurement of a table, point by point, the whole twice.
 * Each point is warmed until the medians of two batches in a row agree within 2 % (bounded), then sampled at least 30 times.
 */
#ifndef MOESIM_HWPROFILE_MEASURE_H
#define MOESIM_HWPROFILE_MEASURE_H

#include "hwprofile/device.h"
#include "hwprofile/raw.h"

/* CPU experts, as the measurements need them: teams of any number of threads beside the device's own. */
typedef struct moesim_measure_cpu {
    /* A team of `threads` over the pool of an open device; threads 0: the device's own. Caller closes. */
    moesim_code (*open)(const moesim_device_ops *ops, moesim_device *device, const moesim_device_config *config,
                        uint32_t threads, void **out, moesim_error *err);
    void (*close)(void **team);              /* NULL allowed */
    uint32_t (*threads)(const void *team);
    /* `experts` jobs of `tokens` (≤ 64) one after another over other experts each time; seconds from start to end. */
    double (*run)(void *team, uint32_t experts, uint32_t tokens);
    /* Reads as much of the pool as lies together; its bytes, and seconds. */
    double (*read)(void *team, uint64_t *bytes);
} moesim_measure_cpu;

extern const moesim_measure_cpu moesim_measure_cpu_real;

#define MOESIM_MEASURE_TOKENS 64u            /* most of one CPU expert */
#define MOESIM_MEASURE_ROUNDS 30u            /* most of one sweep: a sample of each point a round */

typedef struct moesim_measure_params {
    const moesim_device_ops *ops;
    const moesim_device_config *config;      /* other is set and cleared here; max_rows: moesim_measure_rows */
    const char *model;
    const moesim_measure_cpu *cpu;           /* &moesim_measure_cpu_real */
    bool quick;                              /* fewer points, 10 samples each */
    uint32_t rounds;                         /* a sweep goes through all points so often, 1 to MOESIM_MEASURE_ROUNDS, with its
                                              * share of samples each time; 0: 1. More spread the samples of a point over
                                              * the whole sweep, so that a machine which others disturb is seen as it is in
                                              * the mean, and all points alike */
    bool skip_other;                         /* neither `other` nor head; also where the geometry lacks sizes */
    double window;                           /* seconds that link and CPU are loaded together for a sample; 0: 0.01 */
    /* Called before each point; may be NULL. total counts the rounds of both sweeps. */
    void (*progress)(void *context, size_t done, size_t total, const char *what);
    void *context;
} moesim_measure_params;

/* Rows that hold 160 experts with 16 tokens each, or as near as the device allows. */
uint32_t moesim_measure_rows(uint32_t top_k);

/* Opens the device, measures, closes it. *out is initialised; empty on an error, which names the point. Polls
 * moesim_interrupted(). */
moesim_code moesim_measure(const moesim_measure_params *params, moesim_raw *out, moesim_error *err);

#endif
