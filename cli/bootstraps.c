/* SPDX-License-Identifier: Apache-2.0
 *
 * Bootstraps of one set of resamples.
 */
#include "cli/bootstraps.h"

#include <stdlib.h>

#include "base/arena.h"

#define MOST 16u                 /* each remembers a few MiB of sums */

moesim_code moesim_bootstraps_init(size_t requests, uint64_t seed, uint64_t threads, moesim_bootstraps *out, moesim_error *err)
{
    const uint32_t most = threads > MOST ? MOST : threads > 0 ? (uint32_t)threads : 1;
    void *p = NULL;
    if (moesim_alloc(most, sizeof(moesim_bootstrap *), "bootstraps", &p, err) != MOESIM_OK)
        return err->code;
    out->of = p;
    moesim_code code = moesim_bootstrap_create(requests, MOESIM_RESAMPLES, seed, &out->of[0], err);
    for (out->n = 1; out->n < most && code == MOESIM_OK; out->n++)
        code = moesim_bootstrap_share(out->of[0], &out->of[out->n], err);
    return code;
}

void moesim_bootstraps_fini(moesim_bootstraps *b)
{
    for (uint32_t i = b->n; i-- > 0;)
        moesim_bootstrap_destroy(&b->of[i]);
    free(b->of);
    *b = (moesim_bootstraps){ 0, NULL };
}
