/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold on every machine and event: equality with the plain second implementation, parts that partition the total,
 * and which change can never cost time.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/timing/machine.h"
#include "tests/unit/timing/reference.h"

enum { CASES = 20000 };

static const uint32_t no_contention = MOESIM_EFFECT_ALL & ~(uint32_t)MOESIM_EFFECT_CONTENTION;

static double event_time(const moesim_parts *p) { return p->hits + p->link + p->cpu + p->dram; }

static void check_parts(const moesim_parts *p)
{
    const double part[] = {p->other_gpu, p->other_host, p->sync, p->hits, p->link, p->cpu, p->dram, p->policy, p->head};
    double sum = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        ck_assert_double_ge(part[i], 0);
        sum += part[i];
    }
    ck_assert_double_eq(sum, p->total);
    ck_assert_double_ge(p->busy_link, 0);
    ck_assert_double_le(p->busy_link, p->total * (1 + 1e-12));
    ck_assert_double_le(p->busy_gpu, p->total * (1 + 1e-12));
    ck_assert_double_le(p->busy_cpu, p->total * (1 + 1e-12));
}

static uint32_t random_effects(moesim_rng *rng)
{
    uint32_t effects = MOESIM_EFFECT_ALL;
    if (moesim_rng_below(rng, 3) == 0)
        effects &= ~(uint32_t)MOESIM_EFFECT_CONTENTION;
    if (moesim_rng_below(rng, 5) == 0)
        effects &= ~(uint32_t)MOESIM_EFFECT_OVERLAP;
    return effects;
}

static reference_machine second(const moesim_profile *profile, double bandwidth, uint32_t effects, uint32_t staging)
{
    const int overlap = (effects & MOESIM_EFFECT_OVERLAP) != 0;
    return (reference_machine){profile, bandwidth, overlap ? staging : 1, (effects & MOESIM_EFFECT_CONTENTION) != 0, overlap};
}

/* Single events without prefetches. */
START_TEST(test_reference)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, 1);
    for (int i = 0; i < CASES; i++) {
        moesim_profile profile;
        machine_work w;
        reference_link link = {.n = 0};
        double busy;
        machine_random_profile(&rng, &profile);
        machine_random_work(&rng, &w);
        const uint32_t staging = 1 + moesim_rng_below(&rng, 6), effects = random_effects(&rng);
        const moesim_parts p = machine_event(&profile, 0, effects, staging, &w.work);
        const reference_machine m = second(&profile, profile.link_bandwidth.value, effects, staging);
        const double end = reference_event(&m, &w.work, &link, &busy);
        check_parts(&p);
        ck_assert_msg(fabs(event_time(&p) - end) < 1e-9, "case %d: %.12g, the second implementation %.12g", i, event_time(&p),
                      end);
        ck_assert_double_eq_tol(p.busy_link, busy, 1e-9);
    }
}
END_TEST

static uint32_t random_list(moesim_rng *rng, moesim_landed *list)
{
    const uint32_t n = moesim_rng_below(rng, 12);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (moesim_landed){moesim_rng_below(rng, MACHINE_LAYERS), (i * 5 + moesim_rng_below(rng, 5)) % 64};
    return n;
}

static void replace(reference_link *k, const moesim_landed *list, uint32_t n)
{
    k->n = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!k->busy || list[i].layer != k->flying.layer || list[i].expert != k->flying.expert)
            k->list[k->n++] = list[i];
}

/* Landings of both, in order. */
static void same_landings(moesim_executor *x, reference_link *k)
{
    moesim_landed landed[256];
    const uint32_t n = x->ops->landed(x, landed, 256);
    ck_assert_uint_eq(n, k->num_landed);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq(landed[i].layer, k->landed[i].layer);
        ck_assert_uint_eq(landed[i].expert, k->landed[i].expert);
    }
    k->num_landed = 0;
}

/* Runs of events with prefetch lists that are replaced now and then. */
START_TEST(test_reference_with_prefetches)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, 2);
    for (int i = 0; i < CASES / 20; i++) {
        moesim_profile profile;
        machine_work w;
        reference_link link = {.n = 0};
        machine_random_profile(&rng, &profile);
        const uint32_t staging = 1 + moesim_rng_below(&rng, 6), effects = random_effects(&rng);
        const reference_machine m = second(&profile, profile.link_bandwidth.value, effects, staging);
        const double gate = profile.other_gpu.value + profile.other_host.value + profile.sync.value + profile.policy.value;
        moesim_costing *c = machine_costing(&profile, MOESIM_TIME_MODEL, 0, effects, staging);
        moesim_executor *x = machine_executor(c, 64);
        for (int e = 0; e < 20; e++) {
            moesim_landed list[16];
            moesim_parts p = {.total = 0};
            double busy;
            machine_random_work(&rng, &w);
            if (moesim_rng_below(&rng, 3) > 0) {
                const uint32_t n = random_list(&rng, list);
                x->ops->prefetch(x, list, n);
                replace(&link, list, n);
            }
            const double before = reference_run(&m, &link, gate);
            x->ops->gate(x, &p);
            same_landings(x, &link);
            const double end = reference_event(&m, &w.work, &link, &busy);
            x->ops->event(x, &w.work, &p);
            check_parts(&p);
            ck_assert_msg(fabs(event_time(&p) - end) < 1e-8, "case %d, event %d: %.12g, the second implementation %.12g", i, e,
                          event_time(&p), end);
            ck_assert_double_eq_tol(p.busy_link, before + busy, 1e-8);
        }
        moesim_executor_destroy(&x);
        moesim_costing_destroy(&c);
    }
}
END_TEST

/* Without contention more bandwidth never costs time; with it only where link and CPU together want more than DRAM has. */
START_TEST(test_bandwidth)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, 3);
    int rises = 0;
    for (int i = 0; i < CASES / 10; i++) {
        moesim_profile profile;
        machine_work w;
        machine_random_profile(&rng, &profile);
        machine_random_work(&rng, &w);
        const uint32_t staging = 1 + moesim_rng_below(&rng, 6);
        double alone = INFINITY, shared = INFINITY, rate = 0;
        for (uint32_t k = 0; k < w.work.n_cpu; k++)
            rate = fmax(rate, MACHINE_BYTES / moesim_profile_cpu_s(&profile, w.cpu_tokens[k], MACHINE_BYTES));
        for (double bandwidth = 15; bandwidth < 600; bandwidth *= 1.07) {
            moesim_parts p = machine_event(&profile, bandwidth, no_contention, staging, &w.work);
            ck_assert_double_le(p.total, alone + 1e-11);
            ck_assert_double_eq(p.dram, 0);
            alone = p.total;
            p = machine_event(&profile, bandwidth, MOESIM_EFFECT_ALL, staging, &w.work);
            const int limited = w.work.n_cpu > 0 && w.work.n_moved > 0 && bandwidth + rate > profile.dram_bandwidth.value;
            if (!limited) {
                ck_assert_double_eq(p.dram, 0);
                ck_assert_double_le(p.total, shared + 1e-11);
            }
            rises += p.total > shared + 1e-9;
            shared = p.total;
        }
    }
    ck_assert_int_gt(rises, 0);
}
END_TEST

/* A fixed log of decisions: the sums over its events obey it too. */
START_TEST(test_bandwidth_of_a_log)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, 4);
    moesim_profile profile;
    static machine_work log[200];
    double last = INFINITY;
    machine_random_profile(&rng, &profile);
    for (int i = 0; i < 200; i++) {
        machine_random_work(&rng, &log[i]);
        log[i].work.layer = (uint32_t)i % MACHINE_LAYERS;
    }
    for (double bandwidth = 5; bandwidth < 5000; bandwidth *= 1.3) {
        moesim_costing *c = machine_costing(&profile, MOESIM_TIME_MODEL, bandwidth, no_contention, 4);
        moesim_executor *x = machine_executor(c, 0);
        moesim_parts p = {.total = 0};
        for (int i = 0; i < 200; i++)
            x->ops->event(x, &log[i].work, &p);
        ck_assert_double_lt(p.total, last);
        last = p.total;
        ck_assert_double_eq_tol(moesim_executor_now(x), p.total, 1e-9);
        moesim_executor_destroy(&x);
        moesim_costing_destroy(&c);
    }
}
END_TEST

START_TEST(test_staging)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, 5);
    int falls = 0;
    for (int i = 0; i < CASES / 10; i++) {
        moesim_profile profile;
        machine_work w;
        double last = INFINITY;
        machine_random_profile(&rng, &profile);
        machine_random_work(&rng, &w);
        for (uint32_t staging = 1; staging <= 8; staging++) {
            const moesim_parts p = machine_event(&profile, 0, no_contention, staging, &w.work);
            ck_assert_double_le(p.total, last + 1e-11);
            falls += staging > 1 && p.total < last - 1e-9;
            last = p.total;
        }
    }
    ck_assert_int_gt(falls, 0);
}
END_TEST

/* One miss: α + bytes/β + a + g(1, n). Many that arrive and are computed within a copy: the link never waits, n copies and the
 * last one's rest; bytes per second of link time are 1 / (α / bytes + 1 / β). */
START_TEST(test_link_latency_and_bandwidth)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, 6);
    for (int i = 0; i < CASES / 10; i++) {
        moesim_profile profile;
        machine_work w;
        machine_random_profile(&rng, &profile);
        machine_random_work(&rng, &w);
        w.work.n_hits = w.work.n_cpu = 0;
        const double copy = profile.link_alpha.value + MACHINE_BYTES / profile.link_bandwidth.value;
        w.work.n_moved = 1;
        moesim_parts p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &w.work);
        const double a = profile.gpu_arrival.value, c = profile.gpu_moved.value;
        const double g = a + c + moesim_profile_gpu_s(&profile, 1, w.moved_tokens[0], MACHINE_BYTES);
        ck_assert_double_eq_tol(p.link, copy + g, 1e-12 * (copy + g));
        w.work.n_moved = 30;
        double most = 0;
        for (uint32_t k = 0; k < 30; k++)
            most = fmax(most, moesim_profile_gpu_s(&profile, 1, w.moved_tokens[k], MACHINE_BYTES));
        if (most + a + c > copy)
            continue;
        p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &w.work);
        const double last = a + c + moesim_profile_gpu_s(&profile, 1, w.moved_tokens[29], MACHINE_BYTES);
        ck_assert_double_eq_tol(p.link, 30 * copy + last, 1e-12 * p.link);
        const double rate = 1 / (profile.link_alpha.value / MACHINE_BYTES + 1 / profile.link_bandwidth.value);
        ck_assert_double_eq_tol(30 * MACHINE_BYTES / p.busy_link, rate, 1e-12 * rate);
    }
}
END_TEST

/* Every switch changes what it names and nothing else. */
START_TEST(test_switches)
{
    static const struct { uint32_t effect; size_t part, more; } rows[] = {
        {MOESIM_EFFECT_SYNC, offsetof(moesim_parts, sync), 0},
        {MOESIM_EFFECT_POLICY, offsetof(moesim_parts, policy), 0},
        {MOESIM_EFFECT_OTHER, offsetof(moesim_parts, other_gpu), offsetof(moesim_parts, other_host)},
        {MOESIM_EFFECT_HEAD, offsetof(moesim_parts, head), 0},
    };
    static const uint32_t tokens[] = {4, 4, 4}, hit_tokens[] = {1, 3, 1};
    moesim_profile profile;
    machine_profile(&profile);
    profile.dram_bandwidth.value = 125;
    const moesim_work w = {.num_rows = 2, .n_hits = 3, .hit_tokens = hit_tokens, .n_moved = 3, .moved_tokens = tokens,
                           .n_cpu = 2, .cpu_tokens = tokens};
    moesim_parts all[1 + MOESIM_EFFECT_ALL];
    memset(all, 0, sizeof all);
    for (uint32_t effects = 0; effects <= MOESIM_EFFECT_ALL; effects++) {
        moesim_costing *c = machine_costing(&profile, MOESIM_TIME_MODEL, 0, effects, 4);
        moesim_executor *x = machine_executor(c, 0);
        x->ops->event(x, &w, &all[effects]);
        x->ops->end_pass(x, &all[effects]);
        check_parts(&all[effects]);
        moesim_executor_destroy(&x);
        moesim_costing_destroy(&c);
    }
    const moesim_parts *on = &all[MOESIM_EFFECT_ALL];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const moesim_parts *off = &all[MOESIM_EFFECT_ALL & ~rows[i].effect];
        double gone = *(const double *)(const void *)((const char *)on + rows[i].part);
        ck_assert_double_gt(gone, 0);
        ck_assert_double_eq(*(const double *)(const void *)((const char *)off + rows[i].part), 0);
        gone += rows[i].more > 0 ? *(const double *)(const void *)((const char *)on + rows[i].more) : 0;
        ck_assert_double_eq_tol(on->total - off->total, gone, 1e-12);
    }
    const moesim_parts *off = &all[no_contention];
    ck_assert_double_gt(on->dram, 0);
    ck_assert_double_eq(off->dram, 0);
    ck_assert_double_eq_tol(on->total - off->total, on->dram, 1e-12);
    off = &all[MOESIM_EFFECT_ALL & ~(uint32_t)MOESIM_EFFECT_OVERLAP];
    ck_assert_double_gt(off->total, on->total);
}
END_TEST

/* Everything resident: other, sync, hits, policy and head, to the last bit. */
START_TEST(test_full)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, 7);
    moesim_profile profile;
    machine_random_profile(&rng, &profile);
    moesim_costing *c = machine_costing(&profile, MOESIM_TIME_MODEL, 0, MOESIM_EFFECT_ALL, 4);
    moesim_executor *x = machine_executor(c, 0);
    moesim_parts p = {.total = 0};
    for (int pass = 0; pass < 50; pass++) {
        for (uint32_t l = 0; l < MACHINE_LAYERS; l++) {
            const uint32_t hits = 1 + moesim_rng_below(&rng, 12);
            const uint32_t tokens[12] = {1 + moesim_rng_below(&rng, 9), 1, 2, 1, 1, 4, 1, 1, 1, 1, 2, 3};
            const moesim_work w = {.layer = l, .num_rows = 4, .n_hits = hits, .hit_tokens = tokens};
            x->ops->event(x, &w, &p);
        }
        x->ops->end_pass(x, &p);
    }
    ck_assert_double_eq(p.link, 0);
    ck_assert_double_eq(p.cpu, 0);
    ck_assert_double_eq(p.dram, 0);
    ck_assert_double_eq(p.total, p.other_gpu + p.other_host + p.sync + p.hits + p.policy + p.head);
    ck_assert_double_eq_tol(p.other_gpu, 50 * MACHINE_LAYERS * profile.other_gpu.value, 1e-9);
    ck_assert_double_eq_tol(p.head, 50 * profile.head.value, 1e-9);
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&c);
}
END_TEST

/* Side by side each is what it is alone, to the last bit. */
START_TEST(test_together)
{
    enum { LANES = 6 };
    moesim_rng rng;
    moesim_rng_seed(&rng, 11);
    for (int i = 0; i < CASES / 20; i++) {
        moesim_profile profile;
        moesim_costing *c[LANES];
        moesim_executor *x[2][LANES];
        moesim_parts sum[2][LANES], *parts[LANES];
        const uint32_t effects = random_effects(&rng), staging = 1 + moesim_rng_below(&rng, 5);
        memset(sum, 0, sizeof sum);
        machine_random_profile(&rng, &profile);
        for (uint32_t k = 0; k < LANES; k++) {
            c[k] = machine_costing(&profile, MOESIM_TIME_MODEL, 10.0 + moesim_rng_below(&rng, 1000), effects, staging);
            for (uint32_t s = 0; s < 2; s++)
                x[s][k] = machine_executor(c[k], 0);
            parts[k] = &sum[0][k];
            ck_assert(moesim_executors_alike(x[0][0], x[0][k]));
        }
        for (uint32_t event = 0; event < 20; event++) {
            machine_work w;
            machine_random_work(&rng, &w);
            w.work.n_cpu = event % 4 == 3 ? w.work.n_cpu : 0;
            moesim_executors_event(x[0], LANES, true, &w.work, parts);
            for (uint32_t k = 0; k < LANES; k++)
                x[1][k]->ops->event(x[1][k], &w.work, &sum[1][k]);
        }
        ck_assert(memcmp(sum[0], sum[1], sizeof sum[0]) == 0);
        for (uint32_t k = 0; k < LANES; k++) {
            ck_assert(moesim_executor_now(x[0][k]) - moesim_executor_now(x[1][k]) == 0);
            for (uint32_t s = 0; s < 2; s++)
                moesim_executor_destroy(&x[s][k]);
            moesim_costing_destroy(&c[k]);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("timing properties");
    TCase *c = tcase_create("properties");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, test_reference);
    tcase_add_test(c, test_reference_with_prefetches);
    tcase_add_test(c, test_bandwidth);
    tcase_add_test(c, test_bandwidth_of_a_log);
    tcase_add_test(c, test_staging);
    tcase_add_test(c, test_link_latency_and_bandwidth);
    tcase_add_test(c, test_switches);
    tcase_add_test(c, test_full);
    tcase_add_test(c, test_together);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
