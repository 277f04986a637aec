/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops of bookkeeping, inline so that they are compiled for each instruction set with the event steps that use
 * them and unrolled where `words` is a constant. Sets are [words] bitsets of one layer.
 */
#ifndef MOESIM_SIM_SETTLE_H
#define MOESIM_SIM_SETTLE_H

#include "base/bits.h"
#include "sim/account.h"

#define MOESIM_INLINE static inline __attribute__((always_inline))

#define MOESIM_MAX_WORDS 16u

/* Names of functions that are compiled once per instruction set. */
#ifndef MOESIM_VARIANT
#define MOESIM_VARIANT base
#endif
#define MOESIM_PASTE2(a, b) a##_##b
#define MOESIM_PASTE(a, b) MOESIM_PASTE2(a, b)
#define MOESIM_V(name) MOESIM_PASTE(name, MOESIM_VARIANT)

MOESIM_INLINE uint32_t moesim_pop(uint64_t w)
{
    return (uint32_t)__builtin_popcountll(w);
}

/* Counts one event: |A|, hits, misses moved and on the CPU, against the layer's slots. */
MOESIM_INLINE void moesim_tally_event(moesim_account *a, uint32_t layer, uint32_t slots, uint32_t active, uint32_t hits,
                                      uint32_t moved)
{
    moesim_tally *t = &a->now;
    t->active += active;
    t->hits += hits;
    t->moved += moved;
    t->moved_bytes += moved * a->expert_bytes[layer];
    t->floor += active > slots ? active - slots : 0;
    t->over += active > slots;
    a->histogram[layer][active] += a->mask & 1u;
    moesim_layer_tally *of = &a->layer[layer];
    of->active += active & a->mask;
    of->hits += hits & a->mask;
    of->moved += moved & a->mask;
    of->slots += slots & a->mask;
    if (a->uniform == UINT32_MAX && slots != 0) {
        t->utilisation += (double)hits / slots;
        t->ratio += (double)active / slots;
    }
}

/* Residency of a layer changes from `before` to `keep`: what became of transfers, and of the misses `moved` by this event. */
MOESIM_INLINE void moesim_settle(moesim_account *a, uint32_t layer, uint32_t words, const uint64_t *active,
                                 const uint64_t *before, const uint64_t *moved, const uint64_t *keep)
{
    uint64_t *fresh = a->bits + (size_t)layer * 3u * words, *old = fresh + words, *last = old + words;
    uint64_t old_hit[MOESIM_MAX_WORDS], old_gone[MOESIM_MAX_WORDS], any_old = 0;
    uint32_t evictions = 0, insertions = 0, judged = 0, used = 0, unused = 0;
    for (uint32_t i = 0; i < words; i++) {
        const uint64_t hit = active[i] & before[i], gone = before[i] & ~keep[i], counted = moved[i] & a->mask;
        const uint64_t open = fresh[i] & ~hit;
        evictions += moesim_pop(gone);
        insertions += moesim_pop(keep[i] & ~before[i]);
        judged += moesim_pop(last[i] & hit);
        used += moesim_pop(fresh[i] & hit);
        unused += moesim_pop((open & gone) | (counted & ~keep[i]));
        last[i] = counted;
        fresh[i] = (open & ~gone) | (counted & keep[i]);
        old_hit[i] = old[i] & hit;
        old_gone[i] = old[i] & ~hit & gone;
        any_old |= old_hit[i] | old_gone[i];
    }
    a->now.evictions += evictions;
    a->now.insertions += insertions;
    a->now.judged_used += judged;
    a->now.used += used;
    a->now.unused += unused;
    if (any_old != 0)
        moesim_account_old(a, layer, old_hit, old_gone);
}

#endif
