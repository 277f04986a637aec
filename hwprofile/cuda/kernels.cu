/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the cuda backend: skinny products of bf16 weights with a few tokens, the sum of a row's experts, attention over
 * a cache of keys and values, random weights, and a latch for measurements.
 */
#include "hwprofile/cuda/kernels.cuh"

#define WARP 32u
#define WARPS 8u                 /* of a block that multiplies */
#define BLOCK (WARP * WARPS)
#define TILE 16u                 /* rows of weights in one mma */
#define TOKENS 8u                /* tokens in one mma */
#define CHUNK 64u                /* elements of a row that a warp takes at once: 128 bytes */
#define ATTEND_WARPS 4u
#define DIM_STEPS 8u             /* a head has at most 8·32 elements */
#define KEYS 4u                  /* keys in flight in a warp */
#define LATCH_NS 10000000000ull

static_assert(sizeof(struct moesim_group) <= 4096 && sizeof(struct moesim_combine) <= 4096, "kernel parameters");

/* ---- elements ------------------------------------------------------------------------------------------------------ */

static __device__ float from_bf16(uint16_t v)
{
    return __uint_as_float((uint32_t)v << 16);
}

static __device__ uint16_t to_bf16(float f)      /* nearest, ties to even; no NaN comes here */
{
    const uint32_t bits = __float_as_uint(f);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Weights are read once: past L1, which keeps the activations. */
static __device__ uint4 load_once(const uint16_t *p)
{
#ifdef __CUDA_ARCH__
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
#else
    return *(const uint4 *)p;
#endif
}

static __device__ uint4 load_or_zero(const uint16_t *p, bool there)
{
    return there ? *(const uint4 *)p : make_uint4(0, 0, 0, 0);
}

#ifndef __CUDA_ARCH__
__host__ __device__ void moesim_host_mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                         uint32_t b1);
#endif

/* c += A · B: A 16 rows of 16, B 16 × 8 tokens. */
static __device__ void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
#ifdef __CUDA_ARCH__
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else                            /* the compiler's pass for the host, and tests that run kernels on the CPU */
    moesim_host_mma(c, a0, a1, a2, a3, b0, b1);
#endif
}

/* ---- products ------------------------------------------------------------------------------------------------------ */

/* A lane reads 16 bytes of two rows of weights (lane/4 and lane/4 + 8 of the tile) and 16 bytes of a token (lane/4), at the
 * same elements of k, (lane % 4)·8. An mma wants elements 2t, 2t+1, 2t+8, 2t+9 of lane t: any 16 elements do as long as A and
 * B agree, so the first half of what a lane read is one mma and the second half the next. */
static __device__ void multiply(float (&c)[4], const uint4 &low, const uint4 &high, const uint4 &token)
{
    mma(c, low.x, high.x, low.y, high.y, token.x, token.y);
    mma(c, low.z, high.z, low.w, high.w, token.z, token.w);
}

/* Chunks first, first + step, … of k elements; two of them in flight. b NULL: no such token. */
template <int N>
static __device__ void stream(float (&c)[2][4], const uint16_t *low, const uint16_t *high, const uint16_t *const (&b)[2],
                              uint32_t chunks, uint32_t first, uint32_t step)
{
    for (uint32_t at = first; at < chunks; at += 2 * step) {
        const bool second = at + step < chunks;
        uint4 l[4], h[4], t[N][4];
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const uint32_t k = (q < 2 ? at : at + step) * CHUNK + (q & 1) * 32u;
            if (q < 2 || second) {
                l[q] = load_once(low + k);
                h[q] = load_once(high + k);
            } else {
                l[q] = h[q] = make_uint4(0, 0, 0, 0);
            }
#pragma unroll
            for (int n = 0; n < N; n++)
                t[n][q] = load_or_zero(b[n] + k, b[n] != nullptr && (q < 2 || second));
        }
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int n = 0; n < N; n++)
                multiply(c[n], l[q], h[q], t[n][q]);
    }
}

typedef float moesim_parts[WARPS][2][4][WARP];

/* One block of up to 16 tokens: this warp's share of the sums of its tile into parts. */
static __device__ void tile_product(moesim_parts &parts, bool live, const uint16_t *low, const uint16_t *high,
                                    const uint16_t *const (&b)[2], bool wide, uint32_t chunks, uint32_t split)
{
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float c[2][4] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } };
    if (live && wide)
        stream<2>(c, low, high, b, chunks, warp % split, split);
    else if (live)
        stream<1>(c, low, high, b, chunks, warp % split, split);
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            parts[warp][n][r][lane] = c[n][r];
}

/* Element r of this lane in the tile q and token half n, all shares added in a fixed order. */
static __device__ float part_sum(const moesim_parts &parts, uint32_t q, uint32_t n, uint32_t r, uint32_t split)
{
    float sum = 0;
    for (uint32_t s = 0; s < split; s++)
        sum += parts[q * split + s][n][r][threadIdx.x % WARP];
    return sum;
}

/* How many warps share the k elements of a tile: four chunks or more each, so that a few experts fill the GPU as well. */
static __host__ __device__ uint32_t split_of(uint32_t k)
{
    uint32_t split = 1;
    while (split < WARPS && k / CHUNK / (split * 2) >= 4)
        split *= 2;
    return split;
}

static __device__ float silu(float v)
{
    return v / (1.0f + expf(-v));
}

/* h = bf16(silu(gate · x) ∘ (up · x)). The upper half of a tile is 8 rows of gate, the lower half the same rows of up: both
 * sums of an element meet in one lane. grid: (rows of intermediate / (8·tiles), experts) */
__global__ void __launch_bounds__(BLOCK, 3) moesim_kernel_up(const __grid_constant__ struct moesim_group g)
{
    __shared__ moesim_parts parts;
    const struct moesim_group_expert e = g.expert[blockIdx.y];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, col = lane % 4 * 8;
    const uint32_t split = split_of(g.hidden), tiles = WARPS / split;
    const uint32_t row = (blockIdx.x * tiles + warp / split) * 8 + lane / 4;
    const bool live = row < g.intermediate;
    const uint16_t *gate = g.weights + e.slot * g.stride + (uint64_t)row * g.hidden + col;
    const uint16_t *up = gate + (uint64_t)g.intermediate * g.hidden;
    for (uint32_t t0 = 0; t0 < e.tokens; t0 += 2 * TOKENS) {
        const uint16_t *b[2];
#pragma unroll
        for (uint32_t n = 0; n < 2; n++) {
            const uint32_t t = t0 + n * TOKENS + lane / 4;
            b[n] = t < e.tokens ? g.x + (uint64_t)g.row[e.first + t] * g.hidden + col : nullptr;
        }
        tile_product(parts, live, gate, up, b, t0 + TOKENS < e.tokens, g.hidden / CHUNK, split);
        __syncthreads();
        for (uint32_t unit = warp; unit < tiles * 2; unit += WARPS) {
            const uint32_t q = unit / 2, n = unit % 2, i = (blockIdx.x * tiles + q) * 8 + lane / 4;
            for (uint32_t r = 0; r < 2; r++) {
                const uint32_t t = t0 + n * TOKENS + lane % 4 * 2 + r;
                if (t < e.tokens && i < g.intermediate)
                    g.h[(uint64_t)(g.route + e.first + t) * g.intermediate + i] =
                        to_bf16(silu(part_sum(parts, q, n, r, split)) * part_sum(parts, q, n, r + 2, split));
            }
        }
        __syncthreads();
    }
}

/* One block of rows of y [tokens][rows] = w [rows][k] · x [tokens][k]. */
static __device__ void product(moesim_parts &parts, const uint16_t *w, const uint16_t *x, float *y, uint32_t rows, uint32_t k,
                               uint32_t tokens)
{
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, col = lane % 4 * 8;
    const uint32_t split = split_of(k), tiles = WARPS / split;
    const uint32_t row = (blockIdx.x * tiles + warp / split) * TILE + lane / 4;
    const uint16_t *low = w + (uint64_t)row * k + col;
    for (uint32_t t0 = 0; t0 < tokens; t0 += 2 * TOKENS) {
        const uint16_t *b[2];
#pragma unroll
        for (uint32_t n = 0; n < 2; n++) {
            const uint32_t t = t0 + n * TOKENS + lane / 4;
            b[n] = t < tokens ? x + (uint64_t)t * k + col : nullptr;
        }
        tile_product(parts, row < rows, low, low + (uint64_t)(TILE / 2) * k, b, t0 + TOKENS < tokens, k / CHUNK, split);
        __syncthreads();
        for (uint32_t unit = warp; unit < tiles * 2; unit += WARPS) {
            const uint32_t q = unit / 2, n = unit % 2, j = (blockIdx.x * tiles + q) * TILE + lane / 4;
            for (uint32_t r = 0; r < 4; r++) {
                const uint32_t t = t0 + n * TOKENS + lane % 4 * 2 + r % 2, at = j + r / 2 * 8;
                if (t < tokens && at < rows)
                    y[(uint64_t)t * rows + at] = part_sum(parts, q, n, r, split);
            }
        }
        __syncthreads();
    }
}

/* grid: (rows of hidden / (16·tiles), experts) */
__global__ void __launch_bounds__(BLOCK, 3) moesim_kernel_down(const __grid_constant__ struct moesim_group g)
{
    __shared__ moesim_parts parts;
    const struct moesim_group_expert e = g.expert[blockIdx.y];
    const uint64_t route = g.route + e.first;
    product(parts, g.weights + e.slot * g.stride + 2 * (uint64_t)g.hidden * g.intermediate, g.h + route * g.intermediate,
            g.y + route * g.hidden, g.hidden, g.intermediate, e.tokens);
}

__global__ void __launch_bounds__(BLOCK, 3) moesim_kernel_product(const __grid_constant__ struct moesim_product p)
{
    __shared__ moesim_parts parts;
    product(parts, p.weights, p.x, p.y, p.rows, p.k, p.tokens);
}

/* grid: (hidden / BLOCK, rows) */
__global__ void __launch_bounds__(BLOCK) moesim_kernel_combine(const __grid_constant__ struct moesim_combine c)
{
    const uint32_t i = blockIdx.x * BLOCK + threadIdx.x, r = blockIdx.y;
    if (i >= c.hidden)
        return;
    float sum = 0;
    for (uint32_t j = c.start[r]; j < c.start[r + 1]; j++)
        sum += c.y[(uint64_t)c.route[j] * c.hidden + i];
    c.sum[(uint64_t)(c.first_row + r) * c.hidden + i] = sum;
}

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

template <class P> static cudaError_t launch(void (*kernel)(P), dim3 grid, uint32_t threads, const P *p, cudaStream_t stream)
{
    void *args[] = { const_cast<P *>(p) };
    return cudaLaunchKernel((const void *)kernel, grid, dim3(threads), args, 0, stream);
}

static uint32_t blocks_of(uint32_t rows, uint32_t rows_of_tile, uint32_t k)
{
    const uint32_t rows_of_block = rows_of_tile * (WARPS / split_of(k));
    return (rows + rows_of_block - 1) / rows_of_block;
}

cudaError_t moesim_launch_group(const struct moesim_group *g, cudaStream_t stream)
{
    const dim3 up(blocks_of(g->intermediate, TILE / 2, g->hidden), g->experts);
    const dim3 down(blocks_of(g->hidden, TILE, g->intermediate), g->experts);
    const cudaError_t e = launch(moesim_kernel_up, up, BLOCK, g, stream);
    return e == cudaSuccess ? launch(moesim_kernel_down, down, BLOCK, g, stream) : e;
}

cudaError_t moesim_launch_product(const struct moesim_product *p, cudaStream_t stream)
{
    return launch(moesim_kernel_product, dim3(blocks_of(p->rows, TILE, p->k)), BLOCK, p, stream);
}

cudaError_t moesim_launch_combine(const struct moesim_combine *c, cudaStream_t stream)
{
    return launch(moesim_kernel_combine, dim3((c->hidden + BLOCK - 1) / BLOCK, c->rows), BLOCK, c, stream);
}

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

cudaError_t moesim_load_kernels(void)
{
    const void *const kernels[] = {
        (const void *)moesim_kernel_up, (const void *)moesim_kernel_down, (const void *)moesim_kernel_product,
        (const void *)moesim_kernel_combine, (const void *)moesim_kernel_attention, (const void *)moesim_kernel_random,
        (const void *)moesim_kernel_latch,
    };
    cudaFuncAttributes attributes;
    cudaError_t e = cudaSuccess;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0] && e == cudaSuccess; i++)
        e = cudaFuncGetAttributes(&attributes, kernels[i]);
    return e;
}
