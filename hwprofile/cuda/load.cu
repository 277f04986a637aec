/* SPDX-License-Identifier: Apache-2.0
 *
 * The link kept busy by a thread of its own while the caller measures the CPU. The thread sleeps between copies.
 */
#include "hwprofile/cuda/state.cuh"

#include <string.h>

static cudaError_t one_copy(struct moesim_cuda *d, struct moesim_cuda_load *l)
{
    const size_t places = d->sizes.pool / l->bytes, at = l->copies % (places > 0 ? places : 1) * l->bytes;
    const cudaEvent_t mine = l->ring[l->copies % MOESIM_LOAD_EVENTS];
    cudaError_t e = cudaSuccess;
    if (l->copies >= MOESIM_LOAD_RING)
        e = cudaEventSynchronize(l->ring[(l->copies - MOESIM_LOAD_RING) % MOESIM_LOAD_EVENTS]);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(d->bench, (const uint8_t *)d->pool + at, l->bytes, cudaMemcpyHostToDevice, d->copy);
    if (e == cudaSuccess)
        e = cudaEventRecord(mine, d->copy);
    return e;
}

static void *keep_busy(void *context)
{
    struct moesim_cuda *d = (struct moesim_cuda *)context;
    struct moesim_cuda_load *l = &d->load;
    l->result = cudaSetDevice(d->config.index);
    if (l->result == cudaSuccess)
        l->result = cudaEventRecord(l->begin, d->copy);
    do {
        if (l->result == cudaSuccess)
            l->result = one_copy(d, l);
        l->copies++;
        if (l->copies == MOESIM_LOAD_RING && !d->pcie_busy) {        /* once, with enough queued to go on meanwhile */
            moesim_cuda_read_pcie(d);
            d->pcie_busy = true;
        }
    } while (l->result == cudaSuccess && __atomic_load_n(&l->stop, __ATOMIC_ACQUIRE) == 0);
    if (l->result == cudaSuccess)
        l->result = cudaEventRecord(l->end, d->copy);
    return NULL;
}

moesim_code moesim_cuda_load_begin(moesim_device *device, size_t bytes, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    struct moesim_cuda_load *l = &d->load;
    MOESIM_TRY(moesim_cuda_usable(d, err));
    if (l->running || bytes == 0 || bytes > d->sizes.pool)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device cuda, load_begin: one load at a time, of 1 byte to all of the pool");
    MOESIM_TRY(moesim_cuda_need_bench(d, bytes, err));
    l->bytes = bytes;
    l->copies = 0;
    l->stop = 0;
    l->result = cudaSuccess;
    if (pthread_create(&l->thread, NULL, keep_busy, d) != 0)
        return moesim_fail(err, MOESIM_E_IO, "device cuda, load_begin: the system starts no further thread");
    l->running = true;
    return MOESIM_OK;
}

moesim_code moesim_cuda_load_end(moesim_device *device, uint64_t *bytes, double *seconds, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    struct moesim_cuda_load *l = &d->load;
    float milliseconds = 0;
    if (!l->running)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device cuda, load_end: load_begin did not come before");
    __atomic_store_n(&l->stop, 1, __ATOMIC_RELEASE);
    (void)pthread_join(l->thread, NULL);
    l->running = false;
    if (l->result != cudaSuccess)
        return moesim_cuda_fail(d, l->result, "copying under load", err);
    /* What was queued when the caller stopped ran without the caller's load: copies that had ended by then count, where
     * there are any. */
    const bool full = l->copies > MOESIM_LOAD_RING;
    const uint64_t counted = full ? l->copies - MOESIM_LOAD_RING : l->copies;
    moesim_cuda_read_pcie(d);            /* the link is busy still */
    MOESIM_TRY(moesim_cuda_wait(d, l->end, err));
    MOESIM_CUDA(d, cudaEventElapsedTime(&milliseconds, l->begin, full ? l->ring[(counted - 1) % MOESIM_LOAD_EVENTS] : l->end),
                err);
    *bytes = counted * (uint64_t)l->bytes;
    *seconds = (double)milliseconds * 1e-3;
    return MOESIM_OK;
}
