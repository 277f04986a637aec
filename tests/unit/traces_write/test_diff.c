/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences of traces: each is found where it is, with its values, and none where only the storage differs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/traces_write/common.h"
#include "traces/copy.h"
#include "traces/diff.h"

static moesim_code try_diff(const char *a, const char *b, double tolerance, moesim_diff *out, moesim_error *err)
{
    moesim_trace *one = NULL, *other = NULL;
    ck_assert_msg(moesim_trace_open(test_path(a), NULL, &one, err) == MOESIM_OK, "%s", err->text);
    ck_assert_msg(moesim_trace_open(test_path(b), NULL, &other, err) == MOESIM_OK, "%s", err->text);
    const moesim_code code = moesim_trace_diff(one, other, tolerance, out, err);
    moesim_trace_close(&one);
    moesim_trace_close(&other);
    return code;
}

static void diff(const char *a, const char *b, double tolerance, moesim_diff *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(try_diff(a, b, tolerance, out, &err) == MOESIM_OK, "%s", err.text);
}

static bool is_same(const moesim_diff_dataset *d)
{
    return d->in_a == d->in_b && !d->shapes_differ && d->differing == 0;
}

static const moesim_diff_dataset *find(const moesim_diff *found, const char *name)
{
    size_t i = 0;
    while (i < MOESIM_DIFF_DATASETS && strcmp(found->dataset[i].name, name) != 0)
        i++;
    ck_assert_uint_lt(i, MOESIM_DIFF_DATASETS);
    return &found->dataset[i];
}

static void new_trace(struct test_trace *t)
{
    rich_trace(t, 3);
    for (size_t r = 0; r < t->num_rows; r++)
        t->token_id[r] = (int32_t)r;
}

START_TEST(storage_does_not_count)
{
    struct test_trace t;
    moesim_diff found;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    uint64_t compared = 0;
    new_trace(&t);
    test_trace_write(&t, test_path("a.h5"));
    t.info.gate_is_f32 = true;
    test_trace_write(&t, test_path("wide.h5"));
    ck_assert_int_eq(moesim_trace_open(test_path("a.h5"), NULL, &trace, &err), MOESIM_OK);
    const moesim_writer_options options = {MOESIM_GZIP, 1};
    ck_assert_int_eq(moesim_trace_copy(trace, test_path("b.h5"), NULL, NULL, &options, NULL, &err), MOESIM_OK);
    moesim_trace_close(&trace);
    static const char *const other[] = {"a.h5", "b.h5", "wide.h5"};
    for (size_t i = 0; i < 3; i++) {
        diff("a.h5", other[i], 0.0, &found);
        ck_assert(!found.differs);
        compared = 0;
        for (size_t d = 0; d < MOESIM_DIFF_DATASETS; d++) {
            ck_assert(is_same(&found.dataset[d]));
            compared += found.dataset[d].compared;
        }
        /* every value was looked at: of layers, requests, passes and rows */
        ck_assert_uint_eq(compared, 2 * 5 + 1 + 6 * (t.info.has_output_tokens ? 3u : 2u) + 7 * t.num_passes + 1 +
                          t.num_rows * (4 + 3 * 15 + 5 * 24));
    }
    test_trace_fini(&t);
}
END_TEST

static size_t last_row(const struct test_trace *t) { return t->num_rows - 1; }
static size_t last_cell(const struct test_trace *t) { return t->num_rows * 15 - 1; }

static void layer_id(struct test_trace *t) { t->layer_ids[3] = -2; }
static void bytes(struct test_trace *t) { t->expert_bytes[4] = UINT64_C(1) << 33; }
static void resident(struct test_trace *t) { t->info.resident_bytes = UINT64_MAX; }
static void workload(struct test_trace *t) { snprintf(t->request[5].workload, sizeof t->request[5].workload, "new"); }
static void prompt(struct test_trace *t) { t->request[1].prompt_tokens = UINT32_MAX; }
static void kind(struct test_trace *t) { t->pass[2].pass.kind = t->pass[2].pass.kind == 1 ? 2 : 1; }
static void block(struct test_trace *t) { t->pass[3].pass.block = -7; }
static void step(struct test_trace *t) { t->pass[4].pass.step = 99; }
static void forward(struct test_trace *t) { t->pass[t->num_passes - 1].pass.forward = UINT64_MAX; }
static void pass_ns(struct test_trace *t) { t->pass[0].pass_ns = 12345678901234; }
static void position(struct test_trace *t) { t->position[last_row(t)] = INT32_MAX; }
static void state(struct test_trace *t) { t->state[7] ^= 1; }
static void confidence(struct test_trace *t) { t->confidence[last_row(t)] = isnan(t->confidence[last_row(t)]) ? 0.5f : NAN; }
static void token_id(struct test_trace *t) { t->token_id[2] = -1; }
static void expert(struct test_trace *t) { t->expert[last_cell(t)] = 65535; t->expert[0] = 65535; }
static void gate(struct test_trace *t) { t->gate[last_cell(t)] = 9.25f; }
static void prob(struct test_trace *t) { t->prob[5 * 24 * 2 + 24 * 3 + 7] = -1.5f; }
static void residency(struct test_trace *t) { t->residency[15 + 4] = 2; }

#define ANY UINT64_MAX

START_TEST(each_dataset)
{
    static const struct { void (*change)(struct test_trace *t); const char *name; uint64_t first[3]; const char *b; } row[] = {
        {layer_id, "/model/moe_layer_id", {3, 0, 0}, "-2"}, {bytes, "/model/expert_bytes", {4, 0, 0}, "8589934592"},
        {resident, "/model/resident_bytes", {0, 0, 0}, "18446744073709551615"},
        {workload, "/request/workload", {5, 0, 0}, "\"new\""}, {prompt, "/request/prompt_tokens", {1, 0, 0}, "4294967295"},
        {kind, "/pass/kind", {2, 0, 0}, NULL}, {block, "/pass/block", {3, 0, 0}, "-7"}, {step, "/pass/step", {4, 0, 0}, "99"},
        {forward, "/pass/forward", {ANY, 0, 0}, "18446744073709551615"},
        {pass_ns, "/observed/pass_ns", {0, 0, 0}, "12345678901234"},
        {position, "/token/position", {ANY, 0, 0}, "2147483647"}, {state, "/token/state", {7, 0, 0}, NULL},
        {confidence, "/token/confidence", {ANY, 0, 0}, NULL}, {token_id, "/token/id", {2, 0, 0}, "-1"},
        {expert, "/routing/expert", {0, 0, 0}, "65535"}, {gate, "/routing/gate", {ANY, 4, 2}, "9.25"},
        {prob, "/routing/router_prob", {2, 3, 7}, "-1.5"}, {residency, "/observed/residency", {1, 1, 1}, "2"},
    };
    struct test_trace t;
    moesim_diff found;
    new_trace(&t);
    test_trace_write(&t, test_path("a.h5"));
    test_trace_fini(&t);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        new_trace(&t);
        row[i].change(&t);
        test_trace_write(&t, test_path("b.h5"));
        diff("a.h5", "b.h5", 0.0, &found);
        ck_assert(found.differs);
        for (size_t d = 0; d < MOESIM_DIFF_DATASETS; d++) {
            const moesim_diff_dataset *at = &found.dataset[d];
            const bool here = strcmp(at->name, row[i].name) == 0;
            ck_assert_msg(is_same(at) == !here, "%s when %s was changed", at->name, row[i].name);
            if (!here)
                continue;
            ck_assert_uint_eq(at->differing, row[i].change == expert ? 2 : 1);
            for (int k = 0; k < 3; k++)
                ck_assert_uint_eq(at->first[k], row[i].first[k] != ANY ? row[i].first[k] : at->dim_a[0] - 1);
            ck_assert_str_ne(at->first_a, at->first_b);
            if (row[i].b != NULL)
                ck_assert_str_eq(at->first_b, row[i].b);
        }
        for (size_t k = 0; k < MOESIM_DIFF_ATTRIBUTES; k++)
            ck_assert(!found.attribute[k].differs);
        test_trace_fini(&t);
    }
}
END_TEST

START_TEST(tolerance)
{
    struct test_trace t;
    moesim_diff found;
    new_trace(&t);
    t.gate[0] = 0.5f;
    t.confidence[0] = 0.5f;
    t.confidence[1] = 0.5f;
    test_trace_write(&t, test_path("a.h5"));
    t.gate[0] = 0.5625f;
    t.confidence[0] = 0.53125f;
    test_trace_write(&t, test_path("b.h5"));
    t.confidence[1] = NAN;
    test_trace_write(&t, test_path("c.h5"));
    static const struct { double tolerance; uint64_t gates, confidences; } row[] = {
        {0.0, 1, 1}, {0.03125, 1, 0}, {0.0625, 0, 0},
    };
    for (size_t i = 0; i < 3; i++) {
        diff("a.h5", "b.h5", row[i].tolerance, &found);
        const moesim_diff_dataset *g = find(&found, "/routing/gate"), *c = find(&found, "/token/confidence");
        ck_assert_uint_eq(g->differing, row[i].gates);
        ck_assert(g->largest == 0.0625);
        ck_assert_uint_eq(c->differing, row[i].confidences);
        ck_assert(c->largest == 0.03125);
        ck_assert_int_eq(found.differs, i < 2);
    }
    diff("b.h5", "c.h5", 1e9, &found);   /* not a number is near none */
    const moesim_diff_dataset *c = find(&found, "/token/confidence");
    ck_assert(found.differs && c->differing == 1 && c->first[0] == 1);
    ck_assert_str_eq(c->first_b, "NaN");
    test_trace_fini(&t);
}
END_TEST

START_TEST(shapes_and_columns)
{
    struct test_trace t;
    moesim_diff found;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    new_trace(&t);
    test_trace_write(&t, test_path("a.h5"));
    t.info.has_gate = t.info.has_forward = false;
    memcpy(t.info.engine, "other", 6);
    t.info.commit_threshold = NAN;
    test_trace_write(&t, test_path("b.h5"));
    diff("a.h5", "b.h5", 0.0, &found);
    const moesim_diff_dataset *g = find(&found, "/routing/gate");
    ck_assert(found.differs && g->in_a && !g->in_b && g->compared == 0);
    size_t attributes = 0, datasets = 0;
    for (size_t i = 0; i < MOESIM_DIFF_ATTRIBUTES; i++)
        attributes += found.attribute[i].differs;
    for (size_t i = 0; i < MOESIM_DIFF_DATASETS; i++)
        datasets += !is_same(&found.dataset[i]);
    ck_assert(attributes == 2 && datasets == 2);
    ck_assert_int_eq(moesim_trace_open(test_path("a.h5"), NULL, &trace, &err), MOESIM_OK);
    const moesim_copy_selection layers = {0, UINT64_MAX, 1, 3, NULL};
    ck_assert_int_eq(moesim_trace_copy(trace, test_path("c.h5"), &layers, NULL, NULL, NULL, &err), MOESIM_OK);
    moesim_trace_close(&trace);
    diff("c.h5", "a.h5", 0.0, &found);
    const moesim_diff_dataset *e = find(&found, "/routing/expert"), *id = find(&found, "/model/moe_layer_id");
    ck_assert(found.differs && e->shapes_differ && e->compared == 0 && e->dim_a[1] == 2 && e->dim_b[1] == 5);
    ck_assert(id->differing == 2 && id->compared == 2 && is_same(find(&found, "/token/position")));
    test_trace_fini(&t);
}
END_TEST

/* A common beginning is compared whatever comes after it; what breaks a rule is an error, not a difference. */
START_TEST(lengths_and_damage)
{
    struct test_trace t;
    moesim_diff found;
    moesim_error err = MOESIM_ERROR_INIT;
    new_trace(&t);
    t.info.has_prob = false;   /* its array has no room for further rows */
    test_trace_write(&t, test_path("a.h5"));
    test_trace_add_pass(&t, 0, MOESIM_PASS_DENOISE, 9, 0, 3, 0);
    test_trace_write(&t, test_path("b.h5"));
    diff("a.h5", "b.h5", 0.0, &found);
    const moesim_diff_dataset *at = find(&found, "/token/position");
    ck_assert(found.differs && at->shapes_differ && at->differing == 0);
    ck_assert_uint_eq(at->compared, t.num_rows - 3);
    t.expert[0] = 24;
    test_trace_write(&t, test_path("c.h5"));
    ck_assert_int_ne(try_diff("a.h5", "c.h5", 0.0, &found, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, "c.h5: /routing/expert");
    test_trace_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("differences of traces");
    TCase *cases = tcase_create("diff");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, storage_does_not_count);
    tcase_add_test(cases, each_dataset);
    tcase_add_test(cases, tolerance);
    tcase_add_test(cases, shapes_and_columns);
    tcase_add_test(cases, lengths_and_damage);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
