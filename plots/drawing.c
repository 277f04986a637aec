/* SPDX-License-Identifier: Apache-2.0
 *
 * From charts to scripts.
 */
#include "plots/drawing.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plots/layout.h"
#include "plots/look.h"
#include "plots/text.h"

#define MARK 0.5                 /* size of marks, in gnuplot's */

/* ---- settings ------------------------------------------------------------------------------------------------------ */

/* How gnuplot's terminals take sizes. dots: to a point; font: to the size of letters, which cairo takes for that at 96 dots to
 * the inch; pdf is measured in inches. */
static const struct { const char *name; double dots, font, unit; const char *format; } terminals[] = {
    { "svg", 96.0 / 72, 96.0 / 72, 96.0 / 72,
      "svg noenhanced size %.0f,%.0f font 'sans-serif,%g' fontscale %.4f linewidth %.4f background '#ffffff'" },
    { "pngcairo", 300.0 / 72, 300.0 / 96, 300.0 / 72,
      "pngcairo noenhanced size %.0f,%.0f font 'Sans,%g' fontscale %.4f linewidth %.4f" },
    { "png", 300.0 / 72, 300.0 / 96, 300.0 / 72,
      "png noenhanced truecolor size %.0f,%.0f font 'DejaVuSans,%g' fontscale %.4f linewidth %.4f" },
    { "pdfcairo", 1, 0.75, 1.0 / 72, "pdfcairo noenhanced size %.4fin,%.4fin font 'Sans,%g' fontscale %.4f linewidth %.4f" },
};

static moesim_code write_terminal(const moesim_drawing *d, const moesim_layout *l, FILE *out, moesim_error *err)
{
    size_t i = 0;
    while (i < sizeof terminals / sizeof terminals[0] && strcmp(terminals[i].name, d->terminal) != 0)
        i++;
    if (i == sizeof terminals / sizeof terminals[0])
        return moesim_fail(err, MOESIM_E_INTERNAL, "no settings for gnuplot's terminal %s", d->terminal);
    const double unit = terminals[i].unit;
    fputs("set terminal ", out);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fprintf(out, terminals[i].format, l->width * unit, l->height * unit, l->ticks, terminals[i].font, terminals[i].dots);
#pragma GCC diagnostic pop
    fprintf(out, "\nps = %.4f\n", MARK * terminals[i].dots);
    return MOESIM_OK;
}

static void write_names(const moesim_drawing *d, FILE *out)
{
    fputs("# A figure of moesim. By hand: gnuplot THIS-FILE, in its folder; the data file is beside it.\n"
          "set encoding utf8\ndata = ", out);
    moesim_text_quote(out, d->data_name, MOESIM_QUOTE_TEXT);
    fputs("\nif (ARGC > 0) { data = ARG1 } else { set output ", out);
    moesim_text_quote(out, d->output_name, MOESIM_QUOTE_TEXT);
    fputs(" }\n", out);
}

/* One label a line of text, downwards from y. */
static void write_lines(const moesim_layout *l, const char *text, double y, double size, const char *colour, FILE *out)
{
    char *copy = strdup(text), *rest = copy;
    while (rest != NULL && text[0] != '\0') {
        const char *line = strsep(&rest, "\n");
        y += MOESIM_LINE * size;
        fputs("set label ", out);
        moesim_text_quote(out, line, MOESIM_QUOTE_TEXT);
        fprintf(out, " at screen %.5f,%.5f left front font ',%g' textcolor rgb '%s'\n", l->margin / l->width,
                1 - (y - 0.45 * size) / l->height, size, colour);
    }
    free(copy);
}

static void write_range(const char *axis, double lo, double hi, FILE *out)
{
    fprintf(out, "set %srange [", axis);
    fprintf(out, isnan(lo) ? "*" : "%.17g", lo);
    fputs(":", out);
    fprintf(out, isnan(hi) ? "*" : "%.17g", hi);
    fputs("]\n", out);
}

static void write_axis(const char *axis, const moesim_axis *a, const moesim_layout *l, FILE *out)
{
    char *text = malloc(MOESIM_CHART_TEXT * 8);
    fprintf(out, "set %slabel ", axis);
    moesim_text_quote(out, a->label, MOESIM_QUOTE_TEXT);
    fprintf(out, " font flabel textcolor rgb '#222222'\n");
    if (a->log2)
        fprintf(out, "set logscale %s 2\n", axis);
    write_range(axis, a->lo, a->hi, out);
    for (size_t i = 0; text != NULL && i < a->num_ticks; i++) {
        fprintf(out, i == 0 ? "set %stics (" : ", ", axis);
        moesim_text_shorten(a->tick[i].text, l->tick_chars, text, MOESIM_CHART_TEXT * 8);
        moesim_text_quote(out, text, MOESIM_QUOTE_FORMAT);
        fprintf(out, " %.17g%s", a->tick[i].at, i + 1 == a->num_ticks ? ")\n" : "");
    }
    if (l->rotate && axis[0] == 'x')
        fputs("set xtics rotate by 35 right\n", out);
    free(text);
}

static size_t most_points(const moesim_chart *chart)
{
    size_t most = 0;
    for (size_t i = 0; i < chart->num_series; i++)
        most = chart->series[i].n > most ? chart->series[i].n : most;
    return most;
}

static void write_settings(const moesim_chart *chart, const moesim_layout *l, FILE *out)
{
    const size_t points = most_points(chart);
    fprintf(out, "fticks = ',%g'\nflabel = ',%g'\nfew = %d\nevery = %zu\nlying = %d\n", l->ticks, l->label, points < 6,
            1 + points / 14, !isnan(chart->y.hi) && chart->y.lo > chart->y.hi);
    /* marks on tiles shrink with the tiles, which fill most of the width */
    fprintf(out, "tile = %.4f\n", isnan(chart->x.hi) ? 1.0
            : fmax(0.5, fmin(1.0, 0.62 * l->width / (fabs(chart->x.hi - chart->x.lo) * 8))));
    double y = l->margin;
    write_lines(l, l->head, y, l->title, "#000000", out);
    y += MOESIM_LINE * l->title * (double)moesim_text_lines(l->head);
    write_lines(l, l->subtitle, y, l->ticks, "#333333", out);
    y = l->height - l->margin - MOESIM_LINE * l->small * (double)moesim_text_lines(l->footer);
    write_lines(l, l->footer, y, l->small, "#555555", out);
    fprintf(out, "set tmargin at screen %.5f\nset bmargin at screen %.5f\n", 1 - l->top / l->height, 1 - l->bottom / l->height);
    if (l->left > 0)
        fprintf(out, "set lmargin at screen %.5f\n", l->left / l->width);
    if (l->right > 0) {
        fprintf(out, "set rmargin at screen %.5f\ncbx = %.5f\ncby = %.5f\ncbw = %.5f\ncbh = %.5f\nlogcolour = %d\nclabel = ",
                l->right / l->width, (l->right + 6) / l->width, 1 - l->bottom / l->height, 8 / l->width,
                (l->bottom - l->top) / l->height, chart->log_colour);
        moesim_text_quote(out, chart->colour_label, MOESIM_QUOTE_TEXT);
        fputc('\n', out);
    }
    write_axis("x", &chart->x, l, out);
    write_axis("y", &chart->y, l, out);
}

/* ---- clauses ------------------------------------------------------------------------------------------------------- */

/* Places of a legend's sample, as shares of the page: @X1 @X @X2 across, @Y1 @Y @Y2 upwards. */
static void write_place(const char *word, size_t n, const moesim_entry *e, const moesim_layout *l, FILE *out)
{
    const double half = 0.32 * l->legend;
    const struct { const char *word; double at; } places[] = {
        { "X1", e->x / l->width },
        { "X", (e->x + MOESIM_SAMPLE / 2) / l->width },
        { "X2", (e->x + MOESIM_SAMPLE) / l->width },
        { "Y1", 1 - (e->y + half) / l->height },
        { "Y", 1 - e->y / l->height },
        { "Y2", 1 - (e->y - half) / l->height },
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strlen(places[i].word) == n && strncmp(places[i].word, word, n) == 0)
            fprintf(out, "%.5f", places[i].at);
}

static void write_word(const char *word, size_t n, const moesim_chart *chart, size_t index, const moesim_layout *l, FILE *out)
{
    const moesim_series *s = &chart->series[index];
    const struct { const char *word, *text; } words[] = {
        { "COLOUR", moesim_look_colour(s->look) },
        { "PART", moesim_look_part(s->look) },
        { "MARK", moesim_look_mark(s->look) },
        { "OPEN", moesim_look_open(s->look) },
        { "DASHED", moesim_look_dashed(s->look) },
        { "DASH", moesim_look_dash(s->look) },
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == n && strncmp(words[i].word, word, n) == 0)
            fputs(words[i].text, out);
    if (n == 5 && strncmp(word, "INDEX", n) == 0)
        fprintf(out, "%zu", index);
    write_place(word, n, &l->entry[index], l, out);
}

static void write_clause(const char *clause, size_t n, const moesim_chart *chart, size_t index, const moesim_layout *l,
                         FILE *out)
{
    for (const char *at = clause; at < clause + n;) {
        if (*at != '@') {
            fputc(*at++, out);
            continue;
        }
        const size_t word = strspn(++at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ12");
        write_word(at, word, chart, index, l, out);
        at += word;
    }
}

/* What stands between clauses, and which series have one. */
struct clauses { const char *key, *before, *between; bool named; };

/* The clauses of one kind in the template's order, each for all series of its role. */
static void write_clauses(const struct clauses *kind, const moesim_chart *chart, const char *text, const moesim_layout *l,
                          FILE *out)
{
    const char *between = kind->before;
    for (const char *line = text; *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        const char *role = line + 3, *clause = role;
        size_t role_chars = 0;
        if (n > 3 && strncmp(line, kind->key, 3) == 0) {
            role_chars = strcspn(role, " ");
            clause = role + role_chars + strspn(role + role_chars, " ");
        }
        for (size_t i = 0; role_chars > 0 && i < chart->num_series; i++) {
            const moesim_series *s = &chart->series[i];
            if (strlen(s->role) != role_chars || strncmp(s->role, role, role_chars) != 0 || (kind->named && s->name[0] == '\0'))
                continue;
            fputs(between, out);
            write_clause(clause, (size_t)(line + n - clause), chart, i, l, out);
            between = kind->between;
        }
        line += n + (line[n] == '\n' ? 1u : 0u);
    }
    fputc('\n', out);
}

static void write_legend(const moesim_chart *chart, const char *text, const moesim_layout *l, FILE *out)
{
    static const struct clauses samples = { "#= ", "", "\n", true };
    char name[4 * MOESIM_CHART_TEXT];
    write_clauses(&samples, chart, text, l, out);
    for (size_t i = 0; i < chart->num_series; i++) {
        if (chart->series[i].name[0] == '\0')
            continue;
        moesim_text_shorten(chart->series[i].name, l->legend_chars, name, sizeof name);
        fputs("set label ", out);
        moesim_text_quote(out, name, MOESIM_QUOTE_TEXT);
        fprintf(out, " at screen %.5f,%.5f left font ',%g' textcolor rgb '#222222'\n",
                (l->entry[i].x + MOESIM_SAMPLE + 3) / l->width, 1 - l->entry[i].y / l->height, l->legend);
    }
}

static void write_template(const char *text, FILE *out)
{
    for (const char *line = text; *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        if (strncmp(line, "#:", 2) != 0 && strncmp(line, "#=", 2) != 0)
            fprintf(out, "%.*s\n", (int)n, line);
        line += n + (line[n] == '\n' ? 1u : 0u);
    }
}

static moesim_code find_template(const char *name, char **out, moesim_error *err)
{
    size_t i = 0;
    while (moesim_plot_templates[i].name != NULL && strcmp(moesim_plot_templates[i].name, name) != 0)
        i++;
    if (moesim_plot_templates[i].name == NULL)
        return moesim_fail(err, MOESIM_E_INTERNAL, "there is no template %s", name);
    *out = strndup((const char *)moesim_plot_templates[i].text, moesim_plot_templates[i].bytes);
    return *out != NULL ? MOESIM_OK : moesim_fail_nomem(err, "a template", moesim_plot_templates[i].bytes);
}

moesim_code moesim_drawing_script(const moesim_drawing *d, const moesim_chart *chart, FILE *out, moesim_error *err)
{
    static const struct clauses plots = { "#: ", "plot ", ", \\\n     ", false };
    moesim_layout l = { .width = 0 };
    char *common = NULL, *own = NULL;
    moesim_code code = find_template("common", &common, err);
    if (code == MOESIM_OK)
        code = find_template(d->template_name, &own, err);
    if (code == MOESIM_OK)
        code = moesim_layout_make(chart, d->width_mm, &l, err);
    if (code == MOESIM_OK) {
        write_names(d, out);
        code = write_terminal(d, &l, out, err);
    }
    if (code == MOESIM_OK) {
        write_settings(chart, &l, out);
        write_template(common, out);
        write_template(own, out);
        write_legend(chart, own, &l, out);
        write_clauses(&plots, chart, own, &l, out);
    }
    moesim_layout_fini(&l);
    free(common);
    free(own);
    return code;
}

void moesim_drawing_data(const moesim_chart *chart, FILE *out)
{
    fputs("# x y lo hi from to\n", out);
    for (size_t i = 0; i < chart->num_series; i++) {
        const moesim_series *s = &chart->series[i];
        fprintf(out, "%s# %zu %s: ", i > 0 ? "\n\n" : "", i, s->role);
        moesim_text_plain(out, s->name);
        fputc('\n', out);
        for (size_t k = 0; k < s->n; k++) {
            const moesim_point *p = &s->point[k];
            const double v[6] = { p->x, p->y, p->lo, p->hi, p->from, p->to };
            for (size_t j = 0; j < 6; j++)
                fprintf(out, isfinite(v[j]) ? "%s%.17g" : "%sNaN", j > 0 ? " " : "", v[j]);
            fputc('\n', out);
        }
        if (s->n == 0)           /* gnuplot counts only blocks with rows */
            fputs("NaN NaN NaN NaN NaN NaN\n", out);
    }
}
