/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory a grid takes: of the GPU that is imagined (--gpu-memory to slots), and of this machine.
 */
#include "cli/sweep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "sim/stats.h"
#include "sim/timing.h"

#define WORKSPACE ((uint64_t)512 << 20)

/* ---- slots ----------------------------------------------------------------------------------------------------------- */

typedef struct memory {
    uint64_t resident, kv, staging, workspace;
    uint64_t layer_sum;          /* one expert of every layer */
    uint32_t layers;
} memory;

static moesim_code known_sizes(const moesim_sweep_options *o, const moesim_sweep_part *part, memory *m, moesim_error *err)
{
    const moesim_geometry *g = part->pricing.model;
    const moesim_trace_info *t = part->trace->info;
    uint64_t per_token = 0;
    if (g != NULL) {
        m->resident = moesim_geometry_resident_bytes(g, part->pricing.dtype);
        per_token = moesim_geometry_kv_bytes(g);
    } else if (t->has_resident_bytes) {
        m->resident = t->resident_bytes;
    }
    if (m->resident == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --gpu-memory: the memory of everything but routed experts is not known "
                           "for %s; name a model with --as MODEL ('moesim profile models NAME' shows what is known)",
                           g != NULL ? g->name : part->trace->path);
    if (o->context == MOESIM_UNSET)
        return moesim_fail(err, MOESIM_E_USAGE, "option --gpu-memory: give --context L, the tokens whose keys and values stay "
                           "on the GPU (0: none)");
    if (per_token == 0 && o->context > 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --context: the bytes of keys and values are not known for %s; give "
                           "--context 0 and subtract them from --gpu-memory, or name a model of which they are with --as",
                           g != NULL ? g->name : part->trace->path);
    if (per_token > 0 && o->context > UINT64_MAX / per_token / part->batch)
        return moesim_fail(err, MOESIM_E_LIMIT, "option --context: %" PRIu64 " tokens are too many", o->context);
    m->kv = per_token * o->context * part->batch;
    return MOESIM_OK;
}

static void expert_sizes(const moesim_sweep_options *o, const moesim_sweep_part *part, memory *m)
{
    const moesim_geometry *g = part->pricing.model;
    const uint64_t *bytes = moesim_trace_expert_bytes(part->trace->trace);
    uint64_t most = 0;
    m->layers = g != NULL ? g->moe_layers : part->trace->info->num_layers;
    for (uint32_t l = 0; l < m->layers; l++) {
        const uint64_t each = g != NULL ? part->pricing.expert_bytes[0] : bytes[l];
        m->layer_sum += each;
        most = each > most ? each : most;
    }
    m->staging = most * o->staging;
    m->workspace = o->workspace != MOESIM_UNSET ? o->workspace : WORKSPACE;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / 0x1p20;
}

static void line(FILE *out, const char *label, double amount, const char *end)
{
    fprintf(out, "  %-38s %12.1f MiB%s\n", label, amount, end);
}

/* The lines of the subtraction, owned; NULL without memory. left: what experts get, in MiB, perhaps below 0. */
static char *describe(const moesim_sweep_options *o, const moesim_sweep_part *part, const memory *m, double left,
                      uint64_t slots)
{
    char *text = NULL, label[64], end[48];
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    line(out, "GPU memory", mib(o->gpu_memory), "");
    snprintf(label, sizeof label, "- resident (%.20s)", part->pricing.model != NULL ? part->pricing.model->name : "the trace");
    line(out, label, mib(m->resident), "");
    snprintf(label, sizeof label, "- keys, values (%" PRIu32 " x %" PRIu64 ")", part->batch, o->context);
    line(out, label, mib(m->kv), "");
    snprintf(label, sizeof label, "- staging (%" PRIu64 " experts)", o->staging);
    line(out, label, mib(m->staging), "");
    line(out, "- workspace", mib(m->workspace), "");
    line(out, "= for routed experts", left, "");
    snprintf(label, sizeof label, "/ a slot in each of %" PRIu32 " layers", m->layers);
    snprintf(end, sizeof end, " = %" PRIu64 " slots a layer", slots);
    line(out, label, mib(m->layer_sum), end);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

moesim_code moesim_sweep_slots(const moesim_sweep_options *o, moesim_sweep_part *part, moesim_error *err)
{
    memory m = { 0 };
    if (known_sizes(o, part, &m, err) != MOESIM_OK)
        return err->code;
    expert_sizes(o, part, &m);
    const double left = mib(o->gpu_memory) - mib(m.resident) - mib(m.kv) - mib(m.staging) - mib(m.workspace);
    const uint32_t experts = part->trace->info->num_experts;
    uint64_t slots = left > 0 && m.layer_sum > 0 ? (uint64_t)(left / mib(m.layer_sum)) : 0;
    slots = slots > experts ? experts : slots;
    part->memory = describe(o, part, &m, left, slots);
    if (part->memory == NULL)
        return moesim_fail_nomem(err, "the subtraction", 0);
    if (slots == 0) {
        fputs(part->memory, stderr);   /* an error is one line */
        return moesim_fail(err, MOESIM_E_LIMIT, "option --gpu-memory: not one slot a layer is left, as subtracted above");
    }
    char text[24];
    const char *item = text;
    const moesim_list one = { 1, 1, &item };
    snprintf(text, sizeof text, "%" PRIu64, slots);
    return moesim_cachelist_parse(&one, false, &part->cache, err);
}

/* ---- size of the grid -------------------------------------------------------------------------------------------------- */

#define MOST_CELLS 100000u
#define MOST_BYTES ((double)((uint64_t)4 << 30))
#define MOST_SECONDS 86400.0
#define SAID_SECONDS 600.0

/* Nanoseconds of one thread for one event of one configuration, by what its order asks for: rounded measurements. */
#define NS_BITS 250.0
#define NS_KEYS 400.0
#define NS_VALUES 900.0
#define NS_COSTS 2000.0          /* decides by costs: an instance per bandwidth */
#define NS_CLOCK 320.0           /* telling time, at one bandwidth */
#define NS_LANE 90.0             /* at each further one, where they share an instance */
#define NS_BOUND 45000.0         /* offline-cost, per capacity and bandwidth */
#define BOUND_BYTES 300.0        /* per event */

typedef struct size {
    double cells, bytes, seconds;
} size;

static double policy_ns(const moesim_policy *p)
{
    return p->order == MOESIM_ORDER_RECENCY || p->order == MOESIM_ORDER_ACTIVE || p->host_mode != MOESIM_HOST_NONE ? NS_BITS
           : p->order == MOESIM_ORDER_KEY                                                                        ? NS_KEYS
                                                                                                                 : NS_VALUES;
}

static double counted(const moesim_sweep_part *part)
{
    return (double)(part->trace->request_end - part->trace->request_begin);
}

/* Of one capacity of all policies: how many instances, and nanoseconds per event. */
static void measure_policies(const moesim_sweep *s, bool timed, double *instances, double *ns)
{
    const double bandwidths = (double)s->num_bandwidths;
    *instances = *ns = 0;
    for (size_t i = 0; i < s->num_policies; i++) {
        const bool costs = timed && moesim_config_reads_costs(s->policy[i].policy, s->policy[i].options);
        *instances += costs ? bandwidths : 1;
        *ns += costs ? bandwidths * (NS_COSTS + NS_CLOCK)
                     : policy_ns(s->policy[i].policy) + (timed ? NS_CLOCK + (bandwidths - 1) * NS_LANE : 0);
    }
}

/* Tables of the profile once; for each bandwidth what a policy may read and constants of each layer. */
static double cost_bytes(const moesim_sweep *s, const moesim_sweep_part *part)
{
    const double max_rows = (double)part->trace->info->block_length * part->batch;
    return moesim_cost_rows_bytes(part->pricing.profile, (uint32_t)max_rows) +
           (double)s->num_bandwidths * (8.0 * max_rows + 80.0 * part->trace->info->num_layers);
}

/* Adds what one part takes; bytes: while it runs, state and keys of each instance and sums by request. */
static void measure_part(const moesim_sweep *s, const moesim_sweep_part *part, size *all)
{
    const moesim_trace_info *t = part->trace->info;
    const bool timed = part->pricing.mode != MOESIM_TIME_COUNT, bounded = s->options->modes.bound != MOESIM_NO_BOUND;
    const double shards = (double)s->shards, cells = (double)part->cells / shards, requests = counted(part);
    const double events = requests / t->num_requests * (double)t->num_passes * t->num_layers;
    const double capacities = (double)part->cache.n / shards;
    double instances, ns;
    measure_policies(s, timed, &instances, &ns);
    instances *= capacities;
    ns = capacities * (ns + (bounded ? (double)s->num_bandwidths * NS_BOUND : 0));
    const double bytes = instances * (t->num_layers * (32.0 * t->num_experts + 512) + requests * (double)sizeof(moesim_sums)) +
                         (timed ? cells * requests * (double)sizeof(moesim_time_sums) : 0) + (double)s->options->window * 2 +
                         (bounded ? events * BOUND_BYTES : 0) + (timed ? cost_bytes(s, part) : 0);
    all->bytes = bytes > all->bytes ? bytes : all->bytes;
    all->seconds += events * ns / 1e9 / (double)s->options->threads;
    all->cells += cells;
}

static size measure(const moesim_sweep *s)
{
    size all = { 0, 0, 0 };
    double columns = 0;
    for (size_t i = 0; i < s->num_parts; i++) {
        const moesim_sweep_part *part = &s->part[i];
        measure_part(s, part, &all);
        /* about 150 a cell, 24 a request of a cell, 13 a layer of a cell */
        columns += (double)part->cells / (double)s->shards * 8.0 *
                   (150 + 24.0 * counted(part) + 13.0 * part->trace->info->num_layers);
    }
    all.bytes += columns;
    return all;
}

moesim_code moesim_sweep_size(const moesim_sweep *s, moesim_error *err)
{
    char text[200];
    const size z = measure(s);
    snprintf(text, sizeof text, "%.0f cells in %zu pass%s over a trace, about %.0f MiB of memory and %.0f minutes with %" PRIu64
             " threads", z.cells, s->num_parts, s->num_parts == 1 ? "" : "es", z.bytes / 0x1p20, z.seconds / 60 + 1,
             s->options->threads);
    const bool large = z.cells > MOST_CELLS || z.bytes > MOST_BYTES || z.seconds > MOST_SECONDS;
    if (large && !s->options->allow_large)
        return moesim_fail(err, MOESIM_E_LIMIT, "this grid is large: %s; above %u cells, 4 GiB or a day it needs --allow-large",
                           text, MOST_CELLS);
    if (large || z.seconds > SAID_SECONDS)
        moesim_log(MOESIM_LOG_WARN, "%s", text);
    return MOESIM_OK;
}
