/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim profile derive: a profile from nominal rates, with what the same rules are worth on a machine that is known.
 */
#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "hwprofile/derive.h"

typedef struct settings {
    const char *link, *dram, *hbm, *nvbandwidth, *as, *output, *name;
    uint64_t threads, index;
} settings;

#define AT(member) offsetof(settings, member)

static const moesim_arg args[] = {
    { .name = "link", .type = MOESIM_ARG_STRING, .offset = AT(link), .value = "RATE",
      .help = "Nominal rate of the link, one way, such as 64GB/s for PCIe 5 x16; bare numbers are GB/s." },
    { .name = "nvbandwidth", .type = MOESIM_ARG_STRING, .offset = AT(nvbandwidth), .value = "FILE",
      .help = "What 'nvbandwidth -j' wrote, instead of --link: its host-to-device rate is taken as it is." },
    { .name = "dram", .type = MOESIM_ARG_STRING, .offset = AT(dram), .value = "RATE",
      .help = "Nominal rate of host memory: channels times their rate, such as 307.2GB/s for 8 of DDR5-4800." },
    { .name = "hbm", .type = MOESIM_ARG_STRING, .offset = AT(hbm), .value = "RATE",
      .help = "Nominal rate of the GPU's memory, such as 4.8TB/s." },
    { .name = "threads", .type = MOESIM_ARG_U64, .offset = AT(threads), .value = "N", .min = 1, .max = 256,
      .help = "CPU threads that compute experts; 16 is the default." },
    { .name = "index", .type = MOESIM_ARG_U64, .offset = AT(index), .value = "N", .min = 0, .max = 255,
      .help = "Which GPU of FILE; 0 is the default." },
    { .name = "as", .type = MOESIM_ARG_STRING, .offset = AT(as), .value = "MODEL",
      .help = "Whose experts and layers the costs are for; llada2.0-mini is the default." },
    { .name = "output", .letter = 'o', .type = MOESIM_ARG_STRING, .offset = AT(output), .value = "FILE",
      .help = "Where the profile goes; without it the constants are only printed." },
    { .name = "name", .type = MOESIM_ARG_STRING, .offset = AT(name), .value = "NAME",
      .help = "Of the profile; 'derived' is the default." },
    { .name = NULL },
};

const moesim_usage moesim_usage_profile_derive = {
    .command = "moesim profile derive",
    .synopsis = "--link RATE --dram RATE --hbm RATE [-o FILE] [options]",
    .summary = "Derives a hardware profile from nominal rates by rules of thumb, for hardware that nobody has measured. "
               "Its label is 'not measured', and the error that the same rules would have made on the H200 host is printed "
               "with it.",
    .examples = "  moesim profile derive --link 64GB/s --dram 200GB/s --hbm 4.8TB/s -o guess.json\n"
                "  moesim profile derive --nvbandwidth nv.json --dram 200GB/s \\\n"
                "      --hbm 1.8TB/s --threads 8\n",
    .args = args,
    .min_positional = 0,
    .max_positional = 0,
};

static moesim_code rate(const char *option, const char *text, double *out, moesim_error *err)
{
    if (text == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "%s is missing: a rate such as 64GB/s", option);
    return moesim_profile_parse_bandwidth(text, option, out, err);
}

static moesim_code read_link(const settings *s, moesim_nominal *nominal, char tool[80], moesim_error *err)
{
    moesim_nvbandwidth nv;
    const moesim_named_file input = { "option --nvbandwidth", s->nvbandwidth }, output = { "option -o", s->output };
    if (s->nvbandwidth == NULL && s->index > 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --index has no effect without --nvbandwidth FILE");
    if (s->nvbandwidth == NULL)
        return rate("option --link", s->link, &nominal->link, err);
    if (s->link != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "options --link and --nvbandwidth both say what the link does; give one");
    moesim_code code = moesim_check_outputs(&input, 1, &output, 1, err);
    if (code == MOESIM_OK)
        code = moesim_nvbandwidth_read(s->nvbandwidth, (uint32_t)s->index, &nv, err);
    if (code != MOESIM_OK)
        return code;
    (void)snprintf(tool, 80, "nvbandwidth %s", nv.version);
    nominal->link_measured = nv.link;
    nominal->back = nv.back;
    nominal->tool = tool;
    return MOESIM_OK;
}

static moesim_code derive(const settings *s, moesim_profile *p, moesim_profile *again, moesim_error *err)
{
    const moesim_geometry *model = NULL;
    moesim_nominal nominal = { .threads = (uint32_t)s->threads };
    char tool[80] = "";
    moesim_code code = moesim_cli_check_name(s->name, err);
    if (code == MOESIM_OK)
        code = read_link(s, &nominal, tool, err);
    if (code == MOESIM_OK)
        code = rate("option --dram", s->dram, &nominal.dram, err);
    if (code == MOESIM_OK)
        code = rate("option --hbm", s->hbm, &nominal.hbm, err);
    if (code == MOESIM_OK)
        code = moesim_geometry_find(s->as != NULL ? s->as : "llada2.0-mini", &model, err);
    if (code != MOESIM_OK)
        return code;
    moesim_error rates = MOESIM_ERROR_INIT;
    code = moesim_derive(&nominal, model, s->name != NULL ? s->name : "derived", "derived from nominal rates", p, &rates);
    if (code == MOESIM_OK)
        code = moesim_cli_keep_profile(p, s->output, again, &rates);
    if (code == MOESIM_OK)
        return code;
    /* no file is at fault: the rates were given as options */
    return moesim_fail(err, code == MOESIM_E_FORMAT ? MOESIM_E_USAGE : code, "%s", rates.text);
}

/* Rows that rest on an estimate in the built-in profile itself are shown without an error; so are those that it measured as
 * nothing. */
static moesim_code print_error(moesim_error *err)
{
    moesim_derive_row row[MOESIM_DERIVE_ROWS];
    size_t n = 0;
    char label[32], derived[32], shipped[32];
    const moesim_code code = moesim_derive_error(row, &n, label, err);
    if (code != MOESIM_OK)
        return code;
    printf("\nThe same rules on the H200 host (64 GB/s, 307.2 GB/s, 4.8 TB/s, 16 threads)\n");
    printf("against the profile h200-host (%s)\n", label);
    if (strcmp(label, "measured") != 0)
        printf("That profile is %s itself: its estimates judge nothing.\n", label);
    printf("  %-24s%14s%14s%12s\n", "constant", "derived", "h200-host", "error");
    for (size_t i = 0; i < n; i++) {
        printf("  %-24s%14s%14s", row[i].what, moesim_profile_text(row[i].derived, row[i].unit, derived),
               moesim_profile_text(row[i].shipped, row[i].unit, shipped));
        if (row[i].estimate || !(row[i].shipped > 0.0))
            printf("%12s\n", row[i].estimate ? "(estimate)" : "n/a");
        else
            printf("%+10.0f %%\n", 100.0 * (row[i].derived / row[i].shipped - 1.0));
    }
    return MOESIM_OK;
}

moesim_code moesim_cmd_profile_derive(int argc, char **argv, moesim_error *err)
{
    static moesim_profile profile, again;        /* too large for comfort on a stack */
    settings s = { .link = NULL };
    moesim_list words = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_profile_derive, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_profile_derive, stdout);
    else if (code == MOESIM_OK)
        code = derive(&s, &profile, &again, err);
    if (code == MOESIM_OK && !help) {
        moesim_profile_print(&again);
        code = print_error(err);
    }
    moesim_list_fini(&words);
    return code;
}
