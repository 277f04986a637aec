/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts on the CPU: a team of pinned threads and a bf16 kernel chosen at run time. At the loads of diffusion models (one to
 * a few tokens an expert) an expert is a stream of its weights from DRAM; the kernel's aim is that stream's bandwidth.
 * All threads work on one expert after another, as the timing model has it. Arithmetic: hwprofile/device.h.
 */
#ifndef MOESIM_HWPROFILE_CPU_EXPERT_H
#define MOESIM_HWPROFILE_CPU_EXPERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MOESIM_CPU_THREADS_MAX 256u

typedef struct moesim_cpu_config {
    uint32_t threads;            /* 0: one a physical core that this process may use (affinity, cgroup quota), at least 1 */
    const char *isa;             /* moesim_cpu_isas, or NULL: the last of them */
    const char *cpus;            /* "0-7,16": where the threads are pinned; NULL: the allowed ones; "none": not pinned */
} moesim_cpu_config;

/* Of "plain", "avx2", "avx512", "avx512bf16", "amx" those that this CPU can run; NULL-ended. The last is the default. */
const char *const *moesim_cpu_isas(void);

typedef struct moesim_cpu_team moesim_cpu_team;

/* One expert to compute: weights as in device.h; y[tokens][hidden] is written, x rows are chosen by row[tokens]. */
typedef struct moesim_cpu_job {
    const uint16_t *weights;
    const uint16_t *row;         /* [tokens] rows of x */
    uint32_t tokens;
    float *y;                    /* [tokens][hidden] */
} moesim_cpu_job;

/* Threads start here and wait (spinning for a short time, then sleeping). max_tokens: most tokens of one job, ≥ 1. Caller
 * destroys. USAGE errors: an instruction set that this CPU lacks, CPUs that are none of ours, more than 256 threads. */
moesim_code moesim_cpu_team_create(const moesim_cpu_config *config, uint32_t hidden, uint32_t intermediate,
                                   uint32_t max_tokens, moesim_cpu_team **out, moesim_error *err);
void moesim_cpu_team_destroy(moesim_cpu_team **team);        /* NULL allowed */

/* Starts n jobs over x [rows][hidden] bf16, one after another, each by all threads; jobs and x stay until wait returns.
 * Fixed order of summation: the same bytes for any number of threads of one instruction set. */
void moesim_cpu_team_start(moesim_cpu_team *team, const moesim_cpu_job *job, uint32_t n, const uint16_t *x);
/* Waits; returns the nanoseconds from start to the end of the last job. */
uint64_t moesim_cpu_team_wait(moesim_cpu_team *team);

/* Between start and wait: has the last job ended? Never blocks. */
bool moesim_cpu_team_done(const moesim_cpu_team *team);

/* Calls fn(context, thread, threads) once on each thread and waits; not while jobs run. rows of a matrix of `total` rows that
 * a thread computes (threads help each other, so mostly): moesim_cpu_team_share. */
void moesim_cpu_team_run(moesim_cpu_team *team, void (*fn)(void *context, uint32_t thread, uint32_t threads), void *context);
void moesim_cpu_team_share(uint32_t total, uint32_t thread, uint32_t threads, uint32_t *begin, uint32_t *end);

/* Reads `bytes` (as large as the pool) with all threads and writes nothing: the bandwidth that experts are held against.
 * Returns B/s. */
double moesim_cpu_team_read(moesim_cpu_team *team, const void *data, size_t bytes);

uint32_t moesim_cpu_team_threads(const moesim_cpu_team *team);
const char *moesim_cpu_team_isa(const moesim_cpu_team *team);
/* "0-15" where the threads are pinned, "not pinned" without. */
const char *moesim_cpu_team_cpus(const moesim_cpu_team *team);

/* The same expert in double precision, single-threaded: y[tokens][hidden]. The intermediate is rounded to bf16 as the
 * arithmetic says. For checks. */
void moesim_cpu_reference(const uint16_t *weights, uint32_t hidden, uint32_t intermediate, const uint16_t *x,
                          const uint16_t *row, uint32_t tokens, double *y);

#endif
