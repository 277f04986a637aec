/* SPDX-License-Identifier: Apache-2.0
 *
 * What a valid trace gives: header, passes, requests, text.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

START_TEST(test_header)
{
    tiny t;
    tiny_init(&t);
    moesim_trace *trace = tiny_open(&t);
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    ck_assert_str_eq(info->model_id, "example/tiny");
    ck_assert_str_eq(info->gate_kind, "softmax, normalised over the selected experts");
    ck_assert_str_eq(info->engine, "by hand");
    ck_assert_str_eq(info->license, "");
    ck_assert_uint_eq(info->num_layers, 2);
    ck_assert_uint_eq(info->num_experts, 4);
    ck_assert_uint_eq(info->top_k, 2);
    ck_assert_uint_eq(info->block_length, 2);
    ck_assert_uint_eq(info->hidden_size, 64);
    ck_assert_uint_eq(info->shared_experts, 0);
    ck_assert(info->commit_threshold == 0.5);
    ck_assert_uint_eq(info->num_passes, TINY_PASSES);
    ck_assert_uint_eq(info->num_rows, TINY_ROWS);
    ck_assert_uint_eq(info->num_requests, TINY_REQUESTS);
    ck_assert(info->has_gate && !info->gate_is_f32 && info->has_confidence && info->has_confidence_values && info->has_prob);
    ck_assert(info->has_forward && info->has_output_tokens && info->has_token_id && info->has_residency && info->has_pass_ns);
    ck_assert(!info->gate_unnormalised && !info->superblock_old);
    ck_assert(info->has_resident_bytes);
    ck_assert_uint_eq(info->resident_bytes, 5000);
    ck_assert_int_eq(moesim_trace_layer_ids(trace)[1], 2);
    ck_assert_uint_eq(moesim_trace_expert_bytes(trace)[1], 2000);
    ck_assert_str_eq(info->digest, "");
    moesim_error err = MOESIM_ERROR_INIT;
    char digest[MOESIM_DIGEST_CHARS];
    ck_assert_int_eq(moesim_trace_digest(trace, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_digest_file(info->path, digest, &err), MOESIM_OK);
    ck_assert_str_eq(info->digest, digest);
    moesim_trace_close(&trace);
    ck_assert_ptr_null(trace);
}
END_TEST

START_TEST(test_passes_and_requests)
{
    static const uint64_t begin[TINY_PASSES] = {0, 3, 5, 7, 9, 11};
    static const int32_t block[TINY_PASSES] = {-1, 0, 0, 0, 0, 0}, step[TINY_PASSES] = {0, 0, 1, 2, 0, 1};
    static const uint64_t forward[TINY_PASSES] = {10, 11, 12, 13, 13, 14};
    tiny t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_pass pass;
    tiny_init(&t);
    moesim_trace *trace = tiny_open(&t);
    for (uint64_t p = 0; p < TINY_PASSES; p++) {
        ck_assert_int_eq(moesim_trace_pass(trace, p, &pass, &err), MOESIM_OK);
        ck_assert_uint_eq(pass.row_begin, begin[p]);
        ck_assert_uint_eq(pass.row_end, p + 1 < TINY_PASSES ? begin[p + 1] : TINY_ROWS);
        ck_assert_uint_eq(pass.forward, forward[p]);
        ck_assert_int_eq(pass.block, block[p]);
        ck_assert_int_eq(pass.step, step[p]);
        ck_assert_uint_eq(pass.observed_ns, 100 + p);
    }
    ck_assert_uint_eq(pass.kind, MOESIM_PASS_DUMMY);
    ck_assert_uint_eq(pass.request, 1);
    ck_assert_int_eq(moesim_trace_pass(trace, TINY_PASSES, &pass, &err), MOESIM_E_INTERNAL);
    const moesim_trace_request *r = moesim_trace_get_request(trace, 0);
    ck_assert_str_eq(r->workload, "gsm8k");
    ck_assert_uint_eq(r->prompt_tokens, 3);
    ck_assert(r->output_tokens_known && r->output_tokens == 2);
    ck_assert(r->passes == 4 && r->first == 0 && r->last == 3);
    r = moesim_trace_get_request(trace, 1);
    ck_assert_str_eq(r->workload, "eightchr");   /* fills its field, no final zero in the file */
    ck_assert(r->passes == 1 && r->first == 4 && r->last == 4);   /* the dummy pass does not count */
    moesim_trace_close(&trace);
}
END_TEST

START_TEST(test_optional_absent)
{
    static const char *const optional[] = {"/routing/gate",         "/routing/router_prob", "/token/id", "/pass/forward",
                                           "/observed/residency",   "/observed/pass_ns",    "/request/output_tokens",
                                           "/model/resident_bytes", "/token/confidence"};
    tiny t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_pass pass;
    tiny_init(&t);
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        tiny_find(&t, optional[i])->place = TINY_ABSENT;
    tiny_attribute(&t, "confidence_kind")->text = "none";
    tiny_attribute(&t, "gate_kind")->text = "softmax, unnormalised";
    tiny_attribute(&t, "commit_threshold")->kind = TINY_NO_ATTR;
    moesim_trace *trace = tiny_open(&t);
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    ck_assert(!info->has_gate && !info->has_confidence && !info->has_confidence_values && !info->has_prob);
    ck_assert(!info->has_forward && !info->has_output_tokens && !info->has_token_id && !info->has_residency);
    ck_assert(!info->has_pass_ns && !info->has_resident_bytes && info->gate_unnormalised && isnan(info->commit_threshold));
    ck_assert(!moesim_trace_get_request(trace, 0)->output_tokens_known);
    ck_assert_int_eq(moesim_trace_pass(trace, 3, &pass, &err), MOESIM_OK);
    ck_assert(pass.forward == 3 && pass.observed_ns == 0);
    moesim_cursor *cursor = tiny_open_cursor(trace, UINT32_MAX, 1 << 20);
    const moesim_rows rows = tiny_get_rows(cursor, 0, 5);
    ck_assert_ptr_nonnull(rows.expert);
    ck_assert_ptr_nonnull(rows.state);
    ck_assert_ptr_nonnull(rows.position);
    ck_assert_ptr_null(rows.gate);
    ck_assert_ptr_null(rows.confidence);
    ck_assert_ptr_null(rows.prob);
    ck_assert_ptr_null(rows.token_id);
    ck_assert_ptr_null(rows.residency);
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
}
END_TEST

START_TEST(test_nothing_recorded)
{
    tiny t;
    tiny_init(&t);
    for (int i = 0; i < t.items; i++) {
        if (strncmp(t.item[i].name, "/model", 6) != 0)
            t.item[i].dim[0] = 0;
    }
    tiny_find(&t, "/pass/row_offset")->dim[0] = 1;
    moesim_trace *trace = tiny_open(&t);
    ck_assert_uint_eq(moesim_trace_get_info(trace)->num_passes, 0);
    moesim_cursor *cursor = tiny_open_cursor(trace, UINT32_MAX, 1 << 20);
    (void)tiny_get_rows(cursor, 0, 0);
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
}
END_TEST

/* Text of a file is shown to users: no control characters, valid UTF-8, cut at a character. */
START_TEST(test_text)
{
    char longer[400], out[64];
    tiny t;
    tiny_init(&t);
    memset(longer, 'x', sizeof longer);
    memcpy(longer + 254, "\xc3\xa9", 2);   /* é would begin as the 255th byte */
    longer[399] = '\0';
    tiny_attribute(&t, "model_id")->text = longer;
    tiny_attribute(&t, "engine")->text = "a\x1b[31mb\xff\xc0\x80 \xe2\x82\xac\n";
    moesim_trace *trace = tiny_open(&t);
    ck_assert_uint_eq(strlen(moesim_trace_get_info(trace)->model_id), 254);
    ck_assert_str_eq(moesim_trace_get_info(trace)->engine, "a?[31mb??? \xe2\x82\xac?");
    moesim_trace_close(&trace);
    moesim_text_clean("\xed\xa0\x80\xf4\x90\x80\x80z", 8, out, sizeof out);   /* surrogate, beyond U+10FFFF */
    ck_assert_str_eq(out, "???????z");
    moesim_text_clean("abc", 3, out, 3);
    ck_assert_str_eq(out, "ab");
    moesim_text_clean("\xf0\x9f\x98\x80", 4, out, sizeof out);
    ck_assert_str_eq(out, "\xf0\x9f\x98\x80");
}
END_TEST

/* Passes far beyond the cache of blocks, in hostile order. */
START_TEST(test_many_passes)
{
    enum { MANY = 300 * 1024 + 17 };
    static uint64_t offsets[MANY + 1];
    static uint8_t kinds[MANY];
    static uint32_t requests[MANY];
    static int32_t blocks[MANY];
    tiny t;
    tiny_init(&t);
    for (size_t p = 0; p < MANY; p++) {
        offsets[p + 1] = (p + 1) * TINY_ROWS / MANY;
        kinds[p] = 1;
        requests[p] = (uint32_t)(p % 2);
        blocks[p] = (int32_t)p;
    }
    const struct {
        const char *name;
        const void *data;
        size_t n;
    } columns[] = {{"/pass/row_offset", offsets, MANY + 1}, {"/pass/kind", kinds, MANY},      {"/pass/request", requests, MANY},
                   {"/pass/block", blocks, MANY},           {"/pass/step", blocks, MANY}};
    tiny_find(&t, "/pass/forward")->place = TINY_ABSENT;
    tiny_find(&t, "/observed/pass_ns")->place = TINY_ABSENT;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        tiny_find(&t, columns[i].name)->place = TINY_ABSENT;
    const char *path = tiny_path("many.h5");
    tiny_write(&t, path);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), list = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 3000;
    ck_assert(file >= 0 && H5Pset_chunk(list, 1, &chunk) >= 0 && H5Pset_deflate(list, 1) >= 0);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        const hsize_t n = columns[i].n;
        const hid_t type = tiny_find(&t, columns[i].name)->type, space = H5Screate_simple(1, &n, NULL);
        const hid_t id = H5Dcreate2(file, columns[i].name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
        ck_assert_int_ge(H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, columns[i].data), 0);
        ck_assert(H5Dclose(id) >= 0 && H5Sclose(space) >= 0);
    }
    ck_assert(H5Pclose(list) >= 0 && H5Fclose(file) >= 0);
    moesim_trace *trace = tiny_open_trace(path);
    moesim_error err = MOESIM_ERROR_INIT;
    for (uint64_t i = 0; i < 2000; i++) {
        const uint64_t p = i * 7919 * 1021 % MANY;
        moesim_pass pass;
        ck_assert_int_eq(moesim_trace_pass(trace, p, &pass, &err), MOESIM_OK);
        ck_assert_int_eq(pass.block, (int32_t)p);
        ck_assert_uint_eq(pass.row_begin, offsets[p]);
        ck_assert_uint_eq(pass.forward, p);
    }
    ck_assert_uint_eq(moesim_trace_get_request(trace, 1)->passes, MANY / 2);
    ck_assert_uint_eq(moesim_trace_get_request(trace, 1)->first, 1);
    moesim_trace_close(&trace);
}
END_TEST

RUN_TESTS("reader", test_header, test_passes_and_requests, test_optional_absent, test_nothing_recorded, test_text,
          test_many_passes)
