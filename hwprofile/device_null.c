/* SPDX-License-Identifier: Apache-2.0
 *
 * The null device: order only. Nothing is copied or computed and everything takes no time; every rule of use is checked. Its
 * measurements come from one small made-up table, so that measuring and fitting can be tested against known constants. It has
 * no weights and no CPU threads.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/device_memory.h"
#include "hwprofile/device_parts.h"

/* Made up, and said so in the facts. */
#define COPY_S 4e-6
#define COPY_RATE 50e9
#define RETURN_S 6e-6
#define RETURN_RATE 25e9
#define LAUNCH_S 8e-6
#define EXPERT_S 2e-6
#define TOKEN_S 1e-8
#define OTHER_S 40e-6
#define OTHER_HOST_S 10e-6
#define HEAD_S 200e-6
#define EMPTY_S 15e-6
#define PAGEABLE 4.0             /* times slower */

struct null_device {
    moesim_device base;
    moesim_device_config config;
    moesim_device_order order;
    uint64_t moved_bytes;        /* of the event since the last gate */
    uint64_t expert_bytes;
    size_t load_copy;            /* bytes of one copy between load_begin and load_end, 0 outside */
};

static struct null_device *of(moesim_device *device)
{
    return (struct null_device *)device;
}

static bool null_present(int index, char why[256])
{
    if (index == 0)
        return true;
    snprintf(why, 256, "there is one null device, number 0");
    return false;
}

static moesim_code null_open(const moesim_device_config *config, moesim_device **out, moesim_error *err)
{
    const moesim_code code = moesim_device_check(config, err);
    if (code != MOESIM_OK)
        return code;
    struct null_device *d = calloc(1, sizeof *d);
    if (d == NULL)
        return moesim_fail_nomem(err, "the null device", sizeof *d);
    d->base.ops = &moesim_device_null;
    d->config = *config;
    moesim_device_sizes sizes;
    moesim_device_sizes_get(config, &sizes);
    d->expert_bytes = sizes.expert;
    if (moesim_device_order_init(&d->order, "null", &d->config, err) != MOESIM_OK) {
        free(d);
        return MOESIM_E_NOMEM;
    }
    *out = &d->base;
    return MOESIM_OK;
}

static void null_close(moesim_device **device)
{
    if (*device == NULL)
        return;
    moesim_device_order_fini(&of(*device)->order);
    free(*device);
    *device = NULL;
}

static bool null_fact(moesim_device *device, size_t i, moesim_device_fact *out)
{
    const moesim_device_config *c = &of(device)->config;
    const char *const keys[] = { "device", "times", "slots", "pool" };
    if (i >= sizeof keys / sizeof keys[0])
        return false;
    out->key = keys[i];
    switch (i) {
    case 0: snprintf(out->value, sizeof out->value, "null: nothing is copied or computed"); break;
    case 1: snprintf(out->value, sizeof out->value, "made up"); break;
    case 2: snprintf(out->value, sizeof out->value, "%u", c->slots); break;
    default: snprintf(out->value, sizeof out->value, "%u", c->pool);
    }
    return true;
}

static moesim_code null_fill(moesim_device *device, uint32_t slot, uint32_t pool, moesim_error *err)
{
    return moesim_device_order_fill(&of(device)->order, slot, pool, err);
}

static void take_times(struct null_device *d, moesim_device_times *times)
{
    memset(times, 0, sizeof *times);
    times->gate = moesim_clock_ns();
    times->bytes = d->moved_bytes;
    d->moved_bytes = 0;
}

static moesim_code null_gate(moesim_device *device, uint32_t num_rows, moesim_device_times *times, moesim_error *err)
{
    const moesim_code code = moesim_device_order_gate(&of(device)->order, num_rows, err);
    if (code == MOESIM_OK)
        take_times(of(device), times);
    return code;
}

static moesim_code null_work(moesim_device *device, const moesim_device_work *work, moesim_error *err)
{
    const moesim_code code = moesim_device_order_work(&of(device)->order, work, err);
    if (code == MOESIM_OK)
        of(device)->moved_bytes = work->n_moved * of(device)->expert_bytes;
    return code;
}

static moesim_code null_end_pass(moesim_device *device, uint32_t num_rows, bool with_head, moesim_device_times *times,
                                 moesim_error *err)
{
    const moesim_code code = moesim_device_order_end(&of(device)->order, num_rows, with_head, err);
    if (code == MOESIM_OK)
        take_times(of(device), times);
    return code;
}

static moesim_code null_outputs(moesim_device *device, float *out, size_t routes, moesim_error *err)
{
    (void)err;
    for (size_t i = 0; i < routes * of(device)->config.hidden; i++)
        out[i] = NAN;
    return MOESIM_OK;
}

static moesim_code null_inputs(moesim_device *device, uint16_t *out, uint32_t num_rows, moesim_error *err)
{
    (void)err;
    moesim_inputs_fill(out, num_rows, of(device)->config.hidden, of(device)->config.seed);
    return MOESIM_OK;
}

static const uint16_t *null_weights(const moesim_device *device, uint32_t pool)
{
    (void)device;
    (void)pool;
    return NULL;
}

static moesim_code null_set_cap(moesim_device *device, double bandwidth_cap, moesim_error *err)
{
    moesim_device_config changed = of(device)->config;
    changed.bandwidth_cap = bandwidth_cap;
    const moesim_code code = moesim_device_check(&changed, err);
    if (code == MOESIM_OK)
        of(device)->config.bandwidth_cap = bandwidth_cap;
    return code;
}

static moesim_code null_copy(moesim_device *device, size_t bytes, bool pinned, uint32_t streams, uint32_t repeat,
                             double *seconds, moesim_error *err)
{
    (void)device;
    (void)streams;               /* copies of one direction serialise */
    (void)repeat;
    (void)err;
    *seconds = (COPY_S + (double)bytes / COPY_RATE) * (pinned ? 1.0 : PAGEABLE);
    return MOESIM_OK;
}

static moesim_code null_return(moesim_device *device, size_t bytes, uint32_t repeat, double *to_host, double *to_device,
                               moesim_error *err)
{
    (void)device;
    (void)repeat;
    (void)err;
    *to_host = *to_device = RETURN_S + (double)bytes / RETURN_RATE;
    return MOESIM_OK;
}

static moesim_code null_grouped(moesim_device *device, uint32_t experts, uint32_t tokens, uint32_t repeat, double *seconds,
                                moesim_error *err)
{
    (void)device;
    (void)repeat;
    (void)err;
    *seconds = LAUNCH_S + experts * (EXPERT_S + tokens * TOKEN_S);
    return MOESIM_OK;
}

static moesim_code null_other(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *device_s, double *host_s,
                              moesim_error *err)
{
    (void)device;
    (void)num_rows;
    (void)repeat;
    (void)err;
    *device_s = OTHER_S;
    *host_s = OTHER_HOST_S;
    return MOESIM_OK;
}

static moesim_code null_head(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds, moesim_error *err)
{
    (void)device;
    (void)num_rows;
    (void)repeat;
    (void)err;
    *seconds = HEAD_S;
    return MOESIM_OK;
}

static moesim_code null_empty(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds, moesim_error *err)
{
    (void)device;
    (void)num_rows;
    (void)repeat;
    (void)err;
    *seconds = EMPTY_S;
    return MOESIM_OK;
}

static moesim_code null_load_begin(moesim_device *device, size_t bytes, moesim_error *err)
{
    if (of(device)->load_copy != 0 || bytes == 0)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device null, load_begin: one load at a time, of one byte or more");
    of(device)->load_copy = bytes;
    return MOESIM_OK;
}

static moesim_code null_load_end(moesim_device *device, uint64_t *bytes, double *seconds, moesim_error *err)
{
    struct null_device *d = of(device);
    if (d->load_copy == 0)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device null, load_end: load_begin did not come before");
    *bytes = d->load_copy;
    *seconds = COPY_S + (double)d->load_copy / COPY_RATE;
    d->load_copy = 0;
    return MOESIM_OK;
}

static moesim_cpu_team *null_cpu(moesim_device *device)
{
    (void)device;
    return NULL;
}

const moesim_device_ops moesim_device_null = {
    .name = "null", .help = "checks the order of calls; copies and computes nothing",
    .present = null_present, .open = null_open, .close = null_close, .fact = null_fact,
    .fill = null_fill, .gate = null_gate, .work = null_work, .end_pass = null_end_pass,
    .outputs = null_outputs, .inputs = null_inputs, .weights = null_weights, .set_cap = null_set_cap,
    .time_copy = null_copy, .time_return = null_return, .time_grouped = null_grouped, .time_other = null_other,
    .time_head = null_head, .time_empty = null_empty, .load_begin = null_load_begin, .load_end = null_load_end,
    .cpu = null_cpu,
};
