/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a profile by whole tokens: the rows that the hot path looks up.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "sim/cost_tables.h"

/* Rows end here; longer events (prefill) are interpolated when they come. */
#define MOST_TOKENS 4096u

/* As in hwprofile/tables.c: beyond the last point a falling segment is not continued. */
static double line(double a, double b, double at)
{
    if (at > 1.0 && b < a)
        return b;
    return at == 1.0 ? b : a + (b - a) * at;
}

/* Row i of the GPU table at some tokens; not scaled. */
static double along_row(const moesim_gpu_table *t, uint32_t i, double tokens)
{
    uint32_t j = 0;
    while (j + 2 < t->num_tokens && tokens >= t->tokens[j + 1])
        j++;
    const double at = tokens <= t->tokens[0] ? 0.0 : (tokens - t->tokens[j]) / (t->tokens[j + 1] - t->tokens[j]);
    return line(t->seconds[i][j], t->seconds[i][j + 1], at);
}

/* g(experts, tokens) of the table, not scaled. */
static double across_rows(const moesim_costing *c, uint32_t experts, double tokens)
{
    const moesim_gpu_table *t = &c->profile->gpu;
    const uint32_t i = c->rows->segment[experts];
    return line(along_row(t, i, tokens), along_row(t, i + 1, tokens), c->rows->at[experts]);
}

double moesim_cost_grouped(const moesim_costing *c, const moesim_cost_size *size, uint32_t experts, double tokens)
{
    return c->rows->grouped_s != NULL && tokens > 0.0 ? across_rows(c, experts, tokens) * size->gpu_scale : 0.0;
}

/* Σ g(n, tokens) over n hits, not scaled, where all tokens are prepared and interpolating is linear: both rows are added up
 * before they are interpolated, in two sums each, so that additions do not wait for each other. */
static double sum_prepared(const double (*rows)[2], double at, uint32_t n, const uint32_t *tokens)
{
    double sum[2] = {0.0, 0.0}, more[2] = {0.0, 0.0};
    uint32_t i = 0;
    for (; i + 1 < n; i += 2) {
        const double *x = rows[tokens[i]], *y = rows[tokens[i + 1]];
        sum[0] += x[0];
        sum[1] += x[1];
        more[0] += y[0];
        more[1] += y[1];
    }
    if (i < n) {
        sum[0] += rows[tokens[i]][0];
        sum[1] += rows[tokens[i]][1];
    }
    return line(sum[0] + more[0], sum[1] + more[1], at);
}

/* The same for tokens that are not prepared, or where a falling row is not continued. */
static double sum_any(const moesim_costing *c, const double (*rows)[2], uint32_t n, const uint32_t *tokens)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = tokens[i];
        sum += t <= c->rows->max_tokens ? line(rows[t][0], rows[t][1], c->rows->at[n]) : across_rows(c, n, t);
    }
    return sum;
}

double moesim_cost_hits(const moesim_costing *c, const moesim_cost_size *size, uint32_t n_hits, const uint32_t *tokens)
{
    const moesim_cost_rows *r = c->rows;
    uint32_t over = 0;
    if (n_hits == 0)
        return 0.0;
    if (r->grouped_s == NULL)
        return c->launch;
    const double (*rows)[2] = (const double (*)[2])r->grouped_s + (size_t)r->segment[n_hits] * (r->max_tokens + 1);
    for (uint32_t i = 0; i < n_hits; i++)
        over |= tokens[i] > r->max_tokens;
    const double sum = over || (r->at[n_hits] > 1.0 && !r->rising) ? sum_any(c, rows, n_hits, tokens)
                                                                   : sum_prepared(rows, r->at[n_hits], n_hits, tokens);
    return c->launch + sum / n_hits * size->gpu_scale;
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static uint32_t rows_of(const moesim_profile *f)
{
    return f->gpu.num_experts >= 2 && f->gpu.num_tokens >= 2 ? f->gpu.num_experts : 0;
}

static uint32_t tokens_of(uint32_t max_rows) { return max_rows < MOST_TOKENS ? max_rows : MOST_TOKENS; }

double moesim_cost_rows_bytes(const moesim_profile *profile, uint32_t max_rows)
{
    const double pairs = rows_of(profile) > 0 ? rows_of(profile) - 1.0 : 0.0;
    return (tokens_of(max_rows) + 1.0) * sizeof(double) * (2.0 * pairs + 2.0);
}

static void place_experts(moesim_cost_rows *r, const moesim_gpu_table *t)
{
    uint32_t i = 0;
    for (uint32_t n = 0; n <= MOESIM_MOST_EXPERTS; n++) {
        while (i + 2 < t->num_experts && n >= t->experts[i + 1])
            i++;
        r->segment[n] = i;
        r->at[n] = n <= t->experts[0] ? 0.0 : (n - t->experts[i]) / (t->experts[i + 1] - t->experts[i]);
    }
}

static moesim_code fill_pairs(moesim_cost_rows *r, const moesim_gpu_table *t, moesim_error *err)
{
    const size_t n_tokens = (size_t)r->max_tokens + 1;
    const uint32_t pairs = t->num_experts - 1;
    void *grouped = NULL;
    if (moesim_alloc(pairs * n_tokens, sizeof *r->grouped_s, "the cost tables", &grouped, err) != MOESIM_OK)
        return err->code;
    r->grouped_s = grouped;
    for (uint32_t i = 0; i < pairs; i++)
        for (uint32_t n = 1; n < n_tokens; n++)
            for (uint32_t k = 0; k < 2; k++)
                r->grouped_s[i * n_tokens + n][k] = along_row(t, i + k, n);
    const double (*last)[2] = (const double (*)[2])r->grouped_s + (pairs - 1) * n_tokens;
    r->rising = true;
    for (uint32_t n = 1; n < n_tokens; n++)
        r->rising = r->rising && last[n][1] >= last[n][0];
    return MOESIM_OK;
}

moesim_code moesim_cost_rows_create(const moesim_profile *f, uint32_t max_rows, moesim_cost_rows **out, moesim_error *err)
{
    const char *what = "the cost tables";
    moesim_cost_rows *r = NULL;
    if (moesim_alloc(1, sizeof *r, what, (void **)&r, err) != MOESIM_OK)
        return err->code;
    *out = r;
    r->max_tokens = tokens_of(max_rows);
    const size_t n_tokens = (size_t)r->max_tokens + 1, experts = MOESIM_MOST_EXPERTS + 1u;
    if (moesim_alloc(n_tokens, sizeof *r->moved_s, what, (void **)&r->moved_s, err) != MOESIM_OK ||
        moesim_alloc(n_tokens, sizeof *r->cpu_s, what, (void **)&r->cpu_s, err) != MOESIM_OK ||
        moesim_alloc(experts, sizeof *r->segment, what, (void **)&r->segment, err) != MOESIM_OK ||
        moesim_alloc(experts, sizeof *r->at, what, (void **)&r->at, err) != MOESIM_OK)
        return err->code;
    for (uint32_t n = 0; n < n_tokens; n++) {
        r->moved_s[n] = moesim_profile_gpu_s(f, 1, n, f->gpu.expert_bytes) + f->gpu_moved.value;
        r->cpu_s[n] = moesim_profile_cpu_s(f, n, f->cpu.expert_bytes);
    }
    if (rows_of(f) == 0)
        return MOESIM_OK;
    place_experts(r, &f->gpu);
    return fill_pairs(r, &f->gpu, err);
}

void moesim_cost_rows_destroy(moesim_cost_rows *r)
{
    if (r == NULL)
        return;
    free(r->moved_s);
    free(r->cpu_s);
    free(r->grouped_s);
    free(r->segment);
    free(r->at);
    free(r);
}
