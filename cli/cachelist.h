/* SPDX-License-Identifier: Apache-2.0
 *
 * The capacities of --cache: numbers of experts per layer (scope layer) or sizes in bytes over all layers (scope global),
 * lists "20,40,60" and ranges "10:100:10" (the end is included when it is reached; without a step, 1).
 */
#ifndef MOESIM_CLI_CACHELIST_H
#define MOESIM_CLI_CACHELIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/args.h"
#include "base/error.h"

#define MOESIM_MAX_CACHES 4096u      /* capacities of one run; bounds what a range may ask for */

typedef struct moesim_cachelist {
    size_t n;
    uint64_t *amount;            /* [n] in the order given: experts per layer, or bytes; owned */
} moesim_cachelist;

/* Parses every text of --cache. bytes: sizes with a unit are required (scope global); without it they are refused. Refuses
 * empty lists, repeated capacities and more than MOESIM_MAX_CACHES of them. Free with fini, also after an error. */
moesim_code moesim_cachelist_parse(const moesim_list *texts, bool bytes, moesim_cachelist *out, moesim_error *err);
void moesim_cachelist_fini(moesim_cachelist *list);

/* Refuses a capacity above `experts` (E), naming E. */
moesim_code moesim_cachelist_check(const moesim_cachelist *list, uint32_t experts, moesim_error *err);

/* "40", or "4000MiB" / "123B": the largest binary unit that divides it. Returns out. */
const char *moesim_cache_text(uint64_t amount, bool bytes, char *out, size_t out_bytes);

#endif
