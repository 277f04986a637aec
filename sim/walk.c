/* SPDX-License-Identifier: Apache-2.0
 *
 * The windows of a trace and a decision log, side by side; and what a log tells by itself.
 */
#include "sim/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

struct moesim_walk {
    moesim_declog_reader *log;
    moesim_source *source;
    moesim_join *join;
    const moesim_window *window; /* NULL: none yet, or the trace has ended */
    size_t next;                 /* event of the window */
    bool ended;
};

/* ---- facts of a log -------------------------------------------------------------------------------------------------- */

typedef struct scan {
    moesim_log_facts *facts;
    const char *path;
    uint64_t *known, *in;        /* [M][words] has the log spoken of it; is it resident */
    int64_t change, most;        /* residents beyond the initial ones, now and at most */
    uint64_t event;
} scan;

static moesim_code does_not_follow(const scan *s, const moesim_decision *d, uint32_t expert, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: event %llu (pass %llu, layer %u): residency of expert %u does not follow "
                       "from the log; bounds that reload freely (ideal, ideal-pooled) cannot be executed", s->path,
                       (unsigned long long)s->event, (unsigned long long)d->pass, d->layer, expert);
}

/* What hits or leaves must be resident, and was from the start if the log has not spoken of it. */
static bool must_be_in(scan *s, size_t at, uint32_t e)
{
    uint64_t *known = s->known + at, *in = s->in + at;
    if (moesim_bit_test(known, e))
        return moesim_bit_test(in, e);
    moesim_bit_set(known, e);
    moesim_bit_set(in, e);
    moesim_bit_set(s->facts->initial + at, e);
    s->facts->num_initial++;
    return true;
}

static bool must_be_out(scan *s, size_t at, uint32_t e)
{
    moesim_bit_set(s->known + at, e);
    return !moesim_bit_test(s->in + at, e);
}

static moesim_code scan_event(scan *s, const moesim_decision *d, moesim_error *err)
{
    const size_t at = (size_t)d->layer * s->facts->words;
    uint32_t unkept = d->n_moved;
    for (uint32_t i = 0; i < d->n_hits; i++)
        if (!must_be_in(s, at, d->hits[i]))
            return does_not_follow(s, d, d->hits[i], err);
    for (uint32_t i = 0; i < d->n_moved; i++) {          /* a resident that is moved had left before the event */
        moesim_bit_set(s->known + at, d->moved[i]);
        s->change += !moesim_bit_test(s->in + at, d->moved[i]);
        moesim_bit_set(s->in + at, d->moved[i]);
    }
    for (uint32_t i = 0; i < d->n_evicted; i++) {
        if (!must_be_in(s, at, d->evicted[i]))
            return does_not_follow(s, d, d->evicted[i], err);
        moesim_bit_clear(s->in + at, d->evicted[i]);
        s->change--;
    }
    for (uint32_t i = 0; i < d->n_cpu; i++)
        if (!must_be_out(s, at, d->cpu[i]))
            return does_not_follow(s, d, d->cpu[i], err);
    for (uint32_t i = 0; i < d->n_moved; i++)
        unkept -= moesim_bit_test(s->in + at, d->moved[i]);
    s->facts->max_unkept = unkept > s->facts->max_unkept ? unkept : s->facts->max_unkept;
    s->most = s->change > s->most ? s->change : s->most;
    s->event++;
    return MOESIM_OK;
}

static moesim_code scan_log(moesim_declog_reader *log, scan *s, moesim_error *err)
{
    bool end = false;
    moesim_declog_rewind(log);
    for (;;) {
        moesim_decision d;
        if (moesim_declog_next(log, &d, &end, err) != MOESIM_OK)
            return err->code;
        if (end)
            break;
        if (scan_event(s, &d, err) != MOESIM_OK)
            return err->code;
    }
    moesim_declog_rewind(log);
    return MOESIM_OK;
}

moesim_code moesim_log_facts_read(moesim_declog_reader *log, moesim_log_facts *out, moesim_error *err)
{
    const moesim_declog_info *info = moesim_declog_get_info(log);
    *out = (moesim_log_facts){.num_layers = info->num_layers, .words = moesim_words(info->num_experts)};
    scan s = {.facts = out, .path = info->path};
    void *set[3] = {NULL, NULL, NULL};
    moesim_code code = MOESIM_OK;
    for (int i = 0; i < 3 && code == MOESIM_OK; i++)
        code = moesim_alloc((size_t)out->num_layers * out->words, sizeof *s.in, "sets of experts", &set[i], err);
    out->initial = set[0];
    s.known = set[1];
    s.in = set[2];
    if (code == MOESIM_OK)
        code = scan_log(log, &s, err);
    free(set[1]);
    free(set[2]);
    out->peak = out->num_initial + (uint64_t)s.most;
    if (code != MOESIM_OK)
        moesim_log_facts_fini(out);
    return code;
}

void moesim_log_facts_fini(moesim_log_facts *facts)
{
    free(facts->initial);
    *facts = (moesim_log_facts){.initial = NULL};
}

/* ---- walk ------------------------------------------------------------------------------------------------------------ */

static moesim_code check_pair(const moesim_trace_info *trace, const moesim_declog_info *log, moesim_error *err)
{
    if (strcmp(trace->digest, log->trace_digest) != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: these are decisions on another trace: its digest is %.16s…, that of %s is "
                           "%.16s…; give the trace that the log was written from", log->path, log->trace_digest, trace->path,
                           trace->digest);
    if (trace->num_layers != log->num_layers || trace->num_experts != log->num_experts)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: the log has %u layers of %u experts, %s has %u of %u", log->path,
                           log->num_layers, log->num_experts, trace->path, trace->num_layers, trace->num_experts);
    return MOESIM_OK;
}

moesim_code moesim_walk_open(moesim_trace *trace, moesim_declog_reader *log, const moesim_walk_params *params,
                             moesim_walk **out, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    const moesim_declog_info *decided = moesim_declog_get_info(log);
    const moesim_window_params window = {
        .needs = MOESIM_NEED_ROWS | MOESIM_NEED_COUNTS, .request_begin = params->request_begin,
        .request_end = params->request_end, .warmup = params->warmup, .batch = params->batch,
        .window_bytes = params->window_bytes,
    };
    void *p = NULL;
    *out = NULL;
    moesim_code code = check_pair(info, decided, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(1, sizeof(moesim_walk), "walk", &p, err);
    if (code != MOESIM_OK)
        return code;
    moesim_walk *w = p;
    w->log = log;
    moesim_declog_rewind(log);
    code = moesim_source_open(trace, &window, &w->source, err);
    if (code == MOESIM_OK)
        code = moesim_join_create(info->num_layers, info->num_experts, info->top_k, params->max_rows, decided->path, &w->join,
                                  err);
    *out = w;
    if (code != MOESIM_OK)
        moesim_walk_close(out);
    return code;
}

void moesim_walk_close(moesim_walk **walk)
{
    moesim_walk *w = *walk;
    if (w == NULL)
        return;
    moesim_source_close(&w->source);
    moesim_join_destroy(&w->join);
    free(w);
    *walk = NULL;
}

static moesim_code next_window(moesim_walk *w, moesim_error *err)
{
    if (w->ended || (w->window != NULL && w->next < (size_t)w->window->num_steps * w->window->num_layers))
        return MOESIM_OK;
    w->next = 0;
    const moesim_code code = moesim_source_next(w->source, &w->window, err);
    w->ended = w->window == NULL;
    return code;
}

moesim_code moesim_walk_next(moesim_walk *w, moesim_walk_event *out, bool *end, moesim_error *err)
{
    const moesim_declog_info *info = moesim_declog_get_info(w->log);
    moesim_decision decision;
    bool log_ended = false;
    if (next_window(w, err) != MOESIM_OK || moesim_declog_next(w->log, &decision, &log_ended, err) != MOESIM_OK)
        return err->code;
    *end = w->ended && log_ended;
    if (*end)
        return MOESIM_OK;
    if (w->ended != log_ended)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: the log has %s events than the selected requests: it was written with "
                           "other --requests, --warmup or --batch", info->path, log_ended ? "fewer" : "more");
    const size_t index = w->next++;
    return moesim_join_event(w->join, w->window, &w->window->step[index / w->window->num_layers], index, &decision, out, err);
}

const moesim_source_info *moesim_walk_get_info(const moesim_walk *walk)
{
    return moesim_source_get_info(walk->source);
}
