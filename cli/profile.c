/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim profile: the table of its commands, and what they share.
 */
#include "cli/profile.h"

#include <stddef.h>

#include "cli/cli.h"

const moesim_usage moesim_usage_profile = {
    .command = "moesim profile",
    .synopsis = "COMMAND [NAME] [options]",
    .summary = "Shows hardware profiles and the models that can be priced, and makes profiles: measured ones, and derived ones "
               "for hardware that is not at hand. A profile says what copies and computation cost on one machine.",
};

static const moesim_command commands[] = {
    { "show", &moesim_usage_profile_show, moesim_cmd_profile_show },
    { "models", &moesim_usage_profile_models, moesim_cmd_profile_models },
    { "measure", &moesim_usage_profile_measure, moesim_cmd_profile_measure },
    { "fit", &moesim_usage_profile_fit, moesim_cmd_profile_fit },
    { "derive", &moesim_usage_profile_derive, moesim_cmd_profile_derive },
    { NULL, NULL, NULL },
};

moesim_code moesim_cmd_profile(int argc, char **argv, moesim_error *err)
{
    return moesim_dispatch_command(commands, moesim_usage_profile.command, moesim_usage_profile.summary, argc, argv, err);
}

moesim_code moesim_cli_load_profile(const char *name, const moesim_list *set, moesim_profile *out, moesim_error *err)
{
    moesim_error whole = MOESIM_ERROR_INIT;
    moesim_code code = moesim_profile_load(name, out, err);
    for (size_t i = 0; i < set->n && code == MOESIM_OK; i++)
        code = moesim_profile_set(out, set->item[i], err);
    if (code != MOESIM_OK || set->n == 0 || moesim_profile_check(out, &whole) == MOESIM_OK)
        return code;
    return moesim_fail(err, MOESIM_E_USAGE, "after --set %s: %s", out->overrides, whole.text);
}

const char *moesim_profile_text(double value, const char *unit, char text[32])
{
    if (unit[0] == 'B')
        snprintf(text, 32, "%.6g GB/s", value / 1e9);
    else if (value < 1e-3)
        snprintf(text, 32, "%.6g us", value * 1e6);
    else if (value < 1.0)
        snprintf(text, 32, "%.6g ms", value * 1e3);
    else
        snprintf(text, 32, "%.6g s", value);
    return text;
}
