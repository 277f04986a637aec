/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the cuda backend and the functions that launch them. Everything a launch needs beside the weights travels in
 * its parameters (at most 4096 bytes), so no copy of descriptors shares the link with experts and nothing has to stay alive.
 *
 * At the loads of diffusion models (one to a few tokens an expert) all of this is a stream of weights from device memory. The
 * tensor cores do the arithmetic: A is a tile of 16 rows of weights, B up to 8 tokens, so 1 to 16 tokens cost the same stream.
 */
#ifndef MOESIM_HWPROFILE_CUDA_KERNELS_CUH
#define MOESIM_HWPROFILE_CUDA_KERNELS_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#define MOESIM_GROUP_EXPERTS 128u       /* of one launch; a larger group takes several */
#define MOESIM_GROUP_ROWS 1408u         /* at least MOESIM_DEVICE_ROWS_MAX: every expert fits into one launch */
#define MOESIM_COMBINE_ROWS 255u
#define MOESIM_COMBINE_ROUTES 1700u

/* One expert of a group: its slot, its tokens, its first row in `row`. */
struct moesim_group_expert { uint32_t slot; uint16_t tokens, first; };

/* Experts at weights + slot·stride (elements). Token t of an expert reads row[first + t] of x [..][hidden] and writes route
 * `route` + first + t of h [..][intermediate] and y [..][hidden]. */
struct moesim_group {
    const uint16_t *weights, *x;
    uint16_t *h;
    float *y;
    uint64_t stride;
    uint32_t hidden, intermediate, experts, route;
    struct moesim_group_expert expert[MOESIM_GROUP_EXPERTS];
    uint16_t row[MOESIM_GROUP_ROWS];
};

/* y [tokens][rows] = weights [rows][k] · x [tokens][k]; k a multiple of 64, rows of 16. */
struct moesim_product {
    const uint16_t *weights, *x;
    float *y;
    uint32_t rows, k, tokens;
};

/* sum [first_row + r][hidden] = Σ y [route[j]] over j in start[r] .. start[r + 1] − 1, in this order. */
struct moesim_combine {
    const float *y;
    float *sum;
    uint32_t hidden, first_row, rows;
    uint16_t start[MOESIM_COMBINE_ROWS + 1];
    uint16_t route[MOESIM_COMBINE_ROUTES];
};

/* out [rows][heads·dim] bf16 from the queries in qkv [rows][width] float, over `context` keys and values
 * [context][kv_heads][dim] bf16; dim at most 256. */
struct moesim_attention {
    const float *qkv;
    const uint16_t *keys, *values;
    uint16_t *out;
    uint32_t rows, heads, kv_heads, dim, context, width;
};

/* data [n] bf16, uniform in −scale .. scale. */
struct moesim_random { uint16_t *data; uint64_t n, seed; float scale; };

/* Holds a stream until *flag (in pinned host memory) is not 0, ten seconds at most, so that nothing can hang. */
struct moesim_latch { const volatile uint32_t *flag; };

/* All: asynchronous on `stream`; errors of the launch alone. */
cudaError_t moesim_launch_group(const struct moesim_group *g, cudaStream_t stream);       /* gate, up and SiLU; then down */
cudaError_t moesim_launch_product(const struct moesim_product *p, cudaStream_t stream);
cudaError_t moesim_launch_combine(const struct moesim_combine *c, cudaStream_t stream);
cudaError_t moesim_launch_attention(const struct moesim_attention *a, cudaStream_t stream);
cudaError_t moesim_launch_random(const struct moesim_random *r, cudaStream_t stream);
cudaError_t moesim_launch_latch(const struct moesim_latch *l, cudaStream_t stream);

/* Loads every kernel, so that the first launch takes no longer than the others. cudaErrorNoKernelImageForDevice or
 * cudaErrorInvalidDeviceFunction: this build has no code for the GPU. */
cudaError_t moesim_load_kernels(void);

#endif
