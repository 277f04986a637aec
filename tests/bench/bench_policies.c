/* SPDX-License-Identifier: Apache-2.0
 *
 * Events per second of every registered policy, one core, from events in memory: 20 layers × 256 experts × 16 rows × top 8,
 * |A| about 60, adjacent overlap about .87, C = 40 and 100, by the fast path that the policy declares and by the generic one.
 * Prints machine, flags and each figure beside its floor; with --gate exits 1 where a figure lies below its floor.
 * usage: bench_policies [--gate] [POLICY…]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "policies/registry.h"
#include "sim/kernels.h"
#include "tests/unit/sim/hand.h"

#ifndef BENCH_FLAGS
#define BENCH_FLAGS "unknown"
#endif

enum { LAYERS = 20, EXPERTS = 256, ROWS = 16, TOP_K = 8, STEPS = 600, REPEATS = 7 };

/* Floors in million events a second; the generic path has the last one for every policy. */
static const struct { const char *policy; double floor; } floors[] = {
    {"lru", 10}, {"lfu", 3}, {"belady", 3}, {"oled", 1.5}, {"surv", 1.5}, {NULL, 0.8},
};

static double floor_of(const char *policy, bool generic)
{
    size_t i = 0;
    while (floors[i].policy != NULL && (generic || strcmp(floors[i].policy, policy) != 0))
        i++;
    return floors[i].floor;
}

/* Processor seconds of this process: one thread, so that other work on the machine counts little. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Best of some repeats: what the code can do, not what else the machine did. */
static double measure(const struct hand *h, const moesim_config *config, const moesim_run_params *params)
{
    double best = 0;
    for (int r = 0; r < REPEATS; r++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_instance *in;
        if (moesim_instance_create(&h->shape, params, config, &in, &err) != MOESIM_OK) {
            fprintf(stderr, "%s\n", err.text);
            exit(2);
        }
        const double begin = now();
        if (moesim_instance_advance(in, &h->window, &err) != MOESIM_OK) {
            fprintf(stderr, "%s\n", err.text);
            exit(2);
        }
        const double rate = (double)STEPS * LAYERS / (now() - begin) / 1e6;
        best = rate > best ? rate : best;
        moesim_instance_destroy(&in);
    }
    return best;
}

static void print_machine(const struct hand *h)
{
    char line[256], model[256] = "unknown";
    FILE *in = fopen("/proc/cpuinfo", "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL)
            snprintf(model, sizeof model, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    }
    if (in != NULL)
        fclose(in);
    uint64_t active = 0, shared = 0;
    for (size_t e = LAYERS; e < (size_t)STEPS * LAYERS; e++)
        for (uint32_t i = 0; i < h->window.words; i++) {
            const uint64_t a = h->window.active[e * h->window.words + i];
            active += (uint64_t)__builtin_popcountll(a);
            shared += (uint64_t)__builtin_popcountll(a & h->window.active[(e - LAYERS) * h->window.words + i]);
        }
    printf("machine: %s; kernels: %s; compiler: %s; flags: %s\n", model, moesim_kernels_get()->name, __VERSION__, BENCH_FLAGS);
    printf("events: %d, %d layers, %d experts, %d rows x top %d, |A| %.1f, adjacent overlap %.3f\n\n", STEPS * LAYERS, LAYERS,
           EXPERTS, ROWS, TOP_K, (double)active / ((double)(STEPS - 1) * LAYERS), (double)shared / (double)active);
    printf("%-14s %5s %-8s %12s %8s %8s %8s\n", "policy", "C", "path", "M events/s", "ns", "floor", "ratio");
}

/* Returns the number of figures below their floor. */
static int bench_policy(const struct hand *h, const char *name)
{
    static const uint32_t caches[] = {40, 100};
    moesim_policy_spec spec;
    moesim_error err = MOESIM_ERROR_INIT;
    int below = 0;
    if (moesim_policy_spec_init(&spec, name, &err) != MOESIM_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    const uint32_t needs = spec.policy->needs != NULL ? spec.policy->needs(spec.options) : 0;
    const size_t runs = (needs & (MOESIM_NEED_COSTS | MOESIM_NEED_PRIOR)) == 0 ? sizeof caches / sizeof *caches : 0;
    for (size_t c = 0; c < runs; c++)
        for (int generic = 0; generic < 2; generic++) {
            moesim_run_params params;
            moesim_run_params_defaults(&params);
            params.generic = generic != 0;
            /* host modes and policies without an order kind have one path */
            if (generic != 0 && spec.policy->order == MOESIM_ORDER_GENERIC)
                continue;
            const moesim_config config = {.policy = spec.policy, .options = spec.options, .label = name, .cache = caches[c]};
            const double rate = measure(h, &config, &params), floor = floor_of(name, generic != 0);
            printf("%-14s %5u %-8s %12.2f %8.0f %8.1f %8.2f%s\n", name, caches[c], generic != 0 ? "generic" : "declared", rate,
                   1e3 / rate, floor, rate / floor, rate < floor ? "  below" : "");
            below += rate < floor && spec.policy->host_mode == MOESIM_HOST_NONE;
        }
    moesim_policy_spec_fini(&spec);
    return below;
}

static const double *class_weights(void)
{
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++)
        if ((*p)->class_weight != NULL)
            return (*p)->class_weight;
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct hand_law law = {44, 0.3, 0.19};
    struct hand h;
    bool gate = false, named = false;
    int below = 0;
    hand_init(&h, STEPS, LAYERS, EXPERTS, ROWS, TOP_K);
    h.class_weight = class_weights();
    hand_random(&h, &law, 1);
    hand_build(&h);
    print_machine(&h);
    for (int i = 1; i < argc; i++) {
        const bool flag = strcmp(argv[i], "--gate") == 0;
        gate |= flag;
        named |= !flag;
        below += flag ? 0 : bench_policy(&h, argv[i]);
    }
    for (const moesim_policy *const *p = moesim_policies(); !named && *p != NULL; p++)
        below += bench_policy(&h, (*p)->name);
    hand_fini(&h);
    printf("\n%d figures below their floor\n", below);
    return gate && below > 0;
}
