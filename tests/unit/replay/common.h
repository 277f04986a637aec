/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace, a policy on it and a bench with a small expert, as replay tests need them. What fails ends the test.
 */
#ifndef MOESIM_TESTS_UNIT_REPLAY_COMMON_H
#define MOESIM_TESTS_UNIT_REPLAY_COMMON_H

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replay/grid.h"
#include "tests/support/support.h"
#include "tests/unit/base/runner.h"

enum { HIDDEN = 64, INTERMEDIATE = 64 };

#define WORKS(call) ck_assert_msg((call) == MOESIM_OK, "%s", err.text)
#define REFUSED(call, want, words) do { \
        err = (moesim_error)MOESIM_ERROR_INIT; \
        ck_assert_int_eq((call), (want)); \
        ck_assert_msg(strstr(err.text, (words)) != NULL, "\"%s\" lacks \"%s\"", err.text, (words)); \
    } while (0)

/* Every kind of pass, empty ones, unused slots. */
static inline const char *random_trace(const char *name, uint64_t seed)
{
    const struct test_shape shape = {
        .layers = 3, .experts = 24, .top_k = 4, .block_length = 6, .requests = 3, .blocks = 3, .prefill_rows = 9,
        .max_steps = 5, .commit_passes = true, .empty_passes = true, .dummy_passes = true, .unused_slots = true,
        .edits = true, .redraw = .3,
    };
    struct test_trace t;
    test_trace_random(&t, &shape, seed);
    test_trace_write(&t, test_path(name));
    test_trace_fini(&t);
    return test_path(name);
}

static inline moesim_trace *open_trace(const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    WORKS(moesim_trace_open(path, NULL, &trace, &err));
    WORKS(moesim_trace_digest(trace, &err));
    return trace;
}

static inline moesim_profile *test_profile(void)
{
    static moesim_profile profile;
    moesim_error err = MOESIM_ERROR_INIT;
    WORKS(moesim_profile_load("pcie5-default", &profile, &err));
    return &profile;
}

static inline moesim_bench_config bench_config(moesim_trace *trace, const moesim_device_ops *ops)
{
    return (moesim_bench_config){
        .trace = trace, .trace_path = "t.h5", .ops = ops, .hidden = HIDDEN, .intermediate = INTERMEDIATE,
        .profile = test_profile(), .profile_name = "pcie5-default", .profile_digest = "", .request_end = UINT64_MAX, .batch = 1,
        .staging = 3, .seed = 7, .window_bytes = 1 << 20, .allow_pageable = true, .host_pool = 50 * 6 * HIDDEN * INTERMEDIATE,
        .cpu = {.threads = 1, .cpus = "none"},
    };
}

static inline const moesim_device_ops *backend(const char *name)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_device_ops *ops = NULL;
    WORKS(moesim_device_find(name, &ops, &err));
    return ops;
}

static inline moesim_code try_plan(moesim_bench *bench, const moesim_policy_spec *spec, uint32_t cache, uint32_t *index,
                                   moesim_error *err)
{
    const moesim_bench_plan plan = {
        .cell = {.policy = spec->policy, .options = spec->options, .label = spec->given, .cache = cache},
        .given = spec->given, .effective = spec->effective,
    };
    return moesim_bench_plan_add(bench, &plan, index, err);
}

/* Decisions of a policy as a log under `name`. */
static inline const char *write_log(const char *trace_path, const char *policy, uint32_t cache, uint64_t requests,
                                    const char *name)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = open_trace(trace_path);
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    uint64_t bytes[64];
    moesim_policy_spec spec;
    test_spec(&spec, policy);
    for (uint32_t l = 0; l < info->num_layers; l++)
        bytes[l] = 6 * HIDDEN * INTERMEDIATE;
    moesim_decide d = {
        .cell = {.policy = spec.policy, .options = spec.options, .label = policy, .cache = cache}, .given = spec.given,
        .effective = spec.effective, .profile = test_profile(), .expert_bytes = bytes, .hidden_bytes = 2 * HIDDEN,
    };
    moesim_run_params_defaults(&d.run);
    d.run.request_end = requests;
    d.run.seed = 7;
    WORKS(moesim_decide_log(trace, &d, test_path(name), NULL, &err));
    moesim_policy_spec_fini(&spec);
    moesim_trace_close(&trace);
    return test_path(name);
}

#endif
