/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of what a policy answered.
 */
#include "sim/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"

moesim_code moesim_instance_fail(const moesim_instance *in, moesim_error *err, moesim_code code, const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *label = in->config.label != NULL ? in->config.label : in->policy->name;
    return moesim_fail(err, code, "policy %s: %s", label, text);
}

moesim_code moesim_plan_stopped(const moesim_instance *in, const char *callback, uint64_t clock, moesim_error *err)
{
    return moesim_instance_fail(in, err, MOESIM_E_POLICY, "its callback %s gave up in pass %llu of the run", callback,
                                (unsigned long long)clock);
}

static moesim_code broken(const moesim_instance *in, uint32_t layer, moesim_error *err, const char *rule, uint32_t expert)
{
    return moesim_instance_fail(in, err, MOESIM_E_POLICY, "layer %u, pass %llu of the run: %s (expert %u)", layer,
                                (unsigned long long)in->base.clock, rule, expert);
}

moesim_code moesim_plan_dispatch(const moesim_instance *in, const moesim_turn *turn, moesim_error *err)
{
    uint64_t seen[16] = {0};
    for (uint32_t i = 0; i < in->shape.words; i++) {
        const uint64_t wrong = turn->cpu[i] & ~turn->misses[i];
        if (wrong != 0)
            return broken(in, turn->layer, err, "dispatch sends an expert to the CPU that is no miss",
                          i * 64u + (uint32_t)__builtin_ctzll(wrong));
    }
    for (uint32_t i = 0; i < turn->n_misses; i++) {
        const uint32_t e = turn->order[i];
        if (e >= in->shape.num_experts || !moesim_bit_test(turn->misses, e))
            return broken(in, turn->layer, err, "the copy order of dispatch holds an expert that is no miss", e);
        if (moesim_bit_test(seen, e))
            return broken(in, turn->layer, err, "the copy order of dispatch holds an expert twice", e);
        moesim_bit_set(seen, e);
    }
    return MOESIM_OK;
}

moesim_code moesim_plan_nan(const moesim_instance *in, const moesim_turn *turn, const double *value, const double *tie,
                            moesim_error *err)
{
    MOESIM_EACH_BIT(e, turn->candidates, in->shape.words, {
        if (isnan(value[e]))
            return broken(in, turn->layer, err, "retain left a candidate without a value, or set it to NaN", e);
        if (isnan(tie[e]))
            return broken(in, turn->layer, err, "retain set the tie key of a candidate to NaN", e);
    });
    return moesim_instance_fail(in, err, MOESIM_E_INTERNAL, "selection reported NaN where there is none");
}

moesim_code moesim_plan_slots(const moesim_instance *in, const uint32_t *slots, const char *callback, moesim_error *err)
{
    uint64_t sum = 0;
    for (uint32_t l = 0; l < in->shape.num_layers; l++) {
        if (slots[l] > in->shape.num_experts)
            return moesim_instance_fail(in, err, MOESIM_E_POLICY, "%s gives layer %u %u slots; a layer has %u experts",
                                        callback, l, slots[l], in->shape.num_experts);
        sum += slots[l];
    }
    if (sum > in->total_slots)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY,
                                    "%s gives the layers %llu slots together; the configuration grants %llu, which may be "
                                    "moved between layers but not raised",
                                    callback, (unsigned long long)sum, (unsigned long long)in->total_slots);
    return MOESIM_OK;
}

moesim_code moesim_plan_initial(const moesim_instance *in, const uint64_t *initial, moesim_error *err)
{
    const uint32_t words = in->shape.words, experts = in->shape.num_experts;
    uint64_t bytes = 0;
    for (uint32_t l = 0; l < in->shape.num_layers; l++) {
        const uint64_t *set = initial + (size_t)l * words;
        const uint32_t n = moesim_bits_count(set, words);
        if (experts % 64u != 0 && set[words - 1] >> (experts % 64u) != 0)
            return moesim_instance_fail(in, err, MOESIM_E_POLICY,
                                        "open makes experts of layer %u resident beyond the %u that exist", l, experts);
        if (in->params.scope == MOESIM_SCOPE_LAYER && n > in->slots[l])
            return moesim_instance_fail(in, err, MOESIM_E_POLICY,
                                        "open makes %u experts of layer %u resident; it has %u slots", n, l, in->slots[l]);
        bytes += n * in->shape.expert_bytes[l];
    }
    if (in->params.scope == MOESIM_SCOPE_GLOBAL && bytes > in->config.cache_bytes)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY, "open makes %llu bytes resident; the budget is %llu",
                                    (unsigned long long)bytes, (unsigned long long)in->config.cache_bytes);
    return MOESIM_OK;
}

moesim_code moesim_plan_prefetch(const moesim_instance *in, const moesim_prefetch *list, const char *callback,
                                 moesim_error *err)
{
    if (list->n > list->capacity)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY, "%s asks for %u prefetches; at most %u at once", callback,
                                    list->n, list->capacity);
    for (uint32_t i = 0; i < list->n; i++) {
        const moesim_prefetch_entry *entry = &list->entry[i];
        if (entry->layer >= in->shape.num_layers || entry->expert >= in->shape.num_experts)
            return moesim_instance_fail(in, err, MOESIM_E_POLICY,
                                        "%s: prefetch %u asks for expert %u of layer %u; there are %u layers of %u experts",
                                        callback, i, entry->expert, entry->layer, in->shape.num_layers,
                                        in->shape.num_experts);
        if (isnan(entry->priority))
            return moesim_instance_fail(in, err, MOESIM_E_POLICY, "%s: the priority of prefetch %u is NaN", callback, i);
    }
    return MOESIM_OK;
}

moesim_code moesim_plan_victim(const moesim_instance *in, uint32_t layer, const uint64_t *shown, uint32_t expert,
                               moesim_error *err)
{
    if (expert >= in->shape.num_experts || !moesim_bit_test(shown, expert))
        return broken(in, layer, err, "victim names an expert that it was not shown", expert);
    return MOESIM_OK;
}

moesim_code moesim_plan_split(moesim_instance *in, moesim_turn *turn, moesim_error *err)
{
    const uint32_t words = in->shape.words;
    uint32_t n = 0;
    memset(turn->cpu, 0, words * sizeof *turn->cpu);
    MOESIM_EACH_BIT(e, turn->misses, words, { turn->order[n++] = (uint16_t)e; });
    if (!in->dispatches || n == 0)
        return MOESIM_OK;
    moesim_dispatch answer = {
        .size = sizeof answer, .n_misses = n, .misses = turn->misses, .cpu = turn->cpu, .order = turn->order};
    if (in->policy->dispatch(in->state, &in->view, &answer) != 0)
        return moesim_plan_stopped(in, "dispatch", in->base.clock, err);
    if (moesim_plan_dispatch(in, turn, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0; i < words; i++) {
        turn->moved[i] = turn->misses[i] & ~turn->cpu[i];
        turn->candidates[i] = turn->before[i] | turn->moved[i];
    }
    turn->n_moved = moesim_bits_count(turn->moved, words);
    in->account.now.cpu += turn->n_misses - turn->n_moved;
    return MOESIM_OK;
}
