/* SPDX-License-Identifier: Apache-2.0
 *
 * CPU experts for measuring: teams of any size over the pool of a device.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "hwprofile/measure.h"

#define JOBS 64u                 /* most of one start */
#define OUTPUTS 4u               /* buffers that jobs write to in turn */

typedef struct team {
    const moesim_device_ops *ops;
    moesim_device *device;
    moesim_cpu_team *cpu;
    bool own;                    /* destroyed here */
    uint32_t hidden, pool, next;
    size_t weights;              /* elements of one expert */
    uint16_t *x;                 /* [MOESIM_MEASURE_TOKENS][hidden] */
    float *y;                    /* [OUTPUTS][MOESIM_MEASURE_TOKENS][hidden] */
    uint16_t row[MOESIM_MEASURE_TOKENS];
    moesim_cpu_job job[JOBS];
} team;

static void team_close(void **opaque)
{
    team *t = *opaque;
    if (t == NULL)
        return;
    if (t->own)
        moesim_cpu_team_destroy(&t->cpu);
    free(t->x);
    free(t->y);
    free(t);
    *opaque = NULL;
}

static moesim_code prepare(team *t, const moesim_device_config *config, uint32_t threads, moesim_error *err)
{
    void *x = NULL, *y = NULL;
    moesim_cpu_config cpu = config->cpu;
    moesim_code code = moesim_alloc((size_t)MOESIM_MEASURE_TOKENS * t->hidden, sizeof *t->x, "activations", &x, err);
    t->x = x;
    if (code == MOESIM_OK)
        code = moesim_alloc((size_t)OUTPUTS * MOESIM_MEASURE_TOKENS * t->hidden, sizeof *t->y, "results", &y, err);
    t->y = y;
    if (code == MOESIM_OK)
        code = t->ops->inputs(t->device, t->x, MOESIM_MEASURE_TOKENS, err);
    if (code != MOESIM_OK || threads == 0) {
        t->cpu = t->ops->cpu(t->device);
        return code;
    }
    cpu.threads = threads;
    t->own = true;
    return moesim_cpu_team_create(&cpu, config->hidden, config->intermediate, MOESIM_MEASURE_TOKENS, &t->cpu, err);
}

static moesim_code team_open(const moesim_device_ops *ops, moesim_device *device, const moesim_device_config *config,
                             uint32_t threads, void **out, moesim_error *err)
{
    moesim_code code = moesim_alloc(1, sizeof(team), "a team of CPU threads", out, err);
    if (code != MOESIM_OK)
        return code;
    team *t = *out;
    t->ops = ops;
    t->device = device;
    t->hidden = config->hidden;
    t->pool = config->pool;
    t->weights = (size_t)3 * config->hidden * config->intermediate;
    for (uint32_t i = 0; i < MOESIM_MEASURE_TOKENS; i++)
        t->row[i] = (uint16_t)i;
    code = prepare(t, config, threads, err);
    if (code != MOESIM_OK)
        team_close(out);
    return code;
}

static uint32_t team_threads(const void *opaque)
{
    const team *t = opaque;
    return moesim_cpu_team_threads(t->cpu);
}

static double team_run(void *opaque, uint32_t experts, uint32_t tokens)
{
    team *t = opaque;
    const uint32_t n = experts < JOBS ? experts : JOBS;
    for (uint32_t i = 0; i < n; i++) {
        t->job[i] = (moesim_cpu_job){ .weights = t->ops->weights(t->device, t->next), .row = t->row, .tokens = tokens,
                                      .y = t->y + (size_t)(i % OUTPUTS) * MOESIM_MEASURE_TOKENS * t->hidden };
        t->next = (t->next + 1) % t->pool;
    }
    moesim_cpu_team_start(t->cpu, t->job, n, t->x);
    return (double)moesim_cpu_team_wait(t->cpu) / 1e9;
}

/* The pool usually lies in one piece; where it does not, its first piece is read. */
static double team_read(void *opaque, uint64_t *bytes)
{
    team *t = opaque;
    const uint16_t *first = t->ops->weights(t->device, 0);
    uint32_t n = 1;
    while (n < t->pool && t->ops->weights(t->device, n) == first + (size_t)n * t->weights)
        n++;
    *bytes = (uint64_t)n * t->weights * sizeof *first;
    return (double)*bytes / moesim_cpu_team_read(t->cpu, first, (size_t)*bytes);
}

const moesim_measure_cpu moesim_measure_cpu_real = { team_open, team_close, team_threads, team_run, team_read };
