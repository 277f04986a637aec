/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of one layer in the first pass of a block: the set A is chosen first (size, overlap with the block before), then the
 * rows are filled from it.
 */
#include "traces/gen_layer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define CORE_SHARE 0.6           /* of the set of a block's first pass, times comeback */
#define WANDER 0.06              /* how much |A| varies from pass to pass */
#define KEEP_WANDER 0.8

typedef struct block {
    moesim_gen_layer *l;
    const moesim_gen_shape *s;
    const moesim_gen_popularity *popularity;
    moesim_rng *rng;
} block;

moesim_code moesim_gen_layer_create(moesim_gen_layer *l, const moesim_gen_shape *s, double target, moesim_error *err)
{
    const size_t routes = (size_t)s->rows * s->top_k, e = s->experts;
    void *memory = NULL;
    const size_t bytes = e * 8 + s->rows * sizeof(double) + 2 * (3 * routes + 3 * e) + e + s->rows;
    const moesim_code code = moesim_alloc(1, bytes, "a layer of the generator", &memory, err);
    *l = (moesim_gen_layer){ .memory = memory, .target = target };
    if (code != MOESIM_OK)
        return code;
    l->holders = memory;
    l->draw = (double *)(void *)(l->holders + e);
    l->ids = (uint16_t *)(void *)(l->draw + s->rows);
    l->before = l->ids + routes;
    l->dropped = l->before + routes;
    l->active = l->dropped + routes;
    l->place = l->active + e;
    l->left = l->place + e;
    l->mark = (uint8_t *)(l->left + e);
    l->ring = l->mark + e;
    return MOESIM_OK;
}

void moesim_gen_layer_destroy(moesim_gen_layer *l)
{
    free(l->memory);
    *l = (moesim_gen_layer){ 0 };
}

void moesim_gen_enter(moesim_gen_layer *l, uint16_t e)
{
    l->place[e] = (uint16_t)l->size;
    l->active[l->size++] = e;
    l->mark[e] = 0;
}

uint32_t moesim_gen_next_size(moesim_gen_layer *l, const moesim_gen_shape *s, moesim_rng *rng)
{
    const uint32_t slots = s->rows * s->top_k, most = slots < s->experts ? slots : s->experts;
    if (s->rows == 1)
        return s->top_k;
    l->drift = KEEP_WANDER * l->drift + (moesim_rng_real(rng) - 0.5) * 2.0 * WANDER * l->target;
    const double x = l->target + l->drift;
    const uint32_t n = x > 0.0 ? moesim_gen_round(rng, x) : 0;
    return n < s->top_k ? s->top_k : n > most ? most : n;
}

uint16_t moesim_gen_new_expert(const moesim_gen_layer *l, const moesim_gen_shape *s,
                               const moesim_gen_popularity *popularity, moesim_rng *rng)
{
    for (uint32_t i = 0; i < MOESIM_GEN_TRIES; i++) {
        const uint16_t e = moesim_gen_draw(popularity, s->experts, rng);
        if (l->place[e] == MOESIM_GEN_NONE && l->mark[e] == 0)
            return e;
    }
    const uint32_t from = moesim_gen_below(rng, s->experts);
    uint16_t spare = MOESIM_GEN_NONE;
    for (uint32_t i = 0; i < s->experts; i++) {
        const uint16_t e = (uint16_t)((from + i) % s->experts);
        if (l->place[e] == MOESIM_GEN_NONE && l->mark[e] == 0)
            return e;
        if (l->place[e] == MOESIM_GEN_NONE)
            spare = e;
    }
    return spare;
}

/* Puts `keep` of the old set at its front, those that more rows hold with preference, and cuts the rest off. */
static void keep_some(block *t, uint32_t keep)
{
    moesim_gen_layer *l = t->l;
    for (uint32_t i = 0; i < keep; i++) {
        uint32_t a = i + moesim_gen_below(t->rng, l->size - i), b = i + moesim_gen_below(t->rng, l->size - i);
        if (__builtin_popcountll(l->holders[l->active[b]]) > __builtin_popcountll(l->holders[l->active[a]]))
            a = b;
        const uint16_t e = l->active[a];
        l->active[a] = l->active[i];
        l->active[i] = e;
    }
    for (uint32_t i = keep; i < l->size; i++)
        l->mark[l->active[i]] = MOESIM_GEN_LEFT;              /* so that what is drawn now was not there before */
    l->size = keep;
}

static void choose_set(block *t, bool first)
{
    moesim_gen_layer *l = t->l;
    const uint32_t n = moesim_gen_next_size(l, t->s, t->rng);
    uint32_t keep = first ? 0 : moesim_gen_round(t->rng, t->s->boundary * n);
    keep = keep > l->size ? l->size : keep > n ? n : keep;
    memset(l->mark, 0, t->s->experts);
    if (first)
        l->size = 0;
    keep_some(t, keep);
    memset(l->place, 0xff, t->s->experts * sizeof *l->place);
    for (uint32_t i = 0; i < keep; i++)
        l->place[l->active[i]] = (uint16_t)i;
    while (l->size < n)
        moesim_gen_enter(l, moesim_gen_new_expert(l, t->s, t->popularity, t->rng));
    memset(l->mark, 0, t->s->experts);
    memset(l->holders, 0, t->s->experts * sizeof *l->holders);
    moesim_gen_shuffle(t->rng, l->active, n);      /* the order says below who is held by many */
    const double core = t->s->recent ? 0.0 : CORE_SHARE * t->s->comeback;
    for (uint32_t i = 0; i < n; i++) {
        l->place[l->active[i]] = (uint16_t)i;
        l->mark[l->active[i]] = moesim_rng_real(t->rng) < core ? MOESIM_GEN_CORE : 0;
    }
}

/* An expert of A that a row does not hold: the first ones of A more often. */
static uint16_t deal_one(block *t, const uint16_t *row, uint32_t held)
{
    const moesim_gen_layer *l = t->l;
    for (uint32_t i = 0; i < MOESIM_GEN_TRIES; i++) {
        const double u = moesim_rng_real(t->rng);
        const uint16_t e = l->active[(uint32_t)(u * u * l->size)];
        if (!moesim_gen_contains(row, held, e))
            return e;
    }
    uint32_t i = 0;
    while (moesim_gen_contains(row, held, l->active[i]))
        i++;
    return l->active[i];
}

static void deal(block *t)
{
    moesim_gen_layer *l = t->l;
    const uint32_t rows = t->s->rows, k = t->s->top_k;
    for (uint32_t r = 0; r < rows; r++) {
        uint16_t *row = l->ids + (size_t)r * k;
        uint32_t held = 0;
        for (uint32_t i = r; i < l->size; i += rows)           /* everyone once */
            row[held++] = l->active[i];
        while (held < k) {
            row[held] = deal_one(t, row, held);
            held++;
        }
        moesim_gen_shuffle(t->rng, row, k);
        for (uint32_t i = 0; i < k; i++)
            l->holders[row[i]] |= UINT64_C(1) << r;
    }
}

void moesim_gen_layer_begin(moesim_gen_layer *l, const moesim_gen_shape *s, const moesim_gen_popularity *popularity,
                            bool first, moesim_rng *rng)
{
    block t = { .l = l, .s = s, .popularity = popularity, .rng = rng };
    choose_set(&t, first);
    deal(&t);
    l->gone = 0;
    memset(l->ring, 0, s->rows);
    memset(l->dropped, 0xff, (size_t)s->rows * s->top_k * sizeof *l->dropped);
}
