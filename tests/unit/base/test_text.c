/* SPDX-License-Identifier: Apache-2.0
 *
 * Clean text: what is kept, what becomes '?', where it is cut.
 */
#include <string.h>

#include "base/text.h"
#include "tests/unit/base/runner.h"

START_TEST(controls_and_broken_bytes)
{
    static const struct { const char *given, *clean; } row[] = {
        { "", "" }, { "plain text", "plain text" }, { "a\nb\tc\x1b[31m\x7f", "a?b?c?[31m?" },
        { "na\xc3\xafve \xe2\x89\xa4 \xf0\x9f\x98\x80", "na\xc3\xafve \xe2\x89\xa4 \xf0\x9f\x98\x80" },
        { "C1 \xc2\x9b is not \xc2\xa0", "C1 ? is not \xc2\xa0" }, { "\xff\x80 \xc3", "?? ?" }, { "\xc0\x80", "??" },
        { "\xed\xa0\x80", "???" }, { "\xf4\x90\x80\x80", "????" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char out[64];
        moesim_text_clean(row[i].given, strlen(row[i].given), out, sizeof out);
        ck_assert_str_eq(out, row[i].clean);
        memcpy(out, row[i].given, strlen(row[i].given) + 1);
        moesim_text_clean(out, sizeof out, out, sizeof out);   /* in place */
        ck_assert_str_eq(out, row[i].clean);
    }
}
END_TEST

START_TEST(cut_between_characters)
{
    char out[8];
    moesim_text_clean("abcdefghij", 3, out, sizeof out);
    ck_assert_str_eq(out, "abc");
    moesim_text_clean("abcdefghij", 10, out, sizeof out);
    ck_assert_str_eq(out, "abcdefg");
    moesim_text_clean("abcde\xe2\x89\xa4", 8, out, sizeof out);
    ck_assert_str_eq(out, "abcde");
    moesim_text_clean("x", 1, out, 1);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(pieces_are_added_and_cut)
{
    char out[8] = "";
    moesim_text_add(out, sizeof out, "%s", "ab");
    moesim_text_add(out, sizeof out, ", %d", 12);
    ck_assert_str_eq(out, "ab, 12");
    moesim_text_add(out, sizeof out, "345");
    ck_assert_str_eq(out, "ab, 123");
    moesim_text_add(out, sizeof out, "6");
    ck_assert_str_eq(out, "ab, 123");
}
END_TEST

RUN_TESTS("text", controls_and_broken_bytes, cut_between_characters, pieces_are_added_and_cut)
