/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of trace salvage: a copy of an HDF5 file that HDF5 agrees to open.
 */
#ifndef MOESIM_TRACES_SALVAGE_COPY_H
#define MOESIM_TRACES_SALVAGE_COPY_H

#include <stdbool.h>

#include "base/error.h"

/* Copies `in` to the existing file `copy`; there the superblock says that nobody writes to the file and that it ends where
 * it ends. *touched: it said otherwise. Refuses what is no HDF5 file with superblock version 2 or 3, and a damaged
 * superblock. */
moesim_code moesim_salvage_copy(const char *in, const char *copy, bool *touched, moesim_error *err);

#endif
