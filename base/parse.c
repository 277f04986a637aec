/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict parsers of numbers, and the nearest-name search for messages. The program never calls setlocale, so strtod reads
 * a decimal point whatever the user's locale.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/options.h"

#define NEAREST_MAX 64u

/* Digits with an optional sign, nothing else: strtoll alone would take " 0x5". */
static bool is_integer(const char *text, bool sign)
{
    if (sign && (*text == '-' || *text == '+'))
        text++;
    const size_t n = strspn(text, "0123456789");
    return n > 0 && text[n] == '\0';
}

moesim_code moesim_parse_i64(const char *text, int64_t min, int64_t max, const char *what, int64_t *out, moesim_error *err)
{
    if (!is_integer(text, true))
        return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' is not an integer", what, text);
    errno = 0;
    const long long v = strtoll(text, NULL, 10);
    if (errno == ERANGE || v < min || v > max)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: %s is outside %lld to %lld", what, text, (long long)min,
                           (long long)max);
    *out = v;
    return MOESIM_OK;
}

moesim_code moesim_parse_u64(const char *text, uint64_t min, uint64_t max, const char *what, uint64_t *out,
                             moesim_error *err)
{
    if (!is_integer(text, false))
        return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' is not a whole number", what, text);
    errno = 0;
    const unsigned long long v = strtoull(text, NULL, 10);
    if (errno == ERANGE || v < min || v > max)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: %s is outside %llu to %llu", what, text, (unsigned long long)min,
                           (unsigned long long)max);
    *out = v;
    return MOESIM_OK;
}

/* Reads a finite decimal number at the start of text; *end is where it stops. Hexadecimal, "inf" and "nan" are none. */
static bool leading_real(const char *text, double *value, char **end)
{
    const char *digits = text + (*text == '-' || *text == '+' ? 1 : 0);
    if (!(isdigit((unsigned char)digits[0]) || (digits[0] == '.' && isdigit((unsigned char)digits[1]))))
        return false;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return false;
    *value = strtod(text, end);
    return isfinite(*value) != 0;
}

moesim_code moesim_parse_real(const char *text, double min, double max, const char *what, double *out, moesim_error *err)
{
    double v;
    char *end;
    if (!leading_real(text, &v, &end) || *end != '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' is not a finite decimal number", what, text);
    if (v < min || v > max)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: %s is outside %g to %g", what, text, min, max);
    *out = v;
    return MOESIM_OK;
}

static const struct { const char *name; double bytes; } units[] = {
    { "B", 1.0 }, { "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 },
    { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 }, { "TiB", 0x1p40 },
};
#define NUM_UNITS (sizeof units / sizeof units[0])

/* Parts of a unit are rounded to bytes; parts of a byte are nothing. */
static moesim_code scale_bytes(const char *text, double v, size_t u, const char *what, uint64_t *out, moesim_error *err)
{
    if (units[u].bytes == 1.0 && v != floor(v))
        return moesim_fail(err, MOESIM_E_USAGE, "%s: %s is not a whole number of bytes", what, text);
    if (v * units[u].bytes >= 0x1p63)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: %s is too large", what, text);
    *out = (uint64_t)llround(v * units[u].bytes);
    return MOESIM_OK;
}

moesim_code moesim_parse_bytes(const char *text, const char *what, uint64_t *out, moesim_error *err)
{
    if (is_integer(text, false))
        return moesim_parse_u64(text, 0, UINT64_MAX, what, out, err);
    double v;
    char *end;
    if (leading_real(text, &v, &end) && v >= 0.0) {
        for (size_t u = 0; u < NUM_UNITS; u++)
            if (strcmp(end, units[u].name) == 0 || (*end == '\0' && u == 0))
                return scale_bytes(text, v, u, what, out, err);
        for (size_t u = 0; u < NUM_UNITS; u++)
            if (strcasecmp(end, units[u].name) == 0)
                return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s': no unit is written so; did you mean '%.*s%s'?", what, text,
                                   (int)(end - text), text, units[u].name);
    }
    return moesim_fail(err, MOESIM_E_USAGE,
                       "%s: '%s' is not a number of bytes; write it with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB", what,
                       text);
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance of words shorter than NEAREST_MAX; two neighbours swapped are one edit. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t d[3][NEAREST_MAX + 1];   /* rows i-2, i-1, i of the table, used in turn */
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = d[i % 3];
        const size_t *above = d[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = above[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u);
            row[j] = least_of(row[j], least_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], d[(i - 2) % 3][j - 2] + 1);
        }
    }
    return d[na % 3][nb];
}

const char *moesim_nearest(const char *word, const char *const *names)
{
    const size_t n = strlen(word);
    if (n == 0 || n >= NEAREST_MAX)
        return NULL;
    const size_t allowed = n / 3 > 1 ? n / 3 : 1;
    const char *nearest = NULL;
    size_t least = allowed + 1;
    for (size_t i = 0; names[i] != NULL; i++) {
        const size_t m = strlen(names[i]);
        if (m >= NEAREST_MAX)
            continue;
        const size_t d = distance(word, n, names[i], m);
        if (d < least) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}
