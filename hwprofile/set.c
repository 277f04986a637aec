/* SPDX-License-Identifier: Apache-2.0
 *
 * Overrides of single constants: --set link.bandwidth=64GB/s.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "hwprofile/parts.h"

#define KEY_CHARS 64u
#define VALUE_CHARS 64u
#define MAX_SPECS 32u

static moesim_code fail_key(const char *key, moesim_error *err)
{
    const char *names[MAX_SPECS + 1];
    char plain[MOESIM_PLAIN_CHARS];
    size_t n = 0;
    for (; moesim_profile_specs[n].key != NULL && n < MAX_SPECS; n++)
        names[n] = moesim_profile_specs[n].key;
    names[n] = NULL;
    moesim_profile_plain(key, plain, sizeof plain);
    if (strncmp(key, "cpu.table", 9) == 0 || strncmp(key, "gpu.table", 9) == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "--set %s: tables cannot be set on the command line; write the profile to a "
                           "file with 'moesim profile show NAME --format json' and change it there", plain);
    const char *nearest = moesim_nearest(key, names);
    if (nearest != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "--set %s: no such constant; did you mean '%s'?", plain, nearest);
    return moesim_fail(err, MOESIM_E_USAGE, "--set %s: no such constant; 'moesim profile show NAME' lists them", plain);
}

/* Characters of a decimal number at the start of text; an e that no digit follows belongs to the unit. */
static size_t number_chars(const char *text)
{
    size_t n = *text == '-' || *text == '+' ? 1 : 0;
    n += strspn(text + n, "0123456789.");
    if (text[n] == 'e' || text[n] == 'E') {
        const size_t sign = text[n + 1] == '-' || text[n + 1] == '+' ? 1 : 0;
        if (isdigit((unsigned char)text[n + 1 + sign]))
            n += 1 + sign + strspn(text + n + 1 + sign, "0123456789");
    }
    return n;
}

/* A number with a unit, or a bare one in GB/s or seconds, in SI. */
static moesim_code parse_quantity(enum moesim_quantity quantity, const char *text, const char *what, double *out,
                                  moesim_error *err)
{
    char number[VALUE_CHARS], plain[MOESIM_PLAIN_CHARS];
    const size_t n = number_chars(text);
    double num = quantity == MOESIM_SECONDS ? 1.0 : 1e9, den = 1.0, value;
    moesim_profile_plain(text, plain, sizeof plain);
    if (n == 0 || n >= sizeof number)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' does not begin with a decimal number", what, plain);
    snprintf(number, sizeof number, "%.*s", (int)n, text);
    const moesim_code code = moesim_parse_real(number, -INFINITY, INFINITY, what, &value, err);
    if (code != MOESIM_OK)
        return code;
    const char *unit = text + n + strspn(text + n, " ");
    if (*unit != '\0' && !moesim_profile_unit(quantity, unit, &num, &den))
        return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' has no unit that fits; write %s, or none for %s", what, plain,
                           moesim_profile_units(quantity), quantity == MOESIM_SECONDS ? "seconds" : "GB/s");
    *out = value * num / den;
    return MOESIM_OK;
}

static moesim_code parse_value(const moesim_profile_spec *spec, const char *text, double *out, moesim_error *err)
{
    char what[KEY_CHARS + 8], plain[MOESIM_PLAIN_CHARS];
    snprintf(what, sizeof what, "--set %s", spec->key);
    const moesim_code code = parse_quantity(spec->quantity, text, what, out, err);
    if (code != MOESIM_OK)
        return code;
    const char *rule = moesim_profile_bad_value(spec, *out);
    return rule == NULL ? MOESIM_OK : moesim_fail(err, MOESIM_E_USAGE, "%s: %s %s", what,
                                                  moesim_profile_plain(text, plain, sizeof plain), rule);
}

moesim_code moesim_profile_parse_bandwidth(const char *text, const char *what, double *out, moesim_error *err)
{
    char plain[MOESIM_PLAIN_CHARS];
    const moesim_code code = parse_quantity(MOESIM_BYTES_PER_SECOND, text, what, out, err);
    if (code != MOESIM_OK || (isfinite(*out) && *out > 0))
        return code;
    return moesim_fail(err, MOESIM_E_USAGE, "%s: %s is no bandwidth; it must be positive and finite", what,
                       moesim_profile_plain(text, plain, sizeof plain));
}

/* Whether the list "key=value,key=value" has an entry for the key. */
static bool listed(const char *list, const char *key)
{
    const size_t n = strlen(key);
    while (*list != '\0') {
        if (strncmp(list, key, n) == 0 && list[n] == '=')
            return true;
        list += strcspn(list, ",");
        list += *list == ',' ? 1 : 0;
    }
    return false;
}

static moesim_code record(moesim_profile *profile, const char *text, moesim_error *err)
{
    const size_t used = strlen(profile->overrides), more = strlen(text) + (used > 0 ? 1 : 0);
    if (used + more >= sizeof profile->overrides)
        return moesim_fail(err, MOESIM_E_LIMIT, "--set: more than %zu characters of overrides; write a profile file instead",
                           sizeof profile->overrides - 1);
    snprintf(profile->overrides + used, sizeof profile->overrides - used, "%s%s", used > 0 ? "," : "", text);
    return MOESIM_OK;
}

static moesim_code apply(moesim_profile *profile, const moesim_profile_spec *spec, const char *text, moesim_error *err)
{
    double value = 0.0;
    if ((profile->modes & spec->read) == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "--set %s: profile %s has only mode %s, which does not read this constant",
                           spec->key, profile->name, moesim_profile_modes[profile->default_mode]);
    if (listed(profile->overrides, spec->key))
        return moesim_fail(err, MOESIM_E_USAGE, "--set %s: given twice", spec->key);
    moesim_code code = parse_value(spec, strchr(text, '=') + 1, &value, err);
    if (code == MOESIM_OK)
        code = record(profile, text, err);
    if (code == MOESIM_OK)
        *moesim_profile_constant(profile, spec) =
            (moesim_constant){ .value = value, .spread = NAN, .residual = NAN, .given = true, .note = "set by hand" };
    return code;
}

moesim_code moesim_profile_set(moesim_profile *profile, const char *text, moesim_error *err)
{
    char key[KEY_CHARS], plain[MOESIM_PLAIN_CHARS];
    const char *equals = strchr(text, '=');
    moesim_profile_plain(text, plain, sizeof plain);
    if (equals == NULL || equals == text || equals[1] == '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "--set %s: write key=value, such as link.bandwidth=64GB/s", plain);
    if (strchr(text, ',') != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "--set %s: one constant each; repeat --set for more", plain);
    snprintf(key, sizeof key, "%.*s", (int)((size_t)(equals - text) < sizeof key ? equals - text : (int)sizeof key), text);
    for (const moesim_profile_spec *spec = moesim_profile_specs; spec->key != NULL; spec++)
        if (strcmp(spec->key, key) == 0)
            return apply(profile, spec, text, err);
    return fail_key(key, err);
}
