/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace import: recordings of other programs as traces.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "traces/import_route_trace.h"

enum source { NONE = -1, ROUTE_TRACE = 0 };     /* what follows is read by the Python package */

typedef struct settings {
    int from;
    const char *model, *workload;
    int compression;
} settings;

static const char *const sources[] = { "route-trace", "sglang", "routed-experts", "jsonl", "moelens", NULL };

static const moesim_arg args[] = {
    { .name = "from", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, from), .choices = sources,
      .help = "What IN is: route-trace is the public \"route_trace v1\" CSV. The others are read by the Python package in "
              "traces/record: python -m moesim_record.convert --from sglang|routed-experts|jsonl|moelens IN -o OUT." },
    { .name = "model", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, model), .value = "NAME",
      .help = "The model's name; default: the file name that IN records." },
    { .name = "workload", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, workload), .value = "NAME",
      .help = "The workload of all requests; default: unknown." },
    { .name = "compression", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, compression),
      .choices = moesim_compressions, .help = "How to compress; default zstd." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_import = {
    .command = "moesim trace import",
    .synopsis = "--from route-trace IN OUT [options]",
    .summary = "Turns a recording of another program into a trace. Each turn becomes a request, its prefill one pass, every "
               "decode step a pass of one token. Every line is checked; a damaged file is refused with the line's number.",
    .examples = "  moesim trace import --from route-trace q.route.csv q.h5 --model Qwen3-30B-A3B\n",
    .args = args,
    .min_positional = 2,
    .max_positional = 2,
};

static moesim_code import(const settings *s, const char *in, const char *out, moesim_error *err)
{
    if (s->from == NONE)
        return moesim_fail(err, MOESIM_E_USAGE, "say what %s is: --from route-trace", in);
    if (s->from != ROUTE_TRACE)
        return moesim_fail(err, MOESIM_E_USAGE, "--from %s is read by Python: python -m moesim_record.convert --from %s %s "
                           "-o %s (pip install ./traces/record)", sources[s->from], sources[s->from], in, out);
    const moesim_writer_options options = { s->compression, 0 };
    moesim_import_result r = { 0 };
    const moesim_code code = moesim_import_route_trace(in, out, s->model, s->workload, &options, &r, err);
    if (code == MOESIM_OK) {
        moesim_print_clean(stdout, out);
        printf(": %" PRIu64 " lines; %" PRIu32 " requests, %" PRIu64 " passes, %" PRIu64 " rows, %" PRIu64
               " slots without a route\n", r.lines, r.requests, r.passes, r.rows, r.dropped);
    }
    return code;
}

moesim_code moesim_cmd_trace_import(int argc, char **argv, moesim_error *err)
{
    settings s = { .from = NONE, .compression = MOESIM_ZSTD };
    moesim_list files = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_import, argc, argv, &s, &files, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_import, stdout);
    else if (code == MOESIM_OK)
        code = import(&s, files.item[0], files.item[1], err);
    moesim_list_fini(&files);
    return code;
}
