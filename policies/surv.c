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
 *
 * form=full replaces S by one that also reads confidence (a masked row is committed by this pass with probability q, known
 * from the confidence that the previous pass gave it) and ghosts (experts that a row held in the previous pass and dropped
 * return now and then).
 *
 * Misses are all moved, or split as oled does (policies/kit_split.h) with the share of an expert in the values of all active
 * experts in place of p.
 */
#include <math.h>

#include "moesim/policy.h"
#include "policies/kit.h"
#include "policies/kit_dispatch.h"

enum { SURV_LITE, SURV_FULL };
enum { SURV_AUTO, SURV_COMMIT, SURV_MASKED };

typedef struct surv_options {
    kit_dispatch_options dispatch;
    int32_t form, boundary;
} surv_options;

typedef struct surv_state {
    kit_head head;
    surv_options options;
    kit_dispatch dispatch;
    uint32_t top_k;
} surv_state;

/* Per layer. Of SURV_ENGINE only the first element is used, as a struct surv_engine. form=full: SURV_S is S by expert,
 * SURV_SUM the same by place in the list of active experts. */
enum { SURV_F, SURV_K, SURV_H, SURV_LAST, SURV_ENGINE, SURV_S, SURV_SUM, SURV_ARRAYS };

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

/* −ln(1 − survival) by rank for form=full. Masked rows: survival (1 − q) M + q N, M that of rows that stay masked, N that of
 * rows committed by this pass; q by the bin of confidence, then the same bins for the most confident masked row of its
 * request, then a row without a previous pass: .02 .04 .11 .16 .26 .55 | .68 .54 .64 .69 .68 .84 | .09. Last J and L. */
#define SURV_BINS 6
enum { SURV_TOP = SURV_BINS, SURV_NO_PASS = 2 * SURV_BINS, SURV_J, SURV_L, SURV_ROWS };

static const double surv_full_weight[SURV_ROWS][8] = {
    { 3.0993, 2.5567, 2.1684, 1.8687, 1.5989, 1.3344, 1.0558, 0.7411 },
    { 2.8975, 2.4178, 2.0658, 1.7919, 1.5407, 1.2923, 1.0277, 0.7253 },
    { 2.4031, 2.0435, 1.7721, 1.5618, 1.3600, 1.1575, 0.9351, 0.6718 },
    { 2.1573, 1.8421, 1.6050, 1.4248, 1.2484, 1.0713, 0.8738, 0.6353 },
    { 1.7955, 1.5312, 1.3368, 1.1968, 1.0568, 0.9184, 0.7615, 0.5660 },
    { 1.1641, 0.9574, 0.8167, 0.7323, 0.6476, 0.5739, 0.4930, 0.3886 },
    { 0.9736, 0.7786, 0.6496, 0.5782, 0.5074, 0.4512, 0.3926, 0.3183 },
    { 1.1804, 0.9725, 0.8308, 0.7452, 0.6592, 0.5840, 0.5011, 0.3942 },
    { 1.0285, 0.8303, 0.6981, 0.6232, 0.5485, 0.4874, 0.4224, 0.3394 },
    { 0.9603, 0.7661, 0.6379, 0.5673, 0.4974, 0.4423, 0.3853, 0.3131 },
    { 0.9736, 0.7786, 0.6496, 0.5782, 0.5074, 0.4512, 0.3926, 0.3183 },
    { 0.7801, 0.5951, 0.4762, 0.4164, 0.3580, 0.3182, 0.2815, 0.2380 },
    { 2.5212, 2.1369, 1.8476, 1.6223, 1.4084, 1.1942, 0.9607, 0.6868 },
    { 4.6052, 3.6119, 3.1011, 2.5903, 2.1542, 1.7661, 1.3704, 0.9442 },
    { 6.9078, 5.5215, 4.9618, 4.3428, 3.7297, 3.1942, 2.5010, 1.5799 },
};

static const double surv_bin_end[SURV_BINS - 1] = { 0.1, 0.2, 0.4, 0.6, 0.8 };

/* −ln(1 − g), g = .12, .025, .145 the share of dropped experts that the row takes up again, by class. */
static const double surv_ghost[3] = { 0.1278, 0.0253, 0.1567 };

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
    if (s->options.boundary == SURV_COMMIT || event->num_masked > 1)
        return 0;
    return s->options.boundary == SURV_MASKED || (engine->none && !engine->commits);
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

/* ---- S of form=full -------------------------------------------------------------------------------------------- */

/* Index of the most confident masked row of the request that row `begin` belongs to (its rows are neighbours); *end is set
 * behind its last row. UINT32_MAX: none has a confidence. */
static uint32_t surv_top(const moesim_event *event, uint32_t begin, uint32_t *end)
{
    uint32_t top = UINT32_MAX, r = begin;
    for (; r < event->num_rows && event->row[r].request == event->row[begin].request; r++) {
        const moesim_row *row = &event->row[r];
        if (row->input != MOESIM_ROW_MASKED || isnan(row->confidence))
            continue;
        if (top == UINT32_MAX || row->confidence > event->row[top].confidence)
            top = r;
    }
    *end = r;
    return top;
}

static const double *surv_row_weight(const moesim_row *row, int is_top)
{
    uint32_t bin = 0;
    if (row->input != MOESIM_ROW_MASKED)
        return surv_full_weight[row->input == MOESIM_ROW_JUST ? SURV_J : SURV_L];
    if (isnan(row->confidence))
        return surv_full_weight[SURV_NO_PASS];
    while (bin < SURV_BINS - 1 && row->confidence >= surv_bin_end[bin])
        bin++;
    return surv_full_weight[bin + (is_top ? SURV_TOP : 0)];
}

static int surv_holds(const uint16_t *ids, uint32_t k, uint16_t id)
{
    int found = 0;
    for (uint32_t i = 0; i < k; i++)
        found |= ids[i] == id;
    return found;
}

static void surv_row_add(const surv_state *s, const moesim_row *row, const double *weight, double *sum)
{
    const uint32_t k = s->top_k;
    for (uint32_t i = 0; i < k; i++)
        if (row->expert[i] != MOESIM_NO_ROUTE)
            sum[row->expert[i]] += weight[i < 7 ? i : 7];
    for (uint32_t i = 0; row->previous != NULL && i < k; i++)
        if (row->previous[i] != MOESIM_NO_ROUTE && !surv_holds(row->expert, k, row->previous[i]))
            sum[row->previous[i]] += surv_ghost[row->input];
}

/* Fills S of the layer and returns it by place in the list. */
static const double *surv_sums(surv_state *s, const moesim_event *event)
{
    double *sum = kit_doubles(&s->head, event->layer, SURV_S), *out = kit_doubles(&s->head, event->layer, SURV_SUM);
    memset(sum, 0, s->head.experts * sizeof *sum);
    for (uint32_t r = 0, end = 0; r < event->num_rows;) {
        const uint32_t top = surv_top(event, r, &end);
        for (; r < end; r++)
            surv_row_add(s, &event->row[r], surv_row_weight(&event->row[r], r == top), sum);
    }
    for (uint32_t i = 0; i < event->n_active; i++)
        out[i] = sum[event->list[i]];
    return out;
}

/* Ghosts that nobody uses in this pass. */
static void surv_ghosts(surv_state *s, const moesim_event *event, double *value)
{
    const double *sum = kit_doubles(&s->head, event->layer, SURV_S);
    for (uint32_t e = 0; e < s->head.experts; e++)
        value[e] += kit_test(event->active, e) ? 0 : sum[e];
}

/* ---- the value -------------------------------------------------------------------------------------------------- */

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

static void surv_active(surv_arrays a, surv_step step, const moesim_event *event, const double *sum,
                        double *restrict value, double *restrict tie)
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
        value[e] = step.route * sum[i] + step.weight * (new_h + new_k) + 0.3 * new_f;
        tie[e] = last[e] = kit_last(event, i);
    }
}

static surv_arrays surv_of(surv_state *s, uint32_t layer)
{
    return (surv_arrays){
        kit_doubles(&s->head, layer, SURV_F), kit_doubles(&s->head, layer, SURV_K),
        kit_doubles(&s->head, layer, SURV_H), kit_doubles(&s->head, layer, SURV_LAST),
    };
}

/* The values that retain is going to give the active experts, as shares of their sum; nothing is updated yet. */
static int surv_dispatch(void *state, const moesim_event *event, moesim_dispatch *answer)
{
    surv_state *s = state;
    surv_engine engine = *(const surv_engine *)kit_array(&s->head, event->layer, SURV_ENGINE);
    const int leaving = surv_leaving(s, &engine, event), full = s->options.form == SURV_FULL && !leaving;
    const surv_step step = surv_plan(event, leaving);
    const double *sum = full ? surv_sums(s, event) : event->class_sum;
    const surv_arrays a = surv_of(s, event->layer);
    double p[KIT_MOST_MISSES], total = 0;
    for (uint32_t i = 0; i < event->n_active; i++) {
        const uint32_t e = event->list[i];
        const double masked = event->masked[i], k = step.gain_k * (masked < 4 ? masked : 4);
        p[i] = step.route * sum[i] + step.weight * (step.keep_h * a.h[e] + step.gain_h + step.keep_k * a.k[e] + k) +
               0.3 * (step.keep_f * a.f[e] + step.gain_f);
        total += p[i];
    }
    for (uint32_t i = 0; i < event->n_active; i++)
        p[i] = total > 0 ? p[i] / total : 0;
    kit_dispatch_answer(&s->dispatch, event, p, answer);
    return 0;
}

static int surv_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    surv_state *s = state;
    surv_engine *engine = kit_array(&s->head, event->layer, SURV_ENGINE);
    const surv_arrays a = surv_of(s, event->layer);
    const int leaving = surv_leaving(s, engine, event), full = s->options.form == SURV_FULL && !leaving;
    const surv_step step = surv_plan(event, leaving);

    for (uint32_t e = 0; step.gain_h > 0 && e < s->head.experts; e++)
        a.h[e] = kit_fade(a.h[e], step.keep_h);
    surv_dense(a.f, a.k, a.h, a.last, &step, s->head.experts, keys->value, keys->tie);
    surv_active(a, step, event, full ? surv_sums(s, event) : event->class_sum, keys->value, keys->tie);
    if (full)
        surv_ghosts(s, event, keys->value);
    return 0;
}

static uint32_t surv_needs(const void *options)
{
    const surv_options *o = options;
    const uint32_t rows = MOESIM_NEED_ROWS | MOESIM_NEED_PREVIOUS | MOESIM_NEED_CONFIDENCE;
    return MOESIM_NEED_CLASS | (o->form == SURV_FULL ? rows : 0) | kit_dispatch_needs(&o->dispatch);
}

static size_t surv_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(surv_state), SURV_ARRAYS) + kit_dispatch_bytes(shape);
}

static int surv_open(void *state, const moesim_open *open, moesim_start *start)
{
    surv_state *s = state;
    kit_open(&s->head, open->shape, sizeof *s, SURV_ARRAYS);
    s->options = *(const surv_options *)open->options;
    s->top_k = open->shape->top_k;
    const char *wrong = kit_dispatch_open(&s->dispatch, &s->options.dispatch, open,
                                          kit_array(&s->head, open->shape->num_layers, 0), start);
    if (wrong != NULL)
        memcpy(start->error, wrong, strlen(wrong) + 1);
    return wrong != NULL;
}

static const char *const surv_forms[] = { "lite", "full", NULL };
static const char *const surv_boundaries[] = { "auto", "commit", "masked", NULL };

static const moesim_option surv_table[] = {
    { "form", MOESIM_OPTION_CHOICE, offsetof(surv_options, form), "lite", 0, 0, surv_forms,
      "full also reads confidences, and experts that a row has just dropped" },
    { "boundary", MOESIM_OPTION_CHOICE, offsetof(surv_options, boundary), "auto", 0, 0, surv_boundaries,
      "what ends a block: a commit pass, a pass with at most one masked input row, or auto: the latter once a block has "
      "opened without a commit pass before it" },
    KIT_DISPATCH_ROWS(surv_options, "all"),
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
    .dispatch = surv_dispatch,
    .retain = surv_retain,
};
