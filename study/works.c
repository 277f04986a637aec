/* SPDX-License-Identifier: Apache-2.0
 *
 * Works: from a decision log, or from a run as it goes on.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "study/predict.h"

#define FIRST_ROOM 1024u

static moesim_code grow(void **array, size_t each, uint64_t used, uint64_t more, uint64_t *room, moesim_error *err)
{
    if (*room - used >= more)
        return MOESIM_OK;
    const uint64_t wanted = 2 * *room + more + FIRST_ROOM;
    void *grown = wanted <= SIZE_MAX / each ? realloc(*array, wanted * each) : NULL;
    if (grown == NULL)
        return moesim_fail_nomem(err, "the events of a log", wanted * each);
    *array = grown;
    *room = wanted;
    return MOESIM_OK;
}

static moesim_code reserve(moesim_works *s, uint64_t tokens, moesim_error *err)
{
    void *event = s->event, *token = s->tokens;
    moesim_code code = grow(&event, sizeof *s->event, s->num_events, 1, &s->event_room, err);
    if (code == MOESIM_OK)
        code = grow(&token, sizeof *s->tokens, s->used, tokens, &s->token_room, err);
    s->event = event;
    s->tokens = token;
    return code;
}

moesim_code moesim_works_add(moesim_works *s, const moesim_walk_event *e, moesim_error *err)
{
    if (e->layer != s->num_events % s->num_layers)
        return moesim_fail(err, MOESIM_E_FORMAT, "event %" PRIu64 " of the decisions is of layer %" PRIu32 ", not %" PRIu64
                           ": what is executed comes in the order of layers (a policy that retains at the end of a pass, or "
                           "--order flattened, cannot be timed event by event)", s->num_events, e->layer,
                           s->num_events % s->num_layers);
    if (reserve(s, (uint64_t)e->n_hits + e->n_moved + e->n_cpu, err) != MOESIM_OK)
        return err->code;
    moesim_works_event *out = &s->event[s->num_events++];
    *out = (moesim_works_event){
        .pass = e->pass, .layer = e->layer, .num_rows = e->num_rows, .n_hits = e->n_hits, .n_moved = e->n_moved,
        .n_cpu = e->n_cpu, .at = s->used, .request = e->request, .counted = e->counted,
    };
    for (uint32_t i = 0; i < e->n_hits; i++)
        s->tokens[s->used++] = e->hits[i].tokens;
    for (uint32_t i = 0; i < e->n_moved; i++)
        s->tokens[s->used++] = e->moved[i].tokens;
    for (uint32_t i = 0; i < e->n_cpu; i++)
        s->tokens[s->used++] = e->cpu[i].tokens;
    return MOESIM_OK;
}

moesim_code moesim_works_read(moesim_walk *walk, uint32_t num_layers, moesim_works *out, moesim_error *err)
{
    moesim_walk_event e;
    bool end = false;
    *out = (moesim_works){.num_layers = num_layers};
    while (moesim_walk_next(walk, &e, &end, err) == MOESIM_OK && !end)
        if (moesim_works_add(out, &e, err) != MOESIM_OK)
            return err->code;
    return end ? MOESIM_OK : err->code;
}

void moesim_works_fini(moesim_works *works)
{
    free(works->event);
    free(works->tokens);
    memset(works, 0, sizeof *works);
}

/* ---- recording ------------------------------------------------------------------------------------------------------- */

struct moesim_recorder {
    moesim_event_sink sink;
    moesim_join *join;
    moesim_digest *digest;
    moesim_works works;
};

static moesim_code on_gate(void *cookie, const moesim_window *w, const moesim_step *step, size_t index, moesim_error *err)
{
    (void)cookie;
    (void)w;
    (void)step;
    (void)index;
    (void)err;
    return MOESIM_OK;
}

static moesim_code on_event(void *cookie, const moesim_window *w, const moesim_step *step, size_t index,
                            const moesim_decision *decision, moesim_error *err)
{
    moesim_recorder *r = cookie;
    moesim_walk_event e;
    if (moesim_join_event(r->join, w, step, index, decision, &e, err) != MOESIM_OK)
        return err->code;
    moesim_decision_digest(r->digest, decision);
    return moesim_works_add(&r->works, &e, err);
}

moesim_code moesim_recorder_create(const moesim_trace_info *trace, const char *name, moesim_recorder **out, moesim_error *err)
{
    void *p = NULL;
    *out = NULL;
    if (moesim_alloc(1, sizeof **out, "a recorder", &p, err) != MOESIM_OK)
        return err->code;
    moesim_recorder *r = p;
    r->sink = (moesim_event_sink){.cookie = r, .gate = on_gate, .event = on_event};
    r->works.num_layers = trace->num_layers;
    if (moesim_join_create(trace->num_layers, trace->num_experts, trace->top_k, MOESIM_WALK_ROWS, name, &r->join, err) !=
            MOESIM_OK ||
        moesim_digest_create(&r->digest, err) != MOESIM_OK) {
        moesim_recorder_destroy(&r);
        return err->code;
    }
    *out = r;
    return MOESIM_OK;
}

const moesim_event_sink *moesim_recorder_sink(moesim_recorder *recorder)
{
    return &recorder->sink;
}

void moesim_recorder_finish(moesim_recorder **recorder, moesim_works *works, char digest[MOESIM_DIGEST_CHARS])
{
    moesim_recorder *r = *recorder;
    *works = r->works;
    moesim_digest_hex(r->digest, digest);
    r->works = (moesim_works){0};
    moesim_recorder_destroy(recorder);
}

void moesim_recorder_destroy(moesim_recorder **recorder)
{
    moesim_recorder *r = *recorder;
    if (r == NULL)
        return;
    moesim_join_destroy(&r->join);
    moesim_digest_destroy(&r->digest);
    moesim_works_fini(&r->works);
    free(r);
    *recorder = NULL;
}
