/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole events through the functions that replay uses, with one kind of work each. What such an event takes beyond the gate,
 * its copies and its computation is what launching, waiting and adding up cost.
 */
#include "hwprofile/measure_parts.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define ROWS 16u
#define MOVED_SLOTS 16u          /* ring of the moved ones, at most a third of all */

static uint32_t moved_slots(const moesim_bench *b)
{
    const uint32_t most = b->config.slots / 3;
    return most < 1 ? 1 : most < MOVED_SLOTS ? most : MOVED_SLOTS;
}

static uint32_t event_rows(const moesim_bench *b)
{
    return b->config.max_rows < ROWS ? b->config.max_rows : ROWS;
}

/* Every row has as many routes as any other, give or take one, and no more than top-k. */
static void add_event(const moesim_bench *b, moesim_plan *plan, uint32_t kind, uint32_t experts, uint32_t tokens,
                      uint32_t most_experts)
{
    const uint32_t rows = event_rows(b);
    if (experts <= most_experts && experts <= MOESIM_EVENT_EXPERTS && tokens <= rows &&
        experts * tokens <= rows * b->config.top_k)
        moesim_plan_add(plan, (moesim_raw_key){ .kind = kind, .rows = rows, .experts = experts, .tokens = tokens });
}

moesim_code moesim_event_plan_hits(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    static const uint32_t full[] = { 2, 4, 8, 16, 30, 60 }, quick[] = { 4, 16 };
    (void)err;
    for (uint32_t tokens = 1; tokens <= (b->quick ? 1u : 2u); tokens++)
        for (size_t i = 0; i < (b->quick ? COUNT(quick) : COUNT(full)); i++)
            add_event(b, plan, MOESIM_RAW_EVENT_HITS, b->quick ? quick[i] : full[i], tokens,
                      b->config.slots - moved_slots(b));
    return MOESIM_OK;
}

moesim_code moesim_event_plan_moved(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    (void)err;
    for (uint32_t tokens = 1; tokens <= (b->quick ? 1u : 4u); tokens *= 2)
        for (uint32_t experts = 1; experts <= 8; experts *= b->quick ? 4 : 2)
            add_event(b, plan, MOESIM_RAW_EVENT_MOVED, experts, tokens, moved_slots(b));
    return MOESIM_OK;
}

moesim_code moesim_event_plan_cpu(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    (void)err;
    for (uint32_t tokens = 1; tokens <= (b->quick ? 1u : 2u); tokens++)
        for (uint32_t experts = 1; experts <= 4; experts *= b->quick ? 4 : 2)
            add_event(b, plan, MOESIM_RAW_EVENT_CPU, experts, tokens, MOESIM_EVENT_EXPERTS);
    return MOESIM_OK;
}

/* CPU experts that outlast the hits beside them: the CPU's share starts after what is queued for the GPU. */
moesim_code moesim_event_plan_both(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    (void)err;
    if (b->config.slots - moved_slots(b) < MOESIM_RAW_BESIDE || event_rows(b) * b->config.top_k < MOESIM_RAW_BESIDE)
        return MOESIM_OK;
    for (uint32_t experts = b->quick ? 4 : 2; experts <= 8; experts *= 2)
        add_event(b, plan, MOESIM_RAW_EVENT_BOTH, experts, 1, MOESIM_EVENT_EXPERTS - MOESIM_RAW_BESIDE);
    return MOESIM_OK;
}

static moesim_code fill(moesim_bench *b, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    const uint32_t n = b->config.slots - moved_slots(b);
    for (uint32_t slot = 0; slot < n && code == MOESIM_OK && !b->filled; slot++)
        code = b->ops->fill(b->device, slot, slot % b->config.pool, err);
    b->filled = b->filled || code == MOESIM_OK;
    return code;
}

/* Rows of expert i, ascending: `tokens` in a row after those of expert i − 1, around the end. */
static void choose_rows(moesim_bench *b, uint32_t i, uint32_t tokens, uint32_t rows)
{
    const uint32_t first = i * tokens % rows, wrapped = first + tokens > rows ? first + tokens - rows : 0;
    for (uint32_t t = 0; t < tokens; t++)
        b->row[i][t] = (uint16_t)(t < wrapped ? t : first + t - wrapped);
}

/* How many experts of an event are hits; they come first. */
static uint32_t hits_of(const moesim_raw_key *key)
{
    return key->kind == MOESIM_RAW_EVENT_HITS ? key->experts : key->kind == MOESIM_RAW_EVENT_BOTH ? MOESIM_RAW_BESIDE : 0;
}

/* Other slots and experts each time, so that nothing is warm in a cache. Returns how many there are. */
static uint32_t choose(moesim_bench *b, const moesim_raw_key *key)
{
    const uint32_t ring = moved_slots(b), resident = b->config.slots - ring, hits = hits_of(key);
    const uint32_t n = key->kind == MOESIM_RAW_EVENT_BOTH ? hits + key->experts : key->experts;
    for (uint32_t i = 0; i < n; i++) {
        moesim_device_expert *e = &b->expert[i];
        choose_rows(b, i, key->tokens, key->rows);
        *e = (moesim_device_expert){ .tokens = key->tokens, .row = b->row[i] };
        if (i < hits) {
            e->slot = b->next_slot;
            e->pool = e->slot % b->config.pool;
            b->next_slot = (b->next_slot + 1) % resident;
        } else {
            e->slot = resident + b->next_moved;
            e->pool = b->next_pool;
            b->next_moved = (b->next_moved + 1) % ring;
            b->next_pool = (b->next_pool + 1) % b->config.pool;
        }
    }
    return n;
}

static moesim_code one(moesim_bench *b, const moesim_raw_key *key, uint64_t *gate, moesim_error *err)
{
    moesim_device_times times = { .gate = 0 };
    const uint32_t n = choose(b, key), hits = hits_of(key);
    const moesim_device_expert *const missed = b->expert + hits;
    moesim_device_work work = { .num_rows = key->rows, .hits = b->expert, .n_hits = hits };
    if (key->kind == MOESIM_RAW_EVENT_MOVED) {
        work.moved = missed;
        work.n_moved = n;
    } else if (n > hits) {
        work.cpu = missed;
        work.n_cpu = n - hits;
    }
    moesim_code code = b->ops->work(b->device, &work, err);
    if (code == MOESIM_OK)
        code = b->ops->gate(b->device, key->rows, &times, err);
    *gate = times.gate;
    return code;
}

moesim_code moesim_event_sample(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    moesim_device_times times = { .gate = 0 };
    moesim_code code = fill(b, err);
    if (code == MOESIM_OK)
        code = b->ops->gate(b->device, key->rows, &times, err);
    const uint64_t begin = times.gate;
    uint64_t end = begin;
    for (uint32_t i = 0; i < repeat && code == MOESIM_OK; i++)
        code = one(b, key, &end, err);
    if (code == MOESIM_OK)
        code = b->ops->end_pass(b->device, 0, false, &times, err);
    value[0] = (double)(end - begin) / 1e9 / repeat;
    return code;
}
