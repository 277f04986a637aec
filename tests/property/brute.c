/* SPDX-License-Identifier: Apache-2.0
 *
 * Clairvoyant policies against exhaustive search: on small random traces with prefill passes, warm-up requests, dummy and empty
 * passes among them, the counted misses of belady, belady-forced and belady-pooled are the least that any choice of what to
 * keep can reach. usage: brute [SEEDS [FIRST_SEED]]
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

#define NONE UINT32_MAX

static uint64_t seeds = 200, first_seed = 1;

/* What the search sees: the sets of all events in order, layer after layer within a pass, as bits layer·E + expert. */
struct problem {
    uint32_t layers, experts, slots;
    size_t num_events;
    struct { uint32_t active, layer; bool counted; } event[256];
};

enum rule { BYPASS, FORCED };

static uint32_t bits(uint32_t x)
{
    return (uint32_t)__builtin_popcount(x);
}

static void extract(const struct test_trace *t, uint32_t warmup, uint32_t slots, struct problem *p)
{
    memset(p, 0, sizeof *p);
    p->layers = t->info.num_layers;
    p->experts = t->info.num_experts;
    p->slots = slots;
    for (size_t i = 0; i < t->num_passes; i++) {
        const moesim_pass *pass = &t->pass[i].pass;
        if (pass->kind == MOESIM_PASS_DUMMY)
            continue;
        for (uint32_t l = 0; l < p->layers; l++) {
            uint32_t active = 0;
            for (size_t r = pass->row_begin; r < pass->row_end; r++)
                for (uint32_t k = 0; k < t->info.top_k; k++) {
                    uint16_t id = t->expert[(r * p->layers + l) * t->info.top_k + k];
                    if (id != MOESIM_NO_ROUTE)
                        active |= 1u << (l * p->experts + id);
                }
            if (p->num_events == sizeof p->event / sizeof p->event[0])
                test_die("the trace is too long for the search");
            p->event[p->num_events].active = active;
            p->event[p->num_events].layer = l;
            p->event[p->num_events++].counted = pass->kind != MOESIM_PASS_PREFILL && pass->request >= warmup;
        }
    }
}

/* May `next` be resident after an event with these candidates? */
static bool allowed(enum rule rule, uint32_t active, uint32_t next, uint32_t slots)
{
    if (bits(next) > slots)
        return false;
    if (rule == BYPASS)
        return true;
    return bits(active) <= slots ? (active & ~next) == 0 : (next & ~active) == 0 && bits(next) == slots;
}

/* Relaxes every residency that can follow from `state`: all subsets of the candidates that the rule allows. */
static void relax(const struct problem *p, enum rule rule, uint32_t slots, size_t i, uint32_t state, uint32_t cost,
                  uint32_t *next)
{
    uint32_t active = p->event[i].active, candidates = state | active;
    if (p->event[i].counted)
        cost += bits(active & ~state);
    for (uint32_t keep = candidates;; keep = (keep - 1) & candidates) {
        if (allowed(rule, active, keep, slots) && cost < next[keep])
            next[keep] = cost;
        if (keep == 0)
            return;
    }
}

/* Least counted misses over the events of one layer (layer < M), or of all layers in one pool (layer = NONE). Every reachable
 * residency is followed, so the search is exhaustive. */
static uint32_t least(const struct problem *p, enum rule rule, uint32_t layer, uint32_t slots)
{
    size_t states = (size_t)1 << (p->layers * p->experts);
    uint32_t *cost = malloc(states * sizeof *cost), *next = malloc(states * sizeof *next), best = NONE;
    if (cost == NULL || next == NULL)
        test_die("no memory");
    memset(cost, 0xff, states * sizeof *cost);
    cost[0] = 0;
    for (size_t i = 0; i < p->num_events; i++) {
        if (layer != NONE && p->event[i].layer != layer)
            continue;
        memset(next, 0xff, states * sizeof *next);
        for (uint32_t s = 0; s < states; s++)
            if (cost[s] != NONE)
                relax(p, rule, slots, i, s, cost[s], next);
        uint32_t *swap = cost;
        cost = next;
        next = swap;
    }
    for (size_t s = 0; s < states; s++)
        best = cost[s] < best ? cost[s] : best;
    free(cost);
    free(next);
    return best;
}

static uint32_t least_by_layer(const struct problem *p, enum rule rule)
{
    uint32_t sum = 0;
    for (uint32_t l = 0; l < p->layers; l++)
        sum += least(p, rule, l, p->slots);
    return sum;
}

static void expect(const char *path, const char *policy, const struct problem *p, const moesim_run_params *params,
                   uint32_t want, uint64_t seed)
{
    moesim_outcome out;
    test_run(path, policy, p->slots, params, &out);
    ck_assert_msg(out.total.misses == want, "seed %llu: M %u E %u C %u: %s has %.17g misses, the search %u",
                  (unsigned long long)seed, p->layers, p->experts, p->slots, policy, out.total.misses, want);
    moesim_outcome_fini(&out);
}

static struct test_shape random_shape(moesim_rng *rng)
{
    struct test_shape s = {.layers = 1 + moesim_rng_below(rng, 2), .requests = 1 + moesim_rng_below(rng, 3)};
    s.experts = 3 + moesim_rng_below(rng, s.layers == 1 ? 4 : 2);
    s.top_k = 1 + moesim_rng_below(rng, 2);
    s.block_length = 1 + moesim_rng_below(rng, 3);
    s.blocks = 1 + moesim_rng_below(rng, 2);
    s.prefill_rows = moesim_rng_below(rng, 4);
    s.max_steps = 1 + moesim_rng_below(rng, 3);
    s.commit_passes = moesim_rng_below(rng, 2) == 0;
    s.empty_passes = s.dummy_passes = s.unused_slots = true;
    s.interleave = moesim_rng_below(rng, 2) == 0;
    s.redraw = 0.2 + 0.6 * moesim_rng_real(rng);
    return s;
}

START_TEST(test_search)
{
    const char *path = test_path("brute.h5");
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        moesim_rng rng;
        moesim_rng_seed(&rng, seed);
        struct test_shape shape = random_shape(&rng);
        struct test_trace t;
        struct problem p;
        moesim_run_params params;
        moesim_run_params_defaults(&params);
        params.warmup = moesim_rng_below(&rng, shape.requests);
        test_trace_random(&t, &shape, seed);
        test_trace_write(&t, path);
        uint32_t most = shape.experts < 4 ? shape.experts : 4;
        extract(&t, (uint32_t)params.warmup, 1 + moesim_rng_below(&rng, most), &p);
        expect(path, "belady", &p, &params, least_by_layer(&p, BYPASS), seed);
        expect(path, "belady-forced", &p, &params, least_by_layer(&p, FORCED), seed);
        expect(path, "belady-pooled", &p, &params, least(&p, BYPASS, NONE, p.slots * p.layers), seed);
        test_trace_fini(&t);
    }
    printf("%llu traces: belady, belady-forced and belady-pooled equal the search\n", (unsigned long long)seeds);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    Suite *suite = suite_create("brute");
    TCase *tc = tcase_create("brute");
    tcase_set_timeout(tc, 3600);
    tcase_add_test(tc, test_search);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
