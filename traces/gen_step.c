/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of one layer in the further passes of a block: experts leave A and enter it as the overlap asks, and each row gives up
 * as many as its stability asks. What leaves A must leave all its rows; an expert of A that lost its last row gets another one.
 */
#include "traces/gen_step.h"

#include <math.h>
#include <string.h>

typedef moesim_gen_step step;

static void empty_slot(step *t, uint32_t row, uint32_t slot)
{
    moesim_gen_layer *l = t->l;
    const uint32_t k = t->s->top_k;
    uint16_t *id = l->ids + (size_t)row * k + slot;
    if (((t->forget >> row) & 1u) == 0) {
        l->dropped[(size_t)row * k + l->ring[row]] = *id;
        l->ring[row] = (uint8_t)((l->ring[row] + 1u) % k);
    }
    l->holders[*id] &= ~(UINT64_C(1) << row);
    *id = MOESIM_GEN_NONE;
    if (--t->need[row] == 0)
        t->open &= ~(UINT64_C(1) << row);
}

/* Takes an expert out of A: all rows that hold it must have slots to give up. */
static void vanish(step *t, uint16_t e)
{
    moesim_gen_layer *l = t->l;
    const bool fresh = (l->holders[e] & ~t->fresh) == 0;       /* of masked rows alone: these do not come back */
    for (uint64_t rows = l->holders[e]; rows != 0; rows &= rows - 1) {
        const uint32_t row = (uint32_t)__builtin_ctzll(rows);
        const uint16_t *ids = l->ids + (size_t)row * t->s->top_k;
        uint32_t slot = 0;
        while (ids[slot] != e)
            slot++;
        empty_slot(t, row, slot);
    }
    moesim_gen_leave(l, e);
    l->mark[e] = MOESIM_GEN_LEFT;
    if (!t->s->recent || !fresh || moesim_rng_real(t->rng) >= t->s->expire)
        l->left[l->gone++] = e;
}

/* True if all rows that hold the expert have it among the lowest ranks, of which they are to give up some. */
static bool is_low(const step *t, uint16_t e, uint32_t spare)
{
    const uint32_t k = t->s->top_k;
    for (uint64_t rows = t->l->holders[e]; rows != 0; rows &= rows - 1) {
        const uint32_t row = (uint32_t)__builtin_ctzll(rows), low = t->need[row] + spare < k ? t->need[row] + spare : k;
        if (!moesim_gen_contains(t->l->ids + (size_t)row * k + k - low, low, e))
            return false;
    }
    return true;
}

/* What may leave A: experts that at most `held` rows hold, among their lowest ranks and `low` more. */
typedef struct departure { uint8_t held, spared, low; } departure;

#define ANY 64u
#define LIKE 4u

static bool may_leave(step *t, uint16_t e, const departure *d)
{
    const uint64_t holders = t->l->holders[e];
    if ((t->l->mark[e] & d->spared) != 0 || (holders & ~t->open) != 0 || __builtin_popcountll(holders) > d->held)
        return false;
    return d->low == ANY || is_low(t, e, d->low);
}

/* Lets up to n experts leave A: first those that few rows hold, the core last; like a trace (the first LIKE rounds) those of
 * low rank. */
static void shrink(step *t, uint32_t n)
{
    moesim_gen_layer *l = t->l;
    static const departure round[] = {
        { 4, 0, 1 }, { ANY, 0, 2 }, { ANY, 0, 3 }, { ANY, 0, ANY },
        { 1, MOESIM_GEN_CORE, ANY }, { 2, MOESIM_GEN_CORE, ANY }, { 4, MOESIM_GEN_CORE, ANY }, { 1, 0, ANY }, { 2, 0, ANY },
        { ANY, 0, ANY },
    };
    const departure *d = t->s->recent ? round : round + LIKE;
    const departure *end = t->s->recent ? round + LIKE : round + sizeof round / sizeof round[0];
    for (; d < end && n > 0; d++) {
        uint32_t i = moesim_gen_below(t->rng, l->size);
        for (uint32_t seen = l->size; seen > 0 && n > 0; seen--) {
            i = i + 1 < l->size ? i + 1 : 0;
            if (l->size > t->s->top_k && may_leave(t, l->active[i], d)) {
                vanish(t, l->active[i]);
                n--;
            }
        }
    }
}

/* Slot of a row to give up: low ranks more often; may_orphan: also the last copy of an expert. NONE if there is none. */
static uint32_t pick_slot(step *t, uint32_t row, bool may_orphan)
{
    const moesim_gen_layer *l = t->l;
    const uint16_t *ids = l->ids + (size_t)row * t->s->top_k;
    const double *weight = t->s->weight[t->s->kind[row]];
    const bool just = t->s->recent && t->s->kind[row] == MOESIM_GEN_JUST;
    double sum = 0.0, until[64];
    for (uint32_t i = 0; i < t->s->top_k; i++) {
        const uint16_t e = ids[i];
        if (e != MOESIM_GEN_NONE && (may_orphan || (l->holders[e] & (l->holders[e] - 1)) != 0))
            sum += just && (l->holders[e] & ~t->fresh) == 0 ? weight[i] * (1.0 + 100.0 * t->s->expire) : weight[i];
        until[i] = sum;
    }
    if (sum <= 0.0)
        return MOESIM_GEN_NONE;
    const double u = moesim_rng_real(t->rng) * sum;
    uint32_t i = 0;
    while (until[i] <= u)
        i++;
    return i;
}

/* Empties the slots that rows still owe. `room`: how many experts of A may be without a row for the moment. */
static void drop_slots(step *t, uint32_t room)
{
    const uint32_t rows = t->s->rows, from = moesim_gen_below(t->rng, rows);
    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t row = (from + i) % rows;
        const uint16_t *ids = t->l->ids + (size_t)row * t->s->top_k;
        while (t->need[row] > 0) {
            const uint32_t slot = pick_slot(t, row, t->musts < room);
            if (slot == MOESIM_GEN_NONE)
                break;
            const uint16_t e = ids[slot];
            empty_slot(t, row, slot);
            if (t->l->holders[e] == 0)
                t->must[t->musts++] = e;
        }
    }
}

/* From slots that a row owes to slots that are empty; returns how many. */
static uint32_t count_empty(step *t, const uint8_t *drop)
{
    uint32_t empty = 0;
    t->open = 0;
    for (uint32_t r = 0; r < t->s->rows; r++) {
        t->need[r] = (uint8_t)(drop[r] - t->need[r]);
        empty += t->need[r];
        t->open |= (uint64_t)(t->need[r] > 0) << r;
    }
    return empty;
}

/* A row alone is the set: what it gives up leaves, and others come in. */
static void one_row(step *t)
{
    moesim_gen_layer *l = t->l;
    uint32_t n = t->need[0];
    if (l->gone + 2 * t->s->top_k > t->s->experts) {       /* nobody is left who was not here before */
        memset(l->mark, 0, t->s->experts);
        l->gone = 0;
    }
    for (uint32_t i = 0; i < n; i++)
        vanish(t, l->ids[pick_slot(t, 0, true)]);
    for (t->need[0] = (uint8_t)n; n > 0; n--) {
        const uint16_t e = moesim_gen_new_expert(l, t->s, t->popularity, t->rng);
        moesim_gen_enter(l, e);
        moesim_gen_put(t, 0, e);
    }
}

void moesim_gen_layer_step(moesim_gen_layer *l, const moesim_gen_shape *s, const moesim_gen_popularity *popularity,
                           const uint8_t *drop, moesim_rng *rng)
{
    step t;                                        /* `must` is written before it is read */
    t.l = l;
    t.s = s;
    t.popularity = popularity;
    t.rng = rng;
    t.open = 0;
    t.musts = 0;
    t.masked = 0;
    t.fresh = 0;
    t.forget = 0;
    uint32_t total = 0;
    for (uint32_t r = 0; r < s->rows && r < MOESIM_GEN_MAX_BLOCK; r++) {   /* GCC's bounds checks do not see that rows fit */
        t.need[r] = drop[r];
        total += drop[r];
        t.open |= (uint64_t)(drop[r] > 0) << r;
        t.masked |= (uint64_t)(s->kind[r] == MOESIM_GEN_MASKED) << r;
        if (s->recent && s->kind[r] == MOESIM_GEN_JUST && moesim_rng_real(rng) < s->forget)
            t.forget |= UINT64_C(1) << r;
        t.fresh |= (uint64_t)(s->kind[r] != MOESIM_GEN_LONG) << r;
    }
    memcpy(l->before, l->ids, (size_t)s->rows * s->top_k * sizeof *l->ids);
    if (s->rows == 1) {
        one_row(&t);
        return;
    }
    t.earlier = l->gone;
    const uint32_t n = moesim_gen_next_size(l, s, rng);
    const uint32_t keep = moesim_gen_round(rng, isnan(s->leave) ? s->overlap * n : (1.0 - s->leave) * l->size);
    if (keep < l->size)
        shrink(&t, l->size - keep);
    uint32_t more = n > l->size ? n - l->size : 0;
    more = more < total ? more : total;
    drop_slots(&t, total - more);
    uint32_t room = count_empty(&t, drop) - t.musts;
    room = more < room ? more : room;
    if (s->recent)
        room = moesim_gen_turn_back(&t, room);
    moesim_gen_grow(&t, room);
    moesim_gen_fill(&t);
    for (uint32_t r = 0; r < s->rows; r++)
        if ((t.forget >> r) & 1u)
            memset(l->dropped + (size_t)r * s->top_k, 0xff, s->top_k * sizeof *l->dropped);
}
