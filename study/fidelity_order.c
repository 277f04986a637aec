/* SPDX-License-Identifier: Apache-2.0
 *
 * Fidelity: would the prediction have led to the same decisions? Order of policies, the best one, what picking it would have
 * cost, and the knee of every curve. Test cells alone.
 */
#include "study/fidelity_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static bool same_real(double a, double b)
{
    return a <= b && a >= b;
}

static bool same_group(const moesim_fidelity_cell *a, const moesim_fidelity_cell *b)
{
    return a->cache == b->cache && same_real(a->cap, b->cap);
}

static bool is_disjoint(moesim_interval a, moesim_interval b)
{
    return a.hi < b.lo || b.hi < a.lo;       /* false where undefined */
}

static int sign(double v)
{
    return (v > 0) - (v < 0);
}

/* Pairs of all groups, and what Kendall's coefficient needs of them. */
typedef struct pairs {
    double agree, untied_predicted, untied_measured;
} pairs;

static void compare(const moesim_fidelity_row *a, const moesim_fidelity_row *b, moesim_fidelity_order *o, pairs *p)
{
    const int predicted = sign(a->tpot.predicted - b->tpot.predicted), measured = sign(a->tpot.measured - b->tpot.measured);
    const bool right = predicted == measured, apart = is_disjoint(a->tpot.measured_interval, b->tpot.measured_interval);
    o->pairs++;
    o->right += right;
    o->disjoint += apart;
    o->disjoint_right += apart && right;
    p->agree += predicted * measured;
    p->untied_predicted += predicted != 0;
    p->untied_measured += measured != 0;
}

/* The group that cell `first` is the first of. Of cells predicted alike, the one that would have cost most is picked. */
static void pick(const moesim_fidelity_work *w, const moesim_fidelity *f, size_t first, moesim_fidelity_order *o)
{
    const moesim_fidelity_cell *c = w->in->cell;
    size_t members = 0;
    double best = INFINITY, predicted = INFINITY, picked = 0;
    for (size_t i = first; i < w->in->num_cells; i++) {
        const moesim_fidelity_figure *t = &f->row[i].tpot;
        if (!moesim_fidelity_is_test(&c[i]) || !same_group(&c[i], &c[first]))
            continue;
        members++;
        best = t->measured < best ? t->measured : best;
        if (t->predicted < predicted || (same_real(t->predicted, predicted) && t->measured > picked)) {
            predicted = t->predicted;
            picked = t->measured;
        }
    }
    if (members < 2 || !(best > 0))
        return;
    const double regret = picked / best - 1;
    o->worst_regret = o->groups == 0 || regret > o->worst_regret ? regret : o->worst_regret;
    o->regret = ((double)o->groups * (o->groups > 0 ? o->regret : 0) + regret) / (double)(o->groups + 1);
    o->top1 += same_real(picked, best);
    o->groups++;
}

static bool is_first(const moesim_fidelity_input *in, size_t cell)
{
    for (size_t i = 0; i < cell; i++)
        if (moesim_fidelity_is_test(&in->cell[i]) && same_group(&in->cell[i], &in->cell[cell]))
            return false;
    return true;
}

static void order(const moesim_fidelity_work *w, const moesim_fidelity *f, moesim_fidelity_order *o)
{
    const moesim_fidelity_cell *c = w->in->cell;
    pairs p = {0};
    *o = (moesim_fidelity_order){.tau = NAN, .regret = NAN, .worst_regret = NAN};
    for (size_t i = 0; i < w->in->num_cells; i++) {
        if (!moesim_fidelity_is_test(&c[i]))
            continue;
        for (size_t k = 0; k < i; k++)
            if (moesim_fidelity_is_test(&c[k]) && same_group(&c[i], &c[k]))
                compare(&f->row[i], &f->row[k], o, &p);
        if (is_first(w->in, i))
            pick(w, f, i, o);
    }
    if (p.untied_predicted > 0 && p.untied_measured > 0)
        o->tau = p.agree / sqrt(p.untied_predicted * p.untied_measured);
}

/* ---- knees --------------------------------------------------------------------------------------------------------- */

static bool same_curve(const moesim_fidelity_cell *a, const moesim_fidelity_cell *b)
{
    return !a->reference && !b->reference && same_real(a->cap, b->cap) && strcmp(a->policy, b->policy) == 0;
}

/* The member of the curve with the next larger capacity after `cache`, or num_cells. */
static size_t next_of(const moesim_fidelity_input *in, size_t curve, int64_t cache)
{
    size_t next = in->num_cells;
    for (size_t i = 0; i < in->num_cells; i++)
        if (same_curve(&in->cell[i], &in->cell[curve]) && in->cell[i].cache > cache &&
            (next == in->num_cells || in->cell[i].cache < in->cell[next].cache))
            next = i;
    return next;
}

static double tpot(const moesim_fidelity *f, size_t cell, bool measured)
{
    return measured ? f->row[cell].tpot.measured : f->row[cell].tpot.predicted;
}

static double find_knee(const moesim_fidelity_work *w, const moesim_fidelity *f, size_t curve, bool measured)
{
    const size_t n = w->in->num_cells, ref = moesim_fidelity_reference(w->in, curve);
    const double level = MOESIM_KNEE * tpot(f, ref, measured);
    size_t before = n;
    for (size_t i = next_of(w->in, curve, -1); i < n; i = next_of(w->in, curve, w->in->cell[i].cache)) {
        const double here = tpot(f, i, measured), at = w->in->cell[i].cache;
        if (here <= level && before == n)
            return at;
        if (here <= level) {
            const double there = tpot(f, before, measured), from = w->in->cell[before].cache;
            return from + (at - from) * (there - level) / (there - here);
        }
        before = i;
    }
    return NAN;
}

static moesim_code knees(const moesim_fidelity_work *w, moesim_fidelity *f, moesim_error *err)
{
    void *p = NULL;
    if (moesim_alloc(w->in->num_cells, sizeof *f->knee, "knees", &p, err) != MOESIM_OK)
        return err->code;
    f->knee = p;
    for (size_t i = 0; i < w->in->num_cells; i++) {
        const moesim_fidelity_cell *c = &w->in->cell[i];
        const size_t first = next_of(w->in, i, -1);
        if (c->reference || first != i || moesim_fidelity_reference(w->in, i) == w->in->num_cells ||
            next_of(w->in, i, c->cache) == w->in->num_cells)
            continue;
        f->knee[f->num_knees++] = (moesim_fidelity_knee){i, find_knee(w, f, i, false), find_knee(w, f, i, true)};
    }
    return MOESIM_OK;
}

moesim_code moesim_fidelity_rank(const moesim_fidelity_work *w, moesim_fidelity *f, moesim_error *err)
{
    order(w, f, &f->order);
    return knees(w, f, err);
}
