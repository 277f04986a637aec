/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw samples in memory: points, their figures, what two sweeps differ by.
 */
#include "hwprofile/raw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/sort.h"
#include "base/text.h"

#define AT(member) offsetof(moesim_raw_key, member)
#define POINT(member) offsetof(moesim_raw_point, member)

const moesim_raw_field moesim_raw_numbers[] = {
    { "sweep", POINT(sweep), false, 0 },   { "n", POINT(n), false, 0 },        { "warm", POINT(warm), false, 0 },
    { "agreed", POINT(agreed), false, 0 }, { "begin", POINT(begin), true, 0 }, { NULL, 0, false, 0 },
};

const moesim_raw_field moesim_raw_figures[] = {
    { "median", POINT(median), true, 0 }, { "p10", POINT(p10), true, 0 }, { "p90", POINT(p90), true, 0 },
    { "cv", POINT(cv), true, 0 },         { NULL, 0, false, 0 },
};

const moesim_raw_field moesim_raw_fields[] = {
    { "bytes", AT(bytes), true, UINT64_C(1) << 48 }, { "rows", AT(rows), false, 1 << 20 },
    { "experts", AT(experts), false, 1 << 20 },      { "tokens", AT(tokens), false, 1 << 20 },
    { "threads", AT(threads), false, 4096 },         { "streams", AT(streams), false, 64 },
    { "pinned", AT(pinned), false, 1 },              { NULL, 0, false, 0 },
};

enum { BYTES = 1, ROWS = 2, EXPERTS = 4, TOKENS = 8, THREADS = 16, STREAMS = 32, PINNED = 64 };

const moesim_raw_kind_info moesim_raw_kind_infos[MOESIM_RAW_KINDS] = {
    [MOESIM_RAW_COPY] = { "copy", BYTES | STREAMS | PINNED, PINNED },
    [MOESIM_RAW_TO_HOST] = { "to_host", BYTES, 0 },
    [MOESIM_RAW_TO_DEVICE] = { "to_device", BYTES, 0 },
    [MOESIM_RAW_CPU] = { "cpu", EXPERTS | TOKENS | THREADS, 0 },
    [MOESIM_RAW_READ] = { "read", BYTES | THREADS, 0 },
    [MOESIM_RAW_GROUPED] = { "grouped", EXPERTS | TOKENS, 0 },
    [MOESIM_RAW_OTHER] = { "other", ROWS, 0 },
    [MOESIM_RAW_OTHER_HOST] = { "other_host", ROWS, 0 },
    [MOESIM_RAW_HEAD] = { "head", ROWS, 0 },
    [MOESIM_RAW_EMPTY] = { "empty", ROWS, 0 },
    [MOESIM_RAW_EVENT_HITS] = { "event_hits", ROWS | EXPERTS | TOKENS, 0 },
    [MOESIM_RAW_EVENT_MOVED] = { "event_moved", ROWS | EXPERTS | TOKENS, 0 },
    [MOESIM_RAW_EVENT_CPU] = { "event_cpu", ROWS | EXPERTS | TOKENS, 0 },
    [MOESIM_RAW_EVENT_BOTH] = { "event_both", ROWS | EXPERTS | TOKENS, 0 },
    [MOESIM_RAW_JOINT_CPU] = { "joint_cpu", BYTES | EXPERTS | TOKENS | THREADS, 0 },
    [MOESIM_RAW_JOINT_LINK] = { "joint_link", BYTES | EXPERTS | TOKENS | THREADS, EXPERTS | TOKENS | THREADS },
};

uint64_t moesim_raw_get(const moesim_raw_key *key, const moesim_raw_field *field)
{
    const char *at = (const char *)key + field->offset;
    uint64_t wide;
    uint32_t narrow;
    if (field->wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

const char *moesim_raw_text(const moesim_raw_key *key, char text[MOESIM_RAW_TEXT])
{
    const moesim_raw_kind_info *kind = &moesim_raw_kind_infos[key->kind];
    size_t used = (size_t)snprintf(text, MOESIM_RAW_TEXT, "%s", kind->name);
    for (unsigned i = 0; moesim_raw_fields[i].name != NULL && used < MOESIM_RAW_TEXT; i++)
        if ((kind->fields & 1u << i) != 0)
            used += (size_t)snprintf(text + used, MOESIM_RAW_TEXT - used, " %s %llu", moesim_raw_fields[i].name,
                                     (unsigned long long)moesim_raw_get(key, &moesim_raw_fields[i]));
    return text;
}

void moesim_raw_init(moesim_raw *raw)
{
    memset(raw, 0, sizeof *raw);
}

void moesim_raw_fini(moesim_raw *raw)
{
    free(raw->point);
    free(raw->sample);
    moesim_raw_init(raw);
}

/* ---- figures ------------------------------------------------------------------------------------------------------- */

double moesim_raw_sort_median(double *value, size_t n)
{
    moesim_sort_reals(value, n);
    return n % 2 == 1 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2.0;
}

void moesim_raw_work_out(moesim_raw_point *p, const double *sample, double *sorted)
{
    double sum = 0.0, square = 0.0;
    memcpy(sorted, sample, p->n * sizeof *sorted);
    p->median = moesim_raw_sort_median(sorted, p->n);
    p->p10 = sorted[moesim_rank_index(p->n, 0.1)];
    p->p90 = sorted[moesim_rank_index(p->n, 0.9)];
    for (uint32_t i = 0; i < p->n; i++)
        sum += sorted[i];
    const double mean = sum / p->n;
    for (uint32_t i = 0; i < p->n; i++)
        square += (sorted[i] - mean) * (sorted[i] - mean);
    p->cv = p->n > 1 ? sqrt(square / (p->n - 1)) / mean : 0.0;
}

/* ---- building ------------------------------------------------------------------------------------------------------ */

static moesim_code grow(void **array, size_t *room, size_t need, size_t each, moesim_error *err)
{
    size_t more = *room < 64 ? 64 : *room;
    if (need <= *room)
        return MOESIM_OK;
    while (more < need)
        more *= 2;
    void *p = realloc(*array, more * each);
    if (p == NULL)
        return moesim_fail_nomem(err, "raw samples", more * each);
    *array = p;
    *room = more;
    return MOESIM_OK;
}

static moesim_code check_samples(const moesim_raw_key *key, const double *sample, uint32_t n, moesim_error *err)
{
    char text[MOESIM_RAW_TEXT];
    if (n < 1 || n > MOESIM_RAW_SAMPLES)
        return moesim_fail(err, MOESIM_E_INTERNAL, "%s: %u samples, 1 to %u are allowed", moesim_raw_text(key, text), n,
                           MOESIM_RAW_SAMPLES);
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(sample[i]) || !(sample[i] > 0.0))
            return moesim_fail(err, MOESIM_E_INTERNAL, "%s: sample %u is %g s: the device measured no time; its clock is "
                               "unusable, or its driver is at fault", moesim_raw_text(key, text), i, sample[i]);
    return MOESIM_OK;
}

moesim_code moesim_raw_add(moesim_raw *raw, const moesim_raw_key *key, uint32_t sweep, const double *sample, uint32_t n,
                           uint32_t warm, bool agreed, moesim_error *err)
{
    void *points = raw->point, *samples = raw->sample;
    moesim_code code = check_samples(key, sample, n, err);
    if (code == MOESIM_OK && raw->num_points >= MOESIM_RAW_POINTS)
        code = moesim_fail(err, MOESIM_E_INTERNAL, "more than %u points were measured", MOESIM_RAW_POINTS);
    if (code == MOESIM_OK)
        code = grow(&points, &raw->room_points, raw->num_points + 1, sizeof *raw->point, err);
    raw->point = points;
    if (code == MOESIM_OK)      /* one more of the same length is scratch for sorting */
        code = grow(&samples, &raw->room_samples, raw->num_samples + 2 * (size_t)n, sizeof *raw->sample, err);
    raw->sample = samples;
    if (code != MOESIM_OK)
        return code;
    moesim_raw_point *p = &raw->point[raw->num_points++];
    *p = (moesim_raw_point){ .key = *key, .sweep = sweep, .n = n, .warm = warm, .agreed = agreed, .begin = raw->num_samples };
    memcpy(raw->sample + raw->num_samples, sample, n * sizeof *sample);
    moesim_raw_work_out(p, raw->sample + raw->num_samples, raw->sample + raw->num_samples + n);
    raw->num_samples += n;
    return MOESIM_OK;
}

void moesim_raw_add_fact(moesim_raw *raw, const char *key, const char *value)
{
    if (raw->num_facts >= MOESIM_RAW_FACTS)
        return;
    struct moesim_raw_fact *f = &raw->fact[raw->num_facts++];
    moesim_text_clean(key, strlen(key), f->key, sizeof f->key);
    moesim_text_clean(value, strlen(value), f->value, sizeof f->value);
}

const char *moesim_raw_find_fact(const moesim_raw *raw, const char *key)
{
    for (size_t i = 0; i < raw->num_facts; i++)
        if (strcmp(raw->fact[i].key, key) == 0)
            return raw->fact[i].value;
    return NULL;
}

/* ---- looking up ---------------------------------------------------------------------------------------------------- */

static bool same_key(const moesim_raw_key *a, const moesim_raw_key *b)
{
    if (a->kind != b->kind)
        return false;
    for (const moesim_raw_field *f = moesim_raw_fields; f->name != NULL; f++)
        if (moesim_raw_get(a, f) != moesim_raw_get(b, f))
            return false;
    return true;
}

const moesim_raw_point *moesim_raw_find(const moesim_raw *raw, const moesim_raw_key *key, uint32_t sweep)
{
    for (size_t i = 0; i < raw->num_points; i++)
        if (raw->point[i].sweep == sweep && same_key(&raw->point[i].key, key))
            return &raw->point[i];
    return NULL;
}

bool moesim_raw_median(const moesim_raw *raw, const moesim_raw_key *key, double *out)
{
    double sum = 0.0;
    unsigned n = 0;
    for (uint32_t sweep = 0; sweep < MOESIM_RAW_SWEEPS; sweep++) {
        const moesim_raw_point *p = moesim_raw_find(raw, key, sweep);
        if (p != NULL) {
            sum += p->median;
            n++;
        }
    }
    *out = n > 0 ? sum / n : NAN;
    return n > 0;
}

moesim_raw_gap moesim_raw_compare(const moesim_raw *raw, uint32_t kind)
{
    moesim_raw_gap gap = { .n = 0, .median = NAN, .worst = NAN };
    double gaps[MOESIM_RAW_POINTS];
    for (size_t i = 0; i < raw->num_points; i++) {
        const moesim_raw_point *a = &raw->point[i];
        if (a->sweep != 0 || (kind < MOESIM_RAW_KINDS && a->key.kind != kind))
            continue;
        const moesim_raw_point *b = moesim_raw_find(raw, &a->key, 1);
        if (b == NULL)
            continue;
        const double apart = fabs(a->median - b->median) / ((a->median + b->median) / 2.0);
        gaps[gap.n++] = apart;
        if (!(apart <= gap.worst)) {
            gap.worst = apart;
            gap.key = a->key;
        }
    }
    if (gap.n > 0)
        gap.median = moesim_raw_sort_median(gaps, gap.n);
    return gap;
}
