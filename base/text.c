/* SPDX-License-Identifier: Apache-2.0
 *
 * Clean text, and text in pieces.
 */
#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes that a UTF-8 sequence with this first byte has; 0: none begins so. */
static size_t utf8_announced(unsigned char first)
{
    static const struct {
        unsigned char mask, bits;
    } form[4] = {{0x80, 0x00}, {0xe0, 0xc0}, {0xf0, 0xe0}, {0xf8, 0xf0}};
    for (size_t i = 0; i < 4; i++)
        if ((first & form[i].mask) == form[i].bits)
            return i + 1;
    return 0;
}

/* Length of the UTF-8 sequence at p (at most `left` bytes), 0 if it is none: no overlong forms, no surrogates. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = utf8_announced(p[0]);
    if (n < 2 || n > left)
        return n == 1 ? 1 : 0;
    uint32_t code = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0u) != 0x80u)
            return 0;
        code = code << 6 | (p[i] & 0x3fu);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

/* C0, DEL and C1, of a valid sequence. */
static bool is_control(const unsigned char *p)
{
    return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

void moesim_text_clean(const char *text, size_t length, char *out, size_t room)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t used = 0;
    for (size_t i = 0; i < length && p[i] != 0;) {
        const size_t n = utf8_length(p + i, length - i);
        const bool plain = n > 0 && !is_control(p + i);
        const size_t take = n > 0 ? n : 1;
        if (used + take + 1 > room)
            break;
        if (plain)
            memmove(out + used, p + i, take);
        else
            out[used] = '?';
        used += plain ? take : 1;
        i += take;
    }
    out[used] = '\0';
}

void moesim_text_add(char *text, size_t bytes, const char *fmt, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text + used, bytes - used, fmt, args);
    va_end(args);
}
