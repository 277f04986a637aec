/* SPDX-License-Identifier: Apache-2.0
 *
 * How popular experts are in the generator, and the alias tables that draw them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "traces/gen_layer.h"
#include "traces/gen_like.h"

/* Vose: each column i holds i up to `cut` and one other expert above it. */
static void fill(moesim_gen_popularity *p, double *share, uint16_t *stack, uint32_t n)
{
    uint32_t small = 0, large = n;                 /* two stacks that grow towards each other */
    for (uint32_t e = 0; e < n; e++) {
        p->other[e] = (uint16_t)e;
        p->cut[e] = UINT32_MAX;
        if (share[e] < 1.0)
            stack[small++] = (uint16_t)e;
        else
            stack[--large] = (uint16_t)e;
    }
    while (small > 0 && large < n) {
        const uint16_t s = stack[--small], l = stack[large];
        p->cut[s] = (uint32_t)(share[s] * 4294967295.0);
        p->other[s] = l;
        share[l] -= 1.0 - share[s];
        if (share[l] < 1.0) {
            large++;
            stack[small++] = l;
        }
    }
}

static moesim_code create(moesim_gen_popularity *out, const double *weight, uint32_t experts, moesim_error *err)
{
    void *cut = NULL, *other = NULL, *share = NULL, *stack = NULL;
    moesim_code code = moesim_alloc(experts, sizeof *out->cut, "popularity of experts", &cut, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(experts, sizeof *out->other, "popularity of experts", &other, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(experts, sizeof(double), "popularity of experts", &share, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(experts, sizeof(uint16_t), "popularity of experts", &stack, err);
    out->cut = cut;
    out->other = other;
    if (code == MOESIM_OK) {
        double sum = 0.0, *s = share;
        for (uint32_t e = 0; e < experts; e++)
            sum += weight[e];
        for (uint32_t e = 0; e < experts; e++)
            s[e] = weight[e] * experts / sum;
        fill(out, s, stack, experts);
    }
    free(share);
    free(stack);
    return code;
}

void moesim_gen_popularity_destroy(moesim_gen_popularity *p)
{
    free(p->cut);
    free(p->other);
    *p = (moesim_gen_popularity){ 0 };
}

/* A shuffled ranking added to the weights: rank r adds share / (r + E/8). */
static void add_ranking(moesim_rng *rng, uint32_t e, double share, uint16_t *order, double *weight)
{
    for (uint32_t i = 0; i < e; i++)
        order[i] = (uint16_t)i;
    moesim_gen_shuffle(rng, order, e);
    for (uint32_t i = 0; i < e; i++)
        weight[order[i]] += share / (i + e / 8.0);
}

/* Like a trace: the odds of being active, since what is not yet active is drawn. All workloads share them. */
static void copy_popularity(const moesim_gen_config *c, uint32_t layer, double *weight)
{
    const moesim_gen_measure *m = &c->like->seen;
    const size_t of = (size_t)layer * m->layers / c->layers;           /* a pilot has some of the layers */
    const uint32_t *member = m->member + of * m->words * 64;
    double passes = 0.0;
    for (uint32_t i = 0; i <= m->block; i++)
        passes += (double)m->size[i].n / m->layers;
    for (uint32_t e = 0; e < c->experts; e++)
        weight[e] = (member[e] + 1.0) / (passes - member[e] + 1.0);
}

moesim_code moesim_gen_popularity_fill(moesim_gen_popularity *out, const moesim_gen_config *c, moesim_rng *rng,
                                       moesim_error *err)
{
    const uint32_t e = c->experts;
    void *memory = NULL;
    moesim_code code = moesim_alloc(e, 2 * sizeof(double) + sizeof(uint16_t), "popularity of experts", &memory, err);
    double *common = memory, *weight = common != NULL ? common + e : NULL;
    uint16_t *order = memory != NULL ? (uint16_t *)(void *)(weight + e) : NULL;
    for (uint32_t l = 0; l < c->layers && code == MOESIM_OK; l++) {
        memset(common, 0, e * sizeof *common);
        add_ranking(rng, e, 0.5, order, common);
        for (uint32_t w = 0; w < c->workloads && code == MOESIM_OK; w++) {
            memcpy(weight, common, e * sizeof *weight);
            add_ranking(rng, e, 0.5, order, weight);
            if (c->like != NULL)
                copy_popularity(c, l, weight);
            code = create(&out[(size_t)w * c->layers + l], weight, e, err);
        }
    }
    free(memory);
    return code;
}
