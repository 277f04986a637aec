/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded access to HDF5, shared by everything in traces/. A file is untrusted: it is looked at in plain C before HDF5 sees
 * it, only fixed names are looked up through hard links, HDF5 loads no plug-ins, prints nothing and converts no types.
 *
 * Thread safety: every function here that calls HDF5 takes moesim_h5_enter() itself; code that calls HDF5 directly brackets
 * its calls with enter and leave (they nest). Different files may be used by different threads at the same time.
 */
#ifndef MOESIM_TRACES_H5_H
#define MOESIM_TRACES_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef H5_USE_110_API
#define H5_USE_110_API
#endif
#include <hdf5.h>

#include "base/error.h"
#include "traces/filter.h"

#define MOESIM_H5_MAX_CHUNK (UINT64_C(64) << 20)   /* bytes of one decoded chunk */
#define MOESIM_H5_MAX_BYTES (UINT64_C(1) << 48)    /* bytes of one dataset */
#define MOESIM_H5_MAX_RANK 3

/* File types that the formats use, all little-endian. */
enum moesim_h5_type {
    MOESIM_H5_U8,
    MOESIM_H5_U16,
    MOESIM_H5_U32,
    MOESIM_H5_U64,
    MOESIM_H5_I32,
    MOESIM_H5_I64,            /* results */
    MOESIM_H5_F16,
    MOESIM_H5_F32,
    MOESIM_H5_F64,
    MOESIM_H5_STRING,         /* fixed length, any size up to 4096 bytes */
    MOESIM_H5_TYPES
};

/* Prepares HDF5 once for the process (no atexit handler, no plug-ins, zstd filter registered), silences its error stack in
 * this thread, and locks where the library is not thread-safe. Call before any HDF5 call; leave() undoes the lock. On an
 * error nothing is locked. */
moesim_code moesim_h5_enter(moesim_error *err);
void moesim_h5_leave(void);

/* Enter and leave at once: for code that never runs beside other users of HDF5. */
moesim_code moesim_h5_init(moesim_error *err);

/* The type's identifier, owned by this module; valid after the first moesim_h5_enter(). Not for MOESIM_H5_STRING. */
hid_t moesim_h5_type_id(enum moesim_h5_type type);

/* "uint16", "float32", …: a word for any type found in a file. */
void moesim_h5_describe(hid_t type, char *out, size_t bytes);

typedef struct moesim_h5_file {
    hid_t id;                 /* −1 when closed */
    const char *path;         /* owned by the caller, for messages */
    uint64_t bytes;
    bool hdf5;                /* the signature is at byte 0 */
    bool old;                 /* superblock older than 2, accepted on request */
} moesim_h5_file;

/* Looks at the first bytes without HDF5: regular file, readable, signature at offset 0, superblock version 2 or 3, 8-byte
 * addresses, no user block, not shorter than it says. old_format accepts older superblocks: only for a child process under
 * limits, since damaged ones crash HDF5. Fills bytes, hdf5 and old, also where it refuses the file. */
moesim_code moesim_h5_precheck(const char *path, bool old_format, moesim_h5_file *out, moesim_error *err);

/* Pre-check, then opens read-only. path must outlive the file. */
moesim_code moesim_h5_open(const char *path, bool old_format, moesim_h5_file *out, moesim_error *err);
void moesim_h5_close(moesim_h5_file *file);   /* closed or never opened: nothing happens if id is −1 */

/* ---- attributes of the root group ---------------------------------------------------------------------------------- */

/* All return OK with *found = false where the attribute is absent. Only scalars are accepted. */
moesim_code moesim_h5_attr_text(const moesim_h5_file *file, const char *name, char out[256], bool *found, moesim_error *err);
moesim_code moesim_h5_attr_u64(const moesim_h5_file *file, const char *name, uint64_t *out, bool *found, moesim_error *err);
moesim_code moesim_h5_attr_real(const moesim_h5_file *file, const char *name, double *out, bool *found, moesim_error *err);

/* Text of any length up to `max` bytes, a FORMAT error beyond it; *out is malloc'd, NULL where absent. */
moesim_code moesim_h5_attr_string(const moesim_h5_file *file, const char *name, size_t max, char **out, moesim_error *err);

/* ---- datasets ------------------------------------------------------------------------------------------------------ */

typedef struct moesim_h5_dataset {
    hid_t id;                 /* −1: absent */
    const moesim_h5_file *file;
    const char *name;         /* absolute path, a literal */
    hid_t type;               /* the file's type, owned */
    enum moesim_h5_type kind;
    uint32_t rank;
    uint64_t dim[MOESIM_H5_MAX_RANK];
    uint64_t chunk[MOESIM_H5_MAX_RANK];   /* chunk[0] = 0: contiguous or compact */
    size_t element;           /* bytes */
    size_t row_bytes;         /* bytes of one index of the first dimension */
    uint64_t band_rows;       /* rows that are decoded together: the chunk's, or about 64 KiB */
    moesim_pipeline pipeline;
} moesim_h5_dataset;

#define MOESIM_H5_DATASET_INIT { .id = -1, .type = -1 }

/* Opens name ("/group/name", a literal) and checks links, type (one of the bits 1 << enum moesim_h5_type in `types`), rank,
 * size and storage: contiguous, compact or chunked; no external files; only shuffle, Fletcher-32, deflate and zstd. */
moesim_code moesim_h5_dataset_open(const moesim_h5_file *file, const char *name, uint32_t types, uint32_t rank,
                                   moesim_h5_dataset *out, moesim_error *err);

/* The same, but absence is fine: OK with out->id = −1. */
moesim_code moesim_h5_dataset_open_optional(const moesim_h5_file *file, const char *name, uint32_t types, uint32_t rank,
                                            moesim_h5_dataset *out, moesim_error *err);
void moesim_h5_dataset_close(moesim_h5_dataset *dataset);

/* Bytes that moesim_h5_read_band writes at most: a whole band, edges of chunks included. */
size_t moesim_h5_band_bytes(const moesim_h5_dataset *dataset);

/* Decodes band number `band` (rows band*band_rows …) into out, which has room for moesim_h5_band_bytes. Rows past the end of
 * the dataset are undefined. Decoding happens here, not in HDF5: see traces/filter.h. */
moesim_code moesim_h5_read_band(const moesim_h5_dataset *dataset, moesim_decoder *decoder, uint64_t band, void *out,
                                moesim_error *err);

/* A dataset read row by row with its last band kept, so that a forward scan decodes each chunk once. */
typedef struct moesim_h5_column {
    moesim_h5_dataset dataset;
    uint64_t band;            /* that is in raw; UINT64_MAX: none */
    unsigned char *raw;       /* owned; NULL until the first read */
} moesim_h5_column;

#define MOESIM_H5_COLUMN_INIT { .dataset = MOESIM_H5_DATASET_INIT, .band = UINT64_MAX }

/* Rows [begin, begin + n) into out (n * row_bytes); the range must lie within the dataset. */
moesim_code moesim_h5_column_read(moesim_h5_column *column, moesim_decoder *decoder, uint64_t begin, uint64_t n, void *out,
                                  moesim_error *err);
void moesim_h5_column_close(moesim_h5_column *column);

#endif
