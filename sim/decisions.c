/* SPDX-License-Identifier: Apache-2.0
 *
 * One event's line in the decision log. `evicted` holds what left the layer since its previous event: in this event, and
 * before it for the sake of a prefetch, a smaller capacity, or (scope global) another layer; and what this event moved without
 * keeping it, so that the log alone tells who is resident. A sink hears the same.
 */
#include <string.h>

#include "base/bits.h"
#include "sim/instance.h"

static uint32_t list_set(uint16_t *out, const uint64_t *set, uint32_t words)
{
    uint32_t n = 0;
    MOESIM_EACH_BIT(e, set, words, { out[n++] = (uint16_t)e; });
    return n;
}

moesim_code moesim_log_gate(moesim_instance *in, const moesim_window *w, const moesim_step *step, size_t index,
                            moesim_error *err)
{
    const moesim_event_sink *sink = in->params.sink;
    return sink != NULL ? sink->gate(sink->cookie, w, step, index, err) : MOESIM_OK;
}

static moesim_code tell(const moesim_run_params *params, const moesim_window *w, const moesim_step *step,
                        const moesim_decision *decision, moesim_error *err)
{
    const moesim_event_sink *sink = params->sink;
    const size_t index = (size_t)(step - w->step) * w->num_layers + decision->layer;
    if (params->declog != NULL && moesim_declog_append(params->declog, decision, err) != MOESIM_OK)
        return err->code;
    return sink != NULL ? sink->event(sink->cookie, w, step, index, decision, err) : MOESIM_OK;
}

moesim_code moesim_log_event(moesim_instance *in, const moesim_window *w, const moesim_step *step, const moesim_turn *turn,
                             moesim_error *err)
{
    const uint32_t words = in->shape.words, experts = in->shape.num_experts;
    uint64_t hits[16], evicted[16], *dropped = in->dropped + (size_t)turn->layer * words;
    uint16_t *list[4];
    for (size_t i = 0; i < 4; i++)
        list[i] = in->logged + i * experts;
    for (uint32_t i = 0; i < words; i++) {
        hits[i] = turn->active[i] & ~turn->misses[i];
        evicted[i] = (turn->before[i] | turn->moved[i] | dropped[i]) & ~turn->keep[i];
        dropped[i] = 0;
    }
    uint32_t moved = 0;
    for (uint32_t i = 0; i < turn->n_misses; i++)
        if (moesim_bit_test(turn->moved, turn->order[i]))
            list[1][moved++] = turn->order[i];
    const moesim_decision decision = {
        .pass = step->pass,
        .clock = step->clock,
        .layer = turn->layer,
        .counted = step->counted,
        .n_hits = list_set(list[0], hits, words),
        .n_moved = moved,
        .n_cpu = list_set(list[2], turn->cpu, words),
        .n_evicted = list_set(list[3], evicted, words),
        .hits = list[0],
        .moved = list[1],
        .cpu = list[2],
        .evicted = list[3],
    };
    return tell(&in->params, w, step, &decision, err);
}
