/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of built-in policies. A new one needs its file, a row here and a line in policies/meson.build.
 */
#include "policies/registry.h"

#define POLICY_ROWS(row) \
    row(random)          \
    row(naive)           \
    row(lru)             \
    row(lfu)             \
    row(lfru)            \
    row(oled)            \
    row(oled_full)       \
    row(surv)            \
    row(belady)          \
    row(belady_forced)   \
    row(belady_pooled)   \
    row(ideal)           \
    row(ideal_pooled)    \
    row(next_pass)       \
    row(full)

#define DECLARE(id) extern const moesim_policy moesim_policy_##id;
#define LIST(id) &moesim_policy_##id,

POLICY_ROWS(DECLARE)

const moesim_policy *const *moesim_policies(void)
{
    static const moesim_policy *const table[] = { POLICY_ROWS(LIST) NULL };
    return table;
}
