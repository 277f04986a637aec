/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of one result, each kept once, and the count of the bytes that its columns take. Inside of sim/result*.c.
 */
#ifndef MOESIM_SIM_RESULT_POOL_H
#define MOESIM_SIM_RESULT_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct moesim_result_pool moesim_result_pool;

moesim_code moesim_result_pool_create(moesim_result_pool **out, moesim_error *err);
void moesim_result_pool_destroy(moesim_result_pool **pool);

/* The one copy of a text, cleaned as moesim_text_clean does; it lives as long as the pool. A text of MOESIM_RESULT_TEXT_BYTES
 * or more is MOESIM_E_LIMIT. */
moesim_code moesim_result_pool_text(moesim_result_pool *pool, const char *text, size_t length, char **out, moesim_error *err);

/* Counts bytes that are about to be allocated; MOESIM_E_LIMIT beyond MOESIM_RESULT_BYTES. */
moesim_code moesim_result_pool_charge(moesim_result_pool *pool, uint64_t n, uint64_t each, const char *what, moesim_error *err);

/* A letter or '_', then letters, digits and '_'; shorter than `room` bytes. */
bool moesim_result_identifier(const char *name, size_t room);

/* An attribute that the writer makes by itself. */
bool moesim_result_reserved(const char *name);

#endif
