/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of the fit share: the samples of the fake machine and the profile that comes of them.
 */
#ifndef MOESIM_TESTS_UNIT_MEASURE_FITTING_H
#define MOESIM_TESTS_UNIT_MEASURE_FITTING_H

#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/unit/base/runner.h"
#include "tests/unit/measure/fake.h"

#include "hwprofile/fit.h"

static moesim_raw raw;
static moesim_profile profile;

static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static const moesim_fit_options options = { .name = "fake", .path = "raw.h5", .digest = digest };

static inline void fit_ok(const moesim_fit_options *o)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_fit(&raw, o, &profile, &err) == MOESIM_OK, "%s", err.text);
}

static inline void near(const char *what, double value, double wanted, double share)
{
    ck_assert_msg(fabs(value - wanted) <= share * wanted, "%s: %.9g, wanted %.9g", what, value, wanted);
}

/* Takes every point away that `out` picks. */
static inline void without(bool (*out)(const moesim_raw_point *p))
{
    size_t n = 0;
    for (size_t i = 0; i < raw.num_points; i++)
        if (!out(&raw.point[i]))
            raw.point[n++] = raw.point[i];
    raw.num_points = n;
}

#endif
