/* SPDX-License-Identifier: Apache-2.0
 *
 * A tiny valid trace as a table of attributes and datasets, which a test damages in one place before it is written with the
 * raw HDF5 interface. Helpers die with a message if HDF5 refuses; one thread only.
 *
 * 2 layers, 4 experts, top 2, block 2; 2 requests; 6 passes (prefill, denoise, denoise, commit, denoise, dummy), 12 rows.
 */
#ifndef MOESIM_TESTS_UNIT_TRACES_TINY_H
#define MOESIM_TESTS_UNIT_TRACES_TINY_H

#include "traces/h5.h"
#include "traces/trace.h"

enum { TINY_LAYERS = 2, TINY_EXPERTS = 4, TINY_TOP_K = 2, TINY_PASSES = 6, TINY_ROWS = 12, TINY_REQUESTS = 2 };
enum { TINY_BYTES = 1024 };   /* room for the content of any dataset */

enum tiny_place { TINY_HARD, TINY_ABSENT, TINY_SOFT, TINY_EXTERNAL, TINY_GROUP };
enum tiny_layout { TINY_CONTIGUOUS, TINY_COMPACT, TINY_CHUNKED, TINY_ELSEWHERE, TINY_VIRTUAL };

typedef struct tiny_item {
    const char *name;
    hid_t type;
    size_t element;
    int rank;
    hsize_t dim[3], chunk[3];
    unsigned char data[TINY_BYTES];
    enum tiny_place place;
    enum tiny_layout layout;
    bool unwritten;
    void (*filters)(hid_t properties);   /* of chunked items; NULL: shuffle and deflate */
    void (*after)(hid_t dataset);        /* instead of H5Dwrite */
} tiny_item;

enum tiny_attr_kind { TINY_NO_ATTR, TINY_TEXT, TINY_FIXED, TINY_INT, TINY_REAL, TINY_ARRAY };

typedef struct tiny_attr {
    const char *name;
    enum tiny_attr_kind kind;
    const char *text;
    hid_t type;                          /* of TINY_INT and TINY_REAL */
    int64_t value;
} tiny_attr;

typedef struct tiny {
    tiny_item item[24];
    int items;
    tiny_attr attr[24];
    int attrs;
    bool old;                            /* oldest file format */
    hsize_t user_block;
    void (*edit)(hid_t file);            /* runs before the file is closed */
} tiny;

void tiny_init(tiny *t);
tiny_item *tiny_find(tiny *t, const char *name);
tiny_attr *tiny_attribute(tiny *t, const char *name);

/* Raw little-endian bits of one element. */
void tiny_set(tiny *t, const char *name, size_t index, uint64_t bits);

/* Another element type; content is kept as integers. */
void tiny_retype(tiny_item *item, hid_t type);

/* folder/name; the folder is removed when the test program ends. */
const char *tiny_path(const char *name);
void tiny_write(const tiny *t, const char *path);

/* Opens and reads every row and column. */
moesim_code tiny_read(const char *path, moesim_error *err);

/* For traces that must be accepted: fail the running Check test if something is wrong. The caller closes. */
moesim_trace *tiny_open_trace(const char *path);
moesim_trace *tiny_open(const tiny *t);
moesim_cursor *tiny_open_cursor(moesim_trace *trace, uint32_t columns, size_t limit);
moesim_rows tiny_get_rows(moesim_cursor *cursor, uint64_t begin, uint64_t end);

/* Fails the running Check test unless the trace is refused with a message that names the file and holds `want`. */
void tiny_refused(const tiny *t, const char *what, const char *want);
void tiny_refused_file(const char *path, const char *what, const char *want);

#endif
