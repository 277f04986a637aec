/* SPDX-License-Identifier: Apache-2.0
 *
 * Scripts and pictures: names from outside cannot become commands, the same result gives the same bytes. Pictures need
 * gnuplot; without it those tests say so and are left out.
 */
#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plots/chart.h"
#include "plots/drawing.h"
#include "plots/figures.h"
#include "plots/gnuplot.h"
#include "plots/render.h"
#include "tests/support/support.h"
#include "tests/unit/plots/sample.h"

static const char *const figures[] = { "misses", "tpot", "breakdown", "curve", "tpot-curve", "gap", "bandwidth", "grid" };
static const char *const terminals[] = { "svg", "png", "pngcairo", "pdfcairo" };
static const char *const hostile[] = { "lru'; system('touch pwned'); '", "`touch pwned`", "oled_{x}^2\\n\"@macro <b>&amp;",
                                       "\xff\xfe 100% %s", "| touch pwned", "< touch pwned", "ideal",
                                       "$(touch pwned)\nset output" };

static void make_chart(const struct sample *s, const char *name, moesim_chart *chart)
{
    moesim_result r;
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_figure *figure;
    const moesim_plot_request q = { .cache = NAN, .bandwidth = NAN, .batch = NAN, .width_mm = 80 };
    sample_result(s, &r);
    moesim_chart_init(chart);
    ck_assert_int_eq(moesim_figure_find(name, &figure, &err), MOESIM_OK);
    ck_assert_msg(moesim_figure_chart(figure, &r, "r.h5", &q, chart, &err) == MOESIM_OK, "%s: %s", name, err.text);
    moesim_result_fini(&r);
}

static struct sample hostile_sample(void)
{
    struct sample s = sample_usual;
    s.policy = hostile;
    s.num_policies = sizeof hostile / sizeof hostile[0];
    s.trace = hostile;
    s.num_traces = 2;
    s.model = "`touch pwned`'\"\\n\n{/Symbol a}_b";
    s.priced_as = s.profile = "'; system('touch pwned') #";
    return s;
}

static const char *template_of(const char *name)
{
    const moesim_figure *f;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_figure_find(name, &f, &err), MOESIM_OK);
    return f->template_name;
}

static char *script_of(const moesim_chart *chart, const char *figure, const char *terminal)
{
    char *text = NULL;
    size_t bytes;
    moesim_error err = MOESIM_ERROR_INIT;
    FILE *f = open_memstream(&text, &bytes);
    const moesim_drawing d = { template_of(figure), terminal, 80, "./it's `touch pwned`.dat", "./|touch pwned.svg" };
    ck_assert_msg(moesim_drawing_script(&d, chart, f, &err) == MOESIM_OK, "%s", err.text);
    fclose(f);
    return text;
}

/* Strings are taken out by gnuplot's own rule: '' inside a single-quoted string is a quote. Nothing of names may be left. */
static void check_inert(const char *script)
{
    bool inside = false;
    for (const char *c = script; *c != '\0'; c++) {
        if (*c == '\'')
            inside = !inside;
        ck_assert(!inside || *c != '\n');        /* a string ends in its line */
        ck_assert(inside || (*c != '`' && *c != '"' && *c != '|' && (unsigned char)*c < 0x80));
        ck_assert(inside || strncmp(c, "touch", 5) != 0);
        ck_assert(inside || strncmp(c, "system", 6) != 0);
        ck_assert(inside || *c != '@');          /* no word of a template is left over either */
    }
    ck_assert(!inside);
}

START_TEST(test_inert)
{
    const struct sample s = hostile_sample();
    moesim_chart *chart = malloc(sizeof *chart);
    make_chart(&s, figures[_i], chart);
    for (size_t k = 0; k < sizeof terminals / sizeof terminals[0]; k++) {
        char *script = script_of(chart, figures[_i], terminals[k]);
        check_inert(script);
        free(script);
    }
    moesim_chart_fini(chart);
    free(chart);
}
END_TEST

/* One block a series, each with a row, six numbers a row. */
START_TEST(test_data)
{
    const struct sample s = hostile_sample();
    moesim_chart *chart = malloc(sizeof *chart);
    make_chart(&s, figures[_i], chart);
    char *text = NULL, *rest, *line;
    size_t bytes, blocks = 1, blank = 0, rows = 0;
    FILE *f = open_memstream(&text, &bytes);
    moesim_drawing_data(chart, f);
    fclose(f);
    for (rest = text; (line = strsep(&rest, "\n")) != NULL && rest != NULL;) {
        blank = line[0] == '\0' ? blank + 1 : 0;
        if (blank == 2) {
            ck_assert_uint_gt(rows, 0);
            rows = 0;
            blocks++;
        }
        if (line[0] == '\0' || line[0] == '#')
            continue;
        rows++;
        size_t numbers = 0;
        for (char *word = strtok_r(line, " ", &line); word != NULL; word = strtok_r(NULL, " ", &line), numbers++)
            ck_assert(strcmp(word, "NaN") == 0 || strspn(word, "0123456789.e+-") == strlen(word));
        ck_assert_uint_eq(numbers, 6);
    }
    ck_assert_uint_eq(blocks, chart->num_series);
    free(text);
    moesim_chart_fini(chart);
    free(chart);
}
END_TEST

/* ---- pictures ------------------------------------------------------------------------------------------------------ */

static bool no_gnuplot(void)
{
    static moesim_gnuplot g;
    moesim_error err = MOESIM_ERROR_INIT;
    if (moesim_gnuplot_find(&g, &err) == MOESIM_OK)
        return false;
    printf("left out: %s\n", err.text);
    return true;
}

static void render(const moesim_chart *chart, const char *figure, const char *path, bool keep)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_code code = moesim_plot_render(chart, template_of(figure), 80, path, keep, &err);
    ck_assert_msg(code == MOESIM_OK, "%s: %s", figure, err.text);
}

static char *content(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    char *data = calloc(1, 1 << 22);
    *bytes = fread(data, 1, (1 << 22) - 1, f);
    fclose(f);
    return data;
}

static size_t files_in(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* Hostile names in, one picture out, and nothing else in the folder. */
START_TEST(test_hostile_picture)
{
    const struct sample s = hostile_sample();
    moesim_chart *chart = malloc(sizeof *chart);
    if (!no_gnuplot()) {
        ck_assert_int_eq(chdir(test_folder()), 0);
        const size_t before = files_in(".");
        make_chart(&s, figures[_i], chart);
        render(chart, figures[_i], "< touch pwned #.svg", false);
        size_t bytes;
        char *svg = content("< touch pwned #.svg", &bytes);
        ck_assert_ptr_nonnull(strstr(svg, "</svg>"));
        if (strcmp(figures[_i], "gap") != 0 && strcmp(figures[_i], "grid") != 0)
            ck_assert_ptr_nonnull(strstr(svg, "ideal"));
        ck_assert_ptr_nonnull(strstr(svg, "`touch pwned`"));         /* as text */
        free(svg);
        ck_assert_uint_eq(files_in("."), before + 1);
        ck_assert_int_eq(unlink("< touch pwned #.svg"), 0);
        moesim_chart_fini(chart);
    }
    free(chart);
}
END_TEST

START_TEST(test_same_bytes)
{
    moesim_chart *chart = malloc(sizeof *chart);
    if (!no_gnuplot()) {
        static const char *const endings[] = { "svg", "pdf", "png" };
        static const char *const heads[] = { "<?xml", "%PDF-", "\x89PNG" };
        make_chart(&sample_usual, figures[_i], chart);
        for (size_t k = 0; k < (_i == 0 ? 3 : 1); k++) {     /* other formats once: they take longer */
            char path[2][4096];
            size_t bytes[2];
            char *data[2];
            for (int j = 0; j < 2; j++) {
                snprintf(path[j], sizeof path[j], "%s/%d.%s", test_folder(), j, endings[k]);
                render(chart, figures[_i], path[j], false);
                data[j] = content(path[j], &bytes[j]);
            }
            ck_assert_uint_eq(bytes[0], bytes[1]);
            ck_assert_mem_eq(data[0], data[1], bytes[0]);
            ck_assert_mem_eq(data[0], heads[k], strlen(heads[k]));
            if (k == 0)
                ck_assert_ptr_null(strstr(data[0], "GNUPLOT"));
            free(data[0]);
            free(data[1]);
        }
        moesim_chart_fini(chart);
    }
    free(chart);
}
END_TEST

START_TEST(test_without_gnuplot)
{
    static moesim_gnuplot g;
    moesim_error err = MOESIM_ERROR_INIT;
    char *path = strdup(getenv("PATH") != NULL ? getenv("PATH") : "");
    setenv("PATH", "/nonexistent::.", 1);
    ck_assert_int_eq(moesim_gnuplot_find(&g, &err), MOESIM_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "gnuplot-nox"));
    setenv("PATH", path, 1);
    free(path);
}
END_TEST

START_TEST(test_terminals)
{
    static const moesim_gnuplot g = { "/usr/bin/gnuplot", " dumb png svg " };
    const char *terminal;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_gnuplot_terminal(&g, "a.PNG", &terminal, &err), MOESIM_OK);
    ck_assert_str_eq(terminal, "png");
    ck_assert_int_eq(moesim_gnuplot_terminal(&g, "a.svg", &terminal, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_gnuplot_terminal(&g, "a.pdf", &terminal, &err), MOESIM_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "it can write .svg, .png"));
    ck_assert_int_eq(moesim_gnuplot_terminal(&g, "a.svg/b", &terminal, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_gnuplot_terminal(&g, "svg", &terminal, &err), MOESIM_E_USAGE);
}
END_TEST

int main(void)
{
    const int n = (int)(sizeof figures / sizeof figures[0]);
    Suite *suite = suite_create("drawing");
    TCase *c = tcase_create("scripts"), *pictures = tcase_create("pictures");
    tcase_add_loop_test(c, test_inert, 0, n);
    tcase_add_loop_test(c, test_data, 0, n);
    tcase_add_test(c, test_without_gnuplot);
    tcase_add_test(c, test_terminals);
    tcase_add_loop_test(pictures, test_hostile_picture, 2, n);
    tcase_add_loop_test(pictures, test_same_bytes, 0, n);
    tcase_set_timeout(pictures, 60);
    suite_add_tcase(suite, c);
    suite_add_tcase(suite, pictures);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
