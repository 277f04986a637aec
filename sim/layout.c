/* SPDX-License-Identifier: Apache-2.0
 *
 * One table lists every array of a window: its element size, what it is counted by, and when it is needed.
 */
#include "sim/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

void moesim_layout_init(moesim_layout *l, const moesim_trace_info *info, const moesim_window_params *params)
{
    const uint32_t gates = MOESIM_NEED_GATE | MOESIM_NEED_MASS | MOESIM_NEED_WEIGHTED | MOESIM_NEED_HINDSIGHT;
    *l = (moesim_layout){
        .layers = info->num_layers, .experts = info->num_experts, .top_k = info->top_k,
        .words = moesim_words(info->num_experts), .needs = params->needs, .clairvoyant = params->clairvoyant,
        .touch = params->touch, .sequence = params->sequence, .residency = params->residency && info->has_residency,
        .gate = (params->needs & gates) != 0 && info->has_gate,
        .prob = (params->needs & MOESIM_NEED_PROB) != 0 && info->has_prob,
        .previous = (params->needs & MOESIM_NEED_PREVIOUS) != 0,
    };
}

enum counted_by { BY_STEP, BY_PART, BY_ROW, BY_ROUTE, BY_SCORE, BY_EVENT, BY_WORD, BY_ENTRY, BY_LAYER_WORD };

typedef struct array {
    size_t offset;               /* of the pointer in moesim_buffer */
    size_t each;
    enum counted_by by;
    size_t spare;                /* elements beyond the count */
} array;

#define ARRAY(field, type, by) { offsetof(moesim_buffer, field), sizeof(type), by, 0 }
#define MAX_ARRAYS 32u

/* The arrays that a layout needs; returns how many. */
static uint32_t list_arrays(const moesim_layout *l, array out[MAX_ARRAYS])
{
    const struct { bool needed; array a; } all[] = {
        { true, ARRAY(window.step, moesim_step, BY_STEP) },
        { true, ARRAY(window.member, moesim_member, BY_PART) },
        { true, ARRAY(window.active, uint64_t, BY_WORD) },
        { true, ARRAY(expert, uint16_t, BY_ROUTE) },
        { !l->sets_only, { offsetof(moesim_buffer, window.list_begin), sizeof(uint32_t), BY_EVENT, 1 } },
        { !l->sets_only, { offsetof(moesim_buffer, window.list), sizeof(uint16_t), BY_ENTRY, 4 } },
        { !l->sets_only, ARRAY(window.row, moesim_row, BY_ROW) },
        { !l->sets_only, ARRAY(window.produced, float, BY_ROW) },
        { !l->sets_only, ARRAY(window.state, uint8_t, BY_ROW) },
        { !l->sets_only, ARRAY(lag, float, BY_ROW) },
        { !l->sets_only, ARRAY(own, float, BY_ROW) },
        { !l->sets_only, ARRAY(position, int32_t, BY_ROW) },
        { (l->needs & MOESIM_NEED_COUNTS) != 0, ARRAY(window.count, uint32_t, BY_ENTRY) },
        { (l->needs & MOESIM_NEED_MASS) != 0, ARRAY(window.mass, double, BY_ENTRY) },
        { (l->needs & MOESIM_NEED_MASS) != 0, ARRAY(window.mass_total, double, BY_EVENT) },
        { (l->needs & MOESIM_NEED_WEIGHTED) != 0, ARRAY(window.weighted, double, BY_ENTRY) },
        { (l->needs & MOESIM_NEED_WEIGHTED) != 0, ARRAY(window.weighted_total, double, BY_EVENT) },
        { (l->needs & MOESIM_NEED_HINDSIGHT) != 0, ARRAY(window.hindsight, double, BY_ENTRY) },
        { (l->needs & MOESIM_NEED_HINDSIGHT) != 0, ARRAY(window.hindsight_total, double, BY_EVENT) },
        { (l->needs & MOESIM_NEED_CLASS) != 0, ARRAY(window.class_sum, double, BY_ENTRY) },
        { (l->needs & MOESIM_NEED_CLASS) != 0, ARRAY(window.masked, uint32_t, BY_ENTRY) },
        { l->clairvoyant, ARRAY(window.next_use, uint64_t, BY_ENTRY) },
        { l->clairvoyant, ARRAY(next_active, uint64_t, BY_LAYER_WORD) },
        { l->touch, ARRAY(window.touch, uint64_t, BY_ENTRY) },
        { l->sequence, ARRAY(window.sequence, uint16_t, BY_ENTRY) },
        { l->gate, ARRAY(gate, float, BY_ROUTE) },
        { l->prob, ARRAY(prob, float, BY_SCORE) },
        { l->previous, ARRAY(previous, uint16_t, BY_ROUTE) },
        { l->residency, ARRAY(observed, uint8_t, BY_ROUTE) },
        { l->residency, ARRAY(observed_row, const uint8_t *, BY_ROW) },
    };
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].needed)
            out[n++] = all[i].a;
    }
    return n;
}

/* Saturating: a count that does not fit is UINT64_MAX, which no limit allows. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t elements(const moesim_layout *l, const moesim_extent *e, const array *a)
{
    const uint64_t layers = l->layers;
    const uint64_t counts[] = {
        [BY_STEP] = e->steps, [BY_PART] = e->parts, [BY_ROW] = e->rows,
        [BY_ROUTE] = times(e->rows, layers * l->top_k), [BY_SCORE] = times(e->rows, layers * l->experts),
        [BY_EVENT] = times(e->steps, layers), [BY_WORD] = times(e->steps, layers * l->words),
        [BY_ENTRY] = e->entries, [BY_LAYER_WORD] = layers * l->words,
    };
    return plus(counts[a->by], a->spare);
}

size_t moesim_layout_bytes(const moesim_layout *l, const moesim_extent *e)
{
    array arrays[MAX_ARRAYS];
    uint32_t n = list_arrays(l, arrays);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes = plus(bytes, times(elements(l, e, &arrays[i]), arrays[i].each));
    return bytes;
}

bool moesim_extent_add(const moesim_layout *l, moesim_extent *e, uint64_t rows, uint32_t parts, size_t limit)
{
    uint64_t most_active = times(rows, l->top_k);
    moesim_extent sum = {
        .steps = e->steps + 1, .parts = e->parts + parts, .rows = plus(e->rows, rows),
        .entries = plus(e->entries, times(most_active < l->experts ? most_active : l->experts, l->layers)),
    };
    /* Indices within a window are 32 bits wide. */
    bool narrow = times(sum.steps, l->layers) < UINT32_MAX && sum.rows < UINT32_MAX && sum.entries < UINT32_MAX &&
                  sum.parts < UINT32_MAX;
    if (!narrow || moesim_layout_bytes(l, &sum) > limit)
        return false;
    *e = sum;
    return true;
}

void moesim_extent_max(moesim_extent *most, const moesim_extent *e)
{
    most->steps = e->steps > most->steps ? e->steps : most->steps;
    most->parts = e->parts > most->parts ? e->parts : most->parts;
    most->rows = e->rows > most->rows ? e->rows : most->rows;
    most->entries = e->entries > most->entries ? e->entries : most->entries;
}

moesim_code moesim_buffer_create(const moesim_layout *layout, const moesim_extent *most, moesim_buffer **out,
                                 moesim_error *err)
{
    moesim_buffer *b = NULL;
    array arrays[MAX_ARRAYS];
    uint32_t n = list_arrays(layout, arrays);
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *b, "window", (void **)&b, err);
    if (code == MOESIM_OK)
        b->layout = *layout;
    for (uint32_t i = 0; code == MOESIM_OK && i < n; i++) {
        void *memory = NULL;
        code = moesim_alloc((size_t)elements(layout, most, &arrays[i]), arrays[i].each, "window", &memory, err);
        memcpy((char *)b + arrays[i].offset, &memory, sizeof memory);
    }
    if (code != MOESIM_OK) {
        moesim_buffer_destroy(&b);
        return code;
    }
    b->most = *most;
    b->bytes = moesim_layout_bytes(layout, most);
    b->window.num_layers = layout->layers;
    b->window.num_experts = layout->experts;
    b->window.top_k = layout->top_k;
    b->window.words = layout->words;
    b->window.next_active = b->next_active;
    b->window.residency = b->observed_row;
    *out = b;
    return MOESIM_OK;
}

void moesim_buffer_destroy(moesim_buffer **buffer)
{
    moesim_buffer *b = *buffer;
    if (b == NULL)
        return;
    moesim_layout layout = b->layout;
    array arrays[MAX_ARRAYS];
    uint32_t n = list_arrays(&layout, arrays);
    for (uint32_t i = 0; i < n; i++) {
        void *memory;
        memcpy(&memory, (char *)b + arrays[i].offset, sizeof memory);
        free(memory);
    }
    free(b);
    *buffer = NULL;
}

void moesim_buffer_clear(moesim_buffer *b)
{
    b->window.num_steps = 0;
    b->num_rows = 0;
    b->num_members = 0;
}
