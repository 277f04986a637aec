/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace diff: do two traces hold the same?
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "cli/program.h"
#include "traces/diff.h"

typedef struct settings {
    double tolerance;
    bool quiet, verbose, old_format;
} settings;

static const moesim_arg args[] = {
    { .name = "tolerance", .type = MOESIM_ARG_REAL, .offset = offsetof(settings, tolerance), .value = "X", .min = 0.0,
      .max = 1e9, .help = "Gate scores, confidences and router scores that differ by at most X count as equal; default 0." },
    { .name = "quiet", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, quiet),
      .help = "Print nothing; the exit status tells." },
    { .name = "verbose", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, verbose),
      .help = "List what is equal too." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept files with an old HDF5 superblock; a child process under limits converts each first." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_diff = {
    .command = "moesim trace diff",
    .synopsis = "A B [options]",
    .summary = "Compares the content of two traces. Exit status as of diff: 0 where they hold the same (nothing is printed), 1 "
               "where they differ, 2 where that cannot be told. For each dataset that differs it prints how many values do, "
               "and index and values of the first; for each attribute both values. How files are stored (compression, "
               "chunks, gates as f16 or f32) and source_digest do not count. Of datasets of unlike length, what both have is "
               "compared.",
    .examples = "  moesim trace diff recorded.h5 converted.h5\n"
                "  moesim trace diff gpu.h5 cpu.h5 --tolerance 0.001\n"
                "  moesim trace diff a.h5 b.h5 --quiet && echo the same\n",
    .args = args,
    .min_positional = 2,
    .max_positional = 2,
};

typedef struct view {
    const moesim_diff *diff;
    const char *a, *b;           /* file names */
    bool verbose;
} view;

static void print_attributes(const view *v)
{
    for (size_t i = 0; i < MOESIM_DIFF_ATTRIBUTES; i++) {
        const moesim_diff_attribute *at = &v->diff->attribute[i];
        if (!at->differs && !(v->verbose && at->a[0] != '\0'))
            continue;
        printf("attribute %s: ", at->name);
        moesim_print_clean(stdout, at->a[0] != '\0' ? at->a : "(absent)");
        if (at->differs) {
            fputs(" | ", stdout);
            moesim_print_clean(stdout, at->b[0] != '\0' ? at->b : "(absent)");
        } else {
            fputs(", the same", stdout);
        }
        putchar('\n');
    }
}

static void print_shape(const uint64_t dim[3], uint32_t rank)
{
    if (rank == 3)
        printf("[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", dim[0], dim[1], dim[2]);
    else
        printf("[%" PRIu64 "]", dim[0]);
}

static void print_values(const moesim_diff_dataset *d)
{
    if (d->differing == 0) {
        printf("%" PRIu64 " value%s, the same", d->compared, d->compared == 1 ? "" : "s");
    } else {
        printf("%" PRIu64 " of %" PRIu64 " value%s differ%s; first ", d->differing, d->compared, d->compared == 1 ? "" : "s",
               d->differing == 1 ? "s" : "");
        print_shape(d->first, d->rank);
        printf(": %s | %s", d->first_a, d->first_b);
    }
    if (d->real && d->largest > 0.0)
        printf("; largest difference %.6g", d->largest);
}

static void print_both(const moesim_diff_dataset *d)
{
    if (d->shapes_differ) {
        fputs("shape ", stdout);
        print_shape(d->dim_a, d->rank);
        fputs(" | ", stdout);
        print_shape(d->dim_b, d->rank);
        fputs(d->compared > 0 ? "; in common " : ", not compared", stdout);
    }
    if (d->compared > 0)
        print_values(d);
    else if (!d->shapes_differ)
        fputs("empty, the same", stdout);
}

static void print_datasets(const view *v)
{
    for (size_t i = 0; i < MOESIM_DIFF_DATASETS; i++) {
        const moesim_diff_dataset *d = &v->diff->dataset[i];
        const bool both = d->in_a && d->in_b, same = d->in_a == d->in_b && !d->shapes_differ && d->differing == 0;
        if (same && !(v->verbose && both))
            continue;
        printf("%s: ", d->name);
        if (both) {
            print_both(d);
        } else {
            fputs("only in ", stdout);
            moesim_print_clean(stdout, d->in_a ? v->a : v->b);
        }
        putchar('\n');
    }
}

static void print_diff(const view *v)
{
    if (v->diff->differs || v->verbose) {
        moesim_print_clean(stdout, v->a);
        fputs(" | ", stdout);
        moesim_print_clean(stdout, v->b);
        fputs(v->diff->differs ? ": different\n" : ": the same content\n", stdout);
    }
    print_attributes(v);
    print_datasets(v);
}

static moesim_code diff(const settings *s, const char *a, const char *b, bool *differs, moesim_error *err)
{
    moesim_diff found;
    struct moesim_trace *one = NULL, *other = NULL;
    if (s->quiet && s->verbose)
        return moesim_fail(err, MOESIM_E_USAGE, "options --quiet and --verbose contradict each other");
    moesim_code code = moesim_cli_open_trace(a, s->old_format, &one, err);
    if (code == MOESIM_OK)
        code = moesim_cli_open_trace(b, s->old_format, &other, err);
    if (code == MOESIM_OK)
        code = moesim_trace_diff(one, other, s->tolerance, &found, err);
    moesim_trace_close(&one);
    moesim_trace_close(&other);
    if (code != MOESIM_OK)
        return code;
    *differs = found.differs;
    if (!s->quiet)
        print_diff(&(view){ &found, a, b, s->verbose });
    return moesim_program_flush(err);
}

moesim_code moesim_cmd_trace_diff(int argc, char **argv, moesim_error *err)
{
    settings s = { .tolerance = 0.0 };
    moesim_list files = { 0 };
    bool help = false, differs = false;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_diff, argc, argv, &s, &files, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_diff, stdout);
    else if (code == MOESIM_OK)
        code = diff(&s, files.item[0], files.item[1], &differs, err);
    moesim_list_fini(&files);
    if (code != MOESIM_OK)
        return MOESIM_E_USAGE;   /* exit status 2, whatever the cause: 1 says that the traces differ */
    return differs ? MOESIM_E_FORMAT : MOESIM_OK;   /* without a text nothing more is printed */
}
