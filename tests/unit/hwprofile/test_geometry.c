/* SPDX-License-Identifier: Apache-2.0
 *
 * Geometries: bytes of experts as published, the rest by hand, names.
 */
#include <check.h>

#include "hwprofile/geometry.h"
#include "tests/unit/base/runner.h"

static const moesim_geometry *find(const char *name)
{
    const moesim_geometry *g = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_msg(moesim_geometry_find(name, &g, &err) == MOESIM_OK, "%s", err.text);
    return g;
}

START_TEST(experts)
{
    static const struct { const char *name; uint32_t moe_layers, experts, top_k; uint64_t bf16, fp8, int4; } row[] = {
        { "llada2.0-mini", 19, 256, 8, 6291456, 3145728, 1572864 },
        { "llada2.0-flash", 31, 256, 8, 25165824, 12582912, 6291456 },
        { "llada-moe-7b-a1b", 16, 64, 8, 12582912, 6291456, 3145728 },
        { "sdar-30b-a3b-chat", 48, 128, 8, 9437184, 4718592, 2359296 },
        { "rnd1-base-0910", 48, 128, 8, 9437184, 4718592, 2359296 },
        { "qwen3-30b-a3b", 48, 128, 8, 9437184, 4718592, 2359296 },
        { "qwen3-235b-a22b", 94, 128, 8, 37748736, 18874368, 9437184 },
        { "deepseek-v2-lite", 26, 64, 6, 17301504, 8650752, 4325376 },
        { "deepseek-v3", 58, 256, 8, 88080384, 44040192, 22020096 },
        { "mixtral-8x7b", 32, 8, 2, 352321536, 176160768, 88080384 },
        { "olmoe-1b-7b", 16, 64, 8, 12582912, 6291456, 3145728 },
        { "gpt-oss-20b", 24, 32, 4, 49766400, 24883200, 12441600 },
        { "gpt-oss-120b", 36, 128, 4, 49766400, 24883200, 12441600 },
        { "glm-4.5-air", 45, 128, 8, 34603008, 17301504, 8650752 },
        { "kimi-k2", 60, 384, 8, 88080384, 44040192, 22020096 },
    };
    const size_t n = sizeof row / sizeof row[0];
    size_t models = 0;
    for (size_t i = 0; i < n; i++) {
        const moesim_geometry *g = find(row[i].name);
        ck_assert_uint_eq(g->moe_layers, row[i].moe_layers);
        ck_assert_uint_eq(g->experts, row[i].experts);
        ck_assert_uint_eq(g->top_k, row[i].top_k);
        ck_assert_uint_eq(moesim_geometry_expert_bytes(g, MOESIM_BF16), row[i].bf16);
        ck_assert_uint_eq(moesim_geometry_expert_bytes(g, MOESIM_FP8), row[i].fp8);
        ck_assert_uint_eq(moesim_geometry_expert_bytes(g, MOESIM_INT4), row[i].int4);
    }
    while (moesim_geometries[models].name != NULL)
        models++;
    ck_assert_uint_eq(models, n);
    ck_assert_uint_eq(moesim_geometry_expert_bytes(find("gpt-oss-120b"), MOESIM_MXFP4), 13219200);
}
END_TEST

/* llada2.0-mini by hand: attention 20 x 2 x 2048 x 128 x (16 + 4) = 209,715,200; shared 19 x 3 x 2048 x 512 = 59,768,832;
 * dense 3 x 2048 x 5120 = 31,457,280; router 19 x 2048 x 256 = 9,961,472; embeddings 2 x 2048 x 157,184 = 643,825,664. */
START_TEST(resident)
{
    const moesim_geometry *mini = find("llada2.0-mini");
    const uint64_t linear = 209715200 + 59768832 + 31457280, rest = 9961472 + 643825664;
    ck_assert_uint_eq(moesim_geometry_resident_bytes(mini, MOESIM_BF16), 2 * (linear + rest));
    ck_assert_uint_eq(moesim_geometry_resident_bytes(mini, MOESIM_FP8), linear + 2 * rest);
    ck_assert_uint_eq(moesim_geometry_resident_bytes(mini, MOESIM_INT4), linear / 2 + 2 * rest);
    ck_assert_uint_eq(moesim_geometry_resident_bytes(mini, MOESIM_MXFP4), 2 * (linear + rest));
    ck_assert_uint_eq(moesim_geometry_kv_bytes(mini), 40960);                       /* 20 x 2 x 4 x 128 x 2 */
    ck_assert_uint_eq(moesim_geometry_kv_bytes(find("llada2.0-flash")), 65536);
}
END_TEST

/* Everything together is the size that the model's name states, in 10^9 weights. */
START_TEST(totals)
{
    static const struct { const char *name; double low, high; } row[] = {
        { "llada2.0-mini", 15.5, 16.5 }, { "llada2.0-flash", 99.0, 105.0 }, { "qwen3-30b-a3b", 30.0, 31.0 },
        { "mixtral-8x7b", 46.0, 47.5 }, { "olmoe-1b-7b", 6.5, 7.2 }, { "gpt-oss-120b", 116.0, 118.0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const moesim_geometry *g = find(row[i].name);
        const uint64_t bytes = moesim_geometry_expert_bytes(g, MOESIM_BF16) * g->experts * g->moe_layers +
                               moesim_geometry_resident_bytes(g, MOESIM_BF16);
        const double billions = (double)bytes / 2e9;
        ck_assert_msg(billions > row[i].low && billions < row[i].high, "%s: %g", row[i].name, billions);
    }
}
END_TEST

START_TEST(unknown_parts)
{
    static const char *const name[] = { "llada-moe-7b-a1b", "deepseek-v3", "kimi-k2", "glm-4.5-air", "gpt-oss-20b" };
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        ck_assert_uint_eq(moesim_geometry_resident_bytes(find(name[i]), MOESIM_BF16), 0);
        ck_assert_uint_eq(moesim_geometry_kv_bytes(find(name[i])), 0);
    }
    for (const moesim_geometry *g = moesim_geometries; g->name != NULL; g++) {
        ck_assert_uint_gt(strlen(g->source), 10);
        ck_assert_uint_ge(g->layers, g->moe_layers);
        ck_assert_uint_gt(g->experts, g->top_k);
    }
}
END_TEST

START_TEST(names)
{
    const moesim_geometry *g = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_ptr_eq(find("LLaDA2.0-mini"), find("llada2.0-mini"));
    ck_assert_int_eq(moesim_geometry_find("LLaDA2.0-mimi", &g, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "model 'LLaDA2.0-mimi' is not known; did you mean 'llada2.0-mini'?");
    ck_assert_int_eq(moesim_geometry_find("", &g, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_geometry_find("gpt-2", &g, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "model 'gpt-2' is not known; 'moesim profile models' lists those that are");
    char longest[3000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_eq(moesim_geometry_find(longest, &g, &err), MOESIM_E_USAGE);
}
END_TEST

RUN_TESTS("geometry", experts, resident, totals, unknown_parts, names)
