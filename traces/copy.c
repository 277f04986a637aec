/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a trace or a selection of it, pass by pass, in pieces of bounded memory.
 */
#include "traces/copy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/paths.h"

#define PIECE_BYTES ((size_t)16 << 20)    /* decoded rows that are copied together */
#define CURSOR_BYTES ((size_t)256 << 20)  /* a bound for the reader; one row at the format's limits takes under 5 MiB */
#define DROPPED UINT32_MAX

typedef struct copy {
    moesim_trace *in;
    const moesim_trace_info *from;
    moesim_trace_info info;      /* of the output */
    uint32_t layer_begin;
    uint32_t *number;            /* [Q] new request number, or DROPPED */
    uint64_t piece_rows;
    uint64_t forward_shift;      /* added to the numbers of forward calls */
    moesim_cursor *cursor;
    moesim_writer *writer;
    bool slice;                  /* some layers are left out */
    uint16_t *expert;            /* buffers of a piece for the kept layers; NULL unless slice */
    float *gate, *prob;
    uint8_t *residency;
    moesim_copy_result result;
} copy;

moesim_code moesim_refuse_same_file(const char *in, const char *out, moesim_error *err)
{
    if (!moesim_same_file(in, out))
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_USAGE, "%s is the input itself; name another output file", out);
}

/* Puts `have` for an open end; what: "requests". */
static moesim_code check_range(const copy *c, const char *what, uint64_t begin, uint64_t *end, uint64_t have, moesim_error *err)
{
    if (*end == UINT64_MAX)
        *end = have > begin ? have : begin;
    if (begin < *end && *end <= have)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_USAGE, "%s: the selection of %s %" PRIu64 ":%" PRIu64 " is empty or reaches beyond the "
                       "trace, which has 0:%" PRIu64, c->from->path, what, begin, *end, have);
}

static moesim_code choose_requests(copy *c, const moesim_copy_selection *s, moesim_error *err)
{
    void *memory = NULL;
    uint64_t end = s->request_end;
    moesim_code code = moesim_alloc(c->from->num_requests, sizeof *c->number, "request numbers", &memory, err);
    c->number = memory;
    if (code == MOESIM_OK && (c->from->num_requests > 0 || s->request_begin > 0 || end != UINT64_MAX))
        code = check_range(c, "requests", s->request_begin, &end, c->from->num_requests, err);
    if (code != MOESIM_OK)
        return code;
    for (uint32_t q = 0; q < c->from->num_requests; q++) {
        const moesim_trace_request *r = moesim_trace_get_request(c->in, q);
        const bool keep = q >= s->request_begin && q < end &&
                          (s->workload == NULL || strcmp(s->workload, r->workload) == 0);
        c->number[q] = keep ? c->result.requests++ : DROPPED;
    }
    if (c->result.requests > 0 || c->from->num_requests == 0)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_USAGE, "%s: none of the selected requests is of workload %s", c->from->path, s->workload);
}

static moesim_code choose_layers(copy *c, const moesim_copy_selection *s, moesim_error *err)
{
    const uint32_t all = c->from->num_layers;
    uint64_t end = s->layer_end;
    if (check_range(c, "MoE layers", s->layer_begin, &end, all, err) != MOESIM_OK)
        return err->code;
    c->layer_begin = (uint32_t)s->layer_begin;
    c->info.num_layers = c->result.layers = (uint32_t)(end - s->layer_begin);
    c->slice = c->info.num_layers < all;
    return MOESIM_OK;
}

static moesim_code take(size_t rows, size_t items, size_t each, void **out, moesim_error *err)
{
    return items == 0 ? MOESIM_OK : moesim_alloc(rows * items, each, "rows of the copy", out, err);
}

static moesim_code make_buffers(copy *c, moesim_error *err)
{
    const moesim_trace_info *i = c->from;
    c->piece_rows = moesim_trace_rows_in(i, PIECE_BYTES);
    if (!c->slice)
        return MOESIM_OK;
    const size_t kept = (size_t)c->info.num_layers * i->top_k, n = (size_t)c->piece_rows;
    void *expert = NULL, *gate = NULL, *prob = NULL, *residency = NULL;
    moesim_code code = take(n, kept, sizeof *c->expert, &expert, err);
    c->expert = expert;
    if (code == MOESIM_OK)
        code = take(n, i->has_gate ? kept : 0, sizeof *c->gate, &gate, err);
    c->gate = gate;
    if (code == MOESIM_OK)
        code = take(n, i->has_residency ? kept : 0, sizeof *c->residency, &residency, err);
    c->residency = residency;
    if (code == MOESIM_OK)
        code = take(n, i->has_prob ? (size_t)c->info.num_layers * i->num_experts : 0, sizeof *c->prob, &prob, err);
    c->prob = prob;
    return code;
}

/* Keeps the chosen layers of n rows of [M][width] items. NULL stays NULL. */
static void *slice(const copy *c, size_t n, size_t width, size_t each, const void *from, void *to)
{
    if (from == NULL)
        return NULL;
    const size_t all = c->from->num_layers * width * each, kept = c->info.num_layers * width * each;
    const unsigned char *source = (const unsigned char *)from + c->layer_begin * width * each;
    for (size_t r = 0; r < n; r++)
        memcpy((unsigned char *)to + r * kept, source + r * all, kept);
    return to;
}

static void slice_rows(const copy *c, moesim_rows *rows)
{
    const size_t n = (size_t)(rows->end - rows->begin), k = c->from->top_k;
    rows->expert = slice(c, n, k, sizeof *rows->expert, rows->expert, c->expert);
    rows->gate = slice(c, n, k, sizeof *rows->gate, rows->gate, c->gate);
    rows->residency = slice(c, n, k, sizeof *rows->residency, rows->residency, c->residency);
    rows->prob = slice(c, n, c->from->num_experts, sizeof *rows->prob, rows->prob, c->prob);
}

static moesim_code copy_pass(copy *c, const moesim_pass *pass, moesim_error *err)
{
    uint64_t at = pass->row_begin;
    bool begun = false;
    do {
        const uint64_t left = pass->row_end - at, end = at + (left < c->piece_rows ? left : c->piece_rows);
        moesim_rows rows = {.begin = at, .end = at};
        moesim_code code = end > at ? moesim_cursor_rows(c->cursor, at, end, &rows, err) : MOESIM_OK;
        if (code != MOESIM_OK)
            return code;
        if (c->slice)
            slice_rows(c, &rows);
        code = begun ? moesim_writer_rows(c->writer, &rows, err)
                     : moesim_writer_pass(c->writer, pass, &rows, pass->observed_ns, err);
        if (code != MOESIM_OK)
            return code;
        begun = true;
        at = end;
    } while (at < pass->row_end);
    c->result.passes++;
    c->result.rows += pass->row_end - pass->row_begin;
    return MOESIM_OK;
}

static moesim_code copy_passes(copy *c, moesim_error *err)
{
    moesim_progress progress = {0};
    moesim_progress_begin(&progress, "copying", c->from->num_passes, 1, "passes");
    moesim_code code = MOESIM_OK;
    for (uint64_t p = 0; p < c->from->num_passes && code == MOESIM_OK; p++) {
        moesim_pass pass;
        code = moesim_trace_pass(c->in, p, &pass, err);
        if (code == MOESIM_OK && c->number[pass.request] != DROPPED) {
            pass.request = c->number[pass.request];
            pass.forward += c->forward_shift;
            code = copy_pass(c, &pass, err);
        }
        moesim_progress_update(&progress, p + 1);
    }
    moesim_progress_end(&progress);
    return code;
}

static moesim_code copy_requests(copy *c, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    for (uint32_t q = 0; q < c->from->num_requests && code == MOESIM_OK; q++)
        if (c->number[q] != DROPPED)
            code = moesim_writer_request(c->writer, moesim_trace_get_request(c->in, q), err);
    return code;
}

static moesim_code open_cursor(copy *c, moesim_error *err)
{
    const uint32_t columns = MOESIM_COLUMN_EXPERT | MOESIM_COLUMN_GATE | MOESIM_COLUMN_CONFIDENCE | MOESIM_COLUMN_STATE |
                             MOESIM_COLUMN_POSITION | MOESIM_COLUMN_PROB | MOESIM_COLUMN_TOKEN_ID | MOESIM_COLUMN_RESIDENCY;
    return moesim_cursor_open(c->in, columns, CURSOR_BYTES, &c->cursor, err);
}

static moesim_code write_copy(copy *c, const char *path, const moesim_writer_options *options, moesim_error *err)
{
    moesim_code code = open_cursor(c, err);
    if (code == MOESIM_OK)
        code = moesim_writer_create(path, &c->info, moesim_trace_layer_ids(c->in) + c->layer_begin,
                                    moesim_trace_expert_bytes(c->in) + c->layer_begin, options, &c->writer, err);
    if (code == MOESIM_OK)
        code = copy_requests(c, err);
    if (code == MOESIM_OK)
        code = copy_passes(c, err);
    if (code == MOESIM_OK && c->result.passes == 0 && c->from->num_passes > 0)
        code = moesim_fail(err, MOESIM_E_USAGE, "%s: the selected requests have no pass", c->from->path);
    if (code == MOESIM_OK)
        code = moesim_writer_finish(&c->writer, err);
    moesim_writer_discard(&c->writer);
    return code;
}

static moesim_code prepare(copy *c, const moesim_copy_selection *selection, const char *source_digest, moesim_error *err)
{
    const moesim_copy_selection all = {0, UINT64_MAX, 0, UINT64_MAX, NULL};
    const moesim_copy_selection *s = selection != NULL ? selection : &all;
    c->info = *c->from;
    moesim_code code = MOESIM_OK;
    if (source_digest == NULL)
        code = moesim_trace_digest(c->in, err);
    if (code != MOESIM_OK)
        return code;
    memcpy(c->info.source_digest, source_digest != NULL ? source_digest : c->from->digest, MOESIM_DIGEST_CHARS);
    code = choose_requests(c, s, err);
    if (code == MOESIM_OK)
        code = choose_layers(c, s, err);
    return code == MOESIM_OK ? make_buffers(c, err) : code;
}

static void release(copy *c)
{
    moesim_cursor_close(&c->cursor);
    free(c->number);
    free(c->expert);
    free(c->gate);
    free(c->prob);
    free(c->residency);
}

moesim_code moesim_trace_append(moesim_trace *in, moesim_writer *writer, uint32_t first_request, uint64_t forward_shift,
                                moesim_copy_result *result, moesim_error *err)
{
    copy c = {.in = in, .from = moesim_trace_get_info(in), .writer = writer, .forward_shift = forward_shift, .result = *result};
    void *memory = NULL;
    c.info = *c.from;
    moesim_code code = moesim_alloc(c.from->num_requests, sizeof *c.number, "request numbers", &memory, err);
    c.number = memory;
    for (uint32_t q = 0; code == MOESIM_OK && q < c.from->num_requests; q++)
        c.number[q] = first_request + q;
    if (code == MOESIM_OK)
        code = make_buffers(&c, err);
    if (code == MOESIM_OK)
        code = open_cursor(&c, err);
    if (code == MOESIM_OK)
        code = copy_passes(&c, err);
    release(&c);
    if (code == MOESIM_OK)
        *result = c.result;
    return code;
}

moesim_code moesim_trace_copy(moesim_trace *in, const char *path, const moesim_copy_selection *selection,
                              const char *source_digest, const moesim_writer_options *options, moesim_copy_result *result,
                              moesim_error *err)
{
    copy c = {.in = in, .from = moesim_trace_get_info(in)};
    moesim_code code = moesim_refuse_same_file(c.from->path, path, err);
    if (code == MOESIM_OK)
        code = prepare(&c, selection, source_digest, err);
    if (code == MOESIM_OK)
        code = write_copy(&c, path, options, err);
    release(&c);
    if (code == MOESIM_OK && result != NULL)
        *result = c.result;
    return code;
}
