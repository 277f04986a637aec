/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be known to be wrong before anything is executed: a grid may take hours, and its report must not then fail for a
 * word that was mistyped.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cachelist.h"
#include "cli/fidelity_run.h"
#include "policies/registry.h"

/* Rows that mean something with --raw, beside those of the report itself. */
static const char *const with_raw[] = { "raw", "told", "set", "format", "csv", "markdown", "result", "witness", "calibrate",
                                       "profile", "decisions", "seed", NULL };

moesim_code moesim_fidelity_check_raw(const moesim_usage *usage, const moesim_fidelity_settings *s,
                                      const moesim_fidelity_settings *initial, moesim_error *err)
{
    moesim_list words = { 0, 0, NULL };
    char *text = NULL;
    moesim_code code = moesim_device_argv(usage->args, s, initial, with_raw, &words, &text, err);
    if (code == MOESIM_OK && words.n > 0)
        code = moesim_fail(err, MOESIM_E_USAGE, "option %.*s has no effect with --raw, which executes nothing",
                           (int)strcspn(words.item[0], "="), words.item[0]);
    moesim_list_fini(&words);
    free(text);
    return code;
}

/* ---- --calibrate ----------------------------------------------------------------------------------------------------- */

typedef struct wanted { const char *name; size_t chars; bool found; } wanted;

static moesim_code is_wanted(void *cookie, const char *name, moesim_error *err)
{
    wanted *w = cookie;
    (void)err;
    w->found = w->found || (strlen(name) == w->chars && strncmp(name, w->name, w->chars) == 0);
    return MOESIM_OK;
}

static moesim_code check_calibrate(const moesim_fidelity_settings *s, moesim_error *err)
{
    const char *text = s->words.calibrate;
    wanted policy = { .name = text };
    moesim_cachelist list = { 0 };
    uint64_t cache = 0;
    bool found = false;
    if (text == NULL || strcmp(text, "none") == 0)
        return MOESIM_OK;
    moesim_code code = moesim_fidelity_calibrate_words(text, &policy.chars, &cache, err);
    for (size_t i = 0; code == MOESIM_OK && i < s->device.policy.n; i++)
        code = moesim_policy_split(s->device.policy.item[i], is_wanted, &policy, err);
    if (code == MOESIM_OK)
        code = moesim_cachelist_parse(&s->device.cache, false, &list, err);
    for (size_t i = 0; i < list.n; i++)
        found = found || list.amount[i] == cache;
    moesim_cachelist_fini(&list);
    if (code == MOESIM_OK && !(policy.found && found))
        code = moesim_fail(err, MOESIM_E_USAGE, "option --calibrate: %.64s is none of the cells of --policy and --cache", text);
    return code;
}

/* ---- all ------------------------------------------------------------------------------------------------------------- */

static moesim_code check_witness(const char *path, moesim_error *err)
{
    moesim_replay_file file;
    moesim_replay_file_init(&file);
    const moesim_code code = path != NULL ? moesim_replay_file_read(path, &file, err) : MOESIM_OK;
    moesim_replay_file_fini(&file);
    return code != MOESIM_OK ? moesim_fail_prefix(err, "option --witness") : code;
}

/* Its warnings come with the execution or the report. */
static moesim_code check_profile(const moesim_fidelity_settings *s, moesim_error *err)
{
    moesim_profile *profile = NULL;
    const char *name = s->device.profile != NULL ? s->device.profile : moesim_profile_names()[0];
    const moesim_code code = moesim_fidelity_profile("--profile", name, &s->words.set, true, &profile, err);
    free(profile);
    return code;
}

moesim_code moesim_fidelity_check_words(const moesim_fidelity_settings *s, moesim_error *err)
{
    if (s->words.trace == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "no trace to execute; give TRACE, or --raw to report on what was executed "
                           "before");
    if (s->words.told != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "option --told goes with --raw; what is executed now is told --profile");
    moesim_code code = check_profile(s, err);
    if (code == MOESIM_OK)
        code = check_calibrate(s, err);
    return code == MOESIM_OK ? check_witness(s->words.witness, err) : code;
}
