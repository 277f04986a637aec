/* SPDX-License-Identifier: Apache-2.0
 *
 * One event: row lists by a counting sort, the decision's lists against A and against who is resident.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim/walk.h"

#define MOST_ARENA ((size_t)64 << 20)

/* What is known of an expert's residency: nothing, until the log first speaks of it. */
enum known { UNKNOWN, IN, OUT };

/* The part that an expert plays in the event. */
enum part { NOBODY, ACTIVE, HIT, MOVED, ON_CPU };

struct moesim_join {
    moesim_arena *arena;
    uint32_t layers, experts, top_k, max_rows;
    const char *name;
    uint64_t events;
    uint8_t *known;              /* [M][E] */
    uint8_t *part;               /* [E] */
    uint32_t *place;             /* [E] in active */
    uint32_t *begin;             /* [E + 1] into pool */
    uint16_t *pool;              /* [max_rows][K] */
    uint16_t *single;            /* [E] the one row of each expert, in events of more than max_rows rows */
    moesim_walk_expert *active, *listed;     /* [E] each; listed: hits, moved, cpu one after another */
    uint8_t *kept;               /* [E] */
};

typedef struct joining {
    moesim_join *join;
    const moesim_decision *decision;
    moesim_walk_event *out;
    uint8_t *known;              /* [E] of the layer */
} joining;

moesim_code moesim_join_create(uint32_t num_layers, uint32_t num_experts, uint32_t top_k, uint32_t max_rows, const char *name,
                               moesim_join **out, moesim_error *err)
{
    moesim_arena *arena = NULL;
    void *p = NULL;
    *out = NULL;
    if (moesim_arena_create(MOST_ARENA, &arena, err) != MOESIM_OK)
        return err->code;
    moesim_code code = moesim_arena_take(arena, 1, sizeof(moesim_join), "join", &p, err);
    if (code != MOESIM_OK) {
        moesim_arena_destroy(&arena);
        return code;
    }
    moesim_join *j = p;
    *j = (moesim_join){.arena = arena, .layers = num_layers, .experts = num_experts, .top_k = top_k, .max_rows = max_rows,
                       .name = name};
    const struct { size_t n, each; void **out; } piece[] = {
        {(size_t)num_layers * num_experts, sizeof *j->known, (void **)&j->known},
        {num_experts, sizeof *j->part, (void **)&j->part},
        {num_experts, sizeof *j->place, (void **)&j->place},
        {(size_t)num_experts + 1, sizeof *j->begin, (void **)&j->begin},
        {(size_t)max_rows * top_k, sizeof *j->pool, (void **)&j->pool},
        {num_experts, sizeof *j->single, (void **)&j->single},
        {num_experts, sizeof *j->active, (void **)&j->active},
        {num_experts, sizeof *j->listed, (void **)&j->listed},
        {num_experts, sizeof *j->kept, (void **)&j->kept},
    };
    for (size_t i = 0; i < sizeof piece / sizeof piece[0] && code == MOESIM_OK; i++)
        code = moesim_arena_take(arena, piece[i].n, piece[i].each, "joining of events", piece[i].out, err);
    *out = j;
    if (code != MOESIM_OK)
        moesim_join_destroy(out);
    return code;
}

void moesim_join_destroy(moesim_join **join)
{
    if (*join == NULL)
        return;
    moesim_arena *arena = (*join)->arena;
    moesim_arena_destroy(&arena);
    *join = NULL;
}

void moesim_join_restart(moesim_join *j)
{
    memset(j->known, UNKNOWN, (size_t)j->layers * j->experts);
    j->events = 0;
}

static moesim_code misfit(const joining *g, uint32_t expert, const char *what, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: event %llu (pass %llu, layer %u): expert %u %s", g->join->name,
                       (unsigned long long)g->join->events, (unsigned long long)g->decision->pass, g->decision->layer, expert,
                       what);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

static const uint16_t *ids_of(const moesim_join *j, const moesim_window *w, const moesim_step *step, uint32_t row,
                              uint32_t layer)
{
    return w->row[step->row + row].expert + (size_t)layer * j->top_k;
}

/* begin[e + 1] becomes the number of rows of e, if they are listed; place the number of all. */
static void count_rows(const moesim_join *j, const moesim_window *w, const moesim_step *step, uint32_t layer)
{
    const bool listed = step->num_rows <= j->max_rows;
    memset(j->begin, 0, ((size_t)j->experts + 1) * sizeof *j->begin);
    memset(j->place, 0, j->experts * sizeof *j->place);
    for (uint32_t r = 0; r < step->num_rows; r++) {
        const uint16_t *id = ids_of(j, w, step, r, layer);
        for (uint32_t k = 0; k < j->top_k; k++) {
            if (id[k] >= j->experts)         /* no route */
                continue;
            j->place[id[k]]++;
            j->begin[id[k] + 1u] += listed;
        }
    }
}

static void fill_rows(const moesim_join *j, const moesim_window *w, const moesim_step *step, uint32_t layer)
{
    for (uint32_t e = 0; e < j->experts; e++)
        j->begin[e + 1] += j->begin[e];
    for (uint32_t r = 0; r < step->num_rows; r++) {
        const uint16_t *id = ids_of(j, w, step, r, layer);
        for (uint32_t k = 0; k < j->top_k; k++)
            if (id[k] < j->experts)
                j->pool[j->begin[id[k]]++] = (uint16_t)r;
    }
    for (uint32_t e = j->experts; e > 0; e--)
        j->begin[e] = j->begin[e - 1];
    j->begin[0] = 0;
}

static void list_active(const moesim_join *j, moesim_walk_event *out)
{
    uint32_t n = 0;
    memset(j->part, NOBODY, j->experts);
    for (uint32_t e = 0; e < j->experts; e++) {
        const uint32_t tokens = j->place[e], listed = j->begin[e + 1] - j->begin[e];
        if (tokens == 0)
            continue;
        j->part[e] = ACTIVE;
        if (listed == 0)
            j->single[e] = (uint16_t)(n % j->max_rows);
        j->place[e] = n;
        j->active[n++] = (moesim_walk_expert){
            .expert = (uint16_t)e, .tokens = tokens, .listed = (uint16_t)(listed > 0 ? listed : 1),
            .row = listed > 0 ? j->pool + j->begin[e] : j->single + e};
    }
    out->n_active = n;
    out->active = j->active;
}

/* ---- decisions ------------------------------------------------------------------------------------------------------- */

static moesim_code take(joining *g, const uint16_t *id, uint32_t n, enum part part, moesim_walk_expert *to, moesim_error *err)
{
    moesim_join *j = g->join;
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t e = id[i];
        if (e >= j->experts || j->part[e] == NOBODY)
            return misfit(g, e, "is named and no row of the trace chose it", err);
        if (j->part[e] != ACTIVE)
            return misfit(g, e, "is named in two of hits, moved and cpu", err);
        if (part == HIT && g->known[e] == OUT)
            return misfit(g, e, "hits and is not resident: residency does not follow from the log (ideal bounds reload freely "
                          "and cannot be executed)", err);
        if (part == ON_CPU && g->known[e] == IN)
            return misfit(g, e, "is resident and runs on the CPU: residency does not follow from the log", err);
        j->part[e] = (uint8_t)part;
        g->known[e] = part == ON_CPU ? OUT : IN;         /* a resident that is moved had left before the event */
        to[i] = j->active[j->place[e]];
    }
    return MOESIM_OK;
}

static moesim_code take_evicted(joining *g, moesim_error *err)
{
    moesim_join *j = g->join;
    const moesim_decision *d = g->decision;
    for (uint32_t i = 0; i < d->n_evicted; i++) {
        const uint16_t e = d->evicted[i];
        if (e >= j->experts || g->known[e] == OUT)
            return misfit(g, e, "is evicted and was not resident: residency does not follow from the log", err);
        g->known[e] = OUT;
    }
    for (uint32_t i = 0; i < d->n_moved; i++)
        j->kept[i] = g->known[d->moved[i]] == IN;
    return MOESIM_OK;
}

static moesim_code join_decision(joining *g, moesim_error *err)
{
    moesim_join *j = g->join;
    const moesim_decision *d = g->decision;
    moesim_walk_event *out = g->out;
    const uint64_t all = (uint64_t)d->n_hits + d->n_moved + d->n_cpu;
    if (all != out->n_active)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: event %llu (pass %llu, layer %u): hits, moved and cpu are %llu experts, "
                           "the rows of the trace chose %u", j->name, (unsigned long long)j->events,
                           (unsigned long long)d->pass, d->layer, (unsigned long long)all, out->n_active);
    moesim_walk_expert *hits = j->listed, *moved = hits + d->n_hits, *cpu = moved + d->n_moved;
    if (take(g, d->hits, d->n_hits, HIT, hits, err) != MOESIM_OK ||
        take(g, d->moved, d->n_moved, MOVED, moved, err) != MOESIM_OK ||
        take_evicted(g, err) != MOESIM_OK || take(g, d->cpu, d->n_cpu, ON_CPU, cpu, err) != MOESIM_OK)
        return err->code;
    out->hits = hits;
    out->moved = moved;
    out->cpu = cpu;
    out->kept = j->kept;
    out->evicted = d->evicted;
    out->n_hits = d->n_hits;
    out->n_moved = d->n_moved;
    out->n_cpu = d->n_cpu;
    out->n_evicted = d->n_evicted;
    return MOESIM_OK;
}

moesim_code moesim_join_event(moesim_join *j, const moesim_window *w, const moesim_step *step, size_t index,
                              const moesim_decision *d, moesim_walk_event *out, moesim_error *err)
{
    const uint32_t layer = (uint32_t)(index % w->num_layers);
    if (d->pass != step->pass || d->clock != step->clock || d->layer != layer || (d->counted != 0) != step->counted)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: event %llu is pass %llu, layer %u, %scounted, where this run has "
                           "pass %llu, layer %u, %scounted: the log was written with other --requests, --warmup or --batch",
                           j->name, (unsigned long long)j->events, (unsigned long long)d->pass, d->layer,
                           d->counted ? "" : "not ",
                           (unsigned long long)step->pass, layer, step->counted ? "" : "not ");
    *out = (moesim_walk_event){
        .index = j->events, .pass = d->pass, .clock = d->clock, .layer = layer,
        .request = step->num_requests > 0 ? w->member[step->member].request : 0,
        .num_rows = step->num_rows, .listed_rows = step->num_rows < j->max_rows ? step->num_rows : j->max_rows,
        .decode = step->decode, .counted = step->counted, .first = layer == 0, .last = layer + 1 == w->num_layers,
    };
    count_rows(j, w, step, layer);
    if (step->num_rows <= j->max_rows)
        fill_rows(j, w, step, layer);
    list_active(j, out);
    joining g = {.join = j, .decision = d, .out = out, .known = j->known + (size_t)layer * j->experts};
    const moesim_code code = join_decision(&g, err);
    j->events++;
    return code;
}
