/* SPDX-License-Identifier: Apache-2.0
 *
 * Reader of the trace format, version 1 (traces/FORMAT.md). A trace is untrusted input: only fixed names are looked up,
 * filters are decoded here with bounded buffers, HDF5 never loads plug-ins and never converts a type on read.
 * Memory is bounded whatever the length of the trace: metadata of passes is read in blocks, rows in windows.
 * One trace and its cursors are used by one thread at a time (moving to another thread is fine).
 */
#ifndef MOESIM_TRACES_TRACE_H
#define MOESIM_TRACES_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

#define MOESIM_TRACE_MAX_REQUESTS (UINT32_C(1) << 20)   /* their table stays in memory, about 100 bytes each */

enum moesim_pass_kind { MOESIM_PASS_PREFILL = 0, MOESIM_PASS_DENOISE = 1, MOESIM_PASS_COMMIT = 2, MOESIM_PASS_DUMMY = 3 };

/* State of a row as of the end of its pass. */
enum moesim_token_state {
    MOESIM_STATE_MASKED = 0,
    MOESIM_STATE_COMMITTED_NOW = 1,
    MOESIM_STATE_COMMITTED = 2,
    MOESIM_STATE_EDITED = 3
};

/* A string attribute; absent ones are "". Cut to 255 bytes, valid UTF-8 without control characters. */
typedef char moesim_text[256];

typedef struct moesim_trace_info {
    moesim_text model_id, gate_kind, confidence_kind;
    moesim_text weight_dtype, engine, engine_version, decoder, dataset, license, created, source_digest;
    uint32_t num_layers;         /* M */
    uint32_t num_experts;        /* E */
    uint32_t top_k;              /* K */
    uint32_t block_length;       /* B */
    uint64_t hidden_size, expert_intermediate_size, shared_experts;   /* 0: not recorded */
    double commit_threshold;     /* NaN: not recorded */
    uint64_t num_passes;         /* P */
    uint64_t num_rows;           /* R */
    uint32_t num_requests;       /* Q */
    bool has_gate, gate_is_f32, has_confidence, has_prob, has_forward, has_output_tokens, has_token_id, has_residency,
        has_pass_ns, has_resident_bytes;
    bool has_confidence_values;  /* has_confidence and confidence_kind is not "none" */
    bool gate_unnormalised;      /* gate_kind contains "unnormalised" or "unnormalized" */
    bool superblock_old;         /* opened through --old-format */
    uint64_t resident_bytes;
    uint64_t file_bytes;
    char digest[MOESIM_DIGEST_CHARS];   /* SHA-256 of the file; "" until moesim_trace_digest */
    char path[4096];
} moesim_trace_info;

typedef struct moesim_pass {
    uint64_t row_begin, row_end;
    uint64_t forward;            /* the pass's own number where /pass/forward is absent */
    uint32_t request;
    int32_t block, step;
    uint8_t kind;                /* enum moesim_pass_kind */
    uint64_t observed_ns;        /* of /observed/pass_ns; 0 where absent */
} moesim_pass;

typedef struct moesim_trace moesim_trace;

typedef struct moesim_trace_options {
    bool salvage;                /* trace salvage alone: accept a file without `complete` and columns of unlike length; the
                                  * trace ends before the first pass that is not whole. err may not be NULL */
    const char *shown_path;      /* info.path, for messages and the digest, where the file is a converted copy of another;
                                  * NULL: path */
    bool old_format;             /* accept a superblock older than 2: only in a child process under memory and CPU limits,
                                  * since damaged files of that age crash HDF5 */
} moesim_trace_options;

/* Opens, checks header, shapes, storage and all per-pass data. options may be NULL. Files with a superblock older than 2 are
 * refused with the remedy (--old-format, or `moesim trace convert --old-format`). */
moesim_code moesim_trace_open(const char *path, const moesim_trace_options *options, moesim_trace **out, moesim_error *err);
void moesim_trace_close(moesim_trace **trace);

/* Valid until close. */
const moesim_trace_info *moesim_trace_get_info(const moesim_trace *trace);

/* Reads the file once and stores the digest in the info. */
moesim_code moesim_trace_digest(moesim_trace *trace, moesim_error *err);

/* Pass p < P; served from blocks of metadata kept in a small cache. */
moesim_code moesim_trace_pass(moesim_trace *trace, uint64_t p, moesim_pass *out, moesim_error *err);

/* [M], valid until close. */
const int32_t *moesim_trace_layer_ids(const moesim_trace *trace);
const uint64_t *moesim_trace_expert_bytes(const moesim_trace *trace);

/* Request q < Q. passes: number of non-dummy passes; first/last: pass numbers (last < first: none). */
typedef struct moesim_trace_request {
    char workload[64];
    uint32_t prompt_tokens;
    uint32_t output_tokens;      /* of /request/output_tokens; 0 and known = false where absent */
    bool output_tokens_known;
    uint64_t passes, first, last;
} moesim_trace_request;
const moesim_trace_request *moesim_trace_get_request(const moesim_trace *trace, uint32_t q);

/* ---- rows ------------------------------------------------------------------------------------------------------ */

enum moesim_column {
    MOESIM_COLUMN_EXPERT = 1u << 0,
    MOESIM_COLUMN_GATE = 1u << 1,
    MOESIM_COLUMN_CONFIDENCE = 1u << 2,
    MOESIM_COLUMN_STATE = 1u << 3,
    MOESIM_COLUMN_POSITION = 1u << 4,
    MOESIM_COLUMN_PROB = 1u << 5,
    MOESIM_COLUMN_TOKEN_ID = 1u << 6,
    MOESIM_COLUMN_RESIDENCY = 1u << 7
};

/* Decoded and checked rows [begin, end); columns that were not asked for, or that the trace lacks, are NULL. */
typedef struct moesim_rows {
    uint64_t begin, end;
    const uint16_t *expert;      /* [n][M][K] */
    const float *gate;           /* [n][M][K], widened from f16 exactly */
    const float *confidence;     /* [n], NaN = not known */
    const uint8_t *state;        /* [n] */
    const int32_t *position;     /* [n] */
    const float *prob;           /* [n][M][E] */
    const int32_t *token_id;     /* [n] */
    const uint8_t *residency;    /* [n][M][K] */
} moesim_rows;

typedef struct moesim_cursor moesim_cursor;

/* How many rows with all columns take up to `bytes` decoded: for reading in pieces. At least 1. */
uint64_t moesim_trace_rows_in(const moesim_trace_info *info, size_t bytes);

/* columns: MOESIM_COLUMN_… or-ed; columns the trace lacks are ignored. limit_bytes bounds the decoded window; a request for
 * more rows than fit is MOESIM_E_LIMIT and names --window. Several cursors on one trace are allowed. */
moesim_code moesim_cursor_open(moesim_trace *trace, uint32_t columns, size_t limit_bytes, moesim_cursor **out,
                               moesim_error *err);
void moesim_cursor_close(moesim_cursor **cursor);

/* Rows [begin, end), valid until the next call on this cursor. Every row that passes through is checked against the format's
 * rules (ids, duplicates, gates, confidences, states); the message names dataset and first bad index. Moving forward decodes
 * each chunk once; moving backward is allowed. */
moesim_code moesim_cursor_rows(moesim_cursor *cursor, uint64_t begin, uint64_t end, moesim_rows *out, moesim_error *err);

#endif
