/* SPDX-License-Identifier: Apache-2.0
 *
 * Every registered policy that answers retain, with its defaults and with every other value of each option, as option
 * strings. Made from the registry, so that a new policy or option is covered without a line here.
 */
#ifndef MOESIM_TESTS_POLICY_VARIANTS_H
#define MOESIM_TESTS_POLICY_VARIANTS_H

#include <stddef.h>
#include <stdint.h>

struct variant {
    char text[160];
    uint32_t traits;             /* of policy and instance */
    int dispatches;              /* asks which misses run on the CPU */
    int layer_only;              /* refuses scope global by itself, or because it dispatches */
};

#define MAX_VARIANTS 64

/* Fills list[MAX_VARIANTS]; returns how many. An option value that is refused without another option gets that one too. */
size_t variants(struct variant *list);

#endif
