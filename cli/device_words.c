/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of moesim-device: their defaults, and back to a command line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/device.h"

const char *const moesim_replay_modes[] = { "locked", "live", NULL };
const char *const moesim_off_on[] = { "off", "on", NULL };

void moesim_device_defaults(moesim_device_words *w, uint64_t repeat)
{
    *w = (moesim_device_words){
        .batch = 1, .staging = 4, .repeat = repeat, .seed = 1, .context = 1024, .window = (uint64_t)32 << 20,
    };
}

void moesim_device_words_fini(moesim_device_words *w)
{
    moesim_list_fini(&w->policy);
    moesim_list_fini(&w->cache);
    moesim_list_fini(&w->bandwidth);
}

/* ---- back to words ------------------------------------------------------------------------------------------------------ */

typedef struct pen {
    char *text;                  /* NULL while lengths are counted */
    size_t used, room;
    moesim_list *argv;
} pen;

static moesim_code put(pen *p, const moesim_arg *a, const char *value, moesim_error *err)
{
    char *at = p->text != NULL ? p->text + p->used : NULL;
    const int n = snprintf(at, at != NULL ? p->room - p->used : 0, value != NULL ? "--%s=%s" : "--%s", a->name, value);
    p->used += (size_t)n + 1;
    return at != NULL ? moesim_list_add(p->argv, at, err) : MOESIM_OK;
}

static bool left_out(const moesim_arg *a, const char *const *skip)
{
    for (; skip != NULL && *skip != NULL; skip++)
        if (strcmp(*skip, a->name) == 0)
            return true;
    return false;
}

static moesim_code put_list(pen *p, const moesim_arg *a, const moesim_list *list, moesim_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (put(p, a, list->item[i], err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

static size_t size_of(const moesim_arg *a)
{
    static const size_t size[] = {
        [MOESIM_ARG_FLAG] = sizeof(bool), [MOESIM_ARG_U64] = sizeof(uint64_t), [MOESIM_ARG_REAL] = sizeof(double),
        [MOESIM_ARG_STRING] = sizeof(char *), [MOESIM_ARG_CHOICE] = sizeof(int), [MOESIM_ARG_BYTES] = sizeof(uint64_t),
        [MOESIM_ARG_RANGE] = sizeof(moesim_range), [MOESIM_ARG_LIST] = sizeof(moesim_list),
    };
    return size[a->type];
}

static moesim_code put_row(pen *p, const moesim_arg *a, const void *at, moesim_error *err)
{
    char value[64];
    const moesim_range *range = at;
    switch (a->type) {
    case MOESIM_ARG_FLAG:
        return put(p, a, NULL, err);
    case MOESIM_ARG_U64:
    case MOESIM_ARG_BYTES:
        (void)snprintf(value, sizeof value, "%" PRIu64, *(const uint64_t *)at);
        break;
    case MOESIM_ARG_REAL:
        (void)snprintf(value, sizeof value, "%.17g", *(const double *)at);
        break;
    case MOESIM_ARG_STRING:
        return put(p, a, *(const char *const *)at, err);
    case MOESIM_ARG_CHOICE:
        return put(p, a, a->choices[*(const int *)at], err);
    case MOESIM_ARG_RANGE:
        if (range->end == UINT64_MAX)
            (void)snprintf(value, sizeof value, "%" PRIu64 ":", range->begin);
        else
            (void)snprintf(value, sizeof value, "%" PRIu64 ":%" PRIu64, range->begin, range->end);
        break;
    default:
        return put_list(p, a, at, err);
    }
    return put(p, a, value, err);
}

static moesim_code put_all(pen *p, const moesim_arg *args, const void *store, const void *initial, const char *const *skip,
                           moesim_error *err)
{
    p->used = 0;
    for (const moesim_arg *a = args; a->name != NULL; a++) {
        const char *at = (const char *)store + a->offset, *was = (const char *)initial + a->offset;
        if (left_out(a, skip) || memcmp(at, was, size_of(a)) == 0)
            continue;
        if (put_row(p, a, at, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

moesim_code moesim_device_argv(const moesim_arg *args, const void *store, const void *initial, const char *const *skip,
                               moesim_list *argv, char **text, moesim_error *err)
{
    pen p = {.argv = argv};
    void *memory = NULL;
    *text = NULL;
    if (put_all(&p, args, store, initial, skip, err) != MOESIM_OK ||
        moesim_alloc(p.used + 1, 1, "words", &memory, err) != MOESIM_OK)
        return err->code;
    *text = p.text = memory;
    p.room = p.used + 1;
    return put_all(&p, args, store, initial, skip, err);
}
