/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens between events: requests, boundaries, capacities that move, retention at the end of a pass, prefetches; and
 * that a policy sees no more than it declared.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sim/instance.h"
#include "sim/metrics.h"
#include "tests/unit/sim/hand.h"

/* What the policy of a test answers and saw; handed over as its options. */
struct script {
    const uint32_t (*slots)[2];  /* [boundaries][layers]: the answers */
    bool eager;
    const moesim_prefetch_entry *entry;   /* asked for at boundary `at` */
    uint32_t entries, at, pause_at, cancel_at;
    uint32_t victim;             /* answer of victim(), if the policy has it */
    uint32_t needs, traits;
    /* seen */
    uint32_t boundaries, events, passes_ended, starts, ends;
    uint64_t resident[16];       /* at each boundary, layer 0 */
    uint64_t landed[16];         /* at each retain of layer 0 */
    uint32_t order[64], n_order; /* 1 request starts, 2 boundary, 3 event, 4 end of pass, 5 request ends */
};

static struct script *script_of(void *state)
{
    struct script *s;
    memcpy(&s, state, sizeof s);
    return s;
}

static void note(struct script *s, uint32_t what)
{
    if (s->n_order < 64)
        s->order[s->n_order++] = what;
}

static size_t bytes(const moesim_shape *shape, const void *options)
{
    (void)shape;
    (void)options;
    return sizeof(struct script *);
}

static uint32_t needs(const void *options)
{
    return ((const struct script *)options)->needs;
}

static int open(void *state, const moesim_open *o, moesim_start *start)
{
    memcpy(state, &o->options, sizeof o->options);
    start->traits |= script_of(state)->traits;
    return 0;
}

static int request(void *state, const moesim_request *r, moesim_prefetch *prefetch)
{
    struct script *s = script_of(state);
    ck_assert_uint_eq(prefetch->n, 0);
    ck_assert_str_eq(r->workload, "");
    s->starts += !r->ended;
    s->ends += r->ended;
    note(s, r->ended ? 5 : 1);
    return 0;
}

static int boundary(void *state, const moesim_boundary *b, moesim_boundary_answer *answer)
{
    struct script *s = script_of(state);
    const uint32_t i = s->boundaries++;
    note(s, 2);
    ck_assert_uint_eq(b->clock, i + 1);
    ck_assert_uint_eq(b->num_ended, i == 0 ? 0 : 1);
    ck_assert_ptr_null(b->coming[0].expert);
    for (uint32_t r = 0; r < b->num_ended; r++) {
        ck_assert_ptr_null(b->ended[r].expert);
        /* produced by pass i, which is 0.1·i; hidden from a policy that did not ask */
        if ((s->needs & MOESIM_NEED_CONFIDENCE) != 0)
            ck_assert_float_eq_tol(b->ended[r].confidence, 0.1f * (float)i, 1e-6f);
        else
            ck_assert(isnan(b->ended[r].confidence));
    }
    s->resident[i] = b->resident[0];
    if (s->slots != NULL)
        memcpy(answer->slots, s->slots[i], 2 * sizeof(uint32_t));
    answer->eager = s->eager;
    if (i == s->at && s->entries > 0) {
        answer->prefetch->n = s->entries;
        memcpy(answer->prefetch->entry, s->entry, s->entries * sizeof *s->entry);
    }
    answer->prefetch->pause = s->pause_at != 0 && i == s->pause_at;
    answer->prefetch->cancel = s->cancel_at != 0 && i == s->cancel_at;
    return 0;
}

/* Newest first, then lower id: value is the clock of the last event, kept by the test's policy in tie-free form. */
static int retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    struct script *s = script_of(state);
    note(s, s->traits & MOESIM_RETAIN_AT_PASS ? 4 : 3);
    ck_assert((event->count != NULL) == ((s->needs & MOESIM_NEED_COUNTS) != 0));
    ck_assert((event->mass != NULL) == ((s->needs & MOESIM_NEED_MASS) != 0));
    ck_assert((event->row != NULL) == ((s->needs & MOESIM_NEED_ROWS) != 0));
    ck_assert((event->hindsight != NULL) == (s->traits != 0 && (s->needs & MOESIM_NEED_HINDSIGHT) != 0));
    ck_assert_ptr_null(event->next_use);
    ck_assert_ptr_null(event->next_active);
    ck_assert_ptr_null(event->weighted);
    ck_assert_ptr_null(event->class_sum);
    ck_assert_ptr_null(event->touch);
    if (event->row != NULL) {
        ck_assert((event->row[0].gate != NULL) == ((s->needs & MOESIM_NEED_GATE) != 0));
        ck_assert_ptr_null(event->row[0].previous);
        ck_assert_uint_eq(event->row[0].expert[0], event->layer == 0 ? event->list[0] : event->row[0].expert[0]);
    }
    if (event->layer == 0 && s->events < 16)
        s->landed[s->events++] = keys->landed[0];
    MOESIM_EACH_BIT(e, keys->candidates, 1, {
        keys->value[e] = moesim_bit_test(event->active, e) ? (double)event->clock : 0;
        keys->tie[e] = 0;
    });
    return 0;
}

static int victim(void *state, uint32_t layer, const uint64_t *resident, uint32_t *expert)
{
    (void)layer;
    (void)resident;
    *expert = script_of(state)->victim;
    return 0;
}

static moesim_policy script_policy(void)
{
    return (moesim_policy){.abi = MOESIM_POLICY_ABI, .size = sizeof(moesim_policy), .name = "script", .needs = needs,
                           .state_bytes = bytes, .open = open, .request = request, .boundary = boundary, .retain = retain,
                           .retain_pass = retain};
}

/* Two layers, eight experts, one set per step (the same in both layers), two slots a layer. */
static moesim_code run(struct script *s, const moesim_policy *policy, const char *const *sets, uint32_t steps,
                       const moesim_run_params *given, moesim_outcome *out, moesim_error *err)
{
    struct hand h;
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    hand_init(&h, steps, 2, 8, 1, 4);
    for (uint32_t i = 0; i < steps; i++) {
        hand_set(&h, i, sets[i]);
        h.produced[i] = 0.1f * (float)(i + 1);
        h.request[i] = i / 3;
    }
    hand_build(&h);
    const moesim_config config = {.policy = policy, .options = s, .label = "script", .cache = 2};
    const moesim_code code = hand_run(&h, given != NULL ? given : &params, &config, out, err);
    hand_fini(&h);
    return code;
}

START_TEST(test_order_of_callbacks)
{
    static const char *const sets[] = {"01", "01", "01", "01"};
    static const uint32_t expected[] = {1, 2, 3, 3, 2, 3, 3, 2, 3, 3, 5, 1, 2, 3, 3, 5};
    struct script s = {.needs = MOESIM_NEED_CONFIDENCE | MOESIM_NEED_ROWS | MOESIM_NEED_COUNTS};
    const moesim_policy policy = script_policy();
    moesim_outcome out;
    ck_assert(run(&s, &policy, sets, 4, NULL, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(s.n_order, sizeof expected / sizeof *expected);
    ck_assert_mem_eq(s.order, expected, sizeof expected);
    moesim_outcome_fini(&out);
}
END_TEST

START_TEST(test_views_hold_what_was_declared)
{
    static const char *const sets[] = {"01", "02", "13"};
    static const uint32_t list[] = {0, MOESIM_NEED_ROWS, MOESIM_NEED_ROWS | MOESIM_NEED_GATE, MOESIM_NEED_MASS,
                                    MOESIM_NEED_HINDSIGHT, MOESIM_NEED_COUNTS | MOESIM_NEED_CONFIDENCE};
    const moesim_policy policy = script_policy();
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (uint32_t traits = 0; traits < 16; traits += 8) {
            struct script s = {.needs = list[i], .traits = traits};
            moesim_outcome out;
            ck_assert(run(&s, &policy, sets, 3, NULL, &out, NULL) == MOESIM_OK);
            ck_assert_uint_eq(s.events, 3);
            moesim_outcome_fini(&out);
        }
}
END_TEST

/* RETAIN_AT_PASS: all of R ∪ G stays until the pass ends: 2 layers × (4 − 2 slots) × 1000 bytes over. */
START_TEST(test_retain_at_pass)
{
    static const char *const sets[] = {"0123", "01", "23"};
    struct script s = {.needs = MOESIM_NEED_HINDSIGHT, .traits = MOESIM_RETAIN_AT_PASS};
    const moesim_policy policy = script_policy();
    moesim_outcome out;
    ck_assert(run(&s, &policy, sets, 3, NULL, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(out.overshoot_bytes, 4000);
    ck_assert_uint_eq(out.peak_bytes, 4000 + 4 * 1000 + 4000);
    ck_assert_double_eq(out.total.hits, 4);
    ck_assert_double_eq(out.total.unused, 4);
    ck_assert_uint_eq(out.pending, 4);
    moesim_outcome_fini(&out);
}
END_TEST

/* ---- capacities -------------------------------------------------------------------------------------------------------- */

START_TEST(test_shrinking_lazily_and_at_once)
{
    static const char *const sets[] = {"01", "23", "23"};
    static const uint32_t slots[][2] = {{2, 2}, {1, 3}, {1, 3}};
    const moesim_policy policy = script_policy();
    for (int eager = 0; eager < 2; eager++) {
        struct script s = {.slots = slots, .eager = eager == 1};
        moesim_outcome out;
        ck_assert(run(&s, &policy, sets, 3, NULL, &out, NULL) == MOESIM_OK);
        ck_assert_uint_eq(out.capacity_changes, 1);
        /* layer 0 keeps {2}, layer 1 {2,3,0}; both 2 and 3 hit in layer 1 */
        ck_assert_double_eq(out.total.hits, 3);
        ck_assert_uint_eq(s.resident[2], 0x04);
        /* the shrunk layer comes first, so that the sum never passes four */
        ck_assert_uint_eq(out.overshoot_bytes, 0);
        /* utilisation: event by event over its own slots */
        ck_assert_double_eq_tol(out.total.utilisation, 1.0 / 1 + 2.0 / 3, 1e-12);
        ck_assert(out.layer[0].slots == 2 + 1 + 1 && out.layer[1].slots == 2 + 3 + 3);
        ck_assert(out.layer[0].hits == 1 && out.layer[1].hits == 2);
        moesim_outcome_fini(&out);
    }
}
END_TEST

/* Layer 0 grows and fills before layer 1, which shrank, has had its event. */
START_TEST(test_lazy_overshoot)
{
    static const char *const sets[] = {"01", "234"};
    static const uint32_t slots[][2] = {{2, 2}, {3, 1}};
    const moesim_policy policy = script_policy();
    for (int eager = 0; eager < 2; eager++) {
        struct script s = {.slots = slots, .eager = eager == 1};
        moesim_outcome out;
        ck_assert(run(&s, &policy, sets, 2, NULL, &out, NULL) == MOESIM_OK);
        ck_assert_uint_eq(out.overshoot_bytes, eager ? 0 : 1000);
        moesim_outcome_fini(&out);
    }
}
END_TEST

START_TEST(test_swings_are_counted_once)
{
    static const char *const sets[] = {"01", "01", "01", "01", "01", "01", "01", "01", "01"};
    static const uint32_t slots[][2] = {{1, 3}, {3, 1}, {1, 3}, {3, 1}, {1, 3}, {3, 1}, {1, 3}, {3, 1}, {1, 3}};
    static const uint32_t calm[][2] = {{1, 3}, {3, 1}, {1, 3}, {2, 2}, {1, 3}, {3, 1}, {1, 3}, {2, 2}, {1, 3}};
    const moesim_policy policy = script_policy();
    struct script s = {.slots = slots}, t = {.slots = calm};
    moesim_outcome out;
    ck_assert(run(&s, &policy, sets, 9, NULL, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(out.capacity_changes, 9);
    ck_assert_uint_eq(out.oscillations, 2);
    moesim_outcome_fini(&out);
    ck_assert(run(&t, &policy, sets, 9, NULL, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(out.oscillations, 0);
    moesim_outcome_fini(&out);
}
END_TEST

START_TEST(test_refused_capacities)
{
    static const char *const sets[] = {"01", "01"};
    static const uint32_t more[][2] = {{2, 2}, {3, 2}}, beyond[][2] = {{2, 2}, {9, 0}};
    const moesim_policy policy = script_policy();
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_outcome out;
    ck_assert(run(&(struct script){.slots = more}, &policy, sets, 2, NULL, &out, &err) == MOESIM_E_POLICY);
    ck_assert_ptr_nonnull(strstr(err.text, "policy script: boundary gives the layers 5 slots together"));
    ck_assert_ptr_nonnull(strstr(err.text, "the configuration grants 4"));
    ck_assert(run(&(struct script){.slots = beyond}, &policy, sets, 2, NULL, &out, &err) == MOESIM_E_POLICY);
    ck_assert_ptr_nonnull(strstr(err.text, "boundary gives layer 0 9 slots; a layer has 8 experts"));
}
END_TEST

/* ---- prefetches ---------------------------------------------------------------------------------------------------------- */

static const moesim_prefetch_entry asked[] = {{0, 2, 1}, {0, 3, 5}, {1, 4, 2}, {0, 1, 9}, {0, 5, 5}};

/* Slots {0,1}; asked for in layer 0: 3 and 5 (priority 5, in this order), 2; 1 is resident already. */
START_TEST(test_prefetch_lands_by_priority)
{
    static const char *const sets[] = {"01", "35", "01"};
    const moesim_policy policy = script_policy();
    struct script s = {.entry = asked, .entries = 5, .at = 1};
    moesim_outcome out;
    ck_assert(run(&s, &policy, sets, 3, NULL, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(s.landed[0], 0);
    ck_assert_uint_eq(s.landed[1], 0x28);
    ck_assert_uint_eq(s.landed[2], 0);
    /* both landings hit; layer 1 misses 3 and 5 and evicts 4 unused */
    ck_assert_double_eq(out.total.hits, 2);
    ck_assert_double_eq(out.total.prefetched, 3);
    ck_assert_double_eq(out.total.prefetched_bytes, 3000);
    ck_assert_double_eq(out.total.moved + out.total.prefetched,
                        out.total.unused + (double)out.pending + out.total.hits);
    moesim_outcome_fini(&out);
}
END_TEST

START_TEST(test_prefetch_budget_pause_cancel)
{
    static const char *const sets[] = {"01", "01", "01", "01"};
    const moesim_policy policy = script_policy();
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    params.prefetch_budget = 1;
    moesim_outcome out;
    struct script s = {.entry = asked, .entries = 5, .at = 1};
    ck_assert(run(&s, &policy, sets, 4, &params, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(s.landed[1], 0x08);
    ck_assert_uint_eq(s.landed[2], 0x20);   /* over the budget: stays asked for */
    ck_assert_uint_eq(s.landed[3], 0x04);
    moesim_outcome_fini(&out);

    struct script paused = {.entry = asked, .entries = 5, .at = 1, .pause_at = 2};
    ck_assert(run(&paused, &policy, sets, 4, &params, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(paused.landed[2], 0);
    ck_assert_uint_eq(paused.landed[3], 0x20);
    moesim_outcome_fini(&out);

    struct script cancelled = {.entry = asked, .entries = 5, .at = 1, .cancel_at = 2};
    ck_assert(run(&cancelled, &policy, sets, 4, &params, &out, NULL) == MOESIM_OK);
    ck_assert_uint_eq(cancelled.landed[1], 0x08);
    ck_assert_uint_eq(cancelled.landed[2] | cancelled.landed[3], 0);
    moesim_outcome_fini(&out);
}
END_TEST

/* Of {0,1} with equal keys the higher id leaves, unless the policy says otherwise; what it was not shown it cannot name. */
START_TEST(test_victims)
{
    static const char *const sets[] = {"01", "01", "01"};
    static const moesim_prefetch_entry one[] = {{0, 7, 1}};
    moesim_policy policy = script_policy();
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_outcome out;
    struct script s = {.entry = one, .entries = 1, .at = 1}, t = s, u = s;
    ck_assert(run(&s, &policy, sets, 3, NULL, &out, NULL) == MOESIM_OK);
    ck_assert_double_eq(out.total.misses, 4 + 1);
    moesim_outcome_fini(&out);
    policy.victim = victim;
    t.victim = 0;
    ck_assert(run(&t, &policy, sets, 3, NULL, &out, NULL) == MOESIM_OK);
    ck_assert_double_eq(out.total.misses, 4 + 1);
    moesim_outcome_fini(&out);
    u.victim = 5;
    ck_assert(run(&u, &policy, sets, 3, NULL, &out, &err) == MOESIM_E_POLICY);
    ck_assert_ptr_nonnull(strstr(err.text, "victim names an expert that it was not shown (expert 5)"));
}
END_TEST

START_TEST(test_refused_prefetches)
{
    static const char *const sets[] = {"01", "01"};
    static const moesim_prefetch_entry layer[] = {{2, 0, 1}}, nan[] = {{0, 0, NAN}};
    const moesim_policy policy = script_policy();
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_outcome out;
    struct script a = {.entry = layer, .entries = 1, .at = 1}, b = {.entry = nan, .entries = 1, .at = 1};
    ck_assert(run(&a, &policy, sets, 2, NULL, &out, &err) == MOESIM_E_POLICY);
    ck_assert_ptr_nonnull(strstr(err.text, "prefetch 0 asks for expert 0 of layer 2; there are 2 layers of 8 experts"));
    ck_assert(run(&b, &policy, sets, 2, NULL, &out, &err) == MOESIM_E_POLICY);
    ck_assert_ptr_nonnull(strstr(err.text, "the priority of prefetch 0 is NaN"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_order_of_callbacks, test_views_hold_what_was_declared, test_retain_at_pass,
                                  test_shrinking_lazily_and_at_once, test_lazy_overshoot, test_swings_are_counted_once,
                                  test_refused_capacities, test_prefetch_lands_by_priority, test_prefetch_budget_pause_cancel,
                                  test_victims, test_refused_prefetches};
    Suite *suite = suite_create("engine between events");
    TCase *tc = tcase_create("between");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
