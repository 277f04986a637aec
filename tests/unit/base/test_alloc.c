/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena and checked allocation: limits, overflow, alignment, zeroes, reuse.
 */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "tests/unit/base/runner.h"

/* How many of the bytes differ from `value` (an assertion a byte would be slow). */
static size_t others(const unsigned char *p, size_t bytes, unsigned char value)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += p[i] != value;
    return n;
}

static void check_piece(const void *p, size_t bytes)
{
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq((uintptr_t)p % 64, 0);
    ck_assert_uint_eq(others(p, bytes, 0), 0);
}

START_TEST(pieces_are_zeroed_aligned_and_apart)
{
    moesim_arena *a = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    unsigned char *piece[100];
    ck_assert_int_eq(moesim_arena_create((size_t)1 << 24, &a, &err), MOESIM_OK);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 100; i++) {
            ck_assert_int_eq(moesim_arena_take(a, i * 37, 3, "pieces", (void **)&piece[i], &err), MOESIM_OK);
            check_piece(piece[i], i * 111);
            memset(piece[i], (int)i + 1, i * 111);
        }
        for (size_t i = 0; i < 100; i++)
            ck_assert_uint_eq(others(piece[i], i * 111, (unsigned char)(i + 1)), 0);
        moesim_arena_reset(a);
    }
    moesim_arena_destroy(&a);
    ck_assert_ptr_null(a);
    moesim_arena_destroy(&a);
}
END_TEST

START_TEST(reset_keeps_the_memory)
{
    moesim_arena *a = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    void *p;
    ck_assert_int_eq(moesim_arena_create((size_t)1 << 22, &a, &err), MOESIM_OK);
    size_t held = 0;
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(moesim_arena_take(a, 1000, 1000, "big", &p, &err), MOESIM_OK);
        ck_assert_int_eq(moesim_arena_take(a, 10, 10, "small", &p, &err), MOESIM_OK);
        if (round == 0)
            held = moesim_arena_bytes(a);
        ck_assert_uint_eq(moesim_arena_bytes(a), held);
        moesim_arena_reset(a);
    }
    moesim_arena_destroy(&a);
}
END_TEST

START_TEST(limit_is_never_passed)
{
    moesim_arena *a = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    void *p;
    ck_assert_int_eq(moesim_arena_create(1024, &a, &err), MOESIM_OK);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(moesim_arena_take(a, 1, 64, "lines", &p, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_arena_take(a, 1, 1, "one byte more", &p, &err), MOESIM_E_LIMIT);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(strstr(err.text, "one byte more"));
    ck_assert_ptr_nonnull(strstr(err.text, "1024"));
    ck_assert_uint_le(moesim_arena_bytes(a), 1024);
    moesim_arena_destroy(&a);
}
END_TEST

START_TEST(products_are_checked)
{
    moesim_arena *a = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    void *p;
    ck_assert_int_eq(moesim_arena_create(SIZE_MAX, &a, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_arena_take(a, SIZE_MAX / 2, 4, "rows", &p, &err), MOESIM_E_LIMIT);
    ck_assert_int_eq(moesim_arena_take(a, SIZE_MAX, 1, "rows", &p, &err), MOESIM_E_LIMIT);
    moesim_arena_destroy(&a);
    ck_assert_int_eq(moesim_alloc(SIZE_MAX / 2, 4, "rows", &p, &err), MOESIM_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "rows"));
    ck_assert_int_eq(moesim_alloc(SIZE_MAX, 1, "rows", &p, &err), MOESIM_E_LIMIT);
}
END_TEST

START_TEST(alloc_gives_zeroes)
{
    moesim_error err = MOESIM_ERROR_INIT;
    void *p;
    ck_assert_int_eq(moesim_alloc(100, 7, "bytes", &p, &err), MOESIM_OK);
    check_piece(p, 700);
    free(p);
    ck_assert_int_eq(moesim_alloc(0, 8, "nothing", &p, &err), MOESIM_OK);
    ck_assert_ptr_nonnull(p);
    free(p);
}
END_TEST

RUN_TESTS("alloc", pieces_are_zeroed_aligned_and_apart, reset_keeps_the_memory, limit_is_never_passed,
          products_are_checked, alloc_gives_zeroes)
