/* SPDX-License-Identifier: Apache-2.0
 *
 * Three servers, one shared resource, one clock (sim/TIMING.md §3–4).
 */
#include <math.h>

#include "sim/exec.h"
#include "sim/timeline.h"

static void model_gate(moesim_executor *executor, moesim_parts *parts)
{
    moesim_clocked *x = moesim_clocked_of(executor);
    const moesim_costing *c = x->costing;
    const double span = c->other_gpu + c->other_host + c->sync + c->policy;
    parts->other_gpu += c->other_gpu;
    parts->other_host += c->other_host;
    parts->sync += c->sync;
    parts->policy += c->policy;
    parts->busy_gpu += c->other_gpu;
    if (!moesim_link_idle(&x->link))
        parts->busy_link += moesim_link_run(&x->link, span);
    x->now += span;
    x->gated = true;
}

/* Copies and moved experts on an idle link, no CPU experts. Returns the end of the last one. */
static double pipeline(const moesim_costing *c, const moesim_work *w, double hits, double *done, moesim_timeline *t)
{
    const moesim_cost_size *size = c->layer[w->layer];
    const double copy = size->copy_s, arrival = c->arrival;
    const uint32_t staging = c->staging;
    double free = c->overlap ? 0.0 : hits, last = hits, moved = 0;
    for (uint32_t i = 0; i < w->n_moved; i++) {
        const double g = moesim_cost_moved(c, size, w->moved_tokens[i]);
        if (i >= staging && done[i - staging] > free)
            free = done[i - staging];
        free += copy;
        const double ready = free + arrival;
        last = done[i] = (last > ready ? last : ready) + g;
        moved += g;
    }
    t->moved = moved;
    t->busy_link = w->n_moved * copy;
    return last;
}

/* Whether link and CPU may slow each other in this event. */
static bool may_share(const moesim_clocked *x, const moesim_work *w)
{
    const moesim_cost_size *size = x->costing->layer[w->layer];
    if (isinf(x->costing->dram) || (w->n_moved == 0 && moesim_link_idle(&x->link)))
        return false;
    for (uint32_t i = 0; i < w->n_cpu; i++)
        if (moesim_cost_stretch(x->costing, size, w->cpu_tokens[i]) > 1.0)
            return true;
    return false;
}

/* The parts are cut where the timeline without sharing has its ends. The order of the queue can differ with sharing, so that
 * a path may end earlier with it than without: a part ends no later than the event. */
static void add_event(moesim_parts *parts, const moesim_timeline *alone, const moesim_timeline *t, double hits)
{
    const double gpu = fmin(alone->gpu, t->end), both = fmin(alone->end, t->end);
    parts->hits += hits;
    parts->link += gpu - hits;
    parts->cpu += both - gpu;
    parts->dram += t->end - both;
    parts->busy_link += t->busy_link;
    parts->busy_cpu += t->busy_cpu;
    parts->busy_gpu += hits + t->moved;
    moesim_parts_total(parts);
}

static void model_event(moesim_executor *executor, const moesim_work *work, moesim_parts *parts)
{
    moesim_clocked *x = moesim_clocked_of(executor);
    const moesim_costing *c = x->costing;
    if (!x->gated)
        model_gate(executor, parts);
    x->gated = false;
    const double hits = moesim_cost_hits(c, c->layer[work->layer], work->n_hits, work->hit_tokens);
    moesim_timeline t = {.gpu = hits}, alone;
    if (x->link.capacity > 0)
        moesim_link_drop(&x->link, work->layer, work->moved, work->n_moved);
    if (work->n_cpu == 0 && moesim_link_idle(&x->link)) {
        t.end = t.gpu = pipeline(c, work, hits, x->done, &t);
        alone = t;
    } else if (may_share(x, work)) {
        moesim_link ahead = x->link;
        moesim_timeline_run(c, work, hits, false, &ahead, x->done, &alone);
        moesim_timeline_run(c, work, hits, true, &x->link, x->done, &t);
    } else {
        moesim_timeline_run(c, work, hits, false, &x->link, x->done, &t);
        alone = t;
    }
    add_event(parts, &alone, &t, hits);
    x->now += t.end;
}

void moesim_exec_model_together(moesim_executor *const *executor, const moesim_work *w, moesim_parts *const *parts)
{
    enum { K = MOESIM_TOGETHER };
    const moesim_costing *c = moesim_clocked_of(executor[0])->costing;
    const moesim_cost_size *size = c->layer[w->layer];
    const double hits = moesim_cost_hits(c, size, w->n_hits, w->hit_tokens);
    const uint32_t staging = c->staging;
    const double arrival = c->arrival;
    double copy[K], free[K], last[K], done[MOESIM_MOST_EXPERTS][K], moved = 0;
    for (uint32_t k = 0; k < K; k++) {
        copy[k] = moesim_clocked_of(executor[k])->costing->layer[w->layer]->copy_s;
        free[k] = c->overlap ? 0.0 : hits;
        last[k] = hits;
    }
    for (uint32_t i = 0; i < w->n_moved; i++) {
        const double g = moesim_cost_moved(c, size, w->moved_tokens[i]);
        for (uint32_t k = 0; k < K && i >= staging; k++)
            free[k] = done[i - staging][k] > free[k] ? done[i - staging][k] : free[k];
        for (uint32_t k = 0; k < K; k++) {
            free[k] += copy[k];
            const double ready = free[k] + arrival;
            done[i][k] = last[k] = (last[k] > ready ? last[k] : ready) + g;
        }
        moved += g;
    }
    for (uint32_t k = 0; k < K; k++) {
        moesim_clocked *x = moesim_clocked_of(executor[k]);
        const moesim_timeline t = {.gpu = last[k], .end = last[k], .moved = moved, .busy_link = w->n_moved * copy[k]};
        if (!x->gated)
            model_gate(executor[k], parts[k]);
        x->gated = false;
        add_event(parts[k], &t, &t, hits);
        x->now += t.end;
    }
}

static void model_end_pass(moesim_executor *executor, moesim_parts *parts)
{
    moesim_clocked *x = moesim_clocked_of(executor);
    parts->head += x->costing->head;
    moesim_parts_total(parts);
    if (!moesim_link_idle(&x->link))
        parts->busy_link += moesim_link_run(&x->link, x->costing->head);
    x->now += x->costing->head;
}

const moesim_executor_ops moesim_exec_model = {
    .name = "model",
    .gate = model_gate,
    .event = model_event,
    .end_pass = model_end_pass,
    .prefetch = moesim_exec_prefetch,
    .pause = moesim_exec_pause,
    .landed = moesim_exec_landed,
};
