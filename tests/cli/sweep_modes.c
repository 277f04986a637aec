/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim sweep` with --scope, --order and --bound: what `moesim run` says with the same words; bounds that hold, that are
 * reached where they are exact, and that travel with the result. usage: sweep_modes MOESIM SOURCE_ROOT
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/command.h"
#include "tests/support/support.h"

#define BOUNDED "--policy lru,lfu,naive,oled,belady,ideal --cache 0,40:160:60 --bound offline-cost "

/* The cells of a sweep of the sample; free *text when done with them. */
static const json_t *sweep(const char *words, char **text)
{
    char line[512];
    snprintf(line, sizeof line, "\"$MOESIM\" sweep \"$SAMPLE\" %s --format json", words);
    *text = strdup(succeed(line));
    return test_json_at(test_json_parse(*text), "cells");
}

/* Every number of the cell is that of the run; undefined in the one is undefined in the other. */
static size_t compare(const json_t *cell, const char *words)
{
    const json_t *result = test_json_at(test_run_json(words), "results/0"), *value;
    const char *name;
    size_t compared = 0;
    json_object_foreach((json_t *)cell, name, value) {
        const json_t *alone = json_object_get(result, name);
        if (alone == NULL || json_is_string(alone) || json_is_boolean(alone))
            continue;
        ck_assert_msg(json_equal(alone, value) == 1 || json_number_value(alone) == json_number_value(value), "%s: %s", words,
                      name);
        ck_assert_int_eq(json_is_null(alone), json_is_null(value));
        compared++;
    }
    return compared;
}

START_TEST(test_modes_equal_run)
{
    static const char *const modes[][2] = {
        { "--scope global", "--policy lru,lfu,oled,belady --cache 64MiB,1GiB" },
        { "--order flattened", "--policy lru,lfu,naive --cache 8,40" },
    };
    for (size_t m = 0; m < COUNT(modes); m++) {
        char words[256], *text = NULL;
        const json_t *cell;
        size_t i;
        snprintf(words, sizeof words, "%s %s", modes[m][0], modes[m][1]);
        const json_t *cells = sweep(words, &text);
        json_array_foreach(cells, i, cell) {
            snprintf(words, sizeof words, "%s --policy %s --cache %lld%s", modes[m][0], test_json_text(cell, "policy"),
                     (long long)test_json_whole(cell, "cache"), m == 0 ? "B" : "");
            ck_assert_uint_gt(compare(cell, words), 20);
        }
        ck_assert_uint_eq(i, m == 0 ? 8 : 6);
        free(text);
    }
}
END_TEST

START_TEST(test_bound_equals_run)
{
    static const char *const prices[] = {
        "--profile h200-host --bandwidth 64", "--profile paper-a --bandwidth 16 --requests 1:2",
        "--profile h200-host --without overlap,sync --bandwidth 25 --warmup 1",
    };
    for (size_t k = 0; k < COUNT(prices); k++) {
        char words[256], *text = NULL;
        const json_t *cell;
        size_t i;
        snprintf(words, sizeof words, "--policy lru --cache 20,100 --bound offline-cost %s", prices[k]);
        const json_t *cells = sweep(words, &text), *bounds = test_json_at(test_run_json(words), "bounds");
        ck_assert_uint_eq(json_array_size(cells), 3);
        json_array_foreach(bounds, i, cell)
            ck_assert(test_json_number(cell, "ms_per_token") == test_json_number(json_array_get(cells, i), "offline_cost_ms"));
        ck_assert_uint_eq(i, 2);
        free(text);
    }
}
END_TEST

/* Policies of fixed slots that move every miss or leave it to the CPU, in every mode. */
START_TEST(test_bound_holds)
{
    static const char *const prices[] = {
        "--profile h200-host --bandwidth 8,400", "--profile paper-a --bandwidth 16,64", "--time model --bandwidth 32",
        "--profile h200-host --without overlap --bandwidth 8,64", "--profile h200-host --without contention,sync,other,head",
    };
    for (size_t k = 0; k < COUNT(prices); k++) {
        char words[256], *text = NULL;
        const json_t *cell;
        size_t i, bounded = 0;
        snprintf(words, sizeof words, BOUNDED "--policy oled:dispatch=load --policy surv:dispatch=reuse %s", prices[k]);
        const json_t *cells = sweep(words, &text);
        json_array_foreach(cells, i, cell) {
            const char *policy = test_json_text(cell, "policy");
            const bool free_reload = strcmp(policy, "ideal") == 0 || strcmp(policy, "full") == 0;
            ck_assert_int_eq(json_is_null(test_json_at(cell, "tpot_bound_ms")), free_reload);
            if (free_reload)
                continue;
            const double tpot = test_json_number(cell, "tpot_ms"), least = test_json_number(cell, "tpot_bound_ms");
            ck_assert_msg(least <= tpot * (1 + 1e-12), "%s: %s at %lld: %.17g above %.17g", prices[k], policy,
                          (long long)test_json_whole(cell, "cache"), least, tpot);
            ck_assert(test_json_number(cell, "offline_cost_ms") > 0);
            bounded++;
        }
        ck_assert_uint_ge(bounded, 7 * 4);
        free(text);
    }
}
END_TEST

/* Where the CPU is hopeless only copies are left, and belady makes fewest of them: the bound is what belady takes. */
START_TEST(test_bound_is_reached)
{
    char *text = NULL;
    const json_t *cell;
    size_t i, reached = 0;
    const json_t *cells = sweep("--policy belady,lru --cache 20:220:50 --profile paper-a --set paper.tau=1000s "
                                "--bandwidth 16,64 --bound offline-cost", &text);
    json_array_foreach(cells, i, cell) {
        if (strcmp(test_json_text(cell, "policy"), "belady") != 0)
            continue;
        const double tpot = test_json_number(cell, "tpot_ms");
        ck_assert_double_eq_tol(test_json_number(cell, "tpot_bound_ms"), tpot, 1e-5 * tpot);
        reached++;
    }
    ck_assert_uint_eq(reached, 10);
    free(text);
}
END_TEST

START_TEST(test_bound_travels)
{
    const char *whole = succeed("\"$MOESIM\" sweep \"$SAMPLE\" " BOUNDED "--bandwidth 16,64 --profile h200-host -o w.h5");
    ck_assert_ptr_nonnull(strstr(whole, "at least"));
    ck_assert_str_eq(whole, succeed("\"$MOESIM\" sweep --from w.h5 -o again.h5"));
    succeed("cmp w.h5 again.h5");
    succeed("for i in 1 2 3; do \"$MOESIM\" sweep \"$SAMPLE\" " BOUNDED "--bandwidth 16,64 --profile h200-host -o $i.h5 "
            "--shard $i/3 --threads 1 >/dev/null || exit 1; done; \"$MOESIM\" merge 3.h5 1.h5 2.h5 -o m.h5 >/dev/null");
    succeed("cmp w.h5 m.h5");
    succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru --cache 40 --scope layer --order atomic -o old.h5 >/dev/null");
    succeed("! grep -aq '\"scope\"\\|\"order\"\\|\"bound\"' old.h5");   /* what older results say */
}
END_TEST

START_TEST(test_modes_travel)
{
    const char *first = succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru,belady --scope global --cache 64MiB,1000000000B "
                                "-o a.h5");
    ck_assert_str_eq(first, succeed("\"$MOESIM\" sweep --from a.h5 -o b.h5"));
    succeed("cmp a.h5 b.h5");
    succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru --cache 40 --order flattened -o c.h5 >/dev/null");
    succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru --cache 40 -o d.h5 >/dev/null");
    struct test_command c = test_shell("cd \"$WORK\" && \"$MOESIM\" merge c.h5 d.h5 -o e.h5");
    ck_assert_int_eq(c.status, 2);
    ck_assert_ptr_nonnull(strstr(c.err, "different configurations"));
    c = test_shell("cd \"$WORK\" && \"$MOESIM\" sweep --from c.h5 --order atomic -o e.h5");
    ck_assert_int_eq(c.status, 2);
    ck_assert_ptr_nonnull(strstr(c.err, "leave out --order"));
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        test_modes_equal_run, test_bound_equals_run, test_bound_holds, test_bound_is_reached, test_bound_travels,
        test_modes_travel,
    };
    return test_command_main("sweep_modes", argc, argv, tests, COUNT(tests));
}
