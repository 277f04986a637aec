/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory that may be used, buffers, and what lies in the pool.
 */
#include "hwprofile/device_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "hwprofile/cgroup.h"

#define GIB (1ull << 30)
#define RESERVE_SHARE 20u        /* 5 % */
#define ROW_STEP 0xd1342543de82ef95ull       /* odd, and not the step of the generator that seeds */
#define INPUTS_STREAM 0x696e70757473ull     /* keeps inputs apart from weights of the same seed */

/* ---- how much ---------------------------------------------------------------------------------------------------- */

/* A file that holds one number. false: absent, or "max". */
static bool read_number(const char *folder, const char *name, uint64_t *out)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    unsigned long long v;
    const bool ok = fscanf(f, "%llu", &v) == 1;
    fclose(f);
    *out = ok ? v : 0;
    return ok;
}

/* The number behind `key` in a file of lines "key number". 0 where there is none. */
static uint64_t read_key(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    uint64_t value = 0;
    char line[256];
    const size_t n = strlen(key);
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, n) == 0 && (line[n] == ' ' || line[n] == ':')) {
            value = strtoull(line + n + 1, NULL, 10);
            break;
        }
    if (f != NULL)
        fclose(f);
    return value;
}

/* What one cgroup has left: limit − used + cache that would be given back. UINT64_MAX without a limit. */
static uint64_t group_free(const char *folder, const char *limit_name, const char *used_name, const char *cache_key)
{
    uint64_t limit, used;
    if (!read_number(folder, limit_name, &limit) || !read_number(folder, used_name, &used))
        return UINT64_MAX;
    char stat[4200];
    snprintf(stat, sizeof stat, "%s/memory.stat", folder);
    const uint64_t cache = read_key(stat, cache_key);
    used = used > cache ? used - cache : 0;
    return limit > used ? limit - used : 0;
}

static void take_free(void *cookie, const char *folder, bool v2)
{
    uint64_t *least = cookie;
    const uint64_t left = v2 ? group_free(folder, "memory.max", "memory.current", "inactive_file")
                             : group_free(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
    *least = left < *least ? left : *least;
}

uint64_t moesim_host_memory_free(void)
{
    uint64_t least = read_key("/proc/meminfo", "MemAvailable") * 1024u;
    moesim_cgroup_each("memory", take_free, &least);
    return least;
}

uint64_t moesim_memory_allowed(uint64_t limit, uint64_t free_bytes)
{
    const uint64_t share = free_bytes / RESERVE_SHARE, reserve = share > GIB ? share : GIB;
    const uint64_t most = free_bytes > reserve ? free_bytes - reserve : 0;
    return limit != 0 && limit < most ? limit : most;
}

const char *moesim_memory_text(uint64_t bytes, char out[24])
{
    const double b = (double)bytes;
    snprintf(out, 24, "%.2f %s", b >= 1e9 ? b / 1e9 : b >= 1e6 ? b / 1e6 : b / 1e3, b >= 1e9 ? "GB" : b >= 1e6 ? "MB" : "kB");
    return out;
}

moesim_code moesim_memory_check(const char *memory, const char *what, uint64_t need, uint64_t allowed, const char *remedy,
                                moesim_error *err)
{
    if (need <= allowed)
        return MOESIM_OK;
    char needs[24], may[24];
    return moesim_fail(err, MOESIM_E_LIMIT, "%s: %s needs %s, %s may be used (what is free less a reserve, or the limit that "
                       "was given); %s", memory, what, moesim_memory_text(need, needs), moesim_memory_text(allowed, may),
                       remedy);
}

void moesim_device_sizes_get(const moesim_device_config *c, moesim_device_sizes *out)
{
    out->weights = 3u * (size_t)c->hidden * c->intermediate;
    out->expert = out->weights * sizeof(uint16_t);
    out->slots = out->expert * c->slots;
    out->pool = out->expert * c->pool;
    out->routes = (size_t)c->max_rows * c->top_k;
    out->inputs = (size_t)c->max_rows * c->hidden * sizeof(uint16_t);
    out->outputs = out->routes * c->hidden * sizeof(float);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

void *moesim_host_alloc(size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    madvise(data, bytes, MADV_HUGEPAGE);     /* a wish: without it the buffer is only slower */
    return data;
}

void moesim_host_free(void *data, size_t bytes)
{
    if (data != NULL)
        munmap(data, bytes);
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

#define LEVELS 4096u             /* values of a matrix, in a table that stays in L1 */

/* bf16 values, uniform in −a..a. */
static void make_levels(uint16_t level[LEVELS], float a)
{
    for (uint32_t i = 0; i < LEVELS; i++)
        level[i] = moesim_bf16_from_float(a * (2.0f * ((float)i + 0.5f) / (float)LEVELS - 1.0f));
}

/* n (a multiple of 4) values of row `row` of stream `seed`. */
static void fill_row(uint16_t *out, uint32_t n, uint64_t seed, uint64_t row, const uint16_t level[LEVELS])
{
    moesim_rng r;
    moesim_rng_seed(&r, seed + (row + 1) * ROW_STEP);
    for (uint32_t i = 0; i < n; i += 4) {
        const uint64_t v = moesim_rng_u64(&r);
        for (uint32_t k = 0; k < 4; k++)
            out[i + k] = level[v >> (16 * k + 4) & (LEVELS - 1)];
    }
}

struct filling {
    uint16_t *data;
    uint32_t first, n, hidden, intermediate;
    uint64_t seed;
    uint16_t in[LEVELS], out[LEVELS];        /* levels of gate and up, of down */
};

static void fill_share(void *context, uint32_t thread, uint32_t threads)
{
    const struct filling *f = context;
    const size_t matrix = (size_t)f->hidden * f->intermediate;
    const uint64_t rows = 2ull * f->intermediate + f->hidden;
    uint32_t begin, end, down_begin, down_end;
    moesim_cpu_team_share(f->intermediate, thread, threads, &begin, &end);
    moesim_cpu_team_share(f->hidden, thread, threads, &down_begin, &down_end);
    for (uint32_t e = 0; e < f->n; e++) {
        uint16_t *gate = f->data + e * 3 * matrix, *up = gate + matrix, *down = up + matrix;
        const uint64_t row = ((uint64_t)f->first + e) * rows;
        for (uint32_t i = begin; i < end; i++) {
            fill_row(gate + (size_t)i * f->hidden, f->hidden, f->seed, row + i, f->in);
            fill_row(up + (size_t)i * f->hidden, f->hidden, f->seed, row + f->intermediate + i, f->in);
        }
        for (uint32_t i = down_begin; i < down_end; i++)
            fill_row(down + (size_t)i * f->intermediate, f->intermediate, f->seed, row + 2ull * f->intermediate + i, f->out);
    }
}

void moesim_pool_fill(uint16_t *data, uint32_t first, uint32_t n, uint32_t hidden, uint32_t intermediate, uint64_t seed,
                      moesim_cpu_team *team)
{
    struct filling f = { .data = data, .first = first, .n = n, .hidden = hidden, .intermediate = intermediate, .seed = seed };
    /* inputs have variance 1/3 and so do levels of a = 1: with a = 3/√k a product of k terms has variance 1 */
    make_levels(f.in, 3.0f / sqrtf((float)hidden));
    make_levels(f.out, 3.0f / sqrtf((float)intermediate));
    if (team != NULL)
        moesim_cpu_team_run(team, fill_share, &f);
    else
        fill_share(&f, 0, 1);
}

void moesim_inputs_fill(uint16_t *x, uint32_t rows, uint32_t hidden, uint64_t seed)
{
    uint16_t level[LEVELS];
    make_levels(level, 1.0f);
    for (uint32_t i = 0; i < rows; i++)
        fill_row(x + (size_t)i * hidden, hidden, seed ^ INPUTS_STREAM, i, level);
}
