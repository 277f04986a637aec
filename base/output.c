/* SPDX-License-Identifier: Apache-2.0
 *
 * Safe output files. Temporary names stand in a fixed static list, so that a signal handler can remove the files.
 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"

#define MAX_OPEN 32
#define NAME_ATTEMPTS 1000u

enum slot_state { SLOT_FREE = 0, SLOT_TAKEN = 1, SLOT_LIVE = 2 };   /* LIVE: the file exists under `temporary` */

typedef struct slot {
    atomic_int state;
    char temporary[PATH_MAX];
} slot;

static slot slots[MAX_OPEN];
static atomic_uint serial;

struct moesim_output {
    FILE *stream;
    slot *slot;              /* NULL for a stream: what is written goes there at once */
    char target[PATH_MAX];   /* the name after the rename; of a stream, its name for messages */
};

static slot *take_slot(void)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        int expected = SLOT_FREE;
        if (atomic_compare_exchange_strong(&slots[i].state, &expected, SLOT_TAKEN))
            return &slots[i];
    }
    return NULL;
}

/* Splits target into "folder/" (empty for the current one) and name. */
static const char *name_of(const char *target, size_t *folder_chars)
{
    const char *slash = strrchr(target, '/');
    *folder_chars = slash == NULL ? 0 : (size_t)(slash - target) + 1;
    return target + *folder_chars;
}

/* Is this file what descriptor fd writes to? */
static bool is_open_as(int fd, const struct stat *file)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Writes the final name into target: through symbolic links, so that a link stays one. */
static moesim_code resolve(const char *path, char target[PATH_MAX], moesim_error *err)
{
    struct stat st;
    size_t folder_chars;
    if (strlen(path) >= PATH_MAX - 32)
        return moesim_fail(err, MOESIM_E_USAGE, "'%.80s…' is too long a name for an output file", path);
    const char *name = name_of(path, &folder_chars);
    if (name[0] == '\0')
        return moesim_fail(err, MOESIM_E_USAGE, "'%.80s' is not a usable name of an output file", path);
    if (strlen(name) > NAME_MAX)
        return moesim_fail(err, MOESIM_E_USAGE, "'%.80s…' is too long a name for an output file: %zu bytes, at most %d", name,
                           strlen(name), NAME_MAX);
    if (lstat(path, &st) != 0) {
        if (errno != ENOENT)
            return moesim_fail(err, MOESIM_E_IO, "cannot write '%s': %s", path, strerror(errno));
        memcpy(target, path, strlen(path) + 1);
        return MOESIM_OK;
    }
    if (!S_ISLNK(st.st_mode))
        memcpy(target, path, strlen(path) + 1);
    else if (realpath(path, target) == NULL || stat(target, &st) != 0)
        return moesim_fail(err, MOESIM_E_IO, "cannot write '%s': %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return moesim_fail(err, MOESIM_E_IO, "cannot write '%s': it is a folder; name a file in it", path);
    if (!S_ISREG(st.st_mode))
        return moesim_fail(err, MOESIM_E_IO, "cannot write '%s': it exists and is not a regular file", path);
    if (is_open_as(STDOUT_FILENO, &st) || is_open_as(STDERR_FILENO, &st))
        return moesim_fail(err, MOESIM_E_USAGE, "'%s' is where standard output or standard error goes too; one would be lost: "
                           "name another file, or '-'", path);
    return strlen(target) < PATH_MAX - 32 ? MOESIM_OK
        : moesim_fail(err, MOESIM_E_USAGE, "'%.80s' is too long a name for an output file", path);
}

/* Creates ".NAME.PID-N.tmp" beside the target with the mode that any new file gets. */
static int create_temporary(const char *target, char temporary[PATH_MAX])
{
    size_t folder_chars;
    const char *name = name_of(target, &folder_chars);
    for (unsigned i = 0; i < NAME_ATTEMPTS; i++) {
        const unsigned n = atomic_fetch_add(&serial, 1u);
        const int chars = snprintf(temporary, PATH_MAX, "%.*s.%.*s.%ld-%u.tmp", (int)folder_chars, target,
                                   MOESIM_TEMPORARY_NAME, name, (long)getpid(), n);
        if (chars < 0 || chars >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static moesim_code open_file(const char *path, moesim_output *o, moesim_error *err)
{
    moesim_code code = resolve(path, o->target, err);
    if (code != MOESIM_OK)
        return code;
    o->slot = take_slot();
    if (o->slot == NULL)
        return moesim_fail(err, MOESIM_E_LIMIT, "more than %d output files are open at once", MAX_OPEN);
    const int fd = create_temporary(o->target, o->slot->temporary);
    if (fd < 0) {
        code = moesim_fail(err, MOESIM_E_IO, "cannot write '%s': %s", path, strerror(errno));
        atomic_store(&o->slot->state, SLOT_FREE);
        return code;
    }
    atomic_store(&o->slot->state, SLOT_LIVE);
    o->stream = fdopen(fd, "w+b");
    if (o->stream != NULL)
        return MOESIM_OK;
    close(fd);
    unlink(o->slot->temporary);
    atomic_store(&o->slot->state, SLOT_FREE);
    return moesim_fail_nomem(err, "an output stream", BUFSIZ);
}

/* Takes what the name already leads to, if that is no regular file: standard output, a file that is open by number (which
 * keeps its place in what it leads to), a pipe or a character device. *taken is false otherwise. */
static moesim_code open_stream(const char *path, moesim_output *o, bool *taken, moesim_error *err)
{
    struct stat st;
    const int number = strcmp(path, "-") == 0 ? STDOUT_FILENO : moesim_path_stream(path);
    *taken = number >= 0 || (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)));
    if (!*taken)
        return MOESIM_OK;
    (void)snprintf(o->target, sizeof o->target, "%s", number == STDOUT_FILENO ? "standard output" : path);
    if (number == STDOUT_FILENO) {
        o->stream = stdout;
        return MOESIM_OK;
    }
    const int fd = number >= 0 ? fcntl(number, F_DUPFD_CLOEXEC, 0) : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return moesim_fail(err, MOESIM_E_IO, "cannot write '%s': %s", path, strerror(errno));
    o->stream = fdopen(fd, "wb");
    if (o->stream != NULL)
        return MOESIM_OK;
    const int reason = errno;
    close(fd);
    return moesim_fail(err, MOESIM_E_IO, "cannot write '%s': %s", path, strerror(reason));
}

moesim_code moesim_output_open(const char *path, moesim_output **out, moesim_error *err)
{
    bool taken = false;
    *out = NULL;
    moesim_output *o = calloc(1, sizeof *o);
    if (o == NULL)
        return moesim_fail_nomem(err, "an output file", sizeof *o);
    moesim_code code = open_stream(path, o, &taken, err);
    if (code == MOESIM_OK && !taken)
        code = open_file(path, o, err);
    if (code == MOESIM_OK)
        *out = o;
    else
        free(o);
    return code;
}

moesim_code moesim_output_open_file(const char *path, moesim_output **out, moesim_error *err)
{
    struct stat st;
    *out = NULL;
    if (strcmp(path, "-") == 0 || moesim_path_stream(path) >= 0)
        return moesim_fail(err, MOESIM_E_USAGE, "'%s': this file cannot be written to a stream such as standard output; name "
                           "a file", path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return moesim_fail(err, MOESIM_E_USAGE, "'%s' is a device, pipe or socket; name a regular file", path);
    return moesim_output_open(path, out, err);
}

moesim_code moesim_output_try(const char *path, moesim_error *err)
{
    struct stat st;
    moesim_output *out = NULL;
    if (strcmp(path, "-") == 0 || moesim_path_stream(path) >= 0 ||
        (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))))
        return MOESIM_OK;
    const moesim_code code = moesim_output_open(path, &out, err);
    moesim_output_discard(&out);
    return code;
}

FILE *moesim_output_stream(moesim_output *out)
{
    return out->stream;
}

const char *moesim_output_temporary(const moesim_output *out)
{
    return out->slot == NULL ? "-" : out->slot->temporary;
}

/* The rename itself must survive a power cut too; folders that cannot be synced (some network systems) are let be. */
static void sync_folder(const char *target)
{
    char folder[PATH_MAX];
    size_t chars;
    name_of(target, &chars);
    memcpy(folder, chars == 0 ? "." : target, chars == 0 ? 1 : chars);
    folder[chars == 0 ? 1 : chars] = '\0';
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

static moesim_code fail_write(const moesim_output *o, int reason, moesim_error *err)
{
    const char *why = reason != 0 ? strerror(reason) : "an earlier write failed";
    if (o->slot == NULL)
        return moesim_fail(err, MOESIM_E_IO, "cannot write to %s: %s", o->target, why);
    return moesim_fail(err, MOESIM_E_IO, "cannot write '%s': %s; nothing was kept", o->target, why);
}

/* stdio forgets what an earlier write failed of, and a disk that was full then is full now: one byte more tells, in a file that
 * is thrown away or behind a gap. */
static int ask_again(FILE *stream)
{
    return write(fileno(stream), "\n", 1) < 0 ? errno : EIO;
}

int moesim_output_flush(FILE *stream)
{
    errno = 0;
    const bool earlier = ferror(stream) != 0;
    if (fflush(stream) == 0 && !earlier)
        return 0;
    return errno != 0 ? errno : ask_again(stream);
}

static int finish_stream(moesim_output *o)
{
    const int reason = moesim_output_flush(o->stream);
    if (reason != 0 || o->slot == NULL)
        return reason;
    return fsync(fileno(o->stream)) != 0 ? errno : 0;
}

moesim_code moesim_output_commit(moesim_output **out, moesim_error *err)
{
    moesim_output *o = *out;
    int reason = finish_stream(o);
    if (o->slot == NULL && o->stream != stdout && fclose(o->stream) != 0 && reason == 0)
        reason = errno;
    if (o->slot != NULL) {
        if (fclose(o->stream) != 0 && reason == 0)
            reason = errno;
        if (reason == 0 && rename(o->slot->temporary, o->target) != 0)
            reason = errno;
        if (reason == 0)
            sync_folder(o->target);
        else
            unlink(o->slot->temporary);
        atomic_store(&o->slot->state, SLOT_FREE);
    }
    const moesim_code code = reason == 0 ? MOESIM_OK : fail_write(o, reason, err);
    free(o);
    *out = NULL;
    return code;
}

void moesim_output_discard(moesim_output **out)
{
    if (out == NULL || *out == NULL)
        return;
    moesim_output *o = *out;
    if (o->stream != stdout)
        fclose(o->stream);
    if (o->slot != NULL) {
        unlink(o->slot->temporary);
        atomic_store(&o->slot->state, SLOT_FREE);
    }
    free(o);
    *out = NULL;
}

void moesim_output_discard_all(void)
{
    for (size_t i = 0; i < MAX_OPEN; i++)
        if (atomic_load(&slots[i].state) == SLOT_LIVE)
            unlink(slots[i].temporary);
}
