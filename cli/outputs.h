/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command reads beside its traces may not be written over either: hardware profiles and policies from shared objects.
 */
#ifndef MOESIM_CLI_OUTPUTS_H
#define MOESIM_CLI_OUTPUTS_H

#include "base/args.h"
#include "base/paths.h"
#include "policies/registry.h"

/* MOESIM_E_USAGE if an output is one of the files behind --profile and --policy; names of what is built in are no files. */
moesim_code moesim_check_sources(const char *const *profile, size_t profiles, const moesim_policy_spec *policy, size_t policies,
                                 const moesim_named_file *output, size_t outputs, moesim_error *err);

#endif
