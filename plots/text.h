/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for gnuplot: names come from files and command lines, so nothing of them may be read as anything but text.
 */
#ifndef MOESIM_PLOTS_TEXT_H
#define MOESIM_PLOTS_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Characters (code points; bytes that are no UTF-8 count as one each). */
size_t moesim_text_chars(const char *text);

/* Width by that of DejaVu Sans, as a multiple of the size of the letters. */
double moesim_text_width(const char *text);

/* Writes a single-quoted gnuplot string: quotes doubled, control characters and bytes that are no UTF-8 as '?'. In such a
 * string gnuplot expands neither backslashes nor backquotes nor macros. format: where gnuplot takes the text as a format, a '%'
 * is doubled. */
enum moesim_quote { MOESIM_QUOTE_TEXT, MOESIM_QUOTE_FORMAT };
void moesim_text_quote(FILE *out, const char *text, enum moesim_quote kind);

/* The same without quotes, for comments. */
void moesim_text_plain(FILE *out, const char *text);

/* Shortens a name to `chars` characters by "…" in its middle; room for 4·chars + 4 bytes. */
void moesim_text_shorten(const char *text, size_t chars, char *out, size_t bytes);

/* Breaks lines wider than `width` (moesim_text_width) at blanks, or anywhere in a word that is wider; returns malloc'd text,
 * NULL where memory is short. */
char *moesim_text_wrap(const char *text, double width);

size_t moesim_text_lines(const char *text);      /* 0 for "" */

/* A file name that gnuplot takes for nothing else: "./" before relative ones ('<' and '|' begin commands, '-' an option).
 * malloc'd. */
char *moesim_text_path(const char *path);

#endif
