/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two files of the witness share: the run and its steps.
 */
#ifndef MOESIM_TESTS_WITNESS_STEPS_H
#define MOESIM_TESTS_WITNESS_STEPS_H

#include "tests/property/witness.h"

enum witness_rule { NAIVE, LRU, LFU, LFRU, OLED, OLED_NONE, OLED_HINDSIGHT, SURV, BELADY, FORCED, RULES };

/* Passes that run together, in order. */
struct witness_step { size_t pass[256]; size_t n; };

struct witness_run {
    const struct test_trace *t;
    enum witness_rule rule;
    uint32_t m, e, k, slots;
    struct witness_step *step;
    size_t steps;
    size_t *previous;            /* [passes] pass before it of the same request and block, or SIZE_MAX */
    const moesim_run_params *params;
};

static inline const moesim_pass *pass_of(const struct witness_run *r, size_t p)
{
    return &r->t->pass[p].pass;
}

/* Fills step and previous (allocated by the caller for all passes). */
void witness_plan(struct witness_run *r);

/* Not dummy, of a selected request. */
bool witness_usable(const struct witness_run *r, size_t p);

/* Decode and not warm-up. */
bool witness_counted(const struct witness_run *r, const struct witness_step *step);

#endif
