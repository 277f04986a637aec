/* SPDX-License-Identifier: Apache-2.0
 *
 * Grids: sharing an instance between bandwidths changes nothing, threads change nothing, a run that stops after any window
 * and goes on from its checkpoint ends with the same bytes, and time is charged to whom it is due.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwprofile/profile.h"
#include "sim/grid.h"
#include "tests/support/support.h"

#define POLICIES 14
static const char *const policy_names[POLICIES] = {
    "random", "naive", "lru", "lfu", "lfru", "oled", "oled:adapt=on,adapt-form=damped", "oled:confidence=deferred",
    "surv", "surv:form=full", "belady", "belady-pooled", "ideal", "full",
};
#define BANDWIDTHS 3
static const double bandwidths[BANDWIDTHS] = {16e9, 55e9, 120e9};
#define CELLS ((size_t)POLICIES * BANDWIDTHS)

static moesim_profile profile;
static moesim_policy_spec spec[POLICIES];
static const char *path;

static void write_trace(uint32_t requests, bool interleave)
{
    const struct test_shape shape = {
        .layers = 3, .experts = 70, .top_k = 4, .block_length = 6, .requests = requests, .blocks = 3, .prefill_rows = 9,
        .max_steps = 5, .commit_passes = true, .empty_passes = true, .edits = true, .redraw = 0.3, .interleave = interleave,
    };
    struct test_trace t;
    test_trace_random(&t, &shape, 7);
    t.info.hidden_size = 128;
    test_trace_write(&t, path);
    test_trace_fini(&t);
}

static void setup(void)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_profile_load("pcie5-default", &profile, &err) == MOESIM_OK, "%s", err.text);
    for (size_t i = 0; i < POLICIES; i++)
        test_spec(&spec[i], policy_names[i]);
    path = test_path("grid.h5");
    write_trace(5, false);
}

static void teardown(void)
{
    for (size_t i = 0; i < POLICIES; i++)
        moesim_policy_spec_fini(&spec[i]);
}

static void fill(moesim_cell *cell, size_t n_bandwidths, const double *list)
{
    for (size_t p = 0; p < POLICIES; p++)
        for (size_t b = 0; b < n_bandwidths; b++)
            cell[p * n_bandwidths + b] = (moesim_cell){
                .policy = spec[p].policy, .options = spec[p].options, .label = policy_names[p], .cache = 12,
                .bandwidth = list[b],
            };
}

static moesim_code run(const moesim_cell *cell, size_t n, const moesim_run_params *params, const moesim_checkpoint *checkpoint,
                       moesim_cell_result *result, moesim_error *err)
{
    moesim_trace *trace = NULL;
    const moesim_grid grid = {
        .run = params, .profile = &profile, .mode = MOESIM_TIME_MODEL, .effects = MOESIM_EFFECT_ALL, .hidden_bytes = 256,
        .num_cells = n, .cell = cell, .checkpoint = checkpoint,
    };
    memset(result, 0, n * sizeof *result);
    *err = (moesim_error)MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, err) == MOESIM_OK, "%s", err->text);
    const moesim_code code = moesim_grid_run(trace, &grid, result, err);
    moesim_trace_close(&trace);
    return code;
}

static void assert_same(const moesim_cell_result *a, const moesim_cell_result *b)
{
    ck_assert(test_outcome_equal(a->outcome, b->outcome));
    ck_assert_uint_eq(a->timing->num_requests, b->timing->num_requests);
    ck_assert_mem_eq(&a->timing->total, &b->timing->total, sizeof a->timing->total);
    ck_assert_mem_eq(&a->timing->wall, &b->timing->wall, sizeof a->timing->wall);
    ck_assert_mem_eq(a->timing->request, b->timing->request, a->timing->num_requests * sizeof *a->timing->request);
}

static moesim_run_params small_windows(void)
{
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    params.window_bytes = 24u << 10;
    params.warmup = 1;
    params.seed = 3;
    return params;
}

START_TEST(test_shared_equals_alone)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static moesim_cell cell[CELLS], one[POLICIES];
    static moesim_cell_result whole[CELLS], alone[POLICIES], threaded[CELLS];
    moesim_run_params params = small_windows();
    fill(cell, BANDWIDTHS, bandwidths);
    ck_assert_msg(run(cell, CELLS, &params, NULL, whole, &err) == MOESIM_OK, "%s", err.text);
    for (size_t b = 0; b < BANDWIDTHS; b++) {
        fill(one, 1, &bandwidths[b]);
        ck_assert_msg(run(one, POLICIES, &params, NULL, alone, &err) == MOESIM_OK, "%s", err.text);
        for (size_t p = 0; p < POLICIES; p++)
            assert_same(&alone[p], &whole[p * BANDWIDTHS + b]);
        moesim_cell_results_fini(alone, POLICIES);
    }
    params.threads = 4;
    ck_assert_msg(run(cell, CELLS, &params, NULL, threaded, &err) == MOESIM_OK, "%s", err.text);
    for (size_t i = 0; i < CELLS; i++)
        assert_same(&whole[i], &threaded[i]);
    /* lru is one instance for all bandwidths; a slower link costs time and changes no count */
    ck_assert_ptr_eq(whole[2 * BANDWIDTHS].outcome, whole[2 * BANDWIDTHS + 2].outcome);
    ck_assert_double_gt(whole[2 * BANDWIDTHS].timing->total.decode.total, whole[2 * BANDWIDTHS + 2].timing->total.decode.total);
    moesim_cell_results_fini(whole, CELLS);
    moesim_cell_results_fini(threaded, CELLS);
}
END_TEST

START_TEST(test_resume_after_every_window)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static moesim_cell cell[CELLS];
    static moesim_cell_result whole[CELLS], resumed[CELLS];
    const moesim_run_params params = small_windows();
    const char *file = test_path("run.checkpoint");
    size_t stops = 0;
    fill(cell, BANDWIDTHS, bandwidths);
    ck_assert_msg(run(cell, CELLS, &params, NULL, whole, &err) == MOESIM_OK, "%s", err.text);
    for (uint64_t stop = 1;; stop++) {
        const moesim_checkpoint first = {.path = file, .identity = "abc", .stop_after = stop};
        const moesim_checkpoint second = {.path = file, .identity = "abc"};
        (void)unlink(file);
        const moesim_code code = run(cell, CELLS, &params, &first, resumed, &err);
        if (code == MOESIM_OK) {
            moesim_cell_results_fini(resumed, CELLS);
            break;
        }
        ck_assert_int_eq(code, MOESIM_E_INTERRUPTED);
        ck_assert_msg(run(cell, CELLS, &params, &second, resumed, &err) == MOESIM_OK, "%s", err.text);
        for (size_t i = 0; i < CELLS; i++)
            assert_same(&whole[i], &resumed[i]);
        moesim_cell_results_fini(resumed, CELLS);
        stops++;
    }
    ck_assert_uint_gt(stops, 4);
    moesim_cell_results_fini(whole, CELLS);
}
END_TEST

/* Cuts, flips a byte of, or asks the wrong question about a checkpoint. */
START_TEST(test_refused_checkpoints)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static moesim_cell cell[POLICIES];
    static moesim_cell_result result[POLICIES];
    const moesim_run_params params = small_windows();
    const char *file = test_path("bad.checkpoint");
    const moesim_checkpoint write = {.path = file, .identity = "abc", .stop_after = 3};
    const moesim_checkpoint other = {.path = file, .identity = "abd"}, read = {.path = file, .identity = "abc"};
    fill(cell, 1, &bandwidths[1]);
    ck_assert_int_eq(run(cell, POLICIES, &params, &write, result, &err), MOESIM_E_INTERRUPTED);
    ck_assert_int_eq(run(cell, POLICIES, &params, &other, result, &err), MOESIM_E_USAGE);
    ck_assert_msg(strstr(err.text, "identity abc") != NULL && strstr(err.text, "identity abd") != NULL, "%s", err.text);
    ck_assert_int_eq(run(cell, POLICIES - 1, &params, &read, result, &err), MOESIM_E_USAGE);
    ck_assert_msg(strstr(err.text, "configurations 13") != NULL, "%s", err.text);
    FILE *f = fopen(file, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 5000, SEEK_SET), 0);
    const int byte = fgetc(f);
    ck_assert(fseek(f, 5000, SEEK_SET) == 0 && fputc(byte ^ 1, f) != EOF && fclose(f) == 0);
    ck_assert_int_eq(run(cell, POLICIES, &params, &read, result, &err), MOESIM_E_FORMAT);
    ck_assert_msg(strstr(err.text, "damaged") != NULL, "%s", err.text);
    ck_assert_int_eq(truncate(file, 100), 0);
    ck_assert_int_eq(run(cell, POLICIES, &params, &read, result, &err), MOESIM_E_FORMAT);
}
END_TEST

/* full moves nothing: its time is other, sync, hits, policy and head. */
START_TEST(test_full_residency)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static moesim_cell cell[POLICIES];
    static moesim_cell_result result[POLICIES];
    const moesim_run_params params = small_windows();
    fill(cell, 1, &bandwidths[1]);
    ck_assert_msg(run(cell, POLICIES, &params, NULL, result, &err) == MOESIM_OK, "%s", err.text);
    const moesim_parts *full = &result[POLICIES - 1].timing->total.decode;
    const moesim_time_sums *lru = &result[2].timing->total;
    ck_assert(!(full->link + full->cpu + full->dram + full->busy_link + full->busy_cpu > 0));
    ck_assert_double_eq_tol(full->total,
                            full->other_gpu + full->other_host + full->sync + full->hits + full->policy + full->head,
                            1e-12 * full->total);
    for (size_t p = 0; p + 1 < POLICIES; p++)
        ck_assert_double_ge(result[p].timing->total.decode.total, full->total * (1 - 1e-12));
    ck_assert(!(lru->output_tokens < result[2].outcome->total.output_tokens) && lru->output_tokens > 0);
    ck_assert_double_gt(lru->ttft, 0);
    ck_assert(!(lru->waited > 0));
    ck_assert_uint_eq((unsigned)lru->requests, 4);
    moesim_cell_results_fini(result, POLICIES);
}
END_TEST

/* Merged: every member is charged the whole step, shares add up to what passed, and who decodes waits for a prefill. */
START_TEST(test_merged_charges)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static moesim_cell cell[POLICIES];
    static moesim_cell_result result[POLICIES];
    moesim_run_params params = small_windows();
    params.warmup = 0;
    params.batch = 2;
    fill(cell, 1, &bandwidths[1]);
    ck_assert_msg(run(cell, POLICIES, &params, NULL, result, &err) == MOESIM_OK, "%s", err.text);
    const moesim_timing *t = result[2].timing;
    double share = 0, charged = 0;
    for (uint32_t i = 0; i < t->num_requests; i++) {
        share += t->request[i].share;
        charged += t->request[i].decode.total + t->request[i].waited;
    }
    ck_assert_double_eq_tol(share, t->wall, 1e-12 * t->wall);
    ck_assert_double_gt(charged, t->wall);
    ck_assert_double_gt(t->total.waited, 0);
    moesim_cell_results_fini(result, POLICIES);
}
END_TEST

START_TEST(test_refused_modes)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static moesim_cell cell[POLICIES];
    static moesim_cell_result result[POLICIES];
    moesim_run_params params = small_windows();
    fill(cell, 1, &bandwidths[1]);
    params.order = MOESIM_FLATTENED;
    ck_assert_int_eq(run(&cell[2], 1, &params, NULL, result, &err), MOESIM_E_USAGE);
    ck_assert_msg(strstr(err.text, "--time count") != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("grid");
    TCase *c = tcase_create("grid");
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, test_shared_equals_alone);
    tcase_add_test(c, test_resume_after_every_window);
    tcase_add_test(c, test_refused_checkpoints);
    tcase_add_test(c, test_full_residency);
    tcase_add_test(c, test_merged_charges);
    tcase_add_test(c, test_refused_modes);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
