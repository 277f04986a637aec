/* SPDX-License-Identifier: Apache-2.0
 *
 * Option strings made from the registry.
 */
#include "tests/policy/variants.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/policy/hand.h"

/* Opens it in scope layer; returns the answer. */
static int try(struct variant *v, char *error)
{
    struct hand h;
    const int answer = hand_try_open(&h, v->text, 2, 8, 2, 4, 0, 1, error);
    v->traits = h.traits;
    v->dispatches = h.spec.policy->dispatch != NULL && (h.traits & MOESIM_MOVES_ALL) == 0;
    hand_close(&h);
    return answer;
}

static void add(struct variant *list, size_t *n, const char *policy, const char *options)
{
    static const char only[] = "takes effect only with ";
    struct variant *v = &list[*n];
    struct hand h;
    char error[256];
    ck_assert(*n < MAX_VARIANTS);
    snprintf(v->text, sizeof v->text, "%s%s%s", policy, options[0] != '\0' ? ":" : "", options);
    int answer = try(v, error);
    const char *other = answer != 0 ? strstr(error, only) : NULL;
    if (other != NULL) {
        snprintf(v->text, sizeof v->text, "%s:%s,%s", policy, other + sizeof only - 1, options);
        answer = try(v, error);
    }
    ck_assert_msg(answer == 0, "%s: %s", v->text, error);
    v->layer_only = hand_try_open(&h, v->text, 2, 8, 2, 4, 1, 1, NULL) != 0 || v->dispatches;
    hand_close(&h);
    (*n)++;
}

/* Values other than the default; numbers get one a little above it. */
static void add_option(struct variant *list, size_t *n, const char *policy, const moesim_option *o)
{
    static const char *const switches[] = { "off", "on", NULL };
    const char *const *words = o->type == MOESIM_OPTION_CHOICE ? o->choices : switches;
    char options[128];
    if (o->type == MOESIM_OPTION_INT || o->type == MOESIM_OPTION_REAL) {
        snprintf(options, sizeof options, "%s=%.6g", o->name, o->min + 3 <= o->max ? o->min + 3 : o->max);
        add(list, n, policy, options);
        return;
    }
    for (size_t i = 0; words[i] != NULL; i++) {
        snprintf(options, sizeof options, "%s=%s", o->name, words[i]);
        if (strcmp(words[i], o->def) != 0)
            add(list, n, policy, options);
    }
}

size_t variants(struct variant *list)
{
    size_t n = 0;
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++) {
        if ((*p)->host_mode != MOESIM_HOST_NONE)
            continue;
        add(list, &n, (*p)->name, "");
        for (const moesim_option *o = (*p)->options; o != NULL && o->name != NULL; o++)
            add_option(list, &n, (*p)->name, o);
    }
    return n;
}
