/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells made by hand: a few passes, times in milliseconds.
 */
#ifndef MOESIM_TESTS_UNIT_STUDY_CELLS_H
#define MOESIM_TESTS_UNIT_STUDY_CELLS_H

#include "study/fidelity.h"

#define MOST_CELLS 16u
#define MOST_EVENTS 64u
#define MOST_REPEATS 4u

typedef struct cells {
    moesim_fidelity_input in;
    moesim_fidelity_pass pass[MOST_EVENTS];
    moesim_fidelity_cell cell[MOST_CELLS];
    double tokens[8];
    double predicted[MOST_CELLS][MOESIM_VARIANTS][MOST_EVENTS];
    uint32_t measured[MOST_CELLS][MOST_REPEATS][MOST_EVENTS], busy[MOST_CELLS][MOST_REPEATS][MOST_EVENTS];
    const uint32_t *measured_of[MOST_CELLS][MOST_REPEATS], *busy_of[MOST_CELLS][MOST_REPEATS];
    uint16_t misses[MOST_CELLS][MOST_EVENTS];
    uint8_t bound[MOST_CELLS][MOST_EVENTS];
    uint64_t bytes[MOST_CELLS][MOST_EVENTS];
} cells;

/* `passes` passes of `layers` events, all counted, of `requests` requests in equal parts with one token each. */
static inline void cells_init(cells *c, uint32_t layers, uint32_t passes, uint32_t requests)
{
    *c = (cells){.in = {.num_layers = layers, .num_passes = passes, .num_requests = requests, .seed = 1}};
    c->in.pass = c->pass;
    c->in.cell = c->cell;
    c->in.output_tokens = c->tokens;
    for (uint32_t p = 0; p < passes; p++)
        c->pass[p] = (moesim_fidelity_pass){.request = p * requests / passes};
    for (uint32_t r = 0; r < requests; r++)
        c->tokens[r] = 1;
}

/* Every event predicted and measured alike, in ms; returns the cell's number. */
static inline size_t cells_add(cells *c, const char *policy, uint32_t cache, uint32_t repeats, double predicted,
                               double measured)
{
    const size_t i = c->in.num_cells++;
    for (size_t r = 0; r < MOST_REPEATS; r++) {
        c->measured_of[i][r] = c->measured[i][r];
        c->busy_of[i][r] = c->busy[i][r];
        for (size_t e = 0; e < MOST_EVENTS; e++)
            c->measured[i][r][e] = (uint32_t)(measured * 1e6 + 0.5);
    }
    c->cell[i] = (moesim_fidelity_cell){
        .policy = policy, .cache = cache, .repeats = repeats, .same_decisions = true, .measured = c->measured_of[i],
        .busy_link = c->busy_of[i], .misses = c->misses[i], .link_bound = c->bound[i], .bytes = c->bytes[i], .link_rate = 1e9,
    };
    for (size_t v = 0; v < MOESIM_VARIANTS; v++) {
        for (size_t e = 0; e < MOST_EVENTS; e++)
            c->predicted[i][v][e] = predicted * 1e-3;
        c->cell[i].predicted[v] = c->predicted[i][v];
    }
    return i;
}

static inline size_t cells_reference(cells *c, uint32_t repeats, double predicted, double measured)
{
    const size_t i = cells_add(c, "full", 256, repeats, predicted, measured);
    c->cell[i].reference = true;
    return i;
}

#endif
