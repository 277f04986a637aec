/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of trace salvage share.
 */
#include "tests/unit/traces_write/salvaged.h"

#include <stdio.h>
#include <string.h>

#include "traces/validate.h"

void salvage_trace(struct test_trace *t)
{
    rich_trace(t, 2);
    t->info.has_output_tokens = true;
    for (size_t q = 0; q < t->num_requests; q++) {
        t->request[q].output_tokens = 1;
        t->request[q].output_tokens_known = true;
    }
}

moesim_code salvage(const char *in, moesim_salvage_result *result, moesim_error *err)
{
    size_t before, after;
    unsigned char *old = slurp(test_path(in), &before), *new;
    *result = (moesim_salvage_result){.whole = false};
    const moesim_code code = moesim_trace_salvage(test_path(in), test_path("out.h5"), NULL, result, err);
    new = slurp(test_path(in), &after);
    ck_assert(before == after && memcmp(old, new, before) == 0);
    free(old);
    free(new);
    return code;
}

void salvage_well(const char *in, moesim_salvage_result *result)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(salvage(in, result, &err) == MOESIM_OK, "%s", err.text);
    ck_assert(!result->whole);
}

moesim_trace *open_salvaged(void)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    ck_assert_msg(moesim_trace_open(test_path("out.h5"), NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_validate(trace, false, NULL, NULL, &err) == MOESIM_OK, "%s", err.text);
    return trace;
}

/* Requests up to the last one that commits a token in the first passes, or else up to the last one with a pass. */
static size_t count_requests(const struct test_trace *t, size_t passes, size_t rows)
{
    size_t seen = 0, committed = 0;
    for (size_t p = 0, r = 0; p < passes; p++) {
        const moesim_pass *pass = &t->pass[p].pass;
        const size_t end = p + 1 < passes ? test_trace_row(t, p + 1) : rows, last = pass->request + 1;
        bool commits = false;
        for (; r < end; r++)
            commits = commits || (t->state[r] == MOESIM_STATE_COMMITTED_NOW && pass->kind != MOESIM_PASS_DUMMY);
        seen = last > seen ? last : seen;
        committed = commits && last > committed ? last : committed;
    }
    return committed > 0 ? committed : seen;
}

void check_kept(struct test_trace *t, size_t passes)
{
    struct test_trace want = *t;
    want.num_passes = passes;
    want.num_rows = passes < t->num_passes ? test_trace_row(t, passes) : t->num_rows;
    want.num_requests = count_requests(t, passes, want.num_rows);
    test_trace_write(&want, test_path("want.h5"));
    moesim_trace_close(&(moesim_trace *){open_salvaged()});
    check_same_content(test_path("want.h5"), test_path("out.h5"), 0, 0);
    ck_assert_int_eq(remove(test_path("want.h5")), 0);
}
