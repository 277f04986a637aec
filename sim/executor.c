/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of executors, and counting, which costs no time.
 */
#include "sim/executor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim/exec.h"

void moesim_exec_prefetch(moesim_executor *x, const moesim_landed *entry, uint32_t n)
{
    moesim_link_replace(&moesim_clocked_of(x)->link, entry, n);
}

void moesim_exec_pause(moesim_executor *x, int on) { moesim_clocked_of(x)->link.paused = on != 0; }

uint32_t moesim_exec_landed(moesim_executor *x, moesim_landed *out, uint32_t n)
{
    return moesim_link_landed(&moesim_clocked_of(x)->link, out, n);
}

/* ---- count ------------------------------------------------------------------------------------------------------------ */

static void count_gate(moesim_executor *x, moesim_parts *parts)
{
    (void)x;
    (void)parts;
}

static void count_event(moesim_executor *x, const moesim_work *work, moesim_parts *parts)
{
    (void)parts;
    moesim_link_drop(&moesim_clocked_of(x)->link, work->layer, work->moved, work->n_moved);
}

static uint32_t count_landed(moesim_executor *x, moesim_landed *out, uint32_t n)
{
    moesim_link *k = &moesim_clocked_of(x)->link;
    while (k->num_landed < n && moesim_link_start(k))
        moesim_link_land(k);
    return moesim_link_landed(k, out, n);
}

const moesim_executor_ops moesim_exec_count = {
    .name = "count",
    .gate = count_gate,
    .event = count_event,
    .end_pass = count_gate,
    .prefetch = moesim_exec_prefetch,
    .pause = moesim_exec_pause,
    .landed = count_landed,
};

/* ---- life ------------------------------------------------------------------------------------------------------------- */

static const moesim_executor_ops *const executors[] = {
    [MOESIM_TIME_COUNT] = &moesim_exec_count,
    [MOESIM_TIME_PAPER] = &moesim_exec_paper,
    [MOESIM_TIME_MODEL] = &moesim_exec_model,
};

moesim_code moesim_executor_create(const moesim_costing *costing, uint32_t max_prefetch, moesim_executor **out,
                                   moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    *out = NULL;
    moesim_clocked *x = NULL;
    if (max_prefetch > MOESIM_MOST_EXPERTS * MOESIM_MOST_EXPERTS)
        return moesim_fail(err, MOESIM_E_LIMIT, "a prefetch list holds at most %u entries, not %u",
                           MOESIM_MOST_EXPERTS * MOESIM_MOST_EXPERTS, max_prefetch);
    if (moesim_alloc(1, sizeof *x, "an executor", (void **)&x, err) != MOESIM_OK)
        return err->code;
    x->base.ops = executors[costing->mode];
    x->costing = costing;
    *out = &x->base;
    if (moesim_link_init(&x->link, max_prefetch, costing->num_layers, costing->alpha, costing->stream_s, err) != MOESIM_OK)
        moesim_executor_destroy(out);
    return err->code;
}

void moesim_executor_destroy(moesim_executor **executor)
{
    if (*executor == NULL)
        return;
    moesim_link_fini(&moesim_clocked_of(*executor)->link);
    free(*executor);
    *executor = NULL;
}

static const moesim_clocked *const_clocked(const moesim_executor *x) { return (const moesim_clocked *)(const void *)x; }

double moesim_executor_now(const moesim_executor *executor) { return const_clocked(executor)->now; }

void moesim_parts_add(moesim_parts *to, const moesim_parts *from)
{
    to->other_gpu += from->other_gpu;
    to->other_host += from->other_host;
    to->sync += from->sync;
    to->hits += from->hits;
    to->link += from->link;
    to->cpu += from->cpu;
    to->dram += from->dram;
    to->policy += from->policy;
    to->head += from->head;
    to->busy_link += from->busy_link;
    to->busy_cpu += from->busy_cpu;
    to->busy_gpu += from->busy_gpu;
    moesim_parts_total(to);
}

/* Beside the link, what an event without experts on the CPU costs is the same. */
static bool same_costs(const moesim_costing *a, const moesim_costing *b)
{
    bool same = a->mode == MOESIM_TIME_MODEL && b->mode == a->mode && a->profile == b->profile && a->overlap == b->overlap &&
                a->staging == b->staging && a->max_rows == b->max_rows && a->num_layers == b->num_layers;
    for (uint32_t l = 0; same && l < a->num_layers; l++)
        same = a->layer[l]->bytes == b->layer[l]->bytes;
    return same;
}

bool moesim_executors_alike(const moesim_executor *x, const moesim_executor *y)
{
    const moesim_clocked *a = const_clocked(x), *b = const_clocked(y);
    return a->link.capacity == 0 && b->link.capacity == 0 && same_costs(a->costing, b->costing);
}

/* Groups of MOESIM_TOGETHER, the rest one after the other. */
void moesim_executors_event(moesim_executor *const *x, uint32_t n, bool alike, const moesim_work *work,
                            moesim_parts *const *parts)
{
    uint32_t i = 0;
    for (; alike && work->n_cpu == 0 && i + MOESIM_TOGETHER <= n; i += MOESIM_TOGETHER)
        moesim_exec_model_together(x + i, work, parts + i);
    for (; i < n; i++)
        x[i]->ops->event(x[i], work, parts[i]);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------------ */

size_t moesim_executor_state_bytes(const moesim_executor *executor)
{
    return sizeof(double) + moesim_link_state_bytes(&const_clocked(executor)->link);
}

void moesim_executor_save(const moesim_executor *executor, void *out)
{
    const moesim_clocked *x = const_clocked(executor);
    memcpy(out, &x->now, sizeof x->now);
    moesim_link_save(&x->link, (char *)out + sizeof x->now);
}

bool moesim_executor_restore(moesim_executor *executor, const void *in)
{
    moesim_clocked *x = moesim_clocked_of(executor);
    double now;
    memcpy(&now, in, sizeof now);
    if (!(now >= 0) || isinf(now) || !moesim_link_restore(&x->link, (const char *)in + sizeof now))
        return false;
    x->now = now;
    return true;
}
