/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells of a raw file beside what the model says of them: grouping, calibration, predictions with and without each effect.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/options.h"
#include "cli/fidelity.h"

static bool same_real(double a, double b)
{
    return a <= b && a >= b;
}

/* ---- cells ----------------------------------------------------------------------------------------------------------- */

static moesim_executed *find_cell(moesim_fidelity_set *set, const moesim_replay_cell *c)
{
    for (size_t i = 0; i < set->num_cells; i++)
        if (set->executed[i].plan == c->plan && set->executed[i].mode == c->mode &&
            same_real(set->executed[i].cap, c->bandwidth_cap))
            return &set->executed[i];
    return NULL;
}

static moesim_code group(moesim_fidelity_set *set, moesim_error *err)
{
    const moesim_replay_file *f = &set->file;
    void *executed = NULL, *cell = NULL;
    if (moesim_alloc(f->num_cells, sizeof *set->executed, "cells", &executed, err) != MOESIM_OK)
        return err->code;
    set->executed = executed;
    for (size_t i = 0; i < f->num_cells; i++) {
        const moesim_replay_cell *c = &f->cell[i];
        moesim_executed *e = find_cell(set, c);
        if (e == NULL) {
            e = &set->executed[set->num_cells++];
            *e = (moesim_executed){.plan = c->plan, .cap = c->bandwidth_cap, .mode = c->mode};
        }
        const size_t bytes = (e->repeats + (size_t)1) * sizeof *e->measured;
        const uint32_t **measured = realloc(e->measured, bytes), **busy = realloc(e->busy, bytes);
        e->measured = measured != NULL ? measured : e->measured;
        e->busy = busy != NULL ? busy : e->busy;
        if (measured == NULL || busy == NULL)
            return moesim_fail_nomem(err, "cells", bytes);
        e->measured[e->repeats] = c->ns;
        e->busy[e->repeats++] = c->link;
    }
    if (moesim_alloc(set->num_cells, sizeof *set->cell, "cells", &cell, err) != MOESIM_OK)
        return err->code;
    set->cell = cell;
    return MOESIM_OK;
}

static bool same_decisions(const moesim_fidelity_set *set, const moesim_executed *e)
{
    const moesim_replay_plan *p = &set->file.plan[e->plan];
    if (strcmp(p->decisions, set->replayed[e->plan].digest) != 0)
        return false;
    for (size_t i = 0; i < set->file.num_cells; i++)
        if (set->file.cell[i].plan == e->plan && strcmp(set->file.cell[i].executed, p->decisions) != 0)
            return false;
    return true;
}

/* Bytes are those of the first execution; all repeats copy the same. */
static const uint64_t *bytes_of(const moesim_fidelity_set *set, const moesim_executed *e)
{
    for (size_t i = 0; i < set->file.num_cells; i++)
        if (set->file.cell[i].ns == e->measured[0])
            return set->file.cell[i].bytes;
    return NULL;
}

static double link_rate(const moesim_fidelity_report *r, const moesim_executed *e)
{
    const double bytes = (double)r->expert_bytes[0], rate = e->cap > 0 ? e->cap : r->profile->link_bandwidth.value;
    return bytes / (r->profile->link_alpha.value + bytes / rate);
}

static moesim_code fill_cell(const moesim_fidelity_report *r, moesim_fidelity_set *set, size_t i, moesim_error *err)
{
    moesim_executed *e = &set->executed[i];
    const moesim_replay_plan *p = &set->file.plan[e->plan];
    const moesim_works *s = &set->replayed[e->plan].works;
    void *misses = NULL;
    if (s->num_events != set->replayed[0].works.num_events)
        return moesim_fail(err, MOESIM_E_FORMAT, "the plans of the raw file differ in their number of events");
    if (moesim_alloc(s->num_events, sizeof *e->misses, "misses", &misses, err) != MOESIM_OK)
        return err->code;
    e->misses = misses;
    for (uint64_t k = 0; k < s->num_events; k++)
        e->misses[k] = (uint16_t)(s->event[k].n_moved + s->event[k].n_cpu);
    set->cell[i] = (moesim_fidelity_cell){
        .policy = p->policy, .cache = (uint32_t)p->cache, .cap = e->cap, .reference = p->full,
        .same_decisions = same_decisions(set, e), .repeats = e->repeats, .measured = e->measured, .busy_link = e->busy,
        .misses = e->misses, .bytes = bytes_of(set, e), .link_rate = link_rate(r, e),
    };
    return MOESIM_OK;
}

/* ---- passes ---------------------------------------------------------------------------------------------------------- */

static moesim_code take_passes(moesim_fidelity_report *r, moesim_fidelity_set *set, moesim_error *err)
{
    const moesim_works *s = &set->replayed[0].works;
    const uint64_t n = s->num_events / s->num_layers;
    void *p = NULL;
    uint32_t request = MOESIM_NO_REQUEST, last = MOESIM_NO_REQUEST;
    int32_t block = -1;
    if (moesim_alloc(n, sizeof *set->pass, "passes", &p, err) != MOESIM_OK)
        return err->code;
    set->pass = p;
    for (uint64_t i = 0; i < n; i++) {
        const moesim_works_event *e = &s->event[i * s->num_layers];
        moesim_pass pass;
        if (moesim_trace_pass(r->trace, e->pass, &pass, err) != MOESIM_OK)
            return err->code;
        if (e->counted && e->request != last) {
            request = request == MOESIM_NO_REQUEST ? 0 : request + 1;
            last = e->request;
        }
        set->pass[i].request = e->counted ? request : MOESIM_NO_REQUEST;
        set->pass[i].first = pass.block != block;
        block = pass.block;
    }
    set->input = (moesim_fidelity_input){
        .num_layers = s->num_layers, .num_passes = (uint32_t)n, .num_requests = set->num_requests, .pass = set->pass,
        .output_tokens = set->tokens, .num_cells = set->num_cells, .cell = set->cell, .seed = r->words->seed,
    };
    return MOESIM_OK;
}

/* ---- calibration ----------------------------------------------------------------------------------------------------- */

static moesim_costing_params costing_params(const moesim_fidelity_report *r, const moesim_fidelity_set *set)
{
    const moesim_replay_config *c = &set->file.config;
    /* the head is no part of an event, and what a policy decides is known before a locked replay begins */
    uint32_t effects = MOESIM_EFFECT_ALL & ~(uint32_t)MOESIM_EFFECT_HEAD;
    bool live = false;
    for (size_t i = 0; i < set->num_cells; i++)
        live = live || set->executed[i].mode == MOESIM_REPLAY_LIVE;
    effects &= live ? ~0u : ~(uint32_t)MOESIM_EFFECT_POLICY;
    effects &= c->other != 0 ? ~0u : ~(uint32_t)MOESIM_EFFECT_OTHER;
    return (moesim_costing_params){
        .profile = r->profile, .mode = MOESIM_TIME_MODEL, .effects = effects, .staging = (uint32_t)c->staging,
        .num_layers = r->info->num_layers, .max_rows = r->info->block_length * (uint32_t)(c->batch > 0 ? c->batch : 1),
        .expert_bytes = r->expert_bytes, .hidden_bytes = 2 * c->hidden,
    };
}

/* The second capacity of a policy: of its capacities in ascending order, or the only one. */
static uint32_t second_cache(const moesim_fidelity_set *set, const char *policy)
{
    uint32_t least = UINT32_MAX, second = UINT32_MAX;
    for (size_t i = 0; i < set->num_cells; i++)
        if (strcmp(set->cell[i].policy, policy) == 0 && set->cell[i].cache < least)
            least = set->cell[i].cache;
    for (size_t i = 0; i < set->num_cells; i++)
        if (strcmp(set->cell[i].policy, policy) == 0 && set->cell[i].cache > least && set->cell[i].cache < second)
            second = set->cell[i].cache;
    return second != UINT32_MAX ? second : least;
}

/* lru if it is there, else the first policy; nothing where there is one cell alone. */
static void choose_default(moesim_fidelity_report *r, const moesim_fidelity_set *set)
{
    const char *policy = NULL;
    size_t cells = 0;
    for (size_t i = 0; i < set->num_cells; i++) {
        cells += !set->cell[i].reference;
        if (!set->cell[i].reference && (policy == NULL || strcmp(set->cell[i].policy, "lru") == 0))
            policy = set->cell[i].policy;
    }
    if (cells > 1)               /* one cell cannot be fitted and tested */
        snprintf(r->calibrated_on, sizeof r->calibrated_on, "%s:%" PRIu32, policy, second_cache(set, policy));
}

moesim_code moesim_fidelity_calibrate_words(const char *text, size_t *chars, uint64_t *cache, moesim_error *err)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "option --calibrate: '%.64s' is no POLICY:CACHE (lru:40) and not 'none'", text);
    *chars = (size_t)(colon - text);
    return moesim_parse_u64(colon + 1, 0, UINT32_MAX, "option --calibrate", cache, err);
}

static moesim_code mark(moesim_fidelity_report *r, moesim_fidelity_set *set, moesim_error *err)
{
    const char *text = r->calibrated_on;
    uint64_t cache = 0;
    size_t chars = 0, marked = 0, tests = 0;
    if (moesim_fidelity_calibrate_words(text, &chars, &cache, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < set->num_cells; i++) {
        moesim_fidelity_cell *c = &set->cell[i];
        c->calibration = !c->reference && c->cache == cache && strlen(c->policy) == chars &&
                         strncmp(c->policy, text, chars) == 0;
        marked += c->calibration;
        tests += !c->calibration && !c->reference;
    }
    if (marked == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --calibrate: the grid has no cell of policy %.*s at capacity %s",
                           (int)chars, text, text + chars + 1);
    if (tests == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --calibrate: no cell is left to test; give --calibrate none");
    return MOESIM_OK;
}

static void warn(const moesim_fidelity_report *r)
{
    static const char *const names[] = {
        [MOESIM_CALIBRATED_SYNC] = "the fixed time of an event (sync)", [MOESIM_CALIBRATED_GPU] = "the GPU table",
        [MOESIM_CALIBRATED_LINK] = "the link's bandwidth", [MOESIM_CALIBRATED_CPU] = "the CPU table"};
    for (size_t k = 0; k < MOESIM_CALIBRATED_CONSTANTS; k++)
        if (r->calibration.part[k].state == MOESIM_CALIBRATION_BOUND)
            moesim_log(MOESIM_LOG_WARN, "calibration on %s: %s would change by more than a factor of %g, so it stays as "
                       "measured; is the profile of this machine?", r->calibrated_on, names[k], MOESIM_CALIBRATION_FACTOR);
}

static moesim_code calibrate(moesim_fidelity_report *r, moesim_fidelity_set *set, moesim_error *err)
{
    const char *words = r->words->calibrate;
    if (words != NULL && strcmp(words, "none") != 0)
        snprintf(r->calibrated_on, sizeof r->calibrated_on, "%s", words);
    else if (words == NULL)
        choose_default(r, set);
    if (r->calibrated_on[0] == '\0')
        return MOESIM_OK;
    void *p = NULL;
    if (mark(r, set, err) != MOESIM_OK ||
        moesim_alloc(set->num_cells, sizeof(moesim_calibration_cell), "cells", &p, err) != MOESIM_OK)
        return err->code;
    moesim_calibration_cell *cell = p;
    size_t n = 0;
    for (size_t i = 0; i < set->num_cells; i++)
        if (set->cell[i].calibration)
            cell[n++] = (moesim_calibration_cell){
                .works = &set->replayed[set->executed[i].plan].works, .bandwidth = set->executed[i].cap,
                .repeats = set->executed[i].repeats, .measured = set->executed[i].measured,
            };
    const moesim_costing_params params = costing_params(r, set);
    const moesim_code code = moesim_calibrate(&params, cell, n, &r->calibration, err);
    free(p);
    if (code != MOESIM_OK)
        return code;
    r->calibrated = true;
    warn(r);
    moesim_calibration_apply(&r->calibration, r->fitted, NULL);
    return MOESIM_OK;
}

/* ---- predictions ----------------------------------------------------------------------------------------------------- */

static moesim_code predict(const moesim_fidelity_report *r, moesim_fidelity_set *set, size_t i, moesim_error *err)
{
    static const uint32_t off[MOESIM_VARIANTS] = {0, MOESIM_EFFECT_CONTENTION, MOESIM_EFFECT_SYNC, MOESIM_EFFECT_OVERLAP};
    moesim_executed *e = &set->executed[i];
    moesim_code code = MOESIM_OK;
    for (size_t v = 0; v < MOESIM_VARIANTS && code == MOESIM_OK; v++) {
        moesim_costing_params params = costing_params(r, set);
        moesim_costing *costing = NULL;
        params.profile = r->fitted;
        params.bandwidth = e->cap * (r->calibrated ? r->calibration.link : 1.0);
        params.effects &= ~off[v];
        code = moesim_costing_create(&params, &costing, err);
        if (code == MOESIM_OK)
            code = moesim_predict(&set->replayed[e->plan].works, costing, &e->prediction[v], err);
        set->cell[i].predicted[v] = e->prediction[v].seconds;
        moesim_costing_destroy(&costing);
    }
    set->cell[i].link_bound = e->prediction[0].link_bound;
    return code;
}

moesim_code moesim_fidelity_compare(moesim_fidelity_report *r, moesim_fidelity_set *set, bool fit, moesim_error *err)
{
    moesim_code code = group(set, err);
    for (size_t i = 0; code == MOESIM_OK && i < set->num_cells; i++)
        code = fill_cell(r, set, i, err);
    if (code == MOESIM_OK)
        code = take_passes(r, set, err);
    if (code == MOESIM_OK && fit)
        code = calibrate(r, set, err);
    for (size_t i = 0; code == MOESIM_OK && i < set->num_cells; i++)
        code = predict(r, set, i, err);
    return code == MOESIM_OK ? moesim_fidelity_compute(&set->input, &set->result, err) : code;
}
