/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes of a bench, its device, and the configuration of its file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "hwprofile/device_memory.h"
#include "replay/bench.h"

#define POOL_BYTES (UINT64_C(4) << 30)   /* of the host's pool by default: far larger than any cache of a CPU */
#define POOL_LEAST 8u                    /* experts */
#define STEPS 8u                         /* of shrinking the slots of full residency */

moesim_slots_shape moesim_bench_shape(const moesim_bench *b, const moesim_bench_entry *e)
{
    return (moesim_slots_shape){
        .num_layers = b->info->num_layers, .num_experts = b->info->num_experts, .slots = b->slots,
        .staging = b->config.staging, .pool = b->pool, .aliased = e->full && e->facts.peak > b->slots,
    };
}

static uint32_t largest(const moesim_bench *b, bool full)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < b->num_entries; i++)
        if (b->entry[i].full == full && b->entry[i].facts.peak > most)
            most = b->entry[i].facts.peak;
    return (uint32_t)most;               /* at most layers × experts, 1024 × 1024 */
}

/* Experts of the host's pool: as asked, as in the file, or 4 GiB but at most a quarter of what may be used. */
static uint32_t choose_pool(const moesim_bench *b)
{
    const uint64_t all = (uint64_t)b->info->num_layers * b->info->num_experts;
    const uint64_t allowed = moesim_memory_allowed(0, moesim_host_memory_free()) / 4;
    const uint64_t bytes = b->config.host_pool > 0 ? b->config.host_pool : allowed < POOL_BYTES ? allowed : POOL_BYTES;
    uint64_t n = b->file.num_sessions > 0 && b->config.host_pool == 0 ? b->file.config.pool : bytes / b->expert_bytes;
    n = n < all ? n : all;
    return (uint32_t)(n < POOL_LEAST ? (all < POOL_LEAST ? all : POOL_LEAST) : n);
}

static void say_sizes(const moesim_bench *b, uint32_t slots)
{
    char each[24], device[24], pool[24];
    const uint64_t all = (uint64_t)b->info->num_layers * b->info->num_experts;
    moesim_bench_say(b, "needs    device: %u slots and %u of staging, %s each: %s (less with a smaller --cache, fewer "
                     "--requests)", slots, b->config.staging, moesim_memory_text(b->expert_bytes, each),
                     moesim_memory_text(b->expert_bytes * ((uint64_t)slots + b->config.staging), device));
    moesim_bench_say(b, "         host: pool of %u experts: %s (less with --host-pool)%s", b->pool,
                     moesim_memory_text(b->expert_bytes * b->pool, pool),
                     b->pool < all ? "; expert e of layer l is number (l * E + e) mod pool" : "");
}

static moesim_code try_open(moesim_bench *b, uint32_t slots, moesim_error *err)
{
    const moesim_bench_config *c = &b->config;
    const moesim_device_config config = {
        .hidden = c->hidden, .intermediate = c->intermediate, .max_rows = b->max_rows, .top_k = b->info->top_k,
        .slots = slots + c->staging, .pool = b->pool, .seed = c->seed, .allow_pageable = c->allow_pageable, .other = c->other,
        .geometry = c->geometry, .context = c->context, .memory_limit = c->gpu_memory, .host_limit = 0, .cpu = c->cpu,
        .index = c->index,
    };
    *err = (moesim_error)MOESIM_ERROR_INIT;
    say_sizes(b, slots);
    b->slots = slots;
    return c->ops->open(&config, &b->device, err);
}

/* Where full residency alone is too large, it shares slots: as many as fit, in steps of an eighth. */
static moesim_code open_device(moesim_bench *b, moesim_error *err)
{
    const uint32_t need = largest(b, false), full = largest(b, true), experts = b->info->num_experts;
    const uint32_t want = full > need ? full : need, least = need > experts ? need : experts;
    moesim_code code = try_open(b, want, err);
    for (uint32_t k = STEPS; code == MOESIM_E_LIMIT && b->slots > least && k-- > 0;) {
        const uint32_t slots = (uint32_t)((uint64_t)want * k / STEPS);
        code = try_open(b, slots > least ? slots : least, err);
    }
    if (code == MOESIM_OK && b->slots < full)
        moesim_bench_say(b, "full     %u of the %u experts that full residency reads have a slot; the others share them (reads "
                         "alone, so times are the same)", b->slots, full);
    return code;
}

/* ---- the file ---------------------------------------------------------------------------------------------------------- */

static moesim_code gather_facts(const moesim_bench *b, char **out, moesim_error *err)
{
    moesim_device_fact fact;
    size_t used = 0;
    char *text = NULL;
    for (size_t i = 0; b->config.ops->fact(b->device, i, &fact); i++) {
        const size_t more = strlen(fact.key) + strlen(fact.value) + 2;
        char *longer = realloc(text, used + more + 1);
        if (longer == NULL) {
            free(text);
            return moesim_fail_nomem(err, "facts of the device", used + more + 1);
        }
        text = longer;
        (void)snprintf(text + used, more + 1, "%s\t%s\n", fact.key, fact.value);
        used += more;
    }
    *out = text;
    return text != NULL ? MOESIM_OK : moesim_fail(err, MOESIM_E_INTERNAL, "device %s tells no facts", b->config.ops->name);
}

static void fill_numbers(const moesim_bench *b, const moesim_replay_session *session, moesim_replay_config *c)
{
    const moesim_bench_config *given = &b->config;
    char threads[32], pinned[32];
    moesim_replay_fact(session, "threads", threads, sizeof threads);
    moesim_replay_fact(session, "pinned", pinned, sizeof pinned);
    c->num_layers = b->info->num_layers;
    c->num_experts = b->info->num_experts;
    c->top_k = b->info->top_k;
    c->hidden = given->hidden;
    c->intermediate = given->intermediate;
    c->request_begin = given->request_begin;
    c->request_end = given->request_end;
    c->warmup = given->warmup;
    c->batch = given->batch;
    c->seed = given->seed;
    c->staging = given->staging;
    c->max_rows = b->max_rows;
    c->slots = b->slots;
    c->pool = b->pool;
    c->other = given->other;
    c->context = given->other ? given->context : 0;
    c->threads = strtoull(threads, NULL, 10);
    c->pinned = !given->allow_pageable || strncmp(pinned, "no", 2) != 0;
}

static moesim_code fill_config(const moesim_bench *b, const moesim_replay_session *session, moesim_replay_config *c,
                               moesim_error *err)
{
    char isa[64], cpus[256], machine[256];
    bool costs = false;
    for (uint32_t i = 0; i < b->num_entries; i++)
        costs |= b->entry[i].costs;
    moesim_replay_fact(session, "gpu", machine, sizeof machine);
    if (machine[0] == '\0')
        moesim_replay_fact(session, "cpu", machine, sizeof machine);
    moesim_replay_fact(session, "isa", isa, sizeof isa);
    moesim_replay_fact(session, "cpus", cpus, sizeof cpus);
    const struct { char **field; const char *text; } text[] = {
        {&c->trace, b->config.trace_path}, {&c->trace_digest, b->info->digest}, {&c->model_id, b->info->model_id},
        {&c->priced_as, b->config.geometry != NULL ? b->config.geometry->name : ""}, {&c->device, b->config.ops->name},
        {&c->machine, machine}, {&c->isa, isa}, {&c->cpus, cpus}, {&c->moesim_version, MOESIM_VERSION},
        {&c->profile, costs ? b->config.profile_name : ""}, {&c->profile_digest, costs ? b->config.profile_digest : ""},
    };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        if (moesim_replay_set(text[i].field, text[i].text, err) != MOESIM_OK)
            return err->code;
    fill_numbers(b, session, c);
    return MOESIM_OK;
}

/* A file with cells goes on only with the same configuration. */
static moesim_code adopt(moesim_bench *b, moesim_error *err)
{
    char *facts = NULL, difference[512];
    const bool older = b->file.num_sessions > 0;
    moesim_replay_file probe;
    moesim_replay_file_init(&probe);
    moesim_code code = gather_facts(b, &facts, err);
    if (code == MOESIM_OK)
        code = moesim_replay_add_session(&b->file, facts, &b->session, err);
    free(facts);
    if (code == MOESIM_OK)
        code = fill_config(b, &b->file.session[b->session], older ? &probe.config : &b->file.config, err);
    if (code == MOESIM_OK && older &&
        moesim_replay_same(&b->file.config, &probe.config, difference, sizeof difference) != MOESIM_OK)
        code = moesim_fail(err, MOESIM_E_USAGE, "the file to go on with was measured with another configuration (there and "
                           "here): %s; give the same options, or another -o", difference);
    moesim_replay_file_fini(&probe);
    return code;
}

moesim_code moesim_bench_open(moesim_bench *b, moesim_replay_file *file, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    void *p = NULL;
    char why[256];
    err = err != NULL ? err : &local;
    b->file = *file;
    moesim_replay_file_init(file);
    if (!b->config.ops->present(b->config.index, why))
        return moesim_fail(err, MOESIM_E_ABSENT, "device %s: %s", b->config.ops->name, why);
    b->pool = choose_pool(b);
    moesim_code code = open_device(b, err);
    if (code == MOESIM_OK)
        code = moesim_alloc((size_t)b->slots + b->config.staging, sizeof *b->content, "slots", &p, err);
    b->content = p;
    if (code == MOESIM_OK)
        memset(b->content, 0xff, ((size_t)b->slots + b->config.staging) * sizeof *b->content);
    return code == MOESIM_OK ? adopt(b, err) : code;
}
