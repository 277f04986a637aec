/* SPDX-License-Identifier: Apache-2.0
 *
 * The pieces: costings and what they refuse, paper and count mode, the link queue, checkpoints, the table of figures.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cost_tables.h"
#include "sim/link.h"
#include "sim/timing.h"
#include "tests/unit/timing/machine.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-12)
#define TOKENS(...) ((const uint32_t[]){__VA_ARGS__})
#define IDS(...) ((const uint16_t[]){__VA_ARGS__})

/* ---- costing --------------------------------------------------------------------------------------------------------- */

static moesim_code make(const moesim_profile *profile, enum moesim_time_mode mode, double bandwidth, uint32_t staging,
                        moesim_error *err)
{
    static const uint64_t bytes[2] = {900, 1800};
    const moesim_costing_params params = {.profile = profile, .mode = mode, .bandwidth = bandwidth,
                                          .effects = MOESIM_EFFECT_ALL, .staging = staging, .num_layers = 2, .max_rows = 8,
                                          .expert_bytes = bytes, .hidden_bytes = 10};
    moesim_costing *c = NULL;
    *err = (moesim_error)MOESIM_ERROR_INIT;
    const moesim_code code = moesim_costing_create(&params, &c, err);
    ck_assert_int_eq(code, err->code);
    ck_assert((c != NULL) == (code == MOESIM_OK));
    moesim_costing_destroy(&c);
    return code;
}

START_TEST(test_refused)
{
    moesim_profile model, paper;
    moesim_error err;
    machine_profile(&model);
    machine_paper(&paper);
    ck_assert_int_eq(make(&model, MOESIM_TIME_MODEL, 0, 1, &err), MOESIM_OK);
    ck_assert_int_eq(make(&model, MOESIM_TIME_PAPER, 0, 1, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "profile round does not support --time paper; its modes are: model");
    ck_assert_int_eq(make(&paper, MOESIM_TIME_MODEL, 0, 1, &err), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "its modes are: paper"));
    ck_assert_int_eq(make(NULL, MOESIM_TIME_MODEL, 0, 1, &err), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "--profile"));
    ck_assert_int_eq(make(&model, MOESIM_TIME_MODEL, -1, 1, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(make(&model, MOESIM_TIME_MODEL, NAN, 1, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(make(&model, MOESIM_TIME_MODEL, INFINITY, 1, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(make(&model, MOESIM_TIME_MODEL, 0, 0, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(make(NULL, MOESIM_TIME_COUNT, 0, 0, &err), MOESIM_OK);
}
END_TEST

/* α + bytes/β by layer; t(n) of the mean size 1350: 1.5 times that of 900. */
START_TEST(test_view)
{
    static const uint64_t bytes[2] = {900, 1800};
    moesim_profile profile;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_costing *c;
    machine_profile(&profile);
    const moesim_costing_params params = {.profile = &profile, .mode = MOESIM_TIME_MODEL, .bandwidth = 50, .staging = 2,
                                          .num_layers = 2, .max_rows = 8, .expert_bytes = bytes, .hidden_bytes = 10};
    ck_assert_int_eq(moesim_costing_create(&params, &c, &err), MOESIM_OK);
    const moesim_costs *v = moesim_costing_view(c);
    ck_assert_uint_eq(v->size, sizeof *v);
    ck_assert_uint_eq(v->cpu_tokens, 8);
    NEAR(v->h2d_s[0], 19);
    NEAR(v->h2d_s[1], 37);
    NEAR(v->cpu_s[0], 0);
    NEAR(v->cpu_s[1], 9);
    NEAR(v->cpu_s[3], 15);
    NEAR(v->cpu_s[8], 30);
    NEAR(v->cpu_step_s, 2);
    NEAR(moesim_costing_bandwidth(c), 50);
    moesim_costing_destroy(&c);
    ck_assert_ptr_null(c);
}
END_TEST

/* Tables equal the profile's own functions bit for bit, also for more tokens than a decode event has. */
START_TEST(test_tables)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, 11);
    for (int i = 0; i < 200; i++) {
        moesim_profile profile;
        machine_random_profile(&rng, &profile);
        moesim_costing *c = machine_costing(&profile, MOESIM_TIME_MODEL, 0, MOESIM_EFFECT_ALL, 2);
        const moesim_cost_size *size = c->layer[1];
        for (int k = 0; k < 100; k++) {
            const uint32_t n = moesim_rng_below(&rng, 60), h = 1 + moesim_rng_below(&rng, 1024);
            const double each = 3 * moesim_rng_real(&rng) + 0.01;
            const double moved = moesim_profile_gpu_s(&profile, 1, n, MACHINE_BYTES) + profile.gpu_moved.value;
            ck_assert(moesim_cost_moved(c, size, n) == moved);
            ck_assert(moesim_cost_cpu(c, size, n) == moesim_profile_cpu_s(&profile, n, MACHINE_BYTES));
            ck_assert(moesim_cost_grouped(c, size, h, each) == moesim_profile_gpu_s(&profile, h, each, MACHINE_BYTES));
            ck_assert(moesim_cost_hits(c, size, 1, &n) == c->launch + moesim_profile_gpu_s(&profile, 1, n, MACHINE_BYTES));
            const double wanted = c->bandwidth + MACHINE_BYTES / moesim_cost_cpu(c, size, n + 1);
            NEAR(moesim_cost_stretch(c, size, n + 1), fmax(1, wanted / profile.dram_bandwidth.value));
        }
        moesim_costing_destroy(&c);
    }
}
END_TEST

/* ---- paper and count --------------------------------------------------------------------------------------------------- */

/* T = 2 at 10 B/s, τ = 3, layer 7.
 *   4 moved, CPU experts of 1 and 1 tokens: max(8, 6) = 8, total 15
 *   2 moved, 3 + 2 tokens: max(4, 15) = 15, total 22;  at 20 B/s T = 1: 5 moved and one token: max(5, 3), total 12 */
START_TEST(test_paper)
{
    moesim_profile profile;
    machine_paper(&profile);
    moesim_costing *c = machine_costing(&profile, MOESIM_TIME_PAPER, 0, 0, 1);
    moesim_executor *x = machine_executor(c, 0);
    moesim_parts p = {.total = 0};
    moesim_work w = {.n_hits = 9, .n_moved = 4, .moved_tokens = TOKENS(9, 9, 9, 9), .n_cpu = 2, .cpu_tokens = TOKENS(1, 1)};
    x->ops->event(x, &w, &p);
    NEAR(p.hits, 7);
    NEAR(p.link, 8);
    NEAR(p.cpu, 0);
    NEAR(p.total, 15);
    w = (moesim_work){.n_moved = 2, .moved_tokens = TOKENS(1, 1), .n_cpu = 2, .cpu_tokens = TOKENS(3, 2)};
    p = (moesim_parts){.total = 0};
    x->ops->event(x, &w, &p);
    NEAR(p.link, 4);
    NEAR(p.cpu, 11);
    NEAR(p.total, 22);
    NEAR(p.busy_link, 4);
    NEAR(p.busy_cpu, 15);
    NEAR(p.busy_gpu, 7);
    ck_assert_double_eq(moesim_costing_view(c)->cpu_s[5], 15);
    NEAR(moesim_costing_view(c)->h2d_s[2], 2);
    NEAR(moesim_costing_bandwidth(c), 10);
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&c);

    c = machine_costing(&profile, MOESIM_TIME_PAPER, 20, MOESIM_EFFECT_ALL, 1);
    x = machine_executor(c, 0);
    w = (moesim_work){.n_moved = 5, .moved_tokens = TOKENS(1, 1, 1, 1, 1), .n_cpu = 1, .cpu_tokens = TOKENS(1)};
    p = (moesim_parts){.total = 0};
    x->ops->event(x, &w, &p);
    x->ops->end_pass(x, &p);
    NEAR(p.total, 12);
    /* full residency: M times the layer */
    p = (moesim_parts){.total = 0};
    for (uint32_t l = 0; l < MACHINE_LAYERS; l++) {
        w = (moesim_work){.layer = l, .n_hits = 5, .hit_tokens = TOKENS(1, 1, 2, 1, 3)};
        x->ops->event(x, &w, &p);
    }
    x->ops->end_pass(x, &p);
    ck_assert_double_eq(p.total, MACHINE_LAYERS * 7.0);
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&c);
}
END_TEST

/* Copies of 2 during the layer's 7: (0,1), (0,2), (0,3) land at 2, 4, 6, (0,4) has 1 left at the gate. Moved: 4 and 5; copies
 * take 1 + 2; the CPU takes 9, so (1,6) is copied from 3 to 5, (1,7) from 5 to 7, (1,8) to 9; (1,9) starts in the next layer.
 * A paused queue starts nothing. */
START_TEST(test_paper_prefetch)
{
    static const moesim_landed list[] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {1, 6}, {1, 7}, {1, 8}, {1, 9}};
    moesim_landed landed[16];
    moesim_profile profile;
    machine_paper(&profile);
    moesim_costing *c = machine_costing(&profile, MOESIM_TIME_PAPER, 0, 0, 1);
    moesim_executor *x = machine_executor(c, 9);
    moesim_parts p = {.total = 0};
    x->ops->prefetch(x, list, 9);
    x->ops->gate(x, &p);
    ck_assert_uint_eq(x->ops->landed(x, landed, 2), 2);
    ck_assert_uint_eq(landed[1].expert, 2);
    ck_assert_uint_eq(x->ops->landed(x, landed, 16), 1);
    ck_assert_uint_eq(landed[0].expert, 3);
    const moesim_work w = {.n_moved = 2, .moved_tokens = TOKENS(1, 1), .moved = IDS(5, 4), .n_cpu = 1, .cpu_tokens = TOKENS(3)};
    x->ops->event(x, &w, &p);
    NEAR(p.link, 3);
    NEAR(p.cpu, 6);
    NEAR(p.busy_link, 7 + 9);
    ck_assert_uint_eq(x->ops->landed(x, landed, 16), 3);
    ck_assert_uint_eq(landed[2].expert, 8);
    x->ops->pause(x, 1);
    p = (moesim_parts){.total = 0};
    x->ops->gate(x, &p);
    ck_assert_uint_eq(x->ops->landed(x, landed, 16), 0);
    NEAR(p.busy_link, 0);
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&c);
}
END_TEST

START_TEST(test_count)
{
    static const moesim_landed list[] = {{1, 4}, {0, 2}, {0, 3}};
    moesim_landed landed[4];
    moesim_costing *c = machine_costing(NULL, MOESIM_TIME_COUNT, 0, 0, 1);
    moesim_executor *x = machine_executor(c, 3);
    moesim_parts p = {.total = 0};
    ck_assert_ptr_null(moesim_costing_view(c));
    x->ops->prefetch(x, list, 3);
    const moesim_work w = {.n_moved = 1, .moved_tokens = TOKENS(1), .moved = IDS(2)};
    x->ops->event(x, &w, &p);
    x->ops->end_pass(x, &p);
    ck_assert_uint_eq(x->ops->landed(x, landed, 1), 1);
    ck_assert_uint_eq(landed[0].expert, 4);
    ck_assert_uint_eq(x->ops->landed(x, landed, 4), 1);
    ck_assert_uint_eq(landed[0].expert, 3);
    ck_assert_uint_eq(x->ops->landed(x, landed, 4), 0);
    ck_assert_double_eq(p.total, 0);
    ck_assert_double_eq(moesim_executor_now(x), 0);
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&c);
}
END_TEST

/* ---- link ------------------------------------------------------------------------------------------------------------- */

/* Copies of 3. */
static moesim_link make_link(uint32_t capacity)
{
    static const double stream[2] = {2, 2};
    moesim_link k;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_link_init(&k, capacity, 2, 1, stream, &err), MOESIM_OK);
    return k;
}

START_TEST(test_link)
{
    static const moesim_landed list[] = {{0, 1}, {0, 2}, {1, 3}, {0, 4}, {0, 5}}, other[] = {{0, 2}, {1, 7}};
    moesim_landed landed[8];
    moesim_link k = make_link(4);
    ck_assert(moesim_link_idle(&k));
    NEAR(moesim_link_run(&k, 100), 0);
    moesim_link_replace(&k, list, 5);            /* the fifth is over the capacity */
    NEAR(moesim_link_run(&k, 3), 3);             /* lands with the span, the next has not started */
    ck_assert(!k.busy);
    NEAR(moesim_link_run(&k, 1), 1);
    moesim_link_replace(&k, other, 2);           /* 2 of layer 0 flies and is not asked for twice */
    ck_assert_uint_eq(k.n, 1);
    k.paused = true;
    NEAR(moesim_link_run(&k, 10), 2);            /* what has started finishes */
    ck_assert(moesim_link_idle(&k));
    k.paused = false;
    NEAR(moesim_link_run(&k, 10), 3);
    ck_assert_uint_eq(moesim_link_landed(&k, landed, 8), 3);
    ck_assert_uint_eq(landed[0].expert, 1);
    ck_assert_uint_eq(landed[1].expert, 2);
    ck_assert_uint_eq(landed[2].expert, 7);
    moesim_link_replace(&k, list, 4);
    moesim_link_drop(&k, 0, IDS(9, 4, 1), 3);
    ck_assert_uint_eq(k.n, 2);
    moesim_link_drop(&k, 1, IDS(3), 1);
    moesim_link_replace(&k, NULL, 0);
    ck_assert(moesim_link_idle(&k));
    for (int i = 0; i < 3; i++) {                /* 5 landings fit, then nothing starts until they are fetched */
        moesim_link_replace(&k, list, 4);
        moesim_link_run(&k, 100);
    }
    ck_assert_uint_eq(k.num_landed, 5);
    ck_assert_uint_eq(moesim_link_landed(&k, landed, 8), 5);
    moesim_link_fini(&k);
}
END_TEST

/* A saved executor goes on as the original does; bytes that cannot be are refused. */
START_TEST(test_checkpoint)
{
    static const moesim_landed list[] = {{0, 1}, {1, 2}, {2, 3}, {0, 4}};
    const moesim_work w = {.n_hits = 3, .hit_tokens = TOKENS(1, 2, 1), .n_moved = 2, .moved_tokens = TOKENS(1, 2),
                           .moved = IDS(7, 4), .n_cpu = 1, .cpu_tokens = TOKENS(2)};
    moesim_profile profile;
    machine_profile(&profile);
    moesim_costing *c = machine_costing(&profile, MOESIM_TIME_MODEL, 0, MOESIM_EFFECT_ALL, 4);
    moesim_executor *x = machine_executor(c, 4), *y = machine_executor(c, 4);
    moesim_parts a = {.total = 0}, b = {.total = 0};
    moesim_landed landed[2][8];
    x->ops->prefetch(x, list, 4);
    x->ops->event(x, &w, &a);
    const size_t bytes = moesim_executor_state_bytes(x);
    unsigned char *state = malloc(bytes);
    ck_assert_ptr_nonnull(state);
    moesim_executor_save(x, state);
    ck_assert(moesim_executor_restore(y, state));
    ck_assert(moesim_executor_now(x) == moesim_executor_now(y));
    a = (moesim_parts){.total = 0};
    x->ops->event(x, &w, &a);
    y->ops->event(y, &w, &b);
    ck_assert_int_eq(memcmp(&a, &b, sizeof a), 0);
    const uint32_t n = x->ops->landed(x, landed[0], 8);
    ck_assert_uint_gt(n, 1);
    ck_assert_uint_eq(y->ops->landed(y, landed[1], 8), n);
    ck_assert_int_eq(memcmp(landed[0], landed[1], n * sizeof landed[0][0]), 0);
    const double before = moesim_executor_now(y);
    for (size_t i = 0; i < bytes; i++) {         /* whatever one byte says, nothing breaks */
        const unsigned char kept = state[i];
        state[i] = 0xff;
        if (moesim_executor_restore(y, state))
            y->ops->event(y, &w, &b);
        state[i] = kept;
    }
    memset(state, 0xff, bytes);
    ck_assert(moesim_executor_restore(x, state) == false);
    ck_assert_double_gt(before, 0);
    free(state);
    moesim_executor_destroy(&x);
    moesim_executor_destroy(&y);
    moesim_costing_destroy(&c);
}
END_TEST

/* ---- figures ----------------------------------------------------------------------------------------------------------- */

static const moesim_time_metric *figure(const char *name)
{
    const moesim_time_metric *m = moesim_time_metrics;
    while (m->name != NULL && strcmp(m->name, name) != 0)
        m++;
    ck_assert_ptr_nonnull(m->name);
    return m;
}

START_TEST(test_figures)
{
    moesim_time_sums request[4], total = {.requests = 0};
    memset(request, 0, sizeof request);
    for (uint32_t i = 0; i < 4; i++) {
        moesim_parts *p = &request[i].decode;
        *p = (moesim_parts){.other_gpu = 1, .other_host = 0.5, .sync = 0.25, .hits = 1, .link = 2.0 * i, .cpu = 1, .dram = 0.25,
                            .policy = 0.5, .head = 0.5, .busy_link = i, .busy_cpu = 1, .busy_gpu = 2};
        p->total = 5 + 2.0 * i;
        request[i].waited = 1;
        request[i].ttft = i;
        request[i].share = 3;
        request[i].output_tokens = i == 3 ? 0 : 10;      /* the last one has none */
        request[i].requests = 1;
        moesim_time_sums_add(&total, &request[i]);
    }
    NEAR(moesim_time_metric_value(figure("tpot_ms"), &request[1]), 800);
    NEAR(moesim_time_metric_value(figure("tpot_ms"), &total), 1e3 * 36 / 30);
    NEAR(moesim_time_metric_value(figure("miss_ms"), &request[2]), 525);
    NEAR(moesim_time_metric_value(figure("ttft_ms"), &total), 1500);
    NEAR(moesim_time_metric_value(figure("tokens_per_s"), &total), 2.5);
    NEAR(moesim_time_metric_value(figure("busy_link"), &total), 6.0 / 32);
    ck_assert_double_nan(moesim_time_metric_value(figure("tpot_ms"), &request[3]));
    double sum = moesim_time_metric_value(figure("waited_ms"), &total);
    for (const moesim_time_metric *m = moesim_time_metrics; m->name != NULL; m++)
        sum += strncmp(m->name, "part_", 5) == 0 ? moesim_time_metric_value(m, &total) : 0;
    NEAR(sum, moesim_time_metric_value(&moesim_time_metrics[0], &total));

    const moesim_timing timing = {.request = request, .num_requests = 4};
    static const double q[] = {0.01, 0.34, 0.5, 2.0 / 3, 0.99, 1};
    double out[6];
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_time_percentiles(figure("tpot_ms"), &timing, q, 6, out, &err), MOESIM_OK);
    static const double expected[] = {600, 800, 800, 800, 1000, 1000};
    for (int i = 0; i < 6; i++)
        NEAR(out[i], expected[i]);
    const moesim_timing none = {.request = request + 3, .num_requests = 1};
    ck_assert_int_eq(moesim_time_percentiles(figure("tpot_ms"), &none, q, 1, out, &err), MOESIM_OK);
    ck_assert_double_nan(out[0]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("timing parts");
    TCase *c = tcase_create("parts");
    tcase_add_test(c, test_refused);
    tcase_add_test(c, test_view);
    tcase_add_test(c, test_tables);
    tcase_add_test(c, test_paper);
    tcase_add_test(c, test_paper_prefetch);
    tcase_add_test(c, test_count);
    tcase_add_test(c, test_link);
    tcase_add_test(c, test_checkpoint);
    tcase_add_test(c, test_figures);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
