/* SPDX-License-Identifier: Apache-2.0
 *
 * The arrays of a decision log, for its writer and its reader.
 */
#ifndef MOESIM_TRACES_DECLOG_COLUMNS_H
#define MOESIM_TRACES_DECLOG_COLUMNS_H

#include "traces/h5.h"

enum moesim_declog_list { HITS, MOVED, CPU, EVICTED, LISTS };
enum moesim_declog_array { PASS, CLOCK, LAYER, COUNTED, OFFSET, EXPERT = OFFSET + LISTS, COLUMNS = EXPERT + LISTS };

/* By enum moesim_declog_array; list l has its offsets at OFFSET + l and its ids at EXPERT + l. Defined in declog.c. */
typedef struct moesim_declog_column { const char *name; enum moesim_h5_type type; } moesim_declog_column;
extern const moesim_declog_column moesim_declog_columns[COLUMNS];

#endif
