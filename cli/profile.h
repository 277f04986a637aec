/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands that take a hardware profile share.
 */
#ifndef MOESIM_CLI_PROFILE_H
#define MOESIM_CLI_PROFILE_H

#include <stdio.h>

#include "base/args.h"
#include "hwprofile/geometry.h"
#include "hwprofile/profile.h"

/* Loads a profile, applies the words of --set in order and checks the whole (USAGE if they contradict it). */
moesim_code moesim_cli_load_profile(const char *name, const moesim_list *set, moesim_profile *out, moesim_error *err);

/* "4 us", "1.5 ms", "55 GB/s": unit is "s" or "B/s" as in moesim_profile_row. Returns text. */
const char *moesim_profile_text(double value, const char *unit, char text[32]);

/* USAGE unless the word of --name may be a profile's name; NULL is none. */
moesim_code moesim_cli_check_name(const char *name, moesim_error *err);

/* Prints head, constants and tables of a profile to standard output. */
void moesim_profile_print(const moesim_profile *profile);

/* Writes a profile that was made here as a file (path NULL: nowhere), and reads it back into *again: what can be written but
 * not read is never kept. */
moesim_code moesim_cli_keep_profile(const moesim_profile *profile, const char *path, moesim_profile *again, moesim_error *err);

/* Prints what the profile makes of the expert sizes of a model; the profile has mode model. */
void moesim_priced_table(const moesim_profile *profile, const moesim_geometry *model, enum moesim_dtype dtype, FILE *out);
moesim_code moesim_priced_json(const moesim_profile *profile, const moesim_geometry *model, enum moesim_dtype dtype,
                               FILE *out, moesim_error *err);

#endif
