/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU: what a start costs, one expert by tokens, and what events on the CPU take beyond both.
 */
#include <math.h>
#include <stdlib.h>

#include "hwprofile/fit_parts.h"

#define MOST_STEP_TOKENS 4u

static bool is_cpu(const moesim_raw_point *p, uint32_t threads)
{
    return p->key.kind == MOESIM_RAW_CPU && p->key.threads == threads;
}

/* Starts of 1, 2, 4, … experts with few tokens: time = step + experts · t. The step is the median over tokens. Where
 * only one number of experts was timed with these threads, it is that of all threads. */
static moesim_code fit_step(moesim_fitting *f, uint32_t threads, moesim_error *err)
{
    double step[MOST_STEP_TOKENS], residual = 0.0, spread = 0.0;
    uint64_t samples = 0;
    size_t n = 0;
    for (uint32_t tokens = 1; tokens <= MOST_STEP_TOKENS; tokens++) {
        moesim_gathered g = { .n = 0 };
        moesim_line line;
        bool different = false;
        for (size_t i = 0; i < f->raw->num_points; i++) {
            const moesim_raw_point *p = &f->raw->point[i];
            if (!is_cpu(p, threads) || p->key.tokens != tokens)
                continue;
            moesim_gather(&g, p, p->key.experts, p->median);
            different = different || g.x[0] != p->key.experts;
        }
        if (g.n < 3 || !different)
            continue;
        const moesim_code code = moesim_fit_line(g.x, g.y, g.n, &line, err);
        if (code != MOESIM_OK)
            return code;
        step[n++] = fmax(line.a, 0.0);
        samples += g.samples;
        residual = fmax(residual, line.residual);
        spread = fmax(spread, moesim_gathered_spread(&g));
    }
    if (n == 0 && threads != f->raw->threads)
        return fit_step(f, f->raw->threads, err);
    if (n == 0)
        return moesim_fit_lacks(f, err, "cpu.step: starts of several numbers of experts are needed");
    moesim_fit_set(&f->profile->cpu_step, moesim_raw_sort_median(step, n), samples, spread, residual,
                   "starts of 1 to 8 experts with %u threads", threads);
    return MOESIM_OK;
}

static int by_tokens(const void *a, const void *b)
{
    const moesim_raw_point *x = *(const moesim_raw_point *const *)a, *y = *(const moesim_raw_point *const *)b;
    return (x->key.tokens > y->key.tokens) - (x->key.tokens < y->key.tokens);
}

/* Of each number of tokens in the first sweep: the point with most experts of one start. */
static size_t table_points(const moesim_fitting *f, const moesim_raw_point *out[MOESIM_TABLE_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        size_t k = 0;
        if (!is_cpu(p, f->threads) || p->sweep != 0)
            continue;
        while (k < n && out[k]->key.tokens != p->key.tokens)
            k++;
        if (k == n && n < MOESIM_TABLE_MAX)
            out[n++] = p;
        else if (k < n && p->key.experts > out[k]->key.experts)
            out[k] = p;
    }
    qsort(out, n, sizeof(const moesim_raw_point *), by_tokens);
    return n;
}

static moesim_code fit_table(moesim_fitting *f, moesim_error *err)
{
    const moesim_raw_point *point[MOESIM_TABLE_MAX];
    const size_t n = table_points(f, point);
    moesim_cpu_table *t = &f->profile->cpu;
    const double step = f->profile->cpu_step.value;
    uint64_t samples = 0;
    double spread = 0.0, apart = 0.0, median;
    if (n < 2)
        return moesim_fit_lacks(f, err, "cpu.table: %zu numbers of tokens with %u threads, 2 are needed", n, f->threads);
    for (size_t i = 0; i < n; i++) {
        const moesim_raw_point *again = moesim_raw_find(f->raw, &point[i]->key, 1);
        (void)moesim_raw_median(f->raw, &point[i]->key, &median);
        t->tokens[i] = point[i]->key.tokens;
        t->seconds[i] = fmax(median - step, 0.1 * median) / point[i]->key.experts;
        samples += point[i]->n + (again != NULL ? again->n : 0);
        spread = fmax(spread, point[i]->cv);
        if (again != NULL)
            apart = fmax(apart, fabs(again->median - point[i]->median) / median);
    }
    t->points = (uint32_t)n;
    t->expert_bytes = (double)f->raw->expert_bytes;
    moesim_fit_set(&t->facts, 0.0, samples, spread, apart / 2, "medians, %u threads%s%s; the sweeps differ by at most %.1f %%",
                   f->threads, moesim_raw_find_fact(f->raw, "isa") != NULL ? ", " : "",
                   moesim_raw_find_fact(f->raw, "isa") != NULL ? moesim_raw_find_fact(f->raw, "isa") : "", 100.0 * apart);
    return MOESIM_OK;
}

/* Seconds of CPU experts of one point and of what surrounds them, without the step. */
static double around(const moesim_fitting *f, const moesim_raw_key *key)
{
    const moesim_profile *p = f->profile;
    const double way = p->return_alpha.value + key->rows * 2.0 * f->raw->hidden / p->return_bandwidth.value;
    return p->sync.value + 2.0 * way + p->cpu_combine.value +
           key->experts * moesim_profile_cpu_s(p, key->tokens, (double)f->raw->expert_bytes);
}

/* What an event on the CPU takes beyond gate, activations, start, experts and results. Events run with all threads. */
static moesim_code fit_combine(moesim_fitting *f, moesim_error *err)
{
    moesim_gathered g = { .n = 0 };
    const moesim_profile *p = f->profile;
    double square = 0.0;
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *point = &f->raw->point[i];
        const moesim_raw_key *key = &point->key;
        if (key->kind != MOESIM_RAW_EVENT_CPU)
            continue;
        moesim_gather(&g, point, point->median, point->median - p->cpu_step.value - around(f, key));
    }
    if (g.n == 0)
        return moesim_fit_lacks(f, err, "cpu.combine: no event on the CPU was measured");
    const double rest = moesim_gathered_median(&g), combine = f->threads == f->raw->threads ? fmax(rest, 0.0) : 0.0;
    for (size_t i = 0; i < g.n; i++)
        square += (g.y[i] - combine) * (g.y[i] - combine) / (g.x[i] * g.x[i]);
    const double residual = sqrt(square / (double)g.n);
    if (f->threads != f->raw->threads)
        moesim_fit_set(&f->profile->cpu_combine, 0.0, 0, NAN, NAN, "not measured: events ran with %u threads", f->raw->threads);
    else
        moesim_fit_set(&f->profile->cpu_combine, combine, g.samples, moesim_gathered_spread(&g), residual,
                       "what events on the CPU take beyond their parts%s", rest < 0.0 ? ": less than their parts, so 0" : "");
    return MOESIM_OK;
}

/* In an event the CPU's share starts after what the host queues for the GPU: the step is what events with hits and CPU experts
 * take beyond their CPU path. Points whose hits last longer say nothing of it. */
moesim_code moesim_fit_late(moesim_fitting *f, moesim_error *err)
{
    moesim_gathered g = { .n = 0 };
    moesim_constant *step = &f->profile->cpu_step;
    const double bytes = (double)f->raw->expert_bytes, alone = step->value;
    double square = 0.0;
    (void)err;
    if (f->threads != f->raw->threads)
        return MOESIM_OK;
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind != MOESIM_RAW_EVENT_BOTH)
            continue;
        const double known = around(f, &p->key);
        const double hits = f->profile->sync.value + f->profile->gpu_launch.value +
                            moesim_profile_gpu_s(f->profile, MOESIM_RAW_BESIDE, 1.0, bytes);
        if (known > hits)
            moesim_gather(&g, p, p->median, p->median - known);
    }
    if (g.n == 0)
        return MOESIM_OK;
    const double late = fmax(moesim_gathered_median(&g), alone);
    for (size_t i = 0; i < g.n; i++)
        square += (g.y[i] - late) * (g.y[i] - late) / (g.x[i] * g.x[i]);
    moesim_fit_set(step, late, g.samples, moesim_gathered_spread(&g), sqrt(square / (double)g.n),
                   "in events with %u hits and CPU experts; a start alone takes %.2f us", MOESIM_RAW_BESIDE, 1e6 * alone);
    return MOESIM_OK;
}

moesim_code moesim_fit_cpu(moesim_fitting *f, moesim_error *err)
{
    moesim_code code = fit_step(f, f->threads, err);
    if (code == MOESIM_OK)
        code = fit_table(f, err);
    return code == MOESIM_OK ? fit_combine(f, err) : code;
}
