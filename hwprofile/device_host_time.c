/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements of the host device. Copies go from all of the pool to all of the slots in turn, computations over all slots, so
 * that nothing stays in a cache that a real event would not find there. What slots held is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "hwprofile/device_host.h"

#define COPY_MAX (256u << 20)
#define NS 1e-9

static struct host_device *of(moesim_device *device)
{
    return (struct host_device *)device;
}

/* Waits for what runs; slots are no longer what the caller put there. */
static void begin(struct host_device *d)
{
    moesim_host_finish(d);
    for (uint32_t i = 0; i < d->config.slots; i++)
        d->order.content[i] = MOESIM_SLOT_EMPTY;
}

static moesim_code refuse(const char *call, const char *rule, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_INTERNAL, "device host, %s: %s", call, rule);
}

/* ---- link ---------------------------------------------------------------------------------------------------------- */

struct copying {
    struct host_device *d;
    size_t bytes, from, to;      /* where the next copy begins, in the pool and in the slots */
    uint32_t repeat;
    uint64_t ns;
};

/* One copy of `bytes`; a buffer that ends goes on at its beginning. */
static void copy_round(struct copying *c)
{
    const struct host_device *d = c->d;
    for (size_t left = c->bytes; left > 0;) {
        size_t n = left;
        n = n < d->sizes.pool - c->from ? n : d->sizes.pool - c->from;
        n = n < d->sizes.slots - c->to ? n : d->sizes.slots - c->to;
        moesim_host_copy((char *)d->slots + c->to, (const char *)d->pool + c->from, n);
        c->from = c->from + n < d->sizes.pool ? c->from + n : 0;
        c->to = c->to + n < d->sizes.slots ? c->to + n : 0;
        left -= n;
    }
}

static void copy_main(void *context, uint32_t thread, uint32_t threads)
{
    struct copying *c = context;
    (void)thread;
    (void)threads;
    const uint64_t start = moesim_clock_ns();
    for (uint32_t i = 0; i < c->repeat; i++)
        copy_round(c);
    c->ns = moesim_clock_ns() - start;
}

/* Does what was copied last lie there? A copy larger than the slots has overwritten its own beginning. */
static bool copied_well(const struct copying *c, size_t from, size_t to)
{
    const struct host_device *d = c->d;
    for (size_t i = 0; i < c->bytes && i < d->sizes.slots; i++) {
        const size_t at = c->bytes - 1 - i;
        if (((const char *)d->slots)[(to + at) % d->sizes.slots] != ((const char *)d->pool)[(from + at) % d->sizes.pool])
            return false;
    }
    return true;
}

moesim_code moesim_host_time_copy(moesim_device *device, size_t bytes, bool pinned, uint32_t streams, uint32_t repeat,
                                  double *seconds, moesim_error *err)
{
    struct host_device *d = of(device);
    (void)pinned;                /* memory is memory here */
    if (bytes == 0 || bytes > COPY_MAX || repeat == 0 || streams == 0)
        return refuse("time_copy", "1 byte to 256 MiB, at least one copy and stream", err);
    begin(d);
    struct copying c = { .d = d, .bytes = bytes, .from = d->copy_from, .to = d->copy_to, .repeat = repeat };
    moesim_cpu_team_run(d->link, copy_main, &c);
    *seconds = (double)c.ns * NS / repeat;
    const size_t done = bytes * (repeat - 1);
    const size_t from = (d->copy_from + done) % d->sizes.pool, to = (d->copy_to + done) % d->sizes.slots;
    d->copy_from = c.from;
    d->copy_to = c.to;
    return copied_well(&c, from, to) ? MOESIM_OK : refuse("time_copy", "what was copied does not lie there", err);
}

/* One small copy as an event has it: the other thread is told, copies, and tells. */
static void return_main(void *context, uint32_t thread, uint32_t threads)
{
    const struct copying *c = context;
    (void)thread;
    (void)threads;
    memcpy((char *)c->d->slots + c->to, (const char *)c->d->pool + c->from, c->bytes);
}

static double time_return_by(struct host_device *d, moesim_cpu_team *thread, size_t bytes, uint32_t repeat)
{
    struct copying c = { .d = d, .bytes = bytes };
    const uint64_t start = moesim_clock_ns();
    for (uint32_t i = 0; i < repeat; i++)
        moesim_cpu_team_run(thread, return_main, &c);
    return (double)(moesim_clock_ns() - start) * NS / repeat;
}

moesim_code moesim_host_time_return(moesim_device *device, size_t bytes, uint32_t repeat, double *to_host, double *to_device,
                                    moesim_error *err)
{
    struct host_device *d = of(device);
    if (bytes == 0 || bytes > d->sizes.slots || bytes > d->sizes.pool || repeat == 0)
        return refuse("time_return", "1 byte to the size of slots and pool, at least one copy", err);
    begin(d);
    *to_host = time_return_by(d, d->gpu, bytes, repeat);
    *to_device = time_return_by(d, d->link, bytes, repeat);
    return MOESIM_OK;
}

static void load_main(void *context, uint32_t thread, uint32_t threads)
{
    struct host_device *d = context;
    struct copying c = { .d = d, .bytes = d->load_copy };
    (void)thread;
    (void)threads;
    const uint64_t start = moesim_clock_ns();
    while (__atomic_load_n(&d->load_stop, __ATOMIC_ACQUIRE) == 0) {
        copy_round(&c);
        d->load_bytes += c.bytes;
    }
    d->load_ns = moesim_clock_ns() - start;
}

moesim_code moesim_host_load_begin(moesim_device *device, size_t bytes, moesim_error *err)
{
    struct host_device *d = of(device);
    if (d->load_copy != 0 || bytes == 0 || bytes > COPY_MAX)
        return refuse("load_begin", "one load at a time, of 1 byte to 256 MiB", err);
    begin(d);
    d->load_copy = bytes;
    d->load_bytes = 0;
    __atomic_store_n(&d->load_stop, 0, __ATOMIC_RELEASE);
    moesim_cpu_team_call(d->link, load_main, d);
    return MOESIM_OK;
}

moesim_code moesim_host_load_end(moesim_device *device, uint64_t *bytes, double *seconds, moesim_error *err)
{
    struct host_device *d = of(device);
    if (d->load_copy == 0)
        return refuse("load_end", "load_begin did not come before", err);
    moesim_host_load_stop(d);
    *bytes = d->load_bytes;
    *seconds = (double)d->load_ns * NS;
    return MOESIM_OK;
}

void moesim_host_load_stop(struct host_device *d)
{
    __atomic_store_n(&d->load_stop, 1, __ATOMIC_RELEASE);
    moesim_cpu_team_wait(d->link);
    d->load_copy = 0;
}

/* ---- gpu ----------------------------------------------------------------------------------------------------------- */

struct computing {
    struct host_device *d;
    uint32_t experts, tokens, repeat;
    const uint16_t *row;
    void (*layer)(struct host_device *d, uint32_t num_rows);
    uint64_t ns;
};

static void grouped_main(void *context, uint32_t thread, uint32_t threads)
{
    struct computing *c = context;
    struct host_device *d = c->d;
    (void)thread;
    (void)threads;
    if (!d->slots_filled)
        for (uint32_t i = 0; i < d->config.slots; i++)
            memcpy(d->slots + i * d->sizes.weights, d->pool + (i % d->config.pool) * d->sizes.weights, d->sizes.expert);
    d->slots_filled = true;
    const uint64_t start = moesim_clock_ns();
    for (uint32_t i = 0; i < c->repeat; i++)
        for (uint32_t e = 0; e < c->experts; e++) {
            const uint32_t slot = d->next_slot++ % d->config.slots;
            moesim_host_compute(d, d->slots + slot * d->sizes.weights, c->row, c->tokens, d->out[0]);
        }
    c->ns = moesim_clock_ns() - start;
}

moesim_code moesim_host_time_grouped(moesim_device *device, uint32_t experts, uint32_t tokens, uint32_t repeat, double *seconds,
                                     moesim_error *err)
{
    struct host_device *d = of(device);
    uint16_t row[MOESIM_DEVICE_ROWS_MAX];
    if (experts == 0 || tokens == 0 || tokens > d->config.max_rows || repeat == 0)
        return refuse("time_grouped", "at least one expert, 1 to max_rows tokens, at least one call", err);
    begin(d);
    for (uint32_t t = 0; t < tokens; t++)
        row[t] = (uint16_t)t;
    struct computing c = { .d = d, .experts = experts, .tokens = tokens, .repeat = repeat, .row = row };
    moesim_cpu_team_run(d->gpu, grouped_main, &c);
    *seconds = (double)c.ns * NS / repeat;
    return MOESIM_OK;
}

static void layer_main(void *context, uint32_t thread, uint32_t threads)
{
    struct computing *c = context;
    (void)thread;
    (void)threads;
    const uint64_t start = moesim_clock_ns();
    for (uint32_t i = 0; i < c->repeat; i++)
        c->layer(c->d, c->tokens);
    c->ns = moesim_clock_ns() - start;
}

static moesim_code time_layer(struct host_device *d, const char *call, struct computing *c, double *seconds, moesim_error *err)
{
    if (d->other_x == NULL)
        return refuse(call, "the device was opened without `other`", err);
    if (c->tokens == 0 || c->tokens > d->config.max_rows || c->repeat == 0)
        return refuse(call, "1 to max_rows rows, at least once", err);
    moesim_host_finish(d);
    c->d = d;
    moesim_cpu_team_run(d->gpu, layer_main, c);
    *seconds = (double)c->ns * NS / c->repeat;
    return MOESIM_OK;
}

moesim_code moesim_host_time_other(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *device_s, double *host_s,
                                   moesim_error *err)
{
    struct computing c = { .tokens = num_rows, .repeat = repeat, .layer = moesim_host_other };
    *host_s = 0.0;               /* it is part of the gate's one call */
    return time_layer(of(device), "time_other", &c, device_s, err);
}

moesim_code moesim_host_time_head(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds, moesim_error *err)
{
    struct computing c = { .tokens = num_rows, .repeat = repeat, .layer = moesim_host_head };
    return time_layer(of(device), "time_head", &c, seconds, err);
}

moesim_code moesim_host_time_empty(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds,
                                   moesim_error *err)
{
    struct host_device *d = of(device);
    const moesim_device_work nothing = { .num_rows = num_rows };
    if (num_rows == 0 || num_rows > d->config.max_rows || repeat == 0)
        return refuse("time_empty", "1 to max_rows rows, at least one event", err);
    moesim_host_gate(d, num_rows, false);
    const uint64_t start = moesim_clock_ns();
    for (uint32_t i = 0; i < repeat; i++) {
        moesim_host_stage(d, &nothing);
        moesim_host_event(d);
        moesim_host_gate(d, num_rows, false);
    }
    *seconds = (double)(moesim_clock_ns() - start) * NS / repeat;
    return MOESIM_OK;
}
