/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals that concern the storage of chunks: filters that are not read, chunks that are damaged, bombs or missing.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define EXPERT "/routing/expert"

/* ---- filters ------------------------------------------------------------------------------------------------------- */

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

RUN_TESTS("chunks", test_filters, test_chunks, test_later_chunk_missing)
