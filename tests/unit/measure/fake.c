/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine with known costs.
 */
#include "tests/unit/measure/fake.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"

struct fake_costs fake;
unsigned fake_opened, fake_closed, fake_copies;

const struct fake_costs fake_usual = {
    .alpha = 4e-6, .beta = 55e9, .return_alpha = 8e-6, .return_beta = 20e9, .dram = 80e9,
    .step = 9e-6, .late = 21e-6, .combine = 5e-6, .cpu_first = 150e-6, .cpu_more = 12e-6,
    .gpu_first = 10e-6, .gpu_expert = 2e-6, .gpu_token = 5e-8,
    .launch = 6e-6, .arrival = 7e-6, .sync = 15e-6, .other = 60e-6, .other_host = 20e-6, .head = 300e-6,
};

static struct {
    moesim_device base;
    moesim_device_config config;
    double clock;
    bool loaded, gated;
    double link_busy, link_wanted;           /* seconds and bytes of a load */
    double drift;
} machine;

static moesim_rng rng;

/* Check writes to a pipe for every ck_assert, which millions of calls would wait for. */
#define need(condition)                             \
    do {                                            \
        if (!(condition))                           \
            ck_abort_msg("fake: %s", #condition);   \
    } while (0)

static double noisy(double seconds)
{
    const double wild = moesim_rng_real(&rng) < fake.wild ? 5.0 : 1.0;
    return wild * seconds * (1.0 + fake.noise * (2.0 * moesim_rng_real(&rng) - 1.0));
}

static bool breaks(const char *name, moesim_error *err)
{
    if (fake.broken == NULL || strcmp(fake.broken, name) != 0)
        return false;
    moesim_fail(err, MOESIM_E_IO, "%s: broken", name);
    return true;
}

double fake_grouped(double experts, double tokens)
{
    return fake.gpu_first + experts * (fake.gpu_expert + fake.gpu_token * tokens);
}

double fake_expert(double tokens, double threads)
{
    return (fake.cpu_first + fake.cpu_more * (tokens - 1.0)) * FAKE_THREADS / threads;
}

static double copy_seconds(double bytes)
{
    return fmax(fake.alpha + bytes / fake.beta, 1e-7);
}

/* ---- the device ------------------------------------------------------------------------------------------------------ */

static moesim_code fake_open(const moesim_device_config *config, moesim_device **out, moesim_error *err)
{
    if (breaks("open", err))
        return err->code;
    machine.config = *config;
    machine.base.ops = &fake_ops;
    machine.gated = machine.loaded = false;
    *out = &machine.base;
    fake_opened++;
    return MOESIM_OK;
}

static void fake_close(moesim_device **device)
{
    if (*device != NULL)
        fake_closed++;
    *device = NULL;
}

static bool fake_fact(moesim_device *device, size_t i, moesim_device_fact *out)
{
    static const moesim_device_fact facts[] = { { "gpu", "Fake 9000" }, { "isa", "abacus" } };
    (void)device;
    if (i >= sizeof facts / sizeof facts[0])
        return false;
    *out = facts[i];
    return true;
}

static moesim_code fake_fill(moesim_device *device, uint32_t slot, uint32_t pool, moesim_error *err)
{
    (void)device;
    need(slot < machine.config.slots);
    need(pool < machine.config.pool);
    return breaks("fill", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_gate(moesim_device *device, uint32_t num_rows, moesim_device_times *times, moesim_error *err)
{
    (void)device;
    need(num_rows >= 1);
    need(!machine.config.other);
    machine.clock += noisy(fake.sync);
    machine.gated = true;
    *times = (moesim_device_times){ .gate = (uint64_t)llround(machine.clock * 1e9) };
    return breaks("gate", err) ? err->code : MOESIM_OK;
}

static void check_expert(const moesim_device_expert *e, uint32_t rows)
{
    need(e->pool < machine.config.pool);
    need(e->row[e->tokens - 1] < rows);
    for (uint32_t t = 1; t < e->tokens; t++)
        need(e->row[t - 1] < e->row[t]);
}

static moesim_code fake_work(moesim_device *device, const moesim_device_work *work, moesim_error *err)
{
    const double copy = copy_seconds(FAKE_BYTES);
    const double way = fake.return_alpha + work->num_rows * 2.0 * FAKE_HIDDEN / fake.return_beta;
    double seconds = 0.0;
    (void)device;
    need(machine.gated);
    machine.gated = false;
    for (uint32_t i = 0; i < work->n_hits; i++)
        check_expert(&work->hits[i], work->num_rows);
    if (work->n_hits > 0)
        seconds = fake.launch + fake_grouped(work->n_hits, work->hits[0].tokens);
    for (uint32_t i = 0; i < work->n_moved; i++)
        check_expert(&work->moved[i], work->num_rows);
    if (work->n_moved > 0) {
        const double each = fake_grouped(1, work->moved[0].tokens);
        seconds = fake.arrival + fmax(work->n_moved * copy + each, copy + work->n_moved * each) + work->n_moved * fake.beside;
    }
    for (uint32_t i = 0; i < work->n_cpu; i++)
        check_expert(&work->cpu[i], work->num_rows);
    if (work->n_cpu > 0)
        seconds = fmax(seconds, (work->n_hits > 0 ? fake.late : 0.0) + 2.0 * way + fake.step + fake.combine +
                                work->n_cpu * fake_expert(work->cpu[0].tokens, FAKE_THREADS));
    machine.clock += noisy(seconds);
    return breaks("work", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_end_pass(moesim_device *device, uint32_t num_rows, bool with_head, moesim_device_times *times,
                                 moesim_error *err)
{
    (void)device, (void)num_rows, (void)with_head;
    *times = (moesim_device_times){ .gate = (uint64_t)llround(machine.clock * 1e9) };
    return breaks("end_pass", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_time_copy(moesim_device *device, size_t bytes, bool pinned, uint32_t streams, uint32_t repeat,
                                  double *seconds, moesim_error *err)
{
    (void)device;
    need(repeat >= 1);
    need(streams == 1 || streams == 2);
    machine.drift = machine.drift > 0.0 ? machine.drift * (1.0 + fake.drifts) : 1.0;
    *seconds = noisy(copy_seconds((double)bytes)) * (pinned ? 1.0 : 4.0) * (fake_copies < fake.slow_calls ? 2.0 : 1.0) *
               machine.drift;
    fake_copies++;
    return breaks("time_copy", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_time_return(moesim_device *device, size_t bytes, uint32_t repeat, double *to_host, double *to_device,
                                    moesim_error *err)
{
    (void)device, (void)repeat;
    *to_host = noisy(fake.return_alpha + (double)bytes / fake.return_beta) * 1.2;
    *to_device = noisy(fake.return_alpha + (double)bytes / fake.return_beta) * 0.8;
    return breaks("time_return", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_time_grouped(moesim_device *device, uint32_t experts, uint32_t tokens, uint32_t repeat, double *seconds,
                                     moesim_error *err)
{
    (void)device, (void)repeat;
    need(experts * tokens <= machine.config.max_rows * machine.config.top_k);
    *seconds = noisy(fake_grouped(experts, tokens));
    return breaks("time_grouped", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_time_other(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *device_s, double *host_s,
                                   moesim_error *err)
{
    (void)device, (void)num_rows, (void)repeat;
    need(machine.config.other);
    *device_s = noisy(fake.other);
    *host_s = noisy(fake.other_host);
    return breaks("time_other", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_time_head(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds, moesim_error *err)
{
    (void)device, (void)num_rows, (void)repeat;
    *seconds = noisy(fake.head);
    return breaks("time_head", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_time_empty(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds,
                                   moesim_error *err)
{
    (void)device, (void)num_rows, (void)repeat;
    *seconds = noisy(fake.sync);
    return breaks("time_empty", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_load_begin(moesim_device *device, size_t bytes, moesim_error *err)
{
    (void)device;
    need(bytes == (size_t)FAKE_BYTES);
    need(!machine.loaded);
    machine.loaded = true;
    machine.link_busy = 1e-3;                /* alone, until the CPU says otherwise */
    machine.link_wanted = 1e-3 * FAKE_BYTES / copy_seconds(FAKE_BYTES);
    return breaks("load_begin", err) ? err->code : MOESIM_OK;
}

static moesim_code fake_load_end(moesim_device *device, uint64_t *bytes, double *seconds, moesim_error *err)
{
    (void)device;
    need(machine.loaded);
    machine.loaded = false;
    *bytes = (uint64_t)llround(machine.link_wanted);
    *seconds = machine.link_busy;
    return breaks("load_end", err) ? err->code : MOESIM_OK;
}

static moesim_cpu_team *fake_no_team(moesim_device *device)
{
    (void)device;
    return NULL;
}

static bool fake_present(int index, char why[256])
{
    (void)index;
    why[0] = '\0';
    return true;
}

const moesim_device_ops fake_ops = {
    .name = "fake", .help = "known costs", .present = fake_present, .open = fake_open, .close = fake_close, .fact = fake_fact,
    .fill = fake_fill, .gate = fake_gate, .work = fake_work, .end_pass = fake_end_pass, .time_copy = fake_time_copy,
    .time_return = fake_time_return, .time_grouped = fake_time_grouped, .time_other = fake_time_other,
    .time_head = fake_time_head, .time_empty = fake_time_empty, .load_begin = fake_load_begin, .load_end = fake_load_end,
    .cpu = fake_no_team,
};

/* ---- the CPU ----------------------------------------------------------------------------------------------------------- */

static uint32_t team_of[2];

static moesim_code cpu_open(const moesim_device_ops *ops, moesim_device *device, const moesim_device_config *config,
                            uint32_t threads, void **out, moesim_error *err)
{
    (void)ops, (void)device, (void)config;
    need(threads < FAKE_THREADS);
    team_of[threads > 0] = threads > 0 ? threads : FAKE_THREADS;
    *out = &team_of[threads > 0];
    return breaks("cpu_open", err) ? err->code : MOESIM_OK;
}

static void cpu_close(void **team)
{
    *team = NULL;
}

static uint32_t cpu_threads(const void *team)
{
    return *(const uint32_t *)team;
}

/* Beside a busy link both get through B/demand of what they would alone. */
static double cpu_run(void *team, uint32_t experts, uint32_t tokens)
{
    const double each = fake_expert(tokens, *(const uint32_t *)team), link = FAKE_BYTES / copy_seconds(FAKE_BYTES);
    double share = 1.0;
    if (machine.loaded) {
        share = fmin(1.0, fake.dram / (link + FAKE_BYTES / each));
        machine.link_busy = noisy(1e-2);
        machine.link_wanted = 1e-2 * link * share;
    }
    return noisy(fake.step + experts * each / share);
}

static double cpu_read(void *team, uint64_t *bytes)
{
    *bytes = 1u << 30;
    return noisy((double)*bytes / (fake.dram * *(const uint32_t *)team / FAKE_THREADS));
}

const moesim_measure_cpu fake_cpu = { cpu_open, cpu_close, cpu_threads, cpu_run, cpu_read };

/* ---- helpers ------------------------------------------------------------------------------------------------------------- */

moesim_device_config fake_config(void)
{
    static const moesim_geometry *model;
    if (model == NULL)
        ck_assert_int_eq(moesim_geometry_find("llada2.0-mini", &model, NULL), MOESIM_OK);
    moesim_rng_seed(&rng, 7);
    machine.drift = 0.0;
    fake_copies = fake_opened = fake_closed = 0;
    return (moesim_device_config){ .hidden = FAKE_HIDDEN, .intermediate = FAKE_INTERMEDIATE, .top_k = 8,
                                   .max_rows = moesim_measure_rows(8), .slots = 320, .pool = 64, .geometry = model,
                                   .context = 1024 };
}

void fake_measure(bool quick, moesim_raw *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_device_config config = fake_config();
    const moesim_measure_params params = { .ops = &fake_ops, .config = &config, .model = "llada2.0-mini", .cpu = &fake_cpu,
                                           .quick = quick, .window = 1e-6 };
    ck_assert_msg(moesim_measure(&params, out, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(fake_opened, 2);
    ck_assert_uint_eq(fake_closed, 2);
}

void fake_spoil(moesim_raw *raw, moesim_raw_point *point, double factor)
{
    double sorted[30];
    for (uint32_t i = 0; i < point->n; i++)
        raw->sample[point->begin + i] *= factor;
    moesim_raw_work_out(point, raw->sample + point->begin, sorted);
}
