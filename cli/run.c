/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim run`: a trace through policies at capacities, one table of figures.
 */
#include "cli/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/print.h"

#define MAX_THREADS 256u

#define AT(field) offsetof(moesim_run_options, field)

static const moesim_arg args[] = {
    { "policy", 0, MOESIM_ARG_LIST, AT(policy), "P[,P…]", 0, MOESIM_MAX_POLICIES, NULL,
      "Policies to compare: names separated by commas, or one name with options (oled:confidence=lag1,adapt=on); may be "
      "repeated. 'moesim policies' lists them." },
    { "cache", 0, MOESIM_ARG_LIST, AT(cache), "N[,N…]", 0, MOESIM_MAX_CACHES, NULL,
      "Capacities: experts per layer, lists (20,40) and ranges (10:100:10, the end included when it is reached). With "
      "--scope global: sizes over all layers (4000MiB)." },
    { "scope", 0, MOESIM_ARG_CHOICE, AT(modes.scope), NULL, 0, 0, moesim_scope_names, MOESIM_SCOPE_HELP },
    { "order", 0, MOESIM_ARG_CHOICE, AT(modes.order), NULL, 0, 0, moesim_order_names, MOESIM_ORDER_HELP },
    { "requests", 0, MOESIM_ARG_RANGE, AT(requests), "a:b", 0, 0, NULL, "Requests a up to but without b." },
    { "warmup", 0, MOESIM_ARG_U64, AT(warmup), "N", 0, 1e15, NULL, "The first N requests run and are not counted." },
    { "batch", 0, MOESIM_ARG_U64, AT(batch), "b", 1, MOESIM_MAX_BATCH, NULL,
      "Merge the decode passes of b requests that run at the same time (default 1)." },
    { "baseline", 0, MOESIM_ARG_STRING, AT(baseline), "P", 0, 0, NULL,
      "Compare every other policy with this one, paired on requests: difference, interval, sign-flip test." },
    { "gap", 0, MOESIM_ARG_FLAG, AT(gap), NULL, 0, 0, NULL,
      "Split the misses above belady into what forced admission costs and what wrong victims cost." },
    { "staging", 0, MOESIM_ARG_U64, AT(staging), "N", 0, 65536, NULL, "Experts in the staging area (default 4)." },
    { "prefetch-budget", 0, MOESIM_ARG_U64, AT(prefetch_budget), "N", 0, UINT32_MAX, NULL,
      "Most prefetches that land per layer and pass (default: no limit)." },
    { "decisions", 0, MOESIM_ARG_STRING, AT(decisions), "FILE", 0, 0, NULL,
      "Write the decision log (HDF5); needs exactly one policy and one capacity." },
    { "check-observed", 0, MOESIM_ARG_FLAG, AT(check_observed), NULL, 0, 0, NULL,
      "Compare hits with what the recording system saw (/observed/residency); a difference is a failure." },
    { "format", 0, MOESIM_ARG_CHOICE, AT(format), NULL, 0, 0, moesim_formats, "What is printed (default: table)." },
    { "csv", 0, MOESIM_ARG_STRING, AT(csv), "FILE", 0, 0, NULL, "Write CSV to a file as well." },
    { "time", 0, MOESIM_ARG_CHOICE, AT(pricing.time), NULL, 0, 0, moesim_time_names,
      "Tell time by the model, or by the paper's closed forms (its constants: --profile paper-a or paper-b), or count only "
      "(default: count, or with --profile its first mode)." },
    { "profile", 0, MOESIM_ARG_STRING, AT(pricing.profile), "NAME|FILE", 0, 0, NULL,
      "What copies and computation cost; 'moesim profile show' lists those built in (default with --time: pcie5-default)." },
    { "set", 0, MOESIM_ARG_LIST, AT(pricing.set), "K=V[,K=V…]", 0, 0, NULL,
      "Override constants of the profile: link.alpha=10us,other.host=0; may be repeated." },
    { "bandwidth", 0, MOESIM_ARG_STRING, AT(bandwidth), "B", 0, 0, NULL,
      "Of the link, in GB/s or with a unit (default: the profile's)." },
    { "without", 0, MOESIM_ARG_LIST, AT(pricing.without), "E[,E…]", 0, 0, NULL,
      "Switch effects of mode model off: contention, sync, overlap, policy, other, head." },
    { "as", 0, MOESIM_ARG_STRING, AT(pricing.as), "MODEL", 0, 0, NULL,
      "Price the routing with the sizes of a published model of as many experts and the same top-k; 'moesim profile models' "
      "lists them." },
    { "dtype", 0, MOESIM_ARG_CHOICE, AT(pricing.dtype), NULL, 0, 0, moesim_dtype_names, "Of its weights (default bf16)." },
    { "bound", 0, MOESIM_ARG_CHOICE, AT(modes.bound), NULL, 0, 0, moesim_bound_names,
      "Lower bound of what copies and CPU take per token, for every policy that does not prefetch; table and JSON." },
    { "seed", 0, MOESIM_ARG_U64, AT(seed), "S", 0, MOESIM_ARG_MAX_SEED, NULL,
      "Seed of random policies and of the intervals (default 1)." },
    { "threads", 0, MOESIM_ARG_U64, AT(threads), "N", 1, MAX_THREADS, NULL,
      "Threads (default: one per processor); the output does not depend on it." },
    { "window", 0, MOESIM_ARG_BYTES, AT(window), "BYTES", 0, 0, NULL,
      "Memory for one decoded window of the trace (default 32MiB)." },
    { "old-format", 0, MOESIM_ARG_FLAG, AT(old_format), NULL, 0, 0, NULL,
      "Accept a file with an old HDF5 superblock (parsed in a child process under limits)." },
    { NULL, 0, MOESIM_ARG_FLAG, 0, NULL, 0, 0, NULL, NULL },
};

const moesim_usage moesim_usage_run = {
    .command = "moesim run",
    .synopsis = "TRACE --policy P[,P…] --cache N[,N…] [options]",
    .summary = "Replays a trace through cache policies and compares them. Prints utilisation, hit rate, misses per pass, "
               "moved bytes per output token and the distance to the bounds, each with a 95 % interval over requests; with "
               "--profile or --time also time per output token.",
    .examples = "  moesim run traces/samples/sample.h5 --policy lru,oled,belady --cache 40\n"
                "  moesim run t.h5 --policy lru --policy oled:confidence=none --cache 10:100:10 \\\n"
                "      --baseline lru --format json\n"
                "  moesim run t.h5 --policy lru --scope global --cache 4000MiB\n"
                "  moesim run t.h5 --policy lru,oled-full,full --cache 60 --profile h200-host \\\n"
                "      --bandwidth 32\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 1,
};

static void defaults(moesim_run_options *o)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    memset(o, 0, sizeof *o);
    o->pricing.time = -1;
    o->pricing.dtype = -1;
    o->modes.bound = MOESIM_NO_BOUND;
    o->batch = params.batch;
    o->staging = params.staging;
    o->prefetch_budget = params.prefetch_budget;
    o->seed = 1;
    o->window = params.window_bytes;
    o->threads = processors < 1 ? 1 : processors > (long)MAX_THREADS ? MAX_THREADS : (uint64_t)processors;
}

static moesim_run_params params_of(const moesim_report *r, moesim_progress *progress)
{
    const moesim_run_options *o = r->options;
    moesim_run_params p;
    moesim_run_params_defaults(&p);
    moesim_modes_params(&o->modes, &p);
    p.request_begin = r->request_begin;
    p.request_end = r->request_end;
    p.warmup = o->warmup;
    p.batch = (uint32_t)o->batch;
    p.staging = (uint32_t)o->staging;
    p.prefetch_budget = (uint32_t)o->prefetch_budget;
    p.threads = (uint32_t)o->threads;
    p.seed = o->seed;
    p.window_bytes = o->window;
    p.check_observed = o->check_observed;
    p.progress = progress;
    return p;
}

static void warn(const moesim_report *r)
{
    for (size_t i = 0; i < r->num_shown; i++)
        if (strcmp(r->policy[i].policy->name, "surv") == 0 && strcmp(r->info->model_id, MOESIM_SURV_MODEL) != 0)
            moesim_log(MOESIM_LOG_WARN, "surv's table was calibrated on %s; this trace is of %s", MOESIM_SURV_MODEL,
                       r->info->model_id);
}

static moesim_code create_decisions(const moesim_report *r, moesim_declog **log, moesim_error *err)
{
    char *config = moesim_run_config_json(r);
    if (config == NULL)
        return moesim_fail_nomem(err, "the configuration as JSON", 0);
    const moesim_declog_header header = {
        .trace_digest = r->digest, .model_id = r->info->model_id, .policy = r->policy[0].given,
        .options = r->policy[0].effective, .config = config, .num_layers = r->info->num_layers,
        .num_experts = r->info->num_experts, .cache = r->cell[0].cache, .seed = r->options->seed,
    };
    const moesim_code code = moesim_declog_create(r->options->decisions, &header, log, err);
    free(config);
    return code;
}

/* No two cells of a run share their outcome: they differ in more than bandwidth. */
static moesim_code run_cells(moesim_report *r, const moesim_run_params *params, moesim_error *err)
{
    const moesim_grid grid = {
        .run = params, .profile = r->pricing.profile, .mode = r->pricing.mode, .effects = r->pricing.effects,
        .expert_bytes = r->pricing.expert_bytes, .hidden_bytes = r->pricing.hidden_bytes, .num_cells = r->num_cells,
        .cell = r->cell,
    };
    void *p = NULL;
    moesim_code code = moesim_alloc(r->num_cells, sizeof(moesim_cell_result), "results", &p, err);
    moesim_cell_result *result = p;
    if (code == MOESIM_OK)
        code = moesim_grid_run(r->trace, &grid, result, err);
    for (size_t i = 0; code == MOESIM_OK && i < r->num_cells; i++) {
        r->outcome[i] = *result[i].outcome;
        free(result[i].outcome);
    }
    free(p);
    return code;
}

/* Runs the cells and computes every figure; the decision log appears only when all of that has succeeded. */
static moesim_code compute(moesim_report *r, moesim_error *err)
{
    moesim_progress progress;
    memset(&progress, 0, sizeof progress);
    progress.what = "replay";
    moesim_run_params params = params_of(r, &progress);
    moesim_declog *log = NULL;
    if (r->options->decisions != NULL && create_decisions(r, &log, err) != MOESIM_OK)
        return err->code;
    params.declog = log;
    moesim_code code = run_cells(r, &params, err);
    if (code == MOESIM_OK)
        code = moesim_report_figures(r, err);
    if (code == MOESIM_OK)
        code = moesim_report_bound(r, &params, err);
    if (code == MOESIM_OK && log != NULL)
        return moesim_declog_finish(&log, r->decisions_digest, err);
    moesim_declog_discard(&log);
    return code;
}

static moesim_code print_form(const moesim_report *r, int format, FILE *out, moesim_error *err)
{
    if (format == MOESIM_FORMAT_JSON)
        return moesim_run_print_json(r, out, err);
    if (format == MOESIM_FORMAT_CSV)
        moesim_run_print_csv(r, out);
    else
        moesim_run_print_table(r, out);
    return MOESIM_OK;
}

static moesim_code print(const moesim_report *r, moesim_error *err)
{
    moesim_output *file = NULL;
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
    if (r->options->csv != NULL) {
        if (moesim_output_open(r->options->csv, &file, err) != MOESIM_OK)
            return err->code;
        moesim_run_print_csv(r, moesim_output_stream(file));
        if (moesim_output_commit(&file, err) != MOESIM_OK)
            return err->code;
    }
    return print_form(r, r->options->format, stdout, err);
}

/* The table says it too; a script sees the exit status. */
static moesim_code judge_observed(const moesim_report *r, moesim_error *err)
{
    const uint64_t width = (uint64_t)r->info->num_layers * r->info->top_k;
    for (size_t i = 0; r->options->check_observed && i < r->num_cells; i++) {
        const moesim_outcome *o = &r->outcome[i];
        if (o->observed_wrong > 0 && moesim_report_shown(r, i))
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: /observed/residency differs from %s in %" PRIu64 " of %" PRIu64
                               " places, first at row %" PRIu64 ", layer %" PRIu64 ", slot %" PRIu64, r->options->path,
                               moesim_report_policy(r, i)->given, o->observed_wrong, o->observed_checked,
                               o->observed_first_wrong / width, o->observed_first_wrong % width / r->info->top_k,
                               o->observed_first_wrong % r->info->top_k);
    }
    return MOESIM_OK;
}

static moesim_code run(moesim_report *r, moesim_error *err)
{
    moesim_code code = moesim_cli_open_trace(r->options->path, r->options->old_format, &r->trace, err);
    if (code != MOESIM_OK)
        return code;
    r->info = moesim_trace_get_info(r->trace);
    code = moesim_report_plan(r, err);
    if (code == MOESIM_OK)
        code = moesim_digest_file(r->options->path, r->digest, err);
    if (code == MOESIM_OK) {
        warn(r);
        code = compute(r, err);
    }
    if (code == MOESIM_OK)
        code = print(r, err);
    return code == MOESIM_OK ? judge_observed(r, err) : code;
}

static void print_help(void)
{
    moesim_args_help(&moesim_usage_run, stdout);
    fputs("\nFigures (decode passes, counted requests; each with a 95 % interval):\n", stdout);
    for (size_t k = 0; k < moesim_num_figures(true); k++)
        moesim_args_row(stdout, moesim_figure_at(k).name, 2, 28, moesim_figure_at(k).help);
    fputs("\nThe last ones, from tpot_ms on, need --time or --profile.\n", stdout);
    fputs("\nEnvironment:\n", stdout);
    moesim_args_row(stdout, "MOESIM_CPU", 2, 14, "Which code counts, for tests: base runs on any processor. The default is the "
                    "fastest that this one can run; the output does not depend on it.");
}

moesim_code moesim_cmd_run(int argc, char **argv, moesim_error *err)
{
    moesim_run_options options;
    moesim_list positional = { 0, 0, NULL };
    moesim_report report;
    bool help = false;
    memset(&report, 0, sizeof report);
    defaults(&options);
    moesim_code code = moesim_args_parse(&moesim_usage_run, argc, argv, &options, &positional, &help, err);
    if (code == MOESIM_OK && help)
        print_help();
    if (code == MOESIM_OK && !help) {
        options.path = positional.item[0];
        options.pricing.bandwidth = options.bandwidth != NULL;
        report.options = &options;
        code = run(&report, err);
    }
    moesim_report_fini(&report);
    moesim_list_fini(&positional);
    moesim_list_fini(&options.policy);
    moesim_list_fini(&options.cache);
    moesim_list_fini(&options.pricing.set);
    moesim_list_fini(&options.pricing.without);
    return code;
}
