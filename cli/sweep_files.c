/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a sweep, held against each other before anything is begun.
 */
#include <limits.h>
#include <stdio.h>

#include "base/output.h"
#include "base/paths.h"
#include "cli/outputs.h"
#include "cli/sweep.h"

#define OUTPUTS 3

/* The working files of parts are the partial file's name with numbers. */
static moesim_code check_input(const moesim_named_file *input, const moesim_named_file output[OUTPUTS], const char *partial,
                               moesim_error *err)
{
    const moesim_code code = moesim_check_outputs(input, 1, output, OUTPUTS, err);
    return code == MOESIM_OK ? moesim_check_numbered(input, 1, partial, err) : code;
}

/* The result, and the longest name of a working file. */
static moesim_code try_output(const char *path, const char *partial, moesim_error *err)
{
    char state[PATH_MAX + 32];
    moesim_output *out = NULL;
    (void)snprintf(state, sizeof state, "%s.%u", partial, MOESIM_SWEEP_TRACES * MOESIM_SWEEP_VALUES);
    moesim_code code = moesim_output_open_file(path, &out, err);
    moesim_output_discard(&out);
    if (code == MOESIM_OK)
        code = moesim_output_open_file(state, &out, err);
    moesim_output_discard(&out);
    return code;
}

moesim_code moesim_sweep_check_files(const moesim_sweep *s, moesim_error *err)
{
    const moesim_sweep_options *o = s->options;
    char partial[PATH_MAX + 16] = "";
    if (o->output != NULL)
        (void)snprintf(partial, sizeof partial, "%s.partial", o->output);
    const moesim_named_file output[OUTPUTS] = {
        { "option --output", o->output }, { "the working file", o->output != NULL ? partial : NULL },
        { "option --csv", o->csv },
    };
    const moesim_named_file from = { "option --from", o->from };
    moesim_code code = check_input(&from, output, partial, err);
    if (code == MOESIM_OK)
        code = moesim_check_numbered(&output[2], 1, partial, err);
    for (size_t i = 0; i < s->num_traces && code == MOESIM_OK; i++) {
        const moesim_named_file trace = { "the trace", s->trace[i].path };
        code = check_input(&trace, output, partial, err);
    }
    for (size_t i = 0; i < s->profile.n && code == MOESIM_OK; i++) {
        const moesim_named_file profile = { "option --profile", s->profile.item[i] };
        code = moesim_check_numbered(&profile, 1, partial, err);
    }
    if (code == MOESIM_OK)
        code = moesim_check_sources(s->profile.item, s->profile.n, s->policy, s->num_policies, output, OUTPUTS, err);
    if (code == MOESIM_OK && o->output != NULL)
        code = try_output(o->output, partial, err);
    return code == MOESIM_OK && o->csv != NULL ? moesim_output_try(o->csv, err) : code;
}
