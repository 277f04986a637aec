/* SPDX-License-Identifier: Apache-2.0
 *
 * What several commands print with: the choice of --format, CSV cells, JSON documents.
 */
#ifndef MOESIM_CLI_PRINT_H
#define MOESIM_CLI_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "base/error.h"

enum moesim_format { MOESIM_FORMAT_TABLE = 0, MOESIM_FORMAT_CSV = 1, MOESIM_FORMAT_JSON = 2 };

extern const char *const moesim_formats[];         /* table, csv, json */
extern const char *const moesim_formats_no_csv[];  /* table, json (index 1 is json) */

/* One CSV cell after RFC 4180: quoted where it holds a comma, a quote or a line end. */
void moesim_print_csv(FILE *out, const char *text);

/* Text of a file or of the command line, cleaned (base/text.h): as it is printed, and as JSON, which must be UTF-8. */
void moesim_print_clean(FILE *out, const char *text);
json_t *moesim_json_text(const char *text);

/* A number that may be undefined: JSON has no NaN, so undefined is null. */
json_t *moesim_json_real(double value);

/* Writes the document and a line end in full precision, and releases it. NULL (an allocation failed while it was built) and
 * a failed write are errors. */
moesim_code moesim_print_json(FILE *out, json_t *document, moesim_error *err);

#endif
