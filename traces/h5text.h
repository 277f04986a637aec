/* SPDX-License-Identifier: Apache-2.0
 *
 * Variable-length text without HDF5's own reader. HDF5 1.10 trusts the numbers in its global heaps, which carry no checksum,
 * and crashes on damaged ones; so the stored reference is taken as it is and the heap is read here, with every number checked.
 */
#ifndef MOESIM_TRACES_H5TEXT_H
#define MOESIM_TRACES_H5TEXT_H

#include "traces/h5.h"

#define MOESIM_H5_HEAP_ID_BYTES 16   /* length 4, address of the heap 8, index in it 4 */

/* Registers the memory type that receives references unread. Part of moesim_h5_enter's preparation; false: HDF5 refused. */
bool moesim_h5_heap_prepare(void);

/* To H5Aread or H5Dread variable-length text with: MOESIM_H5_HEAP_ID_BYTES for each element. */
hid_t moesim_h5_heap_id_type(void);

/* Bytes of the text that a reference leads to, as the reference says. */
size_t moesim_h5_heap_length(const unsigned char id[MOESIM_H5_HEAP_ID_BYTES]);

/* The text that a reference leads to, cleaned by moesim_text_clean. name: of the attribute, for messages. */
moesim_code moesim_h5_heap_text(const moesim_h5_file *file, const char *name, const unsigned char id[MOESIM_H5_HEAP_ID_BYTES],
                                char *out, size_t room, moesim_error *err);

#endif
