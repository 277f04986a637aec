/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim run` as CSV: one header line, one row a cell. Columns are named as in JSON; a figure f has f, f_lo and f_hi
 * (tpot_ms: tpot_lo and tpot_hi).
 * Undefined numbers are empty.
 */
#include <inttypes.h>
#include <math.h>

#include "cli/print.h"
#include "cli/run.h"

static void number(FILE *out, double v)
{
    fputc(',', out);
    if (isfinite(v))
        fprintf(out, "%.17g", v);
}

static void header(const moesim_report *r, FILE *out)
{
    char lo[64], hi[64];
    fputs("policy,options,cache,n_requests", out);
    if (moesim_report_timed(r))
        fputs(",bandwidth_gbps", out);
    for (size_t k = 0; k < r->num_metrics; k++) {
        const char *name = moesim_figure_at(k).name;
        fprintf(out, ",%s,%s,%s", name, moesim_figure_bound(name, "_lo", lo), moesim_figure_bound(name, "_hi", hi));
    }
    for (const moesim_count *c = moesim_counts; c->name != NULL; c++)
        fprintf(out, ",%s", c->name);
    fputs(",ratio_p95,all_hit_rate,clairvoyant,non_causal\n", out);
}

void moesim_run_print_csv(const moesim_report *r, FILE *out)
{
    header(r, out);
    for (size_t cell = 0; cell < r->num_cells; cell++) {
        const moesim_outcome *o = &r->outcome[cell];
        if (!moesim_report_shown(r, cell))
            continue;
        moesim_print_csv(out, moesim_report_policy(r, cell)->given);
        fputc(',', out);
        moesim_print_csv(out, moesim_report_policy(r, cell)->effective);
        fprintf(out, ",%" PRIu64 ",%" PRIu32, moesim_report_cache(r, cell), o->num_requests);
        if (moesim_report_timed(r))
            number(out, o->timing->bandwidth / 1e9);
        for (size_t k = 0; k < r->num_metrics; k++) {
            const moesim_interval ci = moesim_report_interval(r, cell, k);
            number(out, moesim_report_value(r, cell, k));
            number(out, ci.lo);
            number(out, ci.hi);
        }
        for (const moesim_count *c = moesim_counts; c->name != NULL; c++)
            number(out, c->get(o));
        number(out, moesim_report_ratio_p95(r, cell));
        number(out, moesim_all_hit_rate(o));
        fprintf(out, ",%d,%d\n", (o->traits & MOESIM_CLAIRVOYANT) != 0, (o->traits & MOESIM_NON_CAUSAL) != 0);
    }
}
