/* SPDX-License-Identifier: Apache-2.0
 *
 * From raw files to a report: reading, the trace, and the same decisions once more.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/cli.h"
#include "cli/fidelity.h"

/* ---- files ----------------------------------------------------------------------------------------------------------- */

moesim_code moesim_fidelity_read(const moesim_list *paths, moesim_replay_file *out, moesim_error *err)
{
    moesim_replay_file part[MOESIM_MOST_RAW];
    const char *path[MOESIM_MOST_RAW];
    moesim_code code = MOESIM_OK;
    size_t n = 0;
    moesim_replay_file_init(out);
    if (paths->n > MOESIM_MOST_RAW)
        return moesim_fail(err, MOESIM_E_USAGE, "option --raw: more than %u files", MOESIM_MOST_RAW);
    for (; code == MOESIM_OK && n < paths->n; n++) {
        path[n] = paths->item[n];
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
    if (strcmp(b->device, "null") == 0 && strcmp(a->device, "null") != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --witness: %s was made on device null, which copies and computes "
                           "nothing: its times bear no witness", r->words->witness);
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
        return moesim_fail(err, MOESIM_E_USAGE, "%s holds no finished cell: nothing was measured to its end; "
                           "give a longer --time-limit, or less to execute", words->raw.item[0]);
    if (open_trace(r, err) != MOESIM_OK || moesim_fidelity_profiles(r, err) != MOESIM_OK ||
        price_experts(r, err) != MOESIM_OK || moesim_fidelity_decide(r, &r->main, err) != MOESIM_OK ||
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
