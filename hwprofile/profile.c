/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding a profile: built in, or a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/options.h"
#include "hwprofile/parts.h"

#define MAX_BYTES (1u << 20)

const char *const *moesim_profile_names(void)
{
    return moesim_profile_text_names;
}

bool moesim_profile_is_file(const char *name)
{
    const size_t n = name != NULL ? strlen(name) : 0;
    return n > 0 && (strchr(name, '/') != NULL || (n > 5 && strcmp(name + n - 5, ".json") == 0));
}

static moesim_code fail_name(const char *name, moesim_error *err)
{
    char all[256];
    size_t used = 0;
    const char *nearest = moesim_nearest(name, moesim_profile_text_names);
    if (nearest == NULL && access(name, F_OK) == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "'%s' is no built-in profile; to read the file write ./%s", name, name);
    for (const char *const *n = moesim_profile_text_names; *n != NULL && used < sizeof all; n++) {
        const int chars = snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? ", " : "", *n);
        used += chars > 0 ? (size_t)chars : 0;
    }
    return moesim_fail(err, MOESIM_E_USAGE,
                       "'%s' is no profile; built in are %s%s%s%s; a file's name ends in .json or has a '/'", name, all,
                       nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "");
}

/* Until the end of the file or the buffer. */
static moesim_code read_all(int fd, const char *path, char *text, size_t size, size_t *bytes, moesim_error *err)
{
    *bytes = 0;
    while (*bytes < size) {
        const ssize_t n = read(fd, text + *bytes, size - *bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return moesim_fail(err, MOESIM_E_IO, "cannot read %s: %s", path, strerror(errno));
        if (n == 0)
            return MOESIM_OK;
        *bytes += (size_t)n;
    }
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: is larger than 1 MiB: no hardware profile", path);
}

/* Not blocking: a named pipe without a writer would be waited for. */
static moesim_code open_file(const char *path, int *fd, moesim_error *err)
{
    struct stat info;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return moesim_fail(err, MOESIM_E_IO, "cannot open the hardware profile %s: %s", path, strerror(errno));
    if (fstat(*fd, &info) == 0 && S_ISREG(info.st_mode))
        return MOESIM_OK;
    close(*fd);
    return moesim_fail(err, MOESIM_E_IO, "cannot read the hardware profile %s: it is no regular file", path);
}

static moesim_code load_file(const char *path, moesim_profile *out, moesim_error *err)
{
    char *text = NULL;
    size_t bytes;
    int fd;
    if (strlen(path) >= sizeof out->path)
        return moesim_fail(err, MOESIM_E_USAGE, "the path of the hardware profile is longer than %zu bytes",
                           sizeof out->path - 1);
    moesim_code code = open_file(path, &fd, err);
    if (code != MOESIM_OK)
        return code;
    code = moesim_alloc(MAX_BYTES + 1, 1, "the hardware profile", (void **)&text, err);
    if (code == MOESIM_OK)
        code = read_all(fd, path, text, MAX_BYTES + 1, &bytes, err);
    close(fd);
    if (code == MOESIM_OK)
        code = moesim_profile_parse(text, bytes, path, out, err);
    free(text);
    return code;
}

moesim_code moesim_profile_load(const char *name, moesim_profile *out, moesim_error *err)
{
    char where[80];
    if (moesim_profile_is_file(name))
        return load_file(name, out, err);
    for (const moesim_profile_text *t = moesim_profile_texts; t->name != NULL; t++) {
        if (strcmp(t->name, name) != 0)
            continue;
        snprintf(where, sizeof where, "built-in %s", name);
        return moesim_profile_parse((const char *)t->text, t->bytes, where, out, err);
    }
    return fail_name(name, err);
}
