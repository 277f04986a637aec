/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of raw samples: round trip, figures, and every rule of the reader.
 */
#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/base/runner.h"
#include "tests/unit/measure/fake.h"

static moesim_raw raw, again;
static char path[256];

static void new_path(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/moesim-raw-XXXXXX", folder != NULL ? folder : "/tmp");
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void written(void)
{
    moesim_error err = MOESIM_ERROR_INIT;
    fake = fake_usual;
    fake.noise = 0.02;
    fake_measure(true, &raw);
    new_path();
    ck_assert_msg(moesim_raw_write(&raw, path, &err) == MOESIM_OK, "%s", err.text);
}

static void done(void)
{
    moesim_raw_fini(&raw);
    moesim_raw_fini(&again);
    unlink(path);
}

START_TEST(round_trip)
{
    moesim_error err = MOESIM_ERROR_INIT;
    written();
    ck_assert_msg(moesim_raw_read(path, &again, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_str_eq(again.device, "fake");
    ck_assert_str_eq(again.model, "llada2.0-mini");
    ck_assert_uint_eq(again.hidden, FAKE_HIDDEN);
    ck_assert_uint_eq(again.intermediate, FAKE_INTERMEDIATE);
    ck_assert_uint_eq(again.top_k, 8);
    ck_assert_uint_eq(again.threads, FAKE_THREADS);
    ck_assert_uint_eq(again.quick, 1);
    ck_assert_uint_eq(again.num_facts, raw.num_facts);
    ck_assert_str_eq(moesim_raw_find_fact(&again, "isa"), "abacus");
    ck_assert_ptr_null(moesim_raw_find_fact(&again, "colour"));
    ck_assert_uint_eq(again.num_points, raw.num_points);
    ck_assert_uint_eq(again.num_samples, raw.num_samples);
    ck_assert_int_eq(memcmp(again.sample, raw.sample, raw.num_samples * sizeof *raw.sample), 0);
    for (size_t i = 0; i < raw.num_points; i++) {
        const moesim_raw_point *a = &raw.point[i], *b = &again.point[i];
        ck_assert_ptr_eq(moesim_raw_find(&again, &a->key, a->sweep), b);
        ck_assert(a->n == b->n && a->warm == b->warm && a->agreed == b->agreed && a->begin == b->begin);
        ck_assert(a->median == b->median && a->p10 == b->p10 && a->p90 == b->p90 && a->cv == b->cv);
    }
    done();
}
END_TEST

START_TEST(figures)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_raw_key key = { .kind = MOESIM_RAW_EMPTY, .rows = 16 };
    const double sample[] = { 4, 1, 3, 2, 5, 10, 9, 6, 8, 7 }, even[] = { 1, 2 };
    double median;
    moesim_raw_init(&raw);
    ck_assert_int_eq(moesim_raw_add(&raw, &key, 0, sample, 10, 5, true, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_raw_add(&raw, &key, 1, even, 2, 5, false, &err), MOESIM_OK);
    ck_assert_double_eq(raw.point[0].median, 5.5);
    ck_assert_double_eq(raw.point[0].p10, 1);
    ck_assert_double_eq(raw.point[0].p90, 9);
    ck_assert_double_eq_tol(raw.point[0].cv, sqrt(82.5 / 9) / 5.5, 1e-15);
    ck_assert_double_eq(raw.sample[0], 4);
    ck_assert_double_eq(raw.sample[11], 2);
    ck_assert(moesim_raw_median(&raw, &key, &median));
    ck_assert_double_eq(median, 3.5);
    const moesim_raw_gap gap = moesim_raw_compare(&raw, MOESIM_RAW_KINDS);
    ck_assert_uint_eq(gap.n, 1);
    ck_assert_double_eq_tol(gap.worst, 4.0 / 3.5, 1e-15);
    ck_assert_uint_eq(moesim_raw_compare(&raw, MOESIM_RAW_COPY).n, 0);
    ck_assert(isnan(moesim_raw_compare(&raw, MOESIM_RAW_COPY).worst));
    const double bad[] = { 1, NAN };
    ck_assert_int_eq(moesim_raw_add(&raw, &key, 0, bad, 2, 0, true, &err), MOESIM_E_INTERNAL);
    ck_assert_int_eq(moesim_raw_add(&raw, &key, 0, sample, 0, 0, true, &err), MOESIM_E_INTERNAL);
    moesim_raw_fini(&raw);
}
END_TEST

/* One rule broken at a time. */
static void break_kind(void) { raw.point[1].key = raw.point[0].key; raw.point[1].sweep = raw.point[0].sweep; }
static void break_sweep(void) { raw.point[2].sweep = 2; }
static void break_agreed(void) { raw.point[2].agreed = 7; }
static void break_begin(void) { raw.point[3].begin++; }
static void break_n(void) { raw.point[3].n = 0; }
static void break_more(void) { raw.point[3].n++; }
static void break_median(void) { raw.point[4].median *= 1.01; }
static void break_p10(void) { raw.point[4].p10 *= 0.99; }
static void break_p90(void) { raw.point[4].p90 *= 1.01; }
static void break_cv(void) { raw.point[4].cv += 0.1; }
static void break_sample(void) { raw.sample[17] = -raw.sample[17]; }
static void break_nan(void) { raw.sample[17] = NAN; }
static void break_unused(void) { raw.point[0].key.rows = 3; }
static void break_needed(void) { raw.point[0].key.bytes = 0; }
static void break_large(void) { raw.point[0].key.bytes = UINT64_MAX; }
static void break_pinned(void) { raw.point[0].key.pinned = 2; }
static void break_warm(void) { raw.point[5].warm = 65537; }
static void break_hidden(void) { raw.hidden = 0; }
static void break_bytes(void) { raw.expert_bytes += 2; }
static void break_model(void) { raw.model[0] = '\0'; }
static void break_all(void) { raw.num_points = 0; }
static void break_second(void)
{
    size_t n = 0, samples = 0;
    for (size_t i = 0; i < raw.num_points; i++) {
        if (raw.point[i].sweep == 1)
            continue;
        raw.point[n] = raw.point[i];
        memmove(raw.sample + samples, raw.sample + raw.point[i].begin, raw.point[i].n * sizeof *raw.sample);
        raw.point[n].begin = samples;
        samples += raw.point[n++].n;
    }
    raw.num_points = n;
    raw.num_samples = samples;
}

START_TEST(rules)
{
    static const struct { void (*damage)(void); const char *message; } row[] = {
        { break_kind, "/points/kind[1] is a point that was there before: the file is damaged; measure again" },
        { break_sweep, "/points/sweep[2] is neither 0 nor 1" },
        { break_agreed, "/points/agreed[2] is neither 0 nor 1" },
        { break_begin, "/points/begin[3] is not where the samples before it end" },
        { break_n, "/points/n[3] is outside 1 to 65536" },
        { break_more, "/samples has" },
        { break_median, "/points/median[4] is not that of its samples" },
        { break_p10, "/points/p10[4] is not that of its samples" },
        { break_p90, "/points/p90[4] is not that of its samples" },
        { break_cv, "/points/cv[4] is not that of its samples" },
        { break_sample, "/samples[17] is not positive and finite" },
        { break_nan, "/samples[17] is not positive and finite" },
        { break_unused, "/points/rows[0] is not 0, kind copy does not use it" },
        { break_needed, "/points/bytes[0] is 0, kind copy needs it" },
        { break_large, "/points/bytes[0] is larger than any measurement makes it" },
        { break_pinned, "/points/pinned[0] is larger than any measurement makes it" },
        { break_warm, "/points/warm[5] is larger than any measurement makes it" },
        { break_hidden, "attribute hidden is missing or outside 1 to" },
        { break_bytes, "attribute expert_bytes is not 6" },
        { break_model, "attribute model is missing, empty" },
        { break_all, "/points/kind has 0 rows, 1 to 4096 are allowed" },
        { break_second, "/points/sweep has no 1: both sweeps are needed" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        written();
        row[i].damage();
        ck_assert_msg(moesim_raw_write(&raw, path, &err) == MOESIM_OK, "%s", err.text);
        ck_assert_int_eq(moesim_raw_read(path, &again, &err), MOESIM_E_FORMAT);
        ck_assert_msg(strstr(err.text, row[i].message) != NULL, "expected '%s' in '%s'", row[i].message, err.text);
        ck_assert_msg(strstr(err.text, path) != NULL, "%s", err.text);
        ck_assert_ptr_null(again.point);
        done();
    }
}
END_TEST

START_TEST(other_files)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_raw_read(MOESIM_SOURCE_ROOT "/traces/samples/sample.h5", &again, &err), MOESIM_E_FORMAT);
    ck_assert_msg(strstr(err.text, "no raw samples of a machine") != NULL, "%s", err.text);
    ck_assert_int_ne(moesim_raw_read("/nonexistent/raw.h5", &again, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_raw_read(MOESIM_SOURCE_ROOT "/meson.build", &again, &err), MOESIM_E_FORMAT);
}
END_TEST

/* Cut short anywhere or with any byte changed: refused, or read as what was written. */
START_TEST(damage)
{
    struct stat info;
    written();
    ck_assert_int_eq(stat(path, &info), 0);
    const size_t bytes = (size_t)info.st_size;
    unsigned char *whole = malloc(bytes);
    FILE *in = fopen(path, "rb");
    ck_assert(whole != NULL && in != NULL && fread(whole, 1, bytes, in) == bytes);
    fclose(in);
    for (size_t k = 0; k < 120; k++) {
        moesim_error err = MOESIM_ERROR_INIT;
        const bool cut = k % 4 == 0;
        const size_t at = bytes * k / 120 + k % 7;
        FILE *out = fopen(path, "wb");
        ck_assert_ptr_nonnull(out);
        unsigned char *copy = malloc(bytes);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, whole, bytes);
        copy[at < bytes ? at : bytes - 1] ^= (unsigned char)(1u << k % 8);
        ck_assert_uint_eq(fwrite(copy, 1, cut ? at : bytes, out), cut ? at : bytes);
        ck_assert_int_eq(fclose(out), 0);
        free(copy);
        if (moesim_raw_read(path, &again, &err) == MOESIM_OK) {
            ck_assert(!cut || at >= bytes);
            ck_assert_uint_eq(again.num_samples, raw.num_samples);
        } else {
            ck_assert_uint_gt(strlen(err.text), 10);
        }
        moesim_raw_fini(&again);
    }
    free(whole);
    done();
}
END_TEST

START_TEST(no_folder)
{
    moesim_error err = MOESIM_ERROR_INIT;
    written();
    ck_assert_int_eq(moesim_raw_write(&raw, "/nonexistent/raw.h5", &err), MOESIM_E_IO);
    done();
}
END_TEST

RUN_TESTS("raw", round_trip, figures, rules, other_files, damage, no_folder)
