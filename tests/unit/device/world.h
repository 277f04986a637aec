/* SPDX-License-Identifier: Apache-2.0
 *
 * A small device of any backend, a caller that keeps slots as a replay does, and the reference of every expert and row.
 */
#ifndef MOESIM_TESTS_UNIT_DEVICE_WORLD_H
#define MOESIM_TESTS_UNIT_DEVICE_WORLD_H

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "hwprofile/device.h"
#include "tests/unit/device/device.h"

enum { W_HIDDEN = 256, W_INTERMEDIATE = 64, W_ROWS = 24, W_TOP_K = 8, W_SLOTS = 10, W_POOL = 14, W_MAX = W_ROWS * W_TOP_K };

#define W_TOLERANCE 1e-2
#define WORKS(call) ck_assert_msg((call) == MOESIM_OK, "%s", err.text)

struct world {
    const moesim_device_ops *ops;
    moesim_device *device;
    bool computes;               /* has weights: outputs can be held against the reference */
    double (*want)[W_ROWS][W_HIDDEN];        /* [pool] */
    moesim_rng rng;

    /* the event being put together */
    moesim_device_expert hit[W_MAX], moved[W_MAX], cpu[W_MAX];
    uint16_t row[W_MAX];
    uint32_t routes;
    uint32_t load[W_ROWS];       /* experts of a row so far */
    moesim_device_work work;
    float out[W_MAX * W_HIDDEN];
};

static inline moesim_device_config world_config(void)
{
    return (moesim_device_config){ .hidden = W_HIDDEN, .intermediate = W_INTERMEDIATE, .max_rows = W_ROWS, .top_k = W_TOP_K,
                                   .slots = W_SLOTS, .pool = W_POOL, .seed = 5, .allow_pageable = true,
                                   .cpu = { .threads = 2 } };
}

/* False, with the reason on standard error, where this machine has no such device. */
static inline bool world_open(struct world *w, const moesim_device_ops *ops, const moesim_device_config *config)
{
    char why[256] = "";
    moesim_error err = MOESIM_ERROR_INIT;
    memset(w, 0, sizeof *w);
    moesim_rng_seed(&w->rng, 1);
    if (!ops->present(0, why)) {
        fprintf(stderr, "skipped: %s: %s\n", ops->name, why);
        return false;
    }
    w->ops = ops;
    WORKS(ops->open(config, &w->device, &err));
    w->computes = ops->weights(w->device, 0) != NULL;
    return true;
}

static inline void world_reference(struct world *w)
{
    static uint16_t x[W_ROWS * W_HIDDEN];
    uint16_t row[W_ROWS];
    moesim_error err = MOESIM_ERROR_INIT;
    if (!w->computes)
        return;
    WORKS(w->ops->inputs(w->device, x, W_ROWS, &err));
    for (uint16_t i = 0; i < W_ROWS; i++)
        row[i] = i;
    w->want = calloc(W_POOL, sizeof *w->want);
    for (uint32_t e = 0; e < W_POOL; e++)
        moesim_cpu_reference(w->ops->weights(w->device, e), W_HIDDEN, W_INTERMEDIATE, x, row, W_ROWS, w->want[e][0]);
}

static inline void world_close(struct world *w)
{
    w->ops->close(&w->device);
    ck_assert_ptr_null(w->device);
    free(w->want);
}

#define EACH_BACKEND(ops) \
    for (const moesim_device_ops *const *each = moesim_device_backends(), *ops; (ops = *each) != NULL; each++)

/* The body runs once on every backend that is there, with w open on it. */
#define EACH_WORLD(w, ops, config) \
    EACH_BACKEND(ops) \
        for (bool is_open = world_open(w, ops, config); is_open; world_close(w), is_open = false)

static inline void world_begin(struct world *w, uint32_t num_rows)
{
    w->routes = 0;
    memset(w->load, 0, sizeof w->load);
    w->work = (moesim_device_work){ .num_rows = num_rows, .hits = w->hit, .moved = w->moved, .cpu = w->cpu };
}

/* Adds an expert with about `tokens` rows that are not full yet; kind 'h', 'm' or 'c'. False where no row has room. */
static inline bool world_add(struct world *w, char kind, uint32_t slot, uint32_t pool, uint32_t tokens)
{
    uint16_t *row = w->row + w->routes;
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->work.num_rows && n < tokens; i++)
        if (w->load[i] < W_TOP_K && moesim_rng_below(&w->rng, w->work.num_rows) < 2 * tokens) {
            w->load[i]++;
            row[n++] = (uint16_t)i;
        }
    if (n == 0)
        return false;
    w->routes += n;
    moesim_device_expert *to = kind == 'h' ? &w->hit[w->work.n_hits++]
                               : kind == 'm' ? &w->moved[w->work.n_moved++] : &w->cpu[w->work.n_cpu++];
    *to = (moesim_device_expert){ slot, pool, n, row };
    return true;
}

static inline void world_check_list(struct world *w, const moesim_device_expert *e, uint32_t n, const float **out)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < e[i].tokens; t++, *out += W_HIDDEN) {
            const double error = device_error(*out, w->want[e[i].pool][e[i].row[t]], 1, W_HIDDEN);
            ck_assert_msg(error < W_TOLERANCE, "%s: pool expert %u, row %u: relative error %g", w->ops->name, e[i].pool,
                          e[i].row[t], error);
        }
}

/* The event has ended: every route against the reference. */
static inline void world_check(struct world *w)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const float *out = w->out;
    WORKS(w->ops->outputs(w->device, w->out, w->routes, &err));
    if (!w->computes) {
        ck_assert(device_untouched(w->out, 0, (size_t)w->routes * W_HIDDEN));
        return;
    }
    world_check_list(w, w->hit, w->work.n_hits, &out);
    world_check_list(w, w->moved, w->work.n_moved, &out);
    world_check_list(w, w->cpu, w->work.n_cpu, &out);
}

/* Gates the event, runs it, ends it and checks. */
static inline void world_run(struct world *w)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_times first, times;
    WORKS(w->ops->gate(w->device, w->work.num_rows, &first, &err));
    WORKS(w->ops->work(w->device, &w->work, &err));
    WORKS(w->ops->end_pass(w->device, 0, false, &times, &err));
    ck_assert_uint_ge(times.gate, first.gate);
    ck_assert_uint_eq(times.bytes, w->work.n_moved * 3ull * W_HIDDEN * W_INTERMEDIATE * 2);
    world_check(w);
}

#endif
