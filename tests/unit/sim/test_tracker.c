/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows across passes where positions are out of order or doubled and blocks come back late; and records that spill to a file.
 */
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/spill.h"
#include "sim/tracker.h"

enum { ROWS = 4 };

struct answer {
    moesim_row row[ROWS];
    float lag[ROWS];
    uint16_t previous[ROWS][2];
};

/* A denoise pass of four rows whose row i routes to (tag + i, tag). */
static void track(moesim_tracker *t, uint32_t request, int32_t block, const int32_t position[ROWS],
                  const uint8_t state[ROWS], const float confidence[ROWS], uint16_t tag, struct answer *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_pass pass = { .request = request, .block = block, .kind = MOESIM_PASS_DENOISE };
    uint16_t expert[ROWS][2];
    for (uint16_t i = 0; i < ROWS; i++) {
        expert[i][0] = (uint16_t)(tag + i);
        expert[i][1] = tag;
    }
    const moesim_tracked_pass p = {
        .pass = &pass, .n = ROWS, .position = position, .state = state, .confidence = confidence, .expert = expert[0],
        .row = out->row, .lag = out->lag, .previous = out->previous[0],
    };
    ck_assert_msg(moesim_tracker_pass(t, &p, &err) == MOESIM_OK, "%s", err.text);
}

START_TEST(positions_are_found_in_any_order)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_tracker *t = NULL;
    struct answer a;
    ck_assert_int_eq(moesim_tracker_create(5, 7, 2, &t, &err), MOESIM_OK);
    /* Position 9 twice: its last row counts. */
    track(t, 6, 0, (const int32_t[ROWS]){ 9, 3, 9, 7 }, (const uint8_t[ROWS]){ 1, 0, 0, 3 },
          (const float[ROWS]){ .1f, .25f, .5f, .75f }, 100, &a);
    for (int i = 0; i < ROWS; i++) {
        ck_assert_uint_eq(a.row[i].first, 1);
        ck_assert(isnan(a.row[i].confidence));
        ck_assert_ptr_null(a.row[i].previous);
    }
    track(t, 6, 0, (const int32_t[ROWS]){ 7, 8, 9, 3 }, (const uint8_t[ROWS]){ 2, 0, 0, 1 },
          (const float[ROWS]){ 1, 1, 1, 1 }, 200, &a);
    ck_assert_uint_eq(a.row[0].input, MOESIM_ROW_JUST);
    ck_assert(a.row[0].confidence == .75f && a.lag[0] == 1);
    ck_assert_uint_eq(a.row[0].previous[0], 103);
    ck_assert(isnan(a.row[1].confidence) && a.lag[1] == 1);
    ck_assert_ptr_null(a.row[1].previous);
    ck_assert(a.row[2].confidence == .5f && a.lag[2] == .5f);
    ck_assert_uint_eq(a.row[2].previous[0], 102);
    ck_assert(a.row[3].confidence == .25f && a.lag[3] == .25f);
    ck_assert_uint_eq(a.row[3].previous[0], 101);
    ck_assert_uint_eq(a.row[3].first, 0);
    moesim_tracker_destroy(&t);
}
END_TEST

START_TEST(requests_and_blocks_are_apart)
{
    static const int32_t position[ROWS] = { 0, 1, 2, 3 };
    static const uint8_t state[ROWS] = { 0, 0, 0, 0 };
    static const float half[ROWS] = { .5f, .5f, .5f, .5f };
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_tracker *t = NULL;
    struct answer a;
    ck_assert_int_eq(moesim_tracker_create(0, 2, 2, &t, &err), MOESIM_OK);
    track(t, 0, 0, position, state, half, 1, &a);
    track(t, 1, 0, position, state, half, 1, &a);
    ck_assert_uint_eq(a.row[0].first, 1);
    /* Block 0 of request 0 is remembered while fewer than MOESIM_TRACKED_BLOCKS others were used since. */
    for (int32_t b = 1; b < (int32_t)MOESIM_TRACKED_BLOCKS; b++) {
        track(t, 0, b, position, state, half, 1, &a);
        ck_assert_uint_eq(a.row[0].first, 1);
    }
    track(t, 0, 0, position, state, half, 1, &a);
    ck_assert_uint_eq(a.row[0].first, 0);
    ck_assert(a.lag[0] == .5f);
    for (int32_t b = 100; b < 100 + (int32_t)MOESIM_TRACKED_BLOCKS; b++)
        track(t, 0, b, position, state, half, 1, &a);
    track(t, 0, 0, position, state, half, 1, &a);
    ck_assert_uint_eq(a.row[0].first, 1);
    moesim_tracker_end(t, 0);
    track(t, 0, 0, position, state, half, 1, &a);
    ck_assert_uint_eq(a.row[0].first, 1);
    track(t, 1, 0, position, state, half, 1, &a);
    ck_assert_uint_eq(a.row[0].first, 0);
    moesim_tracker_destroy(&t);
}
END_TEST

START_TEST(too_many_rows_are_refused)
{
    enum { MANY = 1 << 22 };
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_tracker *t = NULL;
    const moesim_pass pass = { .kind = MOESIM_PASS_DENOISE };
    moesim_tracked_pass p = { .pass = &pass, .n = MANY };
    p.position = calloc(MANY, sizeof *p.position);
    p.state = calloc(MANY, 1);
    p.confidence = calloc(MANY, sizeof *p.confidence);
    p.row = calloc(MANY, sizeof *p.row);
    p.lag = calloc(MANY, sizeof *p.lag);
    ck_assert(p.position != NULL && p.state != NULL && p.confidence != NULL && p.row != NULL && p.lag != NULL);
    ck_assert_int_eq(moesim_tracker_create(0, 1, 0, &t, &err), MOESIM_OK);
    p.n = MANY - MANY / 8;
    ck_assert_int_eq(moesim_tracker_pass(t, &p, &err), MOESIM_OK);
    p.n = MANY;
    ck_assert_int_eq(moesim_tracker_pass(t, &p, &err), MOESIM_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "--requests"));
    moesim_tracker_destroy(&t);
    free((void *)p.position);
    free((void *)p.state);
    free((void *)p.confidence);
    free(p.row);
    free(p.lag);
}
END_TEST

START_TEST(records_return_from_memory_and_file)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static const size_t limits[] = { 0, 24, 1000, 1 << 20 };
    for (size_t l = 0; l < sizeof limits / sizeof limits[0]; l++) {
        moesim_spill *s = NULL;
        ck_assert_int_eq(moesim_spill_create(24, limits[l], "test", &s, &err), MOESIM_OK);
        for (uint64_t i = 0; i < 100; i++) {
            const uint64_t record[3] = { i, i * i, ~i };
            ck_assert_int_eq(moesim_spill_append(s, record, &err), MOESIM_OK);
        }
        ck_assert_uint_eq(moesim_spill_count(s), 100);
        ck_assert_uint_le(moesim_spill_memory(s), limits[l] > 24 ? limits[l] : 24);
        for (uint64_t i = 100; i-- > 0;) {
            uint64_t record[3];
            ck_assert_int_eq(moesim_spill_read(s, i, record, &err), MOESIM_OK);
            ck_assert(record[0] == i && record[1] == i * i && record[2] == ~i);
        }
        moesim_spill_destroy(&s);
        ck_assert_ptr_null(s);
    }
}
END_TEST

START_TEST(a_folder_without_room_is_named)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_spill *s = NULL;
    const uint64_t record[3] = { 1, 2, 3 };
    ck_assert_int_eq(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
    ck_assert_int_eq(moesim_spill_create(24, 24, "test", &s, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_spill_append(s, record, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_spill_append(s, record, &err), MOESIM_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "/nowhere/at/all"));
    ck_assert_ptr_nonnull(strstr(err.text, "TMPDIR"));
    moesim_spill_destroy(&s);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        positions_are_found_in_any_order, requests_and_blocks_are_apart, too_many_rows_are_refused,
        records_return_from_memory_and_file, a_folder_without_room_is_named,
    };
    Suite *suite = suite_create("tracker");
    TCase *tcase = tcase_create("tracker");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
