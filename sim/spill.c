/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in memory, then in an unlinked temporary file.
 */
#include "sim/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"

struct moesim_spill {
    const char *what;
    size_t record_bytes;
    uint64_t in_memory_most, in_memory_capacity;   /* records */
    uint64_t count;
    unsigned char *memory;
    int file;                                      /* −1: none yet */
    char folder[3072];
};

moesim_code moesim_spill_create(size_t record_bytes, size_t memory_limit, const char *what, moesim_spill **out,
                                moesim_error *err)
{
    moesim_spill *s = NULL;
    *out = NULL;
    moesim_code code = moesim_alloc(1, sizeof *s, what, (void **)&s, err);
    if (code != MOESIM_OK)
        return code;
    s->what = what;
    s->record_bytes = record_bytes;
    s->in_memory_most = memory_limit / record_bytes > 0 ? memory_limit / record_bytes : 1;
    s->file = -1;
    const char *folder = getenv("TMPDIR");
    (void)snprintf(s->folder, sizeof s->folder, "%s", folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    *out = s;
    return MOESIM_OK;
}

static moesim_code file_error(const moesim_spill *s, const char *verb, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_IO, "%s: cannot %s a temporary file for %s: %s; set TMPDIR to a folder with room",
                       s->folder, verb, s->what, strerror(errno));
}

static moesim_code open_file(moesim_spill *s, moesim_error *err)
{
    char name[sizeof s->folder + 32];
    (void)snprintf(name, sizeof name, "%s/moesim-XXXXXX", s->folder);
    s->file = mkostemp(name, O_CLOEXEC);
    if (s->file < 0)
        return file_error(s, "create", err);
    (void)unlink(name);
    return MOESIM_OK;
}

static moesim_code grow_memory(moesim_spill *s, moesim_error *err)
{
    uint64_t capacity = s->in_memory_capacity == 0 ? 16 : s->in_memory_capacity * 2;
    if (capacity > s->in_memory_most)
        capacity = s->in_memory_most;
    unsigned char *bigger = realloc(s->memory, (size_t)capacity * s->record_bytes);
    if (bigger == NULL)
        return moesim_fail_nomem(err, s->what, (size_t)capacity * s->record_bytes);
    s->memory = bigger;
    s->in_memory_capacity = capacity;
    return MOESIM_OK;
}

static off_t file_offset(const moesim_spill *s, uint64_t number)
{
    return (off_t)((number - s->in_memory_most) * s->record_bytes);
}

moesim_code moesim_spill_append(moesim_spill *s, const void *record, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    if (s->count < s->in_memory_most) {
        if (s->count == s->in_memory_capacity)
            code = grow_memory(s, err);
        if (code == MOESIM_OK)
            memcpy(s->memory + s->count * s->record_bytes, record, s->record_bytes);
    } else {
        if (s->file < 0)
            code = open_file(s, err);
        const unsigned char *from = record;
        for (size_t done = 0; code == MOESIM_OK && done < s->record_bytes;) {
            ssize_t n = pwrite(s->file, from + done, s->record_bytes - done,
                               file_offset(s, s->count) + (off_t)done);
            if (n > 0)
                done += (size_t)n;
            else if (n == 0 || errno != EINTR)
                code = file_error(s, "write", err);
        }
    }
    s->count += code == MOESIM_OK;
    return code;
}

moesim_code moesim_spill_read(const moesim_spill *s, uint64_t number, void *record, moesim_error *err)
{
    if (number >= s->count)
        return moesim_fail(err, MOESIM_E_INTERNAL, "%s: record %llu of %llu", s->what, (unsigned long long)number,
                           (unsigned long long)s->count);
    if (number < s->in_memory_most) {
        memcpy(record, s->memory + number * s->record_bytes, s->record_bytes);
        return MOESIM_OK;
    }
    unsigned char *to = record;
    for (size_t done = 0; done < s->record_bytes;) {
        ssize_t n = pread(s->file, to + done, s->record_bytes - done, file_offset(s, number) + (off_t)done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return file_error(s, "read", err);
    }
    return MOESIM_OK;
}

uint64_t moesim_spill_count(const moesim_spill *s)
{
    return s->count;
}

size_t moesim_spill_memory(const moesim_spill *s)
{
    return (size_t)s->in_memory_capacity * s->record_bytes;
}

void moesim_spill_destroy(moesim_spill **spill)
{
    moesim_spill *s = *spill;
    if (s == NULL)
        return;
    if (s->file >= 0)
        (void)close(s->file);
    free(s->memory);
    free(s);
    *spill = NULL;
}
