/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk over an instance. Scratch of the event in flight is left out: between two windows there is none.
 */
#include "sim/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "sim/instance.h"

typedef struct region { void *data; size_t bytes; } region;

static moesim_code visit_all(moesim_visitor *v, const region *list, size_t n, moesim_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].bytes > 0 && v->visit(v, list[i].data, list[i].bytes, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

#define VISIT(v, list, err) visit_all(v, list, sizeof(list) / sizeof *(list), err)
#define ONE(x) { &(x), sizeof(x) }

/* Rows of the step before, which the next boundary shows; they hold no pointers. */
static moesim_code visit_rows(moesim_instance *in, moesim_visitor *v, moesim_error *err)
{
    if (v->visit(v, &in->num_ended, sizeof in->num_ended, err) != MOESIM_OK)
        return err->code;
    if (v->restoring && in->num_ended > in->ended_capacity) {
        moesim_row *grown = realloc(in->ended, in->num_ended * sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "the rows of a pass", in->num_ended * sizeof *grown);
        in->ended = grown;
        in->ended_capacity = in->num_ended;
    }
    return in->num_ended > 0 ? v->visit(v, in->ended, in->num_ended * sizeof *in->ended, err) : MOESIM_OK;
}

moesim_code moesim_instance_visit(moesim_instance *in, moesim_visitor *v, moesim_error *err)
{
    const size_t layers = in->shape.num_layers, sets = layers * in->shape.words * 8u;
    const size_t keys = (in->key_stride != 0 ? layers * in->key_stride : (size_t)in->shape.words * 64u) * sizeof(double);
    const size_t state =
        in->policy->state_bytes != NULL ? in->policy->state_bytes(&in->shape, in->config.options) : 0;
    const region list[] = {
        {in->state, state},
        {in->resident, sets},
        {in->landed, sets},
        {in->dropped, sets},
        {in->value, keys},
        {in->tie, keys},
        {in->hint, 2 * layers * sizeof *in->hint},
        {in->slots, layers * sizeof *in->slots},
        {in->slots_1, layers * sizeof *in->slots_1},
        {in->slots_2, layers * sizeof *in->slots_2},
        {in->swings, layers * sizeof *in->swings},
        {in->age, in->age != NULL ? in->age_depth * sets : 0},
        {in->ages, in->age != NULL ? layers * sizeof *in->ages : 0},
        ONE(in->loose),
        ONE(in->slot_bytes),
        ONE(in->most_slot_bytes),
        ONE(in->overshoot),
        ONE(in->decode_ended),
        ONE(in->capacity_changes),
        ONE(in->oscillations),
        ONE(in->accesses),
        ONE(in->refused),
        ONE(in->observed_checked),
        ONE(in->observed_wrong),
        ONE(in->wrong_pass),
        ONE(in->wrong_index),
    };
    if (in->global != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "a run in scope global keeps no checkpoint; leave it out");
    if (VISIT(v, list, err) != MOESIM_OK || visit_rows(in, v, err) != MOESIM_OK ||
        moesim_account_visit(in, v, err) != MOESIM_OK)
        return err->code;
    if (in->prefetch != NULL && moesim_prefetch_visit(in, v, err) != MOESIM_OK)
        return err->code;
    if (in->pool != NULL && moesim_pooled_visit(in, v, err) != MOESIM_OK)
        return err->code;
    return in->timer != NULL ? moesim_timer_visit(in->timer, v, err) : MOESIM_OK;
}

/* ---- the account ----------------------------------------------------------------------------------------------------- */

static moesim_code visit_owner(moesim_owner *o, moesim_visitor *v, moesim_error *err)
{
    const region list[] = {ONE(o->refs), ONE(o->n)};
    if (VISIT(v, list, err) != MOESIM_OK)
        return err->code;
    if (v->restoring && o->n > o->capacity) {
        uint32_t *grown = realloc(o->index, o->n * sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "the owners of transfers", o->n * sizeof *grown);
        o->index = grown;
        o->capacity = o->n;
    }
    return o->n > 0 ? v->visit(v, o->index, o->n * sizeof *o->index, err) : MOESIM_OK;
}

static moesim_code visit_owners(moesim_account *a, moesim_visitor *v, moesim_error *err)
{
    uint32_t n = a->num_owners;
    if (v->visit(v, &n, sizeof n, err) != MOESIM_OK)
        return err->code;
    if (v->restoring && n > a->num_owners) {
        moesim_owner *grown = realloc(a->owner, n * sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "the owners of transfers", n * sizeof *grown);
        memset(grown + a->num_owners, 0, (n - a->num_owners) * sizeof *grown);
        a->owner = grown;
        a->num_owners = n;
    }
    for (uint32_t i = 0; i < n; i++)
        if (visit_owner(&a->owner[i], v, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

/* Histograms of |A| by slots, as far as they exist; afterwards every layer counts in that of its slots. */
static moesim_code visit_histograms(moesim_instance *in, moesim_visitor *v, moesim_error *err)
{
    moesim_account *a = &in->account;
    const size_t bytes = (a->experts + (size_t)1) * sizeof(uint64_t);
    for (uint32_t c = 0; c <= a->experts; c++) {
        bool made = a->by_slots[c] != NULL;
        if (v->visit(v, &made, sizeof made, err) != MOESIM_OK)
            return err->code;
        if (made && a->by_slots[c] == NULL &&
            moesim_arena_take(in->arena, 1, bytes, "a histogram of |A|", (void **)&a->by_slots[c], err) != MOESIM_OK)
            return err->code;
        if (made && v->visit(v, a->by_slots[c], bytes, err) != MOESIM_OK)
            return err->code;
    }
    return v->restoring ? moesim_account_slots(a, in->arena, in->slots, err) : MOESIM_OK;
}

moesim_code moesim_account_visit(moesim_instance *in, moesim_visitor *v, moesim_error *err)
{
    moesim_account *a = &in->account;
    uint32_t requests = a->num_requests;
    const region list[] = {
        {a->bits, (size_t)a->layers * 3u * a->words * sizeof *a->bits},
        {a->owner_of, (size_t)a->layers * a->experts * sizeof *a->owner_of},
        {a->layer, a->layers * sizeof *a->layer},
        ONE(a->mask),
        ONE(a->current),
        ONE(a->previous),
        ONE(a->previous_moved),
        ONE(a->total),
        ONE(a->evictions),
        ONE(a->insertions),
        ONE(a->accesses),
        ONE(a->hits),
        ONE(a->read_bytes),
        ONE(a->used),
        ONE(requests),
    };
    if (VISIT(v, list, err) != MOESIM_OK || visit_owners(a, v, err) != MOESIM_OK || visit_histograms(in, v, err) != MOESIM_OK ||
        moesim_account_reserve(a, requests, err) != MOESIM_OK)
        return err->code;
    return requests > 0 ? v->visit(v, a->request, requests * sizeof *a->request, err) : MOESIM_OK;
}
