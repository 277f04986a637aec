/* SPDX-License-Identifier: Apache-2.0
 *
 * Between steps: requests that start and end, the boundary callback, capacities that move between layers.
 */
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "sim/instance.h"
#include "sim/plan.h"
#include "sim/prefetch.h"

/* A layer swings when its slots return to the value of two re-splits ago so many times running. */
#define SWINGS 4u
#define SWINGS_COUNTED 255u

void moesim_instance_overshoot(moesim_instance *in)
{
    uint64_t bytes = 0;
    for (uint32_t l = 0; l < in->shape.num_layers; l++)
        bytes += moesim_bits_count(in->resident + (size_t)l * in->shape.words, in->shape.words) * in->shape.expert_bytes[l];
    if (bytes > in->slot_bytes && bytes - in->slot_bytes > in->overshoot)
        in->overshoot = bytes - in->slot_bytes;
}

/* ---- eviction outside of an event ---------------------------------------------------------------------------------- */

uint32_t moesim_worst(const moesim_instance *in, uint32_t layer)
{
    const uint32_t words = in->shape.words;
    const uint64_t *resident = in->resident + (size_t)layer * words, *landed = in->landed + (size_t)layer * words;
    const double *value = in->value + layer * in->key_stride, *tie = in->tie + layer * in->key_stride;
    uint32_t worst = UINT32_MAX;
    MOESIM_EACH_BIT(e, resident, words, {
        if (moesim_bit_test(landed, e))
            continue;
        if (worst == UINT32_MAX || value[e] < value[worst] || (!(value[e] > value[worst]) && tie[e] <= tie[worst]))
            worst = e;
    });
    return worst;
}

void moesim_evict(moesim_instance *in, uint32_t layer, uint32_t expert)
{
    const size_t at = (size_t)layer * in->shape.words;
    moesim_bit_clear(in->resident + at, expert);
    moesim_bit_clear(in->landed + at, expert);
    moesim_bit_set(in->dropped + at, expert);
    moesim_account_evicted(&in->account, layer, expert);
}

/* Eager shrinking: the worst standing keys leave, experts that have just landed last of all. */
static void shrink(moesim_instance *in, uint32_t layer)
{
    const uint64_t *resident = in->resident + (size_t)layer * in->shape.words;
    for (uint32_t n = moesim_bits_count(resident, in->shape.words); n > in->slots[layer]; n--) {
        uint32_t worst = moesim_worst(in, layer);
        for (uint32_t e = in->shape.num_experts; worst == UINT32_MAX && e-- > 0;)
            worst = moesim_bit_test(resident, e) ? e : worst;
        moesim_evict(in, layer, worst);
    }
}

/* ---- capacities ---------------------------------------------------------------------------------------------------- */

static void watch_swing(moesim_instance *in, uint32_t layer, uint32_t now)
{
    uint8_t *swings = &in->swings[layer];
    if (*swings != SWINGS_COUNTED) {
        const bool back = now == in->slots_2[layer] && now != in->slots_1[layer];
        *swings = back ? (uint8_t)(*swings + 1u) : 0;
        if (*swings == SWINGS) {
            *swings = SWINGS_COUNTED;
            in->oscillations++;
        }
    }
    in->slots_2[layer] = in->slots_1[layer];
    in->slots_1[layer] = now;
}

static moesim_code change_slots(moesim_instance *in, bool eager, moesim_error *err)
{
    const uint32_t layers = in->shape.num_layers;
    if (memcmp(in->answer, in->slots, layers * sizeof *in->slots) == 0)
        return MOESIM_OK;
    if (moesim_plan_slots(in, in->answer, "boundary", err) != MOESIM_OK)
        return err->code;
    in->slot_bytes = 0;
    for (uint32_t l = 0; l < layers; l++) {
        watch_swing(in, l, in->answer[l]);
        in->slots[l] = in->answer[l];
        in->slot_bytes += in->slots[l] * in->shape.expert_bytes[l];
        if (eager)
            shrink(in, l);
    }
    in->capacity_changes++;
    in->loose = !eager;
    in->most_slot_bytes = in->slot_bytes > in->most_slot_bytes ? in->slot_bytes : in->most_slot_bytes;
    moesim_instance_overshoot(in);
    return moesim_account_slots(&in->account, in->arena, in->slots, err);
}

/* ---- callbacks ------------------------------------------------------------------------------------------------------ */

static moesim_code tell_request(moesim_instance *in, const moesim_member *member, bool ended, uint64_t clock,
                                moesim_error *err)
{
    moesim_request request = {.size = sizeof request, .request = member->request, .ended = ended, .workload = ""};
    const moesim_trace_request *known = in->trace != NULL ? moesim_trace_get_request(in->trace, member->request) : NULL;
    const uint64_t first = in->account.first_request;
    if (known != NULL) {
        request.workload = known->workload;
        request.prompt_tokens = known->prompt_tokens;
    }
    if (ended && known != NULL && known->output_tokens_known)
        request.output_tokens = known->output_tokens;
    else if (ended && member->request >= first && member->request - first < in->account.num_requests)
        request.output_tokens = (uint32_t)in->account.request[member->request - first].output_tokens;
    if (in->policy->request(in->state, &request, moesim_prefetch_offer(in)) != 0)
        return moesim_plan_stopped(in, "request", clock, err);
    return moesim_prefetch_accept(in, "request", err);
}

static moesim_code tell_requests(moesim_instance *in, const moesim_window *w, const moesim_step *step, bool ended,
                                 moesim_error *err)
{
    for (uint32_t i = 0; i < step->num_requests; i++) {
        const moesim_member *member = &w->member[step->member + i];
        if ((ended ? member->ends : member->starts) != 0 && tell_request(in, member, ended, step->clock, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

static moesim_code ask_boundary(moesim_instance *in, const moesim_step *step, moesim_error *err)
{
    const moesim_boundary boundary = {
        .size = sizeof boundary,
        .kind = step->kind,
        .clock = step->clock,
        .decode_passes = in->decode_ended,
        .num_ended = in->num_ended,
        .num_coming = step->num_rows,
        .ended = in->ended,
        .coming = in->row,
        .slots = in->slots,
        .resident = in->resident,
    };
    moesim_boundary_answer answer = {
        .size = sizeof answer, .slots = in->answer, .prefetch = moesim_prefetch_offer(in)};
    memcpy(in->answer, in->slots, in->shape.num_layers * sizeof *in->slots);
    if (in->policy->boundary(in->state, &boundary, &answer) != 0)
        return moesim_plan_stopped(in, "boundary", step->clock, err);
    if (change_slots(in, answer.eager != 0, err) != MOESIM_OK)
        return err->code;
    return moesim_prefetch_accept(in, "boundary", err);
}

moesim_code moesim_boundary_before(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    if (in->policy->request != NULL && tell_requests(in, w, step, false, err) != MOESIM_OK)
        return err->code;
    return in->policy->boundary != NULL ? ask_boundary(in, step, err) : MOESIM_OK;
}

moesim_code moesim_boundary_after(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    in->decode_ended += step->decode;
    in->loose = false;
    if (in->policy->boundary != NULL && moesim_view_keep(in, w, step, err) != MOESIM_OK)
        return err->code;
    return in->policy->request != NULL ? tell_requests(in, w, step, true, err) : MOESIM_OK;
}
