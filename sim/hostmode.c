/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds that the host computes itself (semantics §3): ideal and ideal-pooled reload freely before every event, full holds
 * everything, belady-pooled is MIN with bypass over one pool of Σ C slots on the time line (clock, layer).
 */
#include <string.h>

#include "base/bits.h"
#include "sim/instance.h"
#include "sim/plan.h"
#include "sim/settle.h"
#include "sim/snapshot.h"
#include "sim/timer.h"

/* ---- ideal, ideal-pooled, full ------------------------------------------------------------------------------------ */

static uint32_t size_of(const moesim_window *w, const moesim_step *step, uint32_t layer)
{
    const size_t index = (size_t)(step - w->step) * w->num_layers + layer;
    return w->list_begin[index + 1] - w->list_begin[index];
}

/* Free reload: which experts hit is nobody's choice. Without time the lowest ids do; with time those with most tokens, so
 * that what remains is least work. `before` holds the hits: what a reload has put there. */
static void choose_hits(const moesim_instance *in, const moesim_window *w, size_t index, uint32_t hits, moesim_turn *turn)
{
    const uint32_t words = in->shape.words, begin = w->list_begin[index], n = turn->n_active;
    const uint16_t *list = w->list + begin;
    const uint32_t *count = in->timer != NULL ? w->count + begin : NULL;
    uint32_t most = 0, left = hits;
    memset(turn->before, 0, words * sizeof *turn->before);
    for (uint32_t i = 0; i < n && count != NULL; i++)
        most = count[i] > most ? count[i] : most;
    while (left > 0) {
        uint32_t next = 0;
        for (uint32_t i = 0; i < n && left > 0; i++) {
            const uint32_t c = count != NULL ? count[i] : 0;
            if (c == most) {
                moesim_bit_set(turn->before, list[i]);
                left--;
            } else if (c < most && c > next) {
                next = c;
            }
        }
        most = next;
    }
    for (uint32_t i = 0; i < words; i++)
        turn->misses[i] = turn->moved[i] = turn->active[i] & ~turn->before[i];
}

static moesim_code count_ideal(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer,
                               uint32_t hits, moesim_error *err)
{
    const uint32_t words = in->shape.words, active = size_of(w, step, layer);
    const size_t index = (size_t)(step - w->step) * w->num_layers + layer;
    moesim_turn *turn = &in->turn[0];
    if (in->params.declog == NULL && in->timer == NULL && !in->dispatches) {
        moesim_tally_event(&in->account, layer, in->slots[layer], active, hits, active - hits);
        return MOESIM_OK;
    }
    turn->layer = layer;
    turn->active = w->active + index * words;
    turn->n_active = active;
    turn->n_hits = hits;
    turn->n_misses = turn->n_moved = active - hits;
    memset(turn->keep, 0, words * sizeof *turn->keep);
    choose_hits(in, w, index, hits, turn);
    moesim_view_event(in, w, turn, index);
    if (moesim_plan_split(in, turn, err) != MOESIM_OK)
        return err->code;
    moesim_tally_event(&in->account, layer, in->slots[layer], active, hits, turn->n_moved);
    if (in->timer != NULL)
        moesim_timer_event(in->timer, w, index, turn->misses, turn->cpu, turn->order, turn->n_misses);
    return in->params.declog != NULL ? moesim_log_event(in, step, turn, err) : MOESIM_OK;
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

moesim_code moesim_pooled_visit(moesim_instance *in, moesim_visitor *v, moesim_error *err)
{
    struct moesim_pool *p = in->pool;
    const size_t layers = in->shape.num_layers, keys = layers * in->shape.words * 64u;
    if (v->visit(v, p->key, keys * sizeof *p->key, err) != MOESIM_OK ||
        v->visit(v, p->worst, layers * sizeof *p->worst, err) != MOESIM_OK)
        return err->code;
    return v->visit(v, &p->used, sizeof p->used, err);
}

/* Four maxima at a time: one would be a chain of dependent compares. */
static void find_worst(struct moesim_pool *p, uint32_t layer, uint32_t keys)
{
    const uint64_t *key = p->key + (size_t)layer * keys;
    uint64_t most[4] = {0};
    for (uint32_t e = 0; e < keys; e += 4)
        for (uint32_t i = 0; i < 4; i++)
            most[i] = key[e + i] > most[i] ? key[e + i] : most[i];
    const uint64_t left = most[0] > most[1] ? most[0] : most[1], right = most[2] > most[3] ? most[2] : most[3];
    p->worst[layer] = left > right ? left : right;
}

/* Evicts the experts used last of all, as many as are too much; of equals the highest id of the highest layer first. Those
 * that are used at the same time leave in one go. turn->keep holds the residents of the event's own layer. */
static void evict_last(moesim_instance *in, const moesim_turn *turn)
{
    struct moesim_pool *p = in->pool;
    const uint32_t keys = in->shape.words * 64u;
    uint32_t at = 0;
    for (uint32_t l = 1; l < in->shape.num_layers; l++)
        if (p->worst[l] >= p->worst[at])
            at = l;
    uint64_t *key = p->key + (size_t)at * keys;
    for (uint32_t e = keys; e-- > 0 && p->used > in->total_slots;) {
        if (key[e] != p->worst[at])
            continue;
        key[e] = 0;
        p->used--;
        if (at == turn->layer)
            moesim_bit_clear(turn->keep, e);
        else
            moesim_evict(in, at, e);
    }
    find_worst(p, at, keys);
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
    if (in->timer != NULL)
        moesim_timer_event(in->timer, w, index, turn->misses, NULL, NULL, n);
    enter(in, w, turn, index);
    while (in->pool->used > in->total_slots)
        evict_last(in, turn);
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
