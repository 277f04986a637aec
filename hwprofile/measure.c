/* SPDX-License-Identifier: Apache-2.0
 *
 * Goes through the table of measurements: warming, sampling, two sweeps, each in one or several rounds.
 */
#include "hwprofile/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "hwprofile/measure_parts.h"

#define SAMPLES 30u
#define QUICK_SAMPLES 10u
#define MOST_SAMPLES (2 * SAMPLES)           /* of a point: each round takes its share, rounded up */
#define BATCH 5u                 /* samples of one median while warming */
#define AGREE 0.02
#define WARM_SECONDS 0.3
#define WARM_BATCHES 12u
#define MOST_REPEAT 256u
#define OTHER_SLOTS 16u          /* experts of the device that measures what is not experts */
#define DEFAULT_WINDOW 0.01

typedef struct run {
    const moesim_measure_params *params;
    moesim_bench bench;
    moesim_raw *raw;
    moesim_plan *plan;           /* of each measurement, parallel to the table */
    uint32_t rounds;
    size_t done, total;
} run;

uint32_t moesim_measure_rows(uint32_t top_k)
{
    const uint32_t rows = (160 * 16 + top_k - 1) / top_k;
    return rows < MOESIM_MEASURE_TOKENS ? MOESIM_MEASURE_TOKENS : rows > MOESIM_DEVICE_ROWS_MAX ? MOESIM_DEVICE_ROWS_MAX : rows;
}

/* A point of one sweep under way. */
typedef struct point {
    const moesim_measurement *m;
    const moesim_raw_key *key;
    uint32_t repeat, warm, n;    /* n: samples so far */
    bool agreed;
    double first[MOST_SAMPLES], second[MOST_SAMPLES];
} point;

static moesim_code sample(run *r, const point *p, double value[2], moesim_error *err)
{
    char text[MOESIM_RAW_TEXT];
    value[0] = value[1] = 0.0;
    moesim_code code = moesim_interrupted() ? moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted; nothing was kept")
                                            : p->m->sample(&r->bench, p->key, p->repeat, value, err);
    if (code != MOESIM_OK && code != MOESIM_E_INTERRUPTED)
        code = moesim_fail_prefix(err, "measuring %s", moesim_raw_text(p->key, text));
    return code;
}

/* Thrown away: the first one wakes clocks and links. */
static moesim_code wake(run *r, point *p, moesim_error *err)
{
    double value[2];
    p->warm++;
    return sample(r, p, value, err);
}

static moesim_code choose_repeat(run *r, point *p, moesim_error *err)
{
    double value[2];
    p->repeat = 1;
    moesim_code code = wake(r, p, err);
    if (code == MOESIM_OK)
        code = sample(r, p, value, err);
    p->warm++;
    if (code == MOESIM_OK && p->m->work > 0.0 && value[0] > 0.0) {
        const double n = ceil(p->m->work / value[0]);
        p->repeat = n < 1.0 ? 1 : n > MOST_REPEAT ? MOST_REPEAT : (uint32_t)n;
    }
    return code;
}

static moesim_code warm(run *r, point *p, moesim_error *err)
{
    const double end = moesim_clock_seconds() + WARM_SECONDS / (r->params->quick ? 3.0 : 1.0);
    double before = NAN, batch[BATCH], value[2];
    for (unsigned n = 0; n < WARM_BATCHES && !p->agreed; n++) {
        if (n >= 2 && moesim_clock_seconds() > end)
            break;
        for (unsigned i = 0; i < BATCH; i++) {
            const moesim_code code = sample(r, p, value, err);
            if (code != MOESIM_OK)
                return code;
            batch[i] = value[0];
        }
        const double median = moesim_raw_sort_median(batch, BATCH);
        p->warm += BATCH;
        p->agreed = fabs(median - before) <= AGREE * median;
        before = median;
    }
    return MOESIM_OK;
}

/* This round's samples of a point. */
static moesim_code measure_point(run *r, point *p, moesim_error *err)
{
    const uint32_t samples = r->params->quick ? QUICK_SAMPLES : SAMPLES, n = (samples + r->rounds - 1) / r->rounds;
    if (r->params->progress != NULL)
        r->params->progress(r->params->context, r->done, r->total, p->m->what);
    moesim_code code = p->n == 0 ? choose_repeat(r, p, err) : wake(r, p, err);
    if (code == MOESIM_OK && p->n == 0)
        code = warm(r, p, err);
    for (uint32_t i = 0; i < n && code == MOESIM_OK; i++) {
        double value[2];
        code = sample(r, p, value, err);
        p->first[p->n] = value[0];
        p->second[p->n++] = value[1];
    }
    r->done++;
    return code;
}

static moesim_code keep(run *r, const point *p, uint32_t sweep, moesim_error *err)
{
    moesim_code code = moesim_raw_add(r->raw, p->key, sweep, p->first, p->n, p->warm, p->agreed, err);
    if (code == MOESIM_OK && p->m->second < MOESIM_RAW_KINDS) {
        moesim_raw_key other = *p->key;
        other.kind = p->m->second;
        code = moesim_raw_add(r->raw, &other, sweep, p->second, p->n, p->warm, p->agreed, err);
    }
    return code;
}

static moesim_code plan_all(run *r, bool other, size_t *points, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    *points = 0;
    for (size_t i = 0; moesim_measurements[i].what != NULL && code == MOESIM_OK; i++) {
        r->plan[i].n = 0;
        if (moesim_measurements[i].other == other)
            code = moesim_measurements[i].plan(&r->bench, &r->plan[i], err);
        *points += r->plan[i].n;
    }
    r->total += MOESIM_RAW_SWEEPS * r->rounds * *points;
    return code;
}

static void begin_sweep(run *r, point *p)
{
    for (size_t i = 0; moesim_measurements[i].what != NULL; i++)
        for (size_t k = 0; k < r->plan[i].n; k++, p++) {
            p->m = &moesim_measurements[i];
            p->key = &r->plan[i].key[k];
            p->repeat = p->warm = p->n = 0;
            p->agreed = false;
        }
}

static moesim_code measure_round(run *r, point *p, size_t points, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < points && code == MOESIM_OK; i++) {
        if (i == 0 || p[i].m != p[i - 1].m)
            r->bench.filled = false;         /* other measurements may have used the slots */
        code = measure_point(r, &p[i], err);
    }
    return code;
}

static moesim_code sweep_all(run *r, bool other, moesim_error *err)
{
    size_t points;
    void *memory = NULL;
    moesim_code code = plan_all(r, other, &points, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(points, sizeof(point), "the points of a sweep", &memory, err);
    point *const p = memory;
    for (uint32_t sweep = 0; sweep < MOESIM_RAW_SWEEPS && code == MOESIM_OK; sweep++) {
        begin_sweep(r, p);
        for (uint32_t round = 0; round < r->rounds && code == MOESIM_OK; round++)
            code = measure_round(r, p, points, err);
        for (size_t i = 0; i < points && code == MOESIM_OK; i++)
            code = keep(r, &p[i], sweep, err);
    }
    free(memory);
    return code;
}

static moesim_code find_threads(run *r, moesim_error *err)
{
    void *team = NULL;
    moesim_bench *b = &r->bench;
    const moesim_code code = b->cpu->open(b->ops, b->device, &b->config, 0, &team, err);
    if (code == MOESIM_OK)
        b->threads = b->cpu->threads(team);
    b->cpu->close(&team);
    return code;
}

static void note_facts(run *r)
{
    moesim_device_fact fact;
    for (size_t i = 0; r->bench.ops->fact(r->bench.device, i, &fact); i++)
        moesim_raw_add_fact(r->raw, fact.key, fact.value);
    char rounds[16];
    snprintf(rounds, sizeof rounds, "%u", r->rounds);
    if (r->rounds > 1)
        moesim_raw_add_fact(r->raw, "rounds", rounds);
}

/* One device from open to close. Facts are asked for after the work: some hold under load only. */
static moesim_code measure_device(run *r, bool other, moesim_error *err)
{
    moesim_bench *b = &r->bench;
    moesim_code code = b->ops->open(&b->config, &b->device, err);
    if (code != MOESIM_OK)
        return code;
    if (!other)
        code = find_threads(r, err);
    if (code == MOESIM_OK)
        code = sweep_all(r, other, err);
    if (code == MOESIM_OK && !other)
        note_facts(r);
    b->cpu->close(&b->team);
    b->ops->close(&b->device);
    return code;
}

static bool knows_other(const moesim_measure_params *p)
{
    const moesim_geometry *g = p->config->geometry;
    return !p->skip_other && g != NULL && moesim_geometry_resident_bytes(g, MOESIM_BF16) > 0;
}

static moesim_code measure_both(run *r, moesim_error *err)
{
    moesim_device_config *config = &r->bench.config;
    config->other = false;
    moesim_code code = measure_device(r, false, err);
    if (code != MOESIM_OK || !knows_other(r->params))
        return code;
    config->other = true;
    config->slots = config->slots < OTHER_SLOTS ? config->slots : OTHER_SLOTS;
    config->pool = config->pool < OTHER_SLOTS ? config->pool : OTHER_SLOTS;
    config->max_rows = config->max_rows < MOESIM_MEASURE_TOKENS ? config->max_rows : MOESIM_MEASURE_TOKENS;
    return measure_device(r, true, err);
}

static void describe(const run *r)
{
    const moesim_device_config *config = &r->bench.config;
    moesim_raw *raw = r->raw;
    moesim_text_clean(r->params->ops->name, strlen(r->params->ops->name), raw->device, sizeof raw->device);
    moesim_text_clean(r->params->model, strlen(r->params->model), raw->model, sizeof raw->model);
    raw->hidden = config->hidden;
    raw->intermediate = config->intermediate;
    raw->top_k = config->top_k;
    raw->expert_bytes = r->bench.expert_bytes;
    raw->threads = r->bench.threads;
    raw->quick = r->params->quick;
}

static size_t num_measurements(void)
{
    size_t n = 0;
    while (moesim_measurements[n].what != NULL)
        n++;
    return n;
}

moesim_code moesim_measure(const moesim_measure_params *params, moesim_raw *out, moesim_error *err)
{
    void *memory = NULL;
    const moesim_device_config *config = params->config;
    moesim_raw_init(out);
    if (params->rounds > MOESIM_MEASURE_ROUNDS)
        return moesim_fail(err, MOESIM_E_USAGE, "a sweep is measured in at most %u rounds, not %u", MOESIM_MEASURE_ROUNDS,
                           params->rounds);
    moesim_code code = moesim_alloc(1, sizeof(run), "a measurement", &memory, err);
    if (code != MOESIM_OK)
        return code;
    run *r = memory;
    r->params = params;
    r->raw = out;
    r->rounds = params->rounds > 0 ? params->rounds : 1;
    r->bench.ops = params->ops;
    r->bench.cpu = params->cpu;
    r->bench.config = *config;
    r->bench.quick = params->quick;
    r->bench.window = params->window > 0.0 ? params->window : DEFAULT_WINDOW;
    r->bench.expert_bytes = UINT64_C(6) * config->hidden * config->intermediate;
    void *plan = NULL;
    code = moesim_alloc(num_measurements(), sizeof *r->plan, "the plan of a measurement", &plan, err);
    r->plan = plan;
    if (code == MOESIM_OK)
        code = measure_both(r, err);
    if (code == MOESIM_OK)
        describe(r);
    else
        moesim_raw_fini(out);
    free(plan);
    free(memory);
    return code;
}
