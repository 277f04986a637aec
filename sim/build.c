/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of one step, layer after layer. Sums accumulate per expert id, one cache line holding two experts, and are then
 * moved to the pools in the order of the event's list.
 */
#include "sim/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

#define CLASS_RANKS 8u   /* ranks of class_weight; deeper slots use the last */
#define MAX_TOP_K 64u

/* Which sums one walk over an event's routes computes. */
enum { COUNTS = 1, MASS = 2, WEIGHTED = 4, CLASS = 8, ALL_SUMS = 16 };

typedef struct moesim_sum {
    double mass, weighted, class_sum;
    uint32_t count, masked;
} sum;

/* One event's routes. */
typedef struct event {
    uint32_t rows, k, n_active;
    size_t stride;               /* from row to row in expert and gate */
    const uint16_t *expert;
    const float *gate;
    const moesim_row *row;
    const float *weight;         /* [rows] ψ(c) */
    const double *class_weight;  /* [3][8] */
    bool unnormalised;
    double mass_total, weighted_total;   /* out */
} event;

moesim_code moesim_builder_create(const moesim_window_params *params, const moesim_trace_info *info, moesim_builder **out,
                                  moesim_error *err)
{
    moesim_builder *b = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *b, "event builder", (void **)&b, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(info->num_experts, sizeof *b->sum, "event builder", (void **)&b->sum, err);
    if (code != MOESIM_OK) {
        moesim_builder_destroy(&b);
        return code;
    }
    b->kernels = moesim_kernels_get();
    b->class_weight = params->class_weight;
    b->unnormalised = info->gate_unnormalised;
    *out = b;
    return MOESIM_OK;
}

void moesim_builder_destroy(moesim_builder **builder)
{
    if (*builder != NULL)
        free((*builder)->sum);
    free(*builder);
    *builder = NULL;
}

/* The gates of a row, divided by their sum (slot order; sum 0 gives 0). */
static void normalise(const uint16_t *id, const float *gate, uint32_t k, double *g)
{
    double total = 0;
    for (uint32_t s = 0; s < k; s++)
        total += id[s] != MOESIM_NO_ROUTE ? (double)gate[s] : 0;
    for (uint32_t s = 0; s < k; s++)
        g[s] = total > 0 ? (double)gate[s] / total : 0;
}

/* What one row adds. Constants in every caller, so that each combination becomes its own loop without tests: `what`, and k
 * and `unnormalised` where they have their usual values. */
static inline __attribute__((always_inline)) void walk_row(const event *e, uint32_t i, sum *to, const unsigned what,
                                                           const uint32_t k, const bool unnormalised, double total[2])
{
    double normalised[MAX_TOP_K];
    const uint16_t *id = e->expert + i * e->stride;
    const float *gate = what & (MASS | WEIGHTED) ? e->gate + i * e->stride : NULL;
    const double c = what & WEIGHTED ? (double)e->weight[i] : 0;
    const double *class_weight = what & CLASS ? e->class_weight + e->row[i].input * CLASS_RANKS : NULL;
    const uint32_t masked = what & CLASS ? e->row[i].input == MOESIM_ROW_MASKED : 0;
    if (unnormalised)
        normalise(id, gate, k, normalised);
    for (uint32_t s = 0; s < k; s++) {
        if (id[s] == MOESIM_NO_ROUTE)
            continue;
        sum *at = &to[id[s]];
        if (what & (MASS | WEIGHTED)) {
            const double g = unnormalised ? normalised[s] : (double)gate[s];
            if (what & MASS) {
                at->mass += g;
                total[0] += g;
            }
            if (what & WEIGHTED) {
                at->weighted += g * c;
                total[1] += g * c;
            }
        }
        if (what & COUNTS)
            at->count++;
        if (what & CLASS) {
            at->class_sum += class_weight[s < CLASS_RANKS ? s : CLASS_RANKS - 1];
            at->masked += masked;
        }
    }
}

/* One walk over the routes, rows in order, then slots. */
static inline __attribute__((always_inline)) void walk_routes(event *e, sum *to, const unsigned what)
{
    double total[2] = { 0, 0 };
    const uint32_t rows = e->rows, k = e->k;
    const bool unnormalised = (what & (MASS | WEIGHTED)) && e->unnormalised;
    if (k == CLASS_RANKS && !unnormalised) {
        for (uint32_t i = 0; i < rows; i++)
            walk_row(e, i, to, what, CLASS_RANKS, false, total);
    } else {
        for (uint32_t i = 0; i < rows; i++)
            walk_row(e, i, to, what, k, unnormalised, total);
    }
    e->mass_total = total[0];
    e->weighted_total = total[1];
}

#define WALK(what) static void walk_##what(event *e, sum *to) { walk_routes(e, to, what); }
WALK(1) WALK(2) WALK(3) WALK(4) WALK(5) WALK(6) WALK(7) WALK(8) WALK(9) WALK(10) WALK(11) WALK(12) WALK(13) WALK(14) WALK(15)

typedef void walk_fn(event *e, sum *to);
static walk_fn *const WALKS[ALL_SUMS] = {
    NULL, walk_1, walk_2, walk_3, walk_4, walk_5, walk_6, walk_7,
    walk_8, walk_9, walk_10, walk_11, walk_12, walk_13, walk_14, walk_15,
};

/* Moves the sums to the pools that exist, and clears them. */
static void move_sums(sum *from, const uint16_t *list, uint32_t n, const moesim_window *w, size_t begin)
{
    if (w->count != NULL) {
        for (uint32_t j = 0; j < n; j++)
            w->count[begin + j] = from[list[j]].count;
    }
    if (w->mass != NULL) {
        for (uint32_t j = 0; j < n; j++)
            w->mass[begin + j] = from[list[j]].mass;
    }
    if (w->weighted != NULL) {
        for (uint32_t j = 0; j < n; j++)
            w->weighted[begin + j] = from[list[j]].weighted;
    }
    if (w->class_sum != NULL) {
        for (uint32_t j = 0; j < n; j++) {
            w->class_sum[begin + j] = from[list[j]].class_sum;
            w->masked[begin + j] = from[list[j]].masked;
        }
    }
    for (uint32_t j = 0; j < n; j++)
        from[list[j]] = (sum){ 0 };
}

/* Weighted sums apart from the rest: hindsight, and the fall-back where every ψ·g is 0 (ψ = 1; semantics §5). */
static double weighted_apart(event *e, sum *scratch, const uint16_t *list, const float *weight, double *pool)
{
    e->weight = weight;
    if (weight != NULL)
        walk_4(e, scratch);
    if (weight == NULL || !(e->weighted_total > 0)) {
        walk_2(e, scratch);
        e->weighted_total = e->mass_total;
        for (uint32_t j = 0; j < e->n_active; j++)
            scratch[list[j]].weighted = scratch[list[j]].mass;
    }
    for (uint32_t j = 0; j < e->n_active; j++) {
        pool[j] = scratch[list[j]].weighted;
        scratch[list[j]] = (sum){ 0 };
    }
    return e->weighted_total;
}

static unsigned wanted_sums(const moesim_buffer *b)
{
    const moesim_window *w = &b->window;
    unsigned what = w->count != NULL ? COUNTS : 0;
    if (b->gate != NULL)
        what |= (w->mass != NULL ? MASS : 0u) | (w->weighted != NULL ? WEIGHTED : 0u);
    return what | (w->class_sum != NULL ? CLASS : 0u);
}

static void build_sums(moesim_builder *b, moesim_buffer *buffer, const moesim_step *step, uint32_t number, event *e)
{
    moesim_window *w = &buffer->window;
    const size_t begin = w->list_begin[number];
    const uint16_t *list = w->list + begin;
    const unsigned what = wanted_sums(buffer);
    e->row = w->row + step->row;
    e->class_weight = b->class_weight;
    e->unnormalised = b->unnormalised;
    e->weight = buffer->lag + step->row;
    if (what != 0) {
        WALKS[what](e, b->sum);
        move_sums(b->sum, list, e->n_active, w, begin);
    }
    if (what & MASS)
        w->mass_total[number] = e->mass_total;
    if (what & WEIGHTED)
        w->weighted_total[number] = e->weighted_total > 0 ? e->weighted_total
                                                          : weighted_apart(e, b->sum, list, NULL, w->weighted + begin);
    if (w->hindsight != NULL && buffer->gate != NULL)
        w->hindsight_total[number] = weighted_apart(e, b->sum, list, buffer->own + step->row, w->hindsight + begin);
}

/* Serial numbers of the last touches; the sums' counts are free here and hold them relative to the event's begin. */
static void mark_touches(moesim_builder *b, const event *e, const uint16_t *list, uint64_t *touch)
{
    uint32_t serial = 0;
    for (uint32_t i = 0; i < e->rows; i++) {
        const uint16_t *id = e->expert + i * e->stride;
        for (uint32_t s = 0; s < e->k; s++) {
            if (id[s] != MOESIM_NO_ROUTE)
                b->sum[id[s]].count = ++serial;
        }
    }
    for (uint32_t j = 0; j < e->n_active; j++) {
        touch[j] = b->touches + b->sum[list[j]].count;
        b->sum[list[j]].count = 0;
    }
    b->touches += serial;
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

static void build_event(moesim_builder *b, moesim_buffer *buffer, const moesim_step *step, uint32_t number, uint32_t layer)
{
    moesim_window *w = &buffer->window;
    const moesim_layout *l = &buffer->layout;
    const size_t stride = (size_t)l->layers * l->top_k, first = step->row * stride + (size_t)layer * l->top_k;
    uint64_t *active = w->active + (size_t)number * l->words;
    memset(active, 0, l->words * sizeof *active);
    b->kernels->collect(buffer->expert + first, stride, step->num_rows, l->top_k, active, l->words);
    if (l->sets_only)
        return;
    const uint32_t begin = w->list_begin[number];
    event e = {
        .rows = step->num_rows, .k = l->top_k, .stride = stride, .expert = buffer->expert + first,
        .gate = buffer->gate != NULL ? buffer->gate + first : NULL,
        .n_active = b->kernels->list(active, l->words, w->list + begin),
    };
    w->list_begin[number + 1] = begin + e.n_active;
    build_sums(b, buffer, step, number, &e);
    if (w->touch != NULL)
        mark_touches(b, &e, w->list + begin, w->touch + begin);
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
