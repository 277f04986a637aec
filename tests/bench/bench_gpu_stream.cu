/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuda device builds on, measured: how long a small copy to the device waits on a stream of its own while another
 * stream has copies of experts queued; the same behind them on their stream; what calls cost the host.
 * usage: bench_gpu_stream [EXPERT_BYTES]
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COPIES 24u
#define SMALL (64u << 10)
#define RUNS 9u
#define CALLS 2000u

#define CUDA(call)                                                                                           \
    do {                                                                                                     \
        const cudaError_t e_ = (call);                                                                       \
        if (e_ != cudaSuccess) {                                                                             \
            fprintf(stderr, "%s: %s (%s)\n", #call, cudaGetErrorString(e_), cudaGetErrorName(e_));           \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_size(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

struct bench { size_t bytes; char *host, *device; cudaStream_t copy, other; cudaEvent_t first, done, all; };

/* Microseconds that a small copy takes from the call, with `ahead` copies queued and the first of them in service. */
static double wait_behind(struct bench *b, unsigned ahead, bool same)
{
    double us[RUNS];
    for (unsigned r = 0; r < RUNS; r++) {
        for (unsigned i = 0; i < ahead; i++) {
            CUDA(cudaMemcpyAsync(b->device + i * b->bytes, b->host + i * b->bytes, b->bytes, cudaMemcpyHostToDevice, b->copy));
            if (i == 0)
                CUDA(cudaEventRecord(b->first, b->copy));
        }
        while (ahead > 1 && cudaEventQuery(b->first) == cudaErrorNotReady) {
        }
        const double begin = now();
        CUDA(cudaMemcpyAsync(b->device + COPIES * b->bytes, b->host + COPIES * b->bytes, SMALL, cudaMemcpyHostToDevice,
                             same ? b->copy : b->other));
        CUDA(cudaEventRecord(b->done, same ? b->copy : b->other));
        while (cudaEventQuery(b->done) == cudaErrorNotReady) {
        }
        us[r] = now() - begin;
        CUDA(cudaDeviceSynchronize());
    }
    qsort(us, RUNS, sizeof us[0], by_size);
    return us[RUNS / 2];
}

static void print_calls(struct bench *b)
{
    double begin = now();
    for (unsigned i = 0; i < CALLS; i++)
        (void)cudaEventQuery(b->done);
    printf("host, one call: cudaEventQuery %.2f us", (now() - begin) / CALLS);
    begin = now();
    for (unsigned i = 0; i < CALLS / 10; i++)
        CUDA(cudaEventRecord(b->done, b->copy));
    printf(", cudaEventRecord %.2f us", (now() - begin) * 10 / CALLS);
    CUDA(cudaDeviceSynchronize());
    begin = now();
    for (unsigned i = 0; i < COPIES; i++)
        CUDA(cudaMemcpyAsync(b->device, b->host, b->bytes, cudaMemcpyHostToDevice, b->copy));
    printf(", cudaMemcpyAsync %.2f us\n", (now() - begin) / COPIES);
    CUDA(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
    struct bench b = {};
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        puts("skipped: no GPU");
        return 77;
    }
    b.bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 6291456;
    const size_t all = (COPIES + 1) * b.bytes + SMALL;
    CUDA(cudaMallocHost((void **)&b.host, all));
    CUDA(cudaMalloc((void **)&b.device, all));
    CUDA(cudaStreamCreateWithFlags(&b.copy, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&b.other, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&b.first, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&b.done, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&b.all, cudaEventDisableTiming));
    for (size_t i = 0; i < all; i++)
        b.host[i] = (char)(i * 2654435761u >> 13);
    (void)wait_behind(&b, COPIES, false);
    const double alone = wait_behind(&b, 0, false);
    printf("copies of %zu bytes; a copy of %u bytes alone: %.1f us\n", b.bytes, SMALL, alone);
    for (unsigned ahead = 2; ahead <= COPIES; ahead = ahead < 4 ? ahead + 1 : ahead * 2)
        printf("%2u copies queued, the second in service: own stream %.1f us, same stream %.1f us\n", ahead,
               wait_behind(&b, ahead, false), wait_behind(&b, ahead, true));
    print_calls(&b);
    return 0;
}
