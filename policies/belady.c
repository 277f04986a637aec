/* SPDX-License-Identifier: Apache-2.0
 *
 * belady: MIN with bypass. Keeps the candidates used soonest in a counted pass; an expert that is never used again is kept
 * only in a slot that nothing else wants. In scope global the host admits every miss, and of two experts used in the same
 * pass the one of the lower layer is used first.
 */
#include "moesim/policy.h"
#include "policies/kit.h"

static size_t belady_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(kit_head), 1);
}

static int belady_open(void *state, const moesim_open *open, moesim_start *start)
{
    (void)start;
    kit_open(state, open->shape, sizeof(kit_head), 1);
    return 0;
}

/* The key is ~next use: sooner is higher, never is 0, which is also what a fresh state holds. */
static int belady_key(void *state, const moesim_event *event, const uint64_t **key)
{
    uint64_t *soon = kit_words(state, event->layer, 0);
    for (uint32_t i = 0; i < event->n_active; i++)
        soon[event->list[i]] = ~event->next_use[i];
    *key = soon;
    return 0;
}

static int belady_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    const kit_head *head = state;
    const uint64_t *soon;
    belady_key(state, event, &soon);
    for (uint32_t e = 0; e < head->experts; e++) {
        keys->value[e] = -(double)~soon[e];
        keys->tie[e] = -(double)event->layer;
    }
    return 0;
}

const moesim_policy moesim_policy_belady = {
    .abi = MOESIM_POLICY_ABI,
    .size = sizeof(moesim_policy),
    .name = "belady",
    .summary = "bound: keeps the experts used soonest (MIN with bypass)",
    .source = "Belady 1966; bypass as in MIN for web caches",
    .traits = MOESIM_CLAIRVOYANT,
    .order = MOESIM_ORDER_KEY,
    .state_bytes = belady_bytes,
    .open = belady_open,
    .retain = belady_retain,
    .retain_key = belady_key,
};
