/* SPDX-License-Identifier: Apache-2.0
 *
 * Number parsers and the nearest name.
 */
#include <string.h>

#include "base/options.h"
#include "tests/unit/base/runner.h"

START_TEST(integers)
{
    moesim_error err = MOESIM_ERROR_INIT;
    int64_t i = 0;
    uint64_t u = 0;
    static const char *const bad[] = { "", " 1", "1 ", "0x10", "1.0", "1e3", "--1", "-", "abc", "99999999999999999999" };
    ck_assert_int_eq(moesim_parse_i64("-12", -20, 20, "n", &i, &err), MOESIM_OK);
    ck_assert_int_eq(i, -12);
    ck_assert_int_eq(moesim_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, "n", &i, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_parse_u64("18446744073709551615", 0, UINT64_MAX, "n", &u, &err), MOESIM_OK);
    ck_assert_uint_eq(u, UINT64_MAX);
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        ck_assert_int_eq(moesim_parse_i64(bad[k], INT64_MIN, INT64_MAX, "n", &i, &err), MOESIM_E_USAGE);
        ck_assert_int_eq(moesim_parse_u64(bad[k], 0, UINT64_MAX, "n", &u, &err), MOESIM_E_USAGE);
    }
    ck_assert_int_eq(moesim_parse_u64("-1", 0, 9, "n", &u, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_parse_u64("10", 1, 9, "option --n", &u, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "option --n: 10 is outside 1 to 9");
}
END_TEST

START_TEST(reals)
{
    moesim_error err = MOESIM_ERROR_INIT;
    double d = 0.0;
    static const char *const bad[] = { "", " 1", "1 ", "0x1p3", "inf", "nan", "-inf", "1e999", "1,5", ".", "e5", "1.5x" };
    ck_assert_int_eq(moesim_parse_real("-.5e1", -9, 9, "x", &d, &err), MOESIM_OK);
    ck_assert_double_eq(d, -5.0);
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        ck_assert_msg(moesim_parse_real(bad[k], -1e308, 1e308, "x", &d, &err) == MOESIM_E_USAGE, "'%s' passed", bad[k]);
    ck_assert_int_eq(moesim_parse_real("1.5", 0, 1, "x", &d, &err), MOESIM_E_USAGE);
    ck_assert_double_eq(d, -5.0);
}
END_TEST

START_TEST(bytes)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static const struct { const char *text; uint64_t bytes; } good[] = {
        { "123", 123 }, { "0", 0 }, { "4000MiB", UINT64_C(4194304000) }, { "1.5GB", UINT64_C(1500000000) },
        { "2GiB", UINT64_C(2147483648) }, { "1kB", 1000 }, { "7B", 7 }, { "18446744073709551615", UINT64_MAX },
        { "1TiB", UINT64_C(1099511627776) }, { "0.5KiB", 512 }, { "7.0B", 7 }, { "1.1kB", 1100 }, { "0.0001kB", 0 },
        { "3.0", 3 },
    };
    static const char *const bad[] = { "", "MiB", "-1MiB", "1 MiB", "1mb", "1MiBs", "99999999TiB", "1e400B", "nanB",
                                       "1.5", "1.5B", "400KB", "4K" };
    uint64_t u = 0;
    for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
        ck_assert_int_eq(moesim_parse_bytes(good[k].text, "size", &u, &err), MOESIM_OK);
        ck_assert_uint_eq(u, good[k].bytes);
    }
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        ck_assert_msg(moesim_parse_bytes(bad[k], "size", &u, &err) == MOESIM_E_USAGE, "'%s' passed", bad[k]);
    ck_assert_int_eq(moesim_parse_bytes("1.5B", "size", &u, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "size: 1.5B is not a whole number of bytes");
    ck_assert_int_eq(moesim_parse_bytes("400KB", "size", &u, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "size: '400KB': no unit is written so; did you mean '400kB'?");
}
END_TEST

START_TEST(nearest)
{
    static const char *const names[] = { "lru", "lfu", "oled", "belady", "belady-forced", NULL };
    ck_assert_str_eq(moesim_nearest("beladi", names), "belady");
    ck_assert_str_eq(moesim_nearest("old", names), "oled");
    ck_assert_str_eq(moesim_nearest("lur", names), "lru");        /* a swap is one edit */
    ck_assert_str_eq(moesim_nearest("belady-frocd", names), "belady-forced");
    ck_assert_ptr_null(moesim_nearest("xyz", names));
    ck_assert_ptr_null(moesim_nearest("", names));
    ck_assert_ptr_null(moesim_nearest("abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij", names));
}
END_TEST

RUN_TESTS("parse", integers, reals, bytes, nearest)
