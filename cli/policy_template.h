/* SPDX-License-Identifier: Apache-2.0
 *
 * The text that `moesim policy new` writes.
 */
#ifndef MOESIM_CLI_POLICY_TEMPLATE_H
#define MOESIM_CLI_POLICY_TEMPLATE_H

/* NULL-ended lines without line ends; '@' stands for the policy's name. */
extern const char *const moesim_policy_template[];

#endif
