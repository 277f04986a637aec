/* SPDX-License-Identifier: Apache-2.0
 *
 * One event on the host device: the driver stages it, the link copies, the gpu computes, the CPU team does its share.
 */
#include <string.h>

#include "hwprofile/device_host.h"

#define SPINS_A_LOOK 64u         /* looks at a counter between two at the clock */

/* ---- waiting for each other ---------------------------------------------------------------------------------------- */

static uint32_t look(const uint32_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

void moesim_host_advance(struct host_device *d, uint32_t *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
    if (look(&d->progress.waiters) > 0) {
        pthread_mutex_lock(&d->progress.lock);
        pthread_cond_broadcast(&d->progress.changed);
        pthread_mutex_unlock(&d->progress.lock);
    }
}

void moesim_host_await(struct host_device *d, const uint32_t *a, uint32_t a_min, const uint32_t *b, uint32_t b_min)
{
    const uint64_t until = moesim_clock_ns() + d->spin_ns[d->event.n_cpu > 0];
    do {
        for (uint32_t i = 0; i < SPINS_A_LOOK; i++) {
            if (look(a) >= a_min || (b != NULL && look(b) >= b_min))
                return;
            moesim_cpu_relax();
        }
    } while (moesim_clock_ns() < until);
    pthread_mutex_lock(&d->progress.lock);
    __atomic_add_fetch(&d->progress.waiters, 1, __ATOMIC_SEQ_CST);
    while (look(a) < a_min && !(b != NULL && look(b) >= b_min))
        pthread_cond_wait(&d->progress.changed, &d->progress.lock);
    __atomic_sub_fetch(&d->progress.waiters, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&d->progress.lock);
}

/* ---- link thread --------------------------------------------------------------------------------------------------- */

/* An expert into its slot. A slower link goes on copying until it has taken as long as its rate asks for. */
static void copy_expert(struct host_device *d, const moesim_device_expert *e)
{
    const uint64_t begin = moesim_clock_ns();
    const uint16_t *from = d->pool + e->pool * d->sizes.weights;
    moesim_host_copy(d->slots + e->slot * d->sizes.weights, from, d->sizes.expert);
    if (d->config.bandwidth_cap > 0.0) {
        const uint64_t until = begin + (uint64_t)((double)d->sizes.expert / d->config.bandwidth_cap * 1e9);
        const size_t piece = d->sizes.expert < HOST_SCRATCH ? d->sizes.expert : HOST_SCRATCH;
        while (moesim_clock_ns() < until)
            moesim_host_copy(d->scratch, from, piece);
    }
}

static void return_results(struct host_device *d)
{
    memcpy(d->returned, d->cpu_sum, (size_t)d->event.num_rows * d->config.hidden * sizeof *d->returned);
    moesim_host_advance(d, &d->progress.returned);
}

/* Demand copies in order; results of the CPU go before the next copy as soon as they are ready. */
static void link_main(void *context, uint32_t thread, uint32_t threads)
{
    struct host_device *d = context;
    struct host_event *e = &d->event;
    struct host_progress *p = &d->progress;
    uint64_t begin = 0, end = 0;
    bool pending = e->n_cpu > 0;
    (void)thread;
    (void)threads;
    for (uint32_t i = 0; i < e->n_moved;) {
        moesim_host_await(d, &p->computed, e->after[i], pending ? &p->cpu_ready : NULL, 1);
        if (pending && look(&p->cpu_ready) > 0) {
            return_results(d);
            pending = false;
            continue;
        }
        begin = begin != 0 ? begin : moesim_clock_ns();
        copy_expert(d, &e->expert[e->n_hits + i++]);
        end = moesim_clock_ns();
        moesim_host_advance(d, &p->copied);
    }
    if (pending) {
        moesim_host_await(d, &p->cpu_ready, 1, NULL, 0);
        return_results(d);
    }
    e->busy_link = end - begin;
}

/* ---- gpu thread ---------------------------------------------------------------------------------------------------- */

void moesim_host_compute(struct host_device *d, const uint16_t *weights, const uint16_t *row, uint32_t tokens, float *y)
{
    const moesim_cpu_job job = { weights, row, tokens, y };
    for (uint32_t t = 0; t < tokens; t += HOST_BATCH)
        moesim_cpu_crew_pass(d->crew, 0, &job, d->x, t, tokens - t < HOST_BATCH ? tokens - t : HOST_BATCH, d->pass++);
}

static void add_routes(float *sum, const float *out, const moesim_device_expert *e, uint32_t n, uint32_t hidden)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < e[i].tokens; t++, out += hidden) {
            float *to = sum + (size_t)e[i].row[t] * hidden;
            for (uint32_t j = 0; j < hidden; j++)
                to[j] += out[j];
        }
}

static void gpu_main(void *context, uint32_t thread, uint32_t threads)
{
    struct host_device *d = context;
    struct host_event *e = &d->event;
    const uint32_t n = e->n_hits + e->n_moved, hidden = d->config.hidden;
    float *y = d->out[d->which];
    (void)thread;
    (void)threads;
    for (uint32_t i = 0; i < n; i++) {
        const moesim_device_expert *expert = &e->expert[i];
        if (i >= e->n_hits)
            moesim_host_await(d, &d->progress.copied, i - e->n_hits + 1, NULL, 0);
        const uint64_t begin = moesim_clock_ns();
        moesim_host_compute(d, d->slots + expert->slot * d->sizes.weights, expert->row, expert->tokens, y);
        e->busy_gpu += moesim_clock_ns() - begin;
        y += (size_t)expert->tokens * hidden;
        moesim_host_advance(d, &d->progress.computed);
    }
    const size_t bytes = (size_t)e->num_rows * hidden * sizeof *d->result;
    memset(d->result, 0, bytes);
    add_routes(d->result, d->out[d->which], e->expert, n, hidden);
    if (e->n_cpu > 0) {
        moesim_host_await(d, &d->progress.returned, 1, NULL, 0);
        for (size_t j = 0; j < (size_t)e->num_rows * hidden; j++)
            d->result[j] += d->returned[j];
    }
}

struct gate_call {
    struct host_device *d;
    uint32_t num_rows;
    bool with_other;
};

/* `other`, the routing on its way to the host, and NaN where the next event will write. */
static void gate_main(void *context, uint32_t thread, uint32_t threads)
{
    const struct gate_call *c = context;
    struct host_device *d = c->d;
    (void)thread;
    (void)threads;
    if (c->with_other)
        moesim_host_other(d, c->num_rows);
    const size_t routes = (size_t)c->num_rows * d->config.top_k;
    memcpy(d->routing_host, d->routing, routes * sizeof *d->routing);
    memset(d->out[1 - d->which], 0xff, routes * d->config.hidden * sizeof(float));
}

/* ---- driver -------------------------------------------------------------------------------------------------------- */

void moesim_host_finish(struct host_device *d)
{
    moesim_cpu_team_wait(d->link);
    moesim_cpu_team_wait(d->gpu);
}

void moesim_host_gate(struct host_device *d, uint32_t num_rows, bool with_other)
{
    struct gate_call call = { d, num_rows, with_other };
    moesim_host_finish(d);
    moesim_cpu_team_run(d->gpu, gate_main, &call);
}

static void stage_list(struct host_event *e, const moesim_device_expert *from, uint32_t n, uint32_t *at)
{
    for (uint32_t i = 0; i < n; i++) {
        moesim_device_expert *to = &e->expert[(*at)++];
        *to = from[i];
        to->row = memcpy(e->rows + e->routes, from[i].row, from[i].tokens * sizeof *from[i].row);
        e->routes += from[i].tokens;
    }
}

void moesim_host_stage(struct host_device *d, const moesim_device_work *w)
{
    struct host_event *e = &d->event;
    uint32_t at = 0;
    e->num_rows = w->num_rows;
    e->n_hits = w->n_hits;
    e->n_moved = w->n_moved;
    e->n_cpu = w->n_cpu;
    e->routes = 0;
    stage_list(e, w->hits, w->n_hits, &at);
    stage_list(e, w->moved, w->n_moved, &at);
    e->gpu_routes = e->routes;
    stage_list(e, w->cpu, w->n_cpu, &at);
    const moesim_device_expert *moved = e->expert + e->n_hits;
    for (uint32_t i = 0; i < e->n_moved; i++)
        d->reader[moved[i].slot] = 0;
    for (uint32_t i = 0; i < e->n_hits; i++)
        d->reader[e->expert[i].slot] = i + 1;
    for (uint32_t i = 0; i < e->n_moved; i++) {
        e->after[i] = d->reader[moved[i].slot];
        d->reader[moved[i].slot] = e->n_hits + i + 1;
    }
}

static void run_cpu(struct host_device *d)
{
    struct host_event *e = &d->event;
    const moesim_device_expert *expert = e->expert + e->n_hits + e->n_moved;
    const size_t hidden = d->config.hidden;
    float *const first = d->out[d->which] + e->gpu_routes * hidden, *y = first;
    memcpy(d->x_host, d->x, e->num_rows * hidden * sizeof *d->x);
    for (uint32_t i = 0; i < e->n_cpu; i++) {
        d->job[i] = (moesim_cpu_job){ d->pool + expert[i].pool * d->sizes.weights, expert[i].row, expert[i].tokens, y };
        y += expert[i].tokens * hidden;
    }
    moesim_cpu_team_start(d->team, d->job, e->n_cpu, d->x_host);
    e->busy_cpu = moesim_cpu_team_wait(d->team);
    memset(d->cpu_sum, 0, e->num_rows * hidden * sizeof *d->cpu_sum);
    add_routes(d->cpu_sum, first, expert, e->n_cpu, d->config.hidden);
    moesim_host_advance(d, &d->progress.cpu_ready);
}

void moesim_host_event(struct host_device *d)
{
    struct host_event *e = &d->event;
    struct host_progress *p = &d->progress;
    p->computed = p->copied = p->cpu_ready = p->returned = 0;
    e->busy_link = e->busy_gpu = e->busy_cpu = 0;
    e->bytes = e->n_moved * (uint64_t)d->sizes.expert;
    d->which = 1 - d->which;
    if (e->n_moved + e->n_cpu > 0)
        moesim_cpu_team_call(d->link, link_main, d);
    moesim_cpu_team_call(d->gpu, gpu_main, d);
    if (e->n_cpu > 0)
        run_cpu(d);
}
