/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of building events from decoded rows, and of selections: 20 layers × 256 experts × 16 rows × top-8, about 60 active
 * experts, one core. Prints one line per case; the limits it is held to stand beside the figures.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/rng.h"
#include "sim/build.h"
#include "sim/kernels.h"

enum { LAYERS = 20, EXPERTS = 256, TOP_K = 8, ROWS = 16, STEPS = 500, REPEATS = 21 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);   /* other work on the machine does not count */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts; the median is x[REPEATS / 2]. */
static void sort(double *x)
{
    qsort(x, REPEATS, sizeof *x, by_value);
}

static void die(const moesim_error *err)
{
    fprintf(stderr, "bench_build: %s\n", err->text);
    exit(1);
}

/* K different experts of a pool of 68, so that 16 rows activate about 60. */
static void draw_routes(moesim_rng *r, uint16_t *id, float *gate, uint32_t offset)
{
    uint64_t used[EXPERTS / 64] = { 0 };
    for (int s = 0; s < TOP_K;) {
        uint32_t e = (offset + 3 * moesim_rng_below(r, 68)) % EXPERTS;
        if (moesim_bit_test(used, e))
            continue;
        moesim_bit_set(used, e);
        id[s] = (uint16_t)e;
        gate[s++] = (float)moesim_rng_real(r);
    }
}

static void fill_rows(moesim_buffer *b)
{
    moesim_rng r;
    moesim_rng_seed(&r, 7);
    float spare[TOP_K];
    for (uint32_t i = 0; i < STEPS; i++) {
        b->window.step[i] = (moesim_step){ .clock = i + 1, .num_rows = ROWS, .row = i * ROWS, .counted = true };
        for (uint32_t row = i * ROWS; row < (i + 1) * ROWS; row++) {
            for (uint32_t l = 0; l < LAYERS; l++) {
                size_t at = ((size_t)row * LAYERS + l) * TOP_K;
                draw_routes(&r, b->expert + at, b->gate != NULL ? b->gate + at : spare, 5 * l);
            }
            if (b->layout.sets_only)
                continue;
            b->window.row[row].input = (uint8_t)moesim_rng_below(&r, 3);
            b->lag[row] = (float)moesim_rng_real(&r);
            b->own[row] = (float)moesim_rng_real(&r);
        }
    }
    b->window.num_steps = STEPS;
}

static void bench_case(const char *what, uint32_t needs, bool sets_only, bool touch, double limit)
{
    static const double weight[24] = { 2.2, 1.9, 1.7, 1.5, 1.3, 1.1, .9, .65, 4.4, 3.6, 3.0, 2.55, 2.15, 1.75, 1.4, .95,
                                       6.8, 5.7, 5.0, 4.35, 3.8, 3.2, 2.5, 1.6 };
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace_info *info = calloc(1, sizeof *info);
    moesim_window_params params = { .needs = needs, .touch = touch, .class_weight = weight, .batch = 1 };
    moesim_layout layout;
    moesim_buffer *b = NULL;
    moesim_builder *builder = NULL;
    const moesim_extent most = { STEPS, STEPS, STEPS * ROWS, (uint64_t)STEPS * LAYERS * ROWS * TOP_K };
    if (info == NULL)
        return;
    info->num_layers = LAYERS;
    info->num_experts = EXPERTS;
    info->top_k = TOP_K;
    info->has_gate = true;
    moesim_layout_init(&layout, info, &params);
    layout.sets_only = sets_only;
    if (moesim_buffer_create(&layout, &most, &b, &err) != MOESIM_OK ||
        moesim_builder_create(&params, info, &builder, &err) != MOESIM_OK)
        die(&err);
    fill_rows(b);
    double rate[REPEATS], active = 0;
    for (int i = 0; i < REPEATS; i++) {
        double start = seconds();
        for (uint32_t step = 0; step < STEPS; step++)
            moesim_build_step(builder, b, step);
        rate[i] = STEPS * LAYERS / (seconds() - start) / 1e6;
    }
    for (size_t i = 0; i < STEPS * LAYERS; i++)
        active += moesim_bits_count(b->window.active + i * layout.words, layout.words);
    sort(rate);
    printf("build  %-24s median %6.2f best %6.2f M events/s", what, rate[REPEATS / 2], rate[REPEATS - 1]);
    if (limit > 0)
        printf("  (limit %.0f)", limit);
    printf("  |A| %.1f\n", active / (STEPS * LAYERS));
    moesim_builder_destroy(&builder);
    moesim_buffer_destroy(&b);
    free(info);
}

typedef double draw_fn(moesim_rng *r, uint32_t e);

static double draw_real(moesim_rng *r, uint32_t e) { (void)e; return moesim_rng_real(r); }
static double draw_clock(moesim_rng *r, uint32_t e) { (void)e; return 1e6 - (double)(moesim_rng_below(r, 40)); }
static double draw_half(moesim_rng *r, uint32_t e) { return e % 2 ? 0.0 : moesim_rng_real(r); }
static double draw_skewed(moesim_rng *r, uint32_t e) { (void)e; return exp(-20 * moesim_rng_real(r)); }

static void bench_select(const moesim_kernels *k, const char *what, draw_fn *draw, uint32_t candidates, uint32_t slots)
{
    enum { PROBLEMS = 64 };   /* 256 KiB of keys: within the second-level cache */
    static double value[PROBLEMS][EXPERTS], tie[PROBLEMS][EXPERTS];
    static uint64_t set[PROBLEMS][EXPERTS / 64], resident[PROBLEMS][EXPERTS / 64], key[PROBLEMS][EXPERTS];
    uint64_t keep[EXPERTS / 64], sink = 0;
    moesim_rng r;
    moesim_rng_seed(&r, 11);
    memset(set, 0, sizeof set);
    memset(resident, 0, sizeof resident);
    for (uint32_t i = 0; i < PROBLEMS; i++) {
        for (uint32_t n = 0; n < candidates;) {
            uint32_t e = moesim_rng_below(&r, EXPERTS);
            if (moesim_bit_test(set[i], e))
                continue;
            moesim_bit_set(set[i], e);
            if (n++ < slots)
                moesim_bit_set(resident[i], e);
        }
        for (uint32_t e = 0; e < EXPERTS; e++) {
            value[i][e] = moesim_bit_test(set[i], e) ? draw(&r, e) : NAN;
            tie[i][e] = draw_clock(&r, e) + draw_real(&r, e);
            key[i][e] = (uint64_t)(value[i][e] < 2 ? value[i][e] * 1e6 : value[i][e]);
        }
    }
    double time[REPEATS], key_time[REPEATS];
    for (int n = 0; n < REPEATS; n++) {
        double start = seconds();
        for (uint32_t j = 0; j < 16 * PROBLEMS; j++) {
            const uint32_t i = j % PROBLEMS;
            sink += (uint64_t)k->select(value[i], tie[i], set[i], resident[i], EXPERTS / 64, slots, keep, NULL) + keep[0];
        }
        time[n] = (seconds() - start) / (16 * PROBLEMS) * 1e9;
        start = seconds();
        for (uint32_t j = 0; j < 16 * PROBLEMS; j++) {
            const uint32_t i = j % PROBLEMS;
            k->select_key(key[i], set[i], resident[i], EXPERTS / 64, slots, keep, NULL);
            sink += keep[0];
        }
        key_time[n] = (seconds() - start) / (16 * PROBLEMS) * 1e9;
    }
    sort(time);
    sort(key_time);
    printf("select %-6s %-8s %3u of %3u: median %5.0f best %5.0f ns, by key %5.0f %5.0f ns (checksum %016llx)\n", k->name,
           what, slots, candidates, time[REPEATS / 2], time[0], key_time[REPEATS / 2], key_time[0],
           (unsigned long long)sink);
}

int main(void)
{
    printf("kernels: %s; %d layers, %d experts, %d rows, top-%d\n", moesim_kernels_get()->name, LAYERS, EXPERTS, ROWS, TOP_K);
    bench_case("sets", 0, true, false, 5);
    bench_case("sets and lists", 0, false, false, 5);
    bench_case("counts", MOESIM_NEED_COUNTS, false, false, 0);
    bench_case("counts and gate mass", MOESIM_NEED_COUNTS | MOESIM_NEED_MASS, false, false, 2);
    bench_case("weighted gate mass", MOESIM_NEED_WEIGHTED, false, false, 0);
    bench_case("class sums", MOESIM_NEED_CLASS, false, false, 0);
    bench_case("touches", 0, false, true, 0);
    bench_case("everything", MOESIM_NEED_COUNTS | MOESIM_NEED_MASS | MOESIM_NEED_WEIGHTED | MOESIM_NEED_HINDSIGHT |
               MOESIM_NEED_CLASS, false, true, 0);
    static const struct { const char *name; draw_fn *draw; } kinds[] = {
        { "uniform", draw_real }, { "clock", draw_clock }, { "half 0", draw_half }, { "skewed", draw_skewed },
    };
    for (const moesim_kernels *const *k = moesim_kernels_all(); *k != NULL; k++) {
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            bench_select(*k, kinds[i].name, kinds[i].draw, 75, 40);
            bench_select(*k, kinds[i].name, kinds[i].draw, 150, 100);
        }
    }
    return 0;
}
