/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace salvage: what a killed recorder left, as a trace.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "traces/salvage.h"

typedef struct settings {
    int compression;
} settings;

static const moesim_arg args[] = {
    { .name = "compression", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, compression),
      .choices = moesim_compressions, .help = "How to compress; default zstd." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_salvage = {
    .command = "moesim trace salvage",
    .synopsis = "IN OUT [options]",
    .summary = "Closes the trace that a killed recorder left: OUT gets all passes up to the first one that is not whole in "
               "every column, and marks them complete. Last requests without a committed token are left out. Prints what "
               "was kept, what was lost and why. IN is only read; let no recorder write to it. A trace that is complete "
               "and whole needs no salvage: an error says so, nothing is written, the exit status is 1, as it is where "
               "nothing can be kept.",
    .examples = "  moesim trace salvage killed.h5 saved.h5\n"
                "  moesim trace validate --strict saved.h5\n",
    .args = args,
    .min_positional = 2,
    .max_positional = 2,
};

/* Returns how many kinds of things were lost so far. */
static int print_lost(int kinds, const char *what, uint64_t found, uint64_t kept)
{
    if (found <= kept)
        return kinds;
    printf("%s%" PRIu64 " of %" PRIu64 " %s", kinds == 0 ? "lost: " : ", ", found - kept, found, what);
    return kinds + 1;
}

static void report(const char *out, const settings *s, const moesim_salvage_result *r)
{
    moesim_print_clean(stdout, out);
    printf(": %" PRIu32 " request%s, %" PRIu64 " passes, %" PRIu64 " rows, %s\n", r->kept.requests,
           r->kept.requests == 1 ? "" : "s", r->kept.passes, r->kept.rows, moesim_compressions[s->compression]);
    int kinds = print_lost(0, "requests", r->found_requests, r->kept.requests);
    kinds = print_lost(kinds, "passes", r->found_passes, r->kept.passes);
    kinds = print_lost(kinds, "rows", r->found_rows, r->kept.rows);
    if (kinds == 0)
        fputs("lost: nothing that the file holds", stdout);
    puts(r->complete ? "" : "; what the recorder still had in memory is not in it");
    if (r->reason[0] != '\0') {
        fputs("it ends there because of ", stdout);
        moesim_print_clean(stdout, r->reason);
        putchar('\n');
    }
    if (r->dropped_requests == 1)
        puts("left out: the last request, which has no committed token");
    else if (r->dropped_requests > 1)
        printf("left out: the last %" PRIu32 " requests, which have no committed token\n", r->dropped_requests);
    if (r->corrected_requests > 0)
        printf("corrected: output_tokens of %" PRIu32 " request%s, which counted rows that are lost\n",
               r->corrected_requests, r->corrected_requests == 1 ? "" : "s");
    if (r->kept.requests > 1)
        printf("the last request may be cut short; to leave it out: moesim trace select IN OUT --requests 0:%" PRIu32 "\n",
               r->kept.requests - 1);
}

static moesim_code salvage(const settings *s, const char *in, const char *out, moesim_error *err)
{
    const moesim_writer_options options = { s->compression, 0 };
    moesim_salvage_result result = { 0 };
    const moesim_code code = moesim_trace_salvage(in, out, &options, &result, err);
    if (code != MOESIM_OK)
        return code;
    if (result.whole)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s is complete and whole: there is nothing to salvage, use it as it is; "
                           "%s was not written", in, out);
    report(out, s, &result);
    return MOESIM_OK;
}

moesim_code moesim_cmd_trace_salvage(int argc, char **argv, moesim_error *err)
{
    settings s = { .compression = MOESIM_ZSTD };
    moesim_list files = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_salvage, argc, argv, &s, &files, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_salvage, stdout);
    else if (code == MOESIM_OK)
        code = salvage(&s, files.item[0], files.item[1], err);
    moesim_list_fini(&files);
    return code;
}
