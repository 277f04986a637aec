/* SPDX-License-Identifier: Apache-2.0
 *
 * Targets of a generated trace beside what was achieved.
 */
#include "cli/gen_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/print.h"
#include "cli/stats_report.h"

void moesim_gen_print_file(const moesim_trace_info *info, uint64_t seed)
{
    moesim_print_clean(stdout, info->path);
    printf(": %" PRIu64 " passes, %" PRIu64 " rows, %" PRIu32 " requests; synthetic, seed %" PRIu64 "\n", info->num_passes,
           info->num_rows, info->num_requests, seed);
}

static void line(const char *what, double target, double value)
{
    if (isnan(value))
        printf("%-44s %8.3f %9s\n", what, target, "-");
    else
        printf("%-44s %8.3f %9.3f\n", what, target, value);
}

static double layer_mean(const moesim_trace_stats *s, uint32_t layer)
{
    return s->decode_passes > 0 ? (double)s->active_sum[layer] / (double)s->decode_passes : NAN;
}

static void print_confidence(const moesim_gen_stability *target, const moesim_trace_stats *s)
{
    char what[64];
    for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
        snprintf(what, sizeof what, "P(stability = 1), confidence %.2f", (b + 0.5) / MOESIM_STATS_BINS);
        if (s->stability[1].n[b] > 0)
            line(what, target->full[MOESIM_GEN_MASKED][b], moesim_stability_full(&s->stability[1], b, s->top_k));
    }
    for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
        snprintf(what, sizeof what, "mean stability, confidence %.2f", (b + 0.5) / MOESIM_STATS_BINS);
        if (s->stability[1].n[b] > 0)
            line(what, target->mean[MOESIM_GEN_MASKED][b], moesim_stability_mean(&s->stability[1], b, s->top_k));
    }
}

static void print_state(const moesim_gen_stability *target, const moesim_trace_stats *s)
{
    static const struct { const char *what; enum moesim_gen_class class; enum moesim_stats_class of; } row[] = {
        { "persistence, lag 1, masked rows", MOESIM_GEN_MASKED, MOESIM_STATS_MASKED },
        { "persistence, lag 1, just committed rows", MOESIM_GEN_JUST, MOESIM_STATS_JUST },
        { "persistence, lag 1, long committed rows", MOESIM_GEN_LONG, MOESIM_STATS_LONG },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        line(row[i].what, target->mean[row[i].class][0], moesim_mean_value(&s->persistence[row[i].of][1]));
}

void moesim_gen_print(const moesim_gen_config *c, const moesim_trace_stats *s, bool by_confidence)
{
    printf("%-44s %8s %9s\n", "", "target", "achieved");
    line("active experts per layer, mean", c->active, moesim_trace_stats_active(s));
    line("active experts, first layer", moesim_gen_layer_target(c, 0), layer_mean(s, 0));
    line("active experts, last layer", moesim_gen_layer_target(c, c->layers - 1), layer_mean(s, c->layers - 1));
    if (c->block > 1) {
        line("overlap, lag 1, over the later set", c->overlap, moesim_mean_value(&s->overlap_new[1]));
        line("overlap, lag 5", c->overlap_far, moesim_mean_value(&s->overlap_new[MOESIM_GEN_FAR]));
    }
    line("overlap over a block boundary", c->boundary, moesim_mean_value(&s->boundary_new));
    if (c->block > 1)
        line("persistence of a position's experts, lag 5", c->persistence_far,
             moesim_mean_value(&s->persistence[MOESIM_STATS_ALL][MOESIM_GEN_FAR]));
    line("tokens committed per decode pass", c->tokens_per_pass,
         s->decode_passes > 0 ? (double)s->committed / (double)s->decode_passes : NAN);
    if (c->block > 1 && by_confidence)
        print_confidence(&c->stability, s);
    else if (c->block > 1)
        print_state(&c->stability, s);
}
