/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim profile models: the published models that --as knows. Schema moesim.models/1; unknown numbers are "-" or null.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "cli/profile.h"

typedef struct settings { int dtype, format; } settings;

static const moesim_arg args[] = {
    { .name = "dtype", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, dtype), .choices = moesim_dtype_names,
      .help = "Of the weights; default bf16. Scales of fp8 and int4 are not counted, those of mxfp4 are (its attention stays "
              "in bf16)." },
    { .name = "format", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, format), .choices = moesim_formats,
      .help = "How to print; a table is the default." },
    { .name = NULL },
};

const moesim_usage moesim_usage_profile_models = {
    .command = "moesim profile models",
    .synopsis = "[NAME] [options]",
    .summary = "Lists the published models whose sizes are known, for --as MODEL, or shows one with the source of its "
               "numbers. What no source gave is unknown, never guessed.",
    .examples = "  moesim profile models\n  moesim profile models llada2.0-flash --dtype int4\n",
    .args = args,
    .min_positional = 0,
    .max_positional = 1,
};

/* The whole numbers of a row, by name; unknown ones are 0. */
static const struct { const char *name; size_t offset; } column[] = {
    { "layers", offsetof(moesim_geometry, layers) }, { "moe_layers", offsetof(moesim_geometry, moe_layers) },
    { "experts", offsetof(moesim_geometry, experts) }, { "top_k", offsetof(moesim_geometry, top_k) },
    { "hidden", offsetof(moesim_geometry, hidden) }, { "intermediate", offsetof(moesim_geometry, intermediate) },
    { "shared_experts", offsetof(moesim_geometry, shared_experts) }, { "heads", offsetof(moesim_geometry, heads) },
    { "kv_heads", offsetof(moesim_geometry, kv_heads) }, { "head_dim", offsetof(moesim_geometry, head_dim) },
    { "vocab", offsetof(moesim_geometry, vocab) },
    { "dense_intermediate", offsetof(moesim_geometry, dense_intermediate) },
};
#define NUM_COLUMNS (sizeof column / sizeof column[0])

static uint32_t number(const moesim_geometry *g, size_t i)
{
    return *(const uint32_t *)(const void *)((const char *)g + column[i].offset);
}

/* 0 is a number for these two, where the model has no such part. */
static bool known(const moesim_geometry *g, size_t i)
{
    return number(g, i) > 0 || column[i].offset == offsetof(moesim_geometry, shared_experts) ||
           (column[i].offset == offsetof(moesim_geometry, dense_intermediate) && g->layers == g->moe_layers);
}

typedef struct size_row { const char *name; uint64_t bytes; } size_row;
#define NUM_SIZES 4u

static void sizes_of(const moesim_geometry *g, enum moesim_dtype dtype, size_row out[NUM_SIZES])
{
    const uint64_t expert = moesim_geometry_expert_bytes(g, dtype);
    out[0] = (size_row){ "expert_bytes", expert };
    out[1] = (size_row){ "all_expert_bytes", expert * g->experts * g->moe_layers };
    out[2] = (size_row){ "resident_bytes", moesim_geometry_resident_bytes(g, dtype) };
    out[3] = (size_row){ "kv_bytes", moesim_geometry_kv_bytes(g) };
}

/* "12.3", or "-" for an unknown number of bytes. */
static const char *amount(uint64_t bytes, double unit, int decimals, char text[24])
{
    if (bytes == 0)
        snprintf(text, 24, "-");
    else
        snprintf(text, 24, "%.*f", decimals, (double)bytes / unit);
    return text;
}

static void list_table(enum moesim_dtype dtype)
{
    char layers[24], experts[24], cell[NUM_SIZES][24];
    size_row size[NUM_SIZES];
    printf("%-17s %7s %9s %6s %6s %7s %8s %6s %6s\n", "", "layers", "experts", "", "expert", "expert", "experts", "other",
           "KV per");
    printf("%-17s %7s %9s %6s %6s %7s %8s %6s %6s\n", moesim_dtype_names[dtype], "MoE/all", "all/top-k", "hidden", "width",
           "MB", "GiB", "GiB", "KiB");
    for (const moesim_geometry *g = moesim_geometries; g->name != NULL; g++) {
        sizes_of(g, dtype, size);
        snprintf(layers, sizeof layers, "%" PRIu32 "/%" PRIu32, g->moe_layers, g->layers);
        snprintf(experts, sizeof experts, "%" PRIu32 "/%" PRIu32, g->experts, g->top_k);
        printf("%-17s %7s %9s %6" PRIu32 " %6" PRIu32 " %7s %8s %6s %6s\n", g->name, layers, experts, g->hidden,
               g->intermediate, amount(size[0].bytes, 1e6, 2, cell[0]), amount(size[1].bytes, 0x1p30, 1, cell[1]),
               amount(size[2].bytes, 0x1p30, 2, cell[2]), amount(size[3].bytes, 0x1p10, 0, cell[3]));
    }
    fputs("\nKV per token; other: attention, router, shared experts, dense layers, embedding.\n"
          "'-': not known. 'moesim profile models NAME' shows one with its source.\n", stdout);
}

static void show_table(const moesim_geometry *g, enum moesim_dtype dtype)
{
    size_row size[NUM_SIZES];
    sizes_of(g, dtype, size);
    printf("%s\n", g->name);
    moesim_args_row(stdout, "source", 2, 24, g->source);
    moesim_args_row(stdout, "dtype", 2, 24, moesim_dtype_names[dtype]);
    for (size_t i = 0; i < NUM_COLUMNS; i++) {
        if (known(g, i))
            printf("  %-22s%" PRIu32 "\n", column[i].name, number(g, i));
        else
            printf("  %-22sunknown\n", column[i].name);
    }
    for (size_t i = 0; i < NUM_SIZES; i++) {
        if (size[i].bytes > 0)
            printf("  %-22s%" PRIu64 "\n", size[i].name, size[i].bytes);
        else
            printf("  %-22sunknown\n", size[i].name);
    }
}

static void put_csv(const moesim_geometry *g, enum moesim_dtype dtype)
{
    size_row size[NUM_SIZES];
    sizes_of(g, dtype, size);
    printf("%s,%s", g->name, moesim_dtype_names[dtype]);
    for (size_t i = 0; i < NUM_COLUMNS; i++) {
        putchar(',');
        if (known(g, i))
            printf("%" PRIu32, number(g, i));
    }
    for (size_t i = 0; i < NUM_SIZES; i++) {
        putchar(',');
        if (size[i].bytes > 0)
            printf("%" PRIu64, size[i].bytes);
    }
    putchar(',');
    moesim_print_csv(stdout, g->source);
    putchar('\n');
}

static void csv(const moesim_geometry *one, enum moesim_dtype dtype)
{
    size_row size[NUM_SIZES];
    sizes_of(&moesim_geometries[0], dtype, size);
    fputs("model,dtype", stdout);
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        printf(",%s", column[i].name);
    for (size_t i = 0; i < NUM_SIZES; i++)
        printf(",%s", size[i].name);
    fputs(",source\n", stdout);
    for (const moesim_geometry *g = moesim_geometries; g->name != NULL; g++)
        if (one == NULL || g == one)
            put_csv(g, dtype);
}

static json_t *json_model(const moesim_geometry *g, enum moesim_dtype dtype)
{
    size_row size[NUM_SIZES];
    json_t *o = json_pack("{s:s, s:s, s:s}", "model", g->name, "source", g->source, "dtype", moesim_dtype_names[dtype]);
    sizes_of(g, dtype, size);
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        json_object_set_new(o, column[i].name, known(g, i) ? json_integer(number(g, i)) : json_null());
    for (size_t i = 0; i < NUM_SIZES; i++)
        json_object_set_new(o, size[i].name, size[i].bytes > 0 ? json_integer((json_int_t)size[i].bytes) : json_null());
    return o;
}

static moesim_code json(const moesim_geometry *one, enum moesim_dtype dtype, moesim_error *err)
{
    json_t *models = json_array();
    for (const moesim_geometry *g = moesim_geometries; g->name != NULL; g++)
        if (one == NULL || g == one)
            json_array_append_new(models, json_model(g, dtype));
    return moesim_print_json(stdout, json_pack("{s:s, s:o}", "schema", "moesim.models/1", "models", models), err);
}

static moesim_code print(const settings *s, const char *name, moesim_error *err)
{
    const moesim_geometry *one = NULL;
    const enum moesim_dtype dtype = (enum moesim_dtype)s->dtype;
    const moesim_code code = name != NULL ? moesim_geometry_find(name, &one, err) : MOESIM_OK;
    if (code != MOESIM_OK)
        return code;
    if (s->format == MOESIM_FORMAT_JSON)
        return json(one, dtype, err);
    if (s->format == MOESIM_FORMAT_CSV)
        csv(one, dtype);
    else if (one != NULL)
        show_table(one, dtype);
    else
        list_table(dtype);
    return MOESIM_OK;
}

moesim_code moesim_cmd_profile_models(int argc, char **argv, moesim_error *err)
{
    settings s = { MOESIM_BF16, MOESIM_FORMAT_TABLE };
    moesim_list words = { 0 };
    bool help;
    moesim_code code = moesim_args_parse(&moesim_usage_profile_models, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_profile_models, stdout);
    else if (code == MOESIM_OK)
        code = print(&s, words.n > 0 ? words.item[0] : NULL, err);
    moesim_list_fini(&words);
    return code;
}
