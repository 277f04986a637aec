/* SPDX-License-Identifier: Apache-2.0
 *
 * oled: OLED-MoE's retention rule (arXiv 2609.33385 §4.3). value = p(e), the share of e in the gate scores weighted by the
 * confidence of their tokens, Σ g·ψ(c) / Σ Σ g·ψ(c); 0 for experts that were not activated. tie = last + ½ q, q = the last
 * non-zero p of an earlier event of the layer. Where every weighted score is 0, p is the share of gate mass.
 * Misses are all moved, or split between link and CPU by p and time (§4.4; policies/kit_split.h).
 * oled-full is the same with layer-adaptive capacity (damped) and dispatch by reuse: the whole of the paper.
 */
#include "moesim/policy.h"
#include "policies/kit.h"
#include "policies/kit_adapt.h"
#include "policies/kit_dispatch.h"

enum { OLED_LAG1, OLED_DEFERRED, OLED_HINDSIGHT, OLED_NONE };

typedef struct oled_options {
    kit_dispatch_options dispatch;
    kit_adapt_options adapt;
    int32_t confidence;
} oled_options;

typedef struct oled_state {
    kit_head head;
    int32_t confidence;
    kit_adapt adapt;
    kit_dispatch dispatch;
} oled_state;

enum { OLED_LAST, OLED_Q, OLED_ARRAYS };

/* The experts that were not activated: the long loop, before the short one over the active ones. */
MOESIM_MULTIVERSION
static void oled_dense(const double *restrict last, const double *restrict q, uint32_t experts, double *restrict value,
                       double *restrict tie)
{
    for (uint32_t e = 0; e < experts; e++) {
        value[e] = 0;
        tie[e] = last[e] + 0.5 * q[e];
    }
}

/* Σ g·ψ(c) per active expert and in total, by the option `confidence`; deferred is that of this pass, which must have ended. */
static const double *oled_scores(int32_t confidence, const moesim_event *event, double *total)
{
    const int now = confidence == OLED_HINDSIGHT || confidence == OLED_DEFERRED;
    const double *score = now ? event->hindsight : event->weighted;
    *total = now ? event->hindsight_total : event->weighted_total;
    if (confidence == OLED_NONE || !(*total > 0)) {
        score = event->mass;
        *total = event->mass_total;
    }
    return score;
}

static int oled_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    oled_state *s = state;
    double *last = kit_doubles(&s->head, event->layer, OLED_LAST), *q = kit_doubles(&s->head, event->layer, OLED_Q);
    double total;
    const double *score = oled_scores(s->confidence, event, &total);

    kit_adapt_sample(&s->adapt, event);
    oled_dense(last, q, s->head.experts, keys->value, keys->tie);
    for (uint32_t i = 0; i < event->n_active; i++) {
        const uint32_t e = event->list[i];
        const double p = total > 0 ? score[i] / total : 0;
        last[e] = kit_last(event, i);
        keys->value[e] = p;
        keys->tie[e] = last[e] + 0.5 * q[e];
        q[e] = p > 0 ? p : q[e];
    }
    return 0;
}

/* confidence=deferred splits misses by the scores that exist by then, those of lag 1. */
static int oled_dispatch(void *state, const moesim_event *event, moesim_dispatch *answer)
{
    oled_state *s = state;
    double total, p[KIT_MOST_MISSES];
    const double *score = oled_scores(s->confidence == OLED_DEFERRED ? OLED_LAG1 : s->confidence, event, &total);
    for (uint32_t i = 0; i < event->n_active; i++)
        p[i] = total > 0 ? score[i] / total : 0;
    kit_dispatch_answer(&s->dispatch, event, p, answer);
    return 0;
}

static int oled_boundary(void *state, const moesim_boundary *boundary, moesim_boundary_answer *answer)
{
    oled_state *s = state;
    kit_adapt_answer(&s->adapt, boundary, answer);
    return 0;
}

static uint32_t oled_needs(const void *options)
{
    static const uint32_t reduction[] = {
        [OLED_LAG1] = MOESIM_NEED_CONFIDENCE | MOESIM_NEED_WEIGHTED,
        [OLED_DEFERRED] = MOESIM_NEED_CONFIDENCE | MOESIM_NEED_HINDSIGHT,
        [OLED_HINDSIGHT] = MOESIM_NEED_CONFIDENCE | MOESIM_NEED_HINDSIGHT,
        [OLED_NONE] = 0,
    };
    const oled_options *o = options;
    const uint32_t dispatch = kit_dispatch_needs(&o->dispatch);
    const uint32_t early = dispatch != 0 && o->confidence == OLED_DEFERRED ? MOESIM_NEED_WEIGHTED : 0;
    return MOESIM_NEED_GATE | MOESIM_NEED_MASS | reduction[o->confidence] | dispatch | early;
}

static size_t oled_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(oled_state), OLED_ARRAYS) + kit_adapt_bytes(shape) + kit_dispatch_bytes(shape);
}

/* form: the default of this policy. */
static int oled_open_as(oled_state *s, const moesim_open *open, moesim_start *start, int32_t form)
{
    static const uint32_t traits[] = {
        [OLED_LAG1] = 0, [OLED_DEFERRED] = MOESIM_RETAIN_AT_PASS, [OLED_HINDSIGHT] = MOESIM_NON_CAUSAL, [OLED_NONE] = 0,
    };
    const oled_options *o = open->options;
    kit_open(&s->head, open->shape, sizeof *s, OLED_ARRAYS);
    unsigned char *rest = kit_array(&s->head, open->shape->num_layers, 0);
    const char *wrong = kit_adapt_open(&s->adapt, &o->adapt, form, open, rest);
    if (wrong == NULL)
        wrong = kit_dispatch_open(&s->dispatch, &o->dispatch, open, rest + kit_adapt_bytes(open->shape), start);
    if (wrong != NULL)
        memcpy(start->error, wrong, strlen(wrong) + 1);
    s->confidence = o->confidence;
    start->traits |= traits[o->confidence];
    return wrong != NULL;
}

static int oled_open(void *state, const moesim_open *open, moesim_start *start)
{
    return oled_open_as(state, open, start, KIT_ADAPT_PAPER);
}

static int oled_open_full(void *state, const moesim_open *open, moesim_start *start)
{
    return oled_open_as(state, open, start, KIT_ADAPT_DAMPED);
}

static const char *const oled_confidences[] = { "lag1", "deferred", "hindsight", "none", NULL };

#define OLED_TABLE(adapt_, form_, dispatch_)                                                                              \
    {                                                                                                                     \
        { "confidence", MOESIM_OPTION_CHOICE, offsetof(oled_options, confidence), "lag1", 0, 0, oled_confidences,         \
          "whose confidence weighs the gates: of the previous pass, of this pass when it has ended, of this pass while "  \
          "it runs (not causal), or none" },                                                                              \
        KIT_ADAPT_ROWS(oled_options, adapt_, form_),                                                                      \
        KIT_DISPATCH_ROWS(oled_options, dispatch_),                                                                       \
        { .name = NULL },                                                                                                 \
    }

static const moesim_option oled_table[] = OLED_TABLE("off", "paper", "all");
static const moesim_option oled_full_table[] = OLED_TABLE("on", "damped", "reuse");

#define OLED_POLICY(name_, summary_, source_, table, open_)                                                               \
    {                                                                                                                     \
        .abi = MOESIM_POLICY_ABI, .size = sizeof(moesim_policy), .name = name_, .summary = summary_, .source = source_,   \
        .options_size = sizeof(oled_options), .options = table, .needs = oled_needs, .state_bytes = oled_bytes,           \
        .open = open_, .boundary = oled_boundary, .dispatch = oled_dispatch, .retain = oled_retain,                       \
        .retain_pass = oled_retain,                                                                                       \
    }

const moesim_policy moesim_policy_oled = OLED_POLICY(
    "oled", "keeps the experts with the most confidence-weighted gate score", "OLED-MoE (arXiv 2609.33385) §4.3",
    oled_table, oled_open);
const moesim_policy moesim_policy_oled_full = OLED_POLICY(
    "oled-full", "oled with layer-adaptive capacity and misses split between link and CPU",
    "OLED-MoE (arXiv 2609.33385) §4.3, §4.4", oled_full_table, oled_open_full);
