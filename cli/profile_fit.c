/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim profile fit: raw samples to a profile.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/output.h"
#include "base/paths.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "hwprofile/fit.h"

typedef struct settings {
    const char *output, *name;
    uint64_t threads, rows;
    int copies;
} settings;

static const char *const copies_names[] = { "alone", "events", NULL };

static const moesim_arg args[] = {
    { .name = "output", .letter = 'o', .type = MOESIM_ARG_STRING, .offset = offsetof(settings, output), .value = "FILE",
      .help = "Where the profile goes; without it the constants are only printed." },
    { .name = "name", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, name), .value = "NAME",
      .help = "Of the profile: letters, digits, '.', '_', '-'; that of FILE is the default." },
    { .name = "threads", .type = MOESIM_ARG_U64, .offset = offsetof(settings, threads), .value = "N", .min = 1, .max = 256,
      .help = "CPU threads that the profile is for, a number that was measured; all is the default." },
    { .name = "rows", .type = MOESIM_ARG_U64, .offset = offsetof(settings, rows), .value = "N", .min = 1, .max = 1024,
      .help = "Rows of an event, for sync, attention and head; the nearest measured number counts, 16 is the default." },
    { .name = "copies", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, copies), .choices = copies_names,
      .help = "What a copy is taken to cost: as copied one after another alone, which is the default, or what one more copy "
              "adds to an event. The note of link.alpha says both." },
    { .name = NULL },
};

const moesim_usage moesim_usage_profile_fit = {
    .command = "moesim profile fit",
    .synopsis = "RAW [-o FILE] [options]",
    .summary = "Fits a hardware profile to the raw samples of 'moesim profile measure' and prints each constant with samples, "
               "spread and residual. A residual above 10 % is warned of, and a constant that each of the two sweeps alone "
               "would have put more than 10 % from their mean (and 2 us apart). The same samples give the same profile.",
    .examples = "  moesim profile fit raw.h5 -o my-machine.json\n  moesim profile fit raw.h5 --threads 8 -o eight.json\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 1,
};

moesim_code moesim_cli_check_name(const char *name, moesim_error *err)
{
    if (name == NULL || (name[0] != '\0' && strlen(name) < 64 && strspn(name, MOESIM_PROFILE_NAME_CHARS) == strlen(name)))
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_USAGE, "option --name: 1 to 63 letters, digits, '.', '_' and '-' make a name");
}

/* "dir/my machine.json" to "my-machine". */
static void name_of(const char *path, char name[64])
{
    const char *slash = strrchr(path, '/'), *from = slash != NULL ? slash + 1 : path;
    const size_t n = strlen(from), cut = n > 5 && strcmp(from + n - 5, ".json") == 0 ? n - 5 : n;
    size_t i = 0;
    for (; i < cut && i < 63; i++)
        name[i] = strchr(MOESIM_PROFILE_NAME_CHARS, from[i]) != NULL ? from[i] : '-';
    name[i] = '\0';
}

static void warn_one(const char *key, const moesim_constant *c)
{
    if (c->given && c->residual > MOESIM_FIT_RESIDUAL)
        moesim_log(MOESIM_LOG_WARN, "%s: residual %.3g %%: the samples do not follow the model there", key,
                   100.0 * c->residual);
}

static void warn_residuals(const moesim_profile *p)
{
    moesim_profile_row row;
    for (size_t i = 0; moesim_profile_get_row(p, i, &row); i++)
        warn_one(row.key, row.constant);
    warn_one("cpu.table", &p->cpu.facts);
    warn_one("gpu.table", &p->gpu.facts);
}

/* Both sweeps alone, before the raw samples are let go. */
static void warn_sweeps(const moesim_raw *raw, const moesim_fit_options *options)
{
    moesim_fit_gap gap[MOESIM_FIT_GAPS];
    moesim_error err = MOESIM_ERROR_INIT;
    size_t n;
    if (moesim_fit_sweeps(raw, options, gap, &n, &err) != MOESIM_OK)
        moesim_log(MOESIM_LOG_WARN, "the two sweeps cannot be compared, since one alone gives no profile: %s", err.text);
    for (size_t i = 0; i < n; i++) {
        const bool time = gap[i].unit[0] == 's';
        const double unit = time ? 1e6 : 1e-9;
        moesim_log(MOESIM_LOG_WARN, "%s: %.3g %s by the first sweep alone, %.3g by the second: the machine did not do the same "
                   "twice", gap[i].key, gap[i].value[0] * unit, time ? "us" : "GB/s", gap[i].value[1] * unit);
    }
}

moesim_code moesim_cli_keep_profile(const moesim_profile *profile, const char *path, moesim_profile *again, moesim_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    moesim_output *output = NULL;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL)
        return moesim_fail_nomem(err, "a profile", sizeof *profile);
    moesim_profile_write(profile, memory);
    if (fclose(memory) != 0) {
        free(text);
        return moesim_fail_nomem(err, "a profile", bytes);
    }
    moesim_code code = moesim_profile_parse(text, bytes, path != NULL ? path : profile->path, again, err);
    if (code == MOESIM_OK && path != NULL)
        code = moesim_output_open(path, &output, err);
    if (output != NULL) {
        (void)fwrite(text, 1, bytes, moesim_output_stream(output));      /* commit checks it */
        code = moesim_output_commit(&output, err);
    }
    free(text);
    return code;
}

static moesim_code fit(const char *path, const settings *s, moesim_profile *p, moesim_profile *again, moesim_error *err)
{
    char digest[MOESIM_DIGEST_CHARS], name[64];
    moesim_raw raw;
    const moesim_named_file input = { "the raw samples", path }, output = { "option -o", s->output };
    name_of(s->output != NULL ? s->output : "fitted", name);
    moesim_code code = moesim_cli_check_name(s->name, err);
    if (code == MOESIM_OK)
        code = moesim_check_outputs(&input, 1, &output, 1, err);
    if (code == MOESIM_OK)
        code = moesim_raw_read(path, &raw, err);
    if (code != MOESIM_OK)
        return code;
    code = moesim_digest_file(path, digest, err);
    const moesim_fit_options options = { .name = s->name != NULL ? s->name : name, .path = path, .digest = digest,
                                         .threads = (uint32_t)s->threads, .rows = (uint32_t)s->rows,
                                         .copies_of_events = s->copies == 1 };
    if (code == MOESIM_OK)
        code = moesim_fit(&raw, &options, p, err);
    if (code == MOESIM_OK)
        warn_sweeps(&raw, &options);
    moesim_raw_fini(&raw);
    return code == MOESIM_OK ? moesim_cli_keep_profile(p, s->output, again, err) : code;
}

moesim_code moesim_cmd_profile_fit(int argc, char **argv, moesim_error *err)
{
    static moesim_profile profile, again;        /* too large for comfort on a stack */
    settings s = { .output = NULL };
    moesim_list words = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_profile_fit, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_profile_fit, stdout);
    else if (code == MOESIM_OK)
        code = fit(words.item[0], &s, &profile, &again, err);
    if (code == MOESIM_OK && !help) {
        moesim_profile_print(&again);
        warn_residuals(&again);
    }
    moesim_list_fini(&words);
    return code;
}
