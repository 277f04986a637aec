/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of devices share.
 */
#ifndef MOESIM_TESTS_UNIT_DEVICE_DEVICE_H
#define MOESIM_TESTS_UNIT_DEVICE_DEVICE_H

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "tests/unit/base/runner.h"

/* ‖got − want‖ / ‖want‖ over rows·hidden values; infinite where any is no number. */
static inline double device_error(const float *got, const double *want, size_t rows, size_t hidden)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < rows * hidden; i++) {
        if (!isfinite(got[i]))
            return INFINITY;
        off += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        all += want[i] * want[i];
    }
    return sqrt(off / all);
}

/* Is nothing written from value `begin` on? Poison is NaN. */
static inline bool device_untouched(const float *y, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (!isnan(y[i]))
            return false;
    return true;
}

#endif
