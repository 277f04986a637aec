/* SPDX-License-Identifier: Apache-2.0
 *
 * How every command opens a trace.
 */
#include "cli/cli.h"
#include "sim/kernels.h"
#include "traces/oldformat.h"

moesim_code moesim_cli_open_trace(const char *path, bool old_format, struct moesim_trace **out, moesim_error *err)
{
    if (moesim_kernels_check(err) != MOESIM_OK)
        return err->code;
    return old_format ? moesim_trace_open_old(path, out, err) : moesim_trace_open(path, NULL, out, err);
}
