/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetches: landing at once without time, as the link allows with it.
 */
#include "sim/prefetch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sim/plan.h"
#include "sim/snapshot.h"
#include "sim/timer.h"

#define MOST_ENTRIES 65536u

/* An entry of the list in force; serial keeps the policy's order among equal priorities. */
typedef struct wanted {
    uint32_t layer, expert;
    double priority;
    uint32_t serial;
} wanted;

struct moesim_prefetcher {
    moesim_prefetch answer;
    wanted *list;                /* by layer, then priority, then serial */
    uint32_t n;
    uint32_t *begin;             /* [M + 1] */
    uint64_t *pending;           /* [M][words] */
    bool paused;
    wanted *ranked;              /* by priority, where time is told */
    moesim_landed *queued;
};

moesim_code moesim_prefetch_init(moesim_instance *in, moesim_error *err)
{
    const moesim_policy *p = in->policy;
    if (p->request == NULL && p->boundary == NULL && p->before_layer == NULL)
        return MOESIM_OK;
    const size_t layers = in->shape.num_layers, pairs = layers * in->shape.num_experts;
    const size_t most = pairs < MOST_ENTRIES ? pairs : MOST_ENTRIES;
    struct moesim_prefetcher *f;
    if (moesim_arena_take(in->arena, 1, sizeof *f, "prefetch lists", (void **)&f, err) != MOESIM_OK ||
        moesim_arena_take(in->arena, most, sizeof *f->list, "prefetch lists", (void **)&f->list, err) != MOESIM_OK ||
        moesim_arena_take(in->arena, most, sizeof *f->answer.entry, "prefetch lists", (void **)&f->answer.entry, err) !=
            MOESIM_OK ||
        moesim_arena_take(in->arena, layers + 1, sizeof *f->begin, "prefetch lists", (void **)&f->begin, err) != MOESIM_OK ||
        moesim_arena_take(in->arena, layers * in->shape.words, sizeof *f->pending, "prefetch lists", (void **)&f->pending,
                          err) != MOESIM_OK)
        return err->code;
    if (in->config.num_costings > 0 &&
        (moesim_arena_take(in->arena, most, sizeof *f->ranked, "prefetch lists", (void **)&f->ranked, err) != MOESIM_OK ||
         moesim_arena_take(in->arena, most, sizeof *f->queued, "prefetch lists", (void **)&f->queued, err) != MOESIM_OK))
        return err->code;
    f->answer.size = sizeof f->answer;
    f->answer.capacity = (uint32_t)most;
    in->prefetch = f;
    return MOESIM_OK;
}

uint32_t moesim_prefetch_most(const moesim_instance *in)
{
    return in->prefetch != NULL ? in->prefetch->answer.capacity : 0;
}

moesim_prefetch *moesim_prefetch_offer(moesim_instance *in)
{
    moesim_prefetch *answer = &in->prefetch->answer;
    answer->n = answer->cancel = answer->pause = 0;
    return answer;
}

static int by_layer_and_priority(const void *x, const void *y)
{
    const wanted *a = x, *b = y;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    if (a->priority > b->priority || a->priority < b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->serial > b->serial) - (a->serial < b->serial);
}

static int by_priority(const void *x, const void *y)
{
    const wanted *a = x, *b = y;
    if (a->priority > b->priority || a->priority < b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->serial > b->serial) - (a->serial < b->serial);
}

/* With time: the list enters the link's queue by priority, whatever the layer. What is resident is left out. */
static void queue(moesim_instance *in)
{
    struct moesim_prefetcher *f = in->prefetch;
    uint32_t n = 0;
    memcpy(f->ranked, f->list, f->n * sizeof *f->ranked);
    qsort(f->ranked, f->n, sizeof *f->ranked, by_priority);
    for (uint32_t i = 0; i < f->n; i++) {
        const uint64_t *resident = in->resident + (size_t)f->ranked[i].layer * in->shape.words;
        if (!moesim_bit_test(resident, f->ranked[i].expert))
            f->queued[n++] = (moesim_landed){f->ranked[i].layer, f->ranked[i].expert};
    }
    moesim_executor *x = moesim_timer_executor(in->timer, 0);
    x->ops->prefetch(x, f->queued, n);
}

moesim_code moesim_prefetch_accept(moesim_instance *in, const char *callback, moesim_error *err)
{
    struct moesim_prefetcher *f = in->prefetch;
    const moesim_prefetch *answer = &f->answer;
    if (in->timer != NULL && (answer->pause != 0) != f->paused) {
        moesim_executor *x = moesim_timer_executor(in->timer, 0);
        x->ops->pause(x, answer->pause != 0);
    }
    f->paused = answer->pause != 0;
    if (answer->n == 0 && answer->cancel == 0)
        return MOESIM_OK;
    if (moesim_plan_prefetch(in, answer, callback, err) != MOESIM_OK)
        return err->code;
    if (in->timer != NULL && answer->n > 0 && (in->traits & MOESIM_PREFETCHES) == 0)
        return moesim_instance_fail(in, err, MOESIM_E_POLICY,
                                    "%s asks for prefetches without the trait MOESIM_PREFETCHES, which time needs", callback);
    f->n = answer->n;
    memset(f->begin, 0, (in->shape.num_layers + 1u) * sizeof *f->begin);
    memset(f->pending, 0, (size_t)in->shape.num_layers * in->shape.words * sizeof *f->pending);
    for (uint32_t i = 0; i < f->n; i++) {
        const moesim_prefetch_entry *e = &answer->entry[i];
        f->list[i] = (wanted){e->layer, e->expert, e->priority, i};
        f->begin[e->layer + 1]++;
        moesim_bit_set(f->pending + (size_t)e->layer * in->shape.words, e->expert);
    }
    for (uint32_t l = 0; l < in->shape.num_layers; l++)
        f->begin[l + 1] += f->begin[l];
    qsort(f->list, f->n, sizeof *f->list, by_layer_and_priority);
    if (in->timer != NULL)
        queue(in);
    return MOESIM_OK;
}

/* Makes room for one more in a full layer. *made = false: everything resident has just landed, or there is no slot. */
static moesim_code make_room(moesim_instance *in, uint32_t layer, bool *made, moesim_error *err)
{
    const uint32_t words = in->shape.words;
    const uint64_t *resident = in->resident + (size_t)layer * words, *landed = in->landed + (size_t)layer * words;
    uint64_t shown[16] = {0};
    uint32_t victim = moesim_worst(in, layer);
    *made = moesim_bits_count(resident, words) < in->slots[layer];
    if (*made || victim == UINT32_MAX)
        return MOESIM_OK;
    if (in->policy->victim != NULL) {
        for (uint32_t i = 0; i < words; i++)
            shown[i] = resident[i] & ~landed[i];
        if (in->policy->victim(in->state, layer, shown, &victim) != 0)
            return moesim_plan_stopped(in, "victim", in->base.clock, err);
        if (moesim_plan_victim(in, layer, shown, victim, err) != MOESIM_OK)
            return err->code;
    }
    moesim_evict(in, layer, victim);
    *made = moesim_bits_count(resident, words) < in->slots[layer];
    return MOESIM_OK;
}

/* One expert enters its layer, unless it is there already or nothing may leave. */
static moesim_code land_one(moesim_instance *in, uint32_t layer, uint32_t e, bool *done, moesim_error *err)
{
    const size_t at = (size_t)layer * in->shape.words;
    bool made = true;
    *done = false;
    moesim_bit_clear(in->prefetch->pending + at, e);
    if (moesim_bit_test(in->resident + at, e))
        return MOESIM_OK;
    if (make_room(in, layer, &made, err) != MOESIM_OK)
        return err->code;
    if (!made)
        return MOESIM_OK;
    moesim_bit_set(in->resident + at, e);
    moesim_bit_set(in->landed + at, e);
    moesim_account_landed(&in->account, layer, e);
    *done = true;
    return MOESIM_OK;
}

static moesim_code land(moesim_instance *in, uint32_t layer, moesim_error *err)
{
    const struct moesim_prefetcher *f = in->prefetch;
    const uint64_t *pending = f->pending + (size_t)layer * in->shape.words;
    uint32_t budget = in->params.prefetch_budget;
    for (uint32_t i = f->begin[layer]; i < f->begin[layer + 1] && budget > 0; i++) {
        bool done = false;
        if (!moesim_bit_test(pending, f->list[i].expert))
            continue;
        if (land_one(in, layer, f->list[i].expert, &done, err) != MOESIM_OK)
            return err->code;
        budget -= done;
    }
    return MOESIM_OK;
}

/* With time: the clock runs to the gate of this layer, and what the link has brought by then, of any layer, is there. */
static moesim_code land_timed(moesim_instance *in, moesim_error *err)
{
    struct moesim_prefetcher *f = in->prefetch;
    bool done;
    moesim_timer_gate(in->timer);
    moesim_executor *x = moesim_timer_executor(in->timer, 0);
    const uint32_t n = x->ops->landed(x, f->queued, f->answer.capacity);
    for (uint32_t i = 0; i < n; i++)
        if (land_one(in, f->queued[i].layer, f->queued[i].expert, &done, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

static moesim_code ask(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer, moesim_error *err)
{
    const moesim_before_layer before = {
        .size = sizeof before,
        .layer = layer,
        .clock = step->clock,
        .kind = step->kind,
        .active = w->active + (size_t)(step - w->step) * w->num_layers * w->words,
        .resident = in->resident,
        .pending = in->prefetch->pending,
    };
    if (in->policy->before_layer(in->state, &before, moesim_prefetch_offer(in)) != 0)
        return moesim_plan_stopped(in, "before_layer", step->clock, err);
    return moesim_prefetch_accept(in, "before_layer", err);
}

moesim_code moesim_prefetch_layer(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer,
                                  moesim_error *err)
{
    if (in->policy->before_layer != NULL && ask(in, w, step, layer, err) != MOESIM_OK)
        return err->code;
    if (in->timer != NULL)
        return (in->traits & MOESIM_PREFETCHES) != 0 ? land_timed(in, err) : MOESIM_OK;
    if (in->prefetch->paused || in->prefetch->begin[layer] == in->prefetch->begin[layer + 1])
        return MOESIM_OK;
    return land(in, layer, err);
}

moesim_code moesim_prefetch_visit(moesim_instance *in, moesim_visitor *v, moesim_error *err)
{
    struct moesim_prefetcher *f = in->prefetch;
    const size_t layers = in->shape.num_layers;
    if (v->visit(v, &f->n, sizeof f->n, err) != MOESIM_OK || f->n > f->answer.capacity ||
        v->visit(v, f->begin, (layers + 1) * sizeof *f->begin, err) != MOESIM_OK ||
        v->visit(v, f->pending, layers * in->shape.words * sizeof *f->pending, err) != MOESIM_OK ||
        v->visit(v, &f->paused, sizeof f->paused, err) != MOESIM_OK)
        return err->code != MOESIM_OK ? err->code
                                      : moesim_fail(err, MOESIM_E_FORMAT, "the checkpoint holds too long a prefetch list");
    return f->n > 0 ? v->visit(v, f->list, f->n * sizeof *f->list, err) : MOESIM_OK;
}
