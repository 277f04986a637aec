/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer-adaptive capacity of OLED-MoE (§4.3): every 5 decode passes each layer gets slots in proportion to w = a·u, the
 * product of its activation ratio |A|/E and its cache utilisation |A∩R|/C(l), both means over the last 5 decode passes.
 *
 * paper:  C(l) = C_total·w/Σw. damped: C(l) in proportion to √(C_old·target), which stops the period-2 swing that the paper
 * form has once C(l) > |A|. Both are clamped to [min(K, C), E], the rest is redistributed, remainders go by size.
 * Inline, like policies/kit.h; no function allocates or fails. One instance, one thread.
 */
#ifndef MOESIM_POLICIES_KIT_ADAPT_H
#define MOESIM_POLICIES_KIT_ADAPT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "moesim/policy.h"

#define KIT_ADAPT_PERIOD 5u

/* ---- proportional split ------------------------------------------------------------------------------------------ */

/* Real shares x[n] = clamp(c·w, lo, hi) with Σx = total: what the clamps cut off or add is spread over the layers that
 * are not clamped, in proportion to w, until nothing changes (at most n rounds: each fixes a layer). Fixing only the side
 * whose clamps weigh more makes the result independent of the order of layers. Needs n·lo ≤ total ≤ n·hi, w ≥ 0;
 * where all free layers have w = 0 they share equally. fixed[n] is scratch. */
static inline void kit_shares(double total, const double *w, uint32_t n, double lo, double hi, double *x,
                              unsigned char *fixed)
{
    memset(fixed, 0, n);
    for (uint32_t round = 0; round < n; round++) {
        double rest = total, sum = 0, change = 0;
        uint32_t open = 0;
        for (uint32_t l = 0; l < n; l++) {
            rest -= fixed[l] ? x[l] : 0;
            sum += fixed[l] ? 0 : w[l];
            open += !fixed[l];
        }
        for (uint32_t l = 0; l < n; l++) {
            if (fixed[l])
                continue;
            x[l] = sum > 0 ? rest * w[l] / sum : rest / open;
            change += x[l] < lo ? lo - x[l] : x[l] > hi ? hi - x[l] : 0;
        }
        int again = 0;
        for (uint32_t l = 0; l < n; l++) {
            const int low = !fixed[l] && x[l] < lo && change >= 0, high = !fixed[l] && x[l] > hi && change <= 0;
            if (low || high) {
                x[l] = low ? lo : hi;
                fixed[l] = 1;
                again = 1;
            }
        }
        if (!again)
            return;
    }
}

/* Rounds shares to integers with Σ = total by largest remainder, ties to the lower layer; none passes hi. x is used up. */
static inline void kit_round_shares(uint64_t total, double *x, uint32_t n, uint32_t hi, uint32_t *out)
{
    uint64_t given = 0;
    for (uint32_t l = 0; l < n; l++) {
        out[l] = (uint32_t)x[l];
        given += out[l];
        x[l] -= out[l];
    }
    for (; given < total; given++) {
        uint32_t best = n;
        for (uint32_t l = 0; l < n; l++)
            if (out[l] < hi && (best == n || x[l] > x[best]))
                best = l;
        if (best == n)
            return;
        out[best]++;
        x[best] = -1;
    }
}

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

enum { KIT_ADAPT_PAPER, KIT_ADAPT_DAMPED };
enum { KIT_ADAPT_LAZY, KIT_ADAPT_EAGER };

/* Part of a policy's options. */
typedef struct kit_adapt_options { int32_t on, form, enforce; } kit_adapt_options;

static const char *const kit_adapt_forms[] = { "paper", "damped", NULL };
static const char *const kit_adapt_enforces[] = { "lazy", "eager", NULL };

/* Three rows of an option table; `options` is the option struct, which has a kit_adapt_options `adapt`. */
#define KIT_ADAPT_ROWS(options, on_, form_)                                                                               \
    { "adapt", MOESIM_OPTION_BOOL, offsetof(options, adapt.on), on_, 0, 1, NULL, "layer-adaptive capacity" },             \
    { "adapt-form", MOESIM_OPTION_CHOICE, offsetof(options, adapt.form), form_, 0, 0, kit_adapt_forms,                    \
      "literal rule, or damped against its period-2 swing" },                                                            \
    { "enforce", MOESIM_OPTION_CHOICE, offsetof(options, adapt.enforce), "lazy", 0, 0, kit_adapt_enforces,                \
      "a shrunk layer gives slots up after its next event, or at once" }

/* Part of a policy's state. */
typedef struct kit_adapt {
    kit_adapt_options options;
    uint64_t done;               /* decode passes ended at the last re-split */
    uint32_t layers, experts;
    uint32_t lo;                 /* least slots of a layer: min(K, C) */
    uint64_t total;              /* C_total; 0: nothing to divide */
    uint64_t offset;             /* bytes from here to the arrays */
} kit_adapt;

/* Arrays of [layers]: Σ|A|/E and Σ|A∩R|/C(l) since the last re-split; the others are scratch, FIXED holds bytes. */
enum { KIT_ADAPT_ACTIVATION, KIT_ADAPT_UTILISATION, KIT_ADAPT_WEIGHT, KIT_ADAPT_SHARE, KIT_ADAPT_FIXED, KIT_ADAPT_ARRAYS };

static inline double *kit_adapt_array(kit_adapt *a, uint32_t which)
{
    return (double *)((unsigned char *)a + a->offset) + (size_t)which * a->layers;
}

/* Bytes of the arrays, a multiple of 8. */
static inline size_t kit_adapt_bytes(const moesim_shape *shape)
{
    return (size_t)shape->num_layers * KIT_ADAPT_ARRAYS * sizeof(double);
}

/* memory: kit_adapt_bytes, zeroed, aligned to 8, in the same block as a. form: the default of the policy, which may stand
 * without adapt=on. Returns 0, or what is wrong with the options. */
static inline const char *kit_adapt_open(kit_adapt *a, const kit_adapt_options *options, int32_t form, const moesim_open *open,
                                         void *memory)
{
    const moesim_shape *shape = open->shape;
    a->options = *options;
    if (!options->on && options->form != form)
        return "adapt-form takes effect only with adapt=on";
    if (!options->on && options->enforce != KIT_ADAPT_LAZY)
        return "enforce takes effect only with adapt=on";
    if (options->on && open->global_scope)
        return "adapt=on divides slots between layers, of which scope global has none; leave it off";
    if (!options->on)
        return NULL;
    a->layers = shape->num_layers;
    a->experts = shape->num_experts;
    for (uint32_t l = 0; l < a->layers; l++)
        a->total += open->slots[l];
    const uint64_t mean = a->total / a->layers;
    a->lo = shape->top_k < mean ? shape->top_k : (uint32_t)mean;
    a->offset = (uint64_t)((unsigned char *)memory - (unsigned char *)a);
    return NULL;
}

static inline void kit_adapt_sample(kit_adapt *a, const moesim_event *event)
{
    if (!a->options.on || event->kind == MOESIM_PREFILL || event->slots == 0)
        return;
    kit_adapt_array(a, KIT_ADAPT_ACTIVATION)[event->layer] += (double)event->n_active / a->experts;
    kit_adapt_array(a, KIT_ADAPT_UTILISATION)[event->layer] += (double)event->n_hits / event->slots;
}

/* Re-splits when another 5 decode passes have ended; slots[layers] is changed in place. Without any weight the split stays. */
static inline void kit_adapt_split(kit_adapt *a, uint64_t decode_passes, int damped, uint32_t *slots)
{
    if (decode_passes == a->done || decode_passes % KIT_ADAPT_PERIOD != 0 || a->total == 0)
        return;
    double *activation = kit_adapt_array(a, KIT_ADAPT_ACTIVATION), *utilisation = kit_adapt_array(a, KIT_ADAPT_UTILISATION);
    double *weight = kit_adapt_array(a, KIT_ADAPT_WEIGHT), *share = kit_adapt_array(a, KIT_ADAPT_SHARE), sum = 0;
    for (uint32_t l = 0; l < a->layers; l++) {
        const double w = activation[l] / KIT_ADAPT_PERIOD * (utilisation[l] / KIT_ADAPT_PERIOD);
        weight[l] = damped ? sqrt(slots[l] * w) : w;
        sum += w;
    }
    a->done = decode_passes;
    memset(activation, 0, a->layers * sizeof *activation);
    memset(utilisation, 0, a->layers * sizeof *utilisation);
    if (sum > 0) {
        unsigned char *fixed = (unsigned char *)kit_adapt_array(a, KIT_ADAPT_FIXED);
        kit_shares((double)a->total, weight, a->layers, a->lo, a->experts, share, fixed);
        kit_round_shares(a->total, share, a->layers, a->experts, slots);
    }
}

/* The boundary callback of a policy that adapts. */
static inline void kit_adapt_answer(kit_adapt *a, const moesim_boundary *boundary, moesim_boundary_answer *answer)
{
    if (!a->options.on)
        return;
    answer->eager = a->options.enforce == KIT_ADAPT_EAGER;
    kit_adapt_split(a, boundary->decode_passes, a->options.form == KIT_ADAPT_DAMPED, answer->slots);
}

#endif
