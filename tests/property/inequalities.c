/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold on every trace and capacity: bounds above policies, hits that do not fall with capacity, capacity kept,
 * conservation of transfers, and outcomes that depend on neither window size, threads, nor the host's fast paths.
 * usage: inequalities [SEEDS [FIRST_SEED]]
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/metrics.h"
#include "tests/property/shapes.h"

static const char *const online[] = {"random", "naive", "lru", "lfu", "lfu:decay=3", "lfru", "oled", "oled:confidence=none",
                                     "oled:confidence=hindsight", "surv", "next-pass", "belady-forced"};
#define ONLINE (sizeof online / sizeof online[0])
static const char *const bounds[] = {"belady", "ideal", "ideal-pooled", "belady-pooled", "full"};
enum { BELADY, IDEAL, IDEAL_POOLED, BELADY_POOLED, FULL, BOUNDS };

static const char *where;

#define HOLDS(condition, policy, cache) \
    ck_assert_msg(condition, "%s, %s at C = %u: " #condition " does not hold", where, policy, cache)

/* No policy beats the bounds; every event's hits stay within min(C, |A|). */
static void check_bounds(const char *path, const moesim_run_params *params, uint32_t cache)
{
    moesim_outcome out[ONLINE], bound[BOUNDS];
    test_run_grid(path, online, ONLINE, &cache, 1, params, out);
    test_run_grid(path, bounds, BOUNDS, &cache, 1, params, bound);
    double ideal = bound[IDEAL].total.hits, belady = bound[BELADY].total.hits;
    HOLDS(belady <= ideal, "belady", cache);
    HOLDS(ideal <= bound[IDEAL_POOLED].total.hits, "ideal-pooled", cache);
    HOLDS(belady <= bound[BELADY_POOLED].total.hits, "belady-pooled", cache);
    HOLDS(bound[BELADY_POOLED].total.hits <= bound[IDEAL_POOLED].total.hits, "belady-pooled", cache);
    HOLDS(bound[FULL].total.misses == 0, "full", cache);
    HOLDS(bound[IDEAL].total.misses == bound[IDEAL].total.floor, "ideal", cache);
    for (size_t i = 0; i < ONLINE; i++) {
        HOLDS(out[i].total.hits <= belady, online[i], cache);
        HOLDS(cache == 0 || out[i].total.utilisation <= bound[IDEAL].total.utilisation + 1e-9, online[i], cache);
        HOLDS(out[i].total.misses >= out[i].total.floor, online[i], cache);
        HOLDS(out[i].overshoot_bytes == 0, online[i], cache);
        moesim_outcome_fini(&out[i]);
    }
    for (size_t i = 0; i < BOUNDS; i++)
        moesim_outcome_fini(&bound[i]);
}

static void check_monotone(const char *path, const moesim_run_params *params, uint32_t experts)
{
    static const char *const stack[] = {"lru", "belady", "oled", "ideal"};
    uint32_t caches[12], n = 0;
    for (uint32_t c = 0; c < experts && n < 11; c += 1 + experts / 11)
        caches[n++] = c;
    caches[n++] = experts;
    moesim_outcome out[4 * 12];
    test_run_grid(path, stack, 4, caches, n, params, out);
    for (uint32_t p = 0; p < 4; p++)
        for (uint32_t i = 1; i < n; i++)
            HOLDS(out[p * n + i].total.hits >= out[p * n + i - 1].total.hits, stack[p], caches[i]);
    for (uint32_t i = 0; i < 4 * n; i++)
        moesim_outcome_fini(&out[i]);
}

/* Follows residency through the decision log of one configuration: what was moved is resident until it is listed as evicted. */
static void follow(const struct test_decisions *d, uint32_t layers, uint32_t experts, uint32_t cache, const char *policy,
                   const moesim_outcome *out)
{
    bool *resident = calloc((size_t)layers * experts, 1), *used = calloc((size_t)layers * experts, 1);
    uint32_t *held = calloc(layers, sizeof *held);
    uint64_t left = 0, end = 0;
    ck_assert(resident != NULL && held != NULL && used != NULL);
    for (size_t i = 0; i < d->num_events; i++) {
        bool *here = resident + (size_t)d->layer[i] * experts, *before = used + (size_t)d->layer[i] * experts;
        uint64_t active = d->hits_begin[i + 1] - d->hits_begin[i] + d->moved_begin[i + 1] - d->moved_begin[i];
        for (uint64_t j = d->hits_begin[i]; j < d->hits_begin[i + 1]; j++)
            HOLDS(here[d->hits[j]], policy, cache);
        for (uint64_t j = d->moved_begin[i]; j < d->moved_begin[i + 1]; j++) {
            HOLDS(!here[d->moved[j]], policy, cache);
            HOLDS(cache < experts || !before[d->moved[j]], policy, cache);
            here[d->moved[j]] = before[d->moved[j]] = true;
        }
        for (uint64_t j = d->evicted_begin[i]; j < d->evicted_begin[i + 1]; j++) {
            HOLDS(here[d->evicted[j]], policy, cache);
            here[d->evicted[j]] = false;
        }
        held[d->layer[i]] = 0;
        for (uint32_t e = 0; e < experts; e++)
            held[d->layer[i]] += here[e];
        HOLDS(held[d->layer[i]] <= cache, policy, cache);
        HOLDS(d->hits_begin[i + 1] - d->hits_begin[i] <= (active < cache ? active : cache), policy, cache);
        left += d->evicted_begin[i + 1] - d->evicted_begin[i];
    }
    for (uint32_t l = 0; l < layers; l++)
        end += held[l];
    HOLDS(out->insertions - out->evictions == end, policy, cache);
    HOLDS(d->moved_begin[d->num_events] - left == end, policy, cache);
    free(resident);
    free(used);
    free(held);
}

static void check_decisions(const char *path, const moesim_run_params *params, const struct test_shape *shape,
                            const char *policy, uint32_t cache)
{
    moesim_outcome out;
    struct test_decisions d;
    test_run_decisions(path, policy, cache, params, &out, &d);
    follow(&d, shape->layers, shape->experts, cache, policy, &out);
    HOLDS(d.hits_begin[d.num_events] == out.all_hits, policy, cache);
    HOLDS(d.hits_begin[d.num_events] + d.moved_begin[d.num_events] == out.all_accesses, policy, cache);
    HOLDS(out.total.active == out.total.hits + out.total.misses, policy, cache);
    HOLDS(out.total.misses == out.total.moved + out.total.cpu, policy, cache);
    HOLDS(out.total.unused + (double)out.pending <= out.total.moved + out.total.prefetched, policy, cache);
    test_decisions_fini(&d);
    moesim_outcome_fini(&out);
}

/* The same configuration under every way to run it. */
static void check_ways(const char *path, const moesim_run_params *params, const char *policy, uint32_t cache)
{
    moesim_outcome base, other;
    moesim_run_params way[3] = {*params, *params, *params};
    way[0].generic = true;
    way[1].threads = 4;
    way[2].window_bytes = 1;
    test_run(path, policy, cache, params, &base);
    for (size_t i = 0; i < 3; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        for (;;) {
            moesim_code code = test_try_run(path, policy, cache, &way[i], &other, &err);
            if (code == MOESIM_OK)
                break;
            ck_assert_msg(i == 2 && code == MOESIM_E_USAGE, "%s: %s", where, err.text);   /* less than one step fits */
            way[i].window_bytes *= 2;
        }
        HOLDS(test_outcome_equal(&base, &other), policy, cache);
        moesim_outcome_fini(&other);
    }
    moesim_outcome_fini(&base);
}

/* Adaptive capacities stay below the pooled bound; selecting at the end of the pass decides as knowing this pass's confidences
 * while it runs does. */
static void check_oled(const char *path, const moesim_run_params *params, uint32_t cache)
{
    static const char *const forms[] = {"oled:confidence=deferred", "oled:confidence=hindsight", "oled:adapt=on,enforce=eager",
                                        "oled:adapt=on,adapt-form=damped,enforce=eager", "belady-pooled"};
    moesim_outcome out[5];
    test_run_grid(path, forms, 5, &cache, 1, params, out);
    HOLDS(out[0].total.hits == out[1].total.hits, forms[0], cache);
    HOLDS(out[0].evictions == out[1].evictions, forms[0], cache);
    HOLDS(out[2].total.hits <= out[4].total.hits, forms[2], cache);
    HOLDS(out[3].total.hits <= out[4].total.hits, forms[3], cache);
    for (size_t i = 0; i < 5; i++)
        moesim_outcome_fini(&out[i]);
}

/* A trace whose passes say that each ran alone decides as one that says nothing. */
static void check_forward(struct test_trace *t, const char *path, const moesim_run_params *params, const char *policy,
                          uint32_t cache)
{
    moesim_outcome with, without;
    moesim_run_params alone = *params;
    alone.batch = 1;
    for (size_t p = 0; p < t->num_passes; p++)
        t->pass[p].pass.forward = 3 * p;
    t->info.has_forward = true;
    test_trace_write(t, path);
    test_run(path, policy, cache, &alone, &with);
    t->info.has_forward = false;
    test_trace_write(t, path);
    test_run(path, policy, cache, &alone, &without);
    HOLDS(test_outcome_equal(&with, &without), policy, cache);
    moesim_outcome_fini(&with);
    moesim_outcome_fini(&without);
}

/* Sums of the requests add up to the total. */
static void check_requests(const char *path, const moesim_run_params *params, const char *policy, uint32_t cache)
{
    moesim_outcome out;
    moesim_sums sum = {0};
    test_run(path, policy, cache, params, &out);
    ck_assert_uint_eq(out.num_requests, params->request_end - params->request_begin - params->warmup);
    size_t n = sizeof sum / sizeof(double);
    double parts[sizeof sum / sizeof(double)] = {0}, total[sizeof sum / sizeof(double)];
    memcpy(total, &out.total, sizeof total);
    for (uint32_t r = 0; r < out.num_requests; r++) {
        double one[sizeof sum / sizeof(double)];
        memcpy(one, &out.request[r], sizeof one);
        ck_assert_uint_eq(out.request_id[r], params->request_begin + params->warmup + r);
        for (size_t i = 0; i < n; i++)
            parts[i] += one[i];
    }
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs(parts[i] - total[i]) <= 1e-9 * fmax(1, fabs(total[i])) || (isnan(parts[i]) && isnan(total[i])),
                      "%s, %s at C = %u: sum %zu over requests is %.17g, in total %.17g", where, policy, cache, i, parts[i],
                      total[i]);
    moesim_outcome_fini(&out);
}

START_TEST(test_properties)
{
    const char *path = test_path("inequalities.h5");
    for (uint64_t seed = property_first; seed < property_first + property_seeds; seed++) {
        moesim_rng rng;
        moesim_rng_seed(&rng, seed);
        struct test_shape shape = property_shape(&rng);
        moesim_run_params params = property_params(&rng, &shape);
        where = property_case(seed, &shape, &params);
        struct test_trace t;
        test_trace_random(&t, &shape, seed);
        test_trace_write(&t, path);
        const uint32_t caches[] = {0, 1, 1 + moesim_rng_below(&rng, shape.experts), shape.experts};
        check_monotone(path, &params, shape.experts);
        for (size_t c = 0; c < 4; c++) {
            const char *policy = online[(seed + c) % ONLINE];
            check_bounds(path, &params, caches[c]);
            check_decisions(path, &params, &shape, policy, caches[c]);
            check_decisions(path, &params, &shape, "belady", caches[c]);
            check_ways(path, &params, policy, caches[c]);
            check_ways(path, &params, bounds[(seed + c) % BOUNDS], caches[c]);
            check_requests(path, &params, policy, caches[c]);
            check_oled(path, &params, caches[c]);
        }
        check_forward(&t, path, &params, online[seed % ONLINE], caches[2]);
        test_trace_fini(&t);
    }
    printf("%llu traces hold\n", (unsigned long long)property_seeds);
}
END_TEST

int main(int argc, char **argv)
{
    return property_main(argc, argv, "inequalities", test_properties, 15);
}
