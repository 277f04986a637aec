/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled once per instruction set (MOESIM_VARIANT). Products are rounded before they are added: no variant fuses them.
 */
#include "sim/stats_kernels.h"

#include <string.h>

#define CHUNK 256u               /* requests whose counts stay in the first-level cache as numbers */
#ifdef __AVX2__
#define WIDTH 4u                 /* numbers in a register */
#define COLUMNS 4u               /* side by side: as many sums as fit the registers */
#else
#define WIDTH 2u
#define COLUMNS 2u
#endif
#define PARTS (MOESIM_LANES / WIDTH)

typedef double reals __attribute__((vector_size(WIDTH * sizeof(double))));
typedef uint64_t bits64 __attribute__((vector_size(WIDTH * sizeof(uint64_t))));

typedef struct lanes { reals part[PARTS]; } lanes;

/* Goes on with the sums of COLUMNS columns. */
static inline void add_group(const lanes *times, size_t n, const double *const *column, double *const *sum)
{
    reals s[COLUMNS][PARTS];
    const double *x[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) {
        memcpy(s[c], sum[c], sizeof s[c]);
        x[c] = column[c];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < COLUMNS; c++)
            for (size_t k = 0; k < PARTS; k++)
                s[c][k] += times[i].part[k] * x[c][i];
    for (size_t c = 0; c < COLUMNS; c++)
        memcpy(sum[c], s[c], sizeof s[c]);
}

/* Fewer than COLUMNS columns at the end: the last one fills the group, into sums that nobody reads. */
static void add_chunk(const lanes *times, size_t begin, size_t n, const double *const *column, size_t columns,
                      double *const *sum)
{
    for (size_t c = 0; c < columns; c += COLUMNS) {
        const double *from[COLUMNS];
        double spare[MOESIM_LANES] = { 0 }, *to[COLUMNS];
        for (size_t k = 0; k < COLUMNS; k++) {
            from[k] = column[c + k < columns ? c + k : columns - 1] + begin;
            to[k] = c + k < columns ? sum[c + k] : spare;
        }
        add_group(times, n, from, to);
    }
}

static void add(const uint16_t *drawn, size_t n, const double *const *column, size_t columns, double *const *sum)
{
    lanes times[CHUNK];
    for (size_t c = 0; c < columns; c++)
        memset(sum[c], 0, MOESIM_LANES * sizeof *sum[c]);
    for (size_t begin = 0; begin < n; begin += CHUNK) {
        const size_t some = n - begin < CHUNK ? n - begin : CHUNK;
        for (size_t i = 0; i < some; i++)
            for (size_t k = 0; k < MOESIM_LANES; k++)
                times[i].part[k / WIDTH][k % WIDTH] = drawn[(begin + i) * MOESIM_LANES + k];
        add_chunk(times, begin, some, column, columns, sum);
    }
}

static void flip(const uint64_t *bits, const double *d, size_t n, double sum[MOESIM_LANES])
{
    reals s[PARTS] = { { 0 } };
    for (size_t begin = 0; begin < n; begin += 32) {
        const size_t end = n - begin < 32 ? n : begin + 32;
        bits64 minus[PARTS];
        memcpy(minus, bits + begin / 32 * MOESIM_LANES, sizeof minus);
        for (size_t k = 0; k < PARTS; k++)
            minus[k] = ~minus[k];
        for (size_t i = begin; i < end; i++)
            for (size_t k = 0; k < PARTS; k++) {
                const reals term = d[i] - (reals){ 0 };
                s[k] += (reals)((bits64)term ^ minus[k] << 63);
                minus[k] >>= 1;
            }
    }
    memcpy(sum, s, sizeof s);
}

#define NAME3(base, variant) base##_##variant
#define NAME2(base, variant) NAME3(base, variant)
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

const moesim_stats_kernels NAME2(moesim_stats_kernels, MOESIM_VARIANT) = {
    .name = TEXT(MOESIM_VARIANT),
    .add = add,
    .flip = flip,
};
