/* SPDX-License-Identifier: Apache-2.0
 *
 * CPU experts against the double-precision reference, for every instruction set that this CPU has.
 */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/cpu_expert.h"
#include "hwprofile/device_memory.h"
#include "tests/unit/device/device.h"

enum { HIDDEN = 256, INTERMEDIATE = 64, ROWS = 200, EXPERTS = 3 };

static uint16_t weights[EXPERTS][3 * HIDDEN * INTERMEDIATE];
static uint16_t x[ROWS][HIDDEN];
static double all_rows[EXPERTS][ROWS][HIDDEN];       /* what each row gives */

static void fill_all(void)
{
    uint16_t row[ROWS];
    for (uint16_t i = 0; i < ROWS; i++)
        row[i] = i;
    moesim_pool_fill(weights[0], 0, EXPERTS, HIDDEN, INTERMEDIATE, 7, NULL);
    moesim_inputs_fill(x[0], ROWS, HIDDEN, 7);
    for (uint32_t e = 0; e < EXPERTS; e++)
        moesim_cpu_reference(weights[e], HIDDEN, INTERMEDIATE, x[0], row, ROWS, all_rows[e][0]);
}

static moesim_cpu_team *team_of(const char *isa, uint32_t threads, uint32_t hidden, uint32_t intermediate, uint32_t max_tokens)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_cpu_team *team = NULL;
    const moesim_cpu_config config = { .threads = threads, .isa = isa };
    ck_assert_msg(moesim_cpu_team_create(&config, hidden, intermediate, max_tokens, &team, &err) == MOESIM_OK, "%s", err.text);
    return team;
}

/* Rows of an expert: every third, so that they are not the first ones. */
static void spread_rows(uint16_t row[], uint32_t tokens)
{
    for (uint32_t t = 0; t < tokens; t++)
        row[t] = (uint16_t)(tokens <= ROWS / 3 ? 3 * t + 1 : t);
}

static void compare(moesim_cpu_team *team, uint32_t tokens)
{
    uint16_t row[ROWS];
    static float y[EXPERTS][ROWS * HIDDEN];
    static double want[ROWS][HIDDEN];
    moesim_cpu_job job[EXPERTS];
    spread_rows(row, tokens);
    memset(y, 0xff, sizeof y);
    for (uint32_t e = 0; e < EXPERTS; e++)
        job[e] = (moesim_cpu_job){ weights[e], row, tokens, y[e] };
    moesim_cpu_team_start(team, job, EXPERTS, x[0]);
    moesim_cpu_team_wait(team);
    for (uint32_t e = 0; e < EXPERTS; e++) {
        for (uint32_t t = 0; t < tokens; t++)
            memcpy(want[t], all_rows[e][row[t]], sizeof want[t]);
        const double error = device_error(y[e], want[0], tokens, HIDDEN);
        ck_assert_msg(error < 1e-3, "%s, %u threads, %u tokens: relative error %g", moesim_cpu_team_isa(team),
                      moesim_cpu_team_threads(team), tokens, error);
        ck_assert(device_untouched(y[e], (size_t)tokens * HIDDEN, (size_t)ROWS * HIDDEN));
    }
}

START_TEST(reference)
{
    static const uint32_t threads[] = { 1, 2, 3, 7 };
    fill_all();
    for (const char *const *isa = moesim_cpu_isas(); *isa != NULL; isa++)
        for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
            moesim_cpu_team *team = team_of(*isa, threads[i], HIDDEN, INTERMEDIATE, ROWS);
            ck_assert_str_eq(moesim_cpu_team_isa(team), *isa);
            ck_assert_uint_eq(moesim_cpu_team_threads(team), threads[i]);
            for (uint32_t tokens = 1; tokens <= (threads[i] == 2 ? 64 : 9); tokens++)
                compare(team, tokens);
            compare(team, 65);
            compare(team, ROWS);
            moesim_cpu_team_destroy(&team);
            ck_assert_ptr_null(team);
        }
}
END_TEST

/* The outputs of one expert whose rows all differ from those of its neighbours, as bytes. */
START_TEST(same_bytes)
{
    enum { TOKENS = 70, TAIL = 5 };          /* fewer may be multiplied otherwise: least of moesim_cpu_tiles */
    static const uint32_t threads[] = { 1, 2, 3, 5, 16 };
    static float first[TOKENS * HIDDEN], y[TOKENS * HIDDEN], alone[TAIL * HIDDEN];
    uint16_t row[ROWS];
    fill_all();
    spread_rows(row, TOKENS);
    for (const char *const *isa = moesim_cpu_isas(); *isa != NULL; isa++)
        for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
            moesim_cpu_team *team = team_of(*isa, threads[i], HIDDEN, INTERMEDIATE, TOKENS);
            const moesim_cpu_job job = { weights[1], row, TOKENS, i == 0 ? first : y };
            moesim_cpu_team_start(team, &job, 1, x[0]);
            moesim_cpu_team_wait(team);
            if (i > 0)
                ck_assert_mem_eq(first, y, sizeof y);
            const moesim_cpu_job last = { weights[1], &row[TOKENS - TAIL], TAIL, alone };   /* nor who goes along */
            moesim_cpu_team_start(team, &last, 1, x[0]);
            moesim_cpu_team_wait(team);
            ck_assert_mem_eq(alone, &first[(TOKENS - TAIL) * HIDDEN], sizeof alone);
            moesim_cpu_team_destroy(&team);
        }
}
END_TEST

/* Narrow and wide matrices, so that a range is shorter than a chunk and than the number of threads. */
START_TEST(shapes)
{
    static const uint32_t size[][2] = { { 64, 64 }, { 64, 1024 }, { 1024, 64 }, { 320, 192 } };
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++) {
        const uint32_t hidden = size[s][0], intermediate = size[s][1];
        uint16_t *w = malloc(3 * (size_t)hidden * intermediate * sizeof *w), in[1024];
        float y[1024];
        double want[1024];
        const uint16_t row = 0;
        moesim_pool_fill(w, 3, 1, hidden, intermediate, 9, NULL);
        moesim_inputs_fill(in, 1, hidden, 9);
        moesim_cpu_reference(w, hidden, intermediate, in, &row, 1, want);
        for (const char *const *isa = moesim_cpu_isas(); *isa != NULL; isa++) {
            moesim_cpu_team *team = team_of(*isa, 40, hidden, intermediate, 1);
            const moesim_cpu_job job = { w, &row, 1, y };
            moesim_cpu_team_start(team, &job, 1, in);
            moesim_cpu_team_wait(team);
            ck_assert_double_lt(device_error(y, want, 1, hidden), 1e-3);
            moesim_cpu_team_destroy(&team);
        }
        free(w);
    }
}
END_TEST

/* One expert of all rows, for many numbers of tokens, with the instruction set against the reference. */
static void check_tokens(const char *isa, uint32_t threads, uint32_t hidden, uint32_t intermediate)
{
    static const uint32_t counts[] = { 1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97 };
    enum { MOST = 97 };
    uint16_t *w = malloc(3 * (size_t)hidden * intermediate * sizeof *w), *in = malloc((size_t)MOST * hidden * sizeof *in);
    float *y = malloc((size_t)MOST * hidden * sizeof *y);
    double *want = malloc((size_t)MOST * hidden * sizeof *want);
    uint16_t row[MOST];
    for (uint16_t i = 0; i < MOST; i++)
        row[i] = (uint16_t)(MOST - 1 - i);
    moesim_pool_fill(w, 5, 1, hidden, intermediate, 3, NULL);
    moesim_inputs_fill(in, MOST, hidden, 3);
    moesim_cpu_reference(w, hidden, intermediate, in, row, MOST, want);
    moesim_cpu_team *team = team_of(isa, threads, hidden, intermediate, MOST);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const moesim_cpu_job job = { w, row, counts[i], y };
        memset(y, 0xff, (size_t)MOST * hidden * sizeof *y);
        moesim_cpu_team_start(team, &job, 1, in);
        moesim_cpu_team_wait(team);
        const double error = device_error(y, want, counts[i], hidden);
        ck_assert_msg(error < 1e-3, "%s, %u threads, %u x %u, %u tokens: relative error %g", isa, threads, hidden, intermediate,
                      counts[i], error);
        ck_assert(device_untouched(y, (size_t)counts[i] * hidden, (size_t)MOST * hidden));
    }
    moesim_cpu_team_destroy(&team);
    free(w);
    free(in);
    free(y);
    free(want);
}

/* Tiles: ends of 16 and 32 rows and tokens that are no full ones. */
START_TEST(tiles)
{
    bool there = false;
    for (const char *const *isa = moesim_cpu_isas(); *isa != NULL; isa++)
        there = there || strcmp(*isa, "amx") == 0;
    if (!there) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_cpu_team *team = NULL;
        const moesim_cpu_config config = { .isa = "amx" };
        ck_assert_int_eq(moesim_cpu_team_create(&config, HIDDEN, INTERMEDIATE, 1, &team, &err), MOESIM_E_USAGE);
        ck_assert_msg(strstr(err.text, "no instruction set 'amx'") != NULL, "%s", err.text);
        fprintf(stderr, "skipped: amx: this CPU, its system or this build has none\n");
        return;
    }
    check_tokens("amx", 1, 320, 192);
    check_tokens("amx", 3, 192, 320);
    check_tokens("amx", 7, 448, 64);
    check_tokens("amx", 12, 64, 448);
}
END_TEST

/* Without a name the last of the list. */
START_TEST(default_isa)
{
    const char *const *isa = moesim_cpu_isas();
    while (isa[1] != NULL)
        isa++;
    moesim_cpu_team *team = team_of(NULL, 1, HIDDEN, INTERMEDIATE, 1);
    ck_assert_str_eq(moesim_cpu_team_isa(team), *isa);
    moesim_cpu_team_destroy(&team);
}
END_TEST

/* Many starts, with pauses long enough for the threads to fall asleep, and none at all. */
START_TEST(starts)
{
    fill_all();
    moesim_cpu_team *team = team_of(NULL, 3, HIDDEN, INTERMEDIATE, 8);
    ck_assert_uint_eq(moesim_cpu_team_wait(team), 0);
    for (int i = 0; i < 300; i++) {
        uint16_t row[2] = { 5, 6 };
        float y[2][2 * HIDDEN];
        const moesim_cpu_job job[] = { { weights[0], row, 2, y[0] }, { weights[1], row, 1, y[1] } };
        moesim_cpu_team_start(team, job, (uint32_t)i % 3, x[0]);
        moesim_cpu_team_wait(team);
        ck_assert(moesim_cpu_team_done(team));
        for (uint32_t j = 0; j < (uint32_t)i % 3; j++)
            ck_assert_double_lt(device_error(job[j].y, all_rows[j][5], job[j].tokens, HIDDEN), 1e-3);
        if (i % 50 == 0)
            usleep(2000);
    }
    moesim_cpu_team_destroy(&team);
    moesim_cpu_team_destroy(&team);
}
END_TEST

static void count_call(void *context, uint32_t thread, uint32_t threads)
{
    ((uint32_t *)context)[thread] += threads;
}

START_TEST(helpers)
{
    uint32_t calls[5] = { 0 };
    moesim_cpu_team *team = team_of("plain", 5, HIDDEN, INTERMEDIATE, 8);
    moesim_cpu_team_run(team, count_call, calls);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(calls[i], 5);
    const size_t bytes = 1u << 20;
    void *data = moesim_host_alloc(bytes);
    memset(data, 1, bytes);
    ck_assert_double_gt(moesim_cpu_team_read(team, data, bytes), 0);
    ck_assert_double_gt(moesim_cpu_team_read(team, (char *)data + 3, bytes - 100), 0);
    ck_assert_double_eq(moesim_cpu_team_read(team, (char *)data + 3, 63), 0);
    moesim_host_free(data, bytes);
    moesim_cpu_team_destroy(&team);
    for (uint32_t threads = 1; threads < 70; threads++) {
        uint32_t begin, end, at = 0;
        for (uint32_t t = 0; t < threads; t++, at = end) {
            moesim_cpu_team_share(192, t, threads, &begin, &end);
            ck_assert_uint_eq(begin, at);
            ck_assert_uint_ge(end, begin);
        }
        ck_assert_uint_eq(at, 192);
    }
}
END_TEST

/* What a caller gets wrong, and the words it is told. */
START_TEST(refusals)
{
    static const struct { moesim_cpu_config config; uint32_t hidden, tokens; const char *says; } row[] = {
        { { .isa = "neon512" }, HIDDEN, 1, "no instruction set 'neon512'" },
        { { .threads = 257 }, HIDDEN, 1, "more than 256" },
        { { .cpus = "0-" }, HIDDEN, 1, "no list of CPUs" },
        { { .cpus = "" }, HIDDEN, 1, "no list of CPUs" },
        { { .cpus = "3-1" }, HIDDEN, 1, "no list of CPUs" },
        { { .cpus = "0,99999" }, HIDDEN, 1, "no list of CPUs" },
        { { .cpus = "0,1023" }, HIDDEN, 1, "not all CPUs of '0,1023' are ours" },
        { { .threads = 1 }, 100, 1, "multiples of 64" },
        { { .threads = 1 }, HIDDEN, 0, "at least one" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_cpu_team *team = NULL;
        ck_assert_int_eq(moesim_cpu_team_create(&row[i].config, row[i].hidden, INTERMEDIATE, row[i].tokens, &team, &err),
                         MOESIM_E_USAGE);
        ck_assert_msg(strstr(err.text, row[i].says) != NULL, "'%s' does not say '%s'", err.text, row[i].says);
        ck_assert_ptr_null(team);
    }
}
END_TEST

START_TEST(places)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &set))
        first++;
    char text[32];
    snprintf(text, sizeof text, "%zu", first);
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_cpu_team *team = NULL;
    moesim_cpu_config config = { .cpus = text };
    ck_assert_int_eq(moesim_cpu_team_create(&config, HIDDEN, INTERMEDIATE, 1, &team, &err), MOESIM_OK);
    ck_assert_uint_eq(moesim_cpu_team_threads(team), 1);
    ck_assert_str_eq(moesim_cpu_team_cpus(team), text);
    moesim_cpu_team_destroy(&team);
    config.cpus = "none";
    ck_assert_int_eq(moesim_cpu_team_create(&config, HIDDEN, INTERMEDIATE, 1, &team, &err), MOESIM_OK);
    ck_assert_str_eq(moesim_cpu_team_cpus(team), "not pinned");
    ck_assert_uint_ge(moesim_cpu_team_threads(team), 1);
    ck_assert_uint_le(moesim_cpu_team_threads(team), (uint32_t)CPU_COUNT(&set));
    moesim_cpu_team_destroy(&team);
}
END_TEST

RUN_TESTS("kernel", reference, same_bytes, shapes, tiles, default_isa, starts, helpers, refusals, places)
