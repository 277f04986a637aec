/* SPDX-License-Identifier: Apache-2.0
 *
 * A sweep for people, at most 80 columns. All of it is read from the result, so that a sweep that went on after a kill prints
 * what an uninterrupted one prints.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/run.h"
#include "cli/run_text.h"
#include "cli/sweep.h"

#define POLICY_COLUMNS 18u

static const char rule[] = "--------------------------------------------------------------------------------\n";

/* ---- table ----------------------------------------------------------------------------------------------------------- */

static bool in_part(const moesim_sweep_part *part, const moesim_table *t, size_t row)
{
    const int64_t cell = moesim_cell_whole(t, "cell", row);
    return cell >= (int64_t)part->first && cell < (int64_t)(part->first + part->cells);
}

static void part_head(const moesim_sweep *s, const moesim_sweep_part *part, FILE *out)
{
    const moesim_trace_info *t = part->trace->info;
    fputs(rule, out);
    fputs("trace     ", out);
    moesim_text_clipped(out, part->trace->path, 48);
    fprintf(out, " (sha256 %.12s)\nmodel     ", part->trace->digest);
    moesim_text_clipped(out, t->model_id, 70);
    const uint64_t n = part->trace->request_end - part->trace->request_begin - s->options->warmup;
    fprintf(out, "\nrequests  %" PRIu64 ":%" PRIu64 " of %" PRIu32 ", warm-up %" PRIu64 "; counted n = %" PRIu64
            "%s; batch %" PRIu32 "\n", part->trace->request_begin, part->trace->request_end, t->num_requests,
            s->options->warmup, n, n < MOESIM_FEW_REQUESTS ? " (few)" : "", part->batch);
    fprintf(out, "run       scope %s, order %s, staging %" PRIu64 "\n", moesim_scope_names[s->options->modes.scope],
            moesim_order_names[s->options->modes.order], s->options->staging);
    moesim_pricing_print(&part->pricing, out);
    if (part->memory != NULL)
        fputs(part->memory, out);
}

static const char *gbps_text(double v, char out[16])
{
    if (isnan(v))
        snprintf(out, 16, "-");
    else
        snprintf(out, 16, "%.5g", v);
    return out;
}

/* Slots, or in scope global a size. */
static const char *cache_text(const moesim_table *t, int64_t cache, char out[32])
{
    const moesim_column_data *c = moesim_table_find(t, "cache");
    return moesim_cache_text((uint64_t)cache, c != NULL && strcmp(c->unit, "bytes") == 0, out, 32);
}

static void name(const moesim_table *t, size_t row, FILE *out)
{
    const char *mark = moesim_cell_whole(t, "clairvoyant", row) != 0  ? " *"
                       : moesim_cell_whole(t, "non_causal", row) != 0 ? " !" : "";
    moesim_text_name(out, moesim_cell_text(t, "policy", row), mark, POLICY_COLUMNS);
}

static void best_row(const moesim_table *t, const moesim_best *b, bool timed, FILE *out)
{
    const bool bounded = moesim_table_find(t, MOESIM_TPOT_BOUND) != NULL;
    const char *measure = timed ? "tpot" : "misses_per_pass";
    char lo[64], hi[64], text[3][16], wide[32], cache[32];
    snprintf(lo, sizeof lo, "%s_lo", measure);
    snprintf(hi, sizeof hi, "%s_hi", measure);
    const moesim_interval ci = { moesim_cell_real(t, lo, b->row), moesim_cell_real(t, hi, b->row) };
    fprintf(out, "%7s %6s  ", cache_text(t, moesim_cell_whole(t, "cache", b->row), cache),
            gbps_text(moesim_cell_real(t, "bandwidth_gbps", b->row), text[0]));
    moesim_text_name(out, moesim_cell_text(t, "policy", b->row), "", POLICY_COLUMNS);
    fprintf(out, bounded ? " %8s %-15s %8s\n" : " %8s %s\n",
            moesim_text_real(moesim_cell_real(t, timed ? "tpot_ms" : measure, b->row), text[1]),
            moesim_text_interval(ci, 1, 4, wide), moesim_text_real(moesim_cell_real(t, MOESIM_TPOT_BOUND, b->row), text[2]));
    size_t used = 0;
    char equal[600] = "not distinguishable from ";
    for (size_t k = 0; k < b->num_equal; k++) {
        used = strlen(equal);
        snprintf(equal + used, sizeof equal - used, "%s%.100s", k > 0 ? ", " : "", moesim_cell_text(t, "policy", b->equal[k]));
    }
    used = strlen(equal);
    if (b->more > 0)
        snprintf(equal + used, sizeof equal - used, " and %zu more", b->more);
    if (b->num_equal > 0)
        moesim_args_row(out, "", 0, 17, equal);
}

/* Full residency copies nothing once a request has begun, so that most often one line serves all bandwidths. */
static void floors(const moesim_sweep_part *part, const moesim_table *t, const moesim_findings *f, FILE *out)
{
    char text[2][16], at[40] = "", last[160] = "", line[160], wide[32];
    for (size_t i = 0; i < f->num_floors; i++) {
        const size_t row = f->floor[i];
        if (!in_part(part, t, row))
            continue;
        const moesim_interval ci = { moesim_cell_real(t, "tpot_lo", row), moesim_cell_real(t, "tpot_hi", row) };
        snprintf(line, sizeof line, "TPOT %s ms %s", moesim_text_real(moesim_cell_real(t, "tpot_ms", row), text[0]),
                 moesim_text_interval(ci, 1, 4, wide));
        if (strcmp(line, last) == 0)
            continue;
        if (last[0] != '\0')
            snprintf(at, sizeof at, " from %s GB/s on", gbps_text(moesim_cell_real(t, "bandwidth_gbps", row), text[1]));
        fprintf(out, "floor     full residency%s: %s\n", at, line);
        memcpy(last, line, sizeof last);
    }
}

static void best(const moesim_sweep_part *part, const moesim_table *t, const moesim_findings *f, FILE *out)
{
    fprintf(out, "\nbest policy that can be built\n  cache   GB/s  policy             %s [95 %% CI]%s\n",
            f->timed ? " TPOT ms" : "misses/pass", moesim_table_find(t, MOESIM_TPOT_BOUND) != NULL ? "       at least" : "");
    for (size_t i = 0; i < f->num_best; i++)
        if (in_part(part, t, f->best[i].row))
            best_row(t, &f->best[i], f->timed, out);
}

static void knees(const moesim_sweep_part *part, const moesim_table *t, const moesim_findings *f, FILE *out)
{
    char text[16], cache[32];
    bool any = false;
    for (size_t i = 0; i < f->num_knees; i++) {
        const size_t row = f->knee[i].row;
        if (!in_part(part, t, row))
            continue;
        if (!any)
            fprintf(out, "\nknee: smallest capacity with %s\npolicy                GB/s   cache\n",
                    f->timed ? "TPOT within 5 % of full residency" : "a hit rate of 95 %");
        any = true;
        name(t, row, out);
        fprintf(out, " %7s ", gbps_text(moesim_cell_real(t, "bandwidth_gbps", row), text));
        if (f->knee[i].cache >= 0)
            fprintf(out, "%7s\n", cache_text(t, f->knee[i].cache, cache));
        else
            fputs("  above those swept\n", out);
    }
}

static void breaks(const moesim_sweep_part *part, const moesim_table *t, const moesim_findings *f, FILE *out)
{
    char text[16];
    bool any = false;
    for (size_t i = 0; i < f->num_breaks; i++) {
        const moesim_break_even *e = &f->even[i];
        if (!in_part(part, t, e->row))
            continue;
        if (!any)
            fputs("\nbreak-even: smallest bandwidth with TPOT within 5 % of full residency\n"
                  "policy               cache  GB/s\n", out);
        any = true;
        name(t, e->row, out);
        fprintf(out, " %7" PRId64 "  ", moesim_cell_whole(t, "cache", e->row));
        if (isnan(e->gbps))
            fputs("above those swept\n", out);
        else
            fprintf(out, "%s%s\n", e->below ? "at most " : "", moesim_text_real(e->gbps, text));
    }
}

/* What stands behind names and marks, as `moesim run` says it. */
static void note_policies(const moesim_sweep *s, const moesim_table *t, FILE *out)
{
    bool clairvoyant = false, non_causal = false, experimental = false, found_on = false;
    for (size_t row = 0; row < t->rows; row++) {
        clairvoyant = clairvoyant || moesim_cell_whole(t, "clairvoyant", row) != 0;
        non_causal = non_causal || moesim_cell_whole(t, "non_causal", row) != 0;
    }
    for (size_t i = 0; i < s->num_policies; i++)
        experimental = experimental || strcmp(s->policy[i].policy->name, "surv") == 0;
    for (size_t i = 0; i < s->num_traces; i++)
        found_on = found_on || strcmp(s->trace[i].info->model_id, MOESIM_SURV_MODEL) == 0;
    moesim_text_marks(out, clairvoyant, non_causal, s->options->modes.scope == MOESIM_SCOPE_GLOBAL);
    if (experimental)
        fprintf(out, "surv is experimental: found on traces of %s\n",
                found_on ? "one of these models, so in-sample there" : "one small model");
}

static void note_intervals(const moesim_sweep *s, const moesim_table *t, FILE *out)
{
    int64_t least = INT64_MAX;
    for (size_t row = 0; row < t->rows; row++) {
        const int64_t n = moesim_cell_whole(t, "requests", row);
        least = n < least ? n : least;
    }
    fprintf(out, "%zu cell%s, seed %" PRIu64 "; %s", t->rows, t->rows == 1 ? "" : "s", s->options->seed,
            least < 2 ? "one request gives no interval and tells no policies apart.\n" : "");
    if (least > 1)
        fprintf(out, "95 %% intervals from at most %u resamples of requests.\n", MOESIM_RESAMPLES);
    moesim_text_few(out, (uint64_t)least);
}

static void notes(const moesim_sweep *s, const moesim_result *r, FILE *out)
{
    const moesim_table *t = moesim_sweep_cells(r);
    const char *shard = moesim_result_get(r, "shard");
    fputs(rule, out);
    note_policies(s, t, out);
    if (moesim_table_find(t, MOESIM_TPOT_BOUND) != NULL)
        fputs("at least: offline-cost, the TPOT that no policy of fixed slots without prefetch\n"
              "can be below, whoever decides\n", out);
    if (shard != NULL)
        fprintf(out, "shard %s: what is found holds for these cells alone; merge the shards\n", shard);
    note_intervals(s, t, out);
    fputs("All figures of all cells: --format csv, --format json, -o FILE.h5\n", out);
}

void moesim_sweep_table(const moesim_sweep *s, const moesim_result *r, const moesim_findings *f, FILE *out)
{
    const moesim_table *t = moesim_sweep_cells(r);
    for (size_t i = 0; i < s->num_parts; i++) {
        const moesim_sweep_part *part = &s->part[i];
        part_head(s, part, out);
        floors(part, t, f, out);
        best(part, t, f, out);
        knees(part, t, f, out);
        breaks(part, t, f, out);
    }
    notes(s, r, out);
}
