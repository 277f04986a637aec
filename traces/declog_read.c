/* SPDX-License-Identifier: Apache-2.0
 *
 * Decision logs, read. Everything is checked in one scan at open.
 */
#include "traces/declog_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "traces/declog_columns.h"

#define MOST_TEXT ((size_t)1 << 20)      /* bytes of options or config */
#define MOST_SIZE 1024u                  /* layers, experts */
#define REMEDY "write the log again with `moesim run --decisions`"

struct moesim_declog_reader {
    moesim_declog_info info;
    moesim_h5_file file;
    moesim_decoder *decoder;
    moesim_h5_column column[COLUMNS];
    uint64_t next;               /* event */
    uint64_t begin[LISTS];       /* offsets of the next event */
    uint16_t *list[LISTS];       /* [E] each */
};

/* ---- header -------------------------------------------------------------------------------------------------------- */

static moesim_code missing(const moesim_declog_reader *r, const char *name, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is missing or out of range: the file is damaged; " REMEDY,
                       r->info.path, name);
}

static moesim_code read_identity(moesim_declog_reader *r, moesim_error *err)
{
    moesim_text format = "";
    uint64_t version = 0, complete = 0;
    bool found = false;
    moesim_code code = moesim_h5_attr_text(&r->file, "format", format, &found, err);
    if (code == MOESIM_OK && (!found || strcmp(format, "moesim-decisions") != 0))
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: not a decision log: attribute format is \"%.80s\", not "
                           "\"moesim-decisions\"; logs are written by `moesim run --decisions`", r->info.path, format);
    if (code == MOESIM_OK)
        code = moesim_h5_attr_u64(&r->file, "format_version", &version, &found, err);
    if (code == MOESIM_OK && version != 1)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: format version %llu of decision logs, this program reads version 1",
                           r->info.path, (unsigned long long)version);
    if (code == MOESIM_OK)
        code = moesim_h5_attr_u64(&r->file, "complete", &complete, &found, err);
    if (code == MOESIM_OK && complete != 1)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute complete is not 1: the log was not written to its end; " REMEDY,
                           r->info.path);
    return code;
}

static bool is_digest(const char *text)
{
    return strlen(text) == MOESIM_DIGEST_CHARS - 1 && strspn(text, "0123456789abcdef") == MOESIM_DIGEST_CHARS - 1;
}

static moesim_code read_texts(moesim_declog_reader *r, moesim_error *err)
{
    moesim_text digest = "", trace = "";
    const struct { const char *name; char *out; bool is_digest; } text[] = {
        {"trace_digest", trace, true}, {"digest", digest, true}, {"model_id", r->info.model_id, false},
        {"policy", r->info.policy, false},
    };
    const struct { const char *name; char **out; } lengthy[] = {{"options", &r->info.options}, {"config", &r->info.config}};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        bool found = false;
        if (moesim_h5_attr_text(&r->file, text[i].name, text[i].out, &found, err) != MOESIM_OK)
            return err->code;
        if (!found || (text[i].is_digest && !is_digest(text[i].out)))
            return missing(r, text[i].name, err);
    }
    memcpy(r->info.trace_digest, trace, MOESIM_DIGEST_CHARS);
    memcpy(r->info.digest, digest, MOESIM_DIGEST_CHARS);
    for (size_t i = 0; i < sizeof lengthy / sizeof lengthy[0]; i++) {
        if (moesim_h5_attr_string(&r->file, lengthy[i].name, MOST_TEXT, lengthy[i].out, err) != MOESIM_OK)
            return err->code;
        if (*lengthy[i].out == NULL)
            return missing(r, lengthy[i].name, err);
    }
    return MOESIM_OK;
}

static moesim_code read_numbers(moesim_declog_reader *r, moesim_error *err)
{
    const struct { const char *name; uint64_t least, most; uint32_t *out; } number[] = {
        {"num_layers", 1, MOST_SIZE, &r->info.num_layers}, {"num_experts", 1, MOST_SIZE, &r->info.num_experts},
        {"cache", 0, MOST_SIZE, &r->info.cache},
    };
    bool found = false;
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        uint64_t value = 0;
        if (moesim_h5_attr_u64(&r->file, number[i].name, &value, &found, err) != MOESIM_OK)
            return err->code;
        if (!found || value < number[i].least || value > number[i].most)
            return missing(r, number[i].name, err);
        *number[i].out = (uint32_t)value;
    }
    const moesim_code code = moesim_h5_attr_u64(&r->file, "seed", &r->info.seed, &found, err);
    return code == MOESIM_OK && !found ? missing(r, "seed", err) : code;
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

static moesim_code open_columns(moesim_declog_reader *r, moesim_error *err)
{
    for (int c = 0; c < COLUMNS; c++)
        if (moesim_h5_dataset_open(&r->file, moesim_declog_columns[c].name, 1u << moesim_declog_columns[c].type, 1,
                                   &r->column[c].dataset, err) != MOESIM_OK)
            return err->code;
    const uint64_t events = r->column[PASS].dataset.dim[0];
    for (int c = PASS; c < EXPERT; c++) {
        const uint64_t have = r->column[c].dataset.dim[0], want = events + (c >= OFFSET);
        if (have != want)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s has %llu entries, %llu events ask for %llu: the file is damaged; "
                               REMEDY, r->info.path, moesim_declog_columns[c].name, (unsigned long long)have,
                               (unsigned long long)events, (unsigned long long)want);
    }
    r->info.events = events;
    for (int l = 0; l < LISTS; l++) {
        void *p = NULL;
        if (moesim_alloc(r->info.num_experts, sizeof *r->list[l], "ids of an event", &p, err) != MOESIM_OK)
            return err->code;
        r->list[l] = p;
    }
    return MOESIM_OK;
}

/* The offsets of event 0, and where the last one must lead. */
static moesim_code read_ends(moesim_declog_reader *r, moesim_error *err)
{
    for (int l = 0; l < LISTS; l++) {
        uint64_t first = 0, last = 0;
        const uint64_t have = r->column[EXPERT + l].dataset.dim[0];
        moesim_code code = moesim_h5_column_read(&r->column[OFFSET + l], r->decoder, r->info.events, 1, &last, err);
        if (code == MOESIM_OK)
            code = moesim_h5_column_read(&r->column[OFFSET + l], r->decoder, 0, 1, &first, err);
        if (code != MOESIM_OK)
            return code;
        if (first != 0 || last != have)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s runs from %llu to %llu, %s has %llu ids: the file is damaged; "
                               REMEDY, r->info.path, moesim_declog_columns[OFFSET + l].name, (unsigned long long)first,
                               (unsigned long long)last, moesim_declog_columns[EXPERT + l].name, (unsigned long long)have);
    }
    return MOESIM_OK;
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

static moesim_code bad(const moesim_declog_reader *r, int column, uint64_t index, uint64_t value, const char *rule,
                       moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s[%llu] is %llu: %s; the file is damaged, " REMEDY, r->info.path,
                       moesim_declog_columns[column].name, (unsigned long long)index, (unsigned long long)value, rule);
}

/* Ids below E; ascending, but for moved, where they differ. */
static moesim_code check_ids(const moesim_declog_reader *r, int list, uint32_t n, moesim_error *err)
{
    const uint16_t *id = r->list[list];
    uint64_t seen[MOST_SIZE / 64u] = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (id[i] >= r->info.num_experts)
            return bad(r, EXPERT + list, r->begin[list] + i, id[i], "no expert of this model has that number", err);
        if (list != MOVED && i > 0 && id[i] <= id[i - 1])
            return bad(r, EXPERT + list, r->begin[list] + i, id[i], "ids of an event ascend", err);
        if ((seen[id[i] / 64u] >> (id[i] % 64u)) & 1u)
            return bad(r, EXPERT + list, r->begin[list] + i, id[i], "an event names an expert once", err);
        seen[id[i] / 64u] |= UINT64_C(1) << (id[i] % 64u);
    }
    return MOESIM_OK;
}

static moesim_code read_list(moesim_declog_reader *r, int list, uint32_t *n, moesim_error *err)
{
    uint64_t end = 0;
    moesim_code code = moesim_h5_column_read(&r->column[OFFSET + list], r->decoder, r->next + 1, 1, &end, err);
    if (code != MOESIM_OK)
        return code;
    if (end < r->begin[list] || end - r->begin[list] > r->info.num_experts ||
        end > r->column[EXPERT + list].dataset.dim[0])
        return bad(r, OFFSET + list, r->next + 1, end, "offsets ascend by at most the number of experts", err);
    *n = (uint32_t)(end - r->begin[list]);
    code = moesim_h5_column_read(&r->column[EXPERT + list], r->decoder, r->begin[list], *n, r->list[list], err);
    if (code == MOESIM_OK)
        code = check_ids(r, list, *n, err);
    r->begin[list] = end;
    return code;
}

moesim_code moesim_declog_next(moesim_declog_reader *r, moesim_decision *out, bool *end, moesim_error *err)
{
    uint16_t layer = 0;
    uint8_t counted = 0;
    *end = r->next == r->info.events;
    if (*end)
        return MOESIM_OK;
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted while reading %s", r->info.path);
    *out = (moesim_decision){
        .hits = r->list[HITS], .moved = r->list[MOVED], .cpu = r->list[CPU], .evicted = r->list[EVICTED]};
    void *const value[] = {[PASS] = &out->pass, [CLOCK] = &out->clock, [LAYER] = &layer, [COUNTED] = &counted};
    for (int c = PASS; c <= COUNTED; c++)
        if (moesim_h5_column_read(&r->column[c], r->decoder, r->next, 1, value[c], err) != MOESIM_OK)
            return err->code;
    if (layer >= r->info.num_layers)
        return bad(r, LAYER, r->next, layer, "no layer of this model has that number", err);
    if (counted > 1)
        return bad(r, COUNTED, r->next, counted, "0 and 1 are allowed", err);
    out->layer = layer;
    out->counted = counted;
    uint32_t *const length[] = {
        [HITS] = &out->n_hits, [MOVED] = &out->n_moved, [CPU] = &out->n_cpu, [EVICTED] = &out->n_evicted};
    for (int l = 0; l < LISTS; l++)
        if (read_list(r, l, length[l], err) != MOESIM_OK)
            return err->code;
    r->next++;
    return MOESIM_OK;
}

void moesim_declog_rewind(moesim_declog_reader *r)
{
    r->next = 0;
    memset(r->begin, 0, sizeof r->begin);
}

/* ---- open ---------------------------------------------------------------------------------------------------------- */

static moesim_code scan(moesim_declog_reader *r, moesim_digest *digest, moesim_error *err)
{
    char found[MOESIM_DIGEST_CHARS];
    bool end = false;
    for (;;) {
        moesim_decision d;
        if (moesim_declog_next(r, &d, &end, err) != MOESIM_OK)
            return err->code;
        if (end)
            break;
        moesim_decision_digest(digest, &d);
        r->info.counted_events += d.counted;
        r->info.max_moved = d.n_moved > r->info.max_moved ? d.n_moved : r->info.max_moved;
    }
    moesim_declog_rewind(r);
    moesim_digest_hex(digest, found);
    if (strcmp(found, r->info.digest) == 0)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: the decisions have the digest %.16s…, attribute digest says %.16s…: the file "
                       "is damaged; " REMEDY, r->info.path, found, r->info.digest);
}

static moesim_code open_all(moesim_declog_reader *r, moesim_error *err)
{
    moesim_digest *digest = NULL;
    moesim_code code = moesim_decoder_create(&r->decoder, err);
    if (code == MOESIM_OK)
        code = moesim_h5_open(r->info.path, false, &r->file, err);
    if (code == MOESIM_OK)
        code = read_identity(r, err);
    if (code == MOESIM_OK)
        code = read_texts(r, err);
    if (code == MOESIM_OK)
        code = read_numbers(r, err);
    if (code == MOESIM_OK)
        code = open_columns(r, err);
    if (code == MOESIM_OK)
        code = read_ends(r, err);
    if (code == MOESIM_OK)
        code = moesim_digest_create(&digest, err);
    if (code == MOESIM_OK)
        code = scan(r, digest, err);
    moesim_digest_destroy(&digest);
    return code;
}

moesim_code moesim_declog_open(const char *path, moesim_declog_reader **out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    void *p = NULL;
    err = err != NULL ? err : &local;
    *out = NULL;
    if (strlen(path) >= sizeof ((moesim_declog_info *)NULL)->path)
        return moesim_fail(err, MOESIM_E_IO, "the path of the decision log is longer than 4095 bytes");
    moesim_code code = moesim_alloc(1, sizeof(moesim_declog_reader), "decision log", &p, err);
    if (code != MOESIM_OK)
        return code;
    moesim_declog_reader *r = p;
    (void)snprintf(r->info.path, sizeof r->info.path, "%s", path);
    r->file = (moesim_h5_file){.id = -1};
    for (int c = 0; c < COLUMNS; c++)
        r->column[c] = (moesim_h5_column)MOESIM_H5_COLUMN_INIT;
    code = moesim_h5_enter(err);
    if (code == MOESIM_OK) {
        code = open_all(r, err);
        moesim_h5_leave();
    }
    if (code != MOESIM_OK) {
        moesim_declog_close(&r);
        return code;
    }
    *out = r;
    return MOESIM_OK;
}

void moesim_declog_close(moesim_declog_reader **reader)
{
    moesim_declog_reader *r = *reader;
    if (r == NULL)
        return;
    for (int c = 0; c < COLUMNS; c++)
        moesim_h5_column_close(&r->column[c]);
    moesim_h5_close(&r->file);
    moesim_decoder_destroy(&r->decoder);
    for (int l = 0; l < LISTS; l++)
        free(r->list[l]);
    free(r->info.options);
    free(r->info.config);
    free(r);
    *reader = NULL;
}

const moesim_declog_info *moesim_declog_get_info(const moesim_declog_reader *reader)
{
    return &reader->info;
}
