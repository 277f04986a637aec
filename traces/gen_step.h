/* SPDX-License-Identifier: Apache-2.0
 *
 * One pass of one layer of the generator under way. Internal to traces/gen_step.c and gen_take.c.
 */
#ifndef MOESIM_TRACES_GEN_STEP_H
#define MOESIM_TRACES_GEN_STEP_H

#include "traces/gen_layer.h"

typedef struct moesim_gen_step {
    moesim_gen_layer *l;
    const moesim_gen_shape *s;
    const moesim_gen_popularity *popularity;
    moesim_rng *rng;
    uint8_t need[MOESIM_GEN_MAX_BLOCK];    /* empty slots of a row, or slots that it is to give up */
    uint64_t open;                         /* rows with need > 0 */
    uint16_t must[MOESIM_GEN_MAX_BLOCK * 64u];   /* experts of the new A without a row */
    uint32_t musts;
    uint32_t earlier;                      /* of layer->left: before this pass */
    uint64_t forget;                       /* rows just committed that do not come back to what they held as masked ones */
    uint64_t fresh;                        /* rows that were masked in the pass before */
    uint64_t masked;                       /* rows that are still masked, and so meet each other in the same experts */
} moesim_gen_step;

/* The expert is no longer one of A. */
void moesim_gen_leave(moesim_gen_layer *layer, uint16_t e);

/* ---- what comes in (gen_take.c) ---- */

/* Lets n experts into A: with probability comeback one that left it earlier in the block. */
void moesim_gen_grow(moesim_gen_step *step, uint32_t n);

/* Like a trace: rows that do not forget turn to what they left last, as long as A has room for `room` more. Returns the room
 * that is left. */
uint32_t moesim_gen_turn_back(moesim_gen_step *step, uint32_t room);

/* Puts an expert of A into an empty slot of the row. */
void moesim_gen_put(moesim_gen_step *step, uint32_t row, uint16_t e);

/* Fills all slots: the experts that must have a row first. */
void moesim_gen_fill(moesim_gen_step *step);

#endif
