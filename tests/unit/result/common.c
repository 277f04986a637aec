/* SPDX-License-Identifier: Apache-2.0
 *
 * A small result.
 */
#include "tests/unit/result/common.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static moesim_error err;

double sample_misses(int cell, int request)
{
    return 400 - 30 * cell + 7 * (request % 5);
}

static void attributes(moesim_result *r, const char *shard)
{
    OK(moesim_result_set(r, "kind", "sweep", &err));
    OK(moesim_result_set(r, "config",
                         "{\"policies\":[\"lru\",\"oled\"],\"cache\":[20,40],\"bandwidth_gbps\":[16,64],\"batch\":1}", &err));
    OK(moesim_result_set(r, "trace", "sample.h5", &err));
    OK(moesim_result_set(r, "seed", "1", &err));
    if (shard[0] != '\0')
        OK(moesim_result_set(r, "shard", shard, &err));
}

static void cells(moesim_result *r, const int *index, size_t n)
{
    moesim_table *t;
    int64_t *cell, *cache, *batch;
    double *bandwidth, *tpot;
    char **policy, **trace;
    OK(moesim_result_table(r, "cells", n, &t, &err));
    OK(moesim_table_integers(t, "cell", "", &cell, &err));
    OK(moesim_table_texts(t, "trace", &trace, &err));
    OK(moesim_table_texts(t, "policy", &policy, &err));
    OK(moesim_table_integers(t, "cache", "", &cache, &err));
    OK(moesim_table_reals(t, "bandwidth_gbps", "GB/s", &bandwidth, &err));
    OK(moesim_table_integers(t, "batch", "", &batch, &err));
    OK(moesim_table_reals(t, "tpot_ms", "ms", &tpot, &err));
    for (size_t i = 0; i < n; i++) {
        cell[i] = index[i];
        OK(moesim_table_text(t, trace, i, "sample.h5", &err));
        OK(moesim_table_text(t, policy, i, index[i] & 1 ? "oled" : "lru", &err));
        cache[i] = index[i] & 2 ? 40 : 20;
        bandwidth[i] = index[i] & 4 ? 64 : 16;
        batch[i] = 1;
        if (index[i] != 3)           /* one stays undefined */
            tpot[i] = sqrt(index[i]);
    }
}

static void requests(moesim_result *r, const int *index, size_t n, const double *extra)
{
    moesim_table *t;
    int64_t *cell, *request;
    double *tokens, *tpot, *passes, *misses;
    char **workload;
    OK(moesim_result_table(r, "requests", n * SAMPLE_REQUESTS, &t, &err));
    OK(moesim_table_integers(t, "cell", "", &cell, &err));
    OK(moesim_table_integers(t, "request", "", &request, &err));
    OK(moesim_table_texts(t, "workload", &workload, &err));
    OK(moesim_table_reals(t, "output_tokens", "", &tokens, &err));
    OK(moesim_table_reals(t, "tpot_ms", "ms", &tpot, &err));
    OK(moesim_table_reals(t, "passes", "", &passes, &err));
    OK(moesim_table_reals(t, "misses", "", &misses, &err));
    for (size_t i = 0; i < t->rows; i++) {
        const int q = (int)(i % SAMPLE_REQUESTS);
        cell[i] = index[i / SAMPLE_REQUESTS];
        request[i] = q;
        OK(moesim_table_text(t, workload, i, q % 2 ? "math" : "code", &err));
        tokens[i] = 32 + q;
        passes[i] = 20;
        misses[i] = sample_misses((int)cell[i], q) + (extra != NULL ? extra[q] : 0);
        tpot[i] = 5 + misses[i] / 100;
    }
}

static void layers(moesim_result *r, const int *index, size_t n)
{
    moesim_table *t;
    int64_t *cell, *layer, *slots;
    OK(moesim_result_table(r, "layers", n * SAMPLE_LAYERS, &t, &err));
    OK(moesim_table_integers(t, "cell", "", &cell, &err));
    OK(moesim_table_integers(t, "layer", "", &layer, &err));
    OK(moesim_table_integers(t, "slots", "", &slots, &err));
    for (size_t i = 0; i < t->rows; i++) {
        cell[i] = index[i / SAMPLE_LAYERS];
        layer[i] = (int64_t)(i % SAMPLE_LAYERS);
        slots[i] = cell[i] & 2 ? 40 : 20;
    }
}

void sample_result(moesim_result *r, const char *shard, const double *extra)
{
    int first = 1, of = 1, index[SAMPLE_CELLS];
    size_t n = 0;
    err = (moesim_error)MOESIM_ERROR_INIT;
    if (shard[0] != '\0')
        ck_assert_int_eq(sscanf(shard, "%d/%d", &first, &of), 2);
    for (int c = first - 1; c < SAMPLE_CELLS; c += of)
        index[n++] = c;
    moesim_result_init(r);
    attributes(r, shard);
    cells(r, index, n);
    requests(r, index, n, extra);
    layers(r, index, n);
}

void write_sample(const char *path, const char *shard, const double *extra)
{
    moesim_result r;
    sample_result(&r, shard, extra);
    OK(moesim_result_write(&r, path, &err));
    moesim_result_fini(&r);
}
