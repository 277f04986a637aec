/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots: a map from experts to slots, a stack of free slots and a ring for staging.
 */
#include "replay/slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

#define MOST_BYTES ((size_t)64 << 20)

struct moesim_slots {
    moesim_arena *arena;
    moesim_slots_shape shape;
    uint32_t *slot_of;           /* [M][E] or MOESIM_NO_SLOT */
    uint32_t *owner;             /* [slots] l·E + e, or MOESIM_NO_SLOT */
    uint32_t *free;              /* [slots] stack */
    uint32_t *leaving;           /* [E] slots of hits that leave in this event */
    uint8_t *hit;                /* [E] in this event */
    uint32_t num_free, num_leaving, ring;
};

moesim_code moesim_slots_create(const moesim_slots_shape *shape, moesim_slots **out, moesim_error *err)
{
    moesim_arena *arena = NULL;
    moesim_slots *s = NULL;
    const size_t experts = (size_t)shape->num_layers * shape->num_experts;
    *out = NULL;
    if (moesim_arena_create(MOST_BYTES, &arena, err) != MOESIM_OK)
        return err->code;
    moesim_code code = moesim_arena_take(arena, 1, sizeof *s, "slots", (void **)&s, err);
    if (code != MOESIM_OK) {
        moesim_arena_destroy(&arena);
        return code;
    }
    s->arena = arena;
    s->shape = *shape;
    const struct { size_t n, each; void **out; } piece[] = {
        {experts, sizeof *s->slot_of, (void **)&s->slot_of}, {shape->slots, sizeof *s->owner, (void **)&s->owner},
        {shape->slots, sizeof *s->free, (void **)&s->free},  {shape->num_experts, sizeof *s->leaving, (void **)&s->leaving},
        {shape->num_experts, sizeof *s->hit, (void **)&s->hit},
    };
    for (size_t i = 0; i < sizeof piece / sizeof piece[0] && code == MOESIM_OK; i++)
        code = moesim_arena_take(arena, piece[i].n, piece[i].each, "slots", piece[i].out, err);
    *out = s;
    if (code != MOESIM_OK)
        moesim_slots_destroy(out);
    return code;
}

void moesim_slots_destroy(moesim_slots **slots)
{
    if (*slots == NULL)
        return;
    moesim_arena *arena = (*slots)->arena;
    moesim_arena_destroy(&arena);
    *slots = NULL;
}

static void own(moesim_slots *s, uint32_t slot, uint32_t expert)
{
    s->owner[slot] = expert;
    s->slot_of[expert] = slot;
}

moesim_code moesim_slots_reset(moesim_slots *s, const uint64_t *initial, moesim_error *err)
{
    const uint32_t layers = s->shape.num_layers, experts = s->shape.num_experts, words = moesim_words(experts);
    memset(s->slot_of, 0xff, (size_t)layers * experts * sizeof *s->slot_of);
    memset(s->owner, 0xff, s->shape.slots * sizeof *s->owner);
    s->num_free = s->ring = 0;
    if (s->shape.aliased) {
        for (uint32_t x = 0; x < layers * experts; x++)
            s->slot_of[x] = x % s->shape.slots;
        for (uint32_t i = 0; i < s->shape.slots && i < layers * experts; i++)
            s->owner[i] = i;
        return MOESIM_OK;
    }
    for (uint32_t i = s->shape.slots; i > 0; i--)
        s->free[s->num_free++] = i - 1;
    for (uint32_t l = 0; l < layers && initial != NULL; l++)
        MOESIM_EACH_BIT(e, initial + (size_t)l * words, words, {
            if (s->num_free == 0)
                return moesim_fail(err, MOESIM_E_LIMIT, "more residents before the first event than the %u slots",
                                   s->shape.slots);
            own(s, s->free[--s->num_free], l * experts + e);
        });
    return MOESIM_OK;
}

uint32_t moesim_slots_content(const moesim_slots *s, uint32_t i)
{
    return s->owner[i] == MOESIM_NO_SLOT ? MOESIM_NO_SLOT : s->owner[i] % s->shape.pool;
}

/* A slot's expert leaves: free at once unless the event still reads it. */
static void leave(moesim_slots *s, uint32_t expert, bool read)
{
    const uint32_t slot = s->slot_of[expert];
    if (slot == MOESIM_NO_SLOT)
        return;
    s->slot_of[expert] = s->owner[slot] = MOESIM_NO_SLOT;
    if (read)
        s->leaving[s->num_leaving++] = slot;
    else
        s->free[s->num_free++] = slot;
}

static moesim_code fail(const moesim_walk_event *event, uint32_t expert, const char *what, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_INTERNAL, "event %llu (pass %llu, layer %u): expert %u %s",
                       (unsigned long long)event->index, (unsigned long long)event->pass, event->layer, expert, what);
}

static moesim_code place_hits(moesim_slots *s, const moesim_walk_event *event, moesim_device_expert *out, moesim_error *err)
{
    memset(s->hit, 0, s->shape.num_experts);
    for (uint32_t i = 0; i < event->n_hits; i++) {
        const moesim_walk_expert *e = &event->hits[i];
        const uint32_t expert = event->layer * s->shape.num_experts + e->expert, slot = s->slot_of[expert];
        if (slot == MOESIM_NO_SLOT)
            return fail(event, e->expert, "hits and has no slot", err);
        s->hit[e->expert] = 1;
        out[i] = (moesim_device_expert){.slot = slot, .pool = moesim_slots_content(s, slot), .tokens = e->listed,
                                        .row = e->row};
    }
    return MOESIM_OK;
}

static moesim_code place_moved(moesim_slots *s, const moesim_walk_event *event, moesim_device_expert *out, moesim_error *err)
{
    uint32_t reused = 0;
    for (uint32_t i = 0; i < event->n_moved; i++) {
        const moesim_walk_expert *e = &event->moved[i];
        const uint32_t expert = event->layer * s->shape.num_experts + e->expert;
        uint32_t slot = s->shape.slots + s->ring;
        if (!event->kept[i]) {
            s->ring = (s->ring + 1) % s->shape.staging;
        } else if (s->num_free > 0) {
            own(s, slot = s->free[--s->num_free], expert);
        } else if (reused < s->num_leaving) {
            own(s, slot = s->leaving[reused++], expert);
        } else {
            return fail(event, e->expert, "stays and finds no free slot", err);
        }
        out[i] = (moesim_device_expert){.slot = slot, .pool = expert % s->shape.pool, .tokens = e->listed, .row = e->row};
    }
    while (reused < s->num_leaving)
        s->free[s->num_free++] = s->leaving[reused++];
    return MOESIM_OK;
}

moesim_code moesim_slots_event(moesim_slots *s, const moesim_walk_event *event, moesim_device_expert *device,
                               moesim_device_work *work, moesim_error *err)
{
    const uint32_t first = event->layer * s->shape.num_experts;
    moesim_device_expert *moved = device + event->n_hits, *cpu = moved + event->n_moved;
    s->num_leaving = 0;
    if (s->shape.aliased && event->n_moved + event->n_cpu + event->n_evicted > 0)
        return fail(event, event->n_moved > 0 ? event->moved[0].expert : 0, "is not a hit, with slots that several experts "
                    "share", err);
    if (place_hits(s, event, device, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0; i < event->n_evicted; i++)
        leave(s, first + event->evicted[i], s->hit[event->evicted[i]] != 0);
    for (uint32_t i = 0; i < event->n_moved; i++)        /* had left before the event: its old slot is nobody's */
        leave(s, first + event->moved[i].expert, false);
    if (place_moved(s, event, moved, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0; i < event->n_cpu; i++)
        cpu[i] = (moesim_device_expert){.slot = MOESIM_NO_SLOT, .pool = (first + event->cpu[i].expert) % s->shape.pool,
                                        .tokens = event->cpu[i].listed, .row = event->cpu[i].row};
    *work = (moesim_device_work){
        .num_rows = event->listed_rows, .n_hits = event->n_hits, .n_moved = event->n_moved, .n_cpu = event->n_cpu,
        .hits = device, .moved = moved, .cpu = cpu,
    };
    return MOESIM_OK;
}
