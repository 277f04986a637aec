/* SPDX-License-Identifier: Apache-2.0
 *
 * From a walk to the works of a device.
 */
#include "replay/worklist.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define MEMORY "the events of a replay (choose fewer --requests)"

typedef struct building {
    moesim_worklist *list;
    moesim_slots *slots;
    moesim_digest *digest;
    size_t room;                 /* events allocated */
} building;

void moesim_event_decision(const moesim_walk_event *event, uint16_t *id, moesim_decision *out)
{
    *out = (moesim_decision){
        .pass = event->pass, .clock = event->clock, .layer = event->layer, .counted = event->counted, .n_hits = event->n_hits,
        .n_moved = event->n_moved, .n_cpu = event->n_cpu, .n_evicted = event->n_evicted, .evicted = event->evicted,
    };
    const struct { const moesim_walk_expert *from; uint32_t n; const uint16_t **to; } list[] = {
        {event->hits, event->n_hits, &out->hits}, {event->moved, event->n_moved, &out->moved},
        {event->cpu, event->n_cpu, &out->cpu},
    };
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        *list[k].to = id;
        for (uint32_t i = 0; i < list[k].n; i++)
            *id++ = list[k].from[i].expert;
    }
}

static moesim_code grow(building *b, moesim_error *err)
{
    moesim_worklist *s = b->list;
    if (s->num_events < b->room)
        return MOESIM_OK;
    const size_t room = b->room > 0 ? 2 * b->room : 1024;
    if (room > MOESIM_WORKLIST_BYTES / sizeof *s->event)
        return moesim_fail(err, MOESIM_E_LIMIT, "more than %zu events in one replay; choose fewer --requests", b->room);
    void *larger = realloc(s->event, room * sizeof *s->event);
    if (larger == NULL)
        return moesim_fail_nomem(err, "events of a replay", room * sizeof *s->event);
    s->event = larger;
    b->room = room;
    return MOESIM_OK;
}

/* Rows live in the walk until its next event: they are copied. */
static moesim_code keep_rows(moesim_worklist *s, moesim_device_expert *device, uint32_t n, moesim_error *err)
{
    size_t routes = 0;
    void *p = NULL;
    for (uint32_t i = 0; i < n; i++)
        routes += device[i].tokens;
    if (moesim_arena_take(s->arena, routes, sizeof(uint16_t), MEMORY, &p, err) != MOESIM_OK)
        return err->code;
    s->most_routes = routes > s->most_routes ? routes : s->most_routes;
    for (uint16_t *row = p; n > 0; n--, device++) {
        memcpy(row, device->row, device->tokens * sizeof *row);
        device->row = row;
        row += device->tokens;
    }
    return MOESIM_OK;
}

static moesim_code add_event(building *b, const moesim_walk_event *event, moesim_error *err)
{
    moesim_worklist *s = b->list;
    void *device = NULL, *id = NULL;
    moesim_decision decision;
    if (event->decode && event->num_rows > event->listed_rows)
        return moesim_fail(err, MOESIM_E_LIMIT, "pass %llu has %u rows, a device computes at most %u in one event; choose a "
                           "smaller --batch", (unsigned long long)event->pass, event->num_rows, event->listed_rows);
    const size_t n = event->n_active;
    if (grow(b, err) != MOESIM_OK ||
        moesim_arena_take(s->arena, n, sizeof(moesim_device_expert), MEMORY, &device, err) != MOESIM_OK ||
        moesim_arena_take(s->arena, n, sizeof(uint16_t), MEMORY, &id, err) != MOESIM_OK)
        return err->code;
    moesim_worklist_event *e = &s->event[s->num_events];
    *e = (moesim_worklist_event){
        .expert = id, .pass = event->pass, .layer = event->layer, .rows = event->num_rows, .counted = event->counted,
        .last = event->last,
    };
    if (moesim_slots_event(b->slots, event, device, &e->work, err) != MOESIM_OK ||
        keep_rows(s, device, event->n_active, err) != MOESIM_OK)
        return err->code;
    moesim_event_decision(event, id, &decision);
    moesim_decision_digest(b->digest, &decision);
    s->num_events++;
    s->num_steps += event->last;
    return MOESIM_OK;
}

static moesim_code add_events(building *b, moesim_walk *walk, moesim_error *err)
{
    for (;;) {
        moesim_walk_event event;
        bool end = false;
        if (moesim_walk_next(walk, &event, &end, err) != MOESIM_OK)
            return err->code;
        if (end)
            return MOESIM_OK;
        if (add_event(b, &event, err) != MOESIM_OK)
            return err->code;
    }
}

static moesim_code take_fills(building *b, const moesim_slots_shape *shape, const uint64_t *initial, moesim_error *err)
{
    moesim_worklist *s = b->list;
    void *p = NULL;
    if (moesim_slots_reset(b->slots, initial, err) != MOESIM_OK ||
        moesim_arena_take(s->arena, shape->slots, sizeof *s->fill, "slots of a replay", &p, err) != MOESIM_OK)
        return err->code;
    s->fill = p;
    s->slots = shape->slots;
    for (uint32_t i = 0; i < shape->slots; i++)
        s->fill[i] = moesim_slots_content(b->slots, i);
    return MOESIM_OK;
}

moesim_code moesim_worklist_build(moesim_trace *trace, moesim_declog_reader *log, const moesim_walk_params *params,
                                const moesim_log_facts *facts, const moesim_slots_shape *shape, moesim_worklist *out,
                                moesim_error *err)
{
    building b = {.list = out};
    moesim_walk *walk = NULL;
    *out = (moesim_worklist){.num_events = 0};
    moesim_code code = moesim_arena_create(MOESIM_WORKLIST_BYTES, &out->arena, err);
    if (code == MOESIM_OK)
        code = moesim_slots_create(shape, &b.slots, err);
    if (code == MOESIM_OK)
        code = moesim_digest_create(&b.digest, err);
    if (code == MOESIM_OK)
        code = take_fills(&b, shape, facts->initial, err);
    if (code == MOESIM_OK)
        code = moesim_walk_open(trace, log, params, &walk, err);
    if (code == MOESIM_OK)
        code = add_events(&b, walk, err);
    if (code == MOESIM_OK) {
        moesim_digest_hex(b.digest, out->executed);
        out->bytes = moesim_arena_bytes(out->arena) + b.room * sizeof *out->event;
    }
    moesim_walk_close(&walk);
    moesim_slots_destroy(&b.slots);
    moesim_digest_destroy(&b.digest);
    return code;
}

void moesim_worklist_fini(moesim_worklist *list)
{
    moesim_arena_destroy(&list->arena);
    free(list->event);
    *list = (moesim_worklist){.num_events = 0};
}
