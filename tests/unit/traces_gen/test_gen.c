/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator: its presets meet what they state, any shape gives a valid trace, the same call the same bytes.
 */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "tests/support/support.h"
#include "tests/unit/base/runner.h"
#include "traces/gen_run.h"
#include "traces/validate.h"

#define MINI 0                   /* places in moesim_gen_presets */
#define FLASH 1
#define AR 2

static void write_trace(moesim_gen_config *c, const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_gen_check(c, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_gen_fit(c, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_gen_write(c, path, NULL, &err) == MOESIM_OK, "%s", err.text);
}

static void never(void *cookie, const char *text)
{
    (void)cookie;
    ck_abort_msg("%s", text);
}

/* Generates, validates strictly and computes the statistics. */
static void generate(moesim_gen_config *c, moesim_trace_stats *stats)
{
    moesim_trace *trace = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    const char *path = test_path("generated.h5");
    write_trace(c, path);
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_validate(trace, true, never, NULL, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_stats_compute(trace, stats, &err) == MOESIM_OK, "%s", err.text);
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    ck_assert_str_eq(info->engine, "synthetic");
    ck_assert_ptr_nonnull(strstr(info->dataset, "seed 1;"));
    ck_assert_uint_eq(info->num_layers, c->layers);
    ck_assert_uint_eq(info->num_experts, c->experts);
    ck_assert_uint_eq(info->top_k, c->top_k);
    ck_assert_uint_eq(info->block_length, c->block);
    ck_assert_uint_eq(info->num_requests, c->requests);
    ck_assert_uint_eq(stats->passes[MOESIM_PASS_PREFILL], c->requests);
    moesim_trace_close(&trace);
}

/* Tolerances of the presets: |A| 3 %, overlaps 1.5 points, P(stability = 1) and mean stability .02 in every bin. */
static void check_targets(const moesim_gen_config *c, const moesim_trace_stats *s)
{
    ck_assert_double_eq_tol(moesim_trace_stats_active(s), c->active, 0.03 * c->active);
    for (uint32_t l = 0; l < c->layers; l++) {
        const double target = moesim_gen_layer_target(c, l);
        ck_assert_double_eq_tol((double)s->active_sum[l] / (double)s->decode_passes, target, 0.03 * target);
    }
    ck_assert_double_eq_tol(moesim_mean_value(&s->overlap_new[1]), c->overlap, 0.015);
    ck_assert_double_eq_tol(moesim_mean_value(&s->overlap_old[1]), c->overlap, 0.015);
    ck_assert_double_eq_tol(moesim_mean_value(&s->overlap_new[MOESIM_GEN_FAR]), c->overlap_far, 0.015);
    ck_assert_double_eq_tol(moesim_mean_value(&s->boundary_new), c->boundary, 0.015);
    ck_assert_double_eq_tol(moesim_mean_value(&s->boundary_old), c->boundary, 0.015);
    ck_assert_double_eq_tol(moesim_mean_value(&s->persistence[MOESIM_STATS_ALL][MOESIM_GEN_FAR]), c->persistence_far, 0.02);
    ck_assert_double_eq_tol((double)s->committed / (double)s->decode_passes, c->tokens_per_pass, 0.1);
    for (uint32_t lag = 2; lag <= MOESIM_STATS_LAGS; lag++)
        ck_assert_double_lt(moesim_mean_value(&s->overlap_new[lag]), moesim_mean_value(&s->overlap_new[lag - 1]));
    for (int all = 0; all < 2; all++)
        for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
            const moesim_stability *st = &s->stability[all];
            ck_assert_uint_gt(st->n[b], 1000);
            ck_assert_double_eq_tol((double)st->level[b][c->top_k] / (double)st->n[b], c->stability.full[0][b], 0.02);
            ck_assert_double_eq_tol((double)st->kept[b] / ((double)st->n[b] * c->top_k), c->stability.mean[0][b], 0.02);
        }
}

static void check_llada2(int preset, double active, uint32_t layers)
{
    moesim_gen_config c;
    moesim_trace_stats s;
    moesim_gen_preset(preset, &c);
    c.requests = 12;
    generate(&c, &s);
    check_targets(&c, &s);
    /* The paper's own words, whatever the preset states: OLED-MoE §5.2, Fig. 7. */
    ck_assert_uint_eq(s.num_layers, layers);
    ck_assert_double_eq_tol(moesim_trace_stats_active(&s), active, 0.03 * active);
    ck_assert(moesim_mean_value(&s.overlap_new[1]) >= .85 && moesim_mean_value(&s.overlap_new[1]) <= .90);
    ck_assert_double_gt(moesim_mean_value(&s.boundary_new), .65);
    moesim_trace_stats_fini(&s);
}

START_TEST(mini_meets_the_paper)
{
    check_llada2(MINI, 60.0, 19);
}
END_TEST

START_TEST(flash_meets_the_paper)
{
    check_llada2(FLASH, 90.0, 31);
}
END_TEST

START_TEST(autoregressive)
{
    moesim_gen_config c;
    moesim_trace_stats s;
    moesim_gen_preset(AR, &c);
    c.requests = 4;
    generate(&c, &s);
    ck_assert_uint_eq(s.rows[MOESIM_PASS_DENOISE], s.passes[MOESIM_PASS_DENOISE]);
    ck_assert_uint_eq(s.passes[MOESIM_PASS_COMMIT], 0);
    ck_assert_uint_eq(s.committed, s.decode_passes);
    ck_assert_double_eq(moesim_trace_stats_active(&s), c.top_k);
    ck_assert_double_eq_tol(moesim_mean_value(&s.boundary_new), .38, .015);
    moesim_trace_stats_fini(&s);
}
END_TEST

/* Stability by state alone: which rows keep their experts depends on nothing else. */
START_TEST(stability_by_state)
{
    moesim_gen_config c;
    moesim_trace_stats s;
    moesim_gen_preset(MINI, &c);
    moesim_gen_stability_state(&c.stability);
    c.requests = 6;
    c.layers = 4;
    generate(&c, &s);
    ck_assert_double_eq_tol(moesim_mean_value(&s.persistence[MOESIM_STATS_MASKED][1]), .81, .02);
    ck_assert_double_eq_tol(moesim_mean_value(&s.persistence[MOESIM_STATS_JUST][1]), .24, .02);
    ck_assert_double_eq_tol(moesim_mean_value(&s.persistence[MOESIM_STATS_LONG][1]), .94, .02);
    ck_assert_double_eq_tol(moesim_mean_value(&s.overlap_new[1]), c.overlap, .015);
    moesim_trace_stats_fini(&s);
}
END_TEST

/* Layers, experts, top-k, block. */
static void generate_shape(uint32_t layers, uint32_t experts, uint32_t top_k, uint32_t block)
{
    moesim_trace_stats s;
    moesim_gen_config c;
    moesim_gen_preset(MINI, &c);
    c.layers = layers;
    c.experts = experts;
    c.top_k = top_k;
    c.block = block;
    c.active = 0.0;
    c.tokens_per_pass = block < 5 ? block / 2.1 : block / 8.0;
    c.requests = 2;
    c.prompt = 100;
    c.output = 40;
    generate(&c, &s);
    if (block > 1)
        ck_assert_uint_eq(s.committed % block, 0);
    moesim_trace_stats_fini(&s);
}

/* The corners of what is allowed. */
START_TEST(small_shapes)
{
    static const uint32_t shape[][4] = { { 1, 16, 1, 2 }, { 2, 16, 8, 4 }, { 6, 60, 4, 3 }, { 2, 2, 1, 8 }, { 8, 64, 6, 32 } };
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        generate_shape(shape[i][0], shape[i][1], shape[i][2], shape[i][3]);
}
END_TEST

START_TEST(many_layers)
{
    generate_shape(1024, 8, 2, 4);
}
END_TEST

START_TEST(many_experts)
{
    generate_shape(24, 1024, 8, 1);
    generate_shape(1, 1024, 1, 64);
}
END_TEST

START_TEST(many_routes)
{
    generate_shape(1, 1024, 64, 64);
}
END_TEST

START_TEST(same_seed_same_bytes)
{
    char digest[3][MOESIM_DIGEST_CHARS];
    moesim_error err = MOESIM_ERROR_INIT;
    for (uint32_t i = 0; i < 3; i++) {
        moesim_gen_config c;
        moesim_gen_preset(MINI, &c);
        c.layers = 2;
        c.requests = 2;
        c.seed = i == 2 ? 2 : 1;
        write_trace(&c, test_path("bytes.h5"));
        ck_assert_int_eq(moesim_digest_file(test_path("bytes.h5"), digest[i], &err), MOESIM_OK);
    }
    ck_assert_str_eq(digest[0], digest[1]);
    ck_assert_str_ne(digest[0], digest[2]);
}
END_TEST

/* Each change makes the preset impossible; the message names the value. */
START_TEST(refusals)
{
    static const struct { size_t offset; bool real; double value; const char *says; } change[] = {
        { offsetof(moesim_gen_config, layers), false, 0, "layers = 0" },
        { offsetof(moesim_gen_config, experts), false, 1025, "experts = 1025" },
        { offsetof(moesim_gen_config, experts), false, 15, "top-k = 8" },
        { offsetof(moesim_gen_config, top_k), false, 65, "top-k = 65" },
        { offsetof(moesim_gen_config, block), false, 65, "block = 65" },
        { offsetof(moesim_gen_config, requests), false, 0, "requests = 0" },
        { offsetof(moesim_gen_config, active), true, 128, "active = 147.2" },
        { offsetof(moesim_gen_config, active), true, 9, "active = 7.65" },
        { offsetof(moesim_gen_config, active), true, NAN, "active = nan" },
        { offsetof(moesim_gen_config, profile), true, .6, "profile = 0.6" },
        { offsetof(moesim_gen_config, overlap), true, 1.1, "overlap = 1.1" },
        { offsetof(moesim_gen_config, overlap_far), true, .9, "overlap-far = 0.9" },
        { offsetof(moesim_gen_config, boundary), true, -.1, "boundary = -0.1" },
        { offsetof(moesim_gen_config, persistence_far), true, 2, "persistence-far = 2" },
        { offsetof(moesim_gen_config, tokens_per_pass), true, 9, "tokens-per-pass = 9" },
        { offsetof(moesim_gen_config, threshold), true, 1, "threshold = 1" },
    };
    for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
        moesim_gen_config c;
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_gen_preset(MINI, &c);
        const uint32_t number = change[i].real ? 0 : (uint32_t)change[i].value;
        if (change[i].real)
            memcpy((char *)&c + change[i].offset, &change[i].value, sizeof(double));
        else
            memcpy((char *)&c + change[i].offset, &number, sizeof number);
        ck_assert_int_eq(moesim_gen_check(&c, &err), MOESIM_E_USAGE);
        ck_assert_msg(strstr(err.text, change[i].says) != NULL, "'%s' does not say '%s'", err.text, change[i].says);
    }
}
END_TEST

/* Two rows: 2 − p² passes in the mean, and the commit pass. */
START_TEST(chance_of_committing)
{
    static const double tokens[] = { .68, .8, .95 };
    for (size_t i = 0; i < 3; i++)
        ck_assert_double_eq_tol(moesim_gen_commit_chance(2, tokens[i]), sqrt(3.0 - 2.0 / tokens[i]), 1e-9);
    ck_assert_double_eq(moesim_gen_commit_chance(1, 1.0), 0.0);
}
END_TEST

/* The distribution of what is given up has the stated mean and the stated share of rows that give up nothing. */
START_TEST(drops)
{
    moesim_gen_stability paper;
    moesim_gen_drops d;
    moesim_gen_stability_paper(&paper);
    moesim_gen_drops_fill(&paper, 8, &d);
    for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
        const double *below = d.below[MOESIM_GEN_LONG][b];
        double mean = 8.0 * below[0];
        for (uint32_t i = 1; i <= 8; i++)
            mean += (8.0 - i) * ((i < 8 ? below[i] : 1.0) - below[i - 1]);
        ck_assert_double_eq_tol(below[0], paper.full[0][b], 1e-12);
        ck_assert_double_eq_tol(mean / 8.0, paper.mean[0][b], 1e-9);
    }
}
END_TEST

/* A write that fails on the way, as on a full disk: the folder can go, so it is empty. */
START_TEST(nothing_is_left_of_a_failure)
{
    moesim_gen_config c;
    moesim_error err = MOESIM_ERROR_INIT;
    struct rlimit limit;
    const char *folder = test_path("folder");
    moesim_gen_preset(AR, &c);
    ck_assert_int_eq(moesim_gen_check(&c, &err), MOESIM_OK);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit small = { 65536, limit.rlim_max };
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    const moesim_code code = moesim_gen_write(&c, test_path("folder/x.h5"), NULL, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(code, MOESIM_E_IO);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

RUN_TESTS("gen", mini_meets_the_paper, flash_meets_the_paper, autoregressive, stability_by_state, small_shapes,
          many_layers, many_experts, many_routes, same_seed_same_bytes, refusals, chance_of_committing, drops,
          nothing_is_left_of_a_failure)
