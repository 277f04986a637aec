/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim run` for people: at most 80 columns, one block per capacity, intervals in brackets.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/run.h"
#include "cli/run_text.h"

#define POLICY_COLUMNS 15u
#define DIGEST_SHOWN 12

static const char rule[] = "--------------------------------------------------------------------------------\n";

static void head(const moesim_report *r, FILE *out)
{
    const moesim_run_options *o = r->options;
    const moesim_trace_info *t = r->info;
    const uint32_t n = r->outcome[0].num_requests;
    fputs("trace     ", out);
    moesim_text_clipped(out, o->path, 48);
    fprintf(out, " (sha256 %.*s)\nmodel     ", DIGEST_SHOWN, r->digest);
    moesim_text_clipped(out, t->model_id, 70);
    fprintf(out, "\n          %" PRIu32 " MoE layers, %" PRIu32 " experts, top %" PRIu32 ", block length %" PRIu32 "\n",
            t->num_layers, t->num_experts, t->top_k, t->block_length);
    fprintf(out, "requests  %" PRIu64 ":%" PRIu64 " of %" PRIu32 ", warm-up %" PRIu64 "; counted n = %" PRIu32 "%s\n",
            r->request_begin, r->request_end, t->num_requests, o->warmup, n,
            n < MOESIM_FEW_REQUESTS ? " (few)" : "");
    fprintf(out, "run       scope %s, order %s, batch %" PRIu64 ", staging %" PRIu64 ", seed %" PRIu64 "; %.0f passes\n",
            moesim_scope_names[o->modes.scope], moesim_order_names[o->modes.order],
            o->batch, o->staging, o->seed, r->outcome[0].total.passes);
    moesim_pricing_print(&r->pricing, out);
    if (moesim_report_timed(r))
        fprintf(out, "link      %.6g GB/s\n", r->outcome[0].timing->bandwidth / 1e9);
}

static double figure(const moesim_report *r, size_t cell, const char *name)
{
    return moesim_report_value(r, cell, moesim_figure_index(name));
}

/* What the capacity itself gives, whatever the policy. */
static void capacity(const moesim_report *r, size_t first, FILE *out)
{
    char amount[32], low[16], high[16], floor[16], over[16];
    const moesim_sums *s = &r->outcome[first].total;
    const bool global = r->options->modes.scope == MOESIM_SCOPE_GLOBAL;
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t cell = first; cell < first + r->num_shown; cell++) {
        const uint64_t peak = r->outcome[cell].peak_bytes;
        least = peak < least ? peak : least;
        most = peak > most ? peak : most;
    }
    fputs(rule, out);
    fprintf(out, "cache %s %s, peak %s%s%s MiB\n",
            moesim_cache_text(moesim_report_cache(r, first), global, amount, sizeof amount),
            global ? "over all layers" : "experts per layer", least < most ? moesim_text_real((double)least / 0x1p20, low) : "",
            least < most ? " to " : "", moesim_text_real((double)most / 0x1p20, high));
    if (global || moesim_report_cache(r, first) == 0 || s->events <= 0)
        return;
    fprintf(out, "miss floor %s %%, r = |A|/C: mean %.2f, p95 %.2f, above 1 in %s %% of events\n",
            moesim_text_percent(figure(r, first, "miss_floor"), floor), s->ratio_sum / s->events,
            r->outcome[first].ratio_p95, moesim_text_percent(s->ratio_over / s->events, over));
}

static void name(const moesim_report *r, size_t cell, FILE *out)
{
    const uint32_t traits = r->outcome[cell].traits;
    const char *mark = (traits & MOESIM_CLAIRVOYANT) != 0 ? " *" : (traits & MOESIM_NON_CAUSAL) != 0 ? " !" : "";
    moesim_text_name(out, moesim_report_policy(r, cell)->given, mark, POLICY_COLUMNS);
}

/* A figure against another policy's: "+58%". "-" without that policy, or where its figure is 0. */
static const char *against(const moesim_report *r, size_t cell, const char *measure, const char *other, char text[16])
{
    const size_t first = cell - cell % r->num_policies;
    for (size_t p = 0; p < r->num_shown; p++) {
        if (strcmp(r->policy[p].policy->name, other) != 0)
            continue;
        return moesim_text_change(figure(r, cell, measure) / figure(r, first + p, measure) - 1, text);
    }
    return "-";
}

static void row(const moesim_report *r, size_t cell, FILE *out)
{
    char text[8][16], wide[2][32];
    const size_t use = moesim_figure_index("utilisation"), miss = moesim_figure_index("misses_per_pass");
    name(r, cell, out);
    fprintf(out, " %4s %-11s %4s %5s %-13s %5s %4s %5s %5s\n", moesim_text_percent(moesim_report_value(r, cell, use), text[0]),
            moesim_text_interval(moesim_report_interval(r, cell, use), 100, 3, wide[0]),
            moesim_text_percent(figure(r, cell, "hit_rate"), text[1]),
            moesim_text_fit(moesim_report_value(r, cell, miss), 5, text[2]),
            moesim_text_interval_fit(moesim_report_interval(r, cell, miss), 1, 4, 13, wide[1]),
            moesim_text_fit(figure(r, cell, "moved_bytes_per_token") / 1e6, 5, text[3]),
            moesim_text_percent(figure(r, cell, "wasted_share"), text[4]),
            against(r, cell, "misses_per_pass", "ideal", text[5]), against(r, cell, "misses_per_pass", "random", text[6]));
}

#define TIME_ROW " %8s %-15s %7s %7s %7s %6s %6s\n"   /* after the name */

static void time_row(const moesim_report *r, size_t cell, FILE *out)
{
    char text[6][16], wide[32];
    const size_t tpot = moesim_figure_index("tpot_ms");
    name(r, cell, out);
    fprintf(out, TIME_ROW, moesim_text_fit(moesim_report_value(r, cell, tpot), 8, text[0]),
            moesim_text_interval_fit(moesim_report_interval(r, cell, tpot), 1, 4, 15, wide),
            moesim_text_fit(figure(r, cell, "miss_ms"), 7, text[1]), moesim_text_fit(figure(r, cell, "ttft_ms"), 7, text[2]),
            moesim_text_fit(figure(r, cell, "tokens_per_s"), 7, text[3]), against(r, cell, "tpot_ms", "ideal", text[4]),
            against(r, cell, "tpot_ms", "full", text[5]));
}

static void time_block(const moesim_report *r, size_t first, FILE *out)
{
    fprintf(out, "%-15s" TIME_ROW, "", "time per", "output token", "misses", "TTFT", "tokens", "TPOT", "vs");
    fprintf(out, "%-15s" TIME_ROW, "policy", "TPOT ms", "[95 % CI]", "ms", "ms", "per s", "ideal", "full");
    for (size_t cell = first; cell < first + r->num_shown; cell++)
        time_row(r, cell, out);
    char text[16];
    if (r->bound != NULL)
        fprintf(out, "offline-cost: whoever decides, copies or CPU take %s ms per token at least\n",
                moesim_text_real(moesim_report_bound_ms(r, first / r->num_policies), text));
}

static void block(const moesim_report *r, size_t first, FILE *out)
{
    capacity(r, first, out);
    fputs("                 utilisation    hit      misses/pass     MB per was-  misses vs\n"
          "policy             % [95 % CI]    %        [95 % CI]     token  ted ideal random\n", out);
    for (size_t cell = first; cell < first + r->num_shown; cell++)
        row(r, cell, out);
    if (moesim_report_timed(r))
        time_block(r, first, out);
}

/* As the heading of the column "figure" has it. */
static const char *figure_text(size_t metric)
{
    static const struct { const char *name, *text; } known[] = {
        { "misses_per_pass", "misses" }, { "utilisation", "util. %" }, { "tpot_ms", "TPOT ms" },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (metric == moesim_figure_index(known[i].name))
            return known[i].text;
    return "";
}

static void pairs(const moesim_report *r, FILE *out)
{
    if (r->num_pairs == 0)
        return;
    char amount[32], difference[16], p[16], wide[32];
    const uint32_t n = r->outcome[0].num_requests;
    fprintf(out, "%spaired with ", rule);
    moesim_text_clipped(out, r->options->baseline, 40);
    fprintf(out, ", n = %" PRIu32 "%s; sign-flip test %s\n", n, n < MOESIM_FEW_REQUESTS ? " (few)" : "",
            r->pair[0].result.exact ? "exact" : "seeded");
    fputs("policy          cache   figure   difference [95 % CI]     p\n", out);
    for (size_t i = 0; i < r->num_pairs; i++) {
        const moesim_pair *pair = &r->pair[i];
        const double scale = pair->metric == moesim_figure_index("utilisation") ? 100 : 1;
        name(r, pair->cell, out);
        fprintf(out, " %-7s %-7s %6s %-14s %6s%s\n",
                moesim_cache_text(moesim_report_cache(r, pair->cell), r->options->modes.scope == MOESIM_SCOPE_GLOBAL, amount,
                                  sizeof amount),
                figure_text(pair->metric), moesim_text_signed(scale * pair->result.difference, difference),
                moesim_text_interval(pair->result.interval, scale, 3, wide), moesim_text_p(pair->result.p, p),
                moesim_pair_distinguishable(pair) ? "" : " not distinguishable");
    }
}

static void gaps(const moesim_report *r, FILE *out)
{
    if (r->num_gaps == 0)
        return;
    char amount[32], text[3][16], wide[2][32];
    fprintf(out, "%smisses above belady, and what they come from: admission (every miss must be\n"
                 "admitted) or victim (the wrong expert left)\n"
                 "policy          cache   misses/pass    admission %%            victim %%\n", rule);
    for (size_t i = 0; i < r->num_gaps; i++) {
        const moesim_gap_row *row_i = &r->gap[i];
        const moesim_gap *g = &row_i->gap;
        name(r, row_i->cell, out);
        fprintf(out, " %-7s %11s ", moesim_cache_text(moesim_report_cache(r, row_i->cell), false, amount, sizeof amount),
                moesim_text_real(g->misses, text[0]));
        if (g->why != NULL)
            fprintf(out, "   n/a: %s\n", g->why);
        else
            fprintf(out, "  %5s %-14s  %5s %s\n", moesim_text_percent(g->admission, text[1]),
                    moesim_text_interval(g->admission_ci, 100, 3, wide[0]), moesim_text_percent(g->victim, text[2]),
                    moesim_text_interval(g->victim_ci, 100, 3, wide[1]));
    }
}

static void note_intervals(const moesim_report *r, FILE *out)
{
    const uint64_t counted = r->request_end - r->request_begin - r->options->warmup;
    if (counted < 2)
        fputs("Decode passes; one request, so no figure has an interval.\n", out);
    else
        fprintf(out, "Decode passes; 95 %% intervals from %" PRIu32 " bootstrap resamples of requests.\n",
                moesim_resamples(counted));
    moesim_text_few(out, counted);
}

static void notes(const moesim_report *r, FILE *out)
{
    uint32_t traits = 0;
    bool experimental = false, swings = false;
    for (size_t cell = 0; cell < r->num_cells; cell++) {
        if (!moesim_report_shown(r, cell))
            continue;
        traits |= r->outcome[cell].traits;
        swings |= r->outcome[cell].oscillations > 0;
        experimental |= strcmp(moesim_report_policy(r, cell)->policy->name, "surv") == 0;
    }
    fputs(rule, out);
    moesim_text_marks(out, (traits & MOESIM_CLAIRVOYANT) != 0, (traits & MOESIM_NON_CAUSAL) != 0,
                      r->options->modes.scope == MOESIM_SCOPE_GLOBAL);
    if (experimental)
        fprintf(out, "surv is experimental: found on %s\n",
                strcmp(r->info->model_id, MOESIM_SURV_MODEL) == 0 ? "traces of this model, so its row is in-sample"
                                                                  : "traces of one small model");
    if (swings)
        fputs("layer capacities swing with period 2 in this run (oscillations in JSON and CSV)\n", out);
    if (r->options->check_observed)
        for (size_t cell = 0; cell < r->num_cells; cell++)
            if (moesim_report_shown(r, cell))
                fprintf(out, "observed residency, %s: %" PRIu64 " checked, %" PRIu64 " differ\n",
                        moesim_report_policy(r, cell)->given, r->outcome[cell].observed_checked,
                        r->outcome[cell].observed_wrong);
    note_intervals(r, out);
    fputs("What each figure means: moesim run --help. All of them: --format json\n", out);
}

void moesim_run_print_table(const moesim_report *r, FILE *out)
{
    head(r, out);
    for (size_t first = 0; first < r->num_cells; first += r->num_policies)
        block(r, first, out);
    pairs(r, out);
    gaps(r, out);
    notes(r, out);
}
