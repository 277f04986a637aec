/* SPDX-License-Identifier: Apache-2.0
 *
 * What oled's decisions cost, one core: one dispatch at 10, 30 and 60 misses, and all policy work of one forward of 20 layers
 * (OLED-MoE §5 reports 3.7 to 6 ms for its own, in Python). 256 experts, 16 rows × top 8, |A| = 60, with costs that are flat
 * in tokens (measured on a host with AMX) and with the paper's, linear in tokens.
 * Prints machine, flags and each figure beside its limit; with --gate exits 1 where a figure lies above its limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policies/kit.h"
#include "policies/registry.h"

#ifndef BENCH_FLAGS
#define BENCH_FLAGS "unknown"
#endif

enum { LAYERS = 20, EXPERTS = 256, WORDS = 4, TOP_K = 8, ROWS = 16, ACTIVE = 60, EVENTS = 400, REPEATS = 15 };

#define DISPATCH_LIMIT_NS 5000.0
#define FORWARD_LIMIT_NS 100000.0

/* One event with what oled reads; the first misses of its list, in a random order, are not resident. */
struct drawn {
    uint16_t list[ACTIVE], order[ACTIVE];
    uint32_t count[ACTIVE];
    double mass[ACTIVE], weighted[ACTIVE];
    uint64_t active[WORDS], resident[WORDS], misses[WORDS], cpu[WORDS], candidates[WORDS];
    moesim_event event;
};

struct bench {
    moesim_policy_spec spec;
    moesim_shape shape;
    uint64_t expert_bytes[LAYERS];
    uint32_t slots[LAYERS];
    void *state;
    double value[EXPERTS], tie[EXPERTS];
    struct drawn drawn[EVENTS];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Microseconds of one expert on the CPU: {tokens, µs} between which they are linear. */
static const moesim_costs *flat_costs(void)
{
    static const double point[][2] = { { 1, 195 }, { 2, 231 }, { 4, 241 }, { 8, 362 }, { 12, 527 }, { 16, 692 } };
    static double h2d[LAYERS], cpu[ROWS + 1];
    static const moesim_costs costs = { .size = sizeof costs, .cpu_tokens = ROWS, .h2d_s = h2d, .cpu_s = cpu,
                                        .cpu_step_s = 5e-6 };
    for (size_t l = 0; l < LAYERS; l++)
        h2d[l] = 117.9e-6;
    for (size_t i = 0; i + 1 < sizeof point / sizeof point[0]; i++)
        for (double n = point[i][0]; n <= point[i + 1][0]; n++)
            cpu[(size_t)n] = 1e-6 * (point[i][1] + (point[i + 1][1] - point[i][1]) * (n - point[i][0]) /
                                                   (point[i + 1][0] - point[i][0]));
    return &costs;
}

static const moesim_costs *linear_costs(void)
{
    static double h2d[LAYERS], cpu[ROWS + 1];
    static const moesim_costs costs = { .size = sizeof costs, .cpu_tokens = ROWS, .h2d_s = h2d, .cpu_s = cpu };
    for (size_t l = 0; l < LAYERS; l++)
        h2d[l] = 0.11e-3;
    for (size_t n = 0; n <= ROWS; n++)
        cpu[n] = 0.19e-3 * (double)n;
    return &costs;
}

static void draw(struct bench *b, uint32_t misses, uint64_t *seed)
{
    for (uint32_t i = 0; i < EVENTS; i++) {
        struct drawn *d = &b->drawn[i];
        uint32_t n = 0;
        memset(d, 0, sizeof *d);
        while (n < ACTIVE) {
            const uint64_t e = kit_random(seed) % EXPERTS;
            n += !kit_test(d->active, (uint32_t)e);
            d->active[e >> 6] |= UINT64_C(1) << (e & 63);
        }
        n = 0;
        KIT_EACH(e, d->active, WORDS)
            d->list[n++] = (uint16_t)e;
        for (uint32_t k = 0; k < ACTIVE; k++)
            d->count[k] = 1;
        for (uint32_t k = ACTIVE; k < ROWS * TOP_K; k++) {
            const double u = kit_random_real(seed);
            uint32_t *count = &d->count[(uint32_t)(u * u * ACTIVE)];
            *count += *count < ROWS;
        }
        for (uint32_t k = ACTIVE - 1; k > 0; k--) {   /* tokens are unrelated to ids */
            const uint32_t other = (uint32_t)(kit_random(seed) % (k + 1)), count = d->count[k];
            d->count[k] = d->count[other];
            d->count[other] = count;
        }
        d->event = (moesim_event){
            .size = sizeof d->event, .layer = i % LAYERS, .clock = 1 + i / LAYERS, .kind = MOESIM_DENOISE, .num_rows = ROWS,
            .slots = 100, .n_active = ACTIVE, .n_hits = ACTIVE - misses, .n_misses = misses, .resident = d->resident,
            .active = d->active, .list = d->list, .count = d->count, .mass = d->mass, .weighted = d->weighted };
        for (uint32_t k = 0; k < ACTIVE; k++) {
            d->mass[k] = d->count[k] * kit_random_real(seed);
            d->weighted[k] = d->mass[k] * kit_random_real(seed);
            d->event.mass_total += d->mass[k];
            d->event.weighted_total += d->weighted[k];
        }
        for (uint32_t left = misses; left > 0;) {
            const uint32_t e = d->list[kit_random(seed) % ACTIVE];
            left -= !kit_test(d->misses, e);
            d->misses[e >> 6] |= UINT64_C(1) << (e & 63);
        }
        for (uint32_t w = 0; w < WORDS; w++) {
            d->resident[w] = d->active[w] & ~d->misses[w];
            d->candidates[w] = d->active[w];
        }
    }
}

static void open_policy(struct bench *b, const char *policy, const moesim_costs *costs)
{
    moesim_error err = MOESIM_ERROR_INIT;
    uint32_t own[LAYERS];
    uint64_t initial[LAYERS * WORDS] = { 0 };
    if (moesim_policy_spec_init(&b->spec, policy, &err) != MOESIM_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    for (size_t l = 0; l < LAYERS; l++) {
        b->expert_bytes[l] = 6291456;
        b->slots[l] = own[l] = 100;
    }
    b->shape = (moesim_shape){ .size = sizeof b->shape, .num_layers = LAYERS, .num_experts = EXPERTS, .top_k = TOP_K,
                               .block_length = ROWS, .words = WORDS, .max_rows = ROWS, .expert_bytes = b->expert_bytes };
    const size_t bytes = (b->spec.policy->state_bytes(&b->shape, b->spec.options) + 63) / 64 * 64;
    const moesim_open open = { .size = sizeof open, .shape = &b->shape, .slots = b->slots, .costs = costs,
                               .options = b->spec.options };
    moesim_start start = { .size = sizeof start, .slots = own, .initial = initial };
    b->state = aligned_alloc(64, bytes);
    if (b->state == NULL || (memset(b->state, 0, bytes), b->spec.policy->open(b->state, &open, &start)) != 0) {
        fprintf(stderr, "%s: %s\n", policy, start.error);
        exit(2);
    }
}

static void close_policy(struct bench *b)
{
    free(b->state);
    moesim_policy_spec_fini(&b->spec);
}

static void dispatch(struct bench *b, struct drawn *d)
{
    moesim_dispatch answer = { .size = sizeof answer, .n_misses = d->event.n_misses, .misses = d->misses, .cpu = d->cpu,
                               .order = d->order };
    memset(d->cpu, 0, sizeof d->cpu);
    (void)b->spec.policy->dispatch(b->state, &d->event, &answer);
}

static void retain(struct bench *b, struct drawn *d)
{
    moesim_keys keys = { .size = sizeof keys, .n_candidates = ACTIVE, .candidates = d->candidates, .moved = d->misses,
                         .landed = d->cpu, .value = b->value, .tie = b->tie };
    (void)b->spec.policy->retain(b->state, &d->event, &keys);
}

static void boundary(struct bench *b, uint64_t passes)
{
    const moesim_boundary at = { .size = sizeof at, .kind = MOESIM_DENOISE, .clock = passes + 1, .decode_passes = passes,
                                 .slots = b->slots };
    moesim_boundary_answer answer = { .size = sizeof answer, .slots = b->slots };
    (void)b->spec.policy->boundary(b->state, &at, &answer);
}

/* Best of some repeats, nanoseconds: of one dispatch, or of all work of one forward. */
static double measure(struct bench *b, int forward)
{
    double best = 1e300;
    for (int r = 0; r < REPEATS; r++) {
        const double begin = now();
        for (uint32_t i = 0; i < EVENTS; i++) {
            dispatch(b, &b->drawn[i]);
            if (forward)
                retain(b, &b->drawn[i]);
            if (forward && i % LAYERS == LAYERS - 1)
                boundary(b, (uint64_t)r * EVENTS / LAYERS + i / LAYERS + 1);
        }
        const double ns = 1e9 * (now() - begin) / (forward ? EVENTS / LAYERS : EVENTS);
        best = ns < best ? ns : best;
    }
    return best;
}

static int bench_costs(struct bench *b, const char *policy, const char *name, const moesim_costs *costs)
{
    static const uint32_t misses[] = { 10, 30, 60 };
    int above = 0;
    for (size_t i = 0; i < 3; i++) {
        uint64_t seed = 1;
        draw(b, misses[i], &seed);
        for (int forward = 0; forward < 2; forward++) {
            open_policy(b, policy, costs);
            const double ns = measure(b, forward), limit = forward ? FORWARD_LIMIT_NS : DISPATCH_LIMIT_NS;
            close_policy(b);
            printf("%-22s %-8s %4u %-22s %10.0f %10.0f%s\n", policy, name, misses[i],
                   forward ? "forward of 20 layers" : "one dispatch", ns, limit, ns > limit ? "  above" : "");
            above += ns > limit;
        }
    }
    return above;
}

int main(int argc, char **argv)
{
    static const char *const policies[] = { "oled-full", "oled:dispatch=load" };
    struct bench *b = calloc(1, sizeof *b);
    int above = 0;
    if (b == NULL)
        return 2;
    printf("compiler: %s; flags: %s\n", __VERSION__, BENCH_FLAGS);
    printf("%-22s %-8s %4s %-22s %10s %10s\n", "policy", "costs", "|M|", "work", "ns", "limit");
    for (size_t i = 0; i < 2; i++) {
        above += bench_costs(b, policies[i], "flat", flat_costs());
        above += bench_costs(b, policies[i], "linear", linear_costs());
    }
    free(b);
    printf("\n%d figures above their limit\n", above);
    return argc > 1 && strcmp(argv[1], "--gate") == 0 && above > 0;
}
