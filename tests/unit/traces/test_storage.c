/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals that concern the file itself: first bytes, links, storage, filters, damaged and missing chunks.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define EXPERT "/routing/expert"

/* ---- first bytes --------------------------------------------------------------------------------------------------- */

static const char *write_bytes(const char *name, const void *data, size_t n)
{
    const char *path = tiny_path(name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static const char *write_tiny(void)
{
    tiny t;
    const char *path = tiny_path("whole.h5");
    tiny_init(&t);
    tiny_write(&t, path);
    return path;
}

static void poke(const char *path, off_t at, unsigned char byte)
{
    const int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(test_not_a_trace)
{
    tiny_refused_file(tiny_path("absent.h5"), "absent", "cannot open: No such file or directory");
    tiny_refused_file(tiny_path(""), "folder", "a directory, not a regular file");
    const char *pipe = tiny_path("pipe");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    tiny_refused_file(pipe, "pipe", "a device, pipe or socket, not a regular file");
    tiny_refused_file(write_bytes("empty.h5", "", 0), "empty", "the file is empty");
    tiny_refused_file(write_bytes("text.csv", "turn,layer\n0,1\n", 15), "text", "not an HDF5 file");
    tiny_refused_file(write_bytes("short.h5", "\x89HDF", 4), "short", "not an HDF5 file");
    tiny_refused_file(write_bytes("head.h5", "\x89HDF\r\n\x1a\n\x02\x08\x08", 11), "head", "cut short inside its HDF5 superblock");
}
END_TEST

START_TEST(test_unreadable)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/below", write_tiny());
    tiny_refused_file(path, "below a file", "cannot open: Not a directory");
    const char *closed = write_tiny();
    ck_assert_int_eq(chmod(closed, 0), 0);
    if (geteuid() == 0) {   /* root reads everything, so the test goes on as nobody */
        ck_assert_int_eq(chmod(tiny_path(""), 0755), 0);
        ck_assert_int_eq(setegid(65534) | seteuid(65534), 0);
    }
    tiny_refused_file(closed, "no permission", "cannot open: Permission denied");
}
END_TEST

START_TEST(test_superblocks)
{
    tiny t;
    tiny_init(&t);
    t.old = true;
    tiny_refused(&t, "old", "HDF5 superblock version 0; damaged files of that age crash the HDF5 library");
    tiny_refused(&t, "old", "`moesim trace convert --old-format IN OUT`, or add --old-format");
    tiny_init(&t);
    t.user_block = 512;
    tiny_refused(&t, "user block", "not an HDF5 file (no signature at byte 0)");

    const char *path = write_tiny();
    poke(path, 8, 9);
    tiny_refused_file(path, "version 9", "HDF5 superblock version 9 is unknown");
    path = write_tiny();
    poke(path, 9, 4);
    tiny_refused_file(path, "addresses", "HDF5 addresses of 4 and lengths of 8 bytes");
    path = write_tiny();
    poke(path, 12, 1);
    tiny_refused_file(path, "base", "HDF5 base address 1");
    path = write_tiny();
    poke(path, 37, 1);
    tiny_refused_file(path, "root", "no \"OHDR\" there");
    path = write_tiny();
    poke(path, 47, 1);
    tiny_refused_file(path, "checksum", "HDF5 cannot open it: the file is damaged");
}
END_TEST

/* A file cut at any length is refused, never accepted or worse. */
START_TEST(test_truncated)
{
    const char *path = write_tiny();
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    for (off_t n = st.st_size - 1; n > 48; n -= n > 600 ? 97 : 13) {
        ck_assert_int_eq(truncate(path, n), 0);
        tiny_refused_file(path, "truncated", "the file was cut short: its HDF5 superblock says");
    }
}
END_TEST

START_TEST(test_old_format_on_request)
{
    tiny t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    const moesim_trace_options options = {.old_format = true};
    tiny_init(&t);
    t.old = true;
    tiny_write(&t, tiny_path("old.h5"));
    ck_assert_int_eq(moesim_trace_open(tiny_path("old.h5"), &options, &trace, &err), MOESIM_OK);
    ck_assert(moesim_trace_get_info(trace)->superblock_old);
    ck_assert_uint_eq(moesim_trace_get_info(trace)->num_rows, TINY_ROWS);
    moesim_trace_close(&trace);
}
END_TEST

/* ---- links --------------------------------------------------------------------------------------------------------- */

static void soft_group(hid_t file)
{
    ck_assert_int_ge(H5Lmove(file, "/pass", file, "/elsewhere", H5P_DEFAULT, H5P_DEFAULT), 0);
    ck_assert_int_ge(H5Lcreate_soft("/elsewhere", file, "/pass", H5P_DEFAULT, H5P_DEFAULT), 0);
}

static void external_group(hid_t file)
{
    ck_assert_int_ge(H5Ldelete(file, "/routing", H5P_DEFAULT), 0);
    ck_assert_int_ge(H5Lcreate_external("other.h5", "/routing", file, "/routing", H5P_DEFAULT, H5P_DEFAULT), 0);
}

static void dataset_for_group(hid_t file)
{
    ck_assert_int_ge(H5Ldelete(file, "/request", H5P_DEFAULT), 0);
    ck_assert_int_ge(H5Lcreate_hard(file, "/pass/kind", file, "/request", H5P_DEFAULT, H5P_DEFAULT), 0);
}

START_TEST(test_links)
{
    static const struct {
        const char *name;
        enum tiny_place place;
        const char *want;
    } items[] = {
        {EXPERT, TINY_SOFT, "/routing/expert is a soft or user-defined link"},
        {EXPERT, TINY_EXTERNAL, "/routing/expert is an external link, which could lead to another file"},
        {EXPERT, TINY_GROUP, "/routing/expert is not a dataset"},
        {"/routing/gate", TINY_EXTERNAL, "/routing/gate is an external link"},
        {"/pass/forward", TINY_SOFT, "/pass/forward is a soft or user-defined link"},
        {"/request/workload", TINY_EXTERNAL, "/request/workload is an external link"},
        {"/model/resident_bytes", TINY_SOFT, "/model/resident_bytes is a soft or user-defined link"},
    };
    tiny t;
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        tiny_init(&t);
        tiny_find(&t, items[i].name)->place = items[i].place;
        tiny_refused(&t, items[i].name, items[i].want);
    }
    tiny_init(&t);
    t.edit = soft_group;
    tiny_refused(&t, "soft group", "/pass is a soft or user-defined link");
    t.edit = external_group;
    tiny_refused(&t, "external group", "/routing is an external link");
    t.edit = dataset_for_group;
    tiny_refused(&t, "dataset as group", "/request is not a group");
}
END_TEST

/* ---- storage ------------------------------------------------------------------------------------------------------- */

static void no_filters(hid_t list)
{
    (void)list;
}

static void only_deflate(hid_t list)
{
    ck_assert_int_ge(H5Pset_deflate(list, 6), 0);
}

static void only_zstd(hid_t list)
{
    ck_assert_int_ge(H5Pset_filter(list, MOESIM_FILTER_ZSTD, H5Z_FLAG_MANDATORY, 0, NULL), 0);
}

static void only_fletcher(hid_t list)
{
    ck_assert_int_ge(H5Pset_fletcher32(list), 0);
}

static void only_shuffle(hid_t list)
{
    ck_assert_int_ge(H5Pset_shuffle(list), 0);
}

static void scale_offset(hid_t list)
{
    ck_assert_int_ge(H5Pset_scaleoffset(list, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT), 0);
}

static void nbit(hid_t list)
{
    ck_assert_int_ge(H5Pset_nbit(list), 0);
}

static void szip(hid_t list)
{
    ck_assert_int_ge(H5Pset_szip(list, H5_SZIP_NN_OPTION_MASK, 4), 0);
}

static void unknown(hid_t list)
{
    ck_assert_int_ge(H5Pset_filter(list, 40000, H5Z_FLAG_OPTIONAL, 0, NULL), 0);
}

static void late_shuffle(hid_t list)
{
    only_deflate(list);
    only_shuffle(list);
}

static void checksum_then_shuffle(hid_t list)
{
    only_fletcher(list);
    only_shuffle(list);
}

static void two_compressors(hid_t list)
{
    only_deflate(list);
    only_zstd(list);
}

static void deflate_twice(hid_t list)
{
    only_deflate(list);
    only_deflate(list);
}

static void edge_chunks(hid_t list)
{
    only_deflate(list);
    ck_assert_int_ge(H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), 0);
}

START_TEST(test_filters)
{
    static const struct {
        void (*filters)(hid_t list);
        const char *want;
    } pipelines[] = {
        {scale_offset, "/routing/expert uses HDF5 filter 6; only shuffle (2)"},
        {nbit, "/routing/expert uses HDF5 filter 5"},
        {szip, "/routing/expert uses HDF5 filter 4"},
        {unknown, "/routing/expert uses HDF5 filter 40000"},
        {late_shuffle, "/routing/expert: filter 1 (number 2) is out of place"},
        {checksum_then_shuffle, "/routing/expert: filter 1 (number 2) is out of place"},
        {two_compressors, "/routing/expert: filter 1 (number 32015) is out of place"},
        {deflate_twice, "/routing/expert: filter 1 (number 1) is out of place"},
        {edge_chunks, "/routing/expert leaves chunks at its edges unfiltered"},
    };
    for (size_t i = 0; i < sizeof pipelines / sizeof pipelines[0]; i++) {
        tiny t;
        tiny_init(&t);
        tiny_find(&t, EXPERT)->filters = pipelines[i].filters;
        if (pipelines[i].filters == edge_chunks)
            tiny_find(&t, EXPERT)->chunk[0] = 5;
        tiny_refused(&t, pipelines[i].want, pipelines[i].want);
    }
}
END_TEST

START_TEST(test_layouts)
{
    static const struct {
        const char *name;
        enum tiny_layout layout;
        bool unwritten;
        const char *want;
    } layouts[] = {
        {EXPERT, TINY_VIRTUAL, false, "/routing/expert is a virtual dataset, which takes its data from other files"},
        {"/pass/kind", TINY_VIRTUAL, false, "/pass/kind is a virtual dataset"},
        {"/token/state", TINY_ELSEWHERE, false, "/token/state keeps its data in external files"},
        {"/pass/step", TINY_CONTIGUOUS, true, "/pass/step was cut short: it declares 24 bytes that the file does not hold"},
        {EXPERT, TINY_CHUNKED, true, "/routing/expert was cut short: the chunk that begins at row 0 is missing"},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        tiny t;
        tiny_init(&t);
        tiny_item *item = tiny_find(&t, layouts[i].name);
        item->layout = layouts[i].layout;
        item->unwritten = layouts[i].unwritten;
        tiny_refused(&t, layouts[i].want, layouts[i].want);
    }
}
END_TEST

START_TEST(test_huge)
{
    tiny t;
    tiny_init(&t);
    tiny_item *item = tiny_find(&t, EXPERT);
    item->unwritten = true;
    item->chunk[0] = (hsize_t)1 << 26;
    tiny_refused(&t, "huge chunk", "/routing/expert has chunks of 67108864 rows, which decode to more than 64 MiB");
    item->chunk[0] = 4;
    item->dim[0] = (hsize_t)1 << 62;
    tiny_refused(&t, "product", "/routing/expert declares more than 2^48 bytes");
    item->dim[0] = (hsize_t)1 << 46;
    tiny_refused(&t, "2^49 bytes", "/routing/expert declares more than 2^48 bytes");

    tiny_init(&t);   /* nearly 2^48 bytes that nobody ever wrote, in all row columns: refused, not allocated */
    for (int i = 0; i < t.items; i++)
        if (t.item[i].dim[0] == TINY_ROWS) {
            t.item[i].dim[0] = (hsize_t)1 << 43;
            t.item[i].unwritten = true;
        }
    tiny_refused(&t, "unwritten rows", "/pass/row_offset[6] is 12, but it ends at the number of rows");

    tiny_init(&t);
    const char *const requests[] = {"/request/prompt_tokens", "/request/output_tokens", "/request/workload"};
    for (int i = 0; i < 3; i++) {
        item = tiny_find(&t, requests[i]);
        item->dim[0] = (hsize_t)1 << 21;
        item->chunk[0] = 1024;
        item->layout = TINY_CHUNKED;
        item->unwritten = true;
    }
    tiny_refused(&t, "many requests", "2097152 requests, at most 1048576 are read");
}
END_TEST

/* ---- chunks -------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 4 * TINY_LAYERS * TINY_TOP_K * 2 };   /* bytes of one decoded chunk of /routing/expert */

static void put_chunk(hid_t dataset, hsize_t row, uint32_t mask, size_t n, const void *data)
{
    const hsize_t at[3] = {row, 0, 0};
    ck_assert_int_ge(H5Dwrite_chunk(dataset, H5P_DEFAULT, mask, at, n, data), 0);
}

static void deflate_bytes(hid_t dataset, size_t n)
{
    static unsigned char plain[1 << 20], packed[1 << 20];
    uLongf length = sizeof packed;
    ck_assert_int_eq(compress(packed, &length, plain, n), Z_OK);
    put_chunk(dataset, 0, 0, length, packed);
}

static void inflate_more(hid_t dataset) { deflate_bytes(dataset, 40000); }
static void inflate_one_more(hid_t dataset) { deflate_bytes(dataset, CHUNK + 1); }
static void inflate_fewer(hid_t dataset) { deflate_bytes(dataset, CHUNK - 1); }
static void not_deflate(hid_t dataset) { put_chunk(dataset, 0, 0, 12, "not a stream"); }
static void too_large(hid_t dataset)
{
    static const unsigned char junk[8192];
    put_chunk(dataset, 0, 0, sizeof junk, junk);
}

static void zstd_bytes(hid_t dataset, size_t n, bool say_size)
{
    static unsigned char plain[1 << 16], packed[1 << 17];
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ck_assert(!ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, say_size)));
    const size_t length = ZSTD_compress2(context, packed, sizeof packed, plain, n);
    ck_assert(!ZSTD_isError(length));
    put_chunk(dataset, 0, 0, length, packed);
    (void)ZSTD_freeCCtx(context);
}

static void zstd_other_size(hid_t dataset) { zstd_bytes(dataset, CHUNK + 2, true); }
static void zstd_silent_more(hid_t dataset) { zstd_bytes(dataset, 60000, false); }
static void zstd_silent_fewer(hid_t dataset) { zstd_bytes(dataset, 5, false); }
static void not_zstd(hid_t dataset) { put_chunk(dataset, 0, 0, 12, "not a frame!"); }
static void zstd_cut(hid_t dataset) { put_chunk(dataset, 0, 0, 6, "\x28\xb5\x2f\xfd\x20\x20"); }

static void bad_checksum(hid_t dataset)
{
    static const unsigned char plain[CHUNK + 4] = {1};
    put_chunk(dataset, 0, 0, sizeof plain, plain);
}

static void no_checksum(hid_t dataset) { put_chunk(dataset, 0, 0, 3, "abc"); }
static void short_shuffle(hid_t dataset) { put_chunk(dataset, 0, 0, 6, "abcdef"); }
static void mandatory_left_out(hid_t dataset) { put_chunk(dataset, 0, 1, CHUNK, (unsigned char[CHUNK]){0}); }
static void no_such_filter(hid_t dataset) { put_chunk(dataset, 0, 0x80, CHUNK, (unsigned char[CHUNK]){0}); }

START_TEST(test_chunks)
{
    static const struct {
        void (*filters)(hid_t list);
        void (*after)(hid_t dataset);
        const char *want;
    } cases[] = {
        {only_deflate, inflate_more, "the chunk that begins at row 0 decodes (deflate) to more bytes than the chunk's"},
        {only_deflate, inflate_one_more, "decodes (deflate) to more bytes"},
        {only_deflate, inflate_fewer, "decodes (deflate) to fewer bytes"},
        {only_deflate, not_deflate, "is a damaged deflate stream"},
        {only_deflate, too_large, "the chunk at row 0 takes 8192 bytes, more than its content can"},
        {only_zstd, zstd_other_size, "is a zstd frame of another size than the chunk's"},
        {only_zstd, zstd_silent_more, "is a damaged zstd frame"},
        {only_zstd, zstd_silent_fewer, "decodes (zstd) to another size"},
        {only_zstd, not_zstd, "is not a zstd frame"},
        {only_zstd, zstd_cut, "zstd frame"},
        {only_fletcher, bad_checksum, "fails its Fletcher-32 checksum"},
        {only_fletcher, no_checksum, "is too short for its Fletcher-32 checksum"},
        {only_shuffle, short_shuffle, "has another size than the chunk's"},
        {only_zstd, mandatory_left_out, "says that a filter was left out which must not be"},
        {only_deflate, no_such_filter, "says that a filter was left out which must not be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tiny t;
        tiny_init(&t);
        tiny_item *item = tiny_find(&t, EXPERT);
        item->filters = cases[i].filters;
        item->after = cases[i].after;
        tiny_refused(&t, cases[i].want, cases[i].want);
    }
}
END_TEST

static void first_chunk_only(hid_t dataset)
{
    uint16_t ids[CHUNK / 2];
    for (size_t i = 0; i < CHUNK / 2; i++)
        ids[i] = (uint16_t)(i % 2);
    put_chunk(dataset, 0, 0, CHUNK, ids);
}

START_TEST(test_later_chunk_missing)
{
    tiny t;
    tiny_init(&t);
    tiny_find(&t, EXPERT)->filters = no_filters;
    tiny_find(&t, EXPERT)->after = first_chunk_only;
    tiny_refused(&t, "second chunk", "/routing/expert was cut short: the chunk that begins at row 4 is missing");
}
END_TEST

RUN_TESTS("storage", test_not_a_trace, test_unreadable, test_superblocks, test_truncated, test_old_format_on_request,
          test_links, test_filters, test_layouts, test_huge, test_chunks, test_later_chunk_missing)
