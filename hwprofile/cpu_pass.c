/* SPDX-License-Identifier: Apache-2.0
 *
 * One expert by many threads. Two phases, rows of gate and up, then rows of down, with a barrier between them; the next
 * expert's first phase begins without one, since it writes the other of two buffers. Rows are split into a range for each
 * thread; who is done takes chunks of the others, so that a thread that the system has put aside holds up one chunk at most.
 */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/cpu_parts.h"
#include "hwprofile/device_memory.h"

#define CHUNK_BYTES 32768u       /* of weights: read once into L1 or L2, then met by all tokens */
#define YIELD_AFTER 4096u        /* pauses in a barrier before the CPU is offered to others: more threads than CPUs */
#define NEXT_BITS 24u            /* of a cursor: the next row; the phase is above */

/* Next row of one thread's range in one phase. A cursor of an older phase stands at the beginning of its range. */
typedef struct cursor { _Alignas(64) _Atomic uint64_t at; } cursor;

struct moesim_cpu_crew {
    const moesim_cpu_kernel *kernel;
    uint32_t threads, hidden, intermediate, batch;
    size_t prepared_bytes;
    uint16_t *between[2];        /* [batch][intermediate] of this and the last pass */
    char *prepared;              /* [threads] batches of activations in the kernel's form */
    cursor *cursor;              /* [threads] */
    _Alignas(64) _Atomic uint64_t arrived;       /* at barriers, since create */
};

void moesim_cpu_team_share(uint32_t total, uint32_t thread, uint32_t threads, uint32_t *begin, uint32_t *end)
{
    const uint64_t units = total / MOESIM_CPU_ROWS;
    *begin = (uint32_t)(units * thread / threads) * MOESIM_CPU_ROWS;
    *end = thread + 1 == threads ? total : (uint32_t)(units * (thread + 1) / threads) * MOESIM_CPU_ROWS;
}

void moesim_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static void *aligned(size_t bytes)
{
    void *data = NULL;
    return posix_memalign(&data, 64, (bytes + 63) / 64 * 64) == 0 ? data : NULL;
}

moesim_cpu_crew *moesim_cpu_crew_create(const moesim_cpu_kernel *kernel, uint32_t threads, uint32_t hidden,
                                        uint32_t intermediate, uint32_t batch)
{
    moesim_cpu_crew *crew = aligned(sizeof *crew);
    if (crew == NULL)
        return NULL;
    memset(crew, 0, sizeof *crew);
    crew->kernel = kernel;
    crew->threads = threads;
    crew->hidden = hidden;
    crew->intermediate = intermediate;
    crew->batch = batch;
    crew->prepared_bytes = (size_t)batch * (hidden > intermediate ? hidden : intermediate) * kernel->element;
    crew->between[0] = aligned((size_t)batch * intermediate * sizeof(uint16_t));
    crew->between[1] = aligned((size_t)batch * intermediate * sizeof(uint16_t));
    crew->prepared = aligned(threads * crew->prepared_bytes);
    crew->cursor = aligned(threads * sizeof(cursor));
    if (crew->between[0] == NULL || crew->between[1] == NULL || crew->prepared == NULL || crew->cursor == NULL) {
        moesim_cpu_crew_destroy(crew);
        return NULL;
    }
    memset(crew->cursor, 0, threads * sizeof(cursor));
    return crew;
}

void moesim_cpu_crew_destroy(moesim_cpu_crew *crew)
{
    if (crew == NULL)
        return;
    free(crew->between[0]);
    free(crew->between[1]);
    free(crew->prepared);
    free(crew->cursor);
    free(crew);
}

/* One phase as its threads see it. */
struct phase {
    uint64_t number;
    uint32_t total, chunk;       /* rows */
    uint32_t k;                  /* weights of a row */
    const uint16_t *gate, *up;   /* first phase; up NULL in the second, where gate is down */
    uint32_t tokens;
    const char *x;               /* [tokens][k] prepared */
    uint16_t *between;
    float *y;
};

/* Takes the next chunk of the range of `owner`; false where none is left. */
static bool take(moesim_cpu_crew *crew, const struct phase *p, uint32_t owner, uint32_t *begin, uint32_t *end)
{
    uint32_t first, last;
    moesim_cpu_team_share(p->total, owner, crew->threads, &first, &last);
    _Atomic uint64_t *at = &crew->cursor[owner].at;
    uint64_t seen = atomic_load_explicit(at, memory_order_relaxed);
    for (;;) {
        const uint64_t phase = seen >> NEXT_BITS;
        const uint32_t current = (uint32_t)(seen & ((1u << NEXT_BITS) - 1));
        const uint32_t next = phase == p->number ? current : phase < p->number ? first : last;
        if (next >= last)
            return false;
        const uint32_t stop = last - next > p->chunk ? next + p->chunk : last;
        if (atomic_compare_exchange_weak_explicit(at, &seen, p->number << NEXT_BITS | stop, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *begin = next;
            *end = stop;
            return true;
        }
    }
}

static uint16_t activate(float gate, float up)
{
    return moesim_bf16_from_float(gate / (1.0f + expf(-gate)) * up);
}

/* Rows begin to end of gate and up, two of each at a time. more: where the thread's range ends, for reading ahead. */
static void chunk_up(const moesim_cpu_crew *crew, const struct phase *p, uint32_t begin, uint32_t end, uint32_t more)
{
    const size_t k = p->k;
    for (uint32_t t = 0; t < p->tokens; t += MOESIM_CPU_TOKENS) {
        const uint32_t n = p->tokens - t < MOESIM_CPU_TOKENS ? p->tokens - t : MOESIM_CPU_TOKENS;
        for (uint32_t i = begin; i < end; i += 2) {
            const uint16_t *const row[] = { p->gate + i * k, p->up + i * k, p->gate + (i + 1) * k, p->up + (i + 1) * k };
            float sum[MOESIM_CPU_ROWS][MOESIM_CPU_TOKENS];
            crew->kernel->block(row, p->k, p->x + t * k * crew->kernel->element, n, t == 0 && i + 2 < more ? 2 * k : 0, sum);
            for (uint32_t j = 0; j < n; j++) {
                uint16_t *out = p->between + (size_t)(t + j) * p->total + i;
                out[0] = activate(sum[0][j], sum[1][j]);
                out[1] = activate(sum[2][j], sum[3][j]);
            }
        }
    }
}

static void chunk_down(const moesim_cpu_crew *crew, const struct phase *p, uint32_t begin, uint32_t end, uint32_t more)
{
    const size_t k = p->k;
    for (uint32_t t = 0; t < p->tokens; t += MOESIM_CPU_TOKENS) {
        const uint32_t n = p->tokens - t < MOESIM_CPU_TOKENS ? p->tokens - t : MOESIM_CPU_TOKENS;
        for (uint32_t i = begin; i < end; i += MOESIM_CPU_ROWS) {
            const uint16_t *const row[] = { p->gate + i * k, p->gate + (i + 1) * k, p->gate + (i + 2) * k,
                                            p->gate + (i + 3) * k };
            float sum[MOESIM_CPU_ROWS][MOESIM_CPU_TOKENS];
            crew->kernel->block(row, p->k, p->x + t * k * crew->kernel->element, n, t == 0 && i + 4 < more ? 4 * k : 0, sum);
            for (uint32_t j = 0; j < n; j++)
                for (uint32_t r = 0; r < MOESIM_CPU_ROWS; r++)
                    p->y[(size_t)(t + j) * p->total + i + r] = sum[r][j];
        }
    }
}

/* What one call of the tiles takes from row i on: rows of gate and of up, or the two halves of rows of down. */
static moesim_cpu_pair pair_at(const struct phase *p, uint32_t i, uint32_t end)
{
    const uint32_t left = end > i ? end - i : 0, most = p->up != NULL ? MOESIM_CPU_TILE_ROWS : 2 * MOESIM_CPU_TILE_ROWS;
    const uint32_t rows = left < most ? left : most;
    const uint16_t *first = p->gate + (size_t)i * p->k;
    if (p->up != NULL)
        return (moesim_cpu_pair){ first, p->up + (size_t)i * p->k, rows };
    return (moesim_cpu_pair){ first, first + (size_t)(rows / 2) * p->k, rows / 2 };
}

/* Where the sums of `rows` rows from i on, and of n tokens from t on, belong. */
static void store_tiles(const struct phase *p, uint32_t i, uint32_t rows, uint32_t t, uint32_t n,
                        float sum[2][MOESIM_CPU_TILE_ROWS][MOESIM_CPU_TILE_TOKENS])
{
    for (uint32_t j = 0; j < n; j++) {
        const size_t at = (size_t)(t + j) * p->total + i;
        for (uint32_t r = 0; r < rows; r++) {
            if (p->up != NULL) {
                p->between[at + r] = activate(sum[0][r][j], sum[1][r][j]);
            } else {
                p->y[at + r] = sum[0][r][j];
                p->y[at + rows + r] = sum[1][r][j];
            }
        }
    }
}

static void chunk_tiles(const moesim_cpu_crew *crew, const struct phase *p, uint32_t begin, uint32_t end, uint32_t more)
{
    const moesim_cpu_pair none = { NULL, NULL, 0 };
    const uint32_t step = p->up != NULL ? MOESIM_CPU_TILE_ROWS : 2 * MOESIM_CPU_TILE_ROWS;
    for (uint32_t t = 0; t < p->tokens; t += MOESIM_CPU_TILE_TOKENS) {
        const uint32_t n = p->tokens - t < MOESIM_CPU_TILE_TOKENS ? p->tokens - t : MOESIM_CPU_TILE_TOKENS;
        for (uint32_t i = begin; i < end; i += step) {
            const moesim_cpu_pair now = pair_at(p, i, end), next = t == 0 ? pair_at(p, i + step, more) : none;
            float sum[2][MOESIM_CPU_TILE_ROWS][MOESIM_CPU_TILE_TOKENS];
            crew->kernel->tiles->products(&now, &next, p->k, p->x + (size_t)t * p->k * crew->kernel->element, n, sum);
            store_tiles(p, i, now.rows, t, n, sum);
        }
    }
}

static bool tiled(const moesim_cpu_kernel *kernel, uint32_t tokens)
{
    return kernel->tiles != NULL && tokens >= kernel->tiles->least;
}

static void run_phase(moesim_cpu_crew *crew, uint32_t thread, const struct phase *p)
{
    void (*const chunk)(const moesim_cpu_crew *, const struct phase *, uint32_t, uint32_t, uint32_t) =
        tiled(crew->kernel, p->tokens) ? chunk_tiles : p->up != NULL ? chunk_up : chunk_down;
    for (uint32_t i = 0; i < crew->threads; i++) {
        const uint32_t owner = (thread + i) % crew->threads;
        uint32_t begin, end, first, last;
        moesim_cpu_team_share(p->total, owner, crew->threads, &first, &last);
        while (take(crew, p, owner, &begin, &end))
            chunk(crew, p, begin, end, i == 0 ? last : end);
    }
}

/* A multiple of what one call of the kernel takes, so that the tiles of a chunk are full ones. */
static uint32_t chunk_rows(size_t bytes_a_row, uint32_t unit)
{
    const size_t rows = CHUNK_BYTES / bytes_a_row / unit * unit;
    return rows < unit ? unit : (uint32_t)rows;
}

/* Activations x[row[0..n-1]], row NULL: x[0..n-1], in the kernel's form. */
static void prepare(const moesim_cpu_kernel *kernel, const uint16_t *x, const uint16_t *row, uint32_t n, uint32_t k, char *out)
{
    if (tiled(kernel, n)) {
        kernel->tiles->pack(x, row, n, k, out);
        return;
    }
    for (uint32_t t = 0; t < n; t++)
        kernel->prepare(x + (size_t)(row != NULL ? row[t] : t) * k, k, out + (size_t)t * k * kernel->element);
}

static void barrier(moesim_cpu_crew *crew, uint64_t all)
{
    atomic_fetch_add_explicit(&crew->arrived, 1, memory_order_acq_rel);
    for (uint32_t i = 0; atomic_load_explicit(&crew->arrived, memory_order_acquire) < all; i++) {
        if (i < YIELD_AFTER)
            moesim_cpu_relax();
        else
            sched_yield();
    }
}

void moesim_cpu_crew_pass(moesim_cpu_crew *crew, uint32_t thread, const moesim_cpu_job *job, const uint16_t *x, uint32_t first,
                          uint32_t n, uint64_t number)
{
    const moesim_cpu_kernel *kernel = crew->kernel;
    const size_t matrix = (size_t)crew->hidden * crew->intermediate;
    const bool tiles = tiled(kernel, n);
    const uint32_t unit = tiles ? MOESIM_CPU_TILE_ROWS : MOESIM_CPU_ROWS;
    char *prepared = crew->prepared + thread * crew->prepared_bytes;
    struct phase p = { .number = 2 * number + 1, .total = crew->intermediate, .k = crew->hidden,
                       .chunk = chunk_rows(2 * crew->hidden * sizeof(uint16_t), unit), .gate = job->weights,
                       .up = job->weights + matrix, .tokens = n, .x = prepared, .between = crew->between[number % 2] };
    prepare(kernel, x, job->row + first, n, crew->hidden, prepared);
    run_phase(crew, thread, &p);
    barrier(crew, (number + 1) * crew->threads);
    prepare(kernel, p.between, NULL, n, crew->intermediate, prepared);
    p.number++;
    p.total = crew->hidden;
    p.k = crew->intermediate;
    p.chunk = chunk_rows(crew->intermediate * sizeof(uint16_t), tiles ? 2 * unit : unit);
    p.gate = job->weights + 2 * matrix;
    p.up = NULL;
    p.y = job->y + (size_t)first * crew->hidden;
    run_phase(crew, thread, &p);
    if (tiles)
        kernel->tiles->release();
}
