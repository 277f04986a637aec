/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim-device measure: raw samples of a machine to a file, and a summary of what was seen.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/measure.h"
#include "hwprofile/geometry.h"
#include "hwprofile/measure.h"

#define MIB (UINT64_C(1) << 20)
#define CONTEXT 1024u
#define SEED 1u
#define FEWEST_SLOTS 3u
#define FEWEST_POOL 4u
#define WHERE_CHARS 41u          /* of 80 columns */
#define APART 0.05               /* sweeps that differ by more are worth a second look */

const moesim_usage moesim_usage_device_measure = {
    .command = "moesim-device measure",
    .synopsis = "--device cuda|host --as MODEL -o FILE [options]",
    .summary = "Measures what copies and computation cost on this machine, each alone and link and CPU together, the whole "
               "twice, and writes every sample to a file that 'moesim profile fit' turns into a hardware profile. Exit status "
               "77: there is no such device.",
    .examples = "  moesim-device measure --device cuda --as llada2.0-mini -o raw.h5\n"
                "  moesim-device measure --device host --as llada2.0-mini --quick -o raw.h5\n",
    .args = moesim_measure_args,
    .min_positional = 0,
    .max_positional = 0,
};

/* What the backend's default is where nothing was asked for: experts in slots, at least so many bytes of them, and bytes of the
 * pool. Slots and pool are used in turn, and more of them than a cache holds, however small an expert is. */
typedef struct sizes { const char *device; uint32_t slots; uint64_t slot_bytes, pool; } sizes;

static const sizes defaults[] = { { "host", 64, 512 * MIB, 512 * MIB }, { NULL, 320, 512 * MIB, 2048 * MIB } };

static const sizes *sizes_of(const char *device)
{
    const sizes *s = defaults;
    while (s->device != NULL && strcasecmp(s->device, device) != 0)     /* as moesim_device_find */
        s++;
    return s;
}

static moesim_code check_words(const moesim_measure_settings *s, moesim_error *err)
{
    const struct { const char *option, *value, *what; } needed[] = {
        { "--device", s->device, "cuda or host" },
        { "--as", s->as, "the model whose experts are measured; 'moesim profile models' lists them" },
        { "-o", s->output, "the file that the raw samples go to" },
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i].value == NULL)
            return moesim_fail(err, MOESIM_E_USAGE, "option %s is missing: %s", needed[i].option, needed[i].what);
    return MOESIM_OK;
}

static moesim_code find_device(const char *word, const moesim_device_ops **out, moesim_error *err)
{
    const moesim_code code = moesim_device_find(word, out, err);
    if (code == MOESIM_OK && strcmp((*out)->name, "null") == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --device: null copies and computes nothing, there is nothing to "
                           "measure; use cuda or host");
    return code;
}

static moesim_code count_of(uint64_t bytes, uint64_t each, uint32_t fewest, const char *option, uint32_t *out,
                            moesim_error *err)
{
    if (bytes / each < fewest || bytes / each > UINT32_MAX)
        return moesim_fail(err, MOESIM_E_USAGE, "option %s: %" PRIu64 " bytes hold %" PRIu64 " experts of %" PRIu64 " bytes, "
                           "%u are needed", option, bytes, bytes / each, each, fewest);
    *out = (uint32_t)(bytes / each);
    return MOESIM_OK;
}

/* "llada2.0-mini 256x64" where the sizes are not the model's own. */
static void name_model(const moesim_measure_settings *s, const moesim_geometry *g, char model[64])
{
    if (s->hidden > 0 || s->intermediate > 0)
        (void)snprintf(model, 64, "%.40s %ux%u", g->name, g->hidden, g->intermediate);
    else
        (void)snprintf(model, 64, "%.63s", g->name);
}

static moesim_code configure(const moesim_measure_settings *s, moesim_geometry *g, moesim_device_config *c, moesim_error *err)
{
    const moesim_geometry *model = NULL;
    moesim_code code = moesim_geometry_find(s->as, &model, err);
    if (code != MOESIM_OK)
        return code;
    *g = *model;
    g->hidden = s->hidden > 0 ? (uint32_t)s->hidden : g->hidden;
    g->intermediate = s->intermediate > 0 ? (uint32_t)s->intermediate : g->intermediate;
    const uint64_t each = UINT64_C(6) * g->hidden * g->intermediate;
    const sizes *usual = sizes_of(s->device);
    const uint32_t filling = (uint32_t)(usual->slot_bytes / each);
    *c = (moesim_device_config){ .hidden = g->hidden, .intermediate = g->intermediate, .top_k = g->top_k,
                                 .max_rows = moesim_measure_rows(g->top_k), .seed = SEED,
                                 .slots = filling > usual->slots ? filling : usual->slots,
                                 .allow_pageable = s->allow_pageable, .geometry = g,
                                 .context = s->context > 0 ? (uint32_t)s->context : CONTEXT,
                                 .cpu = { .threads = (uint32_t)s->threads, .isa = s->isa, .cpus = s->cpus },
                                 .index = (int)s->index };
    code = count_of(s->host_pool > 0 ? s->host_pool : usual->pool, each, FEWEST_POOL, "--host-pool", &c->pool, err);
    if (code == MOESIM_OK && s->gpu_memory > 0)
        code = count_of(s->gpu_memory, each, FEWEST_SLOTS, "--gpu-memory", &c->slots, err);
    return code;
}

/* ---- the summary --------------------------------------------------------------------------------------------------- */

static void print_facts(const moesim_raw *raw)
{
    printf("device    %s, experts of %s: %" PRIu64 " bytes\n", raw->device, raw->model, raw->expert_bytes);
    for (size_t i = 0; i < raw->num_facts; i++)
        moesim_args_row(stdout, raw->fact[i].key, 2, 14, raw->fact[i].value);
}

static void print_kinds(const moesim_raw *raw)
{
    char text[MOESIM_RAW_TEXT];
    printf("\n%-12s%7s%9s%9s  %s\n", "measured", "points", "sweeps", "at worst", "where");
    printf("%-12s%7s%9s\n", "", "", "differ %");
    for (uint32_t kind = 0; kind < MOESIM_RAW_KINDS; kind++) {
        const moesim_raw_gap gap = moesim_raw_compare(raw, kind);
        if (gap.n == 0)
            continue;
        const char *name = moesim_raw_kind_infos[kind].name, *where = moesim_raw_text(&gap.key, text) + strlen(name) + 1;
        const bool fits = strlen(where) <= WHERE_CHARS;
        printf("%-12s%7zu%9.1f%9.1f%s%s\n", name, gap.n, 100.0 * gap.median, 100.0 * gap.worst,
               fits ? "  " : "\n            ", where);
    }
    const moesim_raw_gap all = moesim_raw_compare(raw, MOESIM_RAW_KINDS);
    size_t unsettled = 0;
    for (size_t i = 0; i < raw->num_points; i++)
        unsettled += raw->point[i].agreed == 0;
    printf("%-12s%7zu%9.1f%9.1f\n", "all", all.n, 100.0 * all.median, 100.0 * all.worst);
    printf("%zu of %zu points never settled to within 2 %% while warming\n", unsettled, raw->num_points);
    if (all.median > APART)
        moesim_log(MOESIM_LOG_WARN, "half of the points differ by more than %.0f %% between the two sweeps: the machine is "
                   "busy or throttled; measure again when it is quiet", 100.0 * APART);
}

static moesim_code print_file(const char *path, moesim_error *err)
{
    char digest[MOESIM_DIGEST_CHARS];
    const moesim_code code = moesim_digest_file(path, digest, err);
    if (code == MOESIM_OK)
        printf("\nraw samples in %s (sha256 %s)\nnext: moesim profile fit %s -o profile.json\n", path, digest, path);
    return code;
}

/* ---- the command ------------------------------------------------------------------------------------------------------- */

typedef struct progress { moesim_progress line; bool begun; } progress;

static void show(void *context, size_t done, size_t total, const char *what)
{
    progress *p = context;
    if (!p->begun)
        moesim_progress_begin(&p->line, "measuring", total, 1, "points");
    p->begun = true;
    p->line.total = total;       /* the second device adds its own */
    p->line.what = what;
    moesim_progress_update(&p->line, done);
}

/* The backends speak of the options of replay. */
static moesim_code explain(moesim_code code, const moesim_device_config *c, moesim_error *err)
{
    if (code == MOESIM_E_LIMIT)
        return moesim_fail_prefix(err, "%u slots and a pool of %u experts (options --gpu-memory and --host-pool)", c->slots,
                                  c->pool);
    return code;
}

static moesim_code measure(const moesim_measure_settings *s, moesim_raw *raw, moesim_error *err)
{
    moesim_geometry geometry;
    moesim_device_config config;
    const moesim_device_ops *ops = NULL;
    progress p = { .begun = false };
    char why[256] = "", model[64];
    moesim_code code = check_words(s, err);
    if (code == MOESIM_OK)
        code = find_device(s->device, &ops, err);
    if (code == MOESIM_OK)
        code = configure(s, &geometry, &config, err);
    if (code == MOESIM_OK)
        code = moesim_output_try(s->output, err);
    if (code == MOESIM_OK && !ops->present(config.index, why))
        code = moesim_fail(err, MOESIM_E_ABSENT, "there is no device %s: %s", ops->name, why);
    if (code != MOESIM_OK)
        return code;
    name_model(s, &geometry, model);
    const moesim_measure_params params = { .ops = ops, .config = &config, .model = model,
                                           .cpu = &moesim_measure_cpu_real, .quick = s->quick, .skip_other = s->other == 0,
                                           .rounds = (uint32_t)s->rounds,
                                           .progress = show, .context = &p };
    code = explain(moesim_measure(&params, raw, err), &config, err);
    if (p.begun)
        moesim_progress_end(&p.line);
    return code == MOESIM_OK ? moesim_raw_write(raw, s->output, err) : code;
}

moesim_code moesim_cmd_device_measure(int argc, char **argv, moesim_error *err)
{
    moesim_measure_settings s = MOESIM_MEASURE_DEFAULTS;
    moesim_list words = { 0 };
    moesim_raw raw;
    bool help = false;
    moesim_raw_init(&raw);
    moesim_code code = moesim_args_parse(&moesim_usage_device_measure, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_device_measure, stdout);
    else if (code == MOESIM_OK)
        code = measure(&s, &raw, err);
    if (code == MOESIM_OK && !help) {
        print_facts(&raw);
        print_kinds(&raw);
        code = print_file(s.output, err);
    }
    moesim_raw_fini(&raw);
    moesim_list_fini(&words);
    return code;
}
