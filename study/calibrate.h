/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits at most three constants of a profile to cells that are then left out of the test: the link's bandwidth and the CPU
 * table by one factor each, and the fixed time of an event. Everything else stays as it was measured.
 */
#ifndef MOESIM_STUDY_CALIBRATE_H
#define MOESIM_STUDY_CALIBRATE_H

#include "hwprofile/profile.h"
#include "sim/costing.h"
#include "study/predict.h"

/* One cell to fit on. */
typedef struct moesim_calibration_cell {
    const moesim_works *works;
    double bandwidth;            /* B/s of the link; 0: the profile's */
    uint32_t repeats;
    const uint32_t *const *measured;     /* [repeats][events] ns */
} moesim_calibration_cell;

typedef struct moesim_calibration {
    double link, cpu;            /* factors of the bandwidth and of the CPU table's seconds, 0.5 .. 2 */
    double sync;                 /* s, 0.1 us .. 10 ms */
    bool fitted_cpu;             /* an expert ran on the CPU in some cell */
    double before, after;        /* mean of the loss over the passes of the cells */
} moesim_calibration;

/* Minimises Σ over passes of √(1 + (x / 0.02)²) − 1, x = ln(measured / predicted), the measured time being the mean over
 * repeats: quadratic for errors of a few percent, linear beyond. params->profile is what is started from. NOMEM, USAGE (no
 * cell with a measured time). */
moesim_code moesim_calibrate(const moesim_costing_params *params, const moesim_calibration_cell *cell, size_t num_cells,
                             moesim_calibration *out, moesim_error *err);

/* The profile with the constants of a calibration; bandwidth (0: the profile's) is scaled as the link is. */
void moesim_calibration_apply(const moesim_calibration *calibration, moesim_profile *profile, double *bandwidth);

#endif
