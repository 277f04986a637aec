/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading: shipped profiles and their files, values, digests, written files, names, files that are none, warnings.
 */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/hwprofile/hw.h"

static const char *folder(void)
{
    static char path[] = "/tmp/moesim-hwprofile-XXXXXX";
    static int made;
    if (!made++)
        ck_assert_ptr_nonnull(mkdtemp(path));
    return path;
}

static const char *put(const char *name, const char *text, size_t bytes)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(text, 1, bytes, out), bytes);
    ck_assert_int_eq(fclose(out), 0);
    return path;
}

static void remove_all(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder()), 0);
}

static void refused(const char *name, moesim_code code, const char *message)
{
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_profile_load(name, &p, &err), code);
    ck_assert_msg(strstr(err.text, message) != NULL, "expected '%s' in '%s'", message, err.text);
}

START_TEST(shipped)
{
    static const struct { const char *name, *label; unsigned modes; } row[] = {
        { "pcie5-default", "neutral", 1u << MOESIM_TIME_MODEL }, { "h200-host", "measured", 1u << MOESIM_TIME_MODEL },
        { "paper-a", "derived", 1u << MOESIM_TIME_PAPER }, { "paper-b", "derived", 1u << MOESIM_TIME_PAPER },
    };
    size_t n = 0;
    for (const char *const *name = moesim_profile_names(); *name != NULL; name++, n++) {
        moesim_profile p;
        moesim_error err = MOESIM_ERROR_INIT;
        char path[64];
        ck_assert_uint_lt(n, sizeof row / sizeof row[0]);
        ck_assert_str_eq(*name, row[n].name);
        ck_assert_msg(moesim_profile_load(*name, &p, &err) == MOESIM_OK, "%s", err.text);
        ck_assert_str_eq(p.name, *name);
        ck_assert_str_eq(p.label, row[n].label);
        ck_assert_uint_eq(p.modes, row[n].modes);
        ck_assert_uint_eq(1u << (unsigned)p.default_mode, row[n].modes);
        ck_assert_uint_gt(strlen(p.description), 20);
        ck_assert_str_eq(p.overrides, "");
        snprintf(path, sizeof path, "built-in %s", *name);
        ck_assert_str_eq(p.path, path);
    }
    ck_assert_uint_eq(n, sizeof row / sizeof row[0]);
}
END_TEST

/* The embedded text is the file, byte for byte; the digest is what sha256sum prints. */
START_TEST(embedded)
{
    for (const char *const *name = moesim_profile_names(); *name != NULL; name++) {
        static moesim_profile p, q;
        moesim_error err = MOESIM_ERROR_INIT;
        char path[4096], digest[MOESIM_DIGEST_CHARS];
        snprintf(path, sizeof path, "%s/hwprofile/profiles/%s.json", MOESIM_SOURCE_ROOT, *name);
        ck_assert_int_eq(moesim_digest_file(path, digest, &err), MOESIM_OK);
        ck_assert_int_eq(moesim_profile_load(*name, &p, &err), MOESIM_OK);
        ck_assert_int_eq(moesim_profile_load(path, &q, &err), MOESIM_OK);
        ck_assert_str_eq(p.digest, digest);
        ck_assert_str_eq(q.digest, digest);
        ck_assert_str_eq(q.path, path);
    }
}
END_TEST

START_TEST(values)
{
    moesim_profile p;
    hw_good(&p);
    ck_assert_str_eq(p.name, "mine");
    ck_assert_str_eq(p.path, "t.json");
    ck_assert_uint_eq(p.modes, (1u << MOESIM_TIME_MODEL) | (1u << MOESIM_TIME_PAPER));
    ck_assert_int_eq(p.default_mode, MOESIM_TIME_MODEL);
    ck_assert_double_eq(p.link_alpha.value, 4e-6);
    ck_assert_uint_eq(p.link_alpha.n, 30);
    ck_assert_double_eq(p.link_alpha.spread, 0.02);
    ck_assert_double_eq(p.link_alpha.residual, 0.01);
    ck_assert_str_eq(p.link_alpha.note, "small");
    ck_assert_double_eq(p.link_bandwidth.value, 55e9);
    ck_assert(isnan(p.link_bandwidth.spread) && isnan(p.link_bandwidth.residual));
    ck_assert_double_eq(p.head.value, 3e-4);
    ck_assert_double_eq(p.policy.value, 2e-6);
    ck_assert_double_eq(p.paper_tau.value, 2.2e-4);
    ck_assert_double_eq(p.paper_layer.value, 3.07e-3);
    ck_assert_uint_eq(p.cpu.points, 3);
    ck_assert_double_eq(p.cpu.seconds[2], 150e-6);
    ck_assert_double_eq(p.cpu.expert_bytes, 1e6);
    ck_assert_uint_eq(p.gpu.num_experts, 2);
    ck_assert_double_eq(p.gpu.seconds[1][0], 20e-6);
    ck_assert_double_eq(p.gpu.experts[1], 3);
    ck_assert_uint_eq(p.gpu.facts.n, 1);
}
END_TEST

START_TEST(h200)
{
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_profile_load("h200-host", &p, &err), MOESIM_OK);
    ck_assert_uint_gt(p.link_bandwidth.n, 30);           /* measured, and its samples are named */
    ck_assert_uint_eq(strlen(p.raw_digest), 64);
    const double copy = p.link_alpha.value + 6291456 / p.link_bandwidth.value;
    ck_assert_double_eq_tol(copy, 117.1e-6, 0.01 * 117.1e-6);       /* the measured copy of one mini expert */
    ck_assert_double_eq_tol(moesim_profile_cpu_s(&p, 1, 6291456), 70.6e-6, 0.1e-6);
    ck_assert_double_eq_tol(moesim_profile_gpu_s(&p, 60, 1, 6291456), 102e-6, 3e-6);
    ck_assert_double_eq_tol(p.gpu_launch.value, 6e-6, 1e-6);
    ck_assert_double_eq_tol(p.gpu_arrival.value, 8e-6, 1e-6);
}
END_TEST

/* What is written reads back with every bit, overrides included, and is written the same again. */
START_TEST(written)
{
    static moesim_profile p, q;
    moesim_error err = MOESIM_ERROR_INIT;
    hw_good(&p);
    snprintf(p.times_of, sizeof p.times_of, "a \"model\" on b");
    snprintf(p.raw_digest, sizeof p.raw_digest, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    snprintf(p.description, sizeof p.description, "a \"quoted\" back\\slash, \xc2\xb5");
    p.cpu.seconds[0] = 1.0 / 3.0 * 1e-4;
    p.link_alpha.spread = 0.1 + 0.2;
    ck_assert_int_eq(moesim_profile_set(&p, "link.bandwidth=64.1GB/s", &err), MOESIM_OK);
    char *first = hw_written(&p);
    ck_assert_msg(moesim_profile_parse(first, strlen(first), "again", &q, &err) == MOESIM_OK, "%s\n%s", err.text, first);
    moesim_profile_row a, b;
    for (size_t i = 0; moesim_profile_get_row(&p, i, &a); i++) {
        ck_assert(moesim_profile_get_row(&q, i, &b));
        ck_assert_double_eq(a.constant->value, b.constant->value);
        ck_assert_uint_eq(a.constant->n, b.constant->n);
        ck_assert_int_eq(a.constant->given, b.constant->given);
        ck_assert(a.constant->spread == b.constant->spread || (isnan(a.constant->spread) && isnan(b.constant->spread)));
        ck_assert_str_eq(a.constant->note, b.constant->note);
    }
    ck_assert_int_eq(memcmp(p.cpu.seconds, q.cpu.seconds, sizeof p.cpu.seconds), 0);
    ck_assert_int_eq(memcmp(p.gpu.seconds, q.gpu.seconds, sizeof p.gpu.seconds), 0);
    ck_assert_str_eq(p.description, q.description);
    ck_assert_str_eq(p.times_of, q.times_of);
    ck_assert_str_eq(p.raw_digest, q.raw_digest);
    ck_assert_int_eq(p.default_mode, q.default_mode);
    ck_assert_uint_eq(p.modes, q.modes);
    free(first);
}
END_TEST

START_TEST(names)
{
    refused("h200-hots", MOESIM_E_USAGE, "(did you mean h200-host?)");
    refused("quantum", MOESIM_E_USAGE, "built in are pcie5-default, h200-host, paper-a, paper-b");
    refused("", MOESIM_E_USAGE, "built in are");
    refused("./nothing.json", MOESIM_E_IO, "cannot open the hardware profile ./nothing.json: No such file or directory");
    refused("/", MOESIM_E_IO, "it is no regular file");
    refused("/dev/zero", MOESIM_E_IO, "it is no regular file");
}
END_TEST

START_TEST(files)
{
    const char *text = hw_text("", "");
    const char *path = put("p.json", text, strlen(text));
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_profile_load(path, &p, &err) == MOESIM_OK, "%s", err.text);
    put("p.json", "", 0);
    refused(path, MOESIM_E_FORMAT, "no valid JSON");
    remove_all(path);
}
END_TEST

/* A megabyte of blanks is read, one byte more is refused unread. */
START_TEST(huge)
{
    const size_t most = 1u << 20;
    const char *text = hw_text("", "");
    char *large = malloc(most + 1);
    ck_assert_ptr_nonnull(large);
    memset(large, ' ', most + 1);
    memcpy(large, text, strlen(text));
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    const char *path = put("p.json", large, most);
    ck_assert_msg(moesim_profile_load(path, &p, &err) == MOESIM_OK, "%s", err.text);
    put("p.json", large, most + 1);
    refused(path, MOESIM_E_FORMAT, "is larger than 1 MiB");
    free(large);
    remove_all(path);
}
END_TEST

/* A named pipe that nobody writes to must not be waited for. */
START_TEST(named_pipe)
{
    char path[256];
    snprintf(path, sizeof path, "%s/pipe.json", folder());
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    refused(path, MOESIM_E_IO, "it is no regular file");
    remove_all(path);
}
END_TEST

/* What the parser says on standard error; the caller frees nothing. */
static const char *warned(const char *text)
{
    static char got[1024];
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    FILE *file = tmpfile();
    const int old = dup(STDERR_FILENO);
    ck_assert(file != NULL && old >= 0);
    fflush(stderr);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    const moesim_code code = hw_parse(text, &p, &err);
    fflush(stderr);
    ck_assert_int_ge(dup2(old, STDERR_FILENO), 0);
    close(old);
    rewind(file);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    fclose(file);
    ck_assert_msg(code == MOESIM_OK, "%s", err.text);
    return got;
}

START_TEST(falling)
{
    ck_assert_str_eq(warned(hw_text("", "")), "");
    ck_assert_str_eq(warned(hw_text("[100, 110, 150]", "[100, 100, 150]")), "");
    ck_assert_str_eq(warned(hw_text("[100, 110, 150]", "[100, 110, 90]")),
                     "moesim: warning: t.json: cpu.table.times[2] is below the time before it: more tokens cost less\n");
    ck_assert_str_eq(warned(hw_text("[[10, 14], [20, 28]]", "[[10, 9], [20, 28]]")),
                     "moesim: warning: t.json: gpu.table.times[0][1] is below the time before it: more tokens cost less\n");
    ck_assert_str_eq(warned(hw_text("[[10, 14], [20, 28]]", "[[10, 14], [20, 13]]")),
                     "moesim: warning: t.json: gpu.table.times[1][1] is below the time before it: more experts cost less\n");
}
END_TEST

RUN_TESTS("load", shipped, embedded, values, h200, written, names, files, huge, named_pipe, falling)
