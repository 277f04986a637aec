/* SPDX-License-Identifier: Apache-2.0
 *
 * naive: keeps the experts of the previous pass (OLED-MoE §3.2); free slots keep what they held.
 */
#include "moesim/policy.h"
#include "policies/kit.h"

static size_t naive_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(kit_head), 0);
}

static int naive_open(void *state, const moesim_open *open, moesim_start *start)
{
    (void)start;
    kit_open(state, open->shape, sizeof(kit_head), 0);
    return 0;
}

static int naive_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    const kit_head *head = state;
    memset(keys->value, 0, head->experts * sizeof *keys->value);
    memset(keys->tie, 0, head->experts * sizeof *keys->tie);
    for (uint32_t i = 0; i < event->n_active; i++)
        keys->value[event->list[i]] = 1;
    return 0;
}

const moesim_policy moesim_policy_naive = {
    .abi = MOESIM_POLICY_ABI,
    .size = sizeof(moesim_policy),
    .name = "naive",
    .summary = "keeps the experts activated in the previous pass",
    .source = "OLED-MoE (arXiv 2609.33385) §3.2",
    .order = MOESIM_ORDER_ACTIVE,
    .state_bytes = naive_bytes,
    .open = naive_open,
    .retain = naive_retain,
};
