/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs replay and fidelity of moesim-device share: from words to a bench with jobs, and what is printed.
 */
#ifndef MOESIM_CLI_DEVICE_LOAD_H
#define MOESIM_CLI_DEVICE_LOAD_H

#include "cli/cachelist.h"
#include "cli/device.h"
#include "policies/registry.h"
#include "replay/grid.h"

typedef struct moesim_device_session {
    const moesim_device_words *words;
    const char *path;            /* the trace */
    bool full;                   /* one job of full residency without a cap comes last */
    double started;              /* for the time limit */
    moesim_trace *trace;
    const moesim_device_ops *ops;
    const moesim_geometry *geometry;
    moesim_profile *profile;     /* NULL until a policy reads costs */
    moesim_policy_spec *policy;
    size_t num_policies;
    moesim_cachelist cache;
    double *cap;                 /* [num_caps] B/s, 0: none */
    size_t num_caps;
    moesim_bench *bench;
    moesim_grid_job *job;
    uint32_t num_jobs;
} moesim_device_session;

/* Checks the words against each other and the trace, decides, and opens the device, going on with the file -o where there is
 * one. Release with fini, also after an error. */
moesim_code moesim_device_load(moesim_device_session *s, moesim_error *err);
void moesim_device_session_fini(moesim_device_session *s);

/* Executes what is missing, and says what there is. */
moesim_code moesim_device_execute(moesim_device_session *s, moesim_error *err);

#endif
