/* SPDX-License-Identifier: Apache-2.0
 *
 * Fidelity reports as CSV (one row a cell), JSON (schema moesim.fidelity/1) and Markdown.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/fidelity_text.h"
#include "cli/print.h"
#include "cli/run_text.h"

#define SCHEMA "moesim.fidelity/1"
#define MS 1e3

/* ---- columns of a cell ------------------------------------------------------------------------------------------------- */

typedef struct field {
    const char *name;
    double value;
} field;
#define CELL_COLUMNS 24u

static size_t figure_columns(const char *const name[7], const moesim_fidelity_figure *f, field *out)
{
    const double value[7] = {MS * f->predicted, MS * f->measured, MS * f->measured_interval.lo, MS * f->measured_interval.hi,
                             f->error, f->error_interval.lo, f->error_interval.hi};
    for (size_t i = 0; i < 7; i++)
        out[i] = (field){name[i], value[i]};
    return 7;
}

static size_t cell_columns(const moesim_fidelity_row *row, field out[CELL_COLUMNS])
{
    static const char *const tpot[7] = {"tpot_predicted_ms", "tpot_measured_ms", "tpot_measured_lo", "tpot_measured_hi",
                                        "tpot_error", "tpot_error_lo", "tpot_error_hi"};
    static const char *const miss[7] = {"miss_predicted_ms", "miss_measured_ms", "miss_measured_lo", "miss_measured_hi",
                                        "miss_error", "miss_error_lo", "miss_error_hi"};
    const field rest[] = {
        {"event_bias", row->event.bias}, {"event_p50", row->event.p50}, {"event_p90", row->event.p90},
        {"event_p99", row->event.p99}, {"pass_bias", row->pass.bias}, {"pass_p50", row->pass.p50}, {"pass_p90", row->pass.p90},
        {"pass_p99", row->pass.p99}, {"link_gbps", row->link_rate / 1e9}, {"link_share", row->link_share},
    };
    size_t n = figure_columns(tpot, &row->tpot, out);
    n += figure_columns(miss, &row->miss, out + n);
    memcpy(out + n, rest, sizeof rest);
    return n + sizeof rest / sizeof rest[0];
}
_Static_assert(7 + 7 + 10 == CELL_COLUMNS, "columns of a cell");

/* ---- CSV --------------------------------------------------------------------------------------------------------------- */

static void csv_rows(const moesim_fidelity_set *set, const char *executed_by, FILE *out)
{
    field column[CELL_COLUMNS];
    for (size_t i = 0; i < set->num_cells; i++) {
        const moesim_fidelity_cell *c = &set->cell[i];
        const size_t n = cell_columns(&set->result.row[i], column);
        fprintf(out, "%s,", executed_by);
        moesim_print_csv(out, c->policy);
        fprintf(out, ",%" PRIu32 ",", c->cache);
        if (c->cap > 0)
            fprintf(out, "%.17g", c->cap / 1e9);
        fprintf(out, ",%s,%d,%" PRIu32, moesim_fidelity_role(c), c->same_decisions, c->repeats);
        for (size_t k = 0; k < n; k++) {
            fputc(',', out);
            if (isfinite(column[k].value))
                fprintf(out, "%.17g", column[k].value);
        }
        fputc('\n', out);
    }
}

void moesim_fidelity_print_csv(const moesim_fidelity_report *r, FILE *out)
{
    field column[CELL_COLUMNS];
    const size_t n = cell_columns(&r->main.result.row[0], column);
    fputs("executed_by,policy,cache,bandwidth_gbps,role,same_decisions,repeats", out);
    for (size_t k = 0; k < n; k++)
        fprintf(out, ",%s", column[k].name);
    fputc('\n', out);
    csv_rows(&r->main, "replay", out);
    csv_rows(&r->witness, "witness", out);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------------- */

static json_t *json_errors(const moesim_fidelity_set *set, const moesim_fidelity_errors *e)
{
    char cell[128];
    json_t *o = json_object();
    json_object_set_new(o, "n", json_integer((json_int_t)e->n));
    json_object_set_new(o, "mape", moesim_json_real(e->mape));
    json_object_set_new(o, "bias", moesim_json_real(e->bias));
    json_object_set_new(o, "worst", moesim_json_real(e->worst));
    json_object_set_new(o, "worst_cell", e->n > 0 ? moesim_json_text(moesim_text_cell(&set->cell[e->worst_cell], cell))
                                                   : json_null());
    return o;
}

static json_t *json_residuals(const char *key, const char *name, const moesim_residuals *r)
{
    json_t *o = json_object();
    if (key != NULL)
        json_object_set_new(o, key, json_string(name));
    json_object_set_new(o, "n", json_integer((json_int_t)r->n));
    json_object_set_new(o, "bias", moesim_json_real(r->bias));
    json_object_set_new(o, "p50", moesim_json_real(r->p50));
    json_object_set_new(o, "p90", moesim_json_real(r->p90));
    json_object_set_new(o, "p99", moesim_json_real(r->p99));
    return o;
}

static json_t *json_cells(const moesim_fidelity_set *set)
{
    json_t *cells = json_array();
    field column[CELL_COLUMNS];
    for (size_t i = 0; i < set->num_cells; i++) {
        const moesim_fidelity_cell *c = &set->cell[i];
        const size_t n = cell_columns(&set->result.row[i], column);
        json_t *o = json_object();
        json_object_set_new(o, "policy", moesim_json_text(c->policy));
        json_object_set_new(o, "cache", json_integer(c->cache));
        json_object_set_new(o, "bandwidth_gbps", c->cap > 0 ? json_real(c->cap / 1e9) : json_null());
        json_object_set_new(o, "role", json_string(moesim_fidelity_role(c)));
        json_object_set_new(o, "same_decisions", json_boolean(c->same_decisions));
        json_object_set_new(o, "decisions_digest", json_string(moesim_executed_plan(set, i)->decisions));
        json_object_set_new(o, "repeats", json_integer(c->repeats));
        for (size_t k = 0; k < n; k++)
            json_object_set_new(o, column[k].name, moesim_json_real(column[k].value));
        json_array_append_new(cells, o);
    }
    return cells;
}

static json_t *json_order(const moesim_fidelity_order *o)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:o, s:o}", "pairs", (json_int_t)o->pairs, "right",
                     (json_int_t)o->right, "disjoint", (json_int_t)o->disjoint, "disjoint_right", (json_int_t)o->disjoint_right,
                     "kendall_tau_b", moesim_json_real(o->tau), "groups", (json_int_t)o->groups, "top1", (json_int_t)o->top1,
                     "regret", moesim_json_real(o->regret), "worst_regret", moesim_json_real(o->worst_regret));
}

static json_t *json_set(const moesim_fidelity_set *set)
{
    const moesim_fidelity *f = &set->result;
    json_t *o = json_object(), *effects = json_array(), *layers = json_array(), *misses = json_array(), *knees = json_array();
    for (size_t v = 0; v < MOESIM_VARIANTS; v++)
        json_array_append_new(effects, json_pack("{s:s, s:o, s:o, s:o}", "prediction", moesim_variant_names[v], "tpot",
                                                 json_errors(set, &f->variant[v].tpot), "miss_time",
                                                 json_errors(set, &f->variant[v].miss), "events",
                                                 json_residuals(NULL, NULL, &f->variant[v].event)));
    for (uint32_t l = 0; l < set->input.num_layers; l++)
        json_array_append_new(layers, json_residuals(NULL, NULL, &f->layer[l]));
    for (size_t k = 0; k < MOESIM_MISS_CLASSES; k++)
        json_array_append_new(misses, json_residuals("misses", moesim_miss_classes[k], &f->miss_class[k]));
    for (size_t i = 0; i < f->num_knees; i++) {
        const moesim_fidelity_knee *k = &f->knee[i];
        const moesim_fidelity_cell *c = &set->cell[k->cell];
        json_array_append_new(knees, json_pack("{s:o, s:o, s:o, s:o}", "policy", moesim_json_text(c->policy), "bandwidth_gbps",
                                               c->cap > 0 ? json_real(c->cap / 1e9) : json_null(), "predicted",
                                               moesim_json_real(k->predicted), "measured", moesim_json_real(k->measured)));
    }
    json_object_set_new(o, "device", moesim_json_text(set->file.config.device));
    json_object_set_new(o, "partial", json_boolean(moesim_replay_file_partial(&set->file)));
    json_object_set_new(o, "same_decisions", json_integer((json_int_t)f->num_same));
    json_object_set_new(o, "cells", json_cells(set));
    json_object_set_new(o, "test_cells", json_integer((json_int_t)f->num_test));
    json_object_set_new(o, "predictions", effects);
    json_object_set_new(o, "passes", json_residuals(NULL, NULL, &f->pass));
    json_object_set_new(o, "layers", layers);
    json_object_set_new(o, "misses", misses);
    json_object_set_new(o, "order", json_order(&f->order));
    json_object_set_new(o, "knees", knees);
    json_object_set_new(o, "link_share", moesim_json_real(f->link_share));
    json_object_set_new(o, "least_link_share", moesim_json_real(f->least_link_share));
    json_object_set_new(o, "unit", json_string(f->unit_is_request ? "request" : "run of passes"));
    json_object_set_new(o, "units", json_integer((json_int_t)f->num_units));
    json_object_set_new(o, "resamples", json_integer(f->resamples));
    return o;
}

static json_t *json_calibration(const moesim_fidelity_report *r)
{
    static const char *const names[] = {[MOESIM_CALIBRATED_SYNC] = "sync", [MOESIM_CALIBRATED_GPU] = "gpu",
                                        [MOESIM_CALIBRATED_LINK] = "link", [MOESIM_CALIBRATED_CPU] = "cpu"};
    const moesim_calibration *c = &r->calibration;
    if (!r->calibrated)
        return json_null();
    json_t *o = json_pack("{s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "cells", moesim_json_text(r->calibrated_on),
                          "gpu_factor", c->gpu, "link_factor", c->link, "sync_s", c->sync, "sync_before_s",
                          r->profile->sync.value, "cpu_factor", c->cpu, "loss_before", c->before, "loss_after", c->after);
    for (size_t k = 0; k < MOESIM_CALIBRATED_CONSTANTS; k++) {
        char key[32];
        snprintf(key, sizeof key, "%s_fitted", names[k]);
        json_object_set_new(o, key, json_boolean(c->part[k].state == MOESIM_CALIBRATION_FITTED));
        snprintf(key, sizeof key, "%s_events", names[k]);
        json_object_set_new(o, key, json_integer((json_int_t)c->part[k].events));
    }
    return o;
}

moesim_code moesim_fidelity_print_json(const moesim_fidelity_report *r, FILE *out, moesim_error *err)
{
    const moesim_replay_config *c = &r->main.file.config;
    json_t *o = json_object();
    json_object_set_new(o, "schema", json_string(SCHEMA));
    json_object_set_new(o, "trace", json_pack("{s:o, s:s}", "path", moesim_json_text(r->info->path), "digest",
                                              r->info->digest));
    json_object_set_new(o, "priced_as", moesim_json_text(c->priced_as));
    json_object_set_new(o, "profile", json_pack("{s:o, s:o, s:s, s:o}", "name", moesim_json_text(r->profile->name), "label",
                                                moesim_json_text(r->profile->label), "digest", r->profile->digest, "overrides",
                                                moesim_json_text(r->profile->overrides)));
    json_object_set_new(o, "calibration", json_calibration(r));
    json_object_set_new(o, "seed", json_integer(r->words->seed < INT64_MAX ? (json_int_t)r->words->seed : INT64_MAX));
    json_object_set_new(o, "replay", json_set(&r->main));
    json_object_set_new(o, "witness", r->witness.num_cells > 0 ? json_set(&r->witness) : json_null());
    return moesim_print_json(out, o, err);
}

/* ---- Markdown ---------------------------------------------------------------------------------------------------------- */

static void markdown_cells(const moesim_fidelity_set *set, FILE *out)
{
    char text[6][16], ci[4][32];
    fputs("| policy | cache | GB/s | TPOT ms predicted | measured | error | miss time ms predicted | measured | error "
          "| events \\|50\\| |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", out);
    for (size_t i = 0; i < set->num_cells; i++) {
        const moesim_fidelity_cell *c = &set->cell[i];
        const moesim_fidelity_row *row = &set->result.row[i];
        fputs("| ", out);
        moesim_print_clean(out, c->policy);
        fprintf(out, "%s | %" PRIu32 " | %s | %s | %s %s | ", c->calibration ? " (fitted)" : c->reference ? " (reference)" : "",
                c->cache, c->cap > 0 ? moesim_text_real(c->cap / 1e9, text[0]) : "–",
                moesim_text_real(MS * row->tpot.predicted, text[1]), moesim_text_real(MS * row->tpot.measured, text[2]),
                moesim_text_interval(row->tpot.measured_interval, MS, 4, ci[0]));
        fprintf(out, "%s %s | ", moesim_text_error(row->tpot.error, text[3]),
                moesim_text_error_interval(row->tpot.error_interval, ci[1]));
        fprintf(out, "%s | %s %s | ", moesim_text_real(MS * row->miss.predicted, text[1]),
                moesim_text_real(MS * row->miss.measured, text[2]),
                moesim_text_interval(row->miss.measured_interval, MS, 4, ci[2]));
        fprintf(out, "%s %s | %s |\n", moesim_text_error(row->miss.error, text[3]),
                moesim_text_error_interval(row->miss.error_interval, ci[3]), moesim_text_size(row->event.p50, text[4]));
    }
}

static void markdown_summary(const moesim_fidelity_set *set, FILE *out)
{
    const moesim_fidelity *f = &set->result;
    const moesim_fidelity_order *o = &f->order;
    char text[3][16], cell[128];
    fputs("\n| over the test cells | |\n|---|---|\n", out);
    fprintf(out, "| counts exact | %zu of %zu cells |\n", f->num_same, set->num_cells);
    const struct { const char *name; const moesim_fidelity_errors *e; } errors[] = {
        {"TPOT", &f->variant[0].tpot}, {"miss time", &f->variant[0].miss}};
    for (size_t i = 0; i < 2; i++)
        if (errors[i].e->n > 0)
            fprintf(out, "| %s: MAPE, bias, worst | %s, %s, %s (%s); n = %zu |\n", errors[i].name,
                    moesim_text_size(errors[i].e->mape, text[0]), moesim_text_error(errors[i].e->bias, text[1]),
                    moesim_text_size(errors[i].e->worst, text[2]),
                    moesim_text_cell(&set->cell[errors[i].e->worst_cell], cell), errors[i].e->n);
    fprintf(out, "| events: median absolute log residual, p90, p99 | %s, %s, %s; n = %zu |\n",
            moesim_text_size(f->variant[0].event.p50, text[0]), moesim_text_size(f->variant[0].event.p90, text[1]),
            moesim_text_size(f->variant[0].event.p99, text[2]), f->variant[0].event.n);
    fprintf(out, "| pairs with disjoint intervals | %zu of %zu; right sign in %zu of them, in %zu of all |\n", o->disjoint,
            o->pairs, o->disjoint_right, o->right);
    fprintf(out, "| Kendall's tau-b, best policy right, regret mean and worst | %.3f, %zu of %zu, %s, %s |\n", o->tau, o->top1,
            o->groups, moesim_text_size(o->regret, text[0]), moesim_text_size(o->worst_regret, text[1]));
    fprintf(out, "| link while it decides | %s %% of the profile's rate, least %s %% |\n\n",
            moesim_text_percent(f->link_share, text[0]), moesim_text_percent(f->least_link_share, text[1]));
    fputs("| prediction | TPOT MAPE | worst | miss time MAPE | worst | events \\|50\\| |\n|---|--:|--:|--:|--:|--:|\n", out);
    for (size_t v = 0; v < MOESIM_VARIANTS; v++) {
        const moesim_fidelity_variant *x = &f->variant[v];
        char e[5][16];
        fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", moesim_variant_names[v], moesim_text_size(x->tpot.mape, e[0]),
                moesim_text_size(x->tpot.worst, e[1]), moesim_text_size(x->miss.mape, e[2]),
                moesim_text_size(x->miss.worst, e[3]), moesim_text_size(x->event.p50, e[4]));
    }
}

void moesim_fidelity_print_markdown(const moesim_fidelity_report *r, FILE *out)
{
    fputs("```\n", out);
    moesim_fidelity_print_head(r, &r->main, out);
    fputs("```\nTimes in ms per output token. ", out);
    moesim_fidelity_print_intervals(&r->main, out);
    fputc('\n', out);
    markdown_cells(&r->main, out);
    markdown_summary(&r->main, out);
    if (r->witness.num_cells > 0) {
        fputs("\nSecond witness, the same decisions:\n\n", out);
        markdown_cells(&r->witness, out);
        markdown_summary(&r->witness, out);
    }
}
