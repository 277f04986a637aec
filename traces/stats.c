/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a trace: the streaming pass over it.
 */
#include "traces/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/log.h"
#include "traces/stats_past.h"

#define WINDOW_BYTES ((size_t)64 << 20)
#define COMPARED_BYTES ((size_t)128 << 20)   /* passes kept of all open requests */

typedef struct run {
    moesim_trace *trace;
    const moesim_trace_info *info;
    moesim_trace_stats *stats;               /* [groups] */
    uint32_t groups;
    uint64_t blocks;                         /* begun so far */
    const moesim_stats_observer *observer;   /* NULL: none */
    moesim_cursor *cursor;
    moesim_open_request **open;              /* [Q] NULL: not open */
    moesim_stats_memory memory;
    moesim_stats_scratch scratch;
} run;

static moesim_code prepare_stats(const moesim_trace_info *info, moesim_trace_stats *s, moesim_error *err)
{
    void *sum = NULL, *hist = NULL;
    s->num_layers = info->num_layers;
    s->num_experts = info->num_experts;
    s->top_k = info->top_k;
    s->num_requests = info->num_requests;
    moesim_code code = moesim_alloc(info->num_layers, sizeof *s->active_sum, "sums by layer", &sum, err);
    if (code == MOESIM_OK)
        code = moesim_alloc((size_t)info->num_experts + 1, sizeof *s->active_hist, "the histogram of activation", &hist, err);
    s->active_sum = sum;
    s->active_hist = hist;
    return code;
}

static moesim_code prepare(run *r, moesim_error *err)
{
    const moesim_trace_info *info = r->info;
    void *open = NULL;
    moesim_code code = moesim_alloc(info->num_requests, sizeof(moesim_open_request *), "the list of open requests", &open, err);
    for (uint32_t g = 0; g < r->groups && code == MOESIM_OK; g++)
        code = prepare_stats(info, &r->stats[g], err);
    r->open = open;
    r->memory = (moesim_stats_memory){ .layers = info->num_layers, .top_k = info->top_k,
                                       .words = moesim_words(info->num_experts), .limit = COMPARED_BYTES };
    if (code != MOESIM_OK)
        return code;
    return moesim_cursor_open(r->trace, MOESIM_COLUMN_EXPERT | MOESIM_COLUMN_CONFIDENCE | MOESIM_COLUMN_STATE
                              | MOESIM_COLUMN_POSITION, WINDOW_BYTES, &r->cursor, err);
}

static void release(run *r)
{
    for (uint32_t q = 0; r->open != NULL && q < r->info->num_requests; q++)
        moesim_open_request_destroy(&r->memory, &r->open[q]);
    free(r->open);
    free(r->scratch.match);
    moesim_cursor_close(&r->cursor);
}

static void count_pass(const run *r, moesim_trace_stats *s, const moesim_past *pass)
{
    s->decode_passes++;
    for (uint32_t l = 0; l < s->num_layers; l++) {
        const uint32_t n = moesim_bits_count(pass->active + (size_t)l * r->memory.words, r->memory.words);
        s->active_sum[l] += n;
        s->active_hist[n]++;
    }
    for (uint32_t i = 0; i < pass->rows; i++)
        s->committed += pass->state[i] == MOESIM_STATE_COMMITTED_NOW;
}

/* A block begins: it belongs to the next group, with what lies between it and the block before. */
static void begin_block(run *r, moesim_open_request *request, int32_t block)
{
    const bool first = !request->started;
    request->group = (uint32_t)(r->blocks++ % r->groups);
    request->started = true;
    request->block = block;
    request->held = 0;
    if (first)
        return;
    moesim_trace_stats *s = &r->stats[request->group];
    moesim_stats_compare_sets(&r->memory, moesim_open_request_pass(request, 1), moesim_open_request_pass(request, 0),
                              &s->boundary_new, &s->boundary_old);
}

static moesim_code decode_pass(run *r, const moesim_pass *pass, moesim_error *err)
{
    moesim_open_request **open = &r->open[pass->request];
    moesim_rows rows = { 0 };
    moesim_code code = MOESIM_OK;
    if (pass->row_end > pass->row_begin)
        code = moesim_cursor_rows(r->cursor, pass->row_begin, pass->row_end, &rows, err);
    if (code == MOESIM_OK && *open == NULL)
        code = moesim_open_request_create(&r->memory, open, err);
    if (code != MOESIM_OK)
        return code;
    moesim_open_request *request = *open;
    moesim_past *now = moesim_open_request_pass(request, 0);
    code = moesim_past_fill(&r->memory, now, &rows, err);
    if (code != MOESIM_OK)
        return code;
    if (!request->started || request->block != pass->block)
        begin_block(r, request, pass->block);
    moesim_trace_stats *s = &r->stats[request->group];
    count_pass(r, s, now);
    if (r->observer != NULL)
        r->observer->pass(r->observer->cookie, pass, request);
    code = moesim_stats_compare(s, &r->memory, request, &r->scratch, err);
    moesim_open_request_advance(request);
    return code;
}

static moesim_code one_pass(run *r, uint64_t p, moesim_error *err)
{
    moesim_pass pass;
    moesim_code code = moesim_trace_pass(r->trace, p, &pass, err);
    if (code != MOESIM_OK)
        return code;
    r->stats->passes[pass.kind]++;
    r->stats->rows[pass.kind] += pass.row_end - pass.row_begin;
    if (pass.kind == MOESIM_PASS_DENOISE || pass.kind == MOESIM_PASS_COMMIT)
        code = decode_pass(r, &pass, err);
    if (code == MOESIM_OK && moesim_trace_get_request(r->trace, pass.request)->last == p)
        moesim_open_request_destroy(&r->memory, &r->open[pass.request]);
    return code;
}

moesim_code moesim_trace_stats_groups(moesim_trace *trace, moesim_trace_stats *out, uint32_t groups,
                                      const moesim_stats_observer *observer, moesim_error *err)
{
    memset(out, 0, groups * sizeof *out);
    run r = { .trace = trace, .info = moesim_trace_get_info(trace), .stats = out, .groups = groups, .observer = observer };
    moesim_progress progress = { 0 };
    moesim_code code = prepare(&r, err);
    moesim_progress_begin(&progress, "statistics", r.info->num_passes, r.info->num_layers, "events");
    for (uint64_t p = 0; p < r.info->num_passes && code == MOESIM_OK; p++) {
        code = one_pass(&r, p, err);
        moesim_progress_update(&progress, p);
        if (code == MOESIM_OK && moesim_interrupted())
            code = moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
    }
    moesim_progress_end(&progress);
    release(&r);
    return code;
}

moesim_code moesim_trace_stats_compute(moesim_trace *trace, moesim_trace_stats *out, moesim_error *err)
{
    return moesim_trace_stats_groups(trace, out, 1, NULL, err);
}

void moesim_trace_stats_fini(moesim_trace_stats *stats)
{
    free(stats->active_sum);
    free(stats->active_hist);
    memset(stats, 0, sizeof *stats);
}

double moesim_mean_value(const moesim_mean *mean)
{
    return mean->n > 0 ? mean->sum / (double)mean->n : NAN;
}

double moesim_trace_stats_active(const moesim_trace_stats *stats)
{
    uint64_t sum = 0;
    for (uint32_t l = 0; l < stats->num_layers; l++)
        sum += stats->active_sum[l];
    return stats->decode_passes > 0 ? (double)sum / ((double)stats->decode_passes * stats->num_layers) : NAN;
}

moesim_regime moesim_trace_stats_regime(const moesim_trace_stats *stats, uint32_t slots)
{
    moesim_regime r = { NAN, NAN, NAN };
    const uint64_t events = stats->decode_passes * stats->num_layers;
    if (events == 0 || slots == 0)
        return r;
    uint64_t above = 0, seen = 0;
    const uint64_t rank = events - events / 20;   /* ⌈.95·events⌉ */
    for (uint32_t a = 0; a <= stats->num_experts; a++) {
        if (seen < rank && seen + stats->active_hist[a] >= rank)
            r.p95 = (double)a / slots;
        seen += stats->active_hist[a];
        above += a > slots ? stats->active_hist[a] : 0;
    }
    r.mean = moesim_trace_stats_active(stats) / slots;
    r.above_one = (double)above / (double)events;
    return r;
}
