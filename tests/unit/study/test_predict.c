/* SPDX-License-Identifier: Apache-2.0
 *
 * The prediction of a decision log against the timer of the run that wrote it.
 */
#include <math.h>
#include <string.h>

#include "sim/grid.h"
#include "study/predict.h"
#include "tests/support/support.h"
#include "tests/unit/base/runner.h"

#define LAYERS 3u
#define ROWS 8u
#define OK(call) ck_assert_msg((call) == MOESIM_OK, "%s", err.text)

static moesim_error err;
static moesim_profile profile;
static uint64_t expert_bytes[LAYERS];
static moesim_works recorded;   /* of the last run */
static char log_digest[MOESIM_DIGEST_CHARS], recorded_digest[MOESIM_DIGEST_CHARS];

static const char *make_trace(void)
{
    static const struct test_shape shape = {
        .layers = LAYERS, .experts = 32, .top_k = 4, .block_length = ROWS, .requests = 3, .blocks = 4, .prefill_rows = 12,
        .max_steps = 5, .commit_passes = true, .redraw = 0.3,
    };
    struct test_trace t;
    test_trace_random(&t, &shape, 7);
    const char *path = test_path("trace.h5");
    test_trace_write(&t, path);
    test_trace_fini(&t);
    return path;
}

static moesim_costing_params params_of(uint32_t effects)
{
    for (uint32_t l = 0; l < LAYERS; l++)
        expert_bytes[l] = 6000000 + 1000 * l;
    return (moesim_costing_params){
        .profile = &profile, .mode = MOESIM_TIME_MODEL, .effects = effects, .staging = 4, .num_layers = LAYERS,
        .max_rows = ROWS, .expert_bytes = expert_bytes, .hidden_bytes = 4096,
    };
}

/* Runs, timed, writes the log and records it; log NULL: neither, which lets the host take its fast paths. */
static moesim_timing run(const char *path, const char *policy, uint32_t cache, uint32_t effects, const char *log,
                         moesim_cell_result *result)
{
    moesim_recorder *recorder = NULL;
    moesim_trace *trace = NULL;
    moesim_policy_spec spec;
    moesim_run_params params;
    test_spec(&spec, policy);
    moesim_run_params_defaults(&params);
    OK(moesim_trace_open(path, NULL, &trace, &err));
    OK(moesim_trace_digest(trace, &err));
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    const moesim_declog_header header = {
        .trace_digest = info->digest, .model_id = info->model_id, .policy = policy, .options = "", .config = "{}",
        .num_layers = info->num_layers, .num_experts = info->num_experts, .cache = cache,
    };
    if (log != NULL) {
        OK(moesim_declog_create(log, &header, &params.declog, &err));
        OK(moesim_recorder_create(info, policy, &recorder, &err));
        params.sink = moesim_recorder_sink(recorder);
    }
    params_of(effects);
    const moesim_cell cell = {.policy = spec.policy, .options = spec.options, .label = policy, .cache = cache};
    const moesim_grid grid = {
        .run = &params, .profile = &profile, .mode = MOESIM_TIME_MODEL, .effects = effects, .expert_bytes = expert_bytes,
        .hidden_bytes = 4096, .num_cells = 1, .cell = &cell,
    };
    OK(moesim_grid_run(trace, &grid, result, &err));
    if (log != NULL) {
        OK(moesim_declog_finish(&params.declog, log_digest, &err));
        moesim_recorder_finish(&recorder, &recorded, recorded_digest);
    }
    moesim_trace_close(&trace);
    moesim_policy_spec_fini(&spec);
    return *result->timing;
}

static void read_works(const char *path, const char *log, moesim_works *out)
{
    moesim_trace *trace = NULL;
    moesim_declog_reader *reader = NULL;
    moesim_walk *walk = NULL;
    const moesim_walk_params params = {.request_end = UINT64_MAX, .batch = 1, .max_rows = 1024, .window_bytes = 1 << 20};
    OK(moesim_trace_open(path, NULL, &trace, &err));
    OK(moesim_trace_digest(trace, &err));
    OK(moesim_declog_open(log, &reader, &err));
    OK(moesim_walk_open(trace, reader, &params, &walk, &err));
    OK(moesim_works_read(walk, LAYERS, out, &err));
    ck_assert_uint_eq(out->num_events, moesim_declog_get_info(reader)->events);
    moesim_walk_close(&walk);
    moesim_declog_close(&reader);
    moesim_trace_close(&trace);
}

static moesim_prediction predict(const moesim_works *works, const moesim_profile *with, uint32_t effects)
{
    moesim_costing_params params = params_of(effects);
    moesim_costing *costing = NULL;
    moesim_prediction p;
    params.profile = with;
    OK(moesim_costing_create(&params, &costing, &err));
    OK(moesim_predict(works, costing, &p, &err));
    moesim_costing_destroy(&costing);
    return p;
}

/* What was recorded of the last run is what its log says. */
static void check_recorded(const moesim_works *works)
{
    ck_assert_str_eq(log_digest, recorded_digest);
    ck_assert_uint_eq(works->num_events, recorded.num_events);
    ck_assert_uint_eq(works->used, recorded.used);
    for (size_t i = 0; i < works->used; i++)               /* of no misses there may be no list */
        ck_assert_uint_eq(works->tokens[i], recorded.tokens[i]);
    for (uint64_t i = 0; i < works->num_events; i++) {
        const moesim_works_event *a = &works->event[i], *b = &recorded.event[i];
        ck_assert(a->pass == b->pass && a->layer == b->layer && a->num_rows == b->num_rows && a->at == b->at);
        ck_assert(a->n_hits == b->n_hits && a->n_moved == b->n_moved && a->n_cpu == b->n_cpu);
        ck_assert(a->request == b->request && a->counted == b->counted);
    }
    moesim_works_fini(&recorded);
}

static const struct { const char *policy; uint32_t cache, effects; } exact[] = {
    {"naive", 0, MOESIM_EFFECT_ALL}, {"lru", 5, MOESIM_EFFECT_ALL}, {"lru", 12, MOESIM_EFFECT_CONTENTION},
    {"oled", 12, MOESIM_EFFECT_ALL}, {"surv", 20, MOESIM_EFFECT_ALL}, {"full", 32, MOESIM_EFFECT_SYNC},
};

START_TEST(test_equals_the_timer)
{
    const char *trace = make_trace(), *log = test_path("log.h5");
    OK(moesim_profile_load("h200-host", &profile, &err));
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++) {
        moesim_cell_result result = {0}, without_log = {0};
        moesim_works works;
        const moesim_timing t = run(trace, exact[i].policy, exact[i].cache, exact[i].effects, log, &result);
        const moesim_timing plain = run(trace, exact[i].policy, exact[i].cache, exact[i].effects, NULL, &without_log);
        ck_assert_double_eq_tol(plain.total.decode.hits, t.total.decode.hits, 1e-12 * t.total.decode.hits + 1e-15);
        ck_assert_double_eq_tol(plain.total.decode.link, t.total.decode.link, 1e-12 * t.total.decode.link + 1e-15);
        moesim_cell_results_fini(&without_log, 1);
        read_works(trace, log, &works);
        check_recorded(&works);
        moesim_prediction p = predict(&works, &profile, exact[i].effects);
        const moesim_parts *a = &p.counted, *b = &t.total.decode;
        ck_assert_double_gt(a->total, 0);
        /* Every part; an event's share is added up here before it joins the step, so the last bits may differ. */
        const double *ours = (const double *)a, *theirs = (const double *)b;
        for (size_t part = 0; part < sizeof *a / sizeof *ours; part++)
            ck_assert_msg(fabs(ours[part] - theirs[part]) <= 1e-12 * fabs(theirs[part]), "%s at %u, part %zu: %.17g and %.17g",
                          exact[i].policy, exact[i].cache, part, ours[part], theirs[part]);
        double sum = 0;
        for (uint64_t e = 0; e < works.num_events; e++)
            if (works.event[e].counted)
                sum += p.seconds[e];
        const double first = t.total.decode.total - t.total.decode.head;
        /* `other` of a pass's first layer comes before any gate */
        const double before = (t.total.decode.other_gpu + t.total.decode.other_host) / LAYERS;
        ck_assert_double_eq_tol(sum, first - before, 1e-12 * first + 1e-15);
        moesim_prediction_fini(&p);
        moesim_works_fini(&works);
        moesim_cell_results_fini(&result, 1);
    }
}
END_TEST

/* The log lists CPU experts by id, the timer takes them in the order of dispatch. */
START_TEST(test_cpu_experts)
{
    const char *trace = make_trace(), *log = test_path("cpu.h5");
    moesim_cell_result result = {0};
    moesim_works works;
    OK(moesim_profile_load("h200-host", &profile, &err));
    const moesim_timing t = run(trace, "oled-full", 5, MOESIM_EFFECT_ALL, log, &result);
    read_works(trace, log, &works);
    check_recorded(&works);
    moesim_prediction p = predict(&works, &profile, MOESIM_EFFECT_ALL);
    ck_assert_double_gt(p.counted.cpu, 0);
    ck_assert_double_eq_tol(p.counted.total, t.total.decode.total, 1e-3 * t.total.decode.total);
    ck_assert_double_eq_tol(p.counted.busy_cpu, t.total.decode.busy_cpu, 1e-3 * t.total.decode.busy_cpu);
    moesim_prediction_fini(&p);
    moesim_works_fini(&works);
    moesim_cell_results_fini(&result, 1);
}
END_TEST

RUN_TESTS("predict", test_equals_the_timer, test_cpu_experts)
