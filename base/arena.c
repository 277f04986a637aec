/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena: a list of chunks filled one after the other.
 */
#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT ((size_t)64)
#define CHUNK_BYTES ((size_t)1 << 16)

typedef struct chunk {
    struct chunk *next;
    size_t size, used;
    unsigned char *data;
} chunk;

struct moesim_arena {
    size_t limit, held;   /* bytes of all chunks */
    chunk *first, *current;
};

/* n·each rounded up to the alignment; false where that passes what an object may have. */
static bool rounded_product(size_t n, size_t each, size_t *out)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, each, &bytes) || bytes > PTRDIFF_MAX - ALIGNMENT)
        return false;
    if (bytes == 0)
        bytes = 1;
    *out = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return true;
}

static moesim_code fail_product(const char *what, size_t n, size_t each, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_LIMIT, "%s would need %zu times %zu bytes, more than memory can hold", what, n, each);
}

moesim_code moesim_arena_create(size_t limit_bytes, moesim_arena **out, moesim_error *err)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return moesim_fail_nomem(err, "an arena", sizeof **out);
    (*out)->limit = limit_bytes;
    return MOESIM_OK;
}

void moesim_arena_destroy(moesim_arena **arena)
{
    if (arena == NULL || *arena == NULL)
        return;
    for (chunk *c = (*arena)->first; c != NULL;) {
        chunk *next = c->next;
        free(c->data);
        free(c);
        c = next;
    }
    free(*arena);
    *arena = NULL;
}

/* Appends a chunk that holds at least `bytes`; smaller than usual where the limit is near. */
static moesim_code add_chunk(moesim_arena *arena, size_t bytes, const char *what, moesim_error *err)
{
    const size_t room = arena->limit - arena->held;
    if (bytes > room)
        return moesim_fail(err, MOESIM_E_LIMIT, "%s needs %zu bytes more where %zu of %zu are left", what, bytes, room,
                           arena->limit);
    size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    if (size > room)
        size = bytes;
    chunk *c = calloc(1, sizeof *c);
    if (c != NULL)
        c->data = aligned_alloc(ALIGNMENT, size);
    if (c == NULL || c->data == NULL) {
        free(c);
        return moesim_fail_nomem(err, what, size);
    }
    c->size = size;
    arena->held += size;
    if (arena->current == NULL) {
        arena->first = c;
    } else {
        c->next = arena->current->next;
        arena->current->next = c;
    }
    arena->current = c;
    return MOESIM_OK;
}

moesim_code moesim_arena_take(moesim_arena *arena, size_t n, size_t each, const char *what, void **out, moesim_error *err)
{
    size_t bytes;
    *out = NULL;
    if (!rounded_product(n, each, &bytes))
        return fail_product(what, n, each, err);
    chunk *c = arena->current;
    while (c != NULL && c->size - c->used < bytes && c->next != NULL) {
        c = c->next;
        arena->current = c;
    }
    if (c == NULL || c->size - c->used < bytes) {
        const moesim_code code = add_chunk(arena, bytes, what, err);
        if (code != MOESIM_OK)
            return code;
        c = arena->current;
    }
    *out = memset(c->data + c->used, 0, bytes);
    c->used += bytes;
    return MOESIM_OK;
}

void moesim_arena_reset(moesim_arena *arena)
{
    for (chunk *c = arena->first; c != NULL; c = c->next)
        c->used = 0;
    arena->current = arena->first;
}

size_t moesim_arena_bytes(const moesim_arena *arena)
{
    return arena->held;
}

moesim_code moesim_alloc(size_t n, size_t each, const char *what, void **out, moesim_error *err)
{
    size_t bytes;
    *out = NULL;
    if (!rounded_product(n, each, &bytes))
        return fail_product(what, n, each, err);
    void *p = aligned_alloc(ALIGNMENT, bytes);
    if (p == NULL)
        return moesim_fail_nomem(err, what, bytes);
    *out = memset(p, 0, bytes);
    return MOESIM_OK;
}
