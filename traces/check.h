/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of the format for rows, checked as they pass through a cursor, and the widening of half precision. Pure functions.
 * Each check looks at n rows whose first has number `row`, first quickly at all of them together, then, only if something is
 * wrong, one by one for the first bad index.
 */
#ifndef MOESIM_TRACES_CHECK_H
#define MOESIM_TRACES_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "traces/trace.h"

/* What a check needs to know; name is the dataset's. */
typedef struct moesim_check {
    const moesim_trace_info *info;
    const char *name;
    uint64_t row;                /* number of the first row */
    uint64_t n;
    uint32_t inner[2];           /* inner dimensions, 1 and 1 for rank 1 */
} moesim_check;

typedef moesim_code moesim_check_fn(const moesim_check *check, const void *data, moesim_error *err);

moesim_check_fn moesim_check_expert;       /* uint16: below E or 65535, no id twice in a row and layer */
moesim_check_fn moesim_check_gate_half;    /* f16: finite, not negative */
moesim_check_fn moesim_check_gate_float;   /* f32: finite, not negative */
moesim_check_fn moesim_check_confidence;   /* f16: 0..1 or NaN */
moesim_check_fn moesim_check_prob;         /* f16: finite */
moesim_check_fn moesim_check_state;        /* uint8: 0..3 */
moesim_check_fn moesim_check_position;     /* int32: not negative */
moesim_check_fn moesim_check_residency;    /* uint8: 0..2 */

/* Exact widening of n half-precision values; NaN becomes quiet. The same bits on every machine. Buffers do not overlap. */
void moesim_widen_half(const uint16_t *in, float *out, size_t n);

/* The portable path of moesim_widen_half, for comparison in tests. */
void moesim_widen_half_scalar(const uint16_t *in, float *out, size_t n);

#endif
