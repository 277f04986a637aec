/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim compare` and `moesim merge` on results whose figures are known. usage: results MOESIM SOURCE_ROOT
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/command.h"
#include "tests/support/support.h"
#include "tests/unit/result/common.h"

static moesim_error err;

static double three[SAMPLE_REQUESTS], around[SAMPLE_REQUESTS];

/* a.h5: the sample; b.h5: every request misses three more; c.h5: four more or four less, which cancels out but for one. */
static void write_results(void)
{
    for (int q = 0; q < SAMPLE_REQUESTS; q++) {
        three[q] = 3;
        around[q] = q % 2 ? 4 : -4;
    }
    write_sample(test_path("a.h5"), "", NULL);
    write_sample(test_path("b.h5"), "", three);
    write_sample(test_path("c.h5"), "", around);
}

static struct test_command run(const char *words)
{
    return test_shell("cd \"$WORK\" && \"$MOESIM\" %s", words);
}

static json_t *compare(const char *words)
{
    struct test_command done = test_shell("cd \"$WORK\" && \"$MOESIM\" compare --format json %s", words);
    ck_assert_msg(done.status == 0, "compare %s: exit status %d: %s", words, done.status, done.err);
    return test_json_parse(done.out);
}

static void refused(const char *words, int status, const char *message)
{
    struct test_command done = run(words);
    ck_assert_msg(done.status == status, "%s: exit status %d: %s", words, done.status, done.err);
    ck_assert_str_eq(done.out, "");
    ck_assert_msg(strstr(done.err, message) != NULL, "\"%s\" lacks \"%s\"", done.err, message);
}

/* Σ misses / Σ passes and Σ tpot·tokens / Σ tokens of a cell of the sample. */
static double misses_per_pass(int cell)
{
    double sum = 0;
    for (int q = 0; q < SAMPLE_REQUESTS; q++)
        sum += sample_misses(cell, q);
    return sum / (20 * SAMPLE_REQUESTS);
}

static double tpot(int cell)
{
    double time = 0, tokens = 0;
    for (int q = 0; q < SAMPLE_REQUESTS; q++) {
        time += (5 + sample_misses(cell, q) / 100) * (32 + q);
        tokens += 32 + q;
    }
    return time / tokens;
}

static size_t columns_of(const char *line, const char *end)
{
    size_t n = 0;
    for (; line < end; line++)
        n += ((unsigned char)*line & 0xc0u) != 0x80u;
    return n;
}

START_TEST(figures)
{
    write_results();
    json_t *o = compare("a.h5 b.h5");
    ck_assert_str_eq(test_json_text(o, "schema"), "moesim.compare/1");
    ck_assert_int_eq(test_json_whole(o, "cells/common"), SAMPLE_CELLS);
    ck_assert_uint_eq(json_array_size(test_json_at(o, "results")), 2 * SAMPLE_CELLS);
    for (int i = 0; i < 2 * SAMPLE_CELLS; i++) {
        const int cell = i % SAMPLE_CELLS;
        const bool time = i < SAMPLE_CELLS;
        const double a = time ? tpot(cell) : misses_per_pass(cell), step = time ? .03 : .15;
        ck_assert_str_eq(test_json_text(o, "results/%d/metric", i), time ? "tpot_ms" : "misses_per_pass");
        ck_assert_int_eq(test_json_whole(o, "results/%d/cell_a", i), cell);
        ck_assert_int_eq(test_json_whole(o, "results/%d/cell_b", i), cell);
        ck_assert_int_eq(test_json_whole(o, "results/%d/cache", i), cell & 2 ? 40 : 20);
        ck_assert_str_eq(test_json_text(o, "results/%d/policy_b", i), cell & 1 ? "oled" : "lru");
        ck_assert_int_eq(test_json_whole(o, "results/%d/n_requests", i), SAMPLE_REQUESTS);
        ck_assert_double_eq_tol(test_json_number(o, "results/%d/a", i), a, 1e-12);
        ck_assert_double_eq_tol(test_json_number(o, "results/%d/b", i), a + step, 1e-12);
        ck_assert_double_eq_tol(test_json_number(o, "results/%d/difference", i), -step, 1e-12);
        ck_assert_double_eq_tol(test_json_number(o, "results/%d/interval/0", i), -step, 1e-12);
        ck_assert_double_eq_tol(test_json_number(o, "results/%d/interval/1", i), -step, 1e-12);
        ck_assert_double_lt(test_json_number(o, "results/%d/p", i), .001);
        ck_assert(test_json_bool(o, "results/%d/distinguishable", i));
    }
}
END_TEST

START_TEST(not_distinguishable)
{
    write_results();
    json_t *o = compare("a.h5 c.h5 --metric misses");
    ck_assert_uint_eq(json_array_size(test_json_at(o, "results")), SAMPLE_CELLS);
    for (int i = 0; i < SAMPLE_CELLS; i++) {
        ck_assert_double_eq_tol(test_json_number(o, "results/%d/difference", i), 4. / (20 * SAMPLE_REQUESTS), 1e-12);
        ck_assert_double_lt(test_json_number(o, "results/%d/interval/0", i), 0);
        ck_assert_double_gt(test_json_number(o, "results/%d/interval/1", i), 0);
        ck_assert_double_gt(test_json_number(o, "results/%d/p", i), .5);
        ck_assert(!test_json_bool(o, "results/%d/distinguishable", i));
    }
    struct test_command table = run("compare a.h5 c.h5 --metric misses");
    ck_assert_ptr_nonnull(strstr(table.out, " n.d.\n"));
    ck_assert_ptr_nonnull(strstr(table.out, "n.d.: not distinguishable"));
    table = run("compare a.h5 b.h5 --metric misses");
    ck_assert_ptr_null(strstr(table.out, "n.d."));
}
END_TEST

/* oled's cell is the next one of the sample, with 30 misses less. */
START_TEST(two_policies)
{
    write_results();
    json_t *o = compare("a.h5 a.h5 --a-policy lru --b-policy oled --metric misses_per_pass");
    ck_assert_uint_eq(json_array_size(test_json_at(o, "results")), SAMPLE_CELLS / 2);
    for (int i = 0; i < SAMPLE_CELLS / 2; i++) {
        ck_assert_int_eq(test_json_whole(o, "results/%d/cell_a", i), 2 * i);
        ck_assert_int_eq(test_json_whole(o, "results/%d/cell_b", i), 2 * i + 1);
        ck_assert_double_eq_tol(test_json_number(o, "results/%d/difference", i), 1.5, 1e-12);
    }
}
END_TEST

START_TEST(part_of_the_cells)
{
    write_results();
    write_sample(test_path("half.h5"), "2/2", three);
    json_t *o = compare("half.h5 a.h5 --metric output_tokens");
    ck_assert_int_eq(test_json_whole(o, "cells/common"), 4);
    ck_assert_int_eq(test_json_whole(o, "cells/a_alone"), 0);
    ck_assert_int_eq(test_json_whole(o, "cells/b_alone"), 4);
    ck_assert_double_eq_tol(test_json_number(o, "results/0/a"), 32 + (SAMPLE_REQUESTS - 1) / 2., 1e-12);
    ck_assert_double_eq(test_json_number(o, "results/0/difference"), 0);
    ck_assert_double_eq(test_json_number(o, "results/0/p"), 1);
    ck_assert(json_is_null(test_json_at(o, "configurations_differ")));
}
END_TEST

/* Requests that one side alone has are left out, and their number is said; one that is undefined counts nowhere. */
START_TEST(requests_of_one_side)
{
    moesim_result r;
    write_results();
    sample_result(&r, "", three);
    int64_t *request = r.table[1].column[1].integer;
    for (size_t i = 0; i < r.table[1].rows; i++)
        request[i] += 5;
    r.table[1].column[6].real[0] = NAN;              /* request 5 of cell 0 */
    OK(moesim_result_set(&r, "seed", "2", &err));
    OK(moesim_result_write(&r, test_path("later.h5"), &err));
    moesim_result_fini(&r);
    json_t *o = compare("a.h5 later.h5 --metric misses");
    ck_assert_int_eq(test_json_whole(o, "requests_left_out"), 5);
    ck_assert_int_eq(test_json_whole(o, "results/0/n_requests"), SAMPLE_REQUESTS - 5);
    /* misses repeat every five requests, so that the shift changes nothing; without request 5, whose misses are the least */
    ck_assert_double_eq_tol(test_json_number(o, "results/1/a"), misses_per_pass(1), 1e-12);
    ck_assert_double_eq_tol(test_json_number(o, "results/0/a"), (20 * 20 * misses_per_pass(0) - 400) / (20 * 19), 1e-12);
    ck_assert_double_eq_tol(test_json_number(o, "results/0/difference"), -.15, 1e-12);
    ck_assert_str_eq(test_json_text(o, "configurations_differ"), "seed: \"1\" against \"2\"");
    struct test_command table = run("compare a.h5 later.h5");
    ck_assert_ptr_nonnull(strstr(table.out, "note      the configurations differ:\n          seed: \"1\" against \"2\"\n"));
    ck_assert_ptr_nonnull(strstr(table.out, "up to 5 requests of a cell are in one result alone"));
}
END_TEST

START_TEST(nothing_in_common)
{
    write_results();
    write_sample(test_path("first.h5"), "1/8", NULL);
    write_sample(test_path("second.h5"), "2/8", NULL);
    refused("compare first.h5 second.h5", 1, "have no cell in common by trace, policy, cache, bandwidth_gbps, batch; no policy "
                                             "agrees (lru against oled, for one)");
    refused("compare a.h5 b.h5 --a-policy lru --b-policy lfu", 2, "b.h5 has no cell of policy 'lfu'; it has: lru, oled");
    refused("compare a.h5 b.h5 --metric gate", 2, "these can: tpot_ms, misses_per_pass, tokens_per_pass, and");
    refused("compare a.h5 b.h5 --metric workload", 2, "metric 'workload' cannot be formed");
    refused("compare a.h5 b.h5 --metric tpot,tpot_ms", 2, "metric 'tpot_ms' is given twice");
    refused("compare a.h5 b.h5 --metric tpot,", 2, "metric '' cannot be formed");
}
END_TEST

/* The sample without times, as a sweep that counts writes it; cache in bytes where asked for. */
static void write_counts(const char *path, int64_t unit)
{
    moesim_result r;
    sample_result(&r, "", NULL);
    moesim_table *cells = &r.table[0];
    for (size_t k = 0; k < cells->num_columns; k++) {
        moesim_column_data *column = &cells->column[k];
        const bool cache = strcmp(column->name, "cache") == 0;
        if (cache && unit > 1)
            (void)snprintf(column->unit, sizeof column->unit, "bytes");
        for (size_t i = 0; i < cells->rows; i++) {
            if (cache)
                column->integer[i] *= unit;
            if (strcmp(column->name, "bandwidth_gbps") == 0)
                column->real[i] = NAN;
        }
    }
    cells->rows /= 2;                               /* the others differ in bandwidth alone */
    OK(moesim_result_write(&r, path, &err));
    cells->rows *= 2;
    moesim_result_fini(&r);
}

START_TEST(times_against_counts)
{
    write_results();
    write_counts(test_path("counts.h5"), 1);
    static const char why[] = "a.h5 has times and counts.h5 counts alone, so that no cell has the bandwidth of one of the "
                              "other; make both with --profile and the same --bandwidth, or both without";
    refused("compare a.h5 counts.h5", 1, why);
    refused("compare counts.h5 a.h5", 1, why);
    struct test_command table = run("compare counts.h5 counts.h5 --metric misses");
    ck_assert_ptr_nonnull(strstr(table.out, "lru                    20    - "));
    ck_assert_ptr_null(strstr(table.out, "nan"));
    struct test_command csv = run("compare counts.h5 counts.h5 --metric misses --format csv");
    ck_assert_ptr_nonnull(strstr(csv.out, "\nmisses_per_pass,lru,lru,sample.h5,20,,1,0,0,"));
}
END_TEST

/* Sizes over all layers: whole, or rounded where they have no short form. */
START_TEST(sizes)
{
    write_counts(test_path("even.h5"), (int64_t)200 << 20);
    struct test_command table = run("compare even.h5 even.h5 --metric misses");
    ck_assert_ptr_nonnull(strstr(table.out, "lru               4000MiB    - "));
    ck_assert_ptr_nonnull(strstr(table.out, "lru               8000MiB    - "));
    write_counts(test_path("odd.h5"), 3000000001);
    table = run("compare odd.h5 odd.h5 --metric misses");
    ck_assert_ptr_nonnull(strstr(table.out, "lru              57220MiB    - "));
    ck_assert_ptr_nonnull(strstr(table.out, "lru              111.8GiB    - "));
    for (const char *line = table.out, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        ck_assert_msg(columns_of(line, end) <= 80, "wider than 80 columns: %.*s", (int)(end - line), line);
}
END_TEST

/* All cells of one policy, twice of each other key: told apart by options where there are any. */
START_TEST(told_apart_by_options)
{
    moesim_result r;
    char **text;
    sample_result(&r, "", NULL);
    moesim_table *cells = &r.table[0];
    for (size_t i = 0; i < cells->rows; i++)
        OK(moesim_table_text(cells, cells->column[2].text, i, "oled", &err));
    OK(moesim_result_write(&r, test_path("twins.h5"), &err));
    OK(moesim_table_texts(cells, "options", &text, &err));
    for (size_t i = 0; i < cells->rows; i++)
        OK(moesim_table_text(cells, text, i, i % 2 ? "adapt=on" : "adapt=off", &err));
    OK(moesim_result_write(&r, test_path("options.h5"), &err));
    moesim_result_fini(&r);
    refused("compare twins.h5 twins.h5", 1, "twins.h5: rows 0 and 1 of /cells are equal in trace, policy, cache, "
                                            "bandwidth_gbps, batch");
    json_t *o = compare("options.h5 options.h5 --metric misses");
    ck_assert_int_eq(test_json_whole(o, "cells/common"), SAMPLE_CELLS);
    ck_assert_str_eq(test_json_text(o, "results/1/options"), "adapt=on");
}
END_TEST

START_TEST(lacking_tables)
{
    moesim_result r;
    sample_result(&r, "", NULL);
    (void)snprintf(r.table[1].name, sizeof r.table[1].name, "calls");
    OK(moesim_result_write(&r, test_path("calls.h5"), &err));
    (void)snprintf(r.table[1].name, sizeof r.table[1].name, "requests");
    (void)snprintf(r.table[1].column[1].name, 64, "number");
    OK(moesim_result_write(&r, test_path("number.h5"), &err));
    (void)snprintf(r.table[1].column[1].name, 64, "request");
    r.table[1].column[1].integer[1] = 0;
    OK(moesim_result_write(&r, test_path("twice.h5"), &err));
    moesim_result_fini(&r);
    refused("compare calls.h5 calls.h5", 1, "calls.h5: no table requests");
    refused("compare number.h5 number.h5", 1, "number.h5: table requests lacks the integer columns cell and request");
    refused("compare twice.h5 twice.h5", 1, "rows 0 and 1 of /requests are both request 0 of cell 0");
}
END_TEST

START_TEST(forms)
{
    write_results();
    struct test_command table = run("compare a.h5 b.h5");
    ck_assert_int_eq(table.status, 0);
    for (const char *line = table.out, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        ck_assert_msg(columns_of(line, end) <= 80, "wider than 80 columns: %.*s", (int)(end - line), line);
    struct test_command csv = run("compare a.h5 b.h5 --metric misses --format csv");
    static const char header[] = "metric,policy_a,policy_b,trace,cache,bandwidth_gbps,batch,cell_a,cell_b,n_requests,a,b,"
                                 "difference,difference_lo,difference_hi,p,distinguishable\n";
    ck_assert_int_eq(strncmp(csv.out, header, strlen(header)), 0);
    const char *second = strchr(csv.out + strlen(header), '\n') + 1;
    static const char row[] = "misses_per_pass,oled,oled,sample.h5,20,16,1,1,1,25,19.199999999999999,19.350000000000001,-0.15";
    ck_assert_msg(strncmp(second, row, strlen(row)) == 0, "%s", second);
}
END_TEST

START_TEST(merging)
{
    write_results();
    write_sample(test_path("1.h5"), "1/3", NULL);
    write_sample(test_path("2.h5"), "2/3", NULL);
    write_sample(test_path("3.h5"), "3/3", NULL);
    struct test_command done = run("merge 3.h5 1.h5 -o some.h5");
    ck_assert_str_eq(done.out, "some.h5: 2 results, 5 cells; missing 2 (2 of 3 shards)\n");
    done = run("merge some.h5 2.h5 -o all.h5 && cmp all.h5 a.h5");
    ck_assert_msg(done.status == 0, "%s%s", done.out, done.err);
    ck_assert_str_eq(done.out, "all.h5: 2 results, 8 cells\n");
    refused("merge a.h5 b.h5 -o none.h5", 2, "both have cell 0 and disagree on it");
    done = run("merge a.h5 -o none.h5 2>/dev/null; ls none.h5");
    ck_assert_int_eq(done.status, 0);
    done = test_shell("cd \"$WORK\" && rm none.h5 && (ulimit -f 8; \"$MOESIM\" merge a.h5 -o none.h5); status=$?; ls none.h5* "
                      ".none* 2>/dev/null; exit $status");
    ck_assert_int_eq(done.status, 1);
    ck_assert_str_eq(done.out, "");
    ck_assert_ptr_nonnull(strstr(done.err, "File too large"));
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = { figures, not_distinguishable, two_policies, part_of_the_cells, requests_of_one_side,
                                   nothing_in_common, times_against_counts, sizes,
                                   told_apart_by_options, lacking_tables, forms, merging };
    return test_command_main("results", argc, argv, tests, COUNT(tests));
}
