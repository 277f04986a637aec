/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of cells, the time left, and what is kept.
 */
#include "replay/grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "replay/bench.h"

#define MARGIN 1.1               /* a cell may take so many times what it is expected to */

/* ---- going on ---------------------------------------------------------------------------------------------------------- */

static uint32_t job_at(const moesim_replay_grid *g, uint32_t repeat, uint32_t at)
{
    return repeat % 2 == 0 ? at : g->num_jobs - 1 - at;
}

/* The job that a cell is an execution of, if it has the number that it would get here; num_jobs: none. */
static uint32_t job_of(const moesim_bench *b, const moesim_replay_grid *g, const moesim_replay_cell *c)
{
    const uint64_t begin = (uint64_t)c->repeat * g->num_jobs;
    if (c->mode != (uint32_t)b->config.mode || c->order < begin || c->order - begin >= g->num_jobs)
        return g->num_jobs;
    const uint32_t job = job_at(g, c->repeat, (uint32_t)(c->order - begin));
    const moesim_bench_entry *e = &b->entry[g->job[job].plan];
    const bool same = c->bandwidth_cap == g->job[job].bandwidth_cap &&
                      c->plan == moesim_replay_find_plan(&b->file, e->given, e->effective, e->cell.cache, e->cell.bandwidth);
    return same ? job : g->num_jobs;
}

/* Cells are numbered by their place in the grid: one of another grid would have a number twice. */
static moesim_code check_file(const moesim_bench *b, const moesim_replay_grid *g, moesim_error *err)
{
    for (size_t i = 0; i < b->file.num_cells; i++) {
        const moesim_replay_cell *c = &b->file.cell[i];
        const moesim_replay_plan *plan = &b->file.plan[c->plan];
        const uint32_t job = job_of(b, g, c);
        if (job == g->num_jobs)
            return moesim_fail(err, MOESIM_E_USAGE, "the file to go on with holds another grid: its cell %u is %s, %llu slots, "
                               "repeat %u, and here that is none or has another place; give the same policies, capacities, "
                               "caps and mode, or another -o", c->order, plan->policy, (unsigned long long)plan->cache,
                               c->repeat + 1);
        if (strcmp(plan->decisions, moesim_declog_get_info(b->entry[g->job[job].plan].log)->digest) != 0)
            return moesim_fail(err, MOESIM_E_USAGE, "policy %s at %llu slots decides otherwise than when the file was begun "
                               "(another log, another version of moesim?); measure into another -o", plan->policy,
                               (unsigned long long)plan->cache);
    }
    return MOESIM_OK;
}

/* ---- executing ------------------------------------------------------------------------------------------------------- */

typedef struct pace {
    double *job;                 /* [num_jobs] seconds of the last execution; 0: none yet */
    double event;                /* most seconds an event of any execution took on average; 0: none yet */
} pace;

/* Seconds that a cell will take, as far as is known. */
static double expected(const moesim_bench *b, const moesim_replay_grid *g, const pace *p, uint32_t job)
{
    const double own = p->job[job], others = p->event * (double)moesim_bench_events(b, g->job[job].plan);
    return MARGIN * (own > 0 ? own : others);
}

static bool fits(const moesim_bench *b, const moesim_replay_grid *g, const pace *p, uint32_t job)
{
    return g->time_limit <= 0 || moesim_clock_seconds() - g->started + expected(b, g, p, job) <= g->time_limit;
}

static void say_cell(const moesim_bench *b, const moesim_grid_progress *progress, double seconds)
{
    const moesim_replay_cell *c = &b->file.cell[b->file.num_cells - 1];
    const moesim_replay_plan *plan = &b->file.plan[c->plan];
    double sum = 0;
    uint64_t counted = 0;
    char cap[32] = "", checked[64] = "";
    for (size_t i = 0; i < plan->num_events; i++) {
        sum += plan->counted[i] ? 1e-6 * c->ns[i] : 0;
        counted += plan->counted[i];
    }
    if (c->bandwidth_cap > 0)
        (void)snprintf(cap, sizeof cap, ", %.4g GB/s", 1e-9 * c->bandwidth_cap);
    if (c->verified > 0)
        (void)snprintf(checked, sizeof checked, ", %llu experts verified to %.1e", (unsigned long long)c->verified,
                       c->worst_error);
    moesim_bench_say(b, "cell     %u of %u: %s, %llu slots%s, repeat %u: %.4f ms an event%s, %.1f s", progress->finished,
                     progress->planned, plan->policy, (unsigned long long)plan->cache, cap, c->repeat + 1,
                     counted > 0 ? sum / (double)counted : 0, checked, seconds);
}

static moesim_code run_cell(moesim_bench *b, const moesim_replay_grid *g, uint32_t job, uint32_t repeat, uint32_t order,
                            pace *p, moesim_grid_progress *progress, moesim_error *err)
{
    const double begun = moesim_clock_seconds();
    moesim_code code = moesim_bench_run(b, g->job[job].plan, g->job[job].bandwidth_cap, repeat, order, err);
    if (code != MOESIM_OK)
        return code;
    progress->finished++;
    progress->executed++;
    if (g->output != NULL && moesim_replay_file_write(&b->file, g->output, err) != MOESIM_OK)
        return err->code;
    const double seconds = moesim_clock_seconds() - begun, event = seconds / (double)moesim_bench_events(b, g->job[job].plan);
    p->job[job] = seconds;
    p->event = event > p->event ? event : p->event;
    say_cell(b, progress, seconds);
    return MOESIM_OK;
}

static moesim_code run_cells(moesim_bench *b, const moesim_replay_grid *g, pace *p, moesim_grid_progress *progress,
                             moesim_error *err)
{
    for (uint32_t r = 0; r < g->repeats; r++)
        for (uint32_t i = 0; i < g->num_jobs; i++) {
            const uint32_t job = job_at(g, r, i);
            if (moesim_bench_has(b, g->job[job].plan, g->job[job].bandwidth_cap, r))
                continue;
            if (!fits(b, g, p, job)) {
                progress->out_of_time = true;
                return MOESIM_OK;
            }
            if (run_cell(b, g, job, r, r * g->num_jobs + i, p, progress, err) != MOESIM_OK)
                return err->code;
        }
    return MOESIM_OK;
}

static uint32_t count_finished(const moesim_bench *b, const moesim_replay_grid *g)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < g->repeats; r++)
        for (uint32_t i = 0; i < g->num_jobs; i++)
            n += moesim_bench_has(b, g->job[i].plan, g->job[i].bandwidth_cap, r);
    return n;
}

/* What was finished is in the file already, but for a file that is not there yet or was meant for another number of cells. */
static moesim_code keep(const moesim_bench *b, const moesim_replay_grid *g, const moesim_grid_progress *progress,
                        bool as_it_was, moesim_code code, moesim_error *err)
{
    moesim_error second = MOESIM_ERROR_INIT;
    if (g->output == NULL)
        return code;
    if (progress->executed == 0 && !as_it_was && moesim_replay_file_write(&b->file, g->output, &second) != MOESIM_OK) {
        if (code == MOESIM_OK)
            *err = second;
        return err->code;
    }
    if (code == MOESIM_OK || g->scratch)
        return code;
    const moesim_error first = *err;
    return moesim_fail(err, code, "%s; %u of %u cells are finished and kept in %s, the same command goes on with it",
                       first.text, progress->finished, progress->planned, g->output);
}

moesim_code moesim_grid_execute(moesim_bench *b, const moesim_replay_grid *g, moesim_grid_progress *progress, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    pace p = {.event = 0};
    void *job = NULL;
    err = err != NULL ? err : &local;
    *progress = (moesim_grid_progress){.planned = g->num_jobs * g->repeats};
    if (check_file(b, g, err) != MOESIM_OK || moesim_alloc(g->num_jobs, sizeof *p.job, "jobs", &job, err) != MOESIM_OK)
        return err->code;
    p.job = job;
    const bool as_it_was = b->file.num_sessions > 1 && b->file.config.planned_cells == progress->planned;
    b->file.config.planned_cells = progress->planned;
    progress->finished = count_finished(b, g);
    const moesim_code code = run_cells(b, g, &p, progress, err);
    free(job);
    return keep(b, g, progress, as_it_was, code, err);
}
