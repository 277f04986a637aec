/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays on null and host: what is executed is what the simulator decides, locked and live, for every policy; wrong results
 * are found; what cannot be executed is refused.
 */
#include <math.h>

#include "tests/unit/replay/common.h"

static const char *const policies[] = {
    "naive", "lru", "lfu", "lfru", "random", "oled", "oled:confidence=deferred", "oled-full", "oled-full:enforce=eager", "surv",
    "belady", "belady-forced", "belady-pooled", "next-pass", "full", NULL,
};

/* One policy, one cell, both modes; the digests must be those of the log. */
static void check_modes(const char *path, const char *policy, uint32_t cache, const char *device)
{
    moesim_error err = MOESIM_ERROR_INIT;
    char digest[2][MOESIM_DIGEST_CHARS];
    for (int mode = MOESIM_REPLAY_LOCKED; mode <= MOESIM_REPLAY_LIVE; mode++) {
        moesim_trace *trace = open_trace(path);
        moesim_bench_config config = bench_config(trace, backend(device));
        moesim_policy_spec spec;
        moesim_bench *bench = NULL;
        moesim_replay_file none;
        uint32_t plan = 9;
        config.mode = (enum moesim_replay_mode)mode;
        test_spec(&spec, policy);
        moesim_replay_file_init(&none);
        WORKS(moesim_bench_create(&config, &bench, &err));
        WORKS(try_plan(bench, &spec, cache, &plan, &err));
        WORKS(moesim_bench_open(bench, &none, &err));
        WORKS(moesim_bench_run(bench, plan, 0, 0, 0, &err));
        const moesim_replay_file *f = moesim_bench_file(bench);
        ck_assert_uint_eq(f->num_cells, 1);
        ck_assert_str_eq(f->cell[0].executed, f->plan[0].decisions);
        memcpy(digest[mode], f->cell[0].executed, MOESIM_DIGEST_CHARS);
        const bool computes = strcmp(device, "null") != 0;
        ck_assert_int_eq(f->cell[0].verified > 0, computes);
        ck_assert(f->cell[0].worst_error <= 1e-2);
        moesim_bench_destroy(&bench);
        moesim_policy_spec_fini(&spec);
        moesim_trace_close(&trace);
    }
    ck_assert_str_eq(digest[0], digest[1]);
}

START_TEST(modes)
{
    const char *path = random_trace("t.h5", 3);
    for (size_t i = 0; policies[i] != NULL; i++)
        check_modes(path, policies[i], strcmp(policies[i], "full") == 0 ? 24 : 6, "null");
}
END_TEST

START_TEST(modes_host)
{
    const char *path = random_trace("t.h5", 5);
    for (size_t i = 0; policies[i] != NULL; i++)
        check_modes(path, policies[i], strcmp(policies[i], "full") == 0 ? 24 : 6, "host");
}
END_TEST

START_TEST(modes_sample)
{
    for (size_t i = 0; policies[i] != NULL; i++)
        check_modes(SAMPLE, policies[i], strcmp(policies[i], "full") == 0 ? 256 : 40, "null");
}
END_TEST

/* The extremes: no slot at all, every expert. */
START_TEST(capacities)
{
    const char *path = random_trace("t.h5", 6);
    static const uint32_t cache[] = {0, 1, 23, 24};
    for (size_t i = 0; i < sizeof cache / sizeof cache[0]; i++) {
        check_modes(path, "lru", cache[i], "null");
        check_modes(path, "belady", cache[i], "host");
    }
}
END_TEST

/* ---- a device that computes wrongly ------------------------------------------------------------------------------------- */

static moesim_device_ops wrong_ops;
static const moesim_device_ops *right;
static float wrong_value;
static size_t wrong_route;       /* SIZE_MAX: all */

static moesim_code wrong_outputs(moesim_device *device, float *out, size_t routes, moesim_error *err)
{
    const moesim_code code = right->outputs(device, out, routes, err);
    for (size_t i = 0; code == MOESIM_OK && i < routes * HIDDEN; i++)
        if (wrong_route == SIZE_MAX || i / HIDDEN == wrong_route)
            out[i] *= wrong_value;
    return code;
}

static moesim_code wrong_open(const moesim_device_config *config, moesim_device **out, moesim_error *err)
{
    const moesim_code code = right->open(config, out, err);
    if (code == MOESIM_OK)
        (*out)->ops = &wrong_ops;
    return code;
}

static moesim_code run_wrong(float value, size_t route, moesim_error *err)
{
    moesim_trace *trace = open_trace(random_trace("t.h5", 3));
    moesim_policy_spec spec;
    moesim_bench *bench = NULL;
    moesim_replay_file none;
    uint32_t plan = 0;
    right = backend("host");
    wrong_ops = *right;
    wrong_ops.open = wrong_open;
    wrong_ops.outputs = wrong_outputs;
    wrong_value = value;
    wrong_route = route;
    moesim_bench_config config = bench_config(trace, &wrong_ops);
    test_spec(&spec, "lru");
    moesim_replay_file_init(&none);
    ck_assert_int_eq(moesim_bench_create(&config, &bench, err), MOESIM_OK);
    ck_assert_int_eq(try_plan(bench, &spec, 6, &plan, err), MOESIM_OK);
    ck_assert_int_eq(moesim_bench_open(bench, &none, err), MOESIM_OK);
    const moesim_code code = moesim_bench_run(bench, plan, 0, 0, 0, err);
    ck_assert_uint_eq(moesim_bench_file(bench)->num_cells, code == MOESIM_OK);
    moesim_bench_destroy(&bench);
    moesim_policy_spec_fini(&spec);
    moesim_trace_close(&trace);
    return code;
}

START_TEST(wrong)
{
    moesim_error err = MOESIM_ERROR_INIT;
    WORKS(run_wrong(1, 0, &err));
    REFUSED(run_wrong(NAN, 0, &err), MOESIM_E_FORMAT, "not a number");
    ck_assert(strstr(err.text, "event ") != NULL && strstr(err.text, "expert ") != NULL && strstr(err.text, "row ") != NULL);
    REFUSED(run_wrong(NAN, 3, &err), MOESIM_E_FORMAT, "not a number");
    REFUSED(run_wrong(1.05f, SIZE_MAX, &err), MOESIM_E_FORMAT, "differs from the double-precision reference");
    ck_assert(strstr(err.text, "event ") != NULL && strstr(err.text, "layer ") != NULL && strstr(err.text, "row ") != NULL);
    WORKS(run_wrong(1.001f, SIZE_MAX, &err));
}
END_TEST

/* A slot that holds another expert than it should is a wrong result as well. */
static moesim_code forgetful_fill(moesim_device *device, uint32_t slot, uint32_t pool, moesim_error *err)
{
    return right->fill(device, slot, slot == 5 ? (pool + 1) % 50 : pool, err);
}

START_TEST(wrong_slot)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = open_trace(random_trace("t.h5", 3));
    moesim_policy_spec spec;
    moesim_bench *bench = NULL;
    moesim_replay_file none;
    uint32_t plan = 0;
    right = backend("null");
    wrong_ops = *right;
    wrong_ops.fill = forgetful_fill;
    const moesim_bench_config config = bench_config(trace, &wrong_ops);
    test_spec(&spec, "full");
    moesim_replay_file_init(&none);
    WORKS(moesim_bench_create(&config, &bench, &err));
    WORKS(try_plan(bench, &spec, 24, &plan, &err));
    WORKS(moesim_bench_open(bench, &none, &err));
    REFUSED(moesim_bench_run(bench, plan, 0, 0, 0, &err), MOESIM_E_INTERNAL, "another expert");
    moesim_bench_destroy(&bench);
    moesim_policy_spec_fini(&spec);
    moesim_trace_close(&trace);
}
END_TEST

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

START_TEST(refusals)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const char *path = random_trace("t.h5", 3);
    moesim_trace *trace = open_trace(path);
    moesim_bench_config config = bench_config(trace, backend("null"));
    moesim_policy_spec spec;
    moesim_policy prefetches;
    moesim_bench *bench = NULL;
    uint32_t plan = 0;
    test_spec(&spec, "ideal");
    WORKS(moesim_bench_create(&config, &bench, &err));
    REFUSED(try_plan(bench, &spec, 6, &plan, &err), MOESIM_E_USAGE, "reloads freely");
    moesim_policy_spec_fini(&spec);
    test_spec(&spec, "lru");
    prefetches = *spec.policy;
    prefetches.traits |= MOESIM_PREFETCHES;
    const moesim_policy *own = spec.policy;
    spec.policy = &prefetches;
    REFUSED(try_plan(bench, &spec, 6, &plan, &err), MOESIM_E_USAGE, "trait prefetches");
    spec.policy = own;
    moesim_policy_spec_fini(&spec);
    const moesim_bench_plan other = {.decisions = write_log(random_trace("b.h5", 4), "lru", 6, UINT64_MAX, "log.h5")};
    REFUSED(moesim_bench_plan_add(bench, &other, &plan, &err), MOESIM_E_USAGE, "another trace");
    const moesim_bench_plan log = {.decisions = write_log(path, "lru", 6, UINT64_MAX, "own.h5")};
    WORKS(moesim_bench_plan_add(bench, &log, &plan, &err));
    moesim_bench_destroy(&bench);
    config.hidden = 100;
    REFUSED(moesim_bench_create(&config, &bench, &err), MOESIM_E_USAGE, "multiple");
    moesim_trace_close(&trace);
}
END_TEST

/* One plan on host with so many experts of device memory, not opened yet. */
struct limited { moesim_trace *trace; moesim_policy_spec spec; moesim_bench *bench; uint32_t plan; };

static void limited_create(struct limited *l, uint64_t experts, const char *policy, uint32_t cache)
{
    moesim_error err = MOESIM_ERROR_INIT;
    l->trace = open_trace(random_trace("t.h5", 3));
    moesim_bench_config config = bench_config(l->trace, backend("host"));
    config.gpu_memory = experts * 6 * HIDDEN * INTERMEDIATE;
    test_spec(&l->spec, policy);
    WORKS(moesim_bench_create(&config, &l->bench, &err));
    WORKS(try_plan(l->bench, &l->spec, cache, &l->plan, &err));
}

static void limited_destroy(struct limited *l)
{
    moesim_bench_destroy(&l->bench);
    moesim_policy_spec_fini(&l->spec);
    moesim_trace_close(&l->trace);
}

START_TEST(memory)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_replay_file none;
    struct limited l;
    moesim_replay_file_init(&none);
    limited_create(&l, 1, "lru", 6);
    REFUSED(moesim_bench_open(l.bench, &none, &err), MOESIM_E_LIMIT, "--cache");
    limited_destroy(&l);
}
END_TEST

/* Full residency with room for half of its experts: slots are shared, and everything still computes what it should. */
START_TEST(shared_slots)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_replay_file none;
    struct limited l;
    moesim_replay_file_init(&none);
    limited_create(&l, 45, "full", 24);
    WORKS(moesim_bench_open(l.bench, &none, &err));
    WORKS(moesim_bench_run(l.bench, l.plan, 0, 0, 0, &err));
    const moesim_replay_file *f = moesim_bench_file(l.bench);
    ck_assert(f->plan[0].full && f->plan[0].aliased);
    ck_assert_uint_lt(f->config.slots, 45);
    ck_assert_uint_ge(f->config.slots, 24);
    ck_assert_uint_gt(f->cell[0].verified, 0);
    limited_destroy(&l);
}
END_TEST

RUN_TESTS("bench", modes, modes_host, modes_sample, capacities, wrong, wrong_slot, refusals, memory, shared_slots)
