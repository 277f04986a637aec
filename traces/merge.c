/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges traces: a look at every part, then all requests, then all passes.
 */
#include "traces/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/paths.h"
#include "traces/merge_header.h"
#include "traces/oldformat.h"

#define CURSOR_BYTES ((size_t)64 << 20)   /* for the states alone */
#define PIECE_ROWS 65536u

typedef struct merging {
    const moesim_merge_options *options;
    moesim_merge_part *part;
    size_t n;
    moesim_trace_info info;      /* of the output */
    int32_t *layer_ids;          /* [M], of the first part */
    uint64_t *expert_bytes;
    moesim_writer *writer;
    moesim_copy_result result;
} merging;

static moesim_code open_part(const merging *m, const char *path, moesim_trace **out, moesim_error *err)
{
    return m->options->old_format ? moesim_trace_open_old(path, out, err) : moesim_trace_open(path, NULL, out, err);
}

/* ---- a look at every part ------------------------------------------------------------------------------------------ */

static moesim_code keep_arrays(merging *m, const moesim_trace *trace, uint32_t layers, moesim_error *err)
{
    void *ids = NULL, *bytes = NULL;
    moesim_code code = moesim_alloc(layers, sizeof *m->layer_ids, "/model/moe_layer_id", &ids, err);
    m->layer_ids = ids;
    if (code == MOESIM_OK)
        code = moesim_alloc(layers, sizeof *m->expert_bytes, "/model/expert_bytes", &bytes, err);
    m->expert_bytes = bytes;
    if (code != MOESIM_OK)
        return code;
    memcpy(ids, moesim_trace_layer_ids(trace), layers * sizeof *m->layer_ids);
    memcpy(bytes, moesim_trace_expert_bytes(trace), layers * sizeof *m->expert_bytes);
    return MOESIM_OK;
}

static moesim_code check_arrays(const merging *m, const moesim_trace *trace, const moesim_merge_part *part, moesim_error *err)
{
    const int32_t *ids = moesim_trace_layer_ids(trace);
    const uint64_t *bytes = moesim_trace_expert_bytes(trace);
    for (uint32_t l = 0; l < part->info.num_layers; l++) {
        if (ids[l] != m->layer_ids[l])
            return moesim_merge_refuse(m->part, part, err, "/model/moe_layer_id[%u] is %d in the first and %d in the second",
                                       l, m->layer_ids[l], ids[l]);
        if (bytes[l] != m->expert_bytes[l])
            return moesim_merge_refuse(m->part, part, err, "/model/expert_bytes[%u] is %llu in the first and %llu in the "
                                       "second", l, (unsigned long long)m->expert_bytes[l], (unsigned long long)bytes[l]);
    }
    return MOESIM_OK;
}

static moesim_code find_forwards(moesim_trace *trace, moesim_merge_part *part, moesim_error *err)
{
    part->forward_min = UINT64_MAX;
    for (uint64_t p = 0; p < part->info.num_passes; p++) {
        moesim_pass pass;
        if (moesim_trace_pass(trace, p, &pass, err) != MOESIM_OK)
            return err->code;
        part->forward_min = pass.forward < part->forward_min ? pass.forward : part->forward_min;
        part->forward_max = pass.forward > part->forward_max ? pass.forward : part->forward_max;
    }
    return MOESIM_OK;
}

static moesim_code look_at(merging *m, size_t i, moesim_error *err)
{
    moesim_trace *trace = NULL;
    moesim_merge_part *part = &m->part[i];
    moesim_code code = open_part(m, part->path, &trace, err);
    if (code == MOESIM_OK)
        code = moesim_trace_digest(trace, err);
    if (code == MOESIM_OK) {
        part->info = *moesim_trace_get_info(trace);
        for (size_t k = 0; k < i && code == MOESIM_OK; k++)   /* with all: the first may leave out what others know */
            code = moesim_merge_check(&m->part[k], part, m->options->model != NULL, err);
    }
    if (code == MOESIM_OK)
        code = i == 0 ? keep_arrays(m, trace, part->info.num_layers, err) : check_arrays(m, trace, part, err);
    if (code == MOESIM_OK)
        code = find_forwards(trace, part, err);
    moesim_trace_close(&trace);
    return code;
}

/* Numbers of requests follow one another; those of forward calls are moved up only where they would meet earlier ones. */
static moesim_code number_parts(merging *m, moesim_error *err)
{
    uint64_t requests = 0, next = 0;
    for (size_t i = 0; i < m->n; i++) {
        moesim_merge_part *part = &m->part[i];
        part->first_request = (uint32_t)requests;
        requests += part->info.num_requests;
        if (requests > MOESIM_TRACE_MAX_REQUESTS)
            return moesim_fail(err, MOESIM_E_LIMIT, "%s: with it the merged trace has %llu requests, at most %u are read; "
                               "merge fewer traces", part->path, (unsigned long long)requests,
                               MOESIM_TRACE_MAX_REQUESTS);
        if (part->info.num_passes == 0)
            continue;
        part->forward_shift = part->forward_min < next ? next - part->forward_min : 0;
        if (part->forward_max >= UINT64_MAX - part->forward_shift)
            return moesim_fail(err, MOESIM_E_LIMIT, "%s: /pass/forward goes up to %llu; no numbers are left to tell its "
                               "forward calls from those of other parts", part->path, (unsigned long long)part->forward_max);
        next = part->forward_max + part->forward_shift + 1;
    }
    return MOESIM_OK;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

/* Committed rows of each request: what output_tokens are where they are not recorded. */
static moesim_code count_committed(moesim_trace *trace, uint32_t *count, moesim_error *err)
{
    moesim_cursor *cursor = NULL;
    moesim_code code = moesim_cursor_open(trace, MOESIM_COLUMN_STATE, CURSOR_BYTES, &cursor, err);
    for (uint64_t p = 0; code == MOESIM_OK && p < moesim_trace_get_info(trace)->num_passes; p++) {
        moesim_pass pass;
        code = moesim_trace_pass(trace, p, &pass, err);
        for (uint64_t at = pass.row_begin; code == MOESIM_OK && at < pass.row_end && pass.kind != MOESIM_PASS_DUMMY;) {
            const uint64_t end = pass.row_end - at < PIECE_ROWS ? pass.row_end : at + PIECE_ROWS;
            moesim_rows rows;
            code = moesim_cursor_rows(cursor, at, end, &rows, err);
            for (uint64_t r = 0; code == MOESIM_OK && r < end - at; r++)
                count[pass.request] += rows.state[r] == MOESIM_STATE_COMMITTED_NOW;
            at = end;
        }
    }
    moesim_cursor_close(&cursor);
    return code;
}

static moesim_code add_requests(merging *m, moesim_trace *trace, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    void *counts = NULL;
    moesim_code code = MOESIM_OK;
    if (m->info.has_output_tokens && !info->has_output_tokens) {
        code = moesim_alloc(info->num_requests, sizeof(uint32_t), "committed tokens", &counts, err);
        if (code == MOESIM_OK)
            code = count_committed(trace, counts, err);
    }
    for (uint32_t q = 0; q < info->num_requests && code == MOESIM_OK; q++) {
        moesim_trace_request request = *moesim_trace_get_request(trace, q);
        if (counts != NULL) {
            request.output_tokens = ((const uint32_t *)counts)[q];
            request.output_tokens_known = true;
        }
        code = moesim_writer_request(m->writer, &request, err);
    }
    m->result.requests += info->num_requests;
    free(counts);
    return code;
}

/* ---- the flow ------------------------------------------------------------------------------------------------------ */

/* Opens a part again: it must be what it was. */
static moesim_code visit(merging *m, size_t i, bool passes, moesim_error *err)
{
    const moesim_merge_part *part = &m->part[i];
    moesim_trace *trace = NULL;
    moesim_code code = open_part(m, part->path, &trace, err);
    if (code == MOESIM_OK) {
        const moesim_trace_info *info = moesim_trace_get_info(trace);
        if (info->num_passes != part->info.num_passes || info->num_rows != part->info.num_rows ||
            info->num_requests != part->info.num_requests || info->file_bytes != part->info.file_bytes)
            code = moesim_fail(err, MOESIM_E_IO, "%s changed while it was merged; merge again", part->path);
    }
    if (code == MOESIM_OK)
        code = passes ? moesim_trace_append(trace, m->writer, part->first_request, part->forward_shift, &m->result, err)
                      : add_requests(m, trace, err);
    moesim_trace_close(&trace);
    return code;
}

/* Digests of the parts, in order, a blank between. */
static moesim_code write_sources(merging *m, moesim_error *err)
{
    void *memory = NULL;
    moesim_code code = moesim_alloc(m->n, MOESIM_DIGEST_CHARS, "digests of the parts", &memory, err);
    char *text = memory;
    for (size_t i = 0; i < m->n && code == MOESIM_OK; i++) {
        memcpy(text + i * MOESIM_DIGEST_CHARS, m->part[i].info.digest, MOESIM_DIGEST_CHARS - 1);
        text[(i + 1) * MOESIM_DIGEST_CHARS - 1] = i + 1 < m->n ? ' ' : '\0';
    }
    if (code == MOESIM_OK)
        code = moesim_writer_source(m->writer, text, err);
    free(text);
    return code;
}

static moesim_code write_merged(merging *m, const char *out, moesim_error *err)
{
    moesim_merge_header(m->part, m->n, m->options, &m->info);
    if (m->n == 1)
        memcpy(m->info.source_digest, m->part[0].info.digest, MOESIM_DIGEST_CHARS);
    moesim_code code = moesim_writer_create(out, &m->info, m->layer_ids, m->expert_bytes, &m->options->writer, &m->writer,
                                            err);
    if (code == MOESIM_OK && m->n > 1)
        code = write_sources(m, err);
    for (size_t i = 0; i < m->n && code == MOESIM_OK; i++)
        code = visit(m, i, false, err);
    for (size_t i = 0; i < m->n && code == MOESIM_OK; i++)
        code = visit(m, i, true, err);
    if (code == MOESIM_OK)
        code = moesim_writer_finish(&m->writer, err);
    moesim_writer_discard(&m->writer);
    return code;
}

static moesim_code check_paths(const char *const *path, size_t n, const char *out, moesim_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (moesim_refuse_same_file(path[i], out, err) != MOESIM_OK)
            return err->code;
        for (size_t k = 0; k < i; k++)
            if (moesim_same_file(path[i], path[k]))
                return moesim_fail(err, MOESIM_E_USAGE, "%s is given twice", path[i]);
    }
    return MOESIM_OK;
}

moesim_code moesim_trace_merge(const char *const *path, size_t n, const char *out, const moesim_merge_options *options,
                               moesim_copy_result *result, moesim_error *err)
{
    moesim_error own = MOESIM_ERROR_INIT;
    merging m = {.options = options, .n = n};
    void *memory = NULL;
    err = err != NULL ? err : &own;
    moesim_code code = check_paths(path, n, out, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(n, sizeof *m.part, "headers of the parts", &memory, err);
    m.part = memory;
    for (size_t i = 0; i < n && code == MOESIM_OK; i++) {
        m.part[i].path = path[i];
        code = look_at(&m, i, err);
    }
    if (code == MOESIM_OK)
        code = number_parts(&m, err);
    if (code == MOESIM_OK)
        code = write_merged(&m, out, err);
    free(m.part);
    free(m.layer_ids);
    free(m.expert_bytes);
    if (code == MOESIM_OK && result != NULL) {
        m.result.layers = m.info.num_layers;
        *result = m.result;
    }
    return code;
}
