/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the bounds that the host computes itself: free reload is no plan that a policy could give. With the costs of a
 * profile the ideal bounds split what still misses so that the event takes least time; without, all of it is moved.
 */
#include "moesim/policy.h"
#include "policies/kit_dispatch.h"

static size_t bound_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_round(sizeof(kit_dispatch)) + kit_dispatch_bytes(shape);
}

static int bound_open(void *state, const moesim_open *open, moesim_start *start)
{
    const kit_dispatch_options least = { .how = open->costs != NULL ? KIT_LOAD : KIT_MOVE_ALL };
    (void)kit_dispatch_open(state, &least, open, (unsigned char *)state + kit_round(sizeof(kit_dispatch)), start);
    return 0;
}

static int bound_dispatch(void *state, const moesim_event *event, moesim_dispatch *answer)
{
    kit_dispatch_answer(state, event, NULL, answer);
    return 0;
}

#define BOUND(id, text, mode, traits_, summary_, source_, ...)                                                \
    const moesim_policy moesim_policy_##id = {                                                                \
        .abi = MOESIM_POLICY_ABI, .size = sizeof(moesim_policy), .name = text, .summary = summary_,           \
        .source = source_, .traits = traits_, .host_mode = mode, __VA_ARGS__                                  \
    }

#define BOUND_SPLIT .state_bytes = bound_bytes, .open = bound_open, .dispatch = bound_dispatch

BOUND(ideal, "ideal", MOESIM_HOST_IDEAL, MOESIM_CLAIRVOYANT,
      "bound: free reload before every event, hits = min(C, |A|)",
      "OLED-MoE (arXiv 2609.33385) §5.1, ideal cache bound read literally", BOUND_SPLIT);
BOUND(ideal_pooled, "ideal-pooled", MOESIM_HOST_IDEAL_POOLED, MOESIM_CLAIRVOYANT,
      "bound: as ideal, slots shared freely between the layers",
      "OLED-MoE (arXiv 2609.33385) §5.1, ideal cache bound with pooled slots", BOUND_SPLIT);
BOUND(belady_pooled, "belady-pooled", MOESIM_HOST_BELADY_POOLED, MOESIM_CLAIRVOYANT,
      "bound: as belady, slots shared between the layers", "Belady 1966, one pool over all layers", );
BOUND(full, "full", MOESIM_HOST_FULL, 0u, "bound: every expert resident from the start, no transfers",
      "OLED-MoE (arXiv 2609.33385) §5, full residency", );
