/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim plot: figures of results.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/options.h"
#include "base/paths.h"
#include "cli/cli.h"
#include "cli/paired.h"
#include "cli/print.h"
#include "cli/stats_report.h"
#include "plots/chart.h"
#include "plots/figures.h"
#include "plots/render.h"
#include "sim/stats.h"

#define WIDTH_MM 160.0

typedef struct settings {
    const char *output, *trace, *profile, *dtype;
    moesim_list policy;
    double cache, bandwidth, batch, width;
    bool keep, list;
} settings;

static const moesim_arg args[] = {
    { .name = "output", .letter = 'o', .type = MOESIM_ARG_STRING, .offset = offsetof(settings, output), .value = "FILE",
      .help = "The picture; its ending says what it becomes: .png, .svg or .pdf." },
    { .name = "list", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, list), .help = "List the figures." },
    { .name = "policy", .type = MOESIM_ARG_LIST, .offset = offsetof(settings, policy), .value = "P[,P...]",
      .help = "Show these policies alone: names separated by commas, or one with options as the result calls it; may be "
              "repeated." },
    { .name = "cache", .type = MOESIM_ARG_REAL, .offset = offsetof(settings, cache), .value = "N", .min = 0, .max = 1e15,
      .help = "Slots per layer, for figures at one capacity; default: the middle one of the result." },
    { .name = "bandwidth", .type = MOESIM_ARG_REAL, .offset = offsetof(settings, bandwidth), .value = "GB/S", .min = 0,
      .max = 1e6, .help = "Bandwidth of the link; default: the result's first." },
    { .name = "batch", .type = MOESIM_ARG_REAL, .offset = offsetof(settings, batch), .value = "N", .min = 1, .max = 1e6,
      .help = "Batch size; default: the result's first." },
    { .name = "trace", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, trace), .value = "NAME",
      .help = "Trace as the result calls it; default: the first, bars show all." },
    { .name = "profile", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, profile), .value = "NAME",
      .help = "Hardware profile; default: the first." },
    { .name = "dtype", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, dtype), .value = "NAME",
      .help = "Type of the experts' weights; default: the first." },
    { .name = "width", .type = MOESIM_ARG_REAL, .offset = offsetof(settings, width), .value = "MM", .min = MOESIM_PLOT_MIN_MM,
      .max = MOESIM_PLOT_MAX_MM,
      .help = "Width in millimetres (default 160; a column of a paper has about 80). Letters keep their size." },
    { .name = "keep", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, keep),
      .help = "Leave gnuplot's script and data beside the picture, as FILE.gp and FILE.dat." },
    { .name = NULL },
};

const moesim_usage moesim_usage_plot = {
    .command = "moesim plot",
    .synopsis = "RESULT FIGURE -o FILE [options]",
    .summary = "Draws a figure of a result of 'moesim sweep' or 'moesim fidelity', or of a file of 'moesim trace stats -o', "
               "with gnuplot. What a sweep has more than one of and the figure shows one of is chosen, and said.",
    .examples = "  moesim plot --list\n"
                "  moesim plot result.h5 curve -o curve.svg --width 80\n"
                "  moesim plot result.h5 tpot -o tpot.pdf --cache 60 --policy lru,oled\n"
                "  moesim plot stats.h5 stability -o stability.png\n",
    .args = args,
    .min_positional = 0,
    .max_positional = 2,
};

static void list_figures(void)
{
    for (const moesim_figure *f = moesim_figures; f->name != NULL; f++)
        moesim_args_row(stdout, f->name, 2, 16, f->help);
    puts("\nNeeded is a result that these commands write:");
    for (const moesim_figure *f = moesim_figures; f->name != NULL; f++)
        moesim_args_row(stdout, f->name, 2, 16, f->source);
}

/* ---- intervals over requests, one plan of resamples for each number of requests ------------------------------------- */

typedef struct plan { size_t n; uint64_t seed; moesim_bootstrap *bootstrap; } plan;

static moesim_code plan_for(plan *p, size_t n, moesim_error *err)
{
    if (p->bootstrap != NULL && p->n == n)
        return MOESIM_OK;
    moesim_bootstrap_destroy(&p->bootstrap);
    p->n = n;
    return moesim_bootstrap_create(n, MOESIM_RESAMPLES, p->seed, &p->bootstrap, err);
}

static moesim_code interval(void *cookie, const double *num, const double *den, size_t n, double *lo, double *hi,
                            moesim_error *err)
{
    plan *p = cookie;
    moesim_interval between = { NAN, NAN };
    *lo = *hi = NAN;
    if (n < 2)
        return MOESIM_OK;
    moesim_code code = plan_for(p, n, err);
    if (code == MOESIM_OK)
        code = moesim_bootstrap_ratio(p->bootstrap, num, den, &between, err);
    *lo = between.lo;
    *hi = between.hi;
    return code;
}

static moesim_code differ(void *cookie, const double *num_a, const double *den_a, const double *num_b, const double *den_b,
                          size_t n, bool *out, moesim_error *err)
{
    plan *p = cookie;
    *out = false;
    const moesim_code code = plan_for(p, n, err);
    return code == MOESIM_OK ? moesim_paired_differ(p->bootstrap, num_a, den_a, num_b, den_b, n, p->seed, out, err) : code;
}

/* ---- drawing ------------------------------------------------------------------------------------------------------- */

/* "a,b" names two policies; with options the commas separate those. The pieces are owned by `text`. */
static moesim_code split_policies(const moesim_list *given, moesim_list *text, moesim_list *out, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < given->n && code == MOESIM_OK; i++) {
        char *copy = strdup(given->item[i]), *rest = copy;
        if (copy == NULL)
            return moesim_fail_nomem(err, "names of policies", strlen(given->item[i]));
        code = moesim_list_add(text, copy, err);
        if (code != MOESIM_OK)
            free(copy);
        else if (strchr(copy, ':') != NULL)
            code = moesim_list_add(out, copy, err);
        else
            while (rest != NULL && code == MOESIM_OK)
                code = moesim_list_add(out, strsep(&rest, ","), err);
    }
    return code;
}

static void free_policies(moesim_list *text, moesim_list *names)
{
    for (size_t i = 0; i < text->n; i++)
        free((void *)(uintptr_t)text->item[i]);
    moesim_list_fini(text);
    moesim_list_fini(names);
}

/* What was chosen, as the option that chooses otherwise. */
static void say(const char *output, const char *chosen)
{
    moesim_print_clean(stdout, output);
    putchar('\n');
    for (const char *line = chosen; *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        printf("  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n' ? 1u : 0u);
    }
}

/* The result's own seed, so that intervals agree with those of the sweep. */
static uint64_t seed_of(const moesim_result *result)
{
    const char *text = moesim_result_get(result, "seed");
    uint64_t seed = 1;
    return text != NULL && moesim_parse_u64(text, 0, UINT64_MAX, "seed", &seed, NULL) == MOESIM_OK ? seed : 1;
}

static moesim_code draw(const settings *s, const char *path, const moesim_figure *figure, const moesim_plot_request *request,
                        moesim_error *err)
{
    moesim_result result;
    moesim_chart *chart = malloc(sizeof *chart);
    if (chart == NULL)
        return moesim_fail_nomem(err, "a figure", sizeof *chart);
    moesim_chart_init(chart);
    moesim_code code = moesim_result_read_any(path, &result, err);
    ((plan *)request->cookie)->seed = seed_of(&result);
    if (code == MOESIM_OK)
        code = moesim_figure_chart(figure, &result, path, request, chart, err);
    if (code == MOESIM_OK)
        code = moesim_plot_render(chart, figure->template_name, s->width, s->output, s->keep, err);
    if (code == MOESIM_OK)
        say(s->output, chart->chosen);
    moesim_result_fini(&result);
    moesim_chart_fini(chart);
    free(chart);
    return code;
}

/* The picture, and what --keep leaves beside it. */
static moesim_code check_files(const settings *s, const char *result, moesim_error *err)
{
    char side[2][PATH_MAX + 8];
    const moesim_named_file in = { "the result", result };
    const moesim_named_file out[] = { { "option -o", s->output }, { "option --keep", side[0] }, { "option --keep", side[1] } };
    (void)snprintf(side[0], sizeof side[0], "%s.gp", s->output);
    (void)snprintf(side[1], sizeof side[1], "%s.dat", s->output);
    return moesim_check_outputs(&in, 1, out, s->keep ? 3 : 1, err);
}

static moesim_code plot(const settings *s, const moesim_list *words, moesim_error *err)
{
    moesim_list text = { 0 }, names = { 0 };
    plan p = { 0, 1, NULL };
    const moesim_figure *figure;
    if (words->n < 2)
        return moesim_fail(err, MOESIM_E_USAGE, "needed are a result and a figure; `moesim plot --list` shows the figures");
    if (s->output == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "option -o is missing: the file of the picture, ending in .png, .svg or .pdf");
    moesim_code code = check_files(s, words->item[0], err);
    if (code == MOESIM_OK)
        code = moesim_figure_find(words->item[1], &figure, err);
    if (code == MOESIM_OK)
        code = split_policies(&s->policy, &text, &names, err);
    moesim_plot_request request = {
        .policy = names.item, .num_policies = names.n, .trace = s->trace, .profile = s->profile, .dtype = s->dtype,
        .cache = s->cache, .bandwidth = s->bandwidth, .batch = s->batch, .width_mm = s->width,
        .interval = interval, .differ = differ, .cookie = &p,
        .published = moesim_paper_stable, .num_published = MOESIM_STATS_BINS,
        .published_name = "OLED-MoE Fig. 10b (LLaDA2.0)",
    };
    if (code == MOESIM_OK)
        code = draw(s, words->item[0], figure, &request, err);
    moesim_bootstrap_destroy(&p.bootstrap);
    free_policies(&text, &names);
    return code;
}

moesim_code moesim_cmd_plot(int argc, char **argv, moesim_error *err)
{
    settings s = { .cache = NAN, .bandwidth = NAN, .batch = NAN, .width = WIDTH_MM };
    moesim_list words = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_plot, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_plot, stdout);
    else if (code == MOESIM_OK && s.list)
        list_figures();
    else if (code == MOESIM_OK)
        code = plot(&s, &words, err);
    moesim_list_fini(&words);
    moesim_list_fini(&s.policy);
    return code;
}
