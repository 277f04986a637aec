/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of work over threads.
 */
#include "base/parallel.h"

#include <stdbool.h>

#include "tests/unit/base/runner.h"

#define PIECES 500u

typedef struct count {
    uint32_t threads, ran[PIECES];
    size_t fails_from;           /* pieces from here on fail */
    bool stray;                  /* a worker's number was out of range */
} count;

static moesim_code one(void *cookie, uint32_t worker, size_t i, moesim_error *err)
{
    count *c = cookie;
    if (worker >= c->threads)
        c->stray = true;
    __atomic_fetch_add(&c->ran[i], 1, __ATOMIC_RELAXED);
    return i >= c->fails_from ? moesim_fail(err, MOESIM_E_FORMAT, "piece %zu", i) : MOESIM_OK;
}

START_TEST(every_piece_runs_once)
{
    for (uint32_t threads = 0; threads < 6; threads++) {
        moesim_error err = MOESIM_ERROR_INIT;
        count c = { .threads = threads > 0 ? threads : 1, .fails_from = PIECES };
        ck_assert_int_eq(moesim_parallel(threads, PIECES, one, &c, NULL, &err), MOESIM_OK);
        ck_assert(!c.stray);
        for (size_t i = 0; i < PIECES; i++)
            ck_assert_uint_eq(c.ran[i], 1);
    }
}
END_TEST

START_TEST(more_threads_than_pieces)
{
    count c = { .threads = 2, .fails_from = PIECES };
    ck_assert_int_eq(moesim_parallel(64, 2, one, &c, NULL, NULL), MOESIM_OK);
    ck_assert(!c.stray);
    ck_assert_uint_eq(c.ran[0] + c.ran[1], 2);
    ck_assert_int_eq(moesim_parallel(4, 0, one, &c, NULL, NULL), MOESIM_OK);
    ck_assert_uint_eq(c.ran[0] + c.ran[1], 2);
}
END_TEST

/* Which error it is does not depend on the number of threads, and nothing begins long after it. */
START_TEST(first_error_is_told)
{
    for (uint32_t threads = 1; threads < 6; threads++) {
        moesim_error err = MOESIM_ERROR_INIT;
        count c = { .threads = threads, .fails_from = 100 };
        ck_assert_int_eq(moesim_parallel(threads, PIECES, one, &c, NULL, &err), MOESIM_E_FORMAT);
        ck_assert_int_eq(err.code, MOESIM_E_FORMAT);
        ck_assert_str_eq(err.text, "piece 100");
        for (size_t i = 0; i < PIECES; i++)
            ck_assert_uint_eq(c.ran[i], i <= 100 ? 1 : i >= 100 + threads ? 0 : c.ran[i]);
    }
}
END_TEST

RUN_TESTS("parallel", every_piece_runs_once, more_threads_than_pieces, first_error_is_told)
