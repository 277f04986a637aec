/* SPDX-License-Identifier: Apache-2.0
 *
 * Resamples side by side: every instruction set gives the sums that one loop gives, to the last digit, and so do bootstraps
 * that share resamples, whatever they were asked before.
 */
#include "sim/stats_kernels.h"

#include <check.h>
#include <string.h>

#include "sim/kernels.h"
#include "sim/stats.h"

#define N 301u
#define COLUMNS 7u

/* Numbers of many digits and both signs. */
static void fill(double *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (double)(seed >> 33) / 1e5 - 7000.0 / (double)(i + 1);
    }
}

static size_t variants(const moesim_stats_kernels *out[2])
{
    size_t n = 0;
    out[n++] = &moesim_stats_kernels_base;
#ifdef MOESIM_STATS_AVX2
    for (const moesim_kernels *const *k = moesim_kernels_all(); *k != NULL; k++)
        if (strcmp((*k)->name, "avx2") == 0)
            out[n++] = &moesim_stats_kernels_avx2;
#endif
    return n;
}

START_TEST(sums_are_those_of_one_loop)
{
    static uint16_t drawn[N * MOESIM_LANES];
    static double column[COLUMNS][N], got[COLUMNS][MOESIM_LANES];
    const double *from[COLUMNS];
    double *to[COLUMNS];
    const moesim_stats_kernels *variant[2];
    const size_t sizes[] = { 1, 2, 255, 256, 257, N };
    for (size_t i = 0; i < N * MOESIM_LANES; i++)
        drawn[i] = (uint16_t)(i * 2654435761u >> 30 | (i % 97 == 0 ? UINT16_MAX : 0));
    for (size_t c = 0; c < COLUMNS; c++) {
        fill(column[c], N, c);
        from[c] = column[c];
        to[c] = got[c];
    }
    for (size_t v = 0, n_variants = variants(variant); v < n_variants; v++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (size_t columns = 1; columns <= COLUMNS; columns++) {
                memset(got, 0xff, sizeof got);
                variant[v]->add(drawn, sizes[s], from, columns, to);
                for (size_t c = 0; c < columns; c++)
                    for (size_t k = 0; k < MOESIM_LANES; k++) {
                        volatile double sum = 0;
                        for (size_t i = 0; i < sizes[s]; i++)
                            sum += drawn[i * MOESIM_LANES + k] * column[c][i];
                        const double want = sum;
                        ck_assert(memcmp(&want, &got[c][k], sizeof want) == 0);
                    }
            }
}
END_TEST

START_TEST(flips_are_those_of_one_loop)
{
    static double d[N];
    uint64_t bits[(N + 31) / 32 * MOESIM_LANES];
    double got[MOESIM_LANES];
    const moesim_stats_kernels *variant[2];
    const size_t sizes[] = { 1, 31, 32, 33, N };
    fill(d, N, 5);
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        bits[i] = i * 2246822519u & UINT32_MAX;
    for (size_t v = 0, n_variants = variants(variant); v < n_variants; v++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            variant[v]->flip(bits, d, sizes[s], got);
            for (size_t k = 0; k < MOESIM_LANES; k++) {
                volatile double sum = 0;
                for (size_t i = 0; i < sizes[s]; i++)
                    sum += (bits[i / 32 * MOESIM_LANES + k] >> i % 32 & 1) != 0 ? d[i] : -d[i];
                const double want = sum;
                ck_assert(memcmp(&want, &got[k], sizeof want) == 0);
            }
        }
}
END_TEST

/* More columns and intervals than are remembered, asked again in another order and of another bootstrap. */
START_TEST(shared_resamples_give_the_same)
{
    enum { K = 300 };
    static double num[K][N], den[N];
    moesim_bootstrap *b = NULL, *other = NULL;
    moesim_interval first[K], again;
    for (size_t f = 0; f < K; f++)
        fill(num[f], N, f % 280);
    for (size_t i = 0; i < N; i++)
        den[i] = 1 + (double)(i % 3);
    ck_assert_int_eq(moesim_bootstrap_create(N, 403, 9, &b, NULL), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_share(b, &other, NULL), MOESIM_OK);
    for (size_t f = 0; f < K; f++)
        ck_assert_int_eq(moesim_bootstrap_ratio(b, num[f], den, &first[f], NULL), MOESIM_OK);
    for (size_t f = K; f-- > 0;) {
        ck_assert_int_eq(moesim_bootstrap_ratio(f % 2 != 0 ? b : other, num[f], den, &again, NULL), MOESIM_OK);
        ck_assert(memcmp(&again, &first[f], sizeof again) == 0);
        if (f >= 280)
            ck_assert(memcmp(&first[f], &first[f - 280], sizeof again) == 0);
    }
    ck_assert(first[0].lo < first[0].hi);
    moesim_bootstrap_destroy(&other);
    moesim_bootstrap_destroy(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("blocks");
    TCase *t = tcase_create("blocks");
    tcase_add_test(t, sums_are_those_of_one_loop);
    tcase_add_test(t, flips_are_those_of_one_loop);
    tcase_add_test(t, shared_resamples_give_the_same);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
