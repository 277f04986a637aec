/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel that any CPU runs, the choice among those of this CPU, and the double-precision reference.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/cpu_parts.h"
#include "hwprofile/device_memory.h"

#define LANES 8u                 /* partial sums of a row, so that an ordinary compiler can use vectors */

/* ---- plain ------------------------------------------------------------------------------------------------------- */

static bool plain_supported(void)
{
    return true;
}

static void plain_prepare(const uint16_t *x, uint32_t k, void *out)
{
    float *f = out;
    for (uint32_t i = 0; i < k; i++)
        f[i] = moesim_bf16_to_float(x[i]);
}

static void plain_block(const uint16_t *const row[MOESIM_CPU_ROWS], uint32_t k, const void *x, uint32_t tokens, size_t ahead,
                        float out[MOESIM_CPU_ROWS][MOESIM_CPU_TOKENS])
{
    (void)ahead;
    for (uint32_t r = 0; r < MOESIM_CPU_ROWS; r++)
        for (uint32_t t = 0; t < tokens; t++) {
            const float *v = (const float *)x + (size_t)t * k;
            float sum[LANES] = { 0 };
            for (uint32_t i = 0; i < k; i += LANES)
                for (uint32_t j = 0; j < LANES; j++)
                    sum[j] += moesim_bf16_to_float(row[r][i + j]) * v[i + j];
            out[r][t] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
        }
}

static uint64_t plain_read(const void *data, size_t bytes)
{
    const uint64_t *p = data;
    uint64_t sum[LANES] = { 0 }, all = 0;
    for (size_t i = 0; i < bytes / sizeof *p; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            sum[j] |= p[i + j];
    for (size_t j = 0; j < LANES; j++)
        all |= sum[j];
    return all;
}

const moesim_cpu_kernel moesim_cpu_plain = { "plain", plain_supported, sizeof(float), plain_prepare, plain_block, plain_read,
                                             NULL };

/* ---- choice ------------------------------------------------------------------------------------------------------ */

/* Of those that this CPU has the last is chosen where none is asked for. */
static const moesim_cpu_kernel *const kernels[] = {
    &moesim_cpu_plain,
#if defined(__x86_64__)
    &moesim_cpu_avx2, &moesim_cpu_avx512,
    &moesim_cpu_avx512bf16,
#if defined(MOESIM_AMX)
    &moesim_cpu_amx,
#endif
#endif
};

#define KERNELS (sizeof kernels / sizeof kernels[0])

const char *const *moesim_cpu_isas(void)
{
    static _Thread_local const char *names[KERNELS + 1];
    size_t n = 0;
    for (size_t i = 0; i < KERNELS; i++)
        if (kernels[i]->supported())
            names[n++] = kernels[i]->name;
    names[n] = NULL;
    return names;
}

moesim_code moesim_cpu_kernel_find(const char *name, const moesim_cpu_kernel **out, moesim_error *err)
{
    char list[128] = "";
    size_t at = 0;
    for (size_t i = KERNELS; i-- > 0;) {
        if (!kernels[i]->supported())
            continue;
        if (name == NULL || strcmp(name, kernels[i]->name) == 0) {
            *out = kernels[i];
            return MOESIM_OK;
        }
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at > 0 ? ", " : "", kernels[i]->name);
    }
    return moesim_fail(err, MOESIM_E_USAGE, "cpu: this machine has no instruction set '%s' (it has %s)", name, list);
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

static double dot(const uint16_t *a, const uint16_t *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)moesim_bf16_to_float(a[i]) * (double)moesim_bf16_to_float(b[i]);
    return sum;
}

void moesim_cpu_reference(const uint16_t *weights, uint32_t hidden, uint32_t intermediate, const uint16_t *x,
                          const uint16_t *row, uint32_t tokens, double *y)
{
    const size_t matrix = (size_t)hidden * intermediate;
    const uint16_t *gate = weights, *up = gate + matrix, *down = up + matrix;
    uint16_t between[MOESIM_CPU_SIZE_MAX];
    for (uint32_t t = 0; t < tokens; t++) {
        const uint16_t *in = x + (size_t)row[t] * hidden;
        for (uint32_t i = 0; i < intermediate; i++) {
            const double g = dot(gate + (size_t)i * hidden, in, hidden), u = dot(up + (size_t)i * hidden, in, hidden);
            between[i] = moesim_bf16_from_float((float)(g / (1.0 + exp(-g)) * u));
        }
        for (uint32_t i = 0; i < hidden; i++)
            y[(size_t)t * hidden + i] = dot(down + (size_t)i * intermediate, between, intermediate);
    }
}
