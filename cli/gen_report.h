/* SPDX-License-Identifier: Apache-2.0
 *
 * Targets of a generated trace beside what was achieved.
 */
#ifndef MOESIM_CLI_GEN_REPORT_H
#define MOESIM_CLI_GEN_REPORT_H

#include "traces/gen.h"

/* Prints the line on what was written. */
void moesim_gen_print_file(const moesim_trace_info *info, uint64_t seed);

/* Prints the table. by_confidence: stability has its targets by confidence bin, else by state. */
void moesim_gen_print(const moesim_gen_config *config, const moesim_trace_stats *stats, bool by_confidence);

#endif
