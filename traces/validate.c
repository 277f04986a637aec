/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole-file checks: every row through the reader's rules, and the warnings of the format (FORMAT.md), each once.
 */
#include "traces/validate.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define WINDOW_BYTES ((size_t)1 << 30)   /* a limit, not a need: what is used is one piece and one chunk per column */
#define PIECE_BYTES ((size_t)4 << 20)
#define SAME_PASSES 8                    /* identical passes in a row that no decoder produces */
#define GATE_TOLERANCE 0.01              /* of a sum of half-precision gates that is said to be 1 */

enum warning { WARN_REPEATED, WARN_ALL_NAN, WARN_GATES, WARN_UNCOMMITTED, WARN_BLOCK_ORDER };

/* Digests of one pass, 64 bit: what it routed and which rows it had. */
typedef struct print {
    uint64_t routes, rows, n;
} print;

/* Passes that follow each other with one number in /pass/forward. */
typedef struct forward_run {
    uint64_t number, first;      /* first: pass */
} forward_run;

typedef struct validation {
    moesim_trace *trace;
    const moesim_trace_info *info;
    bool strict;
    moesim_warning_fn *warn;
    void *cookie;
    moesim_error *err;
    uint32_t given;              /* bit for each kind of warning that was given */
    bool gates_claimed;          /* gate_kind says that gates sum to 1 */
    bool confidence_seen;
    int32_t *last_block;         /* [Q], INT32_MIN: none yet */
    uint8_t *committed;          /* [Q] */
    print last, now;
    uint64_t same_first, same_length;
    forward_run *run;            /* [num_passes] with /pass/forward, else NULL */
    uint64_t num_runs;
    uint64_t *in_run;            /* [Q] number of the last run with a pass of the request, from 1 */
} validation;

static moesim_code MOESIM_PRINTF(3, 4) give(validation *v, enum warning kind, const char *fmt, ...)
{
    char text[512];
    if ((v->given >> kind & 1u) != 0)
        return MOESIM_OK;
    v->given |= 1u << kind;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (v->strict)
        return moesim_fail(v->err, MOESIM_E_FORMAT, "%s: %s (refused because of --strict)", v->info->path, text);
    if (v->warn != NULL)
        v->warn(v->cookie, text);
    return MOESIM_OK;
}

/* Does gate_kind promise sums of 1? "normalised" in either spelling, not negated and not scaled afterwards. */
static bool claims_normalised(const char *kind)
{
    static const char *const denials[] = {"unnormali", "not normali", "non-normali", "nonnormali"};
    char text[sizeof(moesim_text)];
    size_t n = 0;
    for (; kind[n] != '\0' && n + 1 < sizeof text; n++)
        text[n] = (char)tolower((unsigned char)kind[n]);
    text[n] = '\0';
    for (size_t i = 0; i < sizeof denials / sizeof denials[0]; i++)
        if (strstr(text, denials[i]) != NULL)
            return false;
    const bool scaled =
        strstr(text, "scaled") != NULL && strstr(text, "not scaled") == NULL && strstr(text, "unscaled") == NULL;
    return !scaled && (strstr(text, "normalised") != NULL || strstr(text, "normalized") != NULL);
}

/* Multiply and fold, eight bytes at a time; not cryptographic, a chance meeting of 2^-64 does no harm here. */
static uint64_t mix(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    while (bytes > 0) {
        uint64_t word = 0;
        const size_t take = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, p, take);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
        p += take;
        bytes -= take;
    }
    return h;
}

static moesim_code check_gates(validation *v, const moesim_rows *rows)
{
    const uint32_t m = v->info->num_layers, k = v->info->top_k;
    const uint16_t *id = rows->expert;
    const float *gate = rows->gate;
    for (uint64_t r = rows->begin; r < rows->end; r++) {
        for (uint32_t l = 0; l < m; l++, id += k, gate += k) {
            double sum = 0.0;
            bool full = true;
            for (uint32_t i = 0; i < k; i++) {
                full = full && id[i] != UINT16_MAX;
                sum += (double)gate[i];
            }
            if (full && fabs(sum - 1.0) > GATE_TOLERANCE)
                return give(v, WARN_GATES, "/routing/gate[%llu, %u]: the gates sum to %.4f, but gate_kind says \"%.80s\"",
                            (unsigned long long)r, l, sum, v->info->gate_kind);
        }
    }
    return MOESIM_OK;
}

static moesim_code check_piece(validation *v, const moesim_pass *pass, const moesim_rows *rows)
{
    const uint64_t n = rows->end - rows->begin;
    const size_t row_bytes = (size_t)v->info->num_layers * v->info->top_k * sizeof *rows->expert;
    for (uint64_t i = 0; i < n; i++) {
        v->confidence_seen = v->confidence_seen || (rows->confidence != NULL && !isnan(rows->confidence[i]));
        v->committed[pass->request] |= rows->state[i] == MOESIM_STATE_COMMITTED_NOW && pass->kind != MOESIM_PASS_DUMMY;
    }
    v->now.routes = mix(v->now.routes, rows->expert, (size_t)n * row_bytes);
    v->now.rows = mix(v->now.rows, rows->position, (size_t)n * sizeof *rows->position);
    v->now.n += n;
    return v->gates_claimed && rows->gate != NULL && (v->given >> WARN_GATES & 1u) == 0 ? check_gates(v, rows) : MOESIM_OK;
}

/* After the rows of pass p: does it only repeat the routes of the pass before it? */
static moesim_code check_repeat(validation *v, uint64_t p, const moesim_pass *pass)
{
    v->now.rows = mix(v->now.rows, &pass->request, sizeof pass->request);
    const bool counts = pass->kind != MOESIM_PASS_DUMMY && v->now.n > 0;
    const bool same = counts && v->now.n == v->last.n && v->now.routes == v->last.routes && v->now.rows != v->last.rows;
    if (!same) {
        v->same_first = p;
        v->same_length = 0;
    }
    v->same_length++;
    v->last = counts ? v->now : (print){0, 0, 0};
    if (v->same_length != SAME_PASSES)
        return MOESIM_OK;
    return give(v, WARN_REPEATED,
                "/routing/expert: %d or more passes from pass %llu on have identical routes in all layers although their rows "
                "differ; an engine's warm-up passes recorded as real? Mark them as kind 3 (dummy)",
                SAME_PASSES, (unsigned long long)v->same_first);
}

static moesim_code check_order(validation *v, uint64_t p, const moesim_pass *pass)
{
    int32_t *last = &v->last_block[pass->request];
    if (pass->kind == MOESIM_PASS_DUMMY)
        return MOESIM_OK;
    const int32_t before = *last;
    *last = pass->block;
    if (pass->block >= before)
        return MOESIM_OK;
    return give(v, WARN_BLOCK_ORDER,
                "/pass/block[%llu] is %d, but request %u has already been at block %d: passes out of order",
                (unsigned long long)p, pass->block, pass->request, before);
}

/* A batch has a request once; dummy passes take part in no batch. */
static moesim_code check_forward(validation *v, uint64_t p, const moesim_pass *pass)
{
    if (v->run == NULL)
        return MOESIM_OK;
    if (v->num_runs == 0 || v->run[v->num_runs - 1].number != pass->forward)
        v->run[v->num_runs++] = (forward_run){pass->forward, p};
    if (pass->kind == MOESIM_PASS_DUMMY)
        return MOESIM_OK;
    if (v->in_run[pass->request] == v->num_runs)
        return moesim_fail(v->err, MOESIM_E_FORMAT, "%s: /pass/forward[%llu]: forward call %llu has a pass of request %u "
                           "already; give the passes numbers of their own", v->info->path, (unsigned long long)p,
                           (unsigned long long)pass->forward, pass->request);
    v->in_run[pass->request] = v->num_runs;
    return MOESIM_OK;
}

static int compare_runs(const void *a, const void *b)
{
    const forward_run *x = a, *y = b;
    const int by_number = (x->number > y->number) - (x->number < y->number);
    return by_number != 0 ? by_number : (x->first > y->first) - (x->first < y->first);
}

/* The passes of one call stand together: of all that come back, the first one is reported. */
static moesim_code check_runs(validation *v)
{
    const forward_run *again = NULL;
    if (v->num_runs > 0)
        qsort(v->run, (size_t)v->num_runs, sizeof *v->run, compare_runs);
    for (uint64_t i = 1; i < v->num_runs; i++)
        if (v->run[i].number == v->run[i - 1].number && (again == NULL || v->run[i].first < again->first))
            again = &v->run[i];
    if (again == NULL)
        return MOESIM_OK;
    return moesim_fail(v->err, MOESIM_E_FORMAT, "%s: /pass/forward[%llu]: forward call %llu comes back after passes of "
                       "another one; write the passes of a call one after the other", v->info->path,
                       (unsigned long long)again->first, (unsigned long long)again->number);
}

static moesim_code check_rows(validation *v, moesim_cursor *cursor, const moesim_pass *pass)
{
    const uint64_t piece = moesim_trace_rows_in(v->info, PIECE_BYTES);
    moesim_code code = MOESIM_OK;
    v->now = (print){0, 0, 0};
    for (uint64_t at = pass->row_begin; code == MOESIM_OK && at < pass->row_end;) {
        const uint64_t end = pass->row_end - at < piece ? pass->row_end : at + piece;
        moesim_rows rows;
        code = moesim_cursor_rows(cursor, at, end, &rows, v->err);
        if (code == MOESIM_OK)
            code = check_piece(v, pass, &rows);
        at = end;
    }
    return code;
}

/* What only the whole file shows. */
static moesim_code check_end(validation *v)
{
    if (v->info->has_confidence_values && !v->confidence_seen && v->info->num_rows > 0) {
        const moesim_code code =
            give(v, WARN_ALL_NAN, "/token/confidence: every value from row 0 on is NaN, but confidence_kind says \"%.80s\"",
                 v->info->confidence_kind);
        if (code != MOESIM_OK)
            return code;
    }
    for (uint32_t q = 0; q < v->info->num_requests; q++)
        if (v->committed[q] == 0)
            return give(v, WARN_UNCOMMITTED, "/token/state: request %u has not a single committed token (state 1)", q);
    return MOESIM_OK;
}

static moesim_code check_all(validation *v)
{
    moesim_cursor *cursor = NULL;
    moesim_pass pass;
    moesim_code code = moesim_cursor_open(v->trace, UINT32_MAX, WINDOW_BYTES, &cursor, v->err);
    for (uint64_t p = 0; code == MOESIM_OK && p < v->info->num_passes; p++) {
        code = moesim_trace_pass(v->trace, p, &pass, v->err);
        if (code == MOESIM_OK)
            code = check_order(v, p, &pass);
        if (code == MOESIM_OK)
            code = check_forward(v, p, &pass);
        if (code == MOESIM_OK)
            code = check_rows(v, cursor, &pass);
        if (code == MOESIM_OK)
            code = check_repeat(v, p, &pass);
    }
    moesim_cursor_close(&cursor);
    if (code == MOESIM_OK)
        code = check_runs(v);
    return code == MOESIM_OK ? check_end(v) : code;
}

static moesim_code take_memory(validation *v)
{
    const size_t requests = v->info->num_requests, passes = v->info->has_forward ? (size_t)v->info->num_passes : 0;
    void *p = NULL;
    moesim_code code = moesim_alloc(requests, sizeof *v->last_block, "last blocks", &p, v->err);
    v->last_block = p;
    p = NULL;
    if (code == MOESIM_OK)
        code = moesim_alloc(requests, sizeof *v->committed, "committed requests", &p, v->err);
    v->committed = p;
    if (code != MOESIM_OK || passes == 0)
        return code;
    p = NULL;
    code = moesim_alloc(requests, sizeof *v->in_run, "requests of forward calls", &p, v->err);
    v->in_run = p;
    p = NULL;
    if (code == MOESIM_OK)
        code = moesim_alloc(passes, sizeof *v->run, "forward calls", &p, v->err);
    v->run = p;
    return code;
}

moesim_code moesim_trace_validate(moesim_trace *trace, bool strict, moesim_warning_fn *warn, void *cookie,
                                  moesim_error *err)
{
    validation v = {.trace = trace, .info = moesim_trace_get_info(trace), .strict = strict, .warn = warn, .cookie = cookie,
                    .err = err};
    v.gates_claimed = claims_normalised(v.info->gate_kind);
    moesim_code code = take_memory(&v);
    for (uint32_t q = 0; code == MOESIM_OK && q < v.info->num_requests; q++)
        v.last_block[q] = INT32_MIN;
    if (code == MOESIM_OK)
        code = check_all(&v);
    free(v.committed);
    free(v.last_block);
    free(v.in_run);
    free(v.run);
    return code;
}
