/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the last decode passes of a request.
 */
#include "traces/stats_past.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

static moesim_code take(moesim_stats_memory *memory, size_t bytes, void **out, moesim_error *err)
{
    if (bytes > memory->limit - memory->used)
        return moesim_fail(err, MOESIM_E_LIMIT, "the passes that are compared need more than %zu MiB (too many requests open "
                           "at once, or passes of too many rows); take fewer requests with 'moesim trace select --requests'",
                           memory->limit >> 20);
    const moesim_code code = moesim_alloc(bytes, 1, "passes under comparison", out, err);
    if (code == MOESIM_OK)
        memory->used += bytes;
    return code;
}

static size_t row_bytes(const moesim_stats_memory *memory)
{
    const size_t routes = (size_t)memory->layers * memory->top_k * sizeof(uint16_t);
    return sizeof(int32_t) + sizeof(float) + routes + sizeof(uint8_t);
}

static size_t set_bytes(const moesim_stats_memory *memory)
{
    return (size_t)memory->layers * memory->words * sizeof(uint64_t);
}

moesim_code moesim_open_request_create(moesim_stats_memory *memory, moesim_open_request **out, moesim_error *err)
{
    void *sets = NULL, *request = NULL;
    *out = NULL;
    moesim_code code = take(memory, MOESIM_STATS_PASSES * set_bytes(memory), &sets, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(1, sizeof **out, "an open request", &request, err);
    if (code != MOESIM_OK) {
        free(sets);
        return code;
    }
    *out = request;
    for (uint32_t i = 0; i < MOESIM_STATS_PASSES; i++)
        (*out)->pass[i].active = (uint64_t *)sets + (size_t)i * memory->layers * memory->words;
    return MOESIM_OK;
}

void moesim_open_request_destroy(moesim_stats_memory *memory, moesim_open_request **request)
{
    moesim_open_request *r = *request;
    if (r == NULL)
        return;
    for (uint32_t i = 0; i < MOESIM_STATS_PASSES; i++) {
        memory->used -= r->pass[i].capacity * row_bytes(memory);
        free(r->pass[i].memory);
    }
    memory->used -= MOESIM_STATS_PASSES * set_bytes(memory);
    free(r->pass[0].active);
    free(r);
    *request = NULL;
}

moesim_past *moesim_open_request_pass(moesim_open_request *request, uint32_t lag)
{
    return &request->pass[(request->next + MOESIM_STATS_PASSES - lag) % MOESIM_STATS_PASSES];
}

/* Room for n rows; grows with some to spare, since passes of a block have about the same number of rows. */
static moesim_code reserve(moesim_stats_memory *memory, moesim_past *past, uint32_t n, moesim_error *err)
{
    if (n <= past->capacity)
        return MOESIM_OK;
    memory->used -= past->capacity * row_bytes(memory);
    free(past->memory);
    past->memory = NULL;
    past->capacity = 0;
    const moesim_code code = take(memory, n * row_bytes(memory), &past->memory, err);
    if (code != MOESIM_OK)
        return code;
    past->capacity = n;
    past->position = past->memory;
    past->confidence = (float *)(past->position + n);
    past->expert = (uint16_t *)(past->confidence + n);
    past->state = (uint8_t *)(past->expert + (size_t)n * memory->layers * memory->top_k);
    return MOESIM_OK;
}

typedef struct place { int32_t position; uint32_t row; } place;

static int by_position(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

/* Order of the rows by position; rows that are in order already (nearly always) cost one look. */
static moesim_code sort_rows(const moesim_rows *rows, uint32_t n, place **out, moesim_error *err)
{
    bool sorted = true;
    void *memory;
    const moesim_code code = moesim_alloc(n, sizeof **out, "the order of rows", &memory, err);
    if (code != MOESIM_OK)
        return code;
    *out = memory;
    for (uint32_t i = 0; i < n; i++) {
        (*out)[i] = (place){ rows->position[i], i };
        sorted = sorted && (i == 0 || rows->position[i - 1] < rows->position[i]);
    }
    if (!sorted)
        qsort(*out, n, sizeof **out, by_position);
    return MOESIM_OK;
}

static void copy_row(const moesim_stats_memory *memory, moesim_past *past, uint32_t to, const moesim_rows *rows, uint32_t from)
{
    const size_t routes = (size_t)memory->layers * memory->top_k;
    const uint16_t *expert = rows->expert + from * routes;
    past->position[to] = rows->position[from];
    past->state[to] = rows->state[from];
    past->confidence[to] = rows->confidence != NULL ? rows->confidence[from] : (float)NAN;
    memcpy(past->expert + to * routes, expert, routes * sizeof *expert);
    for (size_t i = 0; i < routes; i++)
        if (expert[i] != UINT16_MAX)
            moesim_bit_set(past->active + i / memory->top_k * memory->words, expert[i]);
}

moesim_code moesim_past_fill(moesim_stats_memory *memory, moesim_past *past, const moesim_rows *rows, moesim_error *err)
{
    const uint64_t n = rows->end - rows->begin;
    place *order = NULL;
    if (n > INT32_MAX)
        return moesim_fail(err, MOESIM_E_LIMIT, "a pass has more than %d rows", INT32_MAX);
    moesim_code code = reserve(memory, past, (uint32_t)n, err);
    if (code == MOESIM_OK)
        code = sort_rows(rows, (uint32_t)n, &order, err);
    if (code != MOESIM_OK)
        return code;
    past->rows = (uint32_t)n;
    memset(past->active, 0, set_bytes(memory));
    for (uint32_t i = 0; i < past->rows; i++)
        copy_row(memory, past, i, rows, order[i].row);
    free(order);
    return MOESIM_OK;
}
