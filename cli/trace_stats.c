/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace stats: what characterises a trace, beside the paper's values.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/paths.h"
#include "cli/cachelist.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/stats_report.h"

typedef struct settings {
    int format;
    const char *output;
    moesim_list cache;
    bool old_format;
} settings;

static const moesim_arg args[] = {
    { .name = "cache", .type = MOESIM_ARG_LIST, .offset = offsetof(settings, cache), .value = "N[,N...]",
      .max = MOESIM_MAX_CACHES,
      .help = "Slots per layer for which the regime r = |A| / slots is shown, or ranges a:b:s; 40,100 is the default." },
    { .name = "format", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, format), .choices = moesim_formats,
      .help = "How to print; a table is the default." },
    { .name = "output", .letter = 'o', .type = MOESIM_ARG_STRING, .offset = offsetof(settings, output), .value = "FILE",
      .help = "Also write the numbers as an HDF5 file, for plotting." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept a file with an old HDF5 superblock; a child process under limits converts it first." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_stats = {
    .command = "moesim trace stats",
    .synopsis = "TRACE [options]",
    .summary = "Characterises a trace: active experts by layer, overlap between passes by lag and over block boundaries, "
               "persistence of routes by state, stability by confidence, commits, and the regime for given capacities; beside "
               "the values that the OLED-MoE paper reports.",
    .examples = "  moesim trace stats trace.h5\n  moesim trace stats trace.h5 --cache 20:100:20 -o stats.h5\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 1,
};

/* The capacities asked for, or the paper's 40 and 100 as far as there are so many experts. */
static moesim_code capacities(const moesim_list *texts, uint32_t experts, uint32_t **out, size_t *n, moesim_error *err)
{
    static const uint32_t usual[] = { 40, 100 };
    moesim_cachelist list = { 0 };
    void *memory = NULL;
    moesim_code code = MOESIM_OK;
    if (texts->n > 0)
        code = moesim_cachelist_parse(texts, false, &list, err);
    if (code == MOESIM_OK)
        code = moesim_cachelist_check(&list, experts, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(list.n + 2, sizeof **out, "capacities", &memory, err);
    if (code == MOESIM_OK) {
        *out = memory;
        *n = list.n;
        for (size_t i = 0; i < list.n; i++)
            (*out)[i] = (uint32_t)list.amount[i];
        for (size_t i = 0; texts->n == 0 && i < 2; i++)
            if (usual[i] <= experts)
                (*out)[(*n)++] = usual[i];
    }
    moesim_cachelist_fini(&list);
    return code;
}

static void csv_row(void *cookie, const moesim_stat_row *row)
{
    (void)cookie;
    printf("%s,%s,", row->figure, row->key);
    if (!isnan(row->value))
        printf("%.17g", row->value);
    printf(",%" PRIu64 ",,\n", row->n);
}

static void print_csv(const moesim_trace_stats *s, const uint32_t *caches, size_t n)
{
    fputs("figure,key,value,n,paper,verdict\n", stdout);
    moesim_stats_each(s, caches, n, csv_row, NULL);
    for (const moesim_claim *c = moesim_claims; c->what != NULL; c++) {
        const double value = c->value(s);
        fputs("paper,", stdout);
        moesim_print_csv(stdout, c->what);
        putchar(',');
        if (!isnan(value))
            printf("%.17g", value);
        fputs(",,", stdout);
        moesim_print_csv(stdout, c->paper);
        printf(",%s\n", moesim_claim_verdict(c, value));
    }
}

static void json_row(void *cookie, const moesim_stat_row *row)
{
    json_t *figures = cookie;
    json_t *list = json_object_get(figures, row->figure);
    if (list == NULL) {
        list = json_array();
        json_object_set_new(figures, row->figure, list);
    }
    json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "key", row->key, "value", moesim_json_real(row->value), "n",
                                          json_integer((json_int_t)row->n)));
}

static moesim_code print_json(const moesim_trace_stats *s, const moesim_trace_info *info, const uint32_t *caches, size_t n,
                              moesim_error *err)
{
    char text[640];
    json_t *figures = json_object(), *claims = json_array();
    const bool comparable = moesim_claims_comparable(info, text, sizeof text);
    moesim_stats_each(s, caches, n, json_row, figures);
    for (const moesim_claim *c = moesim_claims; c->what != NULL; c++) {
        const double value = c->value(s);
        json_array_append_new(claims, json_pack("{s:s, s:s, s:o, s:s, s:s}", "place", c->place, "what", c->what, "value",
                                                moesim_json_real(value), "paper", c->paper, "verdict",
                                                moesim_claim_verdict(c, value)));
    }
    json_t *trace = json_pack("{s:o, s:s, s:o, s:i, s:i, s:i, s:i, s:I}", "path", moesim_json_text(info->path), "sha256",
                              info->digest, "model_id", moesim_json_text(info->model_id), "num_moe_layers",
                              (int)s->num_layers, "num_experts", (int)s->num_experts, "top_k", (int)s->top_k, "block_length",
                              (int)info->block_length, "decode_passes", (json_int_t)s->decode_passes);
    return moesim_print_json(stdout, json_pack("{s:s, s:o, s:o, s:{s:b, s:o, s:o}}", "schema", "moesim.trace-stats/1", "trace",
                                               trace, "figures", figures, "paper", "same_model", comparable, "note",
                                               moesim_json_text(text), "claims", claims), err);
}

static moesim_code report(moesim_trace *trace, const settings *s, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    moesim_trace_stats stats = { 0 };
    uint32_t *caches = NULL;
    size_t n = 0;
    moesim_code code = capacities(&s->cache, info->num_experts, &caches, &n, err);
    if (code == MOESIM_OK)
        code = moesim_trace_stats_compute(trace, &stats, err);
    if (code == MOESIM_OK)
        code = moesim_trace_digest(trace, err);
    if (code == MOESIM_OK && s->output != NULL)
        code = moesim_trace_stats_write(&stats, info, caches, n, s->output, err);
    if (code == MOESIM_OK && s->format == MOESIM_FORMAT_JSON)
        code = print_json(&stats, info, caches, n, err);
    else if (code == MOESIM_OK && s->format == MOESIM_FORMAT_CSV)
        print_csv(&stats, caches, n);
    else if (code == MOESIM_OK)
        moesim_stats_print_table(&stats, info, caches, n);
    moesim_trace_stats_fini(&stats);
    free(caches);
    return code;
}

moesim_code moesim_cmd_trace_stats(int argc, char **argv, moesim_error *err)
{
    settings s = { 0 };
    moesim_trace *trace = NULL;
    moesim_list words = { 0 };
    bool help;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_stats, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help) {
        moesim_args_help(&moesim_usage_trace_stats, stdout);
    } else if (code == MOESIM_OK) {
        const moesim_named_file in = { "the trace", words.item[0] }, out = { "option -o", s.output };
        code = moesim_check_outputs(&in, 1, &out, 1, err);
        if (code == MOESIM_OK)
            code = moesim_cli_open_trace(words.item[0], s.old_format, &trace, err);
        if (code == MOESIM_OK)
            code = report(trace, &s, err);
        moesim_trace_close(&trace);
    }
    moesim_list_fini(&words);
    moesim_list_fini(&s.cache);
    return code;
}
