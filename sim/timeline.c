/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers of one event. The link decides what happens next, so it is walked copy by copy; the CPU pool is brought up to
 * the same moment before every decision. No event queue is needed: nothing else can change what the link does.
 */
#include "sim/timeline.h"

#include <math.h>

/* No NaN occurs, and fmax would be a call. */
static inline double later(double a, double b) { return a > b ? a : b; }
static inline double sooner(double a, double b) { return a < b ? a : b; }

/* The experts of the CPU path, one after another. */
typedef struct pool {
    const moesim_costing *costing;
    const moesim_cost_size *size;
    const uint32_t *tokens;
    uint32_t next, n;            /* expert in work; n: all done, at `at` */
    double at;                   /* brought up to here, or begins here */
    double left, stretch;        /* of the expert in work: seconds alone; how much longer beside a streaming link */
    bool shared;
} pool;

typedef struct servers {
    const moesim_costing *costing;
    const moesim_work *work;
    moesim_link *link;
    pool pool;
    double free;                 /* the link has done all it was given */
    double busy;
    double carry;                /* activations to the host; results back */
    double result;               /* results are back */
    bool returned;
} servers;

static void load_expert(pool *p)
{
    if (p->next == p->n)
        return;
    p->left = moesim_cost_cpu(p->costing, p->size, p->tokens[p->next]);
    p->stretch = p->shared ? moesim_cost_stretch(p->costing, p->size, p->tokens[p->next]) : 1.0;
}

static void next_expert(pool *p)
{
    p->next++;
    load_expert(p);
}

/* The CPU up to `to`, the link idle or in its fixed part. */
static void compute_alone(pool *p, double to)
{
    while (p->next < p->n && p->at + p->left <= to) {
        p->at += p->left;
        next_expert(p);
    }
    if (p->next < p->n && p->at < to) {
        p->left = later(0.0, p->left - (to - p->at));
        p->at = to;
    }
}

/* End of a copy that begins at `from`, has `fixed` seconds before it streams, and streams for `stream` seconds when alone.
 * While an expert streams too, both have the same share of their speed, so both get through the same seconds of work. */
static double copy_end(pool *p, double from, double fixed, double stream)
{
    double t = from + fixed;
    if (!p->shared)
        return from + (fixed + stream);
    compute_alone(p, t);
    while (stream > 0 && p->next < p->n) {
        if (p->at > t) {         /* the CPU begins later */
            if (stream <= p->at - t)
                break;
            stream -= p->at - t;
            t = p->at;
        }
        const double both = sooner(stream, p->left);
        t += both * p->stretch;
        stream -= both;
        p->left -= both;
        p->at = t;
        if (p->left <= 0)
            next_expert(p);
    }
    return t + stream;
}

static double send(servers *s, double from, double fixed, double stream)
{
    s->free = copy_end(&s->pool, from, fixed, stream);
    s->busy += s->free - from;
    return s->free;
}

/* The link could begin something else at `when`: CPU results that are ready go first. */
static void return_results(servers *s, double when)
{
    if (s->returned)
        return;
    compute_alone(&s->pool, when);
    if (s->pool.next < s->pool.n)
        return;
    s->free = later(s->pool.at, s->free) + s->carry;
    s->busy += s->carry;
    s->result = s->free;
    s->returned = true;
}

/* The copy in flight when the gate was known. */
static void finish_flying(servers *s)
{
    const double stream = sooner(s->link->stream, s->link->left);
    send(s, 0.0, s->link->left - stream, stream);
}

/* Position in `moved` of the expert whose prefetch is in flight; n_moved: none. */
static uint32_t find_flying(const moesim_link *k, const moesim_work *w)
{
    uint32_t i = k->busy && k->flying.layer == w->layer ? 0 : w->n_moved;
    while (i < w->n_moved && w->moved[i] != k->flying.expert)
        i++;
    return i;
}

/* Demand copies and what is computed after them; returns the end of the last one. */
static double move(servers *s, double hits, double *done, double *seconds)
{
    const moesim_costing *c = s->costing;
    const moesim_work *w = s->work;
    const moesim_cost_size *size = c->layer[w->layer];
    const uint32_t started = find_flying(s->link, w);
    const double from = c->overlap ? 0.0 : hits;
    double last = hits;
    if (s->link->busy) {
        finish_flying(s);
        if (started < w->n_moved)
            moesim_link_take(s->link);
        else
            moesim_link_land(s->link);
    }
    for (uint32_t i = 0; i < w->n_moved; i++) {
        /* the started one first, the others in order */
        const uint32_t k = started == w->n_moved || i > started ? i : i == 0 ? started : i - 1;
        if (k != started) {
            double begin = later(from, s->free);
            if (i >= c->staging)
                begin = later(begin, done[i - c->staging]);
            return_results(s, begin);
            send(s, later(begin, s->free), c->alpha, size->stream_s);
        }
        const double g = moesim_cost_moved(c, size, w->moved_tokens[k]);
        last = done[i] = later(last, s->free + c->arrival) + g;
        *seconds += g;
    }
    return last;
}

/* No demand copy waits any more: prefetches start until the results are ready. */
static void wait_for_results(servers *s)
{
    while (!s->returned) {
        return_results(s, s->free);
        if (s->returned)
            break;
        if (!moesim_link_start(s->link)) {
            return_results(s, INFINITY);
            break;
        }
        send(s, s->free, s->costing->alpha, s->link->stream);
        moesim_link_land(s->link);
    }
}

void moesim_timeline_run(const moesim_costing *costing, const moesim_work *work, double hits, bool shared, moesim_link *link,
                         double *done, moesim_timeline *out)
{
    servers s = {
        .costing = costing,
        .work = work,
        .link = link,
        .pool = {.costing = costing, .size = costing->layer[work->layer], .tokens = work->cpu_tokens, .n = work->n_cpu,
                 .shared = shared},
        .carry = moesim_cost_return(costing, work->num_rows),
        .returned = work->n_cpu == 0,
    };
    const double ready = s.carry + costing->step;
    *out = (moesim_timeline){.gpu = hits};
    load_expert(&s.pool);
    /* without overlap the CPU waits for the GPU path, whose end is known when the last copy has been walked */
    double begin = costing->overlap ? ready : work->n_moved > 0 ? INFINITY : hits + ready;
    s.pool.at = begin;
    if (work->n_moved + work->n_cpu > 0)
        out->gpu = move(&s, hits, done, &out->moved);
    if (!costing->overlap && work->n_moved > 0)
        s.pool.at = begin = out->gpu + ready;
    if (work->n_cpu > 0) {
        wait_for_results(&s);
        out->cpu = s.result + costing->combine;
        out->busy_cpu = costing->step + (s.pool.at - begin);
    }
    out->end = later(out->gpu, out->cpu);
    out->busy_link = s.busy + moesim_link_run(link, out->end - s.free);
}
