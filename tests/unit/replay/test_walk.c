/* SPDX-License-Identifier: Apache-2.0
 *
 * Decision logs read back and joined with their trace: what each event holds against a second bookkeeping, and every kind of
 * log that does not fit.
 */
#include <stdlib.h>

#include "sim/walk.h"
#include "tests/unit/replay/common.h"
#include "traces/declog.h"

#define LAYERS 3u
#define EXPERTS 24u
#define TOP_K 4u

static const moesim_walk_params whole = {.request_end = UINT64_MAX, .batch = 1, .max_rows = 64, .window_bytes = 1 << 18};

static const char *const policies[] = {
    "naive", "lru", "lfu", "lfru", "random", "oled", "oled:confidence=deferred", "oled-full", "oled-full:enforce=eager", "surv",
    "belady", "belady-forced", "belady-pooled", "next-pass", "full", NULL,
};

/* Rows that chose an expert, from the trace itself. */
static uint32_t rows_of(const moesim_rows *rows, uint32_t row, uint32_t n, uint32_t layer, uint32_t expert, uint16_t *out)
{
    uint32_t found = 0;
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t k = 0; k < TOP_K; k++)
            if (rows->expert[((size_t)(row + r) * LAYERS + layer) * TOP_K + k] == expert)
                out[found++] = (uint16_t)r;
    return found;
}

struct residency { bool in[LAYERS][EXPERTS]; };

static bool leaves(const moesim_walk_event *e, uint16_t expert)
{
    for (uint32_t i = 0; i < e->n_evicted; i++)
        if (e->evicted[i] == expert)
            return true;
    return false;
}

static void check_event(const moesim_walk_event *e, const moesim_rows *rows, uint64_t begin, struct residency *now)
{
    bool seen[EXPERTS] = {false};
    const struct { const moesim_walk_expert *list; uint32_t n; bool resident; } part[] = {
        {e->hits, e->n_hits, true}, {e->moved, e->n_moved, false}, {e->cpu, e->n_cpu, false},
    };
    uint16_t want[64];
    for (size_t p = 0; p < 3; p++)
        for (uint32_t i = 0; i < part[p].n; i++) {
            const moesim_walk_expert *x = &part[p].list[i];
            ck_assert(!seen[x->expert]);
            seen[x->expert] = true;
            if (p == 0 || (p == 2 && !leaves(e, x->expert)))     /* others may have left for another need */
                ck_assert_int_eq(now->in[e->layer][x->expert], part[p].resident);
            const uint32_t n = rows_of(rows, (uint32_t)(begin - rows->begin), e->num_rows, e->layer, x->expert, want);
            ck_assert_uint_eq(x->tokens, n);
            ck_assert_uint_eq(x->listed, n);
            ck_assert_mem_eq(x->row, want, n * sizeof *want);
        }
    uint32_t active = 0;
    for (uint32_t x = 0; x < EXPERTS; x++)
        active += seen[x];
    ck_assert_uint_eq(active, e->n_active);
    for (uint32_t i = 0; i < e->n_moved; i++)
        now->in[e->layer][e->moved[i].expert] = true;
    for (uint32_t i = 0; i < e->n_evicted; i++)
        now->in[e->layer][e->evicted[i]] = false;
    for (uint32_t i = 0; i < e->n_moved; i++)
        ck_assert_int_eq(e->kept[i] != 0, now->in[e->layer][e->moved[i].expert]);
}

static uint64_t residents(const struct residency *r)
{
    uint64_t n = 0;
    for (uint32_t l = 0; l < LAYERS; l++)
        for (uint32_t e = 0; e < EXPERTS; e++)
            n += r->in[l][e];
    return n;
}

static void check_policy(const char *trace_path, const char *policy)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = open_trace(trace_path);
    moesim_declog_reader *log = NULL;
    moesim_log_facts facts;
    moesim_walk *walk = NULL;
    moesim_cursor *cursor = NULL;
    moesim_walk_event e;
    moesim_rows rows;
    struct residency now = {.in = {{false}}};
    uint64_t events = 0, counted = 0, peak = 0;
    bool end = false;
    WORKS(moesim_declog_open(write_log(trace_path, policy, 6, UINT64_MAX, "log.h5"), &log, &err));
    WORKS(moesim_log_facts_read(log, &facts, &err));
    WORKS(moesim_walk_open(trace, log, &whole, &walk, &err));
    WORKS(moesim_cursor_open(trace, MOESIM_COLUMN_EXPERT, 1 << 20, &cursor, &err));
    for (uint32_t l = 0; l < LAYERS; l++)
        for (uint32_t x = 0; x < EXPERTS; x++)
            now.in[l][x] = facts.initial[l] >> x & 1u;
    ck_assert_uint_eq(residents(&now), facts.num_initial);
    peak = facts.num_initial;
    for (;; events++) {
        moesim_pass pass;
        WORKS(moesim_walk_next(walk, &e, &end, &err));
        if (end)
            break;
        WORKS(moesim_trace_pass(trace, e.pass, &pass, &err));
        WORKS(moesim_cursor_rows(cursor, pass.row_begin, pass.row_end, &rows, &err));
        ck_assert_uint_eq(e.index, events);
        ck_assert_uint_eq(e.layer, events % LAYERS);
        ck_assert_uint_eq(e.request, pass.request);
        ck_assert_uint_eq(e.num_rows, pass.row_end - pass.row_begin);
        check_event(&e, &rows, pass.row_begin, &now);
        counted += e.counted;
        peak = residents(&now) > peak ? residents(&now) : peak;
    }
    const moesim_declog_info *info = moesim_declog_get_info(log);
    ck_assert_uint_eq(events, info->events);
    ck_assert_uint_eq(counted, info->counted_events);
    ck_assert_uint_gt(counted, 0);
    ck_assert_uint_eq(peak, facts.peak);
    moesim_cursor_close(&cursor);
    moesim_walk_close(&walk);
    moesim_log_facts_fini(&facts);
    moesim_declog_close(&log);
    moesim_trace_close(&trace);
}

START_TEST(events)
{
    const char *path = random_trace("t.h5", 3);
    for (size_t i = 0; policies[i] != NULL; i++)
        check_policy(path, policies[i]);
}
END_TEST

START_TEST(long_prefill)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const char *path = random_trace("t.h5", 3);
    moesim_trace *trace = open_trace(path);
    moesim_declog_reader *log = NULL;
    moesim_walk *walk = NULL;
    moesim_walk_params params = whole;
    moesim_walk_event e;
    bool end = false;
    uint32_t cut = 0;
    params.max_rows = 8;         /* one fewer than the prefill has */
    WORKS(moesim_declog_open(write_log(path, "lru", 6, UINT64_MAX, "log.h5"), &log, &err));
    WORKS(moesim_walk_open(trace, log, &params, &walk, &err));
    for (;;) {
        WORKS(moesim_walk_next(walk, &e, &end, &err));
        if (end)
            break;
        cut += e.num_rows > e.listed_rows;
        for (uint32_t i = 0; i < e.n_active && e.num_rows > e.listed_rows; i++) {
            ck_assert_uint_eq(e.active[i].listed, 1);
            ck_assert_uint_lt(e.active[i].row[0], 8);
        }
    }
    ck_assert_uint_eq(cut, 3 * LAYERS);
    moesim_walk_close(&walk);
    moesim_declog_close(&log);
    moesim_trace_close(&trace);
}
END_TEST

START_TEST(other_trace)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const char *log_path = write_log(random_trace("a.h5", 3), "lru", 6, UINT64_MAX, "log.h5");
    moesim_trace *other = open_trace(random_trace("b.h5", 4));
    moesim_declog_reader *log = NULL;
    moesim_walk *walk = NULL;
    WORKS(moesim_declog_open(log_path, &log, &err));
    REFUSED(moesim_walk_open(other, log, &whole, &walk, &err), MOESIM_E_USAGE, "another trace");
    moesim_declog_close(&log);
    moesim_trace_close(&other);
}
END_TEST

static moesim_code walk_all(const char *trace_path, const char *log_path, const moesim_walk_params *params, moesim_error *err)
{
    moesim_trace *trace = open_trace(trace_path);
    moesim_declog_reader *log = NULL;
    moesim_walk *walk = NULL;
    moesim_walk_event e;
    bool end = false;
    moesim_code code = moesim_declog_open(log_path, &log, err);
    if (code == MOESIM_OK)
        code = moesim_walk_open(trace, log, params, &walk, err);
    while (code == MOESIM_OK && !end)
        code = moesim_walk_next(walk, &e, &end, err);
    moesim_walk_close(&walk);
    moesim_declog_close(&log);
    moesim_trace_close(&trace);
    return code;
}

START_TEST(other_selection)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const char *trace = random_trace("t.h5", 3), *log = write_log(trace, "lru", 6, 2, "log.h5");
    moesim_walk_params params = whole;
    REFUSED(walk_all(trace, log, &params, &err), MOESIM_E_USAGE, "--requests");
    params.request_end = 1;
    REFUSED(walk_all(trace, log, &params, &err), MOESIM_E_USAGE, "--requests");
    params.request_end = 2;
    WORKS(walk_all(trace, log, &params, &err));
    params.warmup = 1;
    REFUSED(walk_all(trace, log, &params, &err), MOESIM_E_USAGE, "--warmup");
}
END_TEST

START_TEST(free_reload)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const char *trace = random_trace("t.h5", 3);
    moesim_declog_reader *log = NULL;
    moesim_log_facts facts;
    WORKS(moesim_declog_open(write_log(trace, "ideal", 6, UINT64_MAX, "log.h5"), &log, &err));
    REFUSED(moesim_log_facts_read(log, &facts, &err), MOESIM_E_FORMAT, "does not follow");
    moesim_declog_close(&log);
}
END_TEST

/* ---- logs that were not written by a run ---------------------------------------------------------------------------- */

struct bad { const char *what; moesim_decision d; moesim_code code; const char *text; };

static const uint16_t two[] = {3, 5}, same[] = {4, 4}, falling[] = {9, 2};

static moesim_code write_and_read(const moesim_decision *d, moesim_error *err)
{
    const moesim_declog_header header = {
        .trace_digest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", .model_id = "m", .policy = "p",
        .options = "", .config = "{}", .num_layers = 2, .num_experts = 10, .cache = 4, .seed = 1,
    };
    moesim_declog *log = NULL;
    moesim_declog_reader *reader = NULL;
    moesim_error first = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_declog_create(test_path("bad.h5"), &header, &log, &first), MOESIM_OK);
    ck_assert_int_eq(moesim_declog_append(log, d, &first), MOESIM_OK);
    ck_assert_int_eq(moesim_declog_finish(&log, NULL, &first), MOESIM_OK);
    const moesim_code code = moesim_declog_open(test_path("bad.h5"), &reader, err);
    moesim_declog_close(&reader);
    return code;
}

START_TEST(bad_lists)
{
    const struct bad rows[] = {
        {"fine", {.n_hits = 2, .hits = two}, MOESIM_OK, ""},
        {"moved in any order", {.n_moved = 2, .moved = falling}, MOESIM_OK, ""},
        {"twice", {.n_moved = 2, .moved = same}, MOESIM_E_FORMAT, "/moved/expert[1]"},
        {"twice", {.n_cpu = 2, .cpu = same}, MOESIM_E_FORMAT, "/cpu/expert[1]"},
        {"falling", {.n_hits = 2, .hits = falling}, MOESIM_E_FORMAT, "/hits/expert[1]"},
        {"falling", {.n_evicted = 2, .evicted = falling}, MOESIM_E_FORMAT, "/evicted/expert[1]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        ck_assert_msg(write_and_read(&rows[i].d, &err) == rows[i].code, "%s: %s", rows[i].what, err.text);
        ck_assert_msg(strstr(err.text, rows[i].text) != NULL, "%s: %s", rows[i].what, err.text);
    }
}
END_TEST

static unsigned char *read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    static unsigned char data[1 << 20];
    ck_assert_ptr_nonnull(f);
    *bytes = fread(data, 1, sizeof data, f);
    ck_assert_uint_lt(*bytes, sizeof data);
    ck_assert_int_eq(fclose(f), 0);
    return data;
}

/* Whatever is flipped is refused, or changes nothing that is handed out: the digest is over every decision. */
START_TEST(damage)
{
    const char *trace = random_trace("t.h5", 3), *log = write_log(trace, "lru", 6, 1, "log.h5");
    moesim_walk_params params = whole;
    size_t bytes, refused = 0;
    const unsigned char *data = read_file(log, &bytes);
    moesim_rng rng;
    moesim_rng_seed(&rng, 11);
    params.request_end = 1;
    for (int i = 0; i < 400; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        unsigned char copy[1 << 16];
        ck_assert_uint_le(bytes, sizeof copy);
        memcpy(copy, data, bytes);
        const size_t at = moesim_rng_below(&rng, (uint32_t)bytes);
        copy[at] ^= (unsigned char)(1u << moesim_rng_below(&rng, 8));
        const size_t length = i % 10 == 0 ? at : bytes;
        FILE *f = fopen(test_path("damaged.h5"), "wb");
        ck_assert_uint_eq(fwrite(copy, 1, length, f), length);
        ck_assert_int_eq(fclose(f), 0);
        const moesim_code code = walk_all(trace, test_path("damaged.h5"), &params, &err);
        ck_assert_msg(code == MOESIM_OK || code == MOESIM_E_FORMAT || code == MOESIM_E_USAGE || code == MOESIM_E_IO, "%d %s",
                      (int)code, err.text);
        ck_assert(code == MOESIM_OK || strchr(err.text, '\n') == NULL);
        refused += code != MOESIM_OK;
    }
    ck_assert_uint_gt(refused, 100);
}
END_TEST

RUN_TESTS("walk", events, long_prefill, other_trace, other_selection, free_reload, bad_lists, damage)
