/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 through nettle.
 */
#include "base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define FILE_BUFFER_BYTES ((size_t)1 << 20)

struct moesim_digest { struct sha256_ctx ctx; };

moesim_code moesim_digest_create(moesim_digest **out, moesim_error *err)
{
    *out = malloc(sizeof **out);
    if (*out == NULL)
        return moesim_fail_nomem(err, "a digest", sizeof **out);
    sha256_init(&(*out)->ctx);
    return MOESIM_OK;
}

void moesim_digest_update(moesim_digest *d, const void *data, size_t bytes)
{
    sha256_update(&d->ctx, bytes, data);
}

void moesim_digest_hex(moesim_digest *d, char out[MOESIM_DIGEST_CHARS])
{
    static const char digit[] = "0123456789abcdef";
    uint8_t raw[SHA256_DIGEST_SIZE];
    sha256_digest(&d->ctx, sizeof raw, raw);   /* starts the context again */
    for (size_t i = 0; i < sizeof raw; i++) {
        out[2 * i] = digit[raw[i] >> 4];
        out[2 * i + 1] = digit[raw[i] & 15u];
    }
    out[MOESIM_DIGEST_CHARS - 1] = '\0';
}

void moesim_digest_destroy(moesim_digest **d)
{
    free(*d);
    *d = NULL;
}

static moesim_code read_all(int fd, const char *path, moesim_digest *d, uint8_t *buffer, moesim_error *err)
{
    for (;;) {
        if (moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted while reading '%s'", path);
        const ssize_t n = read(fd, buffer, FILE_BUFFER_BYTES);
        if (n == 0)
            return MOESIM_OK;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return moesim_fail(err, MOESIM_E_IO, "cannot read '%s': %s", path, strerror(errno));
        moesim_digest_update(d, buffer, (size_t)n);
    }
}

moesim_code moesim_digest_file(const char *path, char out[MOESIM_DIGEST_CHARS], moesim_error *err)
{
    struct stat st;
    out[0] = '\0';
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);   /* a FIFO must not block us before the check below */
    if (fd < 0 || fstat(fd, &st) != 0) {
        const int reason = errno;
        if (fd >= 0)
            close(fd);
        return moesim_fail(err, MOESIM_E_IO, "cannot open '%s': %s", path, strerror(reason));
    }
    moesim_digest *d = NULL;
    uint8_t *buffer = malloc(FILE_BUFFER_BYTES);
    moesim_code code;
    if (buffer == NULL)
        code = moesim_fail_nomem(err, "a read buffer", FILE_BUFFER_BYTES);
    else if (!S_ISREG(st.st_mode))
        code = moesim_fail(err, MOESIM_E_IO, "'%s' is not a regular file", path);
    else
        code = moesim_digest_create(&d, err);
    if (code == MOESIM_OK)
        code = read_all(fd, path, d, buffer, err);
    if (code == MOESIM_OK)
        moesim_digest_hex(d, out);
    moesim_digest_destroy(&d);
    free(buffer);
    close(fd);
    return code;
}
