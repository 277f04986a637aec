/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts as the cuda device computes them (gate, up and SiLU in one launch, down in another) against cuBLAS grouped products
 * with a SiLU kernel between them. Weights rotate over 1.6 GB, so both read from memory. cuBLAS gets its activations gathered
 * and its pointers uploaded for nothing. Each result is held against the other, ours against double precision too.
 * usage: bench_gpu_grouped [HIDDEN INTERMEDIATE]
 */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "hwprofile/cuda/kernels.cuh"

extern "C" {
#include "hwprofile/cpu_expert.h"
#include "hwprofile/device_memory.h"
}

#define ROWS 16u
#define REPEAT 40u
#define WARM 5u
#define OURS_MAX 1e-2
#define BOTH_MAX 2e-2            /* cuBLAS rounds gate, up and its outputs to bf16 */

#define CUDA(call)                                                                                           \
    do {                                                                                                     \
        const cudaError_t e_ = (call);                                                                       \
        if (e_ != cudaSuccess) {                                                                             \
            fprintf(stderr, "%s: %s (%s)\n", #call, cudaGetErrorString(e_), cudaGetErrorName(e_));           \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define CUBLAS(call)                                                                                         \
    do {                                                                                                     \
        const cublasStatus_t s_ = (call);                                                                    \
        if (s_ != CUBLAS_STATUS_SUCCESS) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, cublasGetStatusString(s_));                                   \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

struct bench {
    uint32_t hidden, intermediate, slots;
    size_t weights;              /* elements of an expert */
    uint16_t *slot, *x, *gathered, *h, *gate_up, *y16;
    float *y;
    std::vector<uint16_t> host_x;
    const void **pointers;       /* device: A, B, C of gate and up (2n each), then of down (n each) */
    cublasHandle_t cublas;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    uint32_t at;                 /* next slot */
};

__global__ void silu_kernel(const uint16_t *gate_up, uint16_t *h, uint32_t n, uint32_t intermediate, uint32_t tokens)
{
    /* gate_up: per expert [gate, up][tokens][intermediate] */
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const uint32_t of_expert = tokens * intermediate, e = i / of_expert, at = i % of_expert;
    const float g = __uint_as_float((uint32_t)gate_up[2 * e * of_expert + at] << 16);
    const float u = __uint_as_float((uint32_t)gate_up[(2 * e + 1) * of_expert + at] << 16);
    const uint32_t bits = __float_as_uint(g / (1.0f + expf(-g)) * u);
    h[i] = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static void ours(struct bench *b, uint32_t experts, uint32_t tokens)
{
    struct moesim_group g;
    memset(&g, 0, sizeof g);
    g.weights = b->slot;
    g.x = b->x;
    g.h = b->h;
    g.y = b->y;
    g.stride = b->weights;
    g.hidden = b->hidden;
    g.intermediate = b->intermediate;
    for (uint32_t k = 0; k < experts;) {
        uint32_t rows = 0;
        for (g.experts = 0; k < experts && g.experts < MOESIM_GROUP_EXPERTS && rows + tokens <= MOESIM_GROUP_ROWS; k++) {
            const struct moesim_group_expert one = { (b->at + k) % b->slots, (uint16_t)tokens, (uint16_t)rows };
            g.expert[g.experts++] = one;
            for (uint32_t t = 0; t < tokens; t++)
                g.row[rows++] = (uint16_t)t;
        }
        CUDA(moesim_launch_group(&g, b->stream));
        g.route += rows;
    }
}

/* Uploads the pointers of `experts` from slot b->at on; theirs() may then be called again and again. */
static void prepare(struct bench *b, uint32_t experts, uint32_t tokens)
{
    std::vector<const void *> p(9 * experts);
    const size_t matrix = (size_t)b->hidden * b->intermediate, part = (size_t)tokens * b->intermediate;
    for (uint32_t k = 0; k < experts; k++) {
        const uint16_t *w = b->slot + (b->at + k) % b->slots * b->weights;
        const uint16_t *x = b->gathered + (size_t)k * tokens * b->hidden;
        for (uint32_t m = 0; m < 2; m++) {
            p[2 * k + m] = w + m * matrix;
            p[2 * experts + 2 * k + m] = x;
            p[4 * experts + 2 * k + m] = b->gate_up + (2 * k + m) * part;
        }
        p[6 * experts + k] = w + 2 * matrix;
        p[7 * experts + k] = b->h + k * part;
        p[8 * experts + k] = b->y16 + (size_t)k * tokens * b->hidden;
    }
    CUDA(cudaMemcpyAsync(b->pointers, p.data(), p.size() * sizeof p[0], cudaMemcpyHostToDevice, b->stream));
    CUDA(cudaStreamSynchronize(b->stream));
}

static void grouped(struct bench *b, uint32_t groups, int size, int rows, int tokens, int k, const void **pointers)
{
    const std::vector<cublasOperation_t> t(groups, CUBLAS_OP_T), n(groups, CUBLAS_OP_N);
    const std::vector<int> m(groups, rows), columns(groups, tokens), inner(groups, k), each(groups, size);
    const std::vector<float> one(groups, 1), zero(groups, 0);
    const size_t all = (size_t)groups * (size_t)size;
    CUBLAS(cublasGemmGroupedBatchedEx(b->cublas, t.data(), n.data(), m.data(), columns.data(), inner.data(), one.data(),
                                      pointers, CUDA_R_16BF, inner.data(), pointers + all, CUDA_R_16BF, inner.data(),
                                      zero.data(), (void *const *)(pointers + 2 * all), CUDA_R_16BF, m.data(), (int)groups,
                                      each.data(), CUBLAS_COMPUTE_32F));
}

static void theirs(struct bench *b, uint32_t experts, uint32_t tokens)
{
    const uint32_t n = experts * tokens * b->intermediate;
    grouped(b, experts, 2, (int)b->intermediate, (int)tokens, (int)b->hidden, b->pointers);
    silu_kernel<<<(n + 255) / 256, 256, 0, b->stream>>>(b->gate_up, b->h, n, b->intermediate, tokens);
    CUDA(cudaGetLastError());
    grouped(b, experts, 1, (int)b->hidden, (int)tokens, (int)b->intermediate, b->pointers + 6 * experts);
}

static int by_size(const void *a, const void *b)
{
    return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);
}

/* Median microseconds of a call; slots rotate between calls. */
static double time_calls(struct bench *b, bool own, uint32_t experts, uint32_t tokens)
{
    float ms[REPEAT];
    for (uint32_t i = 0; i < WARM + REPEAT; i++) {
        b->at = (b->at + experts) % b->slots;
        if (!own)
            prepare(b, experts, tokens);
        CUDA(cudaEventRecord(b->begin, b->stream));
        own ? ours(b, experts, tokens) : theirs(b, experts, tokens);
        CUDA(cudaEventRecord(b->end, b->stream));
        CUDA(cudaEventSynchronize(b->end));
        if (i >= WARM)
            CUDA(cudaEventElapsedTime(&ms[i - WARM], b->begin, b->end));
    }
    qsort(ms, REPEAT, sizeof ms[0], by_size);
    return (double)ms[REPEAT / 2] * 1e3;
}

static double queued(struct bench *b, uint32_t experts, uint32_t tokens)
{
    float ms;
    CUDA(cudaEventRecord(b->begin, b->stream));
    for (uint32_t i = 0; i < REPEAT; i++) {
        b->at = (b->at + experts) % b->slots;
        ours(b, experts, tokens);
    }
    CUDA(cudaEventRecord(b->end, b->stream));
    CUDA(cudaEventSynchronize(b->end));
    CUDA(cudaEventElapsedTime(&ms, b->begin, b->end));
    return (double)ms * 1e3 / REPEAT;
}

/* Relative differences: ours against double precision in the last route, cuBLAS against ours in all. */
static bool right(struct bench *b, uint32_t experts, uint32_t tokens, double *own, double *both)
{
    const size_t n = (size_t)experts * tokens * b->hidden, last = n - b->hidden;
    std::vector<float> y(n);
    std::vector<uint16_t> y16(n), w(b->weights);
    std::vector<double> want(b->hidden);
    const uint16_t row = (uint16_t)(tokens - 1);
    double off = 0, norm = 0, off16 = 0, norm16 = 0;
    CUDA(cudaMemset(b->y, 0xff, n * sizeof y[0]));
    CUDA(cudaMemset(b->y16, 0xff, n * sizeof y16[0]));
    ours(b, experts, tokens);
    prepare(b, experts, tokens);
    theirs(b, experts, tokens);
    CUDA(cudaStreamSynchronize(b->stream));
    CUDA(cudaMemcpy(y.data(), b->y, n * sizeof y[0], cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(y16.data(), b->y16, n * sizeof y16[0], cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(w.data(), b->slot + (b->at + experts - 1) % b->slots * b->weights, b->weights * sizeof w[0],
                    cudaMemcpyDeviceToHost));
    moesim_cpu_reference(w.data(), b->hidden, b->intermediate, b->host_x.data(), &row, 1, want.data());
    for (uint32_t i = 0; i < b->hidden; i++) {
        off += (y[last + i] - want[i]) * (y[last + i] - want[i]);
        norm += want[i] * want[i];
    }
    for (size_t i = 0; i < n; i++) {
        const double v = (double)moesim_bf16_to_float(y16[i]) - y[i];
        off16 += v * v;
        norm16 += (double)y[i] * y[i];
    }
    *own = sqrt(off / norm);
    *both = sqrt(off16 / norm16);
    return *own <= OURS_MAX && *both <= BOTH_MAX;
}

static void allocate(struct bench *b, uint32_t most)
{
    const size_t routes = (size_t)most * ROWS;
    b->weights = 3 * (size_t)b->hidden * b->intermediate;
    b->slots = (uint32_t)(1600000000u / (b->weights * 2) + 1);
    b->slots = b->slots < most ? most : b->slots;
    b->host_x.resize((size_t)ROWS * b->hidden);
    moesim_inputs_fill(b->host_x.data(), ROWS, b->hidden, 1);
    CUDA(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&b->begin));
    CUDA(cudaEventCreate(&b->end));
    CUDA(cudaMalloc((void **)&b->slot, b->slots * b->weights * 2));
    CUDA(cudaMalloc((void **)&b->x, b->host_x.size() * 2));
    CUDA(cudaMalloc((void **)&b->gathered, routes * b->hidden * 2));
    CUDA(cudaMalloc((void **)&b->h, routes * b->intermediate * 2));
    CUDA(cudaMalloc((void **)&b->gate_up, 2 * routes * b->intermediate * 2));
    CUDA(cudaMalloc((void **)&b->y, routes * b->hidden * sizeof(float)));
    CUDA(cudaMalloc((void **)&b->y16, routes * b->hidden * 2));
    CUDA(cudaMalloc((void **)&b->pointers, 9 * most * sizeof(void *)));
    const struct moesim_random r = { b->slot, b->slots * b->weights, 7, 0.05f };
    CUDA(moesim_launch_random(&r, b->stream));
    CUDA(cudaMemcpy(b->x, b->host_x.data(), b->host_x.size() * 2, cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(b->stream));
    CUBLAS(cublasCreate(&b->cublas));
    CUBLAS(cublasSetStream(b->cublas, b->stream));
}

int main(int argc, char **argv)
{
    static const uint32_t experts[] = { 1, 8, 30, 60, 100 }, tokens[] = { 1, 2, 4, 8, 16 };
    struct bench b = {};
    int gpus = 0, bad = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        puts("skipped: no GPU");
        return 77;
    }
    b.hidden = argc > 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2048;
    b.intermediate = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 512;
    if (b.hidden == 0 || b.hidden % 64 != 0 || b.intermediate == 0 || b.intermediate % 64 != 0) {
        fputs("usage: bench_gpu_grouped [HIDDEN INTERMEDIATE]   (multiples of 64)\n", stderr);
        return 2;
    }
    allocate(&b, 100);
    printf("experts of %u x %u, %u slots; us: median of one call, queued: mean of %u calls in a row\n", b.hidden,
           b.intermediate, b.slots, REPEAT);
    puts("experts tokens |  ours us  queued us   TB/s | cublas us   TB/s | cublas/ours | error ours  cublas-ours");
    for (uint32_t e : experts)
        for (uint32_t t : tokens) {
            double own_error, both_error;
            for (uint32_t k = 0; k < e; k++)
                CUDA(
                    cudaMemcpy(b.gathered + (size_t)k * t * b.hidden, b.x, (size_t)t * b.hidden * 2, cudaMemcpyDeviceToDevice));
            const bool ok = right(&b, e, t, &own_error, &both_error);
            const double own = time_calls(&b, true, e, t), many = queued(&b, e, t), cublas = time_calls(&b, false, e, t);
            const double bytes = (double)e * (double)b.weights * 2;
            printf("%7u %6u | %8.1f %10.1f %6.2f | %9.1f %6.2f | %11.2f | %10.1e %12.1e%s\n", e, t, own, many,
                   bytes / many * 1e-6, cublas, bytes / cublas * 1e-6, cublas / own, own_error, both_error,
                   ok ? "" : "  WRONG");
            bad += !ok;
        }
    return bad > 0;
}
