/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a valid trace in every kind of storage, in windows, at limits.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"
#include "traces/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXPERT "/routing/expert"

/* Row r, which lies at index `at` of the window, against the table that was written. One result for all columns: an
 * assertion for each value would take most of the test's time. */
static bool row_good(const moesim_rows *rows, size_t at, uint64_t r)
{
    static const int positions[TINY_ROWS] = {0, 1, 2, 3, 4, 3, 4, 3, 4, 0, 1, 9};
    static const int ids[TINY_ROWS] = {5, 6, 7, 99, 99, 99, 8, 9, 8, 99, 99, 0};
    static const unsigned states[TINY_ROWS] = {2, 2, 2, 0, 1, 1, 2, 2, 2, 1, 1, 0};
    static const float confidences[TINY_ROWS] = {NAN, NAN, NAN, 0.5f, 0.75f, 0.875f, 1.0f, 1.0f, 1.0f, 0.25f, 0x1p-24f, 0.0f};
    bool good = rows->state[at] == states[r] && rows->position[at] == positions[r] && rows->token_id[at] == ids[r];
    good = good && (r < 3 ? (bool)isnan(rows->confidence[at]) : rows->confidence[at] == confidences[r]);
    for (size_t i = 0; i < 4; i++)
        good = good && rows->expert[at * 4 + i] == (r + i / 2 + i % 2) % 4 &&
               rows->gate[at * 4 + i] == (i % 2 == 0 ? 0.75f : 0.25f) && rows->residency[at * 4 + i] == (r * 4 + i) % 3;
    for (size_t i = 0; i < 8; i++)
        good = good && rows->prob[at * 8 + i] == 0.25f;
    return good;
}

static void check_content(const moesim_rows *rows, uint64_t begin, uint64_t end)
{
    for (uint64_t r = begin; r < end; r++)
        ck_assert_msg(row_good(rows, (size_t)(r - begin), r), "row %d of %d to %d", (int)r, (int)begin, (int)end);
}

static void check_all_ranges(const tiny *t, const char *what)
{
    moesim_trace *trace = tiny_open(t);
    moesim_cursor *cursor = tiny_open_cursor(trace, UINT32_MAX, 1 << 20);
    for (uint64_t begin = 0; begin <= TINY_ROWS; begin++)
        for (uint64_t end = TINY_ROWS; end + 1 > begin; end--) {   /* forwards, backwards, nested, empty */
            const moesim_rows rows = tiny_get_rows(cursor, begin, end);
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
    moesim_trace *trace = tiny_open(&t);
    ck_assert(moesim_trace_get_info(trace)->gate_is_f32);
    moesim_cursor *cursor = tiny_open_cursor(trace, MOESIM_COLUMN_GATE, 1 << 20);
    const moesim_rows rows = tiny_get_rows(cursor, 0, TINY_ROWS);
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

/* Going forward decodes every chunk once, however the requests fall. */
START_TEST(test_each_chunk_once)
{
    for (uint64_t step = 1; step <= TINY_ROWS; step++) {
        tiny t;
        tiny_init(&t);
        for (int i = 0; i < t.items; i++)
            t.item[i].chunk[0] = t.item[i].dim[0] == TINY_ROWS ? 5 : t.item[i].chunk[0];
        moesim_trace *trace = tiny_open(&t);
        moesim_cursor *cursor = tiny_open_cursor(trace, UINT32_MAX, 1 << 20);
        const uint64_t before = moesim_decoder_count(trace->decoder);
        for (uint64_t row = 0; row < TINY_ROWS; row += step) {
            const uint64_t end = row + step < TINY_ROWS ? row + step : TINY_ROWS;
            const moesim_rows rows = tiny_get_rows(cursor, row, end);
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
    moesim_trace *trace = tiny_open(&t);
    moesim_cursor *cursor = tiny_open_cursor(trace, MOESIM_COLUMN_EXPERT, 8 * 8);   /* two chunks of 4 rows, 8 bytes a row */
    for (uint64_t row = 0; row + 4 <= TINY_ROWS; row += 4)
        (void)tiny_get_rows(cursor, row, row + 4);
    (void)tiny_get_rows(cursor, 2, 7);
    ck_assert_int_eq(moesim_cursor_rows(cursor, 2, 9, &rows, &err), MOESIM_E_LIMIT);
    ck_assert_msg(strstr(err.text, "raise --window (run, sweep, replay)") != NULL && strstr(err.text, EXPERT) != NULL,
                  "%s", err.text);
    (void)tiny_get_rows(cursor, 2, 7);   /* still usable */
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
    moesim_trace *trace = tiny_open(&t);
    moesim_cursor *a = tiny_open_cursor(trace, UINT32_MAX, 1 << 20), *b = tiny_open_cursor(trace, UINT32_MAX, 1 << 20);
    const moesim_rows first = tiny_get_rows(a, 0, 4), second = tiny_get_rows(b, 8, 12);
    check_content(&first, 0, 4);
    check_content(&second, 8, 12);
    moesim_cursor_close(&a);
    moesim_cursor_close(&b);
    moesim_trace_close(&trace);
}
END_TEST

RUN_TESTS("rows", test_storage_kinds, test_tiles_and_flat, test_filter_left_out, test_float_gates, test_allowed_values,
          test_each_chunk_once, test_limit, test_two_cursors)
