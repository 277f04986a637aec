/* SPDX-License-Identifier: Apache-2.0
 *
 * Error messages on their way up.
 */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const char ellipsis[] = "\xe2\x80\xa6";

/* Replaces the end of a text that did not fit by "…", without splitting a UTF-8 character. */
static void cut(char *text, size_t size)
{
    size_t end = size - sizeof ellipsis;
    while (end > 0 && ((unsigned char)text[end] & 0xC0u) == 0x80u)
        end--;
    memcpy(text + end, ellipsis, sizeof ellipsis);
}

static void format_into(char *text, size_t size, const char *fmt, va_list args) MOESIM_PRINTF(3, 0);

static void format_into(char *text, size_t size, const char *fmt, va_list args)
{
    const int n = vsnprintf(text, size, fmt, args);
    if (n < 0)
        text[0] = '\0';
    else if ((size_t)n >= size)
        cut(text, size);
}

moesim_code moesim_fail(moesim_error *err, moesim_code code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        format_into(err->text, sizeof err->text, fmt, args);
        va_end(args);
        err->code = code;
    }
    return code;
}

moesim_code moesim_fail_prefix(moesim_error *err, const char *fmt, ...)
{
    if (err == NULL)
        return MOESIM_E_INTERNAL;
    char before[sizeof err->text];
    char old[sizeof err->text];
    va_list args;
    va_start(args, fmt);
    format_into(before, sizeof before, fmt, args);
    va_end(args);
    memcpy(old, err->text, sizeof old);
    const int n = snprintf(err->text, sizeof err->text, "%s: %s", before, old);
    if (n >= (int)sizeof err->text)
        cut(err->text, sizeof err->text);
    return err->code;
}

moesim_code moesim_fail_nomem(moesim_error *err, const char *what, size_t bytes)
{
    return moesim_fail(err, MOESIM_E_NOMEM, "out of memory: %zu bytes for %s could not be allocated", bytes, what);
}

int moesim_exit_status(moesim_code code)
{
    if (code == MOESIM_OK)
        return 0;
    if (code == MOESIM_E_ABSENT)
        return 77;
    return code == MOESIM_E_USAGE ? 2 : 1;
}
