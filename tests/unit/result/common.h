/* SPDX-License-Identifier: Apache-2.0
 *
 * A small result that the tests write, damage, merge and compare.
 */
#ifndef MOESIM_TESTS_UNIT_RESULT_COMMON_H
#define MOESIM_TESTS_UNIT_RESULT_COMMON_H

#include <check.h>

#include "sim/result.h"

enum { SAMPLE_CELLS = 8, SAMPLE_REQUESTS = 25, SAMPLE_LAYERS = 3 };

/* Fails the test where code is not MOESIM_OK. */
#define OK(call) ck_assert_msg((call) == MOESIM_OK, "%s", err.text)

/* 8 cells: policy lru or oled, cache 20 or 40, bandwidth 16 or 64 GB/s, in this order from the fastest index. Without a shard
 * ("" for none) all of them, in shard "i/n" each n-th from i − 1 on. Request r of cell c has output_tokens 32 + r, passes 20,
 * misses 400 − 30·c + 7·(r mod 5) + extra[r], and tpot_ms 5 + misses/100. extra may be NULL. */
void sample_result(moesim_result *r, const char *shard, const double *extra);

/* The same, written to a file. */
void write_sample(const char *path, const char *shard, const double *extra);

/* Misses of a request of a cell in that sample, without extra. */
double sample_misses(int cell, int request);

#endif
