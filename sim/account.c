/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums per request and per layer, owners of transfers, the histogram of |A|/C.
 */
#include "sim/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#define SUMS (sizeof(moesim_sums) / sizeof(double))

_Static_assert(sizeof(moesim_sums) == SUMS * sizeof(double), "moesim_sums holds doubles only");

moesim_code moesim_account_init(moesim_account *a, moesim_arena *arena, const moesim_shape *shape, uint64_t first_request,
                                moesim_error *err)
{
    const size_t layers = shape->num_layers, experts = shape->num_experts;
    memset(a, 0, sizeof *a);
    a->layers = shape->num_layers;
    a->experts = shape->num_experts;
    a->words = shape->words;
    a->expert_bytes = shape->expert_bytes;
    a->first_request = first_request;
    a->current = a->previous = MOESIM_NO_OWNER;
    const struct { size_t n, each; void **out; } piece[] = {
        {layers * 3u * shape->words, sizeof *a->bits, (void **)&a->bits},
        {layers * experts, sizeof *a->owner_of, (void **)&a->owner_of},
        {layers, sizeof *a->histogram, (void **)&a->histogram},
        {layers, sizeof *a->layer, (void **)&a->layer},
        {experts + 1, sizeof *a->by_slots, (void **)&a->by_slots},
    };
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++)
        if (moesim_arena_take(arena, piece[i].n, piece[i].each, "the sums of a configuration", piece[i].out, err) !=
            MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

void moesim_account_fini(moesim_account *a)
{
    for (uint32_t i = 0; i < a->num_owners; i++)
        free(a->owner[i].index);
    free(a->owner);
    free(a->request);
    a->owner = NULL;
    a->request = NULL;
    a->num_owners = 0;
}

moesim_code moesim_account_slots(moesim_account *a, moesim_arena *arena, const uint32_t *slots, moesim_error *err)
{
    a->uniform = slots != NULL ? slots[0] : 0;
    for (uint32_t l = 0; l < a->layers; l++) {
        const uint32_t c = slots != NULL ? slots[l] : 0;
        if (a->by_slots[c] == NULL && moesim_arena_take(arena, a->experts + 1u, sizeof **a->by_slots, "a histogram of |A|",
                                                        (void **)&a->by_slots[c], err) != MOESIM_OK)
            return err->code;
        a->histogram[l] = a->by_slots[c];
        if (c != a->uniform)
            a->uniform = UINT32_MAX;
    }
    return MOESIM_OK;
}

moesim_code moesim_account_reserve(moesim_account *a, uint64_t num, moesim_error *err)
{
    if (num <= a->num_requests)
        return MOESIM_OK;
    if (num > a->capacity) {
        uint64_t capacity = a->capacity < 16 ? 16 : (uint64_t)a->capacity * 2;
        capacity = capacity < num ? num : capacity;
        moesim_sums *grown = capacity > UINT32_MAX ? NULL : realloc(a->request, capacity * sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "the sums of the requests", capacity * sizeof *grown);
        a->request = grown;
        a->capacity = (uint32_t)capacity;
    }
    memset(a->request + a->num_requests, 0, (num - a->num_requests) * sizeof *a->request);
    a->num_requests = (uint32_t)num;
    return MOESIM_OK;
}

/* ---- owners ------------------------------------------------------------------------------------------------------ */

static void owner_release(moesim_account *a, uint32_t owner, uint32_t refs)
{
    if (owner != MOESIM_NO_OWNER)
        a->owner[owner].refs -= refs;
}

/* A free owner with room for n indexes. */
static moesim_code owner_make(moesim_account *a, uint32_t n, uint32_t *out, moesim_error *err)
{
    uint32_t free_one = 0;
    while (free_one < a->num_owners && a->owner[free_one].refs != 0)
        free_one++;
    if (free_one == a->num_owners) {
        const uint32_t more = a->num_owners + 64u;
        moesim_owner *grown = realloc(a->owner, more * sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "the owners of transfers", more * sizeof *grown);
        memset(grown + a->num_owners, 0, 64u * sizeof *grown);
        a->owner = grown;
        a->num_owners = more;
    }
    moesim_owner *owner = &a->owner[free_one];
    if (owner->capacity < n) {
        uint32_t *grown = realloc(owner->index, n * sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "the owners of transfers", n * sizeof *grown);
        owner->index = grown;
        owner->capacity = n;
    }
    owner->n = n;
    owner->refs = 1;
    *out = free_one;
    return MOESIM_OK;
}

/* The present owner's open transfers become old ones. */
static void fold_fresh(moesim_account *a)
{
    for (uint32_t l = 0; l < a->layers && a->current != MOESIM_NO_OWNER; l++) {
        uint64_t *fresh = a->bits + (size_t)l * 3u * a->words, *old = fresh + a->words;
        uint32_t *owner_of = a->owner_of + (size_t)l * a->experts;
        MOESIM_EACH_BIT(e, fresh, a->words, {
            owner_of[e] = a->current;
            a->owner[a->current].refs++;
        });
        for (uint32_t i = 0; i < a->words; i++) {
            old[i] |= fresh[i];
            fresh[i] = 0;
        }
    }
}

/* Index of a member in the sums, or MOESIM_NO_OWNER while it warms up. */
static uint32_t index_of(const moesim_account *a, const moesim_member *member)
{
    return member->request >= a->first_request ? (uint32_t)(member->request - a->first_request) : MOESIM_NO_OWNER;
}

static bool same_owner(const moesim_account *a, const moesim_member *member, uint32_t members, uint32_t n)
{
    if (a->current == MOESIM_NO_OWNER || a->owner[a->current].n != n)
        return false;
    const uint32_t *index = a->owner[a->current].index;
    for (uint32_t i = 0, j = 0; i < members; i++) {
        const uint32_t k = index_of(a, &member[i]);
        if (k != MOESIM_NO_OWNER && index[j++] != k)
            return false;
    }
    return true;
}

static moesim_code change_owner(moesim_account *a, const moesim_member *member, uint32_t members, uint32_t n,
                                moesim_error *err)
{
    uint32_t owner = 0;
    fold_fresh(a);
    if (owner_make(a, n, &owner, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0, j = 0; i < members; i++) {
        const uint32_t k = index_of(a, &member[i]);
        if (k != MOESIM_NO_OWNER)
            a->owner[owner].index[j++] = k;
    }
    owner_release(a, a->current, 1);
    a->current = owner;
    return MOESIM_OK;
}

moesim_code moesim_account_begin(moesim_account *a, const moesim_window *window, const moesim_step *step,
                                 moesim_error *err)
{
    const moesim_member *member = window->member + step->member;
    uint32_t n = 0;
    memset(&a->now, 0, sizeof a->now);
    for (uint32_t i = 0; i < step->num_requests; i++) {
        const uint32_t k = index_of(a, &member[i]);
        n += k != MOESIM_NO_OWNER;
        if (k != MOESIM_NO_OWNER && k >= a->num_requests && moesim_account_reserve(a, (uint64_t)k + 1, err) != MOESIM_OK)
            return err->code;
    }
    const bool counted = step->counted && n > 0;
    a->mask = counted ? UINT64_MAX : 0;
    if (counted && !same_owner(a, member, step->num_requests, n))
        return change_owner(a, member, step->num_requests, n, err);
    return MOESIM_OK;
}

/* ---- charging ------------------------------------------------------------------------------------------------------ */

static void add(moesim_sums *to, const moesim_sums *what, double share)
{
    double *out = (double *)to;
    const double *in = (const double *)what;
    for (size_t i = 0; i < SUMS; i++)
        out[i] += in[i] / share;
}

static void charge(moesim_account *a, uint32_t owner, const moesim_sums *what)
{
    if (owner == MOESIM_NO_OWNER)
        return;
    const moesim_owner *o = &a->owner[owner];
    add(&a->total, what, 1);
    for (uint32_t i = 0; i < o->n; i++)
        add(&a->request[o->index[i]], what, o->n);
}

/* The step itself, for its present owner. */
static void charge_step(moesim_account *a)
{
    const moesim_tally *t = &a->now;
    moesim_sums s = {.passes = 1, .events = a->layers};
    s.active = (double)t->active;
    s.hits = (double)t->hits;
    s.misses = (double)(t->active - t->hits);
    s.floor = (double)t->floor;
    s.ratio_over = (double)t->over;
    s.moved = (double)t->moved;
    s.cpu = (double)t->cpu;
    s.moved_bytes = (double)t->moved_bytes;
    s.prefetched = (double)t->prefetched;
    s.prefetched_bytes = (double)t->prefetched_bytes;
    s.utilisation = a->uniform == UINT32_MAX ? t->utilisation : s.hits / a->uniform;
    /* without slots (C = 0, scope global) there is no utilisation and no ratio: 0/0 */
    s.ratio_sum = a->uniform == UINT32_MAX ? t->ratio : a->uniform != 0 ? s.active / a->uniform : NAN;
    charge(a, a->current, &s);
}

/* Prefill, phase apart; and the tokens of the step, whatever its kind. */
static void charge_members(moesim_account *a, const moesim_window *window, const moesim_step *step)
{
    const moesim_tally *t = &a->now;
    uint32_t n = 0;
    moesim_sums s = {.prefill_passes = 1};
    s.prefill_misses = (double)(t->active - t->hits);
    s.prefill_moved_bytes = (double)t->moved_bytes;
    for (uint32_t i = 0; i < step->num_requests; i++)
        n += index_of(a, &window->member[step->member + i]) != MOESIM_NO_OWNER;
    for (uint32_t i = 0; i < step->num_requests; i++) {
        const moesim_member *member = &window->member[step->member + i];
        const uint32_t k = index_of(a, member);
        if (k == MOESIM_NO_OWNER)
            continue;
        if (!step->decode)
            add(&a->request[k], &s, n);
        a->request[k].output_tokens += member->committed;
        a->total.output_tokens += member->committed;
    }
    if (!step->decode && n > 0)
        add(&a->total, &s, 1);
}

void moesim_account_end(moesim_account *a, const moesim_window *window, const moesim_step *step)
{
    const moesim_tally *t = &a->now;
    charge(a, a->previous, &(moesim_sums){.transfers_judged = (double)a->previous_moved,
                                          .transfers_used = (double)t->judged_used});
    charge(a, a->current, &(moesim_sums){.unused = (double)t->unused});
    owner_release(a, a->previous, 1);
    a->previous = MOESIM_NO_OWNER;
    if (a->mask != 0) {
        charge_step(a);
        a->previous = a->current;
        a->previous_moved = a->free_reload ? 0 : t->moved;
        a->owner[a->current].refs++;
    }
    charge_members(a, window, step);
    a->evictions += t->evictions;
    a->insertions += t->insertions;
    a->accesses += t->active;
    a->hits += t->hits;
    a->used += t->used;
    a->read_bytes += t->moved_bytes + t->prefetched_bytes;
}

/* ---- transfers ----------------------------------------------------------------------------------------------------- */

void moesim_account_old(moesim_account *a, uint32_t layer, const uint64_t *hit, const uint64_t *gone)
{
    uint64_t *old = a->bits + ((size_t)layer * 3u + 1u) * a->words;
    const uint32_t *owner_of = a->owner_of + (size_t)layer * a->experts;
    const moesim_sums one = {.unused = 1};
    MOESIM_EACH_BIT(e, hit, a->words, {
        owner_release(a, owner_of[e], 1);
        a->now.used++;
    });
    MOESIM_EACH_BIT(e, gone, a->words, {
        charge(a, owner_of[e], &one);
        owner_release(a, owner_of[e], 1);
    });
    for (uint32_t i = 0; i < a->words; i++)
        old[i] &= ~(hit[i] | gone[i]);
}

void moesim_account_landed(moesim_account *a, uint32_t layer, uint32_t expert)
{
    a->now.insertions++;
    a->now.prefetched++;
    a->now.prefetched_bytes += a->expert_bytes[layer];
    if (a->mask != 0)
        moesim_bit_set(a->bits + (size_t)layer * 3u * a->words, expert);
}

void moesim_account_evicted(moesim_account *a, uint32_t layer, uint32_t expert)
{
    uint64_t *fresh = a->bits + (size_t)layer * 3u * a->words;
    a->now.evictions++;
    if (moesim_bit_test(fresh, expert)) {
        moesim_bit_clear(fresh, expert);
        a->now.unused++;
    } else if (moesim_bit_test(fresh + a->words, expert)) {
        uint64_t none[16] = {0}, gone[16] = {0};
        moesim_bit_set(gone, expert);
        moesim_account_old(a, layer, none, gone);
    }
}

uint64_t moesim_account_pending(const moesim_account *a)
{
    uint64_t n = 0;
    for (uint32_t l = 0; l < a->layers; l++)
        n += moesim_bits_count(a->bits + (size_t)l * 3u * a->words, 2u * a->words);
    return n;
}

/* ---- regime r ------------------------------------------------------------------------------------------------------ */

typedef struct bin { uint32_t active, slots; uint64_t n; } bin;

static int by_ratio(const void *x, const void *y)
{
    const bin *a = x, *b = y;
    const uint64_t left = (uint64_t)a->active * b->slots, right = (uint64_t)b->active * a->slots;
    return (left > right) - (left < right);
}

moesim_code moesim_account_p95(const moesim_account *a, double *out, moesim_error *err)
{
    size_t bins = 0, n = 0;
    uint64_t events = 0, seen = 0;
    *out = NAN;
    for (uint32_t c = 1; c <= a->experts; c++)
        bins += a->by_slots[c] != NULL ? a->experts + 1u : 0;
    bin *list;
    if (moesim_alloc(bins, sizeof *list, "the histogram of |A|/C", (void **)&list, err) != MOESIM_OK)
        return err->code;
    for (uint32_t c = 1; c <= a->experts; c++)
        for (uint32_t active = 0; a->by_slots[c] != NULL && active <= a->experts; active++)
            if (a->by_slots[c][active] != 0) {
                list[n++] = (bin){active, c, a->by_slots[c][active]};
                events += a->by_slots[c][active];
            }
    qsort(list, n, sizeof *list, by_ratio);
    for (size_t i = 0; i < n; i++) {
        seen += list[i].n;
        /* the first bin that reaches 95 % of the events, in integers: no rounding decides */
        if (seen * 20u >= events * 19u) {
            *out = (double)list[i].active / list[i].slots;
            break;
        }
    }
    free(list);
    return MOESIM_OK;
}
