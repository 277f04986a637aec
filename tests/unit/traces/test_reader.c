/* SPDX-License-Identifier: Apache-2.0
 *
 * What a valid trace gives: header, passes, requests, rows in every kind of storage, windows, limits.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"
#include "traces/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXPERT "/routing/expert"

static moesim_trace *open_trace(const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    const moesim_code code = moesim_trace_open(path, NULL, &trace, &err);
    ck_assert_msg(code == MOESIM_OK, "%s", err.text);
    return trace;
}

static moesim_trace *open_tiny(const tiny *t)
{
    const char *path = tiny_path("tiny.h5");
    tiny_write(t, path);
    return open_trace(path);
}

static moesim_cursor *open_cursor(moesim_trace *trace, uint32_t columns, size_t limit)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_cursor *cursor = NULL;
    ck_assert_int_eq(moesim_cursor_open(trace, columns, limit, &cursor, &err), MOESIM_OK);
    return cursor;
}

static moesim_rows get_rows(moesim_cursor *cursor, uint64_t begin, uint64_t end)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_rows rows;
    const moesim_code code = moesim_cursor_rows(cursor, begin, end, &rows, &err);
    ck_assert_msg(code == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(rows.begin, begin);
    ck_assert_uint_eq(rows.end, end);
    return rows;
}

START_TEST(test_header)
{
    tiny t;
    tiny_init(&t);
    moesim_trace *trace = open_tiny(&t);
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
    moesim_trace *trace = open_tiny(&t);
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
    moesim_trace *trace = open_tiny(&t);
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    ck_assert(!info->has_gate && !info->has_confidence && !info->has_confidence_values && !info->has_prob);
    ck_assert(!info->has_forward && !info->has_output_tokens && !info->has_token_id && !info->has_residency);
    ck_assert(!info->has_pass_ns && !info->has_resident_bytes && info->gate_unnormalised && isnan(info->commit_threshold));
    ck_assert(!moesim_trace_get_request(trace, 0)->output_tokens_known);
    ck_assert_int_eq(moesim_trace_pass(trace, 3, &pass, &err), MOESIM_OK);
    ck_assert(pass.forward == 3 && pass.observed_ns == 0);
    moesim_cursor *cursor = open_cursor(trace, UINT32_MAX, 1 << 20);
    const moesim_rows rows = get_rows(cursor, 0, 5);
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

/* All columns of rows [begin, end) against the table that was written. */
static void check_content(const moesim_rows *rows, uint64_t begin, uint64_t end)
{
    static const int positions[TINY_ROWS] = {0, 1, 2, 3, 4, 3, 4, 3, 4, 0, 1, 9};
    static const int ids[TINY_ROWS] = {5, 6, 7, 99, 99, 99, 8, 9, 8, 99, 99, 0};
    static const unsigned states[TINY_ROWS] = {2, 2, 2, 0, 1, 1, 2, 2, 2, 1, 1, 0};
    for (uint64_t r = begin; r < end; r++) {
        const size_t at = (size_t)(r - begin);
        for (size_t i = 0; i < 4; i++) {
            ck_assert_uint_eq(rows->expert[at * 4 + i], (r + i / 2 + i % 2) % 4);
            ck_assert(rows->gate[at * 4 + i] == (i % 2 == 0 ? 0.75f : 0.25f));
            ck_assert_uint_eq(rows->residency[at * 4 + i], (r * 4 + i) % 3);
        }
        for (size_t i = 0; i < 8; i++)
            ck_assert(rows->prob[at * 8 + i] == 0.25f);
        ck_assert(r < 3 ? (bool)isnan(rows->confidence[at]) : rows->confidence[at] >= 0.0f && rows->confidence[at] <= 1.0f);
        ck_assert_uint_eq(rows->state[at], states[r]);
        ck_assert_int_eq(rows->position[at], positions[r]);
        ck_assert_int_eq(rows->token_id[at], ids[r]);
    }
}

static void check_all_ranges(const tiny *t, const char *what)
{
    moesim_trace *trace = open_tiny(t);
    moesim_cursor *cursor = open_cursor(trace, UINT32_MAX, 1 << 20);
    for (uint64_t begin = 0; begin <= TINY_ROWS; begin++)
        for (uint64_t end = TINY_ROWS; end + 1 > begin; end--) {   /* forwards, backwards, nested, empty */
            const moesim_rows rows = get_rows(cursor, begin, end);
            ck_assert_msg(rows.expert != NULL && rows.prob != NULL, "%s: rows %d to %d", what, (int)begin, (int)end);
            check_content(&rows, begin, end);
            if (end == 0)
                break;
        }
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
}

static void no_filters(hid_t list) { (void)list; }
static void shuffle_only(hid_t list) { ck_assert_int_ge(H5Pset_shuffle(list), 0); }
static void fletcher(hid_t list) { ck_assert_int_ge(H5Pset_fletcher32(list), 0); }
static void deflate(hid_t list) { ck_assert_int_ge(H5Pset_deflate(list, 9), 0); }
static void zstd(hid_t list)
{
    const unsigned level = 3;
    ck_assert_int_ge(H5Pset_filter(list, MOESIM_FILTER_ZSTD, H5Z_FLAG_OPTIONAL, 1, &level), 0);
}
static void shuffle_zstd(hid_t list) { shuffle_only(list), zstd(list); }
static void shuffle_zstd_fletcher(hid_t list) { shuffle_zstd(list), fletcher(list); }
static void shuffle_fletcher_zstd(hid_t list) { shuffle_only(list), fletcher(list), zstd(list); }
static void fletcher_deflate(hid_t list) { fletcher(list), deflate(list); }
static void deflate_fletcher(hid_t list) { deflate(list), fletcher(list); }

START_TEST(test_storage_kinds)
{
    static void (*const pipelines[])(hid_t list) = {
        NULL,         no_filters,            shuffle_only,          fletcher,         deflate,         zstd,
        shuffle_zstd, shuffle_zstd_fletcher, shuffle_fletcher_zstd, fletcher_deflate, deflate_fletcher};
    static const hsize_t chunk_rows[] = {1, 3, 4, 5, 12, 100};
    for (size_t i = 0; i < sizeof pipelines / sizeof pipelines[0]; i++) {
        for (size_t k = 0; k < sizeof chunk_rows / sizeof chunk_rows[0]; k++) {
            tiny t;
            char what[64];
            (void)snprintf(what, sizeof what, "pipeline %zu, chunks of %d rows", i, (int)chunk_rows[k]);
            tiny_init(&t);
            for (int j = 0; j < t.items; j++) {
                t.item[j].filters = pipelines[i];
                t.item[j].chunk[0] = t.item[j].dim[0] == TINY_ROWS ? chunk_rows[k] : 2;
                t.item[j].layout = TINY_CHUNKED;
            }
            check_all_ranges(&t, what);
        }
    }
}
END_TEST

START_TEST(test_tiles_and_flat)
{
    tiny t;
    for (hsize_t a = 1; a <= 3; a++) {
        for (hsize_t b = 1; b <= 5; b++) {
            tiny_init(&t);
            for (int j = 0; j < t.items; j++) {
                if (t.item[j].rank == 3) {
                    t.item[j].chunk[0] = 5;
                    t.item[j].chunk[1] = a;   /* 3 and 5 reach over the edge */
                    t.item[j].chunk[2] = b;
                }
            }
            check_all_ranges(&t, "tiles");
        }
    }
    tiny_init(&t);
    for (int j = 0; j < t.items; j++)
        t.item[j].layout = TINY_CONTIGUOUS;
    check_all_ranges(&t, "contiguous");
    for (int j = 0; j < t.items; j++)
        t.item[j].layout = TINY_COMPACT;
    check_all_ranges(&t, "compact");
}
END_TEST

/* A chunk whose mask says that the (optional) compressor was left out. */
static void masked(hid_t dataset)
{
    for (hsize_t row = 0; row < TINY_ROWS; row += 4) {
        const hsize_t at[3] = {row, 0, 0};
        uint16_t ids[16];
        for (size_t i = 0; i < 16; i++)
            ids[i] = (uint16_t)((row + i / 4 + i / 2 % 2 + i % 2) % 4);
        ck_assert_int_ge(H5Dwrite_chunk(dataset, H5P_DEFAULT, 1, at, sizeof ids, ids), 0);
    }
}

START_TEST(test_filter_left_out)
{
    tiny t;
    tiny_init(&t);
    tiny_find(&t, EXPERT)->filters = zstd;
    tiny_find(&t, EXPERT)->after = masked;
    check_all_ranges(&t, "mask");
}
END_TEST

START_TEST(test_float_gates)
{
    static const uint32_t bits[4] = {0x3f000000u, 0x80000000u, 0x7f7fffffu, 0x00000001u};   /* ½, −0, largest, smallest */
    tiny t;
    tiny_init(&t);
    tiny_retype(tiny_find(&t, "/routing/gate"), H5T_IEEE_F32LE);
    for (size_t i = 0; i < 48; i++)
        tiny_set(&t, "/routing/gate", i, bits[i % 4]);
    moesim_trace *trace = open_tiny(&t);
    ck_assert(moesim_trace_get_info(trace)->gate_is_f32);
    moesim_cursor *cursor = open_cursor(trace, MOESIM_COLUMN_GATE, 1 << 20);
    const moesim_rows rows = get_rows(cursor, 0, TINY_ROWS);
    ck_assert_ptr_null(rows.expert);
    for (size_t i = 0; i < 48; i++)
        ck_assert_int_eq(memcmp(&rows.gate[i], &bits[i % 4], 4), 0);
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
}
END_TEST

START_TEST(test_allowed_values)
{
    tiny t;
    moesim_error err = MOESIM_ERROR_INIT;
    tiny_init(&t);
    for (size_t i = 20; i < 24; i++)
        tiny_set(&t, EXPERT, i, 65535);            /* a whole row without routes */
    tiny_set(&t, EXPERT, 0, 65535);                /* an unused slot before a used one */
    tiny_set(&t, "/routing/gate", 3, 0x8000);      /* −0 */
    tiny_set(&t, "/token/confidence", 3, 0x8000);
    tiny_set(&t, "/token/confidence", 4, 0xfe00);  /* another NaN */
    tiny_set(&t, "/pass/row_offset", 2, 3);        /* a pass without rows */
    tiny_set(&t, "/pass/request", 4, 0);           /* a request without passes but a dummy */
    tiny_write(&t, tiny_path("allowed.h5"));
    const moesim_code code = tiny_read(tiny_path("allowed.h5"), &err);
    ck_assert_msg(code == MOESIM_OK, "%s", err.text);
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
    moesim_trace *trace = open_tiny(&t);
    ck_assert_uint_eq(moesim_trace_get_info(trace)->num_passes, 0);
    moesim_cursor *cursor = open_cursor(trace, UINT32_MAX, 1 << 20);
    (void)get_rows(cursor, 0, 0);
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
    moesim_trace *trace = open_tiny(&t);
    ck_assert_uint_eq(strlen(moesim_trace_get_info(trace)->model_id), 254);
    ck_assert_str_eq(moesim_trace_get_info(trace)->engine, "a?[31mb??? \xe2\x82\xac?");
    moesim_trace_close(&trace);
    moesim_h5_clean("\xed\xa0\x80\xf4\x90\x80\x80z", 8, out, sizeof out);   /* surrogate, beyond U+10FFFF */
    ck_assert_str_eq(out, "???????z");
    moesim_h5_clean("abc", 3, out, 3);
    ck_assert_str_eq(out, "ab");
    moesim_h5_clean("\xf0\x9f\x98\x80", 4, out, sizeof out);
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
    moesim_trace *trace = open_trace(path);
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

/* Going forward decodes every chunk once, however the requests fall. */
START_TEST(test_each_chunk_once)
{
    for (uint64_t step = 1; step <= TINY_ROWS; step++) {
        tiny t;
        tiny_init(&t);
        for (int i = 0; i < t.items; i++)
            t.item[i].chunk[0] = t.item[i].dim[0] == TINY_ROWS ? 5 : t.item[i].chunk[0];
        moesim_trace *trace = open_tiny(&t);
        moesim_cursor *cursor = open_cursor(trace, UINT32_MAX, 1 << 20);
        const uint64_t before = moesim_decoder_count(trace->decoder);
        for (uint64_t row = 0; row < TINY_ROWS; row += step) {
            const uint64_t end = row + step < TINY_ROWS ? row + step : TINY_ROWS;
            const moesim_rows rows = get_rows(cursor, row, end);
            check_content(&rows, row, end);
        }
        ck_assert_uint_eq(moesim_decoder_count(trace->decoder) - before, 3 * MOESIM_ROW_COLUMNS);
        moesim_cursor_close(&cursor);
        moesim_trace_close(&trace);
    }
}
END_TEST

START_TEST(test_limit)
{
    tiny t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_rows rows;
    tiny_init(&t);
    moesim_trace *trace = open_tiny(&t);
    moesim_cursor *cursor = open_cursor(trace, MOESIM_COLUMN_EXPERT, 8 * 8);   /* two chunks of 4 rows, 8 bytes a row */
    for (uint64_t row = 0; row + 4 <= TINY_ROWS; row += 4)
        (void)get_rows(cursor, row, row + 4);
    (void)get_rows(cursor, 2, 7);
    ck_assert_int_eq(moesim_cursor_rows(cursor, 2, 9, &rows, &err), MOESIM_E_LIMIT);
    ck_assert_msg(strstr(err.text, "--window") != NULL && strstr(err.text, EXPERT) != NULL, "%s", err.text);
    (void)get_rows(cursor, 2, 7);   /* still usable */
    ck_assert_int_eq(moesim_cursor_rows(cursor, 5, 13, &rows, &err), MOESIM_E_INTERNAL);
    ck_assert_int_eq(moesim_cursor_rows(cursor, 5, 4, &rows, &err), MOESIM_E_INTERNAL);
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
}
END_TEST

START_TEST(test_two_cursors)
{
    tiny t;
    tiny_init(&t);
    moesim_trace *trace = open_tiny(&t);
    moesim_cursor *a = open_cursor(trace, UINT32_MAX, 1 << 20), *b = open_cursor(trace, UINT32_MAX, 1 << 20);
    const moesim_rows first = get_rows(a, 0, 4), second = get_rows(b, 8, 12);
    check_content(&first, 0, 4);
    check_content(&second, 8, 12);
    moesim_cursor_close(&a);
    moesim_cursor_close(&b);
    moesim_trace_close(&trace);
}
END_TEST

RUN_TESTS("reader", test_header, test_passes_and_requests, test_optional_absent, test_storage_kinds, test_tiles_and_flat,
          test_filter_left_out, test_float_gates, test_allowed_values, test_nothing_recorded, test_text, test_many_passes,
          test_each_chunk_once, test_limit, test_two_cursors)
