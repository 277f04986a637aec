/* SPDX-License-Identifier: Apache-2.0
 *
 * From a machine with known costs over its raw samples back to the same costs: exact, noisy, with wild points; what is bound
 * from below only; what is missing.
 */
#include "tests/unit/measure/fitting.h"

/* Everything but DRAM. */
static void all_near(double share)
{
    const moesim_profile *p = &profile;
    near("link.alpha", p->link_alpha.value, fake.alpha, share);
    near("link.bandwidth", p->link_bandwidth.value, fake.beta, share);
    near("return.alpha", p->return_alpha.value, fake.return_alpha, share);
    near("return.bandwidth", p->return_bandwidth.value, fake.return_beta, 2.0 * share);
    near("sync", p->sync.value, fake.sync, share);
    near("other.gpu", p->other_gpu.value, fake.other, share);
    near("other.host", p->other_host.value, fake.other_host, share);
    near("head", p->head.value, fake.head, share);
    for (uint32_t i = 0; i < p->cpu.points; i++)
        near("cpu.table", p->cpu.seconds[i], fake_expert(p->cpu.tokens[i], FAKE_THREADS), share);
    for (uint32_t i = 0; i < p->gpu.num_experts; i++)
        for (uint32_t j = 0; j < p->gpu.num_tokens; j++)
            near("gpu.table", p->gpu.seconds[i][j], fake_grouped(p->gpu.experts[i], p->gpu.tokens[j]), share * 3.0);
}

START_TEST(exact)
{
    fake = fake_usual;
    fake_measure(false, &raw);
    fit_ok(&options);
    all_near(1e-4);
    near("cpu.step", profile.cpu_step.value, fake.step + fake.late, 1e-3);
    near("cpu.combine", profile.cpu_combine.value, fake.combine, 0.01);
    near("gpu.launch", profile.gpu_launch.value, fake.launch, 0.01);
    near("gpu.arrival", profile.gpu_arrival.value, fake.arrival, 0.01);
    near("dram", profile.dram_bandwidth.value, fake.dram, 1e-3);
    ck_assert_uint_eq(profile.cpu.points, 12);
    ck_assert_uint_eq(profile.gpu.num_experts, 9);
    ck_assert_uint_eq(profile.gpu.num_tokens, 5);
    ck_assert_str_eq(profile.label, "measured");
    ck_assert_str_eq(profile.raw_digest, digest);
    ck_assert_str_eq(profile.name, "fake");
    ck_assert_ptr_nonnull(strstr(profile.description, "Fake 9000"));
    ck_assert_double_le(profile.link_bandwidth.residual, 1e-6);
    moesim_profile_row row;
    for (size_t i = 0; moesim_profile_get_row(&profile, i, &row); i++)
        if (row.constant->given && strcmp(row.key, "policy") != 0)
            ck_assert_msg(row.constant->n >= 60, "%s: n %llu", row.key, (unsigned long long)row.constant->n);
    moesim_raw_fini(&raw);
}
END_TEST

/* What is fitted can be written, and read as what it was. */
START_TEST(as_file)
{
    static moesim_profile q;
    moesim_error err = MOESIM_ERROR_INIT;
    char *text = NULL;
    size_t bytes = 0;
    fake = fake_usual;
    fake.noise = 0.03;
    fake_measure(true, &raw);
    fit_ok(&options);
    ck_assert_str_eq(profile.label, "provisional");
    FILE *out = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(out);
    moesim_profile_write(&profile, out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_msg(moesim_profile_parse(text, bytes, "f.json", &q, &err) == MOESIM_OK, "%s\n%s", err.text, text);
    ck_assert_double_eq(q.link_bandwidth.value, profile.link_bandwidth.value);
    ck_assert_str_eq(q.raw_digest, digest);
    free(text);
    moesim_raw_fini(&raw);
}
END_TEST

START_TEST(noisy)
{
    fake = fake_usual;
    fake.noise = 0.03;
    fake.wild = 0.03;
    fake_measure(false, &raw);
    fit_ok(&options);
    near("link.bandwidth", profile.link_bandwidth.value, fake.beta, 0.01);
    near("link.alpha", profile.link_alpha.value, fake.alpha, 0.1);
    near("sync", profile.sync.value, fake.sync, 0.02);
    near("dram", profile.dram_bandwidth.value, fake.dram, 0.02);
    for (uint32_t i = 0; i < profile.cpu.points; i++)
        near("cpu.table", profile.cpu.seconds[i], fake_expert(profile.cpu.tokens[i], FAKE_THREADS), 0.02);
    ck_assert_double_gt(profile.link_bandwidth.spread, 0.005);
    ck_assert_double_gt(profile.link_bandwidth.residual, 0.0);
    moesim_raw_fini(&raw);
}
END_TEST

/* One point of the link at a time is far off, up or down: the line stays where it is, and the residual tells. */
START_TEST(one_wild_copy)
{
    fake = fake_usual;
    fake.noise = 0.005;
    fake_measure(false, &raw);
    size_t tried = 0;
    for (size_t i = 0; i < raw.num_points; i++) {
        moesim_raw_point *p = &raw.point[i];
        if (p->key.kind != MOESIM_RAW_COPY || p->key.pinned != 1 || p->key.streams != 1 || p->key.bytes < 65536)
            continue;
        static const double factors[] = { 10.0, 2.0, 0.1 };
        for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++) {
            fake_spoil(&raw, p, factors[k]);
            fit_ok(&options);
            near("link.bandwidth", profile.link_bandwidth.value, fake.beta, 0.01);
            near("link.alpha", profile.link_alpha.value, fake.alpha, 0.03);
            near("a copy", profile.link_alpha.value + FAKE_BYTES / profile.link_bandwidth.value,
                 fake.alpha + FAKE_BYTES / fake.beta, 0.01);
            ck_assert_double_gt(profile.link_bandwidth.residual, MOESIM_FIT_RESIDUAL);
            ck_assert_ptr_nonnull(strstr(profile.link_bandwidth.note, "worst"));
            fake_spoil(&raw, p, 1.0 / factors[k]);
        }
        tried++;
    }
    ck_assert_uint_eq(tried, 2 * 12);
    moesim_raw_fini(&raw);
}
END_TEST

/* A wild point among the events, the starts and the small copies leaves the rest. */
START_TEST(one_wild_elsewhere)
{
    static const uint32_t kinds[] = { MOESIM_RAW_TO_HOST, MOESIM_RAW_EVENT_HITS, MOESIM_RAW_EVENT_MOVED, MOESIM_RAW_EVENT_CPU };
    fake = fake_usual;
    fake_measure(false, &raw);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t i = 0;
        while (raw.point[i].key.kind != kinds[k])
            i++;
        fake_spoil(&raw, &raw.point[i + 1], 6.0);
        fit_ok(&options);
        near("return.alpha", profile.return_alpha.value, fake.return_alpha, 0.01);
        near("return.bandwidth", profile.return_bandwidth.value, fake.return_beta, 0.02);
        near("gpu.launch", profile.gpu_launch.value, fake.launch, 0.02);
        near("gpu.arrival", profile.gpu_arrival.value, fake.arrival, 0.02);
        near("cpu.combine", profile.cpu_combine.value, fake.combine, 0.05);
        fake_spoil(&raw, &raw.point[i + 1], 1.0 / 6.0);
    }
    moesim_raw_fini(&raw);
}
END_TEST

/* B far above what both want: no limit was seen, and none is made up. */
START_TEST(nothing_slowed)
{
    fake = fake_usual;
    fake.dram = 500e9;
    fake_measure(false, &raw);
    fit_ok(&options);
    const double sum = FAKE_BYTES / (fake.alpha + FAKE_BYTES / fake.beta) + FAKE_BYTES / fake_expert(1, FAKE_THREADS);
    near("dram", profile.dram_bandwidth.value, sum, 1e-3);
    ck_assert_ptr_nonnull(strstr(profile.dram_bandwidth.note, "a lower bound: nothing was slowed"));
    moesim_raw_fini(&raw);
}
END_TEST

/* Only the heaviest loads are slowed: those decide. */
START_TEST(some_slowed)
{
    fake = fake_usual;
    fake.dram = 85e9;
    fake_measure(false, &raw);
    fit_ok(&options);
    near("dram", profile.dram_bandwidth.value, fake.dram, 0.002);
    ck_assert_ptr_nonnull(strstr(profile.dram_bandwidth.note, "least squares"));
    ck_assert_double_le(profile.dram_bandwidth.residual, 0.01);
    moesim_raw_fini(&raw);
}
END_TEST

START_TEST(fewer_threads)
{
    moesim_fit_options o = options;
    moesim_error err = MOESIM_ERROR_INIT;
    fake = fake_usual;
    fake_measure(false, &raw);
    o.threads = 2;
    fit_ok(&o);
    ck_assert_uint_eq(profile.cpu.points, 5);
    near("cpu.table", profile.cpu.seconds[0], fake_expert(1, 2), 1e-3);
    ck_assert_uint_eq(profile.cpu_combine.n, 0);
    o.threads = 3;
    ck_assert_int_eq(moesim_fit(&raw, &o, &profile, &err), MOESIM_E_FORMAT);
    ck_assert_msg(strstr(err.text, "raw.h5: cpu.table: nothing was measured with 3 threads") != NULL, "%s", err.text);
    moesim_raw_fini(&raw);
}
END_TEST

/* A copy takes longer between events than alone; asked to, alpha follows. */
START_TEST(copies_of_events)
{
    moesim_fit_options o = options;
    fake = fake_usual;
    fake_measure(false, &raw);
    for (size_t i = 0; i < raw.num_points; i++)
        if (raw.point[i].key.kind == MOESIM_RAW_EVENT_MOVED)
            fake_spoil(&raw, &raw.point[i], (raw.point[i].median + raw.point[i].key.experts * 3e-6) / raw.point[i].median);
    fit_ok(&o);
    near("link.alpha", profile.link_alpha.value, fake.alpha, 0.01);
    o.copies_of_events = true;
    fit_ok(&o);
    near("link.alpha", profile.link_alpha.value, fake.alpha + 3e-6, 0.05);
    moesim_raw_fini(&raw);
}
END_TEST

/* Small copies that seem to take less than nothing make a line through 0, judged as such. */
START_TEST(no_start)
{
    fake = fake_usual;
    fake.alpha = -0.5e-6;
    fake_measure(false, &raw);
    fit_ok(&options);
    ck_assert_double_eq(profile.link_alpha.value, 0.0);
    near("link.bandwidth", profile.link_bandwidth.value, fake.beta, 0.05);
    ck_assert_double_gt(profile.link_bandwidth.residual, 0.05);
    moesim_raw_fini(&raw);
}
END_TEST

static bool large_copy(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_COPY && p->key.bytes > 200000; }
static bool is_return(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_TO_DEVICE; }
static bool is_empty(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_EMPTY; }
static bool is_start(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_CPU && p->key.experts != 4; }
static bool is_table(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_CPU && p->key.tokens > 1; }
static bool is_grouped(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_GROUPED && p->key.experts > 1; }
static bool is_hole(const moesim_raw_point *p)
{
    return p->key.kind == MOESIM_RAW_GROUPED && p->key.experts == 4 && p->key.tokens == 4;
}
static bool is_hits(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_EVENT_HITS; }
static bool is_moved(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_EVENT_MOVED; }
static bool is_on_cpu(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_EVENT_CPU; }
static bool is_joint(const moesim_raw_point *p) { return p->key.kind == MOESIM_RAW_JOINT_CPU; }

static bool more_moved(const moesim_raw_point *p) { return is_moved(p) && p->key.experts > 1; }

/* What was asked for and cannot be had is no silent fallback; without being asked for it is not missed. */
START_TEST(copies_of_no_events)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_fit_options o = options;
    fake = fake_usual;
    fake_measure(false, &raw);
    without(more_moved);
    fit_ok(&o);
    ck_assert_ptr_nonnull(strstr(profile.link_alpha.note, "events tell nothing"));
    o.copies_of_events = true;
    ck_assert_int_eq(moesim_fit(&raw, &o, &profile, &err), MOESIM_E_FORMAT);
    ck_assert_msg(strstr(err.text, "--copies events has nothing to go by; use --copies alone") != NULL, "%s", err.text);
    moesim_raw_fini(&raw);
}
END_TEST

START_TEST(too_few)
{
    static const struct { bool (*out)(const moesim_raw_point *); const char *message; } row[] = {
        { large_copy, "raw.h5: link: 2 sizes of copies were measured, 3 are needed; measure again" },
        { is_return, "return: 0 sizes of copies were measured" },
        { is_empty, "sync: nothing of kind empty was measured" },
        { is_start, "cpu.step: starts of several numbers of experts are needed" },
        { is_table, "cpu.table: 1 numbers of tokens with 8 threads, 2 are needed" },
        { is_grouped, "gpu.table: 1 numbers of experts and 5 of tokens, 2 of each are needed" },
        { is_hole, "gpu.table: 4 experts with 4 tokens were not measured" },
        { is_hits, "gpu.launch: events with hits: no such event was measured" },
        { is_moved, "gpu.arrival: events with copies: no such event was measured" },
        { is_on_cpu, "cpu.combine: no event on the CPU was measured" },
        { is_joint, "dram.bandwidth: link and CPU were not measured together" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        fake = fake_usual;
        fake_measure(false, &raw);
        without(row[i].out);
        ck_assert_int_eq(moesim_fit(&raw, &options, &profile, &err), MOESIM_E_FORMAT);
        ck_assert_msg(strstr(err.text, row[i].message) != NULL, "expected '%s' in '%s'", row[i].message, err.text);
        moesim_raw_fini(&raw);
    }
}
END_TEST

RUN_TESTS("fit", exact, as_file, noisy, one_wild_copy, one_wild_elsewhere, nothing_slowed, some_slowed, fewer_threads,
          copies_of_events, copies_of_no_events, no_start, too_few)
