/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation with overflow-checked products and a limit. An arena hands out zeroed, 64-byte aligned pieces that are freed
 * together; it refuses to pass its limit, so that no number read from a file can drive an allocation.
 */
#ifndef MOESIM_BASE_ARENA_H
#define MOESIM_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct moesim_arena moesim_arena;

moesim_code moesim_arena_create(size_t limit_bytes, moesim_arena **out, moesim_error *err);
void moesim_arena_destroy(moesim_arena **arena);           /* NULL allowed */

/* n·each bytes; n or each 0 gives a valid pointer. NOMEM or LIMIT errors name `what`. */
moesim_code moesim_arena_take(moesim_arena *arena, size_t n, size_t each, const char *what, void **out,
                              moesim_error *err);
void moesim_arena_reset(moesim_arena *arena);              /* forgets all pieces, keeps the memory */
size_t moesim_arena_bytes(const moesim_arena *arena);

/* Zeroed calloc with checked product and a message; free() releases it. 64-byte aligned. */
moesim_code moesim_alloc(size_t n, size_t each, const char *what, void **out, moesim_error *err);

#endif
