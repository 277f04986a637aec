/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an instance: create, advance over windows, finish, destroy.
 */
#include "sim/instance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sim/timer.h"

/* Everything but the policy's state, which has a limit of its own. */
#define MOST_INSTANCE_BYTES ((size_t)1 << 30)

#define COUNTER_CHARS 64   /* of a counter's name, with the final zero */

/* Policy counters that a result can hold. */
#define MOST_COUNTERS (sizeof ((moesim_outcome *)0)->counter / sizeof(moesim_counter))

void moesim_run_params_defaults(moesim_run_params *params)
{
    *params = (moesim_run_params){
        .scope = MOESIM_SCOPE_LAYER,
        .order = MOESIM_ATOMIC,
        .request_end = UINT64_MAX,
        .batch = 1,
        .staging = 4,
        .prefetch_budget = UINT32_MAX,
        .threads = 1,
        .window_bytes = (size_t)16 << 20,
    };
}

moesim_code moesim_instance_create(const moesim_shape *shape, const moesim_run_params *params, const moesim_config *config,
                                   moesim_instance **out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    moesim_arena *arena;
    moesim_instance *in;
    *out = NULL;
    if (moesim_arena_create(MOESIM_MAX_STATE_BYTES + MOST_INSTANCE_BYTES, &arena, err) != MOESIM_OK)
        return err->code;
    uint64_t *bytes;
    if (moesim_arena_take(arena, 1, sizeof *in, "a configuration", (void **)&in, err) != MOESIM_OK ||
        moesim_arena_take(arena, shape->num_layers, sizeof *bytes, "a configuration", (void **)&bytes, err) != MOESIM_OK) {
        moesim_arena_destroy(&arena);
        return err->code;
    }
    memcpy(bytes, shape->expert_bytes, shape->num_layers * sizeof *bytes);
    in->arena = arena;
    in->shape = *shape;
    in->shape.expert_bytes = bytes;
    in->params = *params;
    in->logs = params->declog != NULL || params->sink != NULL;
    in->config = *config;
    in->policy = config->policy;
    in->traits = config->policy->traits;
    in->needs = config->policy->needs != NULL ? config->policy->needs(config->options) : 0;
    in->kernels = moesim_kernels_get();
    if (moesim_instance_setup(in, err) != MOESIM_OK) {
        moesim_instance_destroy(&in);
        return err->code;
    }
    *out = in;
    return MOESIM_OK;
}

void moesim_instance_destroy(moesim_instance **instance)
{
    if (instance == NULL || *instance == NULL)
        return;
    moesim_instance *in = *instance;
    moesim_counter counter[MOST_COUNTERS];
    moesim_counters ignored = {.size = sizeof ignored, .capacity = MOST_COUNTERS, .counter = counter};
    if (in->opened && in->policy->close != NULL)
        in->policy->close(in->state, &ignored);
    moesim_account_fini(&in->account);
    moesim_timer_destroy(&in->timer);
    free(in->row);
    free(in->ended);
    moesim_arena *arena = in->arena;
    moesim_arena_destroy(&arena);
    *instance = NULL;
}

static moesim_code run_step(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    if (moesim_account_begin(&in->account, w, step, err) != MOESIM_OK || moesim_view_step(in, w, step, err) != MOESIM_OK ||
        moesim_boundary_before(in, w, step, err) != MOESIM_OK)
        return err->code;
    const moesim_code code = in->step(in, w, step, err);
    if (code != MOESIM_OK)
        return code;
    moesim_account_end(&in->account, w, step);
    if (in->timer != NULL && moesim_timer_end(in->timer, w, step, err) != MOESIM_OK)
        return err->code;
    return moesim_boundary_after(in, w, step, err);
}

moesim_code moesim_instance_advance(moesim_instance *in, const moesim_window *w, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    for (uint32_t s = 0; s < w->num_steps; s++)
        if (run_step(in, w, &w->step[s], err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

/* Scope global has no slots, hence neither floor nor ratio. */
static void leave_out_slots(moesim_sums *s)
{
    s->floor = s->utilisation = s->ratio_sum = s->ratio_over = NAN;
}

static moesim_code give_requests(moesim_instance *in, moesim_outcome *out, moesim_error *err)
{
    moesim_account *a = &in->account;
    out->request_id = malloc((a->num_requests + (size_t)1) * sizeof *out->request_id);
    if (out->request_id == NULL)
        return moesim_fail_nomem(err, "the numbers of requests", (a->num_requests + (size_t)1) * sizeof *out->request_id);
    for (uint32_t i = 0; i < a->num_requests; i++) {
        out->request_id[i] = (uint32_t)(a->first_request + i);
        if (in->params.scope == MOESIM_SCOPE_GLOBAL)
            leave_out_slots(&a->request[i]);
    }
    out->num_requests = a->num_requests;
    out->request = a->request;
    a->request = NULL;
    a->num_requests = a->capacity = 0;
    return MOESIM_OK;
}

static uint64_t largest_expert(const moesim_shape *shape)
{
    uint64_t most = 0;
    for (uint32_t l = 0; l < shape->num_layers; l++)
        most = shape->expert_bytes[l] > most ? shape->expert_bytes[l] : most;
    return most;
}

static moesim_code give_layers(const moesim_account *a, moesim_outcome *out, moesim_error *err)
{
    if (moesim_alloc(a->layers, sizeof *out->layer, "the sums of the layers", (void **)&out->layer, err) != MOESIM_OK)
        return err->code;
    out->num_layers = a->layers;
    for (uint32_t l = 0; l < a->layers; l++) {
        const moesim_layer_tally *t = &a->layer[l];
        out->layer[l] = (moesim_layer_sums){
            .events = (uint64_t)a->total.passes,   /* a whole number: every counted step has one event a layer */
            .active = t->active,
            .hits = t->hits,
            .misses = t->active - t->hits,
            .moved = t->moved,
            .cpu = t->active - t->hits - t->moved,
            .moved_bytes = t->moved * a->expert_bytes[l],
            .slots = t->slots,
        };
    }
    return MOESIM_OK;
}

static moesim_code give_timings(moesim_instance *in, moesim_outcome *out, moesim_error *err)
{
    const uint32_t n = in->timer != NULL ? moesim_timer_count(in->timer) : 0;
    if (n == 0)
        return MOESIM_OK;
    if (moesim_alloc(n, sizeof *out->timing, "the times of a configuration", (void **)&out->timing, err) != MOESIM_OK)
        return err->code;
    out->num_timings = n;
    return moesim_timer_finish(in->timer, out->num_requests, out->timing, err);
}

/* Printable, and no longer than a table shows. */
static bool is_counter_name(const char *name)
{
    size_t n = 0;
    while (name != NULL && n < COUNTER_CHARS && name[n] > ' ' && name[n] <= '~')
        n++;
    return n > 0 && n < COUNTER_CHARS && name[n] == '\0';
}

static moesim_code check_counters(moesim_instance *in, const moesim_counters *c, const moesim_counter *own, moesim_error *err)
{
    if (c->counter != own)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY, "close replaces the array of counters that it is to fill");
    if (c->n > MOST_COUNTERS)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY, "close reports %u counters; there is room for %zu", c->n,
                                    MOST_COUNTERS);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!is_counter_name(own[i].name))
            return moesim_instance_fail(in, err, MOESIM_E_POLICY, "close names counter %u with other than 1 to %d printable "
                                        "characters", i, COUNTER_CHARS - 1);
        if (!isfinite(own[i].value))
            return moesim_instance_fail(in, err, MOESIM_E_POLICY, "close reports counter '%s' as %g", own[i].name,
                                        own[i].value);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(own[k].name, own[i].name) == 0)
                return moesim_instance_fail(in, err, MOESIM_E_POLICY, "close reports counter '%s' twice", own[i].name);
    }
    return MOESIM_OK;
}

moesim_code moesim_instance_finish(moesim_instance *in, moesim_outcome *out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    moesim_account *a = &in->account;
    if (moesim_account_p95(a, &out->ratio_p95, err) != MOESIM_OK || give_requests(in, out, err) != MOESIM_OK ||
        give_layers(a, out, err) != MOESIM_OK || give_timings(in, out, err) != MOESIM_OK)
        return err->code;
    out->total = a->total;
    if (in->params.scope == MOESIM_SCOPE_GLOBAL)
        leave_out_slots(&out->total);
    out->evictions = a->evictions;
    out->insertions = a->insertions;
    out->all_accesses = a->accesses;
    out->all_hits = a->hits;
    out->read_bytes = a->read_bytes;
    out->pending = moesim_account_pending(a);
    out->refused = in->refused;
    out->peak_bytes = in->most_slot_bytes + in->params.staging * largest_expert(&in->shape) + in->overshoot;
    out->overshoot_bytes = in->overshoot;
    out->capacity_changes = in->capacity_changes;
    out->oscillations = in->oscillations;
    out->observed_checked = in->observed_checked;
    out->observed_wrong = in->observed_wrong;
    out->observed_first_wrong = in->wrong_index;
    out->traits = in->traits;
    if (in->opened && in->policy->close != NULL) {
        moesim_counters counters = {.size = sizeof counters, .capacity = MOST_COUNTERS, .counter = out->counter};
        in->opened = false;
        in->policy->close(in->state, &counters);
        if (check_counters(in, &counters, out->counter, err) != MOESIM_OK)
            return err->code;
        out->num_counters = counters.n;
    }
    in->opened = false;
    return MOESIM_OK;
}

void moesim_outcome_fini(moesim_outcome *outcome)
{
    free(outcome->request);
    free(outcome->request_id);
    free(outcome->layer);
    for (uint32_t i = 0; i < outcome->num_timings; i++)
        moesim_timing_fini(&outcome->timing[i]);
    free(outcome->timing);
    memset(outcome, 0, sizeof *outcome);
}
