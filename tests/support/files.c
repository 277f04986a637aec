/* SPDX-License-Identifier: Apache-2.0
 *
 * Temporary files of a test: one folder a process, removed when that process exits.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/support.h"

static char folder[512];
static pid_t owner;              /* Check forks: a child makes its own folder and leaves its parent's alone */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_folder(void)
{
    if (owner == getpid() && folder[0] != '\0')
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_folder(void)
{
    static bool registered;
    if (owner == getpid())
        return folder;
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/moesim-test-XXXXXX", root != NULL && root[0] != '\0' ? root : "/tmp");
    if (mkdtemp(folder) == NULL)
        test_die("cannot make %s", folder);
    owner = getpid();
    if (!registered && atexit(remove_folder) != 0)
        test_die("atexit refused");
    registered = true;
    return folder;
}

const char *test_path(const char *name)
{
    static struct { char text[1024]; } known[256];
    static size_t n;
    char text[sizeof known[0].text];
    snprintf(text, sizeof text, "%s/%s", test_folder(), name);
    for (size_t i = 0; i < n; i++)
        if (strcmp(known[i].text, text) == 0)
            return known[i].text;
    if (n == sizeof known / sizeof known[0])
        test_die("too many different names of temporary files");
    memcpy(known[n].text, text, sizeof text);
    return known[n++].text;
}
