/* SPDX-License-Identifier: Apache-2.0
 *
 * What every policy owes: decisions that do not depend on what has not happened yet, on other instances, on threads, on the
 * instruction set or on the path that the host takes. Run for every registered policy and every value of its options.
 * The clairvoyant ones must fail the prefix test and confidence=hindsight the garbage test: so the tests can see.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/policy/variants.h"
#include "tests/support/support.h"

static const uint32_t caches[] = { 3, 7, 12 };
#define NUM_CACHES (sizeof caches / sizeof caches[0])

static const struct test_shape shape = {
    .layers = 3, .experts = 24, .top_k = 3, .block_length = 4, .requests = 3, .blocks = 3, .prefill_rows = 5,
    .max_steps = 4, .commit_passes = true, .edits = true, .dummy_passes = true, .redraw = .3,
};

static struct variant list[MAX_VARIANTS];
static size_t num;

static void setup(void)
{
    num = variants(list);
    ck_assert_uint_gt(num, 16);
}

/* A test needs two traces at a time at most. */
static const char *write_trace(struct test_trace *t, const char *name)
{
    static char path[2][4096];
    static int turn;
    char *to = path[turn++ % 2];
    snprintf(to, sizeof path[0], "%s", test_path(name));
    test_trace_write(t, to);
    return to;
}

/* Fields of a decision list up to an event. */
static int same_ids(const uint64_t *begin_a, const uint16_t *a, const uint64_t *begin_b, const uint16_t *b, size_t events)
{
    return memcmp(begin_a, begin_b, (events + 1) * sizeof *begin_a) == 0 &&
           memcmp(a, b, begin_a[events] * sizeof *a) == 0;
}

/* Whether a and b decide alike in all events of passes ≤ last; evictions only of passes ≤ last_evicted. */
static int same_until(const struct test_decisions *a, const struct test_decisions *b, uint64_t last, uint64_t last_evicted)
{
    size_t n = 0, m = 0;
    while (n < a->num_events && a->pass[n] <= last)
        m = a->pass[n++] <= last_evicted ? n : m;
    ck_assert_uint_gt(n, 0);
    return n <= b->num_events && memcmp(a->pass, b->pass, n * sizeof *a->pass) == 0 &&
           same_ids(a->hits_begin, a->hits, b->hits_begin, b->hits, n) &&
           same_ids(a->moved_begin, a->moved, b->moved_begin, b->moved, n) &&
           same_ids(a->cpu_begin, a->cpu, b->cpu_begin, b->cpu, n) &&
           same_ids(a->evicted_begin, a->evicted, b->evicted_begin, b->evicted, m);
}

/* Decisions of a variant on two traces: 1 where they agree at every capacity. */
static int agree(const char *policy, const char *one, const char *two, uint64_t last, uint64_t last_evicted)
{
    int same = 1;
    for (size_t c = 0; c < NUM_CACHES; c++) {
        struct test_decisions a, b;
        moesim_outcome out;
        test_run_decisions(one, policy, caches[c], NULL, &out, &a);
        moesim_outcome_fini(&out);
        test_run_decisions(two, policy, caches[c], NULL, &out, &b);
        moesim_outcome_fini(&out);
        same &= same_until(&a, &b, last, last_evicted);
        test_decisions_fini(&a);
        test_decisions_fini(&b);
    }
    return same;
}

/* From this row on everything that a router or a decoder produces is another story. */
static void scramble(struct test_trace *t, size_t row)
{
    const size_t slots = (size_t)t->info.num_layers * t->info.top_k;
    for (size_t i = row * slots; i < t->num_rows * slots; i++)
        if (t->expert[i] != MOESIM_NO_ROUTE)
            t->expert[i] = (uint16_t)((t->expert[i] + 11u) % t->info.num_experts);
    for (size_t i = row; i < t->num_rows; i++)
        t->confidence[i] = isnan(t->confidence[i]) ? .5f : 1 - t->confidence[i];
}

/* A denoise pass past the middle that is not the first of its block. */
static size_t some_pass(const struct test_trace *t)
{
    for (size_t p = t->num_passes / 2; p + 4 < t->num_passes; p++)
        if (t->pass[p].pass.kind == MOESIM_DENOISE && t->pass[p].pass.step > 0)
            return p;
    ck_abort_msg("the random trace has no such pass");
    return 0;
}

START_TEST(test_prefix)
{
    struct test_trace t;
    test_trace_random(&t, &shape, 21);
    const size_t k = some_pass(&t);
    const char *one = write_trace(&t, "prefix1.h5");
    scramble(&t, test_trace_row(&t, k + 1));
    const char *two = write_trace(&t, "prefix2.h5");
    for (size_t i = 0; i < num; i++)
        ck_assert_msg(agree(list[i].text, one, two, k, k) == ((list[i].traits & MOESIM_CLAIRVOYANT) == 0), "%s %s",
                      list[i].text, (list[i].traits & MOESIM_CLAIRVOYANT) != 0 ? "does not look ahead" : "looks ahead");
    test_trace_fini(&t);
}
END_TEST

START_TEST(test_garbage)
{
    struct test_trace t;
    test_trace_random(&t, &shape, 22);
    const size_t k = some_pass(&t);
    const char *one = write_trace(&t, "garbage1.h5");
    for (size_t r = test_trace_row(&t, k); r < t.num_rows; r++)
        t.confidence[r] = (float)(r * 37 % 64) / 64.0f;
    const char *two = write_trace(&t, "garbage2.h5");
    for (size_t i = 0; i < num; i++) {
        /* what is selected at the end of the pass may know the pass's confidences */
        const uint64_t last_evicted = (list[i].traits & MOESIM_RETAIN_AT_PASS) != 0 ? k - 1 : k;
        const int causal = (list[i].traits & MOESIM_NON_CAUSAL) == 0;
        ck_assert_msg((list[i].traits & MOESIM_CLAIRVOYANT) != 0 || agree(list[i].text, one, two, k, last_evicted) == causal,
                      "%s %s the confidences of the pass that runs", list[i].text, causal ? "reads" : "does not read");
    }
    test_trace_fini(&t);
}
END_TEST

/* All variants and capacities in one run of small windows, twice each, equal runs of their own. */
START_TEST(test_together)
{
    struct test_trace t;
    const char *names[2 * MAX_VARIANTS];
    moesim_outcome *out = calloc(2 * MAX_VARIANTS * NUM_CACHES, sizeof *out), alone;
    moesim_run_params params;
    test_trace_random(&t, &shape, 23);
    const char *path = write_trace(&t, "together.h5");
    for (size_t i = 0; i < 2 * num; i++)
        names[i] = list[i % num].text;
    moesim_run_params_defaults(&params);
    params.window_bytes = 32768;
    test_run_grid(path, names, 2 * num, caches, NUM_CACHES, &params, out);
    for (size_t i = 0; i < 2 * num * NUM_CACHES; i++) {
        test_run(path, names[i / NUM_CACHES], caches[i % NUM_CACHES], NULL, &alone);
        ck_assert_msg(test_outcome_equal(&out[i], &alone), "%s at %u changes in company", names[i / NUM_CACHES],
                      caches[i % NUM_CACHES]);
        moesim_outcome_fini(&alone);
        moesim_outcome_fini(&out[i]);
    }
    free(out);
    test_trace_fini(&t);
}
END_TEST

START_TEST(test_threads)
{
    struct test_trace t;
    const char *names[MAX_VARIANTS];
    moesim_outcome *one = calloc(MAX_VARIANTS * NUM_CACHES, sizeof *one);
    moesim_outcome *four = calloc(MAX_VARIANTS * NUM_CACHES, sizeof *four);
    moesim_run_params params;
    test_trace_random(&t, &shape, 24);
    const char *path = write_trace(&t, "threads.h5");
    for (size_t i = 0; i < num; i++)
        names[i] = list[i].text;
    moesim_run_params_defaults(&params);
    params.window_bytes = 32768;
    for (params.batch = 1; params.batch <= 3; params.batch += 2) {
        params.threads = 1;
        test_run_grid(path, names, num, caches, NUM_CACHES, &params, one);
        params.threads = 4;
        test_run_grid(path, names, num, caches, NUM_CACHES, &params, four);
        for (size_t i = 0; i < num * NUM_CACHES; i++) {
            ck_assert_msg(test_outcome_equal(&one[i], &four[i]), "%s depends on threads", names[i / NUM_CACHES]);
            moesim_outcome_fini(&one[i]);
            moesim_outcome_fini(&four[i]);
        }
    }
    free(one);
    free(four);
    test_trace_fini(&t);
}
END_TEST

/* The path that a declared order selects decides as the generic one, and a run repeated decides the same. */
START_TEST(test_paths)
{
    struct test_trace t;
    test_trace_random(&t, &shape, 25);
    const char *path = write_trace(&t, "paths.h5");
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    params.seed = 9;
    for (size_t i = 0; i < num * NUM_CACHES; i++) {
        struct test_decisions d[3];
        moesim_outcome out[3];
        const int cpu = list[i / NUM_CACHES].dispatches;
        for (int run = 0; run < 3; run++) {
            params.generic = run == 1;
            test_run_decisions(path, list[i / NUM_CACHES].text, caches[i % NUM_CACHES], &params, &out[run], &d[run]);
        }
        ck_assert_msg(test_decisions_equal(&d[0], &d[1]) && test_outcome_equal(&out[0], &out[1]),
                      "%s: the fast path is another policy", list[i / NUM_CACHES].text);
        ck_assert_msg((d[0].cpu_begin[d[0].num_events] > 0) == cpu, "%s: the CPU gets %s", list[i / NUM_CACHES].text,
                      cpu ? "nothing" : "work");
        ck_assert_msg(test_decisions_equal(&d[0], &d[2]), "%s decides differently the second time", list[i / NUM_CACHES].text);
        for (int run = 0; run < 3; run++) {
            moesim_outcome_fini(&out[run]);
            test_decisions_fini(&d[run]);
        }
    }
    test_trace_fini(&t);
}
END_TEST

START_TEST(test_seeds)
{
    struct test_trace t;
    test_trace_random(&t, &shape, 26);
    const char *path = write_trace(&t, "seeds.h5");
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    for (size_t i = 0; i < num; i++) {
        moesim_outcome a, b;
        params.seed = 1;
        test_run(path, list[i].text, 7, &params, &a);
        params.seed = 2;
        test_run(path, list[i].text, 7, &params, &b);
        ck_assert_msg(test_outcome_equal(&a, &b) == (strcmp(list[i].text, "random") != 0), "%s and the seed", list[i].text);
        moesim_outcome_fini(&a);
        moesim_outcome_fini(&b);
    }
    test_trace_fini(&t);
}
END_TEST

/* FNV-1a over the decisions of a variant. */
static uint64_t fingerprint(const char *path, const char *policy, uint32_t cache)
{
    struct test_decisions d;
    moesim_outcome out;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    test_run_decisions(path, policy, cache, NULL, &out, &d);
    const struct { const void *bytes; size_t n; } part[] = {
        { d.hits, d.hits_begin[d.num_events] * 2 }, { d.moved, d.moved_begin[d.num_events] * 2 },
        { d.cpu, d.cpu_begin[d.num_events] * 2 }, { d.evicted, d.evicted_begin[d.num_events] * 2 },
        { d.evicted_begin, (d.num_events + 1) * 8 },
    };
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        for (size_t k = 0; k < part[i].n; k++)
            hash = (hash ^ ((const unsigned char *)part[i].bytes)[k]) * UINT64_C(0x100000001b3);
    moesim_outcome_fini(&out);
    test_decisions_fini(&d);
    return hash;
}

/* The instruction set is chosen once per process, hence children. */
static void fingerprints(const char *path, const char *cpu, uint64_t *out)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setenv("MOESIM_CPU", cpu, 1);
        for (size_t i = 0; i < num; i++)
            out[i] = fingerprint(path, list[i].text, caches[i % NUM_CACHES]);
        _exit(write(ends[1], out, num * sizeof *out) == (ssize_t)(num * sizeof *out) ? 0 : 1);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(ends[0], (char *)out + got, num * sizeof *out - got)) > 0;)
        got += (size_t)n;
    int status = -1;
    waitpid(child, &status, 0);
    close(ends[0]);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(got, num * sizeof *out);
}

START_TEST(test_instructions)
{
    struct test_trace t;
    uint64_t base[MAX_VARIANTS], wide[MAX_VARIANTS];
    test_trace_random(&t, &shape, 27);
    const char *path = write_trace(&t, "instructions.h5");
    fingerprints(path, "base", base);
    fingerprints(path, "avx2", wide);
    for (size_t i = 0; i < num; i++)
        ck_assert_msg(base[i] == wide[i], "%s depends on the instruction set", list[i].text);
    test_trace_fini(&t);
}
END_TEST

/* Scope global: what cannot be compared over layers is refused, the rest takes the same decisions on both paths. */
START_TEST(test_global)
{
    struct test_trace t;
    size_t run = 0;
    test_trace_random(&t, &shape, 28);
    const char *path = write_trace(&t, "global.h5");
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    for (size_t i = 0; i < num; i++) {
        moesim_outcome a, b;
        if ((list[i].traits & (MOESIM_KEYS_AGE | MOESIM_RETAIN_AT_PASS)) != 0 || list[i].layer_only) {
            moesim_error err = MOESIM_ERROR_INIT;
            params.scope = MOESIM_SCOPE_GLOBAL;
            ck_assert_msg(test_try_run(path, list[i].text, 0, &params, &a, &err) != MOESIM_OK, "%s runs in scope global",
                          list[i].text);
            moesim_outcome_fini(&a);
            continue;
        }
        params.generic = false;
        test_run_global(path, list[i].text, 20000, &params, &a);
        params.generic = true;
        test_run_global(path, list[i].text, 20000, &params, &b);
        ck_assert_msg(test_outcome_equal(&a, &b), "%s: the fast path is another policy", list[i].text);
        ck_assert_uint_gt(a.evictions, 0);
        moesim_outcome_fini(&a);
        moesim_outcome_fini(&b);
        run++;
    }
    ck_assert_uint_gt(run, 8);
    test_trace_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conformance");
    TCase *tests = tcase_create("conformance");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, test_prefix);
    tcase_add_test(tests, test_garbage);
    tcase_add_test(tests, test_together);
    tcase_add_test(tests, test_threads);
    tcase_add_test(tests, test_paths);
    tcase_add_test(tests, test_seeds);
    tcase_add_test(tests, test_instructions);
    tcase_add_test(tests, test_global);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
