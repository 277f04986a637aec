/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring: which points are there, that both sweeps are, warming, and what fails.
 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/unit/base/runner.h"
#include "tests/unit/measure/fake.h"

static moesim_raw raw;

static const moesim_raw_point *point(moesim_raw_key key, uint32_t sweep)
{
    char text[MOESIM_RAW_TEXT];
    const moesim_raw_point *p = moesim_raw_find(&raw, &key, sweep);
    ck_assert_msg(p != NULL, "no point %s in sweep %u", moesim_raw_text(&key, text), sweep);
    return p;
}

/* Every kind twice, 30 samples each, at the costs of the machine. */
START_TEST(full)
{
    size_t kinds[MOESIM_RAW_KINDS][MOESIM_RAW_SWEEPS] = { { 0 } };
    fake = fake_usual;
    fake_measure(false, &raw);
    for (size_t i = 0; i < raw.num_points; i++) {
        kinds[raw.point[i].key.kind][raw.point[i].sweep]++;
        ck_assert_uint_eq(raw.point[i].n, 30);
        ck_assert_uint_eq(raw.point[i].agreed, 1);
        ck_assert_uint_ge(raw.point[i].warm, 10);
        ck_assert_double_le(raw.point[i].cv, 1e-3);
    }
    for (size_t k = 0; k < MOESIM_RAW_KINDS; k++) {
        ck_assert_uint_ge(kinds[k][0], 1);
        ck_assert_uint_eq(kinds[k][0], kinds[k][1]);
    }
    ck_assert_str_eq(raw.device, "fake");
    ck_assert_uint_eq(raw.threads, FAKE_THREADS);
    ck_assert_uint_eq(raw.expert_bytes, (uint64_t)FAKE_BYTES);
    ck_assert_str_eq(moesim_raw_find_fact(&raw, "gpu"), "Fake 9000");
    const moesim_raw_key copy = { .kind = MOESIM_RAW_COPY, .bytes = 4096, .pinned = 1, .streams = 1 };
    const moesim_raw_key cpu = { .kind = MOESIM_RAW_CPU, .experts = 4, .tokens = 64, .threads = 8 };
    const moesim_raw_key grouped = { .kind = MOESIM_RAW_GROUPED, .experts = 160, .tokens = 16 };
    ck_assert_double_eq_tol(point(copy, 1)->median, fake.alpha + 4096 / fake.beta, 1e-12);
    ck_assert_double_eq_tol(point(cpu, 0)->median, fake.step + 4 * fake_expert(64, 8), 1e-12);
    ck_assert_double_eq_tol(point(grouped, 0)->median, fake_grouped(160, 16), 1e-12);
    for (uint32_t threads = 1; threads <= FAKE_THREADS; threads *= 2)
        for (uint32_t tokens = 1; tokens <= 4; tokens *= 2) {
            size_t loads = 0;
            for (size_t i = 0; i < raw.num_points; i++)
                loads += raw.point[i].key.kind == MOESIM_RAW_JOINT_CPU && raw.point[i].key.threads == threads &&
                         raw.point[i].key.tokens == tokens;
            ck_assert_uint_eq(loads, 2);
        }
    moesim_raw_fini(&raw);
}
END_TEST

START_TEST(quick)
{
    fake = fake_usual;
    fake_measure(false, &raw);
    const size_t all = raw.num_points;
    moesim_raw_fini(&raw);
    fake_measure(true, &raw);
    ck_assert_uint_lt(2 * raw.num_points, all);
    ck_assert_uint_eq(raw.quick, 1);
    for (size_t i = 0; i < raw.num_points; i++)
        ck_assert_uint_eq(raw.point[i].n, 10);
    moesim_raw_fini(&raw);
}
END_TEST

/* The first copies run on a sleeping link: none of their times is among the samples. */
START_TEST(warming)
{
    fake = fake_usual;
    fake.slow_calls = 9;     /* two to choose the repetitions, one batch, and two of the next */
    fake_measure(false, &raw);
    const moesim_raw_point *p = &raw.point[0];
    ck_assert_uint_eq(p->key.kind, MOESIM_RAW_COPY);
    ck_assert_uint_eq(p->agreed, 1);
    ck_assert_uint_eq(p->warm, 2 + 3 * 5);
    for (uint32_t i = 0; i < p->n; i++)
        ck_assert_double_eq_tol(raw.sample[p->begin + i], fake.alpha + (double)p->key.bytes / fake.beta, 1e-12);
    moesim_raw_fini(&raw);
}
END_TEST

/* A sweep in rounds: no fewer samples of each point, warmed once and woken in every later round, and spread over the sweep. */
START_TEST(rounds)
{
    moesim_error err = MOESIM_ERROR_INIT;
    fake = fake_usual;
    const moesim_device_config config = fake_config();
    moesim_measure_params params = { .ops = &fake_ops, .config = &config, .model = "m", .cpu = &fake_cpu, .quick = true,
                                     .rounds = 4, .window = 1e-6 };
    size_t before = 0;
    ck_assert_msg(moesim_measure(&params, &raw, &err) == MOESIM_OK, "%s", err.text);
    for (size_t i = 0; i < raw.num_points; i++) {
        ck_assert_uint_eq(raw.point[i].n, 12);   /* 10 in four rounds: 3 each */
        ck_assert_uint_eq(raw.point[i].warm, 2 + 2 * 5 + 3);
    }
    before = raw.num_points;
    ck_assert_str_eq(moesim_raw_find_fact(&raw, "rounds"), "4");
    moesim_raw_fini(&raw);
    params.rounds = 0;
    ck_assert_msg(moesim_measure(&params, &raw, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(raw.num_points, before);
    moesim_raw_fini(&raw);
    params.rounds = MOESIM_MEASURE_ROUNDS + 1;
    ck_assert_int_eq(moesim_measure(&params, &raw, &err), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "at most 30 rounds, not 31"));
    params.rounds = 2;
    fake.drifts = 1e-3;
    ck_assert_msg(moesim_measure(&params, &raw, &err) == MOESIM_OK, "%s", err.text);
    const double *first = raw.sample + raw.point[0].begin;
    ck_assert_uint_eq(raw.point[0].key.kind, MOESIM_RAW_COPY);
    ck_assert_uint_eq(raw.point[1].key.kind, MOESIM_RAW_COPY);
    ck_assert_double_eq_tol(first[4] / first[3], 1.001, 1e-6);
    ck_assert_double_gt(first[5] / first[4], 1.015);     /* the other points' first round lies between */
    moesim_raw_fini(&raw);
}
END_TEST

/* What never settles is measured all the same, and says so. */
START_TEST(unsettled)
{
    fake = fake_usual;
    fake.drifts = 0.05;
    moesim_error err = MOESIM_ERROR_INIT;
    fake.broken = "time_return";                 /* the second measurement: copies are all there */
    const moesim_device_config config = fake_config();
    const moesim_measure_params params = { .ops = &fake_ops, .config = &config, .model = "m", .cpu = &fake_cpu, .quick = true,
                                           .window = 1e-6 };
    ck_assert_int_eq(moesim_measure(&params, &raw, &err), MOESIM_E_IO);
    ck_assert_uint_eq(raw.num_points, 0);
    ck_assert_uint_gt(fake_copies, 0);
    fake.broken = NULL;
    fake.drifts = 0.0;
    fake.noise = 0.9;
    const moesim_device_config again = fake_config();
    const moesim_measure_params noisy = { .ops = &fake_ops, .config = &again, .model = "m", .cpu = &fake_cpu, .quick = true,
                                          .window = 1e-6 };
    ck_assert_msg(moesim_measure(&noisy, &raw, &err) == MOESIM_OK, "%s", err.text);
    size_t settled = 0;
    for (size_t i = 0; i < raw.num_points; i++) {
        settled += raw.point[i].agreed;
        ck_assert_uint_le(raw.point[i].warm, 2 + 12 * 5);
    }
    ck_assert_uint_lt(settled, raw.num_points);
    moesim_raw_fini(&raw);
}
END_TEST

START_TEST(without_other)
{
    moesim_error err = MOESIM_ERROR_INIT;
    fake = fake_usual;
    const moesim_device_config config = fake_config();
    const moesim_measure_params params = { .ops = &fake_ops, .config = &config, .model = "m", .cpu = &fake_cpu, .quick = true,
                                           .skip_other = true, .window = 1e-6 };
    ck_assert_msg(moesim_measure(&params, &raw, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(fake_opened, 1);
    for (size_t i = 0; i < raw.num_points; i++)
        ck_assert(raw.point[i].key.kind != MOESIM_RAW_OTHER && raw.point[i].key.kind != MOESIM_RAW_HEAD);
    moesim_raw_fini(&raw);
}
END_TEST

/* Whatever fails is named with its point, nothing is kept, and the device is closed. */
START_TEST(failures)
{
    static const struct { const char *broken, *message; } row[] = {
        { "open", "open: broken" },
        { "cpu_open", "cpu_open: broken" },
        { "time_copy", "measuring copy bytes 4096 streams 1 pinned 1: time_copy: broken" },
        { "time_return", "measuring to_host bytes 4096: time_return: broken" },
        { "load_begin", "measuring joint_link bytes 6291456 experts 0 tokens 0 threads 0: load_begin: broken" },
        { "load_end", "load_end: broken" },
        { "time_grouped", "measuring grouped experts 1 tokens 1: time_grouped: broken" },
        { "time_empty", "measuring empty rows 16: time_empty: broken" },
        { "fill", "measuring event_hits rows 16 experts 4 tokens 1: fill: broken" },
        { "gate", "gate: broken" },
        { "work", "measuring event_hits rows 16 experts 4 tokens 1: work: broken" },
        { "end_pass", "end_pass: broken" },
        { "time_other", "measuring other rows 16: time_other: broken" },
        { "time_head", "measuring head rows 16: time_head: broken" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        fake = fake_usual;
        fake.broken = row[i].broken;
        const moesim_device_config config = fake_config();
        const moesim_measure_params params = { .ops = &fake_ops, .config = &config, .model = "m", .cpu = &fake_cpu,
                                               .quick = true, .window = 1e-6 };
        ck_assert_int_eq(moesim_measure(&params, &raw, &err), MOESIM_E_IO);
        ck_assert_msg(strstr(err.text, row[i].message) != NULL, "expected '%s' in '%s'", row[i].message, err.text);
        ck_assert_uint_eq(fake_opened, fake_closed);
        ck_assert_uint_eq(raw.num_points, 0);
        ck_assert_ptr_null(raw.sample);
    }
}
END_TEST

/* A clock that stands still is no measurement. */
START_TEST(no_time)
{
    moesim_error err = MOESIM_ERROR_INIT;
    fake = fake_usual;
    fake.gpu_first = fake.gpu_expert = fake.gpu_token = 0.0;
    const moesim_device_config config = fake_config();
    const moesim_measure_params params = { .ops = &fake_ops, .config = &config, .model = "m", .cpu = &fake_cpu, .quick = true,
                                           .window = 1e-6 };
    ck_assert_int_eq(moesim_measure(&params, &raw, &err), MOESIM_E_INTERNAL);
    ck_assert_msg(strstr(err.text, "grouped experts 1 tokens 1: sample 0 is 0 s: the device measured no time") != NULL, "%s",
                  err.text);
}
END_TEST

/* Few slots and few routes: what does not fit is left out, the rest is there. */
START_TEST(small)
{
    moesim_error err = MOESIM_ERROR_INIT;
    fake = fake_usual;
    moesim_device_config config = fake_config();
    config.slots = 9;
    config.pool = 5;
    const moesim_measure_params params = { .ops = &fake_ops, .config = &config, .model = "m", .cpu = &fake_cpu,
                                           .window = 1e-6 };
    ck_assert_msg(moesim_measure(&params, &raw, &err) == MOESIM_OK, "%s", err.text);
    for (size_t i = 0; i < raw.num_points; i++) {
        const moesim_raw_key *key = &raw.point[i].key;
        ck_assert(key->kind != MOESIM_RAW_GROUPED || key->experts <= 8);
        ck_assert(key->kind != MOESIM_RAW_EVENT_HITS || key->experts <= 6);
        ck_assert(key->kind != MOESIM_RAW_EVENT_MOVED || key->experts <= 3);
    }
    moesim_raw_fini(&raw);
}
END_TEST

START_TEST(rows)
{
    ck_assert_uint_eq(moesim_measure_rows(8), 320);
    ck_assert_uint_eq(moesim_measure_rows(1), MOESIM_DEVICE_ROWS_MAX);
    ck_assert_uint_eq(moesim_measure_rows(512), 64);
}
END_TEST

RUN_TESTS("measure", full, quick, warming, rounds, unsettled, without_other, failures, no_time, small, rows)
