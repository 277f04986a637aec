/* SPDX-License-Identifier: Apache-2.0
 *
 * Goes through the table of measurements: warming, sampling, two sweeps.
 */
#include "hwprofile/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "hwprofile/measure_parts.h"

#define SAMPLES 30u
#define QUICK_SAMPLES 10u
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
    size_t done, total;
} run;

uint32_t moesim_measure_rows(uint32_t top_k)
{
    const uint32_t rows = (160 * 16 + top_k - 1) / top_k;
    return rows < MOESIM_MEASURE_TOKENS ? MOESIM_MEASURE_TOKENS : rows > MOESIM_DEVICE_ROWS_MAX ? MOESIM_DEVICE_ROWS_MAX : rows;
}

/* A point under way. */
typedef struct point {
    const moesim_measurement *m;
    const moesim_raw_key *key;
    uint32_t repeat, warm;
    bool agreed;
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

static moesim_code choose_repeat(run *r, point *p, moesim_error *err)
{
    double value[2];
    p->repeat = 1;
    moesim_code code = sample(r, p, value, err);
    if (code == MOESIM_OK)       /* the first one wakes clocks and links */
        code = sample(r, p, value, err);
    p->warm = 2;
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

static moesim_code measure_point(run *r, const moesim_measurement *m, const moesim_raw_key *key, uint32_t sweep,
                                 moesim_error *err)
{
    double first[SAMPLES], second[SAMPLES], value[2];
    const uint32_t n = r->params->quick ? QUICK_SAMPLES : SAMPLES;
    point p = { .m = m, .key = key };
    if (r->params->progress != NULL)
        r->params->progress(r->params->context, r->done, r->total, m->what);
    moesim_code code = choose_repeat(r, &p, err);
    if (code == MOESIM_OK)
        code = warm(r, &p, err);
    for (uint32_t i = 0; i < n && code == MOESIM_OK; i++) {
        code = sample(r, &p, value, err);
        first[i] = value[0];
        second[i] = value[1];
    }
    if (code == MOESIM_OK)
        code = moesim_raw_add(r->raw, key, sweep, first, n, p.warm, p.agreed, err);
    if (code == MOESIM_OK && m->second < MOESIM_RAW_KINDS) {
        moesim_raw_key other = *key;
        other.kind = m->second;
        code = moesim_raw_add(r->raw, &other, sweep, second, n, p.warm, p.agreed, err);
    }
    r->done++;
    return code;
}

static moesim_code plan_all(run *r, bool other, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; moesim_measurements[i].what != NULL && code == MOESIM_OK; i++) {
        if (moesim_measurements[i].other != other)
            continue;
        r->plan[i].n = 0;
        code = moesim_measurements[i].plan(&r->bench, &r->plan[i], err);
        r->total += MOESIM_RAW_SWEEPS * r->plan[i].n;
    }
    return code;
}

static moesim_code sweep_all(run *r, bool other, moesim_error *err)
{
    moesim_code code = plan_all(r, other, err);
    for (uint32_t sweep = 0; sweep < MOESIM_RAW_SWEEPS; sweep++) {
        for (size_t i = 0; moesim_measurements[i].what != NULL; i++) {
            r->bench.filled = false;         /* other measurements may have used the slots */
            for (size_t k = 0; moesim_measurements[i].other == other && k < r->plan[i].n && code == MOESIM_OK; k++)
                code = measure_point(r, &moesim_measurements[i], &r->plan[i].key[k], sweep, err);
        }
    }
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
    moesim_code code = moesim_alloc(1, sizeof(run), "a measurement", &memory, err);
    if (code != MOESIM_OK)
        return code;
    run *r = memory;
    r->params = params;
    r->raw = out;
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
