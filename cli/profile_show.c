/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim profile show: the constants and tables of a hardware profile.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "cli/profile.h"

#define COLUMN 38u
#define POINTS_A_LINE 7u         /* of a table, so that a line fits 80 columns */

typedef struct settings {
    moesim_list set;
    const char *as;
    int dtype, format;
} settings;

static const moesim_arg args[] = {
    { .name = "set", .type = MOESIM_ARG_LIST, .offset = offsetof(settings, set), .value = "KEY=VALUE",
      .help = "Replace a constant, such as link.bandwidth=64GB/s or other.host=0; may be repeated. Bare numbers are GB/s "
              "(10^9 bytes) and seconds." },
    { .name = "as", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, as), .value = "MODEL",
      .help = "Print also what the experts of a published model cost; 'moesim profile models' lists the names." },
    { .name = "dtype", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, dtype), .choices = moesim_dtype_names,
      .help = "Of the experts, with --as; default bf16." },
    { .name = "format", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, format), .choices = moesim_formats_no_csv,
      .help = "How to print; a table is the default. JSON without --as is a profile that can be edited and loaded; with --as "
              "it is the prices." },
    { .name = NULL },
};

const moesim_usage moesim_usage_profile_show = {
    .command = "moesim profile show",
    .synopsis = "[NAME|FILE] [options]",
    .summary = "Prints a hardware profile: each constant with samples, spread and fit residual where known, and the tables. "
               "NAME is a built-in profile, FILE ends in .json or has a '/'. Without either the built-in profiles are listed.",
    .examples = "  moesim profile show h200-host\n  moesim profile show pcie5-default --as llada2.0-flash --dtype int4\n"
                "  moesim profile show h200-host --set link.bandwidth=32GB/s --format json\n",
    .args = args,
    .min_positional = 0,
    .max_positional = 1,
};

static const char *const mode_names[] = { "count", "paper", "model" };
#define NUM_MODES (sizeof mode_names / sizeof mode_names[0])

/* The default first. */
static void modes_text(const moesim_profile *p, char *out, size_t size)
{
    const unsigned first = (unsigned)p->default_mode;
    size_t used = (size_t)snprintf(out, size, "%s", mode_names[first]);
    for (unsigned m = 0; m < NUM_MODES && used < size; m++)
        if ((p->modes & (1u << m)) != 0 && m != first)
            used += (size_t)snprintf(out + used, size - used, ", %s", mode_names[m]);
}

static json_t *modes_json(const moesim_profile *p)
{
    const unsigned first = (unsigned)p->default_mode;
    json_t *list = json_array();
    json_array_append_new(list, json_string(mode_names[first]));
    for (unsigned m = 0; m < NUM_MODES; m++)
        if ((p->modes & (1u << m)) != 0 && m != first)
            json_array_append_new(list, json_string(mode_names[m]));
    return list;
}

static void show_head(const moesim_profile *p)
{
    char text[64];
    modes_text(p, text, sizeof text);
    printf("%s (%s)\n", p->name, p->label);
    moesim_args_row(stdout, "", 0, 2, p->description);
    if (p->times_of[0] != '\0')
        moesim_args_row(stdout, "times of", 2, 13, p->times_of);
    moesim_args_row(stdout, "source", 2, 13, p->path);
    printf("  sha256     %s\n", p->digest);
    if (p->raw_digest[0] != '\0')
        printf("  raw sha256 %s\n", p->raw_digest);
    moesim_args_row(stdout, "modes", 2, 13, text);
    if (p->overrides[0] != '\0')
        moesim_args_row(stdout, "overrides", 2, 13, p->overrides);
}

/* "n 30, spread 1.2 %, residual 3 %; note" as far as known. */
static void facts_text(const moesim_constant *c, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "n %llu", (unsigned long long)c->n);
    if (!isnan(c->spread) && used < size)
        used += (size_t)snprintf(out + used, size - used, ", spread %.3g %%", 100.0 * c->spread);
    if (!isnan(c->residual) && used < size)
        used += (size_t)snprintf(out + used, size - used, ", residual %.3g %%", 100.0 * c->residual);
    if (c->note[0] != '\0' && used < size)
        snprintf(out + used, size - used, "; %s", c->note);
}

static void show_constants(const moesim_profile *p)
{
    moesim_profile_row row;
    char left[64], value[32], facts[320], text[512];
    fputs("\nConstants\n", stdout);
    for (size_t i = 0; moesim_profile_get_row(p, i, &row); i++) {
        if (!row.constant->given)
            continue;
        facts_text(row.constant, facts, sizeof facts);
        snprintf(left, sizeof left, "%-22s%13s", row.key, moesim_profile_text(row.constant->value, row.unit, value));
        snprintf(text, sizeof text, "%s; %s", row.help, facts);
        moesim_args_row(stdout, left, 2, COLUMN + 1, text);
    }
}

static void table_head(const char *what, double expert_bytes, const moesim_constant *facts)
{
    char text[512], more[320];
    facts_text(facts, more, sizeof more);
    snprintf(text, sizeof text, "%s of %.0f bytes; %s", what, expert_bytes, more);
    putchar('\n');
    moesim_args_row(stdout, "", 0, 0, text);
}

/* n numbers after a name of 16 columns. */
static void table_line(const char *name, const double *value, uint32_t n, double scale)
{
    printf("  %-14s", name);
    for (uint32_t i = 0; i < n; i++)
        printf("%9.5g", value[i] * scale);
    putchar('\n');
}

static uint32_t part(uint32_t n, uint32_t from)
{
    return n - from < POINTS_A_LINE ? n - from : POINTS_A_LINE;
}

static void show_cpu(const moesim_cpu_table *t)
{
    double stream[MOESIM_TABLE_MAX];
    table_head("CPU, one expert", t->expert_bytes, &t->facts);
    for (uint32_t i = 0; i < t->points; i++)
        stream[i] = t->expert_bytes / t->seconds[i];
    for (uint32_t from = 0; from < t->points; from += POINTS_A_LINE) {
        const uint32_t n = part(t->points, from);
        table_line("tokens", t->tokens + from, n, 1.0);
        table_line("us", t->seconds + from, n, 1e6);
        table_line("GB/s", stream + from, n, 1e-9);
    }
}

static void show_gpu(const moesim_gpu_table *t)
{
    char name[32];
    table_head("GPU, us of one grouped call, experts", t->expert_bytes, &t->facts);
    for (uint32_t from = 0; from < t->num_tokens; from += POINTS_A_LINE) {
        const uint32_t n = part(t->num_tokens, from);
        table_line("tokens each", t->tokens + from, n, 1.0);
        for (uint32_t i = 0; i < t->num_experts; i++) {
            snprintf(name, sizeof name, "experts %g", t->experts[i]);
            table_line(name, t->seconds[i] + from, n, 1e6);
        }
    }
}

void moesim_profile_print(const moesim_profile *p)
{
    show_head(p);
    show_constants(p);
    if (p->cpu.points > 0)
        show_cpu(&p->cpu);
    if (p->gpu.num_experts > 0)
        show_gpu(&p->gpu);
}

static moesim_code show(const char *name, const settings *s, moesim_profile *p, moesim_error *err)
{
    const moesim_geometry *model = NULL;
    moesim_code code = s->as != NULL ? moesim_geometry_find(s->as, &model, err) : MOESIM_OK;
    if (code == MOESIM_OK && model == NULL && s->dtype != MOESIM_BF16)
        return moesim_fail(err, MOESIM_E_USAGE, "option --dtype has no effect without --as MODEL");
    if (code == MOESIM_OK)
        code = moesim_cli_load_profile(name, &s->set, p, err);
    if (code != MOESIM_OK)
        return code;
    if (model != NULL && (p->modes & (1u << MOESIM_TIME_MODEL)) == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --as: profile %s has no costs by size of expert (mode model)", p->name);
    if (s->format == 0) {
        moesim_profile_print(p);
        if (model != NULL)
            moesim_priced_table(p, model, (enum moesim_dtype)s->dtype, stdout);
    } else if (model != NULL) {
        return moesim_priced_json(p, model, (enum moesim_dtype)s->dtype, stdout, err);
    } else {
        moesim_profile_write(p, stdout);
    }
    return MOESIM_OK;
}

static moesim_code list_table(moesim_profile *p, moesim_error *err)
{
    char left[192], modes[64], text[640];
    for (const char *const *name = moesim_profile_names(); *name != NULL; name++) {
        const moesim_code code = moesim_profile_load(*name, p, err);
        if (code != MOESIM_OK)
            return code;
        modes_text(p, modes, sizeof modes);
        snprintf(left, sizeof left, "%-14s %-12s %s", p->name, p->label, modes);
        snprintf(text, sizeof text, "%s%s", p->description, name == moesim_profile_names() ? " (default)" : "");
        moesim_args_row(stdout, left, 0, 36, text);
    }
    fputs("\n'moesim profile show NAME' shows one.\n", stdout);
    return MOESIM_OK;
}

static moesim_code list_json(moesim_profile *p, moesim_error *err)
{
    json_t *all = json_array();
    for (const char *const *name = moesim_profile_names(); *name != NULL; name++) {
        const moesim_code code = moesim_profile_load(*name, p, err);
        if (code != MOESIM_OK) {
            json_decref(all);
            return code;
        }
        json_array_append_new(all, json_pack("{s:s, s:s, s:o, s:s, s:s, s:s}", "name", p->name, "label", p->label, "modes",
                                             modes_json(p), "description", p->description, "times_of", p->times_of, "digest",
                                             p->digest));
    }
    return moesim_print_json(stdout, json_pack("{s:s, s:o}", "schema", "moesim.profiles/1", "profiles", all), err);
}

static moesim_code list(const settings *s, moesim_profile *p, moesim_error *err)
{
    if (s->set.n > 0 || s->as != NULL || s->dtype != MOESIM_BF16)
        return moesim_fail(err, MOESIM_E_USAGE, "options --set, --as and --dtype have no effect without a profile's name");
    return s->format == 0 ? list_table(p, err) : list_json(p, err);
}

moesim_code moesim_cmd_profile_show(int argc, char **argv, moesim_error *err)
{
    static moesim_profile profile;      /* too large for comfort on a stack */
    settings s = { .as = NULL };
    moesim_list words = { 0 };
    bool help;
    moesim_code code = moesim_args_parse(&moesim_usage_profile_show, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_profile_show, stdout);
    else if (code == MOESIM_OK)
        code = words.n > 0 ? show(words.item[0], &s, &profile, err) : list(&s, &profile, err);
    moesim_list_fini(&words);
    moesim_list_fini(&s.set);
    return code;
}
