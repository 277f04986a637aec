/* SPDX-License-Identifier: Apache-2.0
 *
 * Fidelity reports for people: at most 80 columns.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/fidelity_text.h"
#include "cli/run_text.h"

#define POLICY_COLUMNS 14u
#define MS 1e3

static const char rule[] = "--------------------------------------------------------------------------------\n";

/* ---- cells ----------------------------------------------------------------------------------------------------------- */

/* As many digits as 13 columns hold. */
static const char *interval_text(moesim_interval interval, char out[32])
{
    for (int digits = 4; digits > 1; digits--)
        if (strlen(moesim_text_interval(interval, MS, digits, out)) <= 13)
            return out;
    return moesim_text_interval_fit(interval, MS, 2, 13, out);
}

static void print_cell(const moesim_fidelity_set *set, size_t i, bool miss, FILE *out)
{
    const moesim_fidelity_cell *c = &set->cell[i];
    const moesim_fidelity_figure *f = miss ? &set->result.row[i].miss : &set->result.row[i].tpot;
    char text[4][16], ci[2][32];
    moesim_text_name(out, c->policy, c->calibration ? " c" : c->reference ? " r" : "", POLICY_COLUMNS);
    fprintf(out, " %5" PRIu32 " %5s %7s %7s %-13s %7s %s\n", c->cache,
            c->cap > 0 ? moesim_text_fit(c->cap / 1e9, 5, text[0]) : "-",
            moesim_text_fit(MS * f->predicted, 7, text[1]), moesim_text_fit(MS * f->measured, 7, text[2]),
            interval_text(f->measured_interval, ci[0]), moesim_text_error(f->error, text[3]),
            moesim_text_error_interval(f->error_interval, ci[1]));
}

static void print_cells(const moesim_fidelity_set *set, bool miss, FILE *out)
{
    bool fitted = false, reference = false;
    fprintf(out, "%s%s\npolicy         cache  GB/s predict measure [95 %% CI]        error [95 %% CI]\n", rule,
            miss ? "Miss time (TPOT less that of full residency), ms per output token" : "Time per output token (TPOT), ms");
    for (size_t i = 0; i < set->num_cells; i++) {
        fitted = fitted || set->cell[i].calibration;
        reference = reference || set->cell[i].reference;
        if (!miss || !set->cell[i].reference)
            print_cell(set, i, miss, out);
    }
    if (miss && !reference)
        fputs("No cell has every expert resident, so there is no miss time; add policy full.\n", out);
    if (!miss && fitted)
        fputs("c: calibrated on, tests nothing\n", out);
    if (!miss && reference)
        fputs("r: every expert is resident; what miss time is counted from, no test cell\n", out);
}

/* ---- what it comes to ------------------------------------------------------------------------------------------------ */

static void print_errors(const moesim_fidelity_set *set, const char *name, const moesim_fidelity_errors *e, FILE *out)
{
    char text[3][16], cell[128];
    if (e->n == 0)
        return;
    fprintf(out, "%-20s %5zu %7s %7s %7s  %s\n", name, e->n, moesim_text_size(e->mape, text[0]),
            moesim_text_error(e->bias, text[1]), moesim_text_size(e->worst, text[2]),
            moesim_text_cell(&set->cell[e->worst_cell], cell));
}

static void print_residuals(const char *name, const moesim_residuals *r, FILE *out)
{
    char text[4][16];
    if (r->n > 0)
        fprintf(out, "%-16s %9zu %7s %6s %6s %6s\n", name, r->n, moesim_text_signed(1e2 * r->bias, text[0]),
                moesim_text_real(1e2 * r->p50, text[1]), moesim_text_real(1e2 * r->p90, text[2]),
                moesim_text_real(1e2 * r->p99, text[3]));
}

/* Layers hardly differ, so the two ends are enough. */
static void print_layers(const moesim_fidelity_set *set, FILE *out)
{
    const moesim_residuals *layer = set->result.layer;
    uint32_t least = 0, most = 0;
    char text[2][16];
    for (uint32_t l = 1; l < set->input.num_layers; l++) {
        least = layer[l].p50 < layer[least].p50 ? l : least;
        most = layer[l].p50 > layer[most].p50 ? l : most;
    }
    if (layer[least].n > 0)
        fprintf(out, "layers: |50| from %s (layer %" PRIu32 ") to %s (layer %" PRIu32 "); all: --format json\n",
                moesim_text_real(1e2 * layer[least].p50, text[0]), least, moesim_text_real(1e2 * layer[most].p50, text[1]),
                most);
}

static void print_events(const moesim_fidelity_set *set, FILE *out)
{
    const moesim_fidelity *f = &set->result;
    char name[40];
    fprintf(out, "%sResiduals ln(measured / predicted) in percent, every repeat%s\n"
                 "                         n  median  |50|   |90|   |99|\n", rule,
            f->num_test > 0 ? " of the test cells" : "");
    print_residuals("events", &f->variant[0].event, out);
    print_residuals("passes", &f->pass, out);
    for (size_t k = 0; k < MOESIM_MISS_CLASSES; k++) {
        snprintf(name, sizeof name, "  %s misses", moesim_miss_classes[k]);
        print_residuals(name, &f->miss_class[k], out);
    }
    print_layers(set, out);
}

static void print_variants(const moesim_fidelity_set *set, FILE *out)
{
    const moesim_fidelity *f = &set->result;
    char text[5][16];
    fprintf(out, "%sWhat each effect of the model is worth: errors over the test cells without it\n"
                 "                      TPOT MAPE   worst  miss MAPE   worst  events |50|\n", rule);
    for (size_t v = 0; v < MOESIM_VARIANTS; v++) {
        const moesim_fidelity_variant *x = &f->variant[v];
        fprintf(out, "%-20s %10s %7s %10s %7s %12s\n", moesim_variant_names[v], moesim_text_size(x->tpot.mape, text[0]),
                moesim_text_size(x->tpot.worst, text[1]), moesim_text_size(x->miss.mape, text[2]),
                moesim_text_size(x->miss.worst, text[3]), moesim_text_size(x->event.p50, text[4]));
    }
}

static void print_order(const moesim_fidelity *f, FILE *out)
{
    const moesim_fidelity_order *o = &f->order;
    char text[2][16];
    if (o->pairs == 0) {
        fputs("order     no two test cells of one capacity: nothing to order\n", out);
        return;
    }
    fprintf(out, "order     %zu of %zu pairs of one capacity have the right sign; measured intervals\n"
                 "          of %zu (%s %%) are disjoint, of these %zu have the right sign\n", o->right, o->pairs, o->disjoint,
            moesim_text_percent((double)o->disjoint / (double)o->pairs, text[0]), o->disjoint_right);
    fprintf(out, "          Kendall's tau-b %.3f; best policy right in %zu of %zu;\n"
                 "          regret %s mean, %s worst\n",
            o->tau, o->top1, o->groups, moesim_text_size(o->regret, text[0]), moesim_text_size(o->worst_regret, text[1]));
}

static const char *knee_text(double v, char out[16])
{
    return isnan(v) ? "beyond" : moesim_text_real(v, out);
}

static void print_knees(const moesim_fidelity_set *set, FILE *out)
{
    const moesim_fidelity *f = &set->result;
    char text[3][16], cell[128];
    for (size_t i = 0; i < f->num_knees; i++) {
        const moesim_fidelity_knee *k = &f->knee[i];
        const moesim_fidelity_cell *c = &set->cell[k->cell];
        snprintf(cell, sizeof cell, "%.40s%s%s", c->policy, c->cap > 0 ? ", GB/s " : "",
                 c->cap > 0 ? moesim_text_real(c->cap / 1e9, text[2]) : "");
        fprintf(out, "%s%-20s predicted %s, measured %s", i == 0 ? "knee      " : "          ", cell,
                knee_text(k->predicted, text[0]), knee_text(k->measured, text[1]));
        if (!isnan(k->predicted) && !isnan(k->measured))
            fprintf(out, ", off by %s", moesim_text_signed(k->predicted - k->measured, text[2]));
        fputc('\n', out);
    }
    if (f->num_knees > 0)
        fputs("          (capacity at which TPOT falls to 1.05 of full residency)\n", out);
}

static void print_link(const moesim_fidelity *f, FILE *out)
{
    char text[2][16];
    if (isnan(f->link_share))
        fputs("link      not told: the device cannot say how long copies took, or no event\n          waits for them\n", out);
    else
        fprintf(out, "link      %s %% of the profile's rate for whole experts where copies decide\n"
                     "          (least of any cell: %s %%)\n", moesim_text_percent(f->link_share, text[0]),
                moesim_text_percent(f->least_link_share, text[1]));
}

static void print_summary(const moesim_fidelity_set *set, FILE *out)
{
    const moesim_fidelity *f = &set->result;
    fprintf(out, "%sOver %zu test cells       n    MAPE    bias   worst  in\n", rule, f->num_test);
    print_errors(set, "TPOT", &f->variant[0].tpot, out);
    print_errors(set, "miss time", &f->variant[0].miss, out);
    print_order(f, out);
    print_knees(set, out);
    print_link(f, out);
}

static void print_verified(const moesim_fidelity_set *set, FILE *out)
{
    uint64_t n = 0;
    double worst = 0;
    for (size_t i = 0; i < set->file.num_cells; i++) {
        n += set->file.cell[i].verified;
        worst = fmax(worst, set->file.cell[i].worst_error);
    }
    fprintf(out, "outputs   %" PRIu64 " experts held against a double-precision reference", n);
    if (n > 0)
        fprintf(out, ",\n          largest relative error %.2g", worst);
    fputc('\n', out);
}

static void print_witness(const moesim_fidelity_report *r, FILE *out)
{
    const moesim_fidelity_set *w = &r->witness;
    if (w->num_cells == 0)
        return;
    fprintf(out, "%sSecond witness: another program, the same decisions\n", rule);
    moesim_fidelity_print_counts(w, out);
    print_cells(w, false, out);
    print_cells(w, true, out);
    print_summary(w, out);
    print_residuals("events", &w->result.variant[0].event, out);
}

void moesim_fidelity_print_table(const moesim_fidelity_report *r, FILE *out)
{
    moesim_fidelity_print_head(r, &r->main, out);
    print_verified(&r->main, out);
    print_cells(&r->main, false, out);
    print_cells(&r->main, true, out);
    print_summary(&r->main, out);
    print_variants(&r->main, out);
    print_events(&r->main, out);
    print_witness(r, out);
    fputs(rule, out);
    moesim_fidelity_print_intervals(&r->main, out);
}

/* One cell, or a few of one run. */
void moesim_replay_print_table(const moesim_fidelity_report *r, FILE *out)
{
    moesim_fidelity_print_head(r, &r->main, out);
    print_verified(&r->main, out);
    print_cells(&r->main, false, out);
    print_link(&r->main.result, out);
    print_events(&r->main, out);
    fputs(rule, out);
    moesim_fidelity_print_intervals(&r->main, out);
}
