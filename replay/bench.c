/* SPDX-License-Identifier: Apache-2.0
 *
 * A bench before the device opens: the trace's sizes, and plans with their decision logs.
 */
#include "replay/bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "sim/schedule.h"

void moesim_bench_say(const moesim_bench *b, const char *fmt, ...)
{
    va_list args;
    if (b->config.out == NULL)
        return;
    va_start(args, fmt);
    (void)vfprintf(b->config.out, fmt, args);
    va_end(args);
    (void)fputc('\n', b->config.out);
    (void)fflush(b->config.out);
}

moesim_walk_params moesim_bench_walk(const moesim_bench *b)
{
    return (moesim_walk_params){
        .request_begin = b->config.request_begin, .request_end = b->config.request_end, .warmup = b->config.warmup,
        .batch = b->config.batch, .max_rows = b->max_rows, .window_bytes = b->config.window_bytes,
    };
}

moesim_decide moesim_bench_decide(const moesim_bench *b, const moesim_cell *cell, const char *given, const char *effective)
{
    moesim_decide d = {
        .cell = *cell, .given = given, .effective = effective, .profile = b->config.profile, .expert_bytes = b->layer_bytes,
        .hidden_bytes = 2ull * b->config.hidden,
    };
    moesim_run_params_defaults(&d.run);
    d.run.request_begin = b->config.request_begin;
    d.run.request_end = b->config.request_end;
    d.run.warmup = b->config.warmup;
    d.run.batch = b->config.batch;
    d.run.staging = b->config.staging;
    d.run.seed = b->config.seed;
    d.run.window_bytes = b->config.window_bytes;
    return d;
}

/* Most rows of a step, as far as a device takes them. */
static moesim_code find_rows(moesim_bench *b, moesim_error *err)
{
    const moesim_walk_params walk = moesim_bench_walk(b);
    const moesim_window_params params = {.request_begin = walk.request_begin, .request_end = walk.request_end,
                                         .warmup = walk.warmup, .batch = walk.batch, .window_bytes = walk.window_bytes};
    moesim_schedule *schedule = NULL;
    const moesim_planned *step = NULL;
    uint64_t most = 1;
    moesim_code code = moesim_schedule_open(b->config.trace, &params, &schedule, err);
    while (code == MOESIM_OK && (code = moesim_schedule_peek(schedule, &step, err)) == MOESIM_OK && step->num_parts > 0) {
        most = step->num_rows > most ? step->num_rows : most;
        moesim_schedule_advance(schedule);
    }
    moesim_schedule_close(&schedule);
    b->max_rows = most < MOESIM_DEVICE_ROWS_MAX ? (uint32_t)most : MOESIM_DEVICE_ROWS_MAX;
    return code;
}

/* Rules that hold for all backends, with the sizes that are not known yet at their least. */
static moesim_code check_sizes(const moesim_bench *b, moesim_error *err)
{
    const moesim_device_config config = {
        .hidden = b->config.hidden, .intermediate = b->config.intermediate, .max_rows = b->max_rows, .top_k = b->info->top_k,
        .slots = 1, .pool = 1, .other = b->config.other, .geometry = b->config.geometry, .context = b->config.context,
        .cpu = b->config.cpu,
    };
    return moesim_device_check(&config, err);
}

moesim_code moesim_bench_create(const moesim_bench_config *config, moesim_bench **out, moesim_error *err)
{
    void *p = NULL, *bytes = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof(moesim_bench), "bench", &p, err);
    if (code != MOESIM_OK)
        return code;
    moesim_bench *b = p;
    b->config = *config;
    b->info = moesim_trace_get_info(config->trace);
    moesim_replay_file_init(&b->file);
    code = moesim_alloc(b->info->num_layers, sizeof *b->layer_bytes, "sizes of experts", &bytes, err);
    b->layer_bytes = bytes;
    b->expert_bytes = 6ull * config->hidden * config->intermediate;
    for (uint32_t l = 0; code == MOESIM_OK && l < b->info->num_layers; l++)
        b->layer_bytes[l] = b->expert_bytes;
    if (code == MOESIM_OK)
        code = find_rows(b, err);
    if (code == MOESIM_OK)
        code = check_sizes(b, err);
    *out = b;
    if (code != MOESIM_OK)
        moesim_bench_destroy(out);
    return code;
}

static void free_entry(moesim_bench_entry *e)
{
    free(e->given);
    free(e->effective);
    moesim_declog_close(&e->log);
    moesim_log_facts_fini(&e->facts);
    moesim_worklist_fini(&e->list);
}

void moesim_bench_destroy(moesim_bench **bench)
{
    moesim_bench *b = *bench;
    if (b == NULL)
        return;
    if (b->device != NULL)
        b->device->ops->close(&b->device);
    for (uint32_t i = 0; i < b->num_entries; i++)
        free_entry(&b->entry[i]);
    free(b->entry);
    free(b->content);
    free(b->layer_bytes);
    moesim_replay_file_fini(&b->file);
    free(b);
    *bench = NULL;
}

moesim_replay_file *moesim_bench_file(moesim_bench *bench)
{
    return &bench->file;
}

uint64_t moesim_bench_events(const moesim_bench *bench, uint32_t plan)
{
    return moesim_declog_get_info(bench->entry[plan].log)->events;
}

/* ---- plans ------------------------------------------------------------------------------------------------------------- */

/* The log lies in a file that has no name once it is open. */
static moesim_code compute(moesim_bench *b, moesim_bench_entry *e, moesim_error *err)
{
    const moesim_decide decide = moesim_bench_decide(b, &e->cell, e->given, e->effective);
    const char *folder = getenv("TMPDIR");
    char path[4096];
    folder = folder != NULL && folder[0] != '\0' ? folder : "/tmp";
    const int n = snprintf(path, sizeof path, "%s/moesim-decisions-XXXXXX", folder);
    const int fd = n > 0 && (size_t)n < sizeof path ? mkstemp(path) : -1;
    if (fd < 0)
        return moesim_fail(err, MOESIM_E_IO, "cannot create a temporary decision log %s: %s; TMPDIR names the folder", path,
                           strerror(errno));
    (void)close(fd);
    moesim_code code = moesim_decide_log(b->config.trace, &decide, path, NULL, err);
    if (code == MOESIM_OK)
        code = moesim_declog_open(path, &e->log, err);
    (void)unlink(path);
    return code;
}

static bool all_hits(const moesim_bench_entry *e)
{
    return e->cell.policy != NULL ? e->cell.policy->host_mode == MOESIM_HOST_FULL : e->facts.peak == e->facts.num_initial &&
           e->facts.num_initial > 0 && moesim_declog_get_info(e->log)->max_moved == 0;
}

static moesim_code read_given_log(moesim_bench *b, const char *path, moesim_bench_entry *e, moesim_error *err)
{
    moesim_walk *walk = NULL;
    const moesim_walk_params params = moesim_bench_walk(b);
    if (b->config.mode == MOESIM_REPLAY_LIVE)
        return moesim_fail(err, MOESIM_E_USAGE, "--mode live runs a policy; a decision log (--decisions) is executed with "
                           "--mode locked");
    if (moesim_declog_open(path, &e->log, err) != MOESIM_OK)
        return err->code;
    const moesim_declog_info *info = moesim_declog_get_info(e->log);
    e->cell.cache = info->cache;
    e->from_log = true;
    if (moesim_replay_set(&e->given, info->policy, err) != MOESIM_OK ||
        moesim_replay_set(&e->effective, info->options, err) != MOESIM_OK ||
        moesim_walk_open(b->config.trace, e->log, &params, &walk, err) != MOESIM_OK)
        return err->code;
    moesim_walk_close(&walk);
    return MOESIM_OK;
}

static moesim_code check_executable(const moesim_bench_plan *plan, moesim_error *err)
{
    const uint32_t mode = plan->cell.policy->host_mode;
    if (mode != MOESIM_HOST_IDEAL && mode != MOESIM_HOST_IDEAL_POOLED)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_USAGE, "policy %s is a bound that reloads freely before every event: there is nothing to "
                       "execute; choose another", plan->given);
}

static moesim_code fill_entry(moesim_bench *b, const moesim_bench_plan *plan, moesim_bench_entry *e, moesim_error *err)
{
    *e = (moesim_bench_entry){.cell = plan->cell, .plan = MOESIM_NO_PLAN};
    moesim_code code;
    if (plan->decisions != NULL) {
        e->cell = (moesim_cell){.policy = NULL};
        code = read_given_log(b, plan->decisions, e, err);
    } else {
        e->costs = moesim_decide_reads_costs(&plan->cell);
        e->cell.bandwidth = e->costs ? plan->cell.bandwidth : 0;
        code = check_executable(plan, err);
        if (code == MOESIM_OK)
            code = moesim_replay_set(&e->given, plan->given, err);
        if (code == MOESIM_OK)
            code = moesim_replay_set(&e->effective, plan->effective, err);
        if (code == MOESIM_OK)
            code = compute(b, e, err);
    }
    if (code == MOESIM_OK)
        code = moesim_log_facts_read(e->log, &e->facts, err);
    if (code == MOESIM_OK)
        e->full = all_hits(e);
    if (code == MOESIM_OK && moesim_declog_get_info(e->log)->events == 0)
        code = moesim_fail(err, MOESIM_E_USAGE, "the selected requests have no pass to execute; choose other --requests");
    return code;
}

static uint32_t find_entry(const moesim_bench *b, const moesim_bench_plan *plan)
{
    const bool costs = plan->decisions == NULL && moesim_decide_reads_costs(&plan->cell);
    uint32_t i = 0;
    for (; plan->decisions == NULL && i < b->num_entries; i++) {
        const moesim_bench_entry *e = &b->entry[i];
        if (!e->from_log && strcmp(e->given, plan->given) == 0 && strcmp(e->effective, plan->effective) == 0 &&
            e->cell.cache == plan->cell.cache && (!costs || e->cell.bandwidth == plan->cell.bandwidth))
            return i;
    }
    return b->num_entries;
}

moesim_code moesim_bench_plan_add(moesim_bench *b, const moesim_bench_plan *plan, uint32_t *index, moesim_error *err)
{
    *index = find_entry(b, plan);
    if (*index < b->num_entries)
        return MOESIM_OK;
    void *larger = realloc(b->entry, (b->num_entries + 1u) * sizeof *b->entry);
    if (larger == NULL)
        return moesim_fail_nomem(err, "plans", (b->num_entries + 1u) * sizeof *b->entry);
    b->entry = larger;
    const moesim_code code = fill_entry(b, plan, &b->entry[b->num_entries], err);
    if (code != MOESIM_OK)
        free_entry(&b->entry[b->num_entries]);
    else
        b->num_entries++;
    return code;
}
