/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of a config that hold for all backends.
 */
#include "hwprofile/device.h"

#define UNIT 64u                 /* sizes are multiples of it: what the kernels load at once */
#define SIZE_MAX_ELEMENTS 65536u
#define TOP_K_MAX 64u
#define SLOTS_MAX (1u << 20)
#define POOL_MAX (1u << 24)
#define CONTEXT_MAX (1u << 20)
#define SIZES_ELSEWHERE "; --as, or --hidden and --intermediate, give other sizes"

static moesim_code check_range(const char *what, uint64_t value, uint64_t min, uint64_t max, const char *remedy,
                               moesim_error *err)
{
    if (value < min || value > max)
        return moesim_fail(err, MOESIM_E_USAGE, "device: %s %llu is outside %llu to %llu%s", what, (unsigned long long)value,
                           (unsigned long long)min, (unsigned long long)max, remedy != NULL ? remedy : "");
    return MOESIM_OK;
}

static moesim_code check_geometry(const moesim_device_config *c, moesim_error *err)
{
    const moesim_geometry *g = c->geometry;
    if (g == NULL) {
        if (c->other)
            return moesim_fail(err, MOESIM_E_USAGE, "device: attention and router need the sizes of a model; name one (--as), "
                               "or leave them out (--other off)");
        return MOESIM_OK;
    }
    if (g->hidden != c->hidden)
        return moesim_fail(err, MOESIM_E_USAGE, "device: experts have %u hidden elements, model %s has %u", c->hidden, g->name,
                           g->hidden);
    if (c->other && (g->heads == 0 || g->kv_heads == 0 || g->head_dim == 0 || g->experts == 0))
        return moesim_fail(err, MOESIM_E_USAGE, "device: the attention of model %s is not known; use --other off", g->name);
    return MOESIM_OK;
}

moesim_code moesim_device_check(const moesim_device_config *c, moesim_error *err)
{
    const struct { const char *what; uint64_t value, min, max; const char *remedy; } range[] = {
        { "hidden size", c->hidden, UNIT, SIZE_MAX_ELEMENTS, SIZES_ELSEWHERE },
        { "intermediate size", c->intermediate, UNIT, SIZE_MAX_ELEMENTS, SIZES_ELSEWHERE },
        { "rows of an event", c->max_rows, 1, MOESIM_DEVICE_ROWS_MAX, NULL },
        { "experts of a row (top-k)", c->top_k, 1, TOP_K_MAX, NULL },
        { "slots", c->slots, 1, SLOTS_MAX, NULL },
        { "pool of experts", c->pool, 1, POOL_MAX, NULL },
        { "context", c->context, 0, CONTEXT_MAX, NULL },
        { "CPU threads", c->cpu.threads, 0, MOESIM_CPU_THREADS_MAX, NULL },
    };
    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++) {
        const moesim_code code = check_range(range[i].what, range[i].value, range[i].min, range[i].max, range[i].remedy, err);
        if (code != MOESIM_OK)
            return code;
    }
    if (c->hidden % UNIT != 0 || c->intermediate % UNIT != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "device: hidden size %u and intermediate size %u must be multiples of %u",
                           c->hidden, c->intermediate, UNIT);
    const uint64_t expert = 3ull * c->hidden * c->intermediate * sizeof(uint16_t);
    uint64_t bytes;
    if (__builtin_mul_overflow(expert, (uint64_t)c->pool, &bytes) || bytes > PTRDIFF_MAX ||
        __builtin_mul_overflow(expert, (uint64_t)c->slots, &bytes) || bytes > PTRDIFF_MAX)
        return moesim_fail(err, MOESIM_E_USAGE, "device: %u slots or a pool of %u experts of %llu bytes have no address",
                           c->slots, c->pool, (unsigned long long)expert);
    if (c->bandwidth_cap != 0.0 && !(c->bandwidth_cap >= MOESIM_DEVICE_CAP_MIN && c->bandwidth_cap <= MOESIM_DEVICE_CAP_MAX))
        return moesim_fail(err, MOESIM_E_USAGE, "device: a bandwidth cap of %g B/s is outside 1 MB/s to 10 TB/s",
                           c->bandwidth_cap);
    return check_geometry(c, err);
}
