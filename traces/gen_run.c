/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of the generator: prefill, then blocks of denoise passes and a commit pass; blocks of one token have no commit pass.
 */
#include "traces/gen_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"

#define PIECE 64u                /* rows handed on at once; a block has no more */
#define STEEPEST 3.0             /* weight of a rank over the one before when rows give up experts, less 1 */

typedef struct run {
    const moesim_gen_config *c;
    const moesim_gen_sink *sink;
    moesim_gen_shape shape;
    moesim_gen_drops drops;
    moesim_gen_block block;
    moesim_rng rng;
    moesim_gen_layer *layer;               /* [M] */
    moesim_gen_popularity *popularity;     /* [workloads][M] */
    uint16_t *expert;                      /* [PIECE][M][K] */
    float *gate;                           /* the same */
    int32_t position[PIECE];
    uint8_t state[PIECE];
    float unknown[PIECE];
} run;

double moesim_gen_layer_target(const moesim_gen_config *c, uint32_t layer)
{
    const double x = c->layers > 1 ? 2.0 * layer / (c->layers - 1) - 1.0 : 0.0;
    return c->active * (1.0 + c->profile * x);
}

/* ---- beginning and end ----------------------------------------------------------------------------------------- */

/* A shuffled ranking added to the weights: rank r adds share / (r + E/8). */
static void add_ranking(run *r, double share, uint16_t *order, double *weight)
{
    const uint32_t e = r->c->experts;
    for (uint32_t i = 0; i < e; i++)
        order[i] = (uint16_t)i;
    for (uint32_t i = e; i > 1; i--) {
        const uint32_t j = moesim_gen_below(&r->rng, i);
        const uint16_t x = order[j];
        order[j] = order[i - 1];
        order[i - 1] = x;
    }
    for (uint32_t i = 0; i < e; i++)
        weight[order[i]] += share / (i + e / 8.0);
}

/* Half of an expert's popularity is its layer's, half the workload's. */
static moesim_code make_popularity(run *r, moesim_error *err)
{
    const uint32_t e = r->c->experts;
    void *memory = NULL;
    moesim_code code = moesim_alloc(e, 2 * sizeof(double) + sizeof(uint16_t), "popularity of experts", &memory, err);
    double *common = memory, *weight = common != NULL ? common + e : NULL;
    uint16_t *order = memory != NULL ? (uint16_t *)(void *)(weight + e) : NULL;
    for (uint32_t l = 0; l < r->c->layers && code == MOESIM_OK; l++) {
        memset(common, 0, e * sizeof *common);
        add_ranking(r, 0.5, order, common);
        for (uint32_t w = 0; w < r->c->workloads && code == MOESIM_OK; w++) {
            memcpy(weight, common, e * sizeof *weight);
            add_ranking(r, 0.5, order, weight);
            code = moesim_gen_popularity_create(&r->popularity[(size_t)w * r->c->layers + l], weight, e, err);
        }
    }
    free(memory);
    return code;
}

static moesim_code prepare(run *r, moesim_error *err)
{
    const moesim_gen_config *c = r->c;
    const size_t routes = (size_t)PIECE * c->layers;
    void *layer = NULL, *popularity = NULL, *expert = NULL, *gate = NULL;
    moesim_code code = moesim_alloc(c->layers, sizeof *r->layer, "layers of the generator", &layer, err);
    if (code == MOESIM_OK)
        code = moesim_alloc((size_t)c->layers * c->workloads, sizeof *r->popularity, "popularity of experts", &popularity, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(routes * c->top_k, sizeof *r->expert, "routes of a pass", &expert, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(routes * c->top_k, sizeof *r->gate, "gate scores of a pass", &gate, err);
    r->layer = layer;
    r->popularity = popularity;
    r->expert = expert;
    r->gate = gate;
    r->shape = (moesim_gen_shape){ .rows = c->block, .top_k = c->top_k, .experts = c->experts, .overlap = c->overlap,
                                   .boundary = c->boundary, .comeback = c->comeback, .old_routes = c->steadiness };
    for (uint32_t k = 0; k < c->top_k; k++)
        r->shape.weight[k] = k == 0 ? 1.0 : r->shape.weight[k - 1] * (1.0 + STEEPEST * c->steadiness);
    for (uint32_t l = 0; l < c->layers && code == MOESIM_OK; l++)
        code = moesim_gen_layer_create(&r->layer[l], &r->shape, moesim_gen_layer_target(c, l), err);
    moesim_gen_drops_fill(&c->stability, c->top_k, &r->drops);
    r->block.rows = c->block;
    r->block.threshold = c->block > 1 ? (uint32_t)(c->threshold * 2048.0 + 0.999) : 2047u;
    r->block.chance = moesim_gen_commit_chance(c->block, c->tokens_per_pass);
    for (uint32_t i = 0; i < PIECE; i++)
        r->unknown[i] = NAN;
    moesim_rng_seed(&r->rng, c->seed);
    return code == MOESIM_OK ? make_popularity(r, err) : code;
}

static void release(run *r)
{
    for (uint32_t l = 0; r->layer != NULL && l < r->c->layers; l++)
        moesim_gen_layer_destroy(&r->layer[l]);
    for (size_t i = 0; r->popularity != NULL && i < (size_t)r->c->layers * r->c->workloads; i++)
        moesim_gen_popularity_destroy(&r->popularity[i]);
    free(r->layer);
    free(r->popularity);
    free(r->expert);
    free(r->gate);
}

/* ---- one pass -------------------------------------------------------------------------------------------------- */

/* Gate scores that fall with the rank and sum to 1, for n rows and layers. */
static void score(run *r, size_t n)
{
    const uint32_t k = r->c->top_k;
    for (size_t i = 0; i < n; i++) {
        float *gate = r->gate + i * k, sum = 0.0f;
        uint64_t u = 0;
        for (uint32_t j = 0; j < k; j++, u >>= 16) {
            if (j % 4 == 0)
                u = moesim_rng_u64(&r->rng);
            gate[j] = (float)(k - j) + (float)(u & 0xffffu) / 65536.0f;
            sum += gate[j];
        }
        for (uint32_t j = 0; j < k; j++)
            gate[j] /= sum;
    }
}

static moesim_code emit(run *r, uint32_t request, uint8_t kind, int32_t number, int32_t step, const float *confidence,
                        moesim_error *err)
{
    const moesim_gen_config *c = r->c;
    const size_t bytes = c->top_k * sizeof *r->expert;
    for (uint32_t t = 0; t < c->block; t++)
        for (uint32_t l = 0; l < c->layers; l++)
            memcpy(r->expert + ((size_t)t * c->layers + l) * c->top_k, r->layer[l].ids + (size_t)t * c->top_k, bytes);
    score(r, (size_t)c->block * c->layers);
    const moesim_pass pass = { .request = request, .kind = kind, .block = number, .step = step };
    const moesim_rows rows = { .end = c->block, .expert = r->expert, .gate = r->gate, .confidence = confidence,
                               .state = r->block.state, .position = r->position };
    return r->sink->pass(r->sink->cookie, &pass, &rows, err);
}

/* The routes of the next pass: what each row gives up goes by its confidence and class in this one. */
static void advance(run *r, const moesim_gen_popularity *popularity)
{
    uint8_t drop[MOESIM_GEN_MAX_BLOCK];
    const double *below[MOESIM_GEN_MAX_BLOCK];
    static const uint8_t class[] = { [MOESIM_STATE_MASKED] = MOESIM_GEN_MASKED, [MOESIM_STATE_COMMITTED_NOW] = MOESIM_GEN_JUST,
                                     [MOESIM_STATE_COMMITTED] = MOESIM_GEN_LONG };
    for (uint32_t t = 0; t < r->c->block; t++) {
        const uint32_t bin = (uint32_t)((double)r->block.confidence[t] * MOESIM_STATS_BINS);
        below[t] = r->drops.below[class[r->block.state[t]]][bin];
    }
    for (uint32_t l = 0; l < r->c->layers; l++) {
        for (uint32_t t = 0; t < r->c->block; t++) {
            const double u = moesim_rng_real(&r->rng);
            drop[t] = 0;
            while (below[t][drop[t]] <= u)
                drop[t]++;
        }
        moesim_gen_layer_step(&r->layer[l], &r->shape, &popularity[l], drop, &r->rng);
    }
    moesim_gen_block_advance(&r->block);
}

static moesim_code check_interrupted(moesim_error *err)
{
    return moesim_interrupted() ? moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted while generating; nothing was kept")
                                : MOESIM_OK;
}

static moesim_code prefill(run *r, uint32_t request, uint32_t tokens, const moesim_gen_popularity *popularity,
                           moesim_error *err)
{
    const moesim_gen_config *c = r->c;
    const moesim_pass pass = { .request = request, .kind = MOESIM_PASS_PREFILL, .block = -1 };
    moesim_code code = MOESIM_OK;
    for (uint32_t done = 0; done < tokens && code == MOESIM_OK; ) {
        const uint32_t n = tokens - done < PIECE ? tokens - done : PIECE;
        if (check_interrupted(err) != MOESIM_OK)
            return err->code;
        for (uint32_t t = 0; t < n; t++) {
            r->position[t] = (int32_t)(done + t);
            r->state[t] = MOESIM_STATE_COMMITTED;
            for (uint32_t l = 0; l < c->layers; l++) {
                uint16_t *ids = r->expert + ((size_t)t * c->layers + l) * c->top_k;
                for (uint32_t k = 0; k < c->top_k; k++)
                    do
                        ids[k] = moesim_gen_draw(&popularity[l], c->experts, &r->rng);
                    while (moesim_gen_contains(ids, k, ids[k]));
            }
        }
        score(r, (size_t)n * c->layers);
        const moesim_rows rows = { .end = n, .expert = r->expert, .gate = r->gate, .confidence = r->unknown,
                                   .state = r->state, .position = r->position };
        code = done == 0 ? r->sink->pass(r->sink->cookie, &pass, &rows, err) : r->sink->rows(r->sink->cookie, &rows, err);
        done += n;
    }
    return code;
}

static moesim_code one_block(run *r, uint32_t request, int32_t number, uint32_t position,
                             const moesim_gen_popularity *popularity, moesim_error *err)
{
    if (check_interrupted(err) != MOESIM_OK)
        return err->code;
    for (uint32_t t = 0; t < r->c->block; t++)
        r->position[t] = (int32_t)(position + t);
    for (uint32_t l = 0; l < r->c->layers; l++)
        moesim_gen_layer_begin(&r->layer[l], &r->shape, &popularity[l], number == 0, &r->rng);
    moesim_gen_block_begin(&r->block);
    moesim_code code = MOESIM_OK;
    int32_t step = 0;
    for (uint32_t masked = r->c->block; masked > 0 && code == MOESIM_OK; step++) {
        if (step > 0)
            advance(r, popularity);
        masked = moesim_gen_block_denoise(&r->block, &r->rng);
        code = emit(r, request, MOESIM_PASS_DENOISE, number, step, r->block.confidence, err);
    }
    if (code != MOESIM_OK || r->c->block == 1)
        return code;
    advance(r, popularity);
    return emit(r, request, MOESIM_PASS_COMMIT, number, step, r->unknown, err);
}

/* A length between half and one and a half of the mean, at least 1. */
static uint32_t vary(run *r, uint32_t mean)
{
    const uint32_t n = mean / 2 + moesim_gen_below(&r->rng, mean + 1);
    return n > 0 ? n : 1;
}

static moesim_code one_request(run *r, uint32_t q, moesim_error *err)
{
    const moesim_gen_config *c = r->c;
    const uint32_t workload = q % c->workloads, prompt = vary(r, c->prompt), output = vary(r, c->output);
    const moesim_gen_popularity *popularity = &r->popularity[(size_t)workload * c->layers];
    const uint32_t blocks = (output + c->block / 2) / c->block > 0 ? (output + c->block / 2) / c->block : 1;
    moesim_trace_request request = { .prompt_tokens = prompt };
    memcpy(request.workload, c->workload[workload], strnlen(c->workload[workload], sizeof request.workload - 1));
    moesim_code code = r->sink->request(r->sink->cookie, &request, err);
    if (code == MOESIM_OK)
        code = prefill(r, q, prompt, popularity, err);
    for (uint32_t b = 0; b < blocks && code == MOESIM_OK; b++)
        code = one_block(r, q, (int32_t)b, prompt + b * c->block, popularity, err);
    return code;
}

moesim_code moesim_gen_run(const moesim_gen_config *config, const moesim_gen_sink *sink, moesim_error *err)
{
    void *memory = NULL;
    moesim_code code = moesim_alloc(1, sizeof(run), "the generator", &memory, err);
    if (code != MOESIM_OK)
        return code;
    run *r = memory;
    r->c = config;
    r->sink = sink;
    code = prepare(r, err);
    for (uint32_t q = 0; q < config->requests && code == MOESIM_OK; q++)
        code = one_request(r, q, err);
    release(r);
    free(r);
    return code;
}
