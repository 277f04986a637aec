/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of a log, priced one by one.
 */
#include "study/predict.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* ---- pricing ------------------------------------------------------------------------------------------------------- */

/* The time of the event itself; `other` belongs to what comes before its gate. */
static double from_gate(const moesim_parts *p)
{
    return p->sync + p->hits + p->link + p->cpu + p->dram + p->policy;
}

static void add_step(moesim_parts *step, const moesim_parts *event)
{
    moesim_parts_add(step, event);
    step->total = step->other_gpu + step->other_host + step->sync + step->hits + step->link + step->cpu + step->dram +
                  step->policy + step->head;
}

static void price(const moesim_works *s, moesim_executor *x, moesim_prediction *out)
{
    moesim_parts step = {0}, request = {0};
    for (uint64_t i = 0; i < s->num_events; i++) {
        const moesim_works_event *e = &s->event[i];
        const moesim_work work = {
            .layer = e->layer, .num_rows = e->num_rows, .n_hits = e->n_hits, .n_moved = e->n_moved,
            .n_cpu = e->n_cpu, .hit_tokens = s->tokens + e->at, .moved_tokens = s->tokens + e->at + e->n_hits,
            .cpu_tokens = s->tokens + e->at + e->n_hits + e->n_moved,
        };
        moesim_parts parts = {0};
        x->ops->event(x, &work, &parts);
        out->seconds[i] = from_gate(&parts);
        const double gpu = parts.busy_gpu - parts.other_gpu;
        out->gpu_bound[i] = gpu >= 0.75 * out->seconds[i] && parts.busy_link <= 0.5 * gpu;
        out->link_bound[i] = parts.link > 0.5 * out->seconds[i];
        out->cpu_bound[i] = parts.cpu > 0 && parts.dram <= 0.05 * out->seconds[i];
        if (e->layer > 0)
            out->seconds[i - 1] += parts.other_gpu + parts.other_host;
        add_step(&step, &parts);
        if (e->layer + 1 < s->num_layers)
            continue;
        parts = (moesim_parts){0};
        x->ops->end_pass(x, &parts);
        add_step(&step, &parts);
        if (e->counted)
            moesim_parts_add(&request, &step);
        step = (moesim_parts){0};
        if (i + 1 == s->num_events || s->event[i + 1].request != e->request) {
            moesim_parts_add(&out->counted, &request);
            request = (moesim_parts){0};
        }
    }
}

moesim_code moesim_predict(const moesim_works *works, const moesim_costing *costing, moesim_prediction *out,
                           moesim_error *err)
{
    moesim_executor *x = NULL;
    void *seconds = NULL, *gpu = NULL, *link = NULL, *cpu = NULL;
    memset(out, 0, sizeof *out);
    moesim_code code = moesim_alloc(works->num_events, sizeof *out->seconds, "predicted times", &seconds, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(works->num_events, sizeof *out->gpu_bound, "predicted times", &gpu, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(works->num_events, sizeof *out->link_bound, "predicted times", &link, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(works->num_events, sizeof *out->cpu_bound, "predicted times", &cpu, err);
    out->seconds = seconds;
    out->gpu_bound = gpu;
    out->link_bound = link;
    out->cpu_bound = cpu;
    if (code == MOESIM_OK)
        code = moesim_executor_create(costing, 0, &x, err);
    if (code == MOESIM_OK)
        price(works, x, out);
    moesim_executor_destroy(&x);
    return code;
}

void moesim_prediction_fini(moesim_prediction *prediction)
{
    free(prediction->seconds);
    free(prediction->gpu_bound);
    free(prediction->link_bound);
    free(prediction->cpu_bound);
    memset(prediction, 0, sizeof *prediction);
}
