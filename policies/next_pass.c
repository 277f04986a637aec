/* SPDX-License-Identifier: Apache-2.0
 *
 * next-pass: a bound that knows the active set of the coming pass exactly and beyond it only a decayed frequency:
 * value = 2·[e in the next set] + F(e), F as in surv; tie = last. It shows how much of a gap is prediction of one pass.
 */
#include "moesim/policy.h"
#include "policies/kit.h"

enum { NEXT_F, NEXT_LAST, NEXT_ARRAYS };

static size_t next_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(kit_head), NEXT_ARRAYS);
}

static int next_open(void *state, const moesim_open *open, moesim_start *start)
{
    (void)start;
    kit_open(state, open->shape, sizeof(kit_head), NEXT_ARRAYS);
    return 0;
}

static int next_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    kit_head *head = state;
    double *f = kit_doubles(head, event->layer, NEXT_F), *last = kit_doubles(head, event->layer, NEXT_LAST);
    const double keep = event->kind == MOESIM_PREFILL ? KIT_KEEP_PREFILL : KIT_KEEP;
    const double gain = event->kind == MOESIM_PREFILL ? 1 - KIT_KEEP_PREFILL : KIT_GAIN;
    for (uint32_t e = 0; e < head->experts; e++) {
        f[e] = kit_fade(f[e], keep);
        keys->value[e] = f[e];
        keys->tie[e] = last[e];
    }
    for (uint32_t i = 0; i < event->n_active; i++) {
        const uint32_t e = event->list[i];
        f[e] += gain;
        last[e] = kit_last(event, i);
        keys->value[e] = f[e];
        keys->tie[e] = last[e];
    }
    KIT_EACH(e, event->next_active, head->words)
        keys->value[e] = 2 + f[e];
    return 0;
}

const moesim_policy moesim_policy_next_pass = {
    .abi = MOESIM_POLICY_ABI,
    .size = sizeof(moesim_policy),
    .name = "next-pass",
    .summary = "bound: knows the coming pass exactly, else a decayed frequency",
    .source = "bound beside belady, for surv",
    .traits = MOESIM_CLAIRVOYANT,
    .state_bytes = next_bytes,
    .open = next_open,
    .retain = next_retain,
};
