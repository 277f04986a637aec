/* SPDX-License-Identifier: Apache-2.0
 *
 * Interval selection on a time line: of weighted intervals, keep the most profitable ones of which at most C cover any gap.
 * The matrix of the problem has consecutive ones, so a minimum-cost flow of C units along the line is exact: gap t leads from
 * point t to t + 1, an interval from its begin to its end, and what no interval uses runs along the gaps free of charge.
 * Shortest augmenting paths (Dijkstra with potentials) in integers: no rounding, no tolerance, the same answer everywhere.
 * A line is const after moesim_line_finish and may be shared by threads; a flow is used by one thread at a time.
 */
#ifndef MOESIM_SIM_FLOW_H
#define MOESIM_SIM_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* `many` equal intervals; each covers the gaps begin .. end − 1 and earns profit[kind]. begin < end, many > 0. */
typedef struct moesim_span { uint32_t begin, end, kind, many; } moesim_span;

typedef struct moesim_line {
    uint32_t points;
    uint32_t num_spans, room;
    uint32_t widest;             /* most intervals over any gap: a capacity of this many keeps all */
    moesim_span *span;           /* [num_spans] by rising end */
    uint32_t *end_first;         /* [points + 1] spans that end at point p are end_first[p] .. end_first[p + 1] */
    uint32_t *begin_first;       /* [points + 1] positions in by_begin */
    uint32_t *by_begin;          /* [num_spans] indexes of spans, by begin */
} moesim_line;

/* Memory that may still be taken, and what ran out of it in messages ("offline-cost"). */
typedef struct moesim_budget { size_t limit, used; const char *what; } moesim_budget;

/* Grows *array from `old` to `n` elements, the new ones zero. NOMEM errors, and LIMIT errors past the budget. */
moesim_code moesim_budget_grow(moesim_budget *budget, void **array, size_t old, size_t n, size_t each, moesim_error *err);

/* The LIMIT error itself. */
moesim_code moesim_budget_refuse(const moesim_budget *budget, moesim_error *err);

/* From a zeroed line: spans in order of their ends (of equal ends in any order), then finish with more points than any end.
 * MOESIM_E_LIMIT past the budget or past 2^31 spans. */
moesim_code moesim_line_add(moesim_line *line, const moesim_span *span, moesim_budget *budget, moesim_error *err);
moesim_code moesim_line_finish(moesim_line *line, uint32_t points, moesim_budget *budget, moesim_error *err);
void moesim_line_fini(moesim_line *line);

typedef struct moesim_flow moesim_flow;

/* For lines of at most `points` points and `spans` spans. Caller destroys. */
moesim_code moesim_flow_create(uint32_t points, uint32_t spans, moesim_flow **out, moesim_error *err);
void moesim_flow_destroy(moesim_flow **flow);                /* NULL allowed */

size_t moesim_flow_bytes(uint32_t points, uint32_t spans);   /* memory of such a flow */

/* Bits that a profit may have so that no sum along a line of `points` overflows: 27 to 40. */
uint32_t moesim_flow_bits(uint32_t points);

/* How many of each span are kept: kept[num_spans], valid until the next call. profit: by kind, 0 ≤ profit ≤ 2^bits.
 * Time O(min(C, widest − C) · (spans + points) · log points). MOESIM_E_INTERRUPTED. */
moesim_code moesim_flow_select(moesim_flow *flow, const moesim_line *line, uint32_t capacity, const int64_t *profit,
                               const uint32_t **kept, moesim_error *err);

#endif
