/* SPDX-License-Identifier: Apache-2.0
 *
 * Skinny products of bf16 weights with a few tokens, and the sum of a row's experts.
 */
#include "hwprofile/cuda/kernel_parts.cuh"

#define TILE 16u                 /* rows of weights in one mma */
#define TOKENS 8u                /* tokens in one mma */
#define CHUNK 64u                /* elements of a row that a warp takes at once: 128 bytes */

static_assert(sizeof(struct moesim_group) <= 4096 && sizeof(struct moesim_combine) <= 4096, "kernel parameters");

/* ---- elements ------------------------------------------------------------------------------------------------------ */

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

/* ---- launches ------------------------------------------------------------------------------------------------------ */

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

cudaError_t moesim_load_kernels(void)
{
    const void *const kernels[] = {
        (const void *)moesim_kernel_up, (const void *)moesim_kernel_down, (const void *)moesim_kernel_product,
        (const void *)moesim_kernel_combine,
    };
    const cudaError_t e = moesim_load_all(kernels, sizeof kernels / sizeof kernels[0]);
    return e == cudaSuccess ? moesim_load_other_kernels() : e;
}
