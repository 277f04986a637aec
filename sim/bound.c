/* SPDX-License-Identifier: Apache-2.0
 *
 * From a trace to the intervals between uses, in one pass. Equal intervals of an event (same previous use, same number of
 * tokens) become one: most experts were used in the pass before, so this takes a fifth of the memory and of the time.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "sim/bound_uses.h"

#define NO_KIND UINT32_MAX

typedef struct reader {
    moesim_bound *bound;
    moesim_budget budget;
    uint32_t *kind_of;           /* [max_rows + 1] by tokens */
    uint32_t *last;              /* [M][E] step of the last use, from 1; 0: none */
    uint64_t *use;               /* [E] counted uses of one event: previous step · 2^32 + kind */
} reader;

/* The kind of a number of tokens, made when it is first met. */
static moesim_code find_kind(reader *r, uint32_t tokens, uint32_t *out, moesim_error *err)
{
    moesim_bound *b = r->bound;
    if (r->kind_of[tokens] == NO_KIND) {
        if (b->info.kinds == b->kinds_room) {
            const uint32_t room = b->kinds_room * 2 + 16;
            const size_t layers = b->info.layers;
            void *first = b->first, *list = b->tokens;
            if (moesim_budget_grow(&r->budget, &first, b->kinds_room * layers, room * layers, sizeof *b->first,
                                   err) != MOESIM_OK)
                return err->code;
            b->first = first;
            if (moesim_budget_grow(&r->budget, &list, b->kinds_room, room, sizeof *b->tokens, err) != MOESIM_OK)
                return err->code;
            b->tokens = list;
            b->kinds_room = room;
        }
        b->tokens[b->info.kinds] = tokens;
        r->kind_of[tokens] = b->info.kinds++;
    }
    *out = r->kind_of[tokens];
    return MOESIM_OK;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static moesim_code add_spans(reader *r, uint32_t layer, uint32_t step, uint32_t n, moesim_error *err)
{
    qsort(r->use, n, sizeof *r->use, compare);
    for (uint32_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && r->use[i + same] == r->use[i];)
            same++;
        const moesim_span span = {
            .begin = (uint32_t)(r->use[i] >> 32), .end = step, .kind = (uint32_t)r->use[i], .many = same,
        };
        if (moesim_line_add(&r->bound->line[layer], &span, &r->budget, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

/* step: number in the run, from 0. */
static moesim_code read_event(reader *r, const moesim_window *w, uint32_t in_window, uint32_t layer, uint32_t step,
                              moesim_error *err)
{
    moesim_bound *b = r->bound;
    const uint32_t event = in_window * w->num_layers + layer;
    const bool counted = w->step[in_window].counted;
    uint32_t *last = r->last + (size_t)layer * w->num_experts;
    uint32_t n = 0;
    for (uint32_t i = w->list_begin[event]; i < w->list_begin[event + 1]; i++) {
        const uint32_t previous = last[w->list[i]];
        uint32_t kind = 0;
        last[w->list[i]] = step + 1;
        if (!counted)
            continue;
        if (find_kind(r, w->count[i], &kind, err) != MOESIM_OK)
            return err->code;
        b->info.counted_uses++;
        if (previous > 0) {
            r->use[n++] = (uint64_t)(previous - 1) << 32 | kind;
        } else {
            b->first[(size_t)kind * w->num_layers + layer]++;
            b->info.first_uses++;
        }
    }
    return add_spans(r, layer, step, n, err);
}

static moesim_code read_windows(reader *r, moesim_source *source, moesim_error *err)
{
    const moesim_window *w = NULL;
    uint32_t step = 0;
    for (;;) {
        if (moesim_source_next(source, &w, err) != MOESIM_OK)
            return err->code;
        if (w == NULL)
            return MOESIM_OK;
        for (uint32_t i = 0; i < w->num_steps; i++, step++) {
            for (uint32_t layer = 0; layer < w->num_layers; layer++)
                if (read_event(r, w, i, layer, step, err) != MOESIM_OK)
                    return err->code;
        }
    }
}

static moesim_code finish_lines(reader *r, moesim_error *err)
{
    moesim_bound *b = r->bound;
    for (uint32_t layer = 0; layer < b->info.layers; layer++) {
        moesim_line *line = &b->line[layer];
        if (moesim_line_finish(line, (uint32_t)b->info.steps, &r->budget, err) != MOESIM_OK)
            return err->code;
        b->most_spans = line->num_spans > b->most_spans ? line->num_spans : b->most_spans;
    }
    const size_t work = moesim_flow_bytes((uint32_t)b->info.steps, b->most_spans);
    if (work > r->budget.limit - r->budget.used)
        return moesim_budget_refuse(&r->budget, err);
    b->info.memory_bytes = r->budget.used + work;
    b->info.tokens = b->tokens;
    return MOESIM_OK;
}

static moesim_code read_trace(reader *r, moesim_source *source, moesim_error *err)
{
    moesim_bound *b = r->bound;
    const moesim_source_info *info = moesim_source_get_info(source);
    const size_t tokens = (size_t)info->max_decode_rows + 1, layers = b->info.layers;
    void *line = NULL, *kind_of = NULL, *last = NULL, *use = NULL;
    if (info->steps >= UINT32_MAX)
        return moesim_budget_refuse(&r->budget, err);
    b->info.steps = info->steps;
    moesim_code code = moesim_budget_grow(&r->budget, &line, 0, layers, sizeof *b->line, err);
    b->line = line;
    if (code == MOESIM_OK)
        code = moesim_budget_grow(&r->budget, &kind_of, 0, tokens, sizeof *r->kind_of, err);
    if (code == MOESIM_OK)
        code = moesim_budget_grow(&r->budget, &last, 0, layers * b->info.experts, sizeof *r->last, err);
    if (code == MOESIM_OK)
        code = moesim_budget_grow(&r->budget, &use, 0, b->info.experts, sizeof *r->use, err);
    r->kind_of = kind_of;
    r->last = last;
    r->use = use;
    for (size_t i = 0; i < tokens && code == MOESIM_OK; i++)
        r->kind_of[i] = NO_KIND;
    if (code == MOESIM_OK)
        code = read_windows(r, source, err);
    if (code == MOESIM_OK)
        code = finish_lines(r, err);
    free(kind_of);
    free(last);
    free(use);
    return code;
}

moesim_code moesim_bound_open(moesim_trace *trace, const moesim_window_params *params, size_t memory_bytes,
                              moesim_bound **out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    const moesim_window_params counts = {
        .needs = MOESIM_NEED_COUNTS, .request_begin = params->request_begin, .request_end = params->request_end,
        .warmup = params->warmup, .batch = params->batch, .window_bytes = params->window_bytes,
    };
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    moesim_source *source = NULL;
    reader r = { .budget = { .limit = memory_bytes, .what = "offline-cost" } };
    *out = NULL;
    if (moesim_source_open(trace, &counts, &source, err) != MOESIM_OK)
        return err->code;
    moesim_code code = moesim_alloc(1, sizeof *r.bound, "offline-cost", (void **)&r.bound, err);
    if (code == MOESIM_OK) {
        r.bound->info.layers = info->num_layers;
        r.bound->info.experts = info->num_experts;
        code = read_trace(&r, source, err);
    }
    moesim_source_close(&source);
    if (code != MOESIM_OK)
        moesim_bound_close(&r.bound);
    *out = r.bound;
    return code;
}

void moesim_bound_close(moesim_bound **bound)
{
    moesim_bound *b = *bound;
    if (b == NULL)
        return;
    for (uint32_t layer = 0; b->line != NULL && layer < b->info.layers; layer++)
        moesim_line_fini(&b->line[layer]);
    free(b->line);
    free(b->tokens);
    free(b->first);
    free(b);
    *bound = NULL;
}

const moesim_bound_info *moesim_bound_get_info(const moesim_bound *bound)
{
    return &bound->info;
}
