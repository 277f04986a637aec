/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel of one x86 instruction set (struct moesim_cpu_kernel), written once over a few things that the including file
 * defines:
 *   KERNEL_TARGET          the attribute that lets the compiler use the instructions
 *   KERNEL_STEP            weights of one step of a row
 *   KERNEL_WIDE            most tokens of 4 rows whose sums stay in registers; more tokens go with 2 rows at a time
 *   kernel_element         type of a prepared activation
 *   kernel_acc, kernel_w, kernel_x       vectors: partial sums; the weights and the activations of one step
 *   kernel_zero, kernel_load_w, kernel_load_x, kernel_multiply(acc, w, x), kernel_sum(acc)
 *   kernel_bits, kernel_none, kernel_or, kernel_any      for reading
 * All of it is inlined with constant sizes. Included by one file of each instruction set.
 */
#ifdef KERNEL_TARGET

#include "hwprofile/cpu_parts.h"

#define LINE 32u                 /* weights of a cache line */

static inline __attribute__((always_inline)) KERNEL_TARGET void kernel_dots(
    const uint16_t *const *row, uint32_t rows, uint32_t k, const kernel_element *x, uint32_t tokens, size_t ahead,
    float (*out)[MOESIM_CPU_TOKENS])
{
    kernel_acc acc[MOESIM_CPU_ROWS][MOESIM_CPU_TOKENS];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t t = 0; t < tokens; t++)
            acc[r][t] = kernel_zero();
    for (uint32_t i = 0; i < k; i += KERNEL_STEP) {
        if (ahead != 0 && i % LINE == 0)
            for (uint32_t r = 0; r < rows; r++)
                __builtin_prefetch(row[r] + ahead + i, 0, 2);
        kernel_w w[MOESIM_CPU_ROWS];
        for (uint32_t r = 0; r < rows; r++)
            w[r] = kernel_load_w(row[r] + i);
        for (uint32_t t = 0; t < tokens; t++) {
            const kernel_x v = kernel_load_x(x + (size_t)t * k + i);
            for (uint32_t r = 0; r < rows; r++)
                acc[r][t] = kernel_multiply(acc[r][t], w[r], v);
        }
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t t = 0; t < tokens; t++)
            out[r][t] = kernel_sum(acc[r][t]);
}

static inline __attribute__((always_inline)) KERNEL_TARGET void kernel_rows(
    const uint16_t *const *row, uint32_t k, const kernel_element *x, uint32_t tokens, size_t ahead,
    float (*out)[MOESIM_CPU_TOKENS])
{
    if (tokens <= KERNEL_WIDE) {
        kernel_dots(row, 4, k, x, tokens, ahead, out);
    } else {
        kernel_dots(row, 2, k, x, tokens, ahead, out);
        kernel_dots(row + 2, 2, k, x, tokens, ahead, out + 2);
    }
}

KERNEL_TARGET static void kernel_block(const uint16_t *const row[MOESIM_CPU_ROWS], uint32_t k, const void *x, uint32_t tokens,
                                       size_t ahead, float out[MOESIM_CPU_ROWS][MOESIM_CPU_TOKENS])
{
    switch (tokens) {
    case 1: kernel_rows(row, k, x, 1, ahead, out); break;
    case 2: kernel_rows(row, k, x, 2, ahead, out); break;
    case 3: kernel_rows(row, k, x, 3, ahead, out); break;
    default: kernel_rows(row, k, x, 4, ahead, out);
    }
}

KERNEL_TARGET static uint64_t kernel_read(const void *data, size_t bytes)
{
    const char *p = data;
    kernel_bits sum[4] = { kernel_none(), kernel_none(), kernel_none(), kernel_none() };
    const size_t step = 4 * sizeof(kernel_bits), whole = bytes - bytes % step;
    for (size_t i = 0; i < whole; i += step)
        for (size_t j = 0; j < 4; j++)
            sum[j] = kernel_or(sum[j], p + i + j * sizeof(kernel_bits));
    for (size_t i = whole; i < bytes; i += sizeof(kernel_bits))
        sum[0] = kernel_or(sum[0], p + i);
    return kernel_any(sum[0]) + kernel_any(sum[1]) + kernel_any(sum[2]) + kernel_any(sum[3]);
}

#endif
