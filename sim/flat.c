/* SPDX-License-Identifier: Apache-2.0
 *
 * --order flattened: every distinct expert of A, in the order of first touch, is an access of its own (semantics §1 says
 * what that does to recency policies). Metrics stay those of the whole event.
 */
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "sim/instance.h"
#include "sim/plan.h"
#include "sim/settle.h"

/* The event as seen at its end: what hit, what was moved, and residency before it. */
typedef struct flat_event {
    uint64_t hits[MOESIM_MAX_WORDS], moved[MOESIM_MAX_WORDS], before[MOESIM_MAX_WORDS];
    uint32_t n_hits;
} flat_event;

static uint32_t rank_of(const uint16_t *list, uint32_t n, uint32_t expert)
{
    uint32_t i = 0;
    while (i < n && list[i] != expert)
        i++;
    return i;
}

/* Shows the policy an event with one expert and selects. */
static moesim_code select_one(moesim_instance *in, const moesim_window *w, moesim_turn *turn, size_t index,
                              const uint16_t *expert, moesim_error *err)
{
    const uint32_t words = in->shape.words, begin = w->list_begin[index];
    double *value = in->value, *tie = in->tie;
    moesim_event *v = &in->view;
    *v = in->base;
    v->clock = ++in->accesses;
    v->layer = turn->layer;
    v->slots = in->slots[turn->layer];
    v->n_active = 1;
    v->n_hits = turn->n_hits;
    v->n_misses = turn->n_misses;
    v->resident = turn->before;
    v->active = turn->active;
    v->list = expert;
    if ((in->needs & MOESIM_NEED_COUNTS) != 0)
        v->count = w->count + begin + rank_of(w->list + begin, w->list_begin[index + 1] - begin, *expert);
    for (uint32_t e = 0; e < words * 64u; e++) {
        value[e] = NAN;
        tie[e] = 0;
    }
    moesim_keys keys = {
        .size = sizeof keys,
        .n_candidates = moesim_bits_count(turn->candidates, words),
        .candidates = turn->candidates,
        .moved = turn->moved,
        .landed = in->landed + (size_t)turn->layer * words,
        .value = value,
        .tie = tie,
    };
    if (in->policy->retain(in->state, v, &keys) != 0)
        return moesim_plan_stopped(in, "retain", in->base.clock, err);
    if (in->kernels->select(value, tie, turn->candidates, turn->before, words, v->slots, turn->keep, NULL) != 0)
        return moesim_plan_nan(in, turn, value, tie, err);
    const uint32_t kept = moesim_bits_count(turn->keep, words);
    in->refused += (keys.n_candidates < in->slots[turn->layer] ? keys.n_candidates : in->slots[turn->layer]) - kept;
    moesim_view_poison(in);
    return MOESIM_OK;
}

static moesim_code access_one(moesim_instance *in, const moesim_window *w, size_t index, uint32_t layer, const uint16_t *expert,
                              flat_event *event, moesim_error *err)
{
    const uint32_t words = in->shape.words;
    uint64_t *resident = in->resident + (size_t)layer * words, active[MOESIM_MAX_WORDS] = {0};
    moesim_turn *turn = &in->turn[0];
    moesim_bit_set(active, *expert);
    turn->layer = layer;
    turn->active = active;
    turn->n_active = 1;
    turn->n_hits = moesim_bit_test(resident, *expert);
    turn->n_misses = turn->n_moved = 1u - turn->n_hits;
    for (uint32_t i = 0; i < words; i++) {
        turn->before[i] = resident[i];
        turn->misses[i] = turn->moved[i] = active[i] & ~resident[i];
        turn->candidates[i] = resident[i] | active[i];
        event->hits[i] |= active[i] & resident[i];
        event->moved[i] |= turn->moved[i];
    }
    event->n_hits += turn->n_hits;
    if (select_one(in, w, turn, index, expert, err) != MOESIM_OK)
        return err->code;
    uint64_t last[MOESIM_MAX_WORDS], *kept = in->account.bits + ((size_t)layer * 3u + 2u) * words;
    memcpy(last, kept, words * sizeof *last);
    moesim_settle(&in->account, layer, words, active, turn->before, turn->moved, turn->keep);
    /* transfers are judged against the next event, not the next access */
    memcpy(kept, last, words * sizeof *last);
    memcpy(resident, turn->keep, words * sizeof *resident);
    return MOESIM_OK;
}

static moesim_code log_whole(moesim_instance *in, const moesim_window *w, const moesim_step *step, size_t index, uint32_t layer,
                             const flat_event *event, moesim_error *err)
{
    const uint32_t words = in->shape.words;
    moesim_turn *turn = &in->turn[0];
    uint32_t n = 0;
    turn->active = w->active + index * words;
    turn->layer = layer;
    turn->n_hits = event->n_hits;
    for (uint32_t i = 0; i < words; i++) {
        turn->before[i] = event->before[i];
        turn->moved[i] = turn->misses[i] = event->moved[i];
        turn->keep[i] = in->resident[(size_t)layer * words + i];
        turn->cpu[i] = 0;
    }
    MOESIM_EACH_BIT(e, event->moved, words, { turn->order[n++] = (uint16_t)e; });
    turn->n_misses = turn->n_moved = n;
    return moesim_log_event(in, w, step, turn, err);
}

moesim_code moesim_step_flat(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    const uint32_t words = in->shape.words;
    const size_t first = (size_t)(step - w->step) * w->num_layers;
    for (uint32_t l = 0; l < w->num_layers; l++) {
        const size_t index = first + l;
        const uint32_t begin = w->list_begin[index], end = w->list_begin[index + 1];
        uint64_t *last = in->account.bits + ((size_t)l * 3u + 2u) * words;
        flat_event event = {.n_hits = 0};
        memcpy(event.before, in->resident + (size_t)l * words, words * sizeof *event.before);
        for (uint32_t i = begin; i < end; i++)
            if (access_one(in, w, index, l, &w->sequence[i], &event, err) != MOESIM_OK)
                return err->code;
        for (uint32_t i = 0; i < words; i++)
            last[i] = event.moved[i] & in->account.mask;
        moesim_tally_event(&in->account, l, in->slots[l], end - begin, event.n_hits, end - begin - event.n_hits);
        if (in->logs && log_whole(in, w, step, index, l, &event, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}
