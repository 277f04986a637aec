/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes in where rows gave up experts: the set A grows, and every empty slot gets one of it.
 */
#include "traces/gen_step.h"

typedef moesim_gen_step step;

void moesim_gen_leave(moesim_gen_layer *l, uint16_t e)
{
    const uint16_t last = l->active[--l->size];
    l->active[l->place[e]] = last;
    l->place[last] = l->place[e];
    l->place[e] = MOESIM_GEN_NONE;
    l->mark[e] = 0;
    l->holders[e] = 0;
}

/* Takes the i-th of those that left before this pass off the list. */
static uint16_t take_left(step *t, uint32_t i)
{
    moesim_gen_layer *l = t->l;
    const uint16_t e = l->left[i];
    l->left[i] = l->left[--t->earlier];
    l->left[t->earlier] = l->left[--l->gone];
    return e;
}

void moesim_gen_grow(step *t, uint32_t n)
{
    moesim_gen_layer *l = t->l;
    while (n-- > 0) {
        uint16_t e;
        if (t->earlier > 0 && moesim_rng_real(t->rng) < t->s->comeback) {
            e = take_left(t, moesim_gen_below(t->rng, t->earlier));
        } else {
            e = moesim_gen_new_expert(l, t->s, t->popularity, t->rng);
            if (e == MOESIM_GEN_NONE || l->mark[e] != 0)
                return;
        }
        moesim_gen_enter(l, e);
        t->must[t->musts++] = e;
    }
}

void moesim_gen_put(step *t, uint32_t row, uint16_t e)
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

/* True if the row is better off without the expert: it held it in the pass before or, once it is committed, as a masked one. */
static bool avoids(const step *t, uint32_t row, uint16_t e)
{
    const uint32_t k = t->s->top_k;
    return moesim_gen_contains(t->l->before + (size_t)row * k, k, e) ||
           (((t->forget >> row) & 1u) != 0 &&
            moesim_gen_contains(t->l->dropped + (size_t)row * k, k, e));
}

/* True if the expert is of the other kind of rows, masked or committed, and this one is to keep away from such. */
static bool strange(step *t, uint32_t row, uint16_t e)
{
    const bool other = ((t->l->holders[e] & t->masked) != 0) != (t->s->kind[row] == MOESIM_GEN_MASKED);
    return other && moesim_rng_real(t->rng) < t->s->apart;
}

/* An expert that left A before this pass comes back with probability comeback; false if it did not. */
static bool come_back(step *t, uint16_t e)
{
    uint32_t i = 0;
    if (moesim_rng_real(t->rng) >= t->s->comeback)
        return false;
    while (i < t->earlier && t->l->left[i] != e)
        i++;
    if (i == t->earlier)
        return false;
    moesim_gen_enter(t->l, take_left(t, i));
    return true;
}

/* A row turns to what it left last, as long as A has room for `room` more; returns the room that is left. */
static uint32_t turn_row(step *t, uint32_t row, uint32_t room)
{
    const uint32_t k = t->s->top_k;
    const uint16_t *dropped = t->l->dropped + (size_t)row * k, *now = t->l->ids + (size_t)row * k;
    for (uint32_t i = 0; i < k && t->need[row] > 0; i++) {
        const uint16_t e = dropped[(t->l->ring[row] + 2 * k - 1 - i) % k];
        if (moesim_rng_real(t->rng) >= t->s->old_routes[t->s->kind[row]] || e == MOESIM_GEN_NONE ||
            moesim_gen_contains(now, k, e) || avoids(t, row, e))
            continue;
        if (t->l->place[e] == MOESIM_GEN_NONE) {
            if (room == 0 || !come_back(t, e))
                continue;
            room--;
        }
        moesim_gen_put(t, row, e);
    }
    return room;
}

uint32_t moesim_gen_turn_back(step *t, uint32_t room)
{
    const uint32_t rows = t->s->rows, from = moesim_gen_below(t->rng, rows);
    for (uint32_t i = 0; i < rows; i++)
        if (((t->forget >> ((from + i) % rows)) & 1u) == 0)
            room = turn_row(t, (from + i) % rows, room);
    return room;
}

/* Gives an expert of A a row that did not hold it, with luck one that held it earlier; one that did hold it where there is no
 * other. */
static void place_one(step *t, uint16_t e)
{
    const uint32_t k = t->s->top_k, from = moesim_gen_below(t->rng, 64);
    const double prefer = moesim_rng_real(t->rng);
    const uint32_t apart = t->s->recent && moesim_rng_real(t->rng) < t->s->apart ? 64 : 0;
    uint32_t spare = MOESIM_GEN_NONE, good = MOESIM_GEN_NONE;
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t row = (from + i) & 63u;
        if (((t->open >> row) & 1u) == 0)
            continue;
        spare = row;
        if (avoids(t, row, e))
            continue;
        good = row;
        if (t->s->recent && t->s->kind[row] == MOESIM_GEN_MASKED && i < apart)
            continue;
        if (prefer >= t->s->old_routes[t->s->kind[row]] || moesim_gen_contains(t->l->dropped + (size_t)row * k, k, e))
            break;
    }
    if (good != MOESIM_GEN_NONE)
        moesim_gen_put(t, good, e);
    else if (spare != MOESIM_GEN_NONE)
        moesim_gen_put(t, spare, e);
    else
        moesim_gen_leave(t->l, e);
}

/* Less than n, small numbers far more often. */
static uint32_t recently(moesim_rng *rng, uint32_t n)
{
    const double u = moesim_rng_real(rng);
    return (uint32_t)(u * u * u * n);
}

/* Any expert of A; with luck, if `old`, one that the row held earlier. */
static uint16_t draw_route(step *t, uint32_t row, bool old)
{
    const moesim_gen_layer *l = t->l;
    const uint32_t k = t->s->top_k;
    uint16_t e = MOESIM_GEN_NONE;
    if (old && moesim_rng_real(t->rng) < t->s->old_routes[t->s->kind[row]])
        e = l->dropped[(size_t)row * k + (t->s->recent ? (l->ring[row] + k - 1 - recently(t->rng, k)) % k
                                                       : moesim_gen_below(t->rng, k))];
    return e == MOESIM_GEN_NONE || l->place[e] == MOESIM_GEN_NONE ? l->active[moesim_gen_below(t->rng, l->size)] : e;
}

/* An expert of A that the row holds neither now nor before: with luck one of its own earlier ones. NONE: there is none. */
static uint16_t pick_route(step *t, uint32_t row)
{
    const moesim_gen_layer *l = t->l;
    const uint32_t k = t->s->top_k;
    const uint16_t *now = l->ids + (size_t)row * k, *before = l->before + (size_t)row * k;
    for (uint32_t i = 0; i < MOESIM_GEN_TRIES; i++) {
        const uint16_t e = draw_route(t, row, i < 4);
        if (t->s->recent && i < MOESIM_GEN_TRIES / 2 && strange(t, row, e))
            continue;
        if (!moesim_gen_contains(now, k, e) && !avoids(t, row, e))
            return e;
    }
    for (uint32_t pass = 0; pass < 2; pass++)      /* then whatever is left, at last an old one */
        for (uint32_t i = 0; i < l->size; i++)
            if (!moesim_gen_contains(now, k, l->active[i]) && (pass == 1 || !moesim_gen_contains(before, k, l->active[i])))
                return l->active[i];
    return MOESIM_GEN_NONE;
}

void moesim_gen_fill(step *t)
{
    for (uint32_t i = 0; i < t->musts; i++)
        if (t->l->holders[t->must[i]] == 0)            /* else a row turned back to it */
            place_one(t, t->must[i]);
    for (uint32_t r = 0; r < t->s->rows; r++)
        while (t->need[r] > 0)
            moesim_gen_put(t, r, pick_route(t, r));
}

