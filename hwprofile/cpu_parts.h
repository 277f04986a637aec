/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the CPU experts: kernels by instruction set, and where threads go. Private to hwprofile/.
 */
#ifndef MOESIM_HWPROFILE_CPU_PARTS_H
#define MOESIM_HWPROFILE_CPU_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hwprofile/cpu_expert.h"

/* Most rows and tokens of one block. A chunk of rows is read from memory once and met by all tokens, block after block. */
#define MOESIM_CPU_ROWS 4u
#define MOESIM_CPU_TOKENS 4u
#define MOESIM_CPU_SIZE_MAX 65536u   /* hidden and intermediate */

/* Rows of each of two matrices, and tokens, of one call where tiles multiply. */
#define MOESIM_CPU_TILE_ROWS 16u
#define MOESIM_CPU_TILE_TOKENS 32u

/* rows of k weights, one after another, at a and as many at b; rows 0: none. */
typedef struct moesim_cpu_pair {
    const uint16_t *a, *b;
    uint32_t rows;               /* up to MOESIM_CPU_TILE_ROWS */
} moesim_cpu_pair;

/* Matrix tiles: many rows and tokens at a time. */
typedef struct moesim_cpu_tiles {
    bool (*supported)(void);     /* asks the system for them when called first */
    uint32_t least;              /* tokens from which tiles are faster than blocks of the same kernel (bench_cpu_expert) */
    /* Activations x[row[0..tokens-1]] of k (a multiple of 64), row NULL: x[0..tokens-1], into the order that `products` reads:
     * tokens·k elements at out, 64-byte aligned. */
    void (*pack)(const uint16_t *x, const uint16_t *row, uint32_t tokens, uint32_t k, void *out);
    /* out[0][r][t] = a[r] · x[t] and out[1][r][t] = b[r] · x[t] for 1..32 packed tokens, the first a multiple of 32. `next` is
     * fetched into the cache meanwhile. Leaves the calling thread's tiles in use. */
    void (*products)(const moesim_cpu_pair *now, const moesim_cpu_pair *next, uint32_t k, const void *x, uint32_t tokens,
                     float out[2][MOESIM_CPU_TILE_ROWS][MOESIM_CPU_TILE_TOKENS]);
    void (*release)(void);       /* of the calling thread */
} moesim_cpu_tiles;

/* One instruction set. Each sum of products is taken in an order that depends on k alone (and on whether tiles multiply);
 * elements are bf16 where there are tiles. */
typedef struct moesim_cpu_kernel {
    const char *name;
    bool (*supported)(void);
    size_t element;              /* bytes of one prepared activation */
    /* k (a multiple of 64) activations into the order and type that `block` reads; out 64-byte aligned. */
    void (*prepare)(const uint16_t *x, uint32_t k, void *out);
    /* out[r][t] = row[r] · x[t] for 4 rows of k weights and 1..4 tokens, which lie k prepared elements apart. `ahead`: elements
     * from each row to what will be read next, fetched into the cache meanwhile; 0: none. */
    void (*block)(const uint16_t *const row[MOESIM_CPU_ROWS], uint32_t k, const void *x, uint32_t tokens, size_t ahead,
                  float out[MOESIM_CPU_ROWS][MOESIM_CPU_TOKENS]);
    /* Reads everything; the result depends on all of it. bytes is a multiple of 64, data 64-byte aligned. */
    uint64_t (*read)(const void *data, size_t bytes);
    const moesim_cpu_tiles *tiles;       /* for experts of so many tokens, instead of prepare and block; NULL: none */
} moesim_cpu_kernel;

/* x86 only but for plain; amx where the compiler knows it (MOESIM_AMX). */
extern const moesim_cpu_kernel moesim_cpu_plain, moesim_cpu_avx2, moesim_cpu_avx512, moesim_cpu_avx512bf16, moesim_cpu_amx;
extern const moesim_cpu_tiles moesim_cpu_amx_tiles;

/* name NULL: the last of moesim_cpu_isas. USAGE errors list what it has. */
moesim_code moesim_cpu_kernel_find(const char *name, const moesim_cpu_kernel **out, moesim_error *err);

/* What the threads of a team share while they compute. */
typedef struct moesim_cpu_crew moesim_cpu_crew;
moesim_cpu_crew *moesim_cpu_crew_create(const moesim_cpu_kernel *kernel, uint32_t threads, uint32_t hidden,
                                        uint32_t intermediate, uint32_t batch);          /* NULL: no memory */
void moesim_cpu_crew_destroy(moesim_cpu_crew *crew);         /* NULL allowed */

/* One pass over the weights of a job for its tokens first to first+n−1, n ≤ batch. Every thread calls it, with the same
 * arguments but for `thread`; number counts 0, 1, 2 … since create. Returns when this thread's part is done; a pass is done
 * when all have returned, and it is then that its weights and x may go. */
void moesim_cpu_crew_pass(moesim_cpu_crew *crew, uint32_t thread, const moesim_cpu_job *job, const uint16_t *x, uint32_t first,
                          uint32_t n, uint64_t number);

/* For a loop that waits. */
void moesim_cpu_relax(void);

/* As moesim_cpu_team_run, without waiting: moesim_cpu_team_wait ends it. */
void moesim_cpu_team_call(moesim_cpu_team *team, void (*fn)(void *context, uint32_t thread, uint32_t threads), void *context);

/* How long idle threads, and who waits for them, spin before they sleep; between starts. */
void moesim_cpu_team_spin(moesim_cpu_team *team, uint64_t ns);

/* Where threads go: cpu[i] of thread i, distinct physical cores first. */
typedef struct moesim_cpu_places {
    uint32_t threads, allowed;   /* allowed: CPUs to choose from: of the list, or all of ours */
    bool pinned;
    uint32_t cpu[MOESIM_CPU_THREADS_MAX];
    char text[128];              /* "0-15", "not pinned" */
} moesim_cpu_places;
moesim_code moesim_cpu_place(const moesim_cpu_config *config, moesim_cpu_places *out, moesim_error *err);

#endif
