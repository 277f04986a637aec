/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine against the witness on random traces: every sum equal, policy by policy, capacity by capacity, with warm-up,
 * ranges of requests, merged batches, recorded batches, empty and dummy passes. usage: differential [SEEDS [FIRST_SEED]]
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/property/shapes.h"
#include "tests/property/witness.h"

static const char *const policies[] = {"naive", "lru", "lfu", "lfru", "oled", "oled:confidence=none",
                                       "oled:confidence=hindsight", "surv:boundary=commit", "belady", "belady-forced"};
#define POLICIES (sizeof policies / sizeof policies[0])
#define CACHES 4u

static const char *where;

static void same(const char *policy, uint32_t cache, const char *what, double engine, double witness)
{
    ck_assert_msg(fabs(engine - witness) <= 1e-9 * fmax(1, fabs(witness)),
                  "%s, %s at C = %u: %s is %.17g, the witness has %.17g", where, policy, cache, what, engine, witness);
}

static void compare(const char *policy, uint32_t cache, const moesim_outcome *out, const struct witness *w)
{
    const moesim_sums *s = &out->total;
    const struct { const char *what; double engine, witness; } row[] = {
        {"passes", s->passes, w->passes},
        {"events", s->events, w->events},
        {"active", s->active, w->active},
        {"hits", s->hits, w->hits},
        {"misses", s->misses, w->misses},
        {"floor", s->floor, w->floor},
        {"moved", s->moved, w->misses},
        {"moved_bytes", s->moved_bytes, w->bytes},
        {"ratio_over", s->ratio_over, w->ratio_over},
        {"transfers_judged", s->transfers_judged, w->judged},
        {"transfers_used", s->transfers_used, w->used},
        {"unused", s->unused, w->unused},
        {"pending", (double)out->pending, (double)w->pending},
        {"output_tokens", s->output_tokens, w->tokens},
        {"all_accesses", (double)out->all_accesses, (double)w->accesses},
        {"all_hits", (double)out->all_hits, (double)w->all_hits},
        {"read_bytes", (double)out->read_bytes, (double)w->read_bytes},
        {"insertions", (double)out->insertions, (double)w->insertions},
        {"evictions", (double)out->evictions, (double)w->evictions},
        {"prefill_passes", s->prefill_passes, w->prefill_passes},
        {"prefill_misses", s->prefill_misses, w->prefill_misses},
        {"prefill_moved_bytes", s->prefill_moved_bytes, w->prefill_bytes},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        same(policy, cache, row[i].what, row[i].engine, row[i].witness);
    if (cache > 0) {
        same(policy, cache, "utilisation", s->utilisation, w->utilisation);
        same(policy, cache, "ratio_sum", s->ratio_sum, w->ratio_sum);
        ck_assert_double_le(s->utilisation, w->most * (1 + 1e-12));
    }
}

static void check_flattened(const struct test_trace *t, const char *path, const moesim_run_params *params, uint32_t cache)
{
    moesim_run_params flattened = *params;
    moesim_outcome out;
    struct witness w;
    flattened.order = MOESIM_FLATTENED;
    test_run(path, "lru", cache, &flattened, &out);
    witness_flattened(t, cache, params, &w);
    same("flattened lru", cache, "hits", out.total.hits, w.hits);
    same("flattened lru", cache, "active", out.total.active, w.active);
    same("flattened lru", cache, "all_hits", (double)out.all_hits, (double)w.all_hits);
    moesim_outcome_fini(&out);
}

static void check_global(const struct test_trace *t, const char *path, const moesim_run_params *params, uint64_t bytes)
{
    static const char *const global[] = {"lru", "lfu", "belady"};
    for (size_t i = 0; i < sizeof global / sizeof global[0]; i++) {
        moesim_outcome out;
        struct witness w;
        test_run_global(path, global[i], bytes, params, &out);
        witness_global(t, global[i], bytes, params, &w);
        same(global[i], (uint32_t)bytes, "global hits", out.total.hits, w.hits);
        same(global[i], (uint32_t)bytes, "global active", out.total.active, w.active);
        same(global[i], (uint32_t)bytes, "global all_hits", (double)out.all_hits, (double)w.all_hits);
        same(global[i], (uint32_t)bytes, "global read_bytes", (double)out.read_bytes, (double)w.read_bytes);
        same(global[i], (uint32_t)bytes, "global insertions", (double)out.insertions, (double)w.insertions);
        same(global[i], (uint32_t)bytes, "global evictions", (double)out.evictions, (double)w.evictions);
        moesim_outcome_fini(&out);
    }
}

START_TEST(test_engine_equals_witness)
{
    const char *path = test_path("differential.h5");
    for (uint64_t seed = property_first; seed < property_first + property_seeds; seed++) {
        moesim_rng rng;
        moesim_rng_seed(&rng, seed);
        struct test_shape shape = property_shape(&rng);
        moesim_run_params params = property_params(&rng, &shape);
        where = property_case(seed, &shape, &params);
        struct test_trace t;
        test_trace_random(&t, &shape, seed);
        for (uint32_t l = 0; l < shape.layers; l++)
            t.expert_bytes[l] = 1000 + 270 * l;
        test_trace_write(&t, path);
        uint32_t caches[CACHES] = {0, 1, 1 + moesim_rng_below(&rng, shape.experts), shape.experts};
        moesim_outcome out[POLICIES * CACHES];
        test_run_grid(path, policies, POLICIES, caches, CACHES, &params, out);
        for (size_t i = 0; i < POLICIES * CACHES; i++) {
            struct witness w;
            witness_run(&t, policies[i / CACHES], caches[i % CACHES], &params, &w);
            compare(policies[i / CACHES], caches[i % CACHES], &out[i], &w);
            moesim_outcome_fini(&out[i]);
        }
        check_flattened(&t, path, &params, caches[2]);
        check_global(&t, path, &params, 1000 * (1 + moesim_rng_below(&rng, shape.experts * shape.layers)));
        test_trace_fini(&t);
    }
    printf("%llu traces: %zu configurations equal the witness\n", (unsigned long long)property_seeds,
           (size_t)property_seeds * POLICIES * CACHES);
}
END_TEST

int main(int argc, char **argv)
{
    return property_main(argc, argv, "differential", test_engine_equals_witness, 120);
}
