/* SPDX-License-Identifier: Apache-2.0
 *
 * From the generator to a file.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "traces/gen_run.h"

typedef struct output {
    moesim_writer *writer;
    moesim_progress progress;
    uint64_t requests;
} output;

static moesim_code put_request(void *cookie, const moesim_trace_request *request, moesim_error *err)
{
    output *o = cookie;
    moesim_progress_update(&o->progress, o->requests++);
    return moesim_writer_request(o->writer, request, err);
}

static moesim_code put_pass(void *cookie, const moesim_pass *pass, const moesim_rows *rows, moesim_error *err)
{
    output *o = cookie;
    return moesim_writer_pass(o->writer, pass, rows, 0, err);
}

static moesim_code put_rows(void *cookie, const moesim_rows *rows, moesim_error *err)
{
    output *o = cookie;
    return moesim_writer_rows(o->writer, rows, err);
}

/* Seed and targets in the texts that every command keeps: a synthetic trace says what it is wherever it goes. */
static void describe(const moesim_gen_config *c, moesim_trace_info *info)
{
    const struct { char *to; const char *text; } text[] = {
        { info->engine, "synthetic" }, { info->gate_kind, "synthetic, normalised over the selected experts" },
        { info->license, "CC0-1.0" },
        { info->confidence_kind, c->block > 1 ? "synthetic, of the best token at masked positions, of the held token elsewhere"
                                              : "synthetic, of the chosen token" },
        { info->decoder, c->block > 1 ? "threshold, at least one token a pass; separate commit pass" : "one token a pass" },
    };
    info->num_layers = c->layers;
    info->num_experts = c->experts;
    info->top_k = c->top_k;
    info->block_length = c->block;
    info->hidden_size = c->hidden_size;
    info->expert_intermediate_size = c->expert_intermediate_size;
    info->commit_threshold = c->block > 1 ? c->threshold : NAN;
    info->has_gate = info->has_confidence = info->has_confidence_values = true;
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        snprintf(text[i].to, sizeof(moesim_text), "%s", text[i].text);
    snprintf(info->model_id, sizeof info->model_id, "synthetic/%s", c->name);
    snprintf(info->engine_version, sizeof info->engine_version, "generator 1, seed %" PRIu64, c->seed);
    snprintf(info->dataset, sizeof info->dataset, "synthetic; seed %" PRIu64 "; targets: active %.2f, profile %.2f, overlap "
             "%.4f, far %.4f, boundary %.4f, persistence far %.4f, tokens per pass %.3f; P(stability 1) %.2f to %.2f", c->seed,
             c->active, c->profile, c->overlap, c->overlap_far, c->boundary, c->persistence_far, c->tokens_per_pass,
             c->stability.full[MOESIM_GEN_MASKED][0], c->stability.full[MOESIM_GEN_LONG][MOESIM_STATS_BINS - 1]);
}

/* Over that, what comes from a trace; nothing of it but shape and sizes is that trace's own. */
static void describe_like(const moesim_gen_config *c, moesim_trace_info *info)
{
    const moesim_gen_like *like = c->like;
    info->shared_experts = like->info.shared_experts;
    info->has_resident_bytes = like->info.has_resident_bytes;
    info->resident_bytes = like->info.resident_bytes;
    info->commit_threshold = like->info.commit_threshold;
    info->has_confidence = info->has_confidence_values = like->info.has_confidence_values;
    memcpy(info->weight_dtype, like->info.weight_dtype, sizeof info->weight_dtype);
    memcpy(info->source_digest, like->info.digest, sizeof like->info.digest);
    if (!info->has_confidence)
        snprintf(info->confidence_kind, sizeof info->confidence_kind, "none");
    snprintf(info->decoder, sizeof info->decoder, "commits as often as the trace that this one is like");
    snprintf(info->model_id, sizeof info->model_id, "synthetic/like %.200s", like->info.model_id);
    snprintf(info->dataset, sizeof info->dataset, "synthetic; seed %" PRIu64 "; like the trace with SHA-256 %s", c->seed,
             like->info.digest);
}

static moesim_code create(const moesim_gen_config *c, const char *path, const moesim_writer_options *options,
                          moesim_writer **out, moesim_error *err)
{
    void *info = NULL, *number = NULL, *bytes = NULL;
    moesim_code code = moesim_alloc(1, sizeof(moesim_trace_info), "the trace's header", &info, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(c->layers, sizeof(int32_t), "layer numbers", &number, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(c->layers, sizeof(uint64_t), "expert sizes", &bytes, err);
    for (uint32_t l = 0; l < c->layers && code == MOESIM_OK; l++) {
        ((int32_t *)number)[l] = c->like != NULL ? c->like->layer_id[l] : (int32_t)(c->first_layer + l);
        ((uint64_t *)bytes)[l] = c->like != NULL && c->expert_bytes == 0 ? c->like->expert_bytes[l] : c->expert_bytes;
    }
    if (code == MOESIM_OK) {
        describe(c, info);
        if (c->like != NULL)
            describe_like(c, info);
        code = moesim_writer_create(path, info, number, bytes, options, out, err);
    }
    free(info);
    free(number);
    free(bytes);
    return code;
}

moesim_code moesim_gen_write(const moesim_gen_config *config, const char *path, const moesim_writer_options *options,
                             moesim_error *err)
{
    output o = { 0 };
    const moesim_gen_sink sink = { put_request, put_pass, put_rows, &o };
    moesim_code code = create(config, path, options, &o.writer, err);
    if (code != MOESIM_OK)
        return code;
    moesim_progress_begin(&o.progress, "generating", config->requests, 1, "requests");
    code = moesim_gen_run(config, &sink, err);
    moesim_progress_end(&o.progress);
    if (code == MOESIM_OK)
        return moesim_writer_finish(&o.writer, err);
    moesim_writer_discard(&o.writer);
    return code;
}
