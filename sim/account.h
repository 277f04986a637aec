/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run counts (semantics §2): sums per request, per layer and in total; the fate of every transfer; the histogram of
 * |A|/C.
 *
 * An event enters the tally of its step; at the end of the step the tally is charged to the requests that took part (equal
 * shares when steps are merged). A transfer belongs to the requests of the step that made it until it is hit or gone: those
 * of the present owner are `fresh` bits, those of earlier owners `old` bits with the owner's number per expert, so that the
 * hot loop needs bit operations alone. Nothing here allocates between two steps of the same requests.
 * One account belongs to one instance and is used by one thread at a time.
 */
#ifndef MOESIM_SIM_ACCOUNT_H
#define MOESIM_SIM_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/sim.h"

/* The requests that share what one step did: indexes into `request`, warm-up left out. */
typedef struct moesim_owner {
    uint32_t refs;               /* holders: the current step, the previous step, old bits; 0: free */
    uint32_t n;
    uint32_t capacity;
    uint32_t *index;
} moesim_owner;

#define MOESIM_NO_OWNER UINT32_MAX

/* One step, all layers. */
typedef struct moesim_tally {
    uint64_t active, hits, floor, over, moved, moved_bytes, cpu, prefetched, prefetched_bytes;
    uint64_t judged_used;        /* transfers of the previous step that are hit now */
    uint64_t unused;             /* transfers of the current owner that are gone */
    uint64_t used;               /* transfers hit for the first time */
    uint64_t evictions, insertions;
    double utilisation, ratio;   /* where layers have different slots */
} moesim_tally;

/* Counted events of one layer; what else is said of a layer follows from these. */
typedef struct moesim_layer_tally {
    uint64_t active, hits, moved, slots;
} moesim_layer_tally;

typedef struct moesim_account {
    uint32_t layers, experts, words;
    const uint64_t *expert_bytes;
    uint64_t *bits;              /* [M][3][words]: fresh, old, last (moved by the previous step) */
    uint32_t *owner_of;          /* [M][E] of old bits */
    uint64_t **histogram;        /* [M] of the layer's slots: [E + 1] counted events by |A| */
    moesim_layer_tally *layer;   /* [M] */
    uint64_t **by_slots;         /* [E + 1] histograms, made when a slot count first occurs */
    uint64_t mask;               /* all ones in a counted step, else 0 */
    uint32_t uniform;            /* slots of every layer, or UINT32_MAX where they differ */
    bool free_reload;            /* ideal bounds: a transfer has no fate */

    moesim_tally now;
    moesim_owner *owner;
    uint32_t num_owners;
    uint32_t current, previous;  /* owners of the fresh bits and of the previous counted step's transfers */
    uint64_t previous_moved;

    uint64_t first_request;      /* the first that is counted */
    moesim_sums total, *request;
    uint32_t num_requests, capacity;
    uint64_t evictions, insertions, accesses, hits, read_bytes, used;
} moesim_account;

/* Pieces come from the arena; requests and owners grow by themselves. first_request = request_begin + warmup. */
moesim_code moesim_account_init(moesim_account *a, moesim_arena *arena, const moesim_shape *shape, uint64_t first_request,
                                moesim_error *err);
void moesim_account_fini(moesim_account *a);

/* The slots of the layers from now on (NULL: none, scope global). */
moesim_code moesim_account_slots(moesim_account *a, moesim_arena *arena, const uint32_t *slots, moesim_error *err);

/* Room for requests below `num`, so that those without a pass appear too. */
moesim_code moesim_account_reserve(moesim_account *a, uint64_t num, moesim_error *err);

/* Around the events of a step. */
moesim_code moesim_account_begin(moesim_account *a, const moesim_window *window, const moesim_step *step,
                                 moesim_error *err);
void moesim_account_end(moesim_account *a, const moesim_window *window, const moesim_step *step);

/* Old transfers of a layer that were hit or evicted in this event (subsets of the old bits). */
void moesim_account_old(moesim_account *a, uint32_t layer, const uint64_t *hit, const uint64_t *gone);

/* A prefetch of `expert` landed; `evicted` experts of a layer left outside of an event. */
void moesim_account_landed(moesim_account *a, uint32_t layer, uint32_t expert);
void moesim_account_evicted(moesim_account *a, uint32_t layer, uint32_t expert);

/* Transfers neither hit nor gone. */
uint64_t moesim_account_pending(const moesim_account *a);

/* Smallest |A|/C whose cumulative share of the counted events reaches 95 %; NaN without events. */
moesim_code moesim_account_p95(const moesim_account *a, double *out, moesim_error *err);

#endif
