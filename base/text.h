/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from outside (files, command lines, other programs) on its way to a terminal or into a document; text in pieces.
 */
#ifndef MOESIM_BASE_TEXT_H
#define MOESIM_BASE_TEXT_H

#include <stddef.h>

#include "base/error.h"

/* Copies at most `length` bytes of text (ends at the first zero) into out, cut to room at a character's border; control
 * characters and bytes that are not UTF-8 become '?', so that text cannot write to a terminal and is always valid UTF-8.
 * room > 0; out may be text itself (the result is never longer). */
void moesim_text_clean(const char *text, size_t length, char *out, size_t room);

/* Appends formatted text to `text`, an array of `bytes`; what does not fit is cut. */
void moesim_text_add(char *text, size_t bytes, const char *fmt, ...) MOESIM_PRINTF(3, 4);

#endif
