/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of prefetches.
 */
#include "sim/link.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"

moesim_code moesim_link_init(moesim_link *k, uint32_t capacity, uint32_t num_layers, double alpha, const double *stream_s,
                             moesim_error *err)
{
    const char *what = "the link queue";
    *k = (moesim_link){.alpha = alpha, .stream_s = stream_s, .capacity = capacity, .num_layers = num_layers};
    if (capacity == 0)
        return MOESIM_OK;
    if (moesim_alloc(capacity, sizeof *k->list, what, (void **)&k->list, err) != MOESIM_OK ||
        moesim_alloc((size_t)capacity + 1, sizeof *k->landed, what, (void **)&k->landed, err) != MOESIM_OK ||
        moesim_alloc(num_layers, sizeof *k->asked, what, (void **)&k->asked, err) != MOESIM_OK)
        return err->code;
    return MOESIM_OK;
}

void moesim_link_fini(moesim_link *k)
{
    free(k->list);
    free(k->landed);
    free(k->asked);
    *k = (moesim_link){.capacity = 0};
}

static bool same(moesim_landed a, moesim_landed b) { return a.layer == b.layer && a.expert == b.expert; }

void moesim_link_replace(moesim_link *k, const moesim_landed *entry, uint32_t n)
{
    if (k->capacity == 0)
        return;
    k->head = k->n = 0;
    memset(k->asked, 0, k->num_layers * sizeof *k->asked);
    for (uint32_t i = 0; i < n && k->n < k->capacity; i++) {
        if (k->busy && same(entry[i], k->flying))
            continue;
        k->list[k->n++] = entry[i];
        k->asked[entry[i].layer]++;
    }
}

void moesim_link_drop(moesim_link *k, uint32_t layer, const uint16_t *expert, uint32_t n)
{
    uint64_t moved[16] = {0};    /* 1024 experts */
    if (k->head == k->n || n == 0 || k->asked[layer] == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        moesim_bit_set(moved, expert[i]);
    uint32_t kept = k->head;
    for (uint32_t i = k->head; i < k->n; i++) {
        if (k->list[i].layer == layer && moesim_bit_test(moved, k->list[i].expert))
            k->asked[layer]--;
        else
            k->list[kept++] = k->list[i];
    }
    k->n = kept;
}

bool moesim_link_start(moesim_link *k)
{
    if (k->paused || k->head == k->n || k->num_landed > k->capacity)
        return false;
    k->flying = k->list[k->head++];
    k->busy = true;
    k->stream = k->stream_s[k->flying.layer];
    k->left = k->alpha + k->stream;
    return true;
}

void moesim_link_land(moesim_link *k)
{
    k->landed[k->num_landed++] = k->flying;
    k->busy = false;
}

void moesim_link_take(moesim_link *k) { k->busy = false; }

double moesim_link_run(moesim_link *k, double span)
{
    double worked = 0;
    while (span > 0) {
        if (!k->busy && !moesim_link_start(k))
            break;
        if (k->left > span) {
            k->left -= span;
            return worked + span;
        }
        span -= k->left;
        worked += k->left;
        moesim_link_land(k);
    }
    return worked;
}

uint32_t moesim_link_landed(moesim_link *k, moesim_landed *out, uint32_t n)
{
    n = n < k->num_landed ? n : k->num_landed;
    if (n == 0)
        return 0;
    memcpy(out, k->landed, n * sizeof *out);
    k->num_landed -= n;
    memmove(k->landed, k->landed + n, k->num_landed * sizeof *out);
    return n;
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------------- */

typedef struct saved {
    double left, stream;
    moesim_landed flying;
    uint32_t busy, paused, waiting, num_landed;
} saved;

size_t moesim_link_state_bytes(const moesim_link *k)
{
    return sizeof(saved) + (k->capacity > 0 ? 2 * (size_t)k->capacity + 1 : 0) * sizeof(moesim_landed);
}

void moesim_link_save(const moesim_link *k, void *out)
{
    const uint32_t waiting = k->n - k->head;
    const saved s = {k->left, k->stream, k->flying, k->busy, k->paused, waiting, k->num_landed};
    memset(out, 0, moesim_link_state_bytes(k));
    memcpy(out, &s, sizeof s);
    if (k->capacity == 0)
        return;
    moesim_landed *list = (moesim_landed *)(void *)((char *)out + sizeof s);
    memcpy(list, k->list + k->head, waiting * sizeof *list);
    memcpy(list + k->capacity, k->landed, k->num_landed * sizeof *list);
}

static bool known(const moesim_link *k, const moesim_landed *entry, uint32_t n)
{
    while (n > 0 && entry[n - 1].layer < k->num_layers && entry[n - 1].expert < 1024)
        n--;
    return n == 0;
}

static bool span(double seconds) { return seconds >= 0 && !isinf(seconds); }

static bool possible(const moesim_link *k, const saved *s, const moesim_landed *list)
{
    if (s->busy > 1 || s->paused > 1 || !span(s->left) || !span(s->stream))
        return false;
    if (k->capacity == 0)
        return s->busy == 0 && s->waiting == 0 && s->num_landed == 0;
    return s->waiting <= k->capacity && s->num_landed <= k->capacity + 1u && known(k, &s->flying, s->busy) &&
           known(k, list, s->waiting) && known(k, list + k->capacity, s->num_landed);
}

bool moesim_link_restore(moesim_link *k, const void *in)
{
    saved s;
    memcpy(&s, in, sizeof s);
    const moesim_landed *list = (const moesim_landed *)(const void *)((const char *)in + sizeof s);
    if (!possible(k, &s, list))
        return false;
    k->busy = false;
    moesim_link_replace(k, list, s.waiting);
    k->left = s.left;
    k->stream = s.stream;
    k->flying = s.flying;
    k->busy = s.busy != 0;
    k->paused = s.paused != 0;
    k->num_landed = s.num_landed;
    if (k->capacity > 0)
        memcpy(k->landed, list + k->capacity, s.num_landed * sizeof *list);
    return true;
}
