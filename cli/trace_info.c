/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace info: what a trace says about itself.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "cli/run_text.h"
#include "base/log.h"
#include "traces/trace.h"

#define MAX_WORKLOADS 64u

typedef struct settings {
    int format;
    bool old_format;
} settings;

static const moesim_arg args[] = {
    { .name = "format", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, format), .choices = moesim_formats_no_csv,
      .help = "How to print; a table is the default." },
    { .name = "old-format", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, old_format),
      .help = "Accept a file with an old HDF5 superblock; a child process under limits converts it first." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_info = {
    .command = "moesim trace info",
    .synopsis = "TRACE [options]",
    .summary = "Prints the header of a trace, its sizes, columns and workloads. Reads no routes: 'moesim trace validate' "
               "checks those.",
    .examples = "  moesim trace info trace.h5\n  moesim trace info trace.h5 --format json\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 1,
};

/* Requests of one workload; the last entry collects what the table has no room for. */
typedef struct workload {
    char name[64];
    uint64_t requests, passes, prompt_tokens, output_tokens;
} workload;

typedef struct content {
    const moesim_trace_info *info;
    const uint64_t *expert_bytes;
    uint64_t least_bytes, most_bytes, all_bytes;     /* of one expert; of all experts of all layers */
    uint64_t passes[4], rows[4];
    double ns[4];                                    /* Σ /observed/pass_ns */
    uint64_t calls, most_in_call;                    /* forward calls; passes of the largest */
    workload workload[MAX_WORKLOADS];
    size_t num_workloads;
    bool output_tokens_known;
} content;

static const char *const kind_names[] = { "prefill", "denoise", "commit", "dummy" };

static workload *find_workload(content *c, const char *name)
{
    size_t i = 0;
    while (i < c->num_workloads && strcmp(c->workload[i].name, name) != 0)
        i++;
    if (i < c->num_workloads)
        return &c->workload[i];
    if (i == MAX_WORKLOADS) {
        snprintf(c->workload[i - 1].name, sizeof c->workload[0].name, "(others)");
        return &c->workload[i - 1];
    }
    snprintf(c->workload[i].name, sizeof c->workload[0].name, "%s", name);
    c->num_workloads++;
    return &c->workload[i];
}

static moesim_code collect_passes(moesim_trace *trace, content *c, moesim_error *err)
{
    uint64_t forward = 0, in_call = 0;
    for (uint64_t p = 0; p < c->info->num_passes; p++) {
        moesim_pass pass;
        const moesim_code code = moesim_trace_pass(trace, p, &pass, err);
        if (code != MOESIM_OK)
            return code;
        if (moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        c->passes[pass.kind]++;
        c->rows[pass.kind] += pass.row_end - pass.row_begin;
        c->ns[pass.kind] += (double)pass.observed_ns;
        in_call = p > 0 && pass.forward == forward ? in_call + 1 : 1;
        c->calls += in_call == 1;
        c->most_in_call = in_call > c->most_in_call ? in_call : c->most_in_call;
        forward = pass.forward;
    }
    return MOESIM_OK;
}

static moesim_code collect(moesim_trace *trace, content *c, moesim_error *err)
{
    memset(c, 0, sizeof *c);
    c->info = moesim_trace_get_info(trace);
    c->expert_bytes = moesim_trace_expert_bytes(trace);
    c->least_bytes = UINT64_MAX;
    c->output_tokens_known = c->info->has_output_tokens;
    for (uint32_t l = 0; l < c->info->num_layers; l++) {
        const uint64_t bytes = c->expert_bytes[l];
        c->least_bytes = bytes < c->least_bytes ? bytes : c->least_bytes;
        c->most_bytes = bytes > c->most_bytes ? bytes : c->most_bytes;
        c->all_bytes += bytes * c->info->num_experts;
    }
    const moesim_code code = collect_passes(trace, c, err);
    if (code != MOESIM_OK)
        return code;
    for (uint32_t q = 0; q < c->info->num_requests; q++) {
        const moesim_trace_request *request = moesim_trace_get_request(trace, q);
        workload *w = find_workload(c, request->workload);
        w->requests++;
        w->passes += request->passes;
        w->prompt_tokens += request->prompt_tokens;
        w->output_tokens += request->output_tokens;
    }
    return moesim_trace_digest(trace, err);
}

/* Columns that a format-1 trace may have beyond the required ones. */
typedef struct column { const char *name; bool present; } column;

static size_t columns_of(const moesim_trace_info *info, column out[10])
{
    const column all[] = {
        { "gate", info->has_gate }, { "confidence", info->has_confidence_values }, { "router_prob", info->has_prob },
        { "token_id", info->has_token_id }, { "forward", info->has_forward }, { "output_tokens", info->has_output_tokens },
        { "pass_ns", info->has_pass_ns }, { "residency", info->has_residency }, { "resident_bytes", info->has_resident_bytes },
    };
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof all[0];
}

static size_t texts_of(const moesim_trace_info *info, const char *out[11][2])
{
    const char *const all[][2] = {
        { "model_id", info->model_id }, { "gate_kind", info->gate_kind }, { "confidence_kind", info->confidence_kind },
        { "weight_dtype", info->weight_dtype }, { "engine", info->engine }, { "engine_version", info->engine_version },
        { "decoder", info->decoder }, { "dataset", info->dataset }, { "license", info->license },
        { "created", info->created }, { "source_digest", info->source_digest },
    };
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof all[0];
}

/* ---- table ----------------------------------------------------------------------------------------------------- */

static void print_columns(const content *c)
{
    column columns[10];
    char text[256];
    size_t used = 0;
    const size_t n = columns_of(c->info, columns);
    text[0] = '\0';
    for (size_t i = 0; i < n && used < sizeof text; i++) {
        if (!columns[i].present)
            continue;
        const char *width = i > 0 ? "" : c->info->gate_is_f32 ? " (f32)" : " (f16)";
        const int chars = snprintf(text + used, sizeof text - used, "%s%s%s", used > 0 ? ", " : "", columns[i].name, width);
        used += chars > 0 ? (size_t)chars : 0;
    }
    moesim_args_row(stdout, "optional columns", 0, 18, used > 0 ? text : "none");
}

static void print_bytes(const content *c)
{
    char text[160];
    if (c->least_bytes == c->most_bytes)
        snprintf(text, sizeof text, "%" PRIu64 " bytes, all experts %.1f MiB", c->least_bytes, (double)c->all_bytes / 0x1p20);
    else
        snprintf(text, sizeof text, "%" PRIu64 " to %" PRIu64 " bytes by layer, all experts %.1f MiB", c->least_bytes,
                 c->most_bytes, (double)c->all_bytes / 0x1p20);
    moesim_args_row(stdout, "one expert", 0, 18, text);
}

static void print_pass_line(const content *c, const char *kind, uint64_t passes, uint64_t rows, double ns)
{
    printf("%-24s %9" PRIu64 " %9" PRIu64, kind, passes, rows);
    if (c->info->has_pass_ns && passes > 0)
        printf(" %11.3f", ns / 1e6 / (double)passes);
    putchar('\n');
}

/* Times are the recording engine's: shown, but nobody is to take them for the speed of the model. */
static void print_passes(const content *c)
{
    double ns = 0.0;
    printf("\n%-24s %9s %9s%s\n", "pass", "passes", "rows", c->info->has_pass_ns ? "  recorded ms, mean" : "");
    for (size_t k = 0; k < 4; k++) {
        ns += c->ns[k];
        if (c->passes[k] > 0)
            print_pass_line(c, kind_names[k], c->passes[k], c->rows[k], c->ns[k]);
    }
    print_pass_line(c, "total", c->info->num_passes, c->info->num_rows, ns);
    if (c->info->has_forward)
        printf("%" PRIu64 " forward calls, %" PRIu64 " pass%s in the largest\n", c->calls, c->most_in_call,
               c->most_in_call == 1 ? "" : "es");
    if (c->info->has_pass_ns)
        puts("Times include the recorder's own work: they are no measure of the model's speed.");
}

static void print_workloads(const content *c)
{
    printf("\n%-24s %9s %9s %14s %14s\n", "workload", "requests", "passes", "prompt tokens", "output tokens");
    for (size_t i = 0; i < c->num_workloads; i++) {
        const workload *w = &c->workload[i];
        moesim_text_name(stdout, w->name[0] != '\0' ? w->name : "(none)", "", 24);
        printf(" %9" PRIu64 " %9" PRIu64 " %14" PRIu64 " ", w->requests, w->passes, w->prompt_tokens);
        if (c->output_tokens_known)
            printf("%14" PRIu64 "\n", w->output_tokens);
        else
            printf("%14s\n", "not recorded");
    }
}

static void print_table(const content *c)
{
    const moesim_trace_info *info = c->info;
    const char *texts[11][2];
    char text[256];
    const size_t n = texts_of(info, texts);
    for (size_t i = 0; i < n; i++)
        if (texts[i][1][0] != '\0')
            moesim_args_row(stdout, texts[i][0], 0, 18, texts[i][1]);
    snprintf(text, sizeof text, "%u MoE layers, %u experts, top %u, block length %u", info->num_layers, info->num_experts,
             info->top_k, info->block_length);
    moesim_args_row(stdout, "model", 0, 18, text);
    print_bytes(c);
    if (!isnan(info->commit_threshold))
        printf("%-18s%g\n", "commit_threshold", info->commit_threshold);
    print_columns(c);
    printf("%-18s%" PRIu64 " bytes, SHA-256 %.16s...\n", "file", info->file_bytes, info->digest);
    print_passes(c);
    print_workloads(c);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static json_t *json_count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *json_workloads(const content *c)
{
    json_t *all = json_array();
    for (size_t i = 0; i < c->num_workloads; i++) {
        const workload *w = &c->workload[i];
        json_t *row = json_pack("{s:o, s:o, s:o, s:o}", "workload", moesim_json_text(w->name), "requests",
                                json_count(w->requests), "passes", json_count(w->passes), "prompt_tokens",
                                json_count(w->prompt_tokens));
        json_object_set_new(row, "output_tokens", c->output_tokens_known ? json_count(w->output_tokens) : json_null());
        json_array_append_new(all, row);
    }
    return all;
}

static void add_header(json_t *root, const content *c)
{
    const moesim_trace_info *info = c->info;
    const char *texts[11][2];
    const size_t n = texts_of(info, texts);
    for (size_t i = 0; i < n; i++)
        if (texts[i][1][0] != '\0')
            json_object_set_new(root, texts[i][0], moesim_json_text(texts[i][1]));
    const struct { const char *name; uint64_t value; } numbers[] = {
        { "num_moe_layers", info->num_layers }, { "num_experts", info->num_experts }, { "top_k", info->top_k },
        { "block_length", info->block_length }, { "hidden_size", info->hidden_size },
        { "expert_intermediate_size", info->expert_intermediate_size }, { "shared_experts", info->shared_experts },
        { "num_passes", info->num_passes }, { "num_rows", info->num_rows }, { "num_requests", info->num_requests },
        { "file_bytes", info->file_bytes }, { "all_expert_bytes", c->all_bytes },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        json_object_set_new(root, numbers[i].name, json_count(numbers[i].value));
    json_object_set_new(root, "commit_threshold", moesim_json_real(info->commit_threshold));
    if (info->has_resident_bytes)
        json_object_set_new(root, "resident_bytes", json_count(info->resident_bytes));
    if (info->has_gate)
        json_object_set_new(root, "gate_type", json_string(info->gate_is_f32 ? "f32" : "f16"));
}

static json_t *json_content(const content *c)
{
    column columns[10];
    const size_t n = columns_of(c->info, columns);
    json_t *root = json_pack("{s:s, s:o, s:s}", "schema", "moesim.trace-info/1", "path", moesim_json_text(c->info->path),
                             "sha256", c->info->digest);
    json_t *bytes = json_array(), *present = json_array(), *passes = json_object(), *rows = json_object();
    add_header(root, c);
    for (uint32_t l = 0; l < c->info->num_layers; l++)
        json_array_append_new(bytes, json_count(c->expert_bytes[l]));
    for (size_t i = 0; i < n; i++)
        if (columns[i].present)
            json_array_append_new(present, json_string(columns[i].name));
    for (size_t k = 0; k < 4; k++) {
        json_object_set_new(passes, kind_names[k], json_count(c->passes[k]));
        json_object_set_new(rows, kind_names[k], json_count(c->rows[k]));
    }
    if (c->info->has_pass_ns) {
        json_t *times = json_object();
        for (size_t k = 0; k < 4; k++)
            json_object_set_new(times, kind_names[k], moesim_json_real(c->passes[k] > 0 ? c->ns[k] / 1e6 / (double)c->passes[k]
                                                                                        : NAN));
        json_object_set_new(root, "mean_pass_ms", times);
    }
    if (c->info->has_forward) {
        json_object_set_new(root, "forward_calls", json_count(c->calls));
        json_object_set_new(root, "most_passes_in_a_call", json_count(c->most_in_call));
    }
    json_object_set_new(root, "expert_bytes", bytes);
    json_object_set_new(root, "columns", present);
    json_object_set_new(root, "passes", passes);
    json_object_set_new(root, "rows", rows);
    json_object_set_new(root, "workloads", json_workloads(c));
    return root;
}

static moesim_code print_info(const char *path, const settings *s, moesim_error *err)
{
    moesim_trace *trace = NULL;
    content c;
    moesim_code code = moesim_cli_open_trace(path, s->old_format, &trace, err);
    if (code == MOESIM_OK)
        code = collect(trace, &c, err);
    if (code == MOESIM_OK && s->format == 1)
        code = moesim_print_json(stdout, json_content(&c), err);
    else if (code == MOESIM_OK)
        print_table(&c);
    moesim_trace_close(&trace);
    return code;
}

moesim_code moesim_cmd_trace_info(int argc, char **argv, moesim_error *err)
{
    settings s = { 0 };
    moesim_list words = { 0 };
    bool help;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_info, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_info, stdout);
    else if (code == MOESIM_OK)
        code = print_info(words.item[0], &s, err);
    moesim_list_fini(&words);
    return code;
}
