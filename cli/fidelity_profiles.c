/* SPDX-License-Identifier: Apache-2.0
 *
 * The profiles of a report: the one that predicts, and the one that the policies were told when their decisions were
 * executed. A raw file names the latter by path and digest; on another machine the path leads nowhere, so a profile with that
 * digest is looked for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "cli/fidelity.h"
#include "cli/pricing.h"
#include "cli/profile.h"

moesim_code moesim_fidelity_profile(const char *option, const char *name, const moesim_list *set, bool quiet,
                                    moesim_profile **out, moesim_error *err)
{
    moesim_list words = {0};
    char *text = NULL;
    void *p = NULL;
    moesim_code code = moesim_alloc(1, sizeof **out, "a profile", &p, err);
    *out = p;
    if (code == MOESIM_OK && set != NULL)
        code = moesim_pricing_split(set, &words, &text, err);
    if (quiet)
        moesim_log_set_level(MOESIM_LOG_ERROR);
    if (code == MOESIM_OK)
        code = moesim_cli_load_profile(name, &words, *out, err);
    moesim_log_set_level(MOESIM_LOG_WARN);
    if (code == MOESIM_OK && ((*out)->modes >> MOESIM_TIME_MODEL & 1u) == 0)
        code = moesim_fail(err, MOESIM_E_USAGE, "option %s: %s has no constants for mode model, which is what is held against "
                           "measurements", option, (*out)->name);
    moesim_list_fini(&words);
    free(text);
    return code;
}

static bool is_told(const moesim_fidelity_report *r, const moesim_profile *p)
{
    return strcmp(p->digest, r->main.file.config.profile_digest) == 0;
}

/* Loads it into r->told, and its name into *told, if it is there and the one; one that cannot be read is not. `other` keeps
 * the digest of one that could. NOMEM alone is an error. Quiet, as all that is told: who executed was warned, and what predicts
 * too is read again. */
static moesim_code try_told(moesim_fidelity_report *r, const char *name, const char **told, char other[MOESIM_DIGEST_CHARS],
                            moesim_error *err)
{
    moesim_error ignored = MOESIM_ERROR_INIT;
    const moesim_code code = moesim_fidelity_profile("--told", name, NULL, true, &r->told, &ignored);
    if (code == MOESIM_OK && is_told(r, r->told)) {
        *told = name;
        return MOESIM_OK;
    }
    if (code == MOESIM_OK && other != NULL)
        memcpy(other, r->told->digest, MOESIM_DIGEST_CHARS);
    free(r->told);
    r->told = NULL;
    return code == MOESIM_E_NOMEM ? moesim_fail(err, code, "%s", ignored.text) : MOESIM_OK;
}

/* The profile of --told and no other. */
static moesim_code take_told(moesim_fidelity_report *r, moesim_error *err)
{
    const moesim_replay_config *c = &r->main.file.config;
    if (c->profile[0] == '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "option --told: the policies of the raw file read no costs, so they were "
                           "told no profile; leave it out");
    if (moesim_fidelity_profile("--told", r->words->told, NULL, true, &r->told, err) != MOESIM_OK)
        return err->code;
    if (is_told(r, r->told))
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_USAGE, "option --told: %s (sha256 %.12s) is not what the policies were told (%s, sha256 "
                       "%.12s)", r->words->told, r->told->digest, c->profile, c->profile_digest);
}

static moesim_code refuse(const moesim_fidelity_report *r, const char *found, moesim_error *err)
{
    const moesim_replay_config *c = &r->main.file.config;
    if (found[0] != '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "profile %s (sha256 %.12s) is not what the policies were told (sha256 %.12s), "
                           "nor is --profile or a built-in one; give that one with --told", c->profile, found,
                           c->profile_digest);
    return moesim_fail(err, MOESIM_E_USAGE, "the profile that the policies were told (%s, sha256 %.12s) is not on this "
                       "machine, and neither --profile nor a built-in one is the same; give its file with --told", c->profile,
                       c->profile_digest);
}

/* --told, or else the first with the recorded digest of: the recorded path, --profile, the built-in ones. */
static moesim_code find_told(moesim_fidelity_report *r, const char **told, moesim_error *err)
{
    const moesim_replay_config *c = &r->main.file.config;
    char found[MOESIM_DIGEST_CHARS] = "";
    *told = r->words->told;
    if (*told != NULL)
        return take_told(r, err);
    if (c->profile[0] == '\0')
        return MOESIM_OK;
    moesim_code code = try_told(r, c->profile, told, found, err);
    if (code == MOESIM_OK && r->told == NULL && r->words->profile != NULL)
        code = try_told(r, r->words->profile, told, NULL, err);
    for (const char *const *name = moesim_profile_names(); code == MOESIM_OK && r->told == NULL && *name != NULL; name++)
        code = try_told(r, *name, told, NULL, err);
    return code == MOESIM_OK && r->told == NULL ? refuse(r, found, err) : code;
}

moesim_code moesim_fidelity_profiles(moesim_fidelity_report *r, moesim_error *err)
{
    void *p = NULL;
    const char *told = NULL;
    if (find_told(r, &told, err) != MOESIM_OK)
        return err->code;
    /* read again where it predicts too: --set is for predictions alone */
    const char *name = r->words->profile != NULL ? r->words->profile : told != NULL ? told : moesim_profile_names()[0];
    if (moesim_fidelity_profile("--profile", name, &r->words->set, r->words->warned, &r->profile, err) != MOESIM_OK ||
        moesim_alloc(1, sizeof *r->fitted, "a profile", &p, err) != MOESIM_OK)
        return err->code;
    r->fitted = p;
    *r->fitted = *r->profile;
    return MOESIM_OK;
}
