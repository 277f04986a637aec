/* SPDX-License-Identifier: Apache-2.0
 *
 * What a layer does beside its routed experts, executed on random weights of the model's sizes: attention (QKV, scores over
 * the context, output projection), router, shared expert. And the LM head at the end of a pass.
 */
#include "hwprofile/cuda/kernels.cuh"
#include "hwprofile/cuda/state.cuh"

#include <string.h>

#define UNIT 64u                 /* elements that a product takes at once */
#define ROWS_UNIT 16u            /* rows of weights that it takes at once */
#define DIM_MAX 256u
#define CACHES 4u                /* the weights that are used in turn fill the GPU's cache this many times */
#define HEAD_ROWS 64u            /* rows whose logits are kept at once */
#define SCALE 0.03f              /* of weights: outputs stay near 1 */

static uint32_t up_to(uint32_t n, uint32_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Elements of the parts of one layer, in their order. */
struct parts { uint64_t qkv, projection, router, shared; };

static struct parts layer_parts(const struct moesim_cuda *d)
{
    const moesim_geometry *g = d->config.geometry;
    const uint64_t hidden = g->hidden, attended = (uint64_t)g->heads * g->head_dim;
    const struct parts p = {
        (attended + 2ull * g->kv_heads * g->head_dim) * hidden, attended * hidden,
        (uint64_t)up_to(g->experts, ROWS_UNIT) * hidden, 3ull * g->shared_experts * g->intermediate * hidden,
    };
    return p;
}

static uint64_t layer_elements(const struct parts *p)
{
    return p->qkv + p->projection + p->router + p->shared;
}

/* As many layers as it takes to read from memory and not from the cache. */
static uint32_t layers_kept(const struct moesim_cuda *d)
{
    const struct parts p = layer_parts(d);
    const uint64_t bytes = layer_elements(&p) * sizeof(uint16_t), wanted = (CACHES * d->cache + bytes - 1) / bytes;
    const uint32_t layers = d->config.geometry->layers > 0 ? d->config.geometry->layers : 1;
    return wanted < layers ? (uint32_t)(wanted > 0 ? wanted : 1) : layers;
}

static uint64_t cache_elements(const struct moesim_cuda *d)
{
    const moesim_geometry *g = d->config.geometry;
    return (uint64_t)(d->config.context > 0 ? d->config.context : 1) * g->kv_heads * g->head_dim;
}

static uint64_t head_elements(const struct moesim_cuda *d)
{
    const moesim_geometry *g = d->config.geometry;
    return g == NULL ? 0 : (uint64_t)up_to(g->vocab, ROWS_UNIT) * g->hidden;
}

static uint32_t head_rows(const struct moesim_cuda *d)
{
    return d->config.max_rows < HEAD_ROWS ? d->config.max_rows : HEAD_ROWS;
}

uint64_t moesim_cuda_other_bytes(const struct moesim_cuda *d)
{
    const moesim_geometry *g = d->config.geometry;
    uint64_t bytes = head_elements(d) * sizeof(uint16_t);
    if (g != NULL)
        bytes += (uint64_t)head_rows(d) * up_to(g->vocab, ROWS_UNIT) * sizeof(float);
    if (!d->config.other)
        return bytes;
    const struct parts p = layer_parts(d);
    const uint64_t row = (g->heads + 2ull * g->kv_heads) * g->head_dim + 2ull * g->hidden + up_to(g->experts, ROWS_UNIT);
    bytes += layers_kept(d) * layer_elements(&p) * sizeof(uint16_t) + 2 * cache_elements(d) * sizeof(uint16_t);
    return bytes +
           d->config.max_rows * (row * sizeof(float) +
                                 ((uint64_t)g->heads * g->head_dim + g->shared_experts * g->intermediate) * sizeof(uint16_t));
}

static moesim_code make_random(struct moesim_cuda *d, uint16_t **data, uint64_t elements, float scale, const char *call,
                               moesim_error *err)
{
    MOESIM_TRY(moesim_cuda_alloc(d, data, elements * sizeof **data, call, err));
    const struct moesim_random r = { *data, elements, d->config.seed ^ (elements << 20), scale };
    MOESIM_CUDA(d, moesim_launch_random(&r, d->compute), err);
    return MOESIM_OK;
}

static moesim_code check_sizes(const struct moesim_cuda *d, moesim_error *err)
{
    const moesim_geometry *g = d->config.geometry;
    if (g->head_dim > DIM_MAX || g->heads % g->kv_heads != 0 || g->heads * g->head_dim % UNIT != 0 ||
        g->shared_experts * g->intermediate % UNIT != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "device cuda: attention of %u heads (%u for keys) of %u elements, or a shared "
                           "expert of %u, is not built; use --other off", g->heads, g->kv_heads, g->head_dim,
                           g->shared_experts * g->intermediate);
    return MOESIM_OK;
}

static moesim_code make_other(struct moesim_cuda *d, moesim_error *err)
{
    const moesim_geometry *g = d->config.geometry;
    struct moesim_cuda_other *o = &d->other;
    const size_t rows = d->config.max_rows;
    MOESIM_TRY(check_sizes(d, err));
    const struct parts p = layer_parts(d);
    o->layers = layers_kept(d);
    o->stride = layer_elements(&p);
    o->width = (g->heads + 2 * g->kv_heads) * g->head_dim;
    o->router_rows = up_to(g->experts, ROWS_UNIT);
    o->shared = g->shared_experts * g->intermediate;
    MOESIM_TRY(make_random(d, &o->weights, o->layers * o->stride, SCALE, "cudaMalloc (attention)", err));
    MOESIM_TRY(make_random(d, &o->keys, cache_elements(d), 1, "cudaMalloc (keys)", err));
    MOESIM_TRY(make_random(d, &o->values, cache_elements(d), 1, "cudaMalloc (values)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &o->qkv, rows * o->width * sizeof *o->qkv, "cudaMalloc (queries)", err));
    MOESIM_TRY(
        moesim_cuda_alloc(d, &o->attended, rows * g->heads * g->head_dim * sizeof *o->attended, "cudaMalloc (heads)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &o->projected, rows * g->hidden * sizeof *o->projected, "cudaMalloc (projection)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &o->logits, rows * o->router_rows * sizeof *o->logits, "cudaMalloc (router)", err));
    if (o->shared == 0)
        return MOESIM_OK;
    MOESIM_TRY(moesim_cuda_alloc(d, &o->shared_h, rows * o->shared * sizeof *o->shared_h, "cudaMalloc (shared expert)", err));
    return moesim_cuda_alloc(d, &o->shared_y, rows * g->hidden * sizeof *o->shared_y, "cudaMalloc (shared expert)", err);
}

moesim_code moesim_cuda_other_alloc(struct moesim_cuda *d, moesim_error *err)
{
    struct moesim_cuda_other *o = &d->other;
    if (d->config.other)
        MOESIM_TRY(make_other(d, err));
    if (head_elements(d) == 0)
        return MOESIM_OK;
    MOESIM_TRY(make_random(d, &o->head, head_elements(d), SCALE, "cudaMalloc (head)", err));
    return moesim_cuda_alloc(d, &o->head_y,
                             (size_t)head_rows(d) * up_to(d->config.geometry->vocab, ROWS_UNIT) * sizeof *o->head_y,
                             "cudaMalloc (logits)", err);
}

void moesim_cuda_other_free(struct moesim_cuda *d)
{
    struct moesim_cuda_other *o = &d->other;
    void *const all[] = {o->weights,  o->keys,     o->values,   o->qkv,  o->projected, o->logits,
                         o->shared_y, o->attended, o->shared_h, o->head, o->head_y};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] != NULL)
            (void)cudaFree(all[i]);
    memset(o, 0, sizeof *o);
}

static moesim_code run_product(struct moesim_cuda *d, const uint16_t *weights, uint32_t rows, uint32_t k, const uint16_t *x,
                               float *y, uint32_t tokens, moesim_error *err)
{
    const struct moesim_product p = { weights, x, y, rows, k, tokens };
    MOESIM_CUDA(d, moesim_launch_product(&p, d->compute), err);
    return MOESIM_OK;
}

static moesim_code run_shared(struct moesim_cuda *d, const uint16_t *weights, uint32_t num_rows, moesim_error *err)
{
    struct moesim_group g;
    g.weights = weights;
    g.x = d->x;
    g.h = d->other.shared_h;
    g.y = d->other.shared_y;
    g.stride = 0;
    g.hidden = d->config.hidden;
    g.intermediate = d->other.shared;
    g.experts = 1;
    g.route = 0;
    const struct moesim_group_expert one = { 0, (uint16_t)num_rows, 0 };
    g.expert[0] = one;
    for (uint32_t r = 0; r < num_rows; r++)
        g.row[r] = (uint16_t)r;
    MOESIM_CUDA(d, moesim_launch_group(&g, d->compute), err);
    return MOESIM_OK;
}

moesim_code moesim_cuda_other_run(struct moesim_cuda *d, uint32_t num_rows, moesim_error *err)
{
    const moesim_geometry *g = d->config.geometry;
    struct moesim_cuda_other *o = &d->other;
    const struct parts p = layer_parts(d);
    const uint16_t *w = o->weights + o->next * o->stride;
    const struct moesim_attention a = { o->qkv, o->keys, o->values, o->attended, num_rows, g->heads, g->kv_heads, g->head_dim,
                                        d->config.context, o->width };
    o->next = (o->next + 1) % o->layers;
    MOESIM_TRY(run_product(d, w, o->width, g->hidden, d->x, o->qkv, num_rows, err));
    MOESIM_CUDA(d, moesim_launch_attention(&a, d->compute), err);
    MOESIM_TRY(run_product(d, w + p.qkv, g->hidden, g->heads * g->head_dim, o->attended, o->projected, num_rows, err));
    MOESIM_TRY(run_product(d, w + p.qkv + p.projection, o->router_rows, g->hidden, d->x, o->logits, num_rows, err));
    return o->shared > 0 ? run_shared(d, w + p.qkv + p.projection + p.router, num_rows, err) : MOESIM_OK;
}

moesim_code moesim_cuda_head_run(struct moesim_cuda *d, uint32_t num_rows, moesim_error *err)
{
    const moesim_geometry *g = d->config.geometry;
    if (d->other.head == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "device cuda: the size of the vocabulary is not known, so there is no LM head");
    for (uint32_t row = 0; row < num_rows; row += HEAD_ROWS) {
        const uint32_t rows = num_rows - row < HEAD_ROWS ? num_rows - row : HEAD_ROWS;
        MOESIM_TRY(run_product(d, d->other.head, up_to(g->vocab, ROWS_UNIT), g->hidden, d->x + (size_t)row * g->hidden,
                               d->other.head_y, rows, err));
    }
    return MOESIM_OK;
}
