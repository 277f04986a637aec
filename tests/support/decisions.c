/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures the decisions of a run: writes the decision log and reads it back.
 */
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

/* A whole 1-D dataset; *n elements of `size` bytes. */
static void *load(hid_t file, const char *name, hid_t type, size_t size, size_t *n)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = set < 0 ? -1 : H5Dget_space(set);
    hssize_t points = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (points < 0)
        test_die("the decision log has no %s", name);
    void *data = malloc((size_t)points * size + 1);
    if (data == NULL || (points > 0 && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        test_die("%s cannot be read", name);
    H5Sclose(space);
    H5Dclose(set);
    *n = (size_t)points;
    return data;
}

static void load_all(const char *path, struct test_decisions *d)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        test_die("%s cannot be opened", path);
    size_t n;
    d->pass = load(file, "/event/pass", H5T_NATIVE_UINT64, 8, &d->num_events);
    d->clock = load(file, "/event/clock", H5T_NATIVE_UINT64, 8, &n);
    d->layer = load(file, "/event/layer", H5T_NATIVE_UINT32, 4, &n);
    d->counted = load(file, "/event/counted", H5T_NATIVE_UINT32, 4, &n);
    const struct { const char *offset, *expert; uint64_t **begin; uint16_t **id; } list[] = {
        {"/hits/offset", "/hits/expert", &d->hits_begin, &d->hits},
        {"/moved/offset", "/moved/expert", &d->moved_begin, &d->moved},
        {"/cpu/offset", "/cpu/expert", &d->cpu_begin, &d->cpu},
        {"/evicted/offset", "/evicted/expert", &d->evicted_begin, &d->evicted},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        *list[i].begin = load(file, list[i].offset, H5T_NATIVE_UINT64, 8, &n);
        if (n != d->num_events + 1)
            test_die("%s has %zu entries for %zu events", list[i].offset, n, d->num_events);
        *list[i].id = load(file, list[i].expert, H5T_NATIVE_UINT16, 2, &n);
        if (n != (*list[i].begin)[d->num_events])
            test_die("%s has %zu ids, its offsets say %llu", list[i].expert, n,
                     (unsigned long long)(*list[i].begin)[d->num_events]);
    }
    H5Fclose(file);
}

void test_run_decisions(const char *trace, const char *policy, uint32_t cache, const moesim_run_params *params,
                        moesim_outcome *out, struct test_decisions *decisions)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_run_params logged;
    moesim_run_params_defaults(&logged);
    if (params != NULL)
        logged = *params;
    moesim_trace *t = NULL;
    const char *path = test_path("decisions.h5");
    memset(decisions, 0, sizeof *decisions);
    if (moesim_trace_open(trace, NULL, &t, &err) != MOESIM_OK)
        test_die("%s", err.text);
    const moesim_trace_info *info = moesim_trace_get_info(t);
    moesim_declog_header header = {.trace_digest = "", .model_id = info->model_id, .policy = policy, .options = "",
                                   .config = "{}", .num_layers = info->num_layers, .num_experts = info->num_experts,
                                   .cache = cache};
    moesim_code code = moesim_declog_create(path, &header, &logged.declog, &err);
    moesim_trace_close(&t);
    if (code != MOESIM_OK)
        test_die("%s", err.text);
    test_run(trace, policy, cache, &logged, out);
    if (moesim_declog_finish(&logged.declog, NULL, &err) != MOESIM_OK)
        test_die("%s", err.text);
    load_all(path, decisions);
}

void test_decisions_fini(struct test_decisions *d)
{
    void *owned[] = {d->pass, d->clock, d->layer, d->counted, d->hits_begin, d->moved_begin, d->cpu_begin,
                     d->evicted_begin, d->hits, d->moved, d->cpu, d->evicted};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
    memset(d, 0, sizeof *d);
}

static bool list_equal(size_t events, const uint64_t *begin_a, const uint16_t *a, const uint64_t *begin_b,
                       const uint16_t *b)
{
    return memcmp(begin_a, begin_b, (events + 1) * sizeof *begin_a) == 0 &&
           memcmp(a, b, begin_a[events] * sizeof *a) == 0;
}

bool test_decisions_equal(const struct test_decisions *a, const struct test_decisions *b)
{
    size_t n = a->num_events;
    return n == b->num_events && memcmp(a->pass, b->pass, n * sizeof *a->pass) == 0 &&
           memcmp(a->layer, b->layer, n * sizeof *a->layer) == 0 &&
           list_equal(n, a->hits_begin, a->hits, b->hits_begin, b->hits) &&
           list_equal(n, a->moved_begin, a->moved, b->moved_begin, b->moved) &&
           list_equal(n, a->cpu_begin, a->cpu, b->cpu_begin, b->cpu) &&
           list_equal(n, a->evicted_begin, a->evicted, b->evicted_begin, b->evicted);
}
