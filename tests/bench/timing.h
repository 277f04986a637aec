/* SPDX-License-Identifier: Apache-2.0
 *
 * What benchmarks of one thread share: its own processor time, and an end with a message where something fails.
 */
#ifndef MOESIM_TESTS_BENCH_TIMING_H
#define MOESIM_TESTS_BENCH_TIMING_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"

static inline double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);   /* other work on the machine does not count */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void bench_must(moesim_code code, const moesim_error *err)
{
    if (code != MOESIM_OK) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, err->text);
        exit(1);
    }
}

#endif
