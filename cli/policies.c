/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim policies: what can be written after --policy.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "base/options.h"
#include "policies/registry.h"

#define VALUE_CHARS 128u

typedef struct settings { int format; } settings;

static const moesim_arg args[] = {
    { .name = "format", .type = MOESIM_ARG_CHOICE, .offset = offsetof(settings, format), .choices = moesim_formats,
      .help = "How to print; a table is the default." },
    { .name = NULL },
};

const moesim_usage moesim_usage_policies = {
    .command = "moesim policies",
    .synopsis = "[NAME] [options]",
    .summary = "Lists the policies, or describes one with its options. NAME is a built-in policy, or the path of an outside "
               "policy's shared object; options may follow as in --policy, and are then shown with their values.",
    .examples = "  moesim policies\n  moesim policies oled\n  moesim policies ./mine.so --format json\n",
    .args = args,
    .min_positional = 0,
    .max_positional = 1,
};

static const struct { uint32_t bit; const char *text; } need_names[] = {
    { MOESIM_NEED_GATE, "gate scores" },
    { MOESIM_NEED_CONFIDENCE, "confidence" },
    { MOESIM_NEED_PROB, "router probabilities" },
    { MOESIM_NEED_COSTS, "a cost profile" },
    { MOESIM_NEED_PRIOR, "totals of another trace" },
};

/* Host modes without knowledge of the future are still no rules that a system could follow. */
static const char *kind_of(const moesim_policy *policy)
{
    if ((policy->traits & MOESIM_CLAIRVOYANT) != 0)
        return "clairvoyant";
    if (policy->host_mode != MOESIM_HOST_NONE)
        return "bound";
    return (policy->traits & MOESIM_NON_CAUSAL) != 0 ? "non-causal" : "causal";
}

static const char *type_of(const moesim_option *o)
{
    static const char *const name[] = { "", "integer", "real", "switch", "choice" };
    return name[o->type];
}

static void range_of(const moesim_option *o, char *out, size_t size)
{
    size_t used = 0;
    switch (o->type) {
    case MOESIM_OPTION_INT:
    case MOESIM_OPTION_REAL:
        snprintf(out, size, "%.12g to %.12g", o->min, o->max);
        break;
    case MOESIM_OPTION_CHOICE:
        for (size_t i = 0; o->choices[i] != NULL && used < size; i++) {
            const int n = snprintf(out + used, size - used, "%s%s", i > 0 ? " | " : "", o->choices[i]);
            used += n > 0 ? (size_t)n : 0;
        }
        break;
    default:
        snprintf(out, size, "off | on");
        break;
    }
}

/* Names everything that the policy with these options asks of the trace or the run; returns the length. */
static size_t needs_text(const moesim_policy_spec *spec, char *out, size_t size)
{
    const uint32_t needs = spec->policy->needs != NULL ? spec->policy->needs(spec->options) : 0;
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof need_names / sizeof need_names[0]; i++) {
        if ((needs & need_names[i].bit) == 0 || used >= size)
            continue;
        const int n = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", need_names[i].text);
        used += n > 0 ? (size_t)n : 0;
    }
    return used;
}

/* ---- all policies ---------------------------------------------------------------------------------------------- */

static void list_table(void)
{
    char left[64];
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++) {
        snprintf(left, sizeof left, "%-14s %s", (*p)->name, kind_of(*p));
        moesim_args_row(stdout, left, 0, 28, (*p)->summary);
    }
    fputs("\n'moesim policies NAME' shows the options of one.\n", stdout);
}

static void list_csv(void)
{
    fputs("policy,kind,options,summary,source\n", stdout);
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++) {
        size_t n = 0;
        while ((*p)->options != NULL && (*p)->options[n].name != NULL)
            n++;
        printf("%s,%s,%zu,", (*p)->name, kind_of(*p), n);
        moesim_print_csv(stdout, (*p)->summary);
        putchar(',');
        moesim_print_csv(stdout, (*p)->source);
        putchar('\n');
    }
}

static json_t *json_option(const moesim_option *o, const char *value)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", o->name, "type", type_of(o), "default", o->def, "value",
                            value, "help", o->help);
    if (o->type == MOESIM_OPTION_INT || o->type == MOESIM_OPTION_REAL) {
        json_object_set_new(row, "min", moesim_json_real(o->min));
        json_object_set_new(row, "max", moesim_json_real(o->max));
    } else if (o->type == MOESIM_OPTION_CHOICE) {
        json_t *choices = json_array();
        for (size_t i = 0; o->choices[i] != NULL; i++)
            json_array_append_new(choices, json_string(o->choices[i]));
        json_object_set_new(row, "choices", choices);
    }
    return row;
}

static json_t *json_policy(const moesim_policy_spec *spec)
{
    const moesim_policy *p = spec->policy;
    char text[VALUE_CHARS];
    needs_text(spec, text, sizeof text);
    json_t *options = json_array();
    for (const moesim_option *o = p->options; o != NULL && o->name != NULL; o++) {
        char value[VALUE_CHARS];
        moesim_option_print_value(o, spec->options, value, sizeof value);
        json_array_append_new(options, json_option(o, value));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "policy", p->name, "kind", kind_of(p), "summary", p->summary,
                     "source", p->source, "needs", text, "options", options);
}

static moesim_code list_json(moesim_error *err)
{
    json_t *all = json_array();
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++) {
        moesim_policy_spec spec;
        const moesim_code code = moesim_policy_spec_init(&spec, (*p)->name, err);
        if (code != MOESIM_OK) {
            json_decref(all);
            return code;
        }
        json_array_append_new(all, json_policy(&spec));
        moesim_policy_spec_fini(&spec);
    }
    return moesim_print_json(stdout, json_pack("{s:s, s:o}", "schema", "moesim.policies/1", "policies", all), err);
}

/* ---- one policy ------------------------------------------------------------------------------------------------ */

static void show_table(const moesim_policy_spec *spec)
{
    const moesim_policy *p = spec->policy;
    char text[2 * VALUE_CHARS], range[VALUE_CHARS], help[640];
    printf("%s (%s)\n", p->name, kind_of(p));
    moesim_args_row(stdout, "", 0, 2, p->summary);
    moesim_args_row(stdout, "source", 2, 10, p->source);
    if (needs_text(spec, text, sizeof text) > 0)
        moesim_args_row(stdout, "needs", 2, 10, text);
    if (p->options == NULL || p->options->name == NULL) {
        fputs("  no options\n", stdout);
        return;
    }
    fputs("\nOptions (--policy NAME:option=value,option=value):\n", stdout);
    for (const moesim_option *o = p->options; o->name != NULL; o++) {
        moesim_option_print_value(o, spec->options, range, sizeof range);
        snprintf(text, sizeof text, "%s=%s", o->name, range);
        range_of(o, range, sizeof range);
        snprintf(help, sizeof help, "%s (%s, default %s)", o->help, range, o->def);
        moesim_args_row(stdout, text, 2, 26, help);
    }
}

static void show_csv(const moesim_policy_spec *spec)
{
    char text[VALUE_CHARS];
    fputs("policy,option,type,default,value,range,help\n", stdout);
    for (const moesim_option *o = spec->policy->options; o != NULL && o->name != NULL; o++) {
        moesim_option_print_value(o, spec->options, text, sizeof text);
        printf("%s,%s,%s,%s,%s,", spec->policy->name, o->name, type_of(o), o->def, text);
        range_of(o, text, sizeof text);
        moesim_print_csv(stdout, text);
        putchar(',');
        moesim_print_csv(stdout, o->help);
        putchar('\n');
    }
}

static moesim_code show(const char *name, int format, moesim_error *err)
{
    moesim_policy_spec spec;
    moesim_code code = moesim_policy_spec_init(&spec, name, err);
    if (code != MOESIM_OK)
        return code;
    if (format == MOESIM_FORMAT_JSON)
        code = moesim_print_json(stdout, json_policy(&spec), err);
    else if (format == MOESIM_FORMAT_CSV)
        show_csv(&spec);
    else
        show_table(&spec);
    moesim_policy_spec_fini(&spec);
    return code;
}

static moesim_code list(int format, moesim_error *err)
{
    if (format == MOESIM_FORMAT_JSON)
        return list_json(err);
    if (format == MOESIM_FORMAT_CSV)
        list_csv();
    else
        list_table();
    return MOESIM_OK;
}

moesim_code moesim_cmd_policies(int argc, char **argv, moesim_error *err)
{
    settings s = { MOESIM_FORMAT_TABLE };
    moesim_list words = { 0 };
    bool help;
    moesim_code code = moesim_args_parse(&moesim_usage_policies, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_policies, stdout);
    else if (code == MOESIM_OK)
        code = words.n > 0 ? show(words.item[0], s.format, err) : list(s.format, err);
    moesim_list_fini(&words);
    return code;
}
