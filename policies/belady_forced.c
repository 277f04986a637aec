/* SPDX-License-Identifier: Apache-2.0
 *
 * belady-forced: MIN that must admit every miss. Members of A come first (where |A| > C the C of A used soonest), then the
 * residents used soonest. In scope global the host admits every miss by itself, so the order is the next use alone.
 */
#include "moesim/policy.h"
#include "policies/kit.h"

typedef struct forced_state {
    kit_head head;
    uint32_t global_scope;
} forced_state;

/* [0] ~next use as in belady; [1] the key with the bit of A. */
enum { FORCED_SOON, FORCED_KEY, FORCED_ARRAYS };

#define FORCED_ACTIVE (UINT64_C(1) << 63)

static size_t forced_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(forced_state), FORCED_ARRAYS);
}

static int forced_open(void *state, const moesim_open *open, moesim_start *start)
{
    forced_state *s = state;
    (void)start;
    kit_open(&s->head, open->shape, sizeof *s, FORCED_ARRAYS);
    s->global_scope = open->global_scope;
    return 0;
}

static const uint64_t *forced_update(forced_state *s, const moesim_event *event)
{
    uint64_t *soon = kit_words(&s->head, event->layer, FORCED_SOON);
    for (uint32_t i = 0; i < event->n_active; i++)
        soon[event->list[i]] = ~event->next_use[i];
    return soon;
}

/* Clocks stay below 2^62, so bit 63 of ~next use is 1 for a used expert and 0 for never: shifted by one place both fit
 * beside the bit of A, in the same order. */
static int forced_key(void *state, const moesim_event *event, const uint64_t **key)
{
    forced_state *s = state;
    const uint64_t *soon = forced_update(s, event);
    uint64_t *out = kit_words(&s->head, event->layer, FORCED_KEY);
    for (uint32_t e = 0; e < s->head.experts; e++) {
        const uint64_t never = soon[e] == 0;
        out[e] = never ? 0 : soon[e] & ~FORCED_ACTIVE;
    }
    for (uint32_t i = 0; i < event->n_active; i++)
        out[event->list[i]] |= FORCED_ACTIVE;
    *key = out;
    return 0;
}

static int forced_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    forced_state *s = state;
    const uint64_t *soon = forced_update(s, event);
    for (uint32_t e = 0; e < s->head.experts; e++) {
        const double use = -(double)~soon[e];
        keys->value[e] = s->global_scope ? use : kit_test(event->active, e);
        keys->tie[e] = s->global_scope ? -(double)event->layer : use;
    }
    return 0;
}

const moesim_policy moesim_policy_belady_forced = {
    .abi = MOESIM_POLICY_ABI,
    .size = sizeof(moesim_policy),
    .name = "belady-forced",
    .summary = "bound: as belady, but every miss must be admitted",
    .source = "Belady 1966, forced admission",
    .traits = MOESIM_CLAIRVOYANT,
    .order = MOESIM_ORDER_KEY,
    .state_bytes = forced_bytes,
    .open = forced_open,
    .retain = forced_retain,
    .retain_key = forced_key,
};
