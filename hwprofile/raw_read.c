/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw samples from a file, as untrusted input: sizes are bounded before anything is allocated, and what can be worked out from
 * the samples must be what the file says.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "hwprofile/raw.h"
#include "traces/h5.h"

#define REMEDY "measure again with `moesim profile measure`"
#define MOST_SAMPLES (UINT64_C(1) << 24)
#define SAME 1e-12               /* relative; figures are worked out by the same sums as they were written */
#define TOO_LARGE "is larger than any measurement makes it"
#define KIND_BYTES 4096u         /* most of a text entry, as traces/h5.h allows */

typedef struct reader {
    moesim_h5_file file;
    moesim_decoder *decoder;
    moesim_raw *raw;
} reader;

/* ---- attributes ------------------------------------------------------------------------------------------------------ */

static moesim_code bad_attribute(const reader *r, const char *name, const char *rule, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s %s; " REMEDY, r->file.path, name, rule);
}

static moesim_code read_text(reader *r, const char *name, char *out, size_t size, moesim_error *err)
{
    char text[256] = "";
    bool found = false;
    const moesim_code code = moesim_h5_attr_text(&r->file, name, text, &found, err);
    if (code == MOESIM_OK && (!found || text[0] == '\0' || strlen(text) >= size))
        return bad_attribute(r, name, "is missing, empty or too long", err);
    if (code == MOESIM_OK)
        (void)snprintf(out, size, "%s", text);
    return code;
}

static moesim_code read_number(reader *r, const char *name, uint64_t least, uint64_t most, uint64_t *out, moesim_error *err)
{
    char rule[96];
    bool found = false;
    const moesim_code code = moesim_h5_attr_u64(&r->file, name, out, &found, err);
    (void)snprintf(rule, sizeof rule, "is missing or outside %llu to %llu", (unsigned long long)least,
                   (unsigned long long)most);
    if (code == MOESIM_OK && (!found || *out < least || *out > most))
        return bad_attribute(r, name, rule, err);
    return code;
}

static moesim_code check_format(reader *r, moesim_error *err)
{
    char format[256] = "";
    bool found = false;
    uint64_t version = 0, complete = 0;
    moesim_code code = moesim_h5_attr_text(&r->file, "format", format, &found, err);
    if (code == MOESIM_OK && strcmp(format, MOESIM_RAW_FORMAT) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: no raw samples of a machine: attribute format is \"%.80s\", not \""
                           MOESIM_RAW_FORMAT "\"; `moesim profile measure` writes them", r->file.path, found ? format : "");
    if (code == MOESIM_OK)
        code = moesim_h5_attr_u64(&r->file, "format_version", &version, &found, err);
    if (code == MOESIM_OK && version != MOESIM_RAW_VERSION)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: format version %llu of raw samples, this program reads version %u; use "
                           "the version of moesim that wrote it", r->file.path, (unsigned long long)version,
                           MOESIM_RAW_VERSION);
    if (code == MOESIM_OK)
        code = moesim_h5_attr_u64(&r->file, "complete", &complete, &found, err);
    if (code == MOESIM_OK && complete != 1)
        return bad_attribute(r, "complete", "is not 1: the file was not written to its end", err);
    return code;
}

static moesim_code read_facts(reader *r, moesim_error *err)
{
    uint64_t n = 0;
    moesim_code code = read_number(r, "num_facts", 0, MOESIM_RAW_FACTS, &n, err);
    for (uint64_t i = 0; i < n && code == MOESIM_OK; i++) {
        char name[32], text[256] = "";
        (void)snprintf(name, sizeof name, "fact_%02llu", (unsigned long long)i);
        code = read_text(r, name, text, sizeof text, err);
        if (code != MOESIM_OK)
            break;
        char *colon = strstr(text, ": ");
        if (colon == NULL)
            return bad_attribute(r, name, "is not \"key: value\"", err);
        *colon = '\0';
        moesim_raw_add_fact(r->raw, text, colon + 2);
    }
    return code;
}

static moesim_code read_attributes(reader *r, moesim_error *err)
{
    moesim_raw *raw = r->raw;
    const struct { const char *name; uint64_t least, most; uint32_t *out; } number[] = {
        { "hidden", 1, 1u << 20, &raw->hidden }, { "intermediate", 1, 1u << 20, &raw->intermediate },
        { "top_k", 1, 1024, &raw->top_k }, { "threads", 1, 4096, &raw->threads }, { "quick", 0, 1, &raw->quick },
    };
    uint64_t value = 0;
    moesim_code code = read_text(r, "device", raw->device, sizeof raw->device, err);
    if (code == MOESIM_OK)
        code = read_text(r, "model", raw->model, sizeof raw->model, err);
    for (size_t i = 0; i < sizeof number / sizeof number[0] && code == MOESIM_OK; i++) {
        code = read_number(r, number[i].name, number[i].least, number[i].most, &value, err);
        *number[i].out = (uint32_t)value;
    }
    if (code == MOESIM_OK)
        code = read_number(r, "sweeps", MOESIM_RAW_SWEEPS, MOESIM_RAW_SWEEPS, &value, err);
    if (code == MOESIM_OK)
        code = read_number(r, "expert_bytes", 1, UINT64_C(1) << 40, &raw->expert_bytes, err);
    if (code == MOESIM_OK && raw->expert_bytes != UINT64_C(6) * raw->hidden * raw->intermediate)
        return bad_attribute(r, "expert_bytes", "is not 6 · hidden · intermediate", err);
    return code == MOESIM_OK ? read_facts(r, err) : code;
}

/* ---- columns --------------------------------------------------------------------------------------------------------- */

static moesim_code bad_entry(const reader *r, const char *name, size_t i, const char *rule, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s[%zu] %s: the file is damaged; " REMEDY, r->file.path, name, i, rule);
}

/* Takes value i, `bytes` long, to point i; NULL or the rule that it breaks. */
typedef const char *taker(moesim_raw_point *point, const moesim_raw_field *field, const void *value, size_t bytes);

static const char *take_kind(moesim_raw_point *point, const moesim_raw_field *field, const void *value, size_t bytes)
{
    (void)field;
    const size_t n = strnlen(value, bytes);
    for (uint32_t k = 0; k < MOESIM_RAW_KINDS; k++) {
        const char *name = moesim_raw_kind_infos[k].name;
        if (strlen(name) == n && memcmp(name, value, n) == 0) {
            point->key.kind = k;
            return NULL;
        }
    }
    return "is no known kind of measurement";
}

static const char *take_key(moesim_raw_point *point, const moesim_raw_field *field, const void *value, size_t bytes)
{
    memcpy((char *)&point->key + field->offset, value, bytes);
    return NULL;
}

static const char *take_member(moesim_raw_point *point, const moesim_raw_field *field, const void *value, size_t bytes)
{
    memcpy((char *)point + field->offset, value, bytes);
    return NULL;
}

/* The first column that is read decides on the number of points. */
static moesim_code read_column(reader *r, const char *name, enum moesim_h5_type type, taker *take,
                               const moesim_raw_field *field, moesim_error *err)
{
    moesim_h5_column column = MOESIM_H5_COLUMN_INIT;
    unsigned char value[KIND_BYTES];
    void *points = NULL;
    moesim_raw *raw = r->raw;
    moesim_code code = moesim_h5_dataset_open(&r->file, name, 1u << type, 1, &column.dataset, err);
    const uint64_t rows = code == MOESIM_OK ? column.dataset.dim[0] : 0;
    if (code == MOESIM_OK && raw->point == NULL) {
        if (rows < 1 || rows > MOESIM_RAW_POINTS)
            code = moesim_fail(err, MOESIM_E_FORMAT, "%s: %s has %llu rows, 1 to %u are allowed; " REMEDY, r->file.path, name,
                               (unsigned long long)rows, MOESIM_RAW_POINTS);
        else
            code = moesim_alloc((size_t)rows, sizeof *raw->point, "points of raw samples", &points, err);
        raw->point = points;
        raw->num_points = raw->room_points = code == MOESIM_OK ? (size_t)rows : 0;
    }
    if (code == MOESIM_OK && rows != raw->num_points)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: %s has %llu rows, /points/kind has %zu; " REMEDY, r->file.path, name,
                           (unsigned long long)rows, raw->num_points);
    for (size_t i = 0; i < raw->num_points && code == MOESIM_OK; i++) {
        code = moesim_h5_column_read(&column, r->decoder, i, 1, value, err);
        const char *rule = code == MOESIM_OK ? take(&raw->point[i], field, value, column.dataset.row_bytes) : NULL;
        if (rule != NULL)
            code = bad_entry(r, name, i, rule, err);
    }
    moesim_h5_column_close(&column);
    return code;
}

static moesim_code read_table(reader *r, const moesim_raw_field *table, bool figures, taker *take, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    for (const moesim_raw_field *f = table; f->name != NULL && code == MOESIM_OK; f++) {
        char name[64];
        (void)snprintf(name, sizeof name, "/points/%s", f->name);
        code = read_column(r, name, figures ? MOESIM_H5_F64 : f->wide ? MOESIM_H5_U64 : MOESIM_H5_U32, take, f, err);
    }
    return code;
}

static moesim_code read_samples(reader *r, moesim_error *err)
{
    moesim_h5_column column = MOESIM_H5_COLUMN_INIT;
    moesim_raw *raw = r->raw;
    void *samples = NULL;
    uint64_t total = 0;
    for (size_t i = 0; i < raw->num_points; i++)
        total += raw->point[i].n;
    moesim_code code = moesim_h5_dataset_open(&r->file, "/samples", 1u << MOESIM_H5_F64, 1, &column.dataset, err);
    if (code == MOESIM_OK && (total > MOST_SAMPLES || column.dataset.dim[0] != total))
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: /samples has %llu rows, /points/n asks for %llu (at most %llu); " REMEDY,
                           r->file.path, (unsigned long long)column.dataset.dim[0], (unsigned long long)total,
                           (unsigned long long)MOST_SAMPLES);
    if (code == MOESIM_OK)
        code = moesim_alloc((size_t)total, sizeof *raw->sample, "raw samples", &samples, err);
    raw->sample = samples;
    if (code == MOESIM_OK)
        code = moesim_h5_column_read(&column, r->decoder, 0, total, raw->sample, err);
    if (code == MOESIM_OK)
        raw->num_samples = raw->room_samples = (size_t)total;
    for (size_t i = 0; i < raw->num_samples && code == MOESIM_OK; i++)
        if (!isfinite(raw->sample[i]) || !(raw->sample[i] > 0.0))
            code = bad_entry(r, "/samples", i, "is not positive and finite", err);
    moesim_h5_column_close(&column);
    return code;
}

/* ---- rules --------------------------------------------------------------------------------------------------------- */

static moesim_code check_key(const reader *r, size_t i, moesim_error *err)
{
    const moesim_raw_key *key = &r->raw->point[i].key;
    const moesim_raw_kind_info *kind = &moesim_raw_kind_infos[key->kind];
    char name[64], rule[96];
    for (unsigned f = 0; moesim_raw_fields[f].name != NULL; f++) {
        const uint64_t value = moesim_raw_get(key, &moesim_raw_fields[f]);
        const bool used = (kind->fields & 1u << f) != 0, may_be_zero = (kind->zero & 1u << f) != 0;
        (void)snprintf(name, sizeof name, "/points/%s", moesim_raw_fields[f].name);
        if (value > moesim_raw_fields[f].most)
            return bad_entry(r, name, i, TOO_LARGE, err);
        if (used ? value > 0 || may_be_zero : value == 0)
            continue;
        (void)snprintf(rule, sizeof rule, used ? "is 0, kind %s needs it" : "is not 0, kind %s does not use it", kind->name);
        return bad_entry(r, name, i, rule, err);
    }
    return MOESIM_OK;
}

static bool same(double a, double b)
{
    return fabs(a - b) <= SAME * fabs(b);
}

static moesim_code check_figures(const reader *r, size_t i, double *sorted, moesim_error *err)
{
    const moesim_raw_point *p = &r->raw->point[i];
    moesim_raw_point again = *p;
    moesim_raw_work_out(&again, r->raw->sample + p->begin, sorted);
    const struct { const char *name; double here, there; } figure[] = {
        { "/points/median", p->median, again.median }, { "/points/p10", p->p10, again.p10 },
        { "/points/p90", p->p90, again.p90 },
    };
    for (size_t k = 0; k < sizeof figure / sizeof figure[0]; k++)
        if (!same(figure[k].here, figure[k].there))
            return bad_entry(r, figure[k].name, i, "is not that of its samples", err);
    return fabs(p->cv - again.cv) <= 1e-9 * (1.0 + again.cv) ? MOESIM_OK
                                                            : bad_entry(r, "/points/cv", i, "is not that of its samples", err);
}

static moesim_code check_point(const reader *r, size_t i, uint64_t *begin, double *sorted, moesim_error *err)
{
    const moesim_raw_point *p = &r->raw->point[i];
    if (p->sweep >= MOESIM_RAW_SWEEPS)
        return bad_entry(r, "/points/sweep", i, "is neither 0 nor 1", err);
    if (p->agreed > 1)
        return bad_entry(r, "/points/agreed", i, "is neither 0 nor 1", err);
    if (p->warm > MOESIM_RAW_SAMPLES)
        return bad_entry(r, "/points/warm", i, TOO_LARGE, err);
    if (p->begin != *begin)
        return bad_entry(r, "/points/begin", i, "is not where the samples before it end", err);
    *begin += p->n;
    moesim_code code = check_key(r, i, err);
    if (code == MOESIM_OK)
        code = check_figures(r, i, sorted, err);
    if (code == MOESIM_OK && moesim_raw_find(r->raw, &p->key, p->sweep) != p)
        code = bad_entry(r, "/points/kind", i, "is a point that was there before", err);
    return code;
}

static moesim_code check_counts(const reader *r, uint32_t *most, moesim_error *err)
{
    *most = 1;
    for (size_t i = 0; i < r->raw->num_points; i++) {
        const uint32_t n = r->raw->point[i].n;
        if (n < 1 || n > MOESIM_RAW_SAMPLES)
            return bad_entry(r, "/points/n", i, "is outside 1 to 65536", err);
        *most = n > *most ? n : *most;
    }
    return MOESIM_OK;
}

static moesim_code check_points(const reader *r, uint32_t most, moesim_error *err)
{
    void *sorted = NULL;
    uint64_t begin = 0;
    size_t points[MOESIM_RAW_SWEEPS] = { 0 };
    moesim_code code = moesim_alloc(most, sizeof(double), "raw samples", &sorted, err);
    for (size_t i = 0; i < r->raw->num_points && code == MOESIM_OK; i++) {
        code = check_point(r, i, &begin, sorted, err);
        if (code == MOESIM_OK)
            points[r->raw->point[i].sweep]++;
    }
    free(sorted);
    for (uint32_t sweep = 0; sweep < MOESIM_RAW_SWEEPS && code == MOESIM_OK; sweep++)
        if (points[sweep] == 0)
            code = moesim_fail(err, MOESIM_E_FORMAT, "%s: /points/sweep has no %u: both sweeps are needed, to tell whether the "
                               "machine did the same twice; " REMEDY, r->file.path, sweep);
    return code;
}

/* The guards of a trace, with words that suit raw samples. */
static moesim_code open_file(const char *path, moesim_h5_file *file, moesim_error *err)
{
    const moesim_code code = moesim_h5_open(path, false, file, err);
    if (code == MOESIM_E_FORMAT && !file->hdf5)
        return moesim_fail(err, code, "%s: not an HDF5 file (no signature at byte 0), so no raw samples; `moesim profile "
                           "measure` writes them", path);
    return code;
}

static moesim_code read_all(reader *r, moesim_error *err)
{
    uint32_t most = 0;
    moesim_code code = check_format(r, err);
    if (code == MOESIM_OK)
        code = read_attributes(r, err);
    if (code == MOESIM_OK)
        code = moesim_decoder_create(&r->decoder, err);
    if (code == MOESIM_OK)
        code = read_column(r, "/points/kind", MOESIM_H5_STRING, take_kind, NULL, err);
    if (code == MOESIM_OK)
        code = read_table(r, moesim_raw_fields, false, take_key, err);
    if (code == MOESIM_OK)
        code = read_table(r, moesim_raw_numbers, false, take_member, err);
    if (code == MOESIM_OK)
        code = read_table(r, moesim_raw_figures, true, take_member, err);
    if (code == MOESIM_OK)
        code = check_counts(r, &most, err);
    if (code == MOESIM_OK)
        code = read_samples(r, err);
    return code == MOESIM_OK ? check_points(r, most, err) : code;
}

moesim_code moesim_raw_read(const char *path, moesim_raw *out, moesim_error *err)
{
    reader r = { .file = { .id = -1 }, .raw = out };
    moesim_raw_init(out);
    moesim_code code = open_file(path, &r.file, err);
    if (code == MOESIM_OK)
        code = read_all(&r, err);
    moesim_decoder_destroy(&r.decoder);
    moesim_h5_close(&r.file);
    if (code != MOESIM_OK)
        moesim_raw_fini(out);
    return code;
}
