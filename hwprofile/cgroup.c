/* SPDX-License-Identifier: Apache-2.0
 *
 * From /proc/self/cgroup, lines of "number:controllers:/path" (v2: no controllers), to folders.
 */
#include "hwprofile/cgroup.h"

#include <stdio.h>
#include <string.h>

#define PATH_ROOM 4096

static void each_above(const char *root, const char *path, bool v2, moesim_cgroup_visit *visit, void *cookie)
{
    char folder[PATH_ROOM + 64];
    if (snprintf(folder, sizeof folder, "%s%s", root, path) >= (int)sizeof folder)
        return;
    for (char *slash; ; *slash = '\0') {
        visit(cookie, folder, v2);
        if ((slash = strrchr(folder + strlen(root), '/')) == NULL)
            return;
    }
}

bool moesim_cgroup_lists(const char *controllers, const char *controller)
{
    const size_t n = strlen(controller);
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, controller, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

void moesim_cgroup_each(const char *controller, moesim_cgroup_visit *visit, void *cookie)
{
    char line[PATH_ROOM], root[64];
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        controllers++;
        const bool v2 = controllers[0] == '\0';
        if (!v2 && !moesim_cgroup_lists(controllers, controller))
            continue;
        (void)snprintf(root, sizeof root, "/sys/fs/cgroup%s%s", v2 ? "" : "/", v2 ? "" : controller);
        each_above(root, path, v2, visit, cookie);
    }
    if (f != NULL)
        fclose(f);
}
