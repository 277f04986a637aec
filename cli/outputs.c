/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles and policies against outputs.
 */
#include "cli/outputs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "hwprofile/profile.h"

/* An outside policy is given as "PATH" or "PATH:options". */
static moesim_code check_policy(const moesim_policy_spec *spec, const moesim_named_file *output, size_t outputs,
                                moesim_error *err)
{
    char path[PATH_MAX];
    const moesim_named_file input = { "option --policy", path };
    if (spec->library == NULL)
        return MOESIM_OK;
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(spec->given, ":"), spec->given);
    return moesim_check_outputs(&input, 1, output, outputs, err);
}

moesim_code moesim_check_sources(const char *const *profile, size_t profiles, const moesim_policy_spec *policy, size_t policies,
                                 const moesim_named_file *output, size_t outputs, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < profiles && code == MOESIM_OK; i++) {
        const moesim_named_file input = { "option --profile", profile[i] };
        if (moesim_profile_is_file(profile[i]))
            code = moesim_check_outputs(&input, 1, output, outputs, err);
    }
    for (size_t i = 0; i < policies && code == MOESIM_OK; i++)
        code = check_policy(&policy[i], output, outputs, err);
    return code;
}
