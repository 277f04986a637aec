/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda backend: its table, its errors, waiting and memory.
 */
#include "hwprofile/cuda/state.cuh"

#include <stdio.h>
#include <string.h>

#define ANSWER_NS 120000000000ull        /* a GPU that does not answer for this long is lost */
#define QUERIES 1024u                    /* between two looks at the clock */

moesim_code moesim_cuda_fail(struct moesim_cuda *d, cudaError_t e, const char *call, moesim_error *err)
{
    const bool memory = e == cudaErrorMemoryAllocation;
    const char *const remedy = memory ? "; lower --gpu-memory, --host-pool or --cache" : "";
    const int name = (int)strcspn(call, "(");
    moesim_fail(&d->first, memory ? MOESIM_E_LIMIT : MOESIM_E_IO, "device cuda (GPU %d), event %llu: %.*s failed: %s (%s)%s",
                d->config.index, (unsigned long long)d->order.event, name, call, cudaGetErrorString(e), cudaGetErrorName(e),
                remedy);
    return moesim_cuda_usable(d, err);
}

moesim_code moesim_cuda_usable(const struct moesim_cuda *d, moesim_error *err)
{
    return d->first.code == MOESIM_OK ? MOESIM_OK : moesim_fail(err, d->first.code, "%s", d->first.text);
}

moesim_code moesim_cuda_wait(struct moesim_cuda *d, cudaEvent_t event, moesim_error *err)
{
    const uint64_t begin = moesim_clock_ns();
    for (uint32_t n = 1;; n++) {
        const cudaError_t e = cudaEventQuery(event);
        if (e == cudaSuccess)
            return MOESIM_OK;
        if (e != cudaErrorNotReady)
            return moesim_cuda_fail(d, e, "waiting for the GPU", err);
        if (n % QUERIES == 0)
            MOESIM_TRY(moesim_cuda_patience(d, begin, err));
    }
}

moesim_code moesim_cuda_patience(struct moesim_cuda *d, uint64_t since, moesim_error *err)
{
    if (moesim_clock_ns() - since <= ANSWER_NS)
        return MOESIM_OK;
    d->hung = true;
    return moesim_cuda_fail(d, cudaErrorLaunchTimeout, "waiting for the GPU for two minutes", err);
}

moesim_code moesim_cuda_alloc(struct moesim_cuda *d, void *out, size_t bytes, const char *call, moesim_error *err)
{
    void *data = NULL;
    const cudaError_t e = cudaMalloc(&data, bytes);
    if (e != cudaSuccess)
        return moesim_cuda_fail(d, e, call, err);
    memcpy(out, &data, sizeof data);
    return MOESIM_OK;
}

static moesim_cpu_team *cuda_cpu(moesim_device *device)
{
    return moesim_cuda_of(device)->team;
}

extern "C" const moesim_device_ops moesim_device_cuda = {
    .name = "cuda",
    .help = "an NVIDIA GPU: copies and computes on its streams, CPU experts on the host",
    .present = moesim_cuda_present,
    .open = moesim_cuda_open,
    .close = moesim_cuda_close,
    .fact = moesim_cuda_fact,
    .fill = moesim_cuda_fill,
    .gate = moesim_cuda_gate,
    .work = moesim_cuda_work,
    .end_pass = moesim_cuda_end_pass,
    .outputs = moesim_cuda_outputs,
    .inputs = moesim_cuda_inputs,
    .weights = moesim_cuda_weights,
    .set_cap = moesim_cuda_set_cap,
    .time_copy = moesim_cuda_time_copy,
    .time_return = moesim_cuda_time_return,
    .time_grouped = moesim_cuda_time_grouped,
    .time_other = moesim_cuda_time_other,
    .time_head = moesim_cuda_time_head,
    .time_empty = moesim_cuda_time_empty,
    .load_begin = moesim_cuda_load_begin,
    .load_end = moesim_cuda_load_end,
    .cpu = cuda_cpu,
};
