/* SPDX-License-Identifier: Apache-2.0
 *
 * Laying out what was decided, and charging its time.
 */
#include "sim/timer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"
#include "sim/kernels.h"
#include "sim/snapshot.h"

#define MOST_EXPERTS 1024u

/* One costing: the step in flight, and what was charged. */
typedef struct lane {
    moesim_executor *x;
    moesim_parts step;
    moesim_time_sums *request;   /* [capacity] */
    double wall;
} lane;

struct moesim_timer {
    uint32_t n;
    lane *lane;                  /* [n] */
    moesim_executor **x;         /* [n] the lanes' executors and steps */
    moesim_parts **step;
    bool alike;                  /* the lanes differ in their links alone */
    bool prefetches;
    const moesim_kernels *kernels;
    const moesim_costing *const *costing;
    uint64_t first_request;
    uint32_t capacity;           /* requests of each lane */
    /* requests that have started and not ended, warm-up left out: who waits while another one's prefill runs */
    uint32_t open[2 * MOESIM_MAX_BATCH];
    uint32_t num_open;
    uint32_t tokens[MOST_EXPERTS], hit_tokens[MOST_EXPERTS], moved_tokens[MOST_EXPERTS];
    uint32_t cpu_tokens[MOST_EXPERTS];
    uint16_t moved[MOST_EXPERTS];
};

static moesim_code make_lanes(moesim_timer *t, uint32_t n, uint32_t max_prefetch, moesim_error *err)
{
    if (moesim_alloc(n, sizeof *t->lane, "a timer", (void **)&t->lane, err) != MOESIM_OK ||
        moesim_alloc(n, sizeof *t->x, "a timer", (void **)&t->x, err) != MOESIM_OK ||
        moesim_alloc(n, sizeof *t->step, "a timer", (void **)&t->step, err) != MOESIM_OK)
        return err->code;
    for (; t->n < n; t->n++) {
        lane *l = &t->lane[t->n];
        if (moesim_executor_create(t->costing[t->n], max_prefetch, &l->x, err) != MOESIM_OK)
            return err->code;
        t->x[t->n] = l->x;
        t->step[t->n] = &l->step;
        t->alike = t->alike && moesim_executors_alike(t->x[0], l->x);
    }
    return MOESIM_OK;
}

moesim_code moesim_timer_create(const moesim_costing *const *costing, uint32_t n, uint32_t max_prefetch, uint64_t first_request,
                                moesim_timer **out, moesim_error *err)
{
    moesim_timer *t = NULL;
    *out = NULL;
    if (moesim_alloc(1, sizeof *t, "a timer", (void **)&t, err) != MOESIM_OK)
        return err->code;
    t->costing = costing;
    t->first_request = first_request;
    t->alike = true;
    t->prefetches = max_prefetch > 0;
    t->kernels = moesim_kernels_get();
    if (make_lanes(t, n, max_prefetch, err) != MOESIM_OK) {
        moesim_timer_destroy(&t);
        return err->code;
    }
    *out = t;
    return MOESIM_OK;
}

void moesim_timer_destroy(moesim_timer **timer)
{
    moesim_timer *t = timer != NULL ? *timer : NULL;
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->n; i++) {
        moesim_executor_destroy(&t->lane[i].x);
        free(t->lane[i].request);
    }
    free(t->lane);
    free(t->x);
    free(t->step);
    free(t);
    *timer = NULL;
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

/* Misses in ascending order, all moved. Most events of large caches have none. */
static void lay_out(moesim_timer *t, const moesim_window *w, size_t index, const uint64_t *misses, moesim_work *work)
{
    const uint64_t *active = w->active + index * w->words;
    const uint32_t begin = w->list_begin[index], n = w->list_begin[index + 1] - begin;
    if (work->n_hits == n) {
        work->hit_tokens = w->count + begin;
        return;
    }
    work->n_moved = t->kernels->part(active, misses, w->words, w->count + begin, t->moved_tokens, t->hit_tokens);
    for (uint32_t i = 0, moved = 0; t->prefetches && i < n; i++) {
        t->moved[moved] = w->list[begin + i];
        moved += moesim_bit_test(misses, w->list[begin + i]);
    }
}

/* Misses as ordered, some on the CPU. */
static void lay_out_ordered(moesim_timer *t, const uint16_t *list, const uint32_t *count, uint32_t n, const uint64_t *cpu,
                            const uint16_t *order, uint32_t n_misses, moesim_work *work)
{
    uint32_t hits = 0;
    for (uint32_t i = 0; i < n; i++)
        t->tokens[list[i]] = count[i];
    for (uint32_t i = 0; i < n_misses; i++) {
        const uint32_t e = order[i];
        if (cpu != NULL && moesim_bit_test(cpu, e)) {
            t->cpu_tokens[work->n_cpu++] = t->tokens[e];
        } else {
            t->moved[work->n_moved] = (uint16_t)e;
            t->moved_tokens[work->n_moved++] = t->tokens[e];
        }
        t->tokens[e] = 0;        /* an active expert has one token at least: what is left are the hits */
    }
    for (uint32_t i = 0; i < n; i++)
        if (t->tokens[list[i]] > 0)
            t->hit_tokens[hits++] = t->tokens[list[i]];
}

void moesim_timer_event(moesim_timer *t, const moesim_window *w, size_t index, const uint64_t *misses, const uint64_t *cpu,
                        const uint16_t *order, uint32_t n_misses)
{
    const uint32_t begin = w->list_begin[index], n = w->list_begin[index + 1] - begin;
    moesim_work work = {
        .layer = (uint32_t)(index % w->num_layers),
        .num_rows = w->step[index / w->num_layers].num_rows,
        .n_hits = n - n_misses,
        .hit_tokens = t->hit_tokens,
        .moved_tokens = t->moved_tokens,
        .cpu_tokens = t->cpu_tokens,
        .moved = t->moved,
    };
    if (order == NULL)
        lay_out(t, w, index, misses, &work);
    else
        lay_out_ordered(t, w->list + begin, w->count + begin, n, cpu, order, n_misses, &work);
    moesim_executors_event(t->x, t->n, t->alike, &work, t->step);
}

void moesim_timer_gate(moesim_timer *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        t->lane[i].x->ops->gate(t->lane[i].x, &t->lane[i].step);
}

/* ---- charging ------------------------------------------------------------------------------------------------------ */

static moesim_code reserve(moesim_timer *t, uint32_t num, moesim_error *err)
{
    if (num <= t->capacity)
        return MOESIM_OK;
    const uint32_t more = num > t->capacity * 2u ? num : t->capacity * 2u;
    for (uint32_t i = 0; i < t->n; i++) {
        moesim_time_sums *grown = realloc(t->lane[i].request, more * sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "the times of the requests", more * sizeof *grown);
        memset(grown + t->capacity, 0, (more - t->capacity) * sizeof *grown);
        t->lane[i].request = grown;
    }
    t->capacity = more;
    return MOESIM_OK;
}

/* Counted members of the step as indexes of requests. */
static uint32_t find_members(const moesim_timer *t, const moesim_window *w, const moesim_step *step, uint32_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < step->num_requests; i++) {
        const uint32_t request = w->member[step->member + i].request;
        if (request >= t->first_request)
            out[n++] = (uint32_t)(request - t->first_request);
    }
    return n;
}

static bool is_among(uint32_t request, const uint32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == request)
            return true;
    return false;
}

/* Those who decode meanwhile wait for a prefill. */
static void charge_prefill(moesim_timer *t, lane *l, const uint32_t *member, uint32_t n)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < t->num_open; i++)
        waiting += !is_among(t->open[i], member, n);
    for (uint32_t i = 0; i < n; i++)
        l->request[member[i]].ttft += l->step.total;
    for (uint32_t i = 0; i < t->num_open; i++)
        if (!is_among(t->open[i], member, n)) {
            l->request[t->open[i]].waited += l->step.total;
            l->request[t->open[i]].share += l->step.total / waiting;
        }
    if (waiting > 0)
        l->wall += l->step.total;
}

static void charge_decode(lane *l, const uint32_t *member, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        moesim_time_sums *r = &l->request[member[i]];
        moesim_parts_add(&r->decode, &l->step);
        r->share += l->step.total / n;
    }
    l->wall += l->step.total;
}

/* A request is open from its first decode step to its last step: it waits for others' prefills, not for its own. */
static void keep_open(moesim_timer *t, const moesim_window *w, const moesim_step *step)
{
    for (uint32_t i = 0; i < step->num_requests; i++) {
        const moesim_member *m = &w->member[step->member + i];
        if (m->request < t->first_request)
            continue;
        const uint32_t request = (uint32_t)(m->request - t->first_request);
        if (step->decode && !m->ends && !is_among(request, t->open, t->num_open))
            t->open[t->num_open++] = request;
        for (uint32_t j = 0; m->ends && j < t->num_open; j++)
            if (t->open[j] == request)
                t->open[j] = t->open[--t->num_open];
    }
}

moesim_code moesim_timer_end(moesim_timer *t, const moesim_window *w, const moesim_step *step, moesim_error *err)
{
    uint32_t member[MOESIM_MAX_BATCH];
    if (step->num_requests > MOESIM_MAX_BATCH || t->num_open > MOESIM_MAX_BATCH)
        return moesim_fail(err, MOESIM_E_LIMIT,
                           "more than %u requests are under way at clock %llu; time is told for that many at once, select "
                           "fewer with --requests",
                           MOESIM_MAX_BATCH, (unsigned long long)step->clock);
    const uint32_t n = find_members(t, w, step, member);
    for (uint32_t i = 0; i < n; i++)
        if (reserve(t, member[i] + 1u, err) != MOESIM_OK)
            return err->code;
    for (uint32_t i = 0; i < t->n; i++) {
        lane *l = &t->lane[i];
        l->x->ops->end_pass(l->x, &l->step);
        if (!step->decode)
            charge_prefill(t, l, member, n);
        else if (step->counted)
            charge_decode(l, member, n);
        memset(&l->step, 0, sizeof l->step);
    }
    keep_open(t, w, step);
    return MOESIM_OK;
}

/* ---- checkpoints --------------------------------------------------------------------------------------------------- */

static moesim_code visit_lane(moesim_timer *t, lane *l, moesim_visitor *v, moesim_error *err)
{
    const size_t bytes = moesim_executor_state_bytes(l->x);
    void *state = NULL;
    if (moesim_alloc(1, bytes, "an executor", &state, err) != MOESIM_OK)
        return err->code;
    moesim_executor_save(l->x, state);
    moesim_code code = v->visit(v, state, bytes, err);
    if (code == MOESIM_OK && v->restoring && !moesim_executor_restore(l->x, state))
        code = moesim_fail(err, MOESIM_E_FORMAT, "the checkpoint holds the state of another executor; remove it");
    free(state);
    if (code == MOESIM_OK)
        code = v->visit(v, &l->wall, sizeof l->wall, err);
    if (code == MOESIM_OK && t->capacity > 0)
        code = v->visit(v, l->request, t->capacity * sizeof *l->request, err);
    return code;
}

moesim_code moesim_timer_visit(moesim_timer *t, moesim_visitor *v, moesim_error *err)
{
    uint32_t capacity = t->capacity;
    if (v->visit(v, &capacity, sizeof capacity, err) != MOESIM_OK || reserve(t, capacity, err) != MOESIM_OK ||
        v->visit(v, t->open, sizeof t->open, err) != MOESIM_OK ||
        v->visit(v, &t->num_open, sizeof t->num_open, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0; i < t->n; i++)
        if (visit_lane(t, &t->lane[i], v, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

/* ---- results -------------------------------------------------------------------------------------------------------- */

moesim_code moesim_timer_finish(const moesim_timer *t, uint32_t num_requests, moesim_timing *timing, moesim_error *err)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const lane *l = &t->lane[i];
        moesim_timing *out = &timing[i];
        *out = (moesim_timing){.num_requests = num_requests, .wall = l->wall};
        out->bandwidth = moesim_costing_bandwidth(t->costing[i]);
        out->request = calloc(num_requests + (size_t)1, sizeof *out->request);
        if (out->request == NULL)
            return moesim_fail_nomem(err, "the times of the requests", (num_requests + (size_t)1) * sizeof *out->request);
        const uint32_t known = t->capacity < num_requests ? t->capacity : num_requests;
        if (known > 0)
            memcpy(out->request, l->request, known * sizeof *out->request);
    }
    return MOESIM_OK;
}

void moesim_timing_fini(moesim_timing *timing)
{
    free(timing->request);
    memset(timing, 0, sizeof *timing);
}

moesim_executor *moesim_timer_executor(moesim_timer *t, uint32_t i)
{
    return t->lane[i].x;
}

uint32_t moesim_timer_count(const moesim_timer *t)
{
    return t->n;
}
