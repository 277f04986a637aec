/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants one after another, each by bisection on the median of the events that tell it. Medians, because a few
 * events are always disturbed (a core that is taken away, a clock that ramps), and because a median needs no weights.
 */
#include "study/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/sort.h"

#define WIDE 0.02                /* of the loss: errors beyond it weigh linearly */
#define STEPS 20                 /* 4^(2^-20): 1.3e-6 */
#define ROUNDS 4                 /* which events tell a constant depends on it */
#define SETTLED 1e-4
#define DULL 0.05

typedef struct search {
    const moesim_costing_params *params;
    const moesim_calibration_cell *cell;
    size_t num_cells;
    moesim_profile *profile;     /* scratch */
    moesim_prediction *prediction;       /* [num_cells] */
    uint8_t *member;             /* [events of all cells] */
    double *ratio;               /* [events × repeats of all cells] */
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
    for (uint32_t i = 0; i < profile->gpu.num_experts; i++)
        for (uint32_t j = 0; j < profile->gpu.num_tokens; j++)
            profile->gpu.seconds[i][j] *= c->gpu;
    profile->gpu_moved.value *= c->gpu;
    if (bandwidth != NULL)
        *bandwidth *= c->link;
}

/* ---- predictions with the constants of s->at ------------------------------------------------------------------------- */

static void predict(search *s)
{
    for (size_t i = 0; i < s->num_cells && s->code == MOESIM_OK; i++) {
        const moesim_calibration_cell *c = &s->cell[i];
        moesim_costing_params params = *s->params;
        moesim_costing *costing = NULL;
        params.bandwidth = c->bandwidth;
        *s->profile = *s->params->profile;
        moesim_calibration_apply(&s->at, s->profile, &params.bandwidth);
        params.profile = s->profile;
        moesim_prediction_fini(&s->prediction[i]);
        s->code = moesim_costing_create(&params, &costing, s->err);
        if (s->code == MOESIM_OK)
            s->code = moesim_predict(c->works, costing, &s->prediction[i], s->err);
        moesim_costing_destroy(&costing);
    }
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

/* NaN: no pass has a time. */
static double loss(search *s)
{
    double sum = 0;
    size_t passes = 0;
    predict(s);
    for (size_t k = 0; k < s->num_cells && s->code == MOESIM_OK; k++) {
        const moesim_calibration_cell *c = &s->cell[k];
        for (uint64_t i = 0; i < c->works->num_events; i += c->works->num_layers) {
            const double measured = measured_pass(c, i);
            double predicted = 0;
            for (uint32_t l = 0; l < c->works->num_layers; l++)
                predicted += s->prediction[k].seconds[i + l];
            if (!c->works->event[i].counted || !(measured > 0) || !(predicted > 0))
                continue;
            const double x = log(measured / predicted) / WIDE;
            sum += sqrt(1 + x * x) - 1;
            passes++;
        }
    }
    return passes > 0 ? sum / (double)passes : (double)NAN;
}

/* ---- which events tell what ------------------------------------------------------------------------------------------ */

static bool tells(enum moesim_calibrated k, const moesim_works_event *e, const moesim_prediction *p, uint64_t i)
{
    if (k == MOESIM_CALIBRATED_SYNC)
        return e->n_moved == 0 && e->n_cpu == 0;
    if (k == MOESIM_CALIBRATED_GPU)
        return e->n_moved > 0 && e->n_cpu == 0 && p->gpu_bound[i];
    if (k == MOESIM_CALIBRATED_LINK)
        return e->n_moved > 0 && e->n_cpu == 0 && p->link_bound[i] && !p->gpu_bound[i];
    return e->n_cpu > 0 && p->cpu_bound[i];
}

static bool has_time(const moesim_calibration_cell *c, uint64_t event)
{
    bool has = false;
    for (uint32_t r = 0; r < c->repeats; r++)
        has = has || c->measured[r][event] > 0;
    return has;
}

/* By what is predicted alone: choosing by what was measured would bias the fit. */
static size_t choose(search *s, enum moesim_calibrated k)
{
    size_t n = 0;
    uint8_t *member = s->member;
    for (size_t c = 0; c < s->num_cells && s->code == MOESIM_OK; c++) {
        const moesim_works *w = s->cell[c].works;
        for (uint64_t i = 0; i < w->num_events; i++) {
            member[i] = w->event[i].counted && tells(k, &w->event[i], &s->prediction[c], i) && has_time(&s->cell[c], i);
            n += member[i];
        }
        member += w->num_events;
    }
    return n;
}

/* ---- one constant ---------------------------------------------------------------------------------------------------- */

static void set(search *s, enum moesim_calibrated k, double factor)
{
    double *const at[] = {[MOESIM_CALIBRATED_SYNC] = &s->at.sync, [MOESIM_CALIBRATED_GPU] = &s->at.gpu,
                          [MOESIM_CALIBRATED_LINK] = &s->at.link, [MOESIM_CALIBRATED_CPU] = &s->at.cpu};
    *at[k] = k == MOESIM_CALIBRATED_SYNC ? s->params->profile->sync.value * factor : factor;
}

/* Median of ln(measured / predicted) over the chosen events with this factor. */
static double median_at(search *s, enum moesim_calibrated k, double factor)
{
    size_t n = 0;
    const uint8_t *member = s->member;
    set(s, k, factor);
    predict(s);
    for (size_t c = 0; c < s->num_cells && s->code == MOESIM_OK; c++) {
        const moesim_calibration_cell *cell = &s->cell[c];
        for (uint64_t i = 0; i < cell->works->num_events; i++)
            for (uint32_t r = 0; member[i] && r < cell->repeats; r++)
                if (cell->measured[r][i] > 0 && s->prediction[c].seconds[i] > 0)
                    s->ratio[n++] = log(1e-9 * cell->measured[r][i] / s->prediction[c].seconds[i]);
        member += cell->works->num_events;
    }
    if (n == 0)
        return 0;
    moesim_sort_reals(s->ratio, n);
    return 0.5 * (s->ratio[(n - 1) / 2] + s->ratio[n / 2]);
}

static enum moesim_calibration_state bisect(search *s, enum moesim_calibrated k, double *factor)
{
    double a = -log(MOESIM_CALIBRATION_FACTOR), b = log(MOESIM_CALIBRATION_FACTOR);
    const double at_a = median_at(s, k, exp(a)), at_b = median_at(s, k, exp(b));
    if (!(fabs(at_a - at_b) >= DULL))
        return MOESIM_CALIBRATION_DULL;
    if ((at_a > 0) == (at_b > 0))
        return MOESIM_CALIBRATION_BOUND;
    for (int i = 0; i < STEPS && s->code == MOESIM_OK; i++) {
        const double middle = 0.5 * (a + b);
        if ((median_at(s, k, exp(middle)) > 0) == (at_a > 0))
            a = middle;
        else
            b = middle;
    }
    *factor = exp(0.5 * (a + b));
    return MOESIM_CALIBRATION_FITTED;
}

static void fit(search *s, enum moesim_calibrated k)
{
    moesim_calibration_part *part = &s->at.part[k];
    double factor = 1, was;
    int round = 0;
    do {
        was = factor;
        set(s, k, factor);
        predict(s);
        if (round == 0 || k != MOESIM_CALIBRATED_GPU)
            part->events = choose(s, k);
        part->state = part->events < MOESIM_CALIBRATION_EVENTS ? MOESIM_CALIBRATION_FEW : bisect(s, k, &factor);
    } while (part->state == MOESIM_CALIBRATION_FITTED && s->code == MOESIM_OK && ++round < ROUNDS &&
             fabs(factor - was) > SETTLED);
    set(s, k, part->state == MOESIM_CALIBRATION_FITTED ? factor : 1);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------- */

static moesim_code make(search *s, moesim_error *err)
{
    void *profile = NULL, *prediction = NULL, *member = NULL, *ratio = NULL;
    size_t events = 0, samples = 0;
    for (size_t i = 0; i < s->num_cells; i++) {
        events += s->cell[i].works->num_events;
        samples += s->cell[i].works->num_events * s->cell[i].repeats;
    }
    moesim_code code = moesim_alloc(1, sizeof *s->profile, "a profile", &profile, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(s->num_cells, sizeof *s->prediction, "predictions", &prediction, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(events, sizeof *s->member, "events to fit on", &member, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(samples, sizeof *s->ratio, "events to fit on", &ratio, err);
    s->profile = profile;
    s->prediction = prediction;
    s->member = member;
    s->ratio = ratio;
    return code;
}

static void release(search *s)
{
    for (size_t i = 0; s->prediction != NULL && i < s->num_cells; i++)
        moesim_prediction_fini(&s->prediction[i]);
    free(s->profile);
    free(s->prediction);
    free(s->member);
    free(s->ratio);
}

moesim_code moesim_calibrate(const moesim_costing_params *params, const moesim_calibration_cell *cell, size_t num_cells,
                             moesim_calibration *out, moesim_error *err)
{
    search s = {.params = params, .cell = cell, .num_cells = num_cells, .err = err};
    s.at = (moesim_calibration){.gpu = 1, .link = 1, .cpu = 1, .sync = params->profile->sync.value};
    s.code = make(&s, err);
    if (s.code == MOESIM_OK)
        s.at.before = loss(&s);
    if (s.code == MOESIM_OK && isnan(s.at.before))
        s.code = moesim_fail(err, MOESIM_E_USAGE, "the cells to calibrate on have no measured time; give --calibrate none or "
                             "another cell");
    for (int k = 0; k < MOESIM_CALIBRATED_CONSTANTS && s.code == MOESIM_OK; k++)
        fit(&s, (enum moesim_calibrated)k);
    if (s.code == MOESIM_OK)
        s.at.after = loss(&s);
    *out = s.at;
    release(&s);
    return s.code;
}
