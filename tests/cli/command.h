/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of the moesim program from Check tests, and a way into its JSON. Whatever cannot be done fails the test, so a caller
 * never has to check. What a function returns lasts until the test ends. Not thread-safe.
 */
#ifndef MOESIM_TESTS_CLI_COMMAND_H
#define MOESIM_TESTS_CLI_COMMAND_H

#include <check.h>
#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct test_command {
    int status;                  /* exit status as a shell gives it: 128 + number for a signal */
    const char *out, *err;       /* what it printed */
};

/* The whole of a main(): runs the tests with argv[1] as the program and argv[2] as the folder of the sources, each in a process
 * and an empty folder of its own; returns the exit status. */
int test_command_main(const char *name, int argc, char **argv, const TTest *const *tests, size_t n);

/* A line for /bin/sh, in which "$MOESIM", "$SAMPLE" and "$WORK" (the empty folder) can be used. */
struct test_command test_shell(const char *fmt, ...) MOESIM_PRINTF(1, 2);

/* A line for the same shell in $WORK that must succeed and say nothing on standard error; returns what it printed. */
const char *succeed(const char *line);

/* `moesim run SAMPLE --format json` with further words; it must succeed. */
json_t *test_run_json(const char *words);

/* JSON text that must be one object. */
json_t *test_json_parse(const char *text);

/* The value at a path as "results/0/ci/hit_rate", which must be there, and be a number, a string, … */
json_t *test_json_at(const json_t *root, const char *fmt, ...) MOESIM_PRINTF(2, 3);
double test_json_number(const json_t *root, const char *fmt, ...) MOESIM_PRINTF(2, 3);
json_int_t test_json_whole(const json_t *root, const char *fmt, ...) MOESIM_PRINTF(2, 3);
const char *test_json_text(const json_t *root, const char *fmt, ...) MOESIM_PRINTF(2, 3);
bool test_json_bool(const json_t *root, const char *fmt, ...) MOESIM_PRINTF(2, 3);

#endif
