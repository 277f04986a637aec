/* SPDX-License-Identifier: Apache-2.0
 *
 * lfru: value = count / (age + 1), age = passes since the expert was last activated at the layer; tie = last.
 */
#include "moesim/policy.h"
#include "policies/kit.h"

enum { LFRU_COUNT, LFRU_LAST, LFRU_ARRAYS };

static size_t lfru_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(kit_head), LFRU_ARRAYS);
}

static int lfru_open(void *state, const moesim_open *open, moesim_start *start)
{
    (void)start;
    kit_open(state, open->shape, sizeof(kit_head), LFRU_ARRAYS);
    return 0;
}

static int lfru_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    kit_head *head = state;
    double *count = kit_doubles(head, event->layer, LFRU_COUNT);
    double *last = kit_doubles(head, event->layer, LFRU_LAST);
    const double clock = (double)event->clock;
    double *restrict value = keys->value, *restrict tie = keys->tie;

    for (uint32_t i = 0; i < event->n_active; i++) {
        count[event->list[i]] += 1;
        last[event->list[i]] = clock;
    }
    for (uint32_t e = 0; e < head->experts; e++) {
        value[e] = count[e] / (clock - last[e] + 1);
        tie[e] = last[e];
    }
    return 0;
}

const moesim_policy moesim_policy_lfru = {
    .abi = MOESIM_POLICY_ABI,
    .size = sizeof(moesim_policy),
    .name = "lfru",
    .summary = "keeps the experts with the highest count divided by age",
    .source = "arXiv 2608.07911",
    .traits = MOESIM_KEYS_AGE,
    .state_bytes = lfru_bytes,
    .open = lfru_open,
    .retain = lfru_retain,
};
