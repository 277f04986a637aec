/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists and ranges of capacities.
 */
#include "cli/cachelist.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

#define WHAT "option --cache"

static moesim_code parse_amount(const char *text, bool bytes, uint64_t *out, moesim_error *err)
{
    const size_t n = strlen(text);
    const bool digits = n > 0 && strspn(text, "0123456789") == n;
    if (bytes && n > 0 && strspn(text, "0123456789.+-eE") == n)
        return moesim_fail(err, MOESIM_E_USAGE, WHAT ": '%s': --scope global takes a size over all layers, with its unit: "
                           "4000MiB", text);
    if (bytes)
        return moesim_parse_bytes(text, WHAT, out, err);
    if (!digits && n > 0 && text[0] >= '0' && text[0] <= '9' && text[n - 1] == 'B')
        return moesim_fail(err, MOESIM_E_USAGE, WHAT ": '%s': a size in bytes needs --scope global; without it a "
                           "capacity is a number of experts per layer", text);
    return moesim_parse_u64(text, 0, UINT32_MAX, WHAT, out, err);
}

static moesim_code add(moesim_cachelist *list, uint64_t amount, bool bytes, moesim_error *err)
{
    char text[32];
    for (size_t i = 0; i < list->n; i++)
        if (list->amount[i] == amount)
            return moesim_fail(err, MOESIM_E_USAGE, WHAT ": the capacity %s is given twice",
                               moesim_cache_text(amount, bytes, text, sizeof text));
    if (list->n == MOESIM_MAX_CACHES)
        return moesim_fail(err, MOESIM_E_USAGE, WHAT ": more than %u capacities", MOESIM_MAX_CACHES);
    if ((list->n & (list->n - 1)) == 0) {
        uint64_t *grown = reallocarray(list->amount, list->n == 0 ? 1 : 2 * list->n, sizeof *grown);
        if (grown == NULL)
            return moesim_fail_nomem(err, "list of capacities", 2 * list->n * sizeof *grown);
        list->amount = grown;
    }
    list->amount[list->n++] = amount;
    return MOESIM_OK;
}

/* "a", "a:b" or "a:b:s"; modifies item. */
static moesim_code parse_item(char *item, bool bytes, moesim_cachelist *list, moesim_error *err)
{
    uint64_t part[3] = { 0, 0, 1 };
    size_t parts = 0;
    char whole[64];
    snprintf(whole, sizeof whole, "%s", item);
    for (char *next = item; next != NULL; parts++) {
        char *text = next;
        next = strchr(text, ':');
        if (next != NULL)
            *next++ = '\0';
        if (parts == 3)
            return moesim_fail(err, MOESIM_E_USAGE, WHAT ": '%s' is not a range; write a:b or a:b:step", whole);
        if (parse_amount(text, bytes, &part[parts], err) != MOESIM_OK)
            return err->code;
    }
    if (parts == 1)
        return add(list, part[0], bytes, err);
    if (part[0] > part[1] || part[2] == 0)
        return moesim_fail(err, MOESIM_E_USAGE, WHAT ": the range %s %s", whole,
                           part[2] == 0 ? "has step 0" : "runs backwards");
    for (uint64_t v = part[0];; v += part[2]) {
        if (add(list, v, bytes, err) != MOESIM_OK)
            return err->code;
        if (part[1] - v < part[2])
            return MOESIM_OK;
    }
}

static moesim_code parse_text(const char *given, bool bytes, moesim_cachelist *list, moesim_error *err)
{
    char *copy = strdup(given);
    if (copy == NULL)
        return moesim_fail_nomem(err, "list of capacities", strlen(given) + 1);
    moesim_code code = MOESIM_OK;
    for (char *next = copy; next != NULL && code == MOESIM_OK;) {
        char *item = next;
        next = strchr(item, ',');
        if (next != NULL)
            *next++ = '\0';
        if (*item == '\0')
            code = moesim_fail(err, MOESIM_E_USAGE, WHAT ": '%s' has an empty entry", given);
        else
            code = parse_item(item, bytes, list, err);
    }
    free(copy);
    return code;
}

moesim_code moesim_cachelist_parse(const moesim_list *texts, bool bytes, moesim_cachelist *out, moesim_error *err)
{
    memset(out, 0, sizeof *out);
    if (texts->n == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "no capacity: give --cache, for example --cache %s",
                           bytes ? "4000MiB" : "20,40,60");
    for (size_t i = 0; i < texts->n; i++)
        if (parse_text(texts->item[i], bytes, out, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

void moesim_cachelist_fini(moesim_cachelist *list)
{
    free(list->amount);
    memset(list, 0, sizeof *list);
}

moesim_code moesim_cachelist_check(const moesim_cachelist *list, uint32_t experts, moesim_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->amount[i] > experts)
            return moesim_fail(err, MOESIM_E_USAGE, WHAT ": %" PRIu64 " slots per layer, but a layer of this trace has %"
                               PRIu32 " experts (E); take at most %" PRIu32, list->amount[i], experts, experts);
    return MOESIM_OK;
}

const char *moesim_cache_text(uint64_t amount, bool bytes, char *out, size_t out_bytes)
{
    static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    size_t u = 0;
    while (bytes && u < 4 && amount != 0 && amount % 1024 == 0) {
        amount /= 1024;
        u++;
    }
    snprintf(out, out_bytes, "%" PRIu64 "%s", amount, bytes ? unit[u] : "");
    return out;
}
