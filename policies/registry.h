/* SPDX-License-Identifier: Apache-2.0
 *
 * Names to policies: the built-in table, presets, option strings, outside policies.
 */
#ifndef MOESIM_POLICIES_REGISTRY_H
#define MOESIM_POLICIES_REGISTRY_H

#include <stddef.h>

#include "base/error.h"
#include "moesim/policy.h"

/* NULL-ended. */
const moesim_policy *const *moesim_policies(void);

/* A policy with options: what "oled:confidence=lag1" or "./mine.so:opt=1" names. */
typedef struct moesim_policy_spec {
    const moesim_policy *policy;
    void *options;               /* owned; NULL for a policy without options */
    char *given;                 /* owned: the string as given */
    char *effective;             /* owned: "key=value,…" of all options, "" without options */
    void *library;               /* dlopen handle of an outside policy */
} moesim_policy_spec;

/* Checks abi, size, required callbacks, option table. Unknown names and options suggest the nearest one. A name with a '/' or
 * ending in .so is an outside policy. */
moesim_code moesim_policy_spec_init(moesim_policy_spec *spec, const char *text, moesim_error *err);
void moesim_policy_spec_fini(moesim_policy_spec *spec);

/* Adds a policy to a list with room for `most`; the caller ends all *n, also after an error. USAGE: no room, or the same policy
 * with the same options is there, however it is written. word: what it is called in messages ("policy"). */
moesim_code moesim_policy_spec_add(moesim_policy_spec *list, size_t *n, size_t most, const char *word, const char *text,
                                   moesim_error *err);

/* Splits "a,b,c" into option-less names (a text with ':' is one policy). Calls back per name. */
moesim_code moesim_policy_split(const char *text, moesim_code (*each)(void *cookie, const char *name, moesim_error *err),
                                void *cookie, moesim_error *err);

/* Checks a policy struct's contract (used for built-in ones too, by a test). */
moesim_code moesim_policy_check(const moesim_policy *policy, const char *where, moesim_error *err);

#endif
