/* SPDX-License-Identifier: Apache-2.0
 *
 * How long something takes: a clock that never goes back, from a beginning that means nothing. Thread-safe.
 */
#ifndef MOESIM_BASE_CLOCK_H
#define MOESIM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t moesim_clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline double moesim_clock_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
