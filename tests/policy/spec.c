/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, option strings and outside policies. MOESIM_TEST_OUTSIDE is the folder with the shared objects built from outside.c.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/registry.h"

static const char *outside(const char *file, const char *options)
{
    static char path[4096];
    const char *folder = getenv("MOESIM_TEST_OUTSIDE");
    ck_assert_msg(folder != NULL, "MOESIM_TEST_OUTSIDE is not set");
    snprintf(path, sizeof path, "%s/%s%s", folder, file, options);
    return path;
}

static void refuse(const char *text, moesim_code code, const char *says)
{
    moesim_policy_spec spec;
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_code got = moesim_policy_spec_init(&spec, text, &err);
    ck_assert_msg(got == code, "'%s' gave %d: %s", text, (int)got, err.text);
    ck_assert_msg(strstr(err.text, says) != NULL, "'%s' says: %s", text, err.text);
    ck_assert_ptr_null(spec.policy);
    ck_assert_ptr_null(spec.options);
    ck_assert_ptr_null(spec.library);
    moesim_policy_spec_fini(&spec);
}

START_TEST(test_built_in)
{
    static const char *const expected[] = { "random", "naive", "lru", "lfu", "lfru", "oled", "oled-full", "surv", "belady",
                                            "belady-forced", "belady-pooled", "ideal", "ideal-pooled", "next-pass", "full" };
    const moesim_policy *const *all = moesim_policies();
    size_t n = 0;
    while (all[n] != NULL)
        n++;
    ck_assert_uint_eq(n, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < n; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_policy_spec spec, again;
        char text[512];
        ck_assert_str_eq(all[i]->name, expected[i]);
        ck_assert_msg(moesim_policy_check(all[i], all[i]->name, &err) == MOESIM_OK, "%s", err.text);
        ck_assert_msg(moesim_policy_spec_init(&spec, all[i]->name, &err) == MOESIM_OK, "%s", err.text);
        ck_assert_ptr_eq(spec.policy, all[i]);
        ck_assert_str_eq(spec.given, all[i]->name);
        snprintf(text, sizeof text, "%s%s%s", all[i]->name, spec.effective[0] != '\0' ? ":" : "", spec.effective);
        ck_assert_msg(moesim_policy_spec_init(&again, text, &err) == MOESIM_OK, "%s", err.text);
        ck_assert_str_eq(again.effective, spec.effective);
        ck_assert_str_eq(again.given, text);
        moesim_policy_spec_fini(&spec);
        moesim_policy_spec_fini(&again);
    }
}
END_TEST

START_TEST(test_options)
{
    moesim_policy_spec spec;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_policy_spec_init(&spec, "oled:adapt=on,confidence=none", &err), MOESIM_OK);
    ck_assert_str_eq(spec.effective, "confidence=none,adapt=on,adapt-form=paper,enforce=lazy,dispatch=all,lambda=0");
    ck_assert_uint_eq(spec.policy->needs(spec.options), MOESIM_NEED_GATE | MOESIM_NEED_MASS);
    moesim_policy_spec_fini(&spec);
    ck_assert_ptr_null(spec.given);
    ck_assert_int_eq(moesim_policy_spec_init(&spec, "oled", &err), MOESIM_OK);
    ck_assert_uint_eq(spec.policy->needs(spec.options),
                      MOESIM_NEED_GATE | MOESIM_NEED_MASS | MOESIM_NEED_WEIGHTED | MOESIM_NEED_CONFIDENCE);
    moesim_policy_spec_fini(&spec);
    const uint32_t costs = MOESIM_NEED_COSTS | MOESIM_NEED_COUNTS;
    ck_assert_int_eq(moesim_policy_spec_init(&spec, "oled-full", &err), MOESIM_OK);
    ck_assert_str_eq(spec.effective, "confidence=lag1,adapt=on,adapt-form=damped,enforce=lazy,dispatch=reuse,lambda=0");
    ck_assert_uint_eq(spec.policy->needs(spec.options),
                      costs | MOESIM_NEED_GATE | MOESIM_NEED_MASS | MOESIM_NEED_WEIGHTED | MOESIM_NEED_CONFIDENCE);
    moesim_policy_spec_fini(&spec);
    ck_assert_int_eq(moesim_policy_spec_init(&spec, "oled:dispatch=load,confidence=deferred", &err), MOESIM_OK);
    ck_assert_uint_eq(spec.policy->needs(spec.options), costs | MOESIM_NEED_GATE | MOESIM_NEED_MASS | MOESIM_NEED_WEIGHTED |
                                                        MOESIM_NEED_HINDSIGHT | MOESIM_NEED_CONFIDENCE);
    moesim_policy_spec_fini(&spec);
    ck_assert_int_eq(moesim_policy_spec_init(&spec, "surv:dispatch=reuse,lambda=0.5", &err), MOESIM_OK);
    ck_assert_uint_eq(spec.policy->needs(spec.options), costs | MOESIM_NEED_CLASS);
    moesim_policy_spec_fini(&spec);
    ck_assert_int_eq(moesim_policy_spec_init(&spec, "lfu:decay=12", &err), MOESIM_OK);
    ck_assert_str_eq(spec.effective, "decay=12");
    moesim_policy_spec_fini(&spec);
}
END_TEST

START_TEST(test_refused)
{
    char text[9000];
    refuse("", MOESIM_E_USAGE, "names no policy");
    refuse(":decay=1", MOESIM_E_USAGE, "names no policy");
    refuse("lur", MOESIM_E_USAGE, "did you mean 'lru'?");
    refuse("belady-force", MOESIM_E_USAGE, "did you mean 'belady-forced'?");
    refuse("OLED", MOESIM_E_USAGE, "unknown policy 'OLED'");
    refuse("zzzzzzzzzz", MOESIM_E_USAGE, "'moesim policies' lists them");
    refuse("lfu:", MOESIM_E_USAGE, "without an option");
    refuse("lru:decay=1", MOESIM_E_USAGE, "lru has no options");
    refuse("ideal:x=1", MOESIM_E_USAGE, "ideal has no options");
    refuse("oled:confidense=lag1", MOESIM_E_USAGE, "did you mean 'confidence'?");
    refuse("oled:confidence=lag2", MOESIM_E_USAGE, "did you mean 'lag1'?");
    refuse("oled:adapt=on,adapt=off", MOESIM_E_USAGE, "given twice");
    refuse("oled:adapt", MOESIM_E_USAGE, "key=value");
    refuse("oled:adapt=on,", MOESIM_E_USAGE, "key=value");
    refuse("lfu:decay=-1", MOESIM_E_USAGE, "decay");
    refuse("lfu:decay=1x", MOESIM_E_USAGE, "decay");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refuse(text, MOESIM_E_USAGE, "longer than");
    memset(text, '/', 5000);
    text[5000] = '\0';
    refuse(text, MOESIM_E_USAGE, "longer than");
}
END_TEST

START_TEST(test_outside)
{
    moesim_policy_spec spec;
    moesim_error err = MOESIM_ERROR_INIT;
    const char *path = outside("outside.so", ":fault=nan,from=7");
    ck_assert_msg(moesim_policy_spec_init(&spec, path, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_str_eq(spec.policy->name, "outside");
    ck_assert_str_eq(spec.effective, "from=7,fault=nan");
    ck_assert_str_eq(spec.given, path);
    ck_assert_ptr_nonnull(spec.library);
    moesim_policy_spec_fini(&spec);
    refuse(outside("outside.so", ":fualt=nan"), MOESIM_E_USAGE, "did you mean 'fault'?");
    /* without a slash it is a file of this folder all the same */
    ck_assert_int_eq(chdir(getenv("MOESIM_TEST_OUTSIDE")), 0);
    ck_assert_msg(moesim_policy_spec_init(&spec, "outside.so", &err) == MOESIM_OK, "%s", err.text);
    moesim_policy_spec_fini(&spec);
}
END_TEST

START_TEST(test_outside_flawed)
{
    static const struct { const char *file, *says; } row[] = {
        { "flaw1.so", "exports no moesim_policy_export" },
        { "flaw2.so", "returned NULL" },
        { "flaw3.so", "built for policy ABI 2, this moesim has ABI 1" },
        { "flaw4.so", "its policy struct has" },
        { "flaw5.so", "no retain callback" },
        { "flaw6.so", "no retain_key callback" },
        { "flaw7.so", "name is not of" },
        { "flaw8.so", "option 'from' needs 8 aligned bytes at offset 4096" },
        { "flaw9.so", "option 'from' has the default '0'" },
        { "flaw10.so", "option 'from' stands twice" },
        { "flaw11.so", "no class_weight table" },
        { "flaw12.so", "bits unknown to this moesim" },
        { "flaw13.so", "needs the trait MOESIM_CLAIRVOYANT" },
        { "nowhere.so", "cannot be loaded" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        refuse(outside(row[i].file, ""), MOESIM_E_POLICY, row[i].says);
}
END_TEST

/* A file of text, an empty one, a shared object for another machine, the first 64 bytes of one, a folder. */
START_TEST(test_outside_files)
{
    static unsigned char image[1 << 20];
    FILE *in = fopen(outside("outside.so", ""), "rb");
    ck_assert_ptr_nonnull(in);
    const size_t n = fread(image, 1, sizeof image, in);
    fclose(in);
    ck_assert_uint_gt(n, 4096);
    image[18] ^= 0x55;   /* e_machine */
    const struct { const void *bytes; size_t n; } row[] = { { "int main;\n", 10 }, { "", 0 }, { image, n }, { image, 64 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const char *path = outside("damaged.so", "");
        FILE *out = fopen(path, "wb");
        ck_assert_ptr_nonnull(out);
        ck_assert_uint_eq(fwrite(row[i].bytes, 1, row[i].n, out), row[i].n);
        fclose(out);
        refuse(path, MOESIM_E_POLICY, "cannot be loaded");
        unlink(path);
    }
    refuse(outside("", ""), MOESIM_E_POLICY, "cannot be loaded");
}
END_TEST

START_TEST(test_check)
{
    moesim_policy p = { .abi = MOESIM_POLICY_ABI, .size = sizeof p, .name = "x", .summary = "", .source = "",
                        .host_mode = MOESIM_HOST_FULL };
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_policy_check(&p, "x", &err), MOESIM_OK);
    p.host_mode = 77;
    ck_assert_int_eq(moesim_policy_check(&p, "x", &err), MOESIM_E_POLICY);
    ck_assert_str_eq(err.text, "x: unknown host mode 77");
    p.host_mode = MOESIM_HOST_FULL;
    p.order = 9;
    ck_assert_int_eq(moesim_policy_check(&p, "x", &err), MOESIM_E_POLICY);
    p.order = 0;
    p.traits = 1u << 20;
    ck_assert_int_eq(moesim_policy_check(&p, "x", &err), MOESIM_E_POLICY);
    p.traits = MOESIM_RETAIN_AT_PASS;
    ck_assert_int_eq(moesim_policy_check(&p, "x", &err), MOESIM_E_POLICY);
    p.traits = 0;
    p.summary = NULL;
    ck_assert_int_eq(moesim_policy_check(&p, "x", &err), MOESIM_E_POLICY);
    p.summary = "";
    double weight[24] = { 0 };
    weight[9] = 1.0 / 0.0;
    p.class_weight = weight;
    ck_assert_int_eq(moesim_policy_check(&p, "x", &err), MOESIM_E_POLICY);
    ck_assert_str_eq(err.text, "x: class_weight[1][1] is not finite");
}
END_TEST

static moesim_code join(void *cookie, const char *name, moesim_error *err)
{
    char *text = cookie;
    const size_t used = strlen(text);
    if (strcmp(name, "stop") == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "stopped");
    snprintf(text + used, 256 - used, "[%s]", name);
    return MOESIM_OK;
}

START_TEST(test_split)
{
    moesim_error err = MOESIM_ERROR_INIT;
    char text[256] = "";
    ck_assert_int_eq(moesim_policy_split("lru,lfu,oled", join, text, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_policy_split("oled:adapt=on,enforce=eager", join, text, &err), MOESIM_OK);
    ck_assert_str_eq(text, "[lru][lfu][oled][oled:adapt=on,enforce=eager]");
    ck_assert_int_eq(moesim_policy_split("lru,,lfu", join, text, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_policy_split("", join, text, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_policy_split("a,stop,b", join, text, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "stopped");
}
END_TEST

/* The same policy with the same options stands in a list once, however it is written. */
START_TEST(test_list)
{
    static const struct { const char *text, *says; } row[] = {
        { "lru", NULL }, { "oled", NULL }, { "lru", "policy 'lru' is given twice" },
        { "oled:confidence=lag1", "policy 'oled:confidence=lag1' is given twice (first as 'oled')" },
        { "oled:confidence=deferred", NULL }, { "no-such", "no-such" }, { "lfu", NULL }, { "full", "more than 4 policies" },
    };
    moesim_policy_spec list[4];
    size_t n = 0;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        const size_t before = n;
        const moesim_code code = moesim_policy_spec_add(list, &n, 4, "policy", row[i].text, &err);
        ck_assert_msg(code == (row[i].says == NULL ? MOESIM_OK : MOESIM_E_USAGE), "'%s': %s", row[i].text, err.text);
        ck_assert_msg(row[i].says == NULL || strstr(err.text, row[i].says) != NULL, "'%s': %s", row[i].text, err.text);
        while (code != MOESIM_OK && n > before)
            moesim_policy_spec_fini(&list[--n]);
    }
    ck_assert_uint_eq(n, 4);
    while (n > 0)
        moesim_policy_spec_fini(&list[--n]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec");
    TCase *tests = tcase_create("spec");
    tcase_add_test(tests, test_built_in);
    tcase_add_test(tests, test_options);
    tcase_add_test(tests, test_refused);
    tcase_add_test(tests, test_outside);
    tcase_add_test(tests, test_outside_flawed);
    tcase_add_test(tests, test_outside_files);
    tcase_add_test(tests, test_check);
    tcase_add_test(tests, test_split);
    tcase_add_test(tests, test_list);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
