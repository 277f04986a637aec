/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole-file checks beyond what the reader refuses: the warnings of the format, which `--strict` turns into refusals.
 */
#ifndef MOESIM_TRACES_VALIDATE_H
#define MOESIM_TRACES_VALIDATE_H

#include "traces/trace.h"

/* Called once per warning, with one complete sentence that names dataset and first index. */
typedef void moesim_warning_fn(void *cookie, const char *text);

/* Reads every row (so every rule of the reader is checked) and reports warnings. strict: the first warning is an error. */
moesim_code moesim_trace_validate(moesim_trace *trace, bool strict, moesim_warning_fn *warn, void *cookie,
                                  moesim_error *err);

#endif
