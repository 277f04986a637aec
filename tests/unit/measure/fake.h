/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine whose costs are known: a device and a CPU that take the time of formulas on a clock of their own, with noise if
 * asked for. One at a time.
 */
#ifndef MOESIM_TESTS_UNIT_MEASURE_FAKE_H
#define MOESIM_TESTS_UNIT_MEASURE_FAKE_H

#include "hwprofile/measure.h"

#define FAKE_THREADS 8u
#define FAKE_HIDDEN 2048u
#define FAKE_INTERMEDIATE 512u
#define FAKE_BYTES (6.0 * FAKE_HIDDEN * FAKE_INTERMEDIATE)

/* Seconds and B/s. */
struct fake_costs {
    double alpha, beta, return_alpha, return_beta, dram;
    double step, combine, cpu_first, cpu_more;   /* one expert: first + more · (tokens − 1), all threads */
    double late;                         /* the CPU's share starts so much later beside hits */
    double gpu_first, gpu_expert, gpu_token;     /* grouped: first + experts · (expert + token · tokens) */
    double launch, arrival, beside;      /* of hits; what follows a copy; what a copy and a computation take from each other */
    double sync, other, other_host, head;
    double noise;                /* relative, uniform within ± it */
    double wild;                 /* chance that a sample takes five times as long */
    unsigned slow_calls;         /* the first calls of time_copy take twice as long */
    double drifts;               /* each call of time_copy takes longer than the one before by this share */
    const char *broken;          /* this function fails: "time_grouped", "open", "load_end", … */
};

extern struct fake_costs fake;               /* set before use */
extern const struct fake_costs fake_usual;
extern unsigned fake_opened, fake_closed, fake_copies;
extern const moesim_device_ops fake_ops;
extern const moesim_measure_cpu fake_cpu;

double fake_grouped(double experts, double tokens);
double fake_expert(double tokens, double threads);

/* A configuration that suits it. */
moesim_device_config fake_config(void);

/* Measures it; aborts the test on an error. */
void fake_measure(bool quick, moesim_raw *out);

/* All samples of a point times factor, its figures worked out again. */
void fake_spoil(moesim_raw *raw, moesim_raw_point *point, double factor);

#endif
