/* SPDX-License-Identifier: Apache-2.0
 *
 * surv: survival of routes. What predicts that an expert is used again is the state of the tokens that use it: routes of
 * masked tokens mostly survive a pass, those of tokens committed just now mostly do not, those of long committed tokens
 * nearly always do. S(e) = Σ over rows of −ln(1 − survival[class][rank]), a noisy-or over the rows that hold the expert.
 *
 * Per layer and expert, updated before the value is taken:
 *   F ← .95 F + .05 [e ∈ A], in a prefill .95⁸ F + (1 − .95⁸)[e ∈ A]
 *   K ← .9 K + .1 min(masked rows that use e, 4)/4 in denoise passes
 *   H ← .9 H + .1 [e ∈ A] in the first denoise pass of a block
 * Inside a block: value = S + .05 (H + K) + .3 F. Where the rows are about to leave (prefill, commit):
 * value = 10 (H + K) + .3 F. tie = last.
 */
#include "moesim/policy.h"
#include "policies/kit.h"

enum { SURV_AUTO, SURV_COMMIT, SURV_MASKED };

typedef struct surv_options {
    int32_t boundary;
} surv_options;

typedef struct surv_state {
    kit_head head;
    int32_t boundary;
} surv_state;

/* Per layer; of SURV_ENGINE only the first element is used, as a struct surv_engine. */
enum { SURV_F, SURV_K, SURV_H, SURV_LAST, SURV_ENGINE, SURV_ARRAYS };

/* What the layer has seen of the engine, to tell whether blocks end with a commit pass. */
typedef struct surv_engine {
    uint8_t commits;             /* a commit pass was seen */
    uint8_t none;                /* a block opened right after a denoise pass: blocks end without a commit pass */
    uint8_t denoised;            /* the event before was a denoise pass */
} surv_engine;

static const double surv_weight[3][8] = {
    { 2.2, 1.9, 1.7, 1.5, 1.3, 1.1, 0.9, 0.65 },
    { 4.4, 3.6, 3.0, 2.55, 2.15, 1.75, 1.4, 0.95 },
    { 6.8, 5.7, 5.0, 4.35, 3.8, 3.2, 2.5, 1.6 },
};

typedef struct surv_arrays { double *f, *k, *h, *last; } surv_arrays;

/* How one event decays the counters and weighs them. */
typedef struct surv_step {
    double keep_f, keep_k, keep_h, gain_f, gain_k, gain_h;   /* gain_k: per masked row */
    double weight;               /* of H + K */
    double route;                /* of S: 0 at a boundary */
} surv_step;

/* Whether the rows of this event are about to leave, so that what they hold says nothing about the next pass. */
static int surv_leaving(const surv_state *s, surv_engine *engine, const moesim_event *event)
{
    if (event->kind != MOESIM_DENOISE) {
        engine->commits |= event->kind == MOESIM_COMMIT;
        engine->denoised = 0;
        return 1;
    }
    engine->none |= event->first && engine->denoised;
    engine->denoised = 1;
    if (s->boundary == SURV_COMMIT || event->num_masked > 1)
        return 0;
    return s->boundary == SURV_MASKED || (engine->none && !engine->commits);
}

static surv_step surv_plan(const moesim_event *event, int leaving)
{
    const int denoise = event->kind == MOESIM_DENOISE, first = denoise && event->first;
    const int prefill = event->kind == MOESIM_PREFILL;
    return (surv_step){
        .keep_f = prefill ? KIT_KEEP_PREFILL : KIT_KEEP, .gain_f = prefill ? 1 - KIT_KEEP_PREFILL : KIT_GAIN,
        .keep_k = denoise ? 0.9 : 1, .gain_k = denoise ? 0.1 / 4 : 0,
        .keep_h = first ? 0.9 : 1, .gain_h = first ? 0.1 : 0,
        .weight = leaving ? 10 : 0.05, .route = leaving ? 0 : 1,
    };
}

/* All experts of the layer as if none were active: the long loop. The active ones are corrected afterwards; writing them
 * before would stall these loads behind many small stores. */
MOESIM_MULTIVERSION
static void surv_dense(double *restrict f, double *restrict k, const double *restrict h, const double *restrict last,
                       const surv_step *step, uint32_t experts, double *restrict value, double *restrict tie)
{
    const double keep_f = step->keep_f, keep_k = step->keep_k, weight = step->weight;
    for (uint32_t e = 0; e < experts; e++) {
        f[e] = kit_fade(f[e], keep_f);
        k[e] = kit_fade(k[e], keep_k);
        value[e] = weight * (h[e] + k[e]) + 0.3 * f[e];
        tie[e] = last[e];
    }
}

static void surv_active(surv_arrays a, surv_step step, const moesim_event *event, double *restrict value,
                        double *restrict tie)
{
    double *restrict f = a.f, *restrict k = a.k, *restrict h = a.h, *restrict last = a.last;
    for (uint32_t i = 0; i < event->n_active; i++) {
        const uint32_t e = event->list[i];
        const double masked = event->masked[i];
        const double new_f = f[e] + step.gain_f, new_k = k[e] + step.gain_k * (masked < 4 ? masked : 4);
        const double new_h = h[e] + step.gain_h;
        f[e] = new_f;
        k[e] = new_k;
        h[e] = new_h;
        value[e] = step.route * event->class_sum[i] + step.weight * (new_h + new_k) + 0.3 * new_f;
        tie[e] = last[e] = kit_last(event, i);
    }
}

static int surv_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    surv_state *s = state;
    surv_engine *engine = kit_array(&s->head, event->layer, SURV_ENGINE);
    const surv_arrays a = {
        kit_doubles(&s->head, event->layer, SURV_F), kit_doubles(&s->head, event->layer, SURV_K),
        kit_doubles(&s->head, event->layer, SURV_H), kit_doubles(&s->head, event->layer, SURV_LAST),
    };
    const surv_step step = surv_plan(event, surv_leaving(s, engine, event));

    for (uint32_t e = 0; step.gain_h > 0 && e < s->head.experts; e++)
        a.h[e] = kit_fade(a.h[e], step.keep_h);
    surv_dense(a.f, a.k, a.h, a.last, &step, s->head.experts, keys->value, keys->tie);
    surv_active(a, step, event, keys->value, keys->tie);
    return 0;
}

static uint32_t surv_needs(const void *options)
{
    (void)options;
    return MOESIM_NEED_CLASS;
}

static size_t surv_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(surv_state), SURV_ARRAYS);
}

static int surv_open(void *state, const moesim_open *open, moesim_start *start)
{
    surv_state *s = state;
    const surv_options *options = open->options;
    (void)start;
    kit_open(&s->head, open->shape, sizeof *s, SURV_ARRAYS);
    s->boundary = options->boundary;
    return 0;
}

static const char *const surv_boundaries[] = { "auto", "commit", "masked", NULL };

static const moesim_option surv_table[] = {
    { "boundary", MOESIM_OPTION_CHOICE, offsetof(surv_options, boundary), "auto", 0, 0, surv_boundaries,
      "what ends a block: a commit pass, a pass with at most one masked input row, or auto: the latter once a block has "
      "opened without a commit pass before it" },
    { .name = NULL },
};

const moesim_policy moesim_policy_surv = {
    .abi = MOESIM_POLICY_ABI,
    .size = sizeof(moesim_policy),
    .name = "surv",
    .summary = "experimental: keeps experts whose tokens' routes are likely to survive",
    .source = "experimental, found on one small model; table calibrated on a 20x256 top-8 block-diffusion model "
              "(example/blockdiff-moe-20x256k8)",
    .options_size = sizeof(surv_options),
    .options = surv_table,
    .class_weight = &surv_weight[0][0],
    .needs = surv_needs,
    .state_bytes = surv_bytes,
    .open = surv_open,
    .retain = surv_retain,
};
