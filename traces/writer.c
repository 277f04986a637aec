/* SPDX-License-Identifier: Apache-2.0
 *
 * Writer of the trace format, version 1: header, columns, and one call per request and per pass.
 */
#include "traces/writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "traces/sink.h"

#define CHUNK_ROWS 256u        /* rows of one chunk of the wide columns (trace-format: about 256 rows × M × K) */
#define REQUEST_ROWS 4096u     /* up to this many requests the bytes do not depend on when a request is declared */

const char *const moesim_compressions[] = { "zstd", "gzip", NULL };   /* order of enum moesim_compression */

enum column {
    ROW_OFFSET, KIND, REQUEST, BLOCK, STEP, FORWARD,
    WORKLOAD, PROMPT, OUTPUT,
    POSITION, STATE, CONFIDENCE, TOKEN_ID,
    EXPERT, GATE, PROB,
    PASS_NS, RESIDENCY,
    COLUMNS
};

struct moesim_writer {
    moesim_sink_file file;
    moesim_trace_info info;
    moesim_sink column[COLUMNS];
    uint64_t rows, passes;
    uint32_t requests;
};

/* How a column is stored; `width` 'K' is [M][K], 'E' is [M][E]. */
typedef struct column_row {
    const char *name;
    enum moesim_h5_type type;
    char width;
    bool exists;
    uint64_t chunk_rows;
} column_row;

static void describe_columns(const moesim_trace_info *i, column_row table[COLUMNS])
{
    const enum moesim_h5_type gate = i->gate_is_f32 ? MOESIM_H5_F32 : MOESIM_H5_F16;
    const column_row rows[COLUMNS] = {
        [ROW_OFFSET] = {"/pass/row_offset", MOESIM_H5_U64, 0, true, MOESIM_SINK_ROWS},
        [KIND] = {"/pass/kind", MOESIM_H5_U8, 0, true, MOESIM_SINK_ROWS},
        [REQUEST] = {"/pass/request", MOESIM_H5_U32, 0, true, MOESIM_SINK_ROWS},
        [BLOCK] = {"/pass/block", MOESIM_H5_I32, 0, true, MOESIM_SINK_ROWS},
        [STEP] = {"/pass/step", MOESIM_H5_I32, 0, true, MOESIM_SINK_ROWS},
        [FORWARD] = {"/pass/forward", MOESIM_H5_U64, 0, i->has_forward, MOESIM_SINK_ROWS},
        [WORKLOAD] = {"/request/workload", MOESIM_H5_STRING, 0, true, REQUEST_ROWS},
        [PROMPT] = {"/request/prompt_tokens", MOESIM_H5_U32, 0, true, REQUEST_ROWS},
        [OUTPUT] = {"/request/output_tokens", MOESIM_H5_U32, 0, i->has_output_tokens, REQUEST_ROWS},
        [POSITION] = {"/token/position", MOESIM_H5_I32, 0, true, MOESIM_SINK_ROWS},
        [STATE] = {"/token/state", MOESIM_H5_U8, 0, true, MOESIM_SINK_ROWS},
        [CONFIDENCE] = {"/token/confidence", MOESIM_H5_F16, 0, i->has_confidence, MOESIM_SINK_ROWS},
        [TOKEN_ID] = {"/token/id", MOESIM_H5_I32, 0, i->has_token_id, MOESIM_SINK_ROWS},
        [EXPERT] = {"/routing/expert", MOESIM_H5_U16, 'K', true, CHUNK_ROWS},
        [GATE] = {"/routing/gate", gate, 'K', i->has_gate, CHUNK_ROWS},
        [PROB] = {"/routing/router_prob", MOESIM_H5_F16, 'E', i->has_prob, CHUNK_ROWS},
        [PASS_NS] = {"/observed/pass_ns", MOESIM_H5_U64, 0, i->has_pass_ns, MOESIM_SINK_ROWS},
        [RESIDENCY] = {"/observed/residency", MOESIM_H5_U8, 'K', i->has_residency, CHUNK_ROWS},
    };
    memcpy(table, rows, sizeof rows);
}

static moesim_code open_columns(moesim_writer *w, moesim_error *err)
{
    column_row table[COLUMNS];
    describe_columns(&w->info, table);
    moesim_code code = MOESIM_OK;
    for (int c = 0; c < COLUMNS && code == MOESIM_OK; c++) {
        if (!table[c].exists)
            continue;
        const uint64_t width[2] = {w->info.num_layers, table[c].width == 'E' ? w->info.num_experts : w->info.top_k};
        code = moesim_sink_open(&w->file, table[c].name, table[c].type, table[c].width != 0 ? width : NULL,
                                table[c].chunk_rows, &w->column[c], err);
    }
    return code;
}

static moesim_code write_sizes(moesim_writer *w, moesim_error *err)
{
    const moesim_trace_info *i = &w->info;
    const struct { const char *name; uint64_t value; bool exists; } number[] = {
        {"format_version", 1, true},
        {"num_moe_layers", i->num_layers, true},
        {"num_experts", i->num_experts, true},
        {"top_k", i->top_k, true},
        {"block_length", i->block_length, true},
        {"hidden_size", i->hidden_size, i->hidden_size != 0},
        {"expert_intermediate_size", i->expert_intermediate_size, i->expert_intermediate_size != 0},
        {"shared_experts", i->shared_experts, i->shared_experts != 0},
    };
    moesim_code code = MOESIM_OK;
    for (size_t n = 0; n < sizeof number / sizeof number[0] && code == MOESIM_OK; n++)
        if (number[n].exists)
            code = number[n].value <= UINT32_MAX
                       ? moesim_sink_u32(&w->file, number[n].name, (uint32_t)number[n].value, err)
                       : moesim_sink_u64(&w->file, number[n].name, number[n].value, err);
    if (code == MOESIM_OK && !isnan(i->commit_threshold))
        code = moesim_sink_real(&w->file, "commit_threshold", i->commit_threshold, err);
    return code;
}

static moesim_code write_header(moesim_writer *w, moesim_error *err)
{
    const moesim_trace_info *i = &w->info;
    const struct { const char *name, *text; bool required; } text[] = {
        {"format", "moe-routing-trace", true}, {"model_id", i->model_id, true}, {"gate_kind", i->gate_kind, true},
        {"confidence_kind", i->confidence_kind, true}, {"weight_dtype", i->weight_dtype, false},
        {"engine", i->engine, false}, {"engine_version", i->engine_version, false}, {"decoder", i->decoder, false},
        {"dataset", i->dataset, false}, {"license", i->license, false}, {"created", i->created, false},
        {"source_digest", i->source_digest, false},
    };
    moesim_code code = write_sizes(w, err);
    for (size_t n = 0; n < sizeof text / sizeof text[0] && code == MOESIM_OK; n++)
        if (text[n].required || text[n].text[0] != '\0')
            code = moesim_sink_text(&w->file, text[n].name, text[n].text, err);
    return code;
}

static moesim_code write_groups(moesim_writer *w, const int32_t *layer_ids, const uint64_t *expert_bytes,
                                moesim_error *err)
{
    const moesim_trace_info *i = &w->info;
    const char *group[] = {"/model", "/pass", "/request", "/token", "/routing",
                           i->has_pass_ns || i->has_residency ? "/observed" : NULL};
    moesim_code code = MOESIM_OK;
    for (size_t n = 0; n < sizeof group / sizeof group[0] && code == MOESIM_OK; n++)
        if (group[n] != NULL)
            code = moesim_sink_group(&w->file, group[n], err);
    if (code == MOESIM_OK)
        code = moesim_sink_array(&w->file, "/model/moe_layer_id", MOESIM_H5_I32, i->num_layers, layer_ids, err);
    if (code == MOESIM_OK)
        code = moesim_sink_array(&w->file, "/model/expert_bytes", MOESIM_H5_U64, i->num_layers, expert_bytes, err);
    if (code == MOESIM_OK && i->has_resident_bytes)
        code = moesim_sink_array(&w->file, "/model/resident_bytes", MOESIM_H5_U64, 1, &i->resident_bytes, err);
    return code;
}

static moesim_code check_info(const char *path, const moesim_trace_info *i, moesim_error *err)
{
    const struct { const char *name; uint32_t value, max; } number[] = {
        {"num_moe_layers", i->num_layers, 1024}, {"num_experts", i->num_experts, 1024},
        {"top_k", i->top_k, i->num_experts < 64 ? i->num_experts : 64}, {"block_length", i->block_length, 4096},
    };
    for (size_t n = 0; n < sizeof number / sizeof number[0]; n++)
        if (number[n].value < 1 || number[n].value > number[n].max)
            return moesim_fail(err, MOESIM_E_FORMAT, "cannot write %s: %s = %u is outside 1..%u", path, number[n].name,
                               number[n].value, number[n].max);
    return MOESIM_OK;
}

moesim_code moesim_writer_create(const char *path, const moesim_trace_info *info, const int32_t *layer_ids,
                                 const uint64_t *expert_bytes, const moesim_writer_options *options, moesim_writer **out,
                                 moesim_error *err)
{
    *out = NULL;
    moesim_code code = check_info(path, info, err);
    void *memory = NULL;
    if (code == MOESIM_OK)
        code = moesim_alloc(1, sizeof(moesim_writer), "trace writer", &memory, err);
    if (code != MOESIM_OK)
        return code;
    moesim_writer *w = memory;
    w->info = *info;
    code = moesim_sink_file_create(path, options, &w->file, err);
    if (code == MOESIM_OK)
        code = write_header(w, err);
    if (code == MOESIM_OK)
        code = write_groups(w, layer_ids, expert_bytes, err);
    if (code == MOESIM_OK)
        code = open_columns(w, err);
    if (code != MOESIM_OK) {
        moesim_writer_discard(&w);
        return code;
    }
    *out = w;
    return MOESIM_OK;
}

moesim_code moesim_writer_source(moesim_writer *w, const char *source_digest, moesim_error *err)
{
    return moesim_sink_text(&w->file, "source_digest", source_digest, err);
}

moesim_code moesim_writer_request(moesim_writer *w, const moesim_trace_request *request, moesim_error *err)
{
    char workload[sizeof request->workload] = "";
    memcpy(workload, request->workload, strnlen(request->workload, sizeof workload - 1));   /* zeros behind, always */
    if (w->info.has_output_tokens && !request->output_tokens_known)
        return moesim_fail(err, MOESIM_E_INTERNAL, "cannot write %s: request %u has no output_tokens although the header "
                           "announces them", w->file.path, w->requests);
    moesim_code code = moesim_sink_append(&w->column[WORKLOAD], 1, workload, err);
    if (code == MOESIM_OK)
        code = moesim_sink_append(&w->column[PROMPT], 1, &request->prompt_tokens, err);
    if (code == MOESIM_OK)
        code = moesim_sink_append(&w->column[OUTPUT], 1, &request->output_tokens, err);
    w->requests += code == MOESIM_OK;
    return code;
}

static moesim_code check_rows(const moesim_writer *w, const moesim_rows *rows, moesim_error *err)
{
    const struct { const char *name; const void *data; bool exists; } column[] = {
        {"/routing/expert", rows->expert, true},
        {"/token/position", rows->position, true},
        {"/token/state", rows->state, true},
        {"/routing/gate", rows->gate, w->info.has_gate},
        {"/token/confidence", rows->confidence, w->info.has_confidence},
        {"/routing/router_prob", rows->prob, w->info.has_prob},
        {"/token/id", rows->token_id, w->info.has_token_id},
        {"/observed/residency", rows->residency, w->info.has_residency},
    };
    if (rows->end < rows->begin)
        return moesim_fail(err, MOESIM_E_INTERNAL, "cannot write %s: rows end before they begin", w->file.path);
    for (size_t c = 0; c < sizeof column / sizeof column[0] && rows->end > rows->begin; c++)
        if (column[c].exists && column[c].data == NULL)
            return moesim_fail(err, MOESIM_E_INTERNAL, "cannot write %s: pass %llu lacks %s, which the header announces",
                               w->file.path, (unsigned long long)w->passes, column[c].name);
    return MOESIM_OK;
}

moesim_code moesim_writer_rows(moesim_writer *w, const moesim_rows *rows, moesim_error *err)
{
    moesim_code code = check_rows(w, rows, err);
    if (code != MOESIM_OK)
        return code;
    const uint64_t n = rows->end - rows->begin;
    const bool wide = w->info.gate_is_f32;
    const struct { enum column column; const void *data; const float *halves; } part[] = {
        {POSITION, rows->position, NULL}, {STATE, rows->state, NULL}, {CONFIDENCE, NULL, rows->confidence},
        {TOKEN_ID, rows->token_id, NULL}, {EXPERT, rows->expert, NULL},
        {GATE, wide ? rows->gate : NULL, wide ? NULL : rows->gate}, {PROB, NULL, rows->prob},
        {RESIDENCY, rows->residency, NULL},
    };
    for (size_t p = 0; p < sizeof part / sizeof part[0] && code == MOESIM_OK; p++) {
        moesim_sink *s = &w->column[part[p].column];
        code = part[p].halves != NULL ? moesim_sink_append_half(s, n, part[p].halves, err)
                                      : moesim_sink_append(s, n, part[p].data, err);
    }
    w->rows += n;
    return code;
}

moesim_code moesim_writer_pass(moesim_writer *w, const moesim_pass *pass, const moesim_rows *rows, uint64_t pass_ns,
                               moesim_error *err)
{
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted while writing %s; nothing was kept", w->file.path);
    if (pass->kind > MOESIM_PASS_DUMMY || pass->request >= w->requests)
        return moesim_fail(err, MOESIM_E_INTERNAL, "cannot write %s: pass %llu has kind %u (at most 3) and request %u (of %u "
                           "declared)", w->file.path, (unsigned long long)w->passes, (unsigned)pass->kind, pass->request,
                           w->requests);
    const struct { enum column column; const void *data; } part[] = {
        {ROW_OFFSET, &w->rows}, {KIND, &pass->kind}, {REQUEST, &pass->request}, {BLOCK, &pass->block},
        {STEP, &pass->step}, {FORWARD, &pass->forward}, {PASS_NS, &pass_ns},
    };
    moesim_code code = MOESIM_OK;
    for (size_t p = 0; p < sizeof part / sizeof part[0] && code == MOESIM_OK; p++)
        code = moesim_sink_append(&w->column[part[p].column], 1, part[p].data, err);
    if (code == MOESIM_OK)
        code = moesim_writer_rows(w, rows, err);
    w->passes += code == MOESIM_OK;
    return code;
}

static void release(moesim_writer **w)
{
    for (int c = 0; c < COLUMNS; c++)
        moesim_sink_close(&(*w)->column[c]);
    moesim_sink_file_discard(&(*w)->file);
    free(*w);
    *w = NULL;
}

moesim_code moesim_writer_finish(moesim_writer **writer, moesim_error *err)
{
    moesim_writer *w = *writer;
    moesim_code code = moesim_sink_append(&w->column[ROW_OFFSET], 1, &w->rows, err);
    for (int c = 0; c < COLUMNS && code == MOESIM_OK; c++)
        code = moesim_sink_flush(&w->column[c], err);
    for (int c = 0; c < COLUMNS; c++)
        moesim_sink_close(&w->column[c]);
    if (code == MOESIM_OK)
        code = moesim_sink_file_finish(&w->file, err);
    release(writer);
    return code;
}

void moesim_writer_discard(moesim_writer **writer)
{
    if (*writer != NULL)
        release(writer);
}
