/* SPDX-License-Identifier: Apache-2.0
 *
 * The link measured: copies of any size, small ones both ways; and slowed down to a cap by real copies of further bytes.
 */
#include "hwprofile/cuda/state.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/log.h"
}

#define ALIGN 256u
#define BENCH_MIN ((size_t)64 << 20)     /* a device buffer holds at least this much, so that places rotate */
#define COPY_MAX ((size_t)256 << 20)
#define WINDOW 65536u            /* bytes compared at each end of a long copy */
#define CHUNK_MAX ((size_t)64 << 20)
#define CAP_REPEAT 24u           /* copies of one measurement for the cap */
#define CAP_STEPS 6u
#define CAP_CLOSE 0.002          /* share of the aim at which the search for the cap's bytes ends */
#define CAP_WARN 0.02

/* ---- copies -------------------------------------------------------------------------------------------------------- */

struct copies {
    const uint8_t *source;
    size_t bytes, stride, sources, places;       /* sources, places: how many copies fit into the host's, the device's buffer */
    bool two;
    const uint8_t *from;         /* of the last one queued */
    uint8_t *to;
};

static moesim_code queue_one(struct moesim_cuda *d, void *context, uint32_t i, moesim_error *err)
{
    struct copies *c = (struct copies *)context;
    const size_t at = d->bench_at++;
    c->from = c->source + at % c->sources * c->stride;
    c->to = d->bench + at % c->places * c->stride;
    const cudaStream_t stream = c->two && i % 2 == 1 ? d->back : d->copy;
    MOESIM_CUDA(d, cudaMemcpyAsync(c->to, c->from, c->bytes, cudaMemcpyHostToDevice, stream), err);
    MOESIM_CUDA(d, cudaEventRecord(d->landed[at % MOESIM_COPY_RING], stream), err);      /* as behind every expert */
    return MOESIM_OK;
}

static moesim_code compare(struct moesim_cuda *d, const uint8_t *to, const uint8_t *from, size_t bytes, moesim_error *err)
{
    static uint8_t there[WINDOW];
    for (size_t at = 0; at < bytes; at += WINDOW) {
        const size_t n = bytes - at < WINDOW ? bytes - at : WINDOW;
        MOESIM_CUDA(d, cudaMemcpyAsync(there, to + at, n, cudaMemcpyDeviceToHost, d->copy), err);
        MOESIM_CUDA(d, cudaStreamSynchronize(d->copy), err);
        if (memcmp(there, from + at, n) != 0)
            return moesim_fail(err, MOESIM_E_IO,
                               "device cuda, time_copy: what lies on the GPU after a copy of %zu bytes is not "
                               "what was copied",
                               bytes);
    }
    return MOESIM_OK;
}

/* Both ends of the last copy, all of a short one. */
static moesim_code verify(struct moesim_cuda *d, const struct copies *c, moesim_error *err)
{
    if (c->bytes <= 4 * WINDOW)
        return compare(d, c->to, c->from, c->bytes, err);
    MOESIM_TRY(compare(d, c->to, c->from, WINDOW, err));
    return compare(d, c->to + c->bytes - WINDOW, c->from + c->bytes - WINDOW, WINDOW, err);
}

moesim_code moesim_cuda_time_copy(moesim_device *device, size_t bytes, bool pinned, uint32_t streams, uint32_t repeat,
                                  double *seconds, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    struct copies c = { d->pinned && pinned ? (const uint8_t *)d->pool : NULL, bytes, (bytes + ALIGN - 1) / ALIGN * ALIGN, 0, 0,
                        streams > 1, NULL, NULL };
    const struct moesim_cuda_span span = { d->copy, streams > 1 ? d->back : NULL, pinned, repeat, 2 };
    MOESIM_TRY(moesim_cuda_usable(d, err));
    if (bytes == 0 || bytes > COPY_MAX || streams == 0 || streams > 2 || repeat == 0)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device cuda, time_copy: 1 byte to 256 MiB, 1 or 2 streams, 1 copy or more");
    MOESIM_TRY(moesim_cuda_need_bench(d, 2 * c.stride > BENCH_MIN ? 2 * c.stride : BENCH_MIN, err));
    size_t room = d->sizes.pool;
    if (c.source == NULL || room < 2 * c.stride) {
        MOESIM_TRY(moesim_cuda_need_source(d, pinned, 2 * c.stride > BENCH_MIN ? 2 * c.stride : BENCH_MIN, err));
        c.source = d->source[pinned ? 1 : 0];
        room = d->source_bytes[pinned ? 1 : 0];
    }
    c.sources = room / c.stride;
    c.places = d->bench_bytes / c.stride;
    MOESIM_TRY(moesim_cuda_timed(d, &span, queue_one, &c, seconds, err));
    return verify(d, &c, err);
}

/* ---- small copies both ways: from the call to the moment when the host knows --------------------------------------------- */

static moesim_code one_way(struct moesim_cuda *d, bool to_host, size_t bytes, uint64_t *sum, moesim_error *err)
{
    const uint64_t begin = moesim_clock_ns();
    if (to_host) {
        MOESIM_CUDA(d, cudaMemcpyAsync(d->source[1], d->bench, bytes, cudaMemcpyDeviceToHost, d->out), err);
        MOESIM_CUDA(d, cudaEventRecord(d->arrived, d->out), err);
        MOESIM_TRY(moesim_cuda_wait(d, d->arrived, err));
    } else {
        MOESIM_CUDA(d, cudaMemcpyAsync(d->bench, d->source[1], bytes, cudaMemcpyHostToDevice, d->back), err);
        MOESIM_CUDA(d, cudaEventRecord(d->returned, d->back), err);
        MOESIM_TRY(moesim_cuda_wait(d, d->returned, err));
    }
    *sum += moesim_clock_ns() - begin;
    return MOESIM_OK;
}

moesim_code moesim_cuda_time_return(moesim_device *device, size_t bytes, uint32_t repeat, double *to_host, double *to_device,
                                    moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    uint64_t up = 0, down = 0;
    MOESIM_TRY(moesim_cuda_usable(d, err));
    if (bytes == 0 || bytes > COPY_MAX || repeat == 0)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device cuda, time_return: 1 byte to 256 MiB, 1 copy or more");
    MOESIM_TRY(moesim_cuda_need_bench(d, bytes, err));
    MOESIM_TRY(moesim_cuda_need_source(d, true, bytes, err));
    for (uint32_t i = 0; i < repeat; i++) {
        uint8_t *const last = &d->source[1][bytes - 1];
        const uint8_t mark = (uint8_t)(*last + 1u);
        *last = mark;
        MOESIM_TRY(one_way(d, false, bytes, &down, err));
        *last = 0;
        MOESIM_TRY(one_way(d, true, bytes, &up, err));
        if (*last != mark)
            return moesim_fail(err, MOESIM_E_IO, "device cuda, time_return: %zu bytes came back changed", bytes);
    }
    *to_host = (double)up * 1e-9 / repeat;
    *to_device = (double)down * 1e-9 / repeat;
    return MOESIM_OK;
}

/* ---- a slower link ------------------------------------------------------------------------------------------------- */

moesim_code moesim_cuda_further(struct moesim_cuda *d, moesim_error *err)
{
    for (size_t left = d->cap_bytes; left > 0;) {
        const size_t n = left < d->cap_chunk ? left : d->cap_chunk;
        if (d->cap_at + n > d->sizes.pool)
            d->cap_at = 0;
        MOESIM_CUDA(
            d, cudaMemcpyAsync(d->cap_scratch, (const uint8_t *)d->pool + d->cap_at, n, cudaMemcpyHostToDevice, d->copy), err);
        d->cap_at += n;
        left -= n;
    }
    return MOESIM_OK;
}

/* A copy of an expert's size, or another, with its further bytes. */
struct experts { size_t bytes, at; };

static moesim_code queue_expert(struct moesim_cuda *d, void *context, uint32_t i, moesim_error *err)
{
    struct experts *x = (struct experts *)context;
    if (x->at + x->bytes > d->sizes.pool)
        x->at = 0;
    MOESIM_CUDA(d, cudaMemcpyAsync(d->bench, (const uint8_t *)d->pool + x->at, x->bytes, cudaMemcpyHostToDevice, d->copy), err);
    x->at += x->bytes;
    MOESIM_TRY(moesim_cuda_further(d, err));
    MOESIM_CUDA(d, cudaEventRecord(d->landed[i % MOESIM_COPY_RING], d->copy), err);
    return MOESIM_OK;
}

static moesim_code time_experts(struct moesim_cuda *d, size_t bytes, double *seconds, moesim_error *err)
{
    struct experts x = { bytes, 0 };
    const size_t calls = 2 + (d->cap_bytes + d->cap_chunk - 1) / d->cap_chunk;
    const struct moesim_cuda_span span = { d->copy, NULL, d->pinned, CAP_REPEAT,
                                           (uint32_t)(calls < MOESIM_QUEUE_MAX ? calls : MOESIM_QUEUE_MAX) };
    return moesim_cuda_timed(d, &span, queue_expert, &x, seconds, err);
}

/* Bytes behind a copy such that an expert takes what its own bytes would take at the cap; its start-up time stays. */
static moesim_code search(struct moesim_cuda *d, double cap, moesim_error *err)
{
    const size_t expert = d->sizes.expert, half = expert / 2 / ALIGN * ALIGN;
    double whole, part, taken = 0;
    MOESIM_TRY(time_experts(d, expert, &taken, err));            /* once to wake the link */
    MOESIM_TRY(time_experts(d, half, &part, err));
    MOESIM_TRY(time_experts(d, expert, &whole, err));
    const double rate = (double)(expert - half) / fmax(whole - part, 1e-12);
    const double aim = whole + (double)expert * (1 / cap - 1 / rate);
    if (aim <= whole) {
        moesim_log(MOESIM_LOG_WARN, "a bandwidth cap of %.1f GB/s changes nothing: the link does %.1f GB/s", cap / 1e9,
                   rate / 1e9);
        return MOESIM_OK;
    }
    double further = (aim - whole) * rate;
    for (unsigned step = 0; step < CAP_STEPS; step++) {
        d->cap_bytes = (size_t)fmax(further, 0) / ALIGN * ALIGN;
        MOESIM_TRY(time_experts(d, expert, &taken, err));
        if (fabs(taken - aim) <= CAP_CLOSE * aim)
            break;
        further = fmax(further * (aim - whole) / fmax(taken - whole, 1e-3 * whole), ALIGN);
    }
    if (fabs(taken - aim) > CAP_WARN * aim)
        moesim_log(MOESIM_LOG_WARN, "bandwidth cap of %.1f GB/s: an expert takes %.1f us in place of %.1f us", cap / 1e9,
                   taken * 1e6, aim * 1e6);
    return MOESIM_OK;
}

moesim_code moesim_cuda_set_cap(moesim_device *device, double bandwidth_cap, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    moesim_device_config wanted = d->config;
    wanted.bandwidth_cap = bandwidth_cap;
    MOESIM_TRY(moesim_cuda_usable(d, err));
    MOESIM_TRY(moesim_device_check(&wanted, err));
    d->config.bandwidth_cap = bandwidth_cap;
    d->cap_bytes = 0;
    if (!(bandwidth_cap > 0))
        return MOESIM_OK;
    d->cap_chunk = d->sizes.pool < CHUNK_MAX ? d->sizes.pool : CHUNK_MAX;
    if (d->cap_scratch == NULL)
        MOESIM_TRY(moesim_cuda_alloc(d, &d->cap_scratch, d->cap_chunk, "cudaMalloc (scratch of the bandwidth cap)", err));
    MOESIM_TRY(moesim_cuda_need_bench(d, d->sizes.expert, err));
    return search(d, bandwidth_cap, err);
}
