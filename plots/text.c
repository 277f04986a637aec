/* SPDX-License-Identifier: Apache-2.0
 *
 * Quoting, shortening and wrapping.
 */
#include "plots/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the character at s, 0 where it is no UTF-8: surrogates, overlong forms and what lies beyond U+10FFFF are none. */
static size_t character(const unsigned char *s)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const size_t n = s[0] < 0x80 ? 1u : s[0] >= 0xF0 && s[0] < 0xF8 ? 4u : s[0] >= 0xE0 && s[0] < 0xF0 ? 3u
                     : s[0] >= 0xC0 && s[0] < 0xE0 ? 2u : 0u;
    static const unsigned char mask[5] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
    if (n == 0)
        return 0;
    uint32_t code = s[0] & mask[n];
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    return code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : n;
}

/* Control characters, C1 included, would reach a terminal or break a line. */
static bool is_control(const unsigned char *s, size_t n)
{
    return (n == 1 && (s[0] < 0x20 || s[0] == 0x7F)) || (n == 2 && s[0] == 0xC2 && s[1] < 0xA0);
}

static size_t step(const char *text)
{
    const size_t n = character((const unsigned char *)text);
    return n > 0 ? n : 1;
}

size_t moesim_text_chars(const char *text)
{
    size_t chars = 0;
    for (; *text != '\0'; text += step(text))
        chars++;
    return chars;
}

static double char_width(char c)
{
    static const char narrow[] = "ijl.,:;'|!()[]ftr -/", wide[] = "mwMW@%";
    return strchr(narrow, c) != NULL ? 0.36 : strchr(wide, c) != NULL ? 0.97 : c >= 'A' && c <= 'Z' ? 0.70 : 0.62;
}

double moesim_text_width(const char *text)
{
    double width = 0;
    for (; *text != '\0'; text += step(text))
        width += char_width(*text);
    return width;
}

static void write_clean(FILE *out, const char *text, const char *doubled)
{
    for (; *text != '\0'; text += step(text)) {
        const size_t n = character((const unsigned char *)text);
        if (n == 0 || is_control((const unsigned char *)text, n)) {
            fputc('?', out);
            continue;
        }
        fwrite(text, 1, n, out);
        if (strchr(doubled, *text) != NULL)
            fputc(*text, out);
    }
}

void moesim_text_quote(FILE *out, const char *text, enum moesim_quote kind)
{
    fputc('\'', out);
    write_clean(out, text, kind == MOESIM_QUOTE_FORMAT ? "'%" : "'");
    fputc('\'', out);
}

void moesim_text_plain(FILE *out, const char *text)
{
    write_clean(out, text, "");
}

static const char *skip(const char *text, size_t chars)
{
    for (; chars > 0 && *text != '\0'; chars--)
        text += step(text);
    return text;
}

void moesim_text_shorten(const char *text, size_t chars, char *out, size_t bytes)
{
    const size_t all = moesim_text_chars(text);
    if (all <= chars) {
        (void)snprintf(out, bytes, "%s", text);
        return;
    }
    const size_t head = chars * 3 / 5, tail = chars > head + 1 ? chars - head - 1 : 0;
    (void)snprintf(out, bytes, "%.*s…%s", (int)(skip(text, head) - text), text, skip(text, all - tail));
}

/* Where the line that begins at text ends: at its last blank if there is one. At least one character is taken. */
static const char *line_end(const char *text, double width)
{
    const char *blank = NULL, *at = text;
    double used = 0;
    for (; *at != '\0' && *at != '\n'; at += step(at)) {
        used += char_width(*at);
        if (used > width && at > text)
            return blank != NULL ? blank : at;
        if (*at == ' ')
            blank = at;
    }
    return at;
}

char *moesim_text_wrap(const char *text, double width)
{
    const size_t room = 2 * strlen(text) + 1;    /* a break replaces a blank, or follows a character */
    char *out = malloc(room), *to = out;
    while (out != NULL && *text != '\0') {
        const char *end = line_end(text, width);
        memcpy(to, text, (size_t)(end - text));
        to += end - text;
        text = end;
        if (*text == '\0')
            break;
        *to++ = '\n';
        text += *text == '\n' || *text == ' ' ? 1 : 0;
    }
    if (out != NULL)
        *to = '\0';
    return out;
}

size_t moesim_text_lines(const char *text)
{
    size_t lines = text[0] != '\0';
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

char *moesim_text_path(const char *path)
{
    const size_t bytes = strlen(path) + 3;
    char *out = malloc(bytes);
    if (out != NULL)
        (void)snprintf(out, bytes, "%s%s", path[0] == '/' ? "" : "./", path);
    return out;
}
