/* SPDX-License-Identifier: Apache-2.0
 *
 * Import of `route_trace v1`: collects the cells of one turn, checks that none is missing, writes its passes.
 */
#include "traces/import_route_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "moesim/policy.h"
#include "traces/copy.h"
#include "traces/route_trace.h"

#define TURN_BYTES ((uint64_t)256 << 20)   /* most memory for the cells of one turn */
#define FIRST_TOKENS 64u

enum phase { PREFILL, DECODE, PHASES };

/* Cells of one phase of a turn: arrays [capacity][M][K]; token i is at position base + i. */
typedef struct cells {
    uint32_t base, count, capacity;
    uint16_t *expert;
    float *weight;
    uint8_t *residency;
    int32_t *position;           /* [capacity] */
    uint8_t *state;
    float *confidence;
} cells;

typedef struct import {
    moesim_route_reader reader;
    moesim_writer *writer;
    moesim_trace_info info;
    int32_t layer_id[MOESIM_ROUTE_LAYERS];         /* MoE layer → layer of the model */
    uint32_t moe_layer[MOESIM_ROUTE_LAYERS];       /* and back */
    uint64_t expert_bytes[MOESIM_ROUTE_LAYERS];
    cells phase[PHASES];
    bool in_turn;
    uint64_t turn;
    uint32_t current_phase;
    const char *workload;
    moesim_import_result result;
} import;

/* realloc that leaves the old piece in place and sets *failed where there is no memory. */
static void *larger(void *old, size_t n, size_t each, bool *failed)
{
    void *piece = realloc(old, n * each);
    *failed = *failed || piece == NULL;
    return piece != NULL ? piece : old;
}

static moesim_code enlarge(import *im, cells *c, size_t row, moesim_error *err)
{
    const size_t token_bytes = row * (sizeof *c->expert + sizeof *c->weight + sizeof *c->residency) + 9;
    const size_t n = c->capacity == 0 ? FIRST_TOKENS : 2 * (size_t)c->capacity;
    if (n > TURN_BYTES / token_bytes / PHASES)
        return moesim_fail(err, MOESIM_E_LIMIT, "%s: line %llu: turn %llu has more tokens than fit in %llu MiB; split the turn",
                           im->reader.path, (unsigned long long)im->reader.line, (unsigned long long)im->turn,
                           (unsigned long long)(TURN_BYTES >> 20));
    bool failed = false;
    c->expert = larger(c->expert, n * row, sizeof *c->expert, &failed);
    c->weight = larger(c->weight, n * row, sizeof *c->weight, &failed);
    c->residency = larger(c->residency, n * row, sizeof *c->residency, &failed);
    c->position = larger(c->position, n, sizeof *c->position, &failed);
    c->state = larger(c->state, n, sizeof *c->state, &failed);
    c->confidence = larger(c->confidence, n, sizeof *c->confidence, &failed);
    if (failed)
        return moesim_fail_nomem(err, "the cells of a turn", n * token_bytes);
    c->capacity = (uint32_t)n;
    return MOESIM_OK;
}

/* One more token, its cells without a route. */
static moesim_code add_token(import *im, cells *c, moesim_error *err)
{
    const size_t row = (size_t)im->info.num_layers * im->info.top_k;
    const moesim_code code = c->count == c->capacity ? enlarge(im, c, row, err) : MOESIM_OK;
    if (code != MOESIM_OK)
        return code;
    const size_t t = c->count++;
    memset(c->expert + t * row, 0xff, row * sizeof *c->expert);   /* MOESIM_NO_ROUTE */
    memset(c->weight + t * row, 0, row * sizeof *c->weight);
    memset(c->residency + t * row, 0, row);
    c->position[t] = (int32_t)(c->base + t);
    c->state[t] = c == &im->phase[PREFILL] ? MOESIM_STATE_COMMITTED : MOESIM_STATE_COMMITTED_NOW;
    c->confidence[t] = NAN;
    return MOESIM_OK;
}

static uint32_t count_missing(const uint16_t *cell, uint32_t k, uint32_t *first)
{
    uint32_t missing = 0;
    for (uint32_t s = k; s-- > 0;)
        if (cell[s] == MOESIM_NO_ROUTE) {
            missing++;
            *first = s;
        }
    return missing;
}

/* Every cell of a token is there, or none at all in the last layer of the prefill. */
static moesim_code check_cells(import *im, enum phase phase, moesim_error *err)
{
    const cells *c = &im->phase[phase];
    const uint32_t layers = im->info.num_layers, k = im->info.top_k;
    for (size_t t = 0; t < c->count; t++)
        for (uint32_t l = 0; l < layers; l++) {
            uint32_t first = k;
            const uint32_t missing = count_missing(c->expert + (t * layers + l) * k, k, &first);
            if (missing != 0 && !(missing == k && phase == PREFILL && l == layers - 1))
                return moesim_route_fail(&im->reader, err, "turn %llu ends here, but its phase %d, step %u, layer %d has no "
                                         "slot %u", (unsigned long long)im->turn, (int)phase, c->base + (uint32_t)t,
                                         im->layer_id[l], first);
            im->result.dropped += missing;
        }
    return MOESIM_OK;
}

static moesim_code write_pass(import *im, const moesim_pass *pass, size_t first, size_t n, moesim_error *err)
{
    const cells *c = &im->phase[pass->kind == MOESIM_PASS_PREFILL ? PREFILL : DECODE];
    const size_t row = (size_t)im->info.num_layers * im->info.top_k;
    const moesim_rows rows = {
        .end = n, .expert = c->expert + first * row, .gate = c->weight + first * row, .confidence = c->confidence + first,
        .state = c->state + first, .position = c->position + first, .residency = c->residency + first * row,
    };
    im->result.passes++;
    im->result.rows += n;
    return moesim_writer_pass(im->writer, pass, &rows, 0, err);
}

static moesim_code finish_turn(import *im, moesim_error *err)
{
    const uint32_t prompt = im->phase[PREFILL].count, decode = im->phase[DECODE].count;
    moesim_trace_request request = {.prompt_tokens = prompt};
    moesim_pass pass = {.request = im->result.requests, .kind = MOESIM_PASS_PREFILL, .block = -1};
    snprintf(request.workload, sizeof request.workload, "%s", im->workload);
    moesim_code code = check_cells(im, PREFILL, err);
    if (code == MOESIM_OK)
        code = check_cells(im, DECODE, err);
    if (code == MOESIM_OK)
        code = moesim_writer_request(im->writer, &request, err);
    if (code == MOESIM_OK && prompt > 0)
        code = write_pass(im, &pass, 0, prompt, err);
    pass.kind = MOESIM_PASS_DENOISE;
    for (uint32_t t = 0; t < decode && code == MOESIM_OK; t++) {
        pass.block = (int32_t)t;
        code = write_pass(im, &pass, t, 1, err);
    }
    im->phase[PREFILL].count = im->phase[DECODE].count = 0;
    im->result.requests++;
    im->in_turn = false;
    return code;
}

static moesim_code begin_turn(import *im, const moesim_route_line *line, moesim_error *err)
{
    if (im->in_turn && line->turn < im->turn)
        return moesim_route_fail(&im->reader, err, "turn %llu after turn %llu; turns must follow one another",
                                 (unsigned long long)line->turn, (unsigned long long)im->turn);
    const moesim_code code = im->in_turn ? finish_turn(im, err) : MOESIM_OK;
    im->in_turn = true;
    im->turn = line->turn;
    im->current_phase = PREFILL;
    return code;
}

/* The token of the line among those of its phase; a new one follows the last. */
static moesim_code find_token(import *im, const moesim_route_line *line, size_t *token, moesim_error *err)
{
    cells *c = &im->phase[line->phase];
    const cells *prompt = &im->phase[PREFILL];
    if (line->phase < im->current_phase)
        return moesim_route_fail(&im->reader, err, "a line of the prefill after the decode phase of turn %llu has begun",
                                 (unsigned long long)im->turn);
    im->current_phase = line->phase;
    if (c->count == 0) {
        c->base = line->step;
        if (line->phase == DECODE && prompt->count > 0 && line->step < prompt->base + prompt->count)
            return moesim_route_fail(&im->reader, err, "decode step %u lies within the prefill, which ends at %u", line->step,
                                     prompt->base + prompt->count - 1);
    }
    if (line->step < c->base || line->step - c->base > c->count)
        return moesim_route_fail(&im->reader, err, "step %u, but the steps of a phase must follow one another (next: %u)",
                                 line->step, c->base + c->count);
    *token = line->step - c->base;
    return *token == c->count ? add_token(im, c, err) : MOESIM_OK;
}

static moesim_code take_line(import *im, const moesim_route_line *line, moesim_error *err)
{
    moesim_code code = !im->in_turn || line->turn != im->turn ? begin_turn(im, line, err) : MOESIM_OK;
    size_t token = 0;
    if (code == MOESIM_OK)
        code = find_token(im, line, &token, err);
    if (code != MOESIM_OK)
        return code;
    const cells *c = &im->phase[line->phase];
    const uint32_t k = im->info.top_k;
    const size_t cell = (token * im->info.num_layers + im->moe_layer[line->layer]) * k;
    if (c->expert[cell + line->slot] != MOESIM_NO_ROUTE)
        return moesim_route_fail(&im->reader, err, "turn %llu, phase %u, step %u, layer %u, slot %u occurs twice",
                                 (unsigned long long)line->turn, line->phase, line->step, line->layer, line->slot);
    for (uint32_t s = 0; s < k; s++)
        if (c->expert[cell + s] == line->expert)
            return moesim_route_fail(&im->reader, err, "expert %u is in slot %u of the same token and layer already",
                                     line->expert, s);
    c->expert[cell + line->slot] = (uint16_t)line->expert;
    c->weight[cell + line->slot] = line->weight;
    c->residency[cell + line->slot] = (uint8_t)line->residency;
    im->result.lines++;
    return MOESIM_OK;
}

static moesim_code read_lines(import *im, moesim_error *err)
{
    moesim_progress progress = {0};
    moesim_progress_begin(&progress, "importing", 0, 1, "lines");
    bool end = false;
    moesim_code code = MOESIM_OK;
    while (code == MOESIM_OK) {
        moesim_route_line line;
        code = moesim_route_next(&im->reader, &line, &end, err);
        if (code != MOESIM_OK || end)
            break;
        code = take_line(im, &line, err);
        if (im->result.lines % 4096 == 0) {
            moesim_progress_update(&progress, im->result.lines);
            if (code == MOESIM_OK && moesim_interrupted())
                code = moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted while reading %s", im->reader.path);
        }
    }
    moesim_progress_end(&progress);
    if (code == MOESIM_OK && !im->in_turn)
        code = moesim_route_fail(&im->reader, err, "the file ends without a data line");
    return code == MOESIM_OK ? finish_turn(im, err) : code;
}

static moesim_code describe(import *im, const char *model, moesim_error *err)
{
    const moesim_route_header *h = &im->reader.header;
    moesim_trace_info *info = &im->info;
    const char *slash = strrchr(h->model, '/');
    *info = (moesim_trace_info){
        .confidence_kind = "none", .gate_kind = "unknown score function (final weights of route_trace v1)",
        .engine = "route_trace v1", .decoder = "autoregressive", .num_experts = h->num_experts, .top_k = h->top_k,
        .block_length = 1, .commit_threshold = NAN, .has_gate = true, .gate_is_f32 = true, .has_confidence = true,
        .has_residency = true, .has_resident_bytes = true,
    };
    snprintf(info->model_id, sizeof info->model_id, "%s", model != NULL ? model : slash != NULL ? slash + 1 : h->model);
    for (uint32_t l = 0; l < h->num_layers; l++) {
        info->resident_bytes += h->dense_bytes[l];
        if (h->expert_bytes[l] == 0)
            continue;
        im->moe_layer[l] = info->num_layers;
        im->expert_bytes[info->num_layers] = h->expert_bytes[l];
        im->layer_id[info->num_layers++] = (int32_t)l;
    }
    if (info->num_layers == 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: no layer has experts (all expert_bytes are 0)", im->reader.path);
    char digest[MOESIM_DIGEST_CHARS];
    const moesim_code code = moesim_digest_file(im->reader.path, digest, err);
    if (code == MOESIM_OK)
        memcpy(info->source_digest, digest, sizeof digest);
    return code;
}

static void free_cells(cells *c)
{
    free(c->expert);
    free(c->weight);
    free(c->residency);
    free(c->position);
    free(c->state);
    free(c->confidence);
}

moesim_code moesim_import_route_trace(const char *in, const char *out, const char *model, const char *workload,
                                      const moesim_writer_options *options, moesim_import_result *result,
                                      moesim_error *err)
{
    void *memory = NULL;
    moesim_code code = moesim_refuse_same_file(in, out, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(1, sizeof(import), "import", &memory, err);
    if (code != MOESIM_OK)
        return code;
    import *im = memory;
    im->workload = workload != NULL ? workload : "unknown";
    code = moesim_route_open(&im->reader, in, err);
    if (code == MOESIM_OK)
        code = describe(im, model, err);
    if (code == MOESIM_OK)
        code = moesim_writer_create(out, &im->info, im->layer_id, im->expert_bytes, options, &im->writer, err);
    if (code == MOESIM_OK)
        code = read_lines(im, err);
    if (code == MOESIM_OK)
        code = moesim_writer_finish(&im->writer, err);
    if (code == MOESIM_OK && result != NULL)
        *result = im->result;
    moesim_writer_discard(&im->writer);
    moesim_route_close(&im->reader);
    for (int p = 0; p < PHASES; p++)
        free_cells(&im->phase[p]);
    free(im);
    return code;
}
