/* SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: utilisation, hit rate and misses per pass of an independent implementation, policy by policy and capacity by
 * capacity. The block of the built-in sample is committed; the blocks of other traces are checked where MOESIM_KNOWN_ANSWERS
 * names the folder of reference-counts.json and MOESIM_TRACES that of the traces.
 */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/support.h"

#define TOLERANCE 1e-9

static const char *source_root(void)
{
    const char *root = getenv("MOESIM_SOURCE_ROOT");
    return root != NULL ? root : ".";
}

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL)
        test_die("%s:%d: %s", path, error.line, error.text);
    return root;
}

static void compare(const char *trace, const char *policy, const char *cache, const char *what, double got, json_t *want)
{
    ck_assert_msg(json_is_number(want), "%s: no number %s", trace, what);
    double expected = json_number_value(want);
    ck_assert_msg(fabs(got - expected) <= TOLERANCE * fmax(1.0, fabs(expected)),
                  "%s, %s at C = %s: %s is %.17g, not %.17g", trace, policy, cache, what, got, expected);
}

/* All policies of one capacity in one run; returns the number of answers compared. */
static size_t check_capacity(const char *trace, const char *path, const char *cache, json_t *policies)
{
    size_t n = json_object_size(policies), i = 0;
    const char **names = calloc(n, sizeof *names);
    moesim_outcome *out = calloc(n, sizeof *out);
    ck_assert(names != NULL && out != NULL);
    const char *name;
    json_t *answer;
    json_object_foreach(policies, name, answer)
        names[i++] = name;
    uint32_t slots = (uint32_t)strtoul(cache, NULL, 10);
    test_run_grid(path, names, n, &slots, 1, NULL, out);
    i = 0;
    json_object_foreach(policies, name, answer) {
        compare(trace, name, cache, "utilisation", test_metric(&out[i], "utilisation"), json_object_get(answer, "util"));
        compare(trace, name, cache, "hit_rate", test_metric(&out[i], "hit_rate"), json_object_get(answer, "hit_rate"));
        compare(trace, name, cache, "misses_per_pass", test_metric(&out[i], "misses_per_pass"),
                json_object_get(answer, "misses_per_pass"));
        moesim_outcome_fini(&out[i++]);
    }
    free(names);
    free(out);
    return 3 * n;
}

static size_t check_trace(const char *trace, const char *path, json_t *block)
{
    size_t answers = 0;
    const char *cache;
    json_t *policies;
    json_object_foreach(block, cache, policies)
        answers += check_capacity(trace, path, cache, policies);
    return answers;
}

START_TEST(test_sample)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/sample-counts.json", source_root());
    json_t *root = load(path);
    snprintf(path, sizeof path, "%s/traces/samples/sample.h5", source_root());
    size_t answers = check_trace("sample", path, json_object_get(root, "sample"));
    json_decref(root);
    printf("known answers checked: %zu of the built-in sample agree\n", answers);
    ck_assert_uint_eq(answers, 96);
}
END_TEST

START_TEST(test_traces)
{
    const char *known = getenv("MOESIM_KNOWN_ANSWERS"), *traces = getenv("MOESIM_TRACES");
    if (known == NULL || traces == NULL) {
        printf("skipped: MOESIM_KNOWN_ANSWERS and MOESIM_TRACES do not both name a folder\n");
        return;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/reference-counts.json", known);
    json_t *root = load(path), *block;
    size_t answers = 0;
    const char *trace;
    json_object_foreach(root, trace, block) {
        snprintf(path, sizeof path, "%s/%s.h5", traces, trace);
        ck_assert_msg(access(path, R_OK) == 0, "%s cannot be read", path);
        size_t n = check_trace(trace, path, block);
        printf("%s: %zu answers agree\n", trace, n);
        answers += n;
    }
    printf("known answers checked: %zu of reference-counts.json agree\n", answers);
    ck_assert_uint_ge(answers, 576);
    json_decref(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("counts");
    TCase *tc = tcase_create("counts");
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, test_sample);
    tcase_add_test(tc, test_traces);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
