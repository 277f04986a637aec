/* SPDX-License-Identifier: Apache-2.0
 *
 * What each sweep alone would have given. Constants that are small differences of large times move most when a machine does
 * not do the same twice, and no residual of theirs tells: all their points move together.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "hwprofile/fit.h"

#define LEAST_SECONDS 2e-6       /* less is little beside an event, which takes 50 us and more */

/* The points of one sweep as if there were no other (a fit begins with the points of sweep 0); samples are shared. */
static moesim_code fit_sweep(const moesim_raw *raw, const moesim_fit_options *options, uint32_t sweep, moesim_profile *out,
                             moesim_error *err)
{
    moesim_raw one = *raw;
    void *points = NULL;
    if (moesim_alloc(raw->num_points, sizeof *one.point, "the points of a sweep", &points, err) != MOESIM_OK)
        return err->code;
    one.point = points;
    one.num_points = 0;
    for (size_t i = 0; i < raw->num_points; i++) {
        if (raw->point[i].sweep == sweep) {
            one.point[one.num_points] = raw->point[i];
            one.point[one.num_points++].sweep = 0;
        }
    }
    const moesim_code code = moesim_fit(&one, options, out, err);
    free(points);
    return code;
}

moesim_code moesim_fit_sweeps(const moesim_raw *raw, const moesim_fit_options *options, moesim_fit_gap *gap, size_t *n,
                              moesim_error *err)
{
    static moesim_profile sweep[2];              /* too large for comfort on a stack */
    moesim_profile_row a, b;
    *n = 0;
    for (uint32_t i = 0; i < 2; i++)
        if (fit_sweep(raw, options, i, &sweep[i], err) != MOESIM_OK)
            return err->code;
    for (size_t i = 0; moesim_profile_get_row(&sweep[0], i, &a) && moesim_profile_get_row(&sweep[1], i, &b); i++) {
        const double x = a.constant->value, y = b.constant->value, apart = fabs(x - y);
        const bool time = a.unit[0] == 's';
        if (*n < MOESIM_FIT_GAPS && apart > MOESIM_FIT_RESIDUAL * (x + y) &&
            (!time || apart > LEAST_SECONDS))
            gap[(*n)++] = (moesim_fit_gap){ .key = a.key, .unit = a.unit, .value = { x, y } };
    }
    return MOESIM_OK;
}
