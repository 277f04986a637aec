/* SPDX-License-Identifier: Apache-2.0
 *
 * Three constants by direct search: golden section in the logarithms, one constant at a time and then along what a round has
 * changed. Passes are cheap to price, so nothing cleverer is needed.
 */
#include "study/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define WIDE 0.02                /* errors beyond it weigh linearly */
#define GOLDEN 0.6180339887498949
#define ROUNDS 6
#define STEPS 20                 /* 0.618^20 is 7e-5 of the range */
#define FACTOR 2.0               /* factors move at most by it */
#define LEAST_SYNC 1e-7
#define MOST_SYNC 1e-2
#define CONSTANTS 3              /* link, sync, cpu */

typedef struct search {
    const moesim_costing_params *params;
    const moesim_calibration_cell *cell;
    size_t num_cells;
    moesim_profile *profile;     /* scratch */
    moesim_calibration at;
    moesim_error *err;
    moesim_code code;
} search;

void moesim_calibration_apply(const moesim_calibration *c, moesim_profile *profile, double *bandwidth)
{
    profile->link_bandwidth.value *= c->link;
    profile->sync.value = c->sync;
    for (uint32_t i = 0; i < profile->cpu.points; i++)
        profile->cpu.seconds[i] *= c->cpu;
    if (bandwidth != NULL)
        *bandwidth *= c->link;
}

/* Mean over repeats, in seconds. */
static double measured_pass(const moesim_calibration_cell *c, uint64_t first)
{
    double ns = 0;
    for (uint32_t r = 0; r < c->repeats; r++)
        for (uint32_t l = 0; l < c->works->num_layers; l++)
            ns += c->measured[r][first + l];
    return 1e-9 * ns / c->repeats;
}

static double add_losses(const moesim_calibration_cell *c, const double *seconds, size_t *passes)
{
    double loss = 0;
    for (uint64_t i = 0; i < c->works->num_events; i += c->works->num_layers) {
        double predicted = 0;
        for (uint32_t l = 0; l < c->works->num_layers; l++)
            predicted += seconds[i + l];
        const double measured = measured_pass(c, i);
        if (!c->works->event[i].counted || !(measured > 0) || !(predicted > 0))
            continue;
        const double x = log(measured / predicted) / WIDE;
        loss += sqrt(1 + x * x) - 1;
        (*passes)++;
    }
    return loss;
}

static double loss_of(search *s, const moesim_calibration *at)
{
    double loss = 0;
    size_t passes = 0;
    for (size_t i = 0; i < s->num_cells && s->code == MOESIM_OK; i++) {
        const moesim_calibration_cell *c = &s->cell[i];
        moesim_costing_params params = *s->params;
        moesim_costing *costing = NULL;
        moesim_prediction p = {0};
        params.bandwidth = c->bandwidth;
        *s->profile = *s->params->profile;
        moesim_calibration_apply(at, s->profile, &params.bandwidth);
        params.profile = s->profile;
        s->code = moesim_costing_create(&params, &costing, s->err);
        if (s->code == MOESIM_OK)
            s->code = moesim_predict(c->works, costing, &p, s->err);
        if (s->code == MOESIM_OK)
            loss += add_losses(c, p.seconds, &passes);
        moesim_prediction_fini(&p);
        moesim_costing_destroy(&costing);
    }
    return passes > 0 ? loss / (double)passes : (double)NAN;
}

static double within(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Moves s->at there. */
static double loss_at(search *s, const moesim_calibration *from, const double direction[CONSTANTS], double t)
{
    s->at.link = within(from->link * exp(t * direction[0]), 1 / FACTOR, FACTOR);
    s->at.sync = within(from->sync * exp(t * direction[1]), LEAST_SYNC, MOST_SYNC);
    s->at.cpu = within(from->cpu * exp(t * direction[2]), 1 / FACTOR, FACTOR);
    return loss_of(s, &s->at);
}

/* From s->at along a direction in the logarithms of the constants, by `reach` times it at most either way. */
static void improve(search *s, const double direction[CONSTANTS], double reach)
{
    const moesim_calibration from = s->at;
    double a = -reach, b = reach, t[2], loss[2];
    const double best = loss_of(s, &s->at);
    for (size_t k = 0; k < 2; k++) {
        t[k] = k == 0 ? b - GOLDEN * (b - a) : a + GOLDEN * (b - a);
        loss[k] = loss_at(s, &from, direction, t[k]);
    }
    for (int i = 0; i < STEPS && s->code == MOESIM_OK; i++) {
        const size_t better = loss[0] < loss[1] ? 0 : 1;
        if (better == 0)
            b = t[1];
        else
            a = t[0];
        t[1 - better] = t[better];
        loss[1 - better] = loss[better];
        t[better] = better == 0 ? b - GOLDEN * (b - a) : a + GOLDEN * (b - a);
        loss[better] = loss_at(s, &from, direction, t[better]);
    }
    const size_t k = loss[0] < loss[1] ? 0 : 1;
    if (loss[k] < best)
        (void)loss_at(s, &from, direction, t[k]);
    else
        s->at = from;
}

/* Each constant alone, then along what they changed together, since they trade against each other. */
static void round_of(search *s, double width)
{
    static const double alone[CONSTANTS][CONSTANTS] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const moesim_calibration was = s->at;
    for (size_t i = 0; i < CONSTANTS && s->code == MOESIM_OK; i++)
        if (i != 2 || s->at.fitted_cpu)
            improve(s, alone[i], width);
    const double together[CONSTANTS] = {log(s->at.link / was.link), log(s->at.sync / was.sync), log(s->at.cpu / was.cpu)};
    if (s->code == MOESIM_OK)
        improve(s, together, 8);
}

static bool uses_cpu(const moesim_calibration_cell *cell, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint64_t e = 0; e < cell[i].works->num_events; e++)
            if (cell[i].works->event[e].n_cpu > 0)
                return true;
    return false;
}

moesim_code moesim_calibrate(const moesim_costing_params *params, const moesim_calibration_cell *cell, size_t num_cells,
                             moesim_calibration *out, moesim_error *err)
{
    void *p = NULL;
    if (moesim_alloc(1, sizeof(moesim_profile), "a profile", &p, err) != MOESIM_OK)
        return err->code;
    search s = {.params = params, .cell = cell, .num_cells = num_cells, .profile = p, .err = err};
    const double sync = params->profile->sync.value;
    s.at = (moesim_calibration){.link = 1, .cpu = 1, .sync = within(sync, LEAST_SYNC, MOST_SYNC)};
    s.at.fitted_cpu = uses_cpu(cell, num_cells);
    s.at.before = loss_of(&s, &s.at);
    if (s.code == MOESIM_OK && isnan(s.at.before))
        s.code = moesim_fail(err, MOESIM_E_USAGE, "the cells to calibrate on have no measured time; give --calibrate none or "
                             "another cell");
    for (int i = 0; i < ROUNDS && s.code == MOESIM_OK; i++)
        round_of(&s, i < 2 ? 0.7 : 0.1);
    if (s.code == MOESIM_OK)
        s.at.after = loss_of(&s, &s.at);
    *out = s.at;
    free(p);
    return s.code;
}
