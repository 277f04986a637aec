/* SPDX-License-Identifier: Apache-2.0
 *
 * Overrides: values, units, refusals, and the round trips of keys and files.
 */
#include <math.h>

#include "tests/unit/hwprofile/hw.h"

static moesim_profile loaded(const char *name)
{
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_profile_load(name, &p, &err) == MOESIM_OK, "%s", err.text);
    return p;
}

START_TEST(values)
{
    static const struct { const char *text; double value; size_t offset; } row[] = {
        { "link.bandwidth=64GB/s", 64e9, offsetof(moesim_profile, link_bandwidth) },
        { "link.bandwidth=64", 64e9, offsetof(moesim_profile, link_bandwidth) },
        { "link.bandwidth=64 GB/s", 64e9, offsetof(moesim_profile, link_bandwidth) },
        { "link.bandwidth=0.1TB/s", 1e11, offsetof(moesim_profile, link_bandwidth) },
        { "link.bandwidth=1.5GiB/s", 1.5 * 0x1p30, offsetof(moesim_profile, link_bandwidth) },
        { "link.bandwidth=5e4MB/s", 5e10, offsetof(moesim_profile, link_bandwidth) },
        { "dram.bandwidth=2e11B/s", 2e11, offsetof(moesim_profile, dram_bandwidth) },
        { "return.bandwidth=7000000kB/s", 7e9, offsetof(moesim_profile, return_bandwidth) },
        { "other.host=0", 0.0, offsetof(moesim_profile, other_host) },
        { "cpu.step=12us", 12e-6, offsetof(moesim_profile, cpu_step) },
        { "cpu.step=12\xc2\xb5s", 12e-6, offsetof(moesim_profile, cpu_step) },
        { "cpu.step=12\xce\xbcs", 12e-6, offsetof(moesim_profile, cpu_step) },
        { "sync=1.5e-5", 1.5e-5, offsetof(moesim_profile, sync) },
        { "head=.25ms", 2.5e-4, offsetof(moesim_profile, head) },
        { "policy=700ns", 7e-7, offsetof(moesim_profile, policy) },
        { "gpu.launch=+3us", 3e-6, offsetof(moesim_profile, gpu_launch) },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_profile p = loaded("h200-host");
        ck_assert_msg(moesim_profile_set(&p, row[i].text, &err) == MOESIM_OK, "%s", err.text);
        const moesim_constant *c = (const moesim_constant *)(const void *)((const char *)&p + row[i].offset);
        ck_assert_double_eq(c->value, row[i].value);
        ck_assert_uint_eq(c->n, 0);
        ck_assert(c->given && isnan(c->spread) && isnan(c->residual));
        ck_assert_str_eq(p.overrides, row[i].text);
    }
}
END_TEST

START_TEST(refusals)
{
    static const struct { const char *profile, *text, *message; } row[] = {
        { "h200-host", "", "write key=value" },
        { "h200-host", "link.bandwidth", "write key=value" },
        { "h200-host", "=3", "write key=value" },
        { "h200-host", "link.bandwidth=", "write key=value" },
        { "h200-host", "sync=1us,head=2us", "one constant each" },
        { "h200-host", "link.bandwith=3", "--set link.bandwith: no such constant; did you mean 'link.bandwidth'?" },
        { "h200-host", "frequency=3", "no such constant; 'moesim profile show NAME' lists them" },
        { "h200-host", "cpu.table=3", "tables cannot be set" },
        { "h200-host", "link.bandwidth=fast", "does not begin with a decimal number" },
        { "h200-host", "link.bandwidth=nan", "does not begin with a decimal number" },
        { "h200-host", "link.bandwidth=1e999", "not a finite decimal number" },
        { "h200-host", "link.bandwidth=1.2.3", "not a finite decimal number" },
        { "h200-host", "link.bandwidth=0x10", "has no unit that fits" },
        { "h200-host", "link.bandwidth=64us", "has no unit that fits; write B/s, kB/s, MB/s, GB/s, TB/s or GiB/s, or none "
          "for GB/s" },
        { "h200-host", "link.bandwidth=64Gb/s", "has no unit that fits" },
        { "h200-host", "link.alpha=4GB/s", "has no unit that fits; write s, ms, us, \xc2\xb5s or ns, or none for seconds" },
        { "h200-host", "link.bandwidth=0", "must be above 0" },
        { "h200-host", "link.bandwidth=-64", "is negative" },
        { "h200-host", "sync=-1us", "--set sync: -1us is negative" },
        { "h200-host", "sync=2e300", "is above one hour" },
        { "h200-host", "link.bandwidth=1e200", "is outside" },
        { "h200-host", "link.bandwidth=1e308", "is not finite" },
        { "h200-host", "paper.tau=3us", "has only mode model, which does not read this constant" },
        { "paper-a", "sync=3us", "profile paper-a has only mode paper, which does not read this constant" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_profile p = loaded(row[i].profile);
        const moesim_profile before = p;
        ck_assert_int_eq(moesim_profile_set(&p, row[i].text, &err), MOESIM_E_USAGE);
        ck_assert_msg(strstr(err.text, row[i].message) != NULL, "%s: %s", row[i].text, err.text);
        ck_assert_int_eq(memcmp(&p, &before, sizeof p), 0);
    }
}
END_TEST

START_TEST(twice)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_profile p = loaded("h200-host");
    ck_assert_int_eq(moesim_profile_set(&p, "sync=1us", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_profile_set(&p, "head=1us", &err), MOESIM_OK);
    ck_assert_str_eq(p.overrides, "sync=1us,head=1us");
    ck_assert_int_eq(moesim_profile_set(&p, "head=2us", &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "--set head: given twice");
    ck_assert_int_eq(moesim_profile_set(&p, "sync=2us", &err), MOESIM_E_USAGE);
}
END_TEST

/* Two overrides may be right together only, so the whole is checked after the last. */
START_TEST(together)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_profile p = loaded("h200-host");
    ck_assert_int_eq(moesim_profile_set(&p, "link.bandwidth=128GB/s", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_profile_check(&p, &err), MOESIM_E_FORMAT);
    ck_assert_msg(strstr(err.text, "dram.bandwidth 115.465 GB/s is below link.bandwidth 128 GB/s") != NULL, "%s", err.text);
    ck_assert_int_eq(moesim_profile_set(&p, "dram.bandwidth=256GB/s", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_profile_check(&p, &err), MOESIM_OK);
}
END_TEST

/* The bandwidth of the paper's closed forms may be set although its profiles list none. */
START_TEST(paper_bandwidth)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_profile p = loaded("paper-a");
    ck_assert(!p.link_bandwidth.given);
    ck_assert_int_eq(moesim_profile_set(&p, "link.bandwidth=25GB/s", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_profile_check(&p, &err), MOESIM_OK);
    ck_assert(p.link_bandwidth.given);
}
END_TEST

/* Every row, set to the value that it prints, keeps its value. */
START_TEST(rows)
{
    for (const char *const *name = moesim_profile_names(); *name != NULL; name++) {
        moesim_profile p = loaded(*name), q = p;
        moesim_profile_row row, again;
        moesim_error err = MOESIM_ERROR_INIT;
        char text[128];
        for (size_t i = 0; moesim_profile_get_row(&p, i, &row); i++) {
            if (!row.constant->given)
                continue;
            snprintf(text, sizeof text, "%s=%.17g%s", row.key, row.constant->value, row.unit);
            ck_assert_msg(moesim_profile_set(&q, text, &err) == MOESIM_OK, "%s", err.text);
            ck_assert(moesim_profile_get_row(&q, i, &again));
            ck_assert_double_eq(again.constant->value, row.constant->value);
        }
        ck_assert_int_eq(moesim_profile_check(&q, &err), MOESIM_OK);
    }
}
END_TEST

/* The list of overrides, applied again, gives the same profile. */
START_TEST(replayed)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_profile p = loaded("h200-host"), q = p;
    char list[1024];
    ck_assert_int_eq(moesim_profile_set(&p, "link.bandwidth=32.5 GB/s", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_profile_set(&p, "cpu.step=7.25\xc2\xb5s", &err), MOESIM_OK);
    snprintf(list, sizeof list, "%s", p.overrides);
    for (char *entry = list, *next; entry != NULL; entry = next) {
        next = strchr(entry, ',');
        if (next != NULL)
            *next++ = '\0';
        ck_assert_int_eq(moesim_profile_set(&q, entry, &err), MOESIM_OK);
    }
    char *a = hw_written(&p), *b = hw_written(&q);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
}
END_TEST

START_TEST(too_many)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_profile p = loaded("h200-host");
    char text[1200];
    memset(text, 0, sizeof text);
    memset(p.overrides, 'x', sizeof p.overrides - 5);
    p.overrides[sizeof p.overrides - 5] = '\0';
    ck_assert_int_eq(moesim_profile_set(&p, "sync=1us", &err), MOESIM_E_LIMIT);
    snprintf(text, sizeof text, "sync=%01000d", 1);
    ck_assert_int_eq(moesim_profile_set(&p, text, &err), MOESIM_E_USAGE);
}
END_TEST

START_TEST(bandwidths)
{
    static const char *const wrong[] = { "", "0", "-1", "x", "5furlongs", "5s", "1e400", "nan", "12GB/s,13" };
    moesim_error err = MOESIM_ERROR_INIT;
    double v = 0;
    ck_assert_int_eq(moesim_profile_parse_bandwidth("64", "option", &v, &err), MOESIM_OK);
    ck_assert_double_eq(v, 64e9);
    ck_assert_int_eq(moesim_profile_parse_bandwidth("64000 MB/s", "option", &v, &err), MOESIM_OK);
    ck_assert_double_eq(v, 64e9);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(moesim_profile_parse_bandwidth(wrong[i], "option", &v, &err) == MOESIM_E_USAGE, "%s", wrong[i]);
        ck_assert(strncmp(err.text, "option: ", 8) == 0);
    }
}
END_TEST

RUN_TESTS("set", bandwidths, values, refusals, twice, together, paper_bandwidth, rows, replayed, too_many)
