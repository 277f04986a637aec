/* SPDX-License-Identifier: Apache-2.0
 *
 * Derived profiles, what they are held against, and the JSON of nvbandwidth.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwprofile/derive.h"
#include "tests/unit/base/runner.h"

static moesim_profile profile;

static const moesim_geometry *model_of(const char *name)
{
    const moesim_geometry *model = NULL;
    ck_assert_int_eq(moesim_geometry_find(name, &model, NULL), MOESIM_OK);
    return model;
}

static void derive_ok(const moesim_nominal *nominal, const char *model)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_derive(nominal, model_of(model), "d", "t", &profile, &err) == MOESIM_OK, "%s", err.text);
}

/* Every model can be derived for, nothing counts as measured, and it is a whole profile. */
START_TEST(all_models)
{
    const moesim_nominal nominal = { .link = 64e9, .dram = 300e9, .hbm = 3e12 };
    for (const moesim_geometry *g = moesim_geometries; g->name != NULL; g++) {
        moesim_profile_row row;
        derive_ok(&nominal, g->name);
        ck_assert_str_eq(profile.label, "not measured");
        ck_assert_str_eq(profile.raw_digest, "");
        for (size_t i = 0; moesim_profile_get_row(&profile, i, &row); i++) {
            ck_assert_uint_eq(row.constant->n, 0);
            ck_assert(!row.constant->given || strlen(row.constant->note) > 0);
        }
        ck_assert_double_eq(profile.cpu.expert_bytes, (double)moesim_geometry_expert_bytes(g, MOESIM_BF16));
        ck_assert_double_gt(profile.other_gpu.value, 0.0);
        ck_assert_double_gt(profile.head.value, 0.0);
    }
}
END_TEST

/* More of a rate is less time, and only where it should. */
START_TEST(rates)
{
    moesim_nominal nominal = { .link = 32e9, .dram = 200e9, .hbm = 1e12, .threads = 8 };
    derive_ok(&nominal, "llada2.0-mini");
    const moesim_profile slow = profile;
    nominal.link *= 2.0;
    derive_ok(&nominal, "llada2.0-mini");
    ck_assert_double_eq(profile.link_bandwidth.value, 2.0 * slow.link_bandwidth.value);
    ck_assert_double_eq(profile.cpu.seconds[0], slow.cpu.seconds[0]);
    nominal.threads = 16;
    derive_ok(&nominal, "llada2.0-mini");
    ck_assert_double_lt(profile.cpu.seconds[0], slow.cpu.seconds[0]);
    ck_assert_double_eq_tol(profile.cpu.seconds[6], slow.cpu.seconds[6] / 2.0, 1e-12);
    nominal.hbm *= 2.0;
    derive_ok(&nominal, "llada2.0-mini");
    ck_assert_double_lt(profile.gpu.seconds[1][0], slow.gpu.seconds[1][0]);
    nominal.threads = 256;                   /* memory, not cores, is what is short */
    derive_ok(&nominal, "llada2.0-mini");
    ck_assert_double_eq_tol(profile.cpu.seconds[0] * profile.dram_bandwidth.value, profile.cpu.expert_bytes, 1e-6);
}
END_TEST

START_TEST(measured_link)
{
    const moesim_nominal nominal = { .dram = 200e9, .hbm = 1e12, .link_measured = 55.6e9, .back = 57e9,
                                     .tool = "nvbandwidth 1" };
    derive_ok(&nominal, "llada2.0-mini");
    ck_assert_double_eq(profile.link_bandwidth.value, 55.6e9);
    ck_assert_double_eq(profile.return_bandwidth.value, 57e9);
    ck_assert_ptr_nonnull(strstr(profile.link_bandwidth.note, "nvbandwidth 1"));
}
END_TEST

START_TEST(contradiction)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_nominal nominal = { .link = 64e9, .dram = 50e9, .hbm = 1e12 };
    ck_assert_int_eq(moesim_derive(&nominal, model_of("llada2.0-mini"), "d", "t", &profile, &err), MOESIM_E_FORMAT);
    ck_assert_msg(strstr(err.text, "dram.bandwidth") != NULL, "%s", err.text);
}
END_TEST

/* Constants that the built-in profile estimates are marked; the rest are what that profile says. */
START_TEST(error_rows)
{
    static moesim_profile shipped;
    moesim_derive_row row[MOESIM_DERIVE_ROWS];
    moesim_error err = MOESIM_ERROR_INIT;
    char label[32];
    size_t n = 0, judged = 0;
    ck_assert_msg(moesim_derive_error(row, &n, label, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_int_eq(moesim_profile_load("h200-host", &shipped, &err), MOESIM_OK);
    ck_assert_str_eq(label, shipped.label);
    ck_assert_uint_ge(n, 15);
    for (size_t i = 0; i < n; i++) {
        ck_assert_double_gt(row[i].derived, 0.0);
        judged += !row[i].estimate;
        if (strcmp(row[i].what, "link.bandwidth") == 0) {
            ck_assert_double_eq(row[i].shipped, shipped.link_bandwidth.value);
            ck_assert(row[i].estimate == (shipped.link_bandwidth.n == 0));
        }
    }
    ck_assert_uint_ge(judged, 4);
}
END_TEST

/* ---- nvbandwidth ------------------------------------------------------------------------------------------------------ */

static char path[64];

static moesim_code read_text(const char *text, uint32_t gpu, moesim_nvbandwidth *out, moesim_error *err)
{
    snprintf(path, sizeof path, "/tmp/moesim-nv-XXXXXX");
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, text, strlen(text)), (int)strlen(text));
    close(fd);
    const moesim_code code = moesim_nvbandwidth_read(path, gpu, out, err);
    unlink(path);
    return code;
}

#define HEAD "{\"nvbandwidth\": {\"version\": \"0.9\", \"testcases\": ["
#define CASE(name, rest) "{\"name\": \"" name "_memcpy_ce\", " rest "}"
#define PASSED(rate) "\"status\": \"Passed\", \"bandwidth_matrix\": [[" rate "]]"

START_TEST(passed)
{
    moesim_nvbandwidth nv;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(read_text(HEAD CASE("device_to_host", PASSED("\"57.25\"")) ", "
                            CASE("host_to_device", PASSED("\"55.5\"")) "]}}", 0, &nv, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_double_eq(nv.link, 55.5e9);
    ck_assert_double_eq(nv.back, 57.25e9);
    ck_assert_str_eq(nv.version, "0.9");
    ck_assert_msg(read_text(HEAD CASE("host_to_device", PASSED("\"1\", 24.5")) ", "
                            CASE("device_to_host", "\"status\": \"Error\"") "]}}", 1, &nv, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_double_eq(nv.link, 24.5e9);
    ck_assert_double_eq(nv.back, 0.0);
}
END_TEST

START_TEST(refused)
{
    static const struct { const char *text, *message; } row[] = {
        { HEAD CASE("host_to_device", "\"status\": \"Waived\"") "]}}", "has status Waived, not Passed" },
        { HEAD CASE("host_to_device", "\"status\": \"Error\", \"error\": \"no\\u001b[31m\"") "]}}",
          "Error, not Passed: no?[31m" },
        { HEAD CASE("host_to_device", "\"status\": 3") "]}}", "has status (none), not Passed" },
        { HEAD CASE("host_to_device", PASSED("\"N/A\"")) "]}}", "bandwidth_matrix[0][0] is no rate in GB/s" },
        { HEAD CASE("host_to_device", PASSED("\"-5\"")) "]}}", "bandwidth_matrix[0][0] is no rate in GB/s" },
        { HEAD CASE("host_to_device", PASSED("1e300")) "]}}", "bandwidth_matrix[0][0] is no rate in GB/s" },
        { HEAD CASE("host_to_device", PASSED("")) "]}}", "bandwidth_matrix has 0 GPUs, there is no GPU 0" },
        { HEAD CASE("host_to_device", "\"status\": \"Passed\"") "]}}", "bandwidth_matrix has 0 GPUs, there is no GPU 0" },
        { HEAD "3, null]}}", "there is no test case host_to_device_memcpy_ce; run `nvbandwidth" },
        { "{\"nvbandwidth\": 1}", "nvbandwidth.testcases is no list" },
        { "3", "no valid JSON" },
        { "", "no valid JSON" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_nvbandwidth nv;
        moesim_error err = MOESIM_ERROR_INIT;
        ck_assert_int_eq(read_text(row[i].text, 0, &nv, &err), MOESIM_E_FORMAT);
        ck_assert_msg(strstr(err.text, row[i].message) != NULL, "expected '%s' in '%s'", row[i].message, err.text);
        ck_assert_msg(strstr(err.text, path) != NULL, "%s", err.text);
    }
    moesim_nvbandwidth nv;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_nvbandwidth_read("/nonexistent.json", 0, &nv, &err), MOESIM_E_IO);
    ck_assert_int_eq(moesim_nvbandwidth_read("/tmp", 0, &nv, &err), MOESIM_E_IO);
}
END_TEST

RUN_TESTS("derive", all_models, rates, measured_link, contradiction, error_rows, passed, refused)
