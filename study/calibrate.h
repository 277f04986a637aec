/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits at most four constants of a profile to cells that are then left out of the test: the fixed time of an event, the
 * GPU's table (with gpu.moved, which is of its kind), the link's bandwidth and the CPU table, by one factor each. Everything
 * else stays as it was measured.
 *
 * They trade against each other where an event depends on several of them, so each is fitted alone, in this order, on
 * the counted events of the cells that tell it, with what was fitted before:
 *   sync   events without misses
 *   gpu    events with copies and no CPU expert that the GPU is predicted to compute in for at least 3/4 of their time, the
 *          link to copy in for at most half of that, both before anything is fitted to them: a GPU that looks slower would
 *          take events from the link
 *   link   other events with copies and no CPU expert, of which copies are predicted to take more than half
 *   cpu    events with CPU experts whose CPU path is predicted to be the longest, and to lose at most 5 % to sharing DRAM
 *          (beside copies that fill DRAM with it a faster CPU slows the link: such events tell DRAM, not the table)
 * The factor is the one with which the median of ln(measured / predicted) over these events and all repeats is 0. A constant
 * that no such event tells, or that would leave 0.5 .. 2 times what was measured, stays as it was measured.
 */
#ifndef MOESIM_STUDY_CALIBRATE_H
#define MOESIM_STUDY_CALIBRATE_H

#include "hwprofile/profile.h"
#include "sim/costing.h"
#include "study/predict.h"

#define MOESIM_CALIBRATION_FACTOR 2.0    /* a factor lies within 1/this and this */
#define MOESIM_CALIBRATION_EVENTS 50u    /* fewer events tell nothing */

enum moesim_calibrated {
    MOESIM_CALIBRATED_SYNC, MOESIM_CALIBRATED_GPU, MOESIM_CALIBRATED_LINK, MOESIM_CALIBRATED_CPU, MOESIM_CALIBRATED_CONSTANTS
};

enum moesim_calibration_state {
    MOESIM_CALIBRATION_FITTED,
    MOESIM_CALIBRATION_FEW,      /* fewer than MOESIM_CALIBRATION_EVENTS events tell it, or none */
    MOESIM_CALIBRATION_DULL,     /* over all of its range it changes them by less than 5 % */
    MOESIM_CALIBRATION_BOUND     /* the fit ran to a bound */
};

/* One cell to fit on. */
typedef struct moesim_calibration_cell {
    const moesim_works *works;
    double bandwidth;            /* B/s of the link; 0: the profile's */
    uint32_t repeats;
    const uint32_t *const *measured;     /* [repeats][events] ns; 0: no time */
} moesim_calibration_cell;

typedef struct moesim_calibration_part {
    enum moesim_calibration_state state;
    size_t events;               /* that tell it, with the constants at the end */
} moesim_calibration_part;

typedef struct moesim_calibration {
    double gpu, link, cpu;       /* factors of the GPU's seconds, the bandwidth, the CPU table's seconds; 1: as measured */
    double sync;                 /* s */
    moesim_calibration_part part[MOESIM_CALIBRATED_CONSTANTS];
    double before, after;        /* Σ over counted passes of √(1 + (x / 0.02)²) − 1, x = ln(measured / predicted) with the mean
                                  * over repeats, / passes: what the cells as a whole make of it */
} moesim_calibration;

/* params->profile is what is started from. NOMEM, USAGE (no cell with a measured time). */
moesim_code moesim_calibrate(const moesim_costing_params *params, const moesim_calibration_cell *cell, size_t num_cells,
                             moesim_calibration *out, moesim_error *err);

/* The profile with the constants of a calibration; bandwidth (0: the profile's) is scaled as the link is. */
void moesim_calibration_apply(const moesim_calibration *calibration, moesim_profile *profile, double *bandwidth);

#endif
