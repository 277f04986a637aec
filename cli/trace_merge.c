/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace merge: requests of several traces in one.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "traces/merge.h"

#define MAX_TRACES 1024

typedef struct settings {
    const char *output, *model;
    int compression;
    bool old_format;
} settings;

static const moesim_arg args[] = {
    { .name = "output", .letter = 'o', .type = MOESIM_ARG_STRING, .offset = offsetof(settings, output), .value = "OUT",
      .help = "The merged trace; needed." },
    { .name = "model", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, model), .value = "NAME",
      .help = "The merged trace's model_id, for traces that call one model by several names." },
    { .name = "compression", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, compression),
      .choices = moesim_compressions, .help = "How to compress; default zstd." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept files with an old HDF5 superblock; a child process under limits converts each first." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_merge = {
    .command = "moesim trace merge",
    .synopsis = "TRACE… -o OUT [options]",
    .summary = "Puts the requests of several traces of one model into one trace, in the order given and numbered "
               "anew. The traces must agree in what describes the model and how it was recorded; the first "
               "difference is an error that names both files. Gate scores, confidences, router scores, token ids, "
               "times and residency are kept where all have them; what is left out is said. source_digest becomes "
               "the digests of all parts. Merging one trace gives the bytes that 'moesim trace convert' writes.",
    .examples = "  moesim trace merge gsm8k.h5 humaneval.h5 mbpp.h5 -o all.h5\n"
                "  moesim trace merge run?.h5 -o all.h5 --model LLaDA2.0-mini\n",
    .args = args,
    .min_positional = 1,
    .max_positional = MAX_TRACES,
};

static void on_note(void *cookie, const char *text)
{
    (void)cookie;
    moesim_log(MOESIM_LOG_WARN, "%s", text);
}

static moesim_code merge(const settings *s, const moesim_list *files, moesim_error *err)
{
    const moesim_merge_options options = {
        .writer = { s->compression, 0 }, .model = s->model, .old_format = s->old_format, .note = on_note,
    };
    moesim_copy_result result = { 0 };
    if (s->output == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "moesim trace merge: name the merged trace with -o OUT");
    if (s->model != NULL && s->model[0] == '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "option --model: a name is needed");
    const moesim_code code = moesim_trace_merge(files->item, files->n, s->output, &options, &result, err);
    if (code == MOESIM_OK) {
        moesim_print_clean(stdout, s->output);
        printf(": %zu trace%s; %" PRIu32 " requests, %" PRIu64 " passes, %" PRIu64 " rows, %s\n", files->n,
               files->n == 1 ? "" : "s", result.requests, result.passes, result.rows, moesim_compressions[s->compression]);
    }
    return code;
}

moesim_code moesim_cmd_trace_merge(int argc, char **argv, moesim_error *err)
{
    settings s = { .compression = MOESIM_ZSTD };
    moesim_list files = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_merge, argc, argv, &s, &files, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_merge, stdout);
    else if (code == MOESIM_OK)
        code = merge(&s, &files, err);
    moesim_list_fini(&files);
    return code;
}
