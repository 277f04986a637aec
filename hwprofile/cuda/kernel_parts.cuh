/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of kernels share.
 */
#ifndef MOESIM_HWPROFILE_CUDA_KERNEL_PARTS_CUH
#define MOESIM_HWPROFILE_CUDA_KERNEL_PARTS_CUH

#include "hwprofile/cuda/kernels.cuh"

#define WARP 32u
#define WARPS 8u                 /* of most blocks */
#define BLOCK (WARP * WARPS)

static inline __device__ float from_bf16(uint16_t v)
{
    return __uint_as_float((uint32_t)v << 16);
}

static inline __device__ uint16_t to_bf16(float f)      /* nearest, ties to even; no NaN comes here */
{
    const uint32_t bits = __float_as_uint(f);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <class P> static cudaError_t launch(void (*kernel)(P), dim3 grid, uint32_t threads, const P *p, cudaStream_t stream)
{
    void *args[] = { const_cast<P *>(p) };
    return cudaLaunchKernel(kernel, grid, dim3(threads), args, 0, stream);
}

static inline cudaError_t moesim_load_all(const void *const *kernels, size_t n)
{
    cudaFuncAttributes attributes;
    cudaError_t e = cudaSuccess;
    for (size_t i = 0; i < n && e == cudaSuccess; i++)
        e = cudaFuncGetAttributes(&attributes, kernels[i]);
    return e;
}

cudaError_t moesim_load_other_kernels(void);     /* those of kernels_other.cu */

#endif
