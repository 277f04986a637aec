/* SPDX-License-Identifier: Apache-2.0
 *
 * Making an instance: what is refused, the memory, the policy's open, and which step executes its events.
 */
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "sim/instance.h"
#include "sim/plan.h"
#include "sim/prefetch.h"
#include "sim/timer.h"

/* Age layers larger than this are not worth it: the generic path decides the same. */
#define MOST_AGE_BYTES ((size_t)16 << 20)
#define ROOM_FOR_AGES 32u

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

static bool changes_between_events(const moesim_policy *p)
{
    return p->request != NULL || p->boundary != NULL || p->before_layer != NULL;
}

static moesim_code check_global(const moesim_instance *in, moesim_error *err)
{
    const char *why = NULL;
    if (in->policy->host_mode != MOESIM_HOST_NONE)
        why = "it is a bound over slots, of which scope global has none";
    else if ((in->traits & MOESIM_KEYS_AGE) != 0)
        why = "its keys of untouched experts change with time, so that those of different layers cannot be compared";
    else if ((in->traits & MOESIM_RETAIN_AT_PASS) != 0)
        why = "it selects at the end of a pass, while scope global evicts after every event";
    else if (in->policy->before_layer != NULL)
        why = "it prefetches, which is defined for slots per layer";
    else if (in->dispatches)
        why = "it leaves misses to the CPU, while scope global admits every miss";
    if (why == NULL)
        return MOESIM_OK;
    return moesim_instance_fail(in, err, MOESIM_E_USAGE, "not possible with --scope global: %s; use --scope layer", why);
}

static moesim_code check_flattened(const moesim_instance *in, moesim_error *err)
{
    const moesim_policy *p = in->policy;
    const char *why = NULL;
    if (in->params.scope != MOESIM_SCOPE_LAYER)
        why = "scope global is defined for whole events";
    else if (p->host_mode != MOESIM_HOST_NONE)
        why = "the bound is defined for whole events";
    else if ((in->traits & MOESIM_CLAIRVOYANT) != 0)
        why = "its next use is that of whole events";
    else if ((in->needs & ~(uint32_t)MOESIM_NEED_COUNTS) != 0)
        why = "it reads sums over whole events";
    else if (changes_between_events(p) || in->dispatches || (in->traits & MOESIM_RETAIN_AT_PASS) != 0)
        why = "it acts on whole passes";
    if (why == NULL)
        return MOESIM_OK;
    return moesim_instance_fail(in, err, MOESIM_E_USAGE,
                                "not possible with --order flattened, where every expert is an access of its own: %s; use "
                                "--order atomic",
                                why);
}

static moesim_code check_config(const moesim_instance *in, moesim_error *err)
{
    if (in->params.scope == MOESIM_SCOPE_LAYER && in->config.cache > in->shape.num_experts)
        return moesim_instance_fail(in, err, MOESIM_E_USAGE,
                                    "a cache of %u experts per layer is more than the %u that a layer has", in->config.cache,
                                    in->shape.num_experts);
    if (in->policy->host_mode == MOESIM_HOST_NONE && in->policy->retain == NULL)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY, "it has no retain callback");
    if (in->config.num_costings > 0 &&
        (in->params.scope == MOESIM_SCOPE_GLOBAL || in->params.order == MOESIM_FLATTENED))
        return moesim_fail(err, MOESIM_E_USAGE,
                           "time is told for slots per layer and whole events; use --time count with --scope global and "
                           "--order flattened");
    if (in->params.check_observed && in->params.batch > 1)
        return moesim_fail(err, MOESIM_E_USAGE,
                           "--check-observed compares pass by pass with what was recorded; leave --batch at 1");
    if (in->params.check_observed && in->params.scope != MOESIM_SCOPE_GLOBAL)
        return moesim_fail(err, MOESIM_E_USAGE,
                           "--check-observed compares with a cache of one budget; give --scope global and its bytes");
    return MOESIM_OK;
}

/* Traits are complete only after open. */
static moesim_code check_traits(moesim_instance *in, uint32_t added, moesim_error *err)
{
    const uint32_t allowed = MOESIM_KEYS_AGE | MOESIM_RETAIN_AT_PASS | MOESIM_NON_CAUSAL | MOESIM_MOVES_ALL;
    if ((added & ~(allowed | in->policy->traits)) != 0)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY,
                                    "open adds trait 0x%x; only keys-age, retain-at-pass, non-causal and moves-all may depend "
                                    "on options",
                                    added & ~(allowed | in->policy->traits));
    in->traits |= added;
    in->at_pass = (in->traits & MOESIM_RETAIN_AT_PASS) != 0;
    in->dispatches = in->policy->dispatch != NULL && (in->traits & MOESIM_MOVES_ALL) == 0;
    if (in->at_pass && in->policy->retain_pass == NULL)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY,
                                    "it retains at the end of a pass but has no retain_pass callback");
    if (in->params.scope == MOESIM_SCOPE_GLOBAL && check_global(in, err) != MOESIM_OK)
        return err->code;
    return in->params.order == MOESIM_FLATTENED ? check_flattened(in, err) : MOESIM_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

typedef struct piece { size_t n, each; void **out; const char *what; } piece;

static moesim_code take_all(moesim_instance *in, const piece *list, size_t n, moesim_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (moesim_arena_take(in->arena, list[i].n, list[i].each, list[i].what, list[i].out, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

static moesim_code take_turns(moesim_instance *in, moesim_error *err)
{
    const size_t n = in->at_pass ? in->shape.num_layers : 1, words = in->shape.words;
    if (moesim_arena_take(in->arena, n, sizeof *in->turn, "events in flight", (void **)&in->turn, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < n; i++) {
        moesim_turn *t = &in->turn[i];
        const piece list[] = {
            {words, 8, (void **)&t->before, "events in flight"},     {words, 8, (void **)&t->misses, "events in flight"},
            {words, 8, (void **)&t->cpu, "events in flight"},        {words, 8, (void **)&t->moved, "events in flight"},
            {words, 8, (void **)&t->candidates, "events in flight"}, {words, 8, (void **)&t->keep, "events in flight"},
            {in->shape.num_experts, sizeof *t->order, (void **)&t->order, "events in flight"},
        };
        if (take_all(in, list, sizeof list / sizeof *list, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

static moesim_code take_sets(moesim_instance *in, moesim_error *err)
{
    const size_t layers = in->shape.num_layers, sets = layers * in->shape.words;
    const piece list[] = {
        {sets, 8, (void **)&in->resident, "residency"},
        {sets, 8, (void **)&in->landed, "residency"},
        {sets, 8, (void **)&in->dropped, "residency"},
        {layers, sizeof *in->slots, (void **)&in->slots, "slots per layer"},
        {layers, sizeof *in->answer, (void **)&in->answer, "slots per layer"},
        {layers, sizeof *in->slots_1, (void **)&in->slots_1, "slots per layer"},
        {layers, sizeof *in->slots_2, (void **)&in->slots_2, "slots per layer"},
        {layers, sizeof *in->swings, (void **)&in->swings, "slots per layer"},
        {(size_t)4 * in->shape.num_experts, sizeof *in->logged, (void **)&in->logged, "lists for the decision log"},
    };
    return take_all(in, list, sizeof list / sizeof *list, err);
}

/* Standing keys per layer where something may evict between events, else one scratch pair. */
static moesim_code take_keys(moesim_instance *in, moesim_error *err)
{
    const size_t keys = (size_t)in->shape.words * 64u;
    const bool standing = changes_between_events(in->policy) || in->params.scope == MOESIM_SCOPE_GLOBAL;
    const size_t n = standing ? keys * in->shape.num_layers : keys;
    const piece list[] = {
        {n, sizeof *in->value, (void **)&in->value, "keys of experts"},
        {n, sizeof *in->tie, (void **)&in->tie, "keys of experts"},
        {(size_t)2 * in->shape.num_layers, sizeof *in->hint, (void **)&in->hint, "keys of experts"},
    };
    in->key_stride = standing ? keys : 0;
    if (take_all(in, list, sizeof list / sizeof *list, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < n; i++)
        in->value[i] = -INFINITY;
    return MOESIM_OK;
}

/* ---- open ------------------------------------------------------------------------------------------------------------ */

static moesim_code take_state(moesim_instance *in, moesim_error *err)
{
    const size_t bytes = in->policy->state_bytes != NULL ? in->policy->state_bytes(&in->shape, in->config.options) : 0;
    if (bytes > MOESIM_MAX_STATE_BYTES)
        return moesim_instance_fail(in, err, MOESIM_E_LIMIT, "it asks for %zu bytes of state; at most %zu are given", bytes,
                                    MOESIM_MAX_STATE_BYTES);
    return moesim_arena_take(in->arena, bytes, 1, "the state of a policy", &in->state, err);
}

static moesim_code call_open(moesim_instance *in, uint64_t *initial, uint32_t *added, moesim_error *err)
{
    const bool global = in->params.scope == MOESIM_SCOPE_GLOBAL;
    const moesim_open open = {
        .size = sizeof open,
        .global_scope = global,
        .shape = &in->shape,
        .slots = in->slots,
        .costs = in->config.costs,
        .options = in->config.options,
        .seed = in->params.seed,
    };
    moesim_start start = {.size = sizeof start, .slots = in->answer, .initial = initial};
    if (in->policy->open(in->state, &open, &start) != 0) {
        start.error[sizeof start.error - 1] = '\0';
        return moesim_instance_fail(in, err, MOESIM_E_USAGE, "%s", start.error[0] != '\0' ? start.error : "it cannot start");
    }
    in->opened = true;
    *added = start.traits;
    if (moesim_plan_slots(in, in->answer, "open", err) != MOESIM_OK)
        return err->code;
    memcpy(in->slots, in->answer, in->shape.num_layers * sizeof *in->slots);
    return moesim_plan_initial(in, initial, err);
}

static moesim_code open_policy(moesim_instance *in, moesim_error *err)
{
    const bool global = in->params.scope == MOESIM_SCOPE_GLOBAL;
    const uint32_t layers = in->shape.num_layers;
    const uint32_t each = global ? 0 : in->policy->host_mode == MOESIM_HOST_FULL ? in->shape.num_experts : in->config.cache;
    uint32_t added = 0;
    for (uint32_t l = 0; l < layers; l++) {
        in->slots[l] = in->answer[l] = each;
        in->slots_1[l] = in->slots_2[l] = UINT32_MAX;
    }
    in->total_slots = (uint64_t)each * layers;
    if (take_state(in, err) != MOESIM_OK)
        return err->code;
    if (in->policy->open != NULL && call_open(in, in->resident, &added, err) != MOESIM_OK)
        return err->code;
    in->opened = true;
    for (uint32_t l = 0; l < layers; l++) {
        in->slots_1[l] = in->slots[l];
        in->slot_bytes += in->slots[l] * in->shape.expert_bytes[l];
    }
    if (global)
        in->slot_bytes = in->config.cache_bytes;
    in->most_slot_bytes = in->slot_bytes;
    return check_traits(in, added, err);
}

/* ---- which step -------------------------------------------------------------------------------------------------------- */

static const moesim_steps *steps_of(const moesim_kernels *kernels)
{
#ifdef MOESIM_STEPS_AVX2
    /* whatever is above the baseline includes AVX2 */
    return strcmp(kernels->name, moesim_steps_base.name) == 0 ? &moesim_steps_base : &moesim_steps_avx2;
#else
    (void)kernels;
    return &moesim_steps_base;
#endif
}

/* Layers that hold a resident are no more than slots; the others are room for new ones between two packings. */
static moesim_code take_ages(moesim_instance *in, bool *fits, moesim_error *err)
{
    const size_t layers = in->shape.num_layers, words = in->shape.words;
    in->age_depth = in->config.cache + ROOM_FOR_AGES;
    *fits = layers * in->age_depth * words * sizeof *in->age <= MOST_AGE_BYTES;
    if (!*fits)
        return MOESIM_OK;
    const piece list[] = {
        {layers * in->age_depth * words, sizeof *in->age, (void **)&in->age, "ages of residents"},
        {layers, sizeof *in->ages, (void **)&in->ages, "ages of residents"},
    };
    if (take_all(in, list, 2, err) != MOESIM_OK)
        return err->code;
    for (size_t l = 0; l < layers; l++) {
        /* residents from the start are the oldest */
        in->ages[l] = (moesim_ages){in->age_depth - 1, in->age_depth};
        memcpy(in->age + ((l + 1) * in->age_depth - 1) * words, in->resident + l * words, words * sizeof *in->age);
    }
    return MOESIM_OK;
}

static moesim_code choose_fast(moesim_instance *in, const moesim_steps *steps, moesim_error *err)
{
    const moesim_policy *p = in->policy;
    bool fits = false;
    in->step = steps->generic;
    if (in->params.generic || in->at_pass || in->dispatches || changes_between_events(p))
        return MOESIM_OK;
    if (p->order == MOESIM_ORDER_KEY) {
        in->by_key = p->retain_key != NULL;
        if (in->by_key && in->shape.num_experts % 64u != 0)
            return moesim_arena_take(in->arena, (size_t)in->shape.words * 64u, sizeof *in->padded, "keys of experts",
                                     (void **)&in->padded, err);
    } else if (!in->logs && p->order == MOESIM_ORDER_ACTIVE) {
        in->step = steps->active;
    } else if (!in->logs && p->order == MOESIM_ORDER_RECENCY) {
        if (take_ages(in, &fits, err) != MOESIM_OK)
            return err->code;
        in->step = fits ? steps->recency : steps->generic;
    }
    return MOESIM_OK;
}

static moesim_code choose_step(moesim_instance *in, moesim_error *err)
{
    static moesim_step_fn *const host[] = {
        [MOESIM_HOST_IDEAL] = moesim_step_ideal,
        [MOESIM_HOST_IDEAL_POOLED] = moesim_step_ideal_pooled,
        [MOESIM_HOST_FULL] = moesim_step_full,
        [MOESIM_HOST_BELADY_POOLED] = moesim_step_belady_pooled,
    };
    const uint32_t mode = in->policy->host_mode;
    if (mode >= sizeof host / sizeof *host)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY, "it asks for host mode %u, which does not exist", mode);
    if (mode != MOESIM_HOST_NONE) {
        in->step = host[mode];
        return mode == MOESIM_HOST_BELADY_POOLED ? moesim_pooled_init(in, err) : MOESIM_OK;
    }
    if (in->params.scope == MOESIM_SCOPE_GLOBAL) {
        in->step = moesim_step_global;
        return moesim_global_init(in, err);
    }
    if (in->params.order == MOESIM_FLATTENED) {
        in->step = moesim_step_flat;
        return MOESIM_OK;
    }
    return choose_fast(in, steps_of(in->kernels), err);
}

moesim_code moesim_instance_setup(moesim_instance *in, moesim_error *err)
{
    const uint64_t first = in->params.request_begin + in->params.warmup;
    const bool global = in->params.scope == MOESIM_SCOPE_GLOBAL;
    const uint32_t mode = in->policy->host_mode;
    if (check_config(in, err) != MOESIM_OK || take_sets(in, err) != MOESIM_OK ||
        moesim_account_init(&in->account, in->arena, &in->shape, first, err) != MOESIM_OK ||
        open_policy(in, err) != MOESIM_OK || take_turns(in, err) != MOESIM_OK || take_keys(in, err) != MOESIM_OK ||
        moesim_account_slots(&in->account, in->arena, global ? NULL : in->slots, err) != MOESIM_OK ||
        moesim_prefetch_init(in, err) != MOESIM_OK)
        return err->code;
    if (in->config.num_costings > 0 &&
        moesim_timer_create(in->config.costing, in->config.num_costings, moesim_prefetch_most(in), first, &in->timer, err) !=
            MOESIM_OK)
        return err->code;
    in->account.free_reload = mode == MOESIM_HOST_IDEAL || mode == MOESIM_HOST_IDEAL_POOLED;
    return choose_step(in, err);
}
