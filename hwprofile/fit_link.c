/* SPDX-License-Identifier: Apache-2.0
 *
 * The link: a + bytes/b of pinned copies on one stream, and of small copies both ways.
 */
#include <math.h>
#include <stdio.h>

#include "hwprofile/fit_parts.h"

#define LEAST_BYTES 65536u       /* below, starting a copy is all there is to see */
#define LEAST_SIZES 3u

static size_t sizes(const moesim_gathered *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        size_t k = 0;
        while (k < i && g->x[k] != g->x[i])
            k++;
        n += k == i;
    }
    return n;
}

/* A line that starts below 0 is one through it: the median of bytes/second. */
static void through_zero(const moesim_gathered *g, moesim_line *line)
{
    double rate[MOESIM_LINE_POINTS];
    for (size_t i = 0; i < g->n; i++)
        rate[i] = g->y[i] / g->x[i];
    line->a = 0.0;
    line->b = moesim_raw_sort_median(rate, g->n);
    moesim_fit_judge(g->x, g->y, g->n, line);
}

static moesim_code line_of(const moesim_fitting *f, const moesim_gathered *g, const char *what, moesim_line *line,
                           moesim_error *err)
{
    if (sizes(g) < LEAST_SIZES)
        return moesim_fit_lacks(f, err, "%s: %zu sizes of copies were measured, %u are needed", what, sizes(g), LEAST_SIZES);
    const moesim_code code = moesim_fit_line(g->x, g->y, g->n, line, err);
    if (code == MOESIM_OK && line->a < 0.0)
        through_zero(g, line);
    return code;
}

/* What one more copy adds to an event that only copies; NaN where it cannot be told. */
static double copy_in_events(const moesim_fitting *f)
{
    moesim_gathered g = { .n = 0 };
    moesim_line line;
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind == MOESIM_RAW_EVENT_MOVED)
            moesim_gather(&g, p, p->key.experts, p->median);
    }
    return moesim_fit_slope(&g, &line) ? line.b : NAN;
}

static moesim_code fit_copies(moesim_fitting *f, moesim_error *err)
{
    moesim_gathered g = { .n = 0 };
    moesim_line line;
    char worst[96] = "", text[MOESIM_RAW_TEXT];
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind == MOESIM_RAW_COPY && p->key.pinned == 1 && p->key.streams == 1 && p->key.bytes >= LEAST_BYTES)
            moesim_gather(&g, p, (double)p->key.bytes, p->median);
    }
    const moesim_code code = line_of(f, &g, "link", &line, err);
    if (code != MOESIM_OK)
        return code;
    if (!(line.b > 0.0))
        return moesim_fit_lacks(f, err, "link: larger copies take no longer (%s)", moesim_raw_text(&g.point[0]->key, text));
    if (line.residual > MOESIM_FIT_RESIDUAL)
        (void)snprintf(worst, sizeof worst, "; worst %+.0f %% at %llu bytes", -100.0 * line.worst,
                       (unsigned long long)g.point[line.worst_at]->key.bytes);
    const double bytes = (double)f->raw->expert_bytes, alone = line.a + bytes * line.b, within = copy_in_events(f);
    const double spread = moesim_gathered_spread(&g);
    const bool of_events = f->options->copies_of_events, told = within > 0.0;
    char events[48] = "events tell nothing";
    if (of_events && !told)
        return moesim_fit_lacks(f, err, "link.alpha: events with copies get no longer with each of them, so --copies events "
                                "has nothing to go by; use --copies alone");
    const double alpha = of_events ? fmax(within - bytes * line.b, 0.0) : line.a;
    if (told)
        (void)snprintf(events, sizeof events, "%.4g us in events", 1e6 * within);
    moesim_fit_set(&f->profile->link_alpha, alpha, g.samples, spread, line.residual, "%s; an expert takes %.4g us alone, %s%s",
                   of_events ? "from events with copies" : "pinned, 64 KiB and more", 1e6 * alone, events, worst);
    moesim_fit_set(&f->profile->link_bandwidth, 1.0 / line.b, g.samples, spread, line.residual,
                   "pinned, one stream, %zu sizes from 64 KiB%s", sizes(&g), worst);
    f->copy = alpha + bytes * line.b;
    return MOESIM_OK;
}

/* Both ways at one size and sweep are one point: their mean. */
static moesim_code fit_returns(moesim_fitting *f, moesim_error *err)
{
    moesim_gathered g = { .n = 0 };
    moesim_line line;
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        moesim_raw_key back = p->key;
        back.kind = MOESIM_RAW_TO_DEVICE;
        const moesim_raw_point *other = p->key.kind == MOESIM_RAW_TO_HOST ? moesim_raw_find(f->raw, &back, p->sweep) : NULL;
        if (other != NULL)
            moesim_gather(&g, p, (double)p->key.bytes, (p->median + other->median) / 2.0);
    }
    const moesim_code code = line_of(f, &g, "return", &line, err);
    if (code != MOESIM_OK)
        return code;
    const double link = f->profile->link_bandwidth.value;
    const bool flat = line.b * link < 0.1;       /* ten times the link: nothing but starting shows */
    moesim_fit_set(&f->profile->return_alpha, line.a, g.samples, moesim_gathered_spread(&g), line.residual,
                   "small copies, mean of both ways");
    moesim_fit_set(&f->profile->return_bandwidth, flat ? link : 1.0 / line.b, g.samples, moesim_gathered_spread(&g),
                   line.residual, flat ? "too small to be seen beside alpha: that of the link"
                                       : "small copies, mean of both ways");
    return MOESIM_OK;
}

moesim_code moesim_fit_link(moesim_fitting *f, moesim_error *err)
{
    const moesim_code code = fit_copies(f, err);
    return code == MOESIM_OK ? fit_returns(f, err) : code;
}
