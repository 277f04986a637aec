/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the bounds that the host computes itself: free reload is no plan that a policy could give.
 */
#include "moesim/policy.h"

#define BOUND(id, text, mode, traits_, summary_, source_)                                                     \
    const moesim_policy moesim_policy_##id = {                                                                \
        .abi = MOESIM_POLICY_ABI, .size = sizeof(moesim_policy), .name = text, .summary = summary_,           \
        .source = source_, .traits = traits_, .host_mode = mode,                                              \
    }

BOUND(ideal, "ideal", MOESIM_HOST_IDEAL, MOESIM_CLAIRVOYANT,
      "bound: free reload before every event, hits = min(C, |A|)",
      "OLED-MoE (arXiv 2609.33385) §5.1, ideal cache bound read literally");
BOUND(ideal_pooled, "ideal-pooled", MOESIM_HOST_IDEAL_POOLED, MOESIM_CLAIRVOYANT,
      "bound: as ideal, slots shared freely between the layers",
      "OLED-MoE (arXiv 2609.33385) §5.1, ideal cache bound with pooled slots");
BOUND(belady_pooled, "belady-pooled", MOESIM_HOST_BELADY_POOLED, MOESIM_CLAIRVOYANT,
      "bound: as belady, slots shared between the layers", "Belady 1966, one pool over all layers");
BOUND(full, "full", MOESIM_HOST_FULL, 0u, "bound: every expert resident from the start, no transfers",
      "OLED-MoE (arXiv 2609.33385) §5, full residency");
