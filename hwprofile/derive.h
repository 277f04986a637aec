/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile of a machine that nobody has measured, from nominal rates and rules of thumb (hwprofile/PROFILE.md, "Deriving").
 * Its label is "not measured".
 */
#ifndef MOESIM_HWPROFILE_DERIVE_H
#define MOESIM_HWPROFILE_DERIVE_H

#include <stddef.h>

#include "hwprofile/geometry.h"
#include "hwprofile/profile.h"

/* B/s. link_measured, back: as copied, by another tool (moesim_nvbandwidth_read); 0: none, and `link` is the nominal rate. */
typedef struct moesim_nominal {
    double link, dram, hbm, link_measured, back;
    uint32_t threads;                    /* of the CPU; 0: 16 */
    const char *tool;                    /* what measured: for notes; NULL without */
} moesim_nominal;

#define MOESIM_DERIVE_THREADS 16u

/* model: whose expert the tables are of, and whose sizes `other` and head have. FORMAT errors if the rates contradict each
 * other (memory slower than the link). path: for messages. */
moesim_code moesim_derive(const moesim_nominal *nominal, const moesim_geometry *model, const char *name, const char *path,
                          moesim_profile *out, moesim_error *err);

/* What deriving costs: the built-in profile of the H200 host against the same host derived from its data sheet. Row i; false
 * past the end. estimate: the built-in profile itself holds an estimate there, so the row says nothing. */
typedef struct moesim_derive_row { char what[48]; const char *unit; double derived, shipped; bool estimate; } moesim_derive_row;
#define MOESIM_DERIVE_ROWS 32u
moesim_code moesim_derive_error(moesim_derive_row row[MOESIM_DERIVE_ROWS], size_t *n, char label[32], moesim_error *err);

/* nvbandwidth's JSON: host to device by copy engine, and back, of one GPU; B/s, back 0 where that test did not run. version:
 * of the tool. FORMAT errors name the file and what is wrong: a test that was waived or failed, a GPU that is not there. */
typedef struct moesim_nvbandwidth { double link, back; char version[48]; } moesim_nvbandwidth;
moesim_code moesim_nvbandwidth_read(const char *path, uint32_t gpu, moesim_nvbandwidth *out, moesim_error *err);

#endif
