/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of use that every backend holds its caller to. A broken one is a bug of the caller: INTERNAL errors that name the
 * event, the expert and the rule.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/device_parts.h"

size_t moesim_device_routes(const moesim_device_work *work)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < work->n_hits; i++)
        sum += work->hits[i].tokens;
    for (uint32_t i = 0; i < work->n_moved; i++)
        sum += work->moved[i].tokens;
    for (uint32_t i = 0; i < work->n_cpu; i++)
        sum += work->cpu[i].tokens;
    return sum;
}

moesim_code moesim_device_order_init(moesim_device_order *o, const char *name, const moesim_device_config *config,
                                     moesim_error *err)
{
    memset(o, 0, sizeof *o);
    o->name = name;
    o->config = config;
    o->content = malloc(config->slots * sizeof *o->content);
    o->hit_in = calloc(config->slots, sizeof *o->hit_in);
    o->routes = calloc(config->max_rows, sizeof *o->routes);
    if (o->content == NULL || o->hit_in == NULL || o->routes == NULL) {
        moesim_device_order_fini(o);
        return moesim_fail_nomem(err, "the state of the slots", config->slots * (sizeof *o->content + sizeof *o->hit_in));
    }
    memset(o->content, 0xff, config->slots * sizeof *o->content);
    return MOESIM_OK;
}

void moesim_device_order_fini(moesim_device_order *o)
{
    free(o->content);
    free(o->hit_in);
    free(o->routes);
    memset(o, 0, sizeof *o);
}

static moesim_code broken(const moesim_device_order *o, const char *list, uint32_t i, const char *rule, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_INTERNAL, "device %s, event %" PRIu64 ", %s %u: %s", o->name, o->event, list, i, rule);
}

moesim_code moesim_device_order_fill(moesim_device_order *o, uint32_t slot, uint32_t pool, moesim_error *err)
{
    if (slot >= o->config->slots)
        return broken(o, "slot", slot, "fill of a slot that is out of range", err);
    if (pool >= o->config->pool)
        return broken(o, "pool expert", pool, "fill from outside of the pool", err);
    if (o->busy)
        return broken(o, "slot", slot, "filled while an event is running whose readers may be pending", err);
    o->content[slot] = pool;
    return MOESIM_OK;
}

moesim_code moesim_device_order_gate(moesim_device_order *o, uint32_t num_rows, moesim_error *err)
{
    if (num_rows == 0 || num_rows > o->config->max_rows)
        return broken(o, "rows", num_rows, "a gate has 1 to max_rows rows", err);
    o->gated_rows = num_rows;
    o->busy = false;
    return MOESIM_OK;
}

moesim_code moesim_device_order_end(moesim_device_order *o, uint32_t num_rows, bool with_head, moesim_error *err)
{
    if (num_rows > o->config->max_rows || (with_head && num_rows == 0))
        return broken(o, "rows", num_rows, "the end of a pass has at most max_rows rows, with the head at least one", err);
    o->gated_rows = 0;
    o->busy = false;
    return MOESIM_OK;
}

static moesim_code check_expert(const moesim_device_order *o, const char *list, uint32_t i, const moesim_device_expert *e,
                                uint32_t num_rows, moesim_error *err)
{
    if (e->pool >= o->config->pool)
        return broken(o, list, i, "pool index out of range", err);
    if (e->row == NULL || e->tokens == 0 || e->tokens > num_rows)
        return broken(o, list, i, "an expert has 1 to num_rows tokens", err);
    for (uint32_t t = 0; t < e->tokens; t++) {
        if (e->row[t] >= num_rows)
            return broken(o, list, i, "row out of range", err);
        if (t > 0 && e->row[t] <= e->row[t - 1])
            return broken(o, list, i, "rows are not ascending", err);
        if (++o->routes[e->row[t]] > o->config->top_k)
            return broken(o, list, i, "a row has more than top_k experts", err);
    }
    return MOESIM_OK;
}

static moesim_code check_hit(const moesim_device_order *o, uint32_t i, const moesim_device_expert *e, moesim_error *err)
{
    if (e->slot >= o->config->slots)
        return broken(o, "hit", i, "slot out of range", err);
    if (o->content[e->slot] == MOESIM_SLOT_EMPTY)
        return broken(o, "hit", i, "reads a slot that was never filled", err);
    if (o->content[e->slot] != e->pool)
        return broken(o, "hit", i, "its slot holds another expert", err);
    if (o->hit_in[e->slot] == o->event + 1)
        return broken(o, "hit", i, "shares its slot with another hit", err);
    o->hit_in[e->slot] = o->event + 1;
    return MOESIM_OK;
}

static moesim_code check_list(const moesim_device_order *o, const char *list, const moesim_device_expert *e, uint32_t n,
                              uint32_t num_rows, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    if (n > 0 && e == NULL)
        return broken(o, list, 0, "the list is missing", err);
    for (uint32_t i = 0; i < n && code == MOESIM_OK; i++)
        code = check_expert(o, list, i, &e[i], num_rows, err);
    return code;
}

moesim_code moesim_device_order_work(moesim_device_order *o, const moesim_device_work *w, moesim_error *err)
{
    if (o->gated_rows == 0 || o->busy)
        return broken(o, "rows", w->num_rows, "no gate came before", err);
    if (w->num_rows != o->gated_rows)
        return broken(o, "rows", w->num_rows, "the gate before had another number of rows", err);
    memset(o->routes, 0, w->num_rows * sizeof *o->routes);
    const struct { const char *name; const moesim_device_expert *e; uint32_t n; } list[] = {
        { "hit", w->hits, w->n_hits }, { "moved expert", w->moved, w->n_moved }, { "CPU expert", w->cpu, w->n_cpu },
    };
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        const moesim_code code = check_list(o, list[k].name, list[k].e, list[k].n, w->num_rows, err);
        if (code != MOESIM_OK)
            return code;
    }
    for (uint32_t i = 0; i < w->n_hits; i++) {
        const moesim_code code = check_hit(o, i, &w->hits[i], err);
        if (code != MOESIM_OK)
            return code;
    }
    for (uint32_t i = 0; i < w->n_moved; i++)
        if (w->moved[i].slot >= o->config->slots)
            return broken(o, "moved expert", i, "slot out of range", err);
    for (uint32_t i = 0; i < w->n_moved; i++)
        o->content[w->moved[i].slot] = w->moved[i].pool;
    o->event++;
    o->busy = true;
    return MOESIM_OK;
}
