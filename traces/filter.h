/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunk filters. The zstd filter (registered number 32015: one plain zstd frame a chunk, optional parameter = level) for
 * HDF5 to write with, and our own decoder for reading: every stage writes into a buffer whose exact size is known beforehand,
 * so that no number in a file drives an allocation and no stage can write too much.
 */
#ifndef MOESIM_TRACES_FILTER_H
#define MOESIM_TRACES_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MOESIM_FILTER_ZSTD 32015   /* number in HDF5's registry of filters */

/* The filter's class (an H5Z_class2_t) for H5Zregister or for a loadable plug-in. */
const void *moesim_filter_zstd_class(void);

enum moesim_stage_kind { MOESIM_STAGE_SHUFFLE = 1, MOESIM_STAGE_FLETCHER, MOESIM_STAGE_DEFLATE, MOESIM_STAGE_ZSTD };

#define MOESIM_MAX_STAGES 3   /* shuffle first; one compressor and one checksum in either order */

typedef struct moesim_stage {
    uint8_t kind;             /* enum moesim_stage_kind */
    bool optional;            /* a chunk's mask may say that the stage was left out */
} moesim_stage;

/* How the chunks of one dataset are stored, stages in the order of writing. */
typedef struct moesim_pipeline {
    uint32_t n;
    moesim_stage stage[MOESIM_MAX_STAGES];
    size_t element;           /* bytes */
    size_t chunk_bytes;       /* of a decoded chunk; 0: not chunked */
} moesim_pipeline;

/* Scratch memory and contexts; grows with the largest chunk seen (at most three times its size). One thread at a time. */
typedef struct moesim_decoder moesim_decoder;

moesim_code moesim_decoder_create(moesim_decoder **out, moesim_error *err);
void moesim_decoder_destroy(moesim_decoder **decoder);   /* NULL allowed */

/* Buffers of at least `bytes` for a stored chunk and for a decoded tile; valid until the next call for a larger one. NULL:
 * out of memory. */
void *moesim_decoder_stored(moesim_decoder *decoder, size_t bytes);
void *moesim_decoder_tile(moesim_decoder *decoder, size_t bytes);

/* Most bytes that a chunk of this pipeline can take in a file. */
size_t moesim_pipeline_bound(const moesim_pipeline *pipeline);

/* Decodes one stored chunk into out (exactly pipeline->chunk_bytes). mask: bit i set = stage i was left out. NULL on success,
 * else what is wrong, as the end of a sentence. */
const char *moesim_decoder_run(moesim_decoder *decoder, const moesim_pipeline *pipeline, uint32_t mask, const void *stored,
                               size_t bytes, void *out);

/* Chunks decoded so far. */
uint64_t moesim_decoder_count(const moesim_decoder *decoder);

#endif
