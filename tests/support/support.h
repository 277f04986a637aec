/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests share: traces built in memory and written through the library, random traces, runs, captured decisions.
 * Every helper that cannot do its job prints why and aborts, so that a caller never has to check. Not thread-safe.
 */
#ifndef MOESIM_TESTS_SUPPORT_H
#define MOESIM_TESTS_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "policies/registry.h"
#include "sim/sim.h"
#include "traces/trace.h"
#include "traces/writer.h"

/* Prints "file:line: text" to stderr and aborts. */
#define test_die(...) test_die_at(__FILE__, __LINE__, __VA_ARGS__)
void test_die_at(const char *file, int line, const char *fmt, ...) MOESIM_PRINTF(3, 4) __attribute__((noreturn));

/* ---- traces in memory ------------------------------------------------------------------------------------------ */

/* A trace under construction. Row arrays grow together: expert, gate and residency hold M·K values a row, prob M·E.
 * info.has_… say which optional columns are written; test_trace_init sets gate and confidence only. */
struct test_trace {
    moesim_trace_info info;
    int32_t *layer_ids;          /* [M] 0..M-1 */
    uint64_t *expert_bytes;      /* [M] 1000 each */
    moesim_trace_request *request;
    size_t num_requests, cap_requests;
    struct test_pass { moesim_pass pass; uint64_t pass_ns; } *pass;
    size_t num_passes, cap_passes;
    size_t num_rows, cap_rows;
    uint16_t *expert;            /* MOESIM_NO_ROUTE until set */
    float *gate;                 /* 1/K until set */
    float *confidence;           /* NaN until set */
    uint8_t *state;              /* 2 (committed earlier) until set */
    int32_t *position;
    float *prob;                 /* 1/E until set; filled only if has_prob was set before the first pass */
    int32_t *token_id;
    uint8_t *residency;
};

/* M layers, E experts, top K, block length B. */
void test_trace_init(struct test_trace *t, uint32_t layers, uint32_t experts, uint32_t top_k, uint32_t block_length);
void test_trace_fini(struct test_trace *t);

/* Returns the request's number. output_tokens < 0: not recorded for this trace (all requests must agree). */
uint32_t test_trace_add_request(struct test_trace *t, const char *workload, uint32_t prompt_tokens, int64_t output_tokens);

/* Adds a pass with `rows` rows, positions from `position` upwards; returns the pass's number. forward = its number. */
size_t test_trace_add_pass(struct test_trace *t, uint32_t request, uint8_t kind, int32_t block, int32_t step, size_t rows,
                           int32_t position);

/* First row of a pass. */
size_t test_trace_row(const struct test_trace *t, size_t pass);

/* [K] of (row, layer). */
uint16_t *test_trace_ids(struct test_trace *t, size_t row, uint32_t layer);
float *test_trace_gates(struct test_trace *t, size_t row, uint32_t layer);

/* Sets the ids of (row, layer) from n ≤ K ids; the other slots stay unused. */
void test_trace_route(struct test_trace *t, size_t row, uint32_t layer, size_t n, const uint16_t *ids);

/* A denoise pass of request 0 whose row(s) route to exactly `ids` in every layer (as many rows of K as needed). */
size_t test_trace_add_set(struct test_trace *t, int32_t step, size_t n, const uint16_t *ids);

moesim_code test_trace_try_write(const struct test_trace *t, const char *path, moesim_error *err);
void test_trace_write(const struct test_trace *t, const char *path);

/* ---- random traces --------------------------------------------------------------------------------------------- */

struct test_shape {
    uint32_t layers, experts, top_k, block_length;
    uint32_t requests, blocks;   /* blocks per request */
    uint32_t prefill_rows;       /* 0: no prefill pass */
    uint32_t max_steps;          /* most denoise passes of one block; the last commits what is left */
    bool commit_passes;          /* a commit pass after each block */
    bool empty_passes;           /* now and then a pass without rows, and one whose slots are all unused */
    bool dummy_passes;           /* now and then a pass of kind 3 */
    bool unused_slots;           /* now and then a row with fewer than K routes */
    bool edits;                  /* committed tokens are sometimes edited */
    bool interleave;             /* passes of the requests alternate */
    uint32_t forward_groups;     /* > 1: up to so many consecutive decode passes of different requests share a forward
                                  * number (with interleave) */
    double redraw;               /* chance that a slot is drawn anew in the next pass of its position */
};

/* Plausible: masked tokens are committed by confidence (at least one a pass), routes persist by position. All gates and
 * confidences are exact in f16. The same seed gives the same trace. */
void test_trace_random(struct test_trace *t, const struct test_shape *shape, uint64_t seed);

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* A fresh folder, removed with what lies in it when the process exits. */
const char *test_folder(void);

/* folder/name; the same pointer for the same name, valid until the process exits. At most 256 names. */
const char *test_path(const char *name);

/* ---- runs ------------------------------------------------------------------------------------------------------ */

/* All runs hand made-up costs to the policies that need them.
 *
 * Parses the option string; dies if the registry refuses. */
void test_spec(moesim_policy_spec *spec, const char *policy);

/* One configuration; params NULL: defaults. The caller releases *out with moesim_outcome_fini. */
moesim_code test_try_run(const char *trace, const char *policy, uint32_t cache, const moesim_run_params *params,
                         moesim_outcome *out, moesim_error *err);
void test_run(const char *trace, const char *policy, uint32_t cache, const moesim_run_params *params, moesim_outcome *out);

/* The same in scope global with a budget in bytes. */
void test_run_global(const char *trace, const char *policy, uint64_t bytes, const moesim_run_params *params,
                     moesim_outcome *out);

/* Several policies × capacities in one moesim_run; out[p·n_caches + c]. */
void test_run_grid(const char *trace, const char *const *policies, size_t n_policies, const uint32_t *caches,
                   size_t n_caches, const moesim_run_params *params, moesim_outcome *out);

/* Value of the named metric (sim/metrics.h); dies if there is none. */
double test_metric(const moesim_outcome *out, const char *name);

/* True where every sum, every request's and layer's sums and every count agree bit for bit (counters of the policy too). */
bool test_outcome_equal(const moesim_outcome *a, const moesim_outcome *b);

/* ---- decisions ------------------------------------------------------------------------------------------------- */

/* All decisions of one run, read back from its decision log. Ids of an event begin at …_begin[event]. */
struct test_decisions {
    size_t num_events;
    uint64_t *pass, *clock;
    uint32_t *layer, *counted;
    uint64_t *hits_begin, *moved_begin, *cpu_begin, *evicted_begin;   /* [num_events + 1] */
    uint16_t *hits, *moved, *cpu, *evicted;
};

void test_run_decisions(const char *trace, const char *policy, uint32_t cache, const moesim_run_params *params,
                        moesim_outcome *out, struct test_decisions *decisions);
void test_decisions_fini(struct test_decisions *d);
bool test_decisions_equal(const struct test_decisions *a, const struct test_decisions *b);

#endif
