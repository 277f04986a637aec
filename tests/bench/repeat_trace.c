/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeats the requests of a trace until there are as many as wanted, for benchmarks. usage: repeat_trace IN OUT REQUESTS
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/options.h"
#include "traces/writer.h"

#define WINDOW ((size_t)64 << 20)
#define COLUMNS \
    (MOESIM_COLUMN_EXPERT | MOESIM_COLUMN_GATE | MOESIM_COLUMN_CONFIDENCE | MOESIM_COLUMN_STATE | MOESIM_COLUMN_POSITION)

typedef struct job {
    moesim_trace *trace;
    const moesim_trace_info *info;
    moesim_cursor *cursor;
    moesim_writer *writer;
    uint64_t forward;            /* a number of its own for every pass: nothing was recorded in one batch */
} job;

static moesim_code copy_request(job *j, uint32_t from, uint32_t to, moesim_error *err)
{
    const moesim_trace_request *request = moesim_trace_get_request(j->trace, from);
    moesim_code code = MOESIM_OK;
    for (uint64_t p = request->first; request->passes > 0 && p <= request->last && code == MOESIM_OK; p++) {
        moesim_pass pass;
        moesim_rows rows;
        code = moesim_trace_pass(j->trace, p, &pass, err);
        if (code == MOESIM_OK && pass.request != from)
            continue;
        if (code == MOESIM_OK)
            code = moesim_cursor_rows(j->cursor, pass.row_begin, pass.row_end, &rows, err);
        pass.request = to;
        pass.forward = j->forward++;
        if (code == MOESIM_OK)
            code = moesim_writer_pass(j->writer, &pass, &rows, 0, err);
    }
    return code;
}

static moesim_code repeat(job *j, const char *path, uint32_t requests, moesim_error *err)
{
    moesim_trace_info info = *j->info;
    info.has_prob = info.has_forward = info.has_token_id = info.has_residency = info.has_pass_ns = false;
    if (moesim_cursor_open(j->trace, COLUMNS, WINDOW, &j->cursor, err) != MOESIM_OK ||
        moesim_writer_create(path, &info, moesim_trace_layer_ids(j->trace), moesim_trace_expert_bytes(j->trace), NULL,
                             &j->writer, err) != MOESIM_OK)
        return err->code;
    moesim_code code = MOESIM_OK;
    for (uint32_t q = 0; q < requests && code == MOESIM_OK; q++)
        code = moesim_writer_request(j->writer, moesim_trace_get_request(j->trace, q % info.num_requests), err);
    for (uint32_t q = 0; q < requests && code == MOESIM_OK; q++)
        code = copy_request(j, q % info.num_requests, q, err);
    return code == MOESIM_OK ? moesim_writer_finish(&j->writer, err) : code;
}

int main(int argc, char **argv)
{
    moesim_error err = MOESIM_ERROR_INIT;
    job j = { NULL, NULL, NULL, NULL, 0 };
    uint64_t requests = 0;
    if (argc != 4 || moesim_parse_u64(argv[3], 1, 1000000, "REQUESTS", &requests, &err) != MOESIM_OK) {
        fprintf(stderr, "usage: repeat_trace IN OUT REQUESTS\n");
        return 2;
    }
    moesim_code code = moesim_trace_open(argv[1], NULL, &j.trace, &err);
    if (code == MOESIM_OK) {
        j.info = moesim_trace_get_info(j.trace);
        code = repeat(&j, argv[2], (uint32_t)requests, &err);
    }
    if (code != MOESIM_OK)
        fprintf(stderr, "repeat_trace: %s\n", err.text);
    moesim_writer_discard(&j.writer);
    moesim_cursor_close(&j.cursor);
    moesim_trace_close(&j.trace);
    return moesim_exit_status(code);
}
