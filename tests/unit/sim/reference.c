/* SPDX-License-Identifier: Apache-2.0
 *
 * The slow and obvious way.
 */
#include "tests/unit/sim/reference.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

static const double CLASS_WEIGHT[24] = { 1, 2, 3, 4, 5, 6, 7, 8, .5, .25, .125, 9, 10, 11, 12, 13,
                                         100, 200, 300, 400, 500, 600, 700, 800 };

moesim_window_params ref_params(size_t window_bytes)
{
    return (moesim_window_params){
        .needs = MOESIM_NEED_GATE | MOESIM_NEED_CONFIDENCE | MOESIM_NEED_COUNTS | MOESIM_NEED_MASS | MOESIM_NEED_WEIGHTED |
                 MOESIM_NEED_HINDSIGHT | MOESIM_NEED_CLASS | MOESIM_NEED_ROWS | MOESIM_NEED_PREVIOUS,
        .clairvoyant = true, .touch = true, .sequence = true, .class_weight = CLASS_WEIGHT,
        .request_begin = 0, .request_end = UINT64_MAX, .batch = 1, .window_bytes = window_bytes,
    };
}

static const moesim_pass *pass_of(const struct ref *r, size_t p)
{
    return &r->t->pass[p].pass;
}

static bool chosen(const struct ref *r, size_t p)
{
    const moesim_pass *pass = pass_of(r, p);
    return pass->kind != MOESIM_PASS_DUMMY && pass->request >= r->params.request_begin &&
           pass->request < r->params.request_end;
}

static struct ref_step *new_step(struct ref *r)
{
    r->step = realloc(r->step, (r->n + 1) * sizeof *r->step);
    memset(&r->step[r->n], 0, sizeof *r->step);
    return &r->step[r->n++];
}

static void in_file_order(struct ref *r)
{
    size_t last = 0;             /* the pass looked at before */
    bool joins = false;          /* the last step's forward call goes on */
    for (size_t p = 0; p < r->t->num_passes; p++) {
        joins = joins && r->t->info.has_forward && pass_of(r, p)->forward == pass_of(r, last)->forward;
        last = p;
        if (!chosen(r, p))
            continue;
        struct ref_step *s = joins ? &r->step[r->n - 1] : new_step(r);
        s->pass[s->parts++] = p;
        joins = true;
    }
}

/* The next pass of request q after pass `after` (SIZE_MAX: its first), or SIZE_MAX. */
static size_t next_pass(const struct ref *r, uint32_t q, size_t after)
{
    for (size_t p = after == SIZE_MAX ? 0 : after + 1; p < r->t->num_passes; p++) {
        if (chosen(r, p) && pass_of(r, p)->request == q)
            return p;
    }
    return SIZE_MAX;
}

static void in_slots(struct ref *r)
{
    size_t slot[MOST_PARTS];     /* next pass of the request in each slot */
    uint64_t q = r->params.request_begin;
    for (uint32_t i = 0; i < r->params.batch; i++)
        slot[i] = SIZE_MAX;
    for (;;) {
        struct ref_step *s;
        for (uint32_t i = 0; i < r->params.batch; i++) {
            for (;;) {
                while (slot[i] == SIZE_MAX && q < r->params.request_end && q < r->t->num_requests)
                    slot[i] = next_pass(r, (uint32_t)q++, SIZE_MAX);
                if (slot[i] == SIZE_MAX || pass_of(r, slot[i])->kind != MOESIM_PASS_PREFILL)
                    break;
                s = new_step(r);
                s->pass[s->parts++] = slot[i];
                slot[i] = next_pass(r, pass_of(r, slot[i])->request, slot[i]);
            }
        }
        s = new_step(r);
        for (uint32_t i = 0; i < r->params.batch; i++) {
            if (slot[i] == SIZE_MAX)
                continue;
            s->pass[s->parts++] = slot[i];
            slot[i] = next_pass(r, pass_of(r, slot[i])->request, slot[i]);
        }
        if (s->parts == 0) {
            r->n--;
            return;
        }
    }
}

void ref_init(struct ref *r, const struct test_trace *t, const moesim_window_params *params)
{
    memset(r, 0, sizeof *r);
    r->t = t;
    r->params = *params;
    if (params->batch > 1)
        in_slots(r);
    else
        in_file_order(r);
    for (size_t i = 0; i < r->n; i++) {
        struct ref_step *s = &r->step[i];
        bool warm = false, denoise = false, commit = false;
        for (uint32_t j = 0; j < s->parts; j++) {
            const moesim_pass *p = pass_of(r, s->pass[j]);
            warm = warm || p->request < params->request_begin + params->warmup;
            denoise = denoise || p->kind == MOESIM_PASS_DENOISE;
            commit = commit || p->kind == MOESIM_PASS_COMMIT;
        }
        s->kind = denoise ? MOESIM_DENOISE : commit ? MOESIM_COMMIT : MOESIM_PREFILL;
        s->decode = denoise || commit;
        s->counted = s->decode && !warm;
    }
}

void ref_fini(struct ref *r)
{
    free(r->step);
}

static size_t rows_of(const struct ref *r, size_t p)
{
    return (size_t)(pass_of(r, p)->row_end - pass_of(r, p)->row_begin);
}

/* Pass before p of the same request and block, or SIZE_MAX; decode: a decode pass anywhere before. */
static size_t earlier_pass(const struct ref *r, size_t p, bool decode)
{
    for (size_t b = p; b-- > 0;) {
        const moesim_pass *x = pass_of(r, b), *y = pass_of(r, p);
        if (chosen(r, b) && x->request == y->request && x->block == y->block && (!decode || x->kind != MOESIM_PASS_PREFILL))
            return b;
    }
    return SIZE_MAX;
}

/* Row of the trace with this position in pass p, or SIZE_MAX. */
static size_t find_row(const struct ref *r, size_t p, int32_t position)
{
    for (size_t i = rows_of(r, p); p != SIZE_MAX && i-- > 0;) {
        if (r->t->position[pass_of(r, p)->row_begin + i] == position)
            return (size_t)pass_of(r, p)->row_begin + i;
    }
    return SIZE_MAX;
}

struct ref_row { uint8_t input; float confidence, lag, own; size_t before; bool first; };

static struct ref_row describe(const struct ref *r, size_t p, size_t row)
{
    const struct test_trace *t = r->t;
    const moesim_pass *pass = pass_of(r, p);
    const bool decode = pass->kind != MOESIM_PASS_PREFILL, denoise = pass->kind == MOESIM_PASS_DENOISE;
    const size_t earlier = earlier_pass(r, p, false);
    const size_t before = earlier == SIZE_MAX ? SIZE_MAX : find_row(r, earlier, t->position[row]);
    const bool before_decode = before != SIZE_MAX && pass_of(r, earlier)->kind != MOESIM_PASS_PREFILL;
    struct ref_row d = { MOESIM_ROW_LONG, NAN, 1, 1, SIZE_MAX, decode && earlier_pass(r, p, true) == SIZE_MAX };
    if (t->state[row] <= 1)
        d.input = MOESIM_ROW_MASKED;
    else if (before != SIZE_MAX && (t->state[before] == 1 || t->state[before] == 3))
        d.input = MOESIM_ROW_JUST;
    if (decode && before_decode) {
        d.confidence = t->confidence[before];
        d.before = before;
        if (denoise && d.input == MOESIM_ROW_MASKED && t->state[before] == 0 && !isnan(d.confidence))
            d.lag = d.confidence;
    }
    if (denoise && t->state[row] == 0 && !isnan(t->confidence[row]))
        d.own = t->confidence[row];
    return d;
}

static void check_row(const struct ref *r, const moesim_window *w, size_t at, size_t p, size_t row)
{
    const struct test_trace *t = r->t;
    const size_t routes = (size_t)t->info.num_layers * t->info.top_k;
    const struct ref_row d = describe(r, p, row);
    const moesim_row *got = &w->row[at];
    ck_assert_uint_eq(got->request, pass_of(r, p)->request);
    ck_assert_int_eq(got->position, t->position[row]);
    ck_assert_int_eq(got->block, pass_of(r, p)->block);
    ck_assert_int_eq(got->step, pass_of(r, p)->step);
    ck_assert_uint_eq(got->kind, pass_of(r, p)->kind);
    ck_assert_uint_eq(got->input, d.input);
    ck_assert_uint_eq(got->first, d.first);
    ck_assert(isnan(d.confidence) ? isnan(got->confidence) : got->confidence == d.confidence);
    ck_assert(memcmp(got->expert, t->expert + row * routes, routes * sizeof *got->expert) == 0);
    ck_assert(memcmp(got->gate, t->gate + row * routes, routes * sizeof *got->gate) == 0);
    if (d.before == SIZE_MAX)
        ck_assert_ptr_null(got->previous);
    else
        ck_assert(memcmp(got->previous, t->expert + d.before * routes, routes * sizeof *got->previous) == 0);
    ck_assert_uint_eq(w->state[at], t->state[row]);
    ck_assert(isnan(t->confidence[row]) ? isnan(w->produced[at]) : w->produced[at] == t->confidence[row]);
}

struct ref_sums {
    uint32_t count[1024], masked[1024];
    double mass[1024], weighted[1024], hindsight[1024], class_sum[1024];
    double mass_total, weighted_total, hindsight_total;
    uint64_t touch[1024];
    uint16_t sequence[1024];
    uint32_t n;
};

static void add_row(struct ref *r, size_t p, size_t row, uint32_t layer, struct ref_sums *s)
{
    const struct test_trace *t = r->t;
    const uint32_t k = t->info.top_k;
    const uint16_t *id = t->expert + (row * t->info.num_layers + layer) * k;
    const float *gate = t->gate + (row * t->info.num_layers + layer) * k;
    const struct ref_row d = describe(r, p, row);
    double sum = 0;
    for (uint32_t i = 0; i < k; i++)
        sum += id[i] == MOESIM_NO_ROUTE ? 0 : (double)gate[i];
    for (uint32_t i = 0; i < k; i++) {
        const uint16_t e = id[i];
        if (e == MOESIM_NO_ROUTE)
            continue;
        const double g = !t->info.gate_unnormalised ? (double)gate[i] : sum > 0 ? (double)gate[i] / sum : 0;
        if (s->count[e]++ == 0)
            s->sequence[s->n++] = e;
        s->masked[e] += d.input == MOESIM_ROW_MASKED;
        s->mass[e] += g;
        s->mass_total += g;
        s->weighted[e] += g * (double)d.lag;
        s->weighted_total += g * (double)d.lag;
        s->hindsight[e] += g * (double)d.own;
        s->hindsight_total += g * (double)d.own;
        s->class_sum[e] += CLASS_WEIGHT[d.input * 8 + (i < 7 ? i : 7)];
        s->touch[e] = ++r->touches;
    }
}

static bool active_in(const struct ref *r, size_t step, uint32_t layer, uint16_t e)
{
    const struct test_trace *t = r->t;
    for (uint32_t j = 0; j < r->step[step].parts; j++) {
        const moesim_pass *p = pass_of(r, r->step[step].pass[j]);
        for (uint64_t row = p->row_begin; row < p->row_end; row++) {
            for (uint32_t s = 0; s < t->info.top_k; s++) {
                if (t->expert[(row * t->info.num_layers + layer) * t->info.top_k + s] == e)
                    return true;
            }
        }
    }
    return false;
}

static uint64_t next_use(const struct ref *r, size_t step, uint32_t layer, uint16_t e)
{
    for (size_t i = step + 1; i < r->n; i++) {
        if (active_in(r, i, layer, e))
            return r->step[i].counted ? i + 1 : MOESIM_NEVER;
    }
    return MOESIM_NEVER;
}

static void check_event(struct ref *r, const moesim_window *w, size_t step, size_t event, uint32_t layer)
{
    static struct ref_sums s;
    memset(&s, 0, sizeof s);
    for (uint32_t j = 0; j < r->step[step].parts; j++) {
        const size_t p = r->step[step].pass[j];
        for (uint64_t row = pass_of(r, p)->row_begin; row < pass_of(r, p)->row_end; row++)
            add_row(r, p, (size_t)row, layer, &s);
    }
    if (!(s.weighted_total > 0)) {
        memcpy(s.weighted, s.mass, sizeof s.mass);
        s.weighted_total = s.mass_total;
    }
    if (!(s.hindsight_total > 0)) {
        memcpy(s.hindsight, s.mass, sizeof s.mass);
        s.hindsight_total = s.mass_total;
    }
    const size_t begin = w->list_begin[event];
    ck_assert_uint_eq(w->list_begin[event + 1] - begin, s.n);
    ck_assert_uint_eq(moesim_bits_count(w->active + event * w->words, w->words), s.n);
    for (size_t j = begin; j < begin + s.n; j++) {
        const uint16_t e = w->list[j];
        ck_assert(j == begin || w->list[j - 1] < e);
        ck_assert(moesim_bit_test(w->active + event * w->words, e));
        ck_assert_uint_eq(w->count[j], s.count[e]);
        ck_assert_uint_eq(w->masked[j], s.masked[e]);
        ck_assert(w->mass[j] == s.mass[e] && w->weighted[j] == s.weighted[e] && w->hindsight[j] == s.hindsight[e]);
        ck_assert(w->class_sum[j] == s.class_sum[e]);
        ck_assert_uint_eq(w->touch[j], s.touch[e]);
        ck_assert_uint_eq(w->sequence[j], s.sequence[j - begin]);
        ck_assert_uint_eq(w->next_use[j], next_use(r, step, layer, e));
    }
    ck_assert(w->mass_total[event] == s.mass_total && w->weighted_total[event] == s.weighted_total &&
              w->hindsight_total[event] == s.hindsight_total);
}

static void check_members(const struct ref *r, const moesim_window *w, const moesim_step *got, size_t step)
{
    uint32_t members = 0, row = got->row;
    for (uint32_t j = 0; j < r->step[step].parts; j++) {
        const size_t p = r->step[step].pass[j];
        const uint32_t q = pass_of(r, p)->request;
        const moesim_member *m = NULL;
        for (uint32_t i = got->member; i < got->member + got->num_requests; i++) {
            if (w->member[i].request == q)
                m = &w->member[i];
        }
        ck_assert_ptr_nonnull(m);
        members += m == &w->member[got->member + members];
        if (next_pass(r, q, SIZE_MAX) == p)
            ck_assert_uint_eq(m->starts, 1);
        if (next_pass(r, q, p) == SIZE_MAX)
            ck_assert_uint_eq(m->ends, 1);
        for (size_t i = 0; i < rows_of(r, p); i++, row++)
            check_row(r, w, row, p, (size_t)pass_of(r, p)->row_begin + i);
    }
    ck_assert_uint_eq(members, got->num_requests);
    ck_assert_uint_eq(row - got->row, got->num_rows);
}

void ref_check_window(struct ref *r, const moesim_window *w, size_t first)
{
    uint64_t decode = 0;
    for (size_t i = 0; i < first; i++)
        decode += r->step[i].decode;
    ck_assert_uint_le(first + w->num_steps, r->n);
    for (uint32_t i = 0; i < w->num_steps; i++) {
        const struct ref_step *s = &r->step[first + i];
        const moesim_step *got = &w->step[i];
        decode += s->decode;
        ck_assert_uint_eq(got->clock, first + i + 1);
        ck_assert_uint_eq(got->pass, s->pass[0]);
        ck_assert_uint_eq(got->decode_passes, decode);
        ck_assert_uint_eq(got->kind, s->kind);
        ck_assert_int_eq(got->decode, s->decode);
        ck_assert_int_eq(got->counted, s->counted);
        check_members(r, w, got, first + i);
        for (uint32_t layer = 0; layer < w->num_layers; layer++)
            check_event(r, w, first + i, (size_t)i * w->num_layers + layer, layer);
    }
    for (uint32_t layer = 0; layer < w->num_layers; layer++) {
        for (uint32_t e = 0; e < w->num_experts; e++) {
            bool active = first + w->num_steps < r->n && active_in(r, first + w->num_steps, layer, (uint16_t)e);
            ck_assert_int_eq(moesim_bit_test(w->next_active + (size_t)layer * w->words, e), active);
        }
    }
}

size_t ref_check_all(const struct test_trace *t, const moesim_window_params *params)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    moesim_source *source = NULL;
    struct ref r;
    size_t windows = 0, steps = 0;
    const char *path = test_path("window.h5");
    test_trace_write(t, path);
    ref_init(&r, t, params);
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_source_open(trace, params, &source, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(moesim_source_get_info(source)->steps, r.n);
    for (;; windows++) {
        const moesim_window *w = NULL;
        ck_assert_msg(moesim_source_next(source, &w, &err) == MOESIM_OK, "%s", err.text);
        if (w == NULL)
            break;
        ref_check_window(&r, w, steps);
        steps += w->num_steps;
    }
    ck_assert_uint_eq(steps, r.n);
    moesim_source_close(&source);
    moesim_trace_close(&trace);
    ref_fini(&r);
    return windows;
}
