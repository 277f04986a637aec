/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim sweep`: the command line.
 */
#include "cli/sweep.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/print.h"

#define MAX_THREADS 256u
#define AT(field) offsetof(moesim_sweep_options, field)

static const moesim_arg args[] = {
    { "policy", 0, MOESIM_ARG_LIST, AT(policy), "P[,P…]", 0, MOESIM_SWEEP_POLICIES, NULL, "Policies, as for moesim run." },
    { "cache", 0, MOESIM_ARG_LIST, AT(cache), "N[,N…]", 0, MOESIM_MAX_CACHES, NULL,
      "Capacities: experts per layer, lists (20,40) and ranges (10:250:10). With --scope global: sizes over all layers "
      "(4000MiB)." },
    { "scope", 0, MOESIM_ARG_CHOICE, AT(modes.scope), NULL, 0, 0, moesim_scope_names, MOESIM_SCOPE_HELP },
    { "order", 0, MOESIM_ARG_CHOICE, AT(modes.order), NULL, 0, 0, moesim_order_names, MOESIM_ORDER_HELP },
    { "curve", 0, MOESIM_ARG_FLAG, AT(curve), NULL, 0, 0, NULL, "All capacities from 1 to the experts of a layer." },
    { "gpu-memory", 0, MOESIM_ARG_BYTES, AT(gpu_memory), "BYTES", 0, 0, NULL,
      "The capacity that this much memory leaves for experts, once everything else has its place; the subtraction is printed. "
      "Needs --context." },
    { "context", 0, MOESIM_ARG_U64, AT(context), "L", 0, 1e9, NULL, "Tokens whose keys and values are kept, per sequence." },
    { "workspace", 0, MOESIM_ARG_BYTES, AT(workspace), "BYTES", 0, 0, NULL,
      "Activations and library buffers, with --gpu-memory (default 512MiB)." },
    { "bandwidth", 0, MOESIM_ARG_LIST, AT(bandwidth), "B[,B…]", 0, MOESIM_SWEEP_VALUES, NULL,
      "Of the link, GB/s or with a unit (default: the profile's)." },
    { "batch", 0, MOESIM_ARG_LIST, AT(batch), "b[,b…]", 0, MOESIM_SWEEP_VALUES, NULL,
      "Requests that decode together (default 1)." },
    { "profile", 0, MOESIM_ARG_LIST, AT(profile), "F[,F…]", 0, 0, NULL,
      "Hardware profiles, names or files (default with --bandwidth or --time: pcie5-default). Without any of the three the "
      "sweep counts." },
    { "dtype", 0, MOESIM_ARG_LIST, AT(dtype), "D[,D…]", 0, 0, NULL, "Of the weights, with --as: bf16, fp8, int4, mxfp4." },
    { "as", 0, MOESIM_ARG_STRING, AT(pricing.as), "MODEL", 0, 0, NULL, "Price with the sizes of a published model." },
    { "time", 0, MOESIM_ARG_CHOICE, AT(pricing.time), NULL, 0, 0, moesim_time_names, "As for moesim run." },
    { "set", 0, MOESIM_ARG_LIST, AT(pricing.set), "K=V[,K=V…]", 0, 0, NULL, "Override constants of every profile." },
    { "without", 0, MOESIM_ARG_LIST, AT(pricing.without), "E[,E…]", 0, 0, NULL, "Switch effects of mode model off." },
    { "bound", 0, MOESIM_ARG_CHOICE, AT(modes.bound), NULL, 0, 0, moesim_bound_names,
      "Least time per output token at each capacity and bandwidth, for every policy with fixed slots that does not prefetch; "
      "kept in the result and drawn in plots." },
    { "requests", 0, MOESIM_ARG_RANGE, AT(requests), "a:b", 0, 0, NULL, "Requests a up to but without b, of every trace." },
    { "warmup", 0, MOESIM_ARG_U64, AT(warmup), "N", 0, 1e15, NULL, "The first N requests run and are not counted." },
    { "staging", 0, MOESIM_ARG_U64, AT(staging), "N", 1, 65536, NULL, "Experts in the staging area (default 4)." },
    { "prefetch-budget", 0, MOESIM_ARG_U64, AT(prefetch_budget), "N", 0, UINT32_MAX, NULL,
      "Most prefetches that land per layer and pass (default: no limit)." },
    { "seed", 0, MOESIM_ARG_U64, AT(seed), "S", 0, MOESIM_ARG_MAX_SEED, NULL,
      "Of random policies and of the intervals (default 1)." },
    { "from", 0, MOESIM_ARG_STRING, AT(from), "RESULT", 0, 0, NULL,
      "Take the configuration, traces included, from a result, and run it again: the same bytes." },
    { "output", 'o', MOESIM_ARG_STRING, AT(output), "FILE", 0, 0, NULL,
      "Write the result (HDF5). While it is made, FILE.partial holds what is finished; the same command goes on there after a "
      "kill." },
    { "csv", 0, MOESIM_ARG_STRING, AT(csv), "FILE", 0, 0, NULL, "Write CSV to a file as well, one row a cell." },
    { "format", 0, MOESIM_ARG_CHOICE, AT(format), NULL, 0, 0, moesim_formats, "What is printed (default: table)." },
    { "shard", 0, MOESIM_ARG_STRING, AT(shard), "i/n", 0, 0, NULL,
      "Run the i-th of n shares of the cells; 'moesim merge' makes them one." },
    { "threads", 0, MOESIM_ARG_U64, AT(threads), "N", 1, MAX_THREADS, NULL,
      "Threads (default: one per processor); the output does not depend on it." },
    { "window", 0, MOESIM_ARG_BYTES, AT(window), "BYTES", 0, 0, NULL,
      "Memory for one decoded window of the trace (default 32MiB)." },
    { "checkpoint-every", 0, MOESIM_ARG_U64, AT(checkpoint), "S", 0, 1e9, NULL,
      "Seconds between two notes of how far a pass has come, with -o (default 30; 0: after every window)." },
    { "allow-large", 0, MOESIM_ARG_FLAG, AT(allow_large), NULL, 0, 0, NULL,
      "Run a grid above the limits: 100000 cells, 4 GiB of memory, a day." },
    { "old-format", 0, MOESIM_ARG_FLAG, AT(old_format), NULL, 0, 0, NULL, "Accept traces with an old HDF5 superblock." },
    { .name = NULL },
};

const moesim_usage moesim_usage_sweep = {
    .command = "moesim sweep",
    .synopsis = "TRACE… --policy P[,P…] --cache N[,N…] [--bandwidth B[,B…]] [options]",
    .summary = "Runs a whole grid: policies, capacities, link bandwidths, batch sizes, profiles, dtypes and traces, in one "
               "pass over each trace for all cells that share it. Prints the best policy of every cell, the knee of every "
               "curve and the bandwidth at which misses stop to matter.",
    .examples = "  moesim sweep t.h5 --policy lru,oled,belady --cache 10:250:10 \\\n"
                "      --bandwidth 16,32,64,128 -o result.h5 --csv result.csv\n"
                "  moesim sweep t.h5 --policy lru,oled-full --profile h200-host \\\n"
                "      --as llada2.0-flash --dtype bf16,fp8 --gpu-memory 24GiB --context 4096\n"
                "  moesim sweep a.h5 b.h5 --policy lru,surv --curve --shard 1/4 -o part1.h5\n",
    .args = args,
    .min_positional = 0,
    .max_positional = (int)MOESIM_SWEEP_TRACES,
};

static void defaults(moesim_sweep_options *o)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    memset(o, 0, sizeof *o);
    o->pricing.time = -1;
    o->pricing.dtype = -1;
    o->modes = (moesim_modes){ -1, -1, MOESIM_NO_BOUND };
    o->warmup = o->staging = o->prefetch_budget = o->seed = o->gpu_memory = o->context = o->workspace = MOESIM_UNSET;
    o->checkpoint = 30;
    o->threads = processors < 1 ? 1 : processors > (long)MAX_THREADS ? MAX_THREADS : (uint64_t)processors;
}

static void set_if_unset(uint64_t *value, uint64_t to)
{
    if (*value == MOESIM_UNSET)
        *value = to;
}

/* Numbers that neither the command line nor a result gave. */
static void complete(moesim_sweep_options *o)
{
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    o->modes.scope = o->modes.scope < 0 ? MOESIM_SCOPE_LAYER : o->modes.scope;
    o->modes.order = o->modes.order < 0 ? MOESIM_ATOMIC : o->modes.order;
    set_if_unset(&o->warmup, 0);
    set_if_unset(&o->staging, params.staging);
    set_if_unset(&o->prefetch_budget, params.prefetch_budget);
    set_if_unset(&o->seed, 1);
    o->window = o->window > 0 ? o->window : params.window_bytes;
}

static void options_fini(moesim_sweep_options *o)
{
    moesim_list *const list[] = { &o->trace, &o->policy, &o->cache, &o->bandwidth, &o->batch, &o->profile, &o->dtype,
                                  &o->pricing.set, &o->pricing.without };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        moesim_list_fini(list[i]);
}

/* With --from everything that shapes the result comes from there. */
static moesim_code check_from(const moesim_sweep_options *o, moesim_error *err)
{
    const struct { const char *name; bool given; } word[] = {
        { "--policy", o->policy.n > 0 }, { "--cache", o->cache.n > 0 }, { "--curve", o->curve },
        { "--scope", o->modes.scope >= 0 }, { "--order", o->modes.order >= 0 }, { "--bound", o->modes.bound >= 0 },
        { "--gpu-memory", o->gpu_memory != MOESIM_UNSET }, { "--context", o->context != MOESIM_UNSET },
        { "--workspace", o->workspace != MOESIM_UNSET }, { "--bandwidth", o->bandwidth.n > 0 },
        { "--batch", o->batch.n > 0 }, { "--profile", o->profile.n > 0 }, { "--dtype", o->dtype.n > 0 },
        { "--as", o->pricing.as != NULL }, { "--time", o->pricing.time >= 0 }, { "--set", o->pricing.set.n > 0 },
        { "--without", o->pricing.without.n > 0 }, { "--requests", o->requests.given },
        { "--warmup", o->warmup != MOESIM_UNSET }, { "--staging", o->staging != MOESIM_UNSET },
        { "--prefetch-budget", o->prefetch_budget != MOESIM_UNSET }, { "--seed", o->seed != MOESIM_UNSET },
        { "a trace", o->trace.n > 0 },
    };
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        if (word[i].given)
            return moesim_fail(err, MOESIM_E_USAGE, "option --from takes the configuration from %s; leave out %s", o->from,
                               word[i].name);
    return MOESIM_OK;
}

/* ---- output ---------------------------------------------------------------------------------------------------------- */

static moesim_code print_form(const moesim_sweep *s, const moesim_result *r, moesim_error *err)
{
    moesim_findings findings;
    if (s->options->format == MOESIM_FORMAT_CSV) {
        moesim_sweep_csv(r, stdout);
        return MOESIM_OK;
    }
    moesim_code code = moesim_sweep_find(r, s->options->seed, s->options->threads, &findings, err);
    if (code == MOESIM_OK && s->options->format == MOESIM_FORMAT_JSON)
        code = moesim_sweep_json(s, r, &findings, stdout, err);
    else if (code == MOESIM_OK)
        moesim_sweep_table(s, r, &findings, stdout);
    moesim_findings_fini(&findings);
    return code;
}

static moesim_code print(const moesim_sweep *s, const moesim_result *r, moesim_error *err)
{
    moesim_output *file = NULL;
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
    if (s->options->csv != NULL) {
        if (moesim_output_open(s->options->csv, &file, err) != MOESIM_OK)
            return err->code;
        moesim_sweep_csv(r, moesim_output_stream(file));
        if (moesim_output_commit(&file, err) != MOESIM_OK)
            return err->code;
    }
    return print_form(s, r, err);
}

static moesim_code run(moesim_sweep_options *o, moesim_error *err)
{
    static moesim_sweep sweep;
    moesim_result result;
    memset(&sweep, 0, sizeof sweep);
    moesim_result_init(&result);
    complete(o);
    sweep.options = o;
    moesim_code code = moesim_sweep_plan(&sweep, err);
    if (code == MOESIM_OK)
        code = moesim_sweep_size(&sweep, err);
    if (code == MOESIM_OK)
        code = moesim_sweep_run(&sweep, &result, err);
    if (code == MOESIM_OK)
        code = print(&sweep, &result, err);
    moesim_result_fini(&result);
    moesim_sweep_fini(&sweep);
    return code;
}

static moesim_code run_from(moesim_sweep_options *o, moesim_error *err)
{
    moesim_result old;
    json_t *keep = NULL;
    moesim_result_init(&old);
    moesim_code code = check_from(o, err);
    if (code == MOESIM_OK)
        code = moesim_result_read(o->from, &old, err);
    if (code == MOESIM_OK)
        code = moesim_sweep_from(&old, o->from, o, &keep, err);
    moesim_result_fini(&old);
    if (code == MOESIM_OK)
        code = run(o, err);
    json_decref(keep);
    return code;
}

static void print_help(void)
{
    moesim_args_help(&moesim_usage_sweep, stdout);
    fputs("\nWhat is found:\n", stdout);
    moesim_args_row(stdout, "best", 2, 14, "The causal policy of lowest TPOT (counts: of fewest misses), and those that paired "
                    "intervals over requests cannot tell from it.");
    moesim_args_row(stdout, "floor", 2, 14, "Full residency: policy full, added where it is not among the policies.");
    moesim_args_row(stdout, "knee", 2, 14, "The smallest capacity of a curve with a TPOT within 5 % of the floor (counts: with "
                    "a hit rate of 95 %).");
    moesim_args_row(stdout, "break-even", 2, 14, "The smallest bandwidth with a TPOT within 5 % of the floor; between two "
                    "bandwidths TPOT is taken to be linear in 1/bandwidth, as the time of copies is.");
}

moesim_code moesim_cmd_sweep(int argc, char **argv, moesim_error *err)
{
    moesim_sweep_options options;
    bool help = false;
    defaults(&options);
    moesim_code code = moesim_args_parse(&moesim_usage_sweep, argc, argv, &options, &options.trace, &help, err);
    if (code == MOESIM_OK && help)
        print_help();
    else if (code == MOESIM_OK && options.from != NULL)
        code = run_from(&options, err);
    else if (code == MOESIM_OK)
        code = run(&options, err);
    options_fini(&options);
    return code;
}
