/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU measured: grouped calls, a layer's other products, the head, and an event with nothing in it.
 */
#include "hwprofile/cuda/kernels.cuh"
#include "hwprofile/cuda/state.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_MAX 1e-2           /* relative, of a row of outputs against double precision */
#define POISON 0xff

/* ---- grouped calls ------------------------------------------------------------------------------------------------- */

struct grouped { moesim_device_expert *expert; uint16_t *row; uint32_t experts, tokens; };

static moesim_code queue_group(struct moesim_cuda *d, void *context, uint32_t i, moesim_error *err)
{
    struct grouped *g = (struct grouped *)context;
    (void)i;
    for (uint32_t k = 0; k < g->experts; k++)
        g->expert[k].slot = (d->slot_at + k) % d->config.slots;
    d->slot_at = (d->slot_at + g->experts) % d->config.slots;
    return moesim_cuda_group(d, g->expert, g->experts, 0, d->bench_h, d->bench_y, err);
}

static moesim_code need_routes(struct moesim_cuda *d, size_t routes, moesim_error *err)
{
    const moesim_device_config *c = &d->config;
    if (routes <= d->bench_routes)
        return MOESIM_OK;
    if (d->bench_h != NULL)
        MOESIM_CUDA(d, cudaFree(d->bench_h), err);
    if (d->bench_y != NULL)
        MOESIM_CUDA(d, cudaFree(d->bench_y), err);
    d->bench_h = NULL;
    d->bench_y = NULL;
    d->bench_routes = 0;
    MOESIM_TRY(
        moesim_cuda_alloc(d, &d->bench_h, routes * c->intermediate * sizeof *d->bench_h, "cudaMalloc (intermediates)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &d->bench_y, routes * c->hidden * sizeof *d->bench_y, "cudaMalloc (outputs)", err));
    d->bench_routes = routes;
    return MOESIM_OK;
}

/* Which expert of the pool a slot holds: what was filled or moved in, else what open() left there. */
static uint32_t content(const struct moesim_cuda *d, uint32_t slot)
{
    return d->order.content[slot] != MOESIM_SLOT_EMPTY ? d->order.content[slot] : slot % d->config.pool;
}

static moesim_code check_route(struct moesim_cuda *d, const struct grouped *g, uint32_t k, uint32_t t, moesim_error *err)
{
    const moesim_device_config *c = &d->config;
    const size_t route = (size_t)k * g->tokens + t;
    float *y = (float *)malloc(c->hidden * sizeof *y);
    double *want = (double *)malloc(c->hidden * sizeof *want), off = 0, norm = 0;
    cudaError_t e = cudaErrorMemoryAllocation;
    if (y != NULL && want != NULL) {
        e = cudaMemcpyAsync(y, d->bench_y + route * c->hidden, c->hidden * sizeof *y, cudaMemcpyDeviceToHost, d->compute);
        if (e == cudaSuccess)
            e = cudaStreamSynchronize(d->compute);
        moesim_cpu_reference(d->pool + content(d, g->expert[k].slot) * d->sizes.weights, c->hidden, c->intermediate, d->host_x,
                             &g->row[route], 1, want);
        for (uint32_t i = 0; i < c->hidden; i++) {
            off += (y[i] - want[i]) * (y[i] - want[i]);
            norm += want[i] * want[i];
        }
    }
    free(y);
    free(want);
    if (e != cudaSuccess)
        return moesim_cuda_fail(d, e, "checking a grouped call", err);
    if (!(sqrt(off) <= ERROR_MAX * sqrt(norm)))
        return moesim_fail(err, MOESIM_E_IO,
                           "device cuda, time_grouped: expert %u of %u, token %u of %u is wrong: relative error "
                           "%.3g",
                           k, g->experts, t, g->tokens, sqrt(off) / sqrt(norm));
    return MOESIM_OK;
}

static moesim_code time_group(struct moesim_cuda *d, struct grouped *g, uint32_t repeat, double *seconds, moesim_error *err)
{
    const size_t routes = (size_t)g->experts * g->tokens;
    const uint32_t launches = 2u * (1u + g->experts / MOESIM_GROUP_EXPERTS + (uint32_t)(routes / (MOESIM_GROUP_ROWS / 2)));
    const struct moesim_cuda_span span = { d->compute, NULL, true, repeat, launches };
    const bool check = d->checked_experts != g->experts || d->checked_tokens != g->tokens;
    for (uint32_t k = 0; k < g->experts; k++) {
        g->expert[k].tokens = g->tokens;
        g->expert[k].row = g->row + (size_t)k * g->tokens;
        for (uint32_t t = 0; t < g->tokens; t++)
            g->row[(size_t)k * g->tokens + t] = (uint16_t)((k + t) % d->config.max_rows);
    }
    if (check)
        MOESIM_CUDA(d, cudaMemsetAsync(d->bench_y, POISON, routes * d->config.hidden * sizeof *d->bench_y, d->compute), err);
    MOESIM_TRY(moesim_cuda_timed(d, &span, queue_group, g, seconds, err));
    if (!check)
        return MOESIM_OK;
    d->checked_experts = g->experts;
    d->checked_tokens = g->tokens;
    MOESIM_TRY(check_route(d, g, 0, g->tokens - 1, err));
    return check_route(d, g, g->experts - 1, 0, err);
}

moesim_code moesim_cuda_time_grouped(moesim_device *device, uint32_t experts, uint32_t tokens, uint32_t repeat, double *seconds,
                                     moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    MOESIM_TRY(moesim_cuda_usable(d, err));
    if (experts == 0 || experts > d->config.slots || tokens == 0 || tokens > d->config.max_rows || repeat == 0)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device cuda, time_grouped: 1 to %u experts (slots), 1 to %u tokens (rows)",
                           d->config.slots, d->config.max_rows);
    MOESIM_TRY(need_routes(d, (size_t)experts * tokens, err));
    struct grouped g = { (moesim_device_expert *)calloc(experts, sizeof *g.expert),
                         (uint16_t *)calloc((size_t)experts * tokens, sizeof *g.row), experts, tokens };
    const moesim_code code = g.expert != NULL && g.row != NULL ? time_group(d, &g, repeat, seconds, err)
                                                              : moesim_fail_nomem(err, "a list of experts", experts);
    free(g.expert);
    free(g.row);
    return code;
}

/* ---- everything else ----------------------------------------------------------------------------------------------- */

static moesim_code check_rows(const struct moesim_cuda *d, const char *call, uint32_t num_rows, uint32_t repeat,
                              moesim_error *err)
{
    MOESIM_TRY(moesim_cuda_usable(d, err));
    if (num_rows == 0 || num_rows > d->config.max_rows || repeat == 0)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device cuda, %s: 1 to %u rows, once or more", call, d->config.max_rows);
    return MOESIM_OK;
}

static moesim_code queue_other(struct moesim_cuda *d, void *context, uint32_t i, moesim_error *err)
{
    (void)i;
    return moesim_cuda_other_run(d, *(const uint32_t *)context, err);
}

static moesim_code queue_head(struct moesim_cuda *d, void *context, uint32_t i, moesim_error *err)
{
    (void)i;
    return moesim_cuda_head_run(d, *(const uint32_t *)context, err);
}

/* Mean of gate to gate; a first gate leaves nothing behind that the others would wait for. */
static moesim_code gate_to_gate(struct moesim_cuda *d, uint32_t num_rows, bool other, uint32_t repeat, double *seconds,
                                moesim_error *err)
{
    moesim_device_times times;
    MOESIM_TRY(moesim_cuda_pass_gate(d, num_rows, other, &times, err));
    const uint64_t begin = times.gate;
    for (uint32_t i = 0; i < repeat; i++)
        MOESIM_TRY(moesim_cuda_pass_gate(d, num_rows, other, &times, err));
    *seconds = (double)(times.gate - begin) * 1e-9 / repeat;
    return MOESIM_OK;
}

moesim_code moesim_cuda_time_other(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *device_s, double *host_s,
                                   moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    const struct moesim_cuda_span span = { d->compute, NULL, true, repeat, 8 };
    double with, without;
    MOESIM_TRY(check_rows(d, "time_other", num_rows, repeat, err));
    if (!d->config.other)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device cuda, time_other: opened without `other`");
    MOESIM_TRY(moesim_cuda_timed(d, &span, queue_other, &num_rows, device_s, err));
    MOESIM_TRY(gate_to_gate(d, num_rows, true, repeat, &with, err));
    MOESIM_TRY(gate_to_gate(d, num_rows, false, repeat, &without, err));
    *host_s = fmax(with - without - *device_s, 0);
    return MOESIM_OK;
}

moesim_code moesim_cuda_time_head(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    const struct moesim_cuda_span span = { d->compute, NULL, true, repeat, 16 };
    MOESIM_TRY(check_rows(d, "time_head", num_rows, repeat, err));
    return moesim_cuda_timed(d, &span, queue_head, &num_rows, seconds, err);
}

moesim_code moesim_cuda_time_empty(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds,
                                   moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    MOESIM_TRY(check_rows(d, "time_empty", num_rows, repeat, err));
    return gate_to_gate(d, num_rows, false, repeat, seconds, err);
}
