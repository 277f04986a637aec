/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows into windows.
 */
#include "sim/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"

/* Merged steps visit up to `batch` places of the file in turn; each of the first cursors keeps its place's decoded chunk. */
#define MAX_CURSORS 32u

/* Rows are asked for in slabs, so that a small pass is served from rows already decoded. */
#define SLAB_ROWS 1024u
#define SLAB_BYTES ((size_t)4 << 20)
#define CURSOR_BYTES ((size_t)32 << 20)

typedef struct slab {
    moesim_cursor *cursor;
    moesim_rows rows;            /* begin == end: nothing yet */
} slab;

struct moesim_loader {
    const moesim_trace_info *info;
    moesim_layout layout;
    moesim_builder *builder;
    moesim_tracker *tracker;     /* NULL for sets alone */
    uint64_t slab_rows;
    uint32_t num_slabs;
    slab slabs[MAX_CURSORS];
};

static uint32_t columns_of(const moesim_layout *l)
{
    uint32_t columns = MOESIM_COLUMN_EXPERT;
    if (!l->sets_only)
        columns |= MOESIM_COLUMN_STATE | MOESIM_COLUMN_POSITION | MOESIM_COLUMN_CONFIDENCE;
    if (l->gate)
        columns |= MOESIM_COLUMN_GATE;
    if (l->prob)
        columns |= MOESIM_COLUMN_PROB;
    if (l->residency)
        columns |= MOESIM_COLUMN_RESIDENCY;
    return columns;
}

static size_t decoded_row_bytes(const moesim_layout *l)
{
    size_t routes = (size_t)l->layers * l->top_k;
    return 16 + routes * (sizeof(uint16_t) + (l->gate ? sizeof(float) : 0) + (l->residency ? 1 : 0)) +
           (l->prob ? (size_t)l->layers * l->experts * sizeof(float) : 0);
}

/* A cursor holds a slab and whole chunks; wide models may need more than the usual limit, which --window then raises. */
static moesim_code open_cursors(moesim_loader *l, moesim_trace *trace, const moesim_window_params *params, moesim_error *err)
{
    const size_t row_bytes = decoded_row_bytes(&l->layout);
    const size_t fit = SLAB_BYTES / row_bytes > 0 ? SLAB_BYTES / row_bytes : 1;
    l->slab_rows = fit < SLAB_ROWS ? fit : SLAB_ROWS;
    const size_t limit = params->window_bytes > CURSOR_BYTES ? params->window_bytes : CURSOR_BYTES;
    const uint32_t wanted = params->batch < MAX_CURSORS ? params->batch : MAX_CURSORS;
    moesim_code code = MOESIM_OK;
    for (; code == MOESIM_OK && l->num_slabs < wanted; l->num_slabs += code == MOESIM_OK)
        code = moesim_cursor_open(trace, columns_of(&l->layout), limit, &l->slabs[l->num_slabs].cursor, err);
    return code;
}

moesim_code moesim_loader_create(moesim_trace *trace, const moesim_layout *layout, const moesim_window_params *params,
                                 uint32_t request_begin, uint32_t request_end, moesim_loader **out, moesim_error *err)
{
    moesim_loader *l = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *l, "window loader", (void **)&l, err);
    if (code != MOESIM_OK)
        return code;
    l->info = moesim_trace_get_info(trace);
    l->layout = *layout;
    code = moesim_builder_create(params, l->info, &l->builder, err);
    if (code == MOESIM_OK && !layout->sets_only) {
        size_t row_ids = layout->previous ? (size_t)layout->layers * layout->top_k : 0;
        code = moesim_tracker_create(request_begin, request_end, row_ids, &l->tracker, err);
    }
    if (code == MOESIM_OK)
        code = open_cursors(l, trace, params, err);
    if (code != MOESIM_OK) {
        moesim_loader_destroy(&l);
        return code;
    }
    *out = l;
    return MOESIM_OK;
}

void moesim_loader_destroy(moesim_loader **loader)
{
    moesim_loader *l = *loader;
    if (l == NULL)
        return;
    for (uint32_t i = 0; i < l->num_slabs; i++)
        moesim_cursor_close(&l->slabs[i].cursor);
    moesim_tracker_destroy(&l->tracker);
    moesim_builder_destroy(&l->builder);
    free(l);
    *loader = NULL;
}

/* n rows from row `from` of a slab, to row `to` of the buffer. */
static void copy_rows(const moesim_layout *l, const moesim_rows *rows, uint64_t from, size_t n, moesim_buffer *b, size_t to)
{
    const size_t routes = (size_t)l->layers * l->top_k, scores = (size_t)l->layers * l->experts;
    const size_t at = (size_t)(from - rows->begin);
    memcpy(b->expert + to * routes, rows->expert + at * routes, n * routes * sizeof *b->expert);
    if (l->sets_only)
        return;
    memcpy(b->position + to, rows->position + at, n * sizeof *b->position);
    memcpy(b->window.state + to, rows->state + at, n);
    for (size_t i = 0; i < n; i++)
        b->window.produced[to + i] = rows->confidence != NULL ? rows->confidence[at + i] : NAN;
    if (l->gate)
        memcpy(b->gate + to * routes, rows->gate + at * routes, n * routes * sizeof *b->gate);
    if (l->prob)
        memcpy(b->prob + to * scores, rows->prob + at * scores, n * scores * sizeof *b->prob);
    if (l->residency)
        memcpy(b->observed + to * routes, rows->residency + at * routes, n * routes);
}

static moesim_code read_rows(moesim_loader *l, const moesim_part *part, moesim_buffer *b, moesim_error *err)
{
    slab *s = &l->slabs[part->slot % l->num_slabs];
    const uint64_t end = part->info.row_end;
    for (uint64_t row = part->info.row_begin; row < end;) {
        if (row < s->rows.begin || row >= s->rows.end) {
            uint64_t slab_end = l->info->num_rows - row > l->slab_rows ? row + l->slab_rows : l->info->num_rows;
            s->rows = (moesim_rows){ .begin = 0 };
            moesim_code code = moesim_cursor_rows(s->cursor, row, slab_end, &s->rows, err);
            if (code != MOESIM_OK)
                return code;
        }
        uint64_t n = (s->rows.end < end ? s->rows.end : end) - row;
        copy_rows(&l->layout, &s->rows, row, (size_t)n, b, b->num_rows);
        b->num_rows += (uint32_t)n;
        row += n;
    }
    return MOESIM_OK;
}

/* c of the pass itself: its confidence where the row stays masked, else 1 (semantics §5, hindsight). */
static float own_weight(uint8_t kind, uint8_t state, float produced)
{
    return kind == MOESIM_PASS_DENOISE && state == MOESIM_STATE_MASKED && !isnan(produced) ? produced : 1.0f;
}

/* Rows first .. num_rows of the buffer, which hold the part's columns. */
static moesim_code describe_rows(moesim_loader *l, const moesim_part *part, moesim_buffer *b, uint32_t first,
                                 moesim_error *err)
{
    const size_t routes = (size_t)l->layout.layers * l->layout.top_k, scores = (size_t)l->layout.layers * l->layout.experts;
    moesim_window *w = &b->window;
    moesim_tracked_pass pass = {
        .pass = &part->info, .number = part->pass, .n = b->num_rows - first, .position = b->position + first,
        .state = w->state + first, .confidence = w->produced + first, .expert = b->expert + first * routes,
        .row = w->row + first, .lag = b->lag + first,
        .previous = l->layout.previous ? b->previous + first * routes : NULL,
    };
    moesim_code code = moesim_tracker_pass(l->tracker, &pass, err);
    if (code != MOESIM_OK)
        return code;
    for (size_t i = first; i < b->num_rows; i++) {
        b->own[i] = own_weight(part->info.kind, w->state[i], w->produced[i]);
        w->row[i].expert = b->expert + i * routes;
        w->row[i].gate = l->layout.gate ? b->gate + i * routes : NULL;
        w->row[i].prob = l->layout.prob ? b->prob + i * scores : NULL;
        if (l->layout.residency)
            b->observed_row[i] = b->observed + i * routes;
    }
    if (part->ends)
        moesim_tracker_end(l->tracker, part->info.request);
    return MOESIM_OK;
}

/* The part's request as a member of the step; a request with several passes in one forward call is one member. */
static void add_member(moesim_buffer *b, moesim_step *step, const moesim_part *part, uint32_t first_row)
{
    moesim_member *member = NULL;
    for (uint32_t i = step->member; member == NULL && i < b->num_members; i++) {
        if (b->window.member[i].request == part->info.request)
            member = &b->window.member[i];
    }
    if (member == NULL) {
        member = &b->window.member[b->num_members++];
        *member = (moesim_member){ .request = part->info.request };
        step->num_requests++;
    }
    member->starts |= part->starts;
    member->ends |= part->ends;
    for (uint32_t i = first_row; i < b->num_rows; i++) {
        member->committed += b->window.state[i] == MOESIM_STATE_COMMITTED_NOW;
        step->num_masked += b->window.row[i].input == MOESIM_ROW_MASKED;
        step->first |= b->window.row[i].first;
    }
}

moesim_code moesim_loader_step(moesim_loader *l, moesim_buffer *b, const moesim_planned *planned, moesim_error *err)
{
    moesim_step *step = &b->window.step[b->window.num_steps];
    *step = (moesim_step){
        .clock = planned->clock, .pass = planned->part[0].pass, .decode_passes = planned->decode_passes,
        .kind = planned->kind, .decode = planned->decode, .counted = planned->counted,
        .num_rows = (uint32_t)planned->num_rows, .row = b->num_rows, .member = b->num_members,
    };
    for (uint32_t i = 0; i < planned->num_parts; i++) {
        const moesim_part *part = &planned->part[i];
        uint32_t first = b->num_rows;
        moesim_code code = read_rows(l, part, b, err);
        if (code == MOESIM_OK && !l->layout.sets_only)
            code = describe_rows(l, part, b, first, err);
        if (code != MOESIM_OK)
            return code;
        if (!l->layout.sets_only)
            add_member(b, step, part, first);
    }
    moesim_build_step(l->builder, b, b->window.num_steps);
    b->window.num_steps++;
    return MOESIM_OK;
}

static moesim_code too_large(const char *path, const moesim_layout *layout, const moesim_planned *planned,
                             size_t window_bytes, moesim_error *err)
{
    const uint64_t active = (uint64_t)layout->experts * layout->layers;
    const moesim_extent alone = { 1, planned->num_parts, planned->num_rows, active };
    return moesim_fail(err, MOESIM_E_USAGE,
                       "%s: /pass/row_offset[%llu]: a step of %llu rows needs up to %zu bytes, but a window has %zu; "
                       "raise --window (run, sweep, replay)",
                       path, (unsigned long long)planned->part[0].pass, (unsigned long long)planned->num_rows,
                       moesim_layout_bytes(layout, &alone), window_bytes);
}

moesim_code moesim_walk_window(moesim_schedule *schedule, const moesim_layout *layout, size_t window_bytes,
                               moesim_walk_fn *each, void *cookie, moesim_extent *extent, moesim_error *err)
{
    *extent = (moesim_extent){ 0 };
    for (;;) {
        const moesim_planned *planned = NULL;
        moesim_code code = moesim_schedule_peek(schedule, &planned, err);
        if (code != MOESIM_OK)
            return code;
        if (planned->num_parts == 0)
            return MOESIM_OK;
        if (!moesim_extent_add(layout, extent, planned->num_rows, planned->num_parts, window_bytes))
            return extent->steps > 0 ? MOESIM_OK
                                     : too_large(moesim_schedule_path(schedule), layout, planned, window_bytes, err);
        if (moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        code = each != NULL ? each(cookie, planned, err) : MOESIM_OK;
        if (code != MOESIM_OK)
            return code;
        moesim_schedule_advance(schedule);
    }
}
