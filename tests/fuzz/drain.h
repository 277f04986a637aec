/* SPDX-License-Identifier: Apache-2.0
 *
 * What both fuzzers do with a file: open it as a trace, read everything, validate it. Any code is fine, a crash is not.
 */
#ifndef MOESIM_TESTS_FUZZ_DRAIN_H
#define MOESIM_TESTS_FUZZ_DRAIN_H

#include "traces/trace.h"
#include "traces/validate.h"

static inline moesim_code fuzz_drain(const char *path, moesim_error *err)
{
    moesim_trace *trace = NULL;
    moesim_code code = moesim_trace_open(path, NULL, &trace, err);
    if (code == MOESIM_OK)
        code = moesim_trace_validate(trace, false, NULL, NULL, err);
    moesim_trace_close(&trace);
    return code;
}

#endif
