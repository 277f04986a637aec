/* SPDX-License-Identifier: Apache-2.0
 *
 * Calibration: constants that events tell alone are found again, all others stay as they were measured.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/calibrate.h"
#include "tests/support/support.h"
#include "tests/unit/base/runner.h"

#define ROWS 16u
#define REPEATS 3u
#define MOST 8u                  /* missed experts of an event */
#define MOST_HITS 10u
#define OK(call) ck_assert_msg((call) == MOESIM_OK, "%s", err.text)

static moesim_error err;
static moesim_profile profile, truth;
static const uint64_t expert_bytes = 6291456;

/* Events of one layer: so many without misses, with copies alone, with CPU experts alone, with both. */
typedef struct shape { uint32_t none, moved, cpu, both; } shape;

typedef struct made {
    moesim_works works;
    uint32_t *ns[REPEATS];
    const uint32_t *measured[REPEATS];
    moesim_calibration_cell cell;
} made;

static void add(moesim_works *w, uint32_t moved, uint32_t cpu)
{
    const uint64_t i = w->num_events++;
    w->event[i] = (moesim_works_event){
        .pass = i, .num_rows = ROWS, .n_hits = 4 + (uint32_t)(i % (MOST_HITS - 3)), .n_moved = moved, .n_cpu = cpu,
        .at = w->used, .counted = true,
    };
    for (uint32_t k = 0; k < w->event[i].n_hits + moved + cpu; k++)
        w->tokens[w->used++] = 1 + (uint32_t)((i + k) % 4);
}

static moesim_costing_params params_of(const moesim_profile *p)
{
    return (moesim_costing_params){
        .profile = p, .mode = MOESIM_TIME_MODEL, .effects = MOESIM_EFFECT_ALL & ~(uint32_t)MOESIM_EFFECT_POLICY, .staging = 4,
        .num_layers = 1, .max_rows = ROWS, .expert_bytes = &expert_bytes, .hidden_bytes = 4096,
    };
}

/* What `truth` makes of it, with noise of ±2 %; every tenth event takes three times as long. */
static void measure(made *m, double bandwidth)
{
    moesim_costing_params params = params_of(&truth);
    moesim_costing *costing = NULL;
    moesim_prediction p;
    uint64_t state = 42;
    params.bandwidth = bandwidth;
    OK(moesim_costing_create(&params, &costing, &err));
    OK(moesim_predict(&m->works, costing, &p, &err));
    for (size_t r = 0; r < REPEATS; r++) {
        m->ns[r] = calloc(m->works.num_events, sizeof(uint32_t));
        ck_assert_ptr_nonnull(m->ns[r]);
        for (uint64_t i = 0; i < m->works.num_events; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double noise = 0.98 + 0.04 * (double)(state >> 40) / 16777216.0;
            m->ns[r][i] = (uint32_t)(1e9 * p.seconds[i] * noise * (i % 10 == r ? 3 : 1));
        }
        m->measured[r] = m->ns[r];
    }
    moesim_prediction_fini(&p);
    moesim_costing_destroy(&costing);
}

/* bandwidth: what the profile gives the cell's link, 0: its own; the machine's is `link` times as much. */
static void make(made *m, shape s, double bandwidth, double link)
{
    const uint32_t n = s.none + s.moved + s.cpu + s.both;
    memset(m, 0, sizeof *m);
    m->works = (moesim_works){.num_layers = 1, .event = calloc(n, sizeof(moesim_works_event)),
                              .tokens = calloc((size_t)n * (MOST_HITS + 2 * MOST), sizeof(uint32_t))};
    ck_assert(m->works.event != NULL && m->works.tokens != NULL);
    for (uint32_t i = 0; i < s.none; i++)
        add(&m->works, 0, 0);
    for (uint32_t i = 0; i < s.moved; i++)
        add(&m->works, 1 + i % MOST, 0);
    for (uint32_t i = 0; i < s.cpu; i++)
        add(&m->works, 0, 1 + i % MOST);
    for (uint32_t i = 0; i < s.both; i++)
        add(&m->works, 6, 2);
    measure(m, bandwidth * link);
    m->cell = (moesim_calibration_cell){.works = &m->works, .bandwidth = bandwidth, .repeats = REPEATS,
                                        .measured = m->measured};
}

static void drop(made *m)
{
    for (size_t r = 0; r < REPEATS; r++)
        free(m->ns[r]);
    moesim_works_fini(&m->works);
}

static void machine(double link, double sync, double cpu)
{
    OK(moesim_profile_load("h200-host", &profile, &err));
    truth = profile;
    truth.link_bandwidth.value *= link;
    truth.sync.value *= sync;
    for (uint32_t i = 0; i < truth.cpu.points; i++)
        truth.cpu.seconds[i] *= cpu;
}

/* The same with a GPU that is slower than the link, and that copies slow down. */
static void slow_gpu(double slow, double gpu, double link)
{
    machine(link, 1, 1);
    moesim_profile *const both[] = {&profile, &truth};
    for (size_t k = 0; k < 2; k++) {
        both[k]->gpu_moved.value = 40e-6 * (k == 0 ? 1 : gpu);
        for (uint32_t i = 0; i < profile.gpu.num_experts; i++)
            for (uint32_t j = 0; j < profile.gpu.num_tokens; j++)
                both[k]->gpu.seconds[i][j] *= slow * (k == 0 ? 1 : gpu);
    }
}

static moesim_calibration fit(shape s)
{
    const moesim_costing_params params = params_of(&profile);
    moesim_calibration found;
    made m;
    make(&m, s, 0, 1);
    OK(moesim_calibrate(&params, &m.cell, 1, &found, &err));
    drop(&m);
    return found;
}

static void is_fitted(const moesim_calibration *c, enum moesim_calibrated k, size_t events, double is, double wanted)
{
    ck_assert_int_eq(c->part[k].state, MOESIM_CALIBRATION_FITTED);
    ck_assert_uint_eq(c->part[k].events, events);
    ck_assert_double_eq_tol(is, wanted, 0.02 * wanted);
}

/* To the last bit what was measured. */
static void is_left(const moesim_calibration *c, enum moesim_calibrated k, enum moesim_calibration_state state, size_t events)
{
    const double is[] = {c->sync, c->gpu, c->link, c->cpu}, was[] = {profile.sync.value, 1, 1, 1};
    ck_assert_int_eq(c->part[k].state, state);
    ck_assert_uint_eq(c->part[k].events, events);
    ck_assert(is[k] <= was[k] && is[k] >= was[k]);
}

START_TEST(test_behind_a_slow_link)
{
    machine(0.9, 1.4, 1.15);
    const moesim_calibration c = fit((shape){.none = 100, .moved = 200, .cpu = 200, .both = 300});
    is_fitted(&c, MOESIM_CALIBRATED_SYNC, 100, c.sync, 1.4 * profile.sync.value);
    is_left(&c, MOESIM_CALIBRATED_GPU, MOESIM_CALIBRATION_FEW, 0);
    ck_assert_int_eq(c.part[MOESIM_CALIBRATED_LINK].state, MOESIM_CALIBRATION_FITTED);
    ck_assert_double_eq_tol(c.link, 0.9, 0.01);
    ck_assert_int_eq(c.part[MOESIM_CALIBRATED_CPU].state, MOESIM_CALIBRATION_FITTED);
    ck_assert_double_eq_tol(c.cpu, 1.15, 0.015);
    ck_assert_double_lt(c.after, c.before);
}
END_TEST

/* Events that the GPU computes in tell its table and nothing of the link that hides behind. Where copies take about as long as
 * computing, a slower link makes no slower GPU. */
START_TEST(test_gpu)
{
    slow_gpu(40, 1.2, 0.9);
    moesim_calibration c = fit((shape){.none = 20, .moved = 200, .cpu = 200, .both = 300});
    is_left(&c, MOESIM_CALIBRATED_SYNC, MOESIM_CALIBRATION_FEW, 20);
    is_fitted(&c, MOESIM_CALIBRATED_GPU, 200, c.gpu, 1.2);
    is_left(&c, MOESIM_CALIBRATED_LINK, MOESIM_CALIBRATION_FEW, 0);
    moesim_profile applied = profile;
    moesim_calibration_apply(&c, &applied, NULL);
    ck_assert_double_eq_tol(applied.gpu.seconds[1][1], c.gpu * profile.gpu.seconds[1][1], 1e-12);
    ck_assert_double_eq_tol(applied.gpu_moved.value, c.gpu * 40e-6, 1e-12);
    machine(0.9, 1, 1);          /* copies decide */
    c = fit((shape){.moved = 200});
    is_left(&c, MOESIM_CALIBRATED_GPU, MOESIM_CALIBRATION_FEW, 0);
    ck_assert_int_eq(c.part[MOESIM_CALIBRATED_LINK].state, MOESIM_CALIBRATION_FITTED);
    slow_gpu(40, 3, 1);
    c = fit((shape){.moved = 200});
    is_left(&c, MOESIM_CALIBRATED_GPU, MOESIM_CALIBRATION_BOUND, 200);
    for (int slow = 2; slow <= 40; slow++) {     /* from copies that take longer to ones that hide */
        slow_gpu(slow, 1, 0.7);
        c = fit((shape){.moved = 200});
        ck_assert_msg(fabs(c.gpu - 1) <= 0.05, "a GPU %d times as slow, a link of 0.7: GPU table x %g", slow, c.gpu);
    }
}
END_TEST

/* Copies beside CPU experts tell the sum of several constants: none is fitted to them. */
START_TEST(test_only_mixed)
{
    machine(0.8, 1.5, 1.3);
    const moesim_calibration c = fit((shape){.both = 500});
    is_left(&c, MOESIM_CALIBRATED_SYNC, MOESIM_CALIBRATION_FEW, 0);
    is_left(&c, MOESIM_CALIBRATED_GPU, MOESIM_CALIBRATION_FEW, 0);
    is_left(&c, MOESIM_CALIBRATED_LINK, MOESIM_CALIBRATION_FEW, 0);
    is_left(&c, MOESIM_CALIBRATED_CPU, MOESIM_CALIBRATION_FEW, 0);
    ck_assert_double_eq_tol(c.after, c.before, 1e-12);
}
END_TEST

START_TEST(test_too_few)
{
    machine(0.9, 1.4, 1.15);
    const uint32_t few = MOESIM_CALIBRATION_EVENTS - 1;
    moesim_calibration c = fit((shape){.none = few, .moved = 200, .cpu = few});
    is_left(&c, MOESIM_CALIBRATED_SYNC, MOESIM_CALIBRATION_FEW, few);
    ck_assert_int_eq(c.part[MOESIM_CALIBRATED_LINK].state, MOESIM_CALIBRATION_FITTED);
    is_left(&c, MOESIM_CALIBRATED_CPU, MOESIM_CALIBRATION_FEW, few);
    c = fit((shape){.none = few + 1});
    is_fitted(&c, MOESIM_CALIBRATED_SYNC, few + 1, c.sync, 1.4 * profile.sync.value);
    is_left(&c, MOESIM_CALIBRATED_LINK, MOESIM_CALIBRATION_FEW, 0);
}
END_TEST

START_TEST(test_bounds)
{
    machine(1, 3, 2.5);
    const moesim_calibration c = fit((shape){.none = 100, .cpu = 200});
    is_left(&c, MOESIM_CALIBRATED_SYNC, MOESIM_CALIBRATION_BOUND, 100);
    is_left(&c, MOESIM_CALIBRATED_CPU, MOESIM_CALIBRATION_BOUND, 200);
}
END_TEST

/* A constant that hardly shows in the events that depend on it would be fitted to their noise. */
START_TEST(test_dull)
{
    machine(1, 1.4, 1);
    profile.sync.value = truth.sync.value = 1e-8;
    const moesim_calibration c = fit((shape){.none = 100});
    is_left(&c, MOESIM_CALIBRATED_SYNC, MOESIM_CALIBRATION_DULL, 100);
}
END_TEST

/* Cells of several links, one of them slowed: the factor is one for all, and the profile's own link has it too. */
START_TEST(test_caps)
{
    machine(0.9, 1, 1);
    const moesim_costing_params params = params_of(&profile);
    moesim_calibration c;
    made m[2];
    make(&m[0], (shape){.moved = 100}, 0, 0.9);
    make(&m[1], (shape){.moved = 100}, 1e10, 0.9);
    const moesim_calibration_cell cell[] = {m[0].cell, m[1].cell};
    OK(moesim_calibrate(&params, cell, 2, &c, &err));
    ck_assert_int_eq(c.part[MOESIM_CALIBRATED_LINK].state, MOESIM_CALIBRATION_FITTED);
    ck_assert_double_eq_tol(c.link, 0.9, 0.01);
    double bandwidth = 1e10;
    moesim_profile applied = profile;
    moesim_calibration_apply(&c, &applied, &bandwidth);
    ck_assert_double_eq_tol(applied.link_bandwidth.value, profile.link_bandwidth.value * c.link, 1);
    ck_assert_double_eq_tol(bandwidth, 1e10 * c.link, 1);
    for (size_t i = 0; i < 2; i++)
        drop(&m[i]);
}
END_TEST

/* Events that are not counted and events without a time tell nothing; none at all is an error. */
START_TEST(test_no_time)
{
    machine(1, 1.4, 1);
    const moesim_costing_params params = params_of(&profile);
    moesim_calibration c;
    made m;
    make(&m, (shape){.none = 100}, 0, 1);
    for (size_t i = 0; i < 30; i++)
        m.works.event[i].counted = false;
    for (size_t r = 0; r < REPEATS; r++)
        m.ns[r][99] = 0;
    OK(moesim_calibrate(&params, &m.cell, 1, &c, &err));
    is_fitted(&c, MOESIM_CALIBRATED_SYNC, 69, c.sync, 1.4 * profile.sync.value);
    for (size_t r = 0; r < REPEATS; r++)
        memset(m.ns[r], 0, 100 * sizeof(uint32_t));
    ck_assert_int_eq(moesim_calibrate(&params, &m.cell, 1, &c, &err), MOESIM_E_USAGE);
    drop(&m);
}
END_TEST

RUN_TESTS("calibrate", test_behind_a_slow_link, test_gpu, test_only_mixed, test_too_few, test_bounds, test_dull, test_caps,
          test_no_time)
