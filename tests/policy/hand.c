/* SPDX-License-Identifier: Apache-2.0
 *
 * The host for events made by hand.
 */
#include "tests/policy/hand.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double h2d[HAND_LAYERS] = { 1, 1, 1, 1, 1, 1, 1, 1 };
static const double cpu[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const moesim_costs plain_costs = { .size = sizeof plain_costs, .cpu_tokens = 16, .h2d_s = h2d, .cpu_s = cpu };

const moesim_costs *hand_costs = &plain_costs;

static void *fresh(size_t bytes)
{
    void *state = aligned_alloc(64, bytes);
    ck_assert_ptr_nonnull(state);
    return state;
}

/* The state elsewhere; nothing may be left pointing at where it was. */
static void move(struct hand *h)
{
    if (h->still)
        return;
    void *state = fresh(h->state_bytes);
    memcpy(state, h->state, h->state_bytes);
    memset(h->state, 0xdb, h->state_bytes);
    free(h->state);
    h->state = state;
}

int hand_try_open(struct hand *h, const char *policy, uint32_t layers, uint32_t experts, uint32_t top_k, uint32_t slots,
                  uint32_t global_scope, uint64_t seed, char *error)
{
    moesim_error err = MOESIM_ERROR_INIT;
    memset(h, 0, sizeof *h);
    ck_assert(layers <= HAND_LAYERS && experts <= HAND_EXPERTS);
    ck_assert_msg(moesim_policy_spec_init(&h->spec, policy, &err) == MOESIM_OK, "%s", err.text);
    h->shape = (moesim_shape){ .size = sizeof h->shape, .num_layers = layers, .num_experts = experts, .top_k = top_k,
                               .block_length = 16, .words = 1, .max_rows = 16, .expert_bytes = h->expert_bytes };
    uint64_t initial[HAND_LAYERS] = { 0 };
    for (uint32_t l = 0; l < layers; l++) {
        h->expert_bytes[l] = 1000;
        h->slots[l] = slots;
    }
    const moesim_policy *p = h->spec.policy;
    const size_t bytes = p->state_bytes != NULL ? p->state_bytes(&h->shape, h->spec.options) : 0;
    h->state_bytes = (bytes + 127) / 64 * 64;
    h->state = fresh(h->state_bytes);
    memset(h->state, 0, h->state_bytes);
    const moesim_open open = { .size = sizeof open, .global_scope = global_scope, .shape = &h->shape, .slots = h->slots,
                               .costs = hand_costs, .options = h->spec.options, .seed = seed };
    uint32_t own[HAND_LAYERS];
    memcpy(own, h->slots, sizeof own);
    moesim_start start = { .size = sizeof start, .slots = own, .initial = initial };
    const int answer = p->open != NULL ? p->open(h->state, &open, &start) : 0;
    h->traits = p->traits | start.traits;
    if (error != NULL)
        memcpy(error, start.error, sizeof start.error);
    return answer;
}

void hand_open(struct hand *h, const char *policy, uint32_t layers, uint32_t experts, uint32_t top_k, uint32_t slots)
{
    char error[256];
    ck_assert_msg(hand_try_open(h, policy, layers, experts, top_k, slots, 0, 1, error) == 0, "%s: %s", policy, error);
}

void hand_close(struct hand *h)
{
    free(h->state);
    moesim_policy_spec_fini(&h->spec);
}

static moesim_event show(struct hand *h, const struct hand_event *from)
{
    move(h);
    h->active = 0;
    for (uint32_t i = 0; i < from->n; i++) {
        h->list[i] = from->ids[i];
        h->active |= UINT64_C(1) << from->ids[i];
    }
    moesim_event v = {
        .size = sizeof v, .layer = from->layer, .clock = from->clock, .kind = from->kind, .first = from->first,
        .num_rows = from->num_rows, .num_masked = from->num_masked, .slots = h->slots[from->layer], .n_active = from->n,
        .n_hits = (uint32_t)__builtin_popcountll(h->active & h->resident[from->layer]), .resident = &h->resident[from->layer],
        .active = &h->active, .list = h->list, .count = from->count, .mass = from->mass, .weighted = from->weighted,
        .hindsight = from->hindsight, .class_sum = from->class_sum, .masked = from->masked, .next_use = from->next_use,
        .next_active = &from->next_active, .touch = from->touch, .row = from->row,
    };
    v.n_misses = v.n_active - v.n_hits;
    for (uint32_t i = 0; i < from->n; i++) {
        v.mass_total += from->mass != NULL ? from->mass[i] : 0;
        v.weighted_total += from->weighted != NULL ? from->weighted[i] : 0;
        v.hindsight_total += from->hindsight != NULL ? from->hindsight[i] : 0;
    }
    return v;
}

/* Semantics §1: higher value, higher tie, already resident, lower id. */
static int before(const struct hand *h, uint64_t resident, uint32_t a, uint32_t b)
{
    const uint64_t in_a = resident >> a & 1, in_b = resident >> b & 1;
    if (h->value[a] < h->value[b] || h->value[a] > h->value[b])
        return h->value[a] > h->value[b];
    if (h->tie[a] < h->tie[b] || h->tie[a] > h->tie[b])
        return h->tie[a] > h->tie[b];
    return in_a != in_b ? in_a > in_b : a < b;
}

static void ask(struct hand *h, const struct hand_event *event, int late)
{
    const moesim_event v = show(h, event);
    const uint64_t resident = h->resident[event->layer], moved = h->active & ~resident & ~h->cpu;
    const uint64_t candidates = resident | moved;
    const uint64_t landed = 0;
    const moesim_policy *p = h->spec.policy;
    for (uint32_t e = 0; e < HAND_EXPERTS; e++) {
        h->value[e] = NAN;
        h->tie[e] = 0;
    }
    moesim_keys keys = { .size = sizeof keys, .n_candidates = (uint32_t)__builtin_popcountll(candidates),
                         .candidates = &candidates, .moved = &moved, .landed = &landed, .value = h->value, .tie = h->tie };
    ck_assert_int_eq((late ? p->retain_pass : p->retain)(h->state, &v, &keys), 0);
    uint64_t kept = 0;
    for (uint32_t a = 0; a < h->shape.num_experts; a++) {
        uint32_t better = 0;
        if ((candidates >> a & 1) == 0)
            continue;
        ck_assert_msg(!isnan(h->value[a]) && !isnan(h->tie[a]), "%s: expert %u got no key", p->name, a);
        for (uint32_t b = 0; b < h->shape.num_experts; b++)
            better += b != a && (candidates >> b & 1) != 0 && before(h, resident, b, a);
        kept |= better < h->slots[event->layer] && !isinf(h->value[a]) ? UINT64_C(1) << a : 0;
    }
    h->resident[event->layer] = kept;
    h->cpu = 0;
}

void hand_retain(struct hand *h, const struct hand_event *event)
{
    ask(h, event, 0);
}

void hand_retain_pass(struct hand *h, const struct hand_event *event)
{
    ask(h, event, 1);
}

void hand_dispatch(struct hand *h, const struct hand_event *event)
{
    const moesim_event v = show(h, event);
    const uint64_t misses = h->active & ~h->resident[event->layer];
    h->misses = v.n_misses;
    h->cpu = 0;
    if (misses == 0)
        return;
    for (uint32_t e = 0, n = 0; e < HAND_EXPERTS; e++)
        if ((misses >> e & 1) != 0)
            h->order[n++] = (uint16_t)e;
    moesim_dispatch answer = { .size = sizeof answer, .n_misses = v.n_misses, .misses = &misses, .cpu = &h->cpu,
                               .order = h->order };
    ck_assert_int_eq(h->spec.policy->dispatch(h->state, &v, &answer), 0);
    ck_assert_uint_eq(h->cpu & ~misses, 0);
}

int hand_key(struct hand *h, const struct hand_event *event)
{
    const moesim_event v = show(h, event);
    const uint64_t *key = NULL;
    const int answer = h->spec.policy->retain_key(h->state, &v, &key);
    if (answer == 0)
        memcpy(h->key, key, h->shape.num_experts * sizeof *key);
    return answer;
}

uint32_t hand_boundary(struct hand *h, uint64_t decode_passes)
{
    move(h);
    const moesim_boundary boundary = { .size = sizeof boundary, .kind = MOESIM_DENOISE, .clock = decode_passes + 1,
                                       .decode_passes = decode_passes, .slots = h->slots, .resident = h->resident };
    uint32_t own[HAND_LAYERS];
    memcpy(own, h->slots, sizeof own);
    moesim_boundary_answer answer = { .size = sizeof answer, .slots = own };
    ck_assert_int_eq(h->spec.policy->boundary(h->state, &boundary, &answer), 0);
    memcpy(h->slots, own, sizeof own);
    return answer.eager;
}
