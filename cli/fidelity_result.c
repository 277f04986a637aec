/* SPDX-License-Identifier: Apache-2.0
 *
 * Fidelity reports as result files (sim/RESULT.md), kind "fidelity": for moesim plot, and for whoever reads them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/fidelity_text.h"
#include "sim/result.h"

#define MS 1e3

/* Columns of table cells by one value of a row each. */
typedef struct real_column {
    const char *name, *unit;
    double scale;
    size_t offset;               /* of the double in moesim_fidelity_row */
} real_column;

#define ROW(field) offsetof(moesim_fidelity_row, field)
static const real_column real_columns[] = {
    {"tpot_predicted_ms", "ms", MS, ROW(tpot.predicted)},
    {"tpot_measured_ms", "ms", MS, ROW(tpot.measured)},
    {"tpot_measured_lo", "ms", MS, ROW(tpot.measured_interval.lo)},
    {"tpot_measured_hi", "ms", MS, ROW(tpot.measured_interval.hi)},
    {"tpot_error", "", 1, ROW(tpot.error)},
    {"tpot_error_lo", "", 1, ROW(tpot.error_interval.lo)},
    {"tpot_error_hi", "", 1, ROW(tpot.error_interval.hi)},
    {"miss_predicted_ms", "ms", MS, ROW(miss.predicted)},
    {"miss_measured_ms", "ms", MS, ROW(miss.measured)},
    {"miss_measured_lo", "ms", MS, ROW(miss.measured_interval.lo)},
    {"miss_measured_hi", "ms", MS, ROW(miss.measured_interval.hi)},
    {"miss_error", "", 1, ROW(miss.error)},
    {"miss_error_lo", "", 1, ROW(miss.error_interval.lo)},
    {"miss_error_hi", "", 1, ROW(miss.error_interval.hi)},
    {"event_bias", "", 1, ROW(event.bias)},
    {"event_p50", "", 1, ROW(event.p50)},
    {"event_p90", "", 1, ROW(event.p90)},
    {"event_p99", "", 1, ROW(event.p99)},
    {"link_share", "", 1, ROW(link_share)},
};
#define NUM_REALS (sizeof real_columns / sizeof real_columns[0])

static moesim_code put_reals(const moesim_fidelity_report *r, moesim_table *t, moesim_error *err)
{
    const size_t n = r->main.num_cells;
    for (size_t k = 0; k < NUM_REALS; k++) {
        const real_column *c = &real_columns[k];
        double *out = NULL;
        if (moesim_table_reals(t, c->name, c->unit, &out, err) != MOESIM_OK)
            return err->code;
        for (size_t i = 0; i < n + r->witness.num_cells; i++) {
            const moesim_fidelity_row *row = i < n ? &r->main.result.row[i] : &r->witness.result.row[i - n];
            double v = 0;
            memcpy(&v, (const char *)row + c->offset, sizeof v);
            out[i] = c->scale * v;
        }
    }
    return MOESIM_OK;
}

typedef struct cell_columns {
    char **by, **policy, **role;
    int64_t *cache, *same, *repeats;
    double *gbps;
} cell_columns;

static moesim_code add_columns(moesim_table *t, cell_columns *c, moesim_error *err)
{
    const struct { const char *name; char ***text; } texts[] = {
        {"executed_by", &c->by}, {"policy", &c->policy}, {"role", &c->role}};
    const struct { const char *name; int64_t **integer; } integers[] = {
        {"cache", &c->cache}, {"same_decisions", &c->same}, {"repeats", &c->repeats}};
    for (size_t i = 0; i < 3; i++)
        if (moesim_table_texts(t, texts[i].name, texts[i].text, err) != MOESIM_OK)
            return err->code;
    for (size_t i = 0; i < 3; i++)
        if (moesim_table_integers(t, integers[i].name, "", integers[i].integer, err) != MOESIM_OK)
            return err->code;
    return moesim_table_reals(t, "bandwidth_gbps", "GB/s", &c->gbps, err);
}

static moesim_code put_cells(const moesim_fidelity_report *r, moesim_result *out, moesim_error *err)
{
    const size_t n = r->main.num_cells, all = n + r->witness.num_cells;
    moesim_table *t = NULL;
    cell_columns column = {0};
    if (moesim_result_table(out, "cells", all, &t, err) != MOESIM_OK || add_columns(t, &column, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < all; i++) {
        const moesim_fidelity_cell *c = i < n ? &r->main.cell[i] : &r->witness.cell[i - n];
        column.cache[i] = c->cache;
        column.same[i] = c->same_decisions;
        column.repeats[i] = c->repeats;
        column.gbps[i] = c->cap > 0 ? c->cap / 1e9 : __builtin_nan("");
        if (moesim_table_text(t, column.by, i, i < n ? "replay" : "witness", err) != MOESIM_OK ||
            moesim_table_text(t, column.policy, i, c->policy, err) != MOESIM_OK ||
            moesim_table_text(t, column.role, i, moesim_fidelity_role(c), err) != MOESIM_OK)
            return err->code;
    }
    return put_reals(r, t, err);
}

/* Residuals of events by misses. */
static moesim_code put_misses(const moesim_fidelity_report *r, moesim_result *out, moesim_error *err)
{
    static const char *const name[] = {"bias", "p50", "p90", "p99"};
    const moesim_residuals *m = r->main.result.miss_class;
    moesim_table *t = NULL;
    char **misses = NULL;
    int64_t *n = NULL;
    double *value[4];
    if (moesim_result_table(out, "misses", MOESIM_MISS_CLASSES, &t, err) != MOESIM_OK ||
        moesim_table_texts(t, "misses", &misses, err) != MOESIM_OK || moesim_table_integers(t, "n", "", &n, err) != MOESIM_OK)
        return err->code;
    for (size_t k = 0; k < 4; k++)
        if (moesim_table_reals(t, name[k], "", &value[k], err) != MOESIM_OK)
            return err->code;
    for (size_t i = 0; i < MOESIM_MISS_CLASSES; i++) {
        const double v[] = {m[i].bias, m[i].p50, m[i].p90, m[i].p99};
        n[i] = (int64_t)m[i].n;
        for (size_t k = 0; k < 4; k++)
            value[k][i] = v[k];
        if (moesim_table_text(t, misses, i, moesim_miss_classes[i], err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

/* "lru:40: link x 0.99, sync 14 us", or "lru:40: nothing, its events tell no constant". */
static void put_fitted(const moesim_fidelity_report *r, char *out, size_t room)
{
    const moesim_calibration *c = &r->calibration;
    const struct { enum moesim_calibrated which; const char *name; double value; const char *unit; } part[] = {
        {MOESIM_CALIBRATED_LINK, "link x ", c->link, ""}, {MOESIM_CALIBRATED_SYNC, "sync ", 1e6 * c->sync, " us"},
        {MOESIM_CALIBRATED_GPU, "GPU table x ", c->gpu, ""}, {MOESIM_CALIBRATED_CPU, "CPU table x ", c->cpu, ""}};
    size_t n = (size_t)snprintf(out, room, "%s: ", r->calibrated_on), fitted = 0;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        if (c->part[part[i].which].state != MOESIM_CALIBRATION_FITTED)
            continue;
        n += (size_t)snprintf(out + n, room - n, "%s%s%.6g%s", fitted++ > 0 ? ", " : "", part[i].name, part[i].value,
                              part[i].unit);
    }
    if (fitted == 0)
        (void)snprintf(out + n, room - n, "nothing, its events tell no constant");
}

static moesim_code put_attributes(const moesim_fidelity_report *r, moesim_result *out, moesim_error *err)
{
    const moesim_replay_config *c = &r->main.file.config;
    char gpu[128], seed[24], fitted[700] = "";
    moesim_replay_fact(&r->main.file.session[0], "gpu", gpu, sizeof gpu);
    snprintf(seed, sizeof seed, "%" PRIu64, r->words->seed);
    if (r->calibrated)
        put_fitted(r, fitted, sizeof fitted);
    const struct { const char *name, *text; } all[] = {
        {"kind", "fidelity"}, {"moesim_version", MOESIM_VERSION}, {"trace", r->info->path}, {"trace_digest", r->info->digest},
        {"model_id", c->model_id}, {"priced_as", c->priced_as}, {"device", c->device}, {"gpu", gpu},
        {"profile", r->profile->name}, {"profile_label", r->profile->label}, {"profile_digest", r->profile->digest},
        {"profile_overrides", r->profile->overrides}, {"fitted", fitted}, {"seed", seed},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (moesim_result_set(out, all[i].name, all[i].text, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

moesim_code moesim_fidelity_write(const moesim_fidelity_report *r, const char *path, moesim_error *err)
{
    moesim_result result;
    moesim_result_init(&result);
    moesim_code code = put_attributes(r, &result, err);
    if (code == MOESIM_OK)
        code = put_cells(r, &result, err);
    if (code == MOESIM_OK)
        code = put_misses(r, &result, err);
    if (code == MOESIM_OK)
        code = moesim_result_write(&result, path, err);
    moesim_result_fini(&result);
    return code;
}
