/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines and events to time.
 */
#include "tests/unit/timing/machine.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static moesim_constant constant(double value) { return (moesim_constant){.value = value, .given = true}; }

void machine_profile(moesim_profile *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "round");
    out->modes = 1u << MOESIM_TIME_MODEL;
    out->link_alpha = constant(1);
    out->link_bandwidth = constant(100);
    out->return_alpha = constant(1);
    out->return_bandwidth = constant(10);
    out->dram_bandwidth = constant(1e9);
    out->cpu_step = constant(2);
    out->cpu_combine = constant(1);
    out->gpu_launch = constant(1);
    out->other_gpu = constant(5);
    out->other_host = constant(2);
    out->sync = constant(1);
    out->policy = constant(0.5);
    out->head = constant(4);
    out->cpu = (moesim_cpu_table){.points = 3, .tokens = {1, 2, 4}, .seconds = {6, 8, 12}, .expert_bytes = MACHINE_BYTES};
    out->gpu = (moesim_gpu_table){.num_experts = 2, .num_tokens = 2, .experts = {1, 3}, .tokens = {1, 3},
                                  .seconds = {{2, 4}, {4, 8}}, .expert_bytes = MACHINE_BYTES};
}

void machine_paper(moesim_profile *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "round paper");
    out->modes = 1u << MOESIM_TIME_PAPER;
    out->link_nominal_bandwidth = constant(10);
    out->paper_t_h2d = constant(2);
    out->paper_tau = constant(3);
    out->paper_layer = constant(7);
}

moesim_costing *machine_costing(const moesim_profile *profile, enum moesim_time_mode mode, double bandwidth, uint32_t effects,
                                uint32_t staging)
{
    static const uint64_t bytes[MACHINE_LAYERS] = {MACHINE_BYTES, MACHINE_BYTES, MACHINE_BYTES};
    const moesim_costing_params params = {
        .profile = profile, .mode = mode, .bandwidth = bandwidth, .effects = effects, .staging = staging,
        .num_layers = MACHINE_LAYERS, .max_rows = MACHINE_ROWS, .expert_bytes = bytes, .hidden_bytes = MACHINE_HIDDEN};
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_costing *c = NULL;
    ck_assert_msg(moesim_costing_create(&params, &c, &err) == MOESIM_OK, "%s", err.text);
    return c;
}

moesim_executor *machine_executor(const moesim_costing *costing, uint32_t max_prefetch)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_executor *x = NULL;
    ck_assert_msg(moesim_executor_create(costing, max_prefetch, &x, &err) == MOESIM_OK, "%s", err.text);
    return x;
}

moesim_parts machine_event(const moesim_profile *profile, double bandwidth, uint32_t effects, uint32_t staging,
                           const moesim_work *work)
{
    moesim_costing *c = machine_costing(profile, MOESIM_TIME_MODEL, bandwidth, effects, staging);
    moesim_executor *x = machine_executor(c, 0);
    moesim_parts parts = {.total = 0};
    x->ops->event(x, work, &parts);
    moesim_executor_destroy(&x);
    moesim_costing_destroy(&c);
    return parts;
}

/* ---- random ---------------------------------------------------------------------------------------------------------- */

static double between(moesim_rng *rng, double lo, double hi) { return lo + (hi - lo) * moesim_rng_real(rng); }

void machine_random_profile(moesim_rng *rng, moesim_profile *out)
{
    machine_profile(out);
    out->link_alpha = constant(between(rng, 0, 3));
    out->link_bandwidth = constant(between(rng, 20, 400));
    out->return_alpha = constant(between(rng, 0, 4));
    out->return_bandwidth = constant(between(rng, 2, 50));
    out->dram_bandwidth = constant(between(rng, 60, 500));
    out->cpu_step = constant(between(rng, 0, 5));
    out->gpu_launch = constant(between(rng, 0, 5));
    out->other_gpu = constant(between(rng, 0, 10));
    out->other_host = constant(between(rng, 0, 10));
    const double first = between(rng, 2, 20), slope = between(rng, 0, 3), g = between(rng, 0.5, 15), more = between(rng, 0, 4);
    for (int i = 0; i < 3; i++)
        out->cpu.seconds[i] = first + slope * out->cpu.tokens[i];
    out->gpu_arrival = constant(between(rng, 0, 6));
    out->gpu_moved = constant(moesim_rng_below(rng, 2) == 0 ? 0 : between(rng, 0, 5));
    out->gpu.num_tokens = 3;
    out->gpu.tokens[2] = 4;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            out->gpu.seconds[i][j] = g + more * (i + j * j);
    out->cpu_combine = constant(between(rng, 0, g + out->gpu_arrival.value + out->gpu_moved.value));
}

void machine_random_work(moesim_rng *rng, machine_work *out)
{
    memset(out, 0, sizeof *out);
    moesim_work *w = &out->work;
    w->layer = moesim_rng_below(rng, MACHINE_LAYERS);
    w->num_rows = 1 + moesim_rng_below(rng, MACHINE_ROWS);
    w->n_hits = moesim_rng_below(rng, 12);
    w->n_moved = moesim_rng_below(rng, 4) == 0 ? 0 : moesim_rng_below(rng, 12);
    w->n_cpu = moesim_rng_below(rng, 3) == 0 ? 0 : moesim_rng_below(rng, 10);
    for (uint32_t i = 0; i < 32; i++) {
        out->hit_tokens[i] = 1 + moesim_rng_below(rng, 5);
        out->moved_tokens[i] = 1 + moesim_rng_below(rng, 5);
        out->cpu_tokens[i] = 1 + moesim_rng_below(rng, 5);
        out->moved[i] = (uint16_t)(i * 3);
    }
    w->hit_tokens = out->hit_tokens;
    w->moved_tokens = out->moved_tokens;
    w->cpu_tokens = out->cpu_tokens;
    w->moved = out->moved;
}
