/* SPDX-License-Identifier: Apache-2.0
 *
 * Events on every backend: what they compute, slots that are used again, extremes, and closing in the middle.
 */
#include "tests/unit/device/world.h"

/* Random mixes, as a replay has them: a moved expert goes into the slot of a hit that it evicts, into one that was not used,
 * or into a ring of the last two. */
static void random_event(struct world *w, uint32_t content[W_SLOTS])
{
    const uint32_t rows = 1 + moesim_rng_below(&w->rng, W_ROWS);
    bool active[W_POOL] = { false };
    uint32_t ring = 0, then[W_SLOTS];
    world_begin(w, rows);
    memcpy(then, content, sizeof then);
    for (uint32_t s = 0; s + 2 < W_SLOTS; s++)
        if (moesim_rng_below(&w->rng, 3) > 0 && !active[content[s]])
            active[content[s]] = world_add(w, 'h', s, content[s], 1 + moesim_rng_below(&w->rng, 5));
    for (uint32_t p = 0; p < W_POOL; p++) {
        if (active[p] || moesim_rng_below(&w->rng, 3) == 0)
            continue;
        const uint32_t tokens = 1 + moesim_rng_below(&w->rng, 6), s = moesim_rng_below(&w->rng, W_SLOTS - 2);
        if (moesim_rng_below(&w->rng, 2) == 0) {
            world_add(w, 'c', 0, p, tokens);
        } else if (moesim_rng_below(&w->rng, 2) == 0) {
            world_add(w, 'm', W_SLOTS - 2 + ring++ % 2, p, tokens);
        } else if (world_add(w, 'm', s, p, tokens)) {
            then[s] = p;
        }
    }
    memcpy(content, then, sizeof then);
}

START_TEST(mixes)
{
    const moesim_device_config config = world_config();
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    EACH_WORLD(&w, ops, &config) {
        world_reference(&w);
        uint32_t content[W_SLOTS];
        for (uint32_t s = 0; s < W_SLOTS; s++) {
            content[s] = (3 * s + 1) % W_POOL;
            WORKS(ops->fill(w.device, s, content[s], &err));
        }
        for (int i = 0; i < 150; i++) {
            random_event(&w, content);
            world_run(&w);
        }
    }
}
END_TEST

/* The next gate ends an event as the end of the pass does; and a gate may follow a gate. */
START_TEST(chained)
{
    const moesim_device_config config = world_config();
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_times times;
    EACH_WORLD(&w, ops, &config) {
        world_reference(&w);
        WORKS(ops->gate(w.device, 3, &times, &err));
        for (uint32_t i = 0; i < 40; i++) {
            const uint64_t before = times.gate;
            world_begin(&w, W_ROWS);
            world_add(&w, 'm', i % 3, i % W_POOL, 4);
            world_add(&w, 'c', 0, (i + 1) % W_POOL, 3);
            WORKS(ops->gate(w.device, W_ROWS, &times, &err));
            WORKS(ops->work(w.device, &w.work, &err));
            WORKS(ops->gate(w.device, 1, &times, &err));
            ck_assert_uint_gt(times.gate, before);
            world_check(&w);
        }
    }
}
END_TEST

/* One slot for everything: each copy must wait until its slot's last reader is done, and each reader for its copy. */
START_TEST(one_slot)
{
    moesim_device_config config = world_config();
    config.slots = 1;
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    EACH_WORLD(&w, ops, &config) {
        world_reference(&w);
        WORKS(ops->fill(w.device, 0, 0, &err));
        for (uint32_t i = 0, held = 0; i < 30; i++) {
            world_begin(&w, W_ROWS);
            world_add(&w, 'h', 0, held, W_ROWS);
            for (uint32_t k = 1; k < 6; k++)
                world_add(&w, 'm', 0, held = (held + k) % W_POOL, 3 * k);
            held = w.moved[w.work.n_moved - 1].pool;
            world_run(&w);
        }
    }
}
END_TEST

/* Nothing to do, and one kind alone. */
START_TEST(extremes)
{
    static const char *const kinds[] = { "", "h", "m", "c", "hhh", "mmm", "ccc", "hc", "mc", "cm", "" };
    const moesim_device_config config = world_config();
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    EACH_WORLD(&w, ops, &config) {
        world_reference(&w);
        for (uint32_t s = 0; s < W_SLOTS; s++)
            WORKS(ops->fill(w.device, s, s, &err));
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            world_begin(&w, 1);
            for (uint32_t k = 0; kinds[i][k] != '\0'; k++)
                world_add(&w, kinds[i][k], k, k, 1);
            world_run(&w);
            for (uint32_t k = 0; k < w.work.n_moved; k++)
                WORKS(ops->fill(w.device, w.moved[k].slot, w.moved[k].slot, &err));
        }
    }
}
END_TEST

/* An event that writes fewer routes than the one before leaves poison behind, or refuses to show it. */
START_TEST(poison)
{
    const moesim_device_config config = world_config();
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    EACH_WORLD(&w, ops, &config) {
        world_reference(&w);
        world_begin(&w, W_ROWS);
        for (uint32_t k = 0; k < 4; k++) {
            world_add(&w, 'm', k, k, W_ROWS);
            world_add(&w, 'c', 0, 5 + k, W_ROWS);
        }
        const uint32_t many = w.routes;
        world_run(&w);
        world_begin(&w, W_ROWS);
        world_add(&w, 'c', 0, 9, 2);
        world_add(&w, 'h', 1, 1, 2);
        world_run(&w);
        ck_assert_uint_lt(w.routes, many);
        if (ops->outputs(w.device, w.out, many, &err) == MOESIM_OK)
            ck_assert(device_untouched(w.out, (size_t)w.routes * W_HIDDEN, (size_t)many * W_HIDDEN));
        else
            ck_assert_int_eq(err.code, MOESIM_E_INTERNAL);
    }
}
END_TEST

/* As many rows as a prefill may have, all of them on one expert of each kind. */
START_TEST(prefill)
{
    enum { ROWS = 1024 };
    static uint16_t x[ROWS * W_HIDDEN], row[ROWS];
    static float out[3 * ROWS * W_HIDDEN];
    static double want[ROWS * W_HIDDEN];
    moesim_device_config config = world_config();
    config.max_rows = ROWS;
    config.top_k = 3;
    for (uint16_t i = 0; i < ROWS; i++)
        row[i] = i;
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_times times;
    EACH_WORLD(&w, ops, &config) {
        const moesim_device_expert hit = { 2, 7, ROWS, row }, moved = { 2, 1, ROWS, row }, cpu = { 0, 4, ROWS, row };
        const moesim_device_work work = { ROWS, 1, 1, 1, &hit, &moved, &cpu };
        WORKS(ops->fill(w.device, 2, 7, &err));
        WORKS(ops->gate(w.device, ROWS, &times, &err));
        WORKS(ops->work(w.device, &work, &err));
        WORKS(ops->gate(w.device, 1, &times, &err));
        WORKS(ops->outputs(w.device, out, 3 * ROWS, &err));
        WORKS(ops->inputs(w.device, x, ROWS, &err));
        for (uint32_t k = 0; w.computes && k < 3; k++) {
            const uint32_t pool = k == 0 ? hit.pool : k == 1 ? moved.pool : cpu.pool;
            moesim_cpu_reference(ops->weights(w.device, pool), W_HIDDEN, W_INTERMEDIATE, x, row, ROWS, want);
            ck_assert_double_lt(device_error(out + k * ROWS * (size_t)W_HIDDEN, want, ROWS, W_HIDDEN), W_TOLERANCE);
        }
    }
}
END_TEST

START_TEST(closing)
{
    const moesim_device_config config = world_config();
    EACH_BACKEND(ops) {
        for (uint32_t i = 0; i < 20; i++) {
            struct world w;
            moesim_error err = MOESIM_ERROR_INIT;
            moesim_device_times times;
            if (!world_open(&w, ops, &config))
                break;
            world_begin(&w, W_ROWS);
            for (uint32_t k = 0; k < 2 + i % 5; k++)
                world_add(&w, i % 3 == 0 ? 'c' : 'm', k, k, W_ROWS);
            WORKS(ops->gate(w.device, W_ROWS, &times, &err));
            WORKS(ops->work(w.device, &w.work, &err));
            world_close(&w);
            ops->close(&w.device);
        }
    }
}
END_TEST

/* A slower link cannot be faster than it says. */
START_TEST(cap)
{
    const double rate = 100e6, expert = 3.0 * W_HIDDEN * W_INTERMEDIATE * 2;
    moesim_device_config config = world_config();
    config.bandwidth_cap = 2 * rate;
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_times first, times;
    EACH_WORLD(&w, ops, &config) {
        world_reference(&w);
        for (int half = 1; half >= 0; half--) {
            world_begin(&w, W_ROWS);
            for (uint32_t k = 0; k < 5; k++)
                world_add(&w, 'm', k, k, 2);
            WORKS(ops->gate(w.device, W_ROWS, &first, &err));
            WORKS(ops->work(w.device, &w.work, &err));
            WORKS(ops->gate(w.device, 1, &times, &err));
            world_check(&w);
            if (w.computes)
                ck_assert_double_gt((double)(times.gate - first.gate) * 1e-9, 0.8 * 5 * expert / (half ? 2 * rate : rate));
            WORKS(ops->set_cap(w.device, rate, &err));
        }
        ck_assert_int_eq(ops->set_cap(w.device, -1.0, &err), MOESIM_E_USAGE);
        WORKS(ops->set_cap(w.device, 0.0, &err));
    }
}
END_TEST

RUN_TESTS("events", mixes, chained, one_slot, extremes, poison, prefill, closing, cap)
