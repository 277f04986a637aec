/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded generator: xoshiro256** seeded through splitmix64 (Blackman, Vigna). The same bytes on every machine; never seeded
 * from a clock. Not for security.
 */
#ifndef MOESIM_BASE_RNG_H
#define MOESIM_BASE_RNG_H

#include <stdint.h>

typedef struct moesim_rng { uint64_t s[4]; } moesim_rng;

void moesim_rng_seed(moesim_rng *r, uint64_t seed);
uint64_t moesim_rng_u64(moesim_rng *r);
double moesim_rng_real(moesim_rng *r);                    /* [0, 1), 53 bits */
uint32_t moesim_rng_below(moesim_rng *r, uint32_t n);     /* [0, n), unbiased; n > 0 */

#endif
