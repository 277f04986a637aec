/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast paths for orders that bit operations decide, without asking the policy. The decisions are those of the generic path.
 * Compiled once per instruction set; sets of four words (up to 256 experts) have a copy of their own.
 *
 * recency: value = clock of the last event that activated the expert. The residents of a layer are kept as age layers, one
 * set per last clock, newest first; an event puts A in front and the oldest experts fall off the end. Layers stay where they
 * are: A is written before the first one, and where there is no room left all are packed to the end of the array.
 * active: value = 1 for members of A, 0 for the others.
 */
#include <string.h>
#ifdef __BMI2__
#include <immintrin.h>
#endif

#include "sim/instance.h"
#include "sim/settle.h"
#include "sim/timer.h"

/* The n lowest set bits of w; n < 64. */
MOESIM_INLINE uint64_t lowest(uint64_t w, uint32_t n)
{
#ifdef __BMI2__
    return _pdep_u64((UINT64_C(1) << n) - 1, w);
#else
    uint64_t out = 0;
    for (; n > 0; n--) {
        out |= w & (0 - w);
        w &= w - 1;
    }
    return out;
#endif
}

/* Adds the members of `set` to keep, the lowest ids first, while there are slots left; returns the slots left then. */
MOESIM_INLINE uint32_t take(uint64_t *keep, const uint64_t *set, uint32_t words, uint32_t left)
{
    for (uint32_t i = 0; i < words; i++) {
        const uint32_t n = moesim_pop(set[i]);
        if (n > left) {
            keep[i] |= lowest(set[i], left);
            return 0;
        }
        keep[i] |= set[i];
        left -= n;
    }
    return left;
}

/* |A| ≥ C: hits first, then misses, each by id. */
MOESIM_INLINE void keep_of_active(uint64_t *keep, const uint64_t *active, const uint64_t *resident, uint32_t words,
                                  uint32_t slots)
{
    uint64_t hits[MOESIM_MAX_WORDS], misses[MOESIM_MAX_WORDS];
    for (uint32_t i = 0; i < words; i++) {
        keep[i] = 0;
        hits[i] = active[i] & resident[i];
        misses[i] = active[i] & ~resident[i];
    }
    take(keep, misses, words, take(keep, hits, words, slots));
}

/* Moves the live age layers to the end of the array, leaving out empty ones; returns the first. */
static size_t pack_ages(uint64_t *age, size_t from, size_t to, size_t depth, uint32_t words)
{
    size_t out = depth;
    for (size_t a = to; a-- > from;) {
        if (moesim_bits_count(age + a * words, words) == 0)
            continue;
        out--;
        memmove(age + out * words, age + a * words, words * sizeof *age);
    }
    return out;
}

/* Takes A out of the older age layers and keeps what still fits, newest first; returns the end of the layers that stay. */
MOESIM_INLINE size_t keep_older(uint64_t *age, size_t from, size_t to, const uint64_t *active, uint32_t words, uint32_t left,
                                uint64_t *keep)
{
    uint64_t part[MOESIM_MAX_WORDS];
    for (size_t a = from; a < to; a++) {
        uint64_t *set = age + a * words;
        uint32_t n = 0;
        for (uint32_t i = 0; i < words; i++) {
            const uint64_t rest = set[i] & ~active[i];
            set[i] = rest;
            n += moesim_pop(rest);
        }
        if (n >= left) {
            memset(part, 0, words * sizeof *part);
            take(part, set, words, left);
            for (uint32_t i = 0; i < words; i++) {
                set[i] = part[i];
                keep[i] |= part[i];
            }
            return a + 1;
        }
        left -= n;
        for (uint32_t i = 0; i < words; i++)
            keep[i] |= set[i];
    }
    return to;
}

MOESIM_INLINE void keep_recent(moesim_instance *in, uint32_t layer, const uint64_t *active, const uint64_t *resident,
                               uint32_t n_active, uint32_t words, uint64_t *keep)
{
    const uint32_t slots = in->slots[layer];
    uint64_t *age = in->age + (size_t)layer * in->age_depth * words;
    moesim_ages *live = &in->ages[layer];
    if (live->from == 0) {
        live->from = pack_ages(age, live->from, live->to, in->age_depth, words);
        live->to = in->age_depth;
    }
    if (n_active < slots) {
        for (uint32_t i = 0; i < words; i++)
            keep[i] = active[i];
        live->to = keep_older(age, live->from, live->to, active, words, slots - n_active, keep);
        memcpy(age + --live->from * words, active, words * sizeof *age);
        return;
    }
    keep_of_active(keep, active, resident, words, slots);
    live->to = live->from--;
    memcpy(age + live->from * words, keep, words * sizeof *keep);
}

MOESIM_INLINE void keep_active(const moesim_instance *in, uint32_t layer, const uint64_t *active, const uint64_t *resident,
                               uint32_t n_active, uint32_t words, uint64_t *keep)
{
    const uint32_t slots = in->slots[layer];
    uint64_t others[MOESIM_MAX_WORDS];
    if (n_active >= slots) {
        keep_of_active(keep, active, resident, words, slots);
        return;
    }
    for (uint32_t i = 0; i < words; i++) {
        keep[i] = active[i];
        others[i] = resident[i] & ~active[i];
    }
    take(keep, others, words, slots - n_active);
}

MOESIM_INLINE moesim_code run_step(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t words,
                                   bool recency)
{
    const size_t first = (size_t)(step - w->step) * w->num_layers;
    uint64_t keep[MOESIM_MAX_WORDS], misses[MOESIM_MAX_WORDS];
    for (uint32_t l = 0; l < w->num_layers; l++) {
        const size_t index = first + l;
        const uint64_t *active = w->active + index * words;
        uint64_t *resident = in->resident + (size_t)l * words;
        const uint32_t n_active = w->list_begin[index + 1] - w->list_begin[index];
        uint32_t n_misses = 0;
        for (uint32_t i = 0; i < words; i++) {
            misses[i] = active[i] & ~resident[i];
            n_misses += moesim_pop(misses[i]);
        }
        moesim_tally_event(&in->account, l, in->slots[l], n_active, n_active - n_misses, n_misses);
        if (in->timer != NULL)
            moesim_timer_event(in->timer, w, index, misses, NULL, NULL, n_misses);
        if (recency)
            keep_recent(in, l, active, resident, n_active, words, keep);
        else
            keep_active(in, l, active, resident, n_active, words, keep);
        moesim_settle(&in->account, l, words, active, resident, misses, keep);
        memcpy(resident, keep, words * sizeof *keep);
    }
    return MOESIM_OK;
}

static moesim_code step_recency(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    (void)err;
    return in->shape.words == 4 ? run_step(in, w, step, 4, true) : run_step(in, w, step, in->shape.words, true);
}

static moesim_code step_active(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    (void)err;
    return in->shape.words == 4 ? run_step(in, w, step, 4, false) : run_step(in, w, step, in->shape.words, false);
}

#define QUOTE2(x) #x
#define QUOTE(x) QUOTE2(x)

const moesim_steps MOESIM_V(moesim_steps) = {
    .name = QUOTE(MOESIM_VARIANT),
    .generic = MOESIM_V(moesim_step_generic),
    .recency = step_recency,
    .active = step_active,
};
