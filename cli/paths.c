/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about file names on the command line.
 */
#include "cli/paths.h"

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

bool moesim_same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    if (a == NULL || b == NULL)
        return false;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}
