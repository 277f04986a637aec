/* SPDX-License-Identifier: Apache-2.0
 *
 * Option strings: "name", "name:key=value,…", "./file.so", "./file.so:key=value,…".
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/options.h"
#include "policies/load.h"
#include "policies/registry.h"

#define MAX_SPEC 8192u   /* most characters of one option string */

/* Length of the part of text that names the policy. A path may hold colons before its ".so". */
static size_t name_chars(const char *text, bool *outside)
{
    for (const char *so = strstr(text, ".so"); so != NULL; so = strstr(so + 1, ".so")) {
        if (so != text && (so[3] == '\0' || so[3] == ':')) {
            *outside = true;
            return (size_t)(so + 3 - text);
        }
    }
    const size_t plain = strcspn(text, ":");
    *outside = memchr(text, '/', plain) != NULL;
    return plain;
}

static moesim_code fail_name(const char *name, moesim_error *err)
{
    if (strchr(name, ',') != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "'%s' is no policy: one with options stands alone; repeat --policy for each, "
                           "as in --policy lru --policy oled:confidence=none", name);
    const moesim_policy *const *all = moesim_policies();
    const char *names[64];
    size_t n = 0;
    while (n < 63 && all[n] != NULL) {
        names[n] = all[n]->name;
        n++;
    }
    names[n] = NULL;
    const char *nearest = moesim_nearest(name, names);
    if (nearest != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "unknown policy '%s'; did you mean '%s'?", name, nearest);
    return moesim_fail(err, MOESIM_E_USAGE, "unknown policy '%s'; 'moesim policies' lists them, and a policy of your own is "
                       "given by its path, as in ./mine.so", name);
}

static moesim_code find(moesim_policy_spec *spec, const char *name, bool outside, moesim_error *err)
{
    if (outside)
        return moesim_policy_load(name, &spec->policy, &spec->library, err);
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++)
        if (strcmp((*p)->name, name) == 0)
            spec->policy = *p;
    return spec->policy != NULL ? MOESIM_OK : fail_name(name, err);
}

static moesim_code read_options(moesim_policy_spec *spec, const char *text, const char *owner, moesim_error *err)
{
    const moesim_policy *p = spec->policy;
    moesim_code code = MOESIM_OK;
    if (p->options_size > 0) {
        code = moesim_alloc(p->options_size, 1, "policy options", &spec->options, err);
        if (code == MOESIM_OK)
            code = moesim_options_defaults(p->options, spec->options, p->options_size, err);
    }
    if (code == MOESIM_OK && text != NULL)
        code = moesim_options_parse(p->options, spec->options, text, owner, err);
    if (code != MOESIM_OK)
        return code;
    const size_t chars = moesim_options_print(p->options, spec->options, NULL, 0);
    code = moesim_alloc(chars + 1, 1, "policy options", (void **)&spec->effective, err);
    if (code == MOESIM_OK)
        moesim_options_print(p->options, spec->options, spec->effective, chars + 1);
    return code;
}

/* What only the options at hand decide. */
static moesim_code check_needs(const moesim_policy_spec *spec, const char *owner, moesim_error *err)
{
    const moesim_policy *p = spec->policy;
    const uint32_t needs = p->needs != NULL ? p->needs(spec->options) : 0;
    if ((needs & MOESIM_NEED_CLASS) != 0 && p->class_weight == NULL)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: needs class sums but has no class_weight table", owner);
    if (needs >= MOESIM_NEED_PREVIOUS << 1)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: needs() returns bits unknown to this moesim (0x%x)", owner, needs);
    return MOESIM_OK;
}

static moesim_code init(moesim_policy_spec *spec, const char *text, moesim_error *err)
{
    bool outside;
    const size_t length = strlen(text), chars = name_chars(text, &outside);
    const char *options = text[chars] == ':' ? text + chars + 1 : NULL;
    if (length > MAX_SPEC)
        return moesim_fail(err, MOESIM_E_USAGE, "a policy string is longer than %u characters", MAX_SPEC);
    if (chars == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "'%s' names no policy; 'moesim policies' lists them", text);
    if (options != NULL && *options == '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "'%s' ends in ':' without an option; drop it or write key=value", text);
    moesim_code code = moesim_alloc(length + 1, 1, "policy name", (void **)&spec->given, err);
    if (code != MOESIM_OK)
        return code;
    memcpy(spec->given, text, chars);   /* the rest is zero: for now the name alone */
    code = find(spec, spec->given, outside, err);
    if (code == MOESIM_OK)
        code = read_options(spec, options, spec->given, err);
    if (code == MOESIM_OK)
        code = check_needs(spec, spec->given, err);
    memcpy(spec->given, text, length);
    return code;
}

moesim_code moesim_policy_spec_init(moesim_policy_spec *spec, const char *text, moesim_error *err)
{
    memset(spec, 0, sizeof *spec);
    const moesim_code code = init(spec, text, err);
    if (code != MOESIM_OK)
        moesim_policy_spec_fini(spec);
    return code;
}

void moesim_policy_spec_fini(moesim_policy_spec *spec)
{
    free(spec->options);
    free(spec->given);
    free(spec->effective);
    if (spec->library != NULL)
        dlclose(spec->library);
    memset(spec, 0, sizeof *spec);
}

moesim_code moesim_policy_spec_add(moesim_policy_spec *list, size_t *n, size_t most, const char *word, const char *text,
                                   moesim_error *err)
{
    if (*n == most)
        return moesim_fail(err, MOESIM_E_USAGE, "more than %zu policies", most);
    moesim_policy_spec *spec = &list[*n];
    const moesim_code code = moesim_policy_spec_init(spec, text, err);
    if (code != MOESIM_OK)
        return code;
    ++*n;
    for (const moesim_policy_spec *other = list; other < spec; other++) {
        const bool alike = strcmp(other->given, spec->given) == 0;
        if (strcmp(other->policy->name, spec->policy->name) == 0 && strcmp(other->effective, spec->effective) == 0)
            return moesim_fail(err, MOESIM_E_USAGE, "%s '%s' is given twice%s%s%s", word, spec->given,
                               alike ? "" : " (first as '", alike ? "" : other->given, alike ? "" : "')");
    }
    return MOESIM_OK;
}

moesim_code moesim_policy_split(const char *text, moesim_code (*each)(void *cookie, const char *name, moesim_error *err),
                                void *cookie, moesim_error *err)
{
    char name[MAX_SPEC + 1];
    if (strchr(text, ':') != NULL)
        return each(cookie, text, err);
    for (;;) {
        const size_t chars = strcspn(text, ",");
        if (chars == 0 || chars > MAX_SPEC)
            return moesim_fail(err, MOESIM_E_USAGE, "a list of policies has %s name", chars == 0 ? "an empty" : "too long a");
        memcpy(name, text, chars);
        name[chars] = '\0';
        const moesim_code code = each(cookie, name, err);
        if (code != MOESIM_OK || text[chars] == '\0')
            return code;
        text += chars + 1;
    }
}
