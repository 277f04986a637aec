/* SPDX-License-Identifier: Apache-2.0
 *
 * From a trace to the tables with which the generator makes one that is like it.
 */
#include "traces/gen_like.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

#define LEAST_BLOCKS 8u
#define LEAST_PASSES 32u
#define USUAL_BLOCKS 128u        /* enough for the check to be sharp; requests are added until there are so many */

/* ---- what cannot be fitted ------------------------------------------------------------------------------------- */

static moesim_code refuse(const moesim_trace_info *info, const char *why, const char *remedy, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_USAGE, "%s: no trace like this one can be generated: %s; %s", info->path, why, remedy);
}

static moesim_code check_header(const moesim_trace_info *info, moesim_error *err)
{
    if (info->block_length > MOESIM_GEN_MAX_BLOCK)
        return refuse(info, "its blocks are longer than 64 tokens", "record it with shorter blocks", err);
    if (info->top_k * 2 > info->num_experts)
        return refuse(info, "its top-k is more than half of the experts, so rows have no others to turn to",
                      "there is no remedy", err);
    if (info->block_length > 1 && !info->has_confidence_values)
        return refuse(info, "it has no confidences, on which commits and stability depend", "record it with confidences", err);
    return MOESIM_OK;
}

static moesim_code check_measure(const moesim_trace_info *info, const moesim_gen_measure *m, uint64_t decode_passes,
                                 moesim_error *err)
{
    uint64_t commits = 0;
    const uint64_t *known = &m->cell[0][0];
    uint64_t confident = 0;
    for (uint32_t i = 0; i <= m->block; i++)
        for (uint32_t j = 1; j <= m->block; j++)
            commits += m->commits[i][j];
    for (uint32_t c = 0; c < MOESIM_GEN_CLASSES * (MOESIM_GEN_CELLS + 1); c++)
        confident += c % (MOESIM_GEN_CELLS + 1) < MOESIM_GEN_CELLS ? known[c] : 0;
    char few[96];
    snprintf(few, sizeof few, "it has fewer than %u blocks or %u decode passes (%" PRIu64 " and %" PRIu64 ")", LEAST_BLOCKS,
             LEAST_PASSES, (uint64_t)m->blocks, decode_passes);
    const struct { bool bad; const char *why, *remedy; } rule[] = {
        { m->odd > 0, "it has decode passes of more or fewer rows than its block length", "select requests without them" },
        { m->edited > 0, "it has edited tokens (state 3), which are not modelled", "select requests without them" },
        { m->unrouted > 0, "it has rows with fewer than top-k experts", "select layers or requests without them" },
        { m->blocks < LEAST_BLOCKS || decode_passes < LEAST_PASSES, few, "record more requests" },
        { commits == 0, "no token of it is committed (state 1)", "record which rows commit" },
        { m->block > 1 && confident == 0, "all its confidences are NaN", "record it with confidences" },
    };
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++)
        if (rule[i].bad)
            return refuse(info, rule[i].why, rule[i].remedy, err);
    return MOESIM_OK;
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

/* Value at masked = i, or at the nearest number that was seen. */
static double nearest(const moesim_mean *mean, uint32_t n, uint32_t i)
{
    for (uint32_t d = 0; d <= n; d++) {
        if (i + d <= n && mean[i + d].n > 0)
            return moesim_mean_value(&mean[i + d]);
        if (d <= i && mean[i - d].n > 0)
            return moesim_mean_value(&mean[i - d]);
    }
    return 0.0;
}

/* Shares of `count` over `all`, which stands in with the weight of two samples where there are few. */
static void shares(const uint64_t *count, const uint64_t *all, uint32_t n, double *out)
{
    double sum = 0.0, total = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += (double)count[i];
        total += (double)all[i];
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = total > 0.0 ? ((double)count[i] + 2.0 * (double)all[i] / total) / (sum + 2.0) : i == n - 1;
}

static void fill_kept(moesim_gen_like *like, uint32_t top_k)
{
    for (uint32_t c = 0; c < MOESIM_GEN_CLASSES; c++) {
        uint64_t all[65] = { 0 };
        for (uint32_t b = 0; b < MOESIM_GEN_BINS; b++)
            for (uint32_t k = 0; k <= top_k; k++)
                all[k] += like->seen.kept[c][b][k];
        for (uint32_t b = 0; b < MOESIM_GEN_BINS; b++)
            shares(like->seen.kept[c][b], all, top_k + 1, like->kept[c][b]);
    }
}

static double correlation(const moesim_gen_pairs *p)
{
    const double xx = p->n * p->xx - p->x * p->x, yy = p->n * p->yy - p->y * p->y, xy = p->n * p->xy - p->x * p->y;
    const double r = p->n > 2.0 && xx > 0.0 && yy > 0.0 ? xy / sqrt(xx * yy) : 0.0;
    return r < 0.0 ? 0.0 : r;
}

static void fill_tables(moesim_gen_like *like, const moesim_trace_stats *stats)
{
    const moesim_gen_measure *m = &like->seen;
    for (uint32_t i = 0; i <= m->block; i++) {
        like->size[i] = nearest(m->size, m->block, i);
        like->leave[i] = nearest(m->leave, m->block, i);
    }
    double all = 0.0;
    for (uint32_t l = 0; l < m->layers; l++) {
        for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++)
            like->layer[l] += (double)stats[g].active_sum[l];
        all += like->layer[l] / m->layers;
    }
    for (uint32_t l = 0; l < m->layers; l++)
        like->layer[l] /= all;
    for (uint32_t c = 0; c < MOESIM_GEN_CLASSES; c++) {
        for (uint32_t i = 0; i <= MOESIM_GEN_CELLS; i++)
            like->cell[c][i] = (double)m->cell[c][i];
        like->near[c] = correlation(&m->pairs[c]);
        like->steady[c] = 0.5;
    }
    like->near[MOESIM_GEN_JUST] = 0.0;
    like->forget = 1.0;
    fill_kept(like, m->top_k);
    const double denoised = (double)(m->blocks + m->idle);
    like->idle = m->start[0] == 0 ? (double)m->idle / denoised : 0.0;
    like->commit = (double)m->commit_passes / (double)m->blocks;
    like->ordered = !isnan(m->threshold) && m->unordered * 100 <= stats[0].passes[MOESIM_PASS_DENOISE];
    like->prefill = stats[0].passes[MOESIM_PASS_PREFILL] > 0;
}

/* ---- the configuration ----------------------------------------------------------------------------------------- */

static moesim_code fill_workloads(moesim_trace *trace, moesim_gen_config *c, moesim_gen_like *like, moesim_error *err)
{
    double prompt = 0.0;
    for (uint32_t q = 0; q < like->info.num_requests; q++) {
        const moesim_trace_request *request = moesim_trace_get_request(trace, q);
        uint32_t w = 0;
        prompt += request->prompt_tokens;
        while (w < c->workloads && strcmp(like->workload[w], request->workload) != 0)
            w++;
        if (w == MOESIM_GEN_MAX_WORKLOADS)
            return refuse(&like->info, "it has more than 16 workloads", "select one with 'moesim trace select --workload'",
                          err);
        if (w == c->workloads)
            snprintf(like->workload[c->workloads++], sizeof like->workload[w], "%s", request->workload);
        c->share[w]++;
        c->workload[w] = like->workload[w];
    }
    c->prompt = (uint32_t)fmax(prompt / like->info.num_requests + 0.5, 1.0);
    return MOESIM_OK;
}

static void fill_config(moesim_gen_config *c, const moesim_gen_like *like, const moesim_trace_stats *stats)
{
    const moesim_trace_info *info = &like->info;
    const moesim_gen_measure *m = &like->seen;
    double active = 0.0, passes = 0.0, committed = 0.0;
    moesim_mean boundary = { 0.0, 0 };
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++) {
        passes += (double)stats[g].decode_passes;
        committed += (double)stats[g].committed;
        active += moesim_trace_stats_active(&stats[g]) >= 0.0 ? moesim_trace_stats_active(&stats[g]) *
                  (double)stats[g].decode_passes : 0.0;
        boundary.sum += stats[g].boundary_new.sum;
        boundary.n += stats[g].boundary_new.n;
    }
    const double blocks = (double)m->blocks / info->num_requests;      /* of a request */
    c->layers = info->num_layers;
    c->experts = info->num_experts;
    c->top_k = info->top_k;
    c->block = info->block_length;
    c->hidden_size = info->hidden_size;
    c->expert_intermediate_size = info->expert_intermediate_size;
    c->active = active / passes;
    c->boundary = boundary.n > 0 ? moesim_mean_value(&boundary) : 0.0;
    c->tokens_per_pass = committed / passes;
    c->threshold = info->commit_threshold;
    c->output = (uint32_t)fmax(blocks * c->block + 0.5, 1.0);
    c->requests = info->num_requests;
    if (blocks * c->requests < USUAL_BLOCKS)
        c->requests = (uint32_t)ceil(USUAL_BLOCKS / blocks);
}

static moesim_code allocate(moesim_trace *trace, moesim_gen_config *c, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    void *memory = NULL, *arrays = NULL, *member = NULL;
    const uint32_t words = moesim_words(info->num_experts);
    moesim_code code = moesim_alloc(1, sizeof(moesim_gen_like), "the tables of a trace", &memory, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(info->num_layers, sizeof(double) + sizeof(uint64_t) + sizeof(int32_t), "layers", &arrays, err);
    if (code == MOESIM_OK)
        code = moesim_alloc((size_t)info->num_layers * words, 64 * sizeof(uint32_t), "popularity of experts", &member, err);
    c->like = memory;
    if (code != MOESIM_OK) {
        free(arrays);
        return code;
    }
    c->like->info = *info;
    c->like->layer = arrays;
    c->like->expert_bytes = (uint64_t *)(void *)(c->like->layer + info->num_layers);
    c->like->layer_id = (int32_t *)(void *)(c->like->expert_bytes + info->num_layers);
    memcpy(c->like->expert_bytes, moesim_trace_expert_bytes(trace), info->num_layers * sizeof(uint64_t));
    memcpy(c->like->layer_id, moesim_trace_layer_ids(trace), info->num_layers * sizeof(int32_t));
    c->like->seen = (moesim_gen_measure){ .block = info->block_length, .layers = info->num_layers, .top_k = info->top_k,
                                          .words = words, .threshold = info->commit_threshold, .member = member };
    return MOESIM_OK;
}

moesim_code moesim_gen_like_measure(moesim_trace *trace, moesim_gen_config *c, moesim_trace_stats *stats, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    *c = (moesim_gen_config){ .name = "like", .seed = 1, .comeback = 0.5, .steadiness = 0.5 };
    memset(stats, 0, MOESIM_GEN_GROUPS * sizeof *stats);
    moesim_code code = check_header(info, err);
    if (code == MOESIM_OK)
        code = moesim_trace_digest(trace, err);
    if (code == MOESIM_OK)
        code = allocate(trace, c, err);
    if (code != MOESIM_OK)
        return code;
    const moesim_stats_observer observer = { moesim_gen_measure_pass, &c->like->seen };
    code = moesim_trace_stats_groups(trace, stats, MOESIM_GEN_GROUPS, &observer, err);
    uint64_t passes = 0;
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++)
        passes += stats[g].decode_passes;
    if (code == MOESIM_OK)
        code = check_measure(info, &c->like->seen, passes, err);
    if (code == MOESIM_OK)
        code = fill_workloads(trace, c, c->like, err);
    if (code != MOESIM_OK)
        return code;
    fill_tables(c->like, stats);
    fill_config(c, c->like, stats);
    return MOESIM_OK;
}

void moesim_gen_like_destroy(moesim_gen_config *c)
{
    if (c->like != NULL) {
        free(c->like->layer);
        free(c->like->seen.member);
    }
    free(c->like);
    c->like = NULL;
}
