/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces that are to be like another: they pass the two-sample check against it, others do not, and what cannot be fitted is
 * refused by name. The sample always; five more recorded traces where MOESIM_TRACES names their folder.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "tests/unit/base/runner.h"
#include "traces/gen_like.h"
#include "traces/validate.h"

typedef struct side {
    moesim_gen_config config;
    moesim_trace_stats stats[MOESIM_GEN_GROUPS];
} side;

static void release(side *s)
{
    moesim_gen_like_destroy(&s->config);
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++)
        moesim_trace_stats_fini(&s->stats[g]);
}

static moesim_code measure(const char *path, side *s, moesim_error *err)
{
    moesim_trace *trace = NULL;
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, err) == MOESIM_OK, "%s", err->text);
    memset(s, 0, sizeof *s);
    const moesim_code code = moesim_gen_like_measure(trace, &s->config, s->stats, err);
    moesim_trace_close(&trace);
    return code;
}

static void fit(const char *path, side *s)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(measure(path, s, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_gen_check(&s->config, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_gen_like_fit(&s->config, s->stats, &err) == MOESIM_OK, "%s", err.text);
}

static void never(void *cookie, const char *text)
{
    (void)cookie;
    ck_abort_msg("%s", text);
}

/* Lines that are apart, one a line of text. */
typedef struct apart { char text[16384]; uint32_t alike, apart, few; } apart;

static void on_line(void *cookie, const moesim_gen_line *line)
{
    apart *a = cookie;
    a->alike += line->verdict == MOESIM_GEN_ALIKE;
    a->few += line->verdict == MOESIM_GEN_FEW;
    if (line->verdict != MOESIM_GEN_APART)
        return;
    a->apart++;
    const size_t used = strlen(a->text);
    snprintf(a->text + used, sizeof a->text - used, "%s: %.4f %.4f within %.4f\n", line->what, line->trace, line->generated,
             line->tolerance);
}

/* Writes config's trace, validates it strictly, and compares it with s. */
static void compare(const moesim_gen_config *config, const side *s, apart *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    moesim_trace_stats got[MOESIM_GEN_GROUPS];
    const char *path = test_path("like.h5");
    memset(out, 0, sizeof *out);
    ck_assert_msg(moesim_gen_write(config, path, NULL, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_validate(trace, true, never, NULL, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_stats_groups(trace, got, MOESIM_GEN_GROUPS, NULL, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(moesim_gen_compare(s->stats, got, on_line, out), out->apart);
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++)
        moesim_trace_stats_fini(&got[g]);
    moesim_trace_close(&trace);
}

static void check_alike(const char *path)
{
    side s;
    apart result;
    fit(path, &s);
    compare(&s.config, &s, &result);
    ck_assert_msg(result.apart == 0, "%s:\n%s", path, result.text);
    ck_assert_uint_gt(result.alike, 6 * result.few);          /* it is a check, not a shrug */
    release(&s);
}

START_TEST(like_the_sample)
{
    check_alike(SAMPLE);
}
END_TEST

START_TEST(like_the_recorded)
{
    static const char *const name[] = { "gsm8k-b1.h5", "gsm8k-b8.h5", "gsm8k-b16.h5", "gsm8k-b32.h5", "humaneval-b16.h5" };
    const char *folder = getenv("MOESIM_TRACES");
    if (folder == NULL) {
        printf("skipped: MOESIM_TRACES names no folder\n");
        return;
    }
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        check_alike(path);
    }
}
END_TEST

START_TEST(like_an_autoregressive)
{
    moesim_gen_config c;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_gen_preset(2, &c);
    c.layers = 6;
    c.requests = 4;
    ck_assert_int_eq(moesim_gen_check(&c, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_gen_write(&c, test_path("ar.h5"), NULL, &err), MOESIM_OK);
    check_alike(test_path("ar.h5"));
}
END_TEST

/* What the new trace says of itself. */
START_TEST(says_what_it_is)
{
    side s;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL, *source = NULL;
    ck_assert_int_eq(measure(SAMPLE, &s, &err), MOESIM_OK);
    s.config.requests = 1;
    s.config.seed = 5;
    ck_assert_int_eq(moesim_gen_write(&s.config, test_path("own.h5"), NULL, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_trace_open(test_path("own.h5"), NULL, &trace, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_trace_open(SAMPLE, NULL, &source, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_trace_digest(source, &err), MOESIM_OK);
    const moesim_trace_info *info = moesim_trace_get_info(trace), *from = moesim_trace_get_info(source);
    ck_assert_str_eq(info->engine, "synthetic");
    ck_assert_str_eq(info->source_digest, from->digest);
    ck_assert_ptr_nonnull(strstr(info->dataset, "seed 5;"));
    ck_assert_ptr_nonnull(strstr(info->dataset, from->digest));
    ck_assert_str_eq(info->model_id, "synthetic/like example/blockdiff-moe-20x256k8");
    ck_assert_uint_eq(info->num_layers, from->num_layers);
    ck_assert_uint_eq(info->num_experts, from->num_experts);
    ck_assert_uint_eq(info->top_k, from->top_k);
    ck_assert_uint_eq(info->block_length, from->block_length);
    ck_assert_double_eq(info->commit_threshold, from->commit_threshold);
    for (uint32_t l = 0; l < info->num_layers; l++) {
        ck_assert_int_eq(moesim_trace_layer_ids(trace)[l], moesim_trace_layer_ids(source)[l]);
        ck_assert_uint_eq(moesim_trace_expert_bytes(trace)[l], moesim_trace_expert_bytes(source)[l]);
    }
    moesim_trace_close(&trace);
    moesim_trace_close(&source);
    release(&s);
}
END_TEST

/* Experts that are often active in the one are in the other; numbers of experts mean the same. */
START_TEST(popularity_follows)
{
    side s, t;
    moesim_error err = MOESIM_ERROR_INIT;
    double n = 0.0, x = 0.0, y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
    ck_assert_int_eq(measure(SAMPLE, &s, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_gen_write(&s.config, test_path("popular.h5"), NULL, &err), MOESIM_OK);
    ck_assert_int_eq(measure(test_path("popular.h5"), &t, &err), MOESIM_OK);
    for (uint32_t i = 0; i < s.config.layers * s.config.experts; i++) {
        const double a = s.config.like->seen.member[i], b = t.config.like->seen.member[i];
        n += 1.0;
        x += a;
        y += b;
        xx += a * a;
        yy += b * b;
        xy += a * b;
    }
    const double r = (n * xy - x * y) / sqrt((n * xx - x * x) * (n * yy - y * y));
    ck_assert_msg(r > 0.9, "correlation %.3f", r);
    release(&s);
    release(&t);
}
END_TEST

START_TEST(another_preset_is_apart)
{
    side s;
    apart result;
    moesim_gen_config c;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(measure(SAMPLE, &s, &err), MOESIM_OK);
    moesim_gen_preset(0, &c);
    c.layers = s.config.layers;
    c.requests = 8;
    ck_assert_int_eq(moesim_gen_check(&c, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_gen_fit(&c, &err), MOESIM_OK);
    compare(&c, &s, &result);
    ck_assert_uint_gt(result.apart, 30);
    release(&s);
}
END_TEST

/* One table or knob is turned away from what was fitted; the lines that tell of it are apart. */
static void turn_boundary(moesim_gen_config *c)
{
    c->boundary -= 0.1;
}

static void turn_layers(moesim_gen_config *c)
{
    c->like->layer[3] *= 1.15;
}

static void turn_leave(moesim_gen_config *c)
{
    for (uint32_t i = 0; i <= c->block; i++)
        c->like->leave[i] *= 0.3;
}

static void turn_steady(moesim_gen_config *c)
{
    c->like->steady[MOESIM_GEN_LONG] = c->like->again[MOESIM_GEN_LONG] = 0.0;
}

static void turn_kept(moesim_gen_config *c)
{
    memcpy(c->like->kept[MOESIM_GEN_JUST], c->like->kept[MOESIM_GEN_LONG], sizeof c->like->kept[0]);
}

static void turn_commits(moesim_gen_config *c)
{
    for (uint32_t m = 2; m <= c->block; m++)
        c->like->seen.commits[m][2] += 40;
}

START_TEST(what_is_turned_shows)
{
    static const struct { void (*turn)(moesim_gen_config *c); const char *says; } turned[] = {
        { turn_boundary, "block boundary, over the later set" }, { turn_layers, "active experts, layer 3" },
        { turn_leave, "overlap over the earlier set, lag 1" }, { turn_steady, "persistence, long committed rows, lag 5" },
        { turn_kept, "persistence, just committed rows, lag 1" }, { turn_commits, "tokens committed per decode pass" },
    };
    side s;
    apart result;
    fit(SAMPLE, &s);
    const moesim_gen_config fitted = s.config;
    moesim_gen_like *tables = malloc(sizeof *tables);
    double layer[64];
    ck_assert_ptr_nonnull(tables);
    *tables = *s.config.like;
    memcpy(layer, s.config.like->layer, s.config.layers * sizeof *layer);
    for (size_t i = 0; i < sizeof turned / sizeof turned[0]; i++) {
        s.config = fitted;
        *s.config.like = *tables;
        memcpy(s.config.like->layer, layer, s.config.layers * sizeof *layer);
        turned[i].turn(&s.config);
        compare(&s.config, &s, &result);
        ck_assert_msg(strstr(result.text, turned[i].says) != NULL, "'%s' is not among\n%s", turned[i].says, result.text);
    }
    free(tables);
    release(&s);
}
END_TEST

START_TEST(same_seed_same_bytes)
{
    char digest[3][MOESIM_DIGEST_CHARS];
    moesim_error err = MOESIM_ERROR_INIT;
    for (uint32_t i = 0; i < 3; i++) {
        side s;
        ck_assert_int_eq(measure(SAMPLE, &s, &err), MOESIM_OK);
        s.config.requests = 2;
        s.config.seed = i == 2 ? 2 : 1;
        ck_assert_int_eq(moesim_gen_like_fit(&s.config, s.stats, &err), MOESIM_OK);
        ck_assert_int_eq(moesim_gen_write(&s.config, test_path("bytes.h5"), NULL, &err), MOESIM_OK);
        ck_assert_int_eq(moesim_digest_file(test_path("bytes.h5"), digest[i], &err), MOESIM_OK);
        release(&s);
    }
    ck_assert_str_eq(digest[0], digest[1]);
    ck_assert_str_ne(digest[0], digest[2]);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------------------------- */

enum fault { NONE, NO_CONFIDENCE, ALL_NAN, TOP_K, LONG_BLOCKS, FEW, UNCOMMITTED, EDITED, ROWS, ROUTES, WORKLOADS };

static void fill_rows(struct test_trace *t, size_t pass, size_t rows, uint8_t state, enum fault fault)
{
    const size_t from = test_trace_row(t, pass);
    for (size_t r = from; r < from + rows; r++) {
        t->state[r] = fault == UNCOMMITTED && state == MOESIM_STATE_COMMITTED_NOW ? MOESIM_STATE_MASKED : state;
        t->confidence[r] = fault == ALL_NAN ? (float)NAN : 0.5f;
        for (uint32_t i = 0; i < t->info.top_k; i++)
            t->expert[r * t->info.top_k + i] = (uint16_t)i;
    }
    if (fault == EDITED && pass == 3)
        t->state[from] = MOESIM_STATE_EDITED;
    if (fault == ROUTES && pass == 3)
        t->expert[from * t->info.top_k + t->info.top_k - 1] = UINT16_MAX;
}

/* One layer, blocks of two tokens that commit in one pass, then a commit pass. */
static void write_faulty(enum fault fault, const char *path)
{
    struct test_trace t;
    const uint32_t block = fault == LONG_BLOCKS ? 65 : 2, requests = fault == WORKLOADS ? 17 : fault == FEW ? 7 : 16;
    test_trace_init(&t, 1, fault == TOP_K ? 3 : 8, 2, block);
    t.info.has_confidence = fault != NO_CONFIDENCE;
    snprintf(t.info.confidence_kind, sizeof t.info.confidence_kind, fault == NO_CONFIDENCE ? "none" : "top-1 probability");
    for (uint32_t q = 0; q < requests; q++) {
        char workload[16];
        snprintf(workload, sizeof workload, "w%u", fault == WORKLOADS ? q : 0);
        const uint32_t request = test_trace_add_request(&t, workload, 1, -1);
        const size_t rows = fault == ROWS && q == 5 ? block + 1 : block;
        const size_t denoise = test_trace_add_pass(&t, request, MOESIM_PASS_DENOISE, 0, 0, rows, 1);
        fill_rows(&t, denoise, rows, MOESIM_STATE_COMMITTED_NOW, fault);
        const size_t commit = test_trace_add_pass(&t, request, MOESIM_PASS_COMMIT, 0, 1, rows, 1);
        fill_rows(&t, commit, rows, MOESIM_STATE_COMMITTED, fault);
    }
    test_trace_write(&t, path);
    test_trace_fini(&t);
}

START_TEST(refusals)
{
    static const struct { enum fault fault; const char *says; } refused[] = {
        { NO_CONFIDENCE, "it has no confidences" }, { ALL_NAN, "all its confidences are NaN" },
        { TOP_K, "top-k is more than half of the experts" }, { LONG_BLOCKS, "longer than 64 tokens" },
        { FEW, "fewer than 8 blocks or 32 decode passes (7 and 14)" },
        { UNCOMMITTED, "no token of it is committed" }, { EDITED, "edited tokens" },
        { ROWS, "more or fewer rows than its block length" }, { ROUTES, "fewer than top-k experts" },
        { WORKLOADS, "more than 16 workloads" },
    };
    side s;
    const char *path = test_path("faulty.h5");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        write_faulty(refused[i].fault, path);
        ck_assert_int_eq(measure(path, &s, &err), MOESIM_E_USAGE);
        ck_assert_msg(strstr(err.text, refused[i].says) != NULL, "'%s' does not say '%s'", err.text, refused[i].says);
        ck_assert_ptr_nonnull(strstr(err.text, path));
        release(&s);
    }
    moesim_error err = MOESIM_ERROR_INIT;
    write_faulty(NONE, path);
    ck_assert_msg(measure(path, &s, &err) == MOESIM_OK, "%s", err.text);
    release(&s);
}
END_TEST

RUN_TESTS("gen like", like_the_sample, like_the_recorded, like_an_autoregressive, says_what_it_is, popularity_follows,
          another_preset_is_apart, what_is_turned_shows, same_seed_same_bytes, refusals)
