/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded mutation of profile texts: bytes are changed, removed, doubled; numbers become extreme ones. Whatever comes out is
 * refused with a message, or accepted and then written, read back and interpolated without a non-finite number.
 */
#include <math.h>

#include "base/log.h"
#include "base/rng.h"
#include "tests/unit/hwprofile/hw.h"

#define ITERATIONS 5000u
#define SEED 20260711u

static const char *const pieces[] = {
    "-", "1e308", "1e-320", "0", "null", "true", "\"", "[", "]", "{", "}", ",", "\\u0000", "\xff", "9007199254740993", "[]",
    "{}", "99999999999999999999", "\"us\"", "\"GB/s\"", "\"table\"", "64", "0.5",
};

static size_t mutate(moesim_rng *rng, char *text, size_t n)
{
    const uint32_t changes = 1 + moesim_rng_below(rng, 4);
    for (uint32_t c = 0; c < changes && n > 1; c++) {
        const size_t at = moesim_rng_below(rng, (uint32_t)n);
        const char *piece = pieces[moesim_rng_below(rng, sizeof pieces / sizeof pieces[0])];
        const size_t chars = strlen(piece);
        switch (moesim_rng_below(rng, 4)) {
        case 0:
            text[at] = (char)moesim_rng_below(rng, 256);
            break;
        case 1:
            memmove(text + at, text + at + 1, n - at - 1);
            n--;
            break;
        case 2:
            n = at + 1;
            break;
        default:
            if (n + chars >= HW_TEXT_MAX)
                break;
            memmove(text + at + chars, text + at, n - at);
            memcpy(text + at, piece, chars);
            n += chars;
            break;
        }
    }
    return n;
}

static void use(const moesim_profile *p)
{
    static const double at[] = { 0.5, 1, 3, 17, 4096 };
    static moesim_profile again;
    moesim_error err = MOESIM_ERROR_INIT;
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        const double cpu = moesim_profile_cpu_s(p, at[i], 6291456), gpu = moesim_profile_gpu_s(p, at[i], at[i], 6291456);
        ck_assert(isfinite(cpu) && cpu >= 0.0 && isfinite(gpu) && gpu >= 0.0);
    }
    char *text = hw_written(p);
    ck_assert_msg(moesim_profile_parse(text, strlen(text), "t.json", &again, &err) == MOESIM_OK, "%s\n%s", err.text, text);
    free(text);
}

START_TEST(mutations)
{
    static moesim_profile p;
    static char text[HW_TEXT_MAX];
    const char *good = hw_text("", "");
    moesim_rng rng;
    uint64_t accepted = 0;
    moesim_log_set_level(MOESIM_LOG_ERROR);
    moesim_rng_seed(&rng, SEED);
    for (uint32_t i = 0; i < ITERATIONS; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        memcpy(text, good, strlen(good));
        const size_t n = mutate(&rng, text, strlen(good));
        char *copy = malloc(n);         /* the exact size, so that reading beyond it is found */
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, text, n);
        const moesim_code code = moesim_profile_parse(copy, n, "t.json", &p, &err);
        free(copy);
        ck_assert_msg(code == MOESIM_OK || (code == MOESIM_E_FORMAT && strncmp(err.text, "t.json", 6) == 0),
                      "iteration %u: code %d: %s", i, (int)code, err.text);
        if (code == MOESIM_OK) {
            accepted++;
            use(&p);
        }
    }
    ck_assert_uint_gt(accepted, ITERATIONS / 100);      /* the test must also reach what lies behind the parser */
    ck_assert_uint_lt(accepted, ITERATIONS / 2);
}
END_TEST

RUN_TESTS("mutate", mutations)
