/* SPDX-License-Identifier: Apache-2.0
 *
 * The model a second time.
 */
#include "tests/unit/timing/reference.h"

#include <math.h>
#include <string.h>

#include "tests/unit/timing/machine.h"

#define EPS 1e-11

enum job { NONE, DEMAND, RESULT, PREFETCH };

typedef struct state {
    const reference_machine *m;
    const moesim_work *w;
    reference_link *link;
    double t;
    enum job job;                /* on the link */
    double fixed, stream;
    uint32_t order[32];          /* demand copies */
    double ready[32];            /* when what arrived may be computed */
    uint32_t sent, arrived, computed, cpu_done;
    int hits_done, returned, has_cpu;
    double gpu, cpu_begin, cpu, gpu_end, combine_end;
} state;

static double tokens_on_gpu(const state *s, uint32_t i)
{
    const moesim_profile *f = s->m->profile;
    return moesim_profile_gpu_s(f, 1, s->w->moved_tokens[s->order[i]], MACHINE_BYTES) +
           f->gpu_moved.value * MACHINE_BYTES / f->gpu.expert_bytes;
}

static double tokens_on_cpu(const state *s)
{
    return moesim_profile_cpu_s(s->m->profile, s->w->cpu_tokens[s->cpu_done], MACHINE_BYTES);
}

static double carry(const state *s)
{
    const moesim_profile *f = s->m->profile;
    return f->return_alpha.value + s->w->num_rows * (double)MACHINE_HIDDEN / f->return_bandwidth.value;
}

/* Every hit its share of a call in which all had as many tokens as it has. */
static double grouped(const moesim_profile *f, const moesim_work *w)
{
    double sum = 0;
    for (uint32_t i = 0; i < w->n_hits; i++)
        sum += moesim_profile_gpu_s(f, w->n_hits, w->hit_tokens[i], MACHINE_BYTES) / w->n_hits;
    return sum;
}

static int cpu_works(const state *s) { return s->cpu_done < s->w->n_cpu && s->t >= s->cpu_begin - EPS; }

static void put(state *s, enum job job, double fixed, double stream)
{
    s->job = job;
    s->fixed = fixed;
    s->stream = stream;
}

static void start_prefetch(state *s)
{
    reference_link *k = s->link;
    if (k->n == 0)
        return;
    k->flying = k->list[0];
    memmove(k->list, k->list + 1, --k->n * sizeof k->list[0]);
    put(s, PREFETCH, s->m->profile->link_alpha.value, MACHINE_BYTES / s->m->bandwidth);
}

static void start_link(state *s)
{
    if (s->job != NONE)
        return;
    if (s->has_cpu && !s->returned && s->cpu_done == s->w->n_cpu) {
        put(s, RESULT, carry(s), 0);
    } else if (s->sent < s->w->n_moved) {
        if ((s->sent < s->m->staging || s->computed + s->m->staging > s->sent) && (s->m->overlap || s->hits_done)) {
            put(s, DEMAND, s->m->profile->link_alpha.value, MACHINE_BYTES / s->m->bandwidth);
            s->sent++;
        }
    } else {
        start_prefetch(s);
    }
}

static void start_gpu(state *s)
{
    if (s->gpu <= 0 && s->hits_done && s->computed < s->arrived && s->t >= s->ready[s->computed] - EPS)
        s->gpu = tokens_on_gpu(s, s->computed);
}

static int gpu_over(const state *s) { return s->hits_done && s->computed == s->w->n_moved; }

static int over(const state *s) { return gpu_over(s) && (!s->has_cpu || (s->returned && s->t >= s->combine_end - EPS)); }

static double share(const state *s)
{
    if (!s->m->contention || s->job == NONE || s->job == RESULT || s->fixed > 0 || !cpu_works(s))
        return 1;
    const double wanted = s->m->bandwidth + MACHINE_BYTES / tokens_on_cpu(s);
    const double dram = s->m->profile->dram_bandwidth.value;
    return wanted > dram ? dram / wanted : 1;
}

static double first_end(const state *s, double speed)
{
    double dt = INFINITY;
    if (s->job != NONE)
        dt = s->fixed > 0 ? s->fixed : s->stream / speed;
    if (s->gpu > 0)
        dt = fmin(dt, s->gpu);
    for (uint32_t i = s->computed; i < s->arrived; i++)
        if (s->ready[i] > s->t + EPS)
            dt = fmin(dt, s->ready[i] - s->t);
    if (cpu_works(s))
        dt = fmin(dt, s->cpu / speed);
    else if (s->cpu_done < s->w->n_cpu)
        dt = fmin(dt, s->cpu_begin - s->t);
    if (s->returned && s->combine_end > s->t + EPS)
        dt = fmin(dt, s->combine_end - s->t);
    return dt;
}

static void end_link(state *s)
{
    const enum job job = s->job;
    if (job == NONE || s->fixed > EPS || s->stream > EPS)
        return;
    s->job = NONE;
    if (job == DEMAND)
        s->ready[s->arrived++] = s->t + s->m->profile->gpu_arrival.value;
    if (job == PREFETCH)
        s->link->landed[s->link->num_landed++] = s->link->flying;
    if (job == RESULT) {
        s->returned = 1;
        s->combine_end = s->t + s->m->profile->cpu_combine.value;
    }
}

static void end_gpu(state *s, int worked)
{
    if (worked && s->gpu <= EPS) {
        s->gpu = 0;
        if (s->hits_done)
            s->computed++;
        s->hits_done = 1;
    }
    if (gpu_over(s) && !s->m->overlap && isinf(s->cpu_begin))
        s->cpu_begin = s->t + carry(s) + s->m->profile->cpu_step.value;
}

static void go_on(state *s, double dt, double speed, double *busy)
{
    const int computes = cpu_works(s), worked = s->gpu > 0;
    s->t += dt;
    if (s->job != NONE)
        *busy += dt;
    if (s->job != NONE && s->fixed > 0)
        s->fixed = s->fixed - dt > EPS ? s->fixed - dt : 0;
    else if (s->job != NONE)
        s->stream -= dt * speed;
    if (worked)
        s->gpu -= dt;
    if (computes && (s->cpu -= dt * speed) <= EPS && ++s->cpu_done < s->w->n_cpu)
        s->cpu = tokens_on_cpu(s);
    end_link(s);
    end_gpu(s, worked);
}

/* The copy in flight: first demand copy if its expert is wanted, which it then is in the order too. */
static void adopt(state *s)
{
    reference_link *k = s->link;
    uint32_t n = 0, first = UINT32_MAX;
    for (uint32_t i = 0; i < s->w->n_moved && k->busy; i++)
        if (k->flying.layer == s->w->layer && s->w->moved[i] == k->flying.expert)
            first = i;
    if (first != UINT32_MAX)
        s->order[n++] = first;
    for (uint32_t i = 0; i < s->w->n_moved; i++)
        if (i != first)
            s->order[n++] = i;
    if (k->busy)
        put(s, first != UINT32_MAX ? DEMAND : PREFETCH, k->fixed, k->stream);
    s->sent = first != UINT32_MAX;
    k->busy = 0;
    n = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        int wanted = 0;
        for (uint32_t j = 0; j < s->w->n_moved; j++)
            wanted |= k->list[i].layer == s->w->layer && k->list[i].expert == s->w->moved[j];
        if (!wanted)
            k->list[n++] = k->list[i];
    }
    k->n = n;
}

static void leave(state *s)
{
    s->link->busy = s->job == PREFETCH;
    s->link->fixed = s->fixed;
    s->link->stream = s->stream;
}

double reference_event(const reference_machine *m, const moesim_work *work, reference_link *link, double *busy)
{
    state s = {.m = m, .w = work, .link = link, .has_cpu = work->n_cpu > 0, .hits_done = work->n_hits == 0};
    const moesim_profile *f = m->profile;
    if (work->n_hits > 0)
        s.gpu = f->gpu_launch.value + grouped(f, work);
    s.cpu_begin = m->overlap ? carry(&s) + f->cpu_step.value : INFINITY;
    if (s.has_cpu)
        s.cpu = tokens_on_cpu(&s);
    *busy = 0;
    adopt(&s);
    end_gpu(&s, 0);
    while (!over(&s)) {
        start_link(&s);
        start_gpu(&s);
        const double speed = share(&s);
        go_on(&s, first_end(&s, speed), speed, busy);
    }
    leave(&s);
    return s.t;
}

double reference_run(const reference_machine *m, reference_link *link, double seconds)
{
    const moesim_work none = {.num_rows = 0};
    state s = {.m = m, .w = &none, .link = link, .hits_done = 1};
    double busy = 0;
    adopt(&s);
    while (s.t < seconds - EPS) {
        start_link(&s);
        const double end = fmin(seconds - s.t, first_end(&s, 1));
        go_on(&s, end, 1, &busy);
    }
    leave(&s);
    return busy;
}
