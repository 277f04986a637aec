/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim compare`: two results, paired on requests.
 */
#include "cli/compare.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/print.h"

#define AT(field) offsetof(moesim_compare_options, field)

static const moesim_arg args[] = {
    { "metric", 0, MOESIM_ARG_LIST, AT(metric), "M[,M…]", 0, 0, NULL,
      "Figures to compare (default: tpot_ms where there are times, and misses_per_pass): tpot_ms, ttft_ms, misses_per_pass, "
      "utilisation, hit_rate, moved_bytes_per_token, prefetched_bytes_per_token, cpu_share, tokens_per_pass, or any column of "
      "numbers of the table requests, whose mean over requests is taken." },
    { "a-policy", 0, MOESIM_ARG_STRING, AT(policy[0]), "P", 0, 0, NULL,
      "Compare this policy's cells of A with those of --b-policy in B, as the column `policy` writes them. Both files may be "
      "the same." },
    { "b-policy", 0, MOESIM_ARG_STRING, AT(policy[1]), "P", 0, 0, NULL, "See --a-policy." },
    { "format", 0, MOESIM_ARG_CHOICE, AT(format), NULL, 0, 0, moesim_formats, "What is printed (default: table)." },
    { "seed", 0, MOESIM_ARG_U64, AT(seed), "S", 0, MOESIM_ARG_MAX_SEED, NULL,
      "Seed of the resamples and of the flips (default 1)." },
    { NULL, 0, MOESIM_ARG_FLAG, 0, NULL, 0, 0, NULL, NULL },
};

const moesim_usage moesim_usage_compare = {
    .command = "moesim compare",
    .synopsis = "A.h5 B.h5 [options]",
    .summary = "Says by how much two results differ, cell by cell, and whether the requests bear it out. Cells match by trace "
               "(its digest), policy, cache, bandwidth and batch; where that is not enough, also by profile, dtype and "
               "options. Each difference is A - B over the requests that both have, with a 95 % interval from resampled "
               "requests and a sign-flip test. Fails if no cell is common.",
    .examples = "  moesim compare before.h5 after.h5\n"
                "  moesim compare sweep.h5 sweep.h5 --a-policy oled --b-policy lru \\\n"
                "      --metric tpot_ms\n",
    .args = args,
    .min_positional = 2,
    .max_positional = 2,
};

static moesim_code read_side(moesim_comparison *c, int side, moesim_error *err)
{
    const char *path = c->options->path[side];
    const moesim_code code = moesim_result_read(path, &c->result[side], err);
    if (code != MOESIM_OK)
        return code;
    c->cells[side] = moesim_result_find(&c->result[side], "cells");
    c->requests[side] = moesim_result_find(&c->result[side], "requests");
    if (c->cells[side] == NULL || c->requests[side] == NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: no table %s, which a comparison needs", path,
                           c->cells[side] == NULL ? "cells" : "requests");
    const moesim_column_data *cell = moesim_table_find(c->cells[side], "cell");
    return cell != NULL && cell->integer != NULL
               ? MOESIM_OK
               : moesim_fail(err, MOESIM_E_FORMAT, "%s: table cells lacks the integer column cell", path);
}

static moesim_code print(const moesim_comparison *c, moesim_error *err)
{
    if (c->options->format == MOESIM_FORMAT_JSON)
        return moesim_compare_print_json(c, stdout, err);
    if (c->options->format == MOESIM_FORMAT_CSV)
        moesim_compare_print_csv(c, stdout);
    else
        moesim_compare_print_table(c, stdout);
    return MOESIM_OK;
}

static moesim_code compare(const moesim_compare_options *options, moesim_error *err)
{
    moesim_comparison c = { .options = options };
    moesim_code code = read_side(&c, 0, err);
    if (code == MOESIM_OK)
        code = read_side(&c, 1, err);
    if (code == MOESIM_OK) {
        (void)moesim_result_same(&c.result[0], &c.result[1], c.difference, sizeof c.difference);
        code = moesim_compare_match(&c, err);
    }
    if (code == MOESIM_OK)
        code = moesim_compare_figures(&c, err);
    if (code == MOESIM_OK)
        code = print(&c, err);
    free(c.pair);
    free(c.row);
    moesim_result_fini(&c.result[0]);
    moesim_result_fini(&c.result[1]);
    return code;
}

moesim_code moesim_cmd_compare(int argc, char **argv, moesim_error *err)
{
    moesim_compare_options options = { .seed = 1 };
    moesim_list files = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_compare, argc, argv, &options, &files, &help, err);
    if (code == MOESIM_OK && help) {
        moesim_args_help(&moesim_usage_compare, stdout);
    } else if (code == MOESIM_OK && (options.policy[0] == NULL) != (options.policy[1] == NULL)) {
        code = moesim_fail(err, MOESIM_E_USAGE, "--a-policy and --b-policy go together: one policy of each result");
    } else if (code == MOESIM_OK) {
        options.path[0] = files.item[0];
        options.path[1] = files.item[1];
        code = compare(&options, err);
    }
    moesim_list_fini(&options.metric);
    moesim_list_fini(&files);
    return code;
}
