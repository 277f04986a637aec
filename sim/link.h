/* SPDX-License-Identifier: Apache-2.0
 *
 * The link from host to device as far as prefetches use it: one FIFO copy engine, a list of copies that have not started in
 * falling priority, the one in flight, and what has landed. Demand copies go first; a copy that has started finishes.
 * Time is passed in as spans and remainders, never as a date, so that long runs lose no digits.
 * One thread at a time. Nothing allocates after init.
 */
#ifndef MOESIM_SIM_LINK_H
#define MOESIM_SIM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/executor.h"

/* Everything that changes; a copy of it (with the arrays shared) lets a what-if run go ahead: landings behind num_landed are
 * nobody's. */
typedef struct moesim_link {
    double alpha;                /* s per copy */
    const double *stream_s;      /* [M] seconds a copy streams */
    double left;                 /* s that the copy in flight still takes, alone; its last `stream` of them stream */
    double stream;
    moesim_landed flying;        /* valid while busy */
    bool busy, paused;
    uint32_t capacity, num_layers;
    uint32_t head, n;            /* unstarted: list[head, n) */
    uint32_t num_landed;
    moesim_landed *list;         /* [capacity] */
    moesim_landed *landed;       /* [capacity + 1] in the order of landing */
    uint32_t *asked;             /* [M] copies of the layer in the list in force, started ones included */
} moesim_link;

/* capacity 0: no prefetches, no memory. alpha and stream_s outlive the link. */
moesim_code moesim_link_init(moesim_link *k, uint32_t capacity, uint32_t num_layers, double alpha, const double *stream_s,
                             moesim_error *err);
void moesim_link_fini(moesim_link *k);

/* Nothing in flight and nothing that may start. */
static inline bool moesim_link_idle(const moesim_link *k) { return !k->busy && (k->paused || k->head == k->n); }

/* A new list of copies that have not started; entries over the capacity and the one in flight are left out. */
void moesim_link_replace(moesim_link *k, const moesim_landed *entry, uint32_t n);

/* Takes experts of a layer out of the list: their demand copies make them useless. */
void moesim_link_drop(moesim_link *k, uint32_t layer, const uint16_t *expert, uint32_t n);

/* Starts the next copy on a link that is free; false: none may start (none is asked for, paused, or landings nobody fetched
 * fill their list). */
bool moesim_link_start(moesim_link *k);

/* The copy in flight is complete: it has landed, or (take) an event waited for it and has it. */
void moesim_link_land(moesim_link *k);
void moesim_link_take(moesim_link *k);

/* Prefetches alone for `span` seconds; a copy that ends with the span has landed, none starts at its end. Returns the seconds
 * the link worked. */
double moesim_link_run(moesim_link *k, double span);

/* Landings in order, at most n. */
uint32_t moesim_link_landed(moesim_link *k, moesim_landed *out, uint32_t n);

/* As bytes. restore refuses what cannot be. */
size_t moesim_link_state_bytes(const moesim_link *k);
void moesim_link_save(const moesim_link *k, void *out);
bool moesim_link_restore(moesim_link *k, const void *in);

#endif
