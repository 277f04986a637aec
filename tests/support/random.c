/* SPDX-License-Identifier: Apache-2.0
 *
 * Random traces: requests of a prefill and blocks that are denoised by confidence, with routes that persist by position.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

/* One request in the making. */
struct stream {
    uint32_t request, block, step;
    uint32_t passes_left;        /* of the current block */
    bool prefilled, done;
    bool commit_due;
    int32_t position;            /* first position of the current block */
    uint8_t *input;              /* [B] 0 masked, 1 committed */
    uint16_t *ids;               /* [B][M][K] routes of the previous pass */
};

struct maker {
    struct test_trace *t;
    const struct test_shape *s;
    moesim_rng rng;
    uint32_t m, e, k, b;
};

static bool chance(struct maker *g, double p)
{
    return moesim_rng_real(&g->rng) < p;
}

/* Values in (0, 1] that f16 holds exactly. */
static float exact(struct maker *g)
{
    return (float)(1 + moesim_rng_below(&g->rng, 1024)) / 1024.0f;
}

static bool holds(const uint16_t *ids, uint32_t k, uint32_t id)
{
    for (uint32_t i = 0; i < k; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Draws slot i anew among the experts that the row does not hold; low ids are likelier. */
static void draw(struct maker *g, uint16_t *ids, uint32_t i)
{
    uint32_t id = moesim_rng_below(&g->rng, 1 + moesim_rng_below(&g->rng, g->e));
    ids[i] = (uint16_t)MOESIM_NO_ROUTE;
    while (holds(ids, g->k, id))
        id = (id + 1) % g->e;
    ids[i] = (uint16_t)id;
}

static void redraw(struct maker *g, uint16_t *ids, double p)
{
    for (uint32_t i = 0; i < g->k; i++)
        if (ids[i] == MOESIM_NO_ROUTE || chance(g, p))
            draw(g, ids, i);
}

/* Writes the routes of one row: ids [M][K] (kept by the caller), random gates in descending order of slot. */
static void fill_row(struct maker *g, size_t row, const uint16_t *ids)
{
    for (uint32_t l = 0; l < g->m; l++) {
        bool cut = g->s->unused_slots && chance(g, 0.1);
        uint32_t n = cut ? moesim_rng_below(&g->rng, g->k + 1) : g->k;
        test_trace_route(g->t, row, l, n, ids + (size_t)l * g->k);
        float *gate = test_trace_gates(g->t, row, l);
        float high = exact(g);
        for (uint32_t i = 0; i < g->k; i++) {
            gate[i] = high;
            if (chance(g, 0.7) && high > 2.0f / 1024.0f)
                high -= 1.0f / 1024.0f;
        }
    }
}

static void random_rows(struct maker *g, size_t pass)
{
    uint16_t *ids = malloc((size_t)g->m * g->k * sizeof *ids);
    if (ids == NULL)
        test_die("no memory");
    const moesim_pass *p = &g->t->pass[pass].pass;
    memset(ids, 0xff, (size_t)g->m * g->k * sizeof *ids);
    for (size_t row = p->row_begin; row < p->row_end; row++) {
        for (uint32_t l = 0; l < g->m; l++)
            redraw(g, ids + (size_t)l * g->k, 0.5);
        fill_row(g, row, ids);
    }
    free(ids);
}

static void begin_block(struct maker *g, struct stream *r)
{
    memset(r->input, 0, g->b);
    memset(r->ids, 0xff, (size_t)g->b * g->m * g->k * sizeof *r->ids);
    r->step = 0;
    r->passes_left = g->s->max_steps == 0 ? 1 : g->s->max_steps;
    r->commit_due = false;
}

static void end_block(struct maker *g, struct stream *r)
{
    r->block++;
    r->position += (int32_t)g->b;
    if (r->block >= g->s->blocks)
        r->done = true;
    else
        begin_block(g, r);
}

/* The index of the masked row of highest confidence, committed whatever the threshold; B where none is masked. */
static uint32_t best_masked(struct maker *g, const struct stream *r, size_t first)
{
    uint32_t best = g->b;
    for (uint32_t i = 0; i < g->b; i++)
        if (r->input[i] == 0 && (best == g->b || g->t->confidence[first + i] > g->t->confidence[first + best]))
            best = i;
    return best;
}

static void denoise(struct maker *g, struct stream *r, size_t pass)
{
    size_t first = test_trace_row(g->t, pass);
    bool last = --r->passes_left == 0, masked_left = false;
    for (uint32_t i = 0; i < g->b; i++) {
        uint16_t *ids = r->ids + (size_t)i * g->m * g->k;
        for (uint32_t l = 0; l < g->m; l++)
            redraw(g, ids + (size_t)l * g->k, g->s->redraw);
        fill_row(g, first + i, ids);
        g->t->confidence[first + i] = chance(g, 0.05) ? NAN : chance(g, 0.05) ? 0.0f : exact(g);
    }
    uint32_t best = best_masked(g, r, first);
    for (uint32_t i = 0; i < g->b; i++) {
        float c = g->t->confidence[first + i];
        bool commit = r->input[i] == 0 && (last || i == best || c >= 0.875f);
        uint8_t held = g->s->edits && chance(g, 0.05) ? MOESIM_STATE_EDITED : MOESIM_STATE_COMMITTED;
        g->t->state[first + i] = commit ? MOESIM_STATE_COMMITTED_NOW : r->input[i] ? held : MOESIM_STATE_MASKED;
        r->input[i] = r->input[i] || commit;
        masked_left = masked_left || !r->input[i];
    }
    if (masked_left)
        return;
    if (g->s->commit_passes)
        r->commit_due = true;
    else
        end_block(g, r);
}

/* Passes that carry nothing, of the block at hand. */
static void extras(struct maker *g, const struct stream *r)
{
    int32_t block = (int32_t)r->block, step = (int32_t)r->step;
    if (g->s->empty_passes && chance(g, 0.08))
        test_trace_add_pass(g->t, r->request, MOESIM_PASS_DENOISE, block, step, 0, r->position);
    if (g->s->empty_passes && chance(g, 0.08))
        test_trace_add_pass(g->t, r->request, MOESIM_PASS_DENOISE, block, step, 1, r->position);
    if (g->s->dummy_passes && chance(g, 0.1))
        random_rows(g, test_trace_add_pass(g->t, r->request, MOESIM_PASS_DUMMY, block, step, g->b, r->position));
}

static void advance(struct maker *g, struct stream *r)
{
    if (!r->prefilled) {
        r->prefilled = true;
        if (g->s->prefill_rows > 0) {
            random_rows(g, test_trace_add_pass(g->t, r->request, MOESIM_PASS_PREFILL, -1, 0, g->s->prefill_rows, 0));
            return;
        }
    }
    extras(g, r);
    uint8_t kind = r->commit_due ? MOESIM_PASS_COMMIT : MOESIM_PASS_DENOISE;
    size_t pass = test_trace_add_pass(g->t, r->request, kind, (int32_t)r->block, (int32_t)r->step, g->b, r->position);
    r->step++;
    if (kind == MOESIM_PASS_DENOISE) {
        denoise(g, r, pass);
        return;
    }
    random_rows(g, pass);
    end_block(g, r);
}

/* Consecutive decode passes of different requests get one forward number, in groups of at most `most`. */
static void group_forward(struct test_trace *t, uint32_t most)
{
    uint64_t forward = 0, in_group = 0;
    t->info.has_forward = true;
    for (size_t p = 0; p < t->num_passes; p++) {
        const moesim_pass *a = &t->pass[p].pass;
        bool joins = p > 0 && in_group < most && a->kind != MOESIM_PASS_PREFILL && a->kind != MOESIM_PASS_DUMMY;
        for (size_t j = p; joins && j > 0 && j > p - in_group; j--) {
            const moesim_pass *o = &t->pass[j - 1].pass;
            joins = o->request != a->request && o->kind != MOESIM_PASS_PREFILL && o->kind != MOESIM_PASS_DUMMY;
        }
        forward += p > 0 && !joins;
        in_group = joins ? in_group + 1 : 1;
        t->pass[p].pass.forward = forward;
    }
}

static void start_streams(struct maker *g, struct stream *r)
{
    for (uint32_t q = 0; q < g->s->requests; q++) {
        memset(&r[q], 0, sizeof r[q]);
        r[q].request = test_trace_add_request(g->t, q % 2 ? "odd" : "even", g->s->prefill_rows, -1);
        r[q].position = (int32_t)g->s->prefill_rows;
        r[q].input = calloc(g->b, 1);
        r[q].ids = calloc((size_t)g->b * g->m * g->k, sizeof *r[q].ids);
        if (r[q].input == NULL || r[q].ids == NULL)
            test_die("no memory");
        begin_block(g, &r[q]);
        r[q].done = g->s->blocks == 0;
    }
}

void test_trace_random(struct test_trace *t, const struct test_shape *s, uint64_t seed)
{
    struct maker g = {.t = t, .s = s, .m = s->layers, .e = s->experts, .k = s->top_k, .b = s->block_length};
    moesim_rng_seed(&g.rng, seed);
    test_trace_init(t, s->layers, s->experts, s->top_k, s->block_length);
    struct stream *r = calloc(s->requests + 1, sizeof *r);
    if (r == NULL)
        test_die("no memory");
    start_streams(&g, r);
    for (uint32_t q = 0, left = s->requests; left > 0;) {
        if (!r[q].done)
            advance(&g, &r[q]);
        left = 0;
        for (uint32_t i = 0; i < s->requests; i++)
            left += !r[i].done;
        if (s->interleave || r[q].done)
            q = (q + 1) % s->requests;
    }
    if (s->forward_groups > 1)
        group_forward(t, s->forward_groups);
    for (uint32_t q = 0; q < s->requests; q++) {
        free(r[q].input);
        free(r[q].ids);
    }
    free(r);
}
