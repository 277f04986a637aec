/* SPDX-License-Identifier: Apache-2.0
 *
 * lfu: keeps the experts with the most events; counts survive eviction. Option decay=H halves all counts after every H
 * passes, so that old habits fade.
 *
 * Per expert one key: count in the upper 32 bits, *last* (a clock) in the lower. Without decay the count is an integer; with
 * decay it is a positive single-precision number, whose bits order as the number does and whose halving is exact.
 */
#include <math.h>

#include "moesim/policy.h"
#include "policies/kit.h"

typedef struct lfu_options {
    int64_t decay;               /* passes between halvings; 0: never */
} lfu_options;

typedef struct lfu_state {
    kit_head head;
    uint64_t decay;
} lfu_state;

/* Per layer: [0] keys; [1] *last*; [2] element 0 is the number of halvings done. */
enum { LFU_KEY, LFU_LAST, LFU_HALVINGS, LFU_ARRAYS };

static float lfu_real(uint64_t key)
{
    const uint32_t bits = (uint32_t)(key >> 32);
    float count;
    memcpy(&count, &bits, sizeof count);
    return count;
}

static uint64_t lfu_bits(float count)
{
    uint32_t bits;
    memcpy(&bits, &count, sizeof bits);
    return (uint64_t)bits << 32;
}

static void lfu_halve(const lfu_state *s, uint64_t *key, uint64_t times)
{
    const float scale = ldexpf(1.0f, times < 1000 ? -(int)times : -1000);
    for (uint32_t e = 0; e < s->head.experts; e++)
        key[e] = lfu_bits(lfu_real(key[e]) * scale) | (uint32_t)key[e];
}

/* Brings the keys of the event's layer up to date; NULL when the clock no longer fits in 32 bits. */
static uint64_t *lfu_count(lfu_state *s, const moesim_event *event)
{
    uint64_t *key = kit_words(&s->head, event->layer, LFU_KEY);
    if (event->clock > UINT32_MAX)
        return NULL;
    if (s->decay != 0) {
        uint64_t *halvings = kit_words(&s->head, event->layer, LFU_HALVINGS);
        const uint64_t due = (event->clock - 1) / s->decay;
        if (due > *halvings)
            lfu_halve(s, key, due - *halvings);
        *halvings = due;
    }
    for (uint32_t i = 0; i < event->n_active; i++) {
        uint64_t *k = &key[event->list[i]];
        const uint64_t count = s->decay != 0 ? lfu_bits(lfu_real(*k) + 1.0f) : ((*k >> 32) + 1) << 32;
        *k = count | event->clock;
    }
    return key;
}

static size_t lfu_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(lfu_state), LFU_ARRAYS);
}

static int lfu_open(void *state, const moesim_open *open, moesim_start *start)
{
    lfu_state *s = state;
    const lfu_options *options = open->options;
    kit_open(&s->head, open->shape, sizeof *s, LFU_ARRAYS);
    s->decay = (uint64_t)options->decay;
    if (s->decay != 0)
        start->traits |= MOESIM_KEYS_AGE;
    return 0;
}

static int lfu_key(void *state, const moesim_event *event, const uint64_t **key)
{
    *key = lfu_count(state, event);
    return *key == NULL;
}

static int lfu_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    lfu_state *s = state;
    double *last = kit_doubles(&s->head, event->layer, LFU_LAST);
    const uint64_t *key = lfu_count(s, event);
    if (key == NULL)
        return 1;
    kit_touch(event, last);
    for (uint32_t e = 0; e < s->head.experts; e++) {
        keys->value[e] = s->decay != 0 ? (double)lfu_real(key[e]) : (double)(key[e] >> 32);
        keys->tie[e] = last[e];
    }
    return 0;
}

static const moesim_option lfu_table[] = {
    { "decay", MOESIM_OPTION_INT, offsetof(lfu_options, decay), "0", 0, 1e9, NULL,
      "halve all counts after every so many passes (0: never; counts are then single-precision reals)" },
    { .name = NULL },
};

const moesim_policy moesim_policy_lfu = {
    .abi = MOESIM_POLICY_ABI,
    .size = sizeof(moesim_policy),
    .name = "lfu",
    .summary = "keeps the experts activated in the most passes",
    .source = "OLED-MoE (arXiv 2609.33385) Fig. 15b, LFU",
    .order = MOESIM_ORDER_KEY,
    .options_size = sizeof(lfu_options),
    .options = lfu_table,
    .state_bytes = lfu_bytes,
    .open = lfu_open,
    .retain = lfu_retain,
    .retain_key = lfu_key,
};
