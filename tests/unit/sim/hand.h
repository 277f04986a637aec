/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows built by hand, without a trace: routes in, every array of moesim_window out, by plain loops that share nothing with
 * sim/build.c. For tests and benchmarks of the engine. Every helper dies rather than fail.
 */
#ifndef MOESIM_TESTS_UNIT_SIM_HAND_H
#define MOESIM_TESTS_UNIT_SIM_HAND_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sim.h"

/* A stream of steps. Arrays of routes are [steps][rows][layers][top_k]; every step has `rows` rows of one request. */
struct hand {
    uint32_t steps, layers, experts, rows, top_k;
    uint16_t *id;                /* MOESIM_NO_ROUTE until set */
    float *gate;                 /* 1/K until set */
    uint32_t *kind;              /* [steps] denoise until set */
    uint32_t *request;           /* [steps] 0 until set; ascending */
    uint8_t *input;              /* [steps][rows] class of the row: masked until set */
    float *before, *produced;    /* [steps][rows] confidence before and after: NaN until set */
    const double *class_weight;  /* [3][8] or NULL */
    uint64_t *expert_bytes;      /* [layers] 1000 until set */
    uint32_t warmup;             /* requests that are not counted */

    moesim_window window;        /* filled by hand_build */
    moesim_shape shape;
};

void hand_init(struct hand *h, uint32_t steps, uint32_t layers, uint32_t experts, uint32_t rows, uint32_t top_k);

/* Computes the window from the routes; again after changes. */
void hand_build(struct hand *h);
void hand_fini(struct hand *h);

/* [top_k] of a row. */
uint16_t *hand_ids(struct hand *h, uint32_t step, uint32_t row, uint32_t layer);

/* All layers of a step activate exactly the experts that the digits name ("013"); row 0 holds them all. */
void hand_set(struct hand *h, uint32_t step, const char *digits);

/* Random routes: a slot keeps its expert or, with chance `redraw`, draws one of a pool of `pool` experts of its layer, or with
 * chance `stray` any. A fifth of the pool changes every 12 steps. Gates, confidences and classes are random too. */
struct hand_law { uint32_t pool; double redraw, stray; };
void hand_random(struct hand *h, const struct hand_law *law, uint64_t seed);

/* Runs one configuration over the window; the caller releases *out. Without *err the failure is fatal. */
moesim_code hand_run(const struct hand *h, const moesim_run_params *params, const moesim_config *config, moesim_outcome *out,
                     moesim_error *err);

#endif
