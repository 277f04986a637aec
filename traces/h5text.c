/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of files: the reading of global heaps.
 */
#include "traces/h5text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define HEAP_HEAD 16                     /* "GCOL", version 1, reserved 3, size 8 */
#define OBJECT_HEAD 16                   /* index 2, references 2, reserved 4, size 8; content padded to 8 */
#define MAX_HEAP (UINT64_C(16) << 20)    /* of texts; HDF5 makes heaps of 4096 bytes, larger for a larger object */

/* ---- references ---------------------------------------------------------------------------------------------------- */

static hid_t id_type = H5I_INVALID_HID;

/* A "conversion" of variable-length data as stored to opaque bytes: leaves them as they are. */
static herr_t keep_reference(hid_t from, hid_t to, H5T_cdata_t *data, size_t n, size_t stride, size_t background_stride,
                             void *buffer, void *background, hid_t transfer)
{
    (void)n, (void)stride, (void)background_stride, (void)buffer, (void)background, (void)transfer;
    data->need_bkg = H5T_BKG_NO;
    if (data->command != H5T_CONV_INIT)
        return 0;
    return H5Tget_size(from) == MOESIM_H5_HEAP_ID_BYTES && H5Tget_size(to) == MOESIM_H5_HEAP_ID_BYTES ? 0 : -1;
}

bool moesim_h5_heap_prepare(void)
{
    const hid_t text = H5Tcopy(H5T_C_S1);
    id_type = H5Tcreate(H5T_OPAQUE, MOESIM_H5_HEAP_ID_BYTES);
    const bool good = text >= 0 && id_type >= 0 && H5Tset_size(text, H5T_VARIABLE) >= 0 &&
                      H5Tset_tag(id_type, "global heap reference") >= 0 &&
                      H5Tregister(H5T_PERS_SOFT, "heap reference", text, id_type, keep_reference) >= 0;
    if (text >= 0)
        (void)H5Tclose(text);
    return good;
}

hid_t moesim_h5_heap_id_type(void)
{
    return id_type;
}

/* ---- heaps --------------------------------------------------------------------------------------------------------- */

static uint64_t number(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | p[bytes];
    return v;
}

/* The whole heap at `address`, or NULL. */
static unsigned char *load_heap(const moesim_h5_file *file, uint64_t address, uint64_t *bytes)
{
    unsigned char head[HEAP_HEAD], *heap = NULL;
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (address < file->bytes && pread(fd, head, sizeof head, (off_t)address) == (ssize_t)sizeof head &&
        memcmp(head, "GCOL\1", 5) == 0) {
        *bytes = number(head + 8, 8);
        if (*bytes >= HEAP_HEAD && *bytes <= MAX_HEAP && *bytes <= file->bytes - address)
            heap = malloc((size_t)*bytes);
        if (heap != NULL && pread(fd, heap, (size_t)*bytes, (off_t)address) != (ssize_t)*bytes) {
            free(heap);
            heap = NULL;
        }
    }
    (void)close(fd);
    return heap;
}

/* Where object number `index` lies in a heap of `bytes`; 0: it is not there, or the heap is damaged before it. */
static uint64_t find_object(const unsigned char *heap, uint64_t bytes, uint64_t index, uint64_t *size)
{
    for (uint64_t at = HEAP_HEAD; bytes - at >= OBJECT_HEAD;) {
        const uint64_t found = number(heap + at, 2), left = bytes - at - OBJECT_HEAD;
        *size = number(heap + at + 8, 8);
        if (found == 0 || *size > left)   /* 0: the free space at the end */
            return 0;
        if (found == index)
            return at + OBJECT_HEAD;
        const uint64_t padded = (*size + 7) / 8 * 8;
        if (padded > left)
            return 0;
        at += OBJECT_HEAD + padded;
    }
    return 0;
}

size_t moesim_h5_heap_length(const unsigned char id[MOESIM_H5_HEAP_ID_BYTES])
{
    return (size_t)number(id, 4);
}

moesim_code moesim_h5_heap_text(const moesim_h5_file *file, const char *name, const unsigned char id[MOESIM_H5_HEAP_ID_BYTES],
                                char *out, size_t room, moesim_error *err)
{
    const uint64_t length = moesim_h5_heap_length(id), address = number(id + 4, 8), index = number(id + 12, 4);
    uint64_t bytes = 0, size = 0;
    out[0] = '\0';
    if (length == 0)
        return MOESIM_OK;
    unsigned char *heap = load_heap(file, address, &bytes);
    const uint64_t at = heap != NULL ? find_object(heap, bytes, index, &size) : 0;
    const bool good = at != 0 && length <= size;
    if (good)
        moesim_text_clean((const char *)heap + at, (size_t)length, out, room);
    free(heap);
    return good ? MOESIM_OK
                : moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s cannot be read: the heap of its text is damaged",
                              file->path, name);
}
