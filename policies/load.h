/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading of outside policies. Loading runs the constructors of the file: it is code that the user chose to run.
 */
#ifndef MOESIM_POLICIES_LOAD_H
#define MOESIM_POLICIES_LOAD_H

#include "base/error.h"
#include "moesim/policy.h"

/* Opens the shared object and takes its policy, checked by moesim_policy_check. *library belongs to the caller (dlclose) and
 * must outlive the policy; both are NULL after an error. */
moesim_code moesim_policy_load(const char *path, const moesim_policy **policy, void **library, moesim_error *err);

#endif
