/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of trace salvage share: files in.h5 (others by name) and out.h5 of the test's folder.
 */
#ifndef MOESIM_TESTS_TRACES_WRITE_SALVAGED_H
#define MOESIM_TESTS_TRACES_WRITE_SALVAGED_H

#include "tests/unit/traces_write/common.h"
#include "traces/salvage.h"

/* Six requests whose passes alternate; several chunks of routes. One token each was delivered, fewer than were committed. */
void salvage_trace(struct test_trace *t);

/* Salvages into out.h5; the input must stay as it was. */
moesim_code salvage(const char *in, moesim_salvage_result *result, moesim_error *err);
void salvage_well(const char *in, moesim_salvage_result *result);

/* out.h5, which must be valid. */
moesim_trace *open_salvaged(void);

/* out.h5 holds exactly the first passes of t, and its requests up to the last one that commits a token in them, or else that
 * has one of them. */
void check_kept(struct test_trace *t, size_t passes);

#endif
