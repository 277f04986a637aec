/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits the generator's two free knobs by bisection on the statistics of a short pilot of a few layers.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/bits.h"
#include "traces/gen_run.h"
#include "traces/stats_past.h"

#define ROUNDS 2u                /* the knobs hardly depend on each other */
#define HALVINGS 7u
#define LAYERS 4u
#define REQUESTS 6u
#define WORK 786432u             /* blocks of the pilot times block² times K: 384 of 16 tokens and top-8 */
#define MEMORY ((size_t)256 << 20)

typedef struct pilot {
    moesim_trace_stats *stats;
    moesim_gen_measure *measure;
    moesim_stats_memory memory;
    moesim_stats_scratch scratch;
    moesim_open_request *open;
} pilot;

static moesim_code next_request(void *cookie, const moesim_trace_request *request, moesim_error *err)
{
    pilot *p = cookie;
    (void)request;
    moesim_open_request_destroy(&p->memory, &p->open);
    return moesim_open_request_create(&p->memory, &p->open, err);
}

static moesim_code next_pass(void *cookie, const moesim_pass *pass, const moesim_rows *rows, moesim_error *err)
{
    pilot *p = cookie;
    if (pass->kind == MOESIM_PASS_PREFILL)
        return MOESIM_OK;
    if (p->open->started && p->open->block != pass->block)
        p->open->held = 0;
    p->open->started = true;
    p->open->block = pass->block;
    moesim_code code = moesim_past_fill(&p->memory, moesim_open_request_pass(p->open, 0), rows, err);
    if (code == MOESIM_OK && p->measure != NULL)
        moesim_gen_measure_pass(p->measure, pass, p->open);
    if (code == MOESIM_OK)
        code = moesim_stats_compare(p->stats, &p->memory, p->open, &p->scratch, err);
    moesim_open_request_advance(p->open);
    return code;
}

static moesim_code more_rows(void *cookie, const moesim_rows *rows, moesim_error *err)
{
    (void)cookie;
    (void)rows;
    (void)err;
    return MOESIM_OK;            /* of a prefill */
}

moesim_code moesim_gen_fly(const moesim_gen_config *config, moesim_trace_stats *stats, moesim_gen_measure *measure,
                           moesim_error *err)
{
    pilot p = { .stats = stats, .measure = measure,
                .memory = { .layers = config->layers, .top_k = config->top_k, .words = moesim_words(config->experts),
                            .limit = MEMORY } };
    *stats = (moesim_trace_stats){ .num_layers = config->layers, .num_experts = config->experts, .top_k = config->top_k };
    if (measure != NULL)
        *measure = (moesim_gen_measure){ .block = config->block, .layers = config->layers, .top_k = config->top_k,
                                         .words = p.memory.words, .threshold = config->threshold };
    const moesim_gen_sink sink = { next_request, next_pass, more_rows, &p };
    const moesim_code code = moesim_gen_run(config, &sink, err);
    moesim_open_request_destroy(&p.memory, &p.open);
    free(p.scratch.match);
    return code;
}

/* Both statistics rise with their knob; NaN (blocks are too short for this lag) leaves the knob in the middle. */
static moesim_code bisect(moesim_gen_config *pilot_config, double *knob, double hi, bool second, double target,
                          moesim_error *err)
{
    double lo = 0.0;
    moesim_trace_stats stats;
    moesim_code code = MOESIM_OK;
    for (uint32_t i = 0; i < HALVINGS && code == MOESIM_OK; i++) {
        *knob = (lo + hi) / 2.0;
        code = moesim_gen_fly(pilot_config, &stats, NULL, err);
        const double value = moesim_mean_value(second ? &stats.persistence[MOESIM_STATS_ALL][MOESIM_GEN_FAR]
                                                      : &stats.overlap_new[MOESIM_GEN_FAR]);
        if (isnan(value))
            return code;
        if (value < target)
            lo = *knob;
        else
            hi = *knob;
    }
    *knob = (lo + hi) / 2.0;
    return code;
}

moesim_code moesim_gen_fit(moesim_gen_config *config, moesim_error *err)
{
    moesim_gen_config pilot_config = *config;
    pilot_config.layers = config->layers < LAYERS ? config->layers : LAYERS;
    const uint32_t blocks = WORK / (config->block * config->block * config->top_k), each = blocks < 48 ? blocks / REQUESTS : 8;
    pilot_config.workloads = 1;
    pilot_config.requests = each > 0 ? REQUESTS : 2;
    pilot_config.prompt = 1;
    pilot_config.output = (each > 0 ? each : 1) * config->block;
    pilot_config.comeback = 0.5;
    pilot_config.steadiness = 0.5;
    moesim_code code = MOESIM_OK;
    for (uint32_t i = 0; i < ROUNDS && code == MOESIM_OK && config->block > 1; i++) {
        code = bisect(&pilot_config, &pilot_config.comeback, 1.0, false, config->overlap_far, err);
        if (code == MOESIM_OK)
            code = bisect(&pilot_config, &pilot_config.steadiness, 1.0, true, config->persistence_far, err);
    }
    config->comeback = pilot_config.comeback;
    config->steadiness = pilot_config.steadiness;
    return code;
}
