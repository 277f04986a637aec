/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding of stored chunks with bounded buffers: the filter pipeline reversed, each stage into a buffer of known size.
 */
#include "traces/filter.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define CHECKSUM_BYTES 4

typedef struct buffer {
    void *data;
    size_t bytes;
} buffer;

struct moesim_decoder {
    ZSTD_DCtx *zstd;
    z_stream zlib;
    buffer stored, tile, scratch[2];
    uint64_t count;
};

moesim_code moesim_decoder_create(moesim_decoder **out, moesim_error *err)
{
    *out = NULL;
    moesim_decoder *d = calloc(1, sizeof *d);
    if (d == NULL)
        return moesim_fail_nomem(err, "decoder", sizeof *d);
    d->zstd = ZSTD_createDCtx();
    if (d->zstd == NULL || inflateInit(&d->zlib) != Z_OK) {
        (void)ZSTD_freeDCtx(d->zstd);
        free(d);
        return moesim_fail_nomem(err, "decoder contexts", (size_t)1 << 17);
    }
    *out = d;
    return MOESIM_OK;
}

void moesim_decoder_destroy(moesim_decoder **decoder)
{
    moesim_decoder *d = *decoder;
    *decoder = NULL;
    if (d == NULL)
        return;
    (void)ZSTD_freeDCtx(d->zstd);
    (void)inflateEnd(&d->zlib);
    free(d->stored.data);
    free(d->tile.data);
    free(d->scratch[0].data);
    free(d->scratch[1].data);
    free(d);
}

/* Content is not kept. */
static void *grow(buffer *b, size_t bytes)
{
    if (bytes <= b->bytes && b->data != NULL)
        return b->data;
    free(b->data);
    b->data = malloc(bytes > 0 ? bytes : 1);
    b->bytes = b->data != NULL ? bytes : 0;
    return b->data;
}

void *moesim_decoder_stored(moesim_decoder *decoder, size_t bytes)
{
    return grow(&decoder->stored, bytes);
}

void *moesim_decoder_tile(moesim_decoder *decoder, size_t bytes)
{
    return grow(&decoder->tile, bytes);
}

size_t moesim_pipeline_bound(const moesim_pipeline *pipeline)
{
    /* Both compressors add less than one part in 256 and a few hundred bytes to what cannot be compressed. */
    return pipeline->chunk_bytes + pipeline->chunk_bytes / 128 + 4096;
}

/* HDF5's Fletcher-32: sums over big-endian 16-bit words, an odd last byte as the high half of a word. */
static uint32_t fletcher32(const unsigned char *data, size_t bytes)
{
    uint32_t a = 0, b = 0;
    size_t words = bytes / 2;
    while (words > 0) {
        size_t run = words < 360 ? words : 360;   /* the sums cannot overflow before they are folded */
        words -= run;
        for (; run > 0; run--, data += 2) {
            a += (uint32_t)data[0] << 8 | data[1];
            b += a;
        }
        a = (a & 0xffffu) + (a >> 16);
        b = (b & 0xffffu) + (b >> 16);
    }
    if (bytes % 2 != 0) {
        a += (uint32_t)data[0] << 8;
        b += a;
        a = (a & 0xffffu) + (a >> 16);
        b = (b & 0xffffu) + (b >> 16);
    }
    a = (a & 0xffffu) + (a >> 16);
    b = (b & 0xffffu) + (b >> 16);
    return b << 16 | a;
}

/* Two planes of n bytes into n pairs: what 2-byte ids and gates need, so it has its own path. */
static void interleave2(const unsigned char *in, size_t n, unsigned char *out)
{
    size_t i = 0;
#if defined(__SSE2__)
    for (; i + 16 <= n; i += 16) {
        const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(in + n + i));
        _mm_storeu_si128((__m128i *)(void *)(out + 2 * i), _mm_unpacklo_epi8(low, high));
        _mm_storeu_si128((__m128i *)(void *)(out + 2 * i + 16), _mm_unpackhi_epi8(low, high));
    }
#endif
    for (; i < n; i++) {
        out[2 * i] = in[i];
        out[2 * i + 1] = in[n + i];
    }
}

static void unshuffle(const unsigned char *in, size_t bytes, size_t element, unsigned char *out)
{
    const size_t n = bytes / element;
    if (element == 2) {
        interleave2(in, n, out);
        return;
    }
    for (size_t plane = 0; plane < element; plane++) {
        const unsigned char *from = in + plane * n;
        for (size_t i = 0; i < n; i++)
            out[i * element + plane] = from[i];
    }
}

static const char *run_zstd(moesim_decoder *d, const void *in, size_t bytes, void *out, size_t want)
{
    const unsigned long long size = ZSTD_getFrameContentSize(in, bytes);
    if (size == ZSTD_CONTENTSIZE_ERROR)
        return "is not a zstd frame";
    if (size != ZSTD_CONTENTSIZE_UNKNOWN && size != want)
        return "is a zstd frame of another size than the chunk's";
    const size_t got = ZSTD_decompressDCtx(d->zstd, out, want, in, bytes);
    if (ZSTD_isError(got))
        return "is a damaged zstd frame";
    return got == want ? NULL : "decodes (zstd) to another size than the chunk's";
}

static const char *run_deflate(moesim_decoder *d, const void *in, size_t bytes, void *out, size_t want)
{
    if (inflateReset(&d->zlib) != Z_OK)
        return "cannot be decoded: zlib does not restart";
    d->zlib.next_in = (z_const Bytef *)(uintptr_t)in;
    d->zlib.avail_in = (uInt)bytes;
    d->zlib.next_out = out;
    d->zlib.avail_out = (uInt)want;
    const int end = inflate(&d->zlib, Z_FINISH);
    if (end == Z_STREAM_END)
        return d->zlib.avail_out == 0 ? NULL : "decodes (deflate) to fewer bytes than the chunk's";
    if (end == Z_BUF_ERROR && d->zlib.avail_out == 0)
        return "decodes (deflate) to more bytes than the chunk's";
    return "is a damaged deflate stream";
}

static const char *run_fletcher(const unsigned char *in, size_t bytes)
{
    if (bytes < CHECKSUM_BYTES)
        return "is too short for its Fletcher-32 checksum";
    const unsigned char *tail = in + bytes - CHECKSUM_BYTES;
    const uint32_t stored = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
    return fletcher32(in, bytes - CHECKSUM_BYTES) == stored ? NULL : "fails its Fletcher-32 checksum: the file is damaged";
}

/* Bytes that stage i produced from when it was written, that is, what undoing it must give. */
static size_t size_before(const moesim_pipeline *p, uint32_t mask, uint32_t i)
{
    size_t bytes = p->chunk_bytes;
    for (uint32_t k = 0; k < i; k++)
        if (p->stage[k].kind == MOESIM_STAGE_FLETCHER && (mask >> k & 1u) == 0)
            bytes += CHECKSUM_BYTES;
    return bytes;
}

static const char *check_mask(const moesim_pipeline *p, uint32_t mask)
{
    for (uint32_t i = 0; i < 32; i++)
        if ((mask >> i & 1u) != 0 && (i >= p->n || !p->stage[i].optional))
            return "says that a filter was left out which must not be";
    return NULL;
}

typedef struct span {
    const unsigned char *data;
    size_t bytes;
} span;

/* Undoes one stage: `now` moves on to what the stage was given. */
static const char *undo(moesim_decoder *d, const moesim_pipeline *p, uint32_t i, size_t want, void *scratch, span *now)
{
    const char *bad = NULL;
    switch (p->stage[i].kind) {
    case MOESIM_STAGE_FLETCHER:
        bad = run_fletcher(now->data, now->bytes);
        now->bytes -= bad == NULL ? CHECKSUM_BYTES : 0;
        return bad;
    case MOESIM_STAGE_SHUFFLE:
        if (now->bytes != want)
            return "has another size than the chunk's";
        unshuffle(now->data, now->bytes, p->element, scratch);
        break;
    case MOESIM_STAGE_ZSTD:
        bad = run_zstd(d, now->data, now->bytes, scratch, want);
        break;
    default:
        bad = run_deflate(d, now->data, now->bytes, scratch, want);
        break;
    }
    *now = (span){scratch, want};
    return bad;
}

/* Stages that write nothing of their own leave the data where they are. */
static bool in_place(const moesim_pipeline *p, uint32_t i)
{
    return p->stage[i].kind == MOESIM_STAGE_FLETCHER || (p->stage[i].kind == MOESIM_STAGE_SHUFFLE && p->element == 1);
}

/* The lowest stage that writes: it writes straight to the caller's buffer if it gives exactly a chunk. */
static uint32_t last_writer(const moesim_pipeline *p, uint32_t mask)
{
    for (uint32_t i = 0; i < p->n; i++)
        if ((mask >> i & 1u) == 0 && !in_place(p, i))
            return i;
    return p->n;
}

const char *moesim_decoder_run(moesim_decoder *decoder, const moesim_pipeline *pipeline, uint32_t mask, const void *stored,
                               size_t bytes, void *out)
{
    const char *bad = check_mask(pipeline, mask);
    const uint32_t last = last_writer(pipeline, mask);
    span now = {stored, bytes};
    decoder->count++;
    for (uint32_t i = pipeline->n, flip = 0; bad == NULL && i-- > 0;) {
        if ((mask >> i & 1u) != 0 || (in_place(pipeline, i) && pipeline->stage[i].kind == MOESIM_STAGE_SHUFFLE))
            continue;
        const size_t want = size_before(pipeline, mask, i);
        void *scratch = i == last && want == pipeline->chunk_bytes ? out : NULL;
        if (scratch == NULL && !in_place(pipeline, i) && (scratch = grow(&decoder->scratch[flip], want)) == NULL)
            return "cannot be decoded: out of memory";
        bad = undo(decoder, pipeline, i, want, scratch, &now);
        flip ^= in_place(pipeline, i) ? 0 : 1;
    }
    if (bad != NULL)
        return bad;
    if (now.bytes != pipeline->chunk_bytes)
        return "has another size than the chunk's";
    if (now.data != (const unsigned char *)out)
        memcpy(out, now.data, now.bytes);
    return NULL;
}

uint64_t moesim_decoder_count(const moesim_decoder *decoder)
{
    return decoder->count;
}
