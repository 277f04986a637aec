/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a file and mends its superblock: a program that was killed leaves its mark "open for writing" there, and the end of
 * the file as it was when the program opened it.
 */
#include "traces/salvage_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"

#define BUFFER_BYTES ((size_t)4 << 20)

/* Superblock versions 2 and 3: signature 8, version 1, size of addresses 1, of lengths 1, flags 1, base 8, extension 8, end 8,
 * root 8, checksum 4. */
enum { VERSION = 8, FLAGS = 11, END = 28, ROOT = 36, CHECKSUM = 44, HEAD_BYTES = 48 };

static void put(unsigned char *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get(const unsigned char *from, int bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | from[bytes];
    return v;
}

static uint32_t turn(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

/* Bob Jenkins' lookup3 ("hashlittle", public domain) of 44 bytes with initial value 0: HDF5's checksum of metadata. */
static uint32_t checksum(const unsigned char head[CHECKSUM])
{
    uint32_t a = 0xdeadbeefu + CHECKSUM, b = a, c = a;
    for (int at = 0; at < 36; at += 12) {
        a += (uint32_t)get(head + at, 4);
        b += (uint32_t)get(head + at + 4, 4);
        c += (uint32_t)get(head + at + 8, 4);
        a -= c, a ^= turn(c, 4), c += b;
        b -= a, b ^= turn(a, 6), a += c;
        c -= b, c ^= turn(b, 8), b += a;
        a -= c, a ^= turn(c, 16), c += b;
        b -= a, b ^= turn(a, 19), a += c;
        c -= b, c ^= turn(b, 4), b += a;
    }
    a += (uint32_t)get(head + 36, 4);
    b += (uint32_t)get(head + 40, 4);
    c ^= b, c -= turn(b, 14);
    a ^= c, a -= turn(c, 11);
    b ^= a, b -= turn(a, 25);
    c ^= b, c -= turn(b, 16);
    a ^= c, a -= turn(c, 4);
    b ^= a, b -= turn(a, 14);
    c ^= b, c -= turn(b, 24);
    return c;
}

static moesim_code check_head(const char *path, const unsigned char *head, ssize_t n, moesim_error *err)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    if (n < 0)
        return moesim_fail(err, MOESIM_E_IO, "%s: cannot read: %s", path, strerror(errno));
    if (n < VERSION + 1 || memcmp(head, signature, sizeof signature) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: not an HDF5 file (no signature at byte 0), so not a trace", path);
    if (head[VERSION] < 2 || head[VERSION] > 3)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: HDF5 superblock version %u; only files of versions 2 and 3 can be "
                           "salvaged, whose metadata have checksums", path, head[VERSION]);
    if (n < HEAD_BYTES || get(head + CHECKSUM, 4) != checksum(head))
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: nothing can be salvaged: the HDF5 superblock is %s", path,
                           n < HEAD_BYTES ? "cut short" : "damaged");
    return MOESIM_OK;
}

static moesim_code write_all(int fd, const unsigned char *from, size_t n, const char *path, moesim_error *err)
{
    while (n > 0) {
        const ssize_t wrote = write(fd, from, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return moesim_fail(err, MOESIM_E_IO, "cannot write %s: %s", path, wrote < 0 ? strerror(errno) : "nothing is taken");
        from += wrote;
        n -= (size_t)wrote;
    }
    return MOESIM_OK;
}

/* HDF5 writes metadata late: before the first piece there may be none. */
static moesim_code check_root(int fd, const char *path, const unsigned char *head, moesim_error *err)
{
    unsigned char magic[4] = {0};
    const uint64_t root = get(head + ROOT, 8);
    if (root <= INT64_MAX && pread(fd, magic, sizeof magic, (off_t)root) == (ssize_t)sizeof magic &&
        memcmp(magic, "OHDR", sizeof magic) == 0)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: nothing can be salvaged: there is no root group at byte %llu (it is damaged "
                       "or in HDF5's old format, or its program was killed before it was written)", path,
                       (unsigned long long)root);
}

/* The whole file from byte 0 on; *bytes: what it had. */
static moesim_code copy_bytes(int from, int to, const char *in, const char *copy, uint64_t *bytes, moesim_error *err)
{
    void *buffer = NULL;
    moesim_code code = moesim_alloc(1, BUFFER_BYTES, "the copy of a file", &buffer, err);
    *bytes = 0;
    while (code == MOESIM_OK) {
        const ssize_t n = read(from, buffer, BUFFER_BYTES);
        if (n < 0 && errno == EINTR && !moesim_interrupted())
            continue;
        if (moesim_interrupted())
            code = moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted while copying %s", in);
        else if (n < 0)
            code = moesim_fail(err, MOESIM_E_IO, "%s: cannot read: %s", in, strerror(errno));
        else
            code = write_all(to, buffer, (size_t)n, copy, err);
        if (n <= 0)
            break;
        *bytes += (uint64_t)n;
    }
    free(buffer);
    return code;
}

static moesim_code mend(int fd, unsigned char *head, uint64_t bytes, const char *copy, bool *touched, moesim_error *err)
{
    *touched = (head[VERSION] == 3 && head[FLAGS] != 0) || get(head + END, 8) != bytes;
    if (head[VERSION] == 3)
        head[FLAGS] = 0;
    put(head + END, bytes, 8);
    put(head + CHECKSUM, checksum(head), 4);
    if (pwrite(fd, head, HEAD_BYTES, 0) != HEAD_BYTES)
        return moesim_fail(err, MOESIM_E_IO, "cannot write %s: %s", copy, strerror(errno));
    return MOESIM_OK;
}

static moesim_code open_both(const char *in, const char *copy, int fd[2], moesim_error *err)
{
    struct stat st;
    /* O_NONBLOCK: a pipe must not hang the open. */
    fd[0] = open(in, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd[0] < 0 || fstat(fd[0], &st) != 0)
        return moesim_fail(err, MOESIM_E_IO, "%s: cannot open: %s", in, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return moesim_fail(err, MOESIM_E_IO, "%s: %s, not a regular file", in,
                           S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket");
    fd[1] = open(copy, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd[1] < 0)
        return moesim_fail(err, MOESIM_E_IO, "%s: cannot open: %s", copy, strerror(errno));
    return MOESIM_OK;
}

moesim_code moesim_salvage_copy(const char *in, const char *copy, bool *touched, moesim_error *err)
{
    unsigned char head[HEAD_BYTES] = {0};
    int fd[2] = {-1, -1};
    uint64_t bytes = 0;
    moesim_code code = open_both(in, copy, fd, err);
    if (code == MOESIM_OK)
        code = check_head(in, head, pread(fd[0], head, sizeof head, 0), err);
    if (code == MOESIM_OK)
        code = check_root(fd[0], in, head, err);
    if (code == MOESIM_OK)
        code = copy_bytes(fd[0], fd[1], in, copy, &bytes, err);
    if (code == MOESIM_OK)
        code = mend(fd[1], head, bytes, copy, touched, err);
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0 && close(fd[i]) != 0 && code == MOESIM_OK)
            code = moesim_fail(err, MOESIM_E_IO, "cannot write %s: %s", copy, strerror(errno));
    return code;
}
