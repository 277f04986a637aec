/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace gen --like: a trace that is like a given one.
 */
#ifndef MOESIM_CLI_GEN_LIKE_H
#define MOESIM_CLI_GEN_LIKE_H

#include "traces/gen_like.h"

/* Measures the trace at `path`: shape, sizes and statistics in *config and stats [MOESIM_GEN_GROUPS]; the caller may change
 * lengths, workloads and seed, and releases both (moesim_gen_like_release) whatever the outcome. `out` may not be the trace. */
moesim_code moesim_gen_like_read(const char *path, bool old_format, const char *out, moesim_gen_config *config,
                                 moesim_trace_stats *stats, moesim_error *err);

/* Prints the two-sample check of the file at `out`. A statistic that is apart is MOESIM_E_FORMAT; the file stays. */
moesim_code moesim_gen_like_check(const char *out, const moesim_gen_config *config, const moesim_trace_stats *stats,
                                  moesim_error *err);

void moesim_gen_like_release(moesim_gen_config *config, moesim_trace_stats *stats);

#endif
