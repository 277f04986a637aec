/* SPDX-License-Identifier: Apache-2.0
 *
 * What a layer computes beside its routed experts, and the LM head, on the host device: matrix products of the geometry's
 * sizes. Their weights are taken from the pool, at a place that moves on, so that they come from DRAM as those of the next
 * layer would; values mean nothing.
 */
#include <string.h>

#include "hwprofile/device_host.h"

#define MULTIPLE 64u             /* of the kernels' rows */
#define MATRICES 3u              /* of a shared expert */

static uint32_t round_up(uint32_t n)
{
    return (n + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

uint32_t moesim_host_other_k(const moesim_device_config *c)
{
    const moesim_geometry *g = c->geometry;
    const uint32_t attention = larger(round_up(g->heads * g->head_dim), round_up(c->context));
    return larger(larger(round_up(g->hidden), attention), round_up(g->intermediate * larger(g->shared_experts, 1)));
}

/* out[tokens][rows] = x[tokens][k] · w[rows][k]. The rows are read once for up to 64 tokens. */
static void product(struct host_device *d, uint32_t rows, uint32_t k, uint32_t tokens)
{
    const size_t all = d->sizes.pool / sizeof(uint16_t), group = (size_t)MOESIM_CPU_ROWS * k;
    float out[MOESIM_CPU_ROWS][MOESIM_CPU_TOKENS] = { { 0 } };
    if (k == 0 || group > all)
        return;
    for (uint32_t first = 0; first < tokens; first += HOST_BATCH) {
        const uint32_t n = tokens - first < HOST_BATCH ? tokens - first : HOST_BATCH;
        for (uint32_t r = 0; r < rows; r += MOESIM_CPU_ROWS) {
            if (d->other_at + group > all)
                d->other_at = 0;
            const uint16_t *w = d->pool + d->other_at;
            const uint16_t *const row[] = { w, w + k, w + 2 * (size_t)k, w + 3 * (size_t)k };
            d->other_at += group;
            for (uint32_t t = 0; t < n; t += MOESIM_CPU_TOKENS)
                d->kernel->block(row, k, (const char *)d->other_x + (size_t)t * k * d->kernel->element,
                                 n - t < MOESIM_CPU_TOKENS ? n - t : MOESIM_CPU_TOKENS, t == 0 ? group : 0, out);
        }
    }
    d->sink += (double)out[0][0];
}

void moesim_host_other(struct host_device *d, uint32_t num_rows)
{
    const moesim_geometry *g = d->config.geometry;
    const uint32_t hidden = round_up(g->hidden), heads = g->heads * g->head_dim, kv = g->kv_heads * g->head_dim;
    const uint32_t group = g->heads / g->kv_heads, shared = round_up(g->intermediate * g->shared_experts);
    product(d, heads + 2 * kv, hidden, num_rows);
    for (uint32_t h = 0; h < g->kv_heads; h++) {
        product(d, d->config.context, round_up(g->head_dim), num_rows * group);      /* scores over the keys */
        product(d, g->head_dim, round_up(d->config.context), num_rows * group);      /* and the values */
    }
    product(d, g->hidden, round_up(heads), num_rows);
    product(d, g->experts, hidden, num_rows);
    product(d, (MATRICES - 1) * shared, hidden, num_rows);
    product(d, shared > 0 ? g->hidden : 0, shared, num_rows);
}

void moesim_host_head(struct host_device *d, uint32_t num_rows)
{
    product(d, d->config.geometry->vocab, round_up(d->config.geometry->hidden), num_rows);
}
