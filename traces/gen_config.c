/* SPDX-License-Identifier: Apache-2.0
 *
 * Presets and checks of the generator.
 */
#include <string.h>

#include "traces/gen_like.h"

#define USUAL_SHARE 0.47         /* of block · K that is active, as in LLaDA2.0-mini */

/* OLED-MoE (arXiv 2609.33385): |A| of about 60 and 90 (§5.2), overlap at lag 1 .85 to .90 and over a block border above .65
 * (Fig. 7), where the middle and a little more than the least are taken. Profile, lag 5, persistence and tokens per pass are
 * not in the paper: overlap falls gradually towards the border's, and a position keeps at lag 5 about as much as Fig. 10b
 * leaves room for. */
#define LLADA2(MODEL, LAYERS, BYTES, HIDDEN, WIDTH, ACTIVE, FAR) \
    { .name = MODEL, .layers = LAYERS, .experts = 256, .top_k = 8, .block = 16, .first_layer = 1, .expert_bytes = BYTES, \
      .hidden_size = HIDDEN, .expert_intermediate_size = WIDTH, .active = ACTIVE, .profile = 0.15, .overlap = 0.875, \
      .overlap_far = 0.78, .boundary = 0.68, .persistence_far = FAR, .tokens_per_pass = 2.0, .threshold = 0.9, \
      .requests = 24, .prompt = 96, .output = 256, .workload = { "gsm8k", "humaneval", "gpqa" }, .workloads = 3, .seed = 1 }

static const moesim_gen_config preset[] = {
    LLADA2("llada2.0-mini", 19, 6291456, 2048, 512, 60.0, 0.54),
    LLADA2("llada2.0-flash", 31, 25165824, 4096, 1024, 90.0, 0.49),
    /* Qwen3-30B-A3B; two neighbouring tokens share .38 of their experts in a public recording of it. */
    { .name = "ar", .layers = 48, .experts = 128, .top_k = 8, .block = 1, .expert_bytes = 9437184, .hidden_size = 2048,
      .expert_intermediate_size = 768, .active = 8.0, .overlap = 0.875, .overlap_far = 0.78, .boundary = 0.38,
      .persistence_far = 0.58, .tokens_per_pass = 1.0, .threshold = 0.9, .requests = 24, .prompt = 96, .output = 256,
      .workload = { "chat" }, .workloads = 1, .seed = 1 },
};

const char *const moesim_gen_presets[] = { "llada2.0-mini", "llada2.0-flash", "ar", NULL };   /* order of preset */

void moesim_gen_stability_paper(moesim_gen_stability *out)
{
    static const double full[MOESIM_STATS_BINS] = { .13, .12, .16, .21, .25, .30, .34, .36, .39, .42 };
    for (uint32_t c = 0; c < MOESIM_GEN_CLASSES; c++)
        for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
            out->full[c][b] = full[b];
            out->mean[c][b] = 0.60 + 0.21 * b / (MOESIM_STATS_BINS - 1.0);
        }
}

void moesim_gen_stability_state(moesim_gen_stability *out)
{
    static const double mean[MOESIM_GEN_CLASSES] = { .81, .24, .94 }, full[MOESIM_GEN_CLASSES] = { .30, .0, .64 };
    for (uint32_t c = 0; c < MOESIM_GEN_CLASSES; c++)
        for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
            out->full[c][b] = full[c];
            out->mean[c][b] = mean[c];
        }
}

void moesim_gen_preset(int index, moesim_gen_config *out)
{
    *out = preset[index];
    moesim_gen_stability_paper(&out->stability);
}

/* A number of the configuration and what it may be. */
typedef struct rule { const char *what; double value, min, max; const char *why; } rule;

static moesim_code check_all(const rule *rules, size_t n, moesim_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!(rules[i].value >= rules[i].min && rules[i].value <= rules[i].max))
            return moesim_fail(err, MOESIM_E_USAGE, "%s = %g is outside %g..%g%s", rules[i].what, rules[i].value, rules[i].min,
                               rules[i].max, rules[i].why);
    return MOESIM_OK;
}

static moesim_code check_shape(const moesim_gen_config *c, moesim_error *err)
{
    const double bytes = c->like != NULL && c->expert_bytes == 0 ? 1.0 : (double)c->expert_bytes;   /* 0: the trace's */
    const rule rules[] = {
        { "layers", c->layers, 1, 1024, "" },
        { "experts", c->experts, 2, 1024, "" },
        { "top-k", c->top_k, 1, 64, "" },
        { "top-k", c->top_k, 1, c->experts / 2, ": rows need other experts to turn to, so at most half of them" },
        { "block", c->block, 1, MOESIM_GEN_MAX_BLOCK, "" },
        { "expert bytes", bytes, 1, 17179869184.0, "" },
        { "requests", c->requests, 1, 1048576, "" },
        { "prompt", c->prompt, 1, 1048576, "" },
        { "output", c->output, 1, 1048576, "" },
    };
    return check_all(rules, sizeof rules / sizeof rules[0], err);
}

/* In any layer: beyond it, rows cannot give experts up and all active ones still have a row. */
static double most_active(const moesim_gen_config *c)
{
    const double slots = (double)c->block * c->top_k;
    return 0.9 * (slots < c->experts ? slots : c->experts);
}

static double usual_active(const moesim_gen_config *c)
{
    const double share = USUAL_SHARE * c->block * c->top_k, few = 2.0 * c->top_k / (1.0 - c->profile);
    const double many = 0.6 * c->experts, most = most_active(c) / (1.0 + c->profile);
    const double x = share < many ? share : many, y = x > few ? x : few;
    return y < most ? y : most;
}

static moesim_code check_targets(const moesim_gen_config *c, moesim_error *err)
{
    const double most = most_active(c), least = c->top_k;
    const double slowest = (double)c->block / (c->block + 1.0);
    const rule block[] = {
        { "profile", c->profile, 0.0, 0.5, "" },
        { "active", c->active * (1.0 + c->profile), least, most, " in the layer with the most: at most 0.9 of block x top-k, "
          "and of experts, can be active" },
        { "active", c->active * (1.0 - c->profile), least, most, " in the layer with the fewest: a row alone has top-k" },
        { "overlap", c->overlap, 0.5, 1.0, "" },
        { "overlap-far", c->overlap_far, 0.0, c->overlap, ": at most the overlap at lag 1" },
        { "persistence-far", c->persistence_far, 0.0, 1.0, "" },
        { "tokens-per-pass", c->tokens_per_pass, slowest, c->block / 2.1, ": a block of so many tokens has a pass for each of "
          "them at most, at least one, and the commit pass" },
        { "threshold", c->threshold, 0.05, 0.99, "" },
    };
    const rule always[] = { { "boundary", c->boundary, 0.0, 1.0, "" } };
    const moesim_code code = check_all(always, 1, err);
    return code == MOESIM_OK && c->block > 1 ? check_all(block, sizeof block / sizeof block[0], err) : code;
}

moesim_code moesim_gen_check(moesim_gen_config *c, moesim_error *err)
{
    moesim_code code = check_shape(c, err);
    if (code != MOESIM_OK || c->like != NULL)
        return code;
    if (c->block == 1) {
        c->active = c->top_k;
        c->profile = 0.0;
        c->tokens_per_pass = 1.0;
    } else if (c->active <= 0.0) {
        c->active = usual_active(c);
    }
    return check_targets(c, err);
}
