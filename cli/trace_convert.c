/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace convert: the same trace, stored anew.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "traces/copy.h"

typedef struct settings {
    int compression;
    uint64_t level;
    bool old_format;
} settings;

static const moesim_arg args[] = {
    { .name = "compression", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, compression),
      .choices = moesim_compressions,
      .help = "How to compress; zstd (the default) is read several times faster, gzip by every program that reads HDF5." },
    { .name = "level", .type = MOESIM_ARG_U64, .offset = offsetof(settings, level), .value = "N", .min = 1, .max = 19,
      .help = "Effort: for zstd 3 by default, for gzip 6 and at most 9." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept a file with an old HDF5 superblock. It is read in a child process under memory and CPU limits." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_convert = {
    .command = "moesim trace convert",
    .synopsis = "IN OUT [options]",
    .summary = "Writes the same trace in the current file format, compressed as asked. Content and attributes stay; "
               "source_digest becomes the digest of IN. Converting the same file again gives the same bytes.",
    .examples = "  moesim trace convert recorded.h5 fast.h5\n"
                "  moesim trace convert old.h5 new.h5 --old-format --compression gzip\n",
    .args = args,
    .min_positional = 2,
    .max_positional = 2,
};

static moesim_code convert(const settings *s, const char *in, const char *out, moesim_error *err)
{
    const moesim_writer_options options = { s->compression, (int)s->level };
    struct moesim_trace *trace = NULL;
    moesim_copy_result result = { 0 };
    moesim_code code = moesim_cli_open_trace(in, s->old_format, &trace, err);
    if (code == MOESIM_OK)
        code = moesim_trace_copy(trace, out, NULL, NULL, &options, &result, err);
    moesim_trace_close(&trace);
    if (code == MOESIM_OK) {
        moesim_print_clean(stdout, out);
        printf(": %" PRIu32 " requests, %" PRIu64 " passes, %" PRIu64 " rows, %s\n", result.requests, result.passes,
               result.rows, moesim_compressions[s->compression]);
    }
    return code;
}

moesim_code moesim_cmd_trace_convert(int argc, char **argv, moesim_error *err)
{
    settings s = { .compression = MOESIM_ZSTD };
    moesim_list files = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_convert, argc, argv, &s, &files, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_convert, stdout);
    else if (code == MOESIM_OK)
        code = convert(&s, files.item[0], files.item[1], err);
    moesim_list_fini(&files);
    return code;
}
