/* SPDX-License-Identifier: Apache-2.0
 *
 * From raw files to a report: reading, the trace, the profile, and the same decisions once more.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/cli.h"
#include "cli/fidelity.h"
#include "cli/pricing.h"
#include "cli/profile.h"

/* ---- files ----------------------------------------------------------------------------------------------------------- */

moesim_code moesim_fidelity_read(const moesim_list *words, moesim_replay_file *out, moesim_error *err)
{
    moesim_replay_file part[MOESIM_MOST_RAW];
    const char *path[MOESIM_MOST_RAW];
    moesim_list names = {0};
    char *text = NULL;
    size_t n = 0;
    moesim_replay_file_init(out);
    moesim_code code = moesim_pricing_split(words, &names, &text, err);
    if (code == MOESIM_OK && names.n > MOESIM_MOST_RAW)
        code = moesim_fail(err, MOESIM_E_USAGE, "option --raw: more than %u files", MOESIM_MOST_RAW);
    for (; code == MOESIM_OK && n < names.n; n++) {
        path[n] = names.item[n];
        code = moesim_replay_file_read(path[n], &part[n], err);
        if (code != MOESIM_OK)
            break;
    }
    if (code == MOESIM_OK && n == 1)
        *out = part[0];
    else if (code == MOESIM_OK)
        code = moesim_replay_merge(part, path, n, out, err);
    else
        for (size_t i = 0; i < n; i++)
            moesim_replay_file_fini(&part[i]);
    moesim_list_fini(&names);
    free(text);
    return code;
}

static moesim_code open_trace(moesim_fidelity_report *r, moesim_error *err)
{
    const moesim_replay_config *c = &r->main.file.config;
    const char *path = r->words->trace != NULL ? r->words->trace : c->trace;
    if (moesim_cli_open_trace(path, false, &r->trace, err) != MOESIM_OK)
        return r->words->trace != NULL
                   ? err->code : moesim_fail_prefix(err, "the trace that the raw file names (give it as the first word)");
    r->info = moesim_trace_get_info(r->trace);
    if (moesim_trace_digest(r->trace, err) != MOESIM_OK)
        return err->code;
    if (strcmp(r->info->digest, c->trace_digest) != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "%s (sha256 %.12s) is not the trace that was executed (%s, sha256 %.12s)", path,
                           r->info->digest, c->trace, c->trace_digest);
    return MOESIM_OK;
}

static moesim_code load_profile(const char *name, const moesim_list *set, moesim_profile **out, moesim_error *err)
{
    moesim_list words = {0};
    char *text = NULL;
    void *p = NULL;
    moesim_code code = moesim_alloc(1, sizeof **out, "a profile", &p, err);
    *out = p;
    if (code == MOESIM_OK && set != NULL)
        code = moesim_pricing_split(set, &words, &text, err);
    if (code == MOESIM_OK)
        code = moesim_cli_load_profile(name, &words, *out, err);
    if (code == MOESIM_OK && ((*out)->modes >> MOESIM_TIME_MODEL & 1u) == 0)
        code = moesim_fail(err, MOESIM_E_USAGE, "option --profile: %s has no constants for mode model, which is what is held "
                           "against measurements", (*out)->name);
    moesim_list_fini(&words);
    free(text);
    return code;
}

static moesim_code load_profiles(moesim_fidelity_report *r, moesim_error *err)
{
    const moesim_replay_config *c = &r->main.file.config;
    const char *told = c->profile[0] != '\0' ? c->profile : NULL;
    const char *name = r->words->profile != NULL ? r->words->profile : told != NULL ? told : moesim_profile_names()[0];
    void *p = NULL;
    if (load_profile(name, &r->words->set, &r->profile, err) != MOESIM_OK ||
        moesim_alloc(1, sizeof *r->fitted, "a profile", &p, err) != MOESIM_OK)
        return err->code;
    r->fitted = p;
    *r->fitted = *r->profile;
    if (told == NULL)
        return MOESIM_OK;
    /* the file may lie elsewhere now */
    if (strcmp(r->profile->digest, c->profile_digest) == 0)
        told = name;
    if (load_profile(told, NULL, &r->told, err) != MOESIM_OK)
        return moesim_fail_prefix(err, "the profile that the policies were told");
    if (strcmp(r->told->digest, c->profile_digest) != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "profile %s (sha256 %.12s) is not what the policies were told (sha256 %.12s); "
                           "give that one with --profile", told, r->told->digest, c->profile_digest);
    return MOESIM_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------- */

static moesim_code price_experts(moesim_fidelity_report *r, moesim_error *err)
{
    const moesim_replay_config *c = &r->main.file.config;
    void *p = NULL;
    if (c->num_layers != r->info->num_layers || c->num_experts != r->info->num_experts)
        return moesim_fail(err, MOESIM_E_FORMAT, "the raw file says %" PRIu64 " layers of %" PRIu64 " experts, its trace has %"
                           PRIu32 " of %" PRIu32, c->num_layers, c->num_experts, r->info->num_layers, r->info->num_experts);
    if (moesim_alloc(r->info->num_layers, sizeof *r->expert_bytes, "expert sizes", &p, err) != MOESIM_OK)
        return err->code;
    r->expert_bytes = p;
    for (uint32_t l = 0; l < r->info->num_layers; l++)
        r->expert_bytes[l] = 6 * c->hidden * c->intermediate;    /* three matrices in bf16 */
    return MOESIM_OK;
}

static moesim_code load_witness(moesim_fidelity_report *r, moesim_error *err)
{
    const moesim_replay_config *a = &r->main.file.config, *b = &r->witness.file.config;
    if (moesim_replay_file_read(r->words->witness, &r->witness.file, err) != MOESIM_OK)
        return err->code;
    if (strcmp(a->trace_digest, b->trace_digest) != 0 || a->request_begin != b->request_begin ||
        a->request_end != b->request_end || a->warmup != b->warmup || a->hidden != b->hidden ||
        a->intermediate != b->intermediate)
        return moesim_fail(err, MOESIM_E_USAGE, "option --witness: %s is of another trace, other requests or other sizes of "
                           "experts", r->words->witness);
    if (moesim_fidelity_decide(r, &r->witness, err) != MOESIM_OK)
        return moesim_fail_prefix(err, "option --witness");
    return moesim_fidelity_compare(r, &r->witness, false, err);
}

moesim_code moesim_fidelity_load(const moesim_fidelity_words *words, moesim_fidelity_report *r, moesim_error *err)
{
    memset(r, 0, sizeof *r);
    r->words = words;
    moesim_replay_file_init(&r->witness.file);
    if (moesim_fidelity_read(&words->raw, &r->main.file, err) != MOESIM_OK)
        return err->code;
    if (r->main.file.num_cells == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "%s holds no finished cell: nothing was measured to its end",
                           words->raw.item[0]);
    if (open_trace(r, err) != MOESIM_OK || load_profiles(r, err) != MOESIM_OK || price_experts(r, err) != MOESIM_OK ||
        moesim_fidelity_decide(r, &r->main, err) != MOESIM_OK ||
        moesim_fidelity_compare(r, &r->main, true, err) != MOESIM_OK)
        return err->code;
    return words->witness != NULL ? load_witness(r, err) : MOESIM_OK;
}

static void fini_set(moesim_fidelity_set *s)
{
    for (size_t i = 0; s->replayed != NULL && i < s->file.num_plans; i++)
        moesim_works_fini(&s->replayed[i].works);
    for (size_t i = 0; s->executed != NULL && i < s->num_cells; i++) {
        free(s->executed[i].measured);
        free(s->executed[i].busy);
        free(s->executed[i].misses);
        for (size_t v = 0; v < MOESIM_VARIANTS; v++)
            moesim_prediction_fini(&s->executed[i].prediction[v]);
    }
    free(s->replayed);
    free(s->executed);
    free(s->cell);
    free(s->pass);
    free(s->tokens);
    moesim_fidelity_fini(&s->result);
    moesim_replay_file_fini(&s->file);
}

void moesim_fidelity_report_fini(moesim_fidelity_report *r)
{
    fini_set(&r->main);
    fini_set(&r->witness);
    free(r->profile);
    free(r->told);
    free(r->fitted);
    free(r->expert_bytes);
    moesim_trace_close(&r->trace);
    memset(r, 0, sizeof *r);
}
