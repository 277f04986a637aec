/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over every resample, remembered by the content of the column. Cells of one grid share most columns: tokens, passes and
 * the times that do not depend on misses are the same everywhere, and what is never used is 0.
 */
#include "sim/stats_inner.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"

static uint64_t hash_of(const double *x, size_t n)
{
    uint64_t h = 0x9e3779b97f4a7c15u, word;
    for (size_t i = 0; i < n; i++) {
        memcpy(&word, &x[i], sizeof word);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

static moesim_summed *find(moesim_bootstrap *b, const double *column, uint64_t hash)
{
    for (size_t k = 0; k < MOESIM_SUMMED; k++) {
        moesim_summed *s = &b->summed[k];
        if (s->used != 0 && s->hash == hash && memcmp(s->term, column, b->n * sizeof *column) == 0)
            return s;
    }
    return NULL;
}

/* The place that was not asked for longest; those of this call are never it. */
static moesim_code replace(moesim_bootstrap *b, const double *column, uint64_t hash, moesim_summed **out, moesim_error *err)
{
    moesim_summed *s = &b->summed[0];
    void *p = NULL;
    for (size_t k = 1; k < MOESIM_SUMMED; k++)
        if (b->summed[k].used < s->used)
            s = &b->summed[k];
    if (s->term == NULL) {
        if (moesim_alloc(b->n + (size_t)b->blocks * MOESIM_LANES, sizeof *s->term, "sums of resamples", &p, err) != MOESIM_OK)
            return err->code;
        s->term = p;
        s->sum = s->term + b->n;
    }
    memcpy(s->term, column, b->n * sizeof *column);
    s->hash = hash;
    s->serial = ++b->serials;
    *out = s;
    return MOESIM_OK;
}

static moesim_code sum_blocks(moesim_bootstrap *b, moesim_summed *const *fresh, size_t n, moesim_error *err)
{
    const double *column[2 * MOESIM_AT_ONCE];
    double *to[2 * MOESIM_AT_ONCE];
    for (size_t c = 0; c < n; c++)
        column[c] = fresh[c]->term;
    for (size_t i = 0; i < b->blocks && n > 0; i++) {
        if (i % 8 == 0 && moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        for (size_t c = 0; c < n; c++)
            to[c] = fresh[c]->sum + i * MOESIM_LANES;
        b->kernels->add(moesim_resample_block(b, i), b->n, column, n, to);
    }
    return MOESIM_OK;
}

moesim_code moesim_summed_get(moesim_bootstrap *b, const double *const *column, size_t columns, const moesim_summed **out,
                              moesim_error *err)
{
    moesim_summed *fresh[2 * MOESIM_AT_ONCE];
    size_t n = 0;
    b->calls++;
    for (size_t c = 0; c < columns; c++) {
        const uint64_t hash = hash_of(column[c], b->n);
        moesim_summed *s = find(b, column[c], hash);
        if (s == NULL) {
            if (replace(b, column[c], hash, &s, err) != MOESIM_OK)
                return err->code;
            fresh[n++] = s;
        }
        s->used = b->calls;
        out[c] = s;
    }
    const moesim_code code = sum_blocks(b, fresh, n, err);
    for (size_t c = 0; c < n && code != MOESIM_OK; c++)
        fresh[c]->used = 0;
    return code;
}

void moesim_summed_fini(moesim_bootstrap *b)
{
    for (size_t k = 0; k < MOESIM_SUMMED; k++)
        free(b->summed[k].term);
}
