/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim merge`: shards, or parts of one grid that were run apart, as one result.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/paths.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "sim/result.h"

#define MAX_RESULTS 4096

typedef struct settings {
    const char *output;
} settings;

static const moesim_arg args[] = {
    { .name = "output", .letter = 'o', .type = MOESIM_ARG_STRING, .offset = offsetof(settings, output), .value = "FILE",
      .help = "The merged result (HDF5); needed." },
    { .name = NULL },
};

const moesim_usage moesim_usage_merge = {
    .command = "moesim merge",
    .synopsis = "RESULT… -o OUT.h5",
    .summary = "Puts shards of a sweep together again. All results must be of one configuration; a cell that several of them "
               "have must be the same in all. Merging every shard gives the bytes of the sweep done at once; with some "
               "missing, the result says which it holds.",
    .examples = "  moesim merge part1.h5 part2.h5 part3.h5 -o all.h5\n",
    .args = args,
    .min_positional = 1,
    .max_positional = MAX_RESULTS,
};

/* Numbers of the shards that are not in "1,3/4". */
static void print_missing(const char *shard)
{
    const uint64_t of = strtoull(strchr(shard, '/') + 1, NULL, 10);
    const char *at = shard;
    uint64_t have = 0;
    char *end = NULL;
    const char *between = "";
    uint64_t next = strtoull(at, &end, 10);
    printf("; missing ");
    for (uint64_t i = 1; i <= of; i++) {
        if (i != next) {
            printf("%s%" PRIu64, between, i);
            between = ",";
            continue;
        }
        have++;
        if (*end == ',')
            next = strtoull(end + 1, &end, 10);
    }
    printf(" (%" PRIu64 " of %" PRIu64 " shards)", have, of);
}

static void report(const char *path, const moesim_result *merged, size_t results)
{
    const moesim_table *cells = moesim_result_find(merged, "cells");
    const char *shard = moesim_result_get(merged, "shard");
    moesim_print_clean(stdout, path);
    printf(": %zu result%s, %zu cells", results, results == 1 ? "" : "s", cells != NULL ? cells->rows : 0);
    if (shard != NULL)
        print_missing(shard);
    putchar('\n');
}

static moesim_code merge(const settings *s, const moesim_list *files, moesim_result *result, moesim_error *err)
{
    moesim_result merged;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < files->n && code == MOESIM_OK; i++)
        code = moesim_result_read(files->item[i], &result[i], err);
    if (code == MOESIM_OK)
        code = moesim_result_merge(result, files->item, files->n, &merged, err);
    if (code != MOESIM_OK)
        return code;
    code = moesim_result_write(&merged, s->output, err);
    if (code == MOESIM_OK)
        report(s->output, &merged, files->n);
    moesim_result_fini(&merged);
    return code;
}

static moesim_code check(const settings *s, const moesim_list *files, moesim_error *err)
{
    if (s->output == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "moesim merge: name the merged result with -o FILE");
    for (size_t i = 0; i < files->n; i++) {
        const moesim_named_file in = { "a result to merge", files->item[i] }, out = { "option -o", s->output };
        if (moesim_check_outputs(&in, 1, &out, 1, err) != MOESIM_OK)
            return err->code;
        for (size_t k = 0; k < i; k++)
            if (moesim_same_file(files->item[i], files->item[k]))
                return moesim_fail(err, MOESIM_E_USAGE, "%s is given twice", files->item[i]);
    }
    return MOESIM_OK;
}

static moesim_code run(const settings *s, const moesim_list *files, moesim_error *err)
{
    void *results = NULL;
    moesim_code code = check(s, files, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(files->n, sizeof(moesim_result), "results", &results, err);
    if (code == MOESIM_OK)
        code = merge(s, files, results, err);
    for (size_t i = 0; results != NULL && i < files->n; i++)
        moesim_result_fini((moesim_result *)results + i);
    free(results);
    return code;
}

moesim_code moesim_cmd_merge(int argc, char **argv, moesim_error *err)
{
    settings s = { NULL };
    moesim_list files = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_merge, argc, argv, &s, &files, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_merge, stdout);
    else if (code == MOESIM_OK)
        code = run(&s, &files, err);
    moesim_list_fini(&files);
    return code;
}
