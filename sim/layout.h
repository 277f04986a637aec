/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a decoded window: what is stored per step, row, event and active expert, given what the configurations declared.
 * Sizes follow from pass metadata alone, so the boundaries of windows are the same in every walk over the trace.
 */
#ifndef MOESIM_SIM_LAYOUT_H
#define MOESIM_SIM_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/window.h"

typedef struct moesim_layout {
    uint32_t layers, experts, top_k, words;
    uint32_t needs;              /* MOESIM_NEED_… */
    bool sets_only;              /* active sets alone: no lists, no rows (backward pass) */
    bool clairvoyant, touch, sequence, residency;
    bool gate, prob, previous;   /* stored per row */
} moesim_layout;

void moesim_layout_init(moesim_layout *layout, const moesim_trace_info *info, const moesim_window_params *params);

/* How much a window holds. entries: most active experts over its events. */
typedef struct moesim_extent {
    uint64_t steps, parts, rows, entries;
} moesim_extent;

/* Bytes of a window of that extent; SIZE_MAX where the number does not fit. */
size_t moesim_layout_bytes(const moesim_layout *layout, const moesim_extent *extent);

/* Adds a step of `rows` rows in `parts` passes if the sum stays within `limit` bytes; false (extent unchanged) otherwise. */
bool moesim_extent_add(const moesim_layout *layout, moesim_extent *extent, uint64_t rows, uint32_t parts, size_t limit);

/* Componentwise maximum into *most. */
void moesim_extent_max(moesim_extent *most, const moesim_extent *extent);

/* A window with its memory; arrays hold `most`. */
typedef struct moesim_buffer {
    moesim_window window;
    moesim_layout layout;
    moesim_extent most;
    uint32_t num_rows, num_members;      /* used so far */
    uint16_t *expert;            /* [rows][M][K] */
    float *gate;                 /* [rows][M][K] or NULL */
    float *prob;                 /* [rows][M][E] or NULL */
    uint16_t *previous;          /* [rows][M][K] or NULL */
    uint8_t *observed;           /* [rows][M][K] or NULL */
    const uint8_t **observed_row;
    float *lag, *own;            /* [rows] ψ(c) by the lag-1 rule and of the pass itself */
    int32_t *position;           /* [rows] */
    uint64_t *next_active;       /* [M][words] or NULL */
    size_t bytes;
} moesim_buffer;

moesim_code moesim_buffer_create(const moesim_layout *layout, const moesim_extent *most, moesim_buffer **out,
                                 moesim_error *err);
void moesim_buffer_destroy(moesim_buffer **buffer);
void moesim_buffer_clear(moesim_buffer *buffer);   /* back to an empty window */

#endif
