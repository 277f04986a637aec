/* SPDX-License-Identifier: Apache-2.0
 *
 * Results in memory and in files: what is read is what was set, the same content gives the same bytes.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/result/common.h"
#include "tests/unit/traces_write/common.h"

static moesim_error err;

static void fresh(void)
{
    err = (moesim_error)MOESIM_ERROR_INIT;
}

static void check_column(const moesim_column_data *a, const moesim_column_data *b, size_t rows)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert_str_eq(a->unit, b->unit);
    ck_assert_int_eq(a->real != NULL, b->real != NULL);
    ck_assert_int_eq(a->integer != NULL, b->integer != NULL);
    if (a->real != NULL)
        ck_assert_mem_eq(a->real, b->real, rows * sizeof(double));
    else if (a->integer != NULL)
        ck_assert_mem_eq(a->integer, b->integer, rows * sizeof(int64_t));
    for (size_t i = 0; a->text != NULL && i < rows; i++)
        ck_assert_str_eq(a->text[i], b->text[i]);
}

static void check_equal(const moesim_result *a, const moesim_result *b)
{
    ck_assert_uint_eq(a->num_attributes, b->num_attributes);
    for (size_t i = 0; i < a->num_attributes; i++) {
        ck_assert_str_eq(a->attribute[i].name, b->attribute[i].name);
        ck_assert_str_eq(a->attribute[i].text, b->attribute[i].text);
    }
    ck_assert_uint_eq(a->num_tables, b->num_tables);
    for (size_t t = 0; t < a->num_tables; t++) {
        ck_assert_str_eq(a->table[t].name, b->table[t].name);
        ck_assert_uint_eq(a->table[t].rows, b->table[t].rows);
        ck_assert_uint_eq(a->table[t].num_columns, b->table[t].num_columns);
        for (size_t k = 0; k < a->table[t].num_columns; k++)
            check_column(&a->table[t].column[k], &b->table[t].column[k], a->table[t].rows);
    }
}

START_TEST(round_trip)
{
    moesim_result a, b;
    sample_result(&a, "", NULL);
    OK(moesim_result_write(&a, test_path("a.h5"), &err));
    OK(moesim_result_read(test_path("a.h5"), &b, &err));
    check_equal(&a, &b);
    ck_assert_str_eq(moesim_result_get(&b, "seed"), "1");
    ck_assert_ptr_null(moesim_result_get(&b, "shard"));
    ck_assert(isnan(moesim_table_find(moesim_result_find(&b, "cells"), "tpot_ms")->real[3]));
    ck_assert_ptr_null(moesim_table_find(moesim_result_find(&b, "cells"), "no_such"));
    ck_assert_ptr_null(moesim_result_find(&b, "no_such"));
    OK(moesim_result_write(&b, test_path("b.h5"), &err));
    ck_assert(same_bytes(test_path("a.h5"), test_path("b.h5")));
    moesim_result_fini(&a);
    moesim_result_fini(&b);
    moesim_result_fini(&b);
}
END_TEST

/* More rows than a chunk holds, every bit of a double, extreme integers, texts of all lengths. */
START_TEST(large_and_extreme)
{
    moesim_result a, b;
    moesim_table *t;
    double *real;
    int64_t *integer;
    char **text, word[64];
    moesim_result_init(&a);
    OK(moesim_result_table(&a, "big", 20001, &t, &err));
    OK(moesim_table_reals(t, "r", "bytes", &real, &err));
    OK(moesim_table_integers(t, "i", "", &integer, &err));
    OK(moesim_table_texts(t, "s", &text, &err));
    ck_assert(isnan(real[20000]));
    ck_assert_int_eq(integer[20000], 0);
    ck_assert_str_eq(text[20000], "");
    for (size_t i = 0; i < 20000; i++) {
        real[i] = i % 7 == 0 ? -INFINITY : i % 11 == 0 ? -0.0 : ldexp((double)i, (int)(i % 1000) - 500);
        integer[i] = i % 2 ? INT64_MIN + (int64_t)i : INT64_MAX - (int64_t)i;
        (void)snprintf(word, sizeof word, "%.*s%zu", (int)(i % 40), "läg ψ · a longer text of more than forty bytes", i);
        OK(moesim_table_text(t, text, i, word, &err));
    }
    OK(moesim_result_write(&a, test_path("a.h5"), &err));
    OK(moesim_result_read(test_path("a.h5"), &b, &err));
    check_equal(&a, &b);
    moesim_result_fini(&a);
    moesim_result_fini(&b);
}
END_TEST

/* No tables, a table without columns, one without rows, texts that are empty. */
START_TEST(empty)
{
    moesim_result a, b;
    moesim_table *t;
    double *real;
    char **text;
    moesim_result_init(&a);
    OK(moesim_result_write(&a, test_path("none.h5"), &err));
    OK(moesim_result_read(test_path("none.h5"), &b, &err));
    check_equal(&a, &b);
    moesim_result_fini(&b);
    OK(moesim_result_set(&a, "priced_as", "", &err));
    OK(moesim_result_table(&a, "bare", 0, &t, &err));
    OK(moesim_result_table(&a, "no_rows", 0, &t, &err));
    OK(moesim_table_reals(t, "r", "ms", &real, &err));
    OK(moesim_table_texts(t, "s", &text, &err));
    OK(moesim_result_table(&a, "one", 1, &t, &err));
    OK(moesim_table_texts(t, "s", &text, &err));
    OK(moesim_result_write(&a, test_path("a.h5"), &err));
    OK(moesim_result_read(test_path("a.h5"), &b, &err));
    check_equal(&a, &b);
    moesim_result_fini(&a);
    moesim_result_fini(&b);
}
END_TEST

/* What cannot be stored as it is becomes what will be read already when it is set. */
START_TEST(text_is_cleaned)
{
    moesim_result r;
    moesim_table *t;
    char **text;
    moesim_result_init(&r);
    OK(moesim_result_set(&r, "a", "one\ntwo\033[31m", &err));
    ck_assert_str_eq(moesim_result_get(&r, "a"), "one?two?[31m");
    OK(moesim_result_set(&r, "a", "again", &err));
    ck_assert_str_eq(moesim_result_get(&r, "a"), "again");
    ck_assert_uint_eq(r.num_attributes, 1);
    OK(moesim_result_table(&r, "t", 2, &t, &err));
    OK(moesim_table_texts(t, "s", &text, &err));
    OK(moesim_table_text(t, text, 0, "\xff" "bad\t", &err));
    OK(moesim_table_text(t, text, 1, "?bad?", &err));
    ck_assert_str_eq(text[0], "?bad?");
    ck_assert_ptr_eq(text[0], text[1]);
    OK(moesim_result_set(&r, "b", "1", &err));
    OK(moesim_result_set(&r, "a", NULL, &err));
    OK(moesim_result_set(&r, "no_such", NULL, &err));
    ck_assert_ptr_null(moesim_result_get(&r, "a"));
    ck_assert_str_eq(moesim_result_get(&r, "b"), "1");
    OK(moesim_result_set(&r, "c", "2", &err));
    ck_assert_uint_eq(r.num_attributes, 2);
    moesim_result_fini(&r);
}
END_TEST

START_TEST(names)
{
    static const char *const bad[] = {"", "1st", "a b", "a/b", "..", "ä", "a,b", "format", "tables", "complete", "columns_x"};
    moesim_result r;
    moesim_table *t, *again;
    double *real;
    char longest[70];
    memset(longest, 'x', sizeof longest);
    longest[64] = '\0';
    moesim_result_init(&r);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(moesim_result_set(&r, bad[i], "x", &err), MOESIM_E_INTERNAL);
        fresh();
    }
    ck_assert_int_eq(moesim_result_set(&r, longest, "x", &err), MOESIM_E_INTERNAL);
    longest[63] = '\0';
    OK(moesim_result_set(&r, longest, "x", &err));
    ck_assert_int_eq(moesim_result_table(&r, longest, 1, &t, &err), MOESIM_E_INTERNAL);
    OK(moesim_result_table(&r, "t", 1, &t, &err));
    ck_assert_int_eq(moesim_result_table(&r, "t", 1, &again, &err), MOESIM_E_INTERNAL);
    OK(moesim_table_reals(t, longest, "ms", &real, &err));
    ck_assert_int_eq(moesim_table_reals(t, longest, "ms", &real, &err), MOESIM_E_INTERNAL);
    ck_assert_int_eq(moesim_table_reals(t, "u", "sixteen bytes...", &real, &err), MOESIM_E_INTERNAL);
    ck_assert_uint_eq(t->num_columns, 1);
    moesim_result_fini(&r);
}
END_TEST

START_TEST(limits)
{
    static char huge[MOESIM_RESULT_ATTRIBUTE_BYTES + 2];
    moesim_result r, back;
    moesim_table *t;
    double *real;
    char **text, name[16];
    memset(huge, 'x', sizeof huge - 1);
    moesim_result_init(&r);
    ck_assert_int_eq(moesim_result_set(&r, "config", huge, &err), MOESIM_E_LIMIT);
    huge[MOESIM_RESULT_ATTRIBUTE_BYTES] = '\0';
    OK(moesim_result_set(&r, "config", huge, &err));
    for (unsigned i = 1; i < MOESIM_RESULT_ATTRIBUTES; i++) {
        (void)snprintf(name, sizeof name, "a%u", i);
        OK(moesim_result_set(&r, name, name, &err));
    }
    ck_assert_int_eq(moesim_result_set(&r, "more", "x", &err), MOESIM_E_LIMIT);
    ck_assert_int_eq(moesim_result_set(&r, "a1", "replaced", &err), MOESIM_OK);
    OK(moesim_result_table(&r, "t", 3, &t, &err));
    for (unsigned i = 1; i < MOESIM_RESULT_COLUMNS; i++) {
        (void)snprintf(name, sizeof name, "c%u", i);
        OK(moesim_table_reals(t, name, "ms", &real, &err));
    }
    OK(moesim_table_texts(t, "s", &text, &err));
    ck_assert_int_eq(moesim_table_reals(t, "more", "", &real, &err), MOESIM_E_LIMIT);
    huge[MOESIM_RESULT_TEXT_BYTES] = '\0';
    ck_assert_int_eq(moesim_table_text(t, text, 0, huge, &err), MOESIM_E_LIMIT);
    huge[MOESIM_RESULT_TEXT_BYTES - 1] = '\0';
    OK(moesim_table_text(t, text, 0, huge, &err));
    ck_assert_int_eq(moesim_table_text(t, text, 3, "x", &err), MOESIM_E_INTERNAL);
    OK(moesim_result_write(&r, test_path("full.h5"), &err));
    OK(moesim_result_read(test_path("full.h5"), &back, &err));
    check_equal(&r, &back);
    moesim_result_fini(&back);
    for (unsigned i = 1; i < MOESIM_RESULT_TABLES; i++) {
        (void)snprintf(name, sizeof name, "t%u", i);
        OK(moesim_result_table(&r, name, SIZE_MAX / 16, &t, &err));
    }
    ck_assert_int_eq(moesim_table_reals(t, "r", "", &real, &err), MOESIM_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "2 GiB"));
    ck_assert_int_eq(moesim_result_table(&r, "more", 1, &t, &err), MOESIM_E_LIMIT);
    moesim_result_fini(&r);
}
END_TEST

START_TEST(places)
{
    moesim_result r;
    sample_result(&r, "", NULL);
    ck_assert_int_eq(moesim_result_write(&r, "-", &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_result_write(&r, test_path("no/folder.h5"), &err), MOESIM_E_IO);
    ck_assert_uint_eq(count_entries(), 0);
    moesim_result_fini(&r);
    ck_assert_int_eq(moesim_result_read(test_path("nothing.h5"), &r, &err), MOESIM_E_IO);
    ck_assert_int_eq(moesim_result_read(test_folder(), &r, &err), MOESIM_E_IO);
    ck_assert_uint_eq(r.num_tables, 0);
    moesim_result_fini(&r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {round_trip, large_and_extreme, empty, text_is_cleaned, names, limits, places};
    Suite *suite = suite_create("result file");
    TCase *cases = tcase_create("result file");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, fresh, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
