/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the generator, without compression and file: passes of 20 layers, 256 experts, top-8 and blocks of 16 on one core.
 * Prints the best of some repeats; the limit beside it is the project's.  usage: bench_generate [REQUESTS]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/options.h"
#include "tests/bench/timing.h"
#include "traces/gen_run.h"

enum { LAYERS = 20, REPEATS = 5, WANTED = 4000 };

static moesim_code on_request(void *cookie, const moesim_trace_request *request, moesim_error *err)
{
    (void)cookie;
    (void)request;
    (void)err;
    return MOESIM_OK;
}

static moesim_code on_pass(void *cookie, const moesim_pass *pass, const moesim_rows *rows, moesim_error *err)
{
    unsigned long *passes = cookie;
    (void)pass;
    (void)rows;
    (void)err;
    (*passes)++;
    return MOESIM_OK;
}

static moesim_code on_rows(void *cookie, const moesim_rows *rows, moesim_error *err)
{
    (void)cookie;
    (void)rows;
    (void)err;
    return MOESIM_OK;
}

int main(int argc, char **argv)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_gen_config config;
    uint64_t requests = 24;
    unsigned long passes = 0;
    double best = 0.0;
    if (argc > 1)
        bench_must(moesim_parse_u64(argv[1], 1, 100000, "REQUESTS", &requests, &err), &err);
    moesim_gen_preset(0, &config);
    config.layers = LAYERS;
    config.requests = (uint32_t)requests;
    bench_must(moesim_gen_check(&config, &err), &err);
    bench_must(moesim_gen_fit(&config, &err), &err);
    for (int i = 0; i < REPEATS; i++) {
        passes = 0;
        const moesim_gen_sink sink = { on_request, on_pass, on_rows, &passes };
        const double from = bench_seconds();
        bench_must(moesim_gen_run(&config, &sink, &err), &err);
        const double each = (bench_seconds() - from) / (double)passes;
        best = i == 0 || each < best ? each : best;
    }
    printf("compiler: %s, %s\n", __VERSION__, BENCH_FLAGS);
    printf("%d layers, %lu passes: %.0f passes/s on one core (wanted: %d)\n", LAYERS, passes, 1.0 / best, WANTED);
    return 0;
}
