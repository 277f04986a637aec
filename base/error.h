/* SPDX-License-Identifier: Apache-2.0
 *
 * One error enum and one message that travels up. Libraries return; only cli/ prints and exits.
 * A message names the file, the place, the rule and the remedy, and is complete enough to print as is.
 */
#ifndef MOESIM_BASE_ERROR_H
#define MOESIM_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

typedef enum moesim_code {
    MOESIM_OK = 0,
    MOESIM_E_USAGE,       /* the call's words cannot take effect; exit status 2 */
    MOESIM_E_IO,          /* the system refused (open, write, full disk) */
    MOESIM_E_FORMAT,      /* a file breaks a rule of its format */
    MOESIM_E_NOMEM,       /* allocation failed */
    MOESIM_E_LIMIT,       /* would need more than an allowed amount; the message says how to raise it */
    MOESIM_E_POLICY,      /* a policy broke its contract */
    MOESIM_E_INTERRUPTED, /* SIGINT or SIGTERM */
    MOESIM_E_INTERNAL,    /* a bug of ours */
    MOESIM_E_ABSENT       /* the asked device is not in this machine; exit status 77, which tests take for "skipped" */
} moesim_code;

/* Caller-owned; text is "" and code MOESIM_OK on success of whoever was handed it. */
typedef struct moesim_error {
    moesim_code code;
    char text[1024];
} moesim_error;

#define MOESIM_ERROR_INIT { MOESIM_OK, "" }

#if defined(__GNUC__)
#define MOESIM_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define MOESIM_PRINTF(a, b)
#endif

/* Fills *err (may be NULL) and returns code, so that `return moesim_fail(err, …)` reads well. Long text is cut with "…". */
moesim_code moesim_fail(moesim_error *err, moesim_code code, const char *fmt, ...) MOESIM_PRINTF(3, 4);

/* Puts "prefix: " before the text of an error on its way up; returns err->code. */
moesim_code moesim_fail_prefix(moesim_error *err, const char *fmt, ...) MOESIM_PRINTF(2, 3);

/* Shorthand for an allocation that failed: names what and how many bytes. */
moesim_code moesim_fail_nomem(moesim_error *err, const char *what, size_t bytes);

/* 0, 1, 2 or 77. */
int moesim_exit_status(moesim_code code);

#endif
