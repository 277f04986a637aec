/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics as rows (for CSV and JSON) and as a table.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "cli/stats_report.h"

static double layer_mean(const moesim_trace_stats *s, uint32_t layer)
{
    return s->decode_passes > 0 ? (double)s->active_sum[layer] / (double)s->decode_passes : NAN;
}

static double per_pass(const moesim_trace_stats *s)
{
    return s->decode_passes > 0 ? (double)s->committed / (double)s->decode_passes : NAN;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

typedef struct emitter { moesim_stat_fn *each; void *cookie; } emitter;

static void emit(const emitter *e, const char *figure, const char *prefix, double number, double value, uint64_t n)
{
    char key[64];
    if (number >= 0.0)
        snprintf(key, sizeof key, "%s%g", prefix, number);
    else
        snprintf(key, sizeof key, "%s", prefix);
    const moesim_stat_row row = { figure, key, value, n };
    e->each(e->cookie, &row);
}

static void emit_lags(const emitter *e, const char *figure, const moesim_mean *mean)
{
    for (uint32_t lag = 1; lag <= MOESIM_STATS_LAGS; lag++)
        emit(e, figure, "lag ", lag, moesim_mean_value(&mean[lag]), mean[lag].n);
}

static void emit_stability(const emitter *e, const moesim_trace_stats *s)
{
    static const char *const names[2][2] = {
        { "stability_mean_masked", "stability_full_masked" }, { "stability_mean_all", "stability_full_all" },
    };
    for (size_t i = 0; i < 2; i++) {
        const moesim_stability *st = &s->stability[i];
        for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++)
            emit(e, names[i][0], "confidence ", (b + 0.5) / MOESIM_STATS_BINS, moesim_stability_mean(st, b, s->top_k),
                 st->n[b]);
        for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++)
            emit(e, names[i][1], "confidence ", (b + 0.5) / MOESIM_STATS_BINS, moesim_stability_full(st, b, s->top_k),
                 st->n[b]);
    }
}

void moesim_stats_each(const moesim_trace_stats *stats, const uint32_t *caches, size_t n, moesim_stat_fn *each, void *cookie)
{
    static const char *const persistence[] = { "persistence_all", "persistence_masked", "persistence_just_committed",
                                               "persistence_long_committed" };
    const emitter e = { each, cookie };
    const uint64_t events = stats->decode_passes * stats->num_layers;
    emit(&e, "active_experts", "all layers", -1.0, moesim_trace_stats_active(stats), events);
    for (uint32_t l = 0; l < stats->num_layers; l++)
        emit(&e, "active_experts", "layer ", l, layer_mean(stats, l), stats->decode_passes);
    emit_lags(&e, "overlap_over_later", stats->overlap_new);
    emit_lags(&e, "overlap_over_earlier", stats->overlap_old);
    emit(&e, "boundary_overlap_over_later", "", -1.0, moesim_mean_value(&stats->boundary_new), stats->boundary_new.n);
    emit(&e, "boundary_overlap_over_earlier", "", -1.0, moesim_mean_value(&stats->boundary_old), stats->boundary_old.n);
    for (uint32_t c = 0; c < MOESIM_STATS_CLASSES; c++)
        emit_lags(&e, persistence[c], stats->persistence[c]);
    emit_stability(&e, stats);
    emit(&e, "committed_per_decode_pass", "", -1.0, per_pass(stats), stats->decode_passes);
    for (size_t i = 0; i < n; i++) {
        const moesim_regime r = moesim_trace_stats_regime(stats, caches[i]);
        emit(&e, "regime_mean", "cache ", caches[i], r.mean, events);
        emit(&e, "regime_p95", "cache ", caches[i], r.p95, events);
        emit(&e, "regime_above_one", "cache ", caches[i], r.above_one, events);
    }
}

/* ---- table ----------------------------------------------------------------------------------------------------- */

/* A number in `width` columns, "-" where undefined. */
static void cell(double value, int width, int digits)
{
    if (isnan(value))
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, digits, value);
}

static void print_activation(const moesim_trace_stats *s)
{
    printf("Active experts per layer, mean over %" PRIu64 " decode passes: %.2f\n  %.1f %% of %" PRIu32 ", %.2f times top-%"
           PRIu32 "\n  by layer", s->decode_passes, moesim_trace_stats_active(s),
           100.0 * moesim_trace_stats_active(s) / s->num_experts, s->num_experts, moesim_trace_stats_active(s) / s->top_k,
           s->top_k);
    for (uint32_t l = 0; l < s->num_layers; l++) {
        if (l % 10 == 0 && l > 0)
            fputs("\n          ", stdout);
        printf(" %6.1f", layer_mean(s, l));
    }
    printf("\nTokens committed per decode pass: %.3f (%" PRIu64 " tokens)\n", per_pass(s), s->committed);
}

static void print_lags(const moesim_trace_stats *s)
{
    fputs("\nOverlap of active sets, and persistence of a position's experts, by lag in\ndecode passes of one "
          "block (persistence by the state in which the next pass\nmeets the row)\n"
          "  lag  /later /earlier   rows: all  masked just comm. long comm.\n", stdout);
    for (uint32_t lag = 1; lag <= MOESIM_STATS_LAGS; lag++) {
        printf("  %3u ", lag);
        cell(moesim_mean_value(&s->overlap_new[lag]), 6, 4);
        cell(moesim_mean_value(&s->overlap_old[lag]), 8, 4);
        cell(moesim_mean_value(&s->persistence[MOESIM_STATS_ALL][lag]), 11, 4);
        cell(moesim_mean_value(&s->persistence[MOESIM_STATS_MASKED][lag]), 7, 4);
        cell(moesim_mean_value(&s->persistence[MOESIM_STATS_JUST][lag]), 10, 4);
        cell(moesim_mean_value(&s->persistence[MOESIM_STATS_LONG][lag]), 10, 4);
        putchar('\n');
    }
    fputs("  block boundary:", stdout);
    cell(moesim_mean_value(&s->boundary_new), 6, 4);
    fputs(" over the later set,", stdout);
    cell(moesim_mean_value(&s->boundary_old), 6, 4);
    fputs(" over the earlier\n", stdout);
}

static void print_stability(const moesim_trace_stats *s)
{
    fputs("\nStability (share of a row's experts kept by the next pass) by confidence\n"
          "                  masked rows                    all rows\n"
          "  bin        n   mean  P(=1)  paper           n   mean  P(=1)\n", stdout);
    for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
        printf("  %.2f %7" PRIu64, (b + 0.5) / MOESIM_STATS_BINS, s->stability[0].n[b]);
        cell(moesim_stability_mean(&s->stability[0], b, s->top_k), 6, 3);
        cell(moesim_stability_full(&s->stability[0], b, s->top_k), 6, 3);
        cell(moesim_paper_stable[b], 6, 2);
        printf(" %11" PRIu64, s->stability[1].n[b]);
        cell(moesim_stability_mean(&s->stability[1], b, s->top_k), 6, 3);
        cell(moesim_stability_full(&s->stability[1], b, s->top_k), 6, 3);
        putchar('\n');
    }
}

static void print_regime(const moesim_trace_stats *s, const uint32_t *caches, size_t n)
{
    fputs("\nRegime r = |A| / slots\n  cache    mean     p95  above 1\n", stdout);
    for (size_t i = 0; i < n; i++) {
        const moesim_regime r = moesim_trace_stats_regime(s, caches[i]);
        printf("  %5" PRIu32, caches[i]);
        cell(r.mean, 7, 3);
        cell(r.p95, 7, 3);
        cell(r.above_one, 8, 4);
        putchar('\n');
    }
}

static void print_claims(const moesim_trace_stats *s, const moesim_trace_info *info)
{
    char text[640];
    moesim_claims_comparable(info, text, sizeof text);
    fputs("\nBeside the paper (OLED-MoE, arXiv 2609.33385)\n", stdout);
    moesim_args_row(stdout, "", 0, 2, text);
    printf("%-45s %5s  %s\n", "", "here", "paper");
    for (const moesim_claim *c = moesim_claims; c->what != NULL; c++) {
        const double value = c->value(s);
        printf("%-8s %-36s", c->place, c->what);
        cell(value, 5, value >= 10.0 ? 1 : 3);
        printf("  %-19s %s\n", c->paper, moesim_claim_verdict(c, value));
    }
}

void moesim_stats_print_table(const moesim_trace_stats *stats, const moesim_trace_info *info, const uint32_t *caches, size_t n)
{
    if (stats->decode_passes == 0) {
        fputs("The trace has no decode passes: there is nothing to characterise.\n", stdout);
        return;
    }
    print_activation(stats);
    print_lags(stats);
    print_stability(stats);
    if (n > 0)
        print_regime(stats, caches, n);
    print_claims(stats, info);
}
