/* SPDX-License-Identifier: Apache-2.0
 *
 * Command-line parser.
 */
#include "base/args.h"

#include <stdlib.h>
#include <string.h>

#include "base/options.h"

#define MAX_ARGS 128u

typedef struct parser {
    const moesim_usage *usage;
    char **argv;
    int argc, at;                /* argv[at] is looked at */
    char *store;
    moesim_list *positional;
    bool seen[MAX_ARGS];
} parser;

moesim_code moesim_list_add(moesim_list *list, const char *item, moesim_error *err)
{
    if (list->n == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
        const char **item_new = reallocarray(list->item, capacity, sizeof *item_new);
        if (item_new == NULL)
            return moesim_fail_nomem(err, "a list", capacity * sizeof *item_new);
        list->item = item_new;
        list->capacity = capacity;
    }
    list->item[list->n++] = item;
    return MOESIM_OK;
}

void moesim_list_fini(moesim_list *list)
{
    free(list->item);
    memset(list, 0, sizeof *list);
}

static moesim_code fail_unknown(const moesim_usage *usage, const char *word, size_t chars, moesim_error *err)
{
    const char *names[MAX_ARGS + 2];
    char name[64];
    size_t n = 0;
    for (const moesim_arg *a = usage->args; a != NULL && a->name != NULL && n < MAX_ARGS; a++)
        names[n++] = a->name;
    names[n++] = "help";
    names[n] = NULL;
    const size_t kept = chars < sizeof name ? chars : sizeof name - 1;
    memcpy(name, word, kept);
    name[kept] = '\0';
    const char *nearest = moesim_nearest(name, names);
    if (nearest != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "unknown option '--%s'; did you mean '--%s'?", name, nearest);
    return moesim_fail(err, MOESIM_E_USAGE, "unknown option '--%s'; '%s --help' lists the options", name, usage->command);
}

static uint64_t clamp_u64(double v)
{
    if (v >= 0x1p64)
        return UINT64_MAX;
    return v <= 0.0 ? 0 : (uint64_t)v;
}

static moesim_code set_u64(const moesim_arg *a, void *at, const char *value, const char *what, moesim_error *err)
{
    const bool open = a->min == 0.0 && a->max == 0.0;
    return moesim_parse_u64(value, clamp_u64(a->min), open ? UINT64_MAX : clamp_u64(a->max), what, at, err);
}

static moesim_code set_real(const moesim_arg *a, void *at, const char *value, const char *what, moesim_error *err)
{
    const bool open = a->min == 0.0 && a->max == 0.0;
    return moesim_parse_real(value, open ? -1e308 : a->min, open ? 1e308 : a->max, what, at, err);
}

static moesim_code set_string(const moesim_arg *a, void *at, const char *value, const char *what, moesim_error *err)
{
    (void)a;
    if (*value == '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "%s needs a value that is not empty", what);
    memcpy(at, &value, sizeof value);
    return MOESIM_OK;
}

/* "table, csv, json". */
static void list_choices(const moesim_arg *a, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; a->choices[i] != NULL && used < bytes; i++) {
        const int n = snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : "", a->choices[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

static moesim_code set_choice(const moesim_arg *a, void *at, const char *value, const char *what, moesim_error *err)
{
    for (int i = 0; a->choices[i] != NULL; i++)
        if (strcmp(a->choices[i], value) == 0) {
            memcpy(at, &i, sizeof i);
            return MOESIM_OK;
        }
    char all[256];
    list_choices(a, all, sizeof all);
    const char *nearest = moesim_nearest(value, a->choices);
    return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' is none of %s%s%s%s", what, value, all,
                       nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "'?" : "");
}

static moesim_code set_bytes(const moesim_arg *a, void *at, const char *value, const char *what, moesim_error *err)
{
    uint64_t bytes = 0;
    const moesim_code code = moesim_parse_bytes(value, what, &bytes, err);
    if (code == MOESIM_OK && bytes < clamp_u64(a->min))
        return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' is below %.0f", what, value, a->min);
    if (code == MOESIM_OK)
        memcpy(at, &bytes, sizeof bytes);
    return code;
}

/* "a:b", "a:", ":b"; b is not included. */
static moesim_code set_range(const moesim_arg *a, void *at, const char *value, const char *what, moesim_error *err)
{
    moesim_range range = { 0, UINT64_MAX, true };
    char begin[32];
    (void)a;
    const char *colon = strchr(value, ':');
    if (colon == NULL || (size_t)(colon - value) >= sizeof begin || value[1] == '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "%s: '%s' is not a range; write a:b, a: or :b (without b itself)", what,
                           value);
    memcpy(begin, value, (size_t)(colon - value));
    begin[colon - value] = '\0';
    moesim_code code = MOESIM_OK;
    if (begin[0] != '\0')
        code = moesim_parse_u64(begin, 0, UINT64_MAX, what, &range.begin, err);
    if (code == MOESIM_OK && colon[1] != '\0')
        code = moesim_parse_u64(colon + 1, 0, UINT64_MAX - 1, what, &range.end, err);
    if (code != MOESIM_OK)
        return code;
    if (range.begin >= range.end)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: the range %s is empty (its end is not included)", what, value);
    memcpy(at, &range, sizeof range);
    return MOESIM_OK;
}

static moesim_code set_list(const moesim_arg *a, void *at, const char *value, const char *what, moesim_error *err)
{
    if (*value == '\0')
        return set_string(a, at, value, what, err);
    return moesim_list_add(at, value, err);
}

static moesim_code set_value(parser *p, const moesim_arg *a, const char *value, moesim_error *err)
{
    typedef moesim_code setter(const moesim_arg *, void *, const char *, const char *, moesim_error *);
    static setter *const set[] = {
        [MOESIM_ARG_U64] = set_u64, [MOESIM_ARG_REAL] = set_real, [MOESIM_ARG_STRING] = set_string,
        [MOESIM_ARG_CHOICE] = set_choice, [MOESIM_ARG_BYTES] = set_bytes, [MOESIM_ARG_RANGE] = set_range,
        [MOESIM_ARG_LIST] = set_list,
    };
    char what[80];
    snprintf(what, sizeof what, "option --%s", a->name);
    return set[a->type](a, p->store + a->offset, value, what, err);
}

/* The option found at argv[at], with `attached` the text after '=' (or after a letter), or NULL. */
static moesim_code fail_missing(const moesim_arg *a, moesim_error *err)
{
    char all[256];
    if (a->value == NULL)
        list_choices(a, all, sizeof all);
    return moesim_fail(err, MOESIM_E_USAGE, "option --%s needs a value (%s)", a->name, a->value != NULL ? a->value : all);
}

static moesim_code take_option(parser *p, const moesim_arg *a, const char *attached, moesim_error *err)
{
    const size_t row = (size_t)(a - p->usage->args);
    if (row >= MAX_ARGS)
        return moesim_fail(err, MOESIM_E_INTERNAL, "%s has more than %u options", p->usage->command, MAX_ARGS);
    if (p->seen[row] && a->type != MOESIM_ARG_LIST)
        return moesim_fail(err, MOESIM_E_USAGE, "option --%s is given twice", a->name);
    p->seen[row] = true;
    if (a->type == MOESIM_ARG_FLAG) {
        if (attached != NULL)
            return moesim_fail(err, MOESIM_E_USAGE, "option --%s takes no value", a->name);
        const bool on = true;
        memcpy(p->store + a->offset, &on, sizeof on);
        return MOESIM_OK;
    }
    if (attached == NULL) {
        const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
        if (next == NULL || (next[0] == '-' && next[1] == '-'))
            return fail_missing(a, err);
        attached = next;
        p->at++;
    }
    return set_value(p, a, attached, err);
}

static moesim_code parse_long(parser *p, const char *word, moesim_error *err)
{
    const size_t chars = strcspn(word, "=");
    for (const moesim_arg *a = p->usage->args; a != NULL && a->name != NULL; a++)
        if (strlen(a->name) == chars && memcmp(a->name, word, chars) == 0)
            return take_option(p, a, word[chars] == '=' ? word + chars + 1 : NULL, err);
    return fail_unknown(p->usage, word, chars, err);
}

static moesim_code parse_letter(parser *p, const char *word, moesim_error *err)
{
    for (const moesim_arg *a = p->usage->args; a != NULL && a->name != NULL; a++)
        if (a->letter != 0 && a->letter == word[0])
            return take_option(p, a, word[1] != '\0' ? word + 1 : NULL, err);
    return moesim_fail(err, MOESIM_E_USAGE, "unknown option '-%s'; '%s --help' lists the options", word,
                       p->usage->command);
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static moesim_code check_positional(const moesim_usage *u, const moesim_list *positional, moesim_error *err)
{
    if (positional->n < (size_t)u->min_positional)
        return moesim_fail(err, MOESIM_E_USAGE, "too few words after '%s'; usage: %s %s", u->command, u->command,
                           u->synopsis);
    if (u->max_positional >= 0 && positional->n > (size_t)u->max_positional)
        return moesim_fail(err, MOESIM_E_USAGE, "'%s' is one word too many; usage: %s %s",
                           positional->item[u->max_positional], u->command, u->synopsis);
    return MOESIM_OK;
}

moesim_code moesim_args_parse(const moesim_usage *usage, int argc, char **argv, void *store, moesim_list *positional,
                              bool *help, moesim_error *err)
{
    parser p = { .usage = usage, .argv = argv, .argc = argc, .at = 1, .store = store, .positional = positional };
    *help = asks_help(argc, argv);
    if (*help)
        return MOESIM_OK;
    bool ended = false;
    moesim_code code = MOESIM_OK;
    for (; p.at < argc && code == MOESIM_OK; p.at++) {
        const char *word = argv[p.at];
        if (ended || word[0] != '-' || word[1] == '\0')
            code = moesim_list_add(positional, word, err);
        else if (word[1] != '-')
            code = parse_letter(&p, word + 1, err);
        else if (word[2] != '\0')
            code = parse_long(&p, word + 2, err);
        else
            ended = true;
    }
    return code == MOESIM_OK ? check_positional(usage, positional, err) : code;
}
