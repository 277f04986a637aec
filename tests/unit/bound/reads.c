/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds of a trace file for tests.
 */
#include "tests/unit/bound/reads.h"

#include <stdlib.h>

static moesim_code try_read(const char *path, uint64_t warmup, uint32_t batch, size_t memory, moesim_bound **out,
                            moesim_error *err)
{
    const moesim_window_params params = {
        .request_end = UINT64_MAX, .warmup = warmup, .batch = batch, .window_bytes = (size_t)1 << 20,
    };
    moesim_trace *trace = NULL;
    if (moesim_trace_open(path, NULL, &trace, err) != MOESIM_OK)
        test_die("%s", err->text);
    moesim_code code = moesim_bound_open(trace, &params, memory, out, err);
    moesim_trace_close(&trace);
    return code;
}

moesim_bound *bound_read(const char *path, uint64_t warmup, uint32_t batch)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_bound *bound = NULL;
    if (try_read(path, warmup, batch, MOESIM_BOUND_BYTES, &bound, &err) != MOESIM_OK)
        test_die("%s", err.text);
    return bound;
}

moesim_code bound_try_read(const char *path, size_t memory, moesim_bound **out, moesim_error *err)
{
    return try_read(path, 0, 1, memory, out, err);
}

double *bound_cpu(const moesim_bound *bound, const double *cpu, size_t tokens)
{
    const moesim_bound_info *info = moesim_bound_get_info(bound);
    double *out = calloc((size_t)info->kinds * info->layers + 1, sizeof *out);
    if (out == NULL)
        test_die("no memory");
    for (uint32_t k = 0; k < info->kinds; k++) {
        if (info->tokens[k] >= tokens)
            test_die("an event with %u tokens for one expert", info->tokens[k]);
        for (uint32_t l = 0; l < info->layers; l++)
            out[(size_t)k * info->layers + l] = cpu[l * tokens + info->tokens[k]];
    }
    return out;
}

moesim_offline_cost bound_solve(const moesim_bound *bound, const double *h2d, const double *cpu, uint32_t cache,
                                enum moesim_paths paths)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_offline_cost out;
    if (moesim_bound_solve(bound, h2d, cpu, cache, paths, &out, &err) != MOESIM_OK)
        test_die("%s", err.text);
    return out;
}
