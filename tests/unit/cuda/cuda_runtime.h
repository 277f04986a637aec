/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of CUDA as the cuda device uses, on the CPU, so that its kernels and its order of streams and events are tested
 * without a GPU. Kernels run thread by thread. What is queued runs late and in a random order of streams that only events and
 * the order within a stream restrict: a missing wait becomes a wrong result. Device memory ends at a page that cannot be
 * touched. Times come from a model: 4 us and 50 GB/s for a copy, 5 us for a kernel.
 */
#ifndef MOESIM_TESTS_UNIT_CUDA_CUDA_RUNTIME_H
#define MOESIM_TESTS_UNIT_CUDA_CUDA_RUNTIME_H

#ifdef __cplusplus
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __host__
#define __device__
#define __global__ static
#define __shared__ static        /* blocks run one after another */
#define __grid_constant__
#define __launch_bounds__(...)
#define CUDART_VERSION 13000

enum cudaError_t {
    cudaSuccess, cudaErrorMemoryAllocation, cudaErrorNotReady, cudaErrorNoDevice, cudaErrorInsufficientDriver,
    cudaErrorLaunchTimeout, cudaErrorInvalidValue, cudaErrorIllegalAddress
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor };
enum { cudaDeviceScheduleSpin, cudaHostRegisterDefault, cudaStreamNonBlocking };
enum { cudaEventDisableTiming = 2, cudaEventBlockingSync = 1 };

typedef struct fake_stream *cudaStream_t;
typedef struct fake_event *cudaEvent_t;

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint4 { uint32_t x, y, z, w; };
struct cudaDeviceProp { char name[256]; size_t totalGlobalMem; int major, minor, multiProcessorCount, l2CacheSize; };
struct cudaFuncAttributes { int numRegs; };

extern dim3 blockIdx, threadIdx, gridDim;

static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return { x, y, z, w };
}

static inline float __uint_as_float(uint32_t v)
{
    float f;
    memcpy(&f, &v, sizeof f);
    return f;
}

static inline uint32_t __float_as_uint(float f)
{
    uint32_t v;
    memcpy(&v, &f, sizeof v);
    return v;
}

static inline float rsqrtf(float v)
{
    return 1.0f / sqrtf(v);
}

void __syncthreads();
float __shfl_xor_sync(uint32_t mask, float v, int lanes);

/* Runs a kernel of `threads` threads for every block; queued like a copy. */
cudaError_t fake_launch(dim3 grid, dim3 block, std::function<void()> kernel, cudaStream_t stream);

template <class P>
cudaError_t cudaLaunchKernel(void (*kernel)(P), dim3 grid, dim3 block, void **args, size_t, cudaStream_t stream)
{
    const typename std::remove_const<P>::type parameters = *static_cast<const P *>(args[0]);
    return fake_launch(grid, block, [kernel, parameters] { kernel(parameters); }, stream);
}

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int room, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t e);
const char *cudaGetErrorName(cudaError_t e);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaMalloc(void **data, size_t bytes);
cudaError_t cudaFree(void *data);
cudaError_t cudaMallocHost(void **data, size_t bytes);
cudaError_t cudaFreeHost(void *data);
cudaError_t cudaHostRegister(void *data, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *data);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel);

#endif
#endif
