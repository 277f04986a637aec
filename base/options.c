/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables of policies: defaults, parsing, printing.
 */
#include "base/options.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 64u
#define MAX_TOKEN 256u

static const char *const bool_words[] = { "off", "on", "false", "true", "no", "yes", "0", "1", NULL };   /* odd = true */

static size_t option_size(uint32_t type)
{
    return type == MOESIM_OPTION_INT || type == MOESIM_OPTION_REAL ? 8u : 4u;
}

static int index_of(const char *word, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

/* "a, b, c" for messages. */
static void join(const char *const *names, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; names[i] != NULL && used < size; i++) {
        const int n = snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

static moesim_code fail_choice(const char *value, const char *const *names, const char *what, moesim_error *err)
{
    char all[512];
    const char *nearest = moesim_nearest(value, names);
    join(names, all, sizeof all);
    return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' is none of %s%s%s%s", what, value, all,
                       nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "'?" : "");
}

static moesim_code set_real(const moesim_option *row, void *at, const char *value, const char *what, moesim_error *err)
{
    double v;
    const moesim_code code = moesim_parse_real(value, row->min, row->max, what, &v, err);
    if (code == MOESIM_OK)
        memcpy(at, &v, sizeof v);
    return code;
}

/* Range ends of INT rows stand in a table of doubles. */
static int64_t clamp_i64(double v)
{
    if (v >= 0x1p63)
        return INT64_MAX;
    return v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

static moesim_code set_int(const moesim_option *row, void *at, const char *value, const char *what, moesim_error *err)
{
    int64_t v;
    const moesim_code code = moesim_parse_i64(value, clamp_i64(row->min), clamp_i64(row->max), what, &v, err);
    if (code == MOESIM_OK)
        memcpy(at, &v, sizeof v);
    return code;
}

static moesim_code set_word(const moesim_option *row, void *at, const char *value, const char *what, moesim_error *err)
{
    const bool is_bool = row->type == MOESIM_OPTION_BOOL;
    const char *const *names = is_bool ? bool_words : row->choices;
    const int i = index_of(value, names);
    if (i < 0)
        return fail_choice(value, names, what, err);
    const int32_t v = is_bool ? i & 1 : i;
    memcpy(at, &v, sizeof v);
    return MOESIM_OK;
}

static moesim_code set_value(const moesim_option *row, void *store, const char *value, const char *owner, moesim_error *err)
{
    typedef moesim_code setter(const moesim_option *, void *, const char *, const char *, moesim_error *);
    static setter *const set[] = {
        [MOESIM_OPTION_INT] = set_int, [MOESIM_OPTION_REAL] = set_real, [MOESIM_OPTION_BOOL] = set_word,
        [MOESIM_OPTION_CHOICE] = set_word,
    };
    char what[128];
    if (row->type < MOESIM_OPTION_INT || row->type > MOESIM_OPTION_CHOICE)
        return moesim_fail(err, MOESIM_E_INTERNAL, "option '%s' of %s has an unknown type", row->name, owner);
    snprintf(what, sizeof what, "option '%s' of %s", row->name, owner);
    return set[row->type](row, (char *)store + row->offset, value, what, err);
}

moesim_code moesim_options_defaults(const moesim_option *table, void *store, size_t bytes, moesim_error *err)
{
    for (const moesim_option *row = table; row != NULL && row->name != NULL; row++) {
        if (row->offset > bytes || bytes - row->offset < option_size(row->type))
            return moesim_fail(err, MOESIM_E_INTERNAL, "option '%s' lies outside the %zu bytes of its struct", row->name,
                               bytes);
        const moesim_code code = set_value(row, store, row->def, "the defaults", err);
        if (code != MOESIM_OK)
            return code;
    }
    return MOESIM_OK;
}

static moesim_code fail_unknown(const moesim_option *table, const char *key, const char *owner, moesim_error *err)
{
    const char *names[MAX_ROWS + 1];
    char all[512];
    size_t n = 0;
    for (const moesim_option *row = table; row != NULL && row->name != NULL && n < MAX_ROWS; row++)
        names[n++] = row->name;
    names[n] = NULL;
    if (n == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "%s has no options, so '%s' cannot be set", owner, key);
    const char *nearest = moesim_nearest(key, names);
    if (nearest != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "%s has no option '%s'; did you mean '%s'?", owner, key, nearest);
    join(names, all, sizeof all);
    return moesim_fail(err, MOESIM_E_USAGE, "%s has no option '%s'; it has %s", owner, key, all);
}

/* One "key=value" of `chars` characters. */
static moesim_code parse_token(const moesim_option *table, void *store, const char *text, size_t chars, const char *owner,
                               uint64_t *seen, moesim_error *err)
{
    char token[MAX_TOKEN];
    if (chars >= sizeof token)
        return moesim_fail(err, MOESIM_E_USAGE, "an option of %s is longer than %u characters", owner, MAX_TOKEN - 1);
    memcpy(token, text, chars);
    token[chars] = '\0';
    char *equals = strchr(token, '=');
    if (equals == NULL || equals == token || equals[1] == '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' is not of the form key=value", owner, token);
    *equals = '\0';
    size_t i = 0;
    while (table != NULL && table[i].name != NULL && strcmp(table[i].name, token) != 0)
        i++;
    if (table == NULL || table[i].name == NULL)
        return fail_unknown(table, token, owner, err);
    if (i >= MAX_ROWS)
        return moesim_fail(err, MOESIM_E_LIMIT, "%s has more than %u options", owner, MAX_ROWS);
    if ((*seen >> i) & 1u)
        return moesim_fail(err, MOESIM_E_USAGE, "option '%s' of %s is given twice", token, owner);
    *seen |= UINT64_C(1) << i;
    return set_value(&table[i], store, equals + 1, owner, err);
}

moesim_code moesim_options_parse(const moesim_option *table, void *store, const char *text, const char *owner,
                                 moesim_error *err)
{
    uint64_t seen = 0;
    if (*text == '\0')
        return MOESIM_OK;
    for (;;) {
        const size_t chars = strcspn(text, ",");
        const moesim_code code = parse_token(table, store, text, chars, owner, &seen, err);
        if (code != MOESIM_OK || text[chars] == '\0')
            return code;
        text += chars + 1;
    }
}

/* Fewest digits that read back as the same double. */
static int print_real(double v, char *out, size_t size)
{
    char text[40];
    for (int digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            return snprintf(out, size, "%s", text);
    }
    return snprintf(out, size, "%.17g", v);
}

size_t moesim_option_print_value(const moesim_option *row, const void *store, char *out, size_t out_bytes)
{
    const char *at = (const char *)store + row->offset;
    int64_t i;
    double d;
    int32_t w;
    int n;
    switch (row->type) {
    case MOESIM_OPTION_INT:
        memcpy(&i, at, sizeof i);
        n = snprintf(out, out_bytes, "%" PRId64, i);
        break;
    case MOESIM_OPTION_REAL:
        memcpy(&d, at, sizeof d);
        n = print_real(d, out, out_bytes);
        break;
    default:
        memcpy(&w, at, sizeof w);
        n = snprintf(out, out_bytes, "%s", row->type == MOESIM_OPTION_BOOL ? bool_words[w & 1] : row->choices[w]);
        break;
    }
    return n > 0 ? (size_t)n : 0;
}

size_t moesim_options_print(const moesim_option *table, const void *store, char *out, size_t out_bytes)
{
    size_t used = 0;
    if (out_bytes > 0)
        out[0] = '\0';
    for (const moesim_option *row = table; row != NULL && row->name != NULL; row++) {
        char *at = used < out_bytes ? out + used : NULL;
        size_t room = used < out_bytes ? out_bytes - used : 0;
        const int n = snprintf(at, room, "%s%s=", row != table ? "," : "", row->name);
        used += n > 0 ? (size_t)n : 0;
        at = used < out_bytes ? out + used : NULL;
        room = used < out_bytes ? out_bytes - used : 0;
        used += moesim_option_print_value(row, store, at, room);
    }
    return used;
}
