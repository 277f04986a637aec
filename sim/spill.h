/* SPDX-License-Identifier: Apache-2.0
 *
 * An array of fixed-size records in memory up to a limit, and beyond that in an unlinked temporary file in TMPDIR (or /tmp).
 * One spill is used by one thread at a time.
 */
#ifndef MOESIM_SIM_SPILL_H
#define MOESIM_SIM_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct moesim_spill moesim_spill;

/* what: a name for messages. The first record is always kept in memory, however small the limit. */
moesim_code moesim_spill_create(size_t record_bytes, size_t memory_limit, const char *what, moesim_spill **out,
                                moesim_error *err);
void moesim_spill_destroy(moesim_spill **spill);

/* Appends one record; its number is the count before the call. */
moesim_code moesim_spill_append(moesim_spill *spill, const void *record, moesim_error *err);
moesim_code moesim_spill_read(const moesim_spill *spill, uint64_t number, void *record, moesim_error *err);
uint64_t moesim_spill_count(const moesim_spill *spill);
size_t moesim_spill_memory(const moesim_spill *spill);   /* bytes held in memory */

#endif
