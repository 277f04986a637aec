/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows built by hand.
 */
#include "tests/unit/sim/hand.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"

static void *need(size_t n, size_t each)
{
    void *p = calloc(n + 1, each);
    if (p == NULL) {
        fprintf(stderr, "hand: no memory\n");
        abort();
    }
    return p;
}

void hand_init(struct hand *h, uint32_t steps, uint32_t layers, uint32_t experts, uint32_t rows, uint32_t top_k)
{
    const size_t routes = (size_t)steps * rows * layers * top_k, all = (size_t)steps * rows;
    memset(h, 0, sizeof *h);
    h->steps = steps;
    h->layers = layers;
    h->experts = experts;
    h->rows = rows;
    h->top_k = top_k;
    h->id = need(routes, sizeof *h->id);
    h->gate = need(routes, sizeof *h->gate);
    h->kind = need(steps, sizeof *h->kind);
    h->request = need(steps, sizeof *h->request);
    h->input = need(all, sizeof *h->input);
    h->before = need(all, sizeof *h->before);
    h->produced = need(all, sizeof *h->produced);
    h->expert_bytes = need(layers, sizeof *h->expert_bytes);
    for (size_t i = 0; i < routes; i++) {
        h->id[i] = MOESIM_NO_ROUTE;
        h->gate[i] = 1.0f / (float)top_k;
    }
    for (size_t i = 0; i < all; i++)
        h->before[i] = h->produced[i] = NAN;
    for (uint32_t s = 0; s < steps; s++)
        h->kind[s] = MOESIM_DENOISE;
    for (uint32_t l = 0; l < layers; l++)
        h->expert_bytes[l] = 1000;
}

static void drop_window(struct hand *h)
{
    moesim_window *w = &h->window;
    void *list[] = {w->step,   w->member, w->active,     w->list_begin,     w->list,           w->count,
                    w->mass,   w->weighted, w->hindsight, w->class_sum,      w->masked,         w->next_use,
                    w->touch,  w->mass_total, w->weighted_total, w->hindsight_total, (void *)(uintptr_t)w->next_active,
                    w->sequence, w->row, w->produced, w->state};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        free(list[i]);
    memset(w, 0, sizeof *w);
}

void hand_fini(struct hand *h)
{
    drop_window(h);
    void *list[] = {h->id, h->gate, h->kind, h->request, h->input, h->before, h->produced, h->expert_bytes};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        free(list[i]);
    memset(h, 0, sizeof *h);
}

static size_t route(const struct hand *h, uint32_t step, uint32_t row, uint32_t layer)
{
    return (((size_t)step * h->rows + row) * h->layers + layer) * h->top_k;
}

uint16_t *hand_ids(struct hand *h, uint32_t step, uint32_t row, uint32_t layer)
{
    return h->id + route(h, step, row, layer);
}

void hand_set(struct hand *h, uint32_t step, const char *digits)
{
    for (uint32_t l = 0; l < h->layers; l++)
        for (size_t i = 0; i < strlen(digits) && i < h->top_k; i++)
            hand_ids(h, step, 0, l)[i] = (uint16_t)(digits[i] - '0');
}

/* ---- the window ----------------------------------------------------------------------------------------------------- */

static void build_steps(struct hand *h)
{
    moesim_window *w = &h->window;
    uint64_t decode = 0;
    for (uint32_t s = 0; s < h->steps; s++) {
        const bool prefill = h->kind[s] == MOESIM_PREFILL;
        decode += !prefill;
        w->step[s] = (moesim_step){.clock = s + 1u, .pass = s, .decode_passes = decode, .kind = h->kind[s],
                                   .decode = !prefill, .counted = !prefill && h->request[s] >= h->warmup,
                                   .num_rows = h->rows, .row = s * h->rows, .num_requests = 1, .member = s};
        w->member[s] = (moesim_member){.request = h->request[s],
                                       .starts = s == 0 || h->request[s - 1] != h->request[s],
                                       .ends = s + 1 == h->steps || h->request[s + 1] != h->request[s]};
        for (uint32_t r = 0; r < h->rows; r++) {
            const size_t i = (size_t)s * h->rows + r;
            w->row[i] = (moesim_row){.request = h->request[s], .position = (int32_t)r, .block = 0, .step = (int32_t)s,
                                     .kind = (uint8_t)h->kind[s], .input = h->input[i], .confidence = h->before[i],
                                     .expert = h->id + route(h, s, r, 0), .gate = h->gate + route(h, s, r, 0)};
            w->produced[i] = h->produced[i];
            w->state[i] = 2;
            w->step[s].num_masked += h->input[i] == MOESIM_ROW_MASKED;
        }
    }
}

/* Adds one route to the sums of its event, which begin at `at`. */
static void add_route(struct hand *h, size_t event, uint32_t row, uint32_t rank, const uint32_t *place)
{
    moesim_window *w = &h->window;
    const uint32_t step = (uint32_t)(event / h->layers), layer = (uint32_t)(event % h->layers);
    const size_t i = (size_t)step * h->rows + row, r = route(h, step, row, layer) + rank;
    const uint32_t at = place[h->id[r]];
    const double gate = (double)h->gate[r];
    const double lag = isnan(h->before[i]) ? 1 : (double)h->before[i];
    const double own = isnan(h->produced[i]) ? 1 : (double)h->produced[i];
    w->count[at]++;
    w->mass[at] += gate;
    w->weighted[at] += gate * lag;
    w->hindsight[at] += gate * own;
    w->mass_total[event] += gate;
    w->weighted_total[event] += gate * lag;
    w->hindsight_total[event] += gate * own;
    w->masked[at] += h->input[i] == MOESIM_ROW_MASKED;
    if (h->class_weight != NULL)
        w->class_sum[at] += h->class_weight[h->input[i] * 8u + (rank < 7 ? rank : 7)];
}

static uint32_t build_event(struct hand *h, size_t event, uint32_t begin, uint64_t *serial)
{
    moesim_window *w = &h->window;
    const uint32_t step = (uint32_t)(event / h->layers), layer = (uint32_t)(event % h->layers);
    uint64_t *active = w->active + event * w->words;
    uint32_t place[1024], n = 0, first = 0;
    for (uint32_t r = 0; r < h->rows; r++)
        for (uint32_t k = 0; k < h->top_k; k++) {
            const uint16_t e = hand_ids(h, step, r, layer)[k];
            if (e == MOESIM_NO_ROUTE || moesim_bit_test(active, e))
                continue;
            moesim_bit_set(active, e);
            w->sequence[begin + first++] = e;
        }
    MOESIM_EACH_BIT(e, active, w->words, {
        place[e] = begin + n;
        w->list[begin + n++] = (uint16_t)e;
    });
    for (uint32_t r = 0; r < h->rows; r++)
        for (uint32_t k = 0; k < h->top_k; k++) {
            const uint16_t e = hand_ids(h, step, r, layer)[k];
            if (e == MOESIM_NO_ROUTE)
                continue;
            add_route(h, event, r, k, place);
            w->touch[place[e]] = ++*serial;
        }
    return begin + n;
}

/* Backwards: the next event of the layer that activates the expert, if it is counted. */
static void build_next_use(struct hand *h)
{
    moesim_window *w = &h->window;
    uint64_t *next = need((size_t)h->layers * h->experts, sizeof *next);
    for (size_t i = 0; i < (size_t)h->layers * h->experts; i++)
        next[i] = MOESIM_NEVER;
    for (size_t event = (size_t)h->steps * h->layers; event-- > 0;) {
        const moesim_step *step = &w->step[event / h->layers];
        uint64_t *of = next + (event % h->layers) * h->experts;
        for (uint32_t i = w->list_begin[event]; i < w->list_begin[event + 1]; i++) {
            w->next_use[i] = of[w->list[i]];
            of[w->list[i]] = step->counted ? step->clock : MOESIM_NEVER;
        }
    }
    free(next);
}

void hand_build(struct hand *h)
{
    moesim_window *w = &h->window;
    const size_t events = (size_t)h->steps * h->layers, all = (size_t)h->steps * h->rows;
    const uint32_t words = moesim_words(h->experts);
    const size_t widest = h->rows * h->top_k < h->experts ? h->rows * h->top_k : h->experts, pool = events * widest;
    drop_window(h);
    w->num_steps = h->steps;
    w->num_layers = h->layers;
    w->num_experts = h->experts;
    w->top_k = h->top_k;
    w->words = words;
    w->step = need(h->steps, sizeof *w->step);
    w->member = need(h->steps, sizeof *w->member);
    w->active = need(events * words, sizeof *w->active);
    w->list_begin = need(events + 1, sizeof *w->list_begin);
    w->list = need(pool, sizeof *w->list);
    w->sequence = need(pool, sizeof *w->sequence);
    w->count = need(pool, sizeof *w->count);
    w->masked = need(pool, sizeof *w->masked);
    double **sums[] = {&w->mass, &w->weighted, &w->hindsight, &w->class_sum};
    double **totals[] = {&w->mass_total, &w->weighted_total, &w->hindsight_total};
    for (size_t i = 0; i < 4; i++)
        *sums[i] = need(pool, sizeof(double));
    for (size_t i = 0; i < 3; i++)
        *totals[i] = need(events, sizeof(double));
    w->next_use = need(pool, sizeof *w->next_use);
    w->touch = need(pool, sizeof *w->touch);
    w->next_active = need((size_t)h->layers * words, sizeof *w->active);
    w->row = need(all, sizeof *w->row);
    w->produced = need(all, sizeof *w->produced);
    w->state = need(all, sizeof *w->state);
    build_steps(h);
    uint64_t serial = 0;
    for (size_t event = 0; event < events; event++)
        w->list_begin[event + 1] = build_event(h, event, w->list_begin[event], &serial);
    build_next_use(h);
    h->shape = (moesim_shape){.size = sizeof h->shape, .num_layers = h->layers, .num_experts = h->experts, .top_k = h->top_k,
                              .block_length = h->rows, .words = words, .max_rows = h->rows, .expert_bytes = h->expert_bytes};
}

/* ---- random routes --------------------------------------------------------------------------------------------------- */

static bool holds(const uint16_t *ids, uint32_t n, uint16_t e)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == e)
            return true;
    return false;
}

/* An expert of the pool or, now and then, any. */
static uint16_t draw(const struct hand *h, moesim_rng *rng, const uint16_t *pool, const struct hand_law *law)
{
    if (moesim_rng_real(rng) < law->stray)
        return (uint16_t)moesim_rng_below(rng, h->experts);
    return pool[moesim_rng_below(rng, law->pool)];
}

static void draw_row(struct hand *h, moesim_rng *rng, uint32_t step, uint32_t row, uint32_t layer, const uint16_t *pool,
                     const struct hand_law *law)
{
    uint16_t *ids = hand_ids(h, step, row, layer);
    for (uint32_t k = 0; k < h->top_k; k++) {
        const uint16_t old = step > 0 ? hand_ids(h, step - 1, row, layer)[k] : MOESIM_NO_ROUTE;
        ids[k] = old;
        if (old == MOESIM_NO_ROUTE || moesim_rng_real(rng) < law->redraw || holds(ids, k, old))
            do
                ids[k] = draw(h, rng, pool, law);
            while (holds(ids, k, ids[k]));
    }
}

void hand_random(struct hand *h, const struct hand_law *law, uint64_t seed)
{
    const uint32_t pool = law->pool;
    moesim_rng rng;
    moesim_rng_seed(&rng, seed);
    uint16_t *hot = need((size_t)h->layers * pool, sizeof *hot);
    for (size_t i = 0; i < (size_t)h->layers * pool; i++)
        hot[i] = (uint16_t)moesim_rng_below(&rng, h->experts);
    for (uint32_t s = 0; s < h->steps; s++) {
        for (size_t i = 0; s % 12u == 11u && i < (size_t)h->layers * pool; i++)
            if (moesim_rng_below(&rng, 5) == 0)
                hot[i] = (uint16_t)moesim_rng_below(&rng, h->experts);
        for (uint32_t r = 0; r < h->rows; r++) {
            const size_t row = (size_t)s * h->rows + r;
            h->input[row] = (uint8_t)moesim_rng_below(&rng, 3);
            h->produced[row] = (float)moesim_rng_real(&rng);
            h->before[row] = s > 0 ? h->produced[row - h->rows] : NAN;
            for (uint32_t l = 0; l < h->layers; l++)
                draw_row(h, &rng, s, r, l, hot + (size_t)l * pool, law);
        }
    }
    for (size_t i = 0; i < (size_t)h->steps * h->rows * h->layers * h->top_k; i++)
        h->gate[i] = (float)moesim_rng_real(&rng);
    free(hot);
}

moesim_code hand_run(const struct hand *h, const moesim_run_params *params, const moesim_config *config, moesim_outcome *out,
                     moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT, *e = err != NULL ? err : &local;
    moesim_instance *in = NULL;
    memset(out, 0, sizeof *out);
    moesim_code code = moesim_instance_create(&h->shape, params, config, &in, e);
    if (code == MOESIM_OK)
        code = moesim_instance_advance(in, &h->window, e);
    if (code == MOESIM_OK)
        code = moesim_instance_finish(in, out, e);
    moesim_instance_destroy(&in);
    if (code != MOESIM_OK && err == NULL) {
        fprintf(stderr, "hand: %s\n", e->text);
        abort();
    }
    return code;
}
