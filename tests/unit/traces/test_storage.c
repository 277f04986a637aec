/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals that concern the file itself: first bytes, links, layouts, absurd sizes.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    tiny_refused_file(write_bytes("head.h5", "\x89HDF\r\n\x1a\n\x02\x08\x08", 11), "head",
                      "cut short inside its HDF5 superblock");
}
END_TEST

START_TEST(test_unreadable)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/below", write_tiny());
    tiny_refused_file(path, "below a file", "cannot open: Not a directory");
}
END_TEST

/* In a child that ends without clean-up: leak checkers cannot look into a process that changed its user. */
START_TEST(test_no_permission)
{
    const char *closed = write_tiny();
    int status = 0;
    ck_assert_int_eq(chmod(closed, 0), 0);
    ck_assert_int_eq(chmod(tiny_path(""), 0755), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        moesim_error err = MOESIM_ERROR_INIT;
        if (geteuid() == 0 && setegid(65534) + seteuid(65534) != 0)   /* root reads everything: go on as nobody */
            _exit(2);
        const moesim_code code = tiny_read(closed, &err);
        _exit(code == MOESIM_E_IO && strstr(err.text, "cannot open: Permission denied") != NULL ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
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

/* Texts of attributes lie in heaps without checksums: no byte of one may do harm, and most of them matter. */
START_TEST(test_heaps)
{
    static unsigned char whole[1 << 16];
    static const unsigned char telling[] = {0, 1, 0x7f, 0x80, 0xff};
    const char *path = write_tiny();
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(whole, 1, sizeof whole, f);
    ck_assert_int_eq(fclose(f), 0);
    const unsigned char *heap = memmem(whole, n, "GCOL", 4);
    ck_assert_ptr_nonnull(heap);
    int refused = 0;
    for (size_t at = (size_t)(heap - whole); at < (size_t)(heap - whole) + 80; at++) {
        for (size_t i = 0; i < sizeof telling; i++) {
            moesim_error err = MOESIM_ERROR_INIT;
            poke(path, (off_t)at, telling[i]);
            const moesim_code code = tiny_read(path, &err);
            ck_assert_msg(code == MOESIM_OK || (code == MOESIM_E_FORMAT && err.text[0] != '\0'), "byte %zu: %s", at, err.text);
            refused += code != MOESIM_OK;
        }
        poke(path, (off_t)at, whole[at]);
    }
    ck_assert_int_gt(refused, 100);
    poke(path, (off_t)(heap - whole) + 4, 7);
    tiny_refused_file(path, "version of a heap", "attribute format cannot be read: the heap of its text is damaged");
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

/* ---- storage -------------------------------------------------------------------------------------------------------- */

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

RUN_TESTS("storage", test_not_a_trace, test_unreadable, test_no_permission, test_superblocks,
          test_truncated, test_heaps, test_old_format_on_request, test_links, test_layouts, test_huge)
