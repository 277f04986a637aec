/* SPDX-License-Identifier: Apache-2.0
 *
 * The zstd filter as HDF5 sees it (number 32015). Written to the public filter's conventions: one frame a chunk, optional
 * parameter = level; the frame carries its size and a checksum. The decoding side is used by other programs through the
 * plug-in; the reader decodes with traces/decode.c.
 */
#include "traces/filter.h"

#include <string.h>

#ifndef H5_USE_110_API
#define H5_USE_110_API
#endif
#include <hdf5.h>
#include <zstd.h>

#define MAX_DECODED ((size_t)64 << 20)   /* a chunk of this format is never larger */

static size_t encode(size_t n, const unsigned *values, size_t bytes, size_t *room, void **buffer)
{
    int level = n > 0 ? (int)values[0] : ZSTD_CLEVEL_DEFAULT;
    if (level > ZSTD_maxCLevel())
        level = ZSTD_maxCLevel();
    if (level < 1)
        level = ZSTD_CLEVEL_DEFAULT;
    const size_t bound = ZSTD_compressBound(bytes);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    void *out = context != NULL && !ZSTD_isError(bound) ? H5allocate_memory(bound, false) : NULL;
    size_t written = 0;
    if (out != NULL && !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)) &&
        !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1))) {
        const size_t got = ZSTD_compress2(context, out, bound, *buffer, bytes);
        written = ZSTD_isError(got) ? 0 : got;
    }
    (void)ZSTD_freeCCtx(context);
    if (written == 0) {
        (void)H5free_memory(out);
        return 0;
    }
    (void)H5free_memory(*buffer);
    *buffer = out;
    *room = bound;
    return written;
}

static size_t decode(size_t bytes, size_t *room, void **buffer)
{
    const unsigned long long size = ZSTD_getFrameContentSize(*buffer, bytes);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size == 0 || size > MAX_DECODED)
        return 0;
    void *out = H5allocate_memory((size_t)size, false);
    if (out == NULL)
        return 0;
    const size_t got = ZSTD_decompress(out, (size_t)size, *buffer, bytes);
    if (ZSTD_isError(got) || got != (size_t)size) {
        (void)H5free_memory(out);
        return 0;
    }
    (void)H5free_memory(*buffer);
    *buffer = out;
    *room = (size_t)size;
    return got;
}

static size_t filter(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *room, void **buffer)
{
    return (flags & H5Z_FLAG_REVERSE) != 0 ? decode(bytes, room, buffer) : encode(n, values, bytes, room, buffer);
}

const void *moesim_filter_zstd_class(void)
{
    static const H5Z_class2_t class = {
        .version = H5Z_CLASS_T_VERS,
        .id = MOESIM_FILTER_ZSTD,
        .encoder_present = 1,
        .decoder_present = 1,
        .name = "zstd",
        .filter = filter,
    };
    return &class;
}
