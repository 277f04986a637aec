/* SPDX-License-Identifier: Apache-2.0
 *
 * Every variant of the kernels against plain implementations: sorting for selections, one bit at a time for sets.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "moesim/policy.h"
#include "sim/kernels.h"

#define MOST 1024u

typedef struct candidate {
    double value, tie;
    uint64_t key;
    uint32_t id;
    int resident;
} candidate;

static int by_rest(const candidate *x, const candidate *y)
{
    if (x->resident != y->resident)
        return x->resident ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static int by_value(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    if (x->tie != y->tie)
        return x->tie > y->tie ? -1 : 1;
    return by_rest(x, y);
}

static int by_key(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return by_rest(x, y);
}

typedef struct problem {
    uint32_t experts, words, slots;
    double value[MOST], tie[MOST];
    uint64_t key[MOST];
    uint64_t candidates[MOST / 64], resident[MOST / 64];
} problem;

/* Values from a small set so that ties abound, or from a wide one; specials now and then. */
static double draw(moesim_rng *r, uint32_t kind)
{
    static const double special[] = { 0.0, -0.0, INFINITY, -INFINITY, 5e-324, -5e-324, 1e308, -1e308 };
    switch (kind) {
    case 0: return (double)moesim_rng_below(r, 4);
    case 1: return moesim_rng_real(r) - 0.5;
    case 2: return special[moesim_rng_below(r, 8)];
    case 3: return moesim_rng_below(r, 3) > 0 ? 0.0 : moesim_rng_real(r);
    case 4: return 1.0;
    default: return (double)moesim_rng_below(r, 100000);
    }
}

static uint64_t draw_key(moesim_rng *r, uint32_t kind)
{
    static const uint64_t special[] = { 0, 1, 2, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1 };
    switch (kind) {
    case 0: return moesim_rng_below(r, 3);
    case 1: return special[moesim_rng_below(r, 7)];
    case 2: return moesim_rng_u64(r);
    default: return moesim_rng_below(r, 5000);
    }
}

static void make_problem(problem *p, moesim_rng *r)
{
    memset(p, 0, sizeof *p);
    p->experts = moesim_rng_below(r, 3) == 0 ? 1 + moesim_rng_below(r, MOST) : 1 + moesim_rng_below(r, 300);
    p->words = moesim_words(p->experts);
    p->slots = moesim_rng_below(r, p->experts + 1);
    const uint32_t kind = moesim_rng_below(r, 6), tie_kind = moesim_rng_below(r, 6), key_kind = moesim_rng_below(r, 4);
    const uint32_t dense = 1 + moesim_rng_below(r, 8);
    for (uint32_t e = 0; e < p->words * 64; e++) {
        p->value[e] = NAN;      /* not read for what is no candidate */
        p->tie[e] = NAN;
        p->key[e] = moesim_rng_u64(r);
        if (e >= p->experts || moesim_rng_below(r, 8) >= dense)
            continue;
        moesim_bit_set(p->candidates, e);
        p->value[e] = draw(r, kind);
        p->tie[e] = draw(r, tie_kind);
        p->key[e] = draw_key(r, key_kind);
        if (moesim_rng_below(r, 2) == 0)
            moesim_bit_set(p->resident, e);
    }
}

static void reference(const problem *p, int use_key, uint64_t *keep)
{
    candidate c[MOST];
    uint32_t n = 0;
    for (uint32_t e = 0; e < p->experts; e++) {
        if (moesim_bit_test(p->candidates, e) && (use_key || p->value[e] != -INFINITY))
            c[n++] = (candidate){ p->value[e], p->tie[e], p->key[e], e, moesim_bit_test(p->resident, e) };
    }
    qsort(c, n, sizeof *c, use_key ? by_key : by_value);
    memset(keep, 0, p->words * sizeof *keep);
    for (uint32_t i = 0; i < n && i < p->slots; i++)
        moesim_bit_set(keep, c[i].id);
}

/* Both selections of one variant, twice with the hints as they come, from whatever problem, and once without. */
static void check_selections(const moesim_kernels *k, const problem *p, moesim_hint *hint, int number)
{
    uint64_t keep[MOST / 64], by_values[MOST / 64], by_keys[MOST / 64];
    reference(p, 0, by_values);
    reference(p, 1, by_keys);
    for (int round = 0; round < 3; round++) {
        memset(keep, 0xa5, sizeof keep);
        ck_assert_int_eq(k->select(p->value, p->tie, p->candidates, p->resident, p->words, p->slots, keep,
                                   round < 2 ? hint : NULL), 0);
        ck_assert_msg(memcmp(keep, by_values, p->words * sizeof *keep) == 0, "%s: select differs, case %d round %d", k->name,
                      number, round);
        memset(keep, 0xa5, sizeof keep);
        k->select_key(p->key, p->candidates, p->resident, p->words, p->slots, keep, round < 2 ? hint + 2 : NULL);
        ck_assert_msg(memcmp(keep, by_keys, p->words * sizeof *keep) == 0, "%s: select_key differs, case %d round %d", k->name,
                      number, round);
    }
}

START_TEST(selections_equal_sorting)
{
    moesim_rng r;
    problem p;
    moesim_hint hint[8][3];
    moesim_rng_seed(&r, 1);
    memset(hint, 0, sizeof hint);
    for (int i = 0; i < 20000; i++) {
        make_problem(&p, &r);
        for (uint32_t v = 0; moesim_kernels_all()[v] != NULL; v++)
            check_selections(moesim_kernels_all()[v], &p, hint[v], i);
    }
}
END_TEST

START_TEST(nan_of_a_candidate_is_reported)
{
    moesim_rng r;
    problem p;
    uint64_t keep[MOST / 64];
    moesim_rng_seed(&r, 2);
    for (int i = 0; i < 2000; i++) {
        make_problem(&p, &r);
        uint32_t e = moesim_rng_below(&r, p.experts);
        if (!moesim_bit_test(p.candidates, e))
            continue;
        double *bad = i % 2 ? &p.value[e] : &p.tie[e];
        *bad = i % 3 ? NAN : -NAN;
        for (const moesim_kernels *const *k = moesim_kernels_all(); *k != NULL; k++)
            ck_assert_int_eq((*k)->select(p.value, p.tie, p.candidates, p.resident, p.words, p.slots, keep, NULL), 1);
    }
}
END_TEST

START_TEST(collected_sets_equal_bits)
{
    moesim_rng r;
    uint64_t got[MOST / 64], expected[MOST / 64];
    moesim_rng_seed(&r, 3);
    for (int i = 0; i < 3000; i++) {
        const uint32_t experts = 1 + moesim_rng_below(&r, MOST), words = moesim_words(experts);
        const uint32_t k = 1 + moesim_rng_below(&r, 64), rows = moesim_rng_below(&r, 40);
        const size_t stride = k * (size_t)(1 + moesim_rng_below(&r, 5));
        /* Exactly as long as the last row needs, so that reading beyond it is caught by the sanitizers. */
        const size_t n = rows == 0 ? 1 : (rows - 1) * stride + k;
        uint16_t *id = malloc(n * sizeof *id);
        memset(expected, 0, sizeof expected);
        expected[0] = 1;        /* what is set before stays */
        for (size_t j = 0; j < n; j++)
            id[j] = (uint16_t)(moesim_rng_below(&r, 5) == 0 ? MOESIM_NO_ROUTE : moesim_rng_below(&r, experts));
        for (uint32_t row = 0; row < rows; row++) {
            for (uint32_t s = 0; s < k; s++) {
                if (id[row * stride + s] != MOESIM_NO_ROUTE)
                    moesim_bit_set(expected, id[row * stride + s]);
            }
        }
        for (const moesim_kernels *const *kernel = moesim_kernels_all(); *kernel != NULL; kernel++) {
            memset(got, 0, sizeof got);
            got[0] = 1;
            (*kernel)->collect(id, stride, rows, k, got, words);
            ck_assert_mem_eq(got, expected, words * sizeof *got);
        }
        free(id);
    }
}
END_TEST

START_TEST(lists_equal_bits)
{
    moesim_rng r;
    moesim_rng_seed(&r, 4);
    for (int i = 0; i < 3000; i++) {
        const uint32_t words = 1 + moesim_rng_below(&r, MOST / 64), dense = moesim_rng_below(&r, 9);
        uint64_t set[MOST / 64] = { 0 };
        uint16_t expected[MOST], got[MOST + 4];
        uint32_t n = 0;
        for (uint32_t e = 0; e < words * 64; e++) {
            if (moesim_rng_below(&r, 8) >= dense)
                continue;
            moesim_bit_set(set, e);
            expected[n++] = (uint16_t)e;
        }
        for (const moesim_kernels *const *k = moesim_kernels_all(); *k != NULL; k++) {
            ck_assert_uint_eq((*k)->list(set, words, got), n);
            ck_assert(memcmp(got, expected, n * sizeof *got) == 0);
        }
    }
}
END_TEST

START_TEST(parts_the_numbers)
{
    moesim_rng r;
    moesim_rng_seed(&r, 6);
    for (int i = 0; i < 3000; i++) {
        const uint32_t words = 1 + moesim_rng_below(&r, MOST / 64), dense = moesim_rng_below(&r, 9);
        const uint32_t share = moesim_rng_below(&r, 9);
        uint64_t all[MOST / 64] = { 0 }, some[MOST / 64] = { 0 };
        uint32_t number[MOST], wanted[2][MOST], members = 0, n[2] = { 0, 0 };
        for (uint32_t e = 0; e < words * 64; e++) {
            const bool in = moesim_rng_below(&r, 8) < dense, picked = moesim_rng_below(&r, 8) < share;
            if (picked)
                moesim_bit_set(some, e);     /* not only members */
            if (!in)
                continue;
            moesim_bit_set(all, e);
            number[members] = moesim_rng_below(&r, 1000);
            wanted[!picked][n[!picked]++] = number[members];
            members++;
        }
        for (const moesim_kernels *const *k = moesim_kernels_all(); *k != NULL; k++) {
            uint32_t *in = malloc((members + 1) * sizeof *in), *out = malloc((members + 1) * sizeof *out);
            ck_assert(in != NULL && out != NULL);
            in[members] = out[members] = 7777;           /* not theirs */
            ck_assert_uint_eq((*k)->part(all, some, words, number, in, out), n[0]);
            ck_assert(memcmp(in, wanted[0], n[0] * sizeof *in) == 0);
            ck_assert(memcmp(out, wanted[1], n[1] * sizeof *out) == 0);
            ck_assert(in[members] == 7777 && out[members] == 7777);
            free(in);
            free(out);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tests = tcase_create("kernels");
    tcase_add_test(tests, selections_equal_sorting);
    tcase_add_test(tests, nan_of_a_candidate_is_reported);
    tcase_add_test(tests, collected_sets_equal_bits);
    tcase_add_test(tests, lists_equal_bits);
    tcase_add_test(tests, parts_the_numbers);
    tcase_set_timeout(tests, 120);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
