/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON text of a profile: keys, strings, constants, modes.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "hwprofile/parts.h"

#define MAX_KEYS 40u
#define PLACE_CHARS 128u

const char *moesim_profile_plain(const char *in, char *out, size_t size)
{
    size_t n = 0;
    for (; *in != '\0' && n + 1 < size; in++)
        out[n++] = (unsigned char)*in < 0x20u || *in == 0x7f ? '?' : *in;
    while (*in != '\0' && n > 0 && ((unsigned char)*in & 0xC0u) == 0x80u) {   /* not through a UTF-8 character */
        in--;
        n--;
    }
    out[n] = '\0';
    return out;
}

moesim_code moesim_profile_refuse(const moesim_profile_source *source, const char *place, const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return moesim_fail(source->err, MOESIM_E_FORMAT, "%s: %s: %s", source->where, place, text);
}

/* "group.key", or the one that is not empty. */
static const char *join(const char *group, const char *key, char out[PLACE_CHARS])
{
    snprintf(out, PLACE_CHARS, "%s%s%s", group, group[0] != '\0' && key[0] != '\0' ? "." : "", key);
    return out;
}

static bool among(const char *word, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, word) == 0)
            return true;
    return false;
}

static moesim_code refuse_key(const moesim_profile_source *source, const char *key, const char *place,
                              const char *const *known)
{
    char plain[MOESIM_PLAIN_CHARS], at[PLACE_CHARS], all[256];
    const char *nearest = moesim_nearest(key, known);
    size_t used = 0;
    join(place, moesim_profile_plain(key, plain, sizeof plain), at);
    if (nearest != NULL)
        return moesim_profile_refuse(source, at, "unknown key; did you mean '%s'?", nearest);
    for (size_t i = 0; known[i] != NULL && used < sizeof all; i++) {
        const int n = snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", known[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return moesim_profile_refuse(source, at, "unknown key; there are %s", all);
}

moesim_code moesim_profile_keys(const moesim_profile_source *source, const json_t *object, const char *place,
                                const char *const *known)
{
    if (!json_is_object(object))
        return moesim_profile_refuse(source, place[0] != '\0' ? place : "whole file", "must be an object { … }");
    for (void *at = json_object_iter((json_t *)(uintptr_t)object); at != NULL;
         at = json_object_iter_next((json_t *)(uintptr_t)object, at))
        if (!among(json_object_iter_key(at), known))
            return refuse_key(source, json_object_iter_key(at), place, known);
    return MOESIM_OK;
}

/* Control characters, also the two-byte ones of U+0080 to U+009F, would reach the user's terminal. */
static bool has_control(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c < 0x20u || *c == 0x7fu || (c[0] == 0xc2u && c[1] < 0xa0u))
            return true;
    return false;
}

moesim_code moesim_profile_string(const moesim_profile_source *source, const json_t *object, const char *place,
                                  const char *key, bool required, char *out, size_t size)
{
    char at[PLACE_CHARS];
    const json_t *value = json_object_get(object, key);
    join(place, key, at);
    out[0] = '\0';
    if (value == NULL)
        return required ? moesim_profile_refuse(source, at, "is missing") : MOESIM_OK;
    if (!json_is_string(value))
        return moesim_profile_refuse(source, at, "must be a text in quotes");
    const char *text = json_string_value(value);
    if (strlen(text) >= size)
        return moesim_profile_refuse(source, at, "is longer than %zu bytes", size - 1);
    if (has_control(text))
        return moesim_profile_refuse(source, at, "holds a control character");
    snprintf(out, size, "%s", text);
    return MOESIM_OK;
}

/* An optional number that is finite and not negative; NaN where absent. */
static moesim_code optional_share(const moesim_profile_source *source, const json_t *object, const char *place,
                                  const char *key, double *out)
{
    char at[PLACE_CHARS];
    const json_t *value = json_object_get(object, key);
    *out = NAN;
    if (value == NULL)
        return MOESIM_OK;
    join(place, key, at);
    if (!json_is_number(value) || !isfinite(json_number_value(value)) || json_number_value(value) < 0.0)
        return moesim_profile_refuse(source, at, "must be a number, not negative (0.02 is 2 %%)");
    *out = json_number_value(value);
    return MOESIM_OK;
}

moesim_code moesim_profile_facts(const moesim_profile_source *source, const json_t *object, const char *place,
                                 moesim_constant *out)
{
    char at[PLACE_CHARS];
    const json_t *n = json_object_get(object, "n");
    join(place, "n", at);
    if (n == NULL)
        return moesim_profile_refuse(source, at, "is missing; write the number of samples, 0 where nothing was measured");
    if (!json_is_integer(n) || json_integer_value(n) < 0)
        return moesim_profile_refuse(source, at, "must be a whole number of samples, not negative");
    out->n = (uint64_t)json_integer_value(n);
    out->given = true;
    moesim_code code = optional_share(source, object, place, "spread", &out->spread);
    if (code == MOESIM_OK)
        code = optional_share(source, object, place, "residual", &out->residual);
    if (code == MOESIM_OK)
        code = moesim_profile_string(source, object, place, "note", false, out->note, sizeof out->note);
    return code;
}

static moesim_code parse_constant(const moesim_profile_source *source, const json_t *object,
                                  const moesim_profile_spec *spec, moesim_constant *out)
{
    static const char *const known[] = { "value", "unit", "n", "spread", "residual", "note", NULL };
    char unit[32], at[PLACE_CHARS], plain[MOESIM_PLAIN_CHARS];
    double num, den;
    moesim_code code = moesim_profile_keys(source, object, spec->key, known);
    if (code == MOESIM_OK)
        code = moesim_profile_string(source, object, spec->key, "unit", true, unit, sizeof unit);
    if (code != MOESIM_OK)
        return code;
    if (!moesim_profile_unit(spec->quantity, unit, &num, &den))
        return moesim_profile_refuse(source, join(spec->key, "unit", at), "'%s' is none of %s",
                                     moesim_profile_plain(unit, plain, sizeof plain), moesim_profile_units(spec->quantity));
    const json_t *value = json_object_get(object, "value");
    if (!json_is_number(value))
        return moesim_profile_refuse(source, join(spec->key, "value", at),
                                     value == NULL ? "is missing" : "must be a number without quotes");
    out->value = json_number_value(value) * num / den;
    const char *rule = moesim_profile_bad_value(spec, out->value);
    if (rule != NULL)
        return moesim_profile_refuse(source, join(spec->key, "value", at), "%.9g %s %s", json_number_value(value), unit, rule);
    return moesim_profile_facts(source, object, spec->key, out);
}

/* The keys that a group may hold. */
static void known_of(const char *group, const char *names[MAX_KEYS])
{
    const size_t n = strlen(group);
    size_t k = 0;
    for (const moesim_profile_spec *s = moesim_profile_specs; s->key != NULL; s++)
        if (strncmp(s->key, group, n) == 0 && s->key[n] == '.')
            names[k++] = s->key + n + 1;
    if (strcmp(group, "cpu") == 0 || strcmp(group, "gpu") == 0)
        names[k++] = "table";
    names[k] = NULL;
}

static moesim_code parse_group(const moesim_profile_source *source, const json_t *root, const char *group,
                               moesim_profile *out)
{
    const char *names[MAX_KEYS];
    const json_t *object = group[0] != '\0' ? json_object_get(root, group) : root;
    const size_t n = strlen(group);
    moesim_code code = MOESIM_OK;
    if (object == NULL)
        return MOESIM_OK;
    known_of(group, names);
    if (n > 0)
        code = moesim_profile_keys(source, object, group, names);
    for (const moesim_profile_spec *s = moesim_profile_specs; s->key != NULL && code == MOESIM_OK; s++) {
        const char *dot = strchr(s->key, '.');
        if (n > 0 ? strncmp(s->key, group, n) != 0 || s->key[n] != '.' : dot != NULL)
            continue;
        const json_t *constant = json_object_get(object, dot != NULL ? dot + 1 : s->key);
        if (constant != NULL)
            code = parse_constant(source, constant, s, moesim_profile_constant(out, s));
    }
    return code;
}

static moesim_code parse_modes(const moesim_profile_source *source, const json_t *root, moesim_profile *out)
{
    const json_t *modes = json_object_get(root, "modes");
    char at[PLACE_CHARS], plain[MOESIM_PLAIN_CHARS];
    if (!json_is_array(modes) || json_array_size(modes) == 0)
        return moesim_profile_refuse(source, "modes", "must list model, paper or both, the default first");
    for (size_t i = 0; i < json_array_size(modes); i++) {
        const char *word = json_string_value(json_array_get(modes, i));
        unsigned mode = MOESIM_TIME_PAPER;
        snprintf(at, sizeof at, "modes[%zu]", i);
        while (word != NULL && moesim_profile_modes[mode] != NULL && strcmp(moesim_profile_modes[mode], word) != 0)
            mode++;
        if (word == NULL || moesim_profile_modes[mode] == NULL)
            return moesim_profile_refuse(source, at, "'%s' is neither model nor paper",
                                         moesim_profile_plain(word != NULL ? word : "(no text)", plain, sizeof plain));
        if ((out->modes & MOESIM_MODE_BIT(mode)) != 0)
            return moesim_profile_refuse(source, at, "'%s' is listed twice", word);
        out->modes |= MOESIM_MODE_BIT(mode);
        if (i == 0)
            out->default_mode = (enum moesim_time_mode)mode;
    }
    return MOESIM_OK;
}

static bool is_name(const char *text)
{
    return text[0] != '\0' && strspn(text, MOESIM_PROFILE_NAME_CHARS) == strlen(text);
}

static moesim_code parse_raw_digest(const moesim_profile_source *source, const json_t *root, moesim_profile *out)
{
    char text[MOESIM_PLAIN_CHARS];
    const moesim_code code = moesim_profile_string(source, root, "", "raw_digest", false, text, sizeof text);
    if (code != MOESIM_OK || text[0] == '\0')
        return code;
    if (strlen(text) != MOESIM_DIGEST_CHARS - 1 || strspn(text, "0123456789abcdef") != MOESIM_DIGEST_CHARS - 1)
        return moesim_profile_refuse(source, "raw_digest", "must be the SHA-256 of the raw samples, 64 hexadecimal digits "
                                     "(what sha256sum prints); leave it out where there are none");
    memcpy(out->raw_digest, text, MOESIM_DIGEST_CHARS);
    return MOESIM_OK;
}

static moesim_code parse_texts(const moesim_profile_source *source, const json_t *root, moesim_profile *out)
{
    moesim_code code = moesim_profile_string(source, root, "", "description", false, out->description, sizeof out->description);
    if (code == MOESIM_OK)
        code = moesim_profile_string(source, root, "", "times_of", false, out->times_of, sizeof out->times_of);
    return code == MOESIM_OK ? parse_raw_digest(source, root, out) : code;
}

static moesim_code parse_head(const moesim_profile_source *source, const json_t *root, moesim_profile *out)
{
    char schema[64];
    moesim_code code = moesim_profile_string(source, root, "", "schema", true, schema, sizeof schema);
    if (code == MOESIM_OK && strcmp(schema, MOESIM_PROFILE_SCHEMA) != 0)
        return moesim_profile_refuse(source, "schema", "'%s' is not \"" MOESIM_PROFILE_SCHEMA "\", the only one known", schema);
    if (code == MOESIM_OK)
        code = moesim_profile_string(source, root, "", "name", true, out->name, sizeof out->name);
    if (code == MOESIM_OK && !is_name(out->name))
        return moesim_profile_refuse(source, "name", "must be made of letters, digits, '.', '_' and '-'");
    if (code == MOESIM_OK)
        code = moesim_profile_string(source, root, "", "label", true, out->label, sizeof out->label);
    if (code == MOESIM_OK && !among(out->label, moesim_profile_labels))
        return moesim_profile_refuse(source, "label", "'%s' is none of measured, provisional, derived, neutral, "
                                     "not measured", out->label);
    if (code == MOESIM_OK)
        code = parse_texts(source, root, out);
    return code == MOESIM_OK ? parse_modes(source, root, out) : code;
}

static moesim_code parse_root(const moesim_profile_source *source, const json_t *root, moesim_profile *out)
{
    static const char *const known[] = {
        "schema", "name", "label", "description", "times_of", "raw_digest", "modes", "origin", "link", "return", "dram", "cpu",
        "gpu", "other", "sync", "head", "policy", "paper", NULL,
    };
    if (!json_is_object(root))
        return moesim_profile_refuse(source, "whole file", "must be an object { … }");
    moesim_code code = parse_head(source, root, out);
    if (code == MOESIM_OK)
        code = moesim_profile_keys(source, root, "", known);
    for (const char *const *group = moesim_profile_groups; *group != NULL && code == MOESIM_OK; group++)
        code = parse_group(source, root, *group, out);
    const json_t *cpu = json_object_get(json_object_get(root, "cpu"), "table");
    const json_t *gpu = json_object_get(json_object_get(root, "gpu"), "table");
    if (code == MOESIM_OK && cpu != NULL)
        code = moesim_profile_cpu_table(source, cpu, &out->cpu);
    if (code == MOESIM_OK && gpu != NULL)
        code = moesim_profile_gpu_table(source, gpu, &out->gpu);
    return code;
}

static moesim_code digest(const char *text, size_t bytes, moesim_profile *out, moesim_error *err)
{
    moesim_digest *d;
    const moesim_code code = moesim_digest_create(&d, err);
    if (code != MOESIM_OK)
        return code;
    moesim_digest_update(d, text, bytes);
    moesim_digest_hex(d, out->digest);
    moesim_digest_destroy(&d);
    return MOESIM_OK;
}

moesim_code moesim_profile_parse(const char *text, size_t bytes, const char *where, moesim_profile *out, moesim_error *err)
{
    const moesim_profile_source source = { where, err };
    char plain[sizeof ((json_error_t *)0)->text];
    json_error_t e;
    memset(out, 0, sizeof *out);
    snprintf(out->path, sizeof out->path, "%s", where);
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s:%d:%d: no valid JSON: %s", where, e.line, e.column,
                           moesim_profile_plain(e.text, plain, sizeof plain));
    moesim_code code = parse_root(&source, root, out);
    json_decref(root);
    if (code == MOESIM_OK)
        code = digest(text, bytes, out, err);
    if (code == MOESIM_OK && (code = moesim_profile_check(out, err)) == MOESIM_OK)
        moesim_profile_warn(out);
    return code;
}
