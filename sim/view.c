/* SPDX-License-Identifier: Apache-2.0
 *
 * What a policy is shown: the parts of the window that it declared, and nothing that does not exist yet.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/instance.h"

static moesim_code row_room(moesim_row **row, size_t *capacity, size_t n, moesim_error *err)
{
    if (n <= *capacity)
        return MOESIM_OK;
    const size_t more = n > *capacity * 2 ? n : *capacity * 2;
    moesim_row *grown = realloc(*row, more * sizeof *grown);
    if (grown == NULL)
        return moesim_fail_nomem(err, "the rows of a pass", more * sizeof *grown);
    *row = grown;
    *capacity = more;
    return MOESIM_OK;
}

/* Copies rows, leaving out routes and, unless declared, confidences. */
static void copy_rows(const moesim_instance *in, moesim_row *out, const moesim_row *row, const float *confidence, size_t n)
{
    const bool shown = (in->needs & MOESIM_NEED_CONFIDENCE) != 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = row[i];
        out[i].confidence = !shown ? NAN : confidence != NULL ? confidence[i] : row[i].confidence;
        out[i].expert = NULL;
        out[i].gate = out[i].prob = NULL;
        out[i].previous = NULL;
    }
}

moesim_code moesim_view_step(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    const bool rows = (in->needs & MOESIM_NEED_ROWS) != 0;
    if (rows || in->policy->boundary != NULL) {
        if (row_room(&in->row, &in->row_capacity, step->num_rows, err) != MOESIM_OK)
            return err->code;
        copy_rows(in, in->row, w->row + step->row, NULL, step->num_rows);
    }
    moesim_event *v = &in->base;
    memset(v, 0, sizeof *v);
    v->size = sizeof *v;
    v->clock = step->clock;
    v->decode_passes = step->decode_passes;
    v->kind = step->kind;
    v->first = step->first;
    v->num_rows = step->num_rows;
    v->num_masked = step->num_masked;
    v->row = rows ? in->row : NULL;
    return MOESIM_OK;
}

/* Routes of the rows at one layer. */
static void point_rows(moesim_instance *in, const moesim_window *w, const moesim_turn *turn, size_t index)
{
    const moesim_step *step = &w->step[index / w->num_layers];
    const moesim_row *from = w->row + step->row;
    const size_t ids = (size_t)turn->layer * w->top_k, probs = (size_t)turn->layer * w->num_experts;
    const bool gate = (in->needs & MOESIM_NEED_GATE) != 0, prob = (in->needs & MOESIM_NEED_PROB) != 0;
    const bool previous = (in->needs & MOESIM_NEED_PREVIOUS) != 0;
    for (uint32_t i = 0; i < step->num_rows; i++) {
        in->row[i].expert = from[i].expert + ids;
        in->row[i].gate = gate && from[i].gate != NULL ? from[i].gate + ids : NULL;
        in->row[i].prob = prob && from[i].prob != NULL ? from[i].prob + probs : NULL;
        in->row[i].previous = previous && from[i].previous != NULL ? from[i].previous + ids : NULL;
    }
}

static void point_reductions(moesim_event *v, const moesim_window *w, uint32_t needs, size_t begin, size_t index)
{
    if ((needs & MOESIM_NEED_COUNTS) != 0)
        v->count = w->count + begin;
    if ((needs & MOESIM_NEED_MASS) != 0) {
        v->mass = w->mass + begin;
        v->mass_total = w->mass_total[index];
    }
    if ((needs & MOESIM_NEED_WEIGHTED) != 0) {
        v->weighted = w->weighted + begin;
        v->weighted_total = w->weighted_total[index];
    }
    if ((needs & MOESIM_NEED_CLASS) != 0) {
        v->class_sum = w->class_sum + begin;
        v->masked = w->masked + begin;
    }
}

/* This pass's own confidences exist when it has ended; before that only for what calls itself non-causal. */
static void point_hindsight(const moesim_instance *in, moesim_event *v, const moesim_window *w, size_t begin, size_t index)
{
    if ((in->needs & MOESIM_NEED_HINDSIGHT) == 0 || (!in->pass_ended && (in->traits & MOESIM_NON_CAUSAL) == 0))
        return;
    v->hindsight = w->hindsight + begin;
    v->hindsight_total = w->hindsight_total[index];
}

void moesim_view_event(moesim_instance *in, const moesim_window *w, const moesim_turn *turn, size_t index)
{
    moesim_event *v = &in->view;
    const size_t begin = w->list_begin[index];
    *v = in->base;
    v->layer = turn->layer;
    v->slots = in->slots[turn->layer];
    v->n_active = turn->n_active;
    v->n_hits = turn->n_hits;
    v->n_misses = turn->n_misses;
    v->resident = turn->before;
    v->active = turn->active;
    v->list = w->list + begin;
    point_reductions(v, w, in->needs | (in->config.costs != NULL ? MOESIM_NEED_COUNTS : 0u), begin, index);
    point_hindsight(in, v, w, begin, index);
    if ((in->traits & MOESIM_CLAIRVOYANT) != 0) {
        v->next_use = w->next_use + begin;
        v->next_active = index + w->num_layers < (size_t)w->num_steps * w->num_layers
                             ? w->active + (index + w->num_layers) * w->words
                             : w->next_active + (size_t)turn->layer * w->words;
    }
    if (in->params.scope == MOESIM_SCOPE_GLOBAL)
        v->touch = w->touch + begin;
    if ((in->needs & MOESIM_NEED_ROWS) != 0)
        point_rows(in, w, turn, index);
}

moesim_code moesim_view_keep(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    if (row_room(&in->ended, &in->ended_capacity, step->num_rows, err) != MOESIM_OK)
        return err->code;
    copy_rows(in, in->ended, w->row + step->row, w->produced != NULL ? w->produced + step->row : NULL, step->num_rows);
    in->num_ended = step->num_rows;
    return MOESIM_OK;
}

void moesim_view_poison(moesim_instance *in)
{
#ifndef NDEBUG
    memset(&in->view, 0xdb, sizeof in->view);
    for (uint32_t i = 0; i < in->base.num_rows && in->row_capacity != 0; i++) {
        in->row[i].expert = in->row[i].previous = NULL;
        in->row[i].gate = in->row[i].prob = NULL;
    }
#else
    (void)in;
#endif
}
