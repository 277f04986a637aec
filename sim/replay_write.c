/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw replay files to disk: a result with the tables plans, events, cells, times and facts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/replay_fields.h"
#include "sim/result.h"

/* ---- names of the columns, in the order of the enums ----------------------------------------------------------------- */

const char *const moesim_replay_plan_names[] = {"plan", "cache", "full", "aliased", "events"};
const char *const moesim_replay_plan_texts[] = {"policy", "options", "decisions"};
const char *const moesim_replay_event_names[] = {"plan", "pass", "layer", "rows", "counted", "hits", "moved", "cpu"};
const char *const moesim_replay_cell_names[] = {"cell", "plan", "repeat", "mode", "session", "verified"};
const char *const moesim_replay_time_names[] = {"cell", "event_ns", "lead_ns", "link_ns", "gpu_ns", "cpu_ns", "bytes"};
const char *const moesim_replay_time_units[] = {"", "ns", "ns", "ns", "ns", "ns", "bytes"};

/* ---- writing --------------------------------------------------------------------------------------------------------- */

static moesim_code put_config(const moesim_replay_file *f, moesim_result *r, moesim_error *err)
{
    char number[24];
    moesim_code code = moesim_result_set(r, "kind", MOESIM_REPLAY_KIND, err);
    if (code == MOESIM_OK)
        code = moesim_result_set(r, "raw", MOESIM_REPLAY_RAW, err);
    if (code == MOESIM_OK)
        code = moesim_result_set(r, "partial", moesim_replay_file_partial(f) ? "1" : "0", err);
    for (const moesim_replay_field *field = moesim_replay_fields; field->name != NULL && code == MOESIM_OK; field++) {
        const char *text = field->text ? *moesim_replay_text_const(&f->config, field) : number;
        if (!field->text)
            (void)snprintf(number, sizeof number, "%" PRIu64, *moesim_replay_number_const(&f->config, field));
        code = moesim_result_set(r, field->name, text != NULL ? text : "", err);
    }
    return code;
}

/* The integer columns of a table, in order. */
static moesim_code integers(moesim_table *t, const char *const *name, const char *const *unit, int64_t **out, size_t n,
                            moesim_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (moesim_table_integers(t, name[i], unit != NULL ? unit[i] : "", &out[i], err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

static moesim_code put_plans(const moesim_replay_file *f, moesim_result *r, moesim_error *err)
{
    moesim_table *t = NULL;
    int64_t *number[PLAN_NUMBERS];
    char **text[PLAN_TEXTS];
    double *bandwidth = NULL;
    moesim_code code = moesim_result_table(r, "plans", f->num_plans, &t, err);
    if (code == MOESIM_OK)
        code = integers(t, moesim_replay_plan_names, NULL, number, PLAN_NUMBERS, err);
    if (code == MOESIM_OK)
        code = moesim_table_reals(t, "bandwidth", "B/s", &bandwidth, err);
    for (size_t i = 0; i < PLAN_TEXTS && code == MOESIM_OK; i++)
        code = moesim_table_texts(t, moesim_replay_plan_texts[i], &text[i], err);
    for (size_t p = 0; p < f->num_plans && code == MOESIM_OK; p++) {
        const moesim_replay_plan *plan = &f->plan[p];
        const char *const value[] = {plan->policy, plan->options, plan->decisions};
        number[PLAN][p] = (int64_t)p;
        number[CACHE][p] = (int64_t)plan->cache;
        number[FULL][p] = plan->full;
        bandwidth[p] = plan->bandwidth;
        number[ALIASED][p] = plan->aliased;
        number[EVENTS][p] = (int64_t)plan->num_events;
        for (size_t i = 0; i < PLAN_TEXTS && code == MOESIM_OK; i++)
            code = moesim_table_text(t, text[i], p, value[i], err);
    }
    return code;
}

static moesim_code put_events(const moesim_replay_file *f, moesim_result *r, moesim_error *err)
{
    moesim_table *t = NULL;
    int64_t *c[EVENT_NUMBERS];
    size_t rows = 0, at = 0;
    for (size_t p = 0; p < f->num_plans; p++)
        rows += (size_t)f->plan[p].num_events;
    if (moesim_result_table(r, "events", rows, &t, err) != MOESIM_OK ||
        integers(t, moesim_replay_event_names, NULL, c, EVENT_NUMBERS, err) != MOESIM_OK)
        return err->code;
    for (size_t p = 0; p < f->num_plans; p++) {
        const moesim_replay_plan *plan = &f->plan[p];
        for (size_t i = 0; i < plan->num_events; i++, at++) {
            const int64_t value[] = {(int64_t)p, (int64_t)plan->pass[i], plan->layer[i], plan->rows[i], plan->counted[i],
                                     plan->hits[i], plan->moved[i], plan->cpu[i]};
            for (size_t k = 0; k < EVENT_NUMBERS; k++)
                c[k][at] = value[k];
        }
    }
    return MOESIM_OK;
}

static moesim_code put_cells(const moesim_replay_file *f, moesim_result *r, moesim_error *err)
{
    moesim_table *t = NULL;
    int64_t *n[CELL_NUMBERS];
    double *cap = NULL, *error = NULL;
    char **executed = NULL;
    if (moesim_result_table(r, "cells", f->num_cells, &t, err) != MOESIM_OK ||
        integers(t, moesim_replay_cell_names, NULL, n, CELL_NUMBERS, err) != MOESIM_OK ||
        moesim_table_reals(t, "bandwidth_cap", "B/s", &cap, err) != MOESIM_OK ||
        moesim_table_reals(t, "worst_error", "", &error, err) != MOESIM_OK ||
        moesim_table_texts(t, "executed", &executed, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < f->num_cells; i++) {
        const moesim_replay_cell *cell = &f->cell[i];
        const int64_t value[] = {cell->order, cell->plan, cell->repeat, cell->mode, cell->session, (int64_t)cell->verified};
        for (size_t k = 0; k < CELL_NUMBERS; k++)
            n[k][i] = value[k];
        cap[i] = cell->bandwidth_cap;
        error[i] = cell->worst_error;
        if (moesim_table_text(t, executed, i, cell->executed, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

static moesim_code put_times(const moesim_replay_file *f, moesim_result *r, moesim_error *err)
{
    moesim_table *t = NULL;
    int64_t *c[TIME_NUMBERS];
    size_t rows = 0, at = 0;
    for (size_t i = 0; i < f->num_cells; i++)
        rows += (size_t)f->plan[f->cell[i].plan].num_events;
    if (moesim_result_table(r, "times", rows, &t, err) != MOESIM_OK ||
        integers(t, moesim_replay_time_names, moesim_replay_time_units, c, TIME_NUMBERS, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < f->num_cells; i++) {
        const moesim_replay_cell *cell = &f->cell[i];
        const size_t n = (size_t)f->plan[cell->plan].num_events;
        for (size_t e = 0; e < n; e++, at++) {
            const int64_t value[] = {cell->order, cell->ns[e], cell->lead[e], cell->link[e], cell->gpu[e], cell->busy_cpu[e],
                                     (int64_t)cell->bytes[e]};
            for (size_t k = 0; k < TIME_NUMBERS; k++)
                c[k][at] = value[k];
        }
    }
    return MOESIM_OK;
}

/* One row a fact. */
static moesim_code put_facts(const moesim_replay_file *f, moesim_result *r, moesim_error *err)
{
    moesim_table *t = NULL;
    int64_t *session = NULL;
    char **key = NULL, **value = NULL;
    size_t rows = 0, at = 0;
    for (size_t s = 0; s < f->num_sessions; s++)
        for (const char *p = strchr(f->session[s].facts, '\n'); p != NULL; p = strchr(p + 1, '\n'))
            rows++;
    if (moesim_result_table(r, "facts", rows, &t, err) != MOESIM_OK ||
        moesim_table_integers(t, "session", "", &session, err) != MOESIM_OK ||
        moesim_table_texts(t, "key", &key, err) != MOESIM_OK || moesim_table_texts(t, "value", &value, err) != MOESIM_OK)
        return err->code;
    for (size_t s = 0; s < f->num_sessions; s++)
        for (const char *line = f->session[s].facts, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, at++) {
            char text[2][256] = {"", ""};
            const char *tab = memchr(line, '\t', (size_t)(end - line));
            const char *name_end = tab != NULL ? tab : end;
            (void)snprintf(text[0], sizeof text[0], "%.*s", (int)(name_end - line), line);
            if (tab != NULL)
                (void)snprintf(text[1], sizeof text[1], "%.*s", (int)(end - tab - 1), tab + 1);
            session[at] = (int64_t)s;
            if (moesim_table_text(t, key, at, text[0], err) != MOESIM_OK ||
                moesim_table_text(t, value, at, text[1], err) != MOESIM_OK)
                return err->code;
        }
    return MOESIM_OK;
}

moesim_code moesim_replay_file_write(const moesim_replay_file *f, const char *path, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    moesim_result r;
    err = err != NULL ? err : &local;
    moesim_result_init(&r);
    moesim_code code = put_config(f, &r, err);
    if (code == MOESIM_OK)
        code = put_plans(f, &r, err);
    if (code == MOESIM_OK)
        code = put_events(f, &r, err);
    if (code == MOESIM_OK)
        code = put_cells(f, &r, err);
    if (code == MOESIM_OK)
        code = put_times(f, &r, err);
    if (code == MOESIM_OK)
        code = put_facts(f, &r, err);
    if (code == MOESIM_OK)
        code = moesim_result_write(&r, path, err);
    moesim_result_fini(&r);
    return code;
}
