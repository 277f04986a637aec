/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampled verification.
 */
#include "replay/verify.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

#define MOST_ROWS 4u             /* of one expert */

struct moesim_verifier {
    moesim_device *device;
    uint32_t hidden, intermediate;
    bool able;                   /* the device has weights */
    uint16_t *x;                 /* [max_rows][hidden] */
    float *out;                  /* [most_routes][hidden] */
    double *y;                   /* [MOST_ROWS][hidden] */
    size_t most_routes, events, chosen[MOESIM_VERIFY_MOST], num_chosen, next;
    moesim_rng rng;
    uint64_t experts;
    double worst;
};

moesim_code moesim_verifier_create(moesim_device *device, uint32_t hidden, uint32_t intermediate, uint32_t max_rows,
                                   size_t most_routes, moesim_verifier **out, moesim_error *err)
{
    void *p = NULL, *x = NULL, *routes = NULL, *y = NULL;
    moesim_code code = moesim_alloc(1, sizeof(moesim_verifier), "verification", &p, err);
    *out = p;
    if (code != MOESIM_OK)
        return code;
    moesim_verifier *v = p;
    v->device = device;
    v->hidden = hidden;
    v->intermediate = intermediate;
    v->most_routes = most_routes;
    v->able = device->ops->weights(device, 0) != NULL;
    if (v->able)
        code = moesim_alloc((size_t)max_rows * hidden, sizeof *v->x, "inputs of the reference", &x, err);
    if (code == MOESIM_OK && v->able)
        code = moesim_alloc(most_routes * hidden, sizeof *v->out, "outputs of an event", &routes, err);
    if (code == MOESIM_OK && v->able)
        code = moesim_alloc((size_t)MOST_ROWS * hidden, sizeof *v->y, "outputs of the reference", &y, err);
    v->x = x;
    v->out = routes;
    v->y = y;
    if (code == MOESIM_OK && v->able)
        code = device->ops->inputs(device, v->x, max_rows, err);
    if (code != MOESIM_OK)
        moesim_verifier_destroy(out);
    return code;
}

void moesim_verifier_destroy(moesim_verifier **verifier)
{
    moesim_verifier *v = *verifier;
    if (v == NULL)
        return;
    free(v->x);
    free(v->out);
    free(v->y);
    free(v);
    *verifier = NULL;
}

/* One event of each of n equal stretches. */
void moesim_verifier_begin(moesim_verifier *v, size_t num_events, uint64_t seed)
{
    size_t n = num_events / MOESIM_VERIFY_ONE_IN;
    n = n < MOESIM_VERIFY_LEAST ? MOESIM_VERIFY_LEAST : n > MOESIM_VERIFY_MOST ? MOESIM_VERIFY_MOST : n;
    n = n < num_events ? n : num_events;
    moesim_rng_seed(&v->rng, seed);
    for (size_t i = 0; i < n; i++) {
        const size_t begin = i * num_events / n, end = (i + 1) * num_events / n;
        v->chosen[i] = begin + moesim_rng_below(&v->rng, (uint32_t)(end - begin));
    }
    v->num_chosen = v->able ? n : 0;
    v->next = 0;
    v->experts = 0;
    v->worst = 0;
}

bool moesim_verifier_chosen(moesim_verifier *v, size_t i)
{
    while (v->next < v->num_chosen && v->chosen[v->next] < i)
        v->next++;
    return v->next < v->num_chosen && v->chosen[v->next] == i;
}

/* Relative error of one row; NaN and infinite outputs give one that no limit passes. */
static double row_error(const float *out, const double *y, uint32_t hidden)
{
    double difference = 0, norm = 0;
    for (uint32_t h = 0; h < hidden; h++) {
        const double d = (double)out[h] - y[h];
        difference += d * d;
        norm += y[h] * y[h];
    }
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

static moesim_code check_expert(moesim_verifier *v, const moesim_device_expert *e, uint16_t id, const char *list, size_t route,
                                moesim_error *err)
{
    const uint32_t rows = e->tokens < MOST_ROWS ? e->tokens : MOST_ROWS;
    moesim_cpu_reference(v->device->ops->weights(v->device, e->pool), v->hidden, v->intermediate, v->x, e->row, rows, v->y);
    for (uint32_t r = 0; r < rows; r++) {
        const double error = row_error(v->out + (route + r) * v->hidden, v->y + (size_t)r * v->hidden, v->hidden);
        if (!(error <= MOESIM_VERIFY_ERROR))
            return moesim_fail(err, MOESIM_E_FORMAT, "%s expert %u, row %u: the device's output differs from the "
                               "double-precision reference by %.3g of its norm (at most %g is allowed); its times mean "
                               "nothing", list, id, e->row[r], error, MOESIM_VERIFY_ERROR);
        v->worst = error > v->worst ? error : v->worst;
    }
    v->experts++;
    return MOESIM_OK;
}

typedef struct part { const char *name; const moesim_device_expert *expert; uint32_t n; } part;

/* Every output is a number: outputs are poisoned before each event, so that what was not written shows. */
static moesim_code check_written(const moesim_verifier *v, const part *list, const uint16_t *id, moesim_error *err)
{
    const float *out = v->out;
    for (size_t k = 0; k < 3; k++)
        for (uint32_t i = 0; i < list[k].n; i++, id++)
            for (uint32_t t = 0; t < list[k].expert[i].tokens; t++, out += v->hidden)
                for (uint32_t h = 0; h < v->hidden; h++)
                    if (!isfinite(out[h]))
                        return moesim_fail(err, MOESIM_E_FORMAT, "%s expert %u, row %u: output %u is not a number: it was not "
                                           "written, or from wrong operands; the device's times mean nothing", list[k].name,
                                           *id, list[k].expert[i].row[t], h);
    return MOESIM_OK;
}

static size_t routes_of(const moesim_device_expert *e, uint32_t n)
{
    size_t routes = 0;
    for (uint32_t i = 0; i < n; i++)
        routes += e[i].tokens;
    return routes;
}

moesim_code moesim_verifier_check(moesim_verifier *v, const moesim_device_work *w, const uint16_t *id, moesim_error *err)
{
    const part list[] = {{"hit", w->hits, w->n_hits}, {"moved", w->moved, w->n_moved}, {"cpu", w->cpu, w->n_cpu}};
    size_t routes = 0, first = 0;
    uint32_t ids = 0;
    for (size_t k = 0; k < 3; k++)
        routes += routes_of(list[k].expert, list[k].n);
    if (routes == 0)
        return MOESIM_OK;
    if (routes > v->most_routes)
        return moesim_fail(err, MOESIM_E_INTERNAL, "an event of %zu routes, at most %zu were planned", routes, v->most_routes);
    if (v->device->ops->outputs(v->device, v->out, routes, err) != MOESIM_OK || check_written(v, list, id, err) != MOESIM_OK)
        return err->code;
    for (size_t k = 0; k < 3; k++) {
        const uint32_t n = list[k].n, times = n > 1 && n == w->n_hits + w->n_moved + w->n_cpu ? 2 : 1;
        for (uint32_t i = 0; i < times && n > 0; i++) {
            const uint32_t at = moesim_rng_below(&v->rng, n);
            if (check_expert(v, &list[k].expert[at], id[ids + at], list[k].name, first + routes_of(list[k].expert, at), err) !=
                MOESIM_OK)
                return err->code;
        }
        first += routes_of(list[k].expert, n);
        ids += n;
    }
    return MOESIM_OK;
}

uint64_t moesim_verifier_experts(const moesim_verifier *v)
{
    return v->experts;
}

double moesim_verifier_worst(const moesim_verifier *v)
{
    return v->worst;
}
