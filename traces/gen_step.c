/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of one layer in the further passes of a block: experts leave A and enter it as the overlap asks, and each row gives up
 * as many as its stability asks. What leaves A must leave all its rows; an expert of A that lost its last row gets another one.
 */
#include "traces/gen_layer.h"

#include <string.h>

typedef struct step {
    moesim_gen_layer *l;
    const moesim_gen_shape *s;
    const moesim_gen_popularity *popularity;
    moesim_rng *rng;
    uint8_t need[MOESIM_GEN_MAX_BLOCK];    /* empty slots of a row, or slots that it is to give up */
    uint64_t open;                         /* rows with need > 0 */
    uint16_t must[MOESIM_GEN_MAX_BLOCK * 64u];   /* experts of the new A without a row */
    uint32_t musts;
} step;

static void leave(moesim_gen_layer *l, uint16_t e)
{
    const uint16_t last = l->active[--l->size];
    l->active[l->place[e]] = last;
    l->place[last] = l->place[e];
    l->place[e] = MOESIM_GEN_NONE;
    l->mark[e] = 0;
    l->holders[e] = 0;
}

static void empty_slot(step *t, uint32_t row, uint32_t slot)
{
    moesim_gen_layer *l = t->l;
    const uint32_t k = t->s->top_k;
    uint16_t *id = l->ids + (size_t)row * k + slot;
    l->dropped[(size_t)row * k + l->ring[row]] = *id;
    l->ring[row] = (uint8_t)((l->ring[row] + 1u) % k);
    l->holders[*id] &= ~(UINT64_C(1) << row);
    *id = MOESIM_GEN_NONE;
    if (--t->need[row] == 0)
        t->open &= ~(UINT64_C(1) << row);
}

/* Takes an expert out of A: all rows that hold it must have slots to give up. */
static void vanish(step *t, uint16_t e)
{
    moesim_gen_layer *l = t->l;
    for (uint64_t rows = l->holders[e]; rows != 0; rows &= rows - 1) {
        const uint32_t row = (uint32_t)__builtin_ctzll(rows);
        const uint16_t *ids = l->ids + (size_t)row * t->s->top_k;
        uint32_t slot = 0;
        while (ids[slot] != e)
            slot++;
        empty_slot(t, row, slot);
    }
    leave(l, e);
    l->mark[e] = MOESIM_GEN_LEFT;
    l->left[l->gone++] = e;
}

/* Lets up to n experts leave A: first those that few rows hold, the core last. */
static void shrink(step *t, uint32_t n)
{
    moesim_gen_layer *l = t->l;
    static const struct { int held; uint8_t spared; } round[] = {
        { 1, MOESIM_GEN_CORE }, { 2, MOESIM_GEN_CORE }, { 4, MOESIM_GEN_CORE }, { 1, 0 }, { 2, 0 }, { 64, 0 },
    };
    for (size_t r = 0; r < sizeof round / sizeof round[0] && n > 0; r++) {
        uint32_t i = moesim_gen_below(t->rng, l->size);
        for (uint32_t seen = l->size; seen > 0 && n > 0; seen--) {
            i = i + 1 < l->size ? i + 1 : 0;
            const uint16_t e = l->active[i];
            if ((l->mark[e] & round[r].spared) == 0 && (l->holders[e] & ~t->open) == 0 &&
                __builtin_popcountll(l->holders[e]) <= round[r].held && l->size > t->s->top_k) {
                vanish(t, e);
                n--;
            }
        }
    }
}

/* Slot of a row to give up: low ranks more often; may_orphan: also the last copy of an expert. NONE if there is none. */
static uint32_t pick_slot(step *t, const uint16_t *ids, bool may_orphan)
{
    const moesim_gen_layer *l = t->l;
    double sum = 0.0, until[64];
    for (uint32_t i = 0; i < t->s->top_k; i++) {
        const uint16_t e = ids[i];
        if (e != MOESIM_GEN_NONE && (may_orphan || (l->holders[e] & (l->holders[e] - 1)) != 0))
            sum += t->s->weight[i];
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
            const uint32_t slot = pick_slot(t, ids, t->musts < room);
            if (slot == MOESIM_GEN_NONE)
                break;
            const uint16_t e = ids[slot];
            empty_slot(t, row, slot);
            if (t->l->holders[e] == 0)
                t->must[t->musts++] = e;
        }
    }
}

/* Lets n experts into A: with probability comeback one that left it earlier in the block (before `gone` of now). */
static void grow(step *t, uint32_t n, uint32_t earlier)
{
    moesim_gen_layer *l = t->l;
    while (n-- > 0) {
        uint16_t e;
        if (earlier > 0 && moesim_rng_real(t->rng) < t->s->comeback) {
            const uint32_t i = moesim_gen_below(t->rng, earlier);
            e = l->left[i];
            l->left[i] = l->left[--earlier];
            l->left[earlier] = l->left[--l->gone];
        } else {
            e = moesim_gen_new_expert(l, t->s, t->popularity, t->rng);
            if (e == MOESIM_GEN_NONE || l->mark[e] != 0)
                return;
        }
        moesim_gen_enter(l, e);
        t->must[t->musts++] = e;
    }
}

static void put(step *t, uint32_t row, uint16_t e)
{
    uint16_t *ids = t->l->ids + (size_t)row * t->s->top_k;
    uint32_t slot = 0;
    while (ids[slot] != MOESIM_GEN_NONE)
        slot++;
    ids[slot] = e;
    t->l->holders[e] |= UINT64_C(1) << row;
    if (--t->need[row] == 0)
        t->open &= ~(UINT64_C(1) << row);
}

/* Gives an expert of A a row that did not hold it, with luck one that held it earlier; one that did hold it where there is no
 * other. */
static void place_one(step *t, uint16_t e)
{
    const uint32_t k = t->s->top_k, from = moesim_gen_below(t->rng, 64);
    const bool prefer = moesim_rng_real(t->rng) < t->s->old_routes;
    uint32_t spare = MOESIM_GEN_NONE, good = MOESIM_GEN_NONE;
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t row = (from + i) & 63u;
        if (((t->open >> row) & 1u) == 0)
            continue;
        spare = row;
        if (moesim_gen_contains(t->l->before + (size_t)row * k, k, e))
            continue;
        good = row;
        if (!prefer || moesim_gen_contains(t->l->dropped + (size_t)row * k, k, e))
            break;
    }
    if (good != MOESIM_GEN_NONE)
        put(t, good, e);
    else if (spare != MOESIM_GEN_NONE)
        put(t, spare, e);
    else
        leave(t->l, e);
}

/* An expert of A that the row holds neither now nor before: with luck one of its own earlier ones. NONE: there is none. */
static uint16_t pick_route(step *t, uint32_t row)
{
    const moesim_gen_layer *l = t->l;
    const uint32_t k = t->s->top_k;
    const uint16_t *now = l->ids + (size_t)row * k, *before = l->before + (size_t)row * k;
    for (uint32_t i = 0; i < MOESIM_GEN_TRIES; i++) {
        uint16_t e = MOESIM_GEN_NONE;
        if (i < 4 && moesim_rng_real(t->rng) < t->s->old_routes)
            e = l->dropped[(size_t)row * k + moesim_gen_below(t->rng, k)];
        if (e == MOESIM_GEN_NONE || l->place[e] == MOESIM_GEN_NONE)
            e = l->active[moesim_gen_below(t->rng, l->size)];
        if (!moesim_gen_contains(now, k, e) && !moesim_gen_contains(before, k, e))
            return e;
    }
    for (uint32_t pass = 0; pass < 2; pass++)      /* then whatever is left, at last an old one */
        for (uint32_t i = 0; i < l->size; i++)
            if (!moesim_gen_contains(now, k, l->active[i]) && (pass == 1 || !moesim_gen_contains(before, k, l->active[i])))
                return l->active[i];
    return MOESIM_GEN_NONE;
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

/* Fills all slots: the experts that must have a row first. */
static void fill(step *t)
{
    for (uint32_t i = 0; i < t->musts; i++)
        place_one(t, t->must[i]);
    for (uint32_t r = 0; r < t->s->rows; r++)
        while (t->need[r] > 0)
            put(t, r, pick_route(t, r));
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
    uint32_t total = 0;
    for (uint32_t r = 0; r < s->rows; r++) {
        t.need[r] = drop[r];
        total += drop[r];
        t.open |= (uint64_t)(drop[r] > 0) << r;
    }
    memcpy(l->before, l->ids, (size_t)s->rows * s->top_k * sizeof *l->ids);
    const uint32_t earlier = l->gone, n = moesim_gen_next_size(l, s, rng), keep = moesim_gen_round(rng, s->overlap * n);
    if (keep < l->size)
        shrink(&t, l->size - keep);
    uint32_t more = n > l->size ? n - l->size : 0;
    more = more < total ? more : total;
    drop_slots(&t, total - more);
    const uint32_t room = count_empty(&t, drop) - t.musts;
    grow(&t, more < room ? more : room, earlier);
    fill(&t);
}
