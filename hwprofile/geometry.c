/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of published models. Numbers that no source gave are 0, never guessed.
 */
#include "hwprofile/geometry.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/options.h"

#define NAME_CHARS 64u
#define MAX_MODELS 64u
#define MATRICES 3u              /* gate, up and down */
#define BF16_BYTES 2u

const char *const moesim_dtype_names[] = { "bf16", "fp8", "int4", "mxfp4", NULL };

/* Bytes a weight as fractions, so that sums stay whole. */
static const struct { uint32_t num, den; } weight_bytes[] = { { 2, 1 }, { 1, 1 }, { 1, 2 }, { 17, 32 } };

const moesim_geometry moesim_geometries[] = {
    { .name = "llada2.0-mini", .layers = 20, .moe_layers = 19, .experts = 256, .top_k = 8, .hidden = 2048,
      .intermediate = 512, .shared_experts = 1, .heads = 16, .kv_heads = 4, .head_dim = 128, .vocab = 157184,
      .dense_intermediate = 5120, .source = "config.json in inclusionAI/dFactory (the first layer is dense)" },
    { .name = "llada2.0-flash", .layers = 32, .moe_layers = 31, .experts = 256, .top_k = 8, .hidden = 4096,
      .intermediate = 1024, .shared_experts = 1, .heads = 32, .kv_heads = 4, .head_dim = 128, .vocab = 157184,
      .dense_intermediate = 9216, .source = "config.json in inclusionAI/dFactory (the first layer is dense)" },
    { .name = "llada-moe-7b-a1b", .layers = 16, .moe_layers = 16, .experts = 64, .top_k = 8, .hidden = 2048,
      .intermediate = 1024,
      .source = "notes on a local snapshot, and published load traces; attention and vocabulary not found" },
    { .name = "sdar-30b-a3b-chat", .layers = 48, .moe_layers = 48, .experts = 128, .top_k = 8, .hidden = 2048,
      .intermediate = 768, .heads = 32, .kv_heads = 4, .head_dim = 128, .vocab = 151936,
      .source = "config.json in Xenearkr/DARE" },
    { .name = "rnd1-base-0910", .layers = 48, .moe_layers = 48, .experts = 128, .top_k = 8, .hidden = 2048,
      .intermediate = 768, .source = "converted from Qwen3-30B-A3B; its own configuration was not read" },
    { .name = "qwen3-30b-a3b", .layers = 48, .moe_layers = 48, .experts = 128, .top_k = 8, .hidden = 2048,
      .intermediate = 768, .heads = 32, .kv_heads = 4, .head_dim = 128, .vocab = 151936,
      .source = "config.json in ljcleo/moe-lrc" },
    { .name = "qwen3-235b-a22b", .layers = 94, .moe_layers = 94, .experts = 128, .top_k = 8, .hidden = 4096,
      .intermediate = 1536,
      .source = "text part of Qwen3-VL-235B-A22B in ai-dynamo/aiconfigurator; the text model was not read" },
    { .name = "deepseek-v2-lite", .layers = 27, .moe_layers = 26, .experts = 64, .top_k = 6, .hidden = 2048,
      .intermediate = 1408, .shared_experts = 2,
      .source = "config.json in ljcleo/moe-lrc; its latent attention is not modelled" },
    { .name = "deepseek-v3", .layers = 61, .moe_layers = 58, .experts = 256, .top_k = 8, .hidden = 7168,
      .intermediate = 2048, .shared_experts = 1,
      .source = "load log in ik_llama.cpp, experts and top-k in vLLM and SGLang; its latent attention is not modelled" },
    { .name = "mixtral-8x7b", .layers = 32, .moe_layers = 32, .experts = 8, .top_k = 2, .hidden = 4096,
      .intermediate = 14336, .heads = 32, .kv_heads = 8, .head_dim = 128, .vocab = 32000,
      .source = "config.json in ljcleo/moe-lrc" },
    { .name = "olmoe-1b-7b", .layers = 16, .moe_layers = 16, .experts = 64, .top_k = 8, .hidden = 2048,
      .intermediate = 1024, .heads = 16, .kv_heads = 16, .head_dim = 128, .vocab = 50304,
      .source = "config.json in ljcleo/moe-lrc" },
    { .name = "gpt-oss-20b", .layers = 24, .moe_layers = 24, .experts = 32, .top_k = 4, .hidden = 2880,
      .intermediate = 2880, .source = "architecture note in EchoCog/gpt-oss-20b; attention and vocabulary not found" },
    { .name = "gpt-oss-120b", .layers = 36, .moe_layers = 36, .experts = 128, .top_k = 4, .hidden = 2880,
      .intermediate = 2880, .heads = 64, .kv_heads = 8, .head_dim = 64, .vocab = 201088,
      .source = "defaults of GptOssConfig in transformers (half of its layers keep a window of 128 tokens only)" },
    { .name = "glm-4.5-air", .layers = 46, .moe_layers = 45, .experts = 128, .top_k = 8, .hidden = 4096,
      .intermediate = 1408, .shared_experts = 1,
      .source = "defaults of Glm4MoeConfig in transformers; dense layer and shared expert from memory, head size not found" },
    { .name = "kimi-k2", .layers = 61, .moe_layers = 60, .experts = 384, .top_k = 8, .hidden = 7168,
      .intermediate = 2048, .shared_experts = 1,
      .source = "config.json in ai-dynamo/aiconfigurator; its latent attention is not modelled" },
    { .name = NULL },
};

moesim_code moesim_geometry_find(const char *name, const moesim_geometry **out, moesim_error *err)
{
    const char *names[MAX_MODELS + 1];
    char lower[NAME_CHARS];
    size_t n = 0, i = 0;
    for (const moesim_geometry *g = moesim_geometries; g->name != NULL; g++) {
        if (strcasecmp(g->name, name) == 0) {
            *out = g;
            return MOESIM_OK;
        }
        if (n < MAX_MODELS)
            names[n++] = g->name;
    }
    names[n] = NULL;
    for (; name[i] != '\0' && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    lower[i] = '\0';
    const char *nearest = moesim_nearest(lower, names);
    if (nearest != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "model '%s' is not known; did you mean '%s'?", name, nearest);
    return moesim_fail(err, MOESIM_E_USAGE, "model '%s' is not known; 'moesim profile models' lists those that are", name);
}

static uint64_t bytes_of(uint64_t weights, enum moesim_dtype dtype)
{
    return weights * weight_bytes[dtype].num / weight_bytes[dtype].den;
}

uint64_t moesim_geometry_expert_bytes(const moesim_geometry *g, enum moesim_dtype dtype)
{
    return bytes_of((uint64_t)MATRICES * g->hidden * g->intermediate, dtype);
}

static bool attention_known(const moesim_geometry *g)
{
    return g->heads > 0 && g->kv_heads > 0 && g->head_dim > 0;
}

uint64_t moesim_geometry_resident_bytes(const moesim_geometry *g, enum moesim_dtype dtype)
{
    const uint64_t hidden = g->hidden, dense_layers = g->layers - g->moe_layers;
    if (!attention_known(g) || g->vocab == 0 || (dense_layers > 0 && g->dense_intermediate == 0))
        return 0;
    /* queries and output are heads wide, keys and values kv_heads */
    const uint64_t attention = 2u * hidden * g->head_dim * ((uint64_t)g->heads + g->kv_heads) * g->layers;
    const uint64_t shared = (uint64_t)MATRICES * hidden * g->intermediate * g->shared_experts * g->moe_layers;
    const uint64_t dense = (uint64_t)MATRICES * hidden * g->dense_intermediate * dense_layers;
    const uint64_t router = hidden * g->experts * g->moe_layers;
    const uint64_t embeddings = 2u * hidden * g->vocab;
    return bytes_of(attention + shared + dense, dtype == MOESIM_MXFP4 ? MOESIM_BF16 : dtype) +
           (router + embeddings) * BF16_BYTES;
}

uint64_t moesim_geometry_kv_bytes(const moesim_geometry *g)
{
    return attention_known(g) ? (uint64_t)2 * BF16_BYTES * g->layers * g->kv_heads * g->head_dim : 0;
}
