/* SPDX-License-Identifier: Apache-2.0
 *
 * Heads, legends and numbers of fidelity reports.
 */
#include "cli/fidelity_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/profile.h"
#include "cli/run_text.h"

const char *moesim_text_error(double error, char out[16])
{
    if (!isfinite(error))
        snprintf(out, 16, "n/a");
    else if (fabs(error) >= 100)
        snprintf(out, 16, error > 0 ? ">9999%%" : "<-9999%%");
    else
        snprintf(out, 16, "%+.*f%%", fabs(error) < 0.09995 ? 2 : fabs(error) < 0.9995 ? 1 : 0, 100 * error);
    return out;
}

const char *moesim_text_size(double error, char out[16])
{
    if (!isfinite(error))
        snprintf(out, 16, "n/a");
    else if (fabs(error) >= 100)
        snprintf(out, 16, ">9999%%");
    else
        snprintf(out, 16, "%.*f%%", fabs(error) < 0.09995 ? 2 : fabs(error) < 0.9995 ? 1 : 0, 100 * fabs(error));
    return out;
}

static void percent(double v, char out[14])
{
    const double shown = fabs(v) < 100 ? v : copysign(99.99, v);
    snprintf(out, 14, "%+.*f", fabs(v) < 0.09995 ? 2 : fabs(v) < 0.9995 ? 1 : 0, 100 * shown);
}

const char *moesim_text_error_interval(moesim_interval interval, char out[32])
{
    char lo[14], hi[14];
    if (!isfinite(interval.lo) || !isfinite(interval.hi)) {
        snprintf(out, 32, "[n/a]");
        return out;
    }
    percent(interval.lo, lo);
    percent(interval.hi, hi);
    snprintf(out, 32, "[%s %s]", lo, hi);
    return out;
}

const char *moesim_text_cell(const moesim_fidelity_cell *cell, char out[128])
{
    char rate[16];
    const int n = snprintf(out, 128, "%.60s at %" PRIu32, cell->policy, cell->cache);
    if (cell->cap > 0)
        snprintf(out + n, 128 - (size_t)n, ", %s GB/s", moesim_text_real(cell->cap / 1e9, rate));
    return out;
}

/* ---- head ------------------------------------------------------------------------------------------------------------ */

static void print_device(const moesim_replay_config *c, const moesim_replay_file *f, FILE *out)
{
    static const char *const facts[] = {"gpu", "driver", "cuda", "pcie", "cpu"};
    char value[128], line[600] = "";
    size_t used = (size_t)snprintf(line, sizeof line, "%s", c->device);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        moesim_replay_fact(&f->session[0], facts[i], value, sizeof value);
        if (value[0] != '\0' && used < sizeof line)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s %s%s%.100s", i == 0 ? ":" : ",",
                                     i == 0 || i == 4 ? "" : facts[i], i == 0 || i == 4 ? "" : " ", value);
    }
    moesim_args_row(out, "device", 0, 10, line);
    const bool pins = strcmp(c->device, "host") != 0 && strcmp(c->device, "null") != 0;
    snprintf(line, sizeof line, "%" PRIu64 " CPU threads (%s)%s; %" PRIu64 " experts in slots, staging %" PRIu64
             ", %" PRIu64 " in the host's pool (expert e of layer l is l*E + e modulo that)", c->threads,
             c->isa[0] != '\0' ? c->isa : "no kernel", !pins ? "" : c->pinned != 0 ? ", host memory pinned" :
             ", host memory PAGEABLE: not the times of a real system",
             c->slots, c->staging, c->pool);
    moesim_args_row(out, "", 0, 10, line);
    if (strcmp(c->device, "null") == 0)
        moesim_args_row(out, "", 0, 10, "This device copies and computes nothing: its times mean nothing.");
}

static void print_run(const moesim_fidelity_set *set, FILE *out)
{
    const moesim_replay_config *c = &set->file.config;
    char line[300], range[48] = "all";
    uint32_t least = UINT32_MAX, most = 0;
    for (size_t i = 0; i < set->num_cells; i++) {
        least = set->cell[i].repeats < least ? set->cell[i].repeats : least;
        most = set->cell[i].repeats > most ? set->cell[i].repeats : most;
    }
    if (c->request_end != UINT64_MAX)
        snprintf(range, sizeof range, "%" PRIu64 ":%" PRIu64, c->request_begin, c->request_end);
    snprintf(line, sizeof line, "requests %s, warm-up %" PRIu64 ", batch %" PRIu64 ", seed %" PRIu64 "; other %s; %zu cell%s, %"
             PRIu32 "%s", range, c->warmup, c->batch, c->seed, c->other != 0 ? "executed" : "off", set->num_cells,
             set->num_cells == 1 ? "" : "s", least, least != most ? "" : least == 1 ? " repeat" : " repeats");
    const size_t used = strlen(line);
    if (least != most)
        snprintf(line + used, sizeof line - used, " to %" PRIu32 " repeats", most);
    moesim_args_row(out, "run", 0, 10, line);
    if (moesim_replay_file_partial(&set->file)) {
        snprintf(line, sizeof line, "%zu of %" PRIu64 " executions finished: PARTIAL, some cells are missing or have fewer "
                 "repeats", set->file.num_cells, c->planned_cells);
        moesim_args_row(out, "", 0, 10, line);
    }
}

/* "link x 0.99 (55 GB/s -> 54 GB/s; 512 events)", or why it stays as it was measured. */
static size_t fitted_part(const moesim_fidelity_report *r, enum moesim_calibrated k, char *out, size_t room)
{
    static const char *const names[] = {[MOESIM_CALIBRATED_SYNC] = "sync", [MOESIM_CALIBRATED_GPU] = "GPU table",
                                        [MOESIM_CALIBRATED_LINK] = "link", [MOESIM_CALIBRATED_CPU] = "CPU table"};
    const moesim_calibration *c = &r->calibration;
    const moesim_calibration_part *part = &c->part[k];
    char was[32], is[32];
    int n = snprintf(out, room, "%s", names[k]);
    if (part->state == MOESIM_CALIBRATION_BOUND)
        n += snprintf(out + n, room - (size_t)n, ": as measured, its fit to %zu events leaves x %.1f .. %.1f", part->events,
                      1 / MOESIM_CALIBRATION_FACTOR, MOESIM_CALIBRATION_FACTOR);
    else if (part->state != MOESIM_CALIBRATION_FITTED && (part->events == 0 || part->state == MOESIM_CALIBRATION_DULL))
        n += snprintf(out + n, room - (size_t)n, ": as measured, no event tells it");
    else if (part->state != MOESIM_CALIBRATION_FITTED)
        n += snprintf(out + n, room - (size_t)n, ": as measured, %zu event%s %s too few to tell it", part->events,
                      part->events == 1 ? "" : "s", part->events == 1 ? "is" : "are");
    else if (k == MOESIM_CALIBRATED_SYNC)
        n += snprintf(out + n, room - (size_t)n, " %s -> %s (%zu events)",
                      moesim_profile_text(r->profile->sync.value, "s", was), moesim_profile_text(c->sync, "s", is),
                      part->events);
    else if (k == MOESIM_CALIBRATED_LINK)
        n += snprintf(out + n, room - (size_t)n, " x %.4f (%s -> %s; %zu events)", c->link,
                      moesim_profile_text(r->profile->link_bandwidth.value, "B/s", was),
                      moesim_profile_text(r->fitted->link_bandwidth.value, "B/s", is), part->events);
    else
        n += snprintf(out + n, room - (size_t)n, " x %.4f (%zu events)", k == MOESIM_CALIBRATED_GPU ? c->gpu : c->cpu,
                      part->events);
    return (size_t)n;
}

static void print_fitted(const moesim_fidelity_report *r, FILE *out)
{
    char line[1200];
    size_t n = (size_t)snprintf(line, sizeof line, "on %s alone: ", r->calibrated_on);
    for (int k = 0; k < MOESIM_CALIBRATED_CONSTANTS; k++) {
        n += fitted_part(r, (enum moesim_calibrated)k, line + n, sizeof line - n);
        n += (size_t)snprintf(line + n, sizeof line - n, k + 1 < MOESIM_CALIBRATED_CONSTANTS ? "; " : "");
    }
    moesim_args_row(out, "fitted", 0, 10, line);
}

static void print_profile(const moesim_fidelity_report *r, FILE *out)
{
    const moesim_profile *p = r->profile;
    fputs("profile   ", out);
    moesim_text_clipped(out, p->name, 30);
    fprintf(out, " (sha256 %.12s), %s\n", p->digest, p->label);
    if (p->overrides[0] != '\0') {
        fputs("          set ", out);
        moesim_text_clipped(out, p->overrides, 66);
        fputc('\n', out);
    }
    if (!r->calibrated) {
        fputs("fitted    nothing: the profile as it is\n", out);
        return;
    }
    print_fitted(r, out);
}

void moesim_fidelity_print_counts(const moesim_fidelity_set *set, FILE *out)
{
    fprintf(out, "counts    %zu of %zu cells executed exactly what was predicted\n", set->result.num_same, set->num_cells);
    for (size_t i = 0; i < set->num_cells; i++) {
        char cell[128];
        if (!set->cell[i].same_decisions)
            fprintf(out, "          OTHER DECISIONS: %s\n", moesim_text_cell(&set->cell[i], cell));
    }
}

void moesim_fidelity_print_head(const moesim_fidelity_report *r, const moesim_fidelity_set *set, FILE *out)
{
    const moesim_replay_config *c = &set->file.config;
    char line[400];
    fputs("trace     ", out);
    moesim_text_clipped(out, r->info->path, 48);
    fprintf(out, " (sha256 %.12s)\n", r->info->digest);
    if (c->priced_as[0] != '\0')
        snprintf(line, sizeof line, "routing of %.120s executed as %.60s: hidden %" PRIu64 ", intermediate %" PRIu64
                 ", bf16; %" PRIu64 " layers, %" PRIu64 " experts, top %" PRIu64, c->model_id, c->priced_as, c->hidden,
                 c->intermediate, c->num_layers, c->num_experts, c->top_k);
    else
        snprintf(line, sizeof line, "routing of %.120s, hidden %" PRIu64 ", intermediate %" PRIu64 ", bf16; %" PRIu64
                 " layers, %" PRIu64 " experts, top %" PRIu64, c->model_id, c->hidden, c->intermediate, c->num_layers,
                 c->num_experts, c->top_k);
    moesim_args_row(out, "sizes", 0, 10, line);
    print_device(c, &set->file, out);
    print_run(set, out);
    print_profile(r, out);
    moesim_fidelity_print_counts(set, out);
}

void moesim_fidelity_print_intervals(const moesim_fidelity_set *set, FILE *out)
{
    const moesim_fidelity *f = &set->result;
    char line[500];
    snprintf(line, sizeof line, "Error = predicted / measured - 1. 95 %% intervals: of measurements by Student's t over "
             "repeats (would measuring again give the same?); of errors from %" PRIu32 " bootstrap resamples of repeats and "
             "%zu %s (would other passes?).", f->resamples, f->num_units,
             f->unit_is_request ? "requests" : "runs of consecutive passes, since there are too few requests to resample");
    moesim_args_row(out, "", 0, 0, line);
}
