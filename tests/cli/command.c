/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of the moesim program, and a way into its JSON.
 */
#include "tests/cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/support.h"

#define TIMEOUT_S 300
#define MOST_OWNED 256

/* What the teardown frees. */
static json_t *owned_json[MOST_OWNED];
static char *owned_text[MOST_OWNED];
static size_t num_json, num_text;

static void export(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0)
        test_die("cannot export %s", name);
}

static void export_real_path(const char *name, const char *path)
{
    char *real = realpath(path, NULL);
    if (real == NULL)
        test_die("no file %s", path);
    export(name, real);
    free(real);
}

static void setup(void)
{
    export("WORK", test_folder());
}

static void teardown(void)
{
    while (num_json > 0)
        json_decref(owned_json[--num_json]);
    while (num_text > 0)
        free(owned_text[--num_text]);
}

int test_command_main(const char *name, int argc, char **argv, const TTest *const *tests, size_t n)
{
    char sample[4096];
    if (argc != 3)
        test_die("usage: %s MOESIM SOURCE_ROOT", name);
    snprintf(sample, sizeof sample, "%s/traces/samples/sample.h5", argv[2]);
    export_real_path("MOESIM", argv[1]);
    export_real_path("SAMPLE", sample);
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, TIMEOUT_S);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

/* The whole file, with a zero byte at the end. */
static const char *read_text(const char *name)
{
    FILE *file = fopen(test_path(name), "rb");
    char *text = NULL;
    size_t size = 0;
    ck_assert_msg(file != NULL && num_text < MOST_OWNED, "cannot read %s", name);
    ssize_t n = getdelim(&text, &size, '\0', file);
    ck_assert_msg(n >= 0 || feof(file), "cannot read %s", name);
    ck_assert_msg(n <= 0 || text[n - 1] != '\0', "%s: a zero byte in the text", name);
    fclose(file);
    owned_text[num_text++] = text;
    return n < 0 ? "" : text;
}

struct test_command test_shell(const char *fmt, ...)
{
    char words[4096], line[4200];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    ck_assert_msg(n >= 0 && (size_t)n < sizeof words, "line too long");
    snprintf(line, sizeof line, "(%s) </dev/null >\"$WORK\"/out 2>\"$WORK\"/err", words);
    int status = system(line);
    ck_assert_msg(status != -1 && WIFEXITED(status), "cannot run %s", words);
    return (struct test_command){ WEXITSTATUS(status), read_text("out"), read_text("err") };
}

const char *succeed(const char *line)
{
    struct test_command c = test_shell("cd \"$WORK\" && %s", line);
    ck_assert_msg(c.status == 0, "%s: status %d: %s", line, c.status, c.err);
    ck_assert_str_eq(c.err, "");
    return c.out;
}

json_t *test_json_parse(const char *text)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    ck_assert_msg(num_json < MOST_OWNED, "too many documents in one test");
    owned_json[num_json++] = root;
    ck_assert_msg(json_is_object(root), "not an object");
    return root;
}

json_t *test_run_json(const char *words)
{
    struct test_command done = test_shell("\"$MOESIM\" run \"$SAMPLE\" --format json %s", words);
    ck_assert_msg(done.status == 0, "run %s: exit status %d: %s", words, done.status, done.err);
    return test_json_parse(done.out);
}

/* Follows `path` and leaves the text of it in `path` for messages. */
static json_t *follow(const json_t *root, char path[256], const char *fmt, va_list args)
{
    int n = vsnprintf(path, 256, fmt, args);
    ck_assert_msg(n >= 0 && n < 256, "path too long");
    const json_t *value = root;
    char key[256];
    for (const char *step = path; *step != '\0';) {
        size_t length = strcspn(step, "/");
        snprintf(key, sizeof key, "%.*s", (int)length, step);
        value = json_is_array(value) ? json_array_get(value, strtoul(key, NULL, 10)) : json_object_get(value, key);
        ck_assert_msg(value != NULL, "no %s: nothing at %s", path, key);
        step += length + (step[length] == '/');
    }
    return (json_t *)value;
}

json_t *test_json_at(const json_t *root, const char *fmt, ...)
{
    char path[256];
    va_list args;
    va_start(args, fmt);
    json_t *value = follow(root, path, fmt, args);
    va_end(args);
    return value;
}

double test_json_number(const json_t *root, const char *fmt, ...)
{
    char path[256];
    va_list args;
    va_start(args, fmt);
    const json_t *value = follow(root, path, fmt, args);
    va_end(args);
    ck_assert_msg(json_is_number(value), "%s is not a number", path);
    return json_number_value(value);
}

json_int_t test_json_whole(const json_t *root, const char *fmt, ...)
{
    char path[256];
    va_list args;
    va_start(args, fmt);
    const json_t *value = follow(root, path, fmt, args);
    va_end(args);
    ck_assert_msg(json_is_integer(value), "%s is not a whole number", path);
    return json_integer_value(value);
}

const char *test_json_text(const json_t *root, const char *fmt, ...)
{
    char path[256];
    va_list args;
    va_start(args, fmt);
    const json_t *value = follow(root, path, fmt, args);
    va_end(args);
    ck_assert_msg(json_is_string(value), "%s is not a string", path);
    return json_string_value(value);
}

bool test_json_bool(const json_t *root, const char *fmt, ...)
{
    char path[256];
    va_list args;
    va_start(args, fmt);
    const json_t *value = follow(root, path, fmt, args);
    va_end(args);
    ck_assert_msg(json_is_boolean(value), "%s is not true or false", path);
    return json_boolean_value(value);
}
