/* SPDX-License-Identifier: Apache-2.0
 *
 * From raw samples to a hardware profile (library `fit`, with sim/stats the only user of GSL). Every constant comes with
 * samples, spread and residual; how each one is worked out is in hwprofile/PROFILE.md, section "Fitting".
 */
#ifndef MOESIM_HWPROFILE_FIT_H
#define MOESIM_HWPROFILE_FIT_H

#include <stdbool.h>

#include "base/digest.h"
#include "hwprofile/profile.h"
#include "hwprofile/raw.h"

#define MOESIM_FIT_RESIDUAL 0.10         /* above it a fit is warned of */

typedef struct moesim_fit_options {
    const char *name;                    /* of the profile: letters, digits, '.', '_', '-' */
    const char *path;                    /* of the raw file, for messages and the profile's path */
    const char *digest;                  /* SHA-256 of the raw file; NULL: none is recorded */
    uint32_t threads;                    /* of the CPU; 0: all that were measured */
    uint32_t rows;                       /* of an event, for what depends on them; 0: 16. The nearest measured number counts */
    bool copies_of_events;               /* link.alpha so that a copy takes what it takes within events */
} moesim_fit_options;

/* FORMAT errors name the file, what is missing and the remedy: too few points, thread counts that were not measured, and
 * constants that contradict each other (moesim_profile_check). */
moesim_code moesim_fit(const moesim_raw *raw, const moesim_fit_options *options, moesim_profile *out, moesim_error *err);

/* A constant that the two sweeps alone would have put apart: each more than MOESIM_FIT_RESIDUAL from the mean of both, and
 * times more than 2 µs from each other. Tables are left out; their residual is that of the sweeps. */
typedef struct moesim_fit_gap {
    const char *key, *unit;              /* unit: "s" or "B/s" */
    double value[2];
} moesim_fit_gap;

#define MOESIM_FIT_GAPS 32u              /* room that gap needs: more than a profile has constants */

/* After moesim_fit with the same arguments. FORMAT: a sweep alone gives no profile; NOMEM; *n is 0 then. One thread at a
 * time. */
moesim_code moesim_fit_sweeps(const moesim_raw *raw, const moesim_fit_options *options, moesim_fit_gap *gap, size_t *n,
                              moesim_error *err);

#endif
