/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares a decode pass with the earlier ones of its block, set by set and row by row.
 */
#include "traces/stats_past.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/bits.h"

#define MAX_WORDS 1024u   /* 65536 ids, whatever the number of experts */

static void add(moesim_mean *mean, double value)
{
    mean->sum += value;
    mean->n++;
}

void moesim_stats_compare_sets(const moesim_stats_memory *memory, const moesim_past *old, const moesim_past *now,
                               moesim_mean *over_new, moesim_mean *over_old)
{
    for (uint32_t l = 0; l < memory->layers; l++) {
        const uint64_t *a = old->active + (size_t)l * memory->words;
        const uint64_t *b = now->active + (size_t)l * memory->words;
        uint32_t both = 0;
        for (uint32_t w = 0; w < memory->words; w++)
            both += (uint32_t)__builtin_popcountll(a[w] & b[w]);
        const uint32_t in_old = moesim_bits_count(a, memory->words), in_new = moesim_bits_count(b, memory->words);
        if (in_new > 0)
            add(over_new, (double)both / in_new);
        if (in_old > 0)
            add(over_old, (double)both / in_old);
    }
}

/* For each row of `new` the row of `old` at the same position, or −1. Both are sorted. */
static void match_rows(const moesim_past *old, const moesim_past *now, int32_t *match)
{
    uint32_t i = 0;
    for (uint32_t j = 0; j < now->rows; j++) {
        while (i < old->rows && old->position[i] < now->position[j])
            i++;
        match[j] = i < old->rows && old->position[i] == now->position[j] ? (int32_t)i++ : -1;
    }
}

static enum moesim_stats_class class_of(uint8_t state)
{
    static const enum moesim_stats_class of[] = {
        [MOESIM_STATE_MASKED] = MOESIM_STATS_MASKED, [MOESIM_STATE_COMMITTED_NOW] = MOESIM_STATS_JUST,
        [MOESIM_STATE_COMMITTED] = MOESIM_STATS_LONG, [MOESIM_STATE_EDITED] = MOESIM_STATS_JUST,
    };
    return of[state];
}

static void add_stability(moesim_trace_stats *stats, float confidence, uint8_t state, uint32_t kept)
{
    if (isnan(confidence))
        return;
    const uint32_t bin = confidence >= 1.0f ? MOESIM_STATS_BINS - 1 : (uint32_t)((double)confidence * MOESIM_STATS_BINS);
    const bool masked = state == MOESIM_STATE_MASKED || state == MOESIM_STATE_COMMITTED_NOW;
    for (int i = masked ? 0 : 1; i < 2; i++) {
        stats->stability[i].level[bin][kept]++;
        stats->stability[i].n[bin]++;
        stats->stability[i].kept[bin] += kept;
    }
}

/* One row and layer of an earlier pass against the ids that the same position holds now. */
static void compare_routes(moesim_trace_stats *stats, const moesim_past *old, int32_t row, const uint16_t *ids, uint32_t lag,
                           const uint64_t *current)
{
    uint32_t n = 0, kept = 0;
    for (uint32_t k = 0; k < stats->top_k; k++) {
        n += ids[k] != UINT16_MAX;
        kept += moesim_bit_test(current, ids[k]);   /* the bit of 65535 is never set */
    }
    if (n == 0)
        return;
    const double share = (double)kept / n;
    add(&stats->persistence[MOESIM_STATS_ALL][lag], share);
    add(&stats->persistence[class_of(old->state[row])][lag], share);
    if (lag == 1 && n == stats->top_k)
        add_stability(stats, old->confidence[row], old->state[row], kept);
}

/* All earlier passes against row j of the current one. */
static void compare_row(moesim_trace_stats *stats, moesim_open_request *request, const moesim_stats_scratch *scratch,
                        uint32_t j, uint64_t *current)
{
    const uint32_t k = stats->top_k;
    const moesim_past *now = moesim_open_request_pass(request, 0);
    for (uint32_t l = 0; l < stats->num_layers; l++) {
        const uint16_t *ids = now->expert + ((size_t)j * stats->num_layers + l) * k;
        for (uint32_t i = 0; i < k; i++)
            if (ids[i] != UINT16_MAX)
                moesim_bit_set(current, ids[i]);
        for (uint32_t lag = 1; lag <= request->held; lag++) {
            const int32_t row = scratch->match[(size_t)(lag - 1) * scratch->capacity + j];
            const moesim_past *old = moesim_open_request_pass(request, lag);
            if (row >= 0)
                compare_routes(stats, old, row, old->expert + ((size_t)row * stats->num_layers + l) * k, lag, current);
        }
        for (uint32_t i = 0; i < k; i++)
            moesim_bit_clear(current, ids[i]);
    }
}

static moesim_code reserve(moesim_stats_scratch *scratch, uint32_t rows, moesim_error *err)
{
    void *match;
    if (rows <= scratch->capacity)
        return MOESIM_OK;
    const moesim_code code = moesim_alloc((size_t)rows * MOESIM_STATS_LAGS, sizeof *scratch->match, "matching rows", &match,
                                          err);
    if (code != MOESIM_OK)
        return code;
    free(scratch->match);
    scratch->match = match;
    scratch->capacity = rows;
    return MOESIM_OK;
}

moesim_code moesim_stats_compare(moesim_trace_stats *stats, const moesim_stats_memory *memory, moesim_open_request *request,
                                 moesim_stats_scratch *scratch, moesim_error *err)
{
    uint64_t current[MAX_WORDS] = { 0 };
    const moesim_past *now = moesim_open_request_pass(request, 0);
    const moesim_code code = reserve(scratch, now->rows, err);
    if (code != MOESIM_OK)
        return code;
    for (uint32_t lag = 1; lag <= request->held; lag++) {
        const moesim_past *old = moesim_open_request_pass(request, lag);
        moesim_stats_compare_sets(memory, old, now, &stats->overlap_new[lag], &stats->overlap_old[lag]);
        match_rows(old, now, scratch->match + (size_t)(lag - 1) * scratch->capacity);
    }
    for (uint32_t j = 0; j < now->rows && request->held > 0; j++)
        compare_row(stats, request, scratch, j, current);
    return MOESIM_OK;
}
