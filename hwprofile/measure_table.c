/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of measurements: which points, and how one sample is taken.
 */
#include <math.h>
#include <time.h>

#include "hwprofile/measure_parts.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define KIB UINT64_C(1024)
#define SMALLEST_COPY (4 * KIB)
#define LARGEST_COPY (64 * KIB * KIB)
#define JOBS 4u                  /* CPU experts of one start */
#define MOST_JOBS 64u            /* of one start beside the link */
#define MOST_STARTS 1000u
#define MOST_TRIES 8u

void moesim_plan_add(moesim_plan *plan, moesim_raw_key key)
{
    if (plan->n < COUNT(plan->key))
        plan->key[plan->n++] = key;
}

/* ---- link ---------------------------------------------------------------------------------------------------------- */

static void add_copy(moesim_plan *plan, uint64_t bytes, uint32_t pinned, uint32_t streams)
{
    moesim_plan_add(plan, (moesim_raw_key){ .kind = MOESIM_RAW_COPY, .bytes = bytes, .pinned = pinned, .streams = streams });
}

/* Powers of 2 (quick: of 4) and the expert itself. */
static moesim_code plan_copies(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    const unsigned step = b->quick ? 4 : 2;
    (void)err;
    for (uint64_t bytes = SMALLEST_COPY; bytes <= LARGEST_COPY; bytes *= step)
        if (bytes != b->expert_bytes)
            add_copy(plan, bytes, 1, 1);
    add_copy(plan, b->expert_bytes, 1, 1);
    for (uint64_t bytes = KIB * KIB; bytes <= LARGEST_COPY; bytes *= b->quick ? 64 : 4)
        add_copy(plan, bytes, 1, 2);
    for (uint64_t bytes = SMALLEST_COPY; bytes <= LARGEST_COPY; bytes *= b->quick ? 128 : 8)
        add_copy(plan, bytes, 0, 1);
    return MOESIM_OK;
}

static moesim_code sample_copy(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    return b->ops->time_copy(b->device, key->bytes, key->pinned != 0, key->streams, repeat, &value[0], err);
}

static moesim_code plan_returns(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    const uint64_t row = UINT64_C(2) * b->config.hidden;
    (void)err;
    for (uint64_t rows = 1; rows <= 256; rows *= b->quick ? 4 : 2)
        moesim_plan_add(plan, (moesim_raw_key){ .kind = MOESIM_RAW_TO_HOST, .bytes = rows * row });
    return MOESIM_OK;
}

static moesim_code sample_return(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2],
                                 moesim_error *err)
{
    return b->ops->time_return(b->device, key->bytes, repeat, &value[0], &value[1], err);
}

/* ---- CPU ----------------------------------------------------------------------------------------------------------- */

size_t moesim_bench_threads(const moesim_bench *bench, uint32_t out[16])
{
    size_t n = 0;
    for (uint32_t t = 1; t < bench->threads && n < 15; t *= 2)
        if (!bench->quick || t == 1)
            out[n++] = t;
    out[n++] = bench->threads;
    return n;
}

moesim_code moesim_bench_team(moesim_bench *b, uint32_t threads, moesim_error *err)
{
    if (b->team != NULL && b->team_threads == threads)
        return MOESIM_OK;
    b->cpu->close(&b->team);
    b->team_threads = threads;
    return b->cpu->open(b->ops, b->device, &b->config, threads == b->threads ? 0 : threads, &b->team, err);
}

static void add_cpu(moesim_plan *plan, uint32_t threads, uint32_t tokens, uint32_t experts)
{
    moesim_plan_add(plan, (moesim_raw_key){ .kind = MOESIM_RAW_CPU, .threads = threads, .tokens = tokens, .experts = experts });
}

/* All threads: every number of tokens, and starts of 1, 2, 4, 8 experts for what a start costs. Fewer threads: what the
 * measurements of both together are held against, and the far end. */
static moesim_code plan_cpu(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    static const uint32_t full[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64 }, few[] = { 1, 2, 4, 16, 64 };
    static const uint32_t quick[] = { 1, 2, 4, 8, 16 };
    uint32_t threads[16];
    const size_t n = moesim_bench_threads(b, threads);
    (void)err;
    for (size_t t = 0; t + 1 < n; t++)
        for (size_t i = 0; i < (b->quick ? 3 : COUNT(few)); i++)
            add_cpu(plan, threads[t], few[i], 1);
    for (size_t i = 0; i < (b->quick ? COUNT(quick) : COUNT(full)); i++)
        add_cpu(plan, b->threads, b->quick ? quick[i] : full[i], JOBS);
    for (uint32_t tokens = 1; tokens <= (b->quick ? 1u : 4u); tokens *= 2)
        for (uint32_t experts = 1; experts <= 8; experts *= 2)
            if (experts != JOBS)
                add_cpu(plan, b->threads, tokens, experts);
    return MOESIM_OK;
}

static moesim_code sample_cpu(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    (void)repeat;
    const moesim_code code = moesim_bench_team(b, key->threads, err);
    if (code == MOESIM_OK)
        value[0] = b->cpu->run(b->team, key->experts, key->tokens);
    return code;
}

/* The bytes depend on the pool: they are known after reading once. */
static moesim_code plan_read(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    uint32_t threads[16];
    const size_t n = moesim_bench_threads(b, threads);
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < n && code == MOESIM_OK; i++) {
        moesim_raw_key key = { .kind = MOESIM_RAW_READ, .threads = threads[i] };
        code = moesim_bench_team(b, threads[i], err);
        if (code == MOESIM_OK) {
            (void)b->cpu->read(b->team, &key.bytes);
            moesim_plan_add(plan, key);
        }
    }
    return code;
}

static moesim_code sample_read(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    uint64_t bytes;
    (void)repeat;
    const moesim_code code = moesim_bench_team(b, key->threads, err);
    if (code == MOESIM_OK)
        value[0] = b->cpu->read(b->team, &bytes);
    return code;
}

/* ---- link and CPU together ------------------------------------------------------------------------------------------- */

/* As many experts as fill the window, so that the link is loaded for nearly all of it; a power of 2. */
static moesim_code window_jobs(moesim_bench *b, uint32_t threads, uint32_t tokens, uint32_t *jobs, moesim_error *err)
{
    double least = INFINITY;
    const moesim_code code = moesim_bench_team(b, threads, err);
    for (unsigned i = 0; i < 5 && code == MOESIM_OK; i++)
        least = fmin(least, b->cpu->run(b->team, 1, tokens));
    *jobs = 1;
    while (*jobs < MOST_JOBS && least * *jobs < b->window)
        *jobs *= 2;
    return code;
}

static moesim_code plan_joint(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    uint32_t threads[16], jobs;
    const size_t n = moesim_bench_threads(b, threads);
    moesim_code code = MOESIM_OK;
    for (size_t t = 0; t < n; t++) {
        for (uint32_t tokens = 1; tokens <= (b->quick ? 1u : 4u) && code == MOESIM_OK; tokens *= 2) {
            code = window_jobs(b, threads[t], tokens, &jobs, err);
            if (code == MOESIM_OK)
                moesim_plan_add(plan, (moesim_raw_key){ .kind = MOESIM_RAW_JOINT_CPU, .bytes = b->expert_bytes,
                                                        .threads = threads[t], .tokens = tokens, .experts = jobs });
        }
    }
    return code;
}

/* The CPU's part of a load: starts one after another until the window is full; the mean of one start. threads 0: none. */
static double use_cpu(moesim_bench *b, const moesim_raw_key *key, double window)
{
    const struct timespec pause = { (time_t)window, (long)((window - floor(window)) * 1e9) };
    double sum = 0.0;
    unsigned starts = 0;
    if (key->threads == 0) {
        (void)nanosleep(&pause, NULL);
        return 0.0;
    }
    for (; starts == 0 || (sum < window && starts < MOST_STARTS); starts++)
        sum += b->cpu->run(b->team, key->experts, key->tokens);
    return sum / starts;
}

/* Seconds of one start and of one copy. On a crowded machine the window may pass before a copying thread gets its turn: then
 * again with a longer one. */
static moesim_code load_both(moesim_bench *b, const moesim_raw_key *key, double *start, double *copy, moesim_error *err)
{
    double window = b->window;
    for (unsigned tries = 0; tries < MOST_TRIES; tries++, window *= 2.0) {
        uint64_t bytes = 0;
        double seconds = 0.0;
        moesim_code code = b->ops->load_begin(b->device, key->bytes, err);
        if (code != MOESIM_OK)
            return code;
        *start = use_cpu(b, key, window);
        code = b->ops->load_end(b->device, &bytes, &seconds, err);
        if (code != MOESIM_OK)
            return code;
        *copy = bytes > 0 ? seconds * (double)key->bytes / (double)bytes : 0.0;
        if (*copy > 0.0)
            return MOESIM_OK;
    }
    return moesim_fail(err, MOESIM_E_INTERNAL, "the link copied nothing in %g s in which it was to be kept busy: the machine "
                       "is too crowded, or the device is at fault", window / 2.0);
}

static moesim_code sample_joint(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    (void)repeat;
    const moesim_code code = moesim_bench_team(b, key->threads, err);
    return code == MOESIM_OK ? load_both(b, key, &value[0], &value[1], err) : code;
}

static moesim_code plan_load(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    (void)err;
    moesim_plan_add(plan, (moesim_raw_key){ .kind = MOESIM_RAW_JOINT_LINK, .bytes = b->expert_bytes });
    return MOESIM_OK;
}

static moesim_code sample_load(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    (void)repeat;
    return load_both(b, key, &value[1], &value[0], err);
}

/* ---- GPU ----------------------------------------------------------------------------------------------------------- */

static moesim_code plan_grouped(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    static const uint32_t full[] = { 1, 2, 4, 8, 16, 30, 60, 100, 160 }, quick[] = { 1, 4, 16, 60 };
    const uint32_t routes = b->config.max_rows * b->config.top_k;
    (void)err;
    for (size_t i = 0; i < (b->quick ? COUNT(quick) : COUNT(full)); i++) {
        const uint32_t experts = b->quick ? quick[i] : full[i];
        for (uint32_t tokens = 1; tokens <= 16; tokens *= b->quick ? 4 : 2)
            if (experts <= b->config.slots && experts * 16 <= routes)
                moesim_plan_add(plan, (moesim_raw_key){ .kind = MOESIM_RAW_GROUPED, .experts = experts, .tokens = tokens });
    }
    return MOESIM_OK;
}

static moesim_code sample_grouped(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2],
                                  moesim_error *err)
{
    return b->ops->time_grouped(b->device, key->experts, key->tokens, repeat, &value[0], err);
}

static moesim_code plan_rows(const moesim_bench *b, uint32_t kind, moesim_plan *plan)
{
    static const uint32_t rows[] = { 16, 1, 32, 64 };
    for (size_t i = 0; i < (b->quick ? 1 : COUNT(rows)); i++)
        if (rows[i] <= b->config.max_rows)
            moesim_plan_add(plan, (moesim_raw_key){ .kind = kind, .rows = rows[i] });
    return MOESIM_OK;
}

static moesim_code plan_empty(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    (void)err;
    return plan_rows(b, MOESIM_RAW_EMPTY, plan);
}

static moesim_code sample_empty(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    return b->ops->time_empty(b->device, key->rows, repeat, &value[0], err);
}

static moesim_code plan_other(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    (void)err;
    return plan_rows(b, MOESIM_RAW_OTHER, plan);
}

static moesim_code sample_other(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    const moesim_code code = b->ops->time_other(b->device, key->rows, repeat, &value[0], &value[1], err);
    value[1] = fmax(value[1], MOESIM_RAW_NOTHING);
    return code;
}

static moesim_code plan_head(moesim_bench *b, moesim_plan *plan, moesim_error *err)
{
    (void)err;
    return plan_rows(b, MOESIM_RAW_HEAD, plan);
}

static moesim_code sample_head(moesim_bench *b, const moesim_raw_key *key, uint32_t repeat, double value[2], moesim_error *err)
{
    return b->ops->time_head(b->device, key->rows, repeat, &value[0], err);
}

/* ---- the table ------------------------------------------------------------------------------------------------------- */

const moesim_measurement moesim_measurements[] = {
    { "copies to the device", false, MOESIM_RAW_COPY, MOESIM_RAW_KINDS, 1e-3, plan_copies, sample_copy },
    { "small copies both ways", false, MOESIM_RAW_TO_HOST, MOESIM_RAW_TO_DEVICE, 2e-4, plan_returns, sample_return },
    { "experts on the CPU", false, MOESIM_RAW_CPU, MOESIM_RAW_KINDS, 0.0, plan_cpu, sample_cpu },
    { "reading host memory", false, MOESIM_RAW_READ, MOESIM_RAW_KINDS, 0.0, plan_read, sample_read },
    { "the link alone", false, MOESIM_RAW_JOINT_LINK, MOESIM_RAW_KINDS, 0.0, plan_load, sample_load },
    { "link and CPU together", false, MOESIM_RAW_JOINT_CPU, MOESIM_RAW_JOINT_LINK, 0.0, plan_joint, sample_joint },
    { "grouped calls", false, MOESIM_RAW_GROUPED, MOESIM_RAW_KINDS, 1e-3, plan_grouped, sample_grouped },
    { "gate to gate", false, MOESIM_RAW_EMPTY, MOESIM_RAW_KINDS, 2e-4, plan_empty, sample_empty },
    { "events with hits", false, MOESIM_RAW_EVENT_HITS, MOESIM_RAW_KINDS, 5e-4, moesim_event_plan_hits, moesim_event_sample },
    { "events with copies", false, MOESIM_RAW_EVENT_MOVED, MOESIM_RAW_KINDS, 1e-3, moesim_event_plan_moved,
      moesim_event_sample },
    { "events on the CPU", false, MOESIM_RAW_EVENT_CPU, MOESIM_RAW_KINDS, 1e-3, moesim_event_plan_cpu, moesim_event_sample },
    { "hits and the CPU", false, MOESIM_RAW_EVENT_BOTH, MOESIM_RAW_KINDS, 1e-3, moesim_event_plan_both, moesim_event_sample },
    { "attention, router, shared expert", true, MOESIM_RAW_OTHER, MOESIM_RAW_OTHER_HOST, 1e-3, plan_other, sample_other },
    { "LM head", true, MOESIM_RAW_HEAD, MOESIM_RAW_KINDS, 1e-3, plan_head, sample_head },
    { NULL, false, 0, 0, 0.0, NULL, NULL },
};
