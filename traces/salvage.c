/* SPDX-License-Identifier: Apache-2.0
 *
 * Salvages what a recorder left: finds how far the trace holds, then copies that.
 */
#include "traces/salvage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/output.h"
#include "traces/oldformat.h"
#include "traces/reader.h"
#include "traces/salvage_copy.h"

#define PIECE_BYTES ((size_t)16 << 20)    /* decoded rows that are checked together */
#define CURSOR_BYTES ((size_t)256 << 20)  /* a bound for the reader */

typedef struct salvaging {
    const char *in, *out, *copy;
    const moesim_writer_options *options;
    const char *digest;          /* of in */
    bool touched;                /* the superblock was mended */
    moesim_salvage_result *result;   /* in memory that the parent shares */

    moesim_trace *trace;
    moesim_cursor *cursor;
    uint64_t piece_rows;
    uint32_t *committed;         /* [Q] rows of passes that are kept */
} salvaging;

static moesim_code open_cursor(salvaging *s, moesim_error *err)
{
    moesim_cursor_close(&s->cursor);
    return moesim_cursor_open(s->trace, UINT32_MAX, CURSOR_BYTES, &s->cursor, err);
}

static moesim_code read_pass(salvaging *s, const moesim_pass *pass, moesim_error *err)
{
    uint32_t committed = 0;
    for (uint64_t at = pass->row_begin; at < pass->row_end;) {
        const uint64_t end = pass->row_end - at < s->piece_rows ? pass->row_end : at + s->piece_rows;
        moesim_rows rows;
        if (moesim_cursor_rows(s->cursor, at, end, &rows, err) != MOESIM_OK)
            return err->code;
        for (uint64_t r = 0; r < end - at; r++)
            committed += rows.state[r] == MOESIM_STATE_COMMITTED_NOW;
        at = end;
    }
    if (pass->kind != MOESIM_PASS_DUMMY)
        s->committed[pass->request] += committed;
    return MOESIM_OK;
}

/* A chunk is checked whole, so the first offence may lie behind this pass: then only its own rows count. */
static moesim_code read_pass_alone(salvaging *s, const moesim_pass *pass, moesim_error *err)
{
    *err = (moesim_error)MOESIM_ERROR_INIT;
    moesim_reader_end_rows(s->trace, pass->row_end);
    moesim_code code = open_cursor(s, err);
    return code == MOESIM_OK ? read_pass(s, pass, err) : code;
}

/* Cuts the trace before the first pass whose rows do not hold. */
static moesim_code check_rows(salvaging *s, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(s->trace);
    bool alone = false;
    uint64_t p = 0;
    moesim_code code = open_cursor(s, err);
    for (; code == MOESIM_OK && p < info->num_passes; p++) {
        moesim_pass pass;
        code = moesim_trace_pass(s->trace, p, &pass, err);
        if (code == MOESIM_OK && !alone)
            code = read_pass(s, &pass, err);
        alone = alone || code == MOESIM_E_FORMAT;
        if (alone)
            code = read_pass_alone(s, &pass, err);
        if (code != MOESIM_OK)
            break;
    }
    moesim_cursor_close(&s->cursor);
    if (code != MOESIM_OK && code != MOESIM_E_FORMAT)
        return code;
    if (code == MOESIM_E_FORMAT) {
        s->trace->cut = *err;
        *err = (moesim_error)MOESIM_ERROR_INIT;
    }
    return moesim_reader_cut(s->trace, p, err);
}

/* Requests up to the last one with a committed token; without any, up to the last one with a pass. */
static moesim_code count_requests(salvaging *s, uint32_t *out, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(s->trace);
    uint32_t last = info->num_requests;
    while (last > 0 && s->committed[last - 1] == 0)
        last--;
    for (uint64_t p = 0; p < info->num_passes && last == 0; p++) {
        moesim_pass pass;
        if (moesim_trace_pass(s->trace, p, &pass, err) != MOESIM_OK)
            return err->code;
        *out = pass.request + 1 > *out ? pass.request + 1 : *out;
    }
    *out = last > 0 ? last : *out;
    return MOESIM_OK;
}

/* Tokens that were counted in rows that are lost. */
static void correct_tokens(salvaging *s, uint32_t requests)
{
    for (uint32_t q = 0; q < requests; q++) {
        moesim_trace_request *r = &s->trace->request[q];
        if (!r->output_tokens_known || s->committed[q] == 0 || r->output_tokens <= s->committed[q])
            continue;
        r->output_tokens = s->committed[q];
        s->result->corrected_requests++;
    }
}

/* The reason without the name of the copy. */
static void keep_reason(const salvaging *s)
{
    const char *text = s->trace->cut.text;
    const size_t length = strlen(s->copy);
    if (strncmp(text, s->copy, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    (void)snprintf(s->result->reason, sizeof s->result->reason, "%s", text);
}

static void compare_found(const salvaging *s)
{
    const moesim_trace_info *info = moesim_trace_get_info(s->trace);
    const moesim_trace *t = s->trace;
    moesim_salvage_result *r = s->result;
    uint64_t complete = 0;
    bool found = false;
    r->found_passes = t->found_passes;
    r->found_rows = t->found_rows;
    r->found_requests = t->found_requests;
    r->complete = moesim_h5_attr_u64(&t->file, "complete", &complete, &found, NULL) == MOESIM_OK && complete == 1;
    r->whole = r->complete && !s->touched && r->reason[0] == '\0' && info->num_passes == t->found_passes &&
               info->num_rows == t->found_rows && info->num_requests == t->found_requests;
}

static moesim_code write_kept(salvaging *s, moesim_error *err)
{
    uint32_t requests = 0;
    moesim_code code = count_requests(s, &requests, err);
    if (code != MOESIM_OK)
        return code;
    if (requests == 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: not a single pass is whole%s%s", s->copy,
                           s->result->reason[0] != '\0' ? ": " : "", s->result->reason);
    correct_tokens(s, requests);
    s->result->dropped_requests = moesim_trace_get_info(s->trace)->num_requests - requests;
    const moesim_copy_selection selection = {.request_end = requests, .layer_end = UINT64_MAX};
    return moesim_trace_copy(s->trace, s->out, &selection, s->digest, s->options, &s->result->kept, err);
}

static moesim_code work(void *cookie, moesim_error *err)
{
    salvaging *s = cookie;
    const moesim_trace_options options = {.salvage = true};
    void *memory = NULL;
    moesim_code code = moesim_trace_open(s->copy, &options, &s->trace, err);
    if (code != MOESIM_OK)
        return code;
    const moesim_trace_info *info = moesim_trace_get_info(s->trace);
    s->piece_rows = moesim_trace_rows_in(info, PIECE_BYTES);
    code = moesim_alloc(info->num_requests, sizeof *s->committed, "committed tokens", &memory, err);
    s->committed = memory;
    if (code == MOESIM_OK)
        code = check_rows(s, err);
    if (code == MOESIM_OK) {
        keep_reason(s);
        compare_found(s);
        code = s->result->whole ? MOESIM_OK : write_kept(s, err);
    }
    free(s->committed);
    moesim_trace_close(&s->trace);
    return code;
}

/* "COPY: what" becomes "IN: nothing can be salvaged: what". */
static moesim_code rename_error(const salvaging *s, moesim_error *err)
{
    char text[sizeof err->text];
    const size_t length = strlen(s->copy);
    if (strncmp(err->text, s->copy, length) != 0)
        return err->code;
    memcpy(text, err->text, sizeof text);
    return moesim_fail(err, err->code, "%s: nothing can be salvaged%s", s->in, text + length);
}

static moesim_code salvage_copy(salvaging *s, moesim_salvage_result *result, moesim_error *err)
{
    void *shared = mmap(NULL, sizeof *s->result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return moesim_fail_nomem(err, "what is shared with a child process", sizeof *s->result);
    s->result = shared;
    static const moesim_child_limits limits = MOESIM_OLD_FORMAT_LIMITS;
    const moesim_code code = moesim_child_run(work, s, &limits, s->copy, err);
    *result = *s->result;
    munmap(shared, sizeof *s->result);
    if (code == MOESIM_OK)
        return code;
    moesim_output_clean(s->out, false);   /* a child that was ended leaves its temporary file */
    if (code == MOESIM_E_INTERRUPTED)
        return moesim_fail(err, code, "interrupted while salvaging %s; nothing was kept", s->in);
    return rename_error(s, err);
}

moesim_code moesim_trace_salvage(const char *in, const char *out, const moesim_writer_options *options,
                                 moesim_salvage_result *result, moesim_error *err)
{
    char digest[MOESIM_DIGEST_CHARS];
    salvaging s = {.in = in, .out = out, .options = options, .digest = digest};
    moesim_output *copy = NULL;
    moesim_code code = moesim_refuse_same_file(in, out, err);
    if (code == MOESIM_OK)
        code = moesim_digest_file(in, digest, err);
    if (code == MOESIM_OK)
        code = moesim_output_open_file(out, &copy, err);
    if (code != MOESIM_OK)
        return code;
    s.copy = moesim_output_temporary(copy);
    code = moesim_salvage_copy(in, s.copy, &s.touched, err);
    if (code == MOESIM_OK)
        code = salvage_copy(&s, result, err);
    moesim_output_discard(&copy);
    return code;
}
