/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim sweep`: the same bytes for any number of threads, in shards, again from a result, and after being killed; its forms
 * agree with each other and with `moesim run`. usage: sweep MOESIM SOURCE_ROOT
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/result.h"
#include "tests/cli/command.h"
#include "tests/support/support.h"

#define GRID "--policy lru,oled-full,random --cache 20:100:40 --bandwidth 16,64 --batch 1,2 --profile h200-host"

START_TEST(test_threads)
{
    const char *one = succeed("\"$MOESIM\" sweep \"$SAMPLE\" " GRID " -o one.h5 --threads 1");
    const char *two = succeed("\"$MOESIM\" sweep \"$SAMPLE\" " GRID " -o two.h5 --threads 2 --window 2MiB");
    ck_assert_str_eq(one, two);
    succeed("cmp one.h5 two.h5");
    ck_assert_str_eq(succeed("ls *.h5*"), "one.h5\ntwo.h5\n");
}
END_TEST

START_TEST(test_shards)
{
    succeed("\"$MOESIM\" sweep \"$SAMPLE\" " GRID " -o whole.h5 >/dev/null");
    succeed("for i in 1 2 3; do \"$MOESIM\" sweep \"$SAMPLE\" " GRID " -o $i.h5 --shard $i/3 >/dev/null || exit 1; done");
    succeed("\"$MOESIM\" merge 3.h5 1.h5 2.h5 -o merged.h5 >/dev/null");
    succeed("cmp whole.h5 merged.h5");
}
END_TEST

START_TEST(test_again_from_a_result)
{
    const char *first = succeed("\"$MOESIM\" sweep \"$SAMPLE\" " GRID " --set link.alpha=9us,sync=1us --without head "
                                "--warmup 1 --requests 0:2 --as llada2.0-mini --dtype fp8,int4 -o a.h5");
    ck_assert_str_eq(first, succeed("\"$MOESIM\" sweep --from a.h5 -o b.h5"));
    succeed("cmp a.h5 b.h5");
    first = succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru,oled --curve -o c.h5");
    ck_assert_str_eq(first, succeed("\"$MOESIM\" sweep --from c.h5 -o d.h5"));
    succeed("cmp c.h5 d.h5");
}
END_TEST

START_TEST(test_a_changed_trace_is_refused)
{
    succeed("cp \"$SAMPLE\" t.h5 && \"$MOESIM\" sweep t.h5 --policy lru --cache 40 -o a.h5 >/dev/null");
    succeed("\"$MOESIM\" trace select t.h5 u.h5 --requests 0:1 && mv u.h5 t.h5");
    struct test_command c = test_shell("cd \"$WORK\" && \"$MOESIM\" sweep --from a.h5 -o b.h5");
    ck_assert_int_eq(c.status, 2);
    ck_assert_ptr_nonnull(strstr(c.err, "a trace, a profile or the program is not what it was"));
    ck_assert_ptr_nonnull(strstr(c.err, "digest"));
}
END_TEST

/* Runs a sweep and kills it `delay` after its partial file appeared, which is there from then on if it came in time. */
static bool kill_sweep(const char *words, const char *delay)
{
    return test_shell("cd \"$WORK\" && rm -f r.h5* && { \"$MOESIM\" sweep \"$SAMPLE\" %s -o r.h5 >/dev/null 2>&1 & } && "
                      "p=$! && while kill -0 $p 2>/dev/null && ! test -e r.h5.partial; do :; done; sleep %s; "
                      "kill -KILL $p 2>/dev/null; wait; test -e r.h5.partial", words, delay).status == 0;
}

START_TEST(test_killed_and_resumed)
{
    static const char *const delays[] = { "0", "0.02", "0.05", "0.1", "0.2", "0.4" };
    const char *whole = succeed("\"$MOESIM\" sweep \"$SAMPLE\" " GRID " -o whole.h5");
    unsigned interrupted = 0;
    for (size_t i = 0; i < COUNT(delays); i++) {
        interrupted += kill_sweep(GRID " --window 2MiB --checkpoint-every 0", delays[i]);
        ck_assert_str_eq(whole, succeed("\"$MOESIM\" sweep \"$SAMPLE\" " GRID
                                        " -o r.h5 --window 2MiB --checkpoint-every 0 --threads 1"));
        succeed("cmp whole.h5 r.h5");
        ck_assert_str_eq(succeed("ls -A | grep h5"), "r.h5\nwhole.h5\n");
    }
    ck_assert_uint_gt(interrupted, 0);
}
END_TEST

/* A kill in the middle of a write leaves a temporary file, which the next run removes; other processes' stay. */
START_TEST(test_half_written_files_go)
{
    succeed("sh -c 'touch .r.h5.$$-0.tmp .r.h5.partial.$$-0.tmp .r.h5.partial.3.$$-7.tmp .other.h5.$$-0.tmp'");
    succeed("touch .r.h5.$$-0.tmp && \"$MOESIM\" sweep \"$SAMPLE\" --policy lru --cache 40 -o r.h5 && mv .r.h5.$$-0.tmp kept");
    ck_assert_str_eq(succeed("ls -A | grep tmp | sed 's/[0-9]*-/PID-/'"), ".other.h5.PID-0.tmp\n");
}
END_TEST

START_TEST(test_changed_configuration_is_not_resumed)
{
    ck_assert(kill_sweep("--policy lru,surv,belady,oled --curve", "0"));
    struct test_command c = test_shell("cd \"$WORK\" && \"$MOESIM\" sweep \"$SAMPLE\" --policy lru,surv,belady,oled --curve "
                                       "--seed 2 -o r.h5");
    ck_assert_int_eq(c.status, 2);
    ck_assert_ptr_nonnull(strstr(c.err, "r.h5.partial is of another sweep"));
    ck_assert_ptr_nonnull(strstr(c.err, "seed: \"1\" against \"2\""));
    c = test_shell("cd \"$WORK\" && \"$MOESIM\" sweep \"$SAMPLE\" --policy lru,surv,belady,oled --curve --shard 1/2 -o r.h5");
    ck_assert_int_eq(c.status, 2);
    ck_assert_ptr_nonnull(strstr(c.err, "r.h5.partial is of shard 1/1"));
}
END_TEST

/* The next cell of a line of CSV without quotes. */
static char *next_cell(char **rest)
{
    return strsep(rest, ",");
}

START_TEST(test_csv_equals_json)
{
    char *text = strdup(succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru,oled-full --cache 40 --bandwidth 16,64 --csv a.csv "
                                "--format json"));
    const json_t *cells = test_json_at(test_json_parse(text), "cells");
    char *csv = strdup(succeed("cat a.csv")), *lines = csv, *head = strsep(&lines, "\n");
    ck_assert_int_eq(strncmp(head, "trace,policy,cache,bandwidth_gbps,tpot_ms,tpot_lo,tpot_hi,", 57), 0);
    ck_assert_uint_eq(json_array_size(cells), 6);
    for (size_t i = 0; i < 6; i++) {
        char *names = strdup(head), *rest_names = names, *rest = strsep(&lines, "\n");
        const json_t *cell = json_array_get(cells, i);
        size_t columns = 0;
        for (const char *name; (name = next_cell(&rest_names)) != NULL; columns++) {
            const char *field = next_cell(&rest);
            if (strcmp(name, "options") == 0 && field[0] == '"') {
                while (field[strlen(field) - 1] != '"')
                    field = next_cell(&rest);
                continue;
            }
            const json_t *value = test_json_at(cell, "%s", name);
            if (json_is_string(value))
                ck_assert_str_eq(field, json_string_value(value));
            else if (json_is_null(value))
                ck_assert_str_eq(field, "");
            else
                ck_assert_msg(strtod(field, NULL) == json_number_value(value), "%s: %s", name, field);
        }
        ck_assert_uint_eq(columns, json_object_size(cell));
        ck_assert_ptr_null(rest);
        free(names);
    }
    ck_assert_str_eq(lines, "");
    free(csv);
    free(text);
}
END_TEST

/* Every figure and interval of a cell is that of the same cell run alone. */
START_TEST(test_equals_run)
{
    char *text = strdup(succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru,oled-full,surv --cache 40,80 --bandwidth 16,64 "
                                "--profile h200-host --format json"));
    const json_t *cells = test_json_at(test_json_parse(text), "cells"), *cell;
    size_t i, compared = 0;
    json_array_foreach(cells, i, cell) {
        char words[256];
        snprintf(words, sizeof words, "--policy %s --cache %lld --bandwidth %.0f --profile h200-host",
                 test_json_text(cell, "policy"), (long long)test_json_whole(cell, "cache"),
                 test_json_number(cell, "bandwidth_gbps"));
        const json_t *result = test_json_at(test_run_json(words), "results/0"), *value;
        const char *name;
        json_object_foreach((json_t *)cell, name, value) {
            const json_t *alone = json_object_get(result, name);
            if (alone == NULL || !json_is_number(value))
                continue;
            ck_assert_msg(json_number_value(alone) == json_number_value(value), "%s: %s", words, name);
            compared++;
        }
        ck_assert(test_json_number(cell, "tpot_lo") == test_json_number(result, "ci/tpot_ms/0"));
        ck_assert(test_json_number(cell, "hit_rate_hi") == test_json_number(result, "ci/hit_rate/1"));
    }
    ck_assert_uint_eq(i, 14);
    ck_assert_uint_gt(compared, 14 * 30);
    free(text);
}
END_TEST

static const moesim_column_data *column(const moesim_result *r, const char *table, const char *name)
{
    const moesim_column_data *c = moesim_table_find(moesim_result_find(r, table), name);
    ck_assert_msg(c != NULL, "table %s lacks %s", table, name);
    return c;
}

/* Layers of a cell lie together, in order, and add up to the cell; slots that move between layers stay as many. */
START_TEST(test_layers)
{
    static const char *const sums[][2] = {{"events", "events"}, {"active", "accesses"}, {"hits", "hits"},
                                          {"misses", "misses"}, {"moved", "moved"},     {"cpu", "cpu"}};
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_result r;
    succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru,oled-full --policy oled:adapt=on --cache 20,40 "
            "--bandwidth 16,64 --warmup 1 --profile h200-host -o a.h5 >/dev/null");
    ck_assert_msg(moesim_result_read(test_path("a.h5"), &r, &err) == MOESIM_OK, "%s", err.text);
    const size_t cells = moesim_result_find(&r, "cells")->rows, rows = moesim_result_find(&r, "layers")->rows;
    const size_t layers = rows / cells;
    const double *slots = column(&r, "layers", "slots_mean")->real, *rate = column(&r, "layers", "hit_rate")->real;
    bool moved = false, on_cpu = false;
    ck_assert(cells == 14 && layers > 1 && rows == cells * layers);
    for (size_t c = 0; c < cells; c++) {
        double total = 0;
        for (size_t i = c * layers; i < (c + 1) * layers; i++) {
            ck_assert_int_eq(column(&r, "layers", "cell")->integer[i], column(&r, "cells", "cell")->integer[c]);
            ck_assert_int_eq(column(&r, "layers", "layer")->integer[i], (int64_t)(i % layers));
            ck_assert_double_eq(rate[i], (double)column(&r, "layers", "hits")->integer[i] /
                                         (double)column(&r, "layers", "active")->integer[i]);
            total += slots[i];
            moved = moved || fabs(slots[i] - (double)column(&r, "cells", "cache")->integer[c]) > .5;
            on_cpu = on_cpu || column(&r, "layers", "cpu")->integer[i] > 0;
        }
        ck_assert_double_eq_tol(total, (double)layers * (double)column(&r, "cells", "cache")->integer[c], 1e-6);
        for (size_t k = 0; k < COUNT(sums); k++) {
            int64_t sum = 0;
            for (size_t i = c * layers; i < (c + 1) * layers; i++)
                sum += column(&r, "layers", sums[k][0])->integer[i];
            ck_assert_msg((double)sum == column(&r, "cells", sums[k][1])->real[c], "cell %zu: %s", c, sums[k][0]);
        }
    }
    ck_assert(moved && on_cpu);
    moesim_result_fini(&r);
}
END_TEST

/* Findings by their definitions, from the cells. */
START_TEST(test_findings)
{
    char *text = strdup(succeed("\"$MOESIM\" sweep \"$SAMPLE\" --policy lru,belady --cache 60:240:20 --bandwidth 8,400 "
                                "--profile h200-host --format json"));
    const json_t *all = test_json_parse(text), *cells = test_json_at(all, "cells"), *one, *cell;
    size_t i, k;
    const double floor = test_json_number(all, "floor/0/tpot_ms");
    json_array_foreach(test_json_at(all, "knee"), i, one) {
        json_int_t least = 9999;
        json_array_foreach(cells, k, cell)
            if (strcmp(test_json_text(cell, "policy"), test_json_text(one, "policy")) == 0 &&
                test_json_number(cell, "bandwidth_gbps") == test_json_number(one, "bandwidth_gbps") &&
                test_json_number(cell, "tpot_ms") <= 1.05 * floor && test_json_whole(cell, "cache") < least)
                least = test_json_whole(cell, "cache");
        ck_assert_int_eq(json_is_null(test_json_at(one, "cache")) ? 9999 : test_json_whole(one, "cache"), least);
    }
    ck_assert_uint_eq(i, 4);
    json_array_foreach(test_json_at(all, "break_even"), i, one) {
        double at[2] = { 0, 0 };
        json_array_foreach(cells, k, cell)
            if (strcmp(test_json_text(cell, "policy"), test_json_text(one, "policy")) == 0 &&
                test_json_whole(cell, "cache") == test_json_whole(one, "cache"))
                at[test_json_number(cell, "bandwidth_gbps") > 8] = test_json_number(cell, "tpot_ms");
        const json_t *got = test_json_at(one, "break_even_gbps");
        if (at[1] > 1.05 * floor) {
            ck_assert(json_is_null(got));
        } else if (at[0] <= 1.05 * floor) {
            ck_assert(json_number_value(got) == 8 && test_json_bool(one, "at_most"));
        } else {
            const double share = (at[0] - 1.05 * floor) / (at[0] - at[1]);
            ck_assert_double_eq_tol(json_number_value(got), 1 / (1 / 8.0 + share * (1 / 400.0 - 1 / 8.0)), 1e-9);
        }
    }
    ck_assert_uint_eq(i, 20);
    json_array_foreach(test_json_at(all, "best"), i, one)
        ck_assert_str_eq(test_json_text(one, "policy"), "lru");
    ck_assert_uint_eq(i, 20);
    free(text);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        test_threads, test_shards, test_again_from_a_result, test_a_changed_trace_is_refused, test_killed_and_resumed,
        test_half_written_files_go, test_changed_configuration_is_not_resumed, test_csv_equals_json, test_equals_run,
        test_layers, test_findings,
    };
    return test_command_main("sweep", argc, argv, tests, COUNT(tests));
}
