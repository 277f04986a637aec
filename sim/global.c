/* SPDX-License-Identifier: Apache-2.0
 *
 * Scope global: one budget in bytes over all layers. Every miss is admitted; after the event the resident with the lowest
 * (value, tie), of any layer but never of the current event, leaves until the bytes fit, never skipping to a smaller one. Of
 * equals the expert of the higher layer leaves, within a layer the higher id. Residents of other layers keep their last keys.
 */
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "sim/instance.h"
#include "sim/plan.h"
#include "sim/settle.h"

#define NOBODY UINT32_MAX

/* The resident of a layer that leaves first. */
typedef struct candidate {
    double value, tie;
    uint32_t expert;             /* NOBODY: none */
} candidate;

struct moesim_global {
    candidate *worst;            /* [M] */
    uint64_t bytes;              /* resident */
};

static candidate worst_of(const moesim_instance *in, uint32_t layer, const uint64_t *spared)
{
    const uint32_t words = in->shape.words;
    const uint64_t *resident = in->resident + (size_t)layer * words;
    const double *value = in->value + layer * in->key_stride, *tie = in->tie + layer * in->key_stride;
    candidate worst = {0, 0, NOBODY};
    MOESIM_EACH_BIT(e, resident, words, {
        if (spared != NULL && moesim_bit_test(spared, e))
            continue;
        if (worst.expert == NOBODY || value[e] < worst.value || (!(value[e] > worst.value) && tie[e] <= worst.tie))
            worst.expert = e;
        worst.value = value[worst.expert];
        worst.tie = tie[worst.expert];
    });
    return worst;
}

moesim_code moesim_global_init(moesim_instance *in, moesim_error *err)
{
    struct moesim_global *g;
    const size_t layers = in->shape.num_layers;
    if (moesim_arena_take(in->arena, 1, sizeof *g, "the global cache", (void **)&g, err) != MOESIM_OK ||
        moesim_arena_take(in->arena, layers, sizeof *g->worst, "the global cache", (void **)&g->worst, err) != MOESIM_OK)
        return err->code;
    in->global = g;
    for (uint32_t l = 0; l < in->shape.num_layers; l++) {
        g->bytes += moesim_bits_count(in->resident + (size_t)l * in->shape.words, in->shape.words) * in->shape.expert_bytes[l];
        g->worst[l] = worst_of(in, l, NULL);
    }
    return MOESIM_OK;
}

static moesim_code ask_keys(moesim_instance *in, const moesim_turn *turn, moesim_error *err)
{
    double *value = in->value + turn->layer * in->key_stride, *tie = in->tie + turn->layer * in->key_stride;
    for (size_t e = 0; e < in->key_stride; e++) {
        value[e] = NAN;
        tie[e] = 0;
    }
    moesim_keys keys = {
        .size = sizeof keys,
        .n_candidates = moesim_bits_count(turn->candidates, in->shape.words),
        .candidates = turn->candidates,
        .moved = turn->moved,
        .landed = in->landed + (size_t)turn->layer * in->shape.words,
        .value = value,
        .tie = tie,
    };
    if (in->policy->retain(in->state, &in->view, &keys) != 0)
        return moesim_plan_stopped(in, "retain", in->base.clock, err);
    MOESIM_EACH_BIT(e, turn->candidates, in->shape.words, {
        if (isnan(value[e]) || isnan(tie[e]))
            return moesim_plan_nan(in, turn, value, tie, err);
    });
    return MOESIM_OK;
}

/* Layer whose worst leaves first, or NOBODY. */
static uint32_t pick(const moesim_instance *in, uint32_t current, const candidate *own)
{
    const candidate *best = NULL;
    uint32_t layer = NOBODY;
    for (uint32_t l = 0; l < in->shape.num_layers; l++) {
        const candidate *c = l == current ? own : &in->global->worst[l];
        if (c->expert == NOBODY)
            continue;
        if (best == NULL || c->value < best->value || (!(c->value > best->value) && c->tie <= best->tie)) {
            best = c;
            layer = l;
        }
    }
    return layer;
}

/* Evicts until the bytes fit or only the current event is left. Residency of the layer already holds the event. */
static void fit(moesim_instance *in, const moesim_turn *turn)
{
    struct moesim_global *g = in->global;
    candidate own = worst_of(in, turn->layer, turn->active);
    while (g->bytes > in->config.cache_bytes) {
        const uint32_t l = pick(in, turn->layer, &own);
        if (l == NOBODY)
            break;
        g->bytes -= in->shape.expert_bytes[l];
        if (l == turn->layer) {
            moesim_bit_clear(turn->keep, own.expert);
            moesim_bit_clear(in->resident + (size_t)l * in->shape.words, own.expert);
            own = worst_of(in, l, turn->active);
        } else {
            moesim_evict(in, l, g->worst[l].expert);
            g->worst[l] = worst_of(in, l, NULL);
        }
    }
    g->worst[turn->layer] = worst_of(in, turn->layer, NULL);
    if (g->bytes > in->config.cache_bytes && g->bytes - in->config.cache_bytes > in->overshoot)
        in->overshoot = g->bytes - in->config.cache_bytes;
}

/* --check-observed: what the recording system found resident, routing by routing; a repeat has the class of the first. */
static void compare_observed(moesim_instance *in, const moesim_window *w, const moesim_step *step, const moesim_turn *turn)
{
    const uint32_t k = w->top_k, layers = w->num_layers;
    for (uint32_t r = 0; r < step->num_rows; r++) {
        const uint16_t *expert = w->row[step->row + r].expert + (size_t)turn->layer * k;
        const uint8_t *seen = w->residency[step->row + r] + (size_t)turn->layer * k;
        for (uint32_t s = 0; s < k; s++) {
            if (expert[s] == MOESIM_NO_ROUTE)
                continue;
            const uint64_t index = ((uint64_t)r * layers + turn->layer) * k + s;
            in->observed_checked++;
            if (moesim_bit_test(turn->before, expert[s]) == (seen[s] != 0))
                continue;
            if (in->observed_wrong++ == 0 || (step->pass == in->wrong_pass && index < in->wrong_index)) {
                in->wrong_pass = step->pass;
                in->wrong_index = index;
            }
        }
    }
}

static moesim_code global_event(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer,
                                moesim_error *err)
{
    const uint32_t words = in->shape.words;
    const size_t index = (size_t)(step - w->step) * w->num_layers + layer;
    uint64_t *resident = in->resident + (size_t)layer * words;
    moesim_turn *turn = &in->turn[0];
    uint32_t n = 0;
    turn->layer = layer;
    turn->active = w->active + index * words;
    turn->n_active = w->list_begin[index + 1] - w->list_begin[index];
    for (uint32_t i = 0; i < words; i++) {
        turn->before[i] = resident[i];
        turn->misses[i] = turn->moved[i] = turn->active[i] & ~resident[i];
        turn->candidates[i] = turn->keep[i] = resident[i] | turn->misses[i];
        turn->cpu[i] = 0;
    }
    MOESIM_EACH_BIT(e, turn->misses, words, { turn->order[n++] = (uint16_t)e; });
    turn->n_misses = turn->n_moved = n;
    turn->n_hits = turn->n_active - n;
    moesim_view_event(in, w, turn, index);
    moesim_tally_event(&in->account, layer, 0, turn->n_active, turn->n_hits, n);
    if (in->params.check_observed)
        compare_observed(in, w, step, turn);
    if (ask_keys(in, turn, err) != MOESIM_OK)
        return err->code;
    memcpy(resident, turn->keep, words * sizeof *resident);
    in->global->bytes += n * in->shape.expert_bytes[layer];
    fit(in, turn);
    moesim_settle(&in->account, layer, words, turn->active, turn->before, turn->moved, turn->keep);
    moesim_view_poison(in);
    return in->logs ? moesim_log_event(in, w, step, turn, err) : MOESIM_OK;
}

moesim_code moesim_step_global(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    for (uint32_t l = 0; l < w->num_layers; l++)
        if (global_event(in, w, step, l, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}
