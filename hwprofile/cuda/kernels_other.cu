/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over a cache of keys and values, random weights, and a latch for measurements.
 */
#include "hwprofile/cuda/kernel_parts.cuh"

#define ATTEND_WARPS 4u
#define DIM_STEPS 8u             /* a head has at most 8·32 elements */
#define KEYS 4u                  /* keys in flight in a warp */
#define LATCH_NS 10000000000ull

/* ---- attention ----------------------------------------------------------------------------------------------------- */

static __device__ float warp_sum(float v)
{
#pragma unroll
    for (int d = WARP / 2; d > 0; d /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

/* Softmax over the keys in one go: the best score so far, the sum of weights and the weighted values relative to it. */
struct running { float best, total, sum[DIM_STEPS]; };

static __device__ void attend(struct running &a, const struct moesim_attention &p, const float (&query)[DIM_STEPS], uint32_t kv,
                              uint32_t first, uint32_t lane)
{
    float score[KEYS];
#pragma unroll
    for (uint32_t u = 0; u < KEYS; u++) {
        const uint16_t *key = p.keys + ((uint64_t)(first + u) * p.kv_heads + kv) * p.dim;
        score[u] = 0;
#pragma unroll
        for (uint32_t j = 0; j < DIM_STEPS; j++)
            if (first + u < p.context && lane + WARP * j < p.dim)
                score[u] += query[j] * from_bf16(key[lane + WARP * j]);
    }
#pragma unroll
    for (uint32_t u = 0; u < KEYS; u++) {
        const float s = warp_sum(score[u]);
        if (first + u >= p.context)
            continue;
        const float best = fmaxf(a.best, s), old = expf(a.best - best), now = expf(s - best);
        const uint16_t *value = p.values + ((uint64_t)(first + u) * p.kv_heads + kv) * p.dim;
        a.best = best;
        a.total = a.total * old + now;
#pragma unroll
        for (uint32_t j = 0; j < DIM_STEPS; j++)
            if (lane + WARP * j < p.dim)
                a.sum[j] = a.sum[j] * old + now * from_bf16(value[lane + WARP * j]);
    }
}

/* grid: (rows, heads); the warps of a block share the keys. */
__global__ void __launch_bounds__(WARP *ATTEND_WARPS) moesim_kernel_attention(const __grid_constant__ struct moesim_attention p)
{
    __shared__ struct running part[ATTEND_WARPS][WARP];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const float *q = p.qkv + (uint64_t)blockIdx.x * p.width + (uint64_t)blockIdx.y * p.dim;
    struct running a = { -INFINITY, 0, { 0 } };
    float query[DIM_STEPS];
#pragma unroll
    for (uint32_t j = 0; j < DIM_STEPS; j++)
        query[j] = lane + WARP * j < p.dim ? q[lane + WARP * j] * rsqrtf((float)p.dim) : 0;
    for (uint32_t key = warp * KEYS; key < p.context; key += ATTEND_WARPS * KEYS)
        attend(a, p, query, blockIdx.y / (p.heads / p.kv_heads), key, lane);
    part[warp][lane] = a;
    __syncthreads();
    if (warp > 0)
        return;
    float best = -INFINITY, total = 0;
    for (uint32_t w = 0; w < ATTEND_WARPS; w++)
        best = fmaxf(best, part[w][lane].best);
    for (uint32_t w = 0; w < ATTEND_WARPS; w++)
        total += part[w][lane].total > 0 ? part[w][lane].total * expf(part[w][lane].best - best) : 0;
    for (uint32_t j = 0; j < DIM_STEPS && lane + WARP * j < p.dim; j++) {
        float sum = 0;
        for (uint32_t w = 0; w < ATTEND_WARPS; w++)
            sum += part[w][lane].total > 0 ? part[w][lane].sum[j] * expf(part[w][lane].best - best) : 0;
        p.out[((uint64_t)blockIdx.x * p.heads + blockIdx.y) * p.dim + lane + WARP * j] = to_bf16(total > 0 ? sum / total : 0);
    }
}

/* ---- helpers of measurements --------------------------------------------------------------------------------------- */

static __device__ uint64_t mixed(uint64_t v)     /* splitmix64 */
{
    v += 0x9e3779b97f4a7c15ull;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
    return v ^ (v >> 31);
}

__global__ void __launch_bounds__(BLOCK) moesim_kernel_random(const __grid_constant__ struct moesim_random r)
{
    for (uint64_t i = (uint64_t)blockIdx.x * BLOCK + threadIdx.x; i < r.n; i += (uint64_t)gridDim.x * BLOCK)
        r.data[i] = to_bf16(((float)(mixed(r.seed + i) >> 40) * (2.0f / 16777216.0f) - 1.0f) * r.scale);
}

__global__ void moesim_kernel_latch(const __grid_constant__ struct moesim_latch l)
{
#ifdef __CUDA_ARCH__
    uint64_t now, begin;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        __nanosleep(200);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (*l.flag == 0 && now - begin < LATCH_NS);
#else
    (void)l;
#endif
}

/* ---- launches ------------------------------------------------------------------------------------------------------ */

cudaError_t moesim_launch_attention(const struct moesim_attention *a, cudaStream_t stream)
{
    return launch(moesim_kernel_attention, dim3(a->rows, a->heads), WARP * ATTEND_WARPS, a, stream);
}

cudaError_t moesim_launch_random(const struct moesim_random *r, cudaStream_t stream)
{
    const uint64_t blocks = (r->n + BLOCK - 1) / BLOCK;
    return launch(moesim_kernel_random, dim3((uint32_t)(blocks < 4096 ? blocks : 4096)), BLOCK, r, stream);
}

cudaError_t moesim_launch_latch(const struct moesim_latch *l, cudaStream_t stream)
{
    return launch(moesim_kernel_latch, dim3(1), 1, l, stream);
}

cudaError_t moesim_load_other_kernels(void)
{
    const void *const kernels[] = {
        (const void *)moesim_kernel_attention, (const void *)moesim_kernel_random, (const void *)moesim_kernel_latch,
    };
    return moesim_load_all(kernels, sizeof kernels / sizeof kernels[0]);
}
