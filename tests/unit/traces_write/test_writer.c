/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace writer: what is read is what was written, the same content gives the same bytes.
 */
#include <math.h>

#include "tests/unit/traces_write/common.h"
#include "traces/h5.h"
#include "traces/half.h"

/* What was handed to the writer against what the reader gives. */
static void check_against_memory(const struct test_trace *t, const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    moesim_cursor *cursor = NULL;
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    const size_t mk = (size_t)info->num_layers * info->top_k, me = (size_t)info->num_layers * info->num_experts;
    ck_assert_uint_eq(info->num_passes, t->num_passes);
    ck_assert_uint_eq(info->num_rows, t->num_rows);
    ck_assert_uint_eq(info->num_requests, t->num_requests);
    ck_assert_str_eq(info->dataset, t->info.dataset);
    ck_assert_uint_eq(info->shared_experts, t->info.shared_experts);
    ck_assert(info->gate_is_f32 == t->info.gate_is_f32 && info->has_prob == t->info.has_prob);
    ck_assert(!info->superblock_old);
    ck_assert_msg(moesim_cursor_open(trace, 0xff, (size_t)1 << 28, &cursor, &err) == MOESIM_OK, "%s", err.text);
    for (size_t p = 0; p < t->num_passes; p++) {
        const moesim_pass *want = &t->pass[p].pass;
        moesim_pass got;
        moesim_rows rows;
        ck_assert_int_eq(moesim_trace_pass(trace, p, &got, &err), MOESIM_OK);
        ck_assert(got.row_begin == want->row_begin && got.row_end == want->row_end && got.kind == want->kind);
        ck_assert(got.request == want->request && got.block == want->block && got.step == want->step);
        ck_assert(got.forward == want->forward);
        ck_assert_uint_eq(got.observed_ns, info->has_pass_ns ? t->pass[p].pass_ns : 0);
        ck_assert_msg(moesim_cursor_rows(cursor, got.row_begin, got.row_end, &rows, &err) == MOESIM_OK, "%s", err.text);
        const size_t r = got.row_begin, n = got.row_end - got.row_begin;
        if (n == 0)
            continue;
        ck_assert_mem_eq(rows.expert, t->expert + r * mk, n * mk * sizeof *rows.expert);
        ck_assert_mem_eq(rows.gate, t->gate + r * mk, n * mk * sizeof *rows.gate);
        ck_assert_mem_eq(rows.state, t->state + r, n);
        ck_assert_mem_eq(rows.position, t->position + r, n * sizeof *rows.position);
        for (size_t i = 0; i < n; i++)
            ck_assert(rows.confidence[i] == t->confidence[r + i] ||
                      (isnan(rows.confidence[i]) && isnan(t->confidence[r + i])));
        if (info->has_prob)
            ck_assert_mem_eq(rows.prob, t->prob + r * me, n * me * sizeof *rows.prob);
        if (info->has_residency)
            ck_assert_mem_eq(rows.residency, t->residency + r * mk, n * mk);
        if (info->has_token_id)
            ck_assert_mem_eq(rows.token_id, t->token_id + r, n * sizeof *rows.token_id);
    }
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
}

START_TEST(round_trip)
{
    struct test_trace t;
    rich_trace(&t, (uint64_t)_i + 1);
    t.info.gate_is_f32 = _i == 1;
    if (_i == 1)
        for (size_t i = 0; i < t.num_rows * t.info.num_layers * t.info.top_k; i++)
            t.gate[i] = 0.1f + (float)(i % 7);
    if (_i == 2)
        t.info.has_prob = t.info.has_token_id = t.info.has_residency = t.info.has_pass_ns = false;
    test_trace_write(&t, test_path("t.h5"));
    check_against_memory(&t, test_path("t.h5"));
    ck_assert_uint_eq(count_entries(), 1);
    test_trace_fini(&t);
}
END_TEST

START_TEST(empty_trace)
{
    struct test_trace t;
    test_trace_init(&t, 1, 1, 1, 1);
    test_trace_add_request(&t, "none", 0, -1);
    test_trace_write(&t, test_path("t.h5"));
    check_against_memory(&t, test_path("t.h5"));
    test_trace_fini(&t);
}
END_TEST

/* Options, pieces: the content is the same, so the bytes are too. */
static void write_in_pieces(const struct test_trace *t, const char *path, int compression, size_t piece)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_writer *w = NULL;
    const moesim_writer_options options = {compression, 0};
    const size_t mk = (size_t)t->info.num_layers * t->info.top_k, me = (size_t)t->info.num_layers * t->info.num_experts;
    ck_assert_msg(moesim_writer_create(path, &t->info, t->layer_ids, t->expert_bytes, &options, &w, &err) == MOESIM_OK, "%s",
                  err.text);
    for (size_t q = 0; q < t->num_requests; q++)
        ck_assert_int_eq(moesim_writer_request(w, &t->request[q], &err), MOESIM_OK);
    for (size_t p = 0; p < t->num_passes; p++) {
        const moesim_pass *pass = &t->pass[p].pass;
        for (size_t r = pass->row_begin, first = 1; first != 0 || r < pass->row_end; r += piece, first = 0) {
            const size_t end = pass->row_end - r < piece ? pass->row_end : r + piece;
            const moesim_rows rows = {.begin = r, .end = end, .expert = t->expert + r * mk, .gate = t->gate + r * mk,
                                      .confidence = t->confidence + r, .state = t->state + r, .position = t->position + r,
                                      .prob = t->prob + r * me, .token_id = t->token_id + r,
                                      .residency = t->residency + r * mk};
            ck_assert_int_eq(first ? moesim_writer_pass(w, pass, &rows, t->pass[p].pass_ns, &err)
                                   : moesim_writer_rows(w, &rows, &err), MOESIM_OK);
        }
    }
    ck_assert_msg(moesim_writer_finish(&w, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_ptr_null(w);
}

START_TEST(same_content_same_bytes)
{
    struct test_trace t;
    rich_trace(&t, 7);
    write_in_pieces(&t, test_path("a.h5"), _i, SIZE_MAX / 2);
    free(malloc(12345));   /* a different heap */
    write_in_pieces(&t, test_path("b.h5"), _i, 3);
    write_in_pieces(&t, test_path("b2.h5"), _i, SIZE_MAX / 2);
    ck_assert(same_bytes(test_path("a.h5"), test_path("b.h5")));
    ck_assert(same_bytes(test_path("a.h5"), test_path("b2.h5")));
    t.gate[0] += 0.125f;
    write_in_pieces(&t, test_path("c.h5"), _i, SIZE_MAX / 2);
    ck_assert(!same_bytes(test_path("a.h5"), test_path("c.h5")));
    test_trace_fini(&t);
}
END_TEST

static void check_storage(const char *path, const char *name, unsigned compressor, hsize_t rows, bool shuffled)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, name, H5P_DEFAULT);
    const hid_t plist = H5Dget_create_plist(set), space = H5Dget_space(set);
    hsize_t chunk[3] = {0}, dims[3], max[3];
    ck_assert_int_ge(H5Pget_chunk(plist, 3, chunk), 1);
    ck_assert_uint_eq(chunk[0], rows);
    ck_assert_int_ge(H5Sget_simple_extent_dims(space, dims, max), 1);
    ck_assert(max[0] == H5S_UNLIMITED);
    const int filters = H5Pget_nfilters(plist), first = shuffled ? 1 : 0;
    ck_assert_int_eq(filters, 2 + first);
    const H5Z_filter_t want[] = {H5Z_FILTER_SHUFFLE, (H5Z_filter_t)compressor, H5Z_FILTER_FLETCHER32};
    for (int f = 0; f < filters; f++) {
        unsigned flags, config;
        size_t n = 0;
        ck_assert_int_eq(H5Pget_filter2(plist, (unsigned)f, &flags, &n, NULL, 0, NULL, &config), want[f + 1 - first]);
    }
    H5Sclose(space);
    H5Pclose(plist);
    H5Dclose(set);
    H5Fclose(file);
}

START_TEST(storage)
{
    struct test_trace t;
    const unsigned compressor = _i == MOESIM_GZIP ? H5Z_FILTER_DEFLATE : MOESIM_FILTER_ZSTD;
    rich_trace(&t, 7);
    write_in_pieces(&t, test_path("a.h5"), _i, SIZE_MAX / 2);
    ck_assert_int_eq(moesim_h5_enter(NULL), MOESIM_OK);
    check_storage(test_path("a.h5"), "/routing/expert", compressor, 256, true);
    check_storage(test_path("a.h5"), "/routing/router_prob", compressor, 256, true);
    check_storage(test_path("a.h5"), "/token/state", compressor, 8192, false);
    moesim_h5_leave();
    size_t n;
    unsigned char *data = slurp(test_path("a.h5"), &n);
    ck_assert_uint_ge(data[8], 2);   /* version of the superblock */
    free(data);
    test_trace_fini(&t);
}
END_TEST

/* A row at the limits of the format: chunks shrink so that no buffer is large. */
START_TEST(large_rows)
{
    struct test_trace t;
    test_trace_init(&t, 1024, 64, 64, 1);
    t.info.gate_is_f32 = true;
    test_trace_add_request(&t, "wide", 1, -1);
    test_trace_add_pass(&t, 0, MOESIM_PASS_PREFILL, -1, 0, 70, 0);
    test_trace_write(&t, test_path("t.h5"));
    check_against_memory(&t, test_path("t.h5"));
    ck_assert_int_eq(moesim_h5_enter(NULL), MOESIM_OK);
    check_storage(test_path("t.h5"), "/routing/gate", MOESIM_FILTER_ZSTD, 32, true);
    moesim_h5_leave();
    test_trace_fini(&t);
}
END_TEST

/* Widening by the definition of the format. */
static float widen(uint16_t half)
{
    const int exponent = (half >> 10) & 31, mantissa = half & 1023;
    const float sign = half & 0x8000u ? -1.0f : 1.0f;
    if (exponent == 31)
        return mantissa != 0 ? NAN : sign * INFINITY;
    return sign * (exponent == 0 ? ldexpf((float)mantissa, -24) : ldexpf((float)(1024 + mantissa), exponent - 25));
}

START_TEST(narrowing)
{
    for (uint32_t h = 0; h <= 0xffff; h++) {
        const float wide = widen((uint16_t)h);
        const uint16_t back = moesim_half_from_float(wide);
        if (isnan(wide))
            ck_assert((back & 0x7fffu) > 0x7c00u);
        else
            ck_assert_uint_eq(back, h);
        /* Between two neighbours: nearest, and to even where both are as near. */
        const float next = widen((uint16_t)(h + 1));
        if (isnan(wide) || !isfinite(next) || (h & 0x7fffu) == 0x7fffu)
            continue;
        const float middle = wide + (next - wide) / 2.0f;
        ck_assert_uint_eq(moesim_half_from_float(middle), h + (h & 1u));
        ck_assert_uint_eq(moesim_half_from_float(nextafterf(middle, wide)), h);
        ck_assert_uint_eq(moesim_half_from_float(nextafterf(middle, next)), h + 1);
    }
    ck_assert_uint_eq(moesim_half_from_float(65519.996f), 0x7bff);
    ck_assert_uint_eq(moesim_half_from_float(65520.0f), 0x7c00);
    ck_assert_uint_eq(moesim_half_from_float(-1e30f), 0xfc00);
    ck_assert_uint_eq(moesim_half_from_float(1e-30f), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace writer");
    TCase *cases = tcase_create("writer");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, round_trip, 0, 3);
    tcase_add_test(cases, empty_trace);
    tcase_add_loop_test(cases, same_content_same_bytes, 0, 2);
    tcase_add_loop_test(cases, storage, 0, 2);
    tcase_add_test(cases, large_rows);
    tcase_add_test(cases, narrowing);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
