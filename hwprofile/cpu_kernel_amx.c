/* SPDX-License-Identifier: Apache-2.0
 *
 * AMX-BF16. A tile holds 16 rows of 64 bytes. The weights are the left operand, 16 rows of 32 as they lie in memory; the
 * right operand is 16 pairs of activations by up to 16 tokens, pair after pair: activations are put into that order once.
 * Eight tiles: sums of two groups of rows by two groups of tokens (0..3), weights (4, 5), activations (6, 7).
 */
#include "hwprofile/cpu_parts.h"

#if defined(__x86_64__) && defined(MOESIM_AMX)

#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_TARGET __attribute__((target("avx512f,amx-tile,amx-bf16")))
#define INLINE static inline __attribute__((always_inline)) KERNEL_TARGET

#define TILE 16u                 /* rows of a tile; tokens of one */
#define STEP 32u                 /* weights of a tile's row: a cache line */
#define LEAST 5u                 /* an expert of 1..4 tokens is one block, which reads its weights faster than tiles do */
#define FEW 4u                   /* fewer tokens than these are put into order one by one */

_Static_assert(MOESIM_CPU_TILE_ROWS == TILE && MOESIM_CPU_TILE_TOKENS == 2 * TILE, "two tiles of tokens, rows of one");

/* ---- is it there ------------------------------------------------------------------------------------------------- */

#define CPUID_BF16 (1u << 22)    /* leaf 7, EDX */
#define CPUID_TILE (1u << 24)
#define CPUID_OSXSAVE (1u << 27) /* leaf 1, ECX */
#define XCR0_TILES (3u << 17)    /* the system saves the tiles' configuration and contents */
#define REQUEST_PERMISSION 0x1023        /* arch_prctl: ARCH_REQ_XCOMP_PERM */
#define TILE_DATA 18

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static bool granted;

/* Linux grants the tiles to a process, with all its threads, that has asked for them. */
static void ask(void)
{
    unsigned a, b, c, d, low, high;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & CPUID_OSXSAVE) == 0)
        return;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & CPUID_BF16) == 0 || (d & CPUID_TILE) == 0)
        return;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    granted = (low & XCR0_TILES) == XCR0_TILES && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static bool tiles_granted(void)
{
    pthread_once(&asked, ask);
    return granted;
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* 16 by 16 elements of 32 bits. */
INLINE void transpose(__m512i v[TILE])
{
    __m512i u[TILE];
    for (uint32_t i = 0; i < TILE; i += 2) {
        u[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        u[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (uint32_t i = 0; i < TILE; i += 4)       /* now of 4 rows: lane l of v[i + c] is column 4l + c */
        for (uint32_t h = 0; h < 2; h++) {
            v[i + 2 * h] = _mm512_unpacklo_epi64(u[i + h], u[i + 2 + h]);
            v[i + 2 * h + 1] = _mm512_unpackhi_epi64(u[i + h], u[i + 2 + h]);
        }
    for (uint32_t c = 0; c < 4; c++) {
        const __m512i top = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x44), top2 = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xee);
        const __m512i low = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x44);
        const __m512i low2 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xee);
        v[c] = _mm512_shuffle_i32x4(top, low, 0x88);
        v[4 + c] = _mm512_shuffle_i32x4(top, low, 0xdd);
        v[8 + c] = _mm512_shuffle_i32x4(top2, low2, 0x88);
        v[12 + c] = _mm512_shuffle_i32x4(top2, low2, 0xdd);
    }
}

/* Up to 16 tokens: to[k/2][tokens] pairs. */
KERNEL_TARGET static void pack_group(const uint16_t *const from[TILE], uint32_t tokens, uint32_t k, uint32_t *to)
{
    const __mmask16 mask = (__mmask16)((1u << tokens) - 1);
    for (uint32_t i = 0; i < k; i += STEP) {
        __m512i v[TILE];
        for (uint32_t t = 0; t < TILE; t++)
            v[t] = t < tokens ? _mm512_loadu_si512(from[t] + i) : _mm512_setzero_si512();
        transpose(v);
        for (uint32_t j = 0; j < TILE; j++, to += tokens)
            _mm512_mask_storeu_epi32(to, mask, v[j]);
    }
}

static void pack_few(const uint16_t *const from[TILE], uint32_t tokens, uint32_t k, uint32_t *to)
{
    for (uint32_t i = 0; i < k; i += 2)
        for (uint32_t t = 0; t < tokens; t++, to++)
            memcpy(to, from[t] + i, sizeof *to);
}

static void pack(const uint16_t *x, const uint16_t *row, uint32_t tokens, uint32_t k, void *out)
{
    for (uint32_t first = 0; first < tokens; first += TILE) {
        const uint32_t n = tokens - first < TILE ? tokens - first : TILE;
        const uint16_t *from[TILE];
        for (uint32_t t = 0; t < n; t++)
            from[t] = x + (size_t)(row != NULL ? row[first + t] : first + t) * k;
        (n < FEW ? pack_few : pack_group)(from, n, k, (uint32_t *)out + (size_t)first * k / 2);
    }
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
_Static_assert(sizeof(struct tile_config) == 64, "what ldtilecfg reads");

static _Thread_local uint32_t configured;        /* rows << 8 | tokens of this thread's tiles; 0: none */

KERNEL_TARGET static void configure(uint32_t rows, uint32_t tokens)
{
    if (configured == (rows << 8 | tokens))
        return;
    struct tile_config c = { .palette = 1 };
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t left = tokens > side * TILE ? tokens - side * TILE : 0, n = left < TILE ? left : TILE;
        const uint16_t bytes = (uint16_t)(n * sizeof(float));
        c.row_bytes[4 + side] = STEP * sizeof(uint16_t);
        c.rows[4 + side] = (uint8_t)rows;
        if (n == 0)
            continue;
        c.row_bytes[side] = c.row_bytes[2 + side] = c.row_bytes[6 + side] = bytes;
        c.rows[side] = c.rows[2 + side] = (uint8_t)rows;
        c.rows[6 + side] = TILE;
    }
    __asm__ volatile("" : : "r"(&c) : "memory");         /* the header of gcc says that the first 8 bytes alone are read */
    _tile_loadconfig(&c);
    configured = rows << 8 | tokens;
}

static inline void fetch(const moesim_cpu_pair *next, uint32_t k, uint32_t i)
{
    for (uint32_t r = 0; r < next->rows; r++) {
        __builtin_prefetch(next->a + (size_t)r * k + i, 0, 2);
        __builtin_prefetch(next->b + (size_t)r * k + i, 0, 2);
    }
}

/* Sums of all k, for one tile of tokens or two; they stay in tiles 0 to 3. */
INLINE void sum_up(const moesim_cpu_pair *now, const moesim_cpu_pair *next, uint32_t k, const uint16_t *x, uint32_t tokens,
                   bool two)
{
    const size_t row = k * sizeof *x, first = two ? TILE : tokens, second = tokens - first;
    const uint16_t *y = x + first * k;
    _tile_zero(0);
    _tile_zero(2);
    if (two) {
        _tile_zero(1);
        _tile_zero(3);
    }
    for (uint32_t i = 0; i < k; i += STEP) {
        fetch(next, k, i);
        _tile_loadd(6, x + i * first, first * sizeof(float));
        _tile_loadd(4, now->a + i, row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, now->b + i, row);
        _tile_dpbf16ps(2, 5, 6);
        if (two) {
            _tile_loadd(7, y + i * second, second * sizeof(float));
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
}

KERNEL_TARGET static void products(const moesim_cpu_pair *now, const moesim_cpu_pair *next, uint32_t k, const void *x,
                                   uint32_t tokens, float out[2][MOESIM_CPU_TILE_ROWS][MOESIM_CPU_TILE_TOKENS])
{
    configure(now->rows, tokens);
    if (tokens <= TILE) {
        sum_up(now, next, k, x, tokens, false);
    } else {
        sum_up(now, next, k, x, tokens, true);
        _tile_stored(1, &out[0][0][TILE], sizeof out[0][0]);
        _tile_stored(3, &out[1][0][TILE], sizeof out[0][0]);
    }
    _tile_stored(0, &out[0][0][0], sizeof out[0][0]);
    _tile_stored(2, &out[1][0][0], sizeof out[0][0]);
}

KERNEL_TARGET static void release(void)
{
    if (configured != 0)
        _tile_release();
    configured = 0;
}

const moesim_cpu_tiles moesim_cpu_amx_tiles = { tiles_granted, LEAST, pack, products, release };

#endif
