/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring functions, facts and limits of memory, on every backend. Whether a time is right is for benchmarks; here it is
 * positive, and what is asked wrongly is refused.
 */
#include "hwprofile/cgroup.h"
#include "hwprofile/device_memory.h"
#include "tests/unit/device/world.h"

static const moesim_geometry tiny = { .name = "tiny", .layers = 2, .moe_layers = 2, .experts = W_POOL, .top_k = W_TOP_K,
                                      .hidden = W_HIDDEN, .intermediate = W_INTERMEDIATE, .shared_experts = 1, .heads = 4,
                                      .kv_heads = 2, .head_dim = 64, .vocab = 1000 };

static moesim_device_config tiny_config(void)
{
    moesim_device_config config = world_config();
    config.other = true;
    config.geometry = &tiny;
    config.context = 100;
    return config;
}

START_TEST(times)
{
    static const size_t bytes[] = { 1, 4096, 100000, 4u << 20 };
    const moesim_device_config config = tiny_config();
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    double s = 0, t = 0;
    EACH_WORLD(&w, ops, &config) {
        for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
            for (uint32_t streams = 1; streams <= 2; streams++) {
                WORKS(ops->time_copy(w.device, bytes[i], streams == 1, streams, 3, &s, &err));
                ck_assert_double_gt(s, 0);
            }
        WORKS(ops->time_return(w.device, 4096, 5, &s, &t, &err));
        ck_assert(s > 0 && t > 0);
        WORKS(ops->time_grouped(w.device, W_SLOTS, 3, 4, &s, &err));
        ck_assert_double_gt(s, 0);
        WORKS(ops->time_other(w.device, 5, 2, &s, &t, &err));
        ck_assert(s > 0 && t >= 0);
        WORKS(ops->time_head(w.device, 5, 2, &s, &err));
        ck_assert_double_gt(s, 0);
        WORKS(ops->time_empty(w.device, 5, 20, &s, &err));
        ck_assert_double_gt(s, 0);
    }
}
END_TEST

START_TEST(load)
{
    const moesim_device_config config = tiny_config();
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    EACH_WORLD(&w, ops, &config) {
        uint64_t bytes = 0;
        double s = 0;
        ck_assert_int_eq(ops->load_end(w.device, &bytes, &s, &err), MOESIM_E_INTERNAL);
        world_close(&w);
        world_open(&w, ops, &config);
        for (useconds_t wait = 3000; bytes == 0 && wait < 20000000; wait *= 4) {       /* a busy machine begins late */
            WORKS(ops->load_begin(w.device, 1u << 20, &err));
            usleep(wait);
            WORKS(ops->load_end(w.device, &bytes, &s, &err));
        }
        ck_assert_uint_ge(bytes, 1u << 20);
        ck_assert_uint_eq(bytes % (1u << 20), 0);
        ck_assert_double_gt(s, 0);
        WORKS(ops->load_begin(w.device, 5000, &err));       /* closing ends it too */
    }
}
END_TEST

/* Events are as right after measurements as before, slots filled anew; and with `other` before each gate. */
START_TEST(afterwards)
{
    const moesim_device_config config = tiny_config();
    struct world w;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_times end;
    double s;
    EACH_WORLD(&w, ops, &config) {
        world_reference(&w);
        WORKS(ops->time_grouped(w.device, 3, 3, 2, &s, &err));
        WORKS(ops->time_empty(w.device, 2, 3, &s, &err));
        for (uint32_t k = 0; k < W_SLOTS; k++)
            WORKS(ops->fill(w.device, k, k, &err));
        for (uint32_t i = 0; i < 4; i++) {
            world_begin(&w, W_ROWS);
            world_add(&w, 'h', i, i, 9);
            world_add(&w, 'm', 9, 10, 9);
            world_add(&w, 'c', 0, 11, 9);
            world_run(&w);
            WORKS(ops->end_pass(w.device, W_ROWS, true, &end, &err));
        }
    }
}
END_TEST

START_TEST(facts)
{
    const moesim_device_config config = world_config();
    struct world w;
    moesim_device_fact fact;
    EACH_WORLD(&w, ops, &config) {
        size_t n = 0;
        for (; ops->fact(w.device, n, &fact); n++) {
            ck_assert_uint_gt(strlen(fact.key), 0);
            ck_assert_uint_gt(strlen(fact.value), 0);
        }
        ck_assert_uint_ge(n, 3);
        ck_assert(!ops->fact(w.device, n + 1, &fact));
        ck_assert_ptr_null(w.computes ? ops->weights(w.device, W_POOL) : NULL);
        ck_assert_int_eq(ops->cpu(w.device) != NULL, w.computes);
    }
}
END_TEST

/* Too much is refused before it is taken, with what is needed and how to ask for less. */
START_TEST(too_large)
{
    static const struct { uint32_t slots, pool; uint64_t memory, host; const char *says; } row[] = {
        { W_SLOTS, 1u << 24, 0, 0, "--host-pool" },
        { 1u << 20, W_POOL, 1000000, 0, "--cache" },
        { W_SLOTS, W_POOL, 0, 1000000, "--host-pool" },
    };
    EACH_BACKEND(ops) {
        char why[256];
        for (size_t i = 0; ops->present(0, why) && i < sizeof row / sizeof row[0]; i++) {
            moesim_device_config config = world_config();
            moesim_error err = MOESIM_ERROR_INIT;
            moesim_device *device = NULL;
            config.slots = row[i].slots;
            config.pool = row[i].pool;
            config.memory_limit = row[i].memory;
            config.host_limit = row[i].host;
            const moesim_code code = ops->open(&config, &device, &err);
            if (code == MOESIM_OK) {     /* it takes no memory for experts */
                ck_assert_ptr_null(ops->weights(device, 0));
                ops->close(&device);
                continue;
            }
            ck_assert_int_eq(code, MOESIM_E_LIMIT);
            ck_assert_msg(strstr(err.text, row[i].says) != NULL && strstr(err.text, "needs") != NULL, "%s", err.text);
        }
    }
}
END_TEST

START_TEST(memory)
{
    const uint64_t gib = 1ull << 30;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_uint_gt(moesim_host_memory_free(), 0);
    ck_assert_uint_eq(moesim_memory_allowed(0, 10 * gib), 9 * gib);
    ck_assert_uint_eq(moesim_memory_allowed(0, 100 * gib), 95 * gib);
    ck_assert_uint_eq(moesim_memory_allowed(gib, 100 * gib), gib);
    ck_assert_uint_eq(moesim_memory_allowed(99 * gib, 100 * gib), 95 * gib);
    ck_assert_uint_eq(moesim_memory_allowed(0, gib / 2), 0);
    ck_assert_int_eq(moesim_memory_check("GPU memory", "it", 5, 5, "buy more", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_memory_check("GPU memory", "it", 6000000000, 5000000000, "buy more", &err), MOESIM_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "GPU memory: it needs 6.00 GB, 5.00 GB may be used"));
    ck_assert_ptr_nonnull(strstr(err.text, "buy more"));
}
END_TEST

/* Groups of cpuset say nothing of the quota of cpu. */
START_TEST(controllers)
{
    ck_assert(moesim_cgroup_lists("cpu", "cpu"));
    ck_assert(moesim_cgroup_lists("cpu,cpuacct", "cpu"));
    ck_assert(moesim_cgroup_lists("cpuacct,cpu", "cpu"));
    ck_assert(moesim_cgroup_lists("net_cls,memory,pids", "memory"));
    ck_assert(!moesim_cgroup_lists("cpuset", "cpu"));
    ck_assert(!moesim_cgroup_lists("cpuset,cpuacct", "cpu"));
    ck_assert(!moesim_cgroup_lists("name=memory", "memory"));
    ck_assert(!moesim_cgroup_lists("", "cpu"));
}
END_TEST

/* The pool is the same however it is filled, no two of its experts are alike, and nothing in it is out of scale. */
START_TEST(pool)
{
    enum { WEIGHTS = 3 * W_HIDDEN * W_INTERMEDIATE, N = 5 };
    static uint16_t a[N][WEIGHTS], b[N][WEIGHTS];
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_cpu_team *team = NULL;
    const moesim_cpu_config config = { .threads = 3 };
    WORKS(moesim_cpu_team_create(&config, W_HIDDEN, W_INTERMEDIATE, 1, &team, &err));
    moesim_pool_fill(a[0], 0, N, W_HIDDEN, W_INTERMEDIATE, 11, NULL);
    moesim_pool_fill(b[0], 0, 2, W_HIDDEN, W_INTERMEDIATE, 11, team);
    moesim_pool_fill(b[2], 2, N - 2, W_HIDDEN, W_INTERMEDIATE, 11, team);
    ck_assert_mem_eq(a, b, sizeof a);
    moesim_pool_fill(b[0], 0, N, W_HIDDEN, W_INTERMEDIATE, 12, team);
    for (uint32_t e = 0; e < N; e++)
        ck_assert_mem_ne(a[e], b[e], sizeof a[e]);
    for (uint32_t e = 1; e < N; e++)
        ck_assert_mem_ne(a[0], a[e], sizeof a[e]);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < 2 * WEIGHTS / 3; i++) {
        const double v = (double)moesim_bf16_to_float(a[3][i]);
        sum += v;
        squares += v * v;
    }
    const double n = 2 * WEIGHTS / 3, k = W_HIDDEN;          /* uniform in ±3/√k: variance 3/k */
    ck_assert_double_eq_tol(sum / n, 0.0, 5 * sqrt(3 / k / n));
    ck_assert_double_eq_tol(squares / n * k / 3, 1.0, 0.02);
    moesim_cpu_team_destroy(&team);
}
END_TEST

/* Every bf16 survives the way to float and back, and midpoints go to the even neighbour. */
START_TEST(bf16)
{
    uint32_t wrong = 0;
    for (uint32_t v = 0; v < 65536; v++) {
        const float f = moesim_bf16_to_float((uint16_t)v);
        const uint16_t back = moesim_bf16_from_float(f);
        wrong += (isnan(f) ? !isnan(moesim_bf16_to_float(back)) : back != v) ? 1 : 0;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(moesim_bf16_from_float(1.0f), 0x3f80);
    ck_assert_uint_eq(moesim_bf16_from_float(1.00390625f), 0x3f80);      /* 1 + 2^-8: half-way, 0x3f80 is even */
    ck_assert_uint_eq(moesim_bf16_from_float(1.01171875f), 0x3f82);      /* 1 + 3·2^-8 */
    ck_assert_uint_eq(moesim_bf16_from_float(1.00391f), 0x3f81);
    ck_assert_uint_eq(moesim_bf16_from_float(3.4e38f), 0x7f80);
    ck_assert_uint_eq(moesim_bf16_from_float(-1e-45f), 0x8000);
}
END_TEST

RUN_TESTS("measure", times, load, afterwards, facts, too_large, memory, controllers, pool, bf16)
