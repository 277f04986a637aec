/* SPDX-License-Identifier: Apache-2.0
 * lru: keeps the most recently activated experts (OLED-MoE §5.1, Naive-LRU). */
#include "moesim/policy.h"
#include "policies/kit.h"

static size_t lru_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(kit_head), 1);
}

static int lru_open(void *state, const moesim_open *open, moesim_start *start)
{
    (void)start;
    kit_open(state, open->shape, sizeof(kit_head), 1);
    return 0;
}

static int lru_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    kit_head *head = state;
    double *last = kit_doubles(head, event->layer, 0);
    kit_touch(event, last);
    memcpy(keys->value, last, head->experts * sizeof *last);
    memset(keys->tie, 0, head->experts * sizeof *last);
    return 0;
}

const moesim_policy moesim_policy_lru = {
    .abi = MOESIM_POLICY_ABI, .size = sizeof(moesim_policy), .name = "lru",
    .summary = "keeps the most recently activated experts",
    .source = "OLED-MoE (arXiv 2609.33385) §5.1, Naive-LRU",
    .order = MOESIM_ORDER_RECENCY, .state_bytes = lru_bytes, .open = lru_open, .retain = lru_retain,
};
