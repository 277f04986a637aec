/* SPDX-License-Identifier: Apache-2.0
 *
 * The cgroups that limit this process.
 */
#ifndef MOESIM_HWPROFILE_CGROUP_H
#define MOESIM_HWPROFILE_CGROUP_H

#include <stdbool.h>

/* folder: "/sys/fs/cgroup/a/b"; v2: of the unified hierarchy, else of the controller's own. */
typedef void moesim_cgroup_visit(void *cookie, const char *folder, bool v2);

/* Is a controller among those of a line, "cpu,cpuacct"? As a word: "cpu" is not "cpuset". */
bool moesim_cgroup_lists(const char *controllers, const char *controller);

/* Calls visit for the process's own group of `controller` ("cpu", "memory"; v1 or v2) and each one above it, the root
 * included. Nothing where the system has no cgroups. Thread-safe. */
void moesim_cgroup_each(const char *controller, moesim_cgroup_visit *visit, void *cookie);

#endif
