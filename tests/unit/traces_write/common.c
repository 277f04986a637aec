/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the writing side share.
 */
#include "tests/unit/traces_write/common.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

size_t count_entries(void)
{
    size_t n = 0;
    DIR *dir = opendir(test_folder());
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2;
}

unsigned char *slurp(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot read %s", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*bytes + 1);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(fread(data, 1, *bytes, file), *bytes);
    data[*bytes] = 0;
    fclose(file);
    return data;
}

void spill(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "cannot write %s", path);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

bool same_bytes(const char *a, const char *b)
{
    size_t n, m;
    unsigned char *x = slurp(a, &n), *y = slurp(b, &m);
    const bool same = n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

void check_error(moesim_error *err, moesim_code code, const char *part)
{
    ck_assert_msg(err->code == code, "code %d instead of %d: %s", (int)err->code, (int)code, err->text);
    ck_assert_msg(strstr(err->text, part) != NULL, "\"%s\" lacks \"%s\"", err->text, part);
    *err = (moesim_error)MOESIM_ERROR_INIT;
}

void limit_file_size(uint64_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

void unlimit_file_size(void)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

void rich_trace(struct test_trace *t, uint64_t seed)
{
    const struct test_shape shape = {
        .layers = 5, .experts = 24, .top_k = 3, .block_length = 8, .requests = 6, .blocks = 3, .prefill_rows = 40,
        .max_steps = 5, .commit_passes = true, .empty_passes = true, .dummy_passes = true, .unused_slots = true,
        .edits = true, .interleave = true, .forward_groups = 2, .redraw = 0.25,
    };
    test_trace_random(t, &shape, seed);
    t->info.has_prob = t->info.has_token_id = t->info.has_residency = t->info.has_pass_ns = t->info.has_forward = true;
    t->info.has_resident_bytes = true;
    t->info.resident_bytes = 123456789012;
    t->info.hidden_size = 512;
    t->info.shared_experts = UINT64_C(1) << 33;
    snprintf(t->info.dataset, sizeof t->info.dataset, "gsm8k, «quoted»");
    for (uint32_t l = 0; l < shape.layers; l++)
        t->layer_ids[l] = (int32_t)(2 * l + 1);
    const size_t probs = t->num_rows * shape.layers * shape.experts;
    free(t->prob);
    t->prob = malloc(probs * sizeof *t->prob);
    ck_assert_ptr_nonnull(t->prob);
    for (size_t i = 0; i < probs; i++)
        t->prob[i] = (float)(i % 1024) / 1024.0f;
    for (size_t i = 0; i < t->num_rows * shape.layers * shape.top_k; i++)
        t->residency[i] = (uint8_t)(i % 3);
    for (size_t p = 0; p < t->num_passes; p++)
        t->pass[p].pass_ns = 1000 + p;
}

static void check_text(const char *a, const char *b)
{
    ck_assert_str_eq(a, b);
}

static void check_header(const moesim_trace_info *x, const moesim_trace_info *y)
{
    check_text(x->model_id, y->model_id);
    check_text(x->gate_kind, y->gate_kind);
    check_text(x->confidence_kind, y->confidence_kind);
    check_text(x->engine, y->engine);
    check_text(x->decoder, y->decoder);
    check_text(x->dataset, y->dataset);
    check_text(x->license, y->license);
    ck_assert_uint_eq(x->num_experts, y->num_experts);
    ck_assert_uint_eq(x->top_k, y->top_k);
    ck_assert_uint_eq(x->block_length, y->block_length);
    ck_assert_uint_eq(x->hidden_size, y->hidden_size);
    ck_assert_uint_eq(x->shared_experts, y->shared_experts);
    ck_assert(x->commit_threshold == y->commit_threshold || (isnan(x->commit_threshold) && isnan(y->commit_threshold)));
    ck_assert(x->has_gate == y->has_gate && x->gate_is_f32 == y->gate_is_f32 && x->has_confidence == y->has_confidence);
    ck_assert(x->has_prob == y->has_prob && x->has_forward == y->has_forward && x->has_token_id == y->has_token_id);
    ck_assert(x->has_residency == y->has_residency && x->has_pass_ns == y->has_pass_ns);
    ck_assert(x->has_output_tokens == y->has_output_tokens && x->has_resident_bytes == y->has_resident_bytes);
    ck_assert_uint_eq(x->resident_bytes, y->resident_bytes);
}

/* n rows of [M][width] items of a, from its layer first on, against those of b. */
static void check_cells(size_t n, const moesim_trace_info *x, const moesim_trace_info *y, size_t width, size_t each,
                        const void *a, const void *b, uint32_t first)
{
    ck_assert((a == NULL) == (b == NULL));
    for (size_t r = 0; a != NULL && r < n; r++) {
        const size_t all = x->num_layers * width * each, kept = y->num_layers * width * each;
        ck_assert_mem_eq((const char *)a + r * all + first * width * each, (const char *)b + r * kept, kept);
    }
}

static void check_column(size_t n, size_t each, const void *a, const void *b)
{
    ck_assert((a == NULL) == (b == NULL));
    if (a != NULL)
        ck_assert_mem_eq(a, b, n * each);
}

static void check_rows(const moesim_trace_info *x, const moesim_trace_info *y, const moesim_rows *a, const moesim_rows *b,
                       uint32_t first)
{
    const size_t n = (size_t)(a->end - a->begin), k = x->top_k;
    check_column(n, sizeof *a->position, a->position, b->position);
    check_column(n, sizeof *a->state, a->state, b->state);
    check_column(n, sizeof *a->confidence, a->confidence, b->confidence);
    check_column(n, sizeof *a->token_id, a->token_id, b->token_id);
    check_cells(n, x, y, k, sizeof *a->expert, a->expert, b->expert, first);
    check_cells(n, x, y, k, sizeof *a->gate, a->gate, b->gate, first);
    check_cells(n, x, y, k, sizeof *a->residency, a->residency, b->residency, first);
    check_cells(n, x, y, x->num_experts, sizeof *a->prob, a->prob, b->prob, first);
}

static moesim_trace *open_trace(const char *path, moesim_cursor **cursor)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_cursor_open(trace, 0xff, (size_t)1 << 30, cursor, &err) == MOESIM_OK, "%s", err.text);
    return trace;
}

static void check_requests(const moesim_trace *a, const moesim_trace *b, uint32_t first)
{
    const moesim_trace_info *x = moesim_trace_get_info(a), *y = moesim_trace_get_info(b);
    for (uint32_t q = 0; q < y->num_requests; q++) {
        const moesim_trace_request *r = moesim_trace_get_request(a, first + q), *s = moesim_trace_get_request(b, q);
        check_text(r->workload, s->workload);
        ck_assert(r->prompt_tokens == s->prompt_tokens && r->output_tokens == s->output_tokens);
        ck_assert(r->output_tokens_known == s->output_tokens_known);
    }
    ck_assert_uint_le(first + y->num_requests, x->num_requests);
}

void check_same_content(const char *a, const char *b, uint32_t layer_begin, uint32_t request_begin)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_cursor *from = NULL, *to = NULL;
    moesim_trace *s = open_trace(a, &from), *t = open_trace(b, &to);
    const moesim_trace_info *x = moesim_trace_get_info(s), *y = moesim_trace_get_info(t);
    check_header(x, y);
    check_requests(s, t, request_begin);
    for (uint32_t l = 0; l < y->num_layers; l++) {
        ck_assert_int_eq(moesim_trace_layer_ids(s)[layer_begin + l], moesim_trace_layer_ids(t)[l]);
        ck_assert_uint_eq(moesim_trace_expert_bytes(s)[layer_begin + l], moesim_trace_expert_bytes(t)[l]);
    }
    uint64_t q = 0;
    for (uint64_t p = 0; p < x->num_passes; p++) {
        moesim_pass u, v;
        moesim_rows rows, other;
        ck_assert_int_eq(moesim_trace_pass(s, p, &u, &err), MOESIM_OK);
        if (u.request < request_begin || u.request >= request_begin + y->num_requests)
            continue;
        ck_assert_int_eq(moesim_trace_pass(t, q++, &v, &err), MOESIM_OK);
        ck_assert_uint_eq(u.request - request_begin, v.request);
        ck_assert(u.kind == v.kind && u.block == v.block && u.step == v.step && u.observed_ns == v.observed_ns);
        ck_assert(!x->has_forward || u.forward == v.forward);
        ck_assert_uint_eq(u.row_end - u.row_begin, v.row_end - v.row_begin);
        ck_assert_msg(moesim_cursor_rows(from, u.row_begin, u.row_end, &rows, &err) == MOESIM_OK, "%s", err.text);
        ck_assert_msg(moesim_cursor_rows(to, v.row_begin, v.row_end, &other, &err) == MOESIM_OK, "%s", err.text);
        check_rows(x, y, &rows, &other, layer_begin);
    }
    ck_assert_uint_eq(q, y->num_passes);
    moesim_cursor_close(&from);
    moesim_cursor_close(&to);
    moesim_trace_close(&s);
    moesim_trace_close(&t);
}

int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
