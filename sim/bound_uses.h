/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bound keeps of a trace: per layer the intervals between uses, and how often first uses have how many tokens.
 */
#ifndef MOESIM_SIM_BOUND_USES_H
#define MOESIM_SIM_BOUND_USES_H

#include "sim/bound.h"
#include "sim/flow.h"

struct moesim_bound {
    moesim_bound_info info;
    moesim_line *line;           /* [M] */
    uint32_t *tokens;            /* [kinds_room] */
    uint64_t *first;             /* [kinds_room][M] counted first uses */
    uint32_t kinds_room;
    uint32_t most_spans;         /* of one layer */
};

#endif
