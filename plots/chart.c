/* SPDX-License-Identifier: Apache-2.0
 *
 * Charts: growing lists of points, series and ticks.
 */
#include "plots/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TICKS 4096u

void moesim_chart_init(moesim_chart *c)
{
    memset(c, 0, sizeof *c);
    c->x.lo = c->x.hi = c->y.lo = c->y.hi = NAN;
    c->height = 0.55;
}

static void axis_fini(moesim_axis *a)
{
    for (size_t i = 0; i < a->num_ticks; i++)
        free(a->tick[i].text);
    free(a->tick);
}

void moesim_chart_fini(moesim_chart *c)
{
    for (size_t i = 0; i < c->num_series; i++) {
        free(c->series[i].name);
        free(c->series[i].point);
    }
    axis_fini(&c->x);
    axis_fini(&c->y);
    moesim_chart_init(c);
}

moesim_code moesim_chart_add(moesim_chart *c, const char *role, const char *name, uint32_t look, moesim_series **out,
                             moesim_error *err)
{
    if (c->num_series == MOESIM_CHART_SERIES)
        return moesim_fail(err, MOESIM_E_LIMIT, "a figure shows at most %u series; choose some with --policy",
                           MOESIM_CHART_SERIES);
    moesim_series *s = &c->series[c->num_series];
    memset(s, 0, sizeof *s);
    (void)snprintf(s->role, sizeof s->role, "%s", role);
    s->look = look;
    s->name = strdup(name);
    if (s->name == NULL)
        return moesim_fail_nomem(err, "a series", strlen(name) + 1);
    c->num_series++;
    *out = s;
    return MOESIM_OK;
}

moesim_code moesim_series_add(moesim_series *s, moesim_point point, moesim_error *err)
{
    if (s->n == MOESIM_CHART_POINTS)
        return moesim_fail(err, MOESIM_E_LIMIT, "a series of a figure has at most %u points", MOESIM_CHART_POINTS);
    if (s->n == s->room) {
        const size_t room = s->room > 0 ? 2 * s->room : 16;
        moesim_point *p = realloc(s->point, room * sizeof *p);
        if (p == NULL)
            return moesim_fail_nomem(err, "points of a figure", room * sizeof *p);
        s->point = p;
        s->room = room;
    }
    s->point[s->n++] = point;
    return MOESIM_OK;
}

moesim_code moesim_axis_tick(moesim_axis *a, double at, const char *text, moesim_error *err)
{
    if (a->num_ticks == MAX_TICKS)
        return moesim_fail(err, MOESIM_E_LIMIT, "an axis of a figure has at most %u ticks", MAX_TICKS);
    moesim_tick *t = realloc(a->tick, (a->num_ticks + 1) * sizeof *t);
    if (t == NULL)
        return moesim_fail_nomem(err, "ticks of an axis", (a->num_ticks + 1) * sizeof *t);
    a->tick = t;
    t[a->num_ticks] = (moesim_tick){ strdup(text), at };
    if (t[a->num_ticks].text == NULL)
        return moesim_fail_nomem(err, "a tick of an axis", strlen(text) + 1);
    a->num_ticks++;
    return MOESIM_OK;
}
