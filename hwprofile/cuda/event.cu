/* SPDX-License-Identifier: Apache-2.0
 *
 * One event: gate, hits, copies, moved experts as they arrive, the CPU's share, sums.
 */
#include "hwprofile/cuda/state.cuh"

#include <string.h>

#define POISON 0xff              /* bytes of a NaN */

static uint64_t nanoseconds(float milliseconds)
{
    return (uint64_t)((double)milliseconds * 1e6);
}

moesim_code moesim_cuda_fill(moesim_device *device, uint32_t slot, uint32_t pool, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    MOESIM_TRY(moesim_cuda_usable(d, err));
    MOESIM_TRY(moesim_device_order_fill(&d->order, slot, pool, err));
    MOESIM_CUDA(d, cudaMemcpyAsync(d->slots + slot * d->sizes.weights, d->pool + pool * d->sizes.weights, d->sizes.expert,
                                   cudaMemcpyHostToDevice, d->copy), err);
    MOESIM_CUDA(d, cudaStreamSynchronize(d->copy), err);
    return MOESIM_OK;
}

/* ---- the parts of an event: each queues something, none waits ------------------------------------------------------------ */

static moesim_code queue_hits(struct moesim_cuda *d, moesim_error *err)
{
    struct moesim_cuda_event *v = &d->event;
    if (v->hits_queued)
        return MOESIM_OK;
    v->hits_queued = true;
    if (v->hits == 0)
        return MOESIM_OK;
    MOESIM_CUDA(d, cudaEventRecord(d->hits_begin, d->compute), err);
    MOESIM_TRY(moesim_cuda_group(d, v->work->hits, v->hits, 0, d->h, d->y[d->now], err));
    MOESIM_CUDA(d, cudaEventRecord(d->hits_end, d->compute), err);
    return MOESIM_OK;
}

/* The copy of moved expert i, behind the last reader of its slot in this event. */
static moesim_code queue_copy(struct moesim_cuda *d, uint32_t i, moesim_error *err)
{
    const moesim_device_expert *e = &d->event.work->moved[i];
    if (d->moved_in[e->slot] == d->order.event)          /* staged there before: that reader came after any hit */
        MOESIM_CUDA(d, cudaStreamWaitEvent(d->copy, d->moved_end[d->moved_at[e->slot]], 0), err);
    else if (d->order.hit_in[e->slot] == d->order.event)
        MOESIM_CUDA(d, cudaStreamWaitEvent(d->copy, d->hits_end, 0), err);
    if (i == 0)
        MOESIM_CUDA(d, cudaEventRecord(d->link_begin, d->copy), err);
    MOESIM_CUDA(d, cudaMemcpyAsync(d->slots + e->slot * d->sizes.weights, d->pool + e->pool * d->sizes.weights, d->sizes.expert,
                                   cudaMemcpyHostToDevice, d->copy), err);
    MOESIM_TRY(moesim_cuda_further(d, err));
    if (i + 1 == d->event.moved)         /* before what the computation waits for: whoever saw that may read this */
        MOESIM_CUDA(d, cudaEventRecord(d->link_end, d->copy), err);
    MOESIM_CUDA(d, cudaEventRecord(d->landed[i % MOESIM_COPY_RING], d->copy), err);
    d->event.bytes += d->sizes.expert;
    return MOESIM_OK;
}

static moesim_code queue_moved(struct moesim_cuda *d, uint32_t i, moesim_error *err)
{
    struct moesim_cuda_event *v = &d->event;
    const moesim_device_expert *e = &v->work->moved[i];
    MOESIM_CUDA(d, cudaStreamWaitEvent(d->compute, d->landed[i % MOESIM_COPY_RING], 0), err);
    MOESIM_CUDA(d, cudaEventRecord(d->moved_begin[i], d->compute), err);
    MOESIM_TRY(moesim_cuda_group(d, e, 1, v->route, d->h, d->y[d->now], err));
    MOESIM_CUDA(d, cudaEventRecord(d->moved_end[i], d->compute), err);
    d->moved_in[e->slot] = d->order.event;
    d->moved_at[e->slot] = i;
    v->route += e->tokens;
    return MOESIM_OK;
}

/* The next copy and what computes it. The first copy starts before the hits, unless it overwrites one of them. */
static moesim_code feed(struct moesim_cuda *d, moesim_error *err)
{
    struct moesim_cuda_event *v = &d->event;
    const uint32_t i = v->copied;
    if (d->order.hit_in[v->work->moved[i].slot] == d->order.event)
        MOESIM_TRY(queue_hits(d, err));
    MOESIM_TRY(queue_copy(d, i, err));
    MOESIM_TRY(queue_hits(d, err));
    MOESIM_TRY(queue_moved(d, i, err));
    v->copied++;
    return MOESIM_OK;
}

static moesim_code send_activations(struct moesim_cuda *d, moesim_error *err)
{
    const size_t bytes = (size_t)d->event.work->num_rows * d->config.hidden * sizeof *d->x;
    MOESIM_CUDA(d, cudaMemcpyAsync(d->host_x, d->x, bytes, cudaMemcpyDeviceToHost, d->out), err);
    MOESIM_CUDA(d, cudaEventRecord(d->arrived, d->out), err);
    return MOESIM_OK;
}

static void start_cpu(struct moesim_cuda *d)
{
    const moesim_device_work *w = d->event.work;
    float *y = d->host_y;
    for (uint32_t i = 0; i < w->n_cpu; i++) {
        d->jobs[i].weights = d->pool + w->cpu[i].pool * d->sizes.weights;
        d->jobs[i].row = w->cpu[i].row;
        d->jobs[i].tokens = w->cpu[i].tokens;
        d->jobs[i].y = y;
        y += (size_t)w->cpu[i].tokens * d->config.hidden;
    }
    moesim_cpu_team_start(d->team, d->jobs, w->n_cpu, d->host_x);
    d->event.cpu_running = true;
}

/* All CPU experts are done, or waited for: their outputs go to the device in one copy. */
static moesim_code return_results(struct moesim_cuda *d, moesim_error *err)
{
    struct moesim_cuda_event *v = &d->event;
    const size_t bytes = v->cpu_routes * d->config.hidden * sizeof(float);
    v->busy_cpu = moesim_cpu_team_wait(d->team);
    v->cpu_running = false;
    MOESIM_CUDA(d, cudaMemcpyAsync(d->y[d->now] + (v->hit_routes + v->moved_routes) * d->config.hidden, d->host_y, bytes,
                                   cudaMemcpyHostToDevice, d->back), err);
    MOESIM_CUDA(d, cudaEventRecord(d->returned, d->back), err);
    v->cpu_back = true;
    return MOESIM_OK;
}

/* One look at the CPU's share: activations arrived? results ready? */
static moesim_code look_at_cpu(struct moesim_cuda *d, moesim_error *err)
{
    struct moesim_cuda_event *v = &d->event;
    if (v->cpu_back)
        return MOESIM_OK;
    if (!v->cpu_running) {
        const cudaError_t e = cudaEventQuery(d->arrived);
        if (e != cudaSuccess && e != cudaErrorNotReady)
            return moesim_cuda_fail(d, e, "bringing activations to the host", err);
        if (e == cudaSuccess)
            start_cpu(d);
        return MOESIM_OK;
    }
    return v->copied == v->moved || moesim_cpu_team_done(d->team) ? return_results(d, err) : MOESIM_OK;
}

/* While the CPU's result is outstanding only a few copies are queued, so that it need not wait for all of them. */
static moesim_code may_feed(struct moesim_cuda *d, bool *yes, moesim_error *err)
{
    const struct moesim_cuda_event *v = &d->event;
    *yes = v->copied < v->moved;
    if (!*yes || v->cpu_back || v->copied < MOESIM_FEED_AHEAD)
        return MOESIM_OK;
    const cudaError_t e = cudaEventQuery(d->landed[(v->copied - MOESIM_FEED_AHEAD) % MOESIM_COPY_RING]);
    if (e != cudaSuccess && e != cudaErrorNotReady)
        return moesim_cuda_fail(d, e, "copying experts", err);
    *yes = e == cudaSuccess;
    return MOESIM_OK;
}

static void begin(struct moesim_cuda *d, const moesim_device_work *w)
{
    struct moesim_cuda_event *v = &d->event;
    memset(v, 0, sizeof *v);
    v->work = w;
    v->hits = w->n_hits;
    v->moved = w->n_moved;
    for (uint32_t i = 0; i < w->n_hits; i++)
        v->hit_routes += w->hits[i].tokens;
    for (uint32_t i = 0; i < w->n_moved; i++)
        v->moved_routes += w->moved[i].tokens;
    d->out_routes = moesim_device_routes(w);
    v->cpu_routes = d->out_routes - v->hit_routes - v->moved_routes;
    v->route = v->hit_routes;
    v->cpu_back = w->n_cpu == 0;
    d->written = d->now;
}

/* Copies are fed and the CPU is looked after until both need nothing more of the host. */
static moesim_code drive(struct moesim_cuda *d, moesim_error *err)
{
    struct moesim_cuda_event *v = &d->event;
    uint64_t since = moesim_clock_ns();
    while (v->copied < v->moved || !v->cpu_back) {
        const bool running = v->cpu_running;
        bool yes;
        MOESIM_TRY(may_feed(d, &yes, err));
        if (yes)
            MOESIM_TRY(feed(d, err));
        MOESIM_TRY(look_at_cpu(d, err));
        if (yes || running != v->cpu_running)
            since = moesim_clock_ns();
        else
            MOESIM_TRY(moesim_cuda_patience(d, since, err));
    }
    return MOESIM_OK;
}

static moesim_code execute(struct moesim_cuda *d, const moesim_device_work *work, moesim_error *err)
{
    MOESIM_TRY(moesim_cuda_moved_room(d, work->n_moved, err));
    if (work->n_cpu > 0)
        MOESIM_TRY(send_activations(d, err));
    if (work->n_moved == 0)
        MOESIM_TRY(queue_hits(d, err));
    MOESIM_TRY(drive(d, err));
    if (work->n_cpu > 0)
        MOESIM_CUDA(d, cudaStreamWaitEvent(d->compute, d->returned, 0), err);
    return moesim_cuda_combine(d, work, err);
}

moesim_code moesim_cuda_work(moesim_device *device, const moesim_device_work *work, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    MOESIM_TRY(moesim_cuda_usable(d, err));
    MOESIM_TRY(moesim_device_order_work(&d->order, work, err));
    begin(d, work);
    const moesim_code code = execute(d, work, err);
    if (d->event.cpu_running) {          /* a failure: the caller's lists are in use until the threads are done */
        (void)moesim_cpu_team_wait(d->team);
        d->event.cpu_running = false;
    }
    d->event.work = NULL;
    return code;
}

/* ---- gates --------------------------------------------------------------------------------------------------------------- */

static moesim_code add_busy(struct moesim_cuda *d, cudaEvent_t from, cudaEvent_t to, uint64_t *sum, moesim_error *err)
{
    float milliseconds = 0;
    MOESIM_CUDA(d, cudaEventElapsedTime(&milliseconds, from, to), err);
    *sum += nanoseconds(milliseconds);
    return MOESIM_OK;
}

/* Ids to the host, wait, take the time. What the moved experts took is read while waiting for the last of them. */
static moesim_code finish(struct moesim_cuda *d, uint32_t num_rows, moesim_device_times *times, moesim_error *err)
{
    const struct moesim_cuda_event *v = &d->event;
    const size_t ids = (size_t)num_rows * d->config.top_k * sizeof *d->routing;
    memset(times, 0, sizeof *times);
    if (ids > 0)
        MOESIM_CUDA(d, cudaMemcpyAsync(d->host_routing, d->routing, ids, cudaMemcpyDeviceToHost, d->compute), err);
    MOESIM_CUDA(d, cudaEventRecord(d->gate, d->compute), err);
    for (uint32_t i = 0; i < v->moved; i++) {
        MOESIM_TRY(moesim_cuda_wait(d, d->moved_end[i], err));
        MOESIM_TRY(add_busy(d, d->moved_begin[i], d->moved_end[i], &times->busy_gpu, err));
    }
    MOESIM_TRY(moesim_cuda_wait(d, d->gate, err));
    times->gate = moesim_clock_ns();
    if (v->hits > 0)
        MOESIM_TRY(add_busy(d, d->hits_begin, d->hits_end, &times->busy_gpu, err));
    if (v->moved > 0)
        MOESIM_TRY(add_busy(d, d->link_begin, d->link_end, &times->busy_link, err));
    times->busy_cpu = v->busy_cpu;
    times->bytes = v->bytes;
    memset(&d->event, 0, sizeof d->event);
    return MOESIM_OK;
}

/* The outputs of the event before stay readable: the next event writes the other buffer. */
moesim_code moesim_cuda_pass_gate(struct moesim_cuda *d, uint32_t num_rows, bool other, moesim_device_times *times,
                                  moesim_error *err)
{
    if (other)
        MOESIM_TRY(moesim_cuda_other_run(d, num_rows, err));
    d->now = d->written ^ 1u;
    MOESIM_CUDA(d, cudaMemsetAsync(d->y[d->now], POISON, (size_t)num_rows * d->config.top_k * d->config.hidden * sizeof(float),
                                   d->compute), err);
    return finish(d, num_rows, times, err);
}

moesim_code moesim_cuda_gate(moesim_device *device, uint32_t num_rows, moesim_device_times *times, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    MOESIM_TRY(moesim_cuda_usable(d, err));
    MOESIM_TRY(moesim_device_order_gate(&d->order, num_rows, err));
    return moesim_cuda_pass_gate(d, num_rows, d->config.other, times, err);
}

moesim_code moesim_cuda_end_pass(moesim_device *device, uint32_t num_rows, bool with_head, moesim_device_times *times,
                                 moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    MOESIM_TRY(moesim_cuda_usable(d, err));
    MOESIM_TRY(moesim_device_order_end(&d->order, num_rows, with_head, err));
    if (with_head)
        MOESIM_TRY(moesim_cuda_head_run(d, num_rows, err));
    return finish(d, num_rows, times, err);
}

moesim_code moesim_cuda_outputs(moesim_device *device, float *out, size_t routes, moesim_error *err)
{
    struct moesim_cuda *d = moesim_cuda_of(device);
    MOESIM_TRY(moesim_cuda_usable(d, err));
    if (routes > d->out_routes || d->order.busy)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device cuda, event %llu: %zu outputs asked for, the event before has %zu",
                           (unsigned long long)d->order.event, routes, d->order.busy ? (size_t)0 : d->out_routes);
    MOESIM_CUDA(d, cudaMemcpyAsync(out, d->y[d->written], routes * d->config.hidden * sizeof *out, cudaMemcpyDeviceToHost,
                                   d->compute), err);
    MOESIM_CUDA(d, cudaStreamSynchronize(d->compute), err);
    return MOESIM_OK;
}

moesim_code moesim_cuda_inputs(moesim_device *device, uint16_t *out, uint32_t num_rows, moesim_error *err)
{
    const moesim_device_config *c = &moesim_cuda_of(device)->config;
    MOESIM_TRY(moesim_cuda_usable(moesim_cuda_of(device), err));
    moesim_inputs_fill(out, num_rows, c->hidden, c->seed);
    return MOESIM_OK;
}

const uint16_t *moesim_cuda_weights(const moesim_device *device, uint32_t pool)
{
    const struct moesim_cuda *d = (const struct moesim_cuda *)device;
    return pool < d->config.pool ? d->pool + pool * d->sizes.weights : NULL;
}
