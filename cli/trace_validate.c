/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace validate: every rule of the format, over the whole file.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "base/log.h"
#include "traces/validate.h"

typedef struct settings {
    bool strict, old_format;
} settings;

static const moesim_arg args[] = {
    { .name = "strict", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, strict),
      .help = "Refuse what is otherwise a warning." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept a file with an old HDF5 superblock; a child process under limits converts it first." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_validate = {
    .command = "moesim trace validate",
    .synopsis = "TRACE [options]",
    .summary = "Reads a whole trace and checks every rule of its format. The first broken rule is the error, with dataset and "
               "index; what is legal but suspicious is a warning on standard error.",
    .examples = "  moesim trace validate trace.h5\n  moesim trace validate --strict trace.h5\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 1,
};

static void on_warning(void *cookie, const char *text)
{
    unsigned *count = cookie;
    (*count)++;
    moesim_log(MOESIM_LOG_WARN, "%s", text);
}

static moesim_code validate(const char *path, const settings *s, moesim_error *err)
{
    moesim_trace *trace = NULL;
    unsigned warnings = 0;
    moesim_code code = moesim_cli_open_trace(path, s->old_format, &trace, err);
    if (code == MOESIM_OK)
        code = moesim_trace_validate(trace, s->strict, on_warning, &warnings, err);
    if (code == MOESIM_OK) {
        const moesim_trace_info *info = moesim_trace_get_info(trace);
        printf("ok: %" PRIu64 " passes, %" PRIu64 " rows, %" PRIu32 " requests, %" PRIu32 " layers, %" PRIu32
               " experts, top %" PRIu32 "; %u warning%s\n", info->num_passes, info->num_rows, info->num_requests,
               info->num_layers, info->num_experts, info->top_k, warnings, warnings == 1 ? "" : "s");
    }
    moesim_trace_close(&trace);
    return code;
}

moesim_code moesim_cmd_trace_validate(int argc, char **argv, moesim_error *err)
{
    settings s = { 0 };
    moesim_list words = { 0 };
    bool help;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_validate, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_validate, stdout);
    else if (code == MOESIM_OK)
        code = validate(words.item[0], &s, err);
    moesim_list_fini(&words);
    return code;
}
