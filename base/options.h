/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables: one table of rows parses, checks, prints, documents. Used for policy options ("name:key=value,…", rows of
 * moesim/policy.h) and, through base/args.h, for the command line.
 */
#ifndef MOESIM_BASE_OPTIONS_H
#define MOESIM_BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "moesim/policy.h"

/* Writes every default into `store` (bytes long, at least as large as the table's offsets ask). */
moesim_code moesim_options_defaults(const moesim_option *table, void *store, size_t bytes, moesim_error *err);

/* Parses "key=value,key=value" over defaults already in store. `owner` names the policy in messages. Unknown keys get the
 * nearest name suggested; a repeated key, an empty value, a number out of range or with trailing text is an error. */
moesim_code moesim_options_parse(const moesim_option *table, void *store, const char *text, const char *owner,
                                 moesim_error *err);

/* Prints all effective values as "key=value,key=value" in table order, "" for an empty table; parse ∘ print is the identity.
 * Returns the length that the whole text has (like snprintf). */
size_t moesim_options_print(const moesim_option *table, const void *store, char *out, size_t out_bytes);

/* Same, as one value of one row. */
size_t moesim_option_print_value(const moesim_option *row, const void *store, char *out, size_t out_bytes);

/* Nearest of the NULL-ended names (edit distance at most a third of the length, at least 1), or NULL. */
const char *moesim_nearest(const char *word, const char *const *names);

/* Strict number parsers: whole string, C locale, no leading space; return MOESIM_OK or a USAGE error that names `what`. */
moesim_code moesim_parse_i64(const char *text, int64_t min, int64_t max, const char *what, int64_t *out, moesim_error *err);
moesim_code moesim_parse_u64(const char *text, uint64_t min, uint64_t max, const char *what, uint64_t *out,
                             moesim_error *err);
moesim_code moesim_parse_real(const char *text, double min, double max, const char *what, double *out, moesim_error *err);

/* "4000MiB", "2GiB", "1.5GB", "123" (bytes). Units: B kB MB GB TB KiB MiB GiB TiB. Parts of a byte are an error. */
moesim_code moesim_parse_bytes(const char *text, const char *what, uint64_t *out, moesim_error *err);

#endif
