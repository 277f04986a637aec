/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward pass. State: per layer and expert the clock of the next event that activates it, MOESIM_NEVER if there is none
 * or if that event is not counted (there the expert re-enters free). One record is that state and the active sets of the
 * step that follows; record i of the spill belongs to the i-th window from the end.
 */
#include "sim/future.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

struct moesim_future {
    uint32_t layers, experts, words;
    uint64_t windows;
    moesim_spill *spill;
    uint64_t *record;            /* next[M][E], then active[M][words] */
};

static uint64_t *next_of(moesim_future *f)
{
    return f->record;
}

static uint64_t *active_of(moesim_future *f)
{
    return f->record + (size_t)f->layers * f->experts;
}

static size_t record_words(const moesim_future *f)
{
    return (size_t)f->layers * (f->experts + f->words);
}

typedef struct walk {
    moesim_loader *loader;
    moesim_buffer *buffer;
} walk;

static moesim_code load_step(void *cookie, const moesim_planned *planned, moesim_error *err)
{
    const walk *w = cookie;
    return moesim_loader_step(w->loader, w->buffer, planned, err);
}

/* Moves the state from the end of a window of sets to its begin. */
static void pass_over(moesim_future *f, const moesim_window *w)
{
    for (uint32_t i = w->num_steps; i-- > 0;) {
        const uint64_t use = w->step[i].counted ? w->step[i].clock : MOESIM_NEVER;
        for (uint32_t layer = 0; layer < f->layers; layer++) {
            const uint64_t *active = w->active + ((size_t)i * f->layers + layer) * f->words;
            uint64_t *next = next_of(f) + (size_t)layer * f->experts;
            MOESIM_EACH_BIT(e, active, f->words, next[e] = use;);
        }
    }
    memcpy(active_of(f), w->active, (size_t)f->layers * f->words * sizeof *w->active);
}

static moesim_code walk_backward(moesim_future *f, moesim_schedule *schedule, const moesim_layout *layout,
                                 size_t window_bytes, const moesim_spill *marks, walk *w, moesim_error *err)
{
    void *mark = NULL;
    moesim_code code = moesim_alloc(1, moesim_schedule_mark_bytes(schedule), "mark", &mark, err);
    for (uint64_t i = f->windows; code == MOESIM_OK && i-- > 0;) {
        moesim_extent extent;
        code = moesim_spill_append(f->spill, f->record, err);
        if (code != MOESIM_OK || i == 0)
            break;
        code = moesim_spill_read(marks, i, mark, err);
        if (code != MOESIM_OK)
            break;
        moesim_schedule_restore(schedule, mark);
        moesim_buffer_clear(w->buffer);
        code = moesim_walk_window(schedule, layout, window_bytes, load_step, w, &extent, err);
        if (code == MOESIM_OK)
            pass_over(f, &w->buffer->window);
    }
    free(mark);
    return code;
}

static moesim_code fill(moesim_future *f, moesim_trace *trace, moesim_schedule *schedule,
                        const moesim_window_params *params, const moesim_layout *layout, const moesim_extent *most,
                        const moesim_spill *marks, moesim_error *err)
{
    moesim_window_params none = *params;
    moesim_layout sets;
    uint32_t begin, end;
    walk w = { NULL, NULL };
    none.needs = 0;
    none.clairvoyant = none.touch = none.sequence = none.residency = false;
    moesim_layout_init(&sets, moesim_trace_get_info(trace), &none);
    sets.sets_only = true;
    moesim_schedule_range(schedule, &begin, &end);
    moesim_code code = moesim_loader_create(trace, &sets, &none, begin, end, &w.loader, err);
    if (code == MOESIM_OK)
        code = moesim_buffer_create(&sets, most, &w.buffer, err);
    if (code == MOESIM_OK)
        code = walk_backward(f, schedule, layout, params->window_bytes, marks, &w, err);
    moesim_buffer_destroy(&w.buffer);
    moesim_loader_destroy(&w.loader);
    return code;
}

moesim_code moesim_future_create(moesim_trace *trace, moesim_schedule *schedule, const moesim_window_params *params,
                                 const moesim_layout *layout, const moesim_extent *most, const moesim_spill *marks,
                                 moesim_future **out, moesim_error *err)
{
    moesim_future *f = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *f, "next uses", (void **)&f, err);
    if (code != MOESIM_OK)
        return code;
    f->layers = layout->layers;
    f->experts = layout->experts;
    f->words = layout->words;
    f->windows = moesim_spill_count(marks);
    code = moesim_alloc(record_words(f), sizeof *f->record, "next uses", (void **)&f->record, err);
    if (code == MOESIM_OK)
        code = moesim_spill_create(record_words(f) * sizeof *f->record, MOESIM_FUTURE_BYTES, "next uses", &f->spill, err);
    if (code == MOESIM_OK) {
        memset(next_of(f), 0xff, (size_t)f->layers * f->experts * sizeof *f->record);   /* MOESIM_NEVER */
        code = fill(f, trace, schedule, params, layout, most, marks, err);
    }
    if (code != MOESIM_OK) {
        moesim_future_destroy(&f);
        return code;
    }
    *out = f;
    return MOESIM_OK;
}

void moesim_future_destroy(moesim_future **future)
{
    moesim_future *f = *future;
    if (f == NULL)
        return;
    moesim_spill_destroy(&f->spill);
    free(f->record);
    free(f);
    *future = NULL;
}

moesim_code moesim_future_annotate(moesim_future *f, uint64_t number, moesim_buffer *b, moesim_error *err)
{
    moesim_window *w = &b->window;
    moesim_code code = moesim_spill_read(f->spill, f->windows - 1 - number, f->record, err);
    if (code != MOESIM_OK)
        return code;
    memcpy(b->next_active, active_of(f), (size_t)f->layers * f->words * sizeof *b->next_active);
    for (uint32_t i = w->num_steps; i-- > 0;) {
        const uint64_t use = w->step[i].counted ? w->step[i].clock : MOESIM_NEVER;
        for (uint32_t layer = 0; layer < f->layers; layer++) {
            const uint32_t event = i * f->layers + layer;
            uint64_t *next = next_of(f) + (size_t)layer * f->experts;
            for (uint32_t j = w->list_begin[event]; j < w->list_begin[event + 1]; j++) {
                w->next_use[j] = next[w->list[j]];
                next[w->list[j]] = use;
            }
        }
    }
    return MOESIM_OK;
}

size_t moesim_future_memory(const moesim_future *f)
{
    return moesim_spill_memory(f->spill) + record_words(f) * sizeof *f->record;
}
