/* SPDX-License-Identifier: Apache-2.0
 *
 * Timing queued operations by the GPU's own clock, and the buffers that measurements use.
 */
#include "hwprofile/cuda/kernels.cuh"
#include "hwprofile/cuda/state.cuh"

#include <string.h>

#define PAGE 4096u
#define RANDOM_STEP 0x9e3779b97f4a7c15ull

static void set_latch(struct moesim_cuda *d, uint32_t value)
{
    __atomic_store_n(d->latch, value, __ATOMIC_RELEASE);
}

static moesim_code queue_all(struct moesim_cuda *d, const struct moesim_cuda_span *s, moesim_cuda_queue *queue, void *context,
                             uint32_t first, uint32_t n, moesim_error *err)
{
    const struct moesim_latch latch = { d->latch };
    if (s->latched)
        MOESIM_CUDA(d, moesim_launch_latch(&latch, s->stream), err);
    MOESIM_CUDA(d, cudaEventRecord(d->span_begin, s->stream), err);
    if (s->second != NULL)
        MOESIM_CUDA(d, cudaStreamWaitEvent(s->second, d->span_begin, 0), err);
    for (uint32_t i = 0; i < n; i++)
        MOESIM_TRY(queue(d, context, first + i, err));
    if (s->second != NULL) {
        MOESIM_CUDA(d, cudaEventRecord(d->returned, s->second), err);
        MOESIM_CUDA(d, cudaStreamWaitEvent(s->stream, d->returned, 0), err);
    }
    MOESIM_CUDA(d, cudaEventRecord(d->span_end, s->stream), err);
    return MOESIM_OK;
}

moesim_code moesim_cuda_timed(struct moesim_cuda *d, const struct moesim_cuda_span *s, moesim_cuda_queue *queue, void *context,
                              double *seconds, moesim_error *err)
{
    const uint32_t batch = s->each < MOESIM_QUEUE_MAX ? MOESIM_QUEUE_MAX / s->each : 1;
    double sum = 0;
    for (uint32_t done = 0; done < s->repeat;) {
        const uint32_t n = s->repeat - done < batch ? s->repeat - done : batch;
        float milliseconds = 0;
        set_latch(d, 0);
        const moesim_code code = queue_all(d, s, queue, context, done, n, err);
        set_latch(d, 1);
        MOESIM_TRY(code);
        MOESIM_TRY(moesim_cuda_wait(d, d->span_end, err));
        MOESIM_CUDA(d, cudaEventElapsedTime(&milliseconds, d->span_begin, d->span_end), err);
        sum += (double)milliseconds * 1e-3;
        done += n;
    }
    *seconds = sum / s->repeat;
    return MOESIM_OK;
}

/* Random bytes, other ones in every page: a copy of the wrong place is seen. */
static void fill_random(uint8_t *data, size_t bytes, uint64_t state)
{
    for (size_t at = 0; at < bytes; at += sizeof state) {
        state += RANDOM_STEP;
        uint64_t v = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
        v ^= v >> 27;
        memcpy(data + at, &v, bytes - at < sizeof v ? bytes - at : sizeof v);
    }
}

moesim_code moesim_cuda_need_bench(struct moesim_cuda *d, size_t bytes, moesim_error *err)
{
    if (bytes <= d->bench_bytes)
        return MOESIM_OK;
    if (d->bench != NULL)
        MOESIM_CUDA(d, cudaFree(d->bench), err);
    d->bench = NULL;
    d->bench_bytes = 0;
    MOESIM_TRY(moesim_cuda_alloc(d, &d->bench, bytes, "cudaMalloc (measurements)", err));
    d->bench_bytes = bytes;
    return MOESIM_OK;
}

moesim_code moesim_cuda_need_source(struct moesim_cuda *d, bool pinned, size_t bytes, moesim_error *err)
{
    uint8_t **const source = &d->source[pinned ? 1 : 0];
    size_t *const have = &d->source_bytes[pinned ? 1 : 0];
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    if (bytes <= *have)
        return MOESIM_OK;
    MOESIM_TRY(moesim_memory_check("host memory", "a buffer for measuring copies", bytes,
                                   moesim_memory_allowed(0, moesim_host_memory_free()), "lower --host-pool", err));
    if (!pinned) {
        moesim_host_free(*source, *have);
        *have = 0;
        *source = (uint8_t *)moesim_host_alloc(bytes);
        if (*source == NULL)
            return moesim_fail_nomem(err, "a buffer for measuring copies", bytes);
    } else {
        if (*source != NULL)
            MOESIM_CUDA(d, cudaFreeHost(*source), err);
        *source = NULL;
        *have = 0;
        MOESIM_CUDA(d, cudaMallocHost((void **)source, bytes), err);
    }
    *have = bytes;
    fill_random(*source, bytes, d->config.seed + bytes);
    return MOESIM_OK;
}
