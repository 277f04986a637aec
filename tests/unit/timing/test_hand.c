/* SPDX-License-Identifier: Apache-2.0
 *
 * Timelines written out by hand on the machine of machine.h, one for each way in which an event can be limited.
 */
#include <check.h>
#include <stdlib.h>

#include "sim/cost_tables.h"
#include "tests/unit/timing/machine.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-12)
#define TOKENS(...) ((const uint32_t[]){__VA_ARGS__})
#define IDS(...) ((const uint16_t[]){__VA_ARGS__})

static moesim_parts on_round_machine(double dram, uint32_t staging, uint32_t effects, const moesim_work *work)
{
    moesim_profile profile;
    machine_profile(&profile);
    profile.dram_bandwidth.value = dram;
    return machine_event(&profile, 0, effects, staging, work);
}

static void expect(const moesim_parts *p, double hits, double link, double cpu, double dram)
{
    NEAR(p->other_gpu, 5);
    NEAR(p->other_host, 2);
    NEAR(p->sync, 1);
    NEAR(p->policy, 0.5);
    NEAR(p->head, 0);
    NEAR(p->hits, hits);
    NEAR(p->link, link);
    NEAR(p->cpu, cpu);
    NEAR(p->dram, dram);
    NEAR(p->total, MACHINE_GATE + hits + link + cpu + dram);
}

/* Link-bound. Two hits with four routes: 1 + g(2, 2) = 1 + 4.5 = 5.5. Copies end at 10, 20, 30; computed
 *   f1 = max(5.5, 10) + g(1, 1) = 12,  f2 = 20 + g(1, 2) = 23,  f3 = 30 + g(1, 1) = 32.
 * The GPU works 5 + 5.5 + 2 + 3 + 2 = 17.5. */
START_TEST(test_link_bound)
{
    const moesim_work w = {
        .num_rows = 2, .n_hits = 2, .hit_tokens = TOKENS(1, 3), .n_moved = 3, .moved_tokens = TOKENS(1, 2, 1)};
    const moesim_parts p = on_round_machine(1e9, 4, MOESIM_EFFECT_ALL, &w);
    expect(&p, 5.5, 26.5, 0, 0);
    NEAR(p.busy_link, 30);
    NEAR(p.busy_cpu, 0);
    NEAR(p.busy_gpu, 17.5);
}
END_TEST

/* CPU-bound. The activations are on the host at 3, the CPU begins after its step at 5 and ends at 5 + 12 + 8 + 6 = 31; the
 * link is free since 10, so results are back at 34 and combined at 35. GPU path: 10 + 2 = 12. */
START_TEST(test_cpu_bound)
{
    const moesim_work w = {
        .num_rows = 2, .n_moved = 1, .moved_tokens = TOKENS(1), .n_cpu = 3, .cpu_tokens = TOKENS(4, 2, 1)};
    const moesim_parts p = on_round_machine(1e9, 4, MOESIM_EFFECT_ALL, &w);
    expect(&p, 0, 12, 23, 0);
    NEAR(p.busy_link, 13);
    NEAR(p.busy_cpu, 28);
    NEAR(p.busy_gpu, 7);
}
END_TEST

/* DRAM-bound: B = 125, one CPU expert of four tokens streams 900 / 12 = 75 B/s, the link 100: 175 / 125 = 1.4 times as long.
 *   copy 1: α to 1; alone to 5 (4 of 9 done); the CPU begins at 5; 5 of work for both take 7: to 12. CPU left 7. f1 = 14
 *   copy 2: α to 13, the CPU alone meanwhile, left 6; 6 of work for both take 8.4: CPU ends at 21.4; 3 left: to 24.4
 *   f2 = 26.4
 *   results: 24.4 to 27.4, combined at 28.4
 * Without sharing: copies to 10 and 20, f2 = 22; CPU to 17, results wait for copy 2: 20 to 23, combined at 24. */
START_TEST(test_dram_bound)
{
    const moesim_work w = {
        .num_rows = 2, .n_moved = 2, .moved_tokens = TOKENS(1, 1), .n_cpu = 1, .cpu_tokens = TOKENS(4)};
    moesim_parts p = on_round_machine(125, 4, MOESIM_EFFECT_ALL, &w);
    expect(&p, 0, 22, 2, 4.4);
    NEAR(p.busy_link, 12 + 12.4 + 3);
    NEAR(p.busy_cpu, 2 + 16.4);
    p = on_round_machine(125, 4, MOESIM_EFFECT_ALL & ~(uint32_t)MOESIM_EFFECT_CONTENTION, &w);
    expect(&p, 0, 22, 2, 0);
    p = on_round_machine(175, 4, MOESIM_EFFECT_ALL, &w);     /* just enough for both */
    expect(&p, 0, 22, 2, 0);
}
END_TEST

/* Both stream all the time: 4 copies of 9 and 3 experts of 12 are 36 each; B = 125 moves 7 experts in 7·900/125 = 50.4. The
 * last expert is computed at 52.4; results are back at 50.4 + 2. */
START_TEST(test_dram_saturated)
{
    moesim_profile profile;
    machine_profile(&profile);
    profile.dram_bandwidth.value = 125;
    profile.link_alpha.value = profile.return_alpha.value = profile.cpu_step.value = 0;
    const moesim_work w = {.n_moved = 4, .moved_tokens = TOKENS(1, 1, 1, 1), .n_cpu = 3, .cpu_tokens = TOKENS(4, 4, 4)};
    const moesim_parts p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &w);
    NEAR(p.busy_link, 50.4);
    NEAR(p.busy_cpu, 50.4);
    NEAR(p.hits + p.link + p.cpu + p.dram, 52.4);
    NEAR(p.dram, 50.4 - 36);
}
END_TEST

/* Arriving pipeline, GPU-bound: three hits 1 + g(3, 1) = 5; moved experts take g(1, n) = 1 + n = 13, 15, 2, 4.
 *   staging 2: h1 = 10, f1 = 23; h2 = 20, f2 = 38; copy 3 waits for f1: 23 to 33, f3 = max(38, 33) + 2 = 40; copy 4 waits for
 *   f2: 38 to 48, f4 = 52
 *   staging 4: h3 = 30, h4 = 40; f3 = 40, f4 = 44
 *   staging 1: h1 = 10, f1 = 23; 23 to 33, f2 = 48; 48 to 58, f3 = 60; 60 to 70, f4 = 74 */
START_TEST(test_arriving_pipeline)
{
    const moesim_work w = {
        .num_rows = 16, .n_hits = 3, .hit_tokens = TOKENS(1, 1, 1), .n_moved = 4, .moved_tokens = TOKENS(12, 14, 1, 3)};
    moesim_parts p = on_round_machine(1e9, 2, MOESIM_EFFECT_ALL, &w);
    expect(&p, 5, 47, 0, 0);
    NEAR(p.busy_link, 40);
    NEAR(p.busy_gpu, 5 + 5 + 34);
    p = on_round_machine(1e9, 4, MOESIM_EFFECT_ALL, &w);
    expect(&p, 5, 39, 0, 0);
    p = on_round_machine(1e9, 1, MOESIM_EFFECT_ALL, &w);
    expect(&p, 5, 69, 0, 0);
}
END_TEST

/* After a copy an expert arrives 3 later; what is computed before it hides that.
 *   link-bound: copies end at 10, 20, 30; f1 = 13 + 2 = 15, f2 = 23 + 3 = 26, f3 = 33 + 2 = 35
 *   GPU-bound, staging 4: f1 = 13 + 13 = 26, f2 = max(26, 23) + 15 = 41, f3 = 41 + 2 = 43, f4 = max(43, 43) + 4 = 47
 *   staging 1: f1 = 26; 26 to 36, f2 = 39 + 15 = 54; 54 to 64, f3 = 67 + 2 = 69; 69 to 79, f4 = 82 + 4 = 86
 *   beside the CPU, as in test_result_behind_copy: f1 = 15, f2 = 25, copy 3 from 23 to 33, f3 = 36 + 2 = 38 */
START_TEST(test_arrival)
{
    const moesim_work link = {
        .num_rows = 2, .n_hits = 2, .hit_tokens = TOKENS(1, 3), .n_moved = 3, .moved_tokens = TOKENS(1, 2, 1)};
    const moesim_work gpu = {.num_rows = 2, .n_moved = 4, .moved_tokens = TOKENS(12, 14, 1, 3)};
    const moesim_work cpu = {
        .num_rows = 2, .n_moved = 3, .moved_tokens = TOKENS(1, 1, 1), .n_cpu = 1, .cpu_tokens = TOKENS(1)};
    moesim_profile profile;
    machine_profile(&profile);
    profile.gpu_arrival.value = 3;
    moesim_parts p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &link);
    expect(&p, 5.5, 29.5, 0, 0);
    NEAR(p.busy_gpu, 17.5);      /* waiting is not work */
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &gpu);
    expect(&p, 0, 47, 0, 0);
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 1, &gpu);
    expect(&p, 0, 86, 0, 0);
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &cpu);
    expect(&p, 0, 38, 0, 0);
}
END_TEST

/* Each copy adds 4 of computing, which the link hides where it is the slower one; an expert of half the size adds 2.
 *   link-bound: copies end at 10, 20, 30; f1 = 10 + 2 + 4 = 16, f2 = 20 + 3 + 4 = 27, f3 = 30 + 2 + 4 = 36
 *   GPU-bound, staging 4: f1 = 10 + 13 + 4 = 27, f2 = 27 + 15 + 4 = 46, f3 = 46 + 2 + 4 = 52, f4 = 52 + 4 + 4 = 60
 *   beside the CPU: f1 = 16, f2 = 26; the result is ready at 3 + 2 + 6 = 11, so it goes from 20 to 23, copy 3 to 33, f3 = 39
 *   table of 1800 bytes: half of g and of the 4: copy 10, f1 = 10 + 1 + 2 = 13 */
START_TEST(test_moved)
{
    const moesim_work link = {
        .num_rows = 2, .n_hits = 2, .hit_tokens = TOKENS(1, 3), .n_moved = 3, .moved_tokens = TOKENS(1, 2, 1)};
    const moesim_work gpu = {.num_rows = 2, .n_moved = 4, .moved_tokens = TOKENS(12, 14, 1, 3)};
    const moesim_work cpu = {
        .num_rows = 2, .n_moved = 3, .moved_tokens = TOKENS(1, 1, 1), .n_cpu = 1, .cpu_tokens = TOKENS(1)};
    const moesim_work one = {.num_rows = 2, .n_moved = 1, .moved_tokens = TOKENS(1)};
    moesim_profile profile;
    machine_profile(&profile);
    profile.gpu_moved.value = 4;
    moesim_parts p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &link);
    expect(&p, 5.5, 30.5, 0, 0);
    NEAR(p.busy_gpu, 5 + 5.5 + 7 + 3 * 4);
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &gpu);
    expect(&p, 0, 60, 0, 0);
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &cpu);
    expect(&p, 0, 39, 0, 0);
    profile.gpu.expert_bytes = 2 * MACHINE_BYTES;
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &one);
    expect(&p, 0, 13, 0, 0);
}
END_TEST

/* A table that is flat up to two tokens: three hits of 1, 1 and 4 take 1 + (3 + 3 + 9) / 3 = 6; at their mean of 2 it were 4.
 * Two hits of 1 and 4 lie between the rows: 1 + ((2 + 3) / 2 + (6 + 9) / 2) / 2 = 6. */
START_TEST(test_uneven_hits)
{
    moesim_profile profile;
    machine_profile(&profile);
    profile.gpu = (moesim_gpu_table){.num_experts = 2, .num_tokens = 3, .experts = {1, 3}, .tokens = {1, 2, 4},
                                     .seconds = {{2, 2, 6}, {3, 3, 9}}, .expert_bytes = MACHINE_BYTES};
    const moesim_work three = {.num_rows = 8, .n_hits = 3, .hit_tokens = TOKENS(1, 1, 4)};
    moesim_parts p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &three);
    expect(&p, 6, 0, 0, 0);
    const moesim_work two = {.num_rows = 8, .n_hits = 2, .hit_tokens = TOKENS(1, 4)};
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &two);
    expect(&p, 6, 0, 0, 0);
    const moesim_work prefill = {.num_rows = 8, .n_hits = 3, .hit_tokens = TOKENS(1, 20, 20)};     /* beyond rows and table */
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &prefill);
    expect(&p, 1 + (3 + 57 + 57) / 3.0, 0, 0, 0);
}
END_TEST

/* Rows of 2, 3 and 4 experts that fall at the end for one token and rise for four: beyond the last row what falls is not
 * continued, what rises is: six hits take 1 + (5·3 + (9 + 2·5)) / 6. Below the first row it holds: one hit takes 1 + 2. Bytes
 * scale the table and not the launch. Without a table there is the launch alone. */
START_TEST(test_hits_beyond_the_table)
{
    static const uint64_t bytes[MACHINE_LAYERS] = {MACHINE_BYTES, 2 * MACHINE_BYTES, MACHINE_BYTES};
    static const uint32_t six[] = {1, 1, 1, 1, 1, 4};
    moesim_profile profile;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_costing *c = NULL;
    machine_profile(&profile);
    profile.gpu = (moesim_gpu_table){.num_experts = 3, .num_tokens = 2, .experts = {2, 3, 4}, .tokens = {1, 4},
                                     .seconds = {{2, 2}, {4, 4}, {3, 9}}, .expert_bytes = MACHINE_BYTES};
    const moesim_work many = {.num_rows = 8, .n_hits = 6, .hit_tokens = six};
    moesim_parts p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &many);
    expect(&p, 1 + (5 * 3 + 19) / 6.0, 0, 0, 0);
    const moesim_work one = {.num_rows = 8, .n_hits = 1, .hit_tokens = six};
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &one);
    expect(&p, 3, 0, 0, 0);
    const moesim_costing_params params = {
        .profile = &profile, .mode = MOESIM_TIME_MODEL, .effects = MOESIM_EFFECT_ALL, .staging = 4,
        .num_layers = MACHINE_LAYERS, .max_rows = MACHINE_ROWS, .expert_bytes = bytes, .hidden_bytes = MACHINE_HIDDEN};
    ck_assert_msg(moesim_costing_create(&params, &c, &err) == MOESIM_OK, "%s", err.text);
    NEAR(moesim_cost_hits(c, c->layer[1], 6, six), 1 + 2 * (5 * 3 + 19) / 6.0);
    moesim_costing_params beside = params;       /* another bandwidth: the same tables; other rows: not */
    moesim_costing *d = NULL;
    beside.like = c;
    beside.bandwidth = 7;
    ck_assert_msg(moesim_costing_create(&beside, &d, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_ptr_eq(d->rows, c->rows);
    ck_assert(moesim_cost_hits(d, d->layer[1], 6, six) == moesim_cost_hits(c, c->layer[1], 6, six));
    moesim_costing_destroy(&d);
    beside.max_rows--;
    ck_assert_msg(moesim_costing_create(&beside, &d, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_ptr_ne(d->rows, c->rows);
    moesim_costing_destroy(&d);
    moesim_costing_destroy(&c);
    profile.gpu.num_experts = 0;
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &many);
    expect(&p, 1, 0, 0, 0);
}
END_TEST

/* Prefetch landing late. Asked for at 0: experts 7 and 9 of layer 0, then 3 of layer 1.
 *   7 is copied from 0 to 10; the gate of layer 0 is known at 8.5, nothing has landed; 5, 7 and 9 are missed
 *   (seconds after the gate) 7 becomes the first demand copy with 1.5 left: h1 = 1.5, f1 = 1.5 + g(1, 2) = 4.5
 *   5: 1.5 to 11.5, f2 = 13.5;  9 has not started and is an ordinary demand copy: 11.5 to 21.5, f3 = 23.5
 *   3 of layer 1 starts at 21.5 and has 8 left at the end, 23.5
 *   it lands 8 after that; the gate of layer 1 is known 8.5 after; the event has one hit: 1 + g(1, 1) = 3
 * Link: 8.5 + 23.5 in layer 0, 8 in layer 1. */
START_TEST(test_prefetch_landing_late)
{
    moesim_profile profile;
    machine_profile(&profile);
    moesim_costing *c = machine_costing(&profile, MOESIM_TIME_MODEL, 0, MOESIM_EFFECT_ALL, 4);
    moesim_executor *x = machine_executor(c, 8);
    const moesim_landed list[] = {{0, 7}, {0, 9}, {1, 3}};
    moesim_landed landed[8];
    moesim_parts first = {.total = 0}, second = {.total = 0};
    x->ops->prefetch(x, list, 3);
    x->ops->gate(x, &first);
    ck_assert_uint_eq(x->ops->landed(x, landed, 8), 0);
    const moesim_work late = {
        .num_rows = 2, .n_moved = 3, .moved_tokens = TOKENS(1, 2, 1), .moved = IDS(5, 7, 9)};
    x->ops->event(x, &late, &first);
    expect(&first, 0, 23.5, 0, 0);
    NEAR(first.busy_link, 8.5 + 23.5);
    NEAR(moesim_executor_now(x), 32);
    x->ops->gate(x, &second);
    ck_assert_uint_eq(x->ops->landed(x, landed, 8), 1);
    ck_assert_uint_eq(landed[0].layer, 1);
    ck_assert_uint_eq(landed[0].expert, 3);
    const moesim_work hit = {.layer = 1, .num_rows = 2, .n_hits = 1, .hit_tokens = TOKENS(1)};
    x->ops->event(x, &hit, &second);
    expect(&second, 3, 0, 0, 0);
    NEAR(second.busy_link, 8);
    NEAR(moesim_executor_now(x), 32 + 11.5);
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&c);
}
END_TEST

/* A copy for another layer delays demand: 1.5 left at the gate, then 10; f1 = 11.5 + 2. It lands and is told. */
START_TEST(test_prefetch_in_the_way)
{
    moesim_profile profile;
    machine_profile(&profile);
    moesim_costing *c = machine_costing(&profile, MOESIM_TIME_MODEL, 0, MOESIM_EFFECT_ALL, 4);
    moesim_executor *x = machine_executor(c, 8);
    const moesim_landed list[] = {{2, 7}};
    moesim_landed landed[8];
    moesim_parts p = {.total = 0};
    x->ops->prefetch(x, list, 1);
    const moesim_work w = {.num_rows = 2, .n_moved = 1, .moved_tokens = TOKENS(1), .moved = IDS(7)};
    x->ops->event(x, &w, &p);
    expect(&p, 0, 13.5, 0, 0);
    NEAR(p.busy_link, 20);
    ck_assert_uint_eq(x->ops->landed(x, landed, 8), 1);
    ck_assert_uint_eq(landed[0].layer, 2);
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&c);
}
END_TEST

/* CPU result waiting behind a started copy: the CPU works from 5 to 11. Copies 0 to 10 and 10 to 20: the second has started, so
 * results go from 20 to 23 and are combined at 24; the third copy waits for them: 23 to 33.
 *   f1 = 12, f2 = 22, f3 = 35.
 * With a step of 1 the results are ready at 10, as the second copy could start, and go first: 10 to 13, combined at 14;
 *   copies 13 to 23 and 23 to 33: the end is the same, f1 = 12, f2 = 25, f3 = 35. */
START_TEST(test_result_behind_copy)
{
    const moesim_work w = {
        .num_rows = 2, .n_moved = 3, .moved_tokens = TOKENS(1, 1, 1), .n_cpu = 1, .cpu_tokens = TOKENS(1)};
    moesim_parts p = on_round_machine(1e9, 4, MOESIM_EFFECT_ALL, &w);
    expect(&p, 0, 35, 0, 0);
    NEAR(p.busy_link, 33);
    NEAR(p.busy_cpu, 8);

    moesim_profile profile;
    machine_profile(&profile);
    profile.cpu_combine.value = 20;              /* shows when results are back: 23 + 20, or 13 + 20 < 35 */
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &w);
    expect(&p, 0, 35, 8, 0);
    profile.cpu_step.value = 1;
    p = machine_event(&profile, 0, MOESIM_EFFECT_ALL, 4, &w);
    expect(&p, 0, 35, 0, 0);
}
END_TEST

/* Overlap off: hits to 5.5, copy to 15.5, computed at 17.5, copy to 27.5, computed at 30.5; activations to 33.5, step to 35.5,
 * expert to 41.5, results to 44.5, combined at 45.5. With overlap: f2 = 20 + 3 = 23; results ready at 11 wait for copy 2: 23,
 * combined at 24. */
START_TEST(test_without_overlap)
{
    const moesim_work w = {.num_rows = 2, .n_hits = 2, .hit_tokens = TOKENS(1, 3), .n_moved = 2,
                           .moved_tokens = TOKENS(1, 2), .n_cpu = 1, .cpu_tokens = TOKENS(1)};
    moesim_parts p = on_round_machine(1e9, 4, MOESIM_EFFECT_ALL & ~(uint32_t)MOESIM_EFFECT_OVERLAP, &w);
    expect(&p, 5.5, 25, 15, 0);
    NEAR(p.busy_cpu, 8);
    p = on_round_machine(1e9, 4, MOESIM_EFFECT_ALL, &w);
    expect(&p, 5.5, 17.5, 1, 0);
}
END_TEST

START_TEST(test_nothing_to_do)
{
    const moesim_work none = {.num_rows = 0};
    moesim_parts p = on_round_machine(1e9, 4, MOESIM_EFFECT_ALL, &none);
    expect(&p, 0, 0, 0, 0);
    NEAR(p.busy_gpu, 5);
    const moesim_work hits = {.num_rows = 2, .n_hits = 3, .hit_tokens = TOKENS(1, 1, 1)};
    p = on_round_machine(1e9, 4, MOESIM_EFFECT_ALL, &hits);
    expect(&p, 5, 0, 0, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("timelines by hand");
    TCase *c = tcase_create("hand");
    tcase_add_test(c, test_link_bound);
    tcase_add_test(c, test_cpu_bound);
    tcase_add_test(c, test_dram_bound);
    tcase_add_test(c, test_dram_saturated);
    tcase_add_test(c, test_arriving_pipeline);
    tcase_add_test(c, test_arrival);
    tcase_add_test(c, test_moved);
    tcase_add_test(c, test_uneven_hits);
    tcase_add_test(c, test_hits_beyond_the_table);
    tcase_add_test(c, test_prefetch_landing_late);
    tcase_add_test(c, test_prefetch_in_the_way);
    tcase_add_test(c, test_result_behind_copy);
    tcase_add_test(c, test_without_overlap);
    tcase_add_test(c, test_nothing_to_do);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
