/* SPDX-License-Identifier: Apache-2.0
 *
 * The decision log as an HDF5 file that grows event by event. The digest covers the decisions themselves, in a canonical
 * little-endian form (traces/FORMAT.md, "Decision log"), so it depends neither on compression nor on the header.
 */
#include "traces/declog.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "traces/declog_columns.h"
#include "traces/sink.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ids enter the digest as they lie in memory: little-endian");

#define IDS_ROWS 65536u   /* chunk of the id arrays, in ids */

struct moesim_declog {
    moesim_sink_file file;
    moesim_sink column[COLUMNS];
    moesim_digest *digest;
    uint64_t total[LISTS];
    uint64_t events;
    uint32_t num_layers, num_experts;
};

const moesim_declog_column moesim_declog_columns[COLUMNS] = {
    [PASS] = {"/event/pass", MOESIM_H5_U64}, [CLOCK] = {"/event/clock", MOESIM_H5_U64},
    [LAYER] = {"/event/layer", MOESIM_H5_U16}, [COUNTED] = {"/event/counted", MOESIM_H5_U8},
    [OFFSET + HITS] = {"/hits/offset", MOESIM_H5_U64}, [EXPERT + HITS] = {"/hits/expert", MOESIM_H5_U16},
    [OFFSET + MOVED] = {"/moved/offset", MOESIM_H5_U64}, [EXPERT + MOVED] = {"/moved/expert", MOESIM_H5_U16},
    [OFFSET + CPU] = {"/cpu/offset", MOESIM_H5_U64}, [EXPERT + CPU] = {"/cpu/expert", MOESIM_H5_U16},
    [OFFSET + EVICTED] = {"/evicted/offset", MOESIM_H5_U64}, [EXPERT + EVICTED] = {"/evicted/expert", MOESIM_H5_U16},
};

static moesim_code write_header(moesim_declog *log, const moesim_declog_header *h, moesim_error *err)
{
    const struct { const char *name, *text; } text[] = {
        {"format", "moesim-decisions"}, {"trace_digest", h->trace_digest}, {"model_id", h->model_id},
        {"policy", h->policy}, {"options", h->options}, {"config", h->config},
    };
    const struct { const char *name; uint32_t value; } number[] = {
        {"format_version", 1}, {"num_layers", h->num_layers}, {"num_experts", h->num_experts}, {"cache", h->cache},
    };
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < sizeof text / sizeof text[0] && code == MOESIM_OK; i++)
        code = moesim_sink_text(&log->file, text[i].name, text[i].text, err);
    for (size_t i = 0; i < sizeof number / sizeof number[0] && code == MOESIM_OK; i++)
        code = moesim_sink_u32(&log->file, number[i].name, number[i].value, err);
    return code == MOESIM_OK ? moesim_sink_u64(&log->file, "seed", h->seed, err) : code;
}

static moesim_code open_columns(moesim_declog *log, moesim_error *err)
{
    static const char *const group[] = {"/event", "/hits", "/moved", "/cpu", "/evicted"};
    moesim_code code = MOESIM_OK;
    for (size_t g = 0; g < sizeof group / sizeof group[0] && code == MOESIM_OK; g++)
        code = moesim_sink_group(&log->file, group[g], err);
    for (int c = 0; c < COLUMNS && code == MOESIM_OK; c++)
        code = moesim_sink_open(&log->file, moesim_declog_columns[c].name, moesim_declog_columns[c].type, NULL,
                                c >= EXPERT ? IDS_ROWS : MOESIM_SINK_ROWS, &log->column[c], err);
    for (int l = 0; l < LISTS && code == MOESIM_OK; l++)
        code = moesim_sink_append(&log->column[OFFSET + l], 1, &log->total[l], err);
    return code;
}

moesim_code moesim_declog_create(const char *path, const moesim_declog_header *header, moesim_declog **out,
                                 moesim_error *err)
{
    *out = NULL;
    void *memory;
    moesim_code code = moesim_alloc(1, sizeof(moesim_declog), "decision log", &memory, err);
    if (code != MOESIM_OK)
        return code;
    moesim_declog *log = memory;
    log->num_layers = header->num_layers;
    log->num_experts = header->num_experts;
    code = moesim_sink_file_create(path, NULL, &log->file, err);
    if (code == MOESIM_OK)
        code = moesim_digest_create(&log->digest, err);
    if (code == MOESIM_OK)
        code = write_header(log, header, err);
    if (code == MOESIM_OK)
        code = open_columns(log, err);
    if (code != MOESIM_OK) {
        moesim_declog_discard(&log);
        return code;
    }
    *out = log;
    return MOESIM_OK;
}

static void digest_number(moesim_digest *digest, uint64_t value, unsigned bytes)
{
    unsigned char out[8];
    for (unsigned b = 0; b < bytes; b++)
        out[b] = (unsigned char)(value >> (8u * b));
    moesim_digest_update(digest, out, bytes);
}

static void digest_list(moesim_digest *digest, uint32_t n, const uint16_t *id)
{
    digest_number(digest, n, 4);
    moesim_digest_update(digest, id, n * sizeof *id);
}

void moesim_decision_digest(moesim_digest *digest, const moesim_decision *d)
{
    digest_number(digest, d->pass, 8);
    digest_number(digest, d->clock, 8);
    digest_number(digest, d->layer, 2);
    digest_number(digest, d->counted != 0, 1);
    digest_list(digest, d->n_hits, d->hits);
    digest_list(digest, d->n_moved, d->moved);
    digest_list(digest, d->n_cpu, d->cpu);
    digest_list(digest, d->n_evicted, d->evicted);
}

static moesim_code append_list(moesim_declog *log, int list, uint32_t n, const uint16_t *id, moesim_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (id[i] >= log->num_experts)
            return moesim_fail(err, MOESIM_E_INTERNAL, "decision log %s: event %llu names expert %u in %s, of %u experts",
                               log->file.path, (unsigned long long)log->events, (unsigned)id[i],
                               moesim_declog_columns[EXPERT + list].name, log->num_experts);
    log->total[list] += n;
    const moesim_code code = moesim_sink_append(&log->column[EXPERT + list], n, id, err);
    return code == MOESIM_OK ? moesim_sink_append(&log->column[OFFSET + list], 1, &log->total[list], err) : code;
}

moesim_code moesim_declog_append(moesim_declog *log, const moesim_decision *d, moesim_error *err)
{
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted while writing %s; nothing was kept", log->file.path);
    if (d->layer >= log->num_layers)
        return moesim_fail(err, MOESIM_E_INTERNAL, "decision log %s: event %llu has layer %u of %u", log->file.path,
                           (unsigned long long)log->events, d->layer, log->num_layers);
    const uint16_t layer = (uint16_t)d->layer;
    const uint8_t counted = d->counted != 0;
    const void *const value[] = {[PASS] = &d->pass, [CLOCK] = &d->clock, [LAYER] = &layer, [COUNTED] = &counted};
    moesim_code code = MOESIM_OK;
    for (int c = PASS; c <= COUNTED && code == MOESIM_OK; c++)
        code = moesim_sink_append(&log->column[c], 1, value[c], err);
    moesim_decision_digest(log->digest, d);
    const struct { uint32_t n; const uint16_t *id; } list[] = {
        [HITS] = {d->n_hits, d->hits}, [MOVED] = {d->n_moved, d->moved}, [CPU] = {d->n_cpu, d->cpu},
        [EVICTED] = {d->n_evicted, d->evicted},
    };
    for (int l = 0; l < LISTS && code == MOESIM_OK; l++)
        code = append_list(log, l, list[l].n, list[l].id, err);
    log->events += code == MOESIM_OK;
    return code;
}

static void release(moesim_declog **log)
{
    for (int c = 0; c < COLUMNS; c++)
        moesim_sink_close(&(*log)->column[c]);
    moesim_sink_file_discard(&(*log)->file);
    moesim_digest_destroy(&(*log)->digest);
    free(*log);
    *log = NULL;
}

moesim_code moesim_declog_finish(moesim_declog **out, char digest[MOESIM_DIGEST_CHARS], moesim_error *err)
{
    moesim_declog *log = *out;
    char text[MOESIM_DIGEST_CHARS];
    moesim_digest_hex(log->digest, text);
    moesim_code code = MOESIM_OK;
    for (int c = 0; c < COLUMNS && code == MOESIM_OK; c++)
        code = moesim_sink_flush(&log->column[c], err);
    for (int c = 0; c < COLUMNS; c++)
        moesim_sink_close(&log->column[c]);
    if (code == MOESIM_OK)
        code = moesim_sink_text(&log->file, "digest", text, err);
    if (code == MOESIM_OK)
        code = moesim_sink_file_finish(&log->file, err);
    if (code == MOESIM_OK && digest != NULL)
        memcpy(digest, text, sizeof text);
    release(out);
    return code;
}

void moesim_declog_discard(moesim_declog **log)
{
    if (*log != NULL)
        release(log);
}
