/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a sweep, held against each other before anything is begun.
 */
#include <limits.h>

#include "base/output.h"
#include "base/paths.h"
#include "cli/outputs.h"
#include "cli/sweep.h"

moesim_code moesim_sweep_check_files(const moesim_sweep *s, moesim_error *err)
{
    const moesim_sweep_options *o = s->options;
    moesim_output *out = NULL;
    char partial[PATH_MAX + 16] = "", state[PATH_MAX + 32];
    if (o->output != NULL)
        (void)snprintf(partial, sizeof partial, "%s.partial", o->output);
    (void)snprintf(state, sizeof state, "%s.%u", partial, MOESIM_SWEEP_TRACES * MOESIM_SWEEP_VALUES);
    const moesim_named_file output[] = {
        { "option --output", o->output }, { "the working file", o->output != NULL ? partial : NULL },
        { "option --csv", o->csv },
    };
    const moesim_named_file from = { "option --from", o->from };
    const moesim_named_file apart[] = { from, output[2] };
    moesim_code code = moesim_check_outputs(&from, 1, output, 3, err);
    if (code == MOESIM_OK)
        code = moesim_check_numbered(apart, 2, partial, err);
    for (size_t i = 0; i < s->num_traces && code == MOESIM_OK; i++) {
        const moesim_named_file trace = { "the trace", s->trace[i].path };
        code = moesim_check_outputs(&trace, 1, output, 3, err);
        if (code == MOESIM_OK)
            code = moesim_check_numbered(&trace, 1, partial, err);
    }
    for (size_t i = 0; i < s->profile.n && code == MOESIM_OK; i++) {
        const moesim_named_file profile = { "option --profile", s->profile.item[i] };
        code = moesim_check_numbered(&profile, 1, partial, err);
    }
    if (code == MOESIM_OK)
        code = moesim_check_sources(s->profile.item, s->profile.n, s->policy, s->num_policies, output, 3, err);
    if (code == MOESIM_OK && o->output != NULL)
        code = moesim_output_open_file(o->output, &out, err);
    moesim_output_discard(&out);
    if (code == MOESIM_OK && o->output != NULL)
        code = moesim_output_open_file(state, &out, err);       /* the longest name of a working file */
    moesim_output_discard(&out);
    return code == MOESIM_OK && o->csv != NULL ? moesim_output_try(o->csv, err) : code;
}
