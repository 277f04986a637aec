/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line: every type, every refusal, and help within 80 columns.
 */
#include <stddef.h>
#include <string.h>

#include "base/args.h"
#include "tests/unit/base/runner.h"

typedef struct store {
    bool flag;
    uint64_t n, size;
    double x;
    const char *file;
    int format;
    moesim_range requests;
    moesim_list policy;
} store;

static const char *const formats[] = { "table", "csv", "json", NULL };

static const moesim_arg args[] = {
    { "flag", 0, MOESIM_ARG_FLAG, offsetof(store, flag), NULL, 0, 0, NULL, "A switch." },
    { "threads", 0, MOESIM_ARG_U64, offsetof(store, n), "N", 1, 64, NULL, "A number." },
    { "memory", 0, MOESIM_ARG_BYTES, offsetof(store, size), "BYTES", 1024, 0, NULL, "A size." },
    { "decay", 0, MOESIM_ARG_REAL, offsetof(store, x), "X", 0, 1, NULL, "A real." },
    { "output", 'o', MOESIM_ARG_STRING, offsetof(store, file), "FILE", 0, 0, NULL,
      "A file with a help text that is long enough to be wrapped: naïve words, ≤ 80 columns, whatever the bytes." },
    { "format", 0, MOESIM_ARG_CHOICE, offsetof(store, format), NULL, 0, 0, formats, "A choice." },
    { "requests", 0, MOESIM_ARG_RANGE, offsetof(store, requests), "a:b", 0, 0, NULL, "A range." },
    { "policy", 0, MOESIM_ARG_LIST, offsetof(store, policy), "P", 0, 16, NULL, "Again and again." },
    { NULL, 0, MOESIM_ARG_FLAG, 0, NULL, 0, 0, NULL, NULL },
};

static const moesim_usage usage = {
    .command = "moesim test",
    .synopsis = "TRACE [MORE] [options] and a synopsis that goes on for longer than one line holds",
    .summary = "A paragraph that says what this is good for, in more words than fit into a single line of eighty columns.",
    .examples = "  moesim test x\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 2,
};

#define MAX_WORDS 32

static moesim_code parse(const char *line, store *s, moesim_list *words, bool *help, moesim_error *err)
{
    static char text[512];
    char *argv[MAX_WORDS];
    int argc = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *rest = text; rest != NULL && argc < MAX_WORDS;)
        argv[argc++] = strsep(&rest, " ");
    return moesim_args_parse(&usage, argc, argv, s, words, help, err);
}

START_TEST(all_types)
{
    store s = { .n = 3 };
    moesim_list words = { 0 };
    moesim_error err = MOESIM_ERROR_INIT;
    bool help = true;
    ck_assert_int_eq(parse("test a.h5 --flag --threads=8 --memory 2KiB --decay .5 -o out --format json --requests 2: "
                           "--policy lru --policy=lfu -- --b", &s, &words, &help, &err), MOESIM_OK);
    ck_assert(!help);
    ck_assert(s.flag);
    ck_assert_uint_eq(s.n, 8);
    ck_assert_uint_eq(s.size, 2048);
    ck_assert_double_eq(s.x, 0.5);
    ck_assert_str_eq(s.file, "out");
    ck_assert_int_eq(s.format, 2);
    ck_assert(s.requests.given);
    ck_assert_uint_eq(s.requests.begin, 2);
    ck_assert_uint_eq(s.requests.end, UINT64_MAX);
    ck_assert_uint_eq(s.policy.n, 2);
    ck_assert_str_eq(s.policy.item[1], "lfu");
    ck_assert_uint_eq(words.n, 2);
    ck_assert_str_eq(words.item[0], "a.h5");
    ck_assert_str_eq(words.item[1], "--b");
    moesim_list_fini(&words);
    moesim_list_fini(&s.policy);
}
END_TEST

START_TEST(defaults_stay)
{
    store s = { .n = 3, .file = "default" };
    moesim_list words = { 0 };
    moesim_error err = MOESIM_ERROR_INIT;
    bool help;
    ck_assert_int_eq(parse("test -", &s, &words, &help, &err), MOESIM_OK);
    ck_assert_uint_eq(s.n, 3);
    ck_assert_str_eq(s.file, "default");
    ck_assert(!s.requests.given);
    ck_assert_str_eq(words.item[0], "-");
    moesim_list_fini(&words);
}
END_TEST

START_TEST(refusals)
{
    static const struct { const char *line, *part; } bad[] = {
        { "test", "too few words" },
        { "test a b c", "'c' is one word too many" },
        { "test a --thread 3", "did you mean '--threads'?" },
        { "test a --zzzzzz 3", "'moesim test --help' lists the options" },
        { "test a -x", "unknown option '-x'" },
        { "test a --flag=1", "takes no value" },
        { "test a --threads", "needs a value (N)" },
        { "test a --threads --flag", "needs a value (N)" },
        { "test a --format", "--format needs a value (table, csv, json)" },
        { "test a --threads 0", "outside 1 to 64" },
        { "test a --threads 4 --threads 5", "given twice" },
        { "test a --flag --flag", "given twice" },
        { "test a --decay 1.5", "outside 0 to 1" },
        { "test a --format cvs", "did you mean 'csv'?" },
        { "test a --requests 3", "write a:b" },
        { "test a --requests :", "write a:b" },
        { "test a --requests 3:3", "is empty" },
        { "test a --requests 5:2", "is empty" },
        { "test a --requests 1:x", "not a whole number" },
        { "test a --requests 0:18446744073709551615", "outside 0 to 18446744073709551614" },
        { "test a --memory 3XB", "not a number of bytes" },
        { "test a --memory 1023", "'1023' is below 1024" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        store s = { 0 };
        moesim_list words = { 0 };
        moesim_error err = MOESIM_ERROR_INIT;
        bool help;
        ck_assert_msg(parse(bad[i].line, &s, &words, &help, &err) == MOESIM_E_USAGE, "passed: %s", bad[i].line);
        ck_assert_msg(strstr(err.text, bad[i].part) != NULL, "%s: %s", bad[i].line, err.text);
        moesim_list_fini(&words);
    }
}
END_TEST

START_TEST(help_wins)
{
    store s = { 0 };
    moesim_list words = { 0 };
    moesim_error err = MOESIM_ERROR_INIT;
    bool help = false;
    ck_assert_int_eq(parse("test --nonsense -h", &s, &words, &help, &err), MOESIM_OK);
    ck_assert(help);
    ck_assert_int_eq(parse("test a -- --help", &s, &words, &help, &err), MOESIM_OK);
    ck_assert(!help);
    moesim_list_fini(&words);
}
END_TEST

START_TEST(help_fits_80_columns)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(out);
    moesim_args_help(&usage, out);
    fclose(out);
    size_t column = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\n')
            column = 0;
        else if (((unsigned char)text[i] & 0xC0u) != 0x80u)
            column++;
        ck_assert_uint_le(column, 80);
    }
    for (const moesim_arg *a = args; a->name != NULL; a++) {
        char option[40];
        snprintf(option, sizeof option, "--%s", a->name);
        ck_assert_ptr_nonnull(strstr(text, option));
    }
    ck_assert_ptr_nonnull(strstr(text, "--format table|csv|json"));
    ck_assert_ptr_nonnull(strstr(text, "-o, --output FILE"));
    ck_assert_ptr_nonnull(strstr(text, "A number. From 1 to 64.\n"));
    ck_assert_ptr_nonnull(strstr(text, "A real. From 0 to 1.\n"));
    ck_assert_ptr_nonnull(strstr(text, "Again and again. At most 16.\n"));
    ck_assert_ptr_nonnull(strstr(text, "A size.\n"));
    ck_assert_ptr_nonnull(strstr(text, "-h, --help"));
    ck_assert_ptr_nonnull(strstr(text, "Examples:\n  moesim test x\n"));
    free(text);
}
END_TEST

RUN_TESTS("args", all_types, defaults_stay, refusals, help_wins, help_fits_80_columns)
