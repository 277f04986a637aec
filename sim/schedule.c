/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes to steps. The state between two steps is a flat struct, so that a mark is a copy of it.
 */
#include "sim/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* A request in a slot: positions in the index of passes; empty when next == end. */
typedef struct slot {
    uint64_t next, end;
} slot;

typedef struct state {
    uint64_t clock, decode_passes;   /* of the steps taken so far */
    uint64_t pass;                   /* batch 1: next pass to look at */
    uint64_t next_request;           /* batch > 1: first request without a slot yet, relative to begin */
    slot slots[];
} state;

struct moesim_schedule {
    moesim_trace *trace;
    const moesim_trace_info *info;
    uint32_t begin, end;             /* selected requests */
    uint64_t counted_from;           /* first request that is not warm-up */
    uint32_t batch;
    size_t state_bytes;
    state *now, *after;              /* before and after the peeked step */
    bool peeked;
    moesim_planned planned;
    moesim_part *part;
    uint32_t part_capacity;
    uint64_t *index;                 /* batch > 1: pass numbers grouped by request, in file order */
    uint64_t *offset;                /* batch > 1: [selected + 1] into index */
};

static moesim_code add_part(moesim_schedule *s, uint64_t pass, const moesim_pass *info, uint32_t slot_number,
                            moesim_error *err)
{
    if (s->planned.num_parts == s->part_capacity) {
        if (s->part_capacity >= MOESIM_MAX_PARTS)
            return moesim_fail(err, MOESIM_E_LIMIT,
                               "%s: /pass/forward[%llu]: more than %u passes share one forward number; split the batch",
                               s->info->path, (unsigned long long)pass, MOESIM_MAX_PARTS);
        uint32_t capacity = s->part_capacity * 2;
        moesim_part *bigger = realloc(s->part, capacity * sizeof *bigger);
        if (bigger == NULL)
            return moesim_fail_nomem(err, "parts of a step", capacity * sizeof *bigger);
        s->part = bigger;
        s->part_capacity = capacity;
    }
    const moesim_trace_request *request = moesim_trace_get_request(s->trace, info->request);
    s->part[s->planned.num_parts++] = (moesim_part){
        .pass = pass, .info = *info, .slot = slot_number,
        .starts = pass == request->first, .ends = pass == request->last,
    };
    return MOESIM_OK;
}

static bool selected(const moesim_schedule *s, const moesim_pass *info)
{
    return info->kind != MOESIM_PASS_DUMMY && info->request >= s->begin && info->request < s->end;
}

/* Next step in file order: one pass, or all selected passes of one forward call. */
static moesim_code plan_in_order(moesim_schedule *s, moesim_error *err)
{
    uint64_t p = s->after->pass, forward = 0;
    moesim_code code = MOESIM_OK;
    for (; p < s->info->num_passes; p++) {
        moesim_pass info;
        code = moesim_trace_pass(s->trace, p, &info, err);
        if (code != MOESIM_OK)
            return code;
        if (s->planned.num_parts > 0 && (!s->info->has_forward || info.forward != forward))
            break;
        if (!selected(s, &info))
            continue;
        forward = info.forward;
        code = add_part(s, p, &info, 0, err);
        if (code != MOESIM_OK)
            return code;
    }
    s->after->pass = p;
    return MOESIM_OK;
}

/* Makes sure that slot i holds a request whose next pass is a decode pass, or nothing if none is left. A prefill on the way
 * becomes the step (num_parts 1). */
static moesim_code prepare_slot(moesim_schedule *s, uint32_t i, moesim_pass *info, moesim_error *err)
{
    slot *at = &s->after->slots[i];
    while (at->next == at->end && s->after->next_request < s->end - s->begin) {
        uint64_t q = s->after->next_request++;
        *at = (slot){ s->offset[q], s->offset[q + 1] };
    }
    if (at->next == at->end)
        return MOESIM_OK;
    moesim_code code = moesim_trace_pass(s->trace, s->index[at->next], info, err);
    if (code == MOESIM_OK && info->kind == MOESIM_PASS_PREFILL) {
        code = add_part(s, s->index[at->next], info, i, err);
        at->next++;
    }
    return code;
}

/* Next step of b slots: a prefill alone, else the merged decode passes of all slots in slot order. */
static moesim_code plan_merged(moesim_schedule *s, moesim_error *err)
{
    moesim_pass info[MOESIM_MAX_BATCH];
    for (uint32_t i = 0; i < s->batch; i++) {
        moesim_code code = prepare_slot(s, i, &info[i], err);
        if (code != MOESIM_OK || s->planned.num_parts > 0)
            return code;
    }
    for (uint32_t i = 0; i < s->batch; i++) {
        slot *at = &s->after->slots[i];
        if (at->next == at->end)
            continue;
        moesim_code code = add_part(s, s->index[at->next], &info[i], i, err);
        if (code != MOESIM_OK)
            return code;
        at->next++;
    }
    return MOESIM_OK;
}

/* Fields of the step that follow from its parts. A merged step is DENOISE if any part is, and enters the metrics only if
 * none of its requests is warm-up. */
static void describe(moesim_schedule *s)
{
    moesim_planned *p = &s->planned;
    bool any[3] = { false, false, false }, warm = false;
    p->num_rows = 0;
    for (uint32_t i = 0; i < p->num_parts; i++) {
        const moesim_pass *info = &s->part[i].info;
        any[info->kind] = true;
        warm = warm || info->request < s->counted_from;
        p->num_rows += info->row_end - info->row_begin;
    }
    p->kind = any[MOESIM_DENOISE] ? MOESIM_DENOISE : any[MOESIM_COMMIT] ? MOESIM_COMMIT : MOESIM_PREFILL;
    p->decode = p->kind != MOESIM_PREFILL;
    p->counted = p->decode && !warm;
    p->clock = ++s->after->clock;
    s->after->decode_passes += p->decode;
    p->decode_passes = s->after->decode_passes;
    p->part = s->part;
}

const char *moesim_schedule_path(const moesim_schedule *schedule)
{
    return schedule->info->path;
}

moesim_code moesim_schedule_peek(moesim_schedule *s, const moesim_planned **out, moesim_error *err)
{
    if (!s->peeked) {
        memcpy(s->after, s->now, s->state_bytes);
        s->planned = (moesim_planned){ .num_parts = 0 };
        moesim_code code = s->batch > 1 ? plan_merged(s, err) : plan_in_order(s, err);
        if (code != MOESIM_OK)
            return code;
        if (s->planned.num_parts > 0)
            describe(s);
        s->peeked = true;
    }
    *out = &s->planned;
    return MOESIM_OK;
}

void moesim_schedule_advance(moesim_schedule *s)
{
    state *swap = s->now;
    s->now = s->after;
    s->after = swap;
    s->peeked = false;
}

size_t moesim_schedule_mark_bytes(const moesim_schedule *s)
{
    return s->state_bytes;
}

const void *moesim_schedule_mark(const moesim_schedule *s)
{
    return s->now;
}

void moesim_schedule_restore(moesim_schedule *s, const void *mark)
{
    memcpy(s->now, mark, s->state_bytes);
    s->peeked = false;
}

void moesim_schedule_range(const moesim_schedule *s, uint32_t *begin, uint32_t *end)
{
    *begin = s->begin;
    *end = s->end;
}

/* Groups the selected passes by request (a counting sort: file order stays within each request). */
static moesim_code build_index(moesim_schedule *s, moesim_error *err)
{
    uint32_t n = s->end - s->begin;
    uint64_t total = 0;
    moesim_code code = moesim_alloc((size_t)n + 1, sizeof *s->offset, "request offsets", (void **)&s->offset, err);
    if (code != MOESIM_OK)
        return code;
    for (uint32_t q = 0; q < n; q++) {
        s->offset[q] = total;
        total += moesim_trace_get_request(s->trace, s->begin + q)->passes;
    }
    if (total > MOESIM_SCHEDULE_BYTES / sizeof *s->index)
        return moesim_fail(err, MOESIM_E_LIMIT,
                           "%s: --batch over %llu passes needs %llu bytes of schedule, the limit is %zu; select fewer "
                           "requests with --requests a:b", s->info->path, (unsigned long long)total,
                           (unsigned long long)total * sizeof *s->index, MOESIM_SCHEDULE_BYTES);
    code = moesim_alloc((size_t)total, sizeof *s->index, "schedule", (void **)&s->index, err);
    for (uint64_t p = 0; code == MOESIM_OK && p < s->info->num_passes; p++) {
        moesim_pass info;
        code = moesim_trace_pass(s->trace, p, &info, err);
        if (code == MOESIM_OK && selected(s, &info))
            s->index[s->offset[info.request - s->begin]++] = p;
    }
    /* Filling moved every offset to the end of its request, which is the begin of the next one. */
    memmove(s->offset + 1, s->offset, n * sizeof *s->offset);
    s->offset[0] = 0;
    return code;
}

static moesim_code check_params(const moesim_trace_info *info, const moesim_window_params *params, moesim_error *err)
{
    if (params->batch < 1 || params->batch > MOESIM_MAX_BATCH)
        return moesim_fail(err, MOESIM_E_USAGE, "--batch %u: must be 1 to %u", params->batch, MOESIM_MAX_BATCH);
    if (params->batch > 1 && info->has_forward)
        return moesim_fail(err, MOESIM_E_USAGE,
                           "--batch %u: the trace was recorded with batching (%s has /pass/forward); leave --batch out",
                           params->batch, info->path);
    if (info->num_requests == 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: the trace has no requests, so there is nothing to replay", info->path);
    if (params->request_begin >= params->request_end || params->request_begin >= info->num_requests)
        return moesim_fail(err, MOESIM_E_USAGE,
                           "--requests %llu:%llu selects no request; %s has %u, numbered from 0 (b is exclusive)",
                           (unsigned long long)params->request_begin, (unsigned long long)params->request_end,
                           info->path, info->num_requests);
    return MOESIM_OK;
}

moesim_code moesim_schedule_open(moesim_trace *trace, const moesim_window_params *params, moesim_schedule **out,
                                 moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    moesim_schedule *s = NULL;
    *out = NULL;
    moesim_code code = check_params(info, params, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(1, sizeof *s, "schedule", (void **)&s, err);
    if (code != MOESIM_OK)
        return code;
    uint64_t end = params->request_end < info->num_requests ? params->request_end : info->num_requests;
    s->trace = trace;
    s->info = info;
    s->begin = (uint32_t)params->request_begin;
    s->end = (uint32_t)end;
    s->counted_from = params->warmup > UINT64_MAX - s->begin ? UINT64_MAX : s->begin + params->warmup;
    s->batch = params->batch;
    s->state_bytes = sizeof(state) + (s->batch > 1 ? s->batch * sizeof(slot) : 0);
    s->part_capacity = MOESIM_MAX_BATCH;
    code = moesim_alloc(1, s->state_bytes, "schedule", (void **)&s->now, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(1, s->state_bytes, "schedule", (void **)&s->after, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(s->part_capacity, sizeof *s->part, "schedule", (void **)&s->part, err);
    if (code == MOESIM_OK && s->batch > 1)
        code = build_index(s, err);
    if (code != MOESIM_OK) {
        moesim_schedule_close(&s);
        return code;
    }
    *out = s;
    return MOESIM_OK;
}

void moesim_schedule_close(moesim_schedule **schedule)
{
    moesim_schedule *s = *schedule;
    if (s == NULL)
        return;
    free(s->now);
    free(s->after);
    free(s->part);
    free(s->index);
    free(s->offset);
    free(s);
    *schedule = NULL;
}
