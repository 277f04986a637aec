/* SPDX-License-Identifier: Apache-2.0
 *
 * Minimum-cost flow along a time line. The number of augmentations is halved by choosing where to start: from no flow, adding
 * units at the first point, or from a flow that keeps every interval, taking units away from the last point; both starts have
 * feasible potentials at once. A node reached at the current distance needs no heap, which is the common case.
 */
#include "sim/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"

#define FAR INT64_MAX
#define NOWHERE UINT32_MAX

/* How a node was reached: span · 2, + 1 if backward, or along a gap. */
#define GAP_FORWARD (UINT64_MAX - 1)
#define GAP_BACKWARD UINT64_MAX

struct moesim_flow {
    const moesim_line *line;
    const int64_t *profit;
    uint32_t *kept;              /* [spans] flow of each span */
    uint32_t *idle;              /* [points] flow along each gap */
    int64_t *potential, *distance;   /* [points]; distances are in reduced costs */
    uint64_t *via;               /* [points] */
    uint32_t *heap, *place;      /* [points]; place: position in heap or NOWHERE */
    uint32_t heap_size;
    uint32_t *ready;             /* [points] nodes at distance `now` that are to be scanned */
    uint32_t num_ready;
    int64_t now;
};

size_t moesim_flow_bytes(uint32_t points, uint32_t spans)
{
    const struct moesim_flow *f = NULL;
    const size_t node = sizeof *f->idle + sizeof *f->potential + sizeof *f->distance + sizeof *f->via + sizeof *f->heap +
        sizeof *f->place + sizeof *f->ready;
    return sizeof *f + points * node + spans * sizeof *f->kept;
}

moesim_code moesim_flow_create(uint32_t points, uint32_t spans, moesim_flow **out, moesim_error *err)
{
    moesim_flow *f = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *f, "offline-cost", (void **)&f, err);
    if (code != MOESIM_OK)
        return code;
    const struct { void **array; size_t n, each; } piece[] = {
        { (void **)&f->kept, spans, sizeof *f->kept },
        { (void **)&f->idle, points, sizeof *f->idle },
        { (void **)&f->potential, points, sizeof *f->potential },
        { (void **)&f->distance, points, sizeof *f->distance },
        { (void **)&f->via, points, sizeof *f->via },
        { (void **)&f->heap, points, sizeof *f->heap },
        { (void **)&f->place, points, sizeof *f->place },
        { (void **)&f->ready, points, sizeof *f->ready },
    };
    for (size_t i = 0; i < sizeof piece / sizeof piece[0] && code == MOESIM_OK; i++)
        code = moesim_alloc(piece[i].n, piece[i].each, "offline-cost", piece[i].array, err);
    if (code != MOESIM_OK)
        moesim_flow_destroy(&f);
    *out = f;
    return code;
}

void moesim_flow_destroy(moesim_flow **flow)
{
    moesim_flow *f = *flow;
    if (f == NULL)
        return;
    free(f->kept);
    free(f->idle);
    free(f->potential);
    free(f->distance);
    free(f->via);
    free(f->heap);
    free(f->place);
    free(f->ready);
    free(f);
    *flow = NULL;
}

/* Distances stay below 2 · points · 2^bits ≤ 2^60. */
uint32_t moesim_flow_bits(uint32_t points)
{
    uint32_t bits = 59;
    for (uint32_t p = points; p > 0; p >>= 1)
        bits--;
    return bits < 40 ? bits : 40;
}

/* ---- heap ------------------------------------------------------------------------------------------------------------ */

static void sift_up(moesim_flow *f, uint32_t at, uint32_t node)
{
    while (at > 0) {
        const uint32_t above = (at - 1) / 2, other = f->heap[above];
        if (f->distance[other] <= f->distance[node])
            break;
        f->heap[at] = other;
        f->place[other] = at;
        at = above;
    }
    f->heap[at] = node;
    f->place[node] = at;
}

static uint32_t pop_nearest(moesim_flow *f)
{
    const uint32_t nearest = f->heap[0], node = f->heap[--f->heap_size];
    uint32_t at = 0;
    for (uint32_t below = 1; below < f->heap_size; below = 2 * at + 1) {
        if (below + 1 < f->heap_size && f->distance[f->heap[below + 1]] < f->distance[f->heap[below]])
            below++;
        if (f->distance[node] <= f->distance[f->heap[below]])
            break;
        f->heap[at] = f->heap[below];
        f->place[f->heap[at]] = at;
        at = below;
    }
    f->heap[at] = node;
    f->place[node] = at;
    return nearest;
}

/* ---- one shortest path ----------------------------------------------------------------------------------------------- */

static inline void reach(moesim_flow *f, uint32_t node, int64_t distance, uint64_t via)
{
    if (distance >= f->distance[node])
        return;
    f->distance[node] = distance;
    f->via[node] = via;
    if (f->place[node] != NOWHERE)
        sift_up(f, f->place[node], node);
    else if (distance == f->now)
        f->ready[f->num_ready++] = node;
    else
        sift_up(f, f->heap_size++, node);
}

/* Everything with room left that leads away from a node. */
static void scan(moesim_flow *f, uint32_t node)
{
    const moesim_line *l = f->line;
    const int64_t *potential = f->potential;
    const int64_t here = f->now + potential[node];
    if (node + 1 < l->points)
        reach(f, node + 1, here - potential[node + 1], GAP_FORWARD);
    if (node > 0 && f->idle[node - 1] > 0)
        reach(f, node - 1, here - potential[node - 1], GAP_BACKWARD);
    for (uint32_t i = l->begin_first[node]; i < l->begin_first[node + 1]; i++) {
        const uint32_t s = l->by_begin[i];
        const moesim_span *span = &l->span[s];
        if (f->kept[s] < span->many)
            reach(f, span->end, here - f->profit[span->kind] - potential[span->end], (uint64_t)s * 2);
    }
    for (uint32_t s = l->end_first[node]; s < l->end_first[node + 1]; s++) {
        const moesim_span *span = &l->span[s];
        if (f->kept[s] > 0)
            reach(f, span->begin, here + f->profit[span->kind] - potential[span->begin], (uint64_t)s * 2 + 1);
    }
}

/* The gaps alone lead from one end to the other, in either direction as long as units are left to take away. */
static void find_path(moesim_flow *f, uint32_t from, uint32_t to)
{
    for (uint32_t p = 0; p < f->line->points; p++) {
        f->distance[p] = FAR;
        f->place[p] = NOWHERE;
    }
    f->heap_size = 0;
    f->distance[from] = f->now = 0;
    f->ready[0] = from;
    f->num_ready = 1;
    for (;;) {
        const uint32_t node = f->num_ready > 0 ? f->ready[--f->num_ready] : pop_nearest(f);
        f->now = f->distance[node];
        if (node == to)
            break;
        scan(f, node);
    }
    for (uint32_t p = 0; p < f->line->points; p++)
        f->potential[p] += f->distance[p] < f->now ? f->distance[p] : f->now;
}

/* The node before `node` on the path. */
static uint32_t before(const moesim_flow *f, uint32_t node)
{
    const uint64_t via = f->via[node];
    if (via == GAP_FORWARD)
        return node - 1;
    if (via == GAP_BACKWARD)
        return node + 1;
    const moesim_span *span = &f->line->span[via / 2];
    return (via & 1u) != 0 ? span->end : span->begin;
}

static uint32_t room_into(const moesim_flow *f, uint32_t node)
{
    const uint64_t via = f->via[node];
    if (via == GAP_FORWARD)
        return UINT32_MAX;
    if (via == GAP_BACKWARD)
        return f->idle[node];
    return (via & 1u) != 0 ? f->kept[via / 2] : f->line->span[via / 2].many - f->kept[via / 2];
}

static void push_into(moesim_flow *f, uint32_t node, uint32_t units)
{
    const uint64_t via = f->via[node];
    if (via == GAP_FORWARD)
        f->idle[node - 1] += units;
    else if (via == GAP_BACKWARD)
        f->idle[node] -= units;
    else if ((via & 1u) != 0)
        f->kept[via / 2] -= units;
    else
        f->kept[via / 2] += units;
}

/* Moves up to `units` from one end to the other; returns how many. */
static uint32_t augment(moesim_flow *f, uint32_t from, uint32_t to, uint32_t units)
{
    find_path(f, from, to);
    for (uint32_t node = to; node != from; node = before(f, node)) {
        const uint32_t room = room_into(f, node);
        units = room < units ? room : units;
    }
    for (uint32_t node = to; node != from; node = before(f, node))
        push_into(f, node, units);
    return units;
}

/* ---- the two starts -------------------------------------------------------------------------------------------------- */

/* No flow; the potentials are longest paths, which a line gives in one sweep. */
static void start_empty(moesim_flow *f)
{
    const moesim_line *l = f->line;
    memset(f->kept, 0, l->num_spans * sizeof *f->kept);
    memset(f->idle, 0, l->points * sizeof *f->idle);
    f->potential[0] = 0;
    for (uint32_t p = 1; p < l->points; p++) {
        int64_t best = f->potential[p - 1];
        for (uint32_t s = l->end_first[p]; s < l->end_first[p + 1]; s++) {
            const int64_t there = f->potential[l->span[s].begin] - f->profit[l->span[s].kind];
            best = there < best ? there : best;
        }
        f->potential[p] = best;
    }
}

/* `widest` units that keep every interval: only what takes away profit has room, so zero potentials do. */
static void start_full(moesim_flow *f)
{
    const moesim_line *l = f->line;
    uint32_t idle = l->widest;
    for (uint32_t p = 0; p < l->points; p++) {
        f->potential[p] = 0;
        for (uint32_t s = l->end_first[p]; s < l->end_first[p + 1]; s++)
            idle += f->kept[s] = l->span[s].many;
        for (uint32_t i = l->begin_first[p]; i < l->begin_first[p + 1]; i++)
            idle -= l->span[l->by_begin[i]].many;
        f->idle[p] = idle;
    }
}

moesim_code moesim_flow_select(moesim_flow *f, const moesim_line *line, uint32_t capacity, const int64_t *profit,
                               const uint32_t **kept, moesim_error *err)
{
    const uint32_t over = line->widest > capacity ? line->widest - capacity : 0;
    const uint32_t last = line->points > 0 ? line->points - 1 : 0;
    const bool full = over <= capacity;
    f->line = line;
    f->profit = profit;
    *kept = f->kept;
    if (line->num_spans == 0)
        return MOESIM_OK;
    if (full)
        start_full(f);
    else
        start_empty(f);
    for (uint32_t left = full ? over : capacity; left > 0;) {
        if (moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        left -= full ? augment(f, last, 0, left) : augment(f, 0, last, left);
    }
    return MOESIM_OK;
}
