/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes to steps, for the witness.
 */
#include "tests/property/witness_steps.h"

bool witness_usable(const struct witness_run *r, size_t p)
{
    const moesim_pass *pass = pass_of(r, p);
    return pass->kind != MOESIM_PASS_DUMMY && pass->request >= r->params->request_begin &&
           pass->request < r->params->request_end;
}

static void plan_in_order(struct witness_run *r)
{
    for (size_t p = 0; p < r->t->num_passes; p++) {
        if (!witness_usable(r, p))
            continue;
        struct witness_step *last = r->steps > 0 ? &r->step[r->steps - 1] : NULL;
        if (last != NULL && r->t->info.has_forward && pass_of(r, last->pass[0])->forward == pass_of(r, p)->forward) {
            last->pass[last->n++] = p;
            continue;
        }
        r->step[r->steps].n = 1;
        r->step[r->steps++].pass[0] = p;
    }
}

static size_t next_pass(const struct witness_run *r, uint32_t request, size_t from)
{
    for (size_t p = from; p < r->t->num_passes; p++)
        if (witness_usable(r, p) && pass_of(r, p)->request == request)
            return p;
    return SIZE_MAX;
}

/* Each seat holds a request until its passes end, then takes the next one. */
static void plan_merged(struct witness_run *r)
{
    size_t at[256];
    uint32_t seats = r->params->batch, next = (uint32_t)r->params->request_begin;
    uint64_t end = r->params->request_end < r->t->num_requests ? r->params->request_end : r->t->num_requests;
    for (uint32_t i = 0; i < seats; i++)
        at[i] = SIZE_MAX;
    for (;;) {
        struct witness_step *s = &r->step[r->steps];
        bool prefill = false;
        s->n = 0;
        for (uint32_t i = 0; i < seats && !prefill; i++) {
            while (at[i] == SIZE_MAX && next < end)
                at[i] = next_pass(r, next++, 0);
            if (at[i] != SIZE_MAX && pass_of(r, at[i])->kind == MOESIM_PASS_PREFILL) {
                prefill = true;
                s->pass[s->n++] = at[i];
                at[i] = next_pass(r, pass_of(r, at[i])->request, at[i] + 1);
            }
        }
        for (uint32_t i = 0; i < seats && !prefill; i++)
            if (at[i] != SIZE_MAX) {
                s->pass[s->n++] = at[i];
                at[i] = next_pass(r, pass_of(r, at[i])->request, at[i] + 1);
            }
        if (s->n == 0)
            return;
        r->steps++;
    }
}

static void link_previous(struct witness_run *r)
{
    for (size_t p = 0; p < r->t->num_passes; p++) {
        r->previous[p] = SIZE_MAX;
        for (size_t o = p; o > 0 && witness_usable(r, p); o--) {
            const moesim_pass *a = pass_of(r, p), *b = pass_of(r, o - 1);
            if (witness_usable(r, o - 1) && a->request == b->request && a->block == b->block) {
                r->previous[p] = o - 1;
                break;
            }
        }
    }
}

bool witness_counted(const struct witness_run *r, const struct witness_step *step)
{
    bool decode = false;
    for (size_t i = 0; i < step->n; i++) {
        if (pass_of(r, step->pass[i])->request < r->params->request_begin + r->params->warmup)
            return false;
        decode = decode || pass_of(r, step->pass[i])->kind != MOESIM_PASS_PREFILL;
    }
    return decode;
}

void witness_plan(struct witness_run *r)
{
    if (r->params->batch > 1)
        plan_merged(r);
    else
        plan_in_order(r);
    link_previous(r);
}
