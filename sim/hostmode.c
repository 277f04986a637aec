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
    if (!in->logs && in->timer == NULL && !in->dispatches) {
        moesim_tally_event(&in->account, layer, in->slots[layer], active, hits, active - hits);
        return MOESIM_OK;
    }
    if (moesim_log_gate(in, w, step, index, err) != MOESIM_OK)
        return err->code;
    turn->layer = layer;
    turn->active = w->active + index * words;
    turn->n_active = active;
    turn->n_hits = hits;
    turn->n_misses = turn->n_moved = active - hits;
    memset(turn->keep, 0, words * sizeof *turn->keep);
    choose_hits(in, w, index, hits, turn);
    if (in->policy->host_mode == MOESIM_HOST_FULL)       /* nothing ever leaves */
        memcpy(turn->keep, turn->before, words * sizeof *turn->keep);
    moesim_view_event(in, w, turn, index);
    if (moesim_plan_split(in, turn, err) != MOESIM_OK)
        return err->code;
    moesim_tally_event(&in->account, layer, in->slots[layer], active, hits, turn->n_moved);
    if (in->timer != NULL)
        moesim_timer_event(in->timer, w, index, turn->misses, turn->cpu, turn->order, turn->n_misses);
    return in->logs ? moesim_log_event(in, w, step, turn, err) : MOESIM_OK;
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

/* The residents of a layer, grouped by the time of their next event, soonest first; groups are never empty outside of an
 * event. The key that says who leaves first is time << 1, with bit 0 set for a miss of the event in flight: of two that are
 * used at the same time the resident stays. Never: NEVER_TIME, above every time. */
#define NEVER_TIME (UINT64_MAX >> 1)

struct moesim_pool {
    uint64_t *time;              /* [M][words·64] of each group, ascending */
    uint64_t *set;               /* [M][words·64][words] its experts */
    uint32_t *groups;            /* [M] */
    uint64_t *worst;             /* [M] greatest key of each layer, 0 where nothing is resident */
    uint64_t used;               /* residents of all layers */
};

moesim_code moesim_pooled_init(moesim_instance *in, moesim_error *err)
{
    const size_t layers = in->shape.num_layers, groups = layers * in->shape.words * 64u;
    struct moesim_pool *p;
    if (moesim_arena_take(in->arena, 1, sizeof *p, "a pool of slots", (void **)&p, err) != MOESIM_OK)
        return err->code;
    const struct { size_t n, each; void **out; } piece[] = {
        {groups, sizeof *p->time, (void **)&p->time},
        {groups * in->shape.words, sizeof *p->set, (void **)&p->set},
        {layers, sizeof *p->groups, (void **)&p->groups},
        {layers, sizeof *p->worst, (void **)&p->worst},
    };
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++)
        if (moesim_arena_take(in->arena, piece[i].n, piece[i].each, "a pool of slots", piece[i].out, err) != MOESIM_OK)
            return err->code;
    in->pool = p;
    return MOESIM_OK;
}

moesim_code moesim_pooled_visit(moesim_instance *in, moesim_visitor *v, moesim_error *err)
{
    struct moesim_pool *p = in->pool;
    const size_t layers = in->shape.num_layers, groups = layers * in->shape.words * 64u;
    if (v->visit(v, p->time, groups * sizeof *p->time, err) != MOESIM_OK ||
        v->visit(v, p->set, groups * in->shape.words * sizeof *p->set, err) != MOESIM_OK ||
        v->visit(v, p->groups, layers * sizeof *p->groups, err) != MOESIM_OK ||
        v->visit(v, p->worst, layers * sizeof *p->worst, err) != MOESIM_OK)
        return err->code;
    return v->visit(v, &p->used, sizeof p->used, err);
}

/* The groups of one layer. */
typedef struct pool_layer {
    uint64_t *time, *set;
    uint32_t groups, words;
} pool_layer;

static pool_layer layer_of(const struct moesim_pool *p, uint32_t layer, uint32_t words)
{
    const size_t first = (size_t)layer * words * 64u;
    return (pool_layer){p->time + first, p->set + first * words, p->groups[layer], words};
}

/* Notes what the layer of the event in flight, or (turn NULL) another one, would give up first. */
static void note_worst(struct moesim_pool *p, const pool_layer *l, uint32_t layer, const moesim_turn *turn)
{
    uint64_t fresh = 0;
    p->groups[layer] = l->groups;
    p->worst[layer] = 0;
    if (l->groups == 0)
        return;
    const uint64_t *set = l->set + (size_t)(l->groups - 1) * l->words;
    for (uint32_t i = 0; i < l->words && turn != NULL; i++)
        fresh |= set[i] & turn->misses[i];
    p->worst[layer] = l->time[l->groups - 1] << 1 | (fresh != 0);
}

/* Takes A out of its groups. */
static void leave_groups(pool_layer *l, const uint64_t *active)
{
    uint32_t kept = 0;
    for (uint32_t g = 0; g < l->groups; g++) {
        const uint64_t *from = l->set + (size_t)g * l->words;
        uint64_t *to = l->set + (size_t)kept * l->words, any = 0;
        for (uint32_t i = 0; i < l->words; i++) {
            to[i] = from[i] & ~active[i];
            any |= to[i];
        }
        l->time[kept] = l->time[g];
        kept += any != 0;
    }
    l->groups = kept;
}

/* The group of this time, which is made where there is none. */
static uint64_t *group_at(pool_layer *l, uint64_t time)
{
    const size_t bytes = l->words * sizeof *l->set;
    uint32_t g = 0;
    while (g < l->groups && l->time[g] < time)
        g++;
    uint64_t *set = l->set + (size_t)g * l->words;
    if (g < l->groups && l->time[g] == time)
        return set;
    memmove(l->time + g + 1, l->time + g, (l->groups - g) * sizeof *l->time);
    memmove(set + l->words, set, (l->groups - g) * bytes);
    l->time[g] = time;
    memset(set, 0, bytes);
    l->groups++;
    return set;
}

/* Enters A with the times of their next events. */
static void enter(moesim_instance *in, const moesim_window *w, const moesim_turn *turn, size_t index)
{
    struct moesim_pool *p = in->pool;
    const uint32_t begin = w->list_begin[index];
    pool_layer l = layer_of(p, turn->layer, in->shape.words);
    leave_groups(&l, turn->active);
    for (uint32_t i = 0; i < turn->n_active; i++) {
        const uint64_t next = w->next_use[begin + i];
        const uint64_t time = next == MOESIM_NEVER ? NEVER_TIME : next * w->num_layers + turn->layer;
        moesim_bit_set(group_at(&l, time), w->list[begin + i]);
    }
    p->used += turn->n_misses;
    note_worst(p, &l, turn->layer, turn);
}

/* Moves those of the members of `set` that are in `of` to `out`, highest ids first, n at most; returns how many. */
static uint64_t take_highest(uint64_t *set, const uint64_t *of, uint32_t words, uint64_t n, uint64_t *out)
{
    uint64_t taken = 0;
    for (uint32_t i = words; i-- > 0;) {
        out[i] = 0;
        for (uint64_t rest = set[i] & of[i]; rest != 0 && taken < n; taken++) {
            const uint64_t highest = UINT64_C(1) << (63 - __builtin_clzll(rest));
            out[i] |= highest;
            rest ^= highest;
        }
        set[i] &= ~out[i];
    }
    return taken;
}

/* Evicts the experts used last of all, as many as are too much; of equals the highest id of the highest layer first. Those
 * that are used at the same time leave in one go. turn->keep holds the residents of the event's own layer. */
static void evict_last(moesim_instance *in, const moesim_turn *turn)
{
    struct moesim_pool *p = in->pool;
    const uint32_t words = in->shape.words;
    uint64_t gone[MOESIM_MAX_WORDS], any = 0;
    uint32_t at = 0;
    for (uint32_t l = 1; l < in->shape.num_layers; l++)
        at = p->worst[l] >= p->worst[at] ? l : at;
    pool_layer l = layer_of(p, at, words);
    uint64_t *set = l.set + (size_t)(l.groups - 1) * words;
    p->used -= take_highest(set, (p->worst[at] & 1) != 0 ? turn->misses : set, words, p->used - in->total_slots, gone);
    for (uint32_t i = words; i-- > 0;) {
        any |= set[i];
        if (at == turn->layer)
            turn->keep[i] &= ~gone[i];
        else
            for (uint32_t e; gone[i] != 0; gone[i] ^= UINT64_C(1) << (e & 63u)) {
                e = i * 64u + 63u - (uint32_t)__builtin_clzll(gone[i]);
                moesim_evict(in, at, e);
            }
    }
    l.groups -= any == 0;
    note_worst(p, &l, at, at == turn->layer ? turn : NULL);
}

static moesim_code pooled_event(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer,
                                moesim_error *err)
{
    const uint32_t words = in->shape.words;
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
    in->pool->worst[layer] &= ~UINT64_C(1);
    return in->logs ? moesim_log_event(in, w, step, turn, err) : MOESIM_OK;
}

moesim_code moesim_step_belady_pooled(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    for (uint32_t l = 0; l < w->num_layers; l++)
        if (moesim_log_gate(in, w, step, (size_t)(step - w->step) * w->num_layers + l, err) != MOESIM_OK ||
            pooled_event(in, w, step, l, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}
