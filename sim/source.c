/* SPDX-License-Identifier: Apache-2.0
 *
 * A run's windows. Open plans the schedule (and makes the backward pass); a producer thread then fills one window while the
 * caller works on the other.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim/future.h"
#include "sim/load.h"
#include "sim/schedule.h"
#include "sim/spill.h"
#include "sim/window.h"

#define MARKS_BYTES ((size_t)4 << 20)

enum { TWO = 2 };

struct moesim_source {
    moesim_trace *trace;
    moesim_window_params params;
    moesim_source_info info;
    moesim_layout layout;
    moesim_extent most;
    moesim_schedule *schedule;
    moesim_loader *loader;
    moesim_future *future;           /* NULL unless clairvoyant */
    moesim_buffer *buffer[TWO];      /* window i is in buffer i mod 2 */

    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock: windows filled, taken and given back by the caller; filled ≤ released + 2. */
    uint64_t filled, taken, released;
    bool at_end;                     /* no window beyond `filled` (end of the run, or failed) */
    bool stop;
    moesim_code code;
    moesim_error error;
};

static moesim_code count_step(void *cookie, const moesim_planned *p, moesim_error *err)
{
    moesim_source_info *info = cookie;
    (void)err;
    info->steps++;
    info->decode_steps += p->decode;
    info->counted_steps += p->counted;
    if (p->decode && p->num_rows > info->max_decode_rows)
        info->max_decode_rows = (uint32_t)p->num_rows;
    return MOESIM_OK;
}

/* Walks the schedule once: sizes of windows, counts, marks. */
static moesim_code plan_windows(moesim_source *s, moesim_spill *marks, moesim_error *err)
{
    for (;;) {
        moesim_extent extent;
        moesim_code code = MOESIM_OK;
        const moesim_planned *planned = NULL;
        code = moesim_schedule_peek(s->schedule, &planned, err);
        if (code != MOESIM_OK || planned->num_parts == 0)
            return code;
        if (marks != NULL)
            code = moesim_spill_append(marks, moesim_schedule_mark(s->schedule), err);
        if (code == MOESIM_OK)
            code = moesim_walk_window(s->schedule, &s->layout, s->params.window_bytes, count_step, &s->info, &extent, err);
        if (code != MOESIM_OK)
            return code;
        moesim_extent_max(&s->most, &extent);
    }
}

/* The plan and, for clairvoyant policies, the backward pass; leaves the schedule at the start of the run. */
static moesim_code plan_run(moesim_source *s, moesim_error *err)
{
    moesim_spill *marks = NULL;
    const size_t mark_bytes = moesim_schedule_mark_bytes(s->schedule);
    void *start = NULL;
    moesim_code code = moesim_alloc(1, mark_bytes, "mark", &start, err);
    if (code != MOESIM_OK)
        return code;
    memcpy(start, moesim_schedule_mark(s->schedule), mark_bytes);
    if (s->params.clairvoyant)
        code = moesim_spill_create(mark_bytes, MARKS_BYTES, "marks of windows", &marks, err);
    if (code == MOESIM_OK)
        code = plan_windows(s, marks, err);
    if (code == MOESIM_OK && marks != NULL && s->info.steps > 0)
        code = moesim_future_create(s->trace, s->schedule, &s->params, &s->layout, &s->most, marks, &s->future, err);
    if (code == MOESIM_OK)
        moesim_schedule_restore(s->schedule, start);
    moesim_spill_destroy(&marks);
    free(start);
    return code;
}

static moesim_code open_parts(moesim_source *s, moesim_error *err)
{
    uint32_t begin, end;
    moesim_code code = moesim_schedule_open(s->trace, &s->params, &s->schedule, err);
    if (code != MOESIM_OK)
        return code;
    moesim_schedule_range(s->schedule, &begin, &end);
    s->info.num_requests = end - begin;
    code = plan_run(s, err);
    if (code == MOESIM_OK)
        code = moesim_loader_create(s->trace, &s->layout, &s->params, begin, end, &s->loader, err);
    for (uint32_t i = 0; code == MOESIM_OK && i < TWO; i++) {
        code = moesim_buffer_create(&s->layout, &s->most, &s->buffer[i], err);
        if (code == MOESIM_OK)
            s->info.memory_bytes += s->buffer[i]->bytes;
    }
    if (s->future != NULL)
        s->info.memory_bytes += moesim_future_memory(s->future);
    return code;
}

moesim_code moesim_source_open(moesim_trace *trace, const moesim_window_params *params, moesim_source **out,
                               moesim_error *err)
{
    moesim_source *s = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *s, "source", (void **)&s, err);
    if (code != MOESIM_OK)
        return code;
    s->trace = trace;
    s->params = *params;
    moesim_layout_init(&s->layout, moesim_trace_get_info(trace), params);
    if (pthread_mutex_init(&s->lock, NULL) != 0 || pthread_cond_init(&s->changed, NULL) != 0)
        code = moesim_fail_nomem(err, "lock", sizeof s->lock);
    else
        code = open_parts(s, err);
    if (code != MOESIM_OK) {
        moesim_source_close(&s);
        return code;
    }
    *out = s;
    return MOESIM_OK;
}

const moesim_source_info *moesim_source_get_info(const moesim_source *s)
{
    return &s->info;
}

/* ---- producer ----------------------------------------------------------------------------------------------------- */

static bool stopped(moesim_source *s)
{
    pthread_mutex_lock(&s->lock);
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static moesim_code load_step(void *cookie, const moesim_planned *planned, moesim_error *err)
{
    moesim_source *s = cookie;
    if (stopped(s))
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "the run was closed");
    return moesim_loader_step(s->loader, s->buffer[s->filled % TWO], planned, err);
}

static moesim_code fill_window(moesim_source *s, moesim_extent *extent, moesim_error *err)
{
    moesim_buffer *buffer = s->buffer[s->filled % TWO];
    moesim_buffer_clear(buffer);
    moesim_code code = moesim_walk_window(s->schedule, &s->layout, s->params.window_bytes, load_step, s, extent, err);
    if (code == MOESIM_OK && s->future != NULL && extent->steps > 0)
        code = moesim_future_annotate(s->future, s->filled, buffer, err);
    return code;
}

static void *produce(void *cookie)
{
    moesim_source *s = cookie;
    pthread_mutex_lock(&s->lock);
    while (!s->at_end) {
        while (!s->stop && s->filled >= s->released + TWO)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->stop)
            break;
        pthread_mutex_unlock(&s->lock);
        moesim_extent extent;
        moesim_error error = MOESIM_ERROR_INIT;
        moesim_code code = fill_window(s, &extent, &error);
        pthread_mutex_lock(&s->lock);
        s->code = code;
        s->error = error;
        s->at_end = code != MOESIM_OK || extent.steps == 0;
        s->filled += !s->at_end;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

moesim_code moesim_source_next(moesim_source *s, const moesim_window **out, moesim_error *err)
{
    *out = NULL;
    if (!s->started) {
        if (pthread_create(&s->thread, NULL, produce, s) != 0)
            return moesim_fail(err, MOESIM_E_NOMEM, "cannot start the thread that decodes the trace");
        s->started = true;
    }
    pthread_mutex_lock(&s->lock);
    s->released = s->taken;
    pthread_cond_broadcast(&s->changed);
    while (!s->at_end && s->filled == s->taken)
        pthread_cond_wait(&s->changed, &s->lock);
    moesim_code code = MOESIM_OK;
    if (s->filled > s->taken)
        *out = &s->buffer[s->taken++ % TWO]->window;
    else
        code = s->code;
    pthread_mutex_unlock(&s->lock);
    if (code != MOESIM_OK && err != NULL)
        *err = s->error;
    return code;
}

void moesim_source_close(moesim_source **source)
{
    moesim_source *s = *source;
    if (s == NULL)
        return;
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    for (uint32_t i = 0; i < TWO; i++)
        moesim_buffer_destroy(&s->buffer[i]);
    moesim_future_destroy(&s->future);
    moesim_loader_destroy(&s->loader);
    moesim_schedule_close(&s->schedule);
    free(s);
    *source = NULL;
}
