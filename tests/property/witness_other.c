/* SPDX-License-Identifier: Apache-2.0
 *
 * The witness for the other ways to replay: one access at a time, and one budget in bytes over all layers.
 */
#include "tests/property/witness_steps.h"

#include <stdlib.h>
#include <string.h>

/* One expert of one layer. */
struct item {
    bool resident, active, now;  /* now: active in the event at hand */
    uint64_t last;               /* serial of the last touch */
    double count, next;          /* events that activated it; step·M + layer of the next counted use, or 1e18 */
};

struct other {
    struct witness_run run;
    struct item *item;           /* [M][E] */
    uint64_t touches, bytes, budget;
    char rule;                   /* r lru, f lfu, b belady */
    struct witness *out;
};

static void open_other(struct other *o, const struct test_trace *t, const moesim_run_params *params, struct witness *out)
{
    memset(o, 0, sizeof *o);
    memset(out, 0, sizeof *out);
    o->run = (struct witness_run){.t = t, .m = t->info.num_layers, .e = t->info.num_experts, .k = t->info.top_k,
                                  .params = params};
    o->run.step = calloc(t->num_passes + 1, sizeof *o->run.step);
    o->run.previous = calloc(t->num_passes + 1, sizeof *o->run.previous);
    o->item = calloc((size_t)o->run.m * o->run.e, sizeof *o->item);
    o->out = out;
    if (o->run.step == NULL || o->run.previous == NULL || o->item == NULL)
        test_die("no memory");
    witness_plan(&o->run);
}

static void close_other(struct other *o)
{
    free(o->run.step);
    free(o->run.previous);
    free(o->item);
}

typedef void touch_fn(struct other *o, size_t step, uint32_t layer, uint32_t expert);

/* All routes of (step, layer): rows in order, then slots. */
static void each_route(struct other *o, size_t step, uint32_t layer, touch_fn *touch)
{
    const struct witness_run *r = &o->run;
    for (size_t i = 0; i < r->step[step].n; i++) {
        const moesim_pass *pass = pass_of(r, r->step[step].pass[i]);
        for (size_t row = pass->row_begin; row < pass->row_end; row++)
            for (uint32_t k = 0; k < r->k; k++) {
                uint16_t id = r->t->expert[(row * r->m + layer) * r->k + k];
                if (id != MOESIM_NO_ROUTE)
                    touch(o, step, layer, id);
            }
    }
}

static void count_access(struct other *o, size_t step, bool hit)
{
    bool counted = witness_counted(&o->run, &o->run.step[step]);
    o->out->accesses++;
    o->out->all_hits += hit;
    o->out->active += counted;
    o->out->hits += counted && hit;
}

/* ---- one access at a time ---------------------------------------------------------------------------------------- */

static void flat_touch(struct other *o, size_t step, uint32_t layer, uint32_t expert)
{
    struct item *items = o->item + (size_t)layer * o->run.e, *it = &items[expert], *oldest = NULL;
    if (it->now)
        return;
    it->now = true;
    count_access(o, step, it->resident);
    it->resident = true;
    it->last = ++o->touches;
    uint32_t held = 0;
    for (uint32_t e = 0; e < o->run.e; e++) {
        held += items[e].resident;
        if (items[e].resident && (oldest == NULL || items[e].last < oldest->last))
            oldest = &items[e];
    }
    if (held > o->run.slots)
        oldest->resident = false;
}

void witness_flattened(const struct test_trace *t, uint32_t slots, const moesim_run_params *params, struct witness *out)
{
    struct other o;
    open_other(&o, t, params, out);
    o.run.slots = slots;
    for (size_t s = 0; s < o.run.steps; s++)
        for (uint32_t l = 0; l < o.run.m; l++) {
            each_route(&o, s, l, flat_touch);
            for (uint32_t e = 0; e < o.run.e; e++)
                o.item[(size_t)l * o.run.e + e].now = false;
        }
    close_other(&o);
}

/* ---- one budget ---------------------------------------------------------------------------------------------------- */

static void mark(struct other *o, size_t step, uint32_t layer, uint32_t expert)
{
    (void)step;
    struct item *it = &o->item[(size_t)layer * o->run.e + expert];
    it->now = true;
    it->last = ++o->touches;
}

static void note_use(struct other *o, size_t step, uint32_t layer, uint32_t expert)
{
    o->item[(size_t)layer * o->run.e + expert].next =
        witness_counted(&o->run, &o->run.step[step]) ? (double)step * o->run.m + layer : 1e18;
}

/* Next uses after `step` of all experts of a layer; walking backwards, the nearest use is noted last. */
static void look_ahead(struct other *o, size_t step, uint32_t layer)
{
    for (uint32_t e = 0; e < o->run.e; e++)
        o->item[(size_t)layer * o->run.e + e].next = 1e18;
    for (size_t s = o->run.steps; s > step + 1; s--)
        each_route(o, s - 1, layer, note_use);
}

/* Is a evicted before b? */
static bool worse(const struct other *o, const struct item *a, const struct item *b)
{
    if (o->rule == 'b' && a->next != b->next)
        return a->next > b->next;
    if (o->rule == 'b')
        return a > b;            /* never used again: the later layer and the higher id first */
    if (o->rule == 'f' && a->count != b->count)
        return a->count < b->count;
    return a->last < b->last;
}

static void shrink(struct other *o)
{
    size_t n = (size_t)o->run.m * o->run.e;
    while (o->bytes > o->budget) {
        struct item *victim = NULL;
        for (size_t i = 0; i < n; i++)
            if (o->item[i].resident && !o->item[i].now && (victim == NULL || worse(o, &o->item[i], victim)))
                victim = &o->item[i];
        if (victim == NULL)
            return;
        victim->resident = false;
        o->out->evictions++;
        o->bytes -= o->run.t->expert_bytes[(size_t)(victim - o->item) / o->run.e];
    }
}

static void global_event(struct other *o, size_t step, uint32_t layer)
{
    uint64_t bytes = o->run.t->expert_bytes[layer];
    each_route(o, step, layer, mark);
    for (uint32_t e = 0; e < o->run.e; e++) {
        struct item *it = &o->item[(size_t)layer * o->run.e + e];
        if (!it->now)
            continue;
        count_access(o, step, it->resident);
        o->bytes += it->resident ? 0 : bytes;
        o->out->read_bytes += it->resident ? 0 : bytes;
        o->out->insertions += !it->resident;
        it->resident = true;
        it->count++;
    }
    if (o->rule == 'b')
        look_ahead(o, step, layer);
    shrink(o);
    for (uint32_t e = 0; e < o->run.e; e++)
        o->item[(size_t)layer * o->run.e + e].now = false;
}

void witness_global(const struct test_trace *t, const char *policy, uint64_t bytes, const moesim_run_params *params,
                    struct witness *out)
{
    struct other o;
    open_other(&o, t, params, out);
    o.budget = bytes;
    o.rule = strcmp(policy, "lru") == 0 ? 'r' : strcmp(policy, "lfu") == 0 ? 'f' : 'b';
    for (size_t s = 0; s < o.run.steps; s++)
        for (uint32_t l = 0; l < o.run.m; l++)
            global_event(&o, s, l);
    close_other(&o);
}
