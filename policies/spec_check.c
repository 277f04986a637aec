/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of a policy struct, checked before anything of it is used.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/options.h"
#include "policies/registry.h"

#define MAX_OPTIONS 64u
#define MAX_OPTIONS_BYTES 65536u

#define KNOWN_TRAITS (MOESIM_CLAIRVOYANT | MOESIM_KEYS_AGE | MOESIM_RETAIN_AT_PASS | MOESIM_NON_CAUSAL | \
                      MOESIM_MOVES_ALL | MOESIM_PREFETCHES)

static moesim_code broken(moesim_error *err, const char *where, const char *what)
{
    return moesim_fail(err, MOESIM_E_POLICY, "%s: %s", where, what);
}

/* [a-z0-9-]+ */
static bool plain_name(const char *name)
{
    return name != NULL && *name != '\0' && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

static moesim_code check_row(const moesim_option *row, uint32_t bytes, const char *where, moesim_error *err)
{
    static const uint32_t width[] = { 0, 8, 8, 4, 4 };
    if (!plain_name(row->name))
        return moesim_fail(err, MOESIM_E_POLICY, "%s: option name '%s' is not of [a-z0-9-]+", where, row->name);
    if (row->type < MOESIM_OPTION_INT || row->type > MOESIM_OPTION_CHOICE)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: option '%s' has the unknown type %u", where, row->name, row->type);
    const uint32_t w = width[row->type];
    if (row->offset % w != 0 || row->offset > bytes || bytes - row->offset < w)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: option '%s' needs %u aligned bytes at offset %u, but options_size is %u",
                           where, row->name, w, row->offset, bytes);
    if (row->type == MOESIM_OPTION_CHOICE && (row->choices == NULL || row->choices[0] == NULL))
        return moesim_fail(err, MOESIM_E_POLICY, "%s: option '%s' has no choices", where, row->name);
    if (row->type <= MOESIM_OPTION_REAL && !(row->min <= row->max))
        return moesim_fail(err, MOESIM_E_POLICY, "%s: option '%s' has an empty range", where, row->name);
    if (row->def == NULL || row->help == NULL)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: option '%s' lacks a default or a help line", where, row->name);
    return MOESIM_OK;
}

static moesim_code check_default(const moesim_option *row, const char *where, moesim_error *err)
{
    _Alignas(8) unsigned char store[8] = { 0 };
    moesim_option alone[2] = { *row, { .name = NULL } };
    alone[0].offset = 0;
    const moesim_code code = moesim_options_defaults(alone, store, sizeof store, err);
    if (code == MOESIM_OK)
        return code;
    return moesim_fail(err, MOESIM_E_POLICY, "%s: option '%s' has the default '%s', which it does not accept", where,
                       row->name, row->def);
}

static moesim_code check_options(const moesim_policy *p, const char *where, moesim_error *err)
{
    if (p->options_size > MAX_OPTIONS_BYTES)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: options_size %u is above %u bytes", where, p->options_size,
                           MAX_OPTIONS_BYTES);
    if (p->options == NULL)
        return MOESIM_OK;
    for (uint32_t i = 0; p->options[i].name != NULL; i++) {
        if (i == MAX_OPTIONS)
            return moesim_fail(err, MOESIM_E_POLICY, "%s: more than %u options, or no row with a NULL name at the end", where,
                               MAX_OPTIONS);
        moesim_code code = check_row(&p->options[i], p->options_size, where, err);
        if (code == MOESIM_OK)
            code = check_default(&p->options[i], where, err);
        if (code != MOESIM_OK)
            return code;
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(p->options[k].name, p->options[i].name) == 0)
                return moesim_fail(err, MOESIM_E_POLICY, "%s: option '%s' stands twice in its table", where,
                                   p->options[i].name);
    }
    return MOESIM_OK;
}

static moesim_code check_numbers(const moesim_policy *p, const char *where, moesim_error *err)
{
    if (p->abi != MOESIM_POLICY_ABI)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: built for policy ABI %u, this moesim has ABI %u; rebuild it with the "
                           "moesim/policy.h of this moesim", where, p->abi, MOESIM_POLICY_ABI);
    if (p->size != sizeof *p)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: its policy struct has %u bytes, this moesim's has %zu; rebuild it with "
                           "the moesim/policy.h of this moesim", where, p->size, sizeof *p);
    if (p->order > MOESIM_ORDER_ACTIVE)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: unknown order kind %u", where, p->order);
    if (p->host_mode > MOESIM_HOST_BELADY_POOLED)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: unknown host mode %u", where, p->host_mode);
    if ((p->traits & ~(uint32_t)KNOWN_TRAITS) != 0)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: unknown traits 0x%x", where, p->traits & ~(uint32_t)KNOWN_TRAITS);
    if (p->host_mode != MOESIM_HOST_NONE && p->host_mode != MOESIM_HOST_FULL && (p->traits & MOESIM_CLAIRVOYANT) == 0)
        return moesim_fail(err, MOESIM_E_POLICY, "%s: host mode %u looks ahead; it needs the trait MOESIM_CLAIRVOYANT", where,
                           p->host_mode);
    for (int i = 0; p->class_weight != NULL && i < 24; i++)
        if (!isfinite(p->class_weight[i]))
            return moesim_fail(err, MOESIM_E_POLICY, "%s: class_weight[%d][%d] is not finite", where, i / 8, i % 8);
    return MOESIM_OK;
}

static moesim_code check_callbacks(const moesim_policy *p, const char *where, moesim_error *err)
{
    if (p->host_mode == MOESIM_HOST_NONE && p->retain == NULL)
        return broken(err, where, "has no retain callback, which every policy needs");
    if (p->order == MOESIM_ORDER_KEY && p->retain_key == NULL)
        return broken(err, where, "declares an order by key but has no retain_key callback");
    if ((p->traits & MOESIM_RETAIN_AT_PASS) != 0 && p->retain_pass == NULL)
        return broken(err, where, "retains at the end of a pass but has no retain_pass callback");
    return MOESIM_OK;
}

moesim_code moesim_policy_check(const moesim_policy *policy, const char *where, moesim_error *err)
{
    if (policy == NULL)
        return broken(err, where, MOESIM_POLICY_SYMBOL " returned NULL instead of a policy");
    moesim_code code = check_numbers(policy, where, err);
    if (code != MOESIM_OK)
        return code;
    if (!plain_name(policy->name))
        return broken(err, where, "its name is not of [a-z0-9-]+");
    if (policy->summary == NULL || policy->source == NULL)
        return broken(err, where, "lacks a summary or a source line");
    code = check_callbacks(policy, where, err);
    return code != MOESIM_OK ? code : check_options(policy, where, err);
}
