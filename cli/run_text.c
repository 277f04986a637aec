/* SPDX-License-Identifier: Apache-2.0
 *
 * Short text for numbers and names.
 */
#include "cli/run_text.h"

#include <math.h>
#include <string.h>

#define TEXT 16u

/* Decimals that leave `digits` significant ones, none for numbers that are longer by themselves. */
static int decimals(double v, int digits)
{
    int n = digits - 1;
    for (double limit = 9.9995; n > 0 && fabs(v) >= limit; limit *= 10)
        n--;
    return n;
}

const char *moesim_text_real(double v, char out[16])
{
    if (!isfinite(v))
        snprintf(out, TEXT, "n/a");
    else
        snprintf(out, TEXT, fabs(v) < 1e7 ? "%.*f" : "%.*g", fabs(v) < 1e7 ? decimals(v, 4) : 3, v);
    return out;
}

const char *moesim_text_fit(double v, int columns, char out[16])
{
    moesim_text_real(v, out);
    for (int digits = 3; (int)strlen(out) > columns && digits >= 0; digits--)
        snprintf(out, TEXT, "%.*e", digits, v);
    return out;
}

const char *moesim_text_signed(double v, char out[16])
{
    if (!isfinite(v))
        snprintf(out, TEXT, "n/a");
    else
        snprintf(out, TEXT, "%+.*f", decimals(v, 3), v);
    return out;
}

const char *moesim_text_percent(double share, char out[16])
{
    if (!isfinite(share))
        snprintf(out, TEXT, "n/a");
    else
        snprintf(out, TEXT, "%.*f", fabs(share) < 0.9995 ? 1 : 0, 100 * share);
    return out;
}

const char *moesim_text_change(double v, char out[16])
{
    if (!isfinite(v))
        snprintf(out, TEXT, "-");
    else if (v >= 100)
        snprintf(out, TEXT, ">9999%%");
    else
        snprintf(out, TEXT, "%+.*f%%", fabs(v) < 0.0995 ? 1 : 0, 100 * v);
    return out;
}

const char *moesim_text_interval(moesim_interval ci, double scale, int digits, char out[32])
{
    const double lo = scale * ci.lo, hi = scale * ci.hi;
    if (!isfinite(lo) || !isfinite(hi))
        snprintf(out, 2 * TEXT, "[n/a]");
    else
        snprintf(out, 2 * TEXT, "[%.*f %.*f]", decimals(lo, digits), lo, decimals(hi, digits), hi);
    return out;
}

const char *moesim_text_interval_fit(moesim_interval ci, double scale, int digits, int columns, char out[32])
{
    char lo[TEXT], hi[TEXT];
    moesim_text_interval(ci, scale, digits, out);
    if ((int)strlen(out) > columns)
        snprintf(out, 2 * TEXT, "[%s %s]", moesim_text_fit(scale * ci.lo, (columns - 3) / 2, lo),
                 moesim_text_fit(scale * ci.hi, (columns - 3) / 2, hi));
    return out;
}

const char *moesim_text_p(double p, char out[16])
{
    if (!isfinite(p))
        snprintf(out, TEXT, "n/a");
    else if (p < 0.0001)
        snprintf(out, TEXT, "<.0001");
    else
        snprintf(out, TEXT, "%.4f", p);
    return out;
}

/* Bytes of the character at s (1 for a byte that is not UTF-8). */
static size_t character(const char *s)
{
    const unsigned char c = (unsigned char)*s;
    const size_t n = c >= 0xf0u ? 4 : c >= 0xe0u ? 3 : c >= 0xc0u ? 2 : 1;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xc0u) != 0x80u)
            return 1;
    return n;
}

static size_t columns_of(const char *s)
{
    size_t n = 0;
    for (; *s != '\0'; s += character(s))
        n++;
    return n;
}

void moesim_text_clipped(FILE *out, const char *text, size_t columns)
{
    const size_t all = columns_of(text);
    const size_t shown = all > columns ? columns - 1 : all;
    for (size_t i = 0; i < shown; i++) {
        const size_t bytes = character(text);
        const unsigned char c = (unsigned char)*text;
        if (c < 0x20u || c == 0x7fu || (bytes == 1 && c >= 0x80u) || (c == 0xc2u && (unsigned char)text[1] < 0xa0u))
            fputc('?', out);
        else
            fwrite(text, 1, bytes, out);
        text += bytes;
    }
    if (shown < all)
        fputs("…", out);
}

void moesim_text_name(FILE *out, const char *name, const char *mark, size_t columns)
{
    size_t used = columns_of(name) + strlen(mark);
    moesim_text_clipped(out, name, 78);
    fputs(mark, out);
    if (used > columns) {
        fputc('\n', out);
        used = 0;
    }
    fprintf(out, "%*s", (int)(columns - used), "");
}

void moesim_text_marks(FILE *out, bool clairvoyant, bool non_causal, bool global)
{
    if (clairvoyant)
        fputs("* clairvoyant: reads the future, a bound and not a policy one can build\n", out);
    if (non_causal)
        fputs("! non-causal: uses what no real system has at that moment\n", out);
    if (clairvoyant && global)
        fputs("in scope global every miss is admitted: belady is belady-forced, in bytes\n", out);
}

void moesim_text_few(FILE *out, uint64_t requests)
{
    if (requests > 1 && requests < 6)
        fputs("With fewer than 6 requests an interval is little more than their range, and no\n"
              "difference can reach p < 0.05.\n", out);
}
