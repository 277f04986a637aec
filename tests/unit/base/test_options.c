/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables of policies: defaults, every refusal, and the round trip parse ∘ print.
 */
#include <stddef.h>
#include <string.h>

#include "base/options.h"
#include "base/rng.h"
#include "tests/unit/base/runner.h"

typedef struct store {
    int64_t n;
    double x;
    int32_t on, which;
} store;

static const char *const choices[] = { "lag1", "deferred", "none", NULL };

static const moesim_option table[] = {
    { "n", MOESIM_OPTION_INT, offsetof(store, n), "-3", -9e15, 9e15, NULL, "" },
    { "x", MOESIM_OPTION_REAL, offsetof(store, x), "0.1", -1e300, 1e300, NULL, "" },
    { "on", MOESIM_OPTION_BOOL, offsetof(store, on), "on", 0, 0, NULL, "" },
    { "confidence", MOESIM_OPTION_CHOICE, offsetof(store, which), "deferred", 0, 0, choices, "" },
    { NULL, 0, 0, NULL, 0, 0, NULL, NULL },
};

static store fresh(void)
{
    store s;
    moesim_error err = MOESIM_ERROR_INIT;
    memset(&s, 0xff, sizeof s);
    ck_assert_int_eq(moesim_options_defaults(table, &s, sizeof s, &err), MOESIM_OK);
    return s;
}

START_TEST(defaults)
{
    const store s = fresh();
    char text[200];
    ck_assert_int_eq(s.n, -3);
    ck_assert_double_eq(s.x, 0.1);
    ck_assert_int_eq(s.on, 1);
    ck_assert_int_eq(s.which, 1);
    ck_assert_uint_eq(moesim_options_print(table, &s, text, sizeof text), strlen("n=-3,x=0.1,on=on,confidence=deferred"));
    ck_assert_str_eq(text, "n=-3,x=0.1,on=on,confidence=deferred");
    ck_assert_uint_eq(moesim_options_print(NULL, NULL, text, sizeof text), 0);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(defaults_stay_inside_the_struct)
{
    store s;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_options_defaults(table, &s, offsetof(store, which), &err), MOESIM_E_INTERNAL);
    ck_assert_ptr_nonnull(strstr(err.text, "'confidence'"));
}
END_TEST

START_TEST(parses_over_defaults)
{
    store s = fresh();
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_options_parse(table, &s, "confidence=none,n=4", "oled", &err), MOESIM_OK);
    ck_assert_int_eq(s.n, 4);
    ck_assert_int_eq(s.which, 2);
    ck_assert_int_eq(s.on, 1);
    ck_assert_int_eq(moesim_options_parse(table, &s, "", "oled", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_options_parse(table, &s, "on=false", "oled", &err), MOESIM_OK);
    ck_assert_int_eq(s.on, 0);
}
END_TEST

START_TEST(refusals)
{
    static const struct { const char *text, *message; } bad[] = {
        { "confidenc=none", "oled has no option 'confidenc'; did you mean 'confidence'?" },
        { "zzz=1", "oled has no option 'zzz'; it has n, x, on, confidence" },
        { "n=1,n=2", "option 'n' of oled is given twice" },
        { "n=", "oled: 'n=' is not of the form key=value" },
        { "=1", "oled: '=1' is not of the form key=value" },
        { "n", "oled: 'n' is not of the form key=value" },
        { "n=1,", "oled: '' is not of the form key=value" },
        { ",n=1", "oled: '' is not of the form key=value" },
        { "n=1x", "option 'n' of oled: '1x' is not an integer" },
        { "n=9000000000000001", "option 'n' of oled: 9000000000000001 is outside -9000000000000000 to 9000000000000000" },
        { "x=1e301", "option 'x' of oled: 1e301 is outside -1e+300 to 1e+300" },
        { "on=maybe", "option 'on' of oled: 'maybe' is none of off, on, false, true, no, yes, 0, 1" },
        { "confidence=nome", "option 'confidence' of oled: 'nome' is none of lag1, deferred, none; did you mean 'none'?" },
    };
    moesim_error err = MOESIM_ERROR_INIT;
    store s = fresh();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(moesim_options_parse(table, &s, bad[i].text, "oled", &err), MOESIM_E_USAGE);
        ck_assert_str_eq(err.text, bad[i].message);
    }
    ck_assert_int_eq(moesim_options_parse(NULL, NULL, "n=1", "ideal", &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "ideal has no options, so 'n' cannot be set");
    char longer[400];
    memset(longer, 'n', sizeof longer);
    longer[399] = '\0';
    ck_assert_int_eq(moesim_options_parse(table, &s, longer, "oled", &err), MOESIM_E_USAGE);
}
END_TEST

/* Random doubles of every magnitude, printed with as few digits as read back the same. */
START_TEST(round_trip)
{
    moesim_rng r;
    moesim_error err = MOESIM_ERROR_INIT;
    char text[200], again[200];
    moesim_rng_seed(&r, 11);
    for (int i = 0; i < 5000; i++) {
        store s = fresh(), back = fresh();
        const uint64_t bits = (moesim_rng_u64(&r) & UINT64_C(0xbfffffffffffffff)) | (uint64_t)(i & 1) << 62;
        memcpy(&s.x, &bits, sizeof s.x);
        if (!(s.x >= -1e300 && s.x <= 1e300))
            s.x = (double)i / 10.0;
        s.n = (int64_t)(moesim_rng_u64(&r) >> 11) - (INT64_C(1) << 52);
        s.on = i & 1;
        s.which = i % 3;
        const size_t length = moesim_options_print(table, &s, text, sizeof text);
        ck_assert_uint_eq(length, strlen(text));
        ck_assert_int_eq(moesim_options_parse(table, &back, text, "p", &err), MOESIM_OK);
        ck_assert_int_eq(memcmp(&s, &back, sizeof s), 0);
        moesim_options_print(table, &back, again, sizeof again);
        ck_assert_str_eq(text, again);
    }
}
END_TEST

START_TEST(print_cuts_like_snprintf)
{
    const store s = fresh();
    char text[8];
    ck_assert_uint_eq(moesim_options_print(table, &s, text, sizeof text), strlen("n=-3,x=0.1,on=on,confidence=deferred"));
    ck_assert_str_eq(text, "n=-3,x=");
    ck_assert_uint_eq(moesim_options_print(table, &s, NULL, 0), strlen("n=-3,x=0.1,on=on,confidence=deferred"));
}
END_TEST

RUN_TESTS("options", defaults, defaults_stay_inside_the_struct, parses_over_defaults, refusals, round_trip,
          print_cuts_like_snprintf)
