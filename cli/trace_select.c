/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace select: a part of a trace as a trace.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "traces/copy.h"

typedef struct settings {
    moesim_range requests, layers;
    const char *workload;
    int compression;
    bool old_format;
} settings;

static const moesim_arg args[] = {
    { .name = "requests", .type = MOESIM_ARG_RANGE, .offset = offsetof(settings, requests), .value = "a:b",
      .help = "Keep requests a up to but without b." },
    { .name = "layers", .type = MOESIM_ARG_RANGE, .offset = offsetof(settings, layers), .value = "a:b",
      .help = "Keep MoE layers a up to but without b, counted from 0." },
    { .name = "workload", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, workload), .value = "NAME",
      .help = "Keep requests of this workload alone." },
    { .name = "compression", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, compression),
      .choices = moesim_compressions, .help = "How to compress; default zstd." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept a file with an old HDF5 superblock. It is read in a child process under memory and CPU limits." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_select = {
    .command = "moesim trace select",
    .synopsis = "IN OUT [--requests a:b] [--layers a:b] [--workload NAME]",
    .summary = "Writes the part of a trace that all given conditions keep. Requests and layers are numbered anew from 0 (the "
               "layers' numbers in the model stay); attributes stay, source_digest becomes the digest of IN. A selection that "
               "keeps nothing is an error.",
    .examples = "  moesim trace select all.h5 part.h5 --requests 0:20\n"
                "  moesim trace select all.h5 math.h5 --workload gsm8k --layers 4:8\n",
    .args = args,
    .min_positional = 2,
    .max_positional = 2,
};

static void report(const char *out, const moesim_trace_info *from, const moesim_copy_selection *s,
                   const moesim_copy_result *r)
{
    moesim_print_clean(stdout, out);
    printf(": %" PRIu32 " of %" PRIu32 " requests, numbered anew; layers %" PRIu64 "..%" PRIu64 " of 0..%" PRIu32
           "; %" PRIu64 " of %" PRIu64 " passes, %" PRIu64 " of %" PRIu64 " rows\n",
           r->requests, from->num_requests, s->layer_begin, s->layer_begin + r->layers - 1, from->num_layers - 1,
           r->passes, from->num_passes, r->rows, from->num_rows);
}

static moesim_code select_part(const settings *s, const char *in, const char *out, moesim_error *err)
{
    if (!s->requests.given && !s->layers.given && s->workload == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "nothing to select by; give --requests, --layers or --workload (the whole "
                           "trace is what `moesim trace convert` writes)");
    const moesim_copy_selection selection = {
        .request_begin = s->requests.given ? s->requests.begin : 0,
        .request_end = s->requests.given ? s->requests.end : UINT64_MAX,
        .layer_begin = s->layers.given ? s->layers.begin : 0,
        .layer_end = s->layers.given ? s->layers.end : UINT64_MAX,
        .workload = s->workload,
    };
    const moesim_writer_options options = { s->compression, 0 };
    struct moesim_trace *trace = NULL;
    moesim_copy_result result = { 0 };
    moesim_code code = moesim_cli_open_trace(in, s->old_format, &trace, err);
    if (code == MOESIM_OK)
        code = moesim_trace_copy(trace, out, &selection, NULL, &options, &result, err);
    if (code == MOESIM_OK)
        report(out, moesim_trace_get_info(trace), &selection, &result);
    moesim_trace_close(&trace);
    return code;
}

moesim_code moesim_cmd_trace_select(int argc, char **argv, moesim_error *err)
{
    settings s = { .compression = MOESIM_ZSTD };
    moesim_list files = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_select, argc, argv, &s, &files, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_select, stdout);
    else if (code == MOESIM_OK)
        code = select_part(&s, files.item[0], files.item[1], err);
    moesim_list_fini(&files);
    return code;
}
