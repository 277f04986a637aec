/* SPDX-License-Identifier: Apache-2.0
 *
 * What link and CPU may read from host memory together, from loads of both. The model: where their demands add up to more
 * than B, both get through B/demand of what they would alone.
 */
#include <math.h>
#include <stdio.h>

#include "hwprofile/fit_parts.h"

#define MOST_LOADS 128u
#define SLOWED 0.03              /* less than this is not told from noise */

/* One load: demand in B/s, and the share of its own rate that each reached. */
typedef struct load { double demand, link, cpu, sum; } load;

/* Seconds of one expert on the CPU, of a point of kind CPU or JOINT_CPU. */
static double each(const moesim_fitting *f, const moesim_raw_point *p, double median)
{
    return fmax(median - f->profile->cpu_step.value, 0.1 * median) / p->key.experts;
}

static double alone_on_cpu(const moesim_fitting *f, const moesim_raw_key *joint)
{
    const moesim_raw_point *best = NULL;
    double median;
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind == MOESIM_RAW_CPU && p->sweep == 0 && p->key.threads == joint->threads &&
            p->key.tokens == joint->tokens && (best == NULL || p->key.experts > best->key.experts))
            best = p;
    }
    return best != NULL && moesim_raw_median(f->raw, &best->key, &median) ? each(f, best, median) : NAN;
}

/* One copy of the load on its own; where it was not measured, as the link says. */
static double alone_on_link(const moesim_fitting *f, uint64_t bytes)
{
    const moesim_raw_key key = { .kind = MOESIM_RAW_JOINT_LINK, .bytes = bytes };
    double median;
    return moesim_raw_median(f->raw, &key, &median)
               ? median
               : f->profile->link_alpha.value + (double)bytes / f->profile->link_bandwidth.value;
}

static bool read_load(const moesim_fitting *f, const moesim_raw_point *p, load *out)
{
    moesim_raw_key link = p->key;
    link.kind = MOESIM_RAW_JOINT_LINK;
    const moesim_raw_point *copies = moesim_raw_find(f->raw, &link, p->sweep);
    const double cpu_alone = alone_on_cpu(f, &p->key), link_alone = alone_on_link(f, p->key.bytes);
    const double bytes = (double)f->raw->expert_bytes, link_rate = (double)p->key.bytes / link_alone;
    if (copies == NULL || isnan(cpu_alone))
        return false;
    out->demand = link_rate + bytes / cpu_alone;
    out->link = link_alone / copies->median;
    out->cpu = cpu_alone / each(f, p, p->median);
    out->sum = link_rate * out->link + bytes / cpu_alone * out->cpu;
    return true;
}

static double share(double b, double demand)
{
    return fmin(1.0, b / demand);
}

static double squares(const load *l, size_t n, double b)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double s = share(b, l[i].demand);
        sum += (l[i].link - s) * (l[i].link - s) + (l[i].cpu - s) * (l[i].cpu - s);
    }
    return sum;
}

/* Between two demands the loads above are slowed and the sum of squares is a parabola in B: its least, or an end. */
static double least_squares(const load *l, size_t n)
{
    double best = INFINITY, b = 0.0;
    for (size_t k = 0; k < n; k++) {         /* slowed: those that ask for at least as much as load k */
        double top = 0.0, bottom = 0.0, below = 0.0;
        for (size_t i = 0; i < n; i++) {
            if (l[i].demand >= l[k].demand) {
                top += (l[i].link + l[i].cpu) / l[i].demand;
                bottom += 2.0 / (l[i].demand * l[i].demand);
            } else {
                below = fmax(below, l[i].demand);
            }
        }
        const double at = fmin(fmax(top / bottom, below), l[k].demand), sum = squares(l, n, at);
        if (sum < best) {
            best = sum;
            b = at;
        }
    }
    return b;
}

/* The loader refuses less: neither may want more alone than both get together. */
static double most_alone(const moesim_fitting *f)
{
    double most = f->profile->link_bandwidth.value;
    const moesim_cpu_table *t = &f->profile->cpu;
    for (uint32_t i = 0; i < t->points; i++)
        most = fmax(most, t->expert_bytes / t->seconds[i]);
    return most;
}

static double read_rate(const moesim_fitting *f)
{
    double best = 0.0;
    for (size_t i = 0; i < f->raw->num_points; i++)
        if (f->raw->point[i].key.kind == MOESIM_RAW_READ)
            best = fmax(best, (double)f->raw->point[i].key.bytes / f->raw->point[i].median);
    return best;
}

static void set_dram(moesim_fitting *f, const load *l, const moesim_gathered *g)
{
    double most_sum = 0.0, slowest = 1.0;
    for (size_t i = 0; i < g->n; i++) {
        most_sum = fmax(most_sum, l[i].sum);
        slowest = fmin(slowest, (l[i].link + l[i].cpu) / 2.0);
    }
    const bool slowed = slowest < 1.0 - SLOWED;
    const double b = slowed ? least_squares(l, g->n) : most_sum, least = most_alone(f);
    const double residual = sqrt(squares(l, g->n, fmax(b, least)) / (2.0 * (double)g->n));
    const char *why = !slowed        ? "a lower bound: nothing was slowed; the most seen of link and CPU together"
                      : b < least    ? "what one of them reads alone; fitted over both together it would be less"
                                     : "least squares over loads of link and CPU together";
    moesim_fit_set(&f->profile->dram_bandwidth, fmax(b, least), g->samples, moesim_gathered_spread(g), residual,
                   "%s (%zu loads; reading alone %.4g GB/s)", why, g->n, read_rate(f) / 1e9);
}

moesim_code moesim_fit_dram(moesim_fitting *f, moesim_error *err)
{
    load loads[MOST_LOADS];
    moesim_gathered g = { .n = 0 };
    for (size_t i = 0; i < f->raw->num_points && g.n < MOST_LOADS; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind == MOESIM_RAW_JOINT_CPU && read_load(f, p, &loads[g.n]))
            moesim_gather(&g, p, p->median, p->median);
    }
    if (g.n == 0)
        return moesim_fit_lacks(f, err, "dram.bandwidth: link and CPU were not measured together");
    set_dram(f, loads, &g);
    return MOESIM_OK;
}
