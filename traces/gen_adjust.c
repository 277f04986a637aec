/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits the generator to a trace: pilots are generated and measured as the trace was, and each table or knob moves by a part of
 * what the measurement of it misses. The tables are those of the trace to begin with, so that little is left to move.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "traces/gen_run.h"

#define ROUNDS 20u
#define LAYERS 6u
#define PASSES 2400.0            /* decode passes of a pilot */
#define GAIN 0.6

typedef struct targets {
    double overlap[MOESIM_STATS_LAGS + 1], overlap_old[MOESIM_STATS_LAGS + 1];
    double persistence[MOESIM_STATS_CLASSES][MOESIM_STATS_LAGS + 1];
} targets;

/* Means over the groups of a trace; NaN: no samples. */
static void fill_targets(const moesim_trace_stats *stats, uint32_t groups, targets *out)
{
    for (uint32_t lag = 1; lag <= MOESIM_STATS_LAGS; lag++) {
        moesim_mean overlap = { 0.0, 0 }, old = { 0.0, 0 };
        for (uint32_t g = 0; g < groups; g++) {
            overlap.sum += stats[g].overlap_new[lag].sum;
            overlap.n += stats[g].overlap_new[lag].n;
            old.sum += stats[g].overlap_old[lag].sum;
            old.n += stats[g].overlap_old[lag].n;
        }
        out->overlap[lag] = moesim_mean_value(&overlap);
        out->overlap_old[lag] = moesim_mean_value(&old);
        for (uint32_t c = 0; c < MOESIM_STATS_CLASSES; c++) {
            moesim_mean mean = { 0.0, 0 };
            for (uint32_t g = 0; g < groups; g++) {
                mean.sum += stats[g].persistence[c][lag].sum;
                mean.n += stats[g].persistence[c][lag].n;
            }
            out->persistence[c][lag] = moesim_mean_value(&mean);
        }
    }
}

/* Mean of what `is` misses of `aim` at lags from `lag` to `last`; 0 where nothing is known. */
static double missing(const double *aim, const double *is, uint32_t lag, uint32_t last)
{
    double sum = 0.0, n = 0.0;
    for (; lag <= last; lag++)
        if (!isnan(aim[lag] - is[lag])) {
            sum += aim[lag] - is[lag];
            n += 1.0;
        }
    return n > 0.0 ? sum / n : 0.0;
}

static double within(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* Half of the way in proportion, within a factor of two; no function of libm that could differ. */
static double scaled(double used, double aim, double is)
{
    return aim > 0.0 && is > 0.0 ? used * within(sqrt(aim / is), 0.5, 2.0) : used;
}

static void adjust_sets(moesim_gen_like *like, const moesim_gen_measure *is)
{
    const moesim_gen_measure *aim = &like->seen;
    for (uint32_t i = 0; i <= aim->block; i++) {
        if (aim->size[i].n > 0 && is->size[i].n > 0)
            like->size[i] = scaled(like->size[i], moesim_mean_value(&aim->size[i]), moesim_mean_value(&is->size[i]));
        if (aim->leave[i].n > 0 && is->leave[i].n > 0)
            like->leave[i] = within(scaled(like->leave[i], moesim_mean_value(&aim->leave[i]),
                                           moesim_mean_value(&is->leave[i])), 0.0, 1.0);
    }
}

/* Weights of confidences, a bin at a time. */
static void adjust_confidence(moesim_gen_like *like, const moesim_gen_measure *is, enum moesim_gen_class c)
{
    double aim[MOESIM_GEN_BINS] = { 0.0 }, got[MOESIM_GEN_BINS] = { 0.0 }, aim_sum = 0.0, got_sum = 0.0;
    for (uint32_t i = 0; i <= MOESIM_GEN_CELLS; i++) {
        aim[moesim_gen_cell_bin(i)] += (double)like->seen.cell[c][i];
        got[moesim_gen_cell_bin(i)] += (double)is->cell[c][i];
        aim_sum += (double)like->seen.cell[c][i];
        got_sum += (double)is->cell[c][i];
    }
    for (uint32_t i = 0; i <= MOESIM_GEN_CELLS && aim_sum > 0.0 && got_sum > 0.0; i++) {
        const uint32_t bin = moesim_gen_cell_bin(i);
        like->cell[c][i] = scaled(like->cell[c][i], aim[bin] / aim_sum, got[bin] / got_sum);
    }
}

/* What rows keep, all confidences of a class together: their differences are the trace's own. */
static void adjust_kept(moesim_gen_like *like, const moesim_gen_measure *is, enum moesim_gen_class c)
{
    double aim[65] = { 0.0 }, got[65] = { 0.0 }, aim_sum = 0.0, got_sum = 0.0;
    const uint32_t k = like->seen.top_k;
    for (uint32_t b = 0; b < MOESIM_GEN_BINS; b++)
        for (uint32_t i = 0; i <= k; i++) {
            aim[i] += (double)like->seen.kept[c][b][i];
            got[i] += (double)is->kept[c][b][i];
            aim_sum += (double)like->seen.kept[c][b][i];
            got_sum += (double)is->kept[c][b][i];
        }
    for (uint32_t b = 0; b < MOESIM_GEN_BINS && aim_sum > 0.0 && got_sum > 0.0; b++) {
        double sum = 0.0;
        for (uint32_t i = 0; i <= k; i++)
            sum += like->kept[c][b][i] = scaled(like->kept[c][b][i], aim[i] / aim_sum, got[i] / got_sum);
        for (uint32_t i = 0; i <= k; i++)
            like->kept[c][b][i] /= sum;
    }
}

/* Steadiness and repetition of a class, each by the lags on which it tells most. */
typedef struct knob { enum moesim_stats_class class; double *value; double gain; uint32_t lag, last; double lo, hi; } knob;

static void adjust(moesim_gen_config *c, const targets *aim, const targets *got, const moesim_gen_measure *is)
{
    double *steady = c->like->steady, *again = c->like->again;
    const knob knobs[] = {
        { MOESIM_STATS_MASKED, &again[MOESIM_GEN_MASKED], 4.0, 2, 2, 0.0, 0.95 },
        { MOESIM_STATS_MASKED, &steady[MOESIM_GEN_MASKED], 4.0, 3, 7, 0.0, 1.0 },
        { MOESIM_STATS_JUST, &steady[MOESIM_GEN_JUST], 4.0, 2, 3, -0.3, 1.0 },
        { MOESIM_STATS_MASKED, &steady[MOESIM_GEN_JUST], 4.0, 7, MOESIM_STATS_LAGS, -0.3, 1.0 },
        { MOESIM_STATS_JUST, &c->like->forget, -8.0, 2, 6, 0.0, 1.0 },
        { MOESIM_STATS_LONG, &again[MOESIM_GEN_LONG], 4.0, 5, MOESIM_STATS_LAGS, 0.0, 0.95 },
        { MOESIM_STATS_LONG, &steady[MOESIM_GEN_LONG], 8.0, 2, 3, 0.0, 1.0 },
    };
    adjust_sets(c->like, is);
    c->comeback = within(c->comeback + GAIN * 2.0 * missing(aim->overlap, got->overlap, 2, MOESIM_STATS_LAGS), 0.0, 1.0);
    c->like->expire = within(c->like->expire - GAIN * 5.0 * missing(aim->overlap_old, got->overlap_old, 6, MOESIM_STATS_LAGS),
                             0.0, 1.0);
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++) {
        const knob *k = &knobs[i];
        const double more = missing(aim->persistence[k->class], got->persistence[k->class], k->lag, k->last);
        *k->value = within(*k->value + GAIN * k->gain * more, k->lo, k->hi);
    }
    for (uint32_t i = 0; i < MOESIM_GEN_CLASSES; i++) {
        adjust_confidence(c->like, is, (enum moesim_gen_class)i);
        adjust_kept(c->like, is, (enum moesim_gen_class)i);
    }
}

/* A few layers of the trace, as many blocks as make a good pilot. */
static void small(const moesim_gen_config *c, moesim_gen_config *pilot, moesim_gen_like *like, double *layer)
{
    double mean = 0.0, passes = 0.0;
    *pilot = *c;
    *like = *c->like;
    pilot->like = like;
    pilot->layers = c->layers < LAYERS ? c->layers : LAYERS;
    for (uint32_t l = 0; l < pilot->layers; l++) {
        layer[l] = c->like->layer[(size_t)l * c->layers / pilot->layers];
        mean += layer[l] / pilot->layers;
    }
    for (uint32_t l = 0; l < pilot->layers; l++)
        layer[l] /= mean;
    like->layer = layer;
    passes = (double)c->block / fmax(c->tokens_per_pass, 1e-6);        /* of a block */
    const double blocks = within(PASSES / passes, 16.0, 1024.0), each = within((double)c->output / c->block, 1.0, blocks);
    pilot->prompt = 1;
    pilot->requests = (uint32_t)(blocks / each + 0.5);
    pilot->output = (uint32_t)(each * c->block);
}

moesim_code moesim_gen_like_fit(moesim_gen_config *c, const moesim_trace_stats *stats, moesim_error *err)
{
    moesim_gen_config pilot;
    moesim_trace_stats got_stats;
    targets aim, got;
    double layer[LAYERS];
    moesim_progress progress = { 0 };
    void *like = NULL, *is = NULL;
    moesim_code code = moesim_alloc(1, sizeof(moesim_gen_like), "the tables of a pilot", &like, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(1, sizeof(moesim_gen_measure), "the measurement of a pilot", &is, err);
    fill_targets(stats, MOESIM_GEN_GROUPS, &aim);
    moesim_progress_begin(&progress, "fitting", ROUNDS, 1, "pilots");
    for (uint32_t i = 0; i < ROUNDS && code == MOESIM_OK; i++) {
        small(c, &pilot, like, layer);
        pilot.seed = c->seed + 1 + i;
        code = moesim_gen_fly(&pilot, &got_stats, is, err);
        if (code == MOESIM_OK) {
            fill_targets(&got_stats, 1, &got);
            adjust(c, &aim, &got, is);
        }
        moesim_progress_update(&progress, i + 1);
    }
    moesim_progress_end(&progress);
    free(like);
    free(is);
    return code;
}
