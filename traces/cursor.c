/* SPDX-License-Identifier: Apache-2.0
 *
 * Cursors: decoded rows in windows of bounded memory. Every column keeps its own window of whole bands (chunks), because the
 * chunks of different columns need not agree; going forward, each chunk is decoded once.
 */
#include "traces/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "traces/check.h"

typedef struct window {
    const moesim_h5_dataset *dataset;   /* NULL: column not wanted or absent */
    unsigned char *data;
    size_t bytes;                /* of data */
    size_t row_bytes;            /* decoded, after widening */
    uint64_t begin, end;         /* rows held; end is a border of bands or the number of rows */
    bool half;
    moesim_check_fn *check;
} window;

struct moesim_cursor {
    moesim_trace *trace;
    size_t limit;
    window window[MOESIM_ROW_COLUMNS];
    uint16_t *raw;               /* one band of half-precision values before widening */
    size_t raw_bytes;
};

static moesim_check_fn *const checks[MOESIM_ROW_COLUMNS] = {
    moesim_check_expert,   moesim_check_gate_half, moesim_check_confidence, moesim_check_state,
    moesim_check_position, moesim_check_prob,      NULL,                    moesim_check_residency,
};

uint64_t moesim_trace_rows_in(const moesim_trace_info *info, size_t bytes)
{
    const size_t slots = (size_t)info->num_layers * info->top_k;
    const size_t probs = info->has_prob ? (size_t)info->num_layers * info->num_experts : 0;
    const size_t rows = bytes / (16 + slots * 7 + probs * sizeof(float));
    return rows > 0 ? rows : 1;
}

moesim_code moesim_cursor_open(moesim_trace *trace, uint32_t columns, size_t limit_bytes, moesim_cursor **out,
                               moesim_error *err)
{
    *out = NULL;
    moesim_cursor *c = calloc(1, sizeof *c);
    if (c == NULL)
        return moesim_fail_nomem(err, "cursor", sizeof *c);
    c->trace = trace;
    c->limit = limit_bytes;
    for (uint32_t i = 0; i < MOESIM_ROW_COLUMNS; i++) {
        const moesim_h5_dataset *d = &trace->row[i];
        window *w = &c->window[i];
        if ((columns >> i & 1u) == 0 || d->id < 0)
            continue;
        w->dataset = d;
        w->half = d->kind == MOESIM_H5_F16;
        w->row_bytes = w->half ? d->row_bytes * 2 : d->row_bytes;
        w->check = d->kind == MOESIM_H5_F32 ? moesim_check_gate_float : checks[i];
    }
    *out = c;
    return MOESIM_OK;
}

void moesim_cursor_close(moesim_cursor **cursor)
{
    moesim_cursor *c = *cursor;
    *cursor = NULL;
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < MOESIM_ROW_COLUMNS; i++)
        free(c->window[i].data);
    free(c->raw);
    free(c);
}

/* Memory held if one buffer of `old` bytes became one of `new` bytes. */
static moesim_code check_limit(const moesim_cursor *c, const moesim_h5_dataset *d, size_t old, size_t new, uint64_t begin,
                               uint64_t end, moesim_error *err)
{
    size_t total = c->raw_bytes;
    for (uint32_t i = 0; i < MOESIM_ROW_COLUMNS; i++)
        total += c->window[i].bytes;
    if (new <= c->limit && total - old <= c->limit - new)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_LIMIT,
                       "%s: %s: rows %llu to %llu take %zu KiB decoded beside other columns' %zu, the window has %zu; "
                       "write the trace in smaller chunks, or raise --window (run, sweep, replay)",
                       d->file->path, d->name, (unsigned long long)begin, (unsigned long long)end, new >> 10,
                       (total - old) >> 10, c->limit >> 10);
}

/* Makes room for `rows` rows from w->begin on, keeping what is held. */
static moesim_code reserve(moesim_cursor *c, window *w, uint64_t rows, uint64_t begin, uint64_t end, moesim_error *err)
{
    size_t bytes;
    if (__builtin_mul_overflow((size_t)rows, w->row_bytes, &bytes))
        bytes = SIZE_MAX;
    if (bytes <= w->bytes && w->data != NULL)
        return MOESIM_OK;
    const moesim_code code = check_limit(c, w->dataset, w->bytes, bytes, begin, end, err);
    if (code != MOESIM_OK)
        return code;
    unsigned char *grown = realloc(w->data, bytes > 0 ? bytes : 1);
    if (grown == NULL)
        return moesim_fail_nomem(err, w->dataset->name, bytes);
    w->data = grown;
    w->bytes = bytes;
    return MOESIM_OK;
}

static moesim_code reserve_raw(moesim_cursor *c, const window *w, uint64_t begin, uint64_t end, moesim_error *err)
{
    const size_t bytes = moesim_h5_band_bytes(w->dataset);
    if (bytes <= c->raw_bytes && c->raw != NULL)
        return MOESIM_OK;
    const moesim_code code = check_limit(c, w->dataset, c->raw_bytes, bytes, begin, end, err);
    if (code != MOESIM_OK)
        return code;
    free(c->raw);
    c->raw_bytes = 0;
    if ((c->raw = malloc(bytes > 0 ? bytes : 1)) == NULL)
        return moesim_fail_nomem(err, w->dataset->name, bytes);
    c->raw_bytes = bytes;
    return MOESIM_OK;
}

/* Decodes and checks the band that begins at w->end and appends it. Room was made before. */
static moesim_code append_band(moesim_cursor *c, window *w, moesim_error *err)
{
    const moesim_h5_dataset *d = w->dataset;
    unsigned char *to = w->data + (size_t)(w->end - w->begin) * w->row_bytes;
    void *raw = w->half ? (void *)c->raw : (void *)to;
    const uint64_t left = d->dim[0] - w->end, n = left < d->band_rows ? left : d->band_rows;
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
    moesim_code code = moesim_h5_read_band(d, c->trace->decoder, w->end / d->band_rows, raw, err);
    const moesim_check check = {
        .info = &c->trace->info,
        .name = d->name,
        .row = w->end,
        .n = n,
        .inner = {d->rank == 3 ? (uint32_t)d->dim[1] : 1, d->rank == 3 ? (uint32_t)d->dim[2] : 1},
    };
    if (code == MOESIM_OK && w->check != NULL)
        code = w->check(&check, raw, err);
    if (code != MOESIM_OK)
        return code;
    if (w->half)
        moesim_widen_half(raw, (float *)(void *)to, (size_t)n * (d->row_bytes / 2));
    w->end += n;
    return MOESIM_OK;
}

static moesim_code fill(moesim_cursor *c, window *w, uint64_t begin, uint64_t end, moesim_error *err)
{
    const uint64_t band = w->dataset->band_rows;
    if (begin >= w->begin && end <= w->end)
        return MOESIM_OK;
    if (begin >= w->begin && begin < w->end) {
        const uint64_t drop = begin - w->begin;
        memmove(w->data, w->data + (size_t)drop * w->row_bytes, (size_t)(w->end - begin) * w->row_bytes);
        w->begin = begin;
    } else {
        w->begin = w->end = begin / band * band;
    }
    const uint64_t last = (end - 1) / band * band + band;   /* room for a whole last chunk, its unused rows included */
    moesim_code code = reserve(c, w, last - w->begin, begin, end, err);
    if (code == MOESIM_OK && w->half)
        code = reserve_raw(c, w, begin, end, err);
    while (code == MOESIM_OK && w->end < end)
        code = append_band(c, w, err);
    return code;
}

moesim_code moesim_cursor_rows(moesim_cursor *cursor, uint64_t begin, uint64_t end, moesim_rows *out, moesim_error *err)
{
    static const uint64_t nothing[1] = {0};   /* what columns of an empty range point to */
    const void *data[MOESIM_ROW_COLUMNS] = {NULL};
    *out = (moesim_rows){.begin = begin, .end = end};
    if (begin > end || end > cursor->trace->info.num_rows)
        return moesim_fail(err, MOESIM_E_INTERNAL, "%s: rows %llu to %llu of %llu were asked for", cursor->trace->info.path,
                           (unsigned long long)begin, (unsigned long long)end,
                           (unsigned long long)cursor->trace->info.num_rows);
    for (uint32_t i = 0; i < MOESIM_ROW_COLUMNS; i++) {
        window *w = &cursor->window[i];
        if (w->dataset == NULL)
            continue;
        data[i] = nothing;
        if (begin == end)
            continue;
        const moesim_code code = fill(cursor, w, begin, end, err);
        if (code != MOESIM_OK)
            return code;
        data[i] = w->data + (size_t)(begin - w->begin) * w->row_bytes;
    }
    *out = (moesim_rows){begin, end, data[0], data[1], data[2], data[3], data[4], data[5], data[6], data[7]};
    return MOESIM_OK;
}
