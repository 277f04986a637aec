/* SPDX-License-Identifier: Apache-2.0
 *
 * Which file a name leads to.
 */
#include "base/paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"

#define MAX_LINKS 40   /* as many as Linux follows */

/* Where a name ends once the links of its last part are followed: the folder, resolved, and the last name in it. */
typedef struct place { char folder[PATH_MAX], name[NAME_MAX + 1]; } place;

/* Splits path; false where it has no last name, or its folder does not exist. */
static bool locate(const char *path, place *p)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const size_t chars = (size_t)(name - path);
    if (name[0] == '\0' || strlen(name) > NAME_MAX || chars >= sizeof folder)
        return false;
    memcpy(folder, chars > 0 ? path : ".", chars > 0 ? chars : 1);
    folder[chars > 0 ? chars : 1] = '\0';
    memcpy(p->name, name, strlen(name) + 1);
    return realpath(folder, p->folder) != NULL;
}

/* One link further: false where the place is no link. */
static bool follow(place *p)
{
    char path[PATH_MAX + NAME_MAX + 2], to[PATH_MAX], next[PATH_MAX + PATH_MAX + 2];
    (void)snprintf(path, sizeof path, "%s/%s", p->folder, p->name);
    const ssize_t n = readlink(path, to, sizeof to - 1);
    if (n <= 0)
        return false;
    to[n] = '\0';
    (void)snprintf(next, sizeof next, "%s%s%s", to[0] == '/' ? "" : p->folder, to[0] == '/' ? "" : "/", to);
    return locate(next, p);
}

static bool settle(const char *path, place *p)
{
    bool found = locate(path, p);
    for (int i = 0; found && i < MAX_LINKS && follow(p); i++)
        continue;
    return found;
}

bool moesim_same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    place pa, pb;
    if (a == NULL || b == NULL)
        return false;
    if (strcmp(a, b) == 0 || strcmp(a, "-") == 0 || strcmp(b, "-") == 0)
        return strcmp(a, b) == 0;
    const bool exists_a = stat(a, &sa) == 0, exists_b = stat(b, &sb) == 0;
    if (exists_a != exists_b)
        return false;
    if (exists_a)
        return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
    return settle(a, &pa) && settle(b, &pb) && strcmp(pa.name, pb.name) == 0 && stat(pa.folder, &sa) == 0 &&
           stat(pb.folder, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

moesim_code moesim_check_outputs(const moesim_named_file *input, size_t inputs, const moesim_named_file *output,
                                 size_t outputs, moesim_error *err)
{
    for (size_t o = 0; o < outputs; o++) {
        for (size_t i = 0; i < inputs; i++)
            if (moesim_same_file(output[o].path, input[i].path))
                return moesim_fail(err, MOESIM_E_USAGE, "%s: %s is the input itself (%s); name another output file",
                                   output[o].what, output[o].path, input[i].what);
        for (size_t i = 0; i < o; i++)
            if (moesim_same_file(output[o].path, output[i].path))
                return moesim_fail(err, MOESIM_E_USAGE, "%s: %s is the file of %s too; name another output file",
                                   output[o].what, output[o].path, output[i].what);
    }
    return MOESIM_OK;
}

static bool is_numbered(const char *path, const char *stem)
{
    struct stat sp, ss;
    place p, s;
    if (path == NULL || strcmp(path, "-") == 0 || !settle(path, &p) || !locate(stem, &s))
        return false;
    const size_t n = strlen(s.name);
    const char *digits = p.name + n + 1;
    return strncmp(p.name, s.name, n) == 0 && p.name[n] == '.' && digits[0] != '\0' &&
           strspn(digits, "0123456789") == strlen(digits) && stat(p.folder, &sp) == 0 && stat(s.folder, &ss) == 0 &&
           sp.st_dev == ss.st_dev && sp.st_ino == ss.st_ino;
}

moesim_code moesim_check_numbered(const moesim_named_file *file, size_t n, const char *stem, moesim_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (is_numbered(file[i].path, stem))
            return moesim_fail(err, MOESIM_E_USAGE, "%s: %s has a name that working files of %s take; name another output file",
                               file[i].what, file[i].path, stem);
    return MOESIM_OK;
}

/* The links in /proc/PID/fd lead to whatever is open there, so the way is walked link by link and ends before them. */
int moesim_path_stream(const char *path)
{
    place p;
    char own[32];
    uint64_t number;
    bool found = locate(path, &p);
    (void)snprintf(own, sizeof own, "/proc/%ld/", (long)getpid());
    for (int i = 0; found && i < MAX_LINKS; i++) {
        const char *last = strrchr(p.folder, '/');
        if (strncmp(p.folder, own, strlen(own)) == 0 && strcmp(last, "/fd") == 0 &&
            moesim_parse_u64(p.name, 0, INT_MAX, "", &number, NULL) == MOESIM_OK)
            return (int)number;
        found = follow(&p);
    }
    return -1;
}
