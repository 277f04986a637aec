/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of a log, priced one by one.
 */
#include "study/predict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* ---- reading ------------------------------------------------------------------------------------------------------- */

typedef struct pool {
    uint64_t used, room;
} pool;

static moesim_code reserve(moesim_script *s, pool *p, uint64_t more, moesim_error *err)
{
    if (p->room - p->used >= more)
        return MOESIM_OK;
    const uint64_t room = 2 * p->room + more + 1024;
    uint32_t *grown = room <= SIZE_MAX / sizeof *grown ? realloc(s->tokens, room * sizeof *grown) : NULL;
    if (grown == NULL)
        return moesim_fail_nomem(err, "the tokens of the missed experts", room * sizeof *grown);
    s->tokens = grown;
    p->room = room;
    return MOESIM_OK;
}

static moesim_code take(moesim_script *s, pool *p, const moesim_walk_event *e, moesim_error *err)
{
    if (reserve(s, p, (uint64_t)e->n_moved + e->n_cpu, err) != MOESIM_OK)
        return err->code;
    moesim_script_event *out = &s->event[e->index];
    *out = (moesim_script_event){
        .pass = e->pass, .layer = e->layer, .num_rows = e->num_rows, .n_hits = e->n_hits, .n_moved = e->n_moved,
        .n_cpu = e->n_cpu, .at = p->used, .request = e->request, .counted = e->counted,
    };
    for (uint32_t i = 0; i < e->n_hits; i++)
        out->hit_tokens += e->hits[i].tokens;
    for (uint32_t i = 0; i < e->n_moved; i++)
        s->tokens[p->used++] = e->moved[i].tokens;
    for (uint32_t i = 0; i < e->n_cpu; i++)
        s->tokens[p->used++] = e->cpu[i].tokens;
    return MOESIM_OK;
}

moesim_code moesim_script_read(moesim_walk *walk, uint64_t num_events, uint32_t num_layers, moesim_script *out,
                               moesim_error *err)
{
    moesim_walk_event e;
    pool p = {0};
    void *events = NULL;
    bool end = false;
    uint64_t n = 0;
    memset(out, 0, sizeof *out);
    if (moesim_alloc(num_events, sizeof *out->event, "the events of a log", &events, err) != MOESIM_OK)
        return err->code;
    *out = (moesim_script){.num_events = num_events, .num_layers = num_layers, .event = events};
    for (;; n++) {
        if (moesim_walk_next(walk, &e, &end, err) != MOESIM_OK)
            return err->code;
        if (end)
            break;
        if (n == num_events || e.index != n || e.layer != n % num_layers)
            return moesim_fail(err, MOESIM_E_FORMAT, "event %" PRIu64 " of the decision log is out of turn (layer %" PRIu32
                               ", event %" PRIu64 " of %" PRIu64 "); write the log again with 'moesim run --decisions'",
                               e.index, e.layer, n, num_events);
        if (take(out, &p, &e, err) != MOESIM_OK)
            return err->code;
    }
    return n == num_events && n % num_layers == 0
               ? MOESIM_OK
               : moesim_fail(err, MOESIM_E_FORMAT, "the decision log says that it has %" PRIu64 " events and has %" PRIu64
                             " of %" PRIu32 " layers; write it again with 'moesim run --decisions'", num_events, n, num_layers);
}

void moesim_script_fini(moesim_script *script)
{
    free(script->event);
    free(script->tokens);
    memset(script, 0, sizeof *script);
}

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

static void price(const moesim_script *s, moesim_executor *x, moesim_prediction *out)
{
    moesim_parts step = {0}, request = {0};
    for (uint64_t i = 0; i < s->num_events; i++) {
        const moesim_script_event *e = &s->event[i];
        const moesim_work work = {
            .layer = e->layer, .num_rows = e->num_rows, .n_hits = e->n_hits, .hit_tokens = e->hit_tokens,
            .n_moved = e->n_moved, .n_cpu = e->n_cpu, .moved_tokens = s->tokens + e->at,
            .cpu_tokens = s->tokens + e->at + e->n_moved,
        };
        moesim_parts parts = {0};
        x->ops->event(x, &work, &parts);
        out->seconds[i] = from_gate(&parts);
        out->link_bound[i] = parts.link > 0.5 * out->seconds[i];
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

moesim_code moesim_predict(const moesim_script *script, const moesim_costing *costing, moesim_prediction *out,
                           moesim_error *err)
{
    moesim_executor *x = NULL;
    void *seconds = NULL, *bound = NULL;
    memset(out, 0, sizeof *out);
    moesim_code code = moesim_alloc(script->num_events, sizeof *out->seconds, "predicted times", &seconds, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(script->num_events, sizeof *out->link_bound, "predicted times", &bound, err);
    out->seconds = seconds;
    out->link_bound = bound;
    if (code == MOESIM_OK)
        code = moesim_executor_create(costing, 0, &x, err);
    if (code == MOESIM_OK)
        price(script, x, out);
    moesim_executor_destroy(&x);
    return code;
}

void moesim_prediction_fini(moesim_prediction *prediction)
{
    free(prediction->seconds);
    free(prediction->link_bound);
    memset(prediction, 0, sizeof *prediction);
}
