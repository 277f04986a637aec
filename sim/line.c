/* SPDX-License-Identifier: Apache-2.0
 *
 * Time lines of intervals, built in one pass over their ends.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/flow.h"

#define MOST_SPANS (UINT32_C(1) << 31)

moesim_code moesim_budget_refuse(const moesim_budget *budget, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_LIMIT, "%s: the uses of the experts need more than %zu MiB of memory; take fewer "
                       "requests at a time (--requests a:b)", budget->what, budget->limit >> 20);
}

moesim_code moesim_budget_grow(moesim_budget *budget, void **array, size_t old, size_t n, size_t each, moesim_error *err)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, each, &bytes) || bytes - old * each > budget->limit - budget->used)
        return moesim_budget_refuse(budget, err);
    void *grown = realloc(*array, bytes > 0 ? bytes : 1);
    if (grown == NULL)
        return moesim_fail_nomem(err, budget->what, bytes);
    memset((char *)grown + old * each, 0, bytes - old * each);
    budget->used += bytes - old * each;
    *array = grown;
    return MOESIM_OK;
}

moesim_code moesim_line_add(moesim_line *line, const moesim_span *span, moesim_budget *budget, moesim_error *err)
{
    if (line->num_spans == line->room) {
        const uint32_t room = line->room + line->room / 2 + 64;
        if (room > MOST_SPANS)
            return moesim_fail(err, MOESIM_E_LIMIT, "%s: a layer has more than 2^31 uses; take fewer requests at a time "
                               "(--requests a:b)", budget->what);
        void *grown = line->span;
        if (moesim_budget_grow(budget, &grown, line->room, room, sizeof *line->span, err) != MOESIM_OK)
            return err->code;
        line->span = grown;
        line->room = room;
    }
    line->span[line->num_spans++] = *span;
    return MOESIM_OK;
}

static void find_widest(moesim_line *line)
{
    uint64_t cover = 0;
    for (uint32_t p = 0; p < line->points; p++) {
        for (uint32_t i = line->end_first[p]; i < line->end_first[p + 1]; i++)
            cover -= line->span[i].many;
        for (uint32_t i = line->begin_first[p]; i < line->begin_first[p + 1]; i++)
            cover += line->span[line->by_begin[i]].many;
        line->widest = cover > line->widest ? (uint32_t)cover : line->widest;
    }
}

/* Counting sort: numbers of spans per begin, then their first positions. */
static void sort_begins(moesim_line *line)
{
    uint32_t *first = line->begin_first;
    for (uint32_t i = 0; i < line->num_spans; i++) {
        first[line->span[i].begin + 1]++;
        line->end_first[line->span[i].end + 1]++;
    }
    for (uint32_t p = 0; p < line->points; p++) {
        first[p + 1] += first[p];
        line->end_first[p + 1] += line->end_first[p];
    }
    for (uint32_t i = 0; i < line->num_spans; i++)
        line->by_begin[first[line->span[i].begin]++] = i;
    memmove(first + 1, first, line->points * sizeof *first);
    first[0] = 0;
}

/* Gives back what the last growth took for nothing. */
static void trim(moesim_line *line, moesim_budget *budget)
{
    void *exact = line->num_spans > 0 ? realloc(line->span, line->num_spans * sizeof *line->span) : NULL;
    if (exact == NULL)
        return;
    line->span = exact;
    budget->used -= (line->room - line->num_spans) * sizeof *line->span;
    line->room = line->num_spans;
}

moesim_code moesim_line_finish(moesim_line *line, uint32_t points, moesim_budget *budget, moesim_error *err)
{
    uint32_t **const array[] = { &line->end_first, &line->begin_first, &line->by_begin };
    const size_t n[] = { (size_t)points + 1, (size_t)points + 1, line->num_spans };
    line->points = points;
    trim(line, budget);
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        void *memory = NULL;
        if (moesim_budget_grow(budget, &memory, 0, n[i], sizeof **array[i], err) != MOESIM_OK)
            return err->code;
        *array[i] = memory;
    }
    sort_begins(line);
    find_widest(line);
    return MOESIM_OK;
}

void moesim_line_fini(moesim_line *line)
{
    free(line->span);
    free(line->end_first);
    free(line->begin_first);
    free(line->by_begin);
    memset(line, 0, sizeof *line);
}
