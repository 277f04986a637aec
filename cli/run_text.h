/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and names of printed tables as short text, and notes below them. Functions that fill a buffer return it; undefined
 * numbers are "n/a".
 */
#ifndef MOESIM_CLI_RUN_TEXT_H
#define MOESIM_CLI_RUN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/stats.h"

/* A share as percent: "82.8", "100". */
const char *moesim_text_percent(double share, char out[16]);

/* Four significant digits at most, no exponent below 1e7: "477.6", "1013", "3.932". */
const char *moesim_text_real(double v, char out[16]);

/* The same in at most `columns` (5 to 15) columns: longer numbers get an exponent and the digits that then fit. */
const char *moesim_text_fit(double v, int columns, char out[16]);
const char *moesim_text_signed(double v, char out[16]);

/* A relative change: "+58%", "+4.2%", "-38%"; "-" where undefined, ">9999%" for a hundred times and more. */
const char *moesim_text_change(double v, char out[16]);

/* "[81.9 83.8]" of the interval times scale, in `digits` significant digits. */
const char *moesim_text_interval(moesim_interval ci, double scale, int digits, char out[32]);

/* The same in at most `columns` (13 or more) columns, as moesim_text_fit does. */
const char *moesim_text_interval_fit(moesim_interval ci, double scale, int digits, int columns, char out[32]);

/* "0.031", "<.0001". */
const char *moesim_text_p(double p, char out[16]);

#define MOESIM_FEW_REQUESTS 20u      /* below this, n is printed with the word "few" */

/* What the marks behind names say, a line each; what else that means with one budget over all layers (global). */
void moesim_text_marks(FILE *out, bool clairvoyant, bool non_causal, bool global);

/* What intervals over so few requests are worth; nothing where they are enough, and for one, which has no interval. */
void moesim_text_few(FILE *out, uint64_t requests);

/* Text of a file or a command line: control characters become '?', at most `columns` columns, cut with "…". */
void moesim_text_clipped(FILE *out, const char *text, size_t columns);

/* name and mark padded to `columns`; a longer one stands on a line of its own, and the padding on the next. */
void moesim_text_name(FILE *out, const char *name, const char *mark, size_t columns);

#endif
