/* SPDX-License-Identifier: Apache-2.0
 *
 * From a profile to the costs of one cell.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "sim/cost_tables.h"

/* Tables of times end here; longer events (prefill) are interpolated when they come. */
#define MOST_TOKENS 4096u
#define MOST_ROWS (1u << 22)

const char *const moesim_effect_names[] = { "contention", "sync", "overlap", "policy", "other", "head", NULL };

static const char *const mode_names[] = { "count", "paper", "model" };

static moesim_code check_mode(const moesim_costing_params *p, moesim_error *err)
{
    char modes[32] = "";
    if (p->profile == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "--time %s needs a profile; give --profile", mode_names[p->mode]);
    if ((p->profile->modes & (1u << (unsigned)p->mode)) != 0)
        return MOESIM_OK;
    for (unsigned i = 1, n = 0; i < 3 && n < sizeof modes; i++)
        if ((p->profile->modes & (1u << i)) != 0)
            n += (unsigned)snprintf(modes + n, sizeof modes - n, "%s%s", n > 0 ? ", " : "", mode_names[i]);
    return moesim_fail(err, MOESIM_E_USAGE, "profile %s does not support --time %s; its modes are: %s", p->profile->name,
                       mode_names[p->mode], modes);
}

static moesim_code check(const moesim_costing_params *p, moesim_error *err)
{
    if (p->num_layers == 0 || p->num_layers > 1024 || p->max_rows > MOST_ROWS)
        return moesim_fail(err, MOESIM_E_LIMIT, "costs are prepared for 1 to 1024 layers and at most %u rows, not %u and %u",
                           MOST_ROWS, p->num_layers, p->max_rows);
    if (p->mode == MOESIM_TIME_COUNT)
        return MOESIM_OK;
    if (check_mode(p, err) != MOESIM_OK)
        return err->code;
    if (!(p->bandwidth >= 0) || isinf(p->bandwidth))
        return moesim_fail(err, MOESIM_E_USAGE, "the bandwidth of the link must be a positive number of GB/s, not %g",
                           p->bandwidth / 1e9);
    if (p->staging == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "--staging must be at least 1");
    return MOESIM_OK;
}

static double switched(const moesim_costing_params *p, enum moesim_effect effect, double value)
{
    return (p->effects & (uint32_t)effect) != 0 ? value : 0.0;
}

static void set_constants(moesim_costing *c, const moesim_costing_params *p)
{
    const moesim_profile *f = p->profile;
    c->overlap = (p->effects & MOESIM_EFFECT_OVERLAP) != 0;
    c->staging = c->overlap ? p->staging : 1;
    c->dram = (p->effects & MOESIM_EFFECT_CONTENTION) != 0 ? f->dram_bandwidth.value : INFINITY;
    c->bandwidth = p->bandwidth > 0 ? p->bandwidth : f->link_bandwidth.value;
    c->alpha = f->link_alpha.value;
    c->other_gpu = switched(p, MOESIM_EFFECT_OTHER, f->other_gpu.value);
    c->other_host = switched(p, MOESIM_EFFECT_OTHER, f->other_host.value);
    c->sync = switched(p, MOESIM_EFFECT_SYNC, f->sync.value);
    c->policy = switched(p, MOESIM_EFFECT_POLICY, f->policy.value);
    c->head = switched(p, MOESIM_EFFECT_HEAD, f->head.value);
    c->launch = f->gpu_launch.value;
    c->arrival = f->gpu_arrival.value;
    c->step = f->cpu_step.value;
    c->combine = f->cpu_combine.value;
    c->return_alpha = f->return_alpha.value;
    c->return_bandwidth = f->return_bandwidth.value;
    c->hidden_bytes = (double)p->hidden_bytes;
}

/* OLED-MoE: T_H2D a constant, here in proportion to the bandwidth. */
static void set_paper(moesim_costing *c, const moesim_costing_params *p)
{
    const moesim_profile *f = p->profile;
    const double nominal = f->link_nominal_bandwidth.value;
    c->bandwidth = p->bandwidth > 0 ? p->bandwidth : f->link_bandwidth.given ? f->link_bandwidth.value : nominal;
    c->paper_copy = f->paper_t_h2d.value * (nominal / c->bandwidth);
    c->paper_tau = f->paper_tau.value;
    c->paper_layer = f->paper_layer.value;
}

/* ---- tables ---------------------------------------------------------------------------------------------------------- */

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
    const uint32_t i = c->segment[experts];
    return line(along_row(t, i, tokens), along_row(t, i + 1, tokens), c->at[experts]);
}

static bool has_gpu_table(const moesim_costing *c)
{
    return c->profile->gpu.num_experts >= 2 && c->profile->gpu.num_tokens >= 2;
}

double moesim_cost_grouped(const moesim_costing *c, const moesim_cost_size *size, uint32_t experts, double tokens)
{
    return has_gpu_table(c) && tokens > 0.0 ? across_rows(c, experts, tokens) * size->gpu_scale : 0.0;
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
        sum += t <= c->max_tokens ? line(rows[t][0], rows[t][1], c->at[n]) : across_rows(c, n, t);
    }
    return sum;
}

double moesim_cost_hits(const moesim_costing *c, const moesim_cost_size *size, uint32_t n_hits, const uint32_t *tokens)
{
    uint32_t over = 0;
    if (n_hits == 0)
        return 0.0;
    if (!has_gpu_table(c))
        return c->launch;
    const double (*rows)[2] = (const double (*)[2])c->grouped_s + (size_t)c->segment[n_hits] * (c->max_tokens + 1);
    for (uint32_t i = 0; i < n_hits; i++)
        over |= tokens[i] > c->max_tokens;
    const double sum = over || (c->at[n_hits] > 1.0 && !c->rising) ? sum_any(c, rows, n_hits, tokens)
                                                                   : sum_prepared(rows, c->at[n_hits], n_hits, tokens);
    return c->launch + sum / n_hits * size->gpu_scale;
}

double moesim_cost_stretched(const moesim_costing *c, const moesim_cost_size *size, double cpu_s)
{
    const double wanted = c->bandwidth + (cpu_s > 0 ? (double)size->bytes / cpu_s : 0);
    return wanted > c->dram ? wanted / c->dram : 1.0;
}

static moesim_code place_experts(moesim_costing *c, moesim_error *err)
{
    const moesim_gpu_table *t = &c->profile->gpu;
    const size_t n_tokens = (size_t)c->max_tokens + 1;
    uint32_t i = 0;
    if (!has_gpu_table(c))
        return MOESIM_OK;
    for (uint32_t n = 0; n <= MOESIM_MOST_EXPERTS; n++) {
        while (i + 2 < t->num_experts && n >= t->experts[i + 1])
            i++;
        c->segment[n] = i;
        c->at[n] = n <= t->experts[0] ? 0.0 : (n - t->experts[i]) / (t->experts[i + 1] - t->experts[i]);
    }
    const uint32_t pairs = t->num_experts - 1;
    void *rows = NULL;
    if (moesim_alloc(pairs * n_tokens, sizeof *c->grouped_s, "the cost tables", &rows, err) != MOESIM_OK)
        return err->code;
    c->grouped_s = rows;
    for (uint32_t r = 0; r < pairs; r++)
        for (uint32_t n = 1; n < n_tokens; n++)
            for (uint32_t k = 0; k < 2; k++)
                c->grouped_s[r * n_tokens + n][k] = along_row(t, r + k, n);
    c->rising = true;
    for (uint32_t n = 1; n < n_tokens; n++)
        c->rising = c->rising && c->grouped_s[(pairs - 1) * n_tokens + n][1] >= c->grouped_s[(pairs - 1) * n_tokens + n][0];
    return MOESIM_OK;
}

static moesim_code fill_size(moesim_costing *c, moesim_cost_size *s, uint64_t bytes, moesim_error *err)
{
    const size_t n = (size_t)c->max_tokens + 1;
    const char *what = "the cost tables";
    s->bytes = bytes;
    s->stream_s = (double)bytes / c->bandwidth;
    s->copy_s = c->alpha + s->stream_s;
    s->gpu_scale = c->profile->gpu.num_experts > 0 ? (double)bytes / c->profile->gpu.expert_bytes : 0;
    if (moesim_alloc(n, sizeof *s->moved_s, what, (void **)&s->moved_s, err) != MOESIM_OK ||
        moesim_alloc(n, sizeof *s->cpu_s, what, (void **)&s->cpu_s, err) != MOESIM_OK ||
        moesim_alloc(n, sizeof *s->stretch, what, (void **)&s->stretch, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0; i <= c->max_tokens; i++) {
        s->moved_s[i] = moesim_cost_grouped(c, s, 1, i);
        s->cpu_s[i] = moesim_profile_cpu_s(c->profile, i, (double)bytes);
        s->stretch[i] = moesim_cost_stretched(c, s, s->cpu_s[i]);
    }
    return MOESIM_OK;
}

/* Layers of one size share its tables. */
static moesim_code set_sizes(moesim_costing *c, const moesim_costing_params *p, moesim_error *err)
{
    for (uint32_t l = 0; l < c->num_layers; l++) {
        uint32_t i = 0;
        while (i < c->num_sizes && c->size[i].bytes != p->expert_bytes[l])
            i++;
        if (i == c->num_sizes) {
            c->num_sizes++;
            if (fill_size(c, &c->size[i], p->expert_bytes[l], err) != MOESIM_OK)
                return err->code;
        }
        c->layer[l] = &c->size[i];
        c->stream_s[l] = c->size[i].stream_s;
        c->h2d_s[l] = c->size[i].copy_s;
    }
    return MOESIM_OK;
}

static void set_view(moesim_costing *c, const moesim_costing_params *p)
{
    double bytes = 0;
    for (uint32_t l = 0; l < c->num_layers && c->mode == MOESIM_TIME_MODEL; l++)
        bytes += (double)p->expert_bytes[l];
    for (uint32_t n = 0; n <= p->max_rows; n++)
        c->cpu_view[n] = c->mode == MOESIM_TIME_PAPER ? c->paper_tau * n
                                                      : moesim_profile_cpu_s(c->profile, n, bytes / c->num_layers);
    for (uint32_t l = 0; l < c->num_layers && c->mode == MOESIM_TIME_PAPER; l++)
        c->h2d_s[l] = c->stream_s[l] = c->paper_copy;
    c->view = (moesim_costs){
        .size = sizeof c->view,
        .cpu_tokens = p->max_rows,
        .h2d_s = c->h2d_s,
        .cpu_s = c->cpu_view,
        .cpu_step_s = c->step,
    };
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static moesim_code reserve(moesim_costing *c, const moesim_costing_params *p, moesim_error *err)
{
    const char *what = "the cost tables";
    const size_t layers = p->num_layers, experts = MOESIM_MOST_EXPERTS + 1u;
    if (moesim_alloc(layers, sizeof *c->size, what, (void **)&c->size, err) != MOESIM_OK ||
        moesim_alloc(layers, sizeof *c->layer, what, (void **)&c->layer, err) != MOESIM_OK ||
        moesim_alloc(layers, sizeof *c->stream_s, what, (void **)&c->stream_s, err) != MOESIM_OK ||
        moesim_alloc(layers, sizeof *c->h2d_s, what, (void **)&c->h2d_s, err) != MOESIM_OK ||
        moesim_alloc((size_t)p->max_rows + 1, sizeof *c->cpu_view, what, (void **)&c->cpu_view, err) != MOESIM_OK ||
        moesim_alloc(experts, sizeof *c->segment, what, (void **)&c->segment, err) != MOESIM_OK ||
        moesim_alloc(experts, sizeof *c->at, what, (void **)&c->at, err) != MOESIM_OK)
        return err->code;
    return MOESIM_OK;
}

static moesim_code fill(moesim_costing *c, const moesim_costing_params *p, moesim_error *err)
{
    c->mode = p->mode;
    c->profile = p->profile;
    c->num_layers = p->num_layers;
    c->max_tokens = p->max_rows < MOST_TOKENS ? p->max_rows : MOST_TOKENS;
    if (reserve(c, p, err) != MOESIM_OK)
        return err->code;
    if (p->mode == MOESIM_TIME_COUNT)
        return MOESIM_OK;
    if (p->mode == MOESIM_TIME_PAPER) {
        set_paper(c, p);
    } else {
        set_constants(c, p);
        if (place_experts(c, err) != MOESIM_OK || set_sizes(c, p, err) != MOESIM_OK)
            return err->code;
    }
    set_view(c, p);
    return MOESIM_OK;
}

moesim_code moesim_costing_create(const moesim_costing_params *params, moesim_costing **out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    *out = NULL;
    moesim_costing *c = NULL;
    if (check(params, err) != MOESIM_OK ||
        moesim_alloc(1, sizeof *c, "the cost tables", (void **)&c, err) != MOESIM_OK)
        return err->code;
    if (fill(c, params, err) != MOESIM_OK) {
        moesim_costing_destroy(&c);
        return err->code;
    }
    *out = c;
    return MOESIM_OK;
}

void moesim_costing_destroy(moesim_costing **costing)
{
    moesim_costing *c = *costing;
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->num_sizes; i++) {
        free(c->size[i].moved_s);
        free(c->size[i].cpu_s);
        free(c->size[i].stretch);
    }
    free(c->size);
    free(c->layer);
    free(c->stream_s);
    free(c->h2d_s);
    free(c->cpu_view);
    free(c->segment);
    free(c->at);
    free(c->grouped_s);
    free(c);
    *costing = NULL;
}

const moesim_costs *moesim_costing_view(const moesim_costing *costing)
{
    return costing->mode == MOESIM_TIME_COUNT ? NULL : &costing->view;
}

double moesim_costing_bandwidth(const moesim_costing *costing) { return costing->bandwidth; }
