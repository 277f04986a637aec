/* SPDX-License-Identifier: Apache-2.0
 *
 * The event step: every expert of A is classified against R as it stands when the gate is known, the misses are served, and
 * only then does residency change (semantics §1). Compiled once per instruction set; sets of four words (up to 256 experts)
 * have a copy of their own.
 */
#include <math.h>
#include <string.h>

#include "sim/instance.h"
#include "sim/plan.h"
#include "sim/prefetch.h"
#include "sim/settle.h"
#include "sim/timer.h"

/* Hits and misses of the event; nothing runs on the CPU yet. */
MOESIM_INLINE void split(moesim_instance *in, const moesim_window *w, moesim_turn *turn, size_t index, uint32_t layer,
                         uint32_t words)
{
    const uint64_t *active = w->active + index * words, *resident = in->resident + (size_t)layer * words;
    uint32_t hits = 0;
    for (uint32_t i = 0; i < words; i++) {
        const uint64_t miss = active[i] & ~resident[i];
        turn->before[i] = resident[i];
        turn->misses[i] = turn->moved[i] = miss;
        turn->candidates[i] = resident[i] | miss;
        hits += moesim_pop(active[i] & resident[i]);
    }
    turn->layer = layer;
    turn->active = active;
    turn->n_active = w->list_begin[index + 1] - w->list_begin[index];
    turn->n_hits = hits;
    turn->n_misses = turn->n_moved = turn->n_active - hits;
}

/* Asks for keys and selects. */
MOESIM_INLINE moesim_code select_generic(moesim_instance *in, moesim_turn *turn, uint32_t words, moesim_error *err)
{
    double *value = in->value + turn->layer * in->key_stride, *tie = in->tie + turn->layer * in->key_stride;
    const uint32_t slots = in->slots[turn->layer];
    moesim_hint *hint = &in->hint[2 * turn->layer];
    for (uint32_t e = 0; e < words * 64u; e++) {
        value[e] = NAN;
        tie[e] = 0;
    }
    uint32_t candidates = 0, kept = 0;
    for (uint32_t i = 0; i < words; i++)
        candidates += moesim_pop(turn->candidates[i]);
    moesim_keys keys = {
        .size = sizeof keys,
        .n_candidates = candidates,
        .candidates = turn->candidates,
        .moved = turn->moved,
        .landed = in->landed + (size_t)turn->layer * words,
        .value = value,
        .tie = tie,
    };
    const bool late = in->pass_ended;
    if ((late ? in->policy->retain_pass : in->policy->retain)(in->state, &in->view, &keys) != 0)
        return moesim_plan_stopped(in, late ? "retain_pass" : "retain", in->base.clock, err);
    if (in->kernels->select(value, tie, turn->candidates, turn->before, words, slots, turn->keep, hint) != 0)
        return moesim_plan_nan(in, turn, value, tie, err);
    for (uint32_t i = 0; i < words; i++)
        kept += moesim_pop(turn->keep[i]);
    if (kept > slots)
        return moesim_instance_fail(in, err, MOESIM_E_INTERNAL, "layer %u ends above its %u slots", turn->layer, slots);
    in->refused += (candidates < slots ? candidates : slots) - kept;
    return MOESIM_OK;
}

static moesim_code select_key(moesim_instance *in, moesim_turn *turn, moesim_error *err)
{
    const uint64_t *key = NULL;
    if (in->policy->retain_key(in->state, &in->view, &key) != 0 || key == NULL)
        return moesim_plan_stopped(in, "retain_key", in->base.clock, err);
    if (in->padded != NULL) {
        /* the policy owes E keys, the kernels read whole words */
        memcpy(in->padded, key, in->shape.num_experts * sizeof *key);
        key = in->padded;
    }
    in->kernels->select_key(key, turn->candidates, turn->before, in->shape.words, in->slots[turn->layer], turn->keep,
                            &in->hint[2 * turn->layer]);
    return MOESIM_OK;
}

/* Residency becomes what was selected. */
MOESIM_INLINE void apply(moesim_instance *in, const moesim_turn *turn, uint32_t words)
{
    uint64_t *resident = in->resident + (size_t)turn->layer * words, *landed = in->landed + (size_t)turn->layer * words;
    moesim_settle(&in->account, turn->layer, words, turn->active, turn->before, turn->moved, turn->keep);
    for (uint32_t i = 0; i < words; i++) {
        resident[i] = turn->keep[i];
        landed[i] = 0;
    }
}

MOESIM_INLINE moesim_code retain(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_turn *turn,
                                 uint32_t words, moesim_error *err)
{
    const moesim_code code = in->by_key ? select_key(in, turn, err) : select_generic(in, turn, words, err);
    if (code != MOESIM_OK)
        return code;
    apply(in, turn, words);
    moesim_view_poison(in);
    if (in->loose)
        moesim_instance_overshoot(in);
    return in->logs ? moesim_log_event(in, w, step, turn, err) : MOESIM_OK;
}

/* RETAIN_AT_PASS: what was moved stays until the pass ends. */
static void hold(moesim_instance *in, const moesim_turn *turn)
{
    uint64_t *resident = in->resident + (size_t)turn->layer * in->shape.words;
    for (uint32_t i = 0; i < in->shape.words; i++)
        resident[i] |= turn->moved[i];
    moesim_view_poison(in);
}

static moesim_code end_pass(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    const size_t first = (size_t)(step - w->step) * w->num_layers;
    moesim_code code = MOESIM_OK;
    moesim_instance_overshoot(in);
    in->pass_ended = true;
    for (uint32_t l = 0; l < w->num_layers && code == MOESIM_OK; l++) {
        moesim_view_event(in, w, &in->turn[l], first + l);
        code = retain(in, w, step, &in->turn[l], in->shape.words, err);
    }
    in->pass_ended = false;
    return code;
}

/* What comes between two events. */
MOESIM_INLINE moesim_code before(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer,
                                 moesim_error *err)
{
    if (in->prefetch != NULL && moesim_prefetch_layer(in, w, step, layer, err) != MOESIM_OK)
        return err->code;
    if (!in->logs || in->at_pass)
        return MOESIM_OK;
    return moesim_log_gate(in, w, step, (size_t)(step - w->step) * w->num_layers + layer, err);
}

MOESIM_INLINE moesim_code run_step(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t words,
                                   moesim_error *err)
{
    const size_t first = (size_t)(step - w->step) * w->num_layers;
    const bool ordered = in->dispatches || in->logs;
    for (uint32_t l = 0; l < w->num_layers; l++) {
        moesim_turn *turn = &in->turn[in->at_pass ? l : 0];
        if (before(in, w, step, l, err) != MOESIM_OK)
            return err->code;
        split(in, w, turn, first + l, l, words);
        moesim_view_event(in, w, turn, first + l);
        if (ordered && moesim_plan_split(in, turn, err) != MOESIM_OK)
            return err->code;
        moesim_tally_event(&in->account, l, in->slots[l], turn->n_active, turn->n_hits, turn->n_moved);
        if (in->timer != NULL)
            moesim_timer_event(in->timer, w, first + l, turn->misses, in->dispatches ? turn->cpu : NULL,
                               ordered ? turn->order : NULL, turn->n_misses);
        if (in->at_pass)
            hold(in, turn);
        else if (retain(in, w, step, turn, words, err) != MOESIM_OK)
            return err->code;
    }
    return in->at_pass ? end_pass(in, w, step, err) : MOESIM_OK;
}

moesim_code MOESIM_V(moesim_step_generic)(moesim_instance *in, const moesim_window *w, const moesim_step *step,
                                          moesim_error *err)
{
    return in->shape.words == 4 ? run_step(in, w, step, 4, err) : run_step(in, w, step, in->shape.words, err);
}
