/* SPDX-License-Identifier: Apache-2.0
 *
 * The closed forms of OLED-MoE (§4.4, §5.4): a layer takes what it takes at full residency, plus the longer of the copies
 * and the CPU experts; a copy takes T_H2D whatever its bytes, an expert on the CPU τ for each of its tokens.
 */
#include <math.h>

#include "sim/exec.h"

static void paper_gate(moesim_executor *executor, moesim_parts *parts)
{
    moesim_clocked *x = moesim_clocked_of(executor);
    const double layer = x->costing->paper_layer;
    parts->hits += layer;
    parts->busy_gpu += layer;
    parts->busy_link += moesim_link_run(&x->link, layer);
    moesim_parts_total(parts);
    x->now += layer;
    x->gated = true;
}

/* Seconds until the last demand copy; what is left of a copy in flight comes first, and is one of them if its expert is. */
static double copies(moesim_link *k, const moesim_work *w, double copy)
{
    uint32_t i = 0, n = w->n_moved;
    double left = 0;
    moesim_link_drop(k, w->layer, w->moved, n);
    if (n == 0)
        return 0;
    if (k->busy) {
        left = k->left;
        while (k->flying.layer == w->layer && i < w->n_moved && w->moved[i] != k->flying.expert)
            i++;
        if (k->flying.layer == w->layer && i < w->n_moved) {
            moesim_link_take(k);
            n--;
        } else {
            moesim_link_land(k);
        }
    }
    return left + n * copy;
}

static void paper_event(moesim_executor *executor, const moesim_work *work, moesim_parts *parts)
{
    moesim_clocked *x = moesim_clocked_of(executor);
    if (!x->gated)
        paper_gate(executor, parts);
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < work->n_cpu; i++)
        tokens += work->cpu_tokens[i];
    const double link = copies(&x->link, work, x->costing->paper_copy);
    const double cpu = x->costing->paper_tau * (double)tokens;
    const double end = fmax(link, cpu);
    parts->link += link;
    parts->cpu += fmax(0.0, cpu - link);
    parts->busy_link += link + moesim_link_run(&x->link, end - link);
    parts->busy_cpu += cpu;
    moesim_parts_total(parts);
    x->now += end;
    x->gated = false;
}

static void paper_end_pass(moesim_executor *executor, moesim_parts *parts)
{
    (void)executor;
    moesim_parts_total(parts);
}

const moesim_executor_ops moesim_exec_paper = {
    .name = "paper",
    .gate = paper_gate,
    .event = paper_event,
    .end_pass = paper_end_pass,
    .prefetch = moesim_exec_prefetch,
    .pause = moesim_exec_pause,
    .landed = moesim_exec_landed,
};
