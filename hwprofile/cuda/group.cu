/* SPDX-License-Identifier: Apache-2.0
 *
 * From lists of experts to launches: their slots, tokens and rows travel as parameters, in as many launches as they need.
 */
#include "hwprofile/cuda/kernels.cuh"
#include "hwprofile/cuda/state.cuh"

#include <string.h>

static_assert(MOESIM_GROUP_ROWS >= MOESIM_DEVICE_ROWS_MAX, "an expert fits into one launch");

moesim_code moesim_cuda_group(struct moesim_cuda *d, const moesim_device_expert *e, uint32_t n, size_t first_route, uint16_t *h,
                              float *y, moesim_error *err)
{
    struct moesim_group g;
    g.weights = d->slots;
    g.x = d->x;
    g.h = h;
    g.y = y;
    g.stride = d->sizes.weights;
    g.hidden = d->config.hidden;
    g.intermediate = d->config.intermediate;
    g.route = (uint32_t)first_route;
    for (uint32_t i = 0; i < n;) {
        uint32_t rows = 0;
        for (g.experts = 0; i < n && g.experts < MOESIM_GROUP_EXPERTS && rows + e[i].tokens <= MOESIM_GROUP_ROWS; i++) {
            const struct moesim_group_expert one = { e[i].slot, (uint16_t)e[i].tokens, (uint16_t)rows };
            g.expert[g.experts++] = one;
            memcpy(g.row + rows, e[i].row, e[i].tokens * sizeof g.row[0]);
            rows += e[i].tokens;
        }
        MOESIM_CUDA(d, moesim_launch_group(&g, d->compute), err);
        g.route += rows;
    }
    return MOESIM_OK;
}

/* row_start, row_route: routes by row, in the order hits, moved, cpu. */
static void sort_routes(struct moesim_cuda *d, const moesim_device_work *w)
{
    const struct { const moesim_device_expert *e; uint32_t n; } list[] = {
        { w->hits, w->n_hits }, { w->moved, w->n_moved }, { w->cpu, w->n_cpu },
    };
    uint32_t *start = d->row_start;
    memset(start, 0, (w->num_rows + 1) * sizeof *start);
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++)
        for (uint32_t i = 0; i < list[k].n; i++)
            for (uint32_t t = 0; t < list[k].e[i].tokens; t++)
                start[list[k].e[i].row[t]]++;
    uint32_t sum = 0;
    for (uint32_t r = 0; r <= w->num_rows; r++) {        /* the end of each row's range, filled from behind */
        sum += start[r];
        start[r] = sum;
    }
    size_t route = sum;
    for (size_t k = sizeof list / sizeof list[0]; k-- > 0;)
        for (uint32_t i = list[k].n; i-- > 0;)
            for (uint32_t t = list[k].e[i].tokens; t-- > 0;)
                d->row_route[--start[list[k].e[i].row[t]]] = (uint16_t)--route;
}

moesim_code moesim_cuda_combine(struct moesim_cuda *d, const moesim_device_work *w, moesim_error *err)
{
    struct moesim_combine c;
    sort_routes(d, w);
    c.y = d->y[d->now];
    c.sum = d->sum;
    c.hidden = d->config.hidden;
    for (uint32_t row = 0; row < w->num_rows; row += c.rows) {
        const uint32_t first = d->row_start[row];
        c.first_row = row;
        c.rows = 0;
        while (row + c.rows < w->num_rows && c.rows < MOESIM_COMBINE_ROWS &&
               d->row_start[row + c.rows + 1] - first <= MOESIM_COMBINE_ROUTES) {
            c.start[c.rows] = (uint16_t)(d->row_start[row + c.rows] - first);
            c.rows++;
        }
        const uint32_t routes = d->row_start[row + c.rows] - first;
        c.start[c.rows] = (uint16_t)routes;
        memcpy(c.route, d->row_route + first, routes * sizeof c.route[0]);
        MOESIM_CUDA(d, moesim_launch_combine(&c, d->compute), err);
    }
    return MOESIM_OK;
}
