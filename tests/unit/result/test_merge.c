/* SPDX-License-Identifier: Apache-2.0
 *
 * Shards come together to the byte; what does not belong together is refused, and the message says why.
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/result/common.h"
#include "tests/unit/traces_write/common.h"

static moesim_error err;

static const char *const paths[] = {"a.h5", "b.h5", "c.h5", "d.h5"};

static void fresh(void)
{
    err = (moesim_error)MOESIM_ERROR_INIT;
}

static moesim_code merge(moesim_result *part, size_t n, moesim_result *out)
{
    return moesim_result_merge(part, paths, n, out, &err);
}

static void release(moesim_result *part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        moesim_result_fini(&part[i]);
}

START_TEST(shards_give_the_whole)
{
    static const char *const shard[] = {"3/3", "1/3", "2/3"};
    moesim_result part[3], two, all;
    for (int i = 0; i < 3; i++)
        sample_result(&part[i], shard[i], NULL);
    OK(merge(part, 3, &all));
    ck_assert_ptr_null(moesim_result_get(&all, "shard"));
    OK(moesim_result_write(&all, test_path("merged.h5"), &err));
    write_sample(test_path("whole.h5"), "", NULL);
    ck_assert(same_bytes(test_path("merged.h5"), test_path("whole.h5")));
    moesim_result_fini(&all);

    OK(merge(part, 2, &two));                        /* 3 and 1 of 3 */
    ck_assert_str_eq(moesim_result_get(&two, "shard"), "1,3/3");
    const moesim_table *cells = moesim_result_find(&two, "cells");
    static const int64_t order[] = {0, 2, 3, 5, 6};
    ck_assert_uint_eq(cells->rows, 5);
    ck_assert_mem_eq(moesim_table_find(cells, "cell")->integer, order, sizeof order);
    moesim_result_fini(&part[0]);
    part[0] = two;                                   /* then what was missing; shard 1 comes twice and agrees */
    OK(merge(part, 3, &all));
    OK(moesim_result_write(&all, test_path("merged.h5"), &err));
    ck_assert(same_bytes(test_path("merged.h5"), test_path("whole.h5")));
    moesim_result_fini(&all);
    release(part, 3);
}
END_TEST

START_TEST(more_shards_than_cells)
{
    moesim_result part[2], all;
    sample_result(&part[0], "9/10", NULL);
    sample_result(&part[1], "2/10", NULL);
    OK(merge(part, 2, &all));
    ck_assert_uint_eq(moesim_result_find(&all, "cells")->rows, 1);
    ck_assert_str_eq(moesim_result_get(&all, "shard"), "2,9/10");
    moesim_result_fini(&all);
    release(part, 2);
}
END_TEST

/* A whole result and a shard of it are the whole. */
START_TEST(whole_and_shard)
{
    moesim_result part[2], all;
    sample_result(&part[0], "1/4", NULL);
    sample_result(&part[1], "", NULL);
    OK(merge(part, 2, &all));
    ck_assert_ptr_null(moesim_result_get(&all, "shard"));
    ck_assert_uint_eq(moesim_result_find(&all, "requests")->rows, SAMPLE_CELLS * SAMPLE_REQUESTS);
    moesim_result_fini(&all);
    release(part, 2);
}
END_TEST

/* Changes one thing in the second of two results, shard 2/2, and expects a refusal that says so. */
static void refuse(void (*change)(moesim_result *), const char *part_of_message)
{
    moesim_result part[2], all;
    sample_result(&part[0], "1/2", NULL);
    sample_result(&part[1], "2/2", NULL);
    change(&part[1]);
    const moesim_code code = merge(part, 2, &all);
    ck_assert_int_ne(code, MOESIM_OK);
    ck_assert_msg(strstr(err.text, part_of_message) != NULL, "\"%s\" lacks \"%s\"", err.text, part_of_message);
    ck_assert_uint_eq(all.num_tables, 0);
    release(part, 2);
    fresh();
}

static void other_seed(moesim_result *r) { OK(moesim_result_set(r, "seed", "2", &err)); }
static void no_seed(moesim_result *r) { OK(moesim_result_set(r, "seed", NULL, &err)); }
static void one_more(moesim_result *r) { OK(moesim_result_set(r, "profile", "paper-a", &err)); }
static void other_config(moesim_result *r)
{
    OK(moesim_result_set(r, "config", "{\"policies\":[\"lru\",\"oled\"],\"cache\":[20,60],\"bandwidth_gbps\":[16,64],"
                                      "\"batch\":1}", &err));
}
static void other_division(moesim_result *r) { OK(moesim_result_set(r, "shard", "2/3", &err)); }
static void bad_shard(moesim_result *r) { OK(moesim_result_set(r, "shard", "3/2", &err)); }
static void worse_shard(moesim_result *r) { OK(moesim_result_set(r, "shard", "1,/2", &err)); }
static void odd_shard(moesim_result *r) { OK(moesim_result_set(r, "shard", "half", &err)); }
static void another_column(moesim_result *r)
{
    double *real;
    OK(moesim_table_reals(&r->table[0], "extra", "", &real, &err));
}
static void another_table(moesim_result *r)
{
    moesim_table *t;
    OK(moesim_result_table(r, "extra", 1, &t, &err));
}
static void another_unit(moesim_result *r) { (void)snprintf(r->table[0].column[6].unit, 16, "s"); }
static void another_name(moesim_result *r) { (void)snprintf(r->table[2].column[2].name, 64, "spots"); }

START_TEST(refusals)
{
    refuse(other_seed, "a.h5 and b.h5 have different configurations and cannot be merged: seed: \"1\" against \"2\"");
    refuse(no_seed, "seed: \"1\" against nothing");
    refuse(one_more, "profile: nothing against \"paper-a\"");
    refuse(other_config, "config: \"…");
    refuse(other_config, "20,60],");
    refuse(other_division, "b.h5 is a shard of 3, the results before it are shards of 2");
    refuse(bad_shard, "attribute shard is \"3/2\"");
    refuse(worse_shard, "attribute shard is \"1,/2\"");
    refuse(odd_shard, "attribute shard is \"half\"");
    refuse(another_column, "table cells has 7 columns in the first and 8 in the second");
    refuse(another_table, "they have 3 and 4 tables");
    refuse(another_unit, "column 6 of table cells is tpot_ms (float64, unit \"ms\") in the first");
    refuse(another_name, "column 2 of table layers is slots");
}
END_TEST

/* Both have all cells; one value differs. */
START_TEST(duplicates_must_agree)
{
    moesim_result part[2], all;
    for (int i = 0; i < 2; i++)
        sample_result(&part[i], "", NULL);
    OK(merge(part, 2, &all));                        /* one value is NaN in both */
    moesim_result_fini(&all);
    part[1].table[1].column[6].real[30] += 1;        /* misses of request 5 of cell 1 */
    ck_assert_int_eq(merge(part, 2, &all), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "a.h5 and b.h5 both have cell 1 and disagree on it: column misses of table requests is 370 in "
                               "row 30 of the first and 371 in row 30 of the second");
    fresh();
    part[1].table[1].column[6].real[30] -= 1;
    part[1].table[1].column[0].integer[30] = 2;      /* now cell 1 has 24 requests, cell 2 has 26 */
    ck_assert_int_eq(merge(part, 2, &all), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "table requests has 25 rows of it in the first and 24 in the second"));
    release(part, 2);
}
END_TEST

/* A table that does not speak of cells must be the same everywhere, and comes once. */
START_TEST(table_without_cells)
{
    moesim_result part[2], all;
    moesim_table *t;
    double *real;
    for (int i = 0; i < 2; i++) {
        sample_result(&part[i], i == 0 ? "1/2" : "2/2", NULL);
        OK(moesim_result_table(&part[i], "profile", 2, &t, &err));
        OK(moesim_table_reals(t, "bytes", "bytes", &real, &err));
        real[0] = 4096;
    }
    OK(merge(part, 2, &all));
    ck_assert_uint_eq(moesim_result_find(&all, "profile")->rows, 2);
    moesim_result_fini(&all);
    real[1] = 1;
    ck_assert_int_eq(merge(part, 2, &all), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "column bytes of table profile is nan in row 1 of the first"));
    release(part, 2);
}
END_TEST

START_TEST(same_says_what_differs)
{
    moesim_result a, b;
    char text[200];
    sample_result(&a, "1/2", NULL);
    sample_result(&b, "2/2", NULL);
    ck_assert_int_eq(moesim_result_same(&a, &b, text, sizeof text), MOESIM_OK);
    ck_assert_str_eq(text, "");
    other_seed(&b);
    one_more(&b);
    ck_assert_int_eq(moesim_result_same(&a, &b, text, sizeof text), MOESIM_E_USAGE);
    ck_assert_str_eq(text, "seed: \"1\" against \"2\"; profile: nothing against \"paper-a\"");
    ck_assert_int_eq(moesim_result_same(&a, &b, text, 10), MOESIM_E_USAGE);
    ck_assert_str_eq(text, "seed: \"1\"");
    moesim_result_fini(&a);
    moesim_result_fini(&b);
}
END_TEST

START_TEST(nothing)
{
    moesim_result out;
    ck_assert_int_eq(moesim_result_merge(NULL, paths, 0, &out, &err), MOESIM_E_USAGE);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {shards_give_the_whole, more_shards_than_cells, whole_and_shard, refusals,
                                         duplicates_must_agree, table_without_cells, same_says_what_differs, nothing};
    Suite *suite = suite_create("result merge");
    TCase *cases = tcase_create("result merge");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, fresh, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
