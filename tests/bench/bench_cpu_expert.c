/* SPDX-License-Identifier: Apache-2.0
 *
 * CPU experts over a pool that no cache holds: µs, GB/s and share of the read-only bandwidth, by instruction set and tokens.
 * Limit: at least 70 % of that bandwidth for up to 4 tokens with all cores, with the default instruction set, the last one.
 * Then AMX beside AVX512-BF16, in turns, where the CPU has both: tiles should be slower for no number of tokens.
 * usage: bench_cpu_expert [--gate|--tiles] [THREADS [CPUS [HIDDEN INTERMEDIATE [POOL_MB]]]]
 * 0 threads: all cores; CPUS "all" or "0-7"; with --gate exits 1 where the limit is missed; --tiles: AMX alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "hwprofile/device_memory.h"

#ifndef BENCH_FLAGS
#define BENCH_FLAGS "unknown"
#endif

#define LIMIT 0.70
#define SAMPLES 31
#define READS 9
#define JOBS 32u                 /* experts of one sample */
#define MOST 32u                 /* tokens, by instruction set: the plain one takes its time */

static const uint32_t counts[] = { 1, 2, 4, 8, 16, 32, 64 };

struct bench {
    uint32_t hidden, intermediate, experts;
    size_t expert_bytes;
    uint16_t *pool, *x;
    float *y;
    uint32_t next;               /* expert of the pool */
    double read;                 /* B/s */
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

/* Seconds of one expert; *fast: of the fastest tenth, which a busy machine disturbs less. */
static double measure(struct bench *b, moesim_cpu_team *team, uint32_t tokens, double *fast)
{
    moesim_cpu_job job[JOBS];
    uint16_t row[64];
    double sample[SAMPLES];
    for (uint32_t t = 0; t < tokens; t++)
        row[t] = (uint16_t)t;
    for (int s = -2; s < SAMPLES; s++) {
        for (uint32_t j = 0; j < JOBS; j++) {
            const uint16_t *weights = b->pool + b->next * (b->expert_bytes / sizeof *b->pool);
            job[j] = (moesim_cpu_job){ weights, row, tokens, b->y };
            b->next = (b->next + 1) % b->experts;
        }
        moesim_cpu_team_start(team, job, JOBS, b->x);
        const double seconds = (double)moesim_cpu_team_wait(team) * 1e-9 / JOBS;
        if (s >= 0)
            sample[s] = seconds;
    }
    const double middle = median(sample, SAMPLES);
    *fast = sample[SAMPLES / 10];
    return middle;
}

static double read_rate(const struct bench *b, moesim_cpu_team *team)
{
    double rate[READS];
    for (int i = 0; i < READS; i++)
        rate[i] = moesim_cpu_team_read(team, b->pool, b->experts * b->expert_bytes);
    return median(rate, READS);
}

static moesim_cpu_team *team_of(const struct bench *b, const moesim_cpu_config *config)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_cpu_team *team = NULL;
    if (moesim_cpu_team_create(config, b->hidden, b->intermediate, 64, &team, &err) != MOESIM_OK) {
        fprintf(stderr, "bench_cpu_expert: %s\n", err.text);
        exit(2);
    }
    return team;
}

/* One instruction set; true where the limit holds. */
static bool print_isa(struct bench *b, moesim_cpu_config config, const char *isa)
{
    bool holds = true;
    config.isa = isa;
    moesim_cpu_team *team = team_of(b, &config);
    const double read = read_rate(b, team);
    printf("%s: read-only %.1f GB/s\n", isa, read * 1e-9);
    printf("  tokens        µs    GB/s  of read-only   GFLOP/s  µs (p10)  of read-only (p10)\n");
    b->read = read > b->read ? read : b->read;
    for (size_t i = 0; counts[i] <= MOST; i++) {
        double fast;
        const double s = measure(b, team, counts[i], &fast), rate = (double)b->expert_bytes / s;
        printf("  %6u  %8.1f  %6.1f  %11.0f %%  %8.1f  %8.1f  %17.0f %%\n", counts[i], s * 1e6, rate * 1e-9,
               100 * rate / b->read, rate * counts[i] * 1e-9, fast * 1e6, 100 * (double)b->expert_bytes / fast / b->read);
        holds = holds && (counts[i] > 4 || rate >= LIMIT * b->read);
    }
    moesim_cpu_team_destroy(&team);
    return holds;
}

static bool has(const char *name)
{
    for (const char *const *isa = moesim_cpu_isas(); *isa != NULL; isa++)
        if (strcmp(*isa, name) == 0)
            return true;
    return false;
}

/* vectors, tiles, tiles, vectors: what drifts meanwhile falls on both. */
static void print_tiles(struct bench *b, moesim_cpu_config config)
{
    static const int turns[] = { 0, 1, 1, 0 };
    static const char *const names[] = { "avx512bf16", "amx" };
    moesim_cpu_team *team[2];
    if (!has(names[0]) || !has(names[1])) {
        printf("%s: this CPU, its system or this build has none; nothing beside %s\n", names[1], names[0]);
        return;
    }
    for (int i = 0; i < 2; i++) {
        config.isa = names[i];
        team[i] = team_of(b, &config);
    }
    printf("%s beside %s, in turns\n  tokens  %10s µs  %10s µs  times as fast  (p10)\n", names[1], names[0], names[0],
           names[1]);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        double s[2] = { 0, 0 }, best[2] = { 0, 0 };
        for (size_t j = 0; j < sizeof turns / sizeof turns[0]; j++) {
            double fast;
            s[turns[j]] += measure(b, team[turns[j]], counts[i], &fast) / 2;
            best[turns[j]] += fast / 2;
        }
        printf("  %6u  %13.1f  %13.1f  %13.2f  %5.2f\n", counts[i], s[0] * 1e6, s[1] * 1e6, s[0] / s[1],
               best[0] / best[1]);
    }
    for (int i = 0; i < 2; i++)
        moesim_cpu_team_destroy(&team[i]);
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise, uint64_t max)
{
    moesim_error err = MOESIM_ERROR_INIT;
    uint64_t value = otherwise;
    if (i < argc && moesim_parse_u64(argv[i], 0, max, "bench_cpu_expert", &value, &err) != MOESIM_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    const bool gate = argc > 1 && strcmp(argv[1], "--gate") == 0, tiles = argc > 1 && strcmp(argv[1], "--tiles") == 0;
    argc -= gate || tiles ? 1 : 0;
    argv += gate || tiles ? 1 : 0;
    moesim_cpu_config config = { .threads = (uint32_t)number(argc, argv, 1, 0, MOESIM_CPU_THREADS_MAX) };
    if (argc > 2 && strcmp(argv[2], "all") != 0)
        config.cpus = argv[2];
    struct bench b = { .hidden = (uint32_t)number(argc, argv, 3, 2048, 65536),
                       .intermediate = (uint32_t)number(argc, argv, 4, 512, 65536) };
    b.expert_bytes = 3 * (size_t)b.hidden * b.intermediate * sizeof(uint16_t);
    moesim_cpu_team *team = team_of(&b, &config);
    const uint64_t pool_bytes = number(argc, argv, 5, 1600, 1u << 20) * 1000000;
    b.experts = (uint32_t)(pool_bytes / b.expert_bytes) + 1;
    const size_t bytes = b.experts * b.expert_bytes;
    b.pool = bytes <= moesim_memory_allowed(0, moesim_host_memory_free()) ? moesim_host_alloc(bytes) : NULL;
    b.x = malloc(64 * b.hidden * sizeof *b.x);
    b.y = malloc(64 * b.hidden * sizeof *b.y);
    if (b.pool == NULL || b.x == NULL || b.y == NULL) {
        fprintf(stderr, "bench_cpu_expert: no %.2f GB for the pool\n", (double)bytes * 1e-9);
        return 2;
    }
    moesim_pool_fill(b.pool, 0, b.experts, b.hidden, b.intermediate, 1, team);
    moesim_inputs_fill(b.x, 64, b.hidden, 1);
    moesim_device_fact fact;
    for (size_t i = 0; moesim_host_fact(team, i, &fact); i++)
        if (strcmp(fact.key, "isa") != 0)
            printf("%s: %s\n", fact.key, fact.value);
    printf("flags: %s\nexpert: %u x %u, %.2f MB; pool %.2f GB; limit: %.0f %% of read-only up to 4 tokens\n", BENCH_FLAGS,
           b.hidden, b.intermediate, (double)b.expert_bytes * 1e-6, (double)bytes * 1e-9, 100 * LIMIT);
    moesim_cpu_team_destroy(&team);
    bool holds = true;
    for (const char *const *isa = moesim_cpu_isas(); *isa != NULL && !tiles; isa++)
        holds = print_isa(&b, config, *isa);
    if (!tiles)
        printf("limit %s with the last\n", holds ? "held" : "MISSED");
    print_tiles(&b, config);
    moesim_host_free(b.pool, bytes);
    free(b.x);
    free(b.y);
    return holds || !gate ? 0 : 1;
}
