/* SPDX-License-Identifier: Apache-2.0
 *
 * Nanoseconds that timing one event costs, one core, by executor and kind of event: 30 copies without CPU experts, the same
 * with half of the misses on the CPU with and without sharing of DRAM, a full list of prefetches, hits alone. Prints each
 * figure beside its limit; with --gate exits 1 where a figure lies above its limit.
 * usage: bench_timing [--gate] [PROFILE]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/executor.h"

#ifndef BENCH_FLAGS
#define BENCH_FLAGS "unknown"
#endif

enum { LAYERS = 20, EXPERTS = 256, ROWS = 32, PASSES = 2000, REPEATS = 7 };

static const struct kind {
    const char *name;
    enum moesim_time_mode mode;
    uint32_t effects, moved, cpu, prefetch;
    double limit;                /* ns an event */
} kinds[] = {
    {"count, 30 copies", MOESIM_TIME_COUNT, MOESIM_EFFECT_ALL, 30, 0, 0, 50},
    {"paper, 30 copies", MOESIM_TIME_PAPER, MOESIM_EFFECT_ALL, 30, 0, 0, 100},
    {"model, hits alone", MOESIM_TIME_MODEL, MOESIM_EFFECT_ALL, 0, 0, 0, 100},
    {"model, 30 copies", MOESIM_TIME_MODEL, MOESIM_EFFECT_ALL, 30, 0, 0, 300},
    {"model, 15 copies, 15 on the CPU", MOESIM_TIME_MODEL, MOESIM_EFFECT_ALL, 15, 15, 0, 2000},
    {"the same without contention", MOESIM_TIME_MODEL, MOESIM_EFFECT_ALL ^ MOESIM_EFFECT_CONTENTION, 15, 15, 0, 1000},
    {"model, 10 copies, list of 64", MOESIM_TIME_MODEL, MOESIM_EFFECT_ALL, 10, 0, 64, 2000},
};

static void give_up(const moesim_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(2);
}

/* Processor seconds: one thread, so that other work on the machine counts little. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All passes once; returns the seconds of the clock, so that nothing can be left out. */
static double run(moesim_executor *x, const struct kind *kind)
{
    uint32_t tokens[64];
    uint16_t id[64];
    moesim_landed list[256], landed[256];
    moesim_parts parts = {.total = 0};
    moesim_work w = {.num_rows = ROWS, .n_hits = 30, .hit_tokens = tokens, .n_moved = kind->moved, .n_cpu = kind->cpu,
                     .moved_tokens = tokens, .cpu_tokens = tokens + 32, .moved = id};
    for (uint32_t i = 0; i < 64; i++) {
        tokens[i] = 1 + (i * 7) % 3;
        id[i] = (uint16_t)i;
    }
    for (uint32_t p = 0; p < PASSES; p++) {
        for (w.layer = 0; w.layer < LAYERS; w.layer++) {
            for (uint32_t i = 0; i < kind->prefetch; i++)
                list[i] = (moesim_landed){(w.layer + 1 + i / 16) % LAYERS, 100 + i % 16};
            if (kind->prefetch > 0) {
                x->ops->prefetch(x, list, kind->prefetch);
                x->ops->gate(x, &parts);
                x->ops->landed(x, landed, 256);
            }
            x->ops->event(x, &w, &parts);
        }
        x->ops->end_pass(x, &parts);
    }
    return parts.total;
}

static double measure(const moesim_profile *model, const moesim_profile *paper, const struct kind *kind)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_costing *costing;
    moesim_executor *x;
    uint64_t bytes[LAYERS];
    double best = 1e9, total = 0;
    for (uint32_t l = 0; l < LAYERS; l++)
        bytes[l] = 6291456;
    const moesim_costing_params params = {
        .profile = kind->mode == MOESIM_TIME_PAPER ? paper : model, .mode = kind->mode, .effects = kind->effects, .staging = 4,
        .num_layers = LAYERS, .max_rows = ROWS, .expert_bytes = bytes, .hidden_bytes = 4096};
    if (moesim_costing_create(&params, &costing, &err) != MOESIM_OK ||
        moesim_executor_create(costing, kind->prefetch, &x, &err) != MOESIM_OK)
        give_up(&err);
    for (int r = 0; r < REPEATS; r++) {
        const double begin = now();
        total += run(x, kind);
        const double took = now() - begin;
        best = took < best ? took : best;
    }
    if (total < 0)
        puts("time runs backwards");
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&costing);
    return 1e9 * best / (PASSES * LAYERS);
}

int main(int argc, char **argv)
{
    static moesim_profile model, paper;
    moesim_error err = MOESIM_ERROR_INIT;
    const bool gate = argc > 1 && strcmp(argv[1], "--gate") == 0;
    const char *name = argc > 1 + gate ? argv[1 + gate] : "h200-host";
    int slow = 0;
    if (moesim_profile_load(name, &model, &err) != MOESIM_OK || moesim_profile_load("paper-a", &paper, &err) != MOESIM_OK)
        give_up(&err);
    printf("bench_timing: profile %s, %s\n", name, BENCH_FLAGS);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const double ns = measure(&model, &paper, &kinds[i]);
        printf("%-34s %7.1f ns  (limit %.0f)%s\n", kinds[i].name, ns, kinds[i].limit, ns > kinds[i].limit ? "  ABOVE" : "");
        slow += ns > kinds[i].limit;
    }
    return gate && slow > 0;
}
