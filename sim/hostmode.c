/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds that the host computes itself (semantics §3): ideal and ideal-pooled reload freely before every event, full holds
 * everything, belady-pooled is MIN with bypass over one pool of Σ C slots on the time line (clock, layer).
 */
#include <string.h>

#include "base/bits.h"
#include "sim/instance.h"
#include "sim/settle.h"

/* ---- ideal, ideal-pooled, full ------------------------------------------------------------------------------------ */

static uint32_t size_of(const moesim_window *w, const moesim_step *step, uint32_t layer)
{
    const size_t index = (size_t)(step - w->step) * w->num_layers + layer;
    return w->list_begin[index + 1] - w->list_begin[index];
}

/* Free reload: which experts hit is nobody's choice, so the log takes the lowest ids. */
static moesim_code count_ideal(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer,
                               uint32_t hits, moesim_error *err)
{
    const uint32_t words = in->shape.words, active = size_of(w, step, layer);
    const size_t index = (size_t)(step - w->step) * w->num_layers + layer;
    moesim_turn *turn = &in->turn[0];
    moesim_tally_event(&in->account, layer, in->slots[layer], active, hits, active - hits);
    if (in->params.declog == NULL)
        return MOESIM_OK;
    const uint16_t *list = w->list + w->list_begin[index];
    turn->layer = layer;
    turn->active = w->active + index * words;
    turn->n_misses = active - hits;
    memset(turn->misses, 0, words * sizeof *turn->misses);
    memset(turn->before, 0, words * sizeof *turn->before);
    memset(turn->cpu, 0, words * sizeof *turn->cpu);
    memset(turn->keep, 0, words * sizeof *turn->keep);
    for (uint32_t i = hits; i < active; i++) {
        moesim_bit_set(turn->misses, list[i]);
        turn->order[i - hits] = list[i];
    }
    memcpy(turn->moved, turn->misses, words * sizeof *turn->moved);
    return moesim_log_event(in, step, turn, err);
}

moesim_code moesim_step_ideal(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    for (uint32_t l = 0; l < w->num_layers; l++) {
        const uint32_t active = size_of(w, step, l);
        if (count_ideal(in, w, step, l, active < in->slots[l] ? active : in->slots[l], err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

/* The pool's hits are given to the layers in their order; a utilisation of Σ hits / (C·M) for each event adds up to what the
 * step's tally gives, whatever the order. */
moesim_code moesim_step_ideal_pooled(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    uint64_t left = in->total_slots;
    for (uint32_t l = 0; l < w->num_layers; l++) {
        const uint32_t active = size_of(w, step, l);
        const uint32_t hits = active < left ? active : (uint32_t)left;
        left -= hits;
        if (count_ideal(in, w, step, l, hits, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

moesim_code moesim_step_full(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    for (uint32_t l = 0; l < w->num_layers; l++)
        if (count_ideal(in, w, step, l, size_of(w, step, l), err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

/* ---- belady-pooled ---------------------------------------------------------------------------------------------------- */

/* The key of a resident is (time of its next event) << 1, with bit 0 set while it is a miss of the event in flight: of two
 * that are used at the same time the resident stays. 0: not resident. Never: NEVER_KEY, above every time. */
#define NEVER_KEY (UINT64_MAX - 1)

struct moesim_pool {
    uint64_t *key;               /* [M][words·64] */
    uint64_t *worst;             /* [M] greatest key of each layer */
    uint64_t used;               /* residents of all layers */
};

moesim_code moesim_pooled_init(moesim_instance *in, moesim_error *err)
{
    const size_t layers = in->shape.num_layers, keys = layers * in->shape.words * 64u;
    struct moesim_pool *p;
    if (moesim_arena_take(in->arena, 1, sizeof *p, "a pool of slots", (void **)&p, err) != MOESIM_OK ||
        moesim_arena_take(in->arena, keys, sizeof *p->key, "a pool of slots", (void **)&p->key, err) != MOESIM_OK ||
        moesim_arena_take(in->arena, layers, sizeof *p->worst, "a pool of slots", (void **)&p->worst, err) != MOESIM_OK)
        return err->code;
    in->pool = p;
    return MOESIM_OK;
}

static void find_worst(struct moesim_pool *p, uint32_t layer, uint32_t keys)
{
    const uint64_t *key = p->key + (size_t)layer * keys;
    uint64_t worst = 0;
    for (uint32_t e = 0; e < keys; e++)
        worst = key[e] > worst ? key[e] : worst;
    p->worst[layer] = worst;
}

/* Evicts the expert used last of all; of equals the highest id of the highest layer. */
static void evict_last(moesim_instance *in, uint32_t *layer, uint32_t *expert)
{
    struct moesim_pool *p = in->pool;
    const uint32_t keys = in->shape.words * 64u;
    uint32_t at = 0;
    for (uint32_t l = 1; l < in->shape.num_layers; l++)
        if (p->worst[l] >= p->worst[at])
            at = l;
    uint64_t *key = p->key + (size_t)at * keys;
    uint32_t e = keys - 1;
    while (key[e] != p->worst[at])
        e--;
    key[e] = 0;
    p->used--;
    find_worst(p, at, keys);
    *layer = at;
    *expert = e;
}

/* Enters A with the times of their next events. */
static void enter(moesim_instance *in, const moesim_window *w, const moesim_turn *turn, size_t index)
{
    struct moesim_pool *p = in->pool;
    const uint32_t keys = in->shape.words * 64u, begin = w->list_begin[index];
    uint64_t *key = p->key + (size_t)turn->layer * keys;
    for (uint32_t i = 0; i < turn->n_active; i++) {
        const uint32_t e = w->list[begin + i];
        const uint64_t next = w->next_use[begin + i];
        const uint64_t time = next == MOESIM_NEVER ? NEVER_KEY : (next * w->num_layers + turn->layer) << 1;
        key[e] = time | moesim_bit_test(turn->misses, e);
    }
    p->used += turn->n_misses;
    find_worst(p, turn->layer, keys);
}

static moesim_code pooled_event(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer,
                                moesim_error *err)
{
    const uint32_t words = in->shape.words, keys = words * 64u;
    const size_t index = (size_t)(step - w->step) * w->num_layers + layer;
    uint64_t *resident = in->resident + (size_t)layer * words;
    moesim_turn *turn = &in->turn[0];
    uint32_t n = 0;
    turn->layer = layer;
    turn->active = w->active + index * words;
    turn->n_active = size_of(w, step, layer);
    for (uint32_t i = 0; i < words; i++) {
        turn->before[i] = resident[i];
        turn->misses[i] = turn->moved[i] = turn->active[i] & ~resident[i];
        turn->keep[i] = resident[i] | turn->misses[i];
        turn->cpu[i] = 0;
    }
    MOESIM_EACH_BIT(e, turn->misses, words, { turn->order[n++] = (uint16_t)e; });
    turn->n_misses = turn->n_moved = n;
    turn->n_hits = turn->n_active - n;
    moesim_tally_event(&in->account, layer, in->slots[layer], turn->n_active, turn->n_hits, n);
    enter(in, w, turn, index);
    while (in->pool->used > in->total_slots) {
        uint32_t at, e;
        evict_last(in, &at, &e);
        if (at == layer)
            moesim_bit_clear(turn->keep, e);
        else
            moesim_evict(in, at, e);
    }
    moesim_settle(&in->account, layer, words, turn->active, turn->before, turn->moved, turn->keep);
    memcpy(resident, turn->keep, words * sizeof *resident);
    uint64_t *key = in->pool->key + (size_t)layer * keys;
    MOESIM_EACH_BIT(e, turn->keep, words, { key[e] &= ~UINT64_C(1); });
    in->pool->worst[layer] &= ~UINT64_C(1);
    return in->params.declog != NULL ? moesim_log_event(in, step, turn, err) : MOESIM_OK;
}

moesim_code moesim_step_belady_pooled(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    for (uint32_t l = 0; l < w->num_layers; l++)
        if (pooled_event(in, w, step, l, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}
