/* SPDX-License-Identifier: Apache-2.0
 *
 * From the routes of a step to its events: active set, list, and the declared reductions (OLED-MoE §4.3 for the confidence
 * weighted gate mass; semantics §5, §6). Sums are in double, rows in order, then slots; gates as stored, widened exactly.
 */
#ifndef MOESIM_SIM_BUILD_H
#define MOESIM_SIM_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/kernels.h"
#include "sim/layout.h"

typedef struct moesim_builder {
    const moesim_kernels *kernels;
    const double *class_weight;  /* [3][8] or NULL */
    bool unnormalised;           /* divide each gate by its row's sum */
    uint64_t touches;            /* serial number of the last touch so far */
    struct moesim_sum *sum;      /* [E] sums of the event being built; all 0 between events */
} moesim_builder;

/* class_weight is borrowed. */
moesim_code moesim_builder_create(const moesim_window_params *params, const moesim_trace_info *info, moesim_builder **out,
                                  moesim_error *err);
void moesim_builder_destroy(moesim_builder **builder);

/* Fills every event of step `index` of the buffer, whose rows (row .. row + num_rows) are in place. Steps in order. */
void moesim_build_step(moesim_builder *builder, moesim_buffer *buffer, uint32_t index);

#endif
