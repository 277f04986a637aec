/* SPDX-License-Identifier: Apache-2.0
 *
 * The CSV of `moesim run` has the columns and the figures of its JSON. usage: csv_equals_json MOESIM SOURCE_ROOT
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/command.h"

/* Splits a line of CSV in place (fields may stand in quotes, quotes in them are doubled); returns the number of fields. */
static size_t split_csv(char *line, const char **field, size_t most)
{
    size_t n = 0;
    char *to = line;
    bool quoted = false;
    field[n++] = to;
    for (const char *c = line; *c != '\0'; c++) {
        if (*c == '"' && quoted && c[1] == '"')
            *to++ = *c++;
        else if (*c == '"')
            quoted = !quoted;
        else if (*c != ',' || quoted)
            *to++ = *c;
        else {
            *to++ = '\0';
            ck_assert_uint_lt(n, most);
            field[n++] = to;
        }
    }
    *to = '\0';
    ck_assert_msg(!quoted, "a quote is not closed");
    return n;
}

/* A table with one row of names. */
struct table {
    const char *field[8][256];
    size_t lines, columns;
};

static void read_csv(struct table *t, char *text)
{
    for (char *line = strsep(&text, "\n"); text != NULL; line = strsep(&text, "\n")) {
        ck_assert_uint_lt(t->lines, COUNT(t->field));
        size_t n = split_csv(line, t->field[t->lines], COUNT(t->field[0]));
        if (t->lines == 0)
            t->columns = n;
        ck_assert_uint_eq(n, t->columns);
        t->lines++;
    }
}

static void compare_field(const struct table *t, size_t line, const char *name, const json_t *value)
{
    size_t column = 0;
    while (column < t->columns && strcmp(t->field[0][column], name) != 0)
        column++;
    ck_assert_msg(column < t->columns, "CSV lacks %s", name);
    const char *field = t->field[line][column];
    if (json_is_string(value)) {
        ck_assert_str_eq(field, json_string_value(value));
    } else if (json_is_null(value)) {
        ck_assert_msg(field[0] == '\0', "%s: '%s' is null in JSON", name, field);
    } else {
        char *end;
        double number = strtod(field, &end), expected = json_is_true(value) ? 1 : json_number_value(value);
        ck_assert_msg(json_is_number(value) || json_is_boolean(value), "%s is neither text nor a number in JSON", name);
        ck_assert_msg(end != field && *end == '\0', "%s: '%s' is not a number", name, field);
        ck_assert_msg(number == expected, "%s: %s in CSV, %.17g in JSON", name, field, expected);
    }
}

/* Name of an end of an interval: "_lo" or "_hi" in place of a final "_ms". */
static void end_of(const char *name, const char *end, char out[128])
{
    size_t n = strlen(name);
    if (n > 3 && strcmp(name + n - 3, "_ms") == 0)
        n -= 3;
    snprintf(out, 128, "%.*s%s", (int)n, name, end);
}

static void compare_forms(const char *words)
{
    static struct table t;
    t.lines = 0;
    struct test_command csv = test_shell("\"$MOESIM\" run \"$SAMPLE\" --format csv %s", words);
    ck_assert_int_eq(csv.status, 0);
    ck_assert_str_eq(csv.err, "");
    char *text = strdup(csv.out);
    read_csv(&t, text);
    ck_assert_uint_eq(t.lines, 5);
    const json_t *results = test_json_at(test_run_json(words), "results"), *result;
    ck_assert_uint_eq(json_array_size(results), 4);
    size_t i;
    json_array_foreach(results, i, result) {
        const char *name;
        json_t *value;
        size_t columns = 0;
        json_object_foreach((json_t *)result, name, value)
            if (strcmp(name, "ci") != 0 && strcmp(name, "counters") != 0) {
                compare_field(&t, i + 1, name, value);
                columns++;
            }
        json_object_foreach(test_json_at(result, "ci"), name, value) {
            char end[128];
            end_of(name, "_lo", end);
            compare_field(&t, i + 1, end, test_json_at(value, "0"));
            end_of(name, "_hi", end);
            compare_field(&t, i + 1, end, test_json_at(value, "1"));
            columns += 2;
        }
        ck_assert_uint_eq(columns, t.columns);
    }
    free(text);
}

START_TEST(test_csv_equals_json)
{
    compare_forms("--policy lru --policy oled:confidence=none --cache 0,40");
}
END_TEST

START_TEST(test_with_time)
{
    compare_forms("--policy lru,oled-full --cache 0,40 --profile h200-host --bandwidth 32 --as llada2.0-mini");
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = { test_csv_equals_json, test_with_time };
    return test_command_main("csv_equals_json", argc, argv, tests, COUNT(tests));
}
