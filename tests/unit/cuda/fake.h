/* SPDX-License-Identifier: Apache-2.0
 *
 * The other side of cuda_runtime.h: kernels run, and failures that a test asks for.
 */
#ifndef MOESIM_TESTS_UNIT_CUDA_FAKE_H
#define MOESIM_TESTS_UNIT_CUDA_FAKE_H

#ifdef __cplusplus
#include <cuda_runtime.h>

/* Runs a kernel at once, all blocks one after another, the threads of a block in turns from one barrier to the next. */
void fake_run(dim3 grid, dim3 block, const std::function<void()> &kernel);

/* The n-th call of this name from now on fails, and after it every call, as with a GPU that is lost; n 0: none does. */
void fake_lose(const char *call, unsigned n);
unsigned fake_left();            /* how many calls are left until then; 0: it came */
size_t fake_memory();            /* allocations and streams that nobody freed */
#endif

#endif
