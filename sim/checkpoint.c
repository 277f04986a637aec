/* SPDX-License-Identifier: Apache-2.0
 *
 * The checkpoint file: a header that must equal what this run would write, the regions of every configuration, each with its
 * length before it, and the SHA-256 of all that came before. It is read whole for its digest before anything is restored.
 */
#include "sim/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/output.h"
#include "sim/instance.h"
#include "sim/snapshot.h"

#define HEADER_BYTES 256

typedef struct file_visitor {
    moesim_visitor base;
    FILE *file;
    const char *path;
    moesim_digest *digest;       /* writing */
} file_visitor;

static void make_header(const moesim_checkpoint *c, size_t n, char out[HEADER_BYTES])
{
    memset(out, 0, HEADER_BYTES);
    (void)snprintf(out, HEADER_BYTES, "moesim-checkpoint 1\nversion %s\nkernels %s\nconfigurations %zu\nidentity %s\n",
                   MOESIM_VERSION, moesim_kernels_get()->name, n, c->identity);
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

static moesim_code put(file_visitor *f, const void *data, size_t bytes, moesim_error *err)
{
    moesim_digest_update(f->digest, data, bytes);
    if (fwrite(data, 1, bytes, f->file) != bytes)
        return moesim_fail(err, MOESIM_E_IO, "%s: cannot write: %s", f->path, strerror(errno));
    return MOESIM_OK;
}

static moesim_code save(moesim_visitor *v, void *data, size_t bytes, moesim_error *err)
{
    file_visitor *f = (file_visitor *)v;
    const uint64_t length = bytes;
    return put(f, &length, sizeof length, err) == MOESIM_OK ? put(f, data, bytes, err) : err->code;
}

static moesim_code write_all(const moesim_checkpoint *c, file_visitor *f, struct moesim_instance *const *instance, size_t n,
                             uint64_t windows, moesim_error *err)
{
    char header[HEADER_BYTES], digest[MOESIM_DIGEST_CHARS];
    make_header(c, n, header);
    if (put(f, header, sizeof header, err) != MOESIM_OK || put(f, &windows, sizeof windows, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < n; i++)
        if (moesim_instance_visit(instance[i], &f->base, err) != MOESIM_OK)
            return err->code;
    moesim_digest_hex(f->digest, digest);
    return put(f, digest, sizeof digest, err);
}

moesim_code moesim_checkpoint_write(const moesim_checkpoint *c, struct moesim_instance *const *instance, size_t n,
                                    uint64_t windows, moesim_error *err)
{
    moesim_output *out = NULL;
    file_visitor f = {.base = {.visit = save}, .path = c->path};
    if (moesim_output_open_file(c->path, &out, err) != MOESIM_OK)
        return err->code;
    f.file = moesim_output_stream(out);
    moesim_code code = moesim_digest_create(&f.digest, err);
    if (code == MOESIM_OK)
        code = write_all(c, &f, instance, n, windows, err);
    moesim_digest_destroy(&f.digest);
    if (code == MOESIM_OK)
        return moesim_output_commit(&out, err);
    moesim_output_discard(&out);
    return code;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static moesim_code damaged(const char *path, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT,
                       "%s: the checkpoint is damaged or cut short; remove it and the run starts from its beginning", path);
}

static moesim_code restore(moesim_visitor *v, void *data, size_t bytes, moesim_error *err)
{
    file_visitor *f = (file_visitor *)v;
    uint64_t length = 0;
    if (fread(&length, sizeof length, 1, f->file) != 1 || length != bytes || fread(data, 1, bytes, f->file) != bytes)
        return damaged(f->path, err);
    return MOESIM_OK;
}

/* The digest at the end is that of everything before it. */
static moesim_code check_digest(file_visitor *f, moesim_error *err)
{
    char buffer[65536], stored[MOESIM_DIGEST_CHARS], computed[MOESIM_DIGEST_CHARS];
    long left = fseek(f->file, 0, SEEK_END) == 0 ? ftell(f->file) : -1;
    if (left < (long)(HEADER_BYTES + sizeof stored) || fseek(f->file, 0, SEEK_SET) != 0)
        return damaged(f->path, err);
    left -= (long)sizeof stored;
    while (left > 0) {
        const size_t piece = left < (long)sizeof buffer ? (size_t)left : sizeof buffer;
        if (fread(buffer, 1, piece, f->file) != piece)
            return damaged(f->path, err);
        moesim_digest_update(f->digest, buffer, piece);
        left -= (long)piece;
    }
    moesim_digest_hex(f->digest, computed);
    if (fread(stored, sizeof stored, 1, f->file) != 1 || memcmp(stored, computed, sizeof stored) != 0 ||
        fseek(f->file, 0, SEEK_SET) != 0)
        return damaged(f->path, err);
    return MOESIM_OK;
}

/* First line in which two headers differ, for the message. */
static const char *first_difference(const char *a, const char *b)
{
    const char *line = a;
    for (; *a != '\0' && *a == *b; a++, b++)
        line = *a == '\n' ? a + 1 : line;
    return line;
}

static moesim_code read_all(const moesim_checkpoint *c, file_visitor *f, struct moesim_instance *const *instance, size_t n,
                            uint64_t *windows, moesim_error *err)
{
    char expected[HEADER_BYTES], found[HEADER_BYTES];
    make_header(c, n, expected);
    if (check_digest(f, err) != MOESIM_OK)
        return err->code;
    if (fread(found, sizeof found, 1, f->file) != 1 || fread(windows, sizeof *windows, 1, f->file) != 1)
        return damaged(f->path, err);
    found[HEADER_BYTES - 1] = '\0';
    if (memcmp(found, expected, sizeof found) != 0) {
        const char *have = first_difference(found, expected), *want = first_difference(expected, found);
        return moesim_fail(err, MOESIM_E_USAGE,
                           "%s: a checkpoint of another run (it says \"%.*s\", this run is \"%.*s\"); remove it, or repeat the "
                           "command that wrote it",
                           f->path, (int)strcspn(have, "\n"), have, (int)strcspn(want, "\n"), want);
    }
    for (size_t i = 0; i < n; i++)
        if (moesim_instance_visit(instance[i], &f->base, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

moesim_code moesim_checkpoint_read(const moesim_checkpoint *c, struct moesim_instance *const *instance, size_t n,
                                   uint64_t *windows, moesim_error *err)
{
    file_visitor f = {.base = {.visit = restore, .restoring = true}, .path = c->path};
    *windows = 0;
    f.file = fopen(c->path, "rbe");
    if (f.file == NULL)
        return errno == ENOENT ? MOESIM_OK
                               : moesim_fail(err, MOESIM_E_IO, "%s: cannot open: %s", c->path, strerror(errno));
    moesim_code code = moesim_digest_create(&f.digest, err);
    if (code == MOESIM_OK)
        code = read_all(c, &f, instance, n, windows, err);
    moesim_digest_destroy(&f.digest);
    (void)fclose(f.file);
    return code;
}
