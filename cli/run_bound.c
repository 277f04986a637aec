/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim run --bound offline-cost`: what copies and the CPU take at least, whoever decides, at each capacity.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "cli/run.h"

moesim_code moesim_report_bound(moesim_report *r, const moesim_run_params *params, moesim_error *err)
{
    moesim_bounds bounds = { 0 };
    void *p = NULL;
    if (r->options->modes.bound == MOESIM_NO_BOUND)
        return MOESIM_OK;
    moesim_code code = moesim_alloc(r->cache.n, sizeof *r->bound, "bounds", &p, err);
    r->bound = p;
    if (code == MOESIM_OK)
        code = moesim_bounds_open(r->trace, &r->pricing, params, &bounds, err);
    if (code == MOESIM_OK)
        code = moesim_bounds_solve(&bounds, r->cell[0].bandwidth, r->cache.amount, r->cache.n, r->bound, err);
    moesim_bounds_close(&bounds);
    return code;
}

double moesim_report_bound_ms(const moesim_report *r, size_t cache)
{
    return moesim_bounds_ms(&r->bound[cache], &r->outcome[0]);
}
