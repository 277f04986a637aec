/* SPDX-License-Identifier: Apache-2.0
 *
 * What `moesim run` prints as JSON: its schema, and how its figures relate to each other.
 * usage: json_schema MOESIM SOURCE_ROOT
 */
#include <check.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/command.h"

static const char *const figures[] = {
    "utilisation", "utilisation_macro", "hit_rate", "miss_floor", "misses_per_pass", "moved_bytes_per_token",
    "wasted_share", "effective_transfer_ratio",
};

/* The result of a policy at a capacity. */
static const json_t *result_of(const json_t *run, const char *policy, json_int_t cache)
{
    const json_t *results = test_json_at(run, "results"), *result;
    size_t i;
    json_array_foreach(results, i, result)
        if (strcmp(test_json_text(result, "policy"), policy) == 0 && test_json_whole(result, "cache") == cache)
            return result;
    ck_abort_msg("no result of %s at %lld", policy, (long long)cache);
    return NULL;
}

static bool null_at(const json_t *root, const char *path)
{
    return json_is_null(test_json_at(root, "%s", path));
}

/* An interval without ends: [null, null]. */
static bool undefined_at(const json_t *root, const char *path)
{
    return json_array_size(test_json_at(root, "%s", path)) == 2 && json_is_null(test_json_at(root, "%s/0", path)) &&
           json_is_null(test_json_at(root, "%s/1", path));
}

START_TEST(test_schema)
{
    static const char *const members[] = { "schema", "trace", "config", "results", "paired", "gap" };
    static const struct { const char *name; json_int_t value; } sizes[] = {
        { "num_moe_layers", 20 }, { "num_experts", 256 }, { "top_k", 8 }, { "block_length", 16 },
        { "passes", 271 }, { "rows", 4416 }, { "requests", 2 },
    };
    static const char *const policies[] = { "lru", "belady", "oled:confidence=hindsight" };
    const json_t *got = test_run_json("--policy lru,belady --policy oled:confidence=hindsight --cache 40,60");
    ck_assert_str_eq(test_json_text(got, "schema"), "moesim.run/1");
    ck_assert_uint_eq(json_object_size(got), COUNT(members));
    for (size_t i = 0; i < COUNT(members); i++)
        test_json_at(got, "%s", members[i]);
    ck_assert_str_eq(test_json_text(got, "trace/model_id"), "example/blockdiff-moe-20x256k8");
    for (size_t i = 0; i < COUNT(sizes); i++)
        ck_assert_msg(test_json_whole(got, "trace/%s", sizes[i].name) == sizes[i].value, "%s", sizes[i].name);
    struct test_command digest = test_shell("sha256sum \"$SAMPLE\" | cut -d ' ' -f 1 | tr -d '\\n'");
    ck_assert_uint_eq(strlen(digest.out), 64);
    ck_assert_str_eq(test_json_text(got, "trace/digest"), digest.out);
    ck_assert_str_eq(test_json_text(got, "config/scope"), "layer");
    ck_assert_int_eq(test_json_whole(got, "config/seed"), 1);
    ck_assert_int_eq(test_json_whole(got, "config/resamples"), 10000);
    ck_assert_ptr_null(json_object_get(test_json_at(got, "config"), "threads"));
    ck_assert_uint_eq(json_array_size(test_json_at(got, "results")), 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_str_eq(test_json_text(got, "results/%d/policy", i), policies[i % 3]);
        ck_assert_int_eq(test_json_whole(got, "results/%d/cache", i), i < 3 ? 40 : 60);
        ck_assert_int_eq(test_json_bool(got, "results/%d/clairvoyant", i), i % 3 == 1);
        ck_assert_int_eq(test_json_bool(got, "results/%d/non_causal", i), i % 3 == 2);
    }
    ck_assert_ptr_nonnull(strstr(test_json_text(got, "results/2/options"), "confidence=hindsight"));
}
END_TEST

START_TEST(test_every_figure_has_its_interval)
{
    const json_t *got = test_json_at(test_run_json("--policy lru --cache 40"), "results/0");
    double hits = test_json_number(got, "hits"), misses = test_json_number(got, "misses");
    double accesses = test_json_number(got, "accesses");
    ck_assert_int_eq(test_json_whole(got, "n_requests"), 2);
    ck_assert_double_eq(test_json_number(got, "events"), test_json_number(got, "passes") * 20);
    ck_assert_double_eq(accesses, hits + misses);
    ck_assert_double_eq_tol(test_json_number(got, "hit_rate"), hits / accesses, 5e-16);
    for (size_t i = 0; i < COUNT(figures); i++) {
        const char *name = figures[i];
        double value = test_json_number(got, "%s", name);
        ck_assert_uint_eq(json_array_size(test_json_at(got, "ci/%s", name)), 2);
        double low = test_json_number(got, "ci/%s/0", name), high = test_json_number(got, "ci/%s/1", name);
        ck_assert_msg(low <= high, "%s: the interval is upside down", name);
        if (strcmp(name, "utilisation_macro") != 0)
            ck_assert_msg(low - 1e-12 <= value && value <= high + 1e-12, "%s lies outside its interval", name);
    }
    const char *name;
    json_t *interval;
    json_object_foreach(test_json_at(got, "ci"), name, interval)
        test_json_at(got, "%s", name);
}
END_TEST

START_TEST(test_undefined_is_null)
{
    const json_t *at_zero = test_json_at(test_run_json("--policy lru --cache 0"), "results/0");
    ck_assert(null_at(at_zero, "utilisation"));
    ck_assert(undefined_at(at_zero, "ci/utilisation"));
    ck_assert_double_eq(test_json_number(at_zero, "hit_rate"), 0);
    const json_t *one = test_json_at(test_run_json("--policy lru --cache 40 --requests 0:1"), "results/0");
    ck_assert_int_eq(test_json_whole(one, "n_requests"), 1);
    ck_assert(undefined_at(one, "ci/hit_rate"));
    const json_t *everywhere = test_json_at(test_run_json("--policy lru --cache 60MiB --scope global"), "results/0");
    ck_assert(null_at(everywhere, "utilisation"));
    ck_assert(null_at(everywhere, "miss_floor"));
    ck_assert_int_eq(test_json_whole(everywhere, "cache"), 60 << 20);
    ck_assert(!null_at(everywhere, "all_hit_rate"));
}
END_TEST

START_TEST(test_paired)
{
    static const char *const policies[] = { "oled", "belady" };
    static const char *const metrics[] = { "misses_per_pass", "utilisation" };
    const json_t *got = test_run_json("--policy lru,oled,belady --cache 40,100 --baseline lru --gap");
    ck_assert_uint_eq(json_array_size(test_json_at(got, "results")), 6);    /* belady-forced ran for --gap alone */
    ck_assert_uint_eq(json_array_size(test_json_at(got, "paired")), 8);
    for (int i = 0; i < 8; i++) {
        const json_t *pair = test_json_at(got, "paired/%d", i);
        const char *policy = policies[i / 2 % 2], *metric = metrics[i % 2];
        json_int_t cache = i < 4 ? 40 : 100;
        ck_assert_str_eq(test_json_text(pair, "policy"), policy);
        ck_assert_str_eq(test_json_text(pair, "baseline"), "lru");
        ck_assert_int_eq(test_json_whole(pair, "cache"), cache);
        ck_assert_str_eq(test_json_text(pair, "metric"), metric);
        double difference = test_json_number(result_of(got, policy, cache), "%s", metric) -
                            test_json_number(result_of(got, "lru", cache), "%s", metric);
        ck_assert_double_eq_tol(test_json_number(pair, "difference"), difference, 5e-10);
        /* two requests, one sign: of four flips two are as extreme */
        ck_assert_double_eq(test_json_number(pair, "p"), 0.5);
        ck_assert_int_eq(test_json_whole(pair, "n"), 2);
        ck_assert_str_eq(test_json_text(pair, "test"), "sign-flip, exact");
        ck_assert_uint_eq(json_array_size(test_json_at(pair, "interval")), 2);
        ck_assert_double_le(test_json_number(pair, "interval/0"), test_json_number(pair, "interval/1"));
        ck_assert_msg(!test_json_bool(pair, "distinguishable"), "two requests cannot tell two policies apart");
    }
}
END_TEST

START_TEST(test_gap)
{
    const json_t *got = test_run_json("--policy lru,oled,belady --cache 40,100 --baseline lru --gap");
    ck_assert_uint_eq(json_array_size(test_json_at(got, "gap")), 4);
    for (int i = 0; i < 4; i++) {
        const json_t *row = test_json_at(got, "gap/%d", i);
        ck_assert_str_eq(test_json_text(row, "policy"), i % 2 == 0 ? "lru" : "oled");
        ck_assert_int_eq(test_json_whole(row, "cache"), i < 2 ? 40 : 100);
        if (null_at(row, "not_applicable"))
            ck_assert_double_eq_tol(test_json_number(row, "admission_share") + test_json_number(row, "victim_share"), 1,
                                    5e-13);
        else
            ck_assert(null_at(row, "admission_share"));
    }
    ck_assert(!null_at(got, "gap/0/not_applicable"));
    ck_assert(null_at(got, "gap/2/not_applicable"));

    const json_t *bounds = test_run_json("--policy belady,belady-forced --cache 100");
    const json_t *lru = result_of(got, "lru", 100), *row = test_json_at(got, "gap/2");
    double best = test_json_number(result_of(bounds, "belady", 100), "misses");
    double forced = test_json_number(result_of(bounds, "belady-forced", 100), "misses");
    double above = test_json_number(lru, "misses") - best;
    ck_assert_double_eq_tol(test_json_number(row, "misses_per_pass_above_belady"),
                            above / test_json_number(lru, "passes"), 5e-10);
    ck_assert_double_eq_tol(test_json_number(row, "admission_share"), (forced - best) / above, 5e-13);
}
END_TEST

START_TEST(test_seed)
{
    const json_t *seven = test_run_json("--policy random --cache 40 --seed 7");
    const json_t *again = test_run_json("--policy random --cache 40 --seed 7");
    const json_t *other = test_run_json("--policy random --cache 40");
    ck_assert(json_equal(seven, again));
    ck_assert(!json_equal(test_json_at(seven, "results"), test_json_at(other, "results")));
}
END_TEST

START_TEST(test_decisions_digest)
{
    const json_t *got = test_run_json("--policy lru --cache 40 --decisions \"$WORK\"/d.h5");
    const char *digest = test_json_text(got, "decisions_digest");
    ck_assert_uint_eq(strlen(digest), 64);
    ck_assert_uint_eq(strspn(digest, "0123456789abcdef"), 64);
    ck_assert(json_equal(got, test_run_json("--policy lru --cache 40 --decisions \"$WORK\"/d.h5")));
}
END_TEST

/* Published captures: MOESIM_KNOWN_ANSWERS names the folder. */
#define ROUTINGS 83586

START_TEST(test_observed_residency)
{
    static const struct { const char *name; int budget_mib; } captures[] = {
        { "qwen", 4000 }, { "gemma", 4000 }, { "gptoss", 3000 },
    };
    regex_t differs;
    json_int_t checked = 0;
    if (test_shell("[ -d \"${MOESIM_KNOWN_ANSWERS:-/nonexistent}/route-trace\" ]").status != 0) {
        printf("skipped observed residencies: MOESIM_KNOWN_ANSWERS names no folder with captures\n");
        return;
    }
    ck_assert_int_eq(regcomp(&differs, "/observed/residency differs from lru in [0-9]+ of [0-9]+ places, first at row ",
                             REG_EXTENDED | REG_NOSUB), 0);
    for (size_t i = 0; i < COUNT(captures); i++) {
        const char *name = captures[i].name;
        struct test_command done = test_shell("\"$MOESIM\" trace import --from route-trace "
            "\"$MOESIM_KNOWN_ANSWERS/route-trace/%s.route.csv\" \"$WORK/%s.h5\"", name, name);
        ck_assert_msg(done.status == 0, "%s: exit status %d: %s", name, done.status, done.err);
        done = test_shell("\"$MOESIM\" run \"$WORK/%s.h5\" --policy lru --scope global --check-observed --cache %dMiB "
                          "--format json", name, captures[i].budget_mib);
        ck_assert_msg(done.status == 0, "%s: exit status %d: %s", name, done.status, done.err);
        ck_assert_str_eq(done.err, "");
        const json_t *observed = test_json_at(test_json_parse(done.out), "results/0/observed");
        ck_assert_int_eq(test_json_whole(observed, "wrong"), 0);
        checked += test_json_whole(observed, "checked");
        done = test_shell("\"$MOESIM\" run \"$WORK/%s.h5\" --policy lru --scope global --check-observed --cache %dMiB",
                          name, captures[i].budget_mib / 2);
        ck_assert_int_eq(done.status, 1);
        ck_assert_msg(regexec(&differs, done.err, 0, NULL, 0) == 0, "%s: %s", name, done.err);
    }
    regfree(&differs);
    printf("observed residencies checked: %lld\n", (long long)checked);
    ck_assert_int_eq(checked, ROUTINGS);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        test_schema, test_every_figure_has_its_interval, test_undefined_is_null, test_paired, test_gap, test_seed,
        test_decisions_digest, test_observed_residency,
    };
    return test_command_main("json_schema", argc, argv, tests, COUNT(tests));
}
