/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of trace merge: what the headers of parts have in common, and the header of the merged trace.
 */
#ifndef MOESIM_TRACES_MERGE_HEADER_H
#define MOESIM_TRACES_MERGE_HEADER_H

#include "traces/merge.h"

typedef struct moesim_merge_part {
    const char *path;
    moesim_trace_info info;      /* with its digest */
    uint64_t forward_min, forward_max;
    uint64_t forward_shift;
    uint32_t first_request;
} moesim_merge_part;

/* MOESIM_E_FORMAT where the header of `part` does not go with that of an earlier part. any_model: model_id may differ. */
moesim_code moesim_merge_check(const moesim_merge_part *first, const moesim_merge_part *part, bool any_model,
                               moesim_error *err);

/* "A and B do not go together: what", with the rule and the remedy: for the arrays of /model. */
moesim_code moesim_merge_refuse(const moesim_merge_part *first, const moesim_merge_part *part, moesim_error *err,
                                const char *fmt, ...) MOESIM_PRINTF(4, 5);

/* The merged header of n ≥ 1 parts that passed the check; source_digest stays "". */
void moesim_merge_header(const moesim_merge_part *part, size_t n, const moesim_merge_options *options,
                         moesim_trace_info *out);

#endif
