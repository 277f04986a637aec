/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of a result: a hash table with open addressing, at most half full.
 */
#include "sim/result_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "sim/result.h"
#include "traces/h5.h"

#define FIRST_SLOTS 64u

struct moesim_result_pool {
    char **slot;                 /* NULL: free */
    size_t slots, used;          /* slots is a power of two */
    uint64_t bytes;
};

static moesim_code make_slots(size_t n, char ***out, moesim_error *err)
{
    void *p = NULL;
    const moesim_code code = moesim_alloc(n, sizeof **out, "texts of a result", &p, err);
    *out = p;
    return code;
}

moesim_code moesim_result_pool_create(moesim_result_pool **out, moesim_error *err)
{
    void *p = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof **out, "texts of a result", &p, err);
    if (code != MOESIM_OK)
        return code;
    moesim_result_pool *pool = p;
    code = make_slots(FIRST_SLOTS, &pool->slot, err);
    pool->slots = FIRST_SLOTS;
    if (code == MOESIM_OK)
        *out = pool;
    else
        free(pool);
    return code;
}

void moesim_result_pool_destroy(moesim_result_pool **pool)
{
    if (*pool == NULL)
        return;
    for (size_t i = 0; i < (*pool)->slots; i++)
        free((*pool)->slot[i]);
    free((*pool)->slot);
    free(*pool);
    *pool = NULL;
}

/* FNV-1a. */
static uint64_t hash(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

/* The slot that holds the text, or the free one where it belongs. */
static char **find(char **slot, size_t slots, const char *text)
{
    size_t i = (size_t)hash(text) & (slots - 1);
    while (slot[i] != NULL && strcmp(slot[i], text) != 0)
        i = (i + 1) & (slots - 1);
    return &slot[i];
}

static moesim_code grow(moesim_result_pool *pool, moesim_error *err)
{
    char **wider = NULL;
    const moesim_code code = make_slots(2 * pool->slots, &wider, err);
    if (code != MOESIM_OK)
        return code;
    for (size_t i = 0; i < pool->slots; i++)
        if (pool->slot[i] != NULL)
            *find(wider, 2 * pool->slots, pool->slot[i]) = pool->slot[i];
    free(pool->slot);
    pool->slot = wider;
    pool->slots *= 2;
    return MOESIM_OK;
}

moesim_code moesim_result_pool_text(moesim_result_pool *pool, const char *text, size_t length, char **out, moesim_error *err)
{
    char clean[MOESIM_RESULT_TEXT_BYTES];
    if (strnlen(text, length) >= sizeof clean)
        return moesim_fail(err, MOESIM_E_LIMIT, "a text of %zu bytes in a result, at most %zu are allowed", length,
                           sizeof clean - 1);
    moesim_text_clean(text, length, clean, sizeof clean);
    char **at = find(pool->slot, pool->slots, clean);
    if (*at == NULL) {
        const size_t bytes = strlen(clean) + 1;
        moesim_code code = moesim_result_pool_charge(pool, 1, bytes, "texts", err);
        if (code == MOESIM_OK && 2 * pool->used >= pool->slots && (code = grow(pool, err)) == MOESIM_OK)
            at = find(pool->slot, pool->slots, clean);
        if (code != MOESIM_OK)
            return code;
        if ((*at = strdup(clean)) == NULL)
            return moesim_fail_nomem(err, "a text of a result", bytes);
        pool->used++;
    }
    *out = *at;
    return MOESIM_OK;
}

moesim_code moesim_result_pool_charge(moesim_result_pool *pool, uint64_t n, uint64_t each, const char *what, moesim_error *err)
{
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(n, each, &bytes) || bytes > MOESIM_RESULT_BYTES - pool->bytes)
        return moesim_fail(err, MOESIM_E_LIMIT,
                           "%s of a result: %llu × %llu bytes are more than the 2 GiB that one result may take; split the grid "
                           "into several results",
                           what, (unsigned long long)n, (unsigned long long)each);
    pool->bytes += bytes;
    return MOESIM_OK;
}

/* ---- names --------------------------------------------------------------------------------------------------------- */

bool moesim_result_identifier(const char *name, size_t room)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    const size_t length = strnlen(name, room), plain = strspn(name, letters);
    return length > 0 && length < room && plain == length && (name[0] < '0' || name[0] > '9');
}

bool moesim_result_reserved(const char *name)
{
    static const char *const made[] = {"format", "format_version", "attributes", "tables", "complete"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        if (strcmp(name, made[i]) == 0)
            return true;
    return strncmp(name, "columns_", strlen("columns_")) == 0;
}
