/* SPDX-License-Identifier: Apache-2.0
 *
 * Grids: ABBA order, going on after a time limit, an interruption or a failure with the same cells, and with nothing else.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "sim/replay_file.h"
#include "tests/unit/replay/common.h"

enum { JOBS = 4, REPEATS = 3, CELLS = JOBS * REPEATS };

struct grid {
    moesim_trace *trace;
    moesim_policy_spec spec[3];
    moesim_bench *bench;
    moesim_grid_job job[JOBS];
    moesim_replay_grid grid;
    moesim_grid_progress progress;
};

/* naive and lru at 5, lru at a cap, full; the file goes on where it is. */
static moesim_code open_grid(struct grid *g, const moesim_device_ops *ops, const char *output, uint64_t seed, moesim_error *err)
{
    static const char *const name[] = {"naive", "lru", "full"};
    moesim_replay_file file;
    memset(g, 0, sizeof *g);
    g->trace = open_trace(random_trace("t.h5", 3));
    moesim_bench_config config = bench_config(g->trace, ops);
    config.seed = seed;
    ck_assert_int_eq(moesim_bench_create(&config, &g->bench, err), MOESIM_OK);
    for (int i = 0; i < 3; i++) {
        test_spec(&g->spec[i], name[i]);
        ck_assert_int_eq(try_plan(g->bench, &g->spec[i], i == 2 ? 24 : 5, &g->job[i].plan, err), MOESIM_OK);
    }
    g->job[3] = (moesim_grid_job){.plan = g->job[1].plan, .bandwidth_cap = 2e9};
    g->grid = (moesim_replay_grid){.job = g->job, .num_jobs = JOBS, .repeats = REPEATS, .started = moesim_clock_seconds(),
                                   .output = output};
    moesim_replay_file_init(&file);
    if (access(output, F_OK) == 0)
        ck_assert_int_eq(moesim_replay_file_read(output, &file, err), MOESIM_OK);
    return moesim_bench_open(g->bench, &file, err);
}

static void close_grid(struct grid *g)
{
    moesim_bench_destroy(&g->bench);
    for (int i = 0; i < 3; i++)
        moesim_policy_spec_fini(&g->spec[i]);
    moesim_trace_close(&g->trace);
}

/* Every cell once, as a grid that was never interrupted has them. */
static void check_whole(const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_replay_file f;
    WORKS(moesim_replay_file_read(path, &f, &err));
    ck_assert_uint_eq(f.num_cells, CELLS);
    ck_assert_uint_eq(f.num_plans, 3);
    ck_assert(!moesim_replay_file_partial(&f));
    for (uint32_t i = 0; i < CELLS; i++) {
        const uint32_t repeat = i / JOBS, at = repeat % 2 == 0 ? i % JOBS : JOBS - 1 - i % JOBS;
        static const char *const policy[JOBS] = {"naive", "lru", "full", "lru"};
        const moesim_replay_cell *c = &f.cell[i];
        ck_assert_uint_eq(c->order, i);
        ck_assert_uint_eq(c->repeat, repeat);
        ck_assert_str_eq(f.plan[c->plan].policy, policy[at]);
        ck_assert(c->bandwidth_cap == (at == 3 ? 2e9 : 0));
        ck_assert_str_eq(c->executed, f.plan[c->plan].decisions);
    }
    moesim_replay_file_fini(&f);
}

START_TEST(whole)
{
    moesim_error err = MOESIM_ERROR_INIT;
    struct grid g;
    WORKS(open_grid(&g, backend("null"), test_path("whole.h5"), 7, &err));
    WORKS(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err));
    ck_assert_uint_eq(g.progress.planned, CELLS);
    ck_assert_uint_eq(g.progress.finished, CELLS);
    ck_assert_uint_eq(g.progress.executed, CELLS);
    ck_assert(!g.progress.out_of_time);
    close_grid(&g);
    check_whole(test_path("whole.h5"));
    WORKS(open_grid(&g, backend("null"), test_path("whole.h5"), 7, &err));
    WORKS(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err));
    ck_assert_uint_eq(g.progress.executed, 0);
    close_grid(&g);
    check_whole(test_path("whole.h5"));
}
END_TEST

/* The clock has run out before the call: nothing is executed, a valid file says that it is partial; then the rest. */
START_TEST(time_limit)
{
    moesim_error err = MOESIM_ERROR_INIT;
    struct grid g;
    moesim_replay_file f;
    WORKS(open_grid(&g, backend("null"), test_path("limit.h5"), 7, &err));
    g.grid.time_limit = 1;
    g.grid.started -= 2;
    WORKS(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err));
    ck_assert(g.progress.out_of_time);
    ck_assert_uint_eq(g.progress.finished, 0);
    close_grid(&g);
    WORKS(moesim_replay_file_read(test_path("limit.h5"), &f, &err));
    ck_assert(moesim_replay_file_partial(&f));
    moesim_replay_file_fini(&f);
    WORKS(open_grid(&g, backend("null"), test_path("limit.h5"), 7, &err));
    WORKS(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err));
    close_grid(&g);
    check_whole(test_path("limit.h5"));
}
END_TEST

/* ---- a device that something happens to ------------------------------------------------------------------------ */

static moesim_device_ops hurt_ops;
static const moesim_device_ops *sound;
static uint64_t gates, happens_at;
static int what;                 /* a signal, or 0: the device is lost */

static moesim_code hurt_gate(moesim_device *device, uint32_t rows, moesim_device_times *times, moesim_error *err)
{
    if (++gates == happens_at && what == 0)
        return moesim_fail(err, MOESIM_E_IO, "cudaEventSynchronize: the GPU has fallen off the bus");
    if (gates == happens_at)
        ck_assert_int_eq(raise(what), 0);
    return sound->gate(device, rows, times, err);
}

static moesim_code hurt_open(const moesim_device_config *config, moesim_device **out, moesim_error *err)
{
    const moesim_code code = sound->open(config, out, err);
    if (code == MOESIM_OK)
        (*out)->ops = &hurt_ops;
    return code;
}

/* In a process of its own, since an interruption is for good. Returns its exit status: 10 + the code. */
static int run_hurt(const char *output, int signal_or_none, uint64_t at)
{
    const pid_t child = fork();
    if (child == 0) {
        moesim_error err = MOESIM_ERROR_INIT;
        struct grid g;
        sound = backend("null");
        hurt_ops = *sound;
        hurt_ops.open = hurt_open;
        hurt_ops.gate = hurt_gate;
        what = signal_or_none;
        happens_at = at;
        (void)signal(SIGINT, SIG_DFL);       /* a shell may have it ignored */
        moesim_interrupt_install();
        moesim_code code = open_grid(&g, &hurt_ops, output, 7, &err);
        if (code == MOESIM_OK)
            code = moesim_grid_execute(g.bench, &g.grid, &g.progress, &err);
        close_grid(&g);
        if (code != MOESIM_OK && strstr(err.text, "same command goes on") == NULL)
            _exit(9);
        _exit(10 + (int)code);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static size_t cells_of(const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_replay_file f;
    WORKS(moesim_replay_file_read(path, &f, &err));
    const size_t n = f.num_cells;
    ck_assert_int_eq(moesim_replay_file_partial(&f), n < CELLS);
    moesim_replay_file_fini(&f);
    return n;
}

START_TEST(hurt)
{
    static const int kinds[] = {SIGINT, SIGTERM, 0};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const char *output = test_path(k == 0 ? "int.h5" : k == 1 ? "term.h5" : "lost.h5");
        size_t before = 0;
        const int want = 10 + (int)(kinds[k] == 0 ? MOESIM_E_IO : MOESIM_E_INTERRUPTED);
        ck_assert_int_eq(run_hurt(output, kinds[k], 5), want);
        ck_assert_uint_eq(cells_of(output), 0);
        ck_assert_int_eq(run_hurt(output, kinds[k], 700), want);
        before = cells_of(output);
        ck_assert_uint_gt(before, 0);
        ck_assert_uint_lt(before, CELLS);
        ck_assert_int_eq(run_hurt(output, kinds[k], UINT64_MAX), 10);
        check_whole(output);
    }
}
END_TEST

START_TEST(another_configuration)
{
    moesim_error err = MOESIM_ERROR_INIT;
    struct grid g;
    WORKS(open_grid(&g, backend("null"), test_path("config.h5"), 7, &err));
    WORKS(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err));
    close_grid(&g);
    REFUSED(open_grid(&g, backend("null"), test_path("config.h5"), 8, &err), MOESIM_E_USAGE, "seed: 7 and 8");
    close_grid(&g);
    check_whole(test_path("config.h5"));
}
END_TEST

/* Refused before anything is executed, and the file stays as it was. */
START_TEST(another_grid)
{
    moesim_error err = MOESIM_ERROR_INIT;
    struct grid g;
    WORKS(open_grid(&g, backend("null"), test_path("grid.h5"), 7, &err));
    WORKS(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err));
    close_grid(&g);
    for (int i = 0; i < 3; i++) {
        WORKS(open_grid(&g, backend("null"), test_path("grid.h5"), 7, &err));
        if (i == 0)
            g.job[1].bandwidth_cap = 3e9;
        else if (i == 1)
            g.grid.num_jobs = JOBS - 1;
        else
            g.job[1].plan = g.job[0].plan;
        REFUSED(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err), MOESIM_E_USAGE, "holds another grid");
        close_grid(&g);
        check_whole(test_path("grid.h5"));
    }
    /* further repeats of the same grid are the same grid */
    WORKS(open_grid(&g, backend("null"), test_path("grid.h5"), 7, &err));
    g.grid.repeats = REPEATS + 1;
    WORKS(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err));
    ck_assert_uint_eq(g.progress.executed, JOBS);
    close_grid(&g);
}
END_TEST

/* The same policy and capacity, decided otherwise. */
START_TEST(another_log)
{
    moesim_error err = MOESIM_ERROR_INIT;
    struct grid g;
    moesim_replay_file f;
    const char *path = test_path("log.h5");
    WORKS(open_grid(&g, backend("null"), path, 7, &err));
    WORKS(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err));
    close_grid(&g);
    WORKS(moesim_replay_file_read(path, &f, &err));
    f.plan[1].decisions[0] = f.plan[1].decisions[0] == 'a' ? 'b' : 'a';
    WORKS(moesim_replay_file_write(&f, path, &err));
    moesim_replay_file_fini(&f);
    WORKS(open_grid(&g, backend("null"), path, 7, &err));
    REFUSED(moesim_grid_execute(g.bench, &g.grid, &g.progress, &err), MOESIM_E_USAGE, "decides otherwise");
    close_grid(&g);
}
END_TEST

RUN_TESTS("grid", whole, time_limit, hurt, another_configuration, another_grid, another_log)
