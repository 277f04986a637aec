/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests and passes: one checking scan at open, later served from a small cache of blocks.
 */
#include "traces/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/text.h"

/* ---- requests ------------------------------------------------------------------------------------------------------ */

enum { WORKLOAD, PROMPT, OUTPUT, REQUEST_COLUMNS };

static moesim_code open_requests(moesim_trace *t, moesim_h5_column *columns, moesim_error *err)
{
    static const char *const names[REQUEST_COLUMNS] = {"/request/workload", "/request/prompt_tokens",
                                                       "/request/output_tokens"};
    moesim_code code = moesim_h5_dataset_open(&t->file, names[WORKLOAD], 1u << MOESIM_H5_STRING, 1,
                                              &columns[WORKLOAD].dataset, err);
    if (code == MOESIM_OK)
        code = moesim_h5_dataset_open(&t->file, names[PROMPT], 1u << MOESIM_H5_U32, 1, &columns[PROMPT].dataset, err);
    if (code == MOESIM_OK)
        code = moesim_h5_dataset_open_optional(&t->file, names[OUTPUT], 1u << MOESIM_H5_U32, 1, &columns[OUTPUT].dataset,
                                               err);
    if (code != MOESIM_OK)
        return code;
    uint64_t n = columns[PROMPT].dataset.dim[0];
    for (int i = 0; i < REQUEST_COLUMNS && t->salvage; i++)
        if (columns[i].dataset.id >= 0) {
            const uint64_t length = columns[i].dataset.dim[0];
            n = length < n ? length : n;
            t->found_requests = length > t->found_requests ? length : t->found_requests;
        }
    for (int i = 0; i < REQUEST_COLUMNS && !t->salvage; i++)
        if (columns[i].dataset.id >= 0 && columns[i].dataset.dim[0] != n)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: dimension 0 of %s is %llu, but the number of requests in %s is %llu",
                               t->info.path, names[i], (unsigned long long)columns[i].dataset.dim[0], names[PROMPT],
                               (unsigned long long)n);
    if (n > MOESIM_TRACE_MAX_REQUESTS)
        return moesim_fail(err, MOESIM_E_LIMIT, "%s: %llu requests, at most %u are read; split it when it is recorded",
                           t->info.path, (unsigned long long)n, MOESIM_TRACE_MAX_REQUESTS);
    t->info.num_requests = (uint32_t)n;
    t->info.has_output_tokens = columns[OUTPUT].dataset.id >= 0;
    return MOESIM_OK;
}

static moesim_code read_requests(moesim_trace *t, moesim_h5_column *columns, moesim_error *err)
{
    const moesim_h5_dataset *names = &columns[WORKLOAD].dataset;
    void *table = NULL, *text = NULL;
    moesim_code code = moesim_alloc(t->info.num_requests, sizeof *t->request, "table of requests", &table, err);
    t->request = table;
    if (code == MOESIM_OK)
        code = moesim_alloc(1, names->element, names->name, &text, err);
    for (uint32_t q = 0; code == MOESIM_OK && q < t->info.num_requests; q++) {
        moesim_trace_request *r = &t->request[q];
        r->first = UINT64_MAX;
        r->output_tokens_known = t->info.has_output_tokens;
        code = moesim_h5_column_read(&columns[WORKLOAD], t->decoder, q, 1, text, err);
        if (code == MOESIM_OK)
            moesim_text_clean(text, names->element, r->workload, sizeof r->workload);
        if (code == MOESIM_OK)
            code = moesim_h5_column_read(&columns[PROMPT], t->decoder, q, 1, &r->prompt_tokens, err);
        if (code == MOESIM_OK && r->output_tokens_known)
            code = moesim_h5_column_read(&columns[OUTPUT], t->decoder, q, 1, &r->output_tokens, err);
    }
    free(text);
    return code;
}

moesim_code moesim_reader_requests(moesim_trace *trace, moesim_error *err)
{
    moesim_h5_column columns[REQUEST_COLUMNS] = {MOESIM_H5_COLUMN_INIT, MOESIM_H5_COLUMN_INIT, MOESIM_H5_COLUMN_INIT};
    moesim_code code = open_requests(trace, columns, err);
    if (code == MOESIM_OK)
        code = read_requests(trace, columns, err);
    for (int i = 0; i < REQUEST_COLUMNS; i++)
        moesim_h5_column_close(&columns[i]);
    return code;
}

/* ---- blocks of passes ---------------------------------------------------------------------------------------------- */

#define BLOCK_PASSES 1024u
#define SETS 64u
#define WAYS 4u

typedef struct slot {
    uint64_t block, used;        /* used 0: empty */
    moesim_pass *pass;           /* [BLOCK_PASSES], owned, allocated when first needed */
} slot;

struct moesim_pass_cache {
    slot slot[SETS][WAYS];
    slot *last;
    uint64_t clock;
    uint64_t offset[BLOCK_PASSES + 1], forward[BLOCK_PASSES], ns[BLOCK_PASSES];   /* scratch of load_block */
    uint32_t request[BLOCK_PASSES];
    int32_t block[BLOCK_PASSES], step[BLOCK_PASSES];
    uint8_t kind[BLOCK_PASSES];
};

/* Passes [first, first + n) from the columns. */
static moesim_code load_block(moesim_trace *t, uint64_t first, uint64_t n, moesim_pass *out, moesim_error *err)
{
    moesim_pass_cache *c = t->cache;
    void *const into[MOESIM_PASS_COLUMNS] = {c->offset, c->kind, c->request, c->block, c->step, c->forward, c->ns};
    for (int i = 0; i < MOESIM_PASS_COLUMNS; i++) {
        if (t->pass[i].dataset.id < 0)
            continue;
        const uint64_t take = i == MOESIM_PASS_OFFSET ? n + 1 : n;
        const moesim_code code = moesim_h5_column_read(&t->pass[i], t->decoder, first, take, into[i], err);
        if (code != MOESIM_OK)
            return code;
    }
    for (uint64_t i = 0; i < n; i++)
        out[i] = (moesim_pass){
            .row_begin = c->offset[i],
            .row_end = c->offset[i + 1],
            .forward = t->info.has_forward ? c->forward[i] : first + i,
            .request = c->request[i],
            .block = c->block[i],
            .step = c->step[i],
            .kind = c->kind[i],
            .observed_ns = t->info.has_pass_ns ? c->ns[i] : 0,
        };
    return MOESIM_OK;
}

static uint64_t block_size(const moesim_trace *t, uint64_t block)
{
    const uint64_t left = t->info.num_passes - block * BLOCK_PASSES;
    return left < BLOCK_PASSES ? left : BLOCK_PASSES;
}

static moesim_code find_slot(moesim_trace *t, uint64_t block, slot **out, moesim_error *err)
{
    slot *set = t->cache->slot[block % SETS], *oldest = &set[0];
    for (uint32_t w = 0; w < WAYS; w++) {
        if (set[w].used != 0 && set[w].block == block) {
            *out = &set[w];
            return MOESIM_OK;
        }
        if (set[w].used < oldest->used)
            oldest = &set[w];
    }
    if (oldest->pass == NULL && (oldest->pass = calloc(BLOCK_PASSES, sizeof *oldest->pass)) == NULL)
        return moesim_fail_nomem(err, "block of passes", BLOCK_PASSES * sizeof *oldest->pass);
    oldest->used = 0;   /* empty until it is loaded */
    oldest->block = block;
    *out = oldest;
    return load_block(t, block * BLOCK_PASSES, block_size(t, block), oldest->pass, err);
}

moesim_code moesim_trace_pass(moesim_trace *trace, uint64_t p, moesim_pass *out, moesim_error *err)
{
    moesim_pass_cache *c = trace->cache;
    const uint64_t block = p / BLOCK_PASSES;
    if (p >= trace->info.num_passes)
        return moesim_fail(err, MOESIM_E_INTERNAL, "%s: pass %llu of %llu was asked for", trace->info.path,
                           (unsigned long long)p, (unsigned long long)trace->info.num_passes);
    if (c->last == NULL || c->last->block != block) {
        c->last = NULL;
        slot *found = NULL;
        const moesim_code code = find_slot(trace, block, &found, err);
        if (code != MOESIM_OK)
            return code;
        found->used = ++c->clock;
        c->last = found;
    }
    *out = c->last->pass[p % BLOCK_PASSES];
    return MOESIM_OK;
}

/* ---- the checking scan --------------------------------------------------------------------------------------------- */

static moesim_code check_pass(moesim_trace *t, uint64_t p, const moesim_pass *pass, moesim_error *err)
{
    const char *path = t->info.path;
    const unsigned long long at = p, rows = t->info.num_rows;
    if (pass->row_end < pass->row_begin)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: /pass/row_offset[%llu] is %llu, below the entry before it (%llu)", path,
                           at + 1, (unsigned long long)pass->row_end, (unsigned long long)pass->row_begin);
    if (pass->row_end > rows)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: /pass/row_offset[%llu] is %llu, but %s has %llu rows", path, at + 1,
                           (unsigned long long)pass->row_end, t->salvage ? "the shortest column" : "/routing/expert", rows);
    if (pass->kind > MOESIM_PASS_DUMMY)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: /pass/kind[%llu] is %u, allowed are 0 prefill, 1 denoise, 2 commit, 3 dummy", path, at,
                           pass->kind);
    if (pass->request >= t->info.num_requests)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: /pass/request[%llu] is %u, but there are %u requests (from 0)", path, at,
                           pass->request, t->info.num_requests);
    if (pass->kind != MOESIM_PASS_DUMMY) {
        moesim_trace_request *r = &t->request[pass->request];
        r->first = r->passes == 0 ? p : r->first;
        r->last = p;
        r->passes++;
    }
    return MOESIM_OK;
}

static moesim_code check_ends(moesim_trace *t, moesim_error *err)
{
    uint64_t ends[2] = {0, 0};
    const uint64_t at[2] = {0, t->info.num_passes}, want[2] = {0, t->info.num_rows};
    static const char *const rule[2] = {"it begins at 0", "it ends at the number of rows in /routing/expert"};
    moesim_code code = MOESIM_OK;
    for (int i = 0; code == MOESIM_OK && i < 2; i++) {
        code = moesim_h5_column_read(&t->pass[MOESIM_PASS_OFFSET], t->decoder, at[i], 1, &ends[i], err);
        if (code == MOESIM_OK && ends[i] != want[i])
            code = moesim_fail(err, MOESIM_E_FORMAT, "%s: /pass/row_offset[%llu] is %llu, but %s (%llu)", t->info.path,
                               (unsigned long long)at[i], (unsigned long long)ends[i], rule[i], (unsigned long long)want[i]);
    }
    return code;
}

void moesim_reader_end_rows(moesim_trace *trace, uint64_t rows)
{
    for (int i = 0; i < MOESIM_ROW_COLUMNS; i++)
        if (trace->row[i].id >= 0)
            trace->row[i].dim[0] = rows;
}

moesim_code moesim_reader_cut(moesim_trace *trace, uint64_t passes, moesim_error *err)
{
    moesim_pass last = {.row_end = 0};
    if (passes > 0 && moesim_trace_pass(trace, passes - 1, &last, err) != MOESIM_OK)
        return err->code;
    trace->info.num_passes = passes;
    trace->info.num_rows = last.row_end;
    moesim_reader_end_rows(trace, last.row_end);
    return MOESIM_OK;
}

/* Salvage: the trace ends before the first pass that breaks a rule or cannot be read. */
static bool ends_here(moesim_trace *t, uint64_t p, const moesim_pass *pass, moesim_code code, moesim_error *err)
{
    if (code == MOESIM_OK && p == 0 && pass->row_begin != 0)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: /pass/row_offset[0] is not 0", t->info.path);
    if (code != MOESIM_E_FORMAT)
        return false;
    t->cut = *err;
    *err = (moesim_error)MOESIM_ERROR_INIT;
    return true;
}

moesim_code moesim_reader_passes(moesim_trace *trace, moesim_error *err)
{
    moesim_pass pass = {0};
    trace->cache = calloc(1, sizeof *trace->cache);
    if (trace->cache == NULL)
        return moesim_fail_nomem(err, "cache of passes", sizeof *trace->cache);
    for (uint64_t p = 0; p < trace->info.num_passes; p++) {
        if (p % BLOCK_PASSES == 0 && moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        moesim_code code = moesim_trace_pass(trace, p, &pass, err);
        if (code == MOESIM_OK && p == 0 && pass.row_begin != 0 && !trace->salvage)
            break;   /* check_ends says it */
        if (code == MOESIM_OK)
            code = check_pass(trace, p, &pass, err);
        if (trace->salvage && ends_here(trace, p, &pass, code, err))
            return moesim_reader_cut(trace, p, err);
        if (code != MOESIM_OK)
            return code;
    }
    return trace->salvage ? moesim_reader_cut(trace, trace->info.num_passes, err) : check_ends(trace, err);
}

void moesim_reader_drop_passes(moesim_trace *trace)
{
    for (uint32_t s = 0; trace->cache != NULL && s < SETS; s++)
        for (uint32_t w = 0; w < WAYS; w++)
            free(trace->cache->slot[s][w].pass);
    free(trace->cache);
    trace->cache = NULL;
}
