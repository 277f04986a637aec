/* SPDX-License-Identifier: Apache-2.0
 *
 * See witness.h.
 */
#include "tests/property/witness_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEVER 1e18

static const char *const names[RULES] = {"naive", "lru", "lfu", "lfru", "oled", "oled:confidence=none",
                                         "oled:confidence=hindsight", "surv:boundary=commit", "belady", "belady-forced"};

static const double survival[3][8] = {{2.2, 1.9, 1.7, 1.5, 1.3, 1.1, .9, .65},
                                      {4.4, 3.6, 3.0, 2.55, 2.15, 1.75, 1.4, .95},
                                      {6.8, 5.7, 5.0, 4.35, 3.8, 3.2, 2.5, 1.6}};

struct seen {                    /* what an event shows, by expert */
    bool active[1024];
    double mass[1024], survive[1024], masked[1024];
    bool first;
    int kind;
};

struct layer {
    bool resident[1024];
    bool moved[1024];            /* by the previous step, to be judged in the next */
    bool moved_counted;
    bool open[1024];             /* moved in a counted step, resident, not hit since */
    double last[1024], count[1024], q[1024], f[1024], h[1024], k[1024];
};

/* Row of the same position in the previous pass of the block, or SIZE_MAX. */
static size_t row_before(const struct witness_run *r, size_t p, size_t row)
{
    if (r->previous[p] == SIZE_MAX || pass_of(r, p)->kind == MOESIM_PASS_PREFILL)
        return SIZE_MAX;
    const moesim_pass *before = pass_of(r, r->previous[p]);
    for (size_t i = before->row_begin; i < before->row_end; i++)
        if (r->t->position[i] == r->t->position[row])
            return i;
    return SIZE_MAX;
}

static bool input_masked(const struct witness_run *r, size_t p, size_t row)
{
    return pass_of(r, p)->kind != MOESIM_PASS_PREFILL && r->t->state[row] <= MOESIM_STATE_COMMITTED_NOW;
}

static double confidence(const struct witness_run *r, size_t p, size_t row)
{
    size_t before = row_before(r, p, row);
    if (r->rule == OLED_NONE || pass_of(r, p)->kind != MOESIM_PASS_DENOISE)
        return 1;
    if (r->rule == OLED_HINDSIGHT)
        return r->t->state[row] != MOESIM_STATE_MASKED || isnan(r->t->confidence[row]) ? 1 : (double)r->t->confidence[row];
    if (before == SIZE_MAX || r->t->state[before] != MOESIM_STATE_MASKED || isnan(r->t->confidence[before]))
        return 1;
    return (double)r->t->confidence[before];
}

static int class_of(const struct witness_run *r, size_t p, size_t row)
{
    size_t before = row_before(r, p, row);
    if (input_masked(r, p, row))
        return 0;
    return before != SIZE_MAX && (r->t->state[before] == MOESIM_STATE_COMMITTED_NOW ||
                                  r->t->state[before] == MOESIM_STATE_EDITED) ? 1 : 2;
}

static void look_row(const struct witness_run *r, size_t p, size_t row, uint32_t l, bool gates_only, struct seen *s)
{
    double c = gates_only ? 1 : confidence(r, p, row);
    int class = class_of(r, p, row);
    for (uint32_t i = 0; i < r->k; i++) {
        size_t at = (row * r->m + l) * r->k + i;
        uint16_t id = r->t->expert[at];
        if (id == MOESIM_NO_ROUTE)
            continue;
        s->active[id] = true;
        s->mass[id] += (double)r->t->gate[at] * c;
        s->survive[id] += survival[class][i < 7 ? i : 7];
        s->masked[id] += input_masked(r, p, row);
    }
}

static double total(const struct witness_run *r, const double *x)
{
    double sum = 0;
    for (uint32_t e = 0; e < r->e; e++)
        sum += x[e];
    return sum;
}

static void look(const struct witness_run *r, const struct witness_step *step, uint32_t l, struct seen *s)
{
    for (int gates_only = 0; gates_only < 2; gates_only++) {
        memset(s, 0, sizeof *s);
        for (size_t i = 0; i < step->n; i++) {
            size_t p = step->pass[i];
            const moesim_pass *pass = pass_of(r, p);
            for (size_t row = pass->row_begin; row < pass->row_end; row++)
                look_row(r, p, row, l, gates_only, s);
            s->first = s->first || (pass->kind != MOESIM_PASS_PREFILL && r->previous[p] == SIZE_MAX &&
                                    pass->row_end > pass->row_begin);
            if (i == 0 || pass->kind == MOESIM_PASS_DENOISE ||
                (pass->kind == MOESIM_PASS_COMMIT && s->kind == MOESIM_PASS_PREFILL))
                s->kind = pass->kind;
        }
        if (total(r, s->mass) > 0)
            return;
    }
}

/* Step of the next use of an expert where that is counted, else NEVER. */
static double next_use(const struct witness_run *r, size_t now, uint32_t l, uint32_t expert)
{
    for (size_t s = now + 1; s < r->steps; s++)
        for (size_t i = 0; i < r->step[s].n; i++) {
            const moesim_pass *pass = pass_of(r, r->step[s].pass[i]);
            for (size_t at = (pass->row_begin * r->m + l) * r->k; at < pass->row_end * r->m * r->k; at++)
                if (at / r->k % r->m == l && r->t->expert[at] == expert)
                    return witness_counted(r, &r->step[s]) ? (double)s : NEVER;
        }
    return NEVER;
}

static void learn(const struct witness_run *r, size_t now, const struct seen *s, struct layer *at)
{
    bool prefill = s->kind == MOESIM_PASS_PREFILL;
    double keep = prefill ? pow(.95, 8) : .95, add = prefill ? 1 - keep : .05;
    for (uint32_t e = 0; e < r->e; e++) {
        at->f[e] = keep * at->f[e] + (s->active[e] ? add : 0);
        if (s->kind == MOESIM_PASS_DENOISE) {
            at->k[e] = .9 * at->k[e] + .1 * fmin(s->masked[e], 4) / 4;
            if (s->first)
                at->h[e] = .9 * at->h[e] + (s->active[e] ? .1 : 0);
        }
        if (s->active[e]) {
            at->last[e] = (double)(now + 1);
            at->count[e]++;
        }
    }
}

static double value_of(const struct witness_run *r, size_t now, uint32_t l, uint32_t e, const struct seen *s,
                       const struct layer *at, double *tie)
{
    double mass = total(r, s->mass);
    *tie = r->rule == NAIVE || r->rule == LRU || r->rule >= BELADY ? 0 : at->last[e];
    switch (r->rule) {
    case NAIVE: return s->active[e];
    case LRU: return at->last[e];
    case LFU: return at->count[e];
    case LFRU: return at->count[e] / ((double)(now + 1) - at->last[e] + 1);
    case SURV:
        return s->kind == MOESIM_PASS_DENOISE ? s->survive[e] + .05 * (at->h[e] + at->k[e]) + .3 * at->f[e]
                                              : 10 * (at->h[e] + at->k[e]) + .3 * at->f[e];
    case BELADY: return -next_use(r, now, l, e);
    case FORCED: *tie = -next_use(r, now, l, e); return s->active[e];
    default: *tie += at->q[e] / 2; return mass > 0 ? s->mass[e] / mass : 0;
    }
}

struct candidate { double value, tie; bool resident; uint32_t id; };

static int better(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    if (a->tie != b->tie)
        return a->tie > b->tie ? -1 : 1;
    if (a->resident != b->resident)
        return a->resident ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static void retain(const struct witness_run *r, size_t now, uint32_t l, const struct seen *s, struct layer *at,
                   struct witness *w)
{
    struct candidate c[1024];
    size_t n = 0;
    learn(r, now, s, at);
    for (uint32_t e = 0; e < r->e; e++)
        if (s->active[e] || at->resident[e]) {
            c[n] = (struct candidate){.resident = at->resident[e], .id = e};
            c[n].value = value_of(r, now, l, e, s, at, &c[n].tie);
            n++;
        }
    double mass = total(r, s->mass);
    for (uint32_t e = 0; e < r->e; e++)
        if (mass > 0 && s->mass[e] > 0)
            at->q[e] = s->mass[e] / mass;
    qsort(c, n, sizeof c[0], better);
    for (size_t i = 0; i < n; i++) {
        bool stays = i < r->slots;
        w->insertions += stays && !c[i].resident;
        w->evictions += !stays && c[i].resident;
        w->unused += !stays && at->open[c[i].id];
        at->open[c[i].id] = stays && at->open[c[i].id];
        at->resident[c[i].id] = stays;
    }
}

/* Of what the previous step moved: how much is still there and activated now. */
static void judge(const struct witness_run *r, const struct seen *s, struct layer *at, struct witness *w)
{
    for (uint32_t e = 0; e < r->e && at->moved_counted; e++)
        if (at->moved[e]) {
            w->judged++;
            w->used += at->resident[e] && s->active[e];
        }
}

static void replay(const struct witness_run *r, size_t now, uint32_t l, struct layer *at, struct witness *w)
{
    struct seen s;
    look(r, &r->step[now], l, &s);
    double active = 0, hits = 0, c = r->slots, bytes;
    bool count = witness_counted(r, &r->step[now]);
    judge(r, &s, at, w);
    for (uint32_t e = 0; e < r->e; e++) {
        active += s.active[e];
        hits += s.active[e] && at->resident[e];
        at->moved[e] = s.active[e] && !at->resident[e];
        at->open[e] = s.active[e] ? at->moved[e] && count : at->open[e];
    }
    at->moved_counted = count;
    bytes = (active - hits) * (double)r->t->expert_bytes[l];
    w->accesses += (uint64_t)active;
    w->all_hits += (uint64_t)hits;
    w->read_bytes += (uint64_t)bytes;
    if (count) {
        w->events++;
        w->active += active;
        w->hits += hits;
        w->misses += active - hits;
        w->floor += fmax(0, active - c);
        w->bytes += bytes;
        w->ratio_over += active > c;
        w->utilisation += c > 0 ? hits / c : 0;
        w->most += c > 0 ? fmin(1, active / c) : 0;
        w->ratio_sum += c > 0 ? active / c : 0;
    } else if (s.kind == MOESIM_PASS_PREFILL &&
               pass_of(r, r->step[now].pass[0])->request >= r->params->request_begin + r->params->warmup) {
        w->prefill_misses += active - hits;
        w->prefill_bytes += bytes;
        w->prefill_passes += l == 0;
    }
    retain(r, now, l, &s, at, w);
}

static void count_tokens(const struct witness_run *r, struct witness *w)
{
    for (size_t p = 0; p < r->t->num_passes; p++) {
        const moesim_pass *pass = pass_of(r, p);
        if (!witness_usable(r, p) || pass->request < r->params->request_begin + r->params->warmup)
            continue;
        for (size_t i = pass->row_begin; i < pass->row_end && !r->t->info.has_output_tokens; i++)
            w->tokens += r->t->state[i] == MOESIM_STATE_COMMITTED_NOW;
    }
    for (size_t q = r->params->request_begin + r->params->warmup;
         q < r->t->num_requests && q < r->params->request_end && r->t->info.has_output_tokens; q++)
        w->tokens += r->t->request[q].output_tokens;
}

void witness_run(const struct test_trace *t, const char *policy, uint32_t slots, const moesim_run_params *params,
                 struct witness *out)
{
    struct witness_run r = {.t = t, .m = t->info.num_layers, .e = t->info.num_experts, .k = t->info.top_k, .slots = slots,
                    .params = params};
    while (r.rule < RULES && strcmp(names[r.rule], policy) != 0)
        r.rule++;
    r.step = calloc(t->num_passes + 1, sizeof *r.step);
    r.previous = calloc(t->num_passes + 1, sizeof *r.previous);
    struct layer *layer = malloc(sizeof *layer);
    if (r.rule == RULES || r.step == NULL || r.previous == NULL || layer == NULL)
        test_die("the witness cannot run %s", policy);
    memset(out, 0, sizeof *out);
    witness_plan(&r);
    for (size_t s = 0; s < r.steps; s++)
        out->passes += witness_counted(&r, &r.step[s]);
    for (uint32_t l = 0; l < r.m; l++) {
        memset(layer, 0, sizeof *layer);
        for (size_t s = 0; s < r.steps; s++)
            replay(&r, s, l, layer, out);
        for (uint32_t e = 0; e < r.e; e++)
            out->pending += layer->open[e];
    }
    count_tokens(&r, out);
    free(layer);
    free(r.step);
    free(r.previous);
}
