/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of the command line to profile, switches and sizes.
 */
#include "cli/pricing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/options.h"
#include "base/text.h"
#include "cli/print.h"
#include "cli/run_text.h"

const char *const moesim_time_names[] = { "count", "paper", "model", NULL };

moesim_code moesim_pricing_split(const moesim_list *words, moesim_list *out, char **text, moesim_error *err)
{
    size_t bytes = 1;
    for (size_t i = 0; i < words->n; i++)
        bytes += strlen(words->item[i]) + 1;
    void *p = NULL;
    moesim_code code = moesim_alloc(bytes, 1, "words", &p, err);
    *text = p;
    char *at = p;
    for (size_t i = 0; i < words->n && code == MOESIM_OK; i++) {
        const size_t n = strlen(words->item[i]);
        char *rest = memcpy(at, words->item[i], n + 1);
        at += n + 1;
        while (rest != NULL && code == MOESIM_OK)
            code = moesim_list_add(out, strsep(&rest, ","), err);
    }
    return code;
}

/* ---- mode and profile -------------------------------------------------------------------------------------------- */

static moesim_code no_time(const char *option, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_USAGE, "option --%s has no effect on counts; give --profile or --time model with it",
                       option);
}

static moesim_code check_count(const moesim_pricing_words *w, moesim_error *err)
{
    if (w->profile != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "option --profile: --time count reads no profile; leave one of them out");
    if (w->set.n > 0)
        return no_time("set", err);
    if (w->without.n > 0)
        return no_time("without", err);
    return w->bandwidth ? no_time("bandwidth", err) : MOESIM_OK;
}

static moesim_code load_profile(const moesim_pricing_words *w, moesim_pricing *out, moesim_error *err)
{
    moesim_list set = { 0 };
    char *text = NULL;
    void *p = NULL;
    moesim_code code = moesim_alloc(1, sizeof *out->profile, "a profile", &p, err);
    out->profile = p;
    if (code == MOESIM_OK)
        code = moesim_pricing_split(&w->set, &set, &text, err);
    if (code == MOESIM_OK)
        code = moesim_cli_load_profile(w->profile != NULL ? w->profile : moesim_profile_names()[0], &set, out->profile, err);
    moesim_list_fini(&set);
    free(text);
    return code;
}

/* "paper-a or paper-b": the built-in profiles with constants for a mode. */
static const char *names_with(enum moesim_time_mode mode, moesim_profile *room, char *out, size_t bytes)
{
    moesim_error ignored = { 0 };
    out[0] = '\0';
    for (const char *const *name = moesim_profile_names(); *name != NULL; name++)
        if (moesim_profile_load(*name, room, &ignored) == MOESIM_OK && (room->modes >> (unsigned)mode & 1u) != 0)
            moesim_text_add(out, bytes, "%s%s", out[0] != '\0' ? " or " : "", *name);
    return out;
}

static moesim_code no_constants(moesim_pricing *out, moesim_error *err)
{
    char chosen[sizeof out->profile->name], names[256];
    const char *only = moesim_time_names[out->profile->default_mode];
    memcpy(chosen, out->profile->name, sizeof chosen);
    return moesim_fail(err, MOESIM_E_USAGE, "option --time: profile %s has no constants for mode %s, only for mode %s; "
                       "--profile %s has them", chosen, moesim_time_names[out->mode], only,
                       names_with(out->mode, out->profile, names, sizeof names));
}

/* overrides: "key=value,…". */
static bool sets_bandwidth(const moesim_profile *p)
{
    static const char key[] = "link.bandwidth=";
    const char *at = strstr(p->overrides, key);
    return at != NULL && (at == p->overrides || at[-1] == ',');
}

static moesim_code choose_mode(const moesim_pricing_words *w, moesim_pricing *out, moesim_error *err)
{
    out->mode = w->time >= 0 ? (enum moesim_time_mode)w->time : MOESIM_TIME_COUNT;
    if (out->mode == MOESIM_TIME_COUNT && (w->time >= 0 || w->profile == NULL))
        return check_count(w, err);
    if (load_profile(w, out, err) != MOESIM_OK)
        return err->code;
    if (w->bandwidth && sets_bandwidth(out->profile))
        return moesim_fail(err, MOESIM_E_USAGE, "options --bandwidth and --set link.bandwidth both say how fast the link is; "
                           "give one of them");
    if (w->time < 0)
        out->mode = out->profile->default_mode;
    if ((out->profile->modes >> (unsigned)out->mode & 1u) == 0)
        return no_constants(out, err);
    return MOESIM_OK;
}

static moesim_code switch_off(const char *word, moesim_pricing *out, moesim_error *err)
{
    for (uint32_t i = 0; moesim_effect_names[i] != NULL; i++)
        if (strcmp(moesim_effect_names[i], word) == 0) {
            out->effects &= ~(1u << i);
            return MOESIM_OK;
        }
    char all[128] = "";
    for (size_t i = 0, used = 0; moesim_effect_names[i] != NULL; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", moesim_effect_names[i]);
    const char *nearest = moesim_nearest(word, moesim_effect_names);
    return moesim_fail(err, MOESIM_E_USAGE, "option --without: '%.64s' is none of %s%s%s%s", word, all,
                       nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "'?" : "");
}

static moesim_code choose_effects(const moesim_pricing_words *w, moesim_pricing *out, moesim_error *err)
{
    moesim_list words = { 0 };
    char *text = NULL;
    out->effects = MOESIM_EFFECT_ALL;
    if (w->without.n > 0 && out->mode == MOESIM_TIME_PAPER)
        return moesim_fail(err, MOESIM_E_USAGE, "option --without: mode paper has none of the effects that can be switched "
                           "off; they belong to --time model");
    moesim_code code = moesim_pricing_split(&w->without, &words, &text, err);
    for (size_t i = 0; i < words.n && code == MOESIM_OK; i++)
        code = switch_off(words.item[i], out, err);
    moesim_list_fini(&words);
    free(text);
    return code;
}

/* ---- sizes --------------------------------------------------------------------------------------------------------- */

static moesim_code check_model(const moesim_geometry *g, const moesim_trace_info *t, moesim_error *err)
{
    if (g->experts != t->num_experts)
        return moesim_fail(err, MOESIM_E_USAGE, "option --as: %s has %" PRIu32 " experts a layer, this trace %" PRIu32
                           "; name a model that has as many ('moesim profile models')", g->name, g->experts, t->num_experts);
    if (g->top_k != t->top_k)
        return moesim_fail(err, MOESIM_E_USAGE, "option --as: %s routes to the top %" PRIu32 " experts, this trace to the top %"
                           PRIu32 "; name a model that does the same ('moesim profile models')", g->name, g->top_k, t->top_k);
    return MOESIM_OK;
}

static moesim_code take_model(const moesim_trace_info *t, moesim_pricing *out, moesim_error *err)
{
    const moesim_geometry *g = out->model;
    void *p = NULL;
    if (check_model(g, t, err) != MOESIM_OK ||
        moesim_alloc(t->num_layers, sizeof *out->expert_bytes, "expert sizes", &p, err) != MOESIM_OK)
        return err->code;
    out->expert_bytes = p;
    for (uint32_t l = 0; l < t->num_layers; l++)
        out->expert_bytes[l] = moesim_geometry_expert_bytes(g, out->dtype);
    out->hidden_bytes = UINT64_C(2) * g->hidden;
    const char *of = t->model_id[0] != '\0' ? t->model_id : "an unnamed model";
    const int n = snprintf(out->priced_as, sizeof out->priced_as, "routing of %s priced as %s, %s", of, g->name,
                           moesim_dtype_names[out->dtype]);
    if (g->moe_layers != t->num_layers)
        snprintf(out->priced_as + n, sizeof out->priced_as - (size_t)n, " (%" PRIu32 " layers there, %" PRIu32 " here)",
                 g->moe_layers, t->num_layers);
    return MOESIM_OK;
}

/* Mode paper has the times of one model on one machine, whatever trace they are laid under. */
static void take_times(const moesim_trace_info *t, moesim_pricing *out)
{
    const moesim_profile *p = out->profile;
    const char *of = t->model_id[0] != '\0' ? t->model_id : "an unnamed model";
    snprintf(out->priced_as, sizeof out->priced_as, "routing of %s with the times of %s%s%s%s", of,
             p->times_of[0] != '\0' ? p->times_of : "profile ", p->times_of[0] != '\0' ? " (" : "", p->name,
             p->times_of[0] != '\0' ? ")" : "");
}

static moesim_code choose_sizes(const moesim_pricing_words *w, const moesim_trace_info *t, moesim_pricing *out,
                                moesim_error *err)
{
    if (w->dtype >= 0 && w->as == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "option --dtype goes with --as MODEL; without it the trace's own sizes count");
    if (w->as != NULL && out->mode == MOESIM_TIME_PAPER)
        return moesim_fail(err, MOESIM_E_USAGE, "option --as: mode paper takes its times from the profile, whatever the size "
                           "of an expert; give a profile with --time model");
    if (out->mode == MOESIM_TIME_PAPER)
        take_times(t, out);
    out->dtype = w->dtype >= 0 ? (enum moesim_dtype)w->dtype : MOESIM_BF16;
    if (w->as != NULL)
        return moesim_geometry_find(w->as, &out->model, err) == MOESIM_OK ? take_model(t, out, err) : err->code;
    out->hidden_bytes = 2 * t->hidden_size;
    if (out->mode == MOESIM_TIME_MODEL && t->hidden_size == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "%s does not say its hidden size, which times need; name a model of known "
                           "sizes with --as MODEL ('moesim profile models' lists them)", t->path);
    return MOESIM_OK;
}

moesim_code moesim_pricing_load(const moesim_pricing_words *words, const moesim_trace_info *trace, moesim_pricing *out,
                                moesim_error *err)
{
    memset(out, 0, sizeof *out);
    if (choose_mode(words, out, err) != MOESIM_OK || choose_effects(words, out, err) != MOESIM_OK)
        return err->code;
    return choose_sizes(words, trace, out, err);
}

void moesim_pricing_fini(moesim_pricing *pricing)
{
    free(pricing->profile);
    free(pricing->expert_bytes);
    memset(pricing, 0, sizeof *pricing);
}

bool moesim_pricing_missing(const moesim_policy_spec *spec)
{
    const uint32_t needs = spec->policy->needs != NULL ? spec->policy->needs(spec->options) : 0;
    return (needs & MOESIM_NEED_COSTS) != 0;
}

/* ---- what is said of it -------------------------------------------------------------------------------------------- */

const char *moesim_pricing_caution(const moesim_pricing *pricing)
{
    static const struct { const char *label, *text; } caution[] = {
        { "provisional", "provisional: not to be cited" },
        { "derived", "derived from a publication's text, not measured" },
        { "not measured", "not measured: derived from nominal rates" },
        { "neutral", "neutral: round numbers of no particular machine" },
    };
    for (size_t i = 0; pricing->profile != NULL && i < sizeof caution / sizeof caution[0]; i++)
        if (strcmp(pricing->profile->label, caution[i].label) == 0)
            return caution[i].text;
    return "";
}

static void print_without(const moesim_pricing *p, FILE *out)
{
    const char *between = "          without ";
    for (uint32_t i = 0; moesim_effect_names[i] != NULL; i++)
        if ((p->effects >> i & 1u) == 0) {
            fprintf(out, "%s%s", between, moesim_effect_names[i]);
            between = ", ";
        }
    if (p->effects != MOESIM_EFFECT_ALL)
        fputc('\n', out);
}

void moesim_pricing_print(const moesim_pricing *p, FILE *out)
{
    if (p->mode != MOESIM_TIME_COUNT) {
        fprintf(out, "time      mode %s, profile ", moesim_time_names[p->mode]);
        moesim_text_clipped(out, p->profile->name, 40);
        fprintf(out, " (sha256 %.12s)\n", p->profile->digest);
        if (moesim_pricing_caution(p)[0] != '\0')
            fprintf(out, "          %s\n", moesim_pricing_caution(p));
        if (p->profile->overrides[0] != '\0') {
            fputs("          set ", out);
            moesim_text_clipped(out, p->profile->overrides, 66);
            fputc('\n', out);
        }
        print_without(p, out);
    }
    if (p->priced_as[0] != '\0')
        moesim_args_row(out, p->model != NULL ? "sizes" : "times of", 0, 10, p->priced_as);
}

void moesim_pricing_json(const moesim_pricing *p, json_t *object)
{
    if (p->mode != MOESIM_TIME_COUNT) {
        json_t *profile = json_object(), *without = json_array();
        for (uint32_t i = 0; moesim_effect_names[i] != NULL; i++)
            if ((p->effects >> i & 1u) == 0)
                json_array_append_new(without, json_string(moesim_effect_names[i]));
        json_object_set_new(profile, "name", moesim_json_text(p->profile->name));
        json_object_set_new(profile, "label", moesim_json_text(p->profile->label));
        json_object_set_new(profile, "digest", json_string(p->profile->digest));
        json_object_set_new(profile, "overrides", moesim_json_text(p->profile->overrides));
        json_object_set_new(object, "time", json_string(moesim_time_names[p->mode]));
        json_object_set_new(object, "profile", profile);
        json_object_set_new(object, "without", without);
    }
    if (p->model != NULL) {
        json_object_set_new(object, "as", json_string(p->model->name));
        json_object_set_new(object, "dtype", json_string(moesim_dtype_names[p->dtype]));
    }
    if (p->priced_as[0] != '\0')
        json_object_set_new(object, "priced_as", moesim_json_text(p->priced_as));
}
