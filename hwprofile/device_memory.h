/* SPDX-License-Identifier: Apache-2.0
 *
 * What the backends of hwprofile/device.h share: how much host memory may be used, page-aligned host buffers, the pool of
 * random experts, bf16. Thread-safe where nothing else is said.
 */
#ifndef MOESIM_HWPROFILE_DEVICE_MEMORY_H
#define MOESIM_HWPROFILE_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "hwprofile/cpu_expert.h"
#include "hwprofile/device.h"

/* ---- how much ---------------------------------------------------------------------------------------------------- */

/* Bytes of host memory that this process can still take: MemAvailable, or what its memory cgroup (v1 or v2, every level up to
 * the root) has left, whichever is less; page cache of the cgroup counts as free. 0 where the system says nothing. */
uint64_t moesim_host_memory_free(void);

/* `limit` where it was given, but at most what is free less a reserve (1 GiB or 5 % of it, whichever is more). */
uint64_t moesim_memory_allowed(uint64_t limit, uint64_t free_bytes);

/* "1.61 GB", "9.93 MB": in the unit that leaves digits to see. */
const char *moesim_memory_text(uint64_t bytes, char out[24]);

/* MOESIM_E_LIMIT where need > allowed: "host memory: the pool of 256 experts needs 1.61 GB, 1.2 GB may be used …; remedy".
 * memory: "host memory", "GPU memory"; what: "the pool of 256 experts"; remedy: "lower --host-pool". */
moesim_code moesim_memory_check(const char *memory, const char *what, uint64_t need, uint64_t allowed, const char *remedy,
                                moesim_error *err);

/* Sizes that follow from a checked config (moesim_device_check); bytes unless said otherwise. */
typedef struct moesim_device_sizes {
    size_t weights;              /* elements of one expert, 3·hidden·intermediate */
    size_t expert, slots, pool;  /* one expert, all slots, all of the pool */
    size_t routes;               /* rows of outputs, max_rows·top_k */
    size_t inputs;               /* [max_rows][hidden] bf16 */
    size_t outputs;              /* [routes][hidden] float */
} moesim_device_sizes;
void moesim_device_sizes_get(const moesim_device_config *config, moesim_device_sizes *out);

/* Row i of the facts about the host: "cpu", "governor", "host memory free", "isa", "threads", "cpus"; false past the end.
 * team NULL: without its rows. */
bool moesim_host_fact(const moesim_cpu_team *team, size_t i, moesim_device_fact *out);

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* Anonymous pages, huge ones where the system grants them; not touched yet, so that the threads which fill a buffer decide on
 * which NUMA node it lies (a GPU backend registers it as pinned afterwards). NULL: none. Freed with the same size. */
void *moesim_host_alloc(size_t bytes);
void moesim_host_free(void *data, size_t bytes);             /* NULL allowed */

/* ---- contents ---------------------------------------------------------------------------------------------------- */

/* Experts `first` to first+n−1 of the pool of `seed` into data [n][3·hidden·intermediate]: bf16, uniform, of a magnitude that
 * keeps outputs near 1 for inputs near 1. The same bytes for any number of threads and any split into calls. Each thread of
 * the team touches first the rows that it computes; team NULL: the calling thread does it all. */
void moesim_pool_fill(uint16_t *data, uint32_t first, uint32_t n, uint32_t hidden, uint32_t intermediate, uint64_t seed,
                      moesim_cpu_team *team);

/* Activations [rows][hidden] bf16, uniform in −1..1; row i is the same for any number of rows. */
void moesim_inputs_fill(uint16_t *x, uint32_t rows, uint32_t hidden, uint64_t seed);

/* float and bf16. To the nearest, ties to even; NaN stays NaN, what is too large becomes infinite. */
static inline float moesim_bf16_to_float(uint16_t v)
{
    const uint32_t bits = (uint32_t)v << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint16_t moesim_bf16_from_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
