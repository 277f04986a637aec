/* SPDX-License-Identifier: Apache-2.0
 *
 * From a profile to the costs of one cell.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "sim/cost_tables.h"

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
    c->moved = f->gpu_moved.value;
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

/* ---- sizes ----------------------------------------------------------------------------------------------------------- */

double moesim_cost_stretch(const moesim_costing *c, const moesim_cost_size *size, uint32_t tokens)
{
    const double cpu_s = moesim_cost_cpu(c, size, tokens);
    const double wanted = c->bandwidth + (cpu_s > 0 ? (double)size->bytes / cpu_s : 0);
    return wanted > c->dram ? wanted / c->dram : 1.0;
}

static void fill_size(const moesim_costing *c, moesim_cost_size *s, uint64_t bytes)
{
    const moesim_profile *f = c->profile;
    s->bytes = bytes;
    s->stream_s = (double)bytes / c->bandwidth;
    s->copy_s = c->alpha + s->stream_s;
    s->gpu_scale = f->gpu.num_experts > 0 ? (double)bytes / f->gpu.expert_bytes : 0;
    s->cpu_scale = f->cpu.points > 0 ? (double)bytes / f->cpu.expert_bytes : 0;
}

/* Layers of one size share what depends on it. */
static void set_sizes(moesim_costing *c, const moesim_costing_params *p)
{
    for (uint32_t l = 0; l < c->num_layers; l++) {
        uint32_t i = 0;
        while (i < c->num_sizes && c->size[i].bytes != p->expert_bytes[l])
            i++;
        if (i == c->num_sizes)
            fill_size(c, &c->size[c->num_sizes++], p->expert_bytes[l]);
        c->layer[l] = &c->size[i];
        c->stream_s[l] = c->size[i].stream_s;
        c->h2d_s[l] = c->size[i].copy_s;
    }
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
    const size_t layers = p->num_layers;
    if (moesim_alloc(layers, sizeof *c->size, what, (void **)&c->size, err) != MOESIM_OK ||
        moesim_alloc(layers, sizeof *c->layer, what, (void **)&c->layer, err) != MOESIM_OK ||
        moesim_alloc(layers, sizeof *c->stream_s, what, (void **)&c->stream_s, err) != MOESIM_OK ||
        moesim_alloc(layers, sizeof *c->h2d_s, what, (void **)&c->h2d_s, err) != MOESIM_OK ||
        moesim_alloc((size_t)p->max_rows + 1, sizeof *c->cpu_view, what, (void **)&c->cpu_view, err) != MOESIM_OK)
        return err->code;
    return MOESIM_OK;
}

/* Rows of the same profile for as many tokens are the same at any bandwidth. */
static moesim_code find_rows(moesim_costing *c, const moesim_costing_params *p, moesim_error *err)
{
    const moesim_costing *like = p->like;
    c->owns_rows = like == NULL || like->profile != p->profile || like->max_rows != p->max_rows || like->rows == NULL;
    if (c->owns_rows)
        return moesim_cost_rows_create(p->profile, p->max_rows, &c->rows, err);
    c->rows = like->rows;
    return MOESIM_OK;
}

static moesim_code fill(moesim_costing *c, const moesim_costing_params *p, moesim_error *err)
{
    c->mode = p->mode;
    c->profile = p->profile;
    c->num_layers = p->num_layers;
    c->max_rows = p->max_rows;
    if (reserve(c, p, err) != MOESIM_OK)
        return err->code;
    if (p->mode == MOESIM_TIME_COUNT)
        return MOESIM_OK;
    if (p->mode == MOESIM_TIME_PAPER) {
        set_paper(c, p);
    } else {
        set_constants(c, p);
        if (find_rows(c, p, err) != MOESIM_OK)
            return err->code;
        set_sizes(c, p);
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
    if (c->owns_rows)
        moesim_cost_rows_destroy(c->rows);
    free(c->size);
    free(c->layer);
    free(c->stream_s);
    free(c->h2d_s);
    free(c->cpu_view);
    free(c);
    *costing = NULL;
}

const moesim_costs *moesim_costing_view(const moesim_costing *costing)
{
    return costing->mode == MOESIM_TIME_COUNT ? NULL : &costing->view;
}

double moesim_costing_bandwidth(const moesim_costing *costing) { return costing->bandwidth; }
