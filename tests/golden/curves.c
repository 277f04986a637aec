/* SPDX-License-Identifier: Apache-2.0
 *
 * The public route_trace captures: published LRU, LFU and Belady curves of three models to their printed digits, and the
 * residency that the device itself recorded, routing by routing. Scope global. Checked where MOESIM_KNOWN_ANSWERS names the
 * folder that holds route-trace/.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/support.h"
#include "traces/import_route_trace.h"

#define MIB (UINT64_C(1) << 20)
#define SKIPPED 77

static const struct { const char *name; uint64_t routings, recorded_mib; } model[] = {
    {"qwen", 44766, 4000}, {"gemma", 28260, 4000}, {"gptoss", 10560, 3000},
};

/* Imports one capture; returns the trace's path. */
static const char *import(const char *folder, const char *name, moesim_import_result *result)
{
    moesim_error err = MOESIM_ERROR_INIT;
    char csv[4096];
    const char *path = test_path("route.h5");
    snprintf(csv, sizeof csv, "%s/route-trace/%s.route.csv", folder, name);
    ck_assert_msg(moesim_import_route_trace(csv, path, NULL, NULL, NULL, result, &err) == MOESIM_OK, "%s", err.text);
    return path;
}

/* One published row: "budget_mib,policy,hit_pct_cum,hit_pct_decode,read_mib". False: of a rule outside scope global, which
 * the file holds too. */
static bool check_row(const char *path, const char *line)
{
    char policy[32], got[256];
    unsigned mib;
    moesim_outcome out;
    ck_assert_msg(sscanf(line, "%u,%31[a-z],", &mib, policy) == 2, "not a row of a curve: %s", line);
    if (strcmp(policy, "lru") != 0 && strcmp(policy, "lfu") != 0 && strcmp(policy, "belady") != 0)
        return false;
    test_run_global(path, policy, mib * MIB, NULL, &out);
    snprintf(got, sizeof got, "%u,%s,%.3f,%.3f,%.1f", mib, policy, 100 * (double)out.all_hits / (double)out.all_accesses,
             100 * out.total.hits / out.total.active, (double)out.read_bytes / (double)MIB);
    ck_assert_str_eq(got, line);
    moesim_outcome_fini(&out);
    return true;
}

static size_t check_curve(const char *folder, const char *name, const char *path)
{
    char file[4096], line[256];
    size_t rows = 0;
    snprintf(file, sizeof file, "%s/route-trace/%s-curve.csv", folder, name);
    FILE *in = fopen(file, "r");
    ck_assert_msg(in != NULL, "%s cannot be read", file);
    ck_assert(fgets(line, sizeof line, in) != NULL);
    while (fgets(line, sizeof line, in) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        rows += check_row(path, line);
    }
    fclose(in);
    return rows;
}

START_TEST(test_curves)
{
    size_t rows = 0;
    for (size_t m = 0; m < sizeof model / sizeof model[0]; m++) {
        moesim_import_result result;
        const char *path = import(getenv("MOESIM_KNOWN_ANSWERS"), model[m].name, &result);
        ck_assert_uint_eq(result.lines, model[m].routings);
        rows += check_curve(getenv("MOESIM_KNOWN_ANSWERS"), model[m].name, path);
    }
    printf("known answers checked: %zu rows of published curves agree\n", rows);
    ck_assert_uint_eq(rows, 99);
}
END_TEST

START_TEST(test_residency)
{
    uint64_t checked = 0;
    for (size_t m = 0; m < sizeof model / sizeof model[0]; m++) {
        moesim_import_result result;
        moesim_outcome out;
        moesim_run_params params;
        moesim_run_params_defaults(&params);
        params.check_observed = true;
        const char *path = import(getenv("MOESIM_KNOWN_ANSWERS"), model[m].name, &result);
        test_run_global(path, "lru", model[m].recorded_mib * MIB, &params, &out);
        ck_assert_uint_eq(out.observed_checked, model[m].routings);
        ck_assert_uint_eq(out.observed_wrong, 0);
        checked += out.observed_checked;
        moesim_outcome_fini(&out);
        test_run_global(path, "lru", model[m].recorded_mib * MIB / 2, &params, &out);
        ck_assert_uint_gt(out.observed_wrong, 0);       /* another budget is told apart */
        moesim_outcome_fini(&out);
    }
    printf("known answers checked: %llu recorded residencies agree\n", (unsigned long long)checked);
    ck_assert_uint_eq(checked, 83586);
}
END_TEST

int main(void)
{
    const char *folder = getenv("MOESIM_KNOWN_ANSWERS");
    if (folder == NULL) {
        printf("skipped: MOESIM_KNOWN_ANSWERS does not name the folder of the published captures\n");
        return SKIPPED;
    }
    Suite *suite = suite_create("curves");
    TCase *tc = tcase_create("curves");
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, test_curves);
    tcase_add_test(tc, test_residency);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
