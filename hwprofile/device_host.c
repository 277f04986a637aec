/* SPDX-License-Identifier: Apache-2.0
 *
 * The host device: everything that a GPU does to an event, done by threads of this machine. It runs anywhere, and a profile of
 * it is held against it as one of a GPU is against the GPU.
 */
#include "hwprofile/device_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_NS 20000u           /* threads of the device, where CPUs are few … */
#define SPIN_LONG_NS 250000u     /* … and where none is kept from work: waking one takes longer than a copy */
#define OTHER_THREADS 3u         /* driver, link and gpu: CPUs beside those of the team */

static struct host_device *of(moesim_device *device)
{
    return (struct host_device *)device;
}

static bool host_present(int index, char why[256])
{
    if (index == 0)
        return true;
    snprintf(why, 256, "there is one host device, number 0");
    return false;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Everything beside pool and slots. */
static uint64_t small_bytes(const moesim_device_config *c, const moesim_device_sizes *s)
{
    const uint64_t row_floats = (uint64_t)c->max_rows * c->hidden * sizeof(float);
    const uint64_t other = c->other ? (uint64_t)HOST_BATCH * moesim_host_other_k(c) * sizeof(float) : 0;
    return 2 * s->inputs + 2 * s->outputs + 3 * row_floats + other + HOST_SCRATCH;
}

static moesim_code check_memory(const moesim_device_config *c, const moesim_device_sizes *s, moesim_error *err)
{
    const uint64_t free_bytes = moesim_host_memory_free(), small = small_bytes(c, s);
    const uint64_t host = moesim_memory_allowed(c->host_limit, free_bytes);
    const uint64_t device = moesim_memory_allowed(c->memory_limit, free_bytes);
    char what[128];
    snprintf(what, sizeof what, "the pool of %u experts", c->pool);
    moesim_code code = moesim_memory_check("host memory", what, s->pool, host, "lower --host-pool", err);
    if (code != MOESIM_OK)
        return code;
    snprintf(what, sizeof what, "device memory for %u experts", c->slots);
    code = moesim_memory_check("host memory", what, s->slots + small, device, "lower --cache or --staging", err);
    if (code != MOESIM_OK)
        return code;
    const uint64_t both = moesim_memory_allowed(0, free_bytes);
    snprintf(what, sizeof what, "%u experts of device memory beside a pool of %u experts", c->slots, c->pool);
    return moesim_memory_check("host memory", what, s->slots + s->pool + small, both, "lower --host-pool, or --cache", err);
}

/* The last CPU of ours that is not `taken`; one that the team leaves, if there is any. */
static uint32_t free_cpu(const moesim_cpu_places *ours, const moesim_cpu_places *team, uint32_t taken)
{
    uint32_t found = taken;
    for (uint32_t i = 0; i < ours->allowed; i++)
        found = ours->cpu[i] != taken ? ours->cpu[i] : found;
    for (uint32_t i = 0; i < ours->allowed; i++) {
        bool others = ours->cpu[i] != taken;
        for (uint32_t k = 0; k < team->threads; k++)
            others = others && team->cpu[k] != ours->cpu[i];
        found = others ? ours->cpu[i] : found;
    }
    return found;
}

/* Link or gpu, on one CPU if it is pinned. */
static moesim_code start_thread(struct host_device *d, bool pinned, uint32_t cpu_number, moesim_cpu_team **out,
                                moesim_error *err)
{
    char cpu[16] = "none";
    if (pinned)
        snprintf(cpu, sizeof cpu, "%u", cpu_number);
    const moesim_cpu_config one = { .threads = 1, .isa = moesim_cpu_team_isa(d->team), .cpus = cpu };
    return moesim_cpu_team_create(&one, d->config.hidden, d->config.intermediate, 1, out, err);
}

static moesim_code start_threads(struct host_device *d, moesim_error *err)
{
    const moesim_device_config *c = &d->config;
    moesim_code code = moesim_cpu_team_create(&c->cpu, c->hidden, c->intermediate, c->max_rows, &d->team, err);
    if (code != MOESIM_OK)
        return code;
    const moesim_cpu_config all = { .threads = 1 };
    moesim_cpu_places team, ours;
    code = moesim_cpu_place(&c->cpu, &team, err);
    if (code == MOESIM_OK)
        code = moesim_cpu_place(&all, &ours, err);
    if (code != MOESIM_OK)
        return code;
    /* Where CPUs are few, whom the system puts beside whom would change from event to event. */
    const bool few = ours.allowed < team.threads + OTHER_THREADS, pinned = few && team.pinned && ours.allowed > 1;
    const uint32_t gpu = free_cpu(&ours, &team, UINT32_MAX);
    code = start_thread(d, pinned, gpu, &d->gpu, err);
    if (code == MOESIM_OK)
        code = start_thread(d, pinned, free_cpu(&ours, &team, gpu), &d->link, err);
    if (code != MOESIM_OK)
        return code;
    d->spin_ns[0] = ours.allowed < 2 ? SPIN_NS : SPIN_LONG_NS;
    d->spin_ns[1] = few ? SPIN_NS : SPIN_LONG_NS;
    if (few) {
        moesim_cpu_team_spin(d->team, SPIN_NS);
        moesim_cpu_team_spin(d->link, SPIN_NS);
        moesim_cpu_team_spin(d->gpu, SPIN_NS);
    }
    return moesim_cpu_kernel_find(moesim_cpu_team_isa(d->team), &d->kernel, err);
}

static bool allocate(struct host_device *d)
{
    const moesim_device_config *c = &d->config;
    const moesim_device_sizes *s = &d->sizes;
    const size_t rows = (size_t)c->max_rows * c->hidden * sizeof(float);
    struct host_event *e = &d->event;
    const struct { void *to; size_t bytes; } table[] = {
        { &d->x, s->inputs }, { &d->x_host, s->inputs }, { &d->out[0], s->outputs }, { &d->out[1], s->outputs },
        { &d->cpu_sum, rows }, { &d->returned, rows }, { &d->result, rows },
        { &d->routing, s->routes * sizeof *d->routing }, { &d->routing_host, s->routes * sizeof *d->routing_host },
        { &d->reader, c->slots * sizeof *d->reader }, { &d->scratch, HOST_SCRATCH }, { &d->job, s->routes * sizeof *d->job },
        { &e->expert, s->routes * sizeof *e->expert }, { &e->rows, s->routes * sizeof *e->rows },
        { &e->after, s->routes * sizeof *e->after },
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        void *data = calloc(1, table[i].bytes);
        ok = ok && data != NULL;
        memcpy(table[i].to, &data, sizeof data);
    }
    d->pool = moesim_host_alloc(s->pool);
    d->slots = moesim_host_alloc(s->slots);
    d->crew = moesim_cpu_crew_create(d->kernel, 1, c->hidden, c->intermediate, HOST_BATCH);
    return ok && d->pool != NULL && d->slots != NULL && d->crew != NULL;
}

/* Activations of `other`, as long as its longest row asks for. */
static bool allocate_other(struct host_device *d)
{
    if (!d->config.other)
        return true;
    const uint32_t k = moesim_host_other_k(&d->config);
    uint16_t *x = malloc(k * sizeof *x);
    void *prepared = NULL;
    if (x == NULL || posix_memalign(&prepared, 64, (size_t)HOST_BATCH * k * d->kernel->element) != 0) {
        free(x);
        return false;
    }
    moesim_inputs_fill(x, 1, k, d->config.seed);
    for (uint32_t t = 0; t < HOST_BATCH; t++)
        d->kernel->prepare(x, k, (char *)prepared + (size_t)t * k * d->kernel->element);
    free(x);
    d->other_x = prepared;
    return true;
}

static void host_close(moesim_device **device)
{
    if (*device == NULL)
        return;
    struct host_device *d = of(*device);
    struct host_event *e = &d->event;
    if (d->load_copy != 0)
        moesim_host_load_stop(d);
    moesim_cpu_team_destroy(&d->link);       /* each waits for what runs */
    moesim_cpu_team_destroy(&d->gpu);
    moesim_cpu_team_destroy(&d->team);
    moesim_cpu_crew_destroy(d->crew);
    moesim_host_free(d->pool, d->sizes.pool);
    moesim_host_free(d->slots, d->sizes.slots);
    void *const owned[] = { d->x, d->x_host, d->out[0], d->out[1], d->cpu_sum, d->returned, d->result, d->routing,
                            d->routing_host, d->reader, d->scratch, d->job, e->expert, e->rows, e->after, d->other_x };
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
    moesim_device_order_fini(&d->order);
    pthread_mutex_destroy(&d->progress.lock);
    pthread_cond_destroy(&d->progress.changed);
    free(d);
    *device = NULL;
}

/* All slots, by the thread that reads them: otherwise the first copies and events of a measurement would wait for pages. */
static void touch_main(void *context, uint32_t thread, uint32_t threads)
{
    struct host_device *d = context;
    (void)thread;
    (void)threads;
    memset(d->slots, 0, d->sizes.slots);
}

static moesim_code host_open(const moesim_device_config *config, moesim_device **out, moesim_error *err)
{
    moesim_device_sizes sizes;
    moesim_code code = moesim_device_check(config, err);
    if (code != MOESIM_OK)
        return code;
    moesim_device_sizes_get(config, &sizes);
    code = check_memory(config, &sizes, err);
    if (code != MOESIM_OK)
        return code;
    struct host_device *d = calloc(1, sizeof *d);
    if (d == NULL)
        return moesim_fail_nomem(err, "the host device", sizeof *d);
    d->base.ops = &moesim_device_host;
    d->config = *config;
    d->sizes = sizes;
    pthread_mutex_init(&d->progress.lock, NULL);
    pthread_cond_init(&d->progress.changed, NULL);
    moesim_device *device = &d->base;
    code = moesim_device_order_init(&d->order, "host", &d->config, err);
    if (code == MOESIM_OK)
        code = start_threads(d, err);
    if (code == MOESIM_OK && (!allocate(d) || !allocate_other(d)))
        code = moesim_fail_nomem(err, "pool and slots of the host device", sizes.pool + sizes.slots);
    if (code != MOESIM_OK) {
        host_close(&device);
        return code;
    }
    moesim_pool_fill(d->pool, 0, config->pool, config->hidden, config->intermediate, config->seed, d->team);
    moesim_cpu_team_run(d->gpu, touch_main, d);
    moesim_inputs_fill(d->x, config->max_rows, config->hidden, config->seed);
    *out = device;
    return MOESIM_OK;
}

static bool host_fact(moesim_device *device, size_t i, moesim_device_fact *out)
{
    const struct host_device *d = of(device);
    static const char *const keys[] = { "device", "link", "pinned", "slots", "pool", "pool bytes" };
    const size_t own = sizeof keys / sizeof keys[0];
    if (i >= own)
        return moesim_host_fact(d->team, i - own, out);
    out->key = keys[i];
    switch (i) {
    case 0: snprintf(out->value, sizeof out->value, "host: its memory is host memory, its processor one thread (CPU: %s)",
                     moesim_cpu_team_cpus(d->gpu)); break;
    case 1: snprintf(out->value, sizeof out->value, "one copying thread (CPU: %s)", moesim_cpu_team_cpus(d->link)); break;
    case 2: snprintf(out->value, sizeof out->value, "no"); break;
    case 3: snprintf(out->value, sizeof out->value, "%u", d->config.slots); break;
    case 4: snprintf(out->value, sizeof out->value, "%u", d->config.pool); break;
    default: snprintf(out->value, sizeof out->value, "%zu", d->sizes.pool);
    }
    return true;
}

/* ---- replay -------------------------------------------------------------------------------------------------------- */

static moesim_code host_fill(moesim_device *device, uint32_t slot, uint32_t pool, moesim_error *err)
{
    struct host_device *d = of(device);
    const moesim_code code = moesim_device_order_fill(&d->order, slot, pool, err);
    if (code == MOESIM_OK)
        memcpy(d->slots + slot * d->sizes.weights, d->pool + pool * d->sizes.weights, d->sizes.expert);
    return code;
}

static void take_times(struct host_device *d, moesim_device_times *times)
{
    struct host_event *e = &d->event;
    *times = (moesim_device_times){ moesim_clock_ns(), e->busy_link, e->busy_gpu, e->busy_cpu, e->bytes };
    e->busy_link = e->busy_gpu = e->busy_cpu = e->bytes = 0;
}

static moesim_code host_gate(moesim_device *device, uint32_t num_rows, moesim_device_times *times, moesim_error *err)
{
    struct host_device *d = of(device);
    const moesim_code code = moesim_device_order_gate(&d->order, num_rows, err);
    if (code != MOESIM_OK)
        return code;
    moesim_host_gate(d, num_rows, d->config.other);
    take_times(d, times);
    return MOESIM_OK;
}

static moesim_code host_work(moesim_device *device, const moesim_device_work *work, moesim_error *err)
{
    struct host_device *d = of(device);
    const moesim_code code = moesim_device_order_work(&d->order, work, err);
    if (code != MOESIM_OK)
        return code;
    moesim_host_stage(d, work);
    moesim_host_event(d);
    return MOESIM_OK;
}

struct head_call { struct host_device *d; uint32_t num_rows; };

static void head_main(void *context, uint32_t thread, uint32_t threads)
{
    const struct head_call *c = context;
    (void)thread;
    (void)threads;
    moesim_host_head(c->d, c->num_rows);
}

static moesim_code host_end_pass(moesim_device *device, uint32_t num_rows, bool with_head, moesim_device_times *times,
                                 moesim_error *err)
{
    struct host_device *d = of(device);
    const moesim_code code = moesim_device_order_end(&d->order, num_rows, with_head, err);
    if (code != MOESIM_OK)
        return code;
    if (with_head && d->other_x == NULL)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device host, end of a pass: the head belongs to `other`, and the "
                           "device was opened without it");
    moesim_host_finish(d);
    struct head_call call = { d, num_rows };
    if (with_head)
        moesim_cpu_team_run(d->gpu, head_main, &call);
    take_times(d, times);
    return MOESIM_OK;
}

static moesim_code host_outputs(moesim_device *device, float *out, size_t routes, moesim_error *err)
{
    struct host_device *d = of(device);
    if (d->order.busy || routes > d->event.routes)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device host, outputs: %zu routes after an event of %zu that %s", routes,
                           d->event.routes, d->order.busy ? "still runs" : "has ended");
    memcpy(out, d->out[d->which], routes * d->config.hidden * sizeof *out);
    return MOESIM_OK;
}

static moesim_code host_inputs(moesim_device *device, uint16_t *out, uint32_t num_rows, moesim_error *err)
{
    struct host_device *d = of(device);
    if (num_rows > d->config.max_rows)
        return moesim_fail(err, MOESIM_E_INTERNAL, "device host, inputs: %u rows, at most %u", num_rows, d->config.max_rows);
    memcpy(out, d->x, (size_t)num_rows * d->config.hidden * sizeof *out);
    return MOESIM_OK;
}

static const uint16_t *host_weights(const moesim_device *device, uint32_t pool)
{
    const struct host_device *d = (const struct host_device *)device;
    return pool < d->config.pool ? d->pool + pool * d->sizes.weights : NULL;
}

static moesim_code host_set_cap(moesim_device *device, double bandwidth_cap, moesim_error *err)
{
    struct host_device *d = of(device);
    moesim_device_config changed = d->config;
    changed.bandwidth_cap = bandwidth_cap;
    const moesim_code code = moesim_device_check(&changed, err);
    if (code != MOESIM_OK)
        return code;
    moesim_host_finish(d);
    d->config.bandwidth_cap = bandwidth_cap;
    return MOESIM_OK;
}

static moesim_cpu_team *host_cpu(moesim_device *device)
{
    return of(device)->team;
}

const moesim_device_ops moesim_device_host = {
    .name = "host", .help = "threads of this machine: one copies, one computes what a GPU would",
    .present = host_present, .open = host_open, .close = host_close, .fact = host_fact,
    .fill = host_fill, .gate = host_gate, .work = host_work, .end_pass = host_end_pass,
    .outputs = host_outputs, .inputs = host_inputs, .weights = host_weights, .set_cap = host_set_cap,
    .time_copy = moesim_host_time_copy, .time_return = moesim_host_time_return, .time_grouped = moesim_host_time_grouped,
    .time_other = moesim_host_time_other, .time_head = moesim_host_time_head, .time_empty = moesim_host_time_empty,
    .load_begin = moesim_host_load_begin, .load_end = moesim_host_load_end, .cpu = host_cpu,
};
