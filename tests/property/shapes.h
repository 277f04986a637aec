/* SPDX-License-Identifier: Apache-2.0
 *
 * Random shapes and run parameters for the property tests.
 */
#ifndef MOESIM_TESTS_SHAPES_H
#define MOESIM_TESTS_SHAPES_H

#include "tests/support/support.h"

/* Experts 1..1024 (mostly few), top-k 1..64, block length 1..6, 1..4 requests; every irregularity that a trace may hold. */
struct test_shape property_shape(moesim_rng *rng);

/* Defaults with a random warm-up, range of requests and, where the trace has no forward numbers, batch. */
moesim_run_params property_params(moesim_rng *rng, const struct test_shape *shape);

/* Prints what a failing case needs to be repeated. */
const char *property_case(uint64_t seed, const struct test_shape *shape, const moesim_run_params *params);

/* Runs the one test function of a program: argv = [SEEDS [FIRST_SEED]]. Returns the exit status. */
struct TTest;
int property_main(int argc, char **argv, const char *name, const struct TTest *test, uint64_t default_seeds);
extern uint64_t property_seeds, property_first;

#endif
