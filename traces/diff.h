/* SPDX-License-Identifier: Apache-2.0
 *
 * Two traces, value by value: the core of `trace diff`. How they are stored (chunks, compression, gates as f16 or f32, byte
 * order of attributes) and where they came from (source_digest) does not count. Memory is bounded whatever their length. One
 * thread.
 */
#ifndef MOESIM_TRACES_DIFF_H
#define MOESIM_TRACES_DIFF_H

#include "traces/trace.h"

#define MOESIM_DIFF_ATTRIBUTES 18
#define MOESIM_DIFF_DATASETS 21

/* "" where the attribute is absent. */
typedef struct moesim_diff_attribute {
    const char *name;
    moesim_text a, b;
    bool differs;
} moesim_diff_attribute;

/* Entries that both have are compared, from the first on; of [M][·] columns none where the inner dimensions differ. */
typedef struct moesim_diff_dataset {
    const char *name;
    bool in_a, in_b;
    bool real;                   /* of real numbers, for which the tolerance holds */
    uint64_t dim_a[3], dim_b[3];
    uint32_t rank;               /* 1 or 3 */
    bool shapes_differ;
    uint64_t compared, differing;                 /* values */
    uint64_t first[3];                            /* index of the first that differs */
    char first_a[80], first_b[80];                /* its values, text in quotes; "" where none differs */
    double largest;                               /* of |a − b|, within the tolerance or not; NaN apart */
} moesim_diff_dataset;

typedef struct moesim_diff {
    moesim_diff_attribute attribute[MOESIM_DIFF_ATTRIBUTES];
    moesim_diff_dataset dataset[MOESIM_DIFF_DATASETS];   /* model, requests, passes, rows */
    bool differs;
} moesim_diff;

/* tolerance ≥ 0: gate scores, confidences and router scores that differ by no more count as equal. NaN equals NaN alone.
 * Every row that is compared is checked by the reader's rules; an offence is the error. */
moesim_code moesim_trace_diff(moesim_trace *a, moesim_trace *b, double tolerance, moesim_diff *out, moesim_error *err);

#endif
