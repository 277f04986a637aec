/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two traces: attributes, then datasets in pieces of bounded memory.
 */
#include "traces/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define PIECE_BYTES ((size_t)16 << 20)    /* decoded rows of one trace that are compared together */
#define CURSOR_BYTES ((size_t)256 << 20)  /* a bound for the reader */

enum dataset {
    LAYER_ID, EXPERT_BYTES, RESIDENT_BYTES,
    WORKLOAD, PROMPT, OUTPUT,
    ROW_OFFSET, KIND, REQUEST, BLOCK, STEP, FORWARD, PASS_NS,
    POSITION, STATE, CONFIDENCE, TOKEN_ID, EXPERT, GATE, PROB, RESIDENCY,
    DATASETS
};

_Static_assert((int)DATASETS == MOESIM_DIFF_DATASETS, "a place for each dataset");

enum type { U8, U16, U32, U64, I32, F32 };

typedef struct comparison {
    moesim_trace *a, *b;
    const moesim_trace_info *x, *y;
    double tolerance;
    moesim_diff *out;
} comparison;

/* ---- values -------------------------------------------------------------------------------------------------------- */

/* i-th value: of integers in *whole, as two's complement in 64 bits, which tells them apart and prints right. */
static double value(enum type type, const void *data, size_t i, uint64_t *whole)
{
    *whole = 0;
    switch (type) {
    case U8: *whole = ((const uint8_t *)data)[i]; break;
    case U16: *whole = ((const uint16_t *)data)[i]; break;
    case U32: *whole = ((const uint32_t *)data)[i]; break;
    case U64: *whole = ((const uint64_t *)data)[i]; break;
    case I32: *whole = (uint64_t)(int64_t)((const int32_t *)data)[i]; break;
    case F32: return (double)((const float *)data)[i];
    }
    return 0.0;
}

static void write_value(enum type type, const void *data, size_t i, char *out, size_t bytes)
{
    uint64_t whole;
    const double real = value(type, data, i, &whole);
    if (type == F32 && isnan(real))
        (void)snprintf(out, bytes, "NaN");
    else if (type == F32)
        (void)snprintf(out, bytes, "%.9g", real);
    else if (type == I32)
        (void)snprintf(out, bytes, "%" PRId64, (int64_t)whole);
    else
        (void)snprintf(out, bytes, "%" PRIu64, whole);
}

static bool same_value(comparison *c, moesim_diff_dataset *d, enum type type, const void *a, const void *b, size_t i)
{
    uint64_t x, y;
    const double u = value(type, a, i, &x), v = value(type, b, i, &y);
    if (type != F32)
        return x == y;
    if (isnan(u) || isnan(v))
        return isnan(u) && isnan(v);
    const double apart = fabs(u - v);
    d->largest = apart > d->largest ? apart : d->largest;
    return apart <= c->tolerance;
}

static void set_first(moesim_diff_dataset *d, uint64_t row, size_t i, size_t row_values)
{
    const uint64_t in_row = i % row_values, last = d->rank == 3 ? d->dim_a[2] : 1;
    d->first[0] = row + i / row_values;
    d->first[1] = in_row / last;
    d->first[2] = in_row % last;
}

/* n rows of row_values each, the first being number `row`. NULL: the dataset is not in both, or its rows do not match. */
static void compare(comparison *c, enum dataset which, enum type type, uint64_t row, size_t n, size_t row_values,
                    const void *a, const void *b)
{
    static const size_t bytes[] = {[U8] = 1, [U16] = 2, [U32] = 4, [U64] = 8, [I32] = 4, [F32] = 4};
    moesim_diff_dataset *d = &c->out->dataset[which];
    const size_t values = n * row_values;
    if (a == NULL || b == NULL || !d->in_a || !d->in_b || (d->shapes_differ && d->rank == 3))
        return;
    d->compared += values;
    if (memcmp(a, b, values * bytes[type]) == 0)
        return;
    for (size_t i = 0; i < values; i++) {
        if (same_value(c, d, type, a, b, i))
            continue;
        if (d->differing++ == 0) {
            set_first(d, row, i, row_values);
            write_value(type, a, i, d->first_a, sizeof d->first_a);
            write_value(type, b, i, d->first_b, sizeof d->first_b);
        }
    }
}

/* ---- what is compared ---------------------------------------------------------------------------------------------- */

static void set_shape(const comparison *c, moesim_diff_dataset *d, char of, char width)
{
    const moesim_trace_info *info[2] = {c->x, c->y};
    d->rank = width != 0 ? 3 : 1;
    for (int i = 0; i < 2; i++) {
        uint64_t *dim = i == 0 ? d->dim_a : d->dim_b;
        dim[0] = of == 'M' ? info[i]->num_layers : of == 'Q' ? info[i]->num_requests : of == 'P' ? info[i]->num_passes
                 : of == 'R' ? info[i]->num_rows : of == 'O' ? info[i]->num_passes + 1 : 1;
        dim[1] = width != 0 ? info[i]->num_layers : 1;
        dim[2] = width == 'K' ? info[i]->top_k : width == 'E' ? info[i]->num_experts : 1;
    }
    /* Rows of other lengths do not match; a common beginning does. */
    d->shapes_differ = memcmp(d->dim_a + 1, d->dim_b + 1, 2 * sizeof d->dim_a[0]) != 0;
}

static void list_datasets(comparison *c)
{
#define BOTH(field) c->x->field, c->y->field
    const struct { const char *name; bool a, b; char of, width; } row[DATASETS] = {
        [LAYER_ID] = {"/model/moe_layer_id", true, true, 'M', 0},
        [EXPERT_BYTES] = {"/model/expert_bytes", true, true, 'M', 0},
        [RESIDENT_BYTES] = {"/model/resident_bytes", BOTH(has_resident_bytes), '1', 0},
        [WORKLOAD] = {"/request/workload", true, true, 'Q', 0},
        [PROMPT] = {"/request/prompt_tokens", true, true, 'Q', 0},
        [OUTPUT] = {"/request/output_tokens", BOTH(has_output_tokens), 'Q', 0},
        [ROW_OFFSET] = {"/pass/row_offset", true, true, 'O', 0},
        [KIND] = {"/pass/kind", true, true, 'P', 0},
        [REQUEST] = {"/pass/request", true, true, 'P', 0},
        [BLOCK] = {"/pass/block", true, true, 'P', 0},
        [STEP] = {"/pass/step", true, true, 'P', 0},
        [FORWARD] = {"/pass/forward", BOTH(has_forward), 'P', 0},
        [PASS_NS] = {"/observed/pass_ns", BOTH(has_pass_ns), 'P', 0},
        [POSITION] = {"/token/position", true, true, 'R', 0},
        [STATE] = {"/token/state", true, true, 'R', 0},
        [CONFIDENCE] = {"/token/confidence", BOTH(has_confidence), 'R', 0},
        [TOKEN_ID] = {"/token/id", BOTH(has_token_id), 'R', 0},
        [EXPERT] = {"/routing/expert", true, true, 'R', 'K'},
        [GATE] = {"/routing/gate", BOTH(has_gate), 'R', 'K'},
        [PROB] = {"/routing/router_prob", BOTH(has_prob), 'R', 'E'},
        [RESIDENCY] = {"/observed/residency", BOTH(has_residency), 'R', 'K'},
    };
#undef BOTH
    for (int i = 0; i < DATASETS; i++) {
        moesim_diff_dataset *d = &c->out->dataset[i];
        *d = (moesim_diff_dataset){.name = row[i].name, .in_a = row[i].a, .in_b = row[i].b,
                                   .real = i == CONFIDENCE || i == GATE || i == PROB};
        set_shape(c, d, row[i].of, row[i].width);
    }
}

/* The shortest of the two that tells the number apart. */
static void write_real(double real, char *out, size_t bytes)
{
    char *end = NULL;
    (void)snprintf(out, bytes, "%.15g", real);
    if (strtod(out, &end) < real || strtod(out, &end) > real)
        (void)snprintf(out, bytes, "%.17g", real);
}

#define FIELD(name) offsetof(moesim_trace_info, name)

static void compare_attributes(comparison *c)
{
    static const struct { const char *name; size_t offset; char type; } row[MOESIM_DIFF_ATTRIBUTES] = {
        {"model_id", FIELD(model_id), 't'}, {"num_moe_layers", FIELD(num_layers), 'n'},
        {"num_experts", FIELD(num_experts), 'n'}, {"top_k", FIELD(top_k), 'n'}, {"block_length", FIELD(block_length), 'n'},
        {"gate_kind", FIELD(gate_kind), 't'}, {"confidence_kind", FIELD(confidence_kind), 't'},
        {"hidden_size", FIELD(hidden_size), 'w'}, {"expert_intermediate_size", FIELD(expert_intermediate_size), 'w'},
        {"shared_experts", FIELD(shared_experts), 'w'}, {"commit_threshold", FIELD(commit_threshold), 'r'},
        {"weight_dtype", FIELD(weight_dtype), 't'}, {"engine", FIELD(engine), 't'},
        {"engine_version", FIELD(engine_version), 't'}, {"decoder", FIELD(decoder), 't'}, {"dataset", FIELD(dataset), 't'},
        {"license", FIELD(license), 't'}, {"created", FIELD(created), 't'},
    };
    for (size_t i = 0; i < MOESIM_DIFF_ATTRIBUTES; i++) {
        moesim_diff_attribute *at = &c->out->attribute[i];
        at->name = row[i].name;
        for (int side = 0; side < 2; side++) {
            const char *from = (const char *)(side == 0 ? c->x : c->y) + row[i].offset;
            char *to = side == 0 ? at->a : at->b;
            const uint64_t whole = row[i].type == 'n' ? *(const uint32_t *)(const void *)from
                                   : row[i].type == 'w' ? *(const uint64_t *)(const void *)from : 0;
            const double real = row[i].type == 'r' ? *(const double *)(const void *)from : NAN;
            to[0] = '\0';
            if (row[i].type == 't')
                (void)snprintf(to, sizeof at->a, "%s", from);
            else if (whole != 0)
                (void)snprintf(to, sizeof at->a, "%" PRIu64, whole);
            else if (!isnan(real))
                write_real(real, to, sizeof at->a);
        }
        at->differs = strcmp(at->a, at->b) != 0;
    }
}

/* ---- the parts of a trace ------------------------------------------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void compare_model(comparison *c)
{
    const size_t n = (size_t)least(c->x->num_layers, c->y->num_layers);
    compare(c, LAYER_ID, I32, 0, n, 1, moesim_trace_layer_ids(c->a), moesim_trace_layer_ids(c->b));
    compare(c, EXPERT_BYTES, U64, 0, n, 1, moesim_trace_expert_bytes(c->a), moesim_trace_expert_bytes(c->b));
    compare(c, RESIDENT_BYTES, U64, 0, 1, 1, &c->x->resident_bytes, &c->y->resident_bytes);
}

static void compare_requests(comparison *c)
{
    moesim_diff_dataset *d = &c->out->dataset[WORKLOAD];
    for (uint32_t q = 0; q < c->x->num_requests && q < c->y->num_requests; q++) {
        const moesim_trace_request *r = moesim_trace_get_request(c->a, q), *s = moesim_trace_get_request(c->b, q);
        d->compared++;
        if (strcmp(r->workload, s->workload) != 0 && d->differing++ == 0) {
            d->first[0] = q;
            (void)snprintf(d->first_a, sizeof d->first_a, "\"%s\"", r->workload);
            (void)snprintf(d->first_b, sizeof d->first_b, "\"%s\"", s->workload);
        }
        compare(c, PROMPT, U32, q, 1, 1, &r->prompt_tokens, &s->prompt_tokens);
        compare(c, OUTPUT, U32, q, 1, 1, &r->output_tokens, &s->output_tokens);
    }
}

static moesim_code compare_passes(comparison *c, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    c->out->dataset[ROW_OFFSET].compared = 1;   /* the first entry, 0 in every trace */
    for (uint64_t p = 0; p < c->x->num_passes && p < c->y->num_passes; p++) {
        moesim_pass u, v;
        code = moesim_trace_pass(c->a, p, &u, err);
        if (code == MOESIM_OK)
            code = moesim_trace_pass(c->b, p, &v, err);
        if (code == MOESIM_OK && moesim_interrupted())
            code = moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        if (code != MOESIM_OK)
            return code;
        const struct { enum dataset which; enum type type; const void *a, *b; } part[] = {
            {KIND, U8, &u.kind, &v.kind}, {REQUEST, U32, &u.request, &v.request}, {BLOCK, I32, &u.block, &v.block},
            {STEP, I32, &u.step, &v.step}, {FORWARD, U64, &u.forward, &v.forward},
            {PASS_NS, U64, &u.observed_ns, &v.observed_ns},
        };
        compare(c, ROW_OFFSET, U64, p + 1, 1, 1, &u.row_end, &v.row_end);
        for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
            compare(c, part[i].which, part[i].type, p, 1, 1, part[i].a, part[i].b);
    }
    return code;
}

static void compare_piece(comparison *c, const moesim_rows *u, const moesim_rows *v)
{
    const size_t n = (size_t)(u->end - u->begin), m = c->x->num_layers, slots = m * c->x->top_k;
    compare(c, POSITION, I32, u->begin, n, 1, u->position, v->position);
    compare(c, STATE, U8, u->begin, n, 1, u->state, v->state);
    compare(c, CONFIDENCE, F32, u->begin, n, 1, u->confidence, v->confidence);
    compare(c, TOKEN_ID, I32, u->begin, n, 1, u->token_id, v->token_id);
    compare(c, EXPERT, U16, u->begin, n, slots, u->expert, v->expert);
    compare(c, GATE, F32, u->begin, n, slots, u->gate, v->gate);
    compare(c, PROB, F32, u->begin, n, m * c->x->num_experts, u->prob, v->prob);
    compare(c, RESIDENCY, U8, u->begin, n, slots, u->residency, v->residency);
}

static moesim_code compare_rows(comparison *c, moesim_error *err)
{
    const uint64_t rows = least(c->x->num_rows, c->y->num_rows);
    const uint64_t piece = least(moesim_trace_rows_in(c->x, PIECE_BYTES), moesim_trace_rows_in(c->y, PIECE_BYTES));
    moesim_cursor *from = NULL, *to = NULL;
    moesim_progress progress = {0};
    moesim_code code = moesim_cursor_open(c->a, UINT32_MAX, CURSOR_BYTES, &from, err);
    if (code == MOESIM_OK)
        code = moesim_cursor_open(c->b, UINT32_MAX, CURSOR_BYTES, &to, err);
    moesim_progress_begin(&progress, "comparing", rows, 1, "rows");
    for (uint64_t at = 0; at < rows && code == MOESIM_OK; at += piece) {
        const uint64_t end = least(rows, at + piece);
        moesim_rows u, v;
        code = moesim_cursor_rows(from, at, end, &u, err);
        if (code == MOESIM_OK)
            code = moesim_cursor_rows(to, at, end, &v, err);
        if (code == MOESIM_OK)
            compare_piece(c, &u, &v);
        moesim_progress_update(&progress, end);
    }
    moesim_progress_end(&progress);
    moesim_cursor_close(&from);
    moesim_cursor_close(&to);
    return code;
}

moesim_code moesim_trace_diff(moesim_trace *a, moesim_trace *b, double tolerance, moesim_diff *out, moesim_error *err)
{
    comparison c = {a, b, moesim_trace_get_info(a), moesim_trace_get_info(b), tolerance, out};
    *out = (moesim_diff){.differs = false};
    list_datasets(&c);
    compare_attributes(&c);
    compare_model(&c);
    compare_requests(&c);
    moesim_code code = compare_passes(&c, err);
    if (code == MOESIM_OK)
        code = compare_rows(&c, err);
    for (size_t i = 0; i < MOESIM_DIFF_ATTRIBUTES; i++)
        out->differs = out->differs || out->attribute[i].differs;
    for (size_t i = 0; i < DATASETS; i++) {
        moesim_diff_dataset *d = &out->dataset[i];
        d->shapes_differ = d->in_a && d->in_b && memcmp(d->dim_a, d->dim_b, sizeof d->dim_a) != 0;
        out->differs = out->differs || d->in_a != d->in_b || d->shapes_differ || d->differing > 0;
    }
    return code;
}
