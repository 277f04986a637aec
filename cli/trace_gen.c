/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace gen: synthetic traces that meet stated statistics.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/gen_like.h"
#include "cli/gen_report.h"

enum stability { PAPER, STATE };      /* −1: not given, which is PAPER */

typedef struct settings {
    int preset, stability, compression;
    uint64_t layers, experts, top_k, block, expert_bytes, requests, prompt, output, seed;   /* 0: the preset's, but for seed */
    double active, profile, overlap, overlap_far, boundary, persistence_far, tokens_per_pass, threshold;   /* NaN: the same */
    moesim_list workload;
    const char *like;
    bool old_format, unread;
} settings;

static const char *const stabilities[] = { "paper", "state", NULL };  /* order of enum stability */

#define NUMBER(NAME, FIELD, MAX, HELP) \
    { .name = NAME, .type = MOESIM_ARG_U64, .offset = offsetof(settings, FIELD), .value = "N", .min = 1, .max = MAX, \
      .help = HELP }
#define REAL(NAME, FIELD, MAX, HELP) \
    { .name = NAME, .type = MOESIM_ARG_REAL, .offset = offsetof(settings, FIELD), .value = "X", .min = 0, .max = MAX, \
      .help = HELP }

static const moesim_arg args[] = {
    { .name = "preset", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, preset), .choices = moesim_gen_presets,
      .help = "Shape and targets to begin with; default llada2.0-mini. The two llada2.0 presets aim at what the OLED-MoE paper "
              "reports of these models with blocks of 16; ar is autoregressive." },
    { .name = "like", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, like), .value = "TRACE",
      .help = "Fit shape, sizes and all statistics to this trace in place of a preset, and compare: any statistic that is "
              "apart ends with status 1. Goes with --expert-bytes, --requests, --prompt, --output-tokens, --workload and "
              "--seed, all else being the trace's." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept a TRACE with an old HDF5 superblock; a child process under limits converts it first." },
    NUMBER("layers", layers, 1024, "MoE layers. What is not given below is the preset's."),
    NUMBER("experts", experts, 1024, "Experts of a layer."),
    NUMBER("top-k", top_k, 64, "Experts of a token; at most half of all."),
    NUMBER("block", block, MOESIM_GEN_MAX_BLOCK,
           "Tokens of a block; 1 decodes autoregressively, with --boundary as the one target."),
    { .name = "expert-bytes", .type = MOESIM_ARG_BYTES, .offset = offsetof(settings, expert_bytes), .value = "SIZE",
      .help = "Size of an expert, such as 6MiB." },
    { .name = "active", .type = MOESIM_ARG_REAL, .offset = offsetof(settings, active), .value = "X", .min = 1, .max = 1024,
      .help = "Target: active experts per layer, mean over layers and decode passes. Default for another shape than the "
      "preset's: .47 of block x top-k, at most .6 of the experts." },
    REAL("profile", profile, 0.5, "Target: active experts rise from the first layer to the last by this share to both sides of "
         "the mean."),
    REAL("overlap", overlap, 1, "Target: share of a pass's active experts that the pass before had (lag 1, within a block)."),
    REAL("overlap-far", overlap_far, 1, "Target: the same at lag 5."),
    REAL("boundary", boundary, 1, "Target: the same from a block's last pass to the first of the next block."),
    REAL("persistence-far", persistence_far, 1, "Target: share of a position's experts that it holds 5 passes later."),
    REAL("tokens-per-pass", tokens_per_pass, 64, "Target: committed tokens per decode pass, a block's commit pass included."),
    REAL("threshold", threshold, 0.99, "Confidence from which a token commits."),
    { .name = "stability", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, stability), .choices = stabilities,
      .help = "What decides how many experts a token keeps: paper (default) its confidence, as in Fig. 10b of OLED-MoE; state "
              "whether it is masked, just committed or committed long ago, as measured on a small trained model." },
    NUMBER("requests", requests, 1048576, "Requests."),
    NUMBER("prompt", prompt, 1048576, "Prompt tokens, mean; lengths vary by half to both sides."),
    NUMBER("output-tokens", output, 1048576, "Generated tokens, mean; the same."),
    { .name = "workload", .type = MOESIM_ARG_LIST, .offset = offsetof(settings, workload), .value = "NAME",
      .max = MOESIM_GEN_MAX_WORKLOADS, .help = "A workload; give it again for more. Requests take turns between them; half "
      "of an expert's popularity is its workload's." },
    { .name = "seed", .type = MOESIM_ARG_U64, .offset = offsetof(settings, seed), .value = "N", .max = MOESIM_ARG_MAX_SEED,
      .help = "Seed; default 1. The same call gives the same bytes." },
    { .name = "compression", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, compression),
      .choices = moesim_compressions, .help = "How to compress; default zstd." },
    { .name = "no-statistics", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, unread),
      .help = "Do not read the file again to print what was achieved." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_gen = {
    .command = "moesim trace gen",
    .synopsis = "OUT [options]",
    .summary = "Generates a synthetic trace, marked so, that meets stated statistics, and prints targets beside what 'trace "
               "stats' finds in the file. Routes are drawn, not computed by a model: what is not among the targets means "
               "nothing.",
    .examples = "  moesim trace gen mini.h5\n"
                "  moesim trace gen flash.h5 --preset llada2.0-flash --requests 200 --seed 7\n"
                "  moesim trace gen alike.h5 --like recorded.h5 --requests 500\n"
                "  moesim trace gen s.h5 --layers 4 --experts 64 --top-k 4 --block 8 --active 16\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 1,
};

static void override_lengths(const settings *s, moesim_gen_config *c)
{
    const struct { uint64_t from; uint32_t *to; } length[] = {
        { s->requests, &c->requests }, { s->prompt, &c->prompt }, { s->output, &c->output },
    };
    for (size_t i = 0; i < sizeof length / sizeof length[0]; i++)
        if (length[i].from != 0)
            *length[i].to = (uint32_t)length[i].from;
}

/* Settings that were given over those of the preset. */
static void override_numbers(const settings *s, moesim_gen_config *c)
{
    const struct { uint64_t from; uint32_t *to; } number[] = {
        { s->layers, &c->layers }, { s->experts, &c->experts }, { s->top_k, &c->top_k }, { s->block, &c->block },
    };
    const struct { double from; double *to; } real[] = {
        { s->active, &c->active }, { s->profile, &c->profile }, { s->overlap, &c->overlap },
        { s->overlap_far, &c->overlap_far }, { s->boundary, &c->boundary }, { s->persistence_far, &c->persistence_far },
        { s->tokens_per_pass, &c->tokens_per_pass }, { s->threshold, &c->threshold },
    };
    bool other = false;
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        if (number[i].from == 0)
            continue;
        other |= *number[i].to != number[i].from;
        *number[i].to = (uint32_t)number[i].from;
    }
    if (other) {                                   /* another model than the preset's */
        c->name = "custom";
        c->active = 0.0;
        c->hidden_size = c->expert_intermediate_size = 0;
        c->first_layer = 0;
        c->tokens_per_pass = c->block < 5 ? c->block / 2.1 : c->tokens_per_pass;
    }
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++)
        if (!isnan(real[i].from))
            *real[i].to = real[i].from;
    override_lengths(s, c);
}

/* The first option that was given of those that a trace decides; rows: of those about rows that meet the next pass alone. */
static const char *find_given(const settings *s, bool rows)
{
    const struct { const char *option; bool rows, given; } word[] = {
        { "preset", false, s->preset >= 0 }, { "layers", false, s->layers != 0 }, { "experts", false, s->experts != 0 },
        { "top-k", false, s->top_k != 0 }, { "block", false, s->block != 0 }, { "active", true, !isnan(s->active) },
        { "profile", true, !isnan(s->profile) }, { "overlap", true, !isnan(s->overlap) },
        { "overlap-far", true, !isnan(s->overlap_far) }, { "boundary", false, !isnan(s->boundary) },
        { "persistence-far", true, !isnan(s->persistence_far) }, { "tokens-per-pass", true, !isnan(s->tokens_per_pass) },
        { "threshold", true, !isnan(s->threshold) }, { "stability", true, s->stability >= 0 },
    };
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        if (word[i].given && (word[i].rows || !rows))
            return word[i].option;
    return NULL;
}

/* One token a pass: what is active follows from top-k, and no row meets the next pass. */
static moesim_code check_autoregressive(const settings *s, moesim_error *err)
{
    const char *given = find_given(s, true);
    return given == NULL ? MOESIM_OK
        : moesim_fail(err, MOESIM_E_USAGE, "option --%s has no effect on blocks of one token; leave it out", given);
}

/* Workloads that were given take the place of the preset's or the trace's. */
static moesim_code override_workloads(const settings *s, moesim_gen_config *c, moesim_error *err)
{
    if (s->workload.n > MOESIM_GEN_MAX_WORKLOADS)
        return moesim_fail(err, MOESIM_E_USAGE, "option --workload: %zu workloads, but at most %u", s->workload.n,
                           MOESIM_GEN_MAX_WORKLOADS);
    for (size_t i = 0; i < s->workload.n; i++) {
        const size_t length = strlen(s->workload.item[i]);
        if (length == 0 || length > 63 || strchr(s->workload.item[i], ',') != NULL)
            return moesim_fail(err, MOESIM_E_USAGE, "option --workload: '%.63s' is no name of 1 to 63 bytes without commas; "
                               "give the option again for each workload", s->workload.item[i]);
        c->workload[i] = s->workload.item[i];
        c->share[i] = 1;
    }
    if (s->workload.n > 0)
        c->workloads = (uint32_t)s->workload.n;
    return MOESIM_OK;
}

static moesim_code configure(const settings *s, moesim_gen_config *c, moesim_error *err)
{
    if (s->old_format)
        return moesim_fail(err, MOESIM_E_USAGE, "option --old-format is about the trace of --like; leave it out");
    moesim_gen_preset(s->preset < 0 ? 0 : s->preset, c);
    override_numbers(s, c);
    c->seed = s->seed;
    if (c->block == 1 && check_autoregressive(s, err) != MOESIM_OK)
        return err->code;
    if (s->expert_bytes != 0)
        c->expert_bytes = s->expert_bytes;
    if (s->stability == STATE)
        moesim_gen_stability_state(&c->stability);
    const moesim_code code = override_workloads(s, c, err);
    return code == MOESIM_OK ? moesim_gen_check(c, err) : code;
}

/* What the trace decides may not be given. */
static moesim_code check_like(const settings *s, moesim_error *err)
{
    const char *given = find_given(s, false);
    return given == NULL ? MOESIM_OK
        : moesim_fail(err, MOESIM_E_USAGE, "option --%s: the trace of --like decides this; leave one of the two out", given);
}

static moesim_code generate_like(const settings *s, const char *path, moesim_error *err)
{
    moesim_gen_config config = { .like = NULL };
    moesim_trace_stats stats[MOESIM_GEN_GROUPS] = { 0 };
    const moesim_writer_options options = { s->compression, 0 };
    moesim_code code = check_like(s, err);
    if (code == MOESIM_OK)
        code = moesim_gen_like_read(s->like, s->old_format, path, &config, stats, err);
    if (code == MOESIM_OK) {
        override_lengths(s, &config);
        config.seed = s->seed;
        config.expert_bytes = s->expert_bytes;
        code = override_workloads(s, &config, err);
    }
    if (code == MOESIM_OK)
        code = moesim_gen_check(&config, err);
    if (code == MOESIM_OK)
        code = moesim_gen_like_fit(&config, stats, err);
    if (code == MOESIM_OK)
        code = moesim_gen_write(&config, path, &options, err);
    if (code == MOESIM_OK && !s->unread)
        code = moesim_gen_like_check(path, &config, stats, err);
    moesim_gen_like_release(&config, stats);
    return code;
}

static moesim_code report(const moesim_gen_config *c, const char *path, bool by_confidence, moesim_error *err)
{
    moesim_trace *trace = NULL;
    moesim_trace_stats stats = { 0 };
    moesim_code code = moesim_cli_open_trace(path, false, &trace, err);
    if (code == MOESIM_OK)
        code = moesim_trace_stats_compute(trace, &stats, err);
    if (code == MOESIM_OK) {
        moesim_gen_print_file(moesim_trace_get_info(trace), c->seed);
        moesim_gen_print(c, &stats, by_confidence);
    }
    moesim_trace_stats_fini(&stats);
    moesim_trace_close(&trace);
    return code;
}

static moesim_code generate(const settings *s, const char *path, moesim_error *err)
{
    moesim_gen_config config;
    const moesim_writer_options options = { s->compression, 0 };
    moesim_code code = configure(s, &config, err);
    if (code == MOESIM_OK)
        code = moesim_gen_fit(&config, err);
    if (code == MOESIM_OK)
        code = moesim_gen_write(&config, path, &options, err);
    return code == MOESIM_OK && !s->unread ? report(&config, path, s->stability != STATE, err) : code;
}

moesim_code moesim_cmd_trace_gen(int argc, char **argv, moesim_error *err)
{
    settings s = { .preset = -1, .stability = -1, .compression = MOESIM_ZSTD, .seed = 1, .active = NAN, .profile = NAN,
                   .overlap = NAN, .overlap_far = NAN, .boundary = NAN, .persistence_far = NAN, .tokens_per_pass = NAN,
                   .threshold = NAN };
    moesim_list files = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_gen, argc, argv, &s, &files, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_gen, stdout);
    else if (code == MOESIM_OK)
        code = s.like != NULL ? generate_like(&s, files.item[0], err) : generate(&s, files.item[0], err);
    moesim_list_fini(&files);
    moesim_list_fini(&s.workload);
    return code;
}
