/* SPDX-License-Identifier: Apache-2.0
 *
 * Temporary files that killed processes left behind: ".NAME.PID-N.tmp" beside NAME, as output.c names them.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"

#define PID_DIGITS 9u
#define PART_CHARS 24            /* of ".K" behind a name */

static const char *skip_digits(const char *text)
{
    while (isdigit((unsigned char)*text))
        text++;
    return text;
}

/* Reads ".NAME.PID-N.tmp", with `parts` ".NAME.K.PID-N.tmp" too. Returns PID, or 0 for any other name. */
static pid_t maker(const char *entry, const char *name, bool parts)
{
    const size_t chars = strlen(name);
    if (entry[0] != '.' || strncmp(entry + 1, name, chars) != 0 || entry[1 + chars] != '.')
        return 0;
    const char *digits = entry + 2 + chars, *end = skip_digits(digits);
    if (parts && end > digits && *end == '.') {
        digits = end + 1;
        end = skip_digits(digits);
    }
    if (end == digits || (size_t)(end - digits) > PID_DIGITS || end[0] != '-' || !isdigit((unsigned char)end[1]) ||
        strcmp(skip_digits(end + 1), ".tmp") != 0)
        return 0;
    pid_t pid = 0;
    for (; digits < end; digits++)
        pid = pid * 10 + (*digits - '0');
    return pid;
}

/* The process is no more, and the file is ours. */
static bool is_left(int folder, const char *entry, pid_t pid)
{
    struct stat st;
    return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH && fstatat(folder, entry, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

void moesim_output_clean(const char *path, bool parts)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const size_t chars = (size_t)(name - path);
    /* longer names are cut, so that what is left of them could be another file's */
    if (chars >= sizeof folder || name[0] == '\0' || strlen(name) > MOESIM_TEMPORARY_NAME - PART_CHARS)
        return;
    memcpy(folder, chars > 0 ? path : ".", chars > 0 ? chars : 1);
    folder[chars > 0 ? chars : 1] = '\0';
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir))
        if (is_left(dirfd(dir), d->d_name, maker(d->d_name, name, parts)))
            (void)unlinkat(dirfd(dir), d->d_name, 0);
    (void)closedir(dir);
}
