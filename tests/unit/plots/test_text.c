/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for gnuplot: what comes in from outside stays text.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "plots/text.h"

static char *quoted(const char *text, enum moesim_quote kind)
{
    char *out = NULL;
    size_t bytes;
    FILE *f = open_memstream(&out, &bytes);
    moesim_text_quote(f, text, kind);
    fclose(f);
    return out;
}

static const struct { const char *text, *plain, *format; } quotes[] = {
    { "lru", "'lru'", "'lru'" },
    { "", "''", "''" },
    { "it's", "'it''s'", "'it''s'" },
    { "'; system('x'); '", "'''; system(''x''); '''", "'''; system(''x''); '''" },
    { "100 %s", "'100 %s'", "'100 %%s'" },
    { "a\nb\tc\x7f", "'a?b?c?'", "'a?b?c?'" },
    { "\xc2\x9b[2J", "'?[2J'", "'?[2J'" },                   /* C1 control */
    { "\xff\xfe", "'\?\?'", "'\?\?'" },
    { "\xc0\xaf", "'\?\?'", "'\?\?'" },                          /* overlong '/' */
    { "\xed\xa0\x80", "'\?\?\?'", "'\?\?\?'" },                    /* surrogate */
    { "\xe2\x80", "'\?\?'", "'\?\?'" },                          /* cut off */
    { "† ≤ é", "'† ≤ é'", "'† ≤ é'" },
    { "`cmd` \\n @m $(x)", "'`cmd` \\n @m $(x)'", "'`cmd` \\n @m $(x)'" },
};

START_TEST(test_quote)
{
    char *plain = quoted(quotes[_i].text, MOESIM_QUOTE_TEXT), *format = quoted(quotes[_i].text, MOESIM_QUOTE_FORMAT);
    ck_assert_str_eq(plain, quotes[_i].plain);
    ck_assert_str_eq(format, quotes[_i].format);
    free(plain);
    free(format);
}
END_TEST

START_TEST(test_shorten)
{
    char out[64];
    moesim_text_shorten("oled", 4, out, sizeof out);
    ck_assert_str_eq(out, "oled");
    moesim_text_shorten("oled:confidence=lag1", 10, out, sizeof out);
    ck_assert_str_eq(out, "oled:c…ag1");
    ck_assert_uint_eq(moesim_text_chars(out), 10);
    moesim_text_shorten("ééééé", 3, out, sizeof out);
    ck_assert_uint_eq(moesim_text_chars(out), 3);
    moesim_text_shorten("abc", 1, out, sizeof out);
    ck_assert_str_eq(out, "…");
}
END_TEST

/* No line of more than one character is wider than asked, and nothing but blanks is lost. */
START_TEST(test_wrap)
{
    static const char *const texts[] = { "", "a", "routing of x priced as y", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                         "one\ntwo three four\n", "  two  blanks  ", "wwwwwwwww iiiiiiiiiiiiiiiiiiiiiiii",
                                         "†††††††††††" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (double width = 0.1; width < 30; width *= 1.7) {
            char *out = moesim_text_wrap(texts[i], width), *rest = out;
            const char *in = texts[i];
            for (const char *c = out; *c != '\0'; c++) {
                while (*in != *c && (*in == ' ' || *in == '\n') && *c != '\n')
                    in++;
                if (*c != '\n')
                    ck_assert_int_eq(*c, *in++);
            }
            for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
                ck_assert(moesim_text_width(line) <= width || moesim_text_chars(line) <= 1);
            free(out);
        }
}
END_TEST

START_TEST(test_path)
{
    static const char *const paths[][2] = { { "a.svg", "./a.svg" }, { "/t/a.svg", "/t/a.svg" }, { "< cmd", "./< cmd" },
                                            { "|cmd", "./|cmd" }, { "-e", "./-e" }, { "../a", "./../a" } };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char *out = moesim_text_path(paths[i][0]);
        ck_assert_str_eq(out, paths[i][1]);
        free(out);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text of figures");
    TCase *c = tcase_create("text");
    tcase_add_loop_test(c, test_quote, 0, (int)(sizeof quotes / sizeof quotes[0]));
    tcase_add_test(c, test_shorten);
    tcase_add_test(c, test_wrap);
    tcase_add_test(c, test_path);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
