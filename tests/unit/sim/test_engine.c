/* SPDX-License-Identifier: Apache-2.0
 *
 * The event step on windows built by hand: known answers, the order of candidates, and every answer of a policy that the
 * engine must refuse.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "policies/registry.h"
#include "sim/instance.h"
#include "sim/metrics.h"
#include "tests/unit/sim/hand.h"

/* One expert set per step, in all layers. */
static void make(struct hand *h, uint32_t layers, uint32_t experts, uint32_t top_k, const char *const *sets, uint32_t steps)
{
    hand_init(h, steps, layers, experts, 1, top_k);
    for (uint32_t s = 0; s < steps; s++)
        hand_set(h, s, sets[s]);
    hand_build(h);
}

static moesim_outcome run(const struct hand *h, const char *policy, uint32_t cache, bool flattened)
{
    moesim_outcome out;
    moesim_policy_spec spec;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    params.order = flattened ? MOESIM_FLATTENED : MOESIM_ATOMIC;
    ck_assert_msg(moesim_policy_spec_init(&spec, policy, &err) == MOESIM_OK, "%s", err.text);
    const moesim_config config = {.policy = spec.policy, .options = spec.options, .label = policy, .cache = cache};
    hand_run(h, &params, &config, &out, NULL);
    moesim_policy_spec_fini(&spec);
    return out;
}

static void check_layer(const moesim_outcome *out, uint32_t layer, moesim_layer_sums want)
{
    ck_assert_uint_lt(layer, out->num_layers);
    ck_assert_mem_eq(&out->layer[layer], &want, sizeof want);
}

/* arXiv 2608.07911: |A| = C, so LRU admits every miss. */
START_TEST(test_conformance)
{
    static const char *const sets[] = {"01", "02", "01", "03", "01"};
    struct hand h;
    make(&h, 3, 4, 2, sets, 5);
    moesim_outcome out = run(&h, "lru", 2, false);
    ck_assert_uint_eq(out.all_accesses, 30);
    ck_assert_uint_eq(out.all_hits, 12);
    ck_assert_double_eq(out.total.misses, 18);
    ck_assert_uint_eq(out.evictions, 12);
    ck_assert_uint_eq(out.insertions, 18);
    ck_assert_double_eq(out.total.moved_bytes, 18000);
    ck_assert_double_eq(out.total.utilisation, 6.0);
    ck_assert_double_eq(out.ratio_p95, 1.0);
    moesim_outcome_fini(&out);
    hand_fini(&h);
}
END_TEST

START_TEST(test_atomic_and_flattened)
{
    static const char *const sets[] = {"01", "01"};
    struct hand h;
    make(&h, 1, 2, 2, sets, 2);
    moesim_outcome atomic = run(&h, "lru", 1, false), flat = run(&h, "lru", 1, true);
    ck_assert_double_eq(atomic.total.misses, 3);
    ck_assert_double_eq(flat.total.misses, 4);
    ck_assert_double_eq(flat.total.events, 2);
    check_layer(&atomic, 0, (moesim_layer_sums){2, 4, 1, 3, 3, 0, 3000, 2});
    check_layer(&flat, 0, (moesim_layer_sums){2, 4, 0, 4, 4, 0, 4000, 2});
    moesim_outcome_fini(&atomic);
    moesim_outcome_fini(&flat);
    hand_fini(&h);
}
END_TEST

START_TEST(test_belady)
{
    static const char *const bypass[] = {"0", "1", "0"}, *const cycle[] = {"0", "1", "2", "0", "1", "2"};
    struct hand h;
    make(&h, 1, 2, 1, bypass, 3);
    moesim_outcome out = run(&h, "belady", 1, false);
    ck_assert_double_eq(out.total.misses, 2);
    ck_assert_uint_eq(out.insertions, 1);
    ck_assert_uint_eq(out.evictions, 0);
    moesim_outcome_fini(&out);
    hand_fini(&h);

    make(&h, 1, 3, 1, cycle, 6);
    moesim_outcome lru = run(&h, "lru", 2, false), belady = run(&h, "belady", 2, false);
    ck_assert_double_eq(lru.total.misses, 6);
    ck_assert_double_eq(belady.total.misses, 4);
    moesim_outcome_fini(&lru);
    moesim_outcome_fini(&belady);
    hand_fini(&h);
}
END_TEST

/* Two layers with two slots each. Layer 0 uses {0}, layer 1 {0,1,2}: a pool of four gives layer 1 what layer 0 leaves. */
START_TEST(test_pooled)
{
    struct hand h;
    hand_init(&h, 3, 2, 4, 1, 3);
    for (uint32_t s = 0; s < 3; s++) {
        hand_ids(&h, s, 0, 0)[0] = 0;
        for (uint16_t k = 0; k < 3; k++)
            hand_ids(&h, s, 0, 1)[k] = k;
    }
    hand_build(&h);
    moesim_outcome split = run(&h, "belady", 2, false), pooled = run(&h, "belady-pooled", 2, false);
    moesim_outcome ideal = run(&h, "ideal", 2, false), ideal_pooled = run(&h, "ideal-pooled", 2, false);
    ck_assert_double_eq(split.total.hits, 2 * (1 + 2));
    ck_assert_double_eq(pooled.total.hits, 2 * (1 + 3));
    ck_assert_double_eq(pooled.total.utilisation, 2 * (0.5 + 1.5));
    ck_assert_double_eq(ideal.total.hits, 3 * (1 + 2));
    ck_assert_double_eq(ideal_pooled.total.hits, 3 * (1 + 3));
    ck_assert_double_eq(ideal_pooled.total.utilisation, 6.0);
    moesim_outcome full = run(&h, "full", 2, false);
    ck_assert_double_eq(full.total.misses, 0);
    ck_assert_double_eq(full.total.utilisation, 3 * (0.25 + 0.75));
    check_layer(&split, 0, (moesim_layer_sums){3, 3, 2, 1, 1, 0, 1000, 6});
    check_layer(&split, 1, (moesim_layer_sums){3, 9, 4, 5, 5, 0, 5000, 6});
    check_layer(&pooled, 1, (moesim_layer_sums){3, 9, 6, 3, 3, 0, 3000, 6});
    check_layer(&ideal, 1, (moesim_layer_sums){3, 9, 6, 3, 3, 0, 3000, 6});
    check_layer(&full, 1, (moesim_layer_sums){3, 9, 9, 0, 0, 0, 0, 12});
    moesim_outcome *list[] = {&split, &pooled, &ideal, &ideal_pooled, &full};
    for (size_t i = 0; i < 5; i++)
        moesim_outcome_fini(list[i]);
    hand_fini(&h);
}
END_TEST

START_TEST(test_no_slots)
{
    static const char *const sets[] = {"01", "01"};
    static const char *const names[] = {"lru", "naive", "lfu", "belady", "random", "belady-pooled", "ideal"};
    struct hand h;
    make(&h, 2, 4, 2, sets, 2);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        moesim_outcome out = run(&h, names[i], 0, false);
        ck_assert_double_eq(out.total.misses, 8);
        ck_assert_double_eq(out.total.floor, 8);
        ck_assert_uint_eq(out.insertions, 0);
        ck_assert(isnan(moesim_metric_value(&moesim_metrics[0], &out)));
        ck_assert(isnan(out.ratio_p95));
        moesim_outcome_fini(&out);
    }
    hand_fini(&h);
}
END_TEST

/* ---- policies of these tests ------------------------------------------------------------------------------------------ */

/* What a policy of a test answers; handed over as its options. */
struct script {
    double value[8], tie[8];
    int stop;                    /* retain returns it */
    uint64_t cpu;                /* dispatch: to the CPU */
    uint16_t order[8];
    bool reorder;
    uint64_t initial;
    size_t bytes;
    uint32_t traits;
};

static size_t script_bytes(const moesim_shape *shape, const void *options)
{
    (void)shape;
    const struct script *s = options;
    return s->bytes > sizeof s ? s->bytes : sizeof s;
}

static int script_open(void *state, const moesim_open *open, moesim_start *start)
{
    const struct script *s = open->options;
    memcpy(state, &s, sizeof s);
    start->initial[0] = s->initial;
    start->traits = s->traits;
    return 0;
}

static const struct script *script_of(void *state)
{
    const struct script *s;
    memcpy(&s, state, sizeof s);
    return s;
}

static int script_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    const struct script *s = script_of(state);
    (void)event;
    for (uint32_t e = 0; e < 8; e++) {
        ck_assert(isnan(keys->value[e]));
        ck_assert_double_eq(keys->tie[e], 0);
        keys->value[e] = s->value[e];
        keys->tie[e] = s->tie[e];
    }
    return s->stop;
}

static int script_dispatch(void *state, const moesim_event *event, moesim_dispatch *answer)
{
    const struct script *s = script_of(state);
    ck_assert_uint_eq(answer->n_misses, event->n_misses);
    for (uint32_t i = 1; i < answer->n_misses; i++)
        ck_assert_uint_lt(answer->order[i - 1], answer->order[i]);
    answer->cpu[0] = s->cpu;
    if (s->reorder)
        memcpy(answer->order, s->order, answer->n_misses * sizeof *answer->order);
    return 0;
}

static moesim_policy script_policy(void)
{
    return (moesim_policy){.abi = MOESIM_POLICY_ABI, .size = sizeof(moesim_policy), .name = "script",
                           .state_bytes = script_bytes, .open = script_open, .retain = script_retain,
                           .dispatch = script_dispatch};
}

/* One event {0,1,2,3} of eight experts with `cache` slots. */
static moesim_code run_script(const struct script *s, const moesim_policy *policy, uint32_t cache, uint64_t *resident,
                              moesim_outcome *out, moesim_error *err)
{
    static const char *const sets[] = {"0123"};
    struct hand h;
    moesim_run_params params;
    moesim_instance *in = NULL;
    moesim_run_params_defaults(&params);
    make(&h, 1, 8, 4, sets, 1);
    const moesim_config config = {.policy = policy, .options = s, .label = "script", .cache = cache};
    memset(out, 0, sizeof *out);
    moesim_code code = moesim_instance_create(&h.shape, &params, &config, &in, err);
    if (code == MOESIM_OK)
        code = moesim_instance_advance(in, &h.window, err);
    if (code == MOESIM_OK) {
        *resident = in->resident[0];
        code = moesim_instance_finish(in, out, err);
    }
    moesim_instance_destroy(&in);
    hand_fini(&h);
    return code;
}

/* Higher value; then higher tie; then already resident; then lower id; −∞ never. */
START_TEST(test_order_of_candidates)
{
    static const struct { struct script s; uint32_t cache; uint64_t kept; uint64_t refused; } rows[] = {
        {{.value = {1, 2, 3, 4}}, 2, 0x0c, 0},
        {{.value = {1, 1, 1, 1}, .tie = {0, 5, 1, 4}}, 2, 0x0a, 0},
        {{.value = {1, 1, 1, 1}, .initial = 0x08}, 2, 0x09, 0},
        {{.value = {1, 1, 1, 1}}, 3, 0x07, 0},
        {{.value = {-HUGE_VAL, 1, -HUGE_VAL, 1}}, 4, 0x0a, 2},
        {{.value = {-HUGE_VAL, 1, -HUGE_VAL, 1}}, 1, 0x02, 0},
        {{.value = {1, 1, 1, 1, 9}, .initial = 0x10}, 2, 0x11, 0},
        {{.value = {4, 3, 2, 1}, .cpu = 0x03}, 4, 0x0c, 0},
    };
    const moesim_policy policy = script_policy();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_outcome out;
        uint64_t resident = 0;
        ck_assert_msg(run_script(&rows[i].s, &policy, rows[i].cache, &resident, &out, &err) == MOESIM_OK, "%s", err.text);
        ck_assert_msg(resident == rows[i].kept, "row %zu: %llx", i, (unsigned long long)resident);
        ck_assert_uint_eq(out.refused, rows[i].refused);
        ck_assert_double_eq(out.total.cpu, moesim_bits_count(&rows[i].s.cpu, 1));
        ck_assert_double_eq(out.total.moved + out.total.cpu, out.total.misses);
        ck_assert_double_eq((double)out.layer[0].cpu, out.total.cpu);
        ck_assert_double_eq((double)out.layer[0].moved, out.total.moved);
        /* one event: what is not kept is wasted, the rest pending */
        ck_assert_double_eq(out.total.moved, out.total.unused + (double)out.pending);
        moesim_outcome_fini(&out);
    }
}
END_TEST

static void expect(const struct script *s, uint32_t cache, moesim_code code, const char *text)
{
    const moesim_policy policy = script_policy();
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_outcome out;
    uint64_t resident;
    ck_assert_int_eq(run_script(s, &policy, cache, &resident, &out, &err), code);
    ck_assert_msg(strstr(err.text, text) != NULL, "\"%s\" lacks \"%s\"", err.text, text);
    ck_assert_ptr_null(out.request);
}

START_TEST(test_refused_answers)
{
    expect(&(struct script){.value = {1, NAN, 1, 1}}, 4, MOESIM_E_POLICY, "without a value, or set it to NaN (expert 1)");
    expect(&(struct script){.tie = {0, 0, NAN}}, 4, MOESIM_E_POLICY, "tie key of a candidate to NaN (expert 2)");
    expect(&(struct script){.stop = 1}, 4, MOESIM_E_POLICY, "its callback retain gave up in pass 1");
    expect(&(struct script){.cpu = 0x10}, 4, MOESIM_E_POLICY, "sends an expert to the CPU that is no miss (expert 4)");
    expect(&(struct script){.reorder = true, .order = {0, 1, 1, 3}}, 4, MOESIM_E_POLICY, "holds an expert twice (expert 1)");
    expect(&(struct script){.reorder = true, .order = {0, 1, 2, 7}}, 4, MOESIM_E_POLICY, "holds an expert that is no miss");
    expect(&(struct script){.reorder = true, .order = {0, 1, 2, 999}}, 4, MOESIM_E_POLICY, "that is no miss (expert 999)");
    expect(&(struct script){.initial = 0x1f}, 4, MOESIM_E_POLICY, "makes 5 experts of layer 0 resident; it has 4 slots");
    expect(&(struct script){.initial = 0x100}, 4, MOESIM_E_POLICY, "beyond the 8 that exist");
    expect(&(struct script){.bytes = (size_t)1 << 31}, 4, MOESIM_E_LIMIT, "bytes of state; at most");
    expect(&(struct script){.traits = MOESIM_CLAIRVOYANT}, 4, MOESIM_E_POLICY, "open adds trait 0x1");
    expect(&(struct script){.traits = MOESIM_RETAIN_AT_PASS}, 4, MOESIM_E_POLICY, "no retain_pass callback");
    expect(&(struct script){.stop = 0}, 9, MOESIM_E_USAGE, "a cache of 9 experts per layer is more than the 8");
}
END_TEST

/* A miss that ran on the CPU is no transfer: it is neither wasted nor pending. */
START_TEST(test_cpu_is_no_transfer)
{
    const moesim_policy policy = script_policy();
    const struct script s = {.value = {1, 1, 1, 1}, .cpu = 0x0f};
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_outcome out;
    uint64_t resident;
    ck_assert_int_eq(run_script(&s, &policy, 4, &resident, &out, &err), MOESIM_OK);
    ck_assert_uint_eq(resident, 0);
    ck_assert_double_eq(out.total.misses, 4);
    ck_assert_double_eq(out.total.moved, 0);
    ck_assert_double_eq(out.total.unused, 0);
    ck_assert_uint_eq(out.pending, 0);
    ck_assert_uint_eq(out.read_bytes, 0);
    moesim_outcome_fini(&out);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_conformance, test_atomic_and_flattened, test_belady,       test_pooled,
                                         test_no_slots,    test_order_of_candidates,  test_refused_answers,
                                         test_cpu_is_no_transfer};
    Suite *suite = suite_create("engine");
    TCase *tc = tcase_create("events");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
