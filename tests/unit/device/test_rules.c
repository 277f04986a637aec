/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of use, on every backend: each broken one is named. And configs that no device takes.
 */
#include "tests/unit/device/world.h"

static const uint16_t rows_0_1[] = { 0, 1 }, rows_1_0[] = { 1, 0 }, rows_9[] = { 9 }, rows_0_0[] = { 0, 0 };

static const moesim_device_expert
    good = { 1, 1, 2, rows_0_1 }, no_slot = { W_SLOTS, 1, 1, rows_0_1 }, no_pool = { 1, W_POOL, 1, rows_0_1 },
    empty_slot = { 3, 1, 1, rows_0_1 }, other_expert = { 1, 2, 1, rows_0_1 }, falling = { 1, 1, 2, rows_1_0 },
    twice = { 1, 1, 2, rows_0_0 }, far_row = { 1, 1, 1, rows_9 }, no_tokens = { 1, 1, 0, rows_0_1 },
    many_tokens = { 1, 1, 3, rows_0_1 }, no_rows = { 1, 1, 1, NULL },
    pair[2] = { { 1, 1, 1, rows_0_1 }, { 1, 1, 1, rows_0_1 } };

/* Two rows were gated; slot 1 holds expert 1, slot 3 nothing. */
static const struct { moesim_device_work work; const char *says; } bad[] = {
    { { 3, 0, 0, 0, NULL, NULL, NULL }, "the gate before had another number of rows" },
    { { 2, 1, 0, 0, &no_slot, NULL, NULL }, "event 0, hit 0: slot out of range" },
    { { 2, 0, 1, 0, NULL, &no_slot, NULL }, "event 0, moved expert 0: slot out of range" },
    { { 2, 1, 0, 0, &no_pool, NULL, NULL }, "hit 0: pool index out of range" },
    { { 2, 0, 0, 1, NULL, NULL, &no_pool }, "CPU expert 0: pool index out of range" },
    { { 2, 1, 0, 0, &empty_slot, NULL, NULL }, "reads a slot that was never filled" },
    { { 2, 1, 0, 0, &other_expert, NULL, NULL }, "its slot holds another expert" },
    { { 2, 2, 0, 0, pair, NULL, NULL }, "hit 1: shares its slot with another hit" },
    { { 2, 0, 1, 0, NULL, &falling, NULL }, "moved expert 0: rows are not ascending" },
    { { 2, 0, 0, 1, NULL, NULL, &twice }, "rows are not ascending" },
    { { 2, 0, 0, 1, NULL, NULL, &far_row }, "row out of range" },
    { { 2, 0, 0, 1, NULL, NULL, &no_tokens }, "1 to num_rows tokens" },
    { { 2, 0, 0, 1, NULL, NULL, &many_tokens }, "1 to num_rows tokens" },
    { { 2, 0, 0, 1, NULL, NULL, &no_rows }, "1 to num_rows tokens" },
    { { 2, 0, 1, 0, NULL, NULL, NULL }, "the list is missing" },
};

static void expect(moesim_code code, const moesim_error *err, const char *says)
{
    ck_assert_int_eq(code, MOESIM_E_INTERNAL);
    ck_assert_msg(strstr(err->text, says) != NULL, "'%s' does not say '%s'", err->text, says);
}

START_TEST(broken)
{
    const moesim_device_config config = world_config();
    EACH_BACKEND(ops) {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            struct world w;
            moesim_error err = MOESIM_ERROR_INIT;
            moesim_device_times times;
            if (!world_open(&w, ops, &config))
                break;
            WORKS(ops->fill(w.device, 1, 1, &err));
            WORKS(ops->gate(w.device, 2, &times, &err));
            expect(ops->work(w.device, &bad[i].work, &err), &err, bad[i].says);
            ck_assert_ptr_nonnull(strstr(err.text, ops->name));
            world_close(&w);
        }
    }
}
END_TEST

START_TEST(order)
{
    const moesim_device_config config = world_config();
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_times times;
    const moesim_device_work one = { 2, 1, 0, 0, &good, NULL, NULL };
    EACH_WORLD(&w, ops, &config) {
        expect(ops->work(w.device, &one, &err), &err, "no gate came before");
        expect(ops->fill(w.device, W_SLOTS, 0, &err), &err, "out of range");
        expect(ops->fill(w.device, 0, W_POOL, &err), &err, "outside of the pool");
        expect(ops->gate(w.device, 0, &times, &err), &err, "1 to max_rows");
        expect(ops->gate(w.device, W_ROWS + 1, &times, &err), &err, "1 to max_rows");
        expect(ops->end_pass(w.device, W_ROWS + 1, false, &times, &err), &err, "at most max_rows");
        expect(ops->end_pass(w.device, 0, true, &times, &err), &err, "at least one");
        WORKS(ops->fill(w.device, 1, 1, &err));
        WORKS(ops->gate(w.device, 2, &times, &err));
        WORKS(ops->work(w.device, &one, &err));
        expect(ops->fill(w.device, 1, 1, &err), &err, "while an event is running");
        expect(ops->work(w.device, &one, &err), &err, "no gate came before");
        WORKS(ops->end_pass(w.device, 0, false, &times, &err));
        expect(ops->work(w.device, &one, &err), &err, "no gate came before");
        WORKS(ops->fill(w.device, 1, 1, &err));
    }
}
END_TEST

/* A row has top_k experts and not one more, whatever lists they are in. */
START_TEST(too_many)
{
    moesim_device_config config = world_config();
    config.top_k = 2;
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_times times;
    const moesim_device_expert moved = { 2, 2, 1, rows_0_1 };
    const moesim_device_work fits = { 2, 1, 1, 0, &good, &moved, NULL }, too_much = { 2, 1, 1, 1, &good, &moved, &moved };
    EACH_WORLD(&w, ops, &config) {
        WORKS(ops->fill(w.device, 1, 1, &err));
        WORKS(ops->gate(w.device, 2, &times, &err));
        WORKS(ops->work(w.device, &fits, &err));
        WORKS(ops->gate(w.device, 2, &times, &err));
        expect(ops->work(w.device, &too_much, &err), &err, "CPU expert 0: a row has more than top_k experts");
    }
}
END_TEST

START_TEST(configs)
{
    static const moesim_geometry model = { .name = "m", .hidden = W_HIDDEN, .experts = 8 };
    static const moesim_geometry narrow = { .name = "narrow", .hidden = 64 };
    static const struct { size_t at; uint32_t value; const char *says; } row[] = {
        { offsetof(moesim_device_config, hidden), 0, "hidden size 0 is outside" },
        { offsetof(moesim_device_config, hidden), 100, "multiples of 64" },
        { offsetof(moesim_device_config, intermediate), 96, "multiples of 64" },
        { offsetof(moesim_device_config, intermediate), 1u << 20, "intermediate size 1048576 is outside 64 to 65536; --as" },
        { offsetof(moesim_device_config, max_rows), 0, "rows of an event 0" },
        { offsetof(moesim_device_config, max_rows), 1025, "1 to 1024" },
        { offsetof(moesim_device_config, top_k), 65, "top-k" },
        { offsetof(moesim_device_config, slots), 0, "slots 0" },
        { offsetof(moesim_device_config, pool), 0, "pool of experts 0" },
        { offsetof(moesim_device_config, context), UINT32_MAX, "context" },
        { offsetof(moesim_device_config, cpu.threads), 257, "CPU threads 257" },
    };
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_config c = world_config();
    WORKS(moesim_device_check(&c, &err));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        c = world_config();
        memcpy((char *)&c + row[i].at, &row[i].value, sizeof row[i].value);
        ck_assert_int_eq(moesim_device_check(&c, &err), MOESIM_E_USAGE);
        ck_assert_msg(strstr(err.text, row[i].says) != NULL, "'%s' does not say '%s'", err.text, row[i].says);
    }
    const struct { bool other; const moesim_geometry *geometry; double cap; const char *says; } more[] = {
        { true, NULL, 0, "--other off" }, { true, &model, 0, "attention of model m is not known" },
        { false, &narrow, 0, "model narrow has 64" }, { false, NULL, 1, "bandwidth cap" },
        { false, NULL, -5e9, "bandwidth cap" }, { false, NULL, INFINITY, "bandwidth cap" },
        { false, NULL, NAN, "bandwidth cap" },
    };
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        c = world_config();
        c.other = more[i].other;
        c.geometry = more[i].geometry;
        c.bandwidth_cap = more[i].cap;
        ck_assert_int_eq(moesim_device_check(&c, &err), MOESIM_E_USAGE);
        ck_assert_msg(strstr(err.text, more[i].says) != NULL, "'%s' does not say '%s'", err.text, more[i].says);
    }
}
END_TEST

START_TEST(registry)
{
    const moesim_device_ops *ops = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    size_t n = 0;
    EACH_BACKEND(known) {
        ck_assert_int_eq(moesim_device_find(known->name, &ops, &err), MOESIM_OK);
        ck_assert_ptr_eq(ops, known);
        ck_assert_uint_gt(strlen(known->help), 10);
        n++;
    }
    ck_assert_uint_ge(n, 2);
    ck_assert_int_eq(moesim_device_find("HOST", &ops, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_device_find("hots", &ops, &err), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "did you mean 'host'"));
    ck_assert_int_eq(moesim_device_find("gpu", &ops, &err), MOESIM_E_USAGE);
    char why[256] = "";
    ck_assert_int_eq(moesim_device_find("null", &ops, &err), MOESIM_OK);
    ck_assert(!ops->present(1, why));
    ck_assert_uint_gt(strlen(why), 0);
}
END_TEST

RUN_TESTS("rules", broken, order, too_many, configs, registry)
