/* SPDX-License-Identifier: Apache-2.0
 *
 * The fit as a whole, and what its parts share.
 */
#include "hwprofile/fit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/fit_parts.h"

#define ROWS 16u
#define POLICY 2e-6

void moesim_gather(moesim_gathered *g, const moesim_raw_point *point, double x, double y)
{
    if (g->n >= MOESIM_LINE_POINTS)
        return;
    g->x[g->n] = x;
    g->y[g->n] = y;
    g->point[g->n++] = point;
    g->samples += point->n;
}

double moesim_gathered_spread(const moesim_gathered *g)
{
    double cv[MOESIM_LINE_POINTS];
    for (size_t i = 0; i < g->n; i++)
        cv[i] = g->point[i]->cv;
    return g->n > 0 ? moesim_raw_sort_median(cv, g->n) : NAN;
}

double moesim_gathered_median(const moesim_gathered *g)
{
    double y[MOESIM_LINE_POINTS];
    memcpy(y, g->y, g->n * sizeof *y);
    return g->n > 0 ? moesim_raw_sort_median(y, g->n) : NAN;
}

void moesim_fit_set(moesim_constant *c, double value, uint64_t n, double spread, double residual, const char *fmt, ...)
{
    va_list args;
    *c = (moesim_constant){ .value = value, .n = n, .spread = spread, .residual = residual, .given = true };
    va_start(args, fmt);
    vsnprintf(c->note, sizeof c->note, fmt, args);
    va_end(args);
}

moesim_code moesim_fit_lacks(const moesim_fitting *f, moesim_error *err, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s; measure again with `moesim profile measure`", f->options->path, text);
}

/* Points of the kind whose number of rows is nearest to the one asked for. */
static void nearest_rows(const moesim_fitting *f, uint32_t kind, moesim_gathered *g, uint32_t *rows)
{
    const double wanted = f->options->rows > 0 ? f->options->rows : ROWS;
    *rows = 0;
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_key *key = &f->raw->point[i].key;
        if (key->kind == kind && (*rows == 0 || fabs(key->rows - wanted) < fabs(*rows - wanted)))
            *rows = key->rows;
    }
    for (size_t i = 0; i < f->raw->num_points; i++)
        if (f->raw->point[i].key.kind == kind && f->raw->point[i].key.rows == *rows)
            moesim_gather(g, &f->raw->point[i], *rows, f->raw->point[i].median);
}

static void fit_rows(const moesim_fitting *f, uint32_t kind, moesim_constant *c)
{
    moesim_gathered g = { .n = 0 };
    uint32_t rows;
    double sum = 0.0;
    nearest_rows(f, kind, &g, &rows);
    if (g.n == 0) {
        moesim_fit_set(c, 0.0, 0, NAN, NAN, "not measured");
        return;
    }
    for (size_t i = 0; i < g.n; i++)
        sum += g.y[i];
    if (sum / (double)g.n <= MOESIM_RAW_NOTHING) {
        moesim_fit_set(c, 0.0, g.samples, NAN, NAN, "too little to be seen, at %u rows", rows);
        return;
    }
    moesim_fit_set(c, sum / (double)g.n, g.samples, moesim_gathered_spread(&g), NAN, "median at %u rows", rows);
}

moesim_code moesim_fit_fixed(moesim_fitting *f, moesim_error *err)
{
    moesim_profile *p = f->profile;
    fit_rows(f, MOESIM_RAW_EMPTY, &p->sync);
    fit_rows(f, MOESIM_RAW_OTHER, &p->other_gpu);
    fit_rows(f, MOESIM_RAW_OTHER_HOST, &p->other_host);
    fit_rows(f, MOESIM_RAW_HEAD, &p->head);
    moesim_fit_set(&p->policy, POLICY, 0, NAN, NAN, "not measured: about what deciding on 60 misses takes");
    return p->sync.n > 0 ? MOESIM_OK : moesim_fit_lacks(f, err, "sync: nothing of kind empty was measured");
}

/* ", word value" where there is such a fact. */
static void add_fact(const moesim_raw *raw, const char *word, const char *key, char *text, size_t size)
{
    const char *value = moesim_raw_find_fact(raw, key);
    const size_t used = strlen(text);
    if (value != NULL)
        (void)snprintf(text + used, size - used, ", %s%s", word, value);
}

static void describe(const moesim_fitting *f)
{
    const moesim_raw *raw = f->raw;
    char *text = f->profile->description;
    const size_t size = sizeof f->profile->description;
    (void)snprintf(text, size, "Measured by backend %s with experts of %s (%llu bytes), %s: %u CPU threads", raw->device,
                   raw->model, (unsigned long long)raw->expert_bytes,
                   raw->quick ? "quick (fewer points, 10 samples each)" : "two sweeps of 30 samples a point", f->threads);
    add_fact(raw, "", "isa", text, size);
    add_fact(raw, "", "cpu", text, size);
    add_fact(raw, "", "gpu", text, size);
    add_fact(raw, "PCIe ", "pcie", text, size);
}

static moesim_code find_threads(moesim_fitting *f, moesim_error *err)
{
    f->threads = f->options->threads > 0 ? f->options->threads : f->raw->threads;
    for (size_t i = 0; i < f->raw->num_points; i++)
        if (f->raw->point[i].key.kind == MOESIM_RAW_CPU && f->raw->point[i].key.threads == f->threads)
            return MOESIM_OK;
    return moesim_fit_lacks(f, err, "cpu.table: nothing was measured with %u threads", f->threads);
}

/* What the loader would say is said here: positive and within its limits. */
static moesim_code check_values(const moesim_fitting *f, moesim_error *err)
{
    moesim_profile_row row;
    for (size_t i = 0; moesim_profile_get_row(f->profile, i, &row); i++)
        if (row.constant->given && (!isfinite(row.constant->value) || row.constant->value < 0.0))
            return moesim_fit_lacks(f, err, "%s: the samples give %g, no cost at all", row.key, row.constant->value);
    return moesim_profile_check(f->profile, err);
}

moesim_code moesim_fit(const moesim_raw *raw, const moesim_fit_options *options, moesim_profile *out, moesim_error *err)
{
    static moesim_code (*const parts[])(moesim_fitting *, moesim_error *) = {
        find_threads, moesim_fit_link, moesim_fit_fixed, moesim_fit_cpu, moesim_fit_gpu, moesim_fit_dram,
        moesim_fit_late, NULL,
    };
    moesim_fitting f = { .raw = raw, .options = options, .profile = out };
    memset(out, 0, sizeof *out);
    (void)snprintf(out->name, sizeof out->name, "%s", options->name);
    (void)snprintf(out->label, sizeof out->label, "%s", raw->quick ? "provisional" : "measured");
    (void)snprintf(out->path, sizeof out->path, "%s", options->path);
    if (options->digest != NULL)
        (void)snprintf(out->raw_digest, sizeof out->raw_digest, "%s", options->digest);
    out->modes = 1u << MOESIM_TIME_MODEL;
    out->default_mode = MOESIM_TIME_MODEL;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; parts[i] != NULL && code == MOESIM_OK; i++)
        code = parts[i](&f, err);
    if (code == MOESIM_OK)
        describe(&f);
    return code == MOESIM_OK ? check_values(&f, err) : code;
}
