/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of one step, layer after layer. A route's place in the pools is found through rank[id], so that every reduction
 * accumulates in place.
 */
#include "sim/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

#define CLASS_RANKS 8u   /* ranks of class_weight; deeper slots use the last */

moesim_code moesim_builder_create(const moesim_window_params *params, const moesim_trace_info *info, moesim_builder **out,
                                  moesim_error *err)
{
    moesim_builder *b = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *b, "event builder", (void **)&b, err);
    if (code != MOESIM_OK)
        return code;
    b->kernels = moesim_kernels_get();
    b->class_weight = params->class_weight;
    b->unnormalised = info->gate_unnormalised;
    *out = b;
    return MOESIM_OK;
}

void moesim_builder_destroy(moesim_builder **builder)
{
    free(*builder);
    *builder = NULL;
}

/* One event's part of the window. Pointers are NULL where not declared; pools start at the event's first entry. */
typedef struct event {
    uint32_t rows, k, n_active;
    size_t stride;               /* from row to row in expert and gate */
    const uint16_t *expert;
    const float *gate;
    const moesim_row *row;
    const float *lag, *own;
    uint32_t *count, *masked;
    double *mass, *weighted, *hindsight, *class_sum;
    double mass_total, weighted_total, hindsight_total;
} event;

static void sum_counts(const event *e, const uint16_t *rank)
{
    memset(e->count, 0, e->n_active * sizeof *e->count);
    for (uint32_t i = 0; i < e->rows; i++) {
        const uint16_t *id = e->expert + i * e->stride;
        for (uint32_t s = 0; s < e->k; s++) {
            if (id[s] != MOESIM_NO_ROUTE)
                e->count[rank[id[s]]]++;
        }
    }
}

/* S(e) = Σ over rows of w[class][rank] (semantics §6), and rows with masked input. */
static void sum_classes(const event *e, const uint16_t *rank, const double *class_weight)
{
    memset(e->class_sum, 0, e->n_active * sizeof *e->class_sum);
    memset(e->masked, 0, e->n_active * sizeof *e->masked);
    for (uint32_t i = 0; i < e->rows; i++) {
        const uint16_t *id = e->expert + i * e->stride;
        const double *weight = class_weight + e->row[i].input * CLASS_RANKS;
        const uint32_t masked = e->row[i].input == MOESIM_ROW_MASKED;
        for (uint32_t s = 0; s < e->k; s++) {
            if (id[s] == MOESIM_NO_ROUTE)
                continue;
            e->class_sum[rank[id[s]]] += weight[s < CLASS_RANKS ? s : CLASS_RANKS - 1];
            e->masked[rank[id[s]]] += masked;
        }
    }
}

/* The gates of one row as doubles; unnormalised ones divided by the row's sum (slot order; sum 0 gives 0). */
static void row_gates(const event *e, uint32_t i, bool unnormalised, double g[64])
{
    const uint16_t *id = e->expert + i * e->stride;
    const float *gate = e->gate + i * e->stride;
    for (uint32_t s = 0; s < e->k; s++)
        g[s] = (double)gate[s];
    if (!unnormalised)
        return;
    double sum = 0;
    for (uint32_t s = 0; s < e->k; s++)
        sum += id[s] != MOESIM_NO_ROUTE ? g[s] : 0;
    for (uint32_t s = 0; s < e->k; s++)
        g[s] = sum > 0 ? g[s] / sum : 0;
}

/* Σ g·c per expert into pool; returns Σ over all routes. weight NULL: c = 1. */
static double sum_gates(const event *e, const uint16_t *rank, bool unnormalised, const float *weight, double *pool)
{
    double total = 0, g[64];
    memset(pool, 0, e->n_active * sizeof *pool);
    for (uint32_t i = 0; i < e->rows; i++) {
        const uint16_t *id = e->expert + i * e->stride;
        const double c = weight != NULL ? (double)weight[i] : 1.0;
        row_gates(e, i, unnormalised, g);
        for (uint32_t s = 0; s < e->k; s++) {
            if (id[s] == MOESIM_NO_ROUTE)
                continue;
            const double product = g[s] * c;
            pool[rank[id[s]]] += product;
            total += product;
        }
    }
    return total;
}

/* The same with a confidence; where every ψ·g is 0 it falls back to ψ = 1 (semantics §5). */
static double sum_weighted(const event *e, const uint16_t *rank, bool unnormalised, const float *weight, double *pool)
{
    double total = sum_gates(e, rank, unnormalised, weight, pool);
    return total > 0 ? total : sum_gates(e, rank, unnormalised, NULL, pool);
}

static void mark_touches(moesim_builder *b, const event *e, uint64_t *touch)
{
    for (uint32_t i = 0; i < e->rows; i++) {
        const uint16_t *id = e->expert + i * e->stride;
        for (uint32_t s = 0; s < e->k; s++) {
            if (id[s] != MOESIM_NO_ROUTE)
                touch[b->rank[id[s]]] = ++b->touches;
        }
    }
}

/* Active experts in order of first appearance; `left` is a copy of the active set that is used up. */
static void list_sequence(const event *e, const uint64_t *active, uint32_t words, uint16_t *sequence)
{
    uint64_t left[16];
    uint32_t n = 0;
    memcpy(left, active, words * sizeof *left);
    for (uint32_t i = 0; i < e->rows; i++) {
        const uint16_t *id = e->expert + i * e->stride;
        for (uint32_t s = 0; s < e->k; s++) {
            if (id[s] == MOESIM_NO_ROUTE || !moesim_bit_test(left, id[s]))
                continue;
            moesim_bit_clear(left, id[s]);
            sequence[n++] = id[s];
        }
    }
}

/* The active experts ascending; rank is their inverse. Returns how many. */
static uint32_t list_active(const uint64_t *active, uint32_t words, uint16_t *list, uint16_t *rank)
{
    uint32_t n = 0;
    MOESIM_EACH_BIT(e, active, words, {
        list[n] = (uint16_t)e;
        rank[e] = (uint16_t)n++;
    });
    return n;
}

static void build_event(moesim_builder *b, moesim_buffer *buffer, const moesim_step *step, uint32_t number, uint32_t layer)
{
    moesim_window *w = &buffer->window;
    const moesim_layout *l = &buffer->layout;
    const size_t first = (size_t)step->row * l->layers * l->top_k + (size_t)layer * l->top_k;
    uint64_t *active = w->active + (size_t)number * l->words;
    event e = {
        .rows = step->num_rows, .k = l->top_k, .stride = (size_t)l->layers * l->top_k, .expert = buffer->expert + first,
    };
    memset(active, 0, l->words * sizeof *active);
    b->kernels->collect(e.expert, e.stride, e.rows, e.k, active, l->words);
    if (l->sets_only)
        return;
    const uint32_t begin = w->list_begin[number];
    e.n_active = list_active(active, l->words, w->list + begin, b->rank);
    w->list_begin[number + 1] = begin + e.n_active;
    e.row = w->row + step->row;
    if (w->count != NULL) {
        e.count = w->count + begin;
        sum_counts(&e, b->rank);
    }
    if (w->class_sum != NULL && b->class_weight != NULL) {
        e.class_sum = w->class_sum + begin;
        e.masked = w->masked + begin;
        sum_classes(&e, b->rank, b->class_weight);
    }
    if (buffer->gate != NULL) {
        e.gate = buffer->gate + first;
        if (w->mass != NULL)
            w->mass_total[number] = sum_gates(&e, b->rank, b->unnormalised, NULL, w->mass + begin);
        if (w->weighted != NULL)
            w->weighted_total[number] = sum_weighted(&e, b->rank, b->unnormalised, buffer->lag + step->row,
                                                     w->weighted + begin);
        if (w->hindsight != NULL)
            w->hindsight_total[number] = sum_weighted(&e, b->rank, b->unnormalised, buffer->own + step->row,
                                                      w->hindsight + begin);
    }
    if (w->touch != NULL)
        mark_touches(b, &e, w->touch + begin);
    if (w->sequence != NULL)
        list_sequence(&e, active, l->words, w->sequence + begin);
}

void moesim_build_step(moesim_builder *b, moesim_buffer *buffer, uint32_t index)
{
    const moesim_step *step = &buffer->window.step[index];
    const uint32_t layers = buffer->layout.layers;
    if (index == 0 && !buffer->layout.sets_only)
        buffer->window.list_begin[0] = 0;
    for (uint32_t layer = 0; layer < layers; layer++)
        build_event(b, buffer, step, index * layers + layer, layer);
}
