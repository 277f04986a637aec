/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw replay files in memory: building, looking up, comparing configurations, joining parts.
 */
#include "sim/replay_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "sim/replay_fields.h"

#define AT(field) offsetof(moesim_replay_config, field)

const moesim_replay_field moesim_replay_fields[] = {
    {"trace", AT(trace), true, false}, {"trace_digest", AT(trace_digest), true, true}, {"model_id", AT(model_id), true, true},
    {"priced_as", AT(priced_as), true, true}, {"device", AT(device), true, true}, {"isa", AT(isa), true, true},
    {"machine", AT(machine), true, true},
    {"cpus", AT(cpus), true, false}, {"profile", AT(profile), true, false}, {"profile_digest", AT(profile_digest), true, true},
    {"moesim_version", AT(moesim_version), true, false},
    {"num_layers", AT(num_layers), false, true}, {"num_experts", AT(num_experts), false, true},
    {"top_k", AT(top_k), false, true}, {"hidden", AT(hidden), false, true}, {"intermediate", AT(intermediate), false, true},
    {"request_begin", AT(request_begin), false, true}, {"request_end", AT(request_end), false, true},
    {"warmup", AT(warmup), false, true}, {"batch", AT(batch), false, true}, {"seed", AT(seed), false, true},
    {"staging", AT(staging), false, true}, {"max_rows", AT(max_rows), false, true}, {"slots", AT(slots), false, true},
    {"pool", AT(pool), false, true}, {"other", AT(other), false, true}, {"context", AT(context), false, true},
    {"threads", AT(threads), false, true}, {"pinned", AT(pinned), false, true},
    {"planned_cells", AT(planned_cells), false, false}, {NULL, 0, false, false},
};

/* ---- life ------------------------------------------------------------------------------------------------------------ */

void moesim_replay_file_init(moesim_replay_file *f)
{
    *f = (moesim_replay_file){.num_plans = 0};
}

static void free_plan(moesim_replay_plan *p)
{
    void *const owned[] = {p->policy, p->options, p->pass, p->layer, p->rows, p->counted, p->hits, p->moved, p->cpu};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
}

void moesim_replay_drop_cell(moesim_replay_cell *c)
{
    void *const owned[] = {c->ns, c->lead, c->link, c->gpu, c->busy_cpu, c->bytes};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
    *c = (moesim_replay_cell){.ns = NULL};
}

void moesim_replay_file_fini(moesim_replay_file *f)
{
    for (const moesim_replay_field *field = moesim_replay_fields; field->name != NULL; field++)
        if (field->text)
            free(*moesim_replay_text(&f->config, field));
    for (size_t i = 0; i < f->num_plans; i++)
        free_plan(&f->plan[i]);
    for (size_t i = 0; i < f->num_cells; i++)
        moesim_replay_drop_cell(&f->cell[i]);
    for (size_t i = 0; i < f->num_sessions; i++)
        free(f->session[i].facts);
    free(f->plan);
    free(f->cell);
    free(f->session);
    moesim_replay_file_init(f);
}

bool moesim_replay_file_partial(const moesim_replay_file *f)
{
    return f->num_cells < f->config.planned_cells;
}

/* ---- building -------------------------------------------------------------------------------------------------------- */

moesim_code moesim_replay_set(char **field, const char *text, moesim_error *err)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return moesim_fail_nomem(err, "text of a replay file", strlen(text) + 1);
    free(*field);
    *field = copy;
    return MOESIM_OK;
}

/* Room for one more of n elements; grows by doubling at powers of two. */
static moesim_code grow(void **array, size_t n, size_t each, moesim_error *err)
{
    if (n >= MOESIM_REPLAY_CELLS)
        return moesim_fail(err, MOESIM_E_LIMIT, "a replay file holds at most %u cells", MOESIM_REPLAY_CELLS);
    if ((n & (n - 1)) != 0)
        return MOESIM_OK;
    void *larger = realloc(*array, (n == 0 ? 1 : 2 * n) * each);
    if (larger == NULL)
        return moesim_fail_nomem(err, "cells of a replay file", 2 * n * each);
    *array = larger;
    return MOESIM_OK;
}

moesim_code moesim_replay_add_session(moesim_replay_file *f, const char *facts, uint32_t *index, moesim_error *err)
{
    void *array = f->session;
    if (grow(&array, f->num_sessions, sizeof *f->session, err) != MOESIM_OK)
        return err->code;
    f->session = array;
    moesim_replay_session *s = &f->session[f->num_sessions];
    *s = (moesim_replay_session){.facts = NULL};
    if (moesim_replay_set(&s->facts, facts, err) != MOESIM_OK)
        return err->code;
    *index = (uint32_t)f->num_sessions++;
    return MOESIM_OK;
}

typedef struct column { void **at; size_t each; } column;

static moesim_code allocate(const column *list, size_t columns, uint64_t n, moesim_error *err)
{
    for (size_t i = 0; i < columns; i++)
        if (moesim_alloc((size_t)n, list[i].each, "events of a replay", list[i].at, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

moesim_code moesim_replay_add_plan(moesim_replay_file *f, const char *policy, const char *options, uint64_t cache,
                                   double bandwidth, uint64_t num_events, uint32_t *index, moesim_error *err)
{
    void *array = f->plan;
    if (grow(&array, f->num_plans, sizeof *f->plan, err) != MOESIM_OK)
        return err->code;
    f->plan = array;
    moesim_replay_plan *p = &f->plan[f->num_plans];
    *p = (moesim_replay_plan){.cache = cache, .bandwidth = bandwidth, .num_events = num_events};
    const column list[] = {
        {(void **)&p->pass, sizeof *p->pass}, {(void **)&p->layer, sizeof *p->layer}, {(void **)&p->rows, sizeof *p->rows},
        {(void **)&p->counted, sizeof *p->counted}, {(void **)&p->hits, sizeof *p->hits},
        {(void **)&p->moved, sizeof *p->moved}, {(void **)&p->cpu, sizeof *p->cpu},
    };
    moesim_code code = moesim_replay_set(&p->policy, policy, err);
    if (code == MOESIM_OK)
        code = moesim_replay_set(&p->options, options, err);
    if (code == MOESIM_OK)
        code = allocate(list, sizeof list / sizeof list[0], num_events, err);
    if (code != MOESIM_OK) {
        free_plan(p);
        return code;
    }
    *index = (uint32_t)f->num_plans++;
    return MOESIM_OK;
}

moesim_code moesim_replay_new_cell(const moesim_replay_file *f, uint32_t plan, moesim_replay_cell *out, moesim_error *err)
{
    *out = (moesim_replay_cell){.plan = plan};
    const column list[] = {
        {(void **)&out->ns, sizeof *out->ns}, {(void **)&out->lead, sizeof *out->lead},
        {(void **)&out->link, sizeof *out->link}, {(void **)&out->gpu, sizeof *out->gpu},
        {(void **)&out->busy_cpu, sizeof *out->busy_cpu}, {(void **)&out->bytes, sizeof *out->bytes},
    };
    const moesim_code code = allocate(list, sizeof list / sizeof list[0], f->plan[plan].num_events, err);
    if (code != MOESIM_OK)
        moesim_replay_drop_cell(out);
    return code;
}

moesim_code moesim_replay_add_cell(moesim_replay_file *f, moesim_replay_cell *cell, moesim_error *err)
{
    void *array = f->cell;
    if (grow(&array, f->num_cells, sizeof *f->cell, err) != MOESIM_OK)
        return err->code;
    f->cell = array;
    f->cell[f->num_cells++] = *cell;
    *cell = (moesim_replay_cell){.ns = NULL};
    return MOESIM_OK;
}

/* ---- looking up ------------------------------------------------------------------------------------------------------ */

size_t moesim_replay_find_cell(const moesim_replay_file *f, uint32_t plan, double bandwidth_cap, uint32_t mode, uint32_t repeat)
{
    size_t i = 0;
    while (i < f->num_cells && (f->cell[i].plan != plan || f->cell[i].bandwidth_cap != bandwidth_cap ||
                                f->cell[i].mode != mode || f->cell[i].repeat != repeat))
        i++;
    return i;
}

size_t moesim_replay_find_plan(const moesim_replay_file *f, const char *policy, const char *options, uint64_t cache,
                               double bandwidth)
{
    size_t i = 0;
    while (i < f->num_plans && (f->plan[i].cache != cache || f->plan[i].bandwidth != bandwidth ||
                                strcmp(f->plan[i].policy, policy) != 0 || strcmp(f->plan[i].options, options) != 0))
        i++;
    return i;
}

void moesim_replay_fact(const moesim_replay_session *session, const char *key, char *out, size_t bytes)
{
    const size_t length = strlen(key);
    out[0] = '\0';
    for (const char *line = session->facts; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        const size_t chars = end != NULL ? (size_t)(end - line) : strlen(line);
        if (chars > length && strncmp(line, key, length) == 0 && line[length] == '\t') {
            (void)snprintf(out, bytes, "%.*s", (int)(chars - length - 1), line + length + 1);
            return;
        }
        line = end != NULL ? end + 1 : NULL;
    }
}

/* ---- parts of one grid ------------------------------------------------------------------------------------------------- */

moesim_code moesim_replay_same(const moesim_replay_config *a, const moesim_replay_config *b, char *difference, size_t bytes)
{
    difference[0] = '\0';
    for (const moesim_replay_field *field = moesim_replay_fields; field->name != NULL; field++) {
        const char *comma = difference[0] != '\0' ? "; " : "";
        if (!field->compared)
            continue;
        if (field->text) {
            const char *x = *moesim_replay_text_const(a, field), *y = *moesim_replay_text_const(b, field);
            if (strcmp(x, y) != 0)
                moesim_text_add(difference, bytes, "%s%s: \"%.64s\" and \"%.64s\"", comma, field->name, x, y);
        } else {
            const uint64_t x = *moesim_replay_number_const(a, field), y = *moesim_replay_number_const(b, field);
            if (x != y)
                moesim_text_add(difference, bytes, "%s%s: %llu and %llu", comma, field->name, (unsigned long long)x,
                               (unsigned long long)y);
        }
    }
    return difference[0] == '\0' ? MOESIM_OK : MOESIM_E_USAGE;
}

/* The plan of a part in the union; added where it is new. */
static moesim_code place_plan(moesim_replay_file *out, moesim_replay_plan *plan, const char *path, uint32_t *index,
                              moesim_error *err)
{
    const size_t at = moesim_replay_find_plan(out, plan->policy, plan->options, plan->cache, plan->bandwidth);
    *index = (uint32_t)at;
    if (at < out->num_plans) {
        if (strcmp(out->plan[at].decisions, plan->decisions) == 0 && out->plan[at].num_events == plan->num_events)
            return MOESIM_OK;
        return moesim_fail(err, MOESIM_E_USAGE, "%s: policy %s at %llu slots decided differently than in the files before it: "
                           "other versions of moesim, or another seed; measure the grid again", path, plan->policy,
                           (unsigned long long)plan->cache);
    }
    void *array = out->plan;
    if (grow(&array, out->num_plans, sizeof *out->plan, err) != MOESIM_OK)
        return err->code;
    out->plan = array;
    out->plan[out->num_plans++] = *plan;
    *plan = (moesim_replay_plan){.policy = NULL};
    return MOESIM_OK;
}

/* Each grid executes full residency beside its own cells: what another part has of it are further repeats. The same times
 * are the same execution, given twice. */
static bool further_repeat(const moesim_replay_file *out, size_t found, moesim_replay_cell *c)
{
    const moesim_replay_plan *p = &out->plan[c->plan];
    if (!p->full || memcmp(out->cell[found].ns, c->ns, (size_t)p->num_events * sizeof *c->ns) == 0)
        return false;
    while (moesim_replay_find_cell(out, c->plan, c->bandwidth_cap, c->mode, c->repeat) < out->num_cells)
        c->repeat++;
    return true;
}

static moesim_code take_cells(moesim_replay_file *out, moesim_replay_file *part, const uint32_t *place, uint32_t session,
                              const char *path, moesim_error *err)
{
    for (size_t i = 0; i < part->num_cells; i++) {
        moesim_replay_cell *c = &part->cell[i];
        c->plan = place[c->plan];
        const size_t found = moesim_replay_find_cell(out, c->plan, c->bandwidth_cap, c->mode, c->repeat);
        if (found < out->num_cells && !further_repeat(out, found, c))
            return moesim_fail(err, MOESIM_E_USAGE, "%s: cell %u (policy %s, %llu slots, repeat %u) is in a file before it, "
                               "too; give each part once", path, c->order, out->plan[c->plan].policy,
                               (unsigned long long)out->plan[c->plan].cache, c->repeat);
        c->session += session;
        if (moesim_replay_add_cell(out, c, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

static moesim_code take_part(moesim_replay_file *out, moesim_replay_file *part, const char *path, moesim_error *err)
{
    const uint32_t session = (uint32_t)out->num_sessions;
    uint32_t ignored = 0;
    void *place = NULL;
    moesim_code code = moesim_alloc(part->num_plans, sizeof(uint32_t), "plans", &place, err);
    for (size_t i = 0; i < part->num_plans && code == MOESIM_OK; i++)
        code = place_plan(out, &part->plan[i], path, (uint32_t *)place + i, err);
    for (size_t i = 0; i < part->num_sessions && code == MOESIM_OK; i++)
        code = moesim_replay_add_session(out, part->session[i].facts, &ignored, err);
    if (code == MOESIM_OK)
        code = take_cells(out, part, place, session, path, err);
    free(place);
    return code;
}

static int by_order(const void *a, const void *b)
{
    const moesim_replay_cell *x = a, *y = b;
    if (x->session != y->session && x->order == y->order)
        return x->session < y->session ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Parts of one grid all plan for the whole of it; grids that are each complete are complete together. */
static void plan_cells(moesim_replay_file *out, bool partial)
{
    uint64_t *planned = &out->config.planned_cells;
    if (!partial || *planned < out->num_cells)
        *planned = out->num_cells;
}

moesim_code moesim_replay_merge(moesim_replay_file *part, const char *const *path, size_t n, moesim_replay_file *out,
                                moesim_error *err)
{
    char difference[512];
    moesim_code code = MOESIM_OK;
    moesim_replay_file_init(out);
    for (size_t i = 1; i < n && code == MOESIM_OK; i++)
        if (moesim_replay_same(&part[0].config, &part[i].config, difference, sizeof difference) != MOESIM_OK)
            code = moesim_fail(err, MOESIM_E_USAGE, "%s and %s are not parts of one grid: %s", path[0], path[i], difference);
    bool partial = n > 0 && moesim_replay_file_partial(&part[0]);
    if (code == MOESIM_OK && n > 0) {
        out->config = part[0].config;
        memset(&part[0].config, 0, sizeof part[0].config);
    }
    for (size_t i = 0; i < n && code == MOESIM_OK; i++) {
        partial |= i > 0 && moesim_replay_file_partial(&part[i]);
        if (part[i].config.planned_cells > out->config.planned_cells)
            out->config.planned_cells = part[i].config.planned_cells;
        code = take_part(out, &part[i], path[i], err);
    }
    plan_cells(out, partial);
    if (code == MOESIM_OK && out->num_cells > 0)
        qsort(out->cell, out->num_cells, sizeof *out->cell, by_order);
    for (size_t i = 0; i < n; i++)
        moesim_replay_file_fini(&part[i]);
    if (code != MOESIM_OK)
        moesim_replay_file_fini(out);
    return code;
}
