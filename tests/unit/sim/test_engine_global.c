/* SPDX-License-Identifier: Apache-2.0
 *
 * Scope global: one budget in bytes over all layers; and what scope global and order flattened refuse.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/instance.h"
#include "sim/metrics.h"
#include "tests/unit/sim/hand.h"

static moesim_code run(const struct hand *h, const char *policy, const moesim_run_params *params, uint64_t budget,
                       moesim_outcome *out, moesim_error *err)
{
    moesim_policy_spec spec;
    moesim_error local = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_policy_spec_init(&spec, policy, &local) == MOESIM_OK, "%s", local.text);
    const moesim_config config = {.policy = spec.policy, .options = spec.options, .label = policy, .cache = 2,
                                  .cache_bytes = budget};
    const moesim_code code = hand_run(h, params, &config, out, err);
    moesim_policy_spec_fini(&spec);
    return code;
}

static moesim_run_params global(void)
{
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    params.scope = MOESIM_SCOPE_GLOBAL;
    return params;
}

/* Layer 0 uses `first`, layer 1 `second`. */
static void make(struct hand *h, const char *const (*sets)[2], uint32_t steps)
{
    hand_init(h, steps, 2, 8, 1, 4);
    for (uint32_t s = 0; s < steps; s++)
        for (uint32_t l = 0; l < 2; l++)
            for (size_t i = 0; i < strlen(sets[s][l]); i++)
                hand_ids(h, s, 0, l)[i] = (uint16_t)(sets[s][l][i] - '0');
}

/* Budget of four experts. Touches: 0.0 0.1 1.0 1.1 | 0.2 → evicts 0.0 | 1.2 → evicts 0.1 | step 3: 0.1 misses, evicts 1.0. */
START_TEST(test_lru_over_layers)
{
    static const char *const sets[][2] = {{"01", "01"}, {"2", "2"}, {"1", "1"}};
    struct hand h;
    moesim_outcome out;
    const moesim_run_params params = global();
    make(&h, sets, 3);
    hand_build(&h);
    ck_assert(run(&h, "lru", &params, 4000, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(out.all_accesses, 8);
    ck_assert_uint_eq(out.all_hits, 1);      /* expert 1 of layer 1 */
    ck_assert(out.layer[0].hits == 0 && out.layer[0].misses == 4 && out.layer[1].hits == 1 && out.layer[1].misses == 3);
    ck_assert(out.layer[0].slots == 0 && out.layer[1].slots == 0 && out.layer[1].events == 3);
    ck_assert_uint_eq(out.insertions, 7);
    ck_assert_uint_eq(out.evictions, 3);
    ck_assert_uint_eq(out.overshoot_bytes, 0);
    ck_assert_uint_eq(out.peak_bytes, 4000 + 4 * 1000);
    ck_assert(isnan(out.total.utilisation) && isnan(out.total.floor) && isnan(out.total.ratio_sum));
    for (const moesim_metric *m = moesim_metrics; m->name != NULL; m++)
        if (!m->in_global)
            ck_assert_msg(isnan(moesim_metric_value(m, &out)), "%s", m->name);
    moesim_outcome_fini(&out);
    hand_fini(&h);
}
END_TEST

/* Layers of different size: 3000 of 4000 bytes are used; a layer-1 expert of 2000 evicts the two oldest, though one small
 * expert would be younger; and it never takes a smaller one for an older larger one. */
START_TEST(test_bytes_decide)
{
    static const char *const sets[][2] = {{"012", ""}, {"", "0"}, {"", "1"}, {"3", ""}};
    struct hand h;
    moesim_outcome out;
    const moesim_run_params params = global();
    make(&h, sets, 4);
    h.expert_bytes[1] = 2000;
    hand_build(&h);
    ck_assert(run(&h, "lru", &params, 4000, &out, NULL) == MOESIM_OK);
    /* step 2: 3000 + 2000 → 0.0 leaves; step 3: 0.1 and 0.2; step 4: 4000 + 1000 → 1.0 (2000) leaves */
    ck_assert_uint_eq(out.evictions, 4);
    ck_assert_uint_eq(out.insertions, 6);
    ck_assert_uint_eq(out.read_bytes, 3000 + 2000 + 2000 + 1000);
    moesim_outcome_fini(&out);
    hand_fini(&h);
}
END_TEST

/* An event that alone exceeds the budget is admitted and protected: an overshoot, gone with the next event. */
START_TEST(test_protected_overshoot)
{
    static const char *const sets[][2] = {{"0123", "5"}, {"0123", "5"}};
    struct hand h;
    moesim_outcome out;
    const moesim_run_params params = global();
    make(&h, sets, 2);
    hand_build(&h);
    ck_assert(run(&h, "lru", &params, 2000, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(out.overshoot_bytes, 2000);
    /* after layer 1: {0.3, 1.5}: 3 was touched last; so one hit in layer 0 of step 2, and 1.5 was evicted for it */
    ck_assert_uint_eq(out.all_hits, 1);
    moesim_outcome_fini(&out);
    hand_fini(&h);
}
END_TEST

/* belady: both layers' experts are used in the same pass; that of the higher layer is farther away. */
START_TEST(test_belady_between_layers)
{
    static const char *const sets[][2] = {{"0", "0"}, {"1", ""}, {"0", "0"}};
    struct hand h;
    moesim_outcome out;
    const moesim_run_params params = global();
    make(&h, sets, 3);
    hand_build(&h);
    ck_assert(run(&h, "belady", &params, 2000, &out, NULL) == MOESIM_OK);
    /* 0.1 is admitted by force and 1.0 leaves; then 0.0 hits */
    ck_assert_uint_eq(out.all_hits, 1);
    ck_assert_double_eq(out.total.misses, 4);
    moesim_outcome_fini(&out);
    hand_fini(&h);
}
END_TEST

START_TEST(test_observed)
{
    static const char *const sets[][2] = {{"01", "01"}, {"01", "02"}};
    struct hand h;
    moesim_outcome out;
    moesim_run_params params = global();
    make(&h, sets, 2);
    hand_build(&h);
    uint8_t seen[2][8] = {{0, 0, 9, 9, 0, 0, 9, 9}, {1, 2, 9, 9, 1, 0, 9, 9}};
    const uint8_t *rows[2] = {seen[0], seen[1]};
    h.window.residency = rows;
    params.check_observed = true;
    ck_assert(run(&h, "lru", &params, 4000, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(out.observed_checked, 8);
    ck_assert_uint_eq(out.observed_wrong, 0);
    moesim_outcome_fini(&out);
    seen[1][1] = 0;
    seen[1][5] = 1;
    ck_assert(run(&h, "lru", &params, 4000, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(out.observed_wrong, 2);
    ck_assert_uint_eq(out.observed_first_wrong, 1);   /* from the first row of its pass */
    moesim_outcome_fini(&out);
    hand_fini(&h);
}
END_TEST

START_TEST(test_refusals)
{
    static const struct { const char *policy; bool global, observed; uint32_t batch; const char *text; } rows[] = {
        {"lfru", true, false, 1, "not possible with --scope global: its keys of untouched experts change with time"},
        {"lfu:decay=9", true, false, 1, "its keys of untouched experts change with time"},
        {"ideal", true, false, 1, "it is a bound over slots, of which scope global has none"},
        {"belady-pooled", true, false, 1, "it is a bound over slots"},
        {"oled:confidence=deferred", true, false, 1, "it selects at the end of a pass"},
        {"belady", false, false, 1, "not possible with --order flattened"},
        {"oled", false, false, 1, "it reads sums over whole events"},
        {"surv", false, false, 1, "it reads sums over whole events"},
        {"full", false, false, 1, "the bound is defined for whole events"},
        {"lru", true, true, 2, "--check-observed compares pass by pass"},
        {"lru", false, true, 1, "give --scope global"},
    };
    static const char *const sets[][2] = {{"01", "01"}};
    struct hand h;
    make(&h, sets, 1);
    hand_build(&h);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_outcome out;
        moesim_run_params params;
        moesim_run_params_defaults(&params);
        params.scope = rows[i].global ? MOESIM_SCOPE_GLOBAL : MOESIM_SCOPE_LAYER;
        params.order = rows[i].global ? MOESIM_ATOMIC : MOESIM_FLATTENED;
        params.check_observed = rows[i].observed;
        params.batch = rows[i].batch;
        ck_assert_msg(run(&h, rows[i].policy, &params, 4000, &out, &err) == MOESIM_E_USAGE, "%s: %s", rows[i].policy, err.text);
        ck_assert_msg(strstr(err.text, rows[i].text) != NULL, "\"%s\" lacks \"%s\"", err.text, rows[i].text);
    }
    hand_fini(&h);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_lru_over_layers, test_bytes_decide, test_protected_overshoot, test_belady_between_layers,
                                  test_observed, test_refusals};
    Suite *suite = suite_create("engine in scope global");
    TCase *tc = tcase_create("global");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
