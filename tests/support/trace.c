/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces built in memory and written through traces/writer.h.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

void test_die_at(const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static void *grow(void *old, size_t n, size_t size)
{
    void *p = realloc(old, n * size + 1);
    if (p == NULL)
        test_die("no memory for %zu × %zu bytes", n, size);
    return p;
}

void test_trace_init(struct test_trace *t, uint32_t layers, uint32_t experts, uint32_t top_k, uint32_t block_length)
{
    memset(t, 0, sizeof *t);
    snprintf(t->info.model_id, sizeof t->info.model_id, "test/%ux%uk%u", layers, experts, top_k);
    snprintf(t->info.gate_kind, sizeof t->info.gate_kind, "test scores");
    snprintf(t->info.confidence_kind, sizeof t->info.confidence_kind, "test confidence");
    t->info.num_layers = layers;
    t->info.num_experts = experts;
    t->info.top_k = top_k;
    t->info.block_length = block_length;
    t->info.commit_threshold = 0.875;
    t->info.has_gate = true;
    t->info.has_confidence = true;
    t->info.has_confidence_values = true;
    t->layer_ids = grow(NULL, layers, sizeof *t->layer_ids);
    t->expert_bytes = grow(NULL, layers, sizeof *t->expert_bytes);
    for (uint32_t l = 0; l < layers; l++) {
        t->layer_ids[l] = (int32_t)l;
        t->expert_bytes[l] = 1000;
    }
}

void test_trace_fini(struct test_trace *t)
{
    void *owned[] = {t->layer_ids, t->expert_bytes, t->request, t->pass, t->expert, t->gate, t->confidence, t->state,
                     t->position, t->prob, t->token_id, t->residency};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
    memset(t, 0, sizeof *t);
}

uint32_t test_trace_add_request(struct test_trace *t, const char *workload, uint32_t prompt_tokens, int64_t output_tokens)
{
    if (t->num_requests == t->cap_requests) {
        t->cap_requests = t->cap_requests * 2 + 4;
        t->request = grow(t->request, t->cap_requests, sizeof *t->request);
    }
    moesim_trace_request *r = &t->request[t->num_requests];
    memset(r, 0, sizeof *r);
    snprintf(r->workload, sizeof r->workload, "%s", workload);
    r->prompt_tokens = prompt_tokens;
    r->output_tokens = output_tokens < 0 ? 0 : (uint32_t)output_tokens;
    r->output_tokens_known = output_tokens >= 0;
    t->info.has_output_tokens = output_tokens >= 0;
    return (uint32_t)t->num_requests++;
}

static void reserve_rows(struct test_trace *t, size_t rows)
{
    size_t mk = (size_t)t->info.num_layers * t->info.top_k;
    size_t me = t->info.has_prob ? (size_t)t->info.num_layers * t->info.num_experts : 0;
    if (t->num_rows + rows <= t->cap_rows)
        return;
    size_t n = t->cap_rows = (t->num_rows + rows) * 2 + 16;
    t->expert = grow(t->expert, n * mk, sizeof *t->expert);
    t->gate = grow(t->gate, n * mk, sizeof *t->gate);
    t->residency = grow(t->residency, n * mk, sizeof *t->residency);
    t->prob = grow(t->prob, n * me, sizeof *t->prob);
    t->confidence = grow(t->confidence, n, sizeof *t->confidence);
    t->state = grow(t->state, n, sizeof *t->state);
    t->position = grow(t->position, n, sizeof *t->position);
    t->token_id = grow(t->token_id, n, sizeof *t->token_id);
}

static void default_row(struct test_trace *t, size_t row, int32_t position)
{
    size_t mk = (size_t)t->info.num_layers * t->info.top_k;
    size_t me = t->info.has_prob ? (size_t)t->info.num_layers * t->info.num_experts : 0;
    for (size_t i = row * mk; i < (row + 1) * mk; i++) {
        t->expert[i] = MOESIM_NO_ROUTE;
        t->gate[i] = (float)(1 + 1024 / t->info.top_k) / 2048.0f;
        t->residency[i] = 0;
    }
    for (size_t i = row * me; i < (row + 1) * me; i++)
        t->prob[i] = 1.0f / 1024.0f;
    t->confidence[row] = NAN;
    t->state[row] = MOESIM_STATE_COMMITTED;
    t->position[row] = position;
    t->token_id[row] = position;
}

size_t test_trace_add_pass(struct test_trace *t, uint32_t request, uint8_t kind, int32_t block, int32_t step, size_t rows,
                           int32_t position)
{
    if (t->num_passes == t->cap_passes) {
        t->cap_passes = t->cap_passes * 2 + 16;
        t->pass = grow(t->pass, t->cap_passes, sizeof *t->pass);
    }
    reserve_rows(t, rows);
    struct test_pass *p = &t->pass[t->num_passes];
    memset(p, 0, sizeof *p);
    p->pass.row_begin = t->num_rows;
    p->pass.row_end = t->num_rows + rows;
    p->pass.forward = t->num_passes;
    p->pass.request = request;
    p->pass.kind = kind;
    p->pass.block = block;
    p->pass.step = step;
    for (size_t i = 0; i < rows; i++)
        default_row(t, t->num_rows + i, position + (int32_t)i);
    t->num_rows += rows;
    return t->num_passes++;
}

size_t test_trace_row(const struct test_trace *t, size_t pass)
{
    return t->pass[pass].pass.row_begin;
}

uint16_t *test_trace_ids(struct test_trace *t, size_t row, uint32_t layer)
{
    return t->expert + (row * t->info.num_layers + layer) * t->info.top_k;
}

float *test_trace_gates(struct test_trace *t, size_t row, uint32_t layer)
{
    return t->gate + (row * t->info.num_layers + layer) * t->info.top_k;
}

void test_trace_route(struct test_trace *t, size_t row, uint32_t layer, size_t n, const uint16_t *ids)
{
    if (n > t->info.top_k)
        test_die("%zu routes in a row of %u", n, t->info.top_k);
    uint16_t *slot = test_trace_ids(t, row, layer);
    for (size_t k = 0; k < t->info.top_k; k++)
        slot[k] = k < n ? ids[k] : (uint16_t)MOESIM_NO_ROUTE;
}

size_t test_trace_add_set(struct test_trace *t, int32_t step, size_t n, const uint16_t *ids)
{
    size_t k = t->info.top_k, rows = (n + k - 1) / k;
    size_t pass = test_trace_add_pass(t, 0, MOESIM_PASS_DENOISE, 0, step, rows, 0);
    for (size_t r = 0; r < rows; r++) {
        size_t row = test_trace_row(t, pass) + r, left = n - r * k;
        for (uint32_t l = 0; l < t->info.num_layers; l++)
            test_trace_route(t, row, l, left < k ? left : k, ids + r * k);
        t->state[row] = MOESIM_STATE_MASKED;
    }
    return pass;
}

static moesim_code write_passes(const struct test_trace *t, moesim_writer *w, moesim_error *err)
{
    size_t mk = (size_t)t->info.num_layers * t->info.top_k, me = (size_t)t->info.num_layers * t->info.num_experts;
    moesim_code code = MOESIM_OK;
    for (size_t q = 0; q < t->num_requests && code == MOESIM_OK; q++)
        code = moesim_writer_request(w, &t->request[q], err);
    for (size_t p = 0; p < t->num_passes && code == MOESIM_OK; p++) {
        const moesim_pass *pass = &t->pass[p].pass;
        size_t r = pass->row_begin;
        moesim_rows rows = {.begin = r, .end = pass->row_end};
        rows.expert = t->expert + r * mk;
        rows.gate = t->info.has_gate ? t->gate + r * mk : NULL;
        rows.confidence = t->info.has_confidence ? t->confidence + r : NULL;
        rows.state = t->state + r;
        rows.position = t->position + r;
        rows.prob = t->info.has_prob ? t->prob + r * me : NULL;
        rows.token_id = t->info.has_token_id ? t->token_id + r : NULL;
        rows.residency = t->info.has_residency ? t->residency + r * mk : NULL;
        code = moesim_writer_pass(w, pass, &rows, t->pass[p].pass_ns, err);
    }
    return code;
}

moesim_code test_trace_try_write(const struct test_trace *t, const char *path, moesim_error *err)
{
    moesim_writer *w = NULL;
    moesim_code code = moesim_writer_create(path, &t->info, t->layer_ids, t->expert_bytes, NULL, &w, err);
    if (code != MOESIM_OK)
        return code;
    code = write_passes(t, w, err);
    if (code != MOESIM_OK) {
        moesim_writer_discard(&w);
        return code;
    }
    return moesim_writer_finish(&w, err);
}

void test_trace_write(const struct test_trace *t, const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    if (test_trace_try_write(t, path, &err) != MOESIM_OK)
        test_die("%s", err.text);
}
