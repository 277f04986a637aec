/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace head: some passes, readable.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/log.h"
#include "cli/cli.h"
#include "traces/trace.h"

#define WINDOW_BYTES ((size_t)64 << 20)
#define BATCH_ROWS 256u
#define MAX_WORDS 16u            /* of 1024 experts */

typedef struct settings {
    moesim_range passes;
    uint64_t layer, rows;
    bool old_format;
} settings;

static const moesim_arg args[] = {
    { .name = "passes", .type = MOESIM_ARG_RANGE, .offset = offsetof(settings, passes), .value = "a:b",
      .help = "Passes a up to but without b; the first five are the default." },
    { .name = "layer", .type = MOESIM_ARG_U64, .offset = offsetof(settings, layer), .value = "L",
      .help = "MoE layer whose routes are shown, counted from 0, the default." },
    { .name = "rows", .type = MOESIM_ARG_U64, .offset = offsetof(settings, rows), .value = "N",
      .help = "Rows shown of each pass; 4 is the default." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept a file with an old HDF5 superblock; a child process under limits converts it first." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_head = {
    .command = "moesim trace head",
    .synopsis = "TRACE [options]",
    .summary = "Prints passes of a trace: what they are, how many experts the layer activates, and the first rows with state, "
               "confidence and experts in router rank order; forward call, time and token ids where they are recorded.",
    .examples = "  moesim trace head trace.h5\n  moesim trace head trace.h5 --passes 40:42 --layer 3 --rows 16\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 1,
};

typedef struct view {
    const moesim_trace_info *info;
    const settings *s;
    moesim_cursor *cursor;
    uint64_t active[MAX_WORDS];
    uint64_t states[4];
    double confidence;           /* Σ over rows that have one */
    uint64_t confidences;
} view;

static const char *const state_names[] = { "masked", "committed", "earlier", "edited" };

static const uint16_t *ids_of(const view *v, const moesim_rows *rows, uint64_t i)
{
    return rows->expert + (i * v->info->num_layers + v->s->layer) * v->info->top_k;
}

static void add_rows(view *v, const moesim_rows *rows)
{
    for (uint64_t i = 0; i < rows->end - rows->begin; i++) {
        const uint16_t *ids = ids_of(v, rows, i);
        for (uint32_t k = 0; k < v->info->top_k; k++)
            if (ids[k] != UINT16_MAX)
                moesim_bit_set(v->active, ids[k]);
        v->states[rows->state[i]]++;
        if (rows->confidence != NULL && !isnan(rows->confidence[i])) {
            v->confidence += (double)rows->confidence[i];
            v->confidences++;
        }
    }
}

#define IDS_COLUMN 35   /* where experts begin, five columns each; token ids take TOKEN_COLUMNS before */
#define TOKEN_COLUMNS 11
#define LINE_IDS 8u     /* with token ids six, for 80 columns */

static void print_row(const view *v, const moesim_rows *rows, uint64_t i)
{
    const uint16_t *ids = ids_of(v, rows, i);
    char confidence[16] = "-";
    if (rows->confidence != NULL && !isnan(rows->confidence[i]))
        snprintf(confidence, sizeof confidence, "%.4f", (double)rows->confidence[i]);
    const uint32_t line = rows->token_id != NULL ? LINE_IDS - 2 : LINE_IDS;
    printf("  %9" PRId32 "  %-9s  %10s ", rows->position[i], state_names[rows->state[i]], confidence);
    if (rows->token_id != NULL)
        printf("%*" PRId32, TOKEN_COLUMNS, rows->token_id[i]);
    for (uint32_t k = 0; k < v->info->top_k; k++) {
        if (k > 0 && k % line == 0)
            printf("\n%*s", IDS_COLUMN + (rows->token_id != NULL ? TOKEN_COLUMNS : 0), "");
        if (ids[k] == UINT16_MAX)
            printf("    -");
        else
            printf(" %4u", ids[k]);
    }
    putchar('\n');
}

static void print_pass(const view *v, uint64_t p, const moesim_pass *pass)
{
    static const char *const kind[] = { "prefill", "denoise", "commit", "dummy" };
    printf("pass %" PRIu64 ": %s, request %" PRIu32 ", block %" PRId32 ", step %" PRId32 ", %" PRIu64 " row%s, |A| = %" PRIu32
           "\n", p, kind[pass->kind], pass->request, pass->block, pass->step, pass->row_end - pass->row_begin,
           pass->row_end - pass->row_begin == 1 ? "" : "s", moesim_bits_count(v->active, MAX_WORDS));
    if (v->info->has_forward)
        printf("  forward call %" PRIu64 "%s", pass->forward, v->info->has_pass_ns ? "" : "\n");
    if (v->info->has_pass_ns)
        printf("  recorded in %.3f ms\n", (double)pass->observed_ns / 1e6);
    for (size_t i = 0; i < 4; i++)
        if (v->states[i] > 0)
            printf("  %s %" PRIu64, state_names[i], v->states[i]);
    if (v->confidences > 0)
        printf("  mean confidence %.4f", v->confidence / (double)v->confidences);
    putchar('\n');
}

static moesim_code show_pass(view *v, moesim_trace *trace, uint64_t p, moesim_error *err)
{
    moesim_pass pass = { 0 };
    moesim_rows rows;
    moesim_code code = moesim_trace_pass(trace, p, &pass, err);
    memset(v->active, 0, sizeof v->active);
    memset(v->states, 0, sizeof v->states);
    v->confidence = 0.0;
    v->confidences = 0;
    for (uint64_t at = pass.row_begin; code == MOESIM_OK && at < pass.row_end; at += BATCH_ROWS) {
        const uint64_t end = pass.row_end - at < BATCH_ROWS ? pass.row_end : at + BATCH_ROWS;
        code = moesim_cursor_rows(v->cursor, at, end, &rows, err);
        if (code == MOESIM_OK)
            add_rows(v, &rows);
        if (code == MOESIM_OK && moesim_interrupted())
            code = moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
    }
    if (code != MOESIM_OK)
        return code;
    print_pass(v, p, &pass);
    uint64_t left = pass.row_end - pass.row_begin < v->s->rows ? pass.row_end - pass.row_begin : v->s->rows;
    if (left > 0)
        printf("  %9s  %-9s  %10s%s  experts of layer %" PRIu64 "\n", "position", "state", "confidence",
               v->info->has_token_id ? "   token id" : "", v->s->layer);
    for (uint64_t at = pass.row_begin; left > 0; at += BATCH_ROWS) {
        const uint64_t n = left < BATCH_ROWS ? left : BATCH_ROWS;
        code = moesim_cursor_rows(v->cursor, at, at + n, &rows, err);
        if (code != MOESIM_OK)
            return code;
        for (uint64_t i = 0; i < n; i++)
            print_row(v, &rows, i);
        left -= n;
    }
    return MOESIM_OK;
}

static moesim_code show(moesim_trace *trace, const settings *s, moesim_error *err)
{
    view v = { .info = moesim_trace_get_info(trace), .s = s };
    const uint64_t end = s->passes.end < v.info->num_passes ? s->passes.end : v.info->num_passes;
    if (s->layer >= v.info->num_layers)
        return moesim_fail(err, MOESIM_E_USAGE, "option --layer: %" PRIu64 " is outside 0 to %" PRIu32, s->layer,
                           v.info->num_layers - 1);
    if (s->passes.given && s->passes.begin >= v.info->num_passes)
        return moesim_fail(err, MOESIM_E_USAGE, "option --passes: the trace has %" PRIu64 " passes", v.info->num_passes);
    moesim_code code = moesim_cursor_open(trace, MOESIM_COLUMN_EXPERT | MOESIM_COLUMN_CONFIDENCE | MOESIM_COLUMN_STATE
                                          | MOESIM_COLUMN_POSITION | MOESIM_COLUMN_TOKEN_ID, WINDOW_BYTES, &v.cursor, err);
    for (uint64_t p = s->passes.begin; code == MOESIM_OK && p < end; p++)
        code = show_pass(&v, trace, p, err);
    moesim_cursor_close(&v.cursor);
    return code;
}

moesim_code moesim_cmd_trace_head(int argc, char **argv, moesim_error *err)
{
    settings s = { .passes = { 0, 5, false }, .rows = 4 };
    moesim_trace *trace = NULL;
    moesim_list words = { 0 };
    bool help;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_head, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help) {
        moesim_args_help(&moesim_usage_trace_head, stdout);
    } else if (code == MOESIM_OK) {
        code = moesim_cli_open_trace(words.item[0], s.old_format, &trace, err);
        if (code == MOESIM_OK)
            code = show(trace, &s, err);
        moesim_trace_close(&trace);
    }
    moesim_list_fini(&words);
    return code;
}
