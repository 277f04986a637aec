/* SPDX-License-Identifier: Apache-2.0
 *
 * Which attributes of two results differ, and how, in words.
 */
#include "sim/result.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 48u                /* bytes of a value in a message */
#define BEFORE 16u               /* of these before the first difference */

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0u) == 0x80u;
}

/* A value in quotes, long ones around byte `at`; NULL: the attribute is not there. */
static void excerpt(const char *text, size_t at, char out[SHOWN + 16])
{
    if (text == NULL) {
        (void)snprintf(out, SHOWN + 16, "nothing");
        return;
    }
    const size_t length = strlen(text);
    size_t begin = length > SHOWN && at > BEFORE ? at - BEFORE : 0;
    while (begin > 0 && continues(text[begin]))
        begin--;
    size_t end = length - begin > SHOWN ? begin + SHOWN : length;
    while (end > begin && continues(text[end]))
        end--;
    (void)snprintf(out, SHOWN + 16, "\"%s%.*s%s\"", begin > 0 ? "…" : "", (int)(end - begin), text + begin,
                   end < length ? "…" : "");
}

static void add_difference(const char *name, const char *a, const char *b, char *difference, size_t bytes)
{
    char left[SHOWN + 16], right[SHOWN + 16];
    const size_t used = strlen(difference);
    size_t at = 0;
    while (a != NULL && b != NULL && a[at] != '\0' && a[at] == b[at])
        at++;
    excerpt(a, at, left);
    excerpt(b, at, right);
    (void)snprintf(difference + used, bytes - used, "%s%s: %s against %s", used > 0 ? "; " : "", name, left, right);
}

static bool compared(const char *name)
{
    return strcmp(name, "shard") != 0;
}

moesim_code moesim_result_same(const moesim_result *a, const moesim_result *b, char *difference, size_t bytes)
{
    bool same = true;
    difference[0] = '\0';
    for (size_t i = 0; i < a->num_attributes; i++) {
        const moesim_attribute *left = &a->attribute[i];
        const char *right = moesim_result_get(b, left->name);
        if (!compared(left->name) || (right != NULL && strcmp(left->text, right) == 0))
            continue;
        same = false;
        add_difference(left->name, left->text, right, difference, bytes);
    }
    for (size_t i = 0; i < b->num_attributes; i++) {
        const moesim_attribute *right = &b->attribute[i];
        if (!compared(right->name) || moesim_result_get(a, right->name) != NULL)
            continue;
        same = false;
        add_difference(right->name, NULL, right->text, difference, bytes);
    }
    return same ? MOESIM_OK : MOESIM_E_USAGE;
}
