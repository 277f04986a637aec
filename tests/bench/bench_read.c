/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of reading: decoded and checked expert ids on one core from a zstd and a gzip trace that the benchmark writes itself
 * (20 layers × 256 experts × top-8, 16 rows a pass, routes that persist as in real traces). Prints one line per case; the
 * limits beside them are the project's.  usage: bench_read [PASSES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/rng.h"
#include "tests/bench/timing.h"
#include "traces/trace.h"
#include "traces/writer.h"

enum { LAYERS = 20, EXPERTS = 256, TOP_K = 8, ROWS = 16, SLOTS = ROWS * LAYERS * TOP_K, REPEATS = 7 };

/* Four slots in five stay; a new id is drawn near the layer's popular ones. */
static void redraw(moesim_rng *rng, uint16_t *id)
{
    for (int g = 0; g < ROWS * LAYERS; g++, id += TOP_K) {
        for (int i = 0; i < TOP_K; i++) {
            if (moesim_rng_below(rng, 5) != 0)
                continue;
            uint16_t drawn;
            bool used;
            do {
                drawn = (uint16_t)(moesim_rng_below(rng, EXPERTS) * moesim_rng_below(rng, EXPERTS) / EXPERTS);
                used = false;
                for (int j = 0; j < TOP_K; j++)
                    used = used || (j != i && id[j] == drawn);
            } while (used);
            id[i] = drawn;
        }
    }
}

static void write_trace(const char *path, int compression, uint64_t passes)
{
    static uint16_t expert[SLOTS];
    static float gate[SLOTS], confidence[ROWS];
    static uint8_t state[ROWS];
    static int32_t position[ROWS], layers[LAYERS];
    static uint64_t bytes[LAYERS];
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_writer *w = NULL;
    moesim_rng rng;
    moesim_trace_info info = {.num_layers = LAYERS, .num_experts = EXPERTS, .top_k = TOP_K, .block_length = ROWS,
                              .has_gate = true, .has_confidence = true, .model_id = "example/bench",
                              .gate_kind = "softmax", .confidence_kind = "top-1 probability"};
    const moesim_writer_options options = {.compression = compression};
    const moesim_trace_request request = {.workload = "bench", .prompt_tokens = 1};
    moesim_rng_seed(&rng, 1);
    for (int l = 0; l < LAYERS; l++) {
        layers[l] = l;
        bytes[l] = 1u << 20;
    }
    for (int i = 0; i < SLOTS; i++)
        expert[i] = (uint16_t)(i % TOP_K);
    bench_must(moesim_writer_create(path, &info, layers, bytes, &options, &w, &err), &err);
    bench_must(moesim_writer_request(w, &request, &err), &err);
    for (uint64_t p = 0; p < passes; p++) {
        redraw(&rng, expert);
        for (int i = 0; i < SLOTS; i++)
            gate[i] = (float)(moesim_rng_below(&rng, 1024)) / 4096.0f;
        const moesim_pass pass = {.kind = MOESIM_PASS_DENOISE, .block = (int32_t)p};
        const moesim_rows rows = {.end = ROWS, .expert = expert, .gate = gate, .confidence = confidence, .state = state,
                                  .position = position};
        bench_must(moesim_writer_pass(w, &pass, &rows, 0, &err), &err);
    }
    bench_must(moesim_writer_finish(&w, &err), &err);
}

/* Best of REPEATS scans, pass by pass. Returns seconds. */
static double scan(const char *path, uint32_t columns, uint64_t *rows_read)
{
    moesim_error err = MOESIM_ERROR_INIT;
    double best = 0.0;
    for (int i = 0; i < REPEATS; i++) {
        moesim_trace *trace = NULL;
        moesim_cursor *cursor = NULL;
        bench_must(moesim_trace_open(path, NULL, &trace, &err), &err);
        bench_must(moesim_cursor_open(trace, columns, (size_t)64 << 20, &cursor, &err), &err);
        const uint64_t n = moesim_trace_get_info(trace)->num_rows;
        const double start = bench_seconds();
        for (uint64_t row = 0; row < n; row += ROWS) {
            moesim_rows rows;
            bench_must(moesim_cursor_rows(cursor, row, row + ROWS, &rows, &err), &err);
        }
        const double took = bench_seconds() - start;
        best = i == 0 || took < best ? took : best;
        *rows_read = n;
        moesim_cursor_close(&cursor);
        moesim_trace_close(&trace);
    }
    return best;
}

static void machine(void)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "model name", 10) == 0) {
            printf("machine:%s", strchr(line, ':') + 1);
            break;
        }
    if (f != NULL)
        fclose(f);
    printf("compiler: %s, %s\n", __VERSION__, BENCH_FLAGS);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int compression;
        double limit;
    } files[] = {{"zstd", MOESIM_ZSTD, 400.0}, {"gzip", MOESIM_GZIP, 150.0}};
    moesim_error err = MOESIM_ERROR_INIT;
    uint64_t passes = 4000, rows = 0;
    if (argc > 1)
        bench_must(moesim_parse_u64(argv[1], 1, 10000000, "PASSES", &passes, &err), &err);
    machine();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[] = "/tmp/moesim-bench-" "XX" "XX" "XX";
        const int fd = mkstemp(path);
        if (fd < 0) {
            perror(path);
            return 1;
        }
        close(fd);
        write_trace(path, files[i].compression, passes);
        const double ids = scan(path, MOESIM_COLUMN_EXPERT, &rows);
        const double all = scan(path, UINT32_MAX, &rows);
        const double bytes = (double)rows * LAYERS * TOP_K * sizeof(uint16_t);
        printf("%s: %6.0f MB/s of decoded ids (wanted: %.0f), %6.0f MB/s beside gates and all columns; %.2f M events/s\n",
               files[i].name, bytes / ids / 1e6, files[i].limit, bytes / all / 1e6, (double)rows / ROWS * LAYERS / all / 1e6);
        unlink(path);
    }
    return 0;
}
