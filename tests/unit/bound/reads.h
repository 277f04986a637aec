/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds of a trace file for tests: opening, costs as plain numbers.
 */
#ifndef MOESIM_TESTS_BOUND_READS_H
#define MOESIM_TESTS_BOUND_READS_H

#include "sim/bound.h"
#include "tests/support/support.h"

/* Opens a trace and its bound; dies where it cannot. */
moesim_bound *bound_read(const char *path, uint64_t warmup, uint32_t batch);

/* The same with a limit; the code and message of moesim_bound_open. */
moesim_code bound_try_read(const char *path, size_t memory, moesim_bound **out, moesim_error *err);

/* cpu_s[kinds][M] from cpu[layer][tokens]; the caller frees. */
double *bound_cpu(const moesim_bound *bound, const double *cpu, size_t tokens);

/* moesim_bound_solve; dies where it fails. */
moesim_offline_cost bound_solve(const moesim_bound *bound, const double *h2d, const double *cpu, uint32_t cache,
                                enum moesim_paths paths);

#endif
