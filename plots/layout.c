/* SPDX-License-Identifier: Apache-2.0
 *
 * The page from the top: title, subtitle, plot area, axis, legend, small print.
 */
#include "plots/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/text.h"

#define POINTS_PER_MM (72.0 / 25.4)
#define NARROW_MM 110.0
#define MARGIN 5.0
#define GAP 8.0                  /* between entries of the legend */
#define LEAST_HEIGHT 60.0        /* of the plot area */

static size_t chars_in(double width, double size)
{
    return width > 0.6 * size ? (size_t)(width / (0.6 * size)) : 1;
}

static double lines_height(const char *text, double size)
{
    return MOESIM_LINE * size * (double)moesim_text_lines(text);
}

/* The legend as running text, an entry never broken; returns its height. */
static double lay_legend(moesim_layout *l, const moesim_chart *chart, double top)
{
    const double step = 1.35 * l->legend;
    double x = l->margin, y = top + step / 2;
    bool any = false;
    l->legend_chars = chars_in(l->width - 2 * l->margin - MOESIM_SAMPLE - 4, l->legend);
    for (size_t i = 0; i < chart->num_series; i++) {
        const char *name = chart->series[i].name;
        char shown[4 * MOESIM_CHART_TEXT];
        if (name[0] == '\0')
            continue;
        moesim_text_shorten(name, l->legend_chars, shown, sizeof shown);
        const double width = MOESIM_SAMPLE + 3 + l->legend * moesim_text_width(shown);
        if (x > l->margin && x + width > l->width - l->margin) {
            x = l->margin;
            y += step;
        }
        l->entry[i] = (moesim_entry){ x, y };
        x += width + GAP;
        any = true;
    }
    return any ? y + step / 2 - top + 3 : 0;
}

/* Ticks of y that are names: gnuplot does not know their width well enough. */
static void lay_names(moesim_layout *l, const moesim_chart *chart)
{
    char shown[4 * MOESIM_CHART_TEXT];
    for (size_t i = 0; i < chart->y.num_ticks && chart->y.label[0] == '\0'; i++) {
        moesim_text_shorten(chart->y.tick[i].text, l->tick_chars, shown, sizeof shown);
        l->left = fmax(l->left, l->margin + l->ticks * (moesim_text_width(shown) + 0.9));
    }
}

/* Height of the ticks and the label below the plot area. Long ticks of x are turned, those of y shortened. */
static double lay_axis(moesim_layout *l, const moesim_chart *chart)
{
    double all = 0, longest = 0;
    char shown[4 * MOESIM_CHART_TEXT];
    l->tick_chars = chars_in(0.34 * l->width, l->ticks);
    for (size_t i = 0; i < chart->x.num_ticks; i++) {
        moesim_text_shorten(chart->x.tick[i].text, l->tick_chars, shown, sizeof shown);
        const double width = l->ticks * moesim_text_width(shown);
        all += width + l->ticks;
        longest = fmax(longest, width);
    }
    const double slot = 0.8 * l->width / (double)(chart->x.num_ticks > 0 ? chart->x.num_ticks : 1);
    l->rotate = all > 0.85 * l->width || longest > slot;
    const double ticks = l->rotate ? 1.2 * l->ticks + 0.58 * longest : 1.9 * l->ticks;
    return ticks + (chart->x.label[0] != '\0' ? 1.4 * l->label : 0) + 4;
}

static moesim_code wrap(const char *text, double width, double size, char **out, moesim_error *err)
{
    *out = moesim_text_wrap(text, width / size);
    return *out != NULL ? MOESIM_OK : moesim_fail_nomem(err, "texts of a figure", strlen(text));
}

moesim_code moesim_layout_make(const moesim_chart *chart, double width_mm, moesim_layout *out, moesim_error *err)
{
    const bool narrow = width_mm < NARROW_MM;
    const double unit = narrow ? 7.5 : 9;
    memset(out, 0, sizeof *out);
    *out = (moesim_layout){ .width = width_mm * POINTS_PER_MM, .title = unit + 1.5, .label = unit, .ticks = unit - 0.5,
                            .legend = unit - 0.5, .small = narrow ? 5.0 : 6.0, .margin = MARGIN };
    const double width = out->width - 2 * MARGIN;
    moesim_code code = wrap(chart->title, width, out->title, &out->head, err);
    if (code == MOESIM_OK)
        code = wrap(chart->subtitle, width, out->ticks, &out->subtitle, err);
    if (code == MOESIM_OK)
        code = wrap(chart->footer, width, out->small, &out->footer, err);
    if (code != MOESIM_OK)
        return code;
    out->top = MARGIN + lines_height(out->head, out->title) + lines_height(out->subtitle, out->ticks) + 8;
    out->bottom = out->top + fmax(chart->height * out->width, LEAST_HEIGHT);
    const double legend = out->bottom + lay_axis(out, chart);
    lay_names(out, chart);
    const double small = legend + lay_legend(out, chart, legend);
    out->height = small + lines_height(out->footer, out->small) + MARGIN;
    out->right = chart->colour_label[0] != '\0' ? out->width - 15 - 5.5 * out->ticks : 0;
    return MOESIM_OK;
}

void moesim_layout_fini(moesim_layout *l)
{
    free(l->head);
    free(l->subtitle);
    free(l->footer);
    memset(l, 0, sizeof *l);
}
