/* SPDX-License-Identifier: Apache-2.0
 *
 * What the printed forms of a fidelity report share.
 */
#ifndef MOESIM_CLI_FIDELITY_TEXT_H
#define MOESIM_CLI_FIDELITY_TEXT_H

#include "cli/fidelity.h"

/* "+1.23%"; "n/a" where undefined. */
const char *moesim_text_error(double error, char out[16]);

/* "1.23%": without its sign. */
const char *moesim_text_size(double error, char out[16]);

/* "[-0.5 +1.2]" in percent, "[n/a]" where undefined. */
const char *moesim_text_error_interval(moesim_interval interval, char out[32]);

/* "oled at 40" and, on a slower link, ", 16 GB/s". */
const char *moesim_text_cell(const moesim_fidelity_cell *cell, char out[128]);

/* "test", "calibration" or "reference". */
static inline const char *moesim_fidelity_role(const moesim_fidelity_cell *c)
{
    return c->reference ? "reference" : c->calibration ? "calibration" : "test";
}

/* Head of a report: trace, sizes, device, run, profile, what was fitted, how far decisions agree. At most 80 columns. */
void moesim_fidelity_print_head(const moesim_fidelity_report *report, const moesim_fidelity_set *set, FILE *out);

/* Counts of a set: "24 of 24 cells executed exactly what was predicted". */
void moesim_fidelity_print_counts(const moesim_fidelity_set *set, FILE *out);

/* How intervals came about, for legends; lines of at most 80 columns. */
void moesim_fidelity_print_intervals(const moesim_fidelity_set *set, FILE *out);

#endif
