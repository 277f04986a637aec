/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim compare` as a table of at most 80 columns, as CSV and as JSON, schema moesim.compare/1.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/cachelist.h"
#include "cli/compare.h"
#include "cli/paired.h"
#include "cli/print.h"
#include "cli/run_text.h"

#define SCHEMA "moesim.compare/1"
#define NAME_COLUMNS 16u
#define CACHE_COLUMNS 8u

static const char rule[] = "--------------------------------------------------------------------------------\n";

static size_t cell_row(const moesim_comparison *c, const moesim_compare_row *row, int side)
{
    return c->pair[row->pair].row[side];
}

static const moesim_column_data *key_column(const moesim_comparison *c, const char *name)
{
    for (size_t k = 0; k < c->num_keys; k++)
        if (strcmp(c->key[k].name, name) == 0)
            return c->key[k].column[0];
    return NULL;
}

/* ---- table --------------------------------------------------------------------------------------------------------- */

/* Keys that have no column of their own in the table. */
static bool in_heading(const char *name)
{
    static const char *const columns[] = {"policy", "cache", "bandwidth_gbps"};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (strcmp(name, columns[i]) == 0)
            return false;
    return true;
}

/* Of a path. */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void heading(const moesim_comparison *c, const moesim_compare_row *row, char *out, size_t bytes)
{
    size_t used = 0;
    char value[32];
    out[0] = '\0';
    for (size_t k = 0; k < c->num_keys && used < bytes; k++) {
        const bool digest = strcmp(c->key[k].name, "trace_digest") == 0;
        const moesim_column_data *name = digest ? moesim_table_find(c->cells[0], "trace") : NULL;
        const size_t at = cell_row(c, row, 0);
        if (!in_heading(c->key[k].name))
            continue;
        if (name != NULL && name->text != NULL)
            used += (size_t)snprintf(out + used, bytes - used, "%strace %.24s (%.12s)", used > 0 ? ", " : "",
                                     last_part(name->text[at]), moesim_compare_value(c->key[k].column[0], at, value));
        else
            used += (size_t)snprintf(out + used, bytes - used, "%s%s %.60s", used > 0 ? ", " : "", c->key[k].name,
                                     moesim_compare_value(c->key[k].column[0], at, value));
    }
}

static void head(const moesim_comparison *c, FILE *out)
{
    for (int side = 0; side < 2; side++) {
        fprintf(out, "%c         ", side == 0 ? 'A' : 'B');
        moesim_text_clipped(out, c->options->path[side], 68);
        fputc('\n', out);
        if (c->options->policy[side] != NULL) {
            fputs("          policy ", out);
            moesim_text_clipped(out, c->options->policy[side], 60);
            fputc('\n', out);
        }
    }
    fprintf(out, "cells     %zu in common, %zu in A alone, %zu in B alone\n", c->num_pairs, c->alone[0], c->alone[1]);
    if (c->difference[0] != '\0') {
        moesim_args_row(out, "note", 0, 10, "the configurations differ:");
        moesim_args_row(out, "", 0, 10, c->difference);
    }
    if (c->unpaired > 0)
        fprintf(out, "note      up to %zu requests of a cell are in one result alone and left out\n", c->unpaired);
}

static const char *key_text(const moesim_comparison *c, const moesim_compare_row *row, const char *name, char out[32])
{
    const moesim_column_data *column = key_column(c, name);
    const char *text = column != NULL ? moesim_compare_value(column, cell_row(c, row, 0), out) : "";
    return text[0] != '\0' ? text : "-";
}

/* Slots, or in scope global a size: as `moesim sweep` writes it where there is room, else rounded. */
static const char *cache_text(const moesim_comparison *c, const moesim_compare_row *row, char out[32])
{
    static const double mib = 1024 * 1024, gib = 1024 * 1024 * 1024;
    const moesim_column_data *column = key_column(c, "cache");
    if (column == NULL || column->integer == NULL || strcmp(column->unit, "bytes") != 0)
        return key_text(c, row, "cache", out);
    const int64_t bytes = column->integer[cell_row(c, row, 0)];
    if (strlen(moesim_cache_text((uint64_t)bytes, true, out, 32)) > CACHE_COLUMNS)
        (void)snprintf(out, 32, (double)bytes < 1e5 * mib ? "%.0fMiB" : "%.1fGiB",
                       (double)bytes / ((double)bytes < 1e5 * mib ? mib : gib));
    return out;
}

static bool print_row(const moesim_comparison *c, const moesim_compare_row *row, FILE *out)
{
    char text[4][16], key[2][32], wide[32];
    const bool differs = moesim_paired_distinguishable(&row->result);
    moesim_text_name(out, moesim_compare_policy(c, 0, cell_row(c, row, 0)), "", NAME_COLUMNS);
    fprintf(out, " %8s %4.6s %6s %6s %7s %-15s %5s%s\n", cache_text(c, row, key[0]),
            key_text(c, row, "bandwidth_gbps", key[1]), moesim_text_real(row->value[0], text[0]),
            moesim_text_real(row->value[1], text[1]), moesim_text_signed(row->result.difference, text[2]),
            moesim_text_interval(row->result.interval, 1, 3, wide), moesim_text_p(row->result.p, text[3]),
            differs ? "" : " n.d.");
    return differs;
}

static void legend(const moesim_comparison *c, bool all_differ, FILE *out)
{
    fputs(rule, out);
    if (!all_differ)
        fputs("n.d.: not distinguishable (the interval contains 0, or p is 0.05 or more)\n", out);
    fprintf(out, "95 %% intervals from at most %u resamples of requests, the same for A and B;\n"
                 "sign-flip test %s; seed %" PRIu64 "\n",
            MOESIM_RESAMPLES, c->row[0].result.exact ? "exact" : "with 100000 seeded flips", c->options->seed);
}

void moesim_compare_print_table(const moesim_comparison *c, FILE *out)
{
    char last[512] = "", now[512];
    bool all_differ = true;
    head(c, out);
    for (size_t i = 0; i < c->num_rows; i++) {
        const moesim_compare_row *row = &c->row[i];
        const moesim_compare_metric *m = &c->metric[row->metric];
        const bool first = i == 0 || c->row[i - 1].metric != row->metric;
        if (first)
            fprintf(out, "%s%s%s%s%s\npolicy              cache GB/s      A      B   A - B [95 %% CI]           p\n", rule,
                    m->name, m->unit[0] != '\0' ? " (" : "", m->unit, m->unit[0] != '\0' ? ")" : "");
        heading(c, row, now, sizeof now);
        const size_t before = i > 0 ? c->row[i - 1].requests : 0;
        if (first || strcmp(last, now) != 0 || before != row->requests) {
            moesim_text_clipped(out, now, 60);
            fprintf(out, "%sn = %zu%s\n", now[0] != '\0' ? ", " : "", row->requests,
                    row->requests < MOESIM_FEW_REQUESTS ? " (few)" : "");
        }
        memcpy(last, now, sizeof last);
        all_differ = print_row(c, row, out) && all_differ;
    }
    legend(c, all_differ, out);
}

/* ---- CSV ----------------------------------------------------------------------------------------------------------- */

static void number(FILE *out, double v)
{
    fputc(',', out);
    if (isfinite(v))
        fprintf(out, "%.17g", v);
}

void moesim_compare_print_csv(const moesim_comparison *c, FILE *out)
{
    char value[32];
    fputs("metric,policy_a,policy_b", out);
    for (size_t k = 0; k < c->num_keys; k++)
        if (strcmp(c->key[k].name, "policy") != 0)
            fprintf(out, ",%s", c->key[k].name);
    fputs(",cell_a,cell_b,n_requests,a,b,difference,difference_lo,difference_hi,p,distinguishable\n", out);
    for (size_t i = 0; i < c->num_rows; i++) {
        const moesim_compare_row *row = &c->row[i];
        const size_t at[2] = {cell_row(c, row, 0), cell_row(c, row, 1)};
        fprintf(out, "%s,", c->metric[row->metric].name);
        moesim_print_csv(out, moesim_compare_policy(c, 0, at[0]));
        fputc(',', out);
        moesim_print_csv(out, moesim_compare_policy(c, 1, at[1]));
        for (size_t k = 0; k < c->num_keys; k++) {
            if (strcmp(c->key[k].name, "policy") == 0)
                continue;
            fputc(',', out);
            moesim_print_csv(out, moesim_compare_value(c->key[k].column[0], at[0], value));
        }
        fprintf(out, ",%" PRId64 ",%" PRId64 ",%zu", moesim_table_find(c->cells[0], "cell")->integer[at[0]],
                moesim_table_find(c->cells[1], "cell")->integer[at[1]], row->requests);
        const moesim_paired *p = &row->result;
        const double figures[] = {row->value[0], row->value[1], p->difference, p->interval.lo, p->interval.hi, p->p};
        for (size_t f = 0; f < sizeof figures / sizeof figures[0]; f++)
            number(out, figures[f]);
        fprintf(out, ",%d\n", moesim_paired_distinguishable(p));
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------- */

static json_t *key_object(const moesim_compare_key *key, size_t row)
{
    const moesim_column_data *column = key->column[0];
    if (column->text != NULL)
        return moesim_json_text(column->text[row]);
    return column->integer != NULL ? json_integer(column->integer[row]) : moesim_json_real(column->real[row]);
}

static json_t *row_object(const moesim_comparison *c, const moesim_compare_row *row)
{
    const moesim_paired *p = &row->result;
    const size_t at[2] = {cell_row(c, row, 0), cell_row(c, row, 1)};
    json_t *o = json_object();
    json_object_set_new(o, "metric", json_string(c->metric[row->metric].name));
    json_object_set_new(o, "policy_a", moesim_json_text(moesim_compare_policy(c, 0, at[0])));
    json_object_set_new(o, "policy_b", moesim_json_text(moesim_compare_policy(c, 1, at[1])));
    for (size_t k = 0; k < c->num_keys; k++)
        if (strcmp(c->key[k].name, "policy") != 0)
            json_object_set_new(o, c->key[k].name, key_object(&c->key[k], at[0]));
    json_object_set_new(o, "cell_a", json_integer(moesim_table_find(c->cells[0], "cell")->integer[at[0]]));
    json_object_set_new(o, "cell_b", json_integer(moesim_table_find(c->cells[1], "cell")->integer[at[1]]));
    json_object_set_new(o, "n_requests", json_integer((json_int_t)row->requests));
    json_object_set_new(o, "a", moesim_json_real(row->value[0]));
    json_object_set_new(o, "b", moesim_json_real(row->value[1]));
    json_object_set_new(o, "difference", moesim_json_real(p->difference));
    json_object_set_new(o, "interval", json_pack("[o, o]", moesim_json_real(p->interval.lo), moesim_json_real(p->interval.hi)));
    json_object_set_new(o, "p", moesim_json_real(p->p));
    json_object_set_new(o, "test", json_string(p->exact ? "sign-flip, exact" : "sign-flip, 100000 seeded"));
    json_object_set_new(o, "distinguishable", json_boolean(moesim_paired_distinguishable(p)));
    return o;
}

moesim_code moesim_compare_print_json(const moesim_comparison *c, FILE *out, moesim_error *err)
{
    json_t *o = json_object(), *results = json_array();
    for (size_t i = 0; i < c->num_rows; i++)
        json_array_append_new(results, row_object(c, &c->row[i]));
    json_object_set_new(o, "schema", json_string(SCHEMA));
    json_object_set_new(o, "a", moesim_json_text(c->options->path[0]));
    json_object_set_new(o, "b", moesim_json_text(c->options->path[1]));
    json_object_set_new(o, "configurations_differ", c->difference[0] != '\0' ? moesim_json_text(c->difference) : json_null());
    json_object_set_new(o, "cells", json_pack("{s:I, s:I, s:I}", "common", (json_int_t)c->num_pairs, "a_alone",
                                              (json_int_t)c->alone[0], "b_alone", (json_int_t)c->alone[1]));
    json_object_set_new(o, "requests_left_out", json_integer((json_int_t)c->unpaired));
    json_object_set_new(o, "seed", json_integer(c->options->seed < INT64_MAX ? (json_int_t)c->options->seed : INT64_MAX));
    json_object_set_new(o, "resamples", json_integer(MOESIM_RESAMPLES));
    json_object_set_new(o, "interval_percent", json_integer(95));
    json_object_set_new(o, "results", results);
    return moesim_print_json(out, o, err);
}
