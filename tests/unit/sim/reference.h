/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of a trace in memory, worked out the slow and obvious way, and compared with what a source delivers.
 */
#ifndef MOESIM_TESTS_UNIT_SIM_REFERENCE_H
#define MOESIM_TESTS_UNIT_SIM_REFERENCE_H

#include "sim/window.h"
#include "tests/support/support.h"

enum { MOST_PARTS = 256 };

struct ref_step {
    size_t pass[MOST_PARTS];
    uint32_t parts;
    bool decode, counted;
    uint32_t kind;
};

struct ref {
    const struct test_trace *t;
    moesim_window_params params;
    struct ref_step *step;
    size_t n;
    uint64_t touches;            /* so far */
};

void ref_init(struct ref *r, const struct test_trace *t, const moesim_window_params *params);
void ref_fini(struct ref *r);

/* Checks one window whose first step is step `first` of the run; fails the running test at the first difference. */
void ref_check_window(struct ref *r, const moesim_window *w, size_t first);

/* Writes the trace, opens a source over it with these parameters, checks every window. Returns the number of windows. */
size_t ref_check_all(const struct test_trace *t, const moesim_window_params *params);

/* Parameters that ask for everything. */
moesim_window_params ref_params(size_t window_bytes);

#endif
