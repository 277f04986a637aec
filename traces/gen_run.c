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
#define APART 0.5                /* how often committed rows keep away from experts of masked ones, like a trace */
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
    uint32_t taken[MOESIM_GEN_MAX_WORKLOADS];   /* requests begun, by workload */
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
                                   .boundary = c->boundary, .comeback = c->comeback, .leave = NAN,
                                   .recent = c->like != NULL };
    if (c->like != NULL) {
        r->shape.apart = APART;
        r->shape.forget = c->like->forget;
        r->shape.expire = c->like->expire;
    }
    for (uint32_t i = 0; i < MOESIM_GEN_CLASSES; i++) {
        const double steadiness = c->like != NULL ? c->like->steady[i] : c->steadiness;
        double *weight = r->shape.weight[i];
        r->shape.old_routes[i] = steadiness;
        for (uint32_t k = 0; k < c->top_k; k++)
            weight[k] = k == 0 ? 1.0 : weight[k - 1] * (1.0 + STEEPEST * steadiness);
    }
    for (uint32_t l = 0; l < c->layers && code == MOESIM_OK; l++)
        code = moesim_gen_layer_create(&r->layer[l], &r->shape, moesim_gen_layer_target(c, l), err);
    r->block.rows = c->block;
    if (c->like != NULL) {
        moesim_gen_drops_like(c->like, c->top_k, &r->drops);
    } else {
        moesim_gen_drops_fill(&c->stability, c->top_k, &r->drops);
        r->block.threshold = c->block > 1 ? (uint32_t)(c->threshold * MOESIM_GEN_UNIT + 0.999) : MOESIM_GEN_UNIT - 1;
        r->block.chance = moesim_gen_commit_chance(c->block, c->tokens_per_pass);
    }
    for (uint32_t i = 0; i < PIECE; i++)
        r->unknown[i] = NAN;
    moesim_rng_seed(&r->rng, c->seed);
    return code == MOESIM_OK ? moesim_gen_popularity_fill(r->popularity, c, &r->rng, err) : code;
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

/* Like a trace: sizes of the sets, and what leaves them, by how many rows are masked in the next pass and in this one. */
static void set_targets(run *r, uint32_t next, uint32_t now)
{
    const moesim_gen_like *like = r->c->like;
    if (like == NULL)
        return;
    for (uint32_t l = 0; l < r->c->layers; l++)
        r->layer[l].target = like->layer[l] * like->size[next];
    r->shape.leave = like->leave[now];
    r->shape.comeback = fmin(1.0, 2.0 * r->c->comeback * (r->c->block - now) / r->c->block);
}

/* A number in [0, 1) that decides how many experts a row gives up. Like a trace, rows that gave up some often do so again, and
 * masked rows move together. */
static double draw_drop(run *r, moesim_gen_layer *layer, uint32_t row, double together)
{
    const moesim_gen_like *like = r->c->like;
    const uint8_t class = r->shape.kind[row];
    if (like == NULL)
        return moesim_rng_real(&r->rng);
    if (class == MOESIM_GEN_JUST || moesim_rng_real(&r->rng) >= like->again[class])
        layer->draw[row] = class == MOESIM_GEN_MASKED ? together : moesim_rng_real(&r->rng);
    return layer->draw[row];
}

/* The routes of the next pass: what each row gives up goes by its confidence and class in this one. */
static void advance(run *r, const moesim_gen_popularity *popularity)
{
    uint8_t drop[MOESIM_GEN_MAX_BLOCK];
    const double *below[MOESIM_GEN_MAX_BLOCK];
    uint32_t now = 0, next = 0;
    static const uint8_t class[] = { [MOESIM_STATE_MASKED] = MOESIM_GEN_MASKED, [MOESIM_STATE_COMMITTED_NOW] = MOESIM_GEN_JUST,
                                     [MOESIM_STATE_COMMITTED] = MOESIM_GEN_LONG };
    for (uint32_t t = 0; t < r->c->block; t++) {
        const double x = (double)r->block.confidence[t] * MOESIM_STATS_BINS;
        const uint32_t bin = isnan(x) ? MOESIM_STATS_BINS : (uint32_t)x;
        r->shape.kind[t] = class[r->block.state[t]];
        below[t] = r->drops.below[r->shape.kind[t]][bin];
        now += r->block.masked[t];
        next += r->block.state[t] == MOESIM_STATE_MASKED;
    }
    set_targets(r, next, now);
    for (uint32_t l = 0; l < r->c->layers; l++) {
        const double together = r->c->like != NULL ? moesim_rng_real(&r->rng) : 0.0;
        for (uint32_t t = 0; t < r->c->block; t++) {
            const double u = draw_drop(r, &r->layer[l], t, together);
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

static void begin_block(run *r)
{
    uint32_t masked = 0;
    if (r->c->like != NULL)
        moesim_gen_like_begin(r->c->like, &r->block, &r->rng);
    else
        moesim_gen_block_begin(&r->block);
    for (uint32_t t = 0; t < r->c->block; t++)
        masked += r->block.masked[t];
    set_targets(r, masked, masked);
}

/* One denoise pass; true if another follows. */
static bool denoise(run *r)
{
    const moesim_gen_like *like = r->c->like;
    if (like == NULL)
        return moesim_gen_block_denoise(&r->block, &r->rng) > 0;
    return moesim_gen_like_denoise(like, &r->block, &r->rng) > 0 || moesim_rng_real(&r->rng) < like->idle;
}

static bool has_commit(run *r)
{
    return r->c->like != NULL ? moesim_rng_real(&r->rng) < r->c->like->commit : r->c->block > 1;
}

static moesim_code one_block(run *r, uint32_t request, int32_t number, uint32_t position,
                             const moesim_gen_popularity *popularity, moesim_error *err)
{
    if (check_interrupted(err) != MOESIM_OK)
        return err->code;
    for (uint32_t t = 0; t < r->c->block; t++)
        r->position[t] = (int32_t)(position + t);
    begin_block(r);
    for (uint32_t l = 0; l < r->c->layers; l++)
        moesim_gen_layer_begin(&r->layer[l], &r->shape, &popularity[l], number == 0, &r->rng);
    moesim_code code = MOESIM_OK;
    int32_t step = 0;
    for (bool more = true; more && code == MOESIM_OK; step++) {
        if (step > 0)
            advance(r, popularity);
        more = denoise(r);
        code = emit(r, request, MOESIM_PASS_DENOISE, number, step, r->block.confidence, err);
    }
    if (code != MOESIM_OK || !has_commit(r))
        return code;
    advance(r, popularity);
    if (r->c->like != NULL)
        moesim_gen_like_commit(r->c->like, &r->block, &r->rng);
    return emit(r, request, MOESIM_PASS_COMMIT, number, step, r->block.confidence, err);
}

/* A length between half and one and a half of the mean, at least 1. */
static uint32_t vary(run *r, uint32_t mean)
{
    const uint32_t n = mean / 2 + moesim_gen_below(&r->rng, mean + 1);
    return n > 0 ? n : 1;
}

/* Requests take turns between the workloads, in proportion to their shares. */
static uint32_t next_workload(run *r)
{
    const moesim_gen_config *c = r->c;
    uint32_t next = 0;
    double least = INFINITY;
    for (uint32_t w = 0; w < c->workloads; w++) {
        const double share = c->share[w] > 0 ? c->share[w] : 1.0, taken = (r->taken[w] + 1.0) / share;
        if (taken < least) {
            least = taken;
            next = w;
        }
    }
    r->taken[next]++;
    return next;
}

static moesim_code one_request(run *r, uint32_t q, moesim_error *err)
{
    const moesim_gen_config *c = r->c;
    const uint32_t workload = next_workload(r), prompt = vary(r, c->prompt), output = vary(r, c->output);
    const moesim_gen_popularity *popularity = &r->popularity[(size_t)workload * c->layers];
    const uint32_t blocks = (output + c->block / 2) / c->block > 0 ? (output + c->block / 2) / c->block : 1;
    moesim_trace_request request = { .prompt_tokens = prompt };
    memcpy(request.workload, c->workload[workload], strnlen(c->workload[workload], sizeof request.workload - 1));
    moesim_code code = r->sink->request(r->sink->cookie, &request, err);
    if (code == MOESIM_OK && (c->like == NULL || c->like->prefill))
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
