/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing a GPU: memory on both sides, streams, events. Everything that an event needs is there before the first.
 */
#include "hwprofile/cuda/kernels.cuh"
#include "hwprofile/cuda/state.cuh"

#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
#include "base/log.h"
#include "hwprofile/cpu_parts.h"
}

#define MOVED_ROOM 512u          /* timed events made at once; more are made when an event moves more */
#define NODES 1024u

static moesim_code check_memory(struct moesim_cuda *d, moesim_error *err)
{
    const moesim_device_config *c = &d->config;
    const struct moesim_device_sizes *s = &d->sizes;
    const uint64_t work = 2 * s->inputs + 3 * s->outputs + s->routes * c->intermediate * sizeof(uint16_t);
    size_t free_bytes = 0, total = 0;
    char what[96];
    snprintf(what, sizeof what, "the pool of %u experts", c->pool);
    MOESIM_TRY(moesim_memory_check("host memory", what, s->pool + s->inputs + s->outputs,
                                   moesim_memory_allowed(c->host_limit, moesim_host_memory_free()), "lower --host-pool", err));
    MOESIM_CUDA(d, cudaMemGetInfo(&free_bytes, &total), err);
    snprintf(what, sizeof what, "%u experts%s", c->slots, c->other ? " with attention and head" : "");
    return moesim_memory_check("GPU memory", what, s->slots + work + moesim_cuda_other_bytes(d),
                               moesim_memory_allowed(c->memory_limit, free_bytes),
                               "lower --cache or --staging (replay), --gpu-memory (measure)", err);
}

/* One thread of the machine feeds the GPU; where the caller leaves the number open, the others compute. */
static moesim_code make_team(struct moesim_cuda *d, moesim_error *err)
{
    moesim_device_config *c = &d->config;
    cpu_set_t allowed;
    moesim_cpu_places places;
    MOESIM_TRY(moesim_cpu_place(&c->cpu, &places, err));
    if (c->cpu.threads == 0 && places.threads > 1 && sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
        (uint32_t)CPU_COUNT(&allowed) <= places.threads)
        c->cpu.threads = places.threads - 1;
    return moesim_cpu_team_create(&c->cpu, c->hidden, c->intermediate, c->max_rows, &d->team, err);
}

/* Pages of the pool on the GPU's node, whoever touches them first. Where that cannot be asked for, they lie where they lie. */
static void prefer_node(const struct moesim_cuda *d)
{
    unsigned long mask[NODES / (8 * sizeof(unsigned long))] = { 0 };
    const unsigned bits = 8 * sizeof(unsigned long);
    if (d->numa < 0 || (unsigned)d->numa >= NODES)
        return;
    mask[(unsigned)d->numa / bits] = 1ul << ((unsigned)d->numa % bits);
    (void)syscall(SYS_mbind, d->pool, d->sizes.pool, MPOL_PREFERRED, mask, (unsigned long)NODES, 0u);
}

static moesim_code make_pool(struct moesim_cuda *d, moesim_error *err)
{
    const moesim_device_config *c = &d->config;
    d->pool = (uint16_t *)moesim_host_alloc(d->sizes.pool);
    if (d->pool == NULL)
        return moesim_fail_nomem(err, "the pool of experts", d->sizes.pool);
    prefer_node(d);
    moesim_pool_fill(d->pool, 0, c->pool, c->hidden, c->intermediate, c->seed, d->team);
    const cudaError_t e = cudaHostRegister(d->pool, d->sizes.pool, cudaHostRegisterDefault);
    d->pinned = e == cudaSuccess;
    if (d->pinned)
        return MOESIM_OK;
    if (!c->allow_pageable)
        return moesim_fail(err, MOESIM_E_LIMIT,
                           "device cuda: pinning %.2f GB of host memory failed: %s (%s); lower --host-pool, "
                           "raise the limit of locked memory (ulimit -l, the container's), or go on unpinned with "
                           "--allow-pageable",
                           (double)d->sizes.pool / 1e9, cudaGetErrorString(e), cudaGetErrorName(e));
    (void)cudaGetLastError();
    moesim_log(MOESIM_LOG_WARN, "pinning the pool of experts failed (%s): copies are several times slower and block the host",
               cudaGetErrorString(e));
    return MOESIM_OK;
}

static moesim_code make_pinned(struct moesim_cuda *d, moesim_error *err)
{
    const moesim_device_config *c = &d->config;
    MOESIM_CUDA(d, cudaMallocHost((void **)&d->host_x, d->sizes.inputs), err);
    MOESIM_CUDA(d, cudaMallocHost((void **)&d->host_y, d->sizes.outputs), err);
    MOESIM_CUDA(d, cudaMallocHost((void **)&d->host_routing, d->sizes.routes * sizeof *d->host_routing), err);
    MOESIM_CUDA(d, cudaMallocHost((void **)&d->latch, sizeof *d->latch), err);
    memset(d->host_y, 0, d->sizes.outputs);
    d->jobs = (moesim_cpu_job *)calloc(d->sizes.routes, sizeof *d->jobs);
    d->moved_in = (uint64_t *)calloc(c->slots, sizeof *d->moved_in);
    d->moved_at = (uint32_t *)calloc(c->slots, sizeof *d->moved_at);
    d->row_start = (uint32_t *)calloc(c->max_rows + 1, sizeof *d->row_start);
    d->row_route = (uint16_t *)calloc(d->sizes.routes, sizeof *d->row_route);
    if (d->jobs == NULL || d->moved_in == NULL || d->moved_at == NULL || d->row_start == NULL || d->row_route == NULL)
        return moesim_fail_nomem(err, "the state of a GPU", d->sizes.routes * sizeof *d->jobs);
    return MOESIM_OK;
}

static moesim_code make_device(struct moesim_cuda *d, moesim_error *err)
{
    const moesim_device_config *c = &d->config;
    const struct moesim_device_sizes *s = &d->sizes;
    MOESIM_TRY(moesim_cuda_alloc(d, &d->slots, s->slots, "cudaMalloc (slots)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &d->x, s->inputs, "cudaMalloc (activations)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &d->h, s->routes * c->intermediate * sizeof *d->h, "cudaMalloc (intermediates)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &d->y[0], s->outputs, "cudaMalloc (outputs)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &d->y[1], s->outputs, "cudaMalloc (outputs)", err));
    MOESIM_TRY(moesim_cuda_alloc(d, &d->sum, (size_t)c->max_rows * c->hidden * sizeof *d->sum, "cudaMalloc (sums)", err));
    return moesim_cuda_alloc(d, &d->routing, s->routes * sizeof *d->routing, "cudaMalloc (routing)", err);
}

static moesim_code make_streams(struct moesim_cuda *d, moesim_error *err)
{
    cudaStream_t *const streams[] = { &d->compute, &d->copy, &d->out, &d->back };
    cudaEvent_t *const plain[] = { &d->arrived, &d->returned, &d->gate };
    cudaEvent_t *const timed[] = { &d->hits_begin, &d->hits_end, &d->link_begin, &d->link_end, &d->span_begin,
                                    &d->span_end, &d->load.begin, &d->load.end };
    const size_t room = d->sizes.routes < MOVED_ROOM ? d->sizes.routes : MOVED_ROOM;
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
        MOESIM_CUDA(d, cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking), err);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        MOESIM_CUDA(d, cudaEventCreateWithFlags(plain[i], cudaEventDisableTiming), err);
    for (size_t i = 0; i < MOESIM_COPY_RING; i++)
        MOESIM_CUDA(d, cudaEventCreateWithFlags(&d->landed[i], cudaEventDisableTiming), err);
    for (size_t i = 0; i < MOESIM_LOAD_EVENTS; i++)
        MOESIM_CUDA(d, cudaEventCreateWithFlags(&d->load.ring[i], cudaEventBlockingSync), err);
    for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++)
        MOESIM_CUDA(d, cudaEventCreate(timed[i]), err);
    return moesim_cuda_moved_room(d, (uint32_t)room, err);
}

moesim_code moesim_cuda_moved_room(struct moesim_cuda *d, uint32_t n, moesim_error *err)
{
    if (n <= d->moved_room)
        return MOESIM_OK;
    cudaEvent_t **const list[] = { &d->moved_begin, &d->moved_end };
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        cudaEvent_t *grown = (cudaEvent_t *)realloc(*list[k], n * sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "events of moved experts", n * sizeof *grown);
        memset(grown + d->moved_room, 0, (n - d->moved_room) * sizeof *grown);
        *list[k] = grown;
    }
    for (; d->moved_room < n; d->moved_room++) {
        MOESIM_CUDA(d, cudaEventCreate(&d->moved_begin[d->moved_room]), err);
        MOESIM_CUDA(d, cudaEventCreate(&d->moved_end[d->moved_room]), err);
    }
    return MOESIM_OK;
}

/* Activations and ids are written once; every slot holds some expert, so that no measurement reads zeros. */
static moesim_code fill_device(struct moesim_cuda *d, moesim_error *err)
{
    const moesim_device_config *c = &d->config;
    moesim_inputs_fill(d->host_x, c->max_rows, c->hidden, c->seed);
    MOESIM_CUDA(d, cudaMemcpyAsync(d->x, d->host_x, d->sizes.inputs, cudaMemcpyHostToDevice, d->compute), err);
    MOESIM_CUDA(d, cudaMemsetAsync(d->routing, 0, d->sizes.routes * sizeof *d->routing, d->compute), err);
    for (uint32_t s = 0; s < c->slots; s++) {
        MOESIM_CUDA(d, cudaMemcpyAsync(d->slots + s * d->sizes.weights, d->pool + s % c->pool * d->sizes.weights,
                                       d->sizes.expert, cudaMemcpyHostToDevice, d->copy), err);
        if (s == c->slots / 2)
            moesim_cuda_read_pcie(d);
    }
    MOESIM_CUDA(d, cudaStreamSynchronize(d->compute), err);
    MOESIM_CUDA(d, cudaStreamSynchronize(d->copy), err);
    return MOESIM_OK;
}

static moesim_code build(struct moesim_cuda *d, moesim_error *err)
{
    MOESIM_CUDA(d, cudaSetDevice(d->config.index), err);
    MOESIM_CUDA(d, cudaSetDeviceFlags(cudaDeviceScheduleSpin), err);
    MOESIM_TRY(moesim_cuda_read_facts(d, err));
    MOESIM_TRY(moesim_device_order_init(&d->order, "cuda", &d->config, err));
    MOESIM_CUDA(d, moesim_load_kernels(), err);
    MOESIM_TRY(check_memory(d, err));
    MOESIM_TRY(make_team(d, err));
    MOESIM_TRY(make_streams(d, err));
    MOESIM_TRY(make_device(d, err));
    MOESIM_TRY(moesim_cuda_other_alloc(d, err));
    MOESIM_TRY(make_pool(d, err));
    MOESIM_TRY(make_pinned(d, err));
    MOESIM_TRY(fill_device(d, err));
    return moesim_cuda_set_cap(&d->base, d->config.bandwidth_cap, err);
}

moesim_code moesim_cuda_open(const moesim_device_config *config, moesim_device **out, moesim_error *err)
{
    char why[256];
    *out = NULL;
    MOESIM_TRY(moesim_device_check(config, err));
    if (!moesim_cuda_present(config->index, why))
        return moesim_fail(err, MOESIM_E_IO, "device cuda: %s", why);
    struct moesim_cuda *d = (struct moesim_cuda *)calloc(1, sizeof *d);
    if (d == NULL)
        return moesim_fail_nomem(err, "the state of a GPU", sizeof *d);
    d->base.ops = &moesim_device_cuda;
    d->config = *config;
    moesim_device_sizes_get(config, &d->sizes);
    const moesim_code code = build(d, err);
    *out = &d->base;
    if (code != MOESIM_OK)
        moesim_cuda_close(out);
    return code;
}

static void destroy_streams(struct moesim_cuda *d)
{
    const cudaStream_t streams[] = { d->compute, d->copy, d->out, d->back };
    const cudaEvent_t events[] = { d->arrived, d->returned, d->gate, d->hits_begin, d->hits_end, d->link_begin, d->link_end,
                                   d->span_begin, d->span_end, d->load.begin, d->load.end };
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
        if (streams[i] != NULL)
            (void)cudaStreamDestroy(streams[i]);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        if (events[i] != NULL)
            (void)cudaEventDestroy(events[i]);
    for (size_t i = 0; i < MOESIM_COPY_RING; i++)
        if (d->landed[i] != NULL)
            (void)cudaEventDestroy(d->landed[i]);
    for (size_t i = 0; i < MOESIM_LOAD_EVENTS; i++)
        if (d->load.ring[i] != NULL)
            (void)cudaEventDestroy(d->load.ring[i]);
    for (uint32_t i = 0; i < d->moved_room; i++) {
        (void)cudaEventDestroy(d->moved_begin[i]);
        (void)cudaEventDestroy(d->moved_end[i]);
    }
}

/* Codes are of no use here: a GPU that failed answers every call with its first error, at once. */
static void free_memory(struct moesim_cuda *d)
{
    void *const device[] = { d->slots, d->x, d->h, d->y[0], d->y[1], d->sum, d->routing, d->cap_scratch, d->bench, d->bench_h,
                             d->bench_y };
    void *const pinned[] = { d->host_x, d->host_y, d->host_routing, d->latch, d->source[1] };
    for (size_t i = 0; i < sizeof device / sizeof device[0]; i++)
        if (device[i] != NULL)
            (void)cudaFree(device[i]);
    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++)
        if (pinned[i] != NULL)
            (void)cudaFreeHost(pinned[i]);
    moesim_cuda_other_free(d);
    if (d->pinned)
        (void)cudaHostUnregister(d->pool);
    moesim_host_free(d->pool, d->sizes.pool);
    moesim_host_free(d->source[0], d->source_bytes[0]);
}

void moesim_cuda_close(moesim_device **device)
{
    struct moesim_cuda *d = moesim_cuda_of(*device);
    if (d == NULL)
        return;
    uint64_t bytes;
    double seconds;
    if (d->load.running)
        (void)moesim_cuda_load_end(*device, &bytes, &seconds, NULL);
    if (d->event.cpu_running)
        (void)moesim_cpu_team_wait(d->team);
    moesim_cpu_team_destroy(&d->team);
    if (!d->hung) {              /* else what the GPU may still use stays until the process ends */
        (void)cudaDeviceSynchronize();
        destroy_streams(d);
        free_memory(d);
        (void)cudaGetLastError();
    }
    moesim_device_order_fini(&d->order);
    free(d->jobs);
    free(d->row_start);
    free(d->row_route);
    free(d->moved_in);
    free(d->moved_at);
    free(d->moved_begin);
    free(d->moved_end);
    free(d);
    *device = NULL;
}
