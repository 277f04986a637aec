/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw replay files from disk: the guards are those of a result; here the tables are held against each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "sim/replay_fields.h"
#include "sim/result.h"

typedef struct reading {
    const char *path;
    const moesim_result *result;
    moesim_replay_file *file;
} reading;

static moesim_code broken(const reading *g, moesim_error *err, const char *place, size_t row, const char *rule)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: row %zu of %s: %s; the file was not written by moesim-device, or is damaged",
                       g->path, row, place, rule);
}

/* The first raw files did not say on which machine they were measured, and nothing can tell afterwards. */
static moesim_code missing(const reading *g, const char *name, moesim_error *err)
{
    if (strcmp(name, "machine") == 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute machine is missing: the file is older than the check that "
                           "parts and executions that are added come from one machine, or damaged; execute it again with "
                           "this moesim-device, into a new file", g->path);
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is missing; the file is damaged", g->path, name);
}

static moesim_code get_config(const reading *g, moesim_error *err)
{
    const char *kind = moesim_result_get(g->result, "kind"), *raw = moesim_result_get(g->result, "raw");
    if (kind == NULL || strcmp(kind, MOESIM_REPLAY_KIND) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: a result of kind \"%.40s\", not a raw replay file; those are written by "
                           "`moesim-device replay -o` and `moesim-device fidelity -o`", g->path, kind != NULL ? kind : "");
    if (raw == NULL || strcmp(raw, MOESIM_REPLAY_RAW) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: raw format \"%.40s\", this program reads " MOESIM_REPLAY_RAW, g->path,
                           raw != NULL ? raw : "");
    for (const moesim_replay_field *field = moesim_replay_fields; field->name != NULL; field++) {
        const char *text = moesim_result_get(g->result, field->name);
        if (text == NULL)
            return missing(g, field->name, err);
        moesim_code code = MOESIM_OK;
        if (field->text)
            code = moesim_replay_set(moesim_replay_text(&g->file->config, field), text, err);
        else if (moesim_parse_u64(text, 0, UINT64_MAX, field->name, moesim_replay_number(&g->file->config, field), err) !=
                 MOESIM_OK)
            code = moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is \"%.40s\", not a number; the file is damaged",
                               g->path, field->name, text);
        if (code != MOESIM_OK)
            return code;
    }
    return MOESIM_OK;
}

/* All integer columns of a table; *rows is its length. */
static moesim_code get_columns(const reading *g, const char *table, const char *const *name, size_t n, const int64_t **out,
                               size_t *rows, const moesim_table **found, moesim_error *err)
{
    const moesim_table *t = moesim_result_find(g->result, table);
    if (t == NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: table %s is missing; the file is damaged", g->path, table);
    for (size_t i = 0; i < n; i++) {
        const moesim_column_data *c = moesim_table_find(t, name[i]);
        if (c == NULL || c->integer == NULL)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: table %s has no integer column %s; the file is damaged", g->path,
                               table, name[i]);
        out[i] = c->integer;
    }
    *rows = t->rows;
    if (found != NULL)
        *found = t;
    return MOESIM_OK;
}

static moesim_code get_text(const reading *g, const moesim_table *t, const char *name, char ***out, moesim_error *err)
{
    const moesim_column_data *c = moesim_table_find(t, name);
    *out = c != NULL ? c->text : NULL;
    return *out != NULL ? MOESIM_OK : moesim_fail(err, MOESIM_E_FORMAT, "%s: table %s has no text column %s; the file is "
                                                  "damaged", g->path, t->name, name);
}

static moesim_code get_real(const reading *g, const moesim_table *t, const char *name, const double **out, moesim_error *err)
{
    const moesim_column_data *c = moesim_table_find(t, name);
    *out = c != NULL ? c->real : NULL;
    return *out != NULL ? MOESIM_OK : moesim_fail(err, MOESIM_E_FORMAT, "%s: table %s has no real column %s; the file is "
                                                  "damaged", g->path, t->name, name);
}

/* Numbers of a row that must lie in 0..UINT32_MAX. */
static bool fit(const int64_t *const *column, size_t n, size_t row)
{
    for (size_t i = 0; i < n; i++)
        if (column[i][row] < 0 || column[i][row] > (int64_t)UINT32_MAX)
            return false;
    return true;
}

static bool plan_fits(const int64_t *const *n, const double *bandwidth, char *const *decisions, size_t p, size_t left)
{
    return fit(n, PLAN_NUMBERS, p) && n[PLAN][p] == (int64_t)p && n[FULL][p] <= 1 && n[ALIASED][p] <= 1 && bandwidth[p] >= 0 &&
           bandwidth[p] < 1e15 && (uint64_t)n[EVENTS][p] <= left && strlen(decisions[p]) == MOESIM_DIGEST_CHARS - 1;
}

static moesim_code get_plans(const reading *g, size_t events, moesim_error *err)
{
    const int64_t *n[PLAN_NUMBERS];
    const moesim_table *t = NULL;
    const double *bandwidth = NULL;
    char **text[PLAN_TEXTS];
    size_t rows = 0, left = events;
    if (get_columns(g, "plans", moesim_replay_plan_names, PLAN_NUMBERS, n, &rows, &t, err) != MOESIM_OK ||
        get_real(g, t, "bandwidth", &bandwidth, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < PLAN_TEXTS; i++)
        if (get_text(g, t, moesim_replay_plan_texts[i], &text[i], err) != MOESIM_OK)
            return err->code;
    for (size_t p = 0; p < rows; p++) {
        uint32_t index = 0;
        if (!plan_fits(n, bandwidth, text[DECISIONS], p, left))
            return broken(g, err, "table plans", p, "numbers out of range, or more events than table events has");
        left -= (size_t)n[EVENTS][p];
        if (moesim_replay_add_plan(g->file, text[POLICY][p], text[OPTIONS][p], (uint64_t)n[CACHE][p], bandwidth[p],
                                   (uint64_t)n[EVENTS][p], &index, err) != MOESIM_OK)
            return err->code;
        moesim_replay_plan *plan = &g->file->plan[index];
        plan->full = n[FULL][p] != 0;
        plan->aliased = n[ALIASED][p] != 0;
        memcpy(plan->decisions, text[DECISIONS][p], MOESIM_DIGEST_CHARS);
    }
    return left == 0 ? MOESIM_OK : broken(g, err, "table plans", rows, "table events has more rows than the plans' events");
}

static moesim_code get_events(const reading *g, moesim_error *err)
{
    const int64_t *c[EVENT_NUMBERS];
    size_t rows = 0, at = 0;
    if (get_columns(g, "events", moesim_replay_event_names, EVENT_NUMBERS, c, &rows, NULL, err) != MOESIM_OK ||
        get_plans(g, rows, err) != MOESIM_OK)
        return err->code;
    for (size_t p = 0; p < g->file->num_plans; p++) {
        moesim_replay_plan *plan = &g->file->plan[p];
        for (size_t i = 0; i < plan->num_events; i++, at++) {
            if (c[PASS][at] < 0 || !fit(c + LAYER, EVENT_NUMBERS - LAYER, at) || c[EVENT_PLAN][at] != (int64_t)p ||
                c[COUNTED][at] > 1 || (uint64_t)c[LAYER][at] >= g->file->config.num_layers)
                return broken(g, err, "table events", at, "numbers out of range");
            if (plan->full && (c[MOVED][at] > 0 || c[CPU][at] > 0))
                return broken(g, err, "table events", at, "a miss, although its plan is marked as full residency");
            plan->pass[i] = (uint64_t)c[PASS][at];
            plan->layer[i] = (uint32_t)c[LAYER][at];
            plan->rows[i] = (uint32_t)c[ROWS][at];
            plan->counted[i] = (uint8_t)c[COUNTED][at];
            plan->hits[i] = (uint32_t)c[HITS][at];
            plan->moved[i] = (uint32_t)c[MOVED][at];
            plan->cpu[i] = (uint32_t)c[CPU][at];
        }
    }
    return MOESIM_OK;
}

/* Rows of table times, in the order of the cells. */
static moesim_code get_times(const reading *g, const int64_t *const *c, size_t rows, size_t *at, moesim_replay_cell *cell,
                             moesim_error *err)
{
    const size_t n = (size_t)g->file->plan[cell->plan].num_events;
    if (n > rows - *at)
        return broken(g, err, "table times", rows, "fewer rows than the events of its cells");
    for (size_t e = 0; e < n; e++, (*at)++) {
        if (!fit(c, BYTES, *at) || c[BYTES][*at] < 0 || c[TIME_CELL][*at] != (int64_t)cell->order)
            return broken(g, err, "table times", *at, "numbers out of range");
        cell->ns[e] = (uint32_t)c[NS][*at];
        cell->lead[e] = (uint32_t)c[LEAD][*at];
        cell->link[e] = (uint32_t)c[LINK][*at];
        cell->gpu[e] = (uint32_t)c[GPU][*at];
        cell->busy_cpu[e] = (uint32_t)c[BUSY_CPU][*at];
        cell->bytes[e] = (uint64_t)c[BYTES][*at];
    }
    return MOESIM_OK;
}

typedef struct cell_columns {
    const int64_t *n[CELL_NUMBERS];
    const double *cap, *error;
    char **executed;
} cell_columns;

static bool cell_fits(const reading *g, const cell_columns *c, size_t i)
{
    return fit(c->n, CELL_NUMBERS, i) && (uint64_t)c->n[CELL_PLAN][i] < g->file->num_plans && c->n[MODE][i] <= 1 &&
           (uint64_t)c->n[SESSION][i] < g->file->num_sessions && c->cap[i] >= 0 && c->cap[i] < 1e15 && c->error[i] >= 0 &&
           c->error[i] <= MOESIM_REPLAY_ERROR && strlen(c->executed[i]) == MOESIM_DIGEST_CHARS - 1 &&
           (i == 0 || c->n[CELL][i] > c->n[CELL][i - 1]);
}

static moesim_code get_cells(const reading *g, moesim_error *err)
{
    cell_columns c;
    const int64_t *times[TIME_NUMBERS];
    const moesim_table *t = NULL;
    size_t rows = 0, time_rows = 0, at = 0;
    if (get_columns(g, "cells", moesim_replay_cell_names, CELL_NUMBERS, c.n, &rows, &t, err) != MOESIM_OK ||
        get_columns(g, "times", moesim_replay_time_names, TIME_NUMBERS, times, &time_rows, NULL, err) != MOESIM_OK ||
        get_real(g, t, "bandwidth_cap", &c.cap, err) != MOESIM_OK ||
        get_real(g, t, "worst_error", &c.error, err) != MOESIM_OK ||
        get_text(g, t, "executed", &c.executed, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < rows; i++) {
        moesim_replay_cell cell;
        if (!cell_fits(g, &c, i))
            return broken(g, err, "table cells", i, "numbers out of range (worst_error: 0.02), or cells out of order");
        if (moesim_replay_new_cell(g->file, (uint32_t)c.n[CELL_PLAN][i], &cell, err) != MOESIM_OK)
            return err->code;
        cell.order = (uint32_t)c.n[CELL][i];
        cell.repeat = (uint32_t)c.n[REPEAT][i];
        cell.mode = (uint32_t)c.n[MODE][i];
        cell.session = (uint32_t)c.n[SESSION][i];
        cell.verified = (uint64_t)c.n[VERIFIED][i];
        cell.bandwidth_cap = c.cap[i];
        cell.worst_error = c.error[i];
        memcpy(cell.executed, c.executed[i], MOESIM_DIGEST_CHARS);
        moesim_code code = get_times(g, times, time_rows, &at, &cell, err);
        if (code == MOESIM_OK)
            code = moesim_replay_add_cell(g->file, &cell, err);
        moesim_replay_drop_cell(&cell);
        if (code != MOESIM_OK)
            return code;
    }
    return at == time_rows ? MOESIM_OK : broken(g, err, "table times", at, "more rows than the events of all cells");
}

static moesim_code get_facts(const reading *g, moesim_error *err)
{
    static const char *const name[] = {"session"};
    const int64_t *session[1] = {NULL};
    const moesim_table *t = NULL;
    char **key = NULL, **value = NULL, *text = NULL;
    size_t rows = 0, bytes = 0;
    moesim_code code = MOESIM_OK;
    if (get_columns(g, "facts", name, 1, session, &rows, &t, err) != MOESIM_OK ||
        get_text(g, t, "key", &key, err) != MOESIM_OK || get_text(g, t, "value", &value, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < rows && code == MOESIM_OK; i++) {
        const bool opens = i == 0 || session[0][i] != session[0][i - 1];
        const bool closes = i + 1 == rows || session[0][i + 1] != session[0][i];
        uint32_t index = 0;
        if (opens && session[0][i] != (int64_t)g->file->num_sessions) {
            code = broken(g, err, "table facts", i, "sessions are numbered from 0 without gaps");
            break;
        }
        const size_t more = strlen(key[i]) + strlen(value[i]) + 2;
        char *longer = realloc(text, bytes + more + 1);
        if (longer == NULL) {
            code = moesim_fail_nomem(err, "facts of a session", bytes + more + 1);
            break;
        }
        text = longer;
        (void)snprintf(text + bytes, more + 1, "%s\t%s\n", key[i], value[i]);
        bytes += more;
        if (closes) {
            code = moesim_replay_add_session(g->file, text, &index, err);
            bytes = 0;
        }
    }
    free(text);
    return code;
}

moesim_code moesim_replay_file_read(const char *path, moesim_replay_file *out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    moesim_result r;
    err = err != NULL ? err : &local;
    moesim_replay_file_init(out);
    moesim_code code = moesim_result_read(path, &r, err);
    if (code != MOESIM_OK)
        return code;
    const reading g = {.path = path, .result = &r, .file = out};
    code = get_config(&g, err);
    if (code == MOESIM_OK)
        code = get_facts(&g, err);
    if (code == MOESIM_OK)
        code = get_events(&g, err);
    if (code == MOESIM_OK)
        code = get_cells(&g, err);
    moesim_result_fini(&r);
    if (code != MOESIM_OK)
        moesim_replay_file_fini(out);
    return code;
}
