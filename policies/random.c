/* SPDX-License-Identifier: Apache-2.0
 *
 * random: one seeded draw per candidate; the floor of every comparison.
 */
#include "moesim/policy.h"
#include "policies/kit.h"

typedef struct random_state {
    kit_head head;
    uint64_t generator;
} random_state;

static size_t random_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(random_state), 0);
}

static int random_open(void *state, const moesim_open *open, moesim_start *start)
{
    random_state *s = state;
    (void)start;
    kit_open(&s->head, open->shape, sizeof *s, 0);
    s->generator = open->seed;
    return 0;
}

static int random_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    random_state *s = state;
    (void)event;
    KIT_EACH(e, keys->candidates, s->head.words) {
        keys->value[e] = kit_random_real(&s->generator);
        keys->tie[e] = 0;
    }
    return 0;
}

const moesim_policy moesim_policy_random = {
    .abi = MOESIM_POLICY_ABI,
    .size = sizeof(moesim_policy),
    .name = "random",
    .summary = "keeps a random choice of the candidates (seeded)",
    .source = "floor of every comparison",
    .state_bytes = random_bytes,
    .open = random_open,
    .retain = random_retain,
};
