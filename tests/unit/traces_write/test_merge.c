/* SPDX-License-Identifier: Apache-2.0
 *
 * Merged traces: every part is found again in them, what does not go together is refused, nothing is guessed.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/unit/traces_write/common.h"
#include "traces/h5.h"
#include "traces/merge.h"

static char notes[2048];

static void keep_note(void *cookie, const char *text)
{
    (void)cookie;
    moesim_text_add(notes, sizeof notes, "%s\n", text);
}

/* Files of the test's folder into m.h5. */
static moesim_code merge(const char *const *name, size_t n, const char *model, moesim_copy_result *result, moesim_error *err)
{
    const char *path[8];
    const moesim_merge_options options = {.writer = {MOESIM_ZSTD, 0}, .model = model, .note = keep_note};
    notes[0] = '\0';
    for (size_t i = 0; i < n; i++)
        path[i] = test_path(name[i]);
    return moesim_trace_merge(path, n, test_path("m.h5"), &options, result, err);
}

static void merge_well(const char *const *name, size_t n, moesim_copy_result *result)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(merge(name, n, NULL, result, &err) == MOESIM_OK, "%s", err.text);
}

static moesim_trace *open_merged(void)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    ck_assert_msg(moesim_trace_open(test_path("m.h5"), NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_validate(trace, false, NULL, NULL, &err) == MOESIM_OK, "%s", err.text);
    return trace;
}

/* One layer, two experts; a pass of one committed row for each of the given forward calls, two requests in turn. */
static void small_trace(struct test_trace *t, size_t n, const uint64_t *forward)
{
    test_trace_init(t, 1, 2, 1, 1);
    for (uint32_t q = 0; q < 2; q++)
        test_trace_add_request(t, "w", 3, -1);
    for (size_t p = 0; p < n; p++) {
        test_trace_add_pass(t, p % 2, MOESIM_PASS_DENOISE, (int32_t)p, 0, 1, (int32_t)p);
        t->expert[p] = 0;
        t->state[p] = MOESIM_STATE_COMMITTED_NOW;
        t->pass[p].pass.forward = forward[p];
        t->pass[p].pass_ns = p + 1;
    }
    t->info.has_forward = true;
}

START_TEST(parts_are_found_again)
{
    static const char *const name[] = {"a.h5", "b.h5", "c.h5"};
    struct test_trace t;
    moesim_copy_result result;
    size_t passes = 0, rows = 0;
    for (uint64_t i = 0; i < 3; i++) {
        rich_trace(&t, i + 1);
        t.info.has_forward = false;
        passes += t.num_passes;
        rows += t.num_rows;
        test_trace_write(&t, test_path(name[i]));
        test_trace_fini(&t);
    }
    merge_well(name, 3, &result);
    ck_assert(result.requests == 18 && result.layers == 5 && result.passes == passes && result.rows == rows);
    ck_assert_str_eq(notes, "");
    for (uint32_t i = 0; i < 3; i++)
        check_same_content(test_path("m.h5"), test_path(name[i]), 0, 6 * i);
    ck_assert_int_eq(rename(test_path("m.h5"), test_path("first.h5")), 0);
    merge_well(name, 3, NULL);
    ck_assert(same_bytes(test_path("first.h5"), test_path("m.h5")));
}
END_TEST

START_TEST(one_part_is_a_copy)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    rich_trace(&t, 4);
    test_trace_write(&t, test_path("a.h5"));
    ck_assert_int_eq(moesim_trace_open(test_path("a.h5"), NULL, &trace, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_trace_copy(trace, test_path("copy.h5"), NULL, NULL, NULL, NULL, &err), MOESIM_OK);
    moesim_trace_close(&trace);
    merge_well((const char *const[]){"a.h5"}, 1, NULL);
    ck_assert(same_bytes(test_path("copy.h5"), test_path("m.h5")));
    test_trace_fini(&t);
}
END_TEST

START_TEST(digests_of_all_parts)
{
    static const char *const name[] = {"0.h5", "1.h5", "2.h5", "3.h5", "4.h5"};
    char want[5 * MOESIM_DIGEST_CHARS] = "", digest[MOESIM_DIGEST_CHARS], *have = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_h5_file file;
    for (uint64_t i = 0; i < 5; i++) {
        struct test_trace t;
        small_trace(&t, 1, &i);
        test_trace_write(&t, test_path(name[i]));
        test_trace_fini(&t);
        ck_assert_int_eq(moesim_digest_file(test_path(name[i]), digest, &err), MOESIM_OK);
        moesim_text_add(want, sizeof want, "%s%s", i > 0 ? " " : "", digest);
    }
    merge_well(name, 5, NULL);
    ck_assert_int_eq(moesim_h5_open(test_path("m.h5"), false, &file, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_h5_attr_string(&file, "source_digest", 4096, &have, &err), MOESIM_OK);
    ck_assert_str_eq(have, want);
    free(have);
    moesim_h5_close(&file);
}
END_TEST

/* Calls of different parts never share a number; numbers that do not meet stay; passes without numbers ran alone. */
START_TEST(forward_calls)
{
    static const uint64_t a[] = {5, 5, 9}, b[] = {0, 0, 0}, c[] = {5, 7}, d[] = {100, 100};
    static const uint64_t want[] = {5, 5, 9, 10, 11, 12, 13, 15, 100, 100};
    static const char *const name[] = {"a.h5", "b.h5", "c.h5", "d.h5"};
    const struct { const uint64_t *forward; size_t n; } part[] = {{a, 3}, {b, 3}, {c, 2}, {d, 2}};
    moesim_error err = MOESIM_ERROR_INIT;
    for (size_t i = 0; i < 4; i++) {
        struct test_trace t;
        small_trace(&t, part[i].n, part[i].forward);
        t.info.has_forward = i != 1;
        test_trace_write(&t, test_path(name[i]));
        test_trace_fini(&t);
    }
    merge_well(name, 4, NULL);
    moesim_trace *m = open_merged();
    ck_assert_uint_eq(moesim_trace_get_info(m)->num_passes, 10);
    for (size_t p = 0; p < 10; p++) {
        moesim_pass pass;
        ck_assert_int_eq(moesim_trace_pass(m, p, &pass, &err), MOESIM_OK);
        ck_assert_msg(pass.forward == want[p], "pass %zu: %llu", p, (unsigned long long)pass.forward);
    }
    moesim_trace_close(&m);
}
END_TEST

START_TEST(no_numbers_left)
{
    static const uint64_t high[] = {0, UINT64_MAX};
    moesim_error err = MOESIM_ERROR_INIT;
    struct test_trace t;
    small_trace(&t, 2, high);
    test_trace_write(&t, test_path("a.h5"));
    test_trace_write(&t, test_path("b.h5"));
    test_trace_fini(&t);
    ck_assert_int_ne(merge((const char *const[]){"a.h5", "b.h5"}, 2, NULL, NULL, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_LIMIT, "/pass/forward");
    ck_assert_uint_eq(count_entries(), 2);
}
END_TEST

/* a has what can be left out, b has not; b has what can be filled in, a has not. */
START_TEST(columns_of_some)
{
    static const uint64_t forward[] = {0, 1, 2};
    static const char *const name[] = {"a.h5", "b.h5"};
    struct test_trace t;
    small_trace(&t, 3, forward);
    t.info.has_token_id = t.info.has_residency = t.info.has_pass_ns = true;
    t.info.shared_experts = 1;
    snprintf(t.info.dataset, sizeof t.info.dataset, "gsm8k");
    snprintf(t.info.license, sizeof t.info.license, "MIT");
    snprintf(t.info.engine, sizeof t.info.engine, "PyTorch");
    test_trace_write(&t, test_path("a.h5"));
    test_trace_fini(&t);
    small_trace(&t, 3, forward);
    t.info.has_gate = t.info.has_forward = false;
    t.info.has_resident_bytes = t.info.has_output_tokens = true;
    t.info.resident_bytes = 77;
    t.info.commit_threshold = 0.5;
    t.request[0].output_tokens = 40;
    t.request[0].output_tokens_known = t.request[1].output_tokens_known = true;
    snprintf(t.info.dataset, sizeof t.info.dataset, "mbpp");
    snprintf(t.info.license, sizeof t.info.license, "MIT");
    memset(t.info.engine, 'e', sizeof t.info.engine - 2);
    test_trace_write(&t, test_path("b.h5"));
    test_trace_fini(&t);
    merge_well(name, 2, NULL);
    moesim_trace *m = open_merged();
    const moesim_trace_info *i = moesim_trace_get_info(m);
    ck_assert(!i->has_gate && !i->has_token_id && !i->has_residency && !i->has_pass_ns && i->has_confidence);
    ck_assert(i->has_forward && i->has_output_tokens && i->has_resident_bytes && i->resident_bytes == 77);
    ck_assert(i->shared_experts == 1 && isnan(i->commit_threshold));
    ck_assert_str_eq(i->dataset, "gsm8k; mbpp");
    ck_assert_str_eq(i->license, "MIT");
    ck_assert_str_eq(i->engine, "");
    static const uint32_t tokens[] = {2, 1, 40, 0};   /* a: its committed rows */
    for (uint32_t q = 0; q < 4; q++)
        ck_assert_uint_eq(moesim_trace_get_request(m, q)->output_tokens, tokens[q]);
    moesim_trace_close(&m);
    static const char *const said[] = {"/routing/gate is", "/token/id is", "/observed/residency is", "/observed/pass_ns is",
                                       "engine is", "commit_threshold is"};
    size_t lines = 0;
    for (size_t k = 0; k < sizeof said / sizeof said[0]; k++)
        ck_assert_msg(strstr(notes, said[k]) != NULL, "%s lacks %s", notes, said[k]);
    for (const char *at = notes; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_uint_eq(lines, sizeof said / sizeof said[0]);
}
END_TEST

/* Kind "none" is that of a trace without confidences, even where it has the column. */
START_TEST(confidences_of_some)
{
    static const char *const name[] = {"a.h5", "b.h5"};
    for (size_t without = 0; without < 2; without++)
        for (int column = 0; column < 2; column++) {
            struct test_trace t;
            for (size_t i = 0; i < 2; i++) {
                small_trace(&t, 1, &(uint64_t){0});
                if (i == without) {
                    memcpy(t.info.confidence_kind, "none", 5);
                    t.info.has_confidence = column == 1;
                    t.info.has_confidence_values = false;
                }
                test_trace_write(&t, test_path(name[i]));
                test_trace_fini(&t);
            }
            merge_well(name, 2, NULL);
            moesim_trace *m = open_merged();
            ck_assert_str_eq(moesim_trace_get_info(m)->confidence_kind, "none");
            ck_assert(!moesim_trace_get_info(m)->has_confidence);
            ck_assert_ptr_nonnull(strstr(notes, "/token/confidence is left out"));
            moesim_trace_close(&m);
        }
}
END_TEST

static void other_layers(struct test_trace *t)
{
    test_trace_fini(t);
    test_trace_init(t, 2, 2, 1, 1);
}

static void other_experts(struct test_trace *t) { t->info.num_experts = 3; }
static void other_block(struct test_trace *t) { t->info.block_length = 4; }
static void other_gate(struct test_trace *t) { memcpy(t->info.gate_kind, "sig", 4); }
static void other_confidence(struct test_trace *t) { memcpy(t->info.confidence_kind, "top", 4); }
static void other_model(struct test_trace *t) { memcpy(t->info.model_id, "other", 6); }
static void other_layer_id(struct test_trace *t) { t->layer_ids[0] = 9; }
static void other_bytes(struct test_trace *t) { t->expert_bytes[0] = 9; }
static void other_hidden(struct test_trace *t) { t->info.hidden_size = 9; }
static void other_dtype(struct test_trace *t) { memcpy(t->info.weight_dtype, "bf16", 5); }
static void other_resident(struct test_trace *t) { t->info.resident_bytes = 9; }

/* The first of three leaves out hidden_size, weight_dtype and resident_bytes, in which the others differ. */
START_TEST(refusals)
{
    static const struct { void (*change)(struct test_trace *t); const char *part; } bad[] = {
        {other_layers, "num_moe_layers is 1 in the first and 2"}, {other_experts, "num_experts is 2 in the first and 3"},
        {other_block, "block_length is 1 in the first and 4"}, {other_gate, "gate_kind is \"test scores\""},
        {other_confidence, "confidence_kind is"}, {other_model, "--model NAME"},
        {other_layer_id, "/model/moe_layer_id[0] is 0 in the first and 9"},
        {other_bytes, "/model/expert_bytes[0] is 1000 in the first and 9"}, {other_hidden, "hidden_size is 8 in the first"},
        {other_dtype, "weight_dtype is \"f32\""}, {other_resident, "/model/resident_bytes is 8 in the first"},
    };
    static const char *const name[] = {"a.h5", "b.h5", "c.h5"};
    moesim_error err = MOESIM_ERROR_INIT;
    struct test_trace t;
    small_trace(&t, 1, &(uint64_t){0});
    test_trace_write(&t, test_path("a.h5"));
    test_trace_fini(&t);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (size_t k = 1; k < 3; k++) {
            small_trace(&t, 1, &(uint64_t){0});
            t.info.hidden_size = t.info.resident_bytes = 8;
            t.info.has_resident_bytes = true;
            memcpy(t.info.weight_dtype, "f32", 4);
            if (k == 2)
                bad[i].change(&t);
            test_trace_write(&t, test_path(name[k]));
            test_trace_fini(&t);
        }
        ck_assert_int_ne(merge(name, 3, NULL, NULL, &err), MOESIM_OK);
        ck_assert_ptr_nonnull(strstr(err.text, "c.h5 do not go together"));
        check_error(&err, MOESIM_E_FORMAT, bad[i].part);
        ck_assert_uint_eq(count_entries(), 3);
    }
    small_trace(&t, 1, &(uint64_t){0});
    other_model(&t);
    test_trace_write(&t, test_path("c.h5"));
    test_trace_fini(&t);
    ck_assert_msg(merge(name, 3, "one name", NULL, &err) == MOESIM_OK, "%s", err.text);
    moesim_trace *m = open_merged();
    ck_assert_str_eq(moesim_trace_get_info(m)->model_id, "one name");
    moesim_trace_close(&m);
}
END_TEST

START_TEST(files)
{
    moesim_error err = MOESIM_ERROR_INIT;
    struct test_trace t;
    rich_trace(&t, 1);
    test_trace_write(&t, test_path("a.h5"));
    t.expert[(t.num_rows - 1) * 15] = 24;
    test_trace_write(&t, test_path("bad.h5"));
    test_trace_fini(&t);
    ck_assert_int_eq(link(test_path("a.h5"), test_path("hard.h5")), 0);
    ck_assert_int_ne(merge((const char *const[]){"a.h5", "hard.h5"}, 2, NULL, NULL, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_USAGE, "is given twice");
    ck_assert_int_ne(merge((const char *const[]){"a.h5", "m.h5"}, 2, NULL, NULL, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_USAGE, "is the input itself");
    ck_assert_int_ne(merge((const char *const[]){"a.h5", "none.h5"}, 2, NULL, NULL, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_IO, "none.h5");
    ck_assert_int_ne(merge((const char *const[]){"a.h5", "bad.h5"}, 2, NULL, NULL, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, "bad.h5: /routing/expert");
    ck_assert_uint_eq(count_entries(), 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merged traces");
    TCase *cases = tcase_create("merge");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, parts_are_found_again);
    tcase_add_test(cases, one_part_is_a_copy);
    tcase_add_test(cases, digests_of_all_parts);
    tcase_add_test(cases, forward_calls);
    tcase_add_test(cases, no_numbers_left);
    tcase_add_test(cases, columns_of_some);
    tcase_add_test(cases, confidences_of_some);
    tcase_add_test(cases, refusals);
    tcase_add_test(cases, files);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
