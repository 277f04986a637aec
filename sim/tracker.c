/* SPDX-License-Identifier: Apache-2.0
 *
 * Per request the last pass of each recent block, rows sorted by position.
 */
#include "sim/tracker.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

typedef struct seen_row {
    int32_t position;
    uint32_t index;              /* of the row within its pass */
    float confidence;
    uint8_t state;
} seen_row;

/* The last pass of one block. */
typedef struct block {
    int32_t number;
    bool used;
    bool decoded;                /* a decode pass of the block was seen */
    bool has_expert;
    uint64_t stamp;              /* the larger, the later used */
    uint32_t n, capacity;
    seen_row *row;               /* ascending positions */
    uint16_t *expert;            /* [capacity][row_ids], indexed by seen_row.index */
} block;

typedef struct request_blocks {
    block block[MOESIM_TRACKED_BLOCKS];
} request_blocks;

struct moesim_tracker {
    uint32_t begin, end;
    size_t row_ids;
    size_t bytes;                /* of all rows remembered */
    uint64_t stamp;
    request_blocks **request;    /* [end − begin], NULL: not open */
};

moesim_code moesim_tracker_create(uint32_t begin, uint32_t end, size_t row_ids, moesim_tracker **out, moesim_error *err)
{
    moesim_tracker *t = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *t, "row tracker", (void **)&t, err);
    if (code != MOESIM_OK)
        return code;
    t->begin = begin;
    t->end = end;
    t->row_ids = row_ids;
    code = moesim_alloc(end - begin, sizeof(request_blocks *), "row tracker", (void **)&t->request, err);
    if (code != MOESIM_OK) {
        free(t);
        return code;
    }
    *out = t;
    return MOESIM_OK;
}

static size_t bytes_per_row(const moesim_tracker *t)
{
    return sizeof(seen_row) + t->row_ids * sizeof(uint16_t);
}

void moesim_tracker_end(moesim_tracker *t, uint32_t request)
{
    request_blocks *blocks = t->request[request - t->begin];
    if (blocks == NULL)
        return;
    for (uint32_t i = 0; i < MOESIM_TRACKED_BLOCKS; i++) {
        t->bytes -= blocks->block[i].capacity * bytes_per_row(t);
        free(blocks->block[i].row);
        free(blocks->block[i].expert);
    }
    t->bytes -= sizeof *blocks;
    free(blocks);
    t->request[request - t->begin] = NULL;
}

void moesim_tracker_destroy(moesim_tracker **tracker)
{
    moesim_tracker *t = *tracker;
    if (t == NULL)
        return;
    for (uint32_t q = t->begin; q < t->end; q++)
        moesim_tracker_end(t, q);
    free(t->request);
    free(t);
    *tracker = NULL;
}

static moesim_code over_limit(const moesim_tracked_pass *p, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_LIMIT,
                       "/pass/request[%llu]: remembering the last rows of all open requests takes more than %zu bytes; "
                       "select fewer requests with --requests a:b", (unsigned long long)p->number, MOESIM_TRACKER_BYTES);
}

/* The entry of the pass's block; a new block takes an unused entry, else the one used longest ago. */
static moesim_code find_block(moesim_tracker *t, const moesim_tracked_pass *p, block **out, moesim_error *err)
{
    request_blocks **at = &t->request[p->pass->request - t->begin];
    if (*at == NULL) {
        if (t->bytes + sizeof **at > MOESIM_TRACKER_BYTES)
            return over_limit(p, err);
        moesim_code code = moesim_alloc(1, sizeof **at, "row tracker", (void **)at, err);
        if (code != MOESIM_OK)
            return code;
        t->bytes += sizeof **at;
    }
    block *oldest = &(*at)->block[0];
    *out = NULL;
    for (uint32_t i = 0; i < MOESIM_TRACKED_BLOCKS; i++) {
        block *b = &(*at)->block[i];
        if (b->used && b->number == p->pass->block)
            *out = b;
        if (b->stamp < oldest->stamp)
            oldest = b;
    }
    if (*out == NULL) {
        *out = oldest;
        oldest->used = true;
        oldest->decoded = oldest->has_expert = false;
        oldest->n = 0;
        oldest->number = p->pass->block;
    }
    (*out)->stamp = ++t->stamp;
    return MOESIM_OK;
}

/* The remembered row of a position, or NULL. Rows mostly come in the same order as last time: *guess follows along. */
static const seen_row *find_row(const block *b, int32_t position, uint32_t *guess)
{
    if (*guess < b->n && b->row[*guess].position == position)
        return &b->row[(*guess)++];
    uint32_t low = 0, high = b->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (b->row[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == b->n || b->row[low].position != position)
        return NULL;
    *guess = low + 1;
    return &b->row[low];
}

static uint8_t input_class(uint8_t state, const seen_row *before)
{
    if (state == MOESIM_STATE_MASKED || state == MOESIM_STATE_COMMITTED_NOW)
        return MOESIM_ROW_MASKED;
    bool changed = before != NULL &&
                   (before->state == MOESIM_STATE_COMMITTED_NOW || before->state == MOESIM_STATE_EDITED);
    return changed ? MOESIM_ROW_JUST : MOESIM_ROW_LONG;
}

static void describe_rows(const moesim_tracker *t, const moesim_tracked_pass *p, const block *b)
{
    const moesim_pass *pass = p->pass;
    bool decode = pass->kind != MOESIM_PASS_PREFILL;
    uint32_t guess = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const seen_row *before = find_row(b, p->position[i], &guess);
        moesim_row *row = &p->row[i];
        *row = (moesim_row){
            .request = pass->request, .position = p->position[i], .block = pass->block, .step = pass->step,
            .kind = pass->kind, .input = input_class(p->state[i], before), .first = decode && !b->decoded,
            .confidence = decode && before != NULL ? before->confidence : NAN,
        };
        bool weighs = pass->kind == MOESIM_PASS_DENOISE && row->input == MOESIM_ROW_MASKED && before != NULL &&
                      before->state == MOESIM_STATE_MASKED && !isnan(before->confidence);
        p->lag[i] = weighs ? before->confidence : 1.0f;
        if (t->row_ids > 0 && decode && before != NULL && b->has_expert) {
            uint16_t *to = p->previous + i * t->row_ids;
            memcpy(to, b->expert + before->index * t->row_ids, t->row_ids * sizeof *to);
            row->previous = to;
        }
    }
}

static int by_position(const void *a, const void *b)
{
    const seen_row *x = a, *y = b;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Ascending positions, of equal ones the last row. */
static void sort_rows(block *b)
{
    bool ascending = true;
    for (uint32_t i = 1; i < b->n; i++)
        ascending = ascending && b->row[i - 1].position < b->row[i].position;
    if (ascending)
        return;
    qsort(b->row, b->n, sizeof *b->row, by_position);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        if (kept > 0 && b->row[kept - 1].position == b->row[i].position)
            kept--;
        b->row[kept++] = b->row[i];
    }
    b->n = kept;
}

static moesim_code reserve(moesim_tracker *t, const moesim_tracked_pass *p, block *b, uint32_t rows, moesim_error *err)
{
    if (rows <= b->capacity)
        return MOESIM_OK;
    size_t before = b->capacity * bytes_per_row(t);
    if (rows > (MOESIM_TRACKER_BYTES - (t->bytes - before)) / bytes_per_row(t))
        return over_limit(p, err);
    free(b->row);
    free(b->expert);
    t->bytes -= before;
    b->row = NULL;
    b->expert = NULL;
    b->capacity = 0;
    moesim_code code = moesim_alloc(rows, sizeof *b->row, "row tracker", (void **)&b->row, err);
    if (code == MOESIM_OK && t->row_ids > 0)
        code = moesim_alloc(rows, t->row_ids * sizeof *b->expert, "row tracker", (void **)&b->expert, err);
    if (code != MOESIM_OK)
        return code;
    b->capacity = rows;
    t->bytes += rows * bytes_per_row(t);
    return MOESIM_OK;
}

/* Of a prefill only what a later chunk of it could ask for: the rows that it committed or edited. */
static moesim_code remember(moesim_tracker *t, const moesim_tracked_pass *p, block *b, moesim_error *err)
{
    bool decode = p->pass->kind != MOESIM_PASS_PREFILL;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < p->n; i++)
        rows += decode || p->state[i] == MOESIM_STATE_COMMITTED_NOW || p->state[i] == MOESIM_STATE_EDITED;
    moesim_code code = reserve(t, p, b, rows, err);
    if (code != MOESIM_OK)
        return code;
    b->n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (decode || p->state[i] == MOESIM_STATE_COMMITTED_NOW || p->state[i] == MOESIM_STATE_EDITED)
            b->row[b->n++] = (seen_row){ p->position[i], i, decode ? p->confidence[i] : NAN, p->state[i] };
    }
    b->has_expert = decode && t->row_ids > 0 && rows > 0;
    if (b->has_expert)
        memcpy(b->expert, p->expert, rows * t->row_ids * sizeof *b->expert);
    sort_rows(b);
    b->decoded = b->decoded || decode;
    return MOESIM_OK;
}

moesim_code moesim_tracker_pass(moesim_tracker *t, const moesim_tracked_pass *p, moesim_error *err)
{
    block *b = NULL;
    moesim_code code = find_block(t, p, &b, err);
    if (code != MOESIM_OK)
        return code;
    describe_rows(t, p, b);
    return remember(t, p, b, err);
}
