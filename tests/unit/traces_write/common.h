/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the writing side share. Every helper ends the test by a failed check where it cannot do its job.
 */
#ifndef MOESIM_TESTS_TRACES_WRITE_COMMON_H
#define MOESIM_TESTS_TRACES_WRITE_COMMON_H

#include <check.h>
#include <stdlib.h>

#include "tests/support/support.h"

/* Names in the test's folder, "." and ".." apart. */
size_t count_entries(void);

/* Whole file; the caller frees. */
unsigned char *slurp(const char *path, size_t *bytes);
void spill(const char *path, const void *data, size_t bytes);
bool same_bytes(const char *a, const char *b);

/* Every column of both traces agrees, bit for bit; layers [layer_begin, …) of a against all of b, b's requests being those of a
 * from request_begin on. */
void check_same_content(const char *a, const char *b, uint32_t layer_begin, uint32_t request_begin);

/* A trace with every optional column, several requests, empty passes and dummy passes. */
void rich_trace(struct test_trace *t, uint64_t seed);

/* The code and a part of the text; clears *err. */
void check_error(moesim_error *err, moesim_code code, const char *part);

/* A write beyond this many bytes fails with EFBIG, as a full disk does with ENOSPC. */
void limit_file_size(uint64_t bytes);
void unlimit_file_size(void);

int run_suite(Suite *suite);

#endif
