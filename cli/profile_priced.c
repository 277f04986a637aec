/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim profile show --as MODEL: what a profile makes of a model's experts. JSON schema moesim.priced/1; unknown sizes are
 * null.
 */
#include <inttypes.h>

#include "cli/print.h"
#include "cli/profile.h"

#define GPU_TOKENS 2.0           /* a diffusion step routes one to two tokens to an active expert */

static const double cpu_tokens[] = { 1, 2, 4, 8, 16 };
static const double gpu_experts[] = { 1, 8, 32, 128 };
#define NUM_CPU (sizeof cpu_tokens / sizeof cpu_tokens[0])
#define NUM_GPU (sizeof gpu_experts / sizeof gpu_experts[0])

/* Times in seconds; num_gpu: how many of gpu_experts the model has. */
typedef struct priced {
    uint64_t expert_bytes, all_bytes, resident_bytes, kv_bytes;
    double copy, cpu[NUM_CPU], gpu[NUM_GPU];
    size_t num_gpu;
} priced;

static priced price(const moesim_profile *p, const moesim_geometry *g, enum moesim_dtype dtype)
{
    priced v = { .expert_bytes = moesim_geometry_expert_bytes(g, dtype),
                 .resident_bytes = moesim_geometry_resident_bytes(g, dtype), .kv_bytes = moesim_geometry_kv_bytes(g) };
    const double bytes = (double)v.expert_bytes;
    v.all_bytes = v.expert_bytes * g->experts * g->moe_layers;
    v.copy = p->link_alpha.value + bytes / p->link_bandwidth.value;
    for (size_t i = 0; i < NUM_CPU; i++)
        v.cpu[i] = moesim_profile_cpu_s(p, cpu_tokens[i], bytes);
    while (v.num_gpu < NUM_GPU && gpu_experts[v.num_gpu] <= g->experts) {
        v.gpu[v.num_gpu] = moesim_profile_gpu_s(p, gpu_experts[v.num_gpu], GPU_TOKENS, bytes);
        v.num_gpu++;
    }
    return v;
}

static void put_times(FILE *out, const char *head, const double *at, const double *seconds, size_t n)
{
    fprintf(out, "  %-24s", head);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%9.0f", at[i]);
    fprintf(out, "\n  %-24s", "  us");
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%9.1f", seconds[i] * 1e6);
    fputc('\n', out);
}

static void put_bytes(FILE *out, const char *what, uint64_t bytes, double unit, const char *name)
{
    if (bytes > 0)
        fprintf(out, "  %-24s%16" PRIu64 "  (%.2f %s)\n", what, bytes, (double)bytes / unit, name);
    else
        fprintf(out, "  %-24s%16s\n", what, "unknown");
}

void moesim_priced_table(const moesim_profile *profile, const moesim_geometry *model, enum moesim_dtype dtype, FILE *out)
{
    const priced v = price(profile, model, dtype);
    char text[32];
    fprintf(out, "\nPriced as %s, experts in %s (%s, %s)\n", model->name, moesim_dtype_names[dtype], profile->name,
            profile->label);
    put_bytes(out, "bytes of one expert", v.expert_bytes, 1e6, "MB");
    put_bytes(out, "of all experts", v.all_bytes, 0x1p30, "GiB");
    put_bytes(out, "of everything else", v.resident_bytes, 0x1p30, "GiB");
    put_bytes(out, "of KV cache per token", v.kv_bytes, 0x1p10, "KiB");
    fprintf(out, "  %-24s%16s\n", "copy of one expert", moesim_profile_text(v.copy, "s", text));
    put_times(out, "CPU, one expert, tokens", cpu_tokens, v.cpu, NUM_CPU);
    put_times(out, "GPU, 2 tokens, experts", gpu_experts, v.gpu, v.num_gpu);
}

static json_t *bytes_or_null(uint64_t bytes)
{
    return bytes > 0 ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *times(const char *key, const double *at, const double *seconds, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:i, s:f}", key, (int)at[i], "seconds", seconds[i]));
    return list;
}

moesim_code moesim_priced_json(const moesim_profile *profile, const moesim_geometry *model, enum moesim_dtype dtype,
                               FILE *out, moesim_error *err)
{
    const priced v = price(profile, model, dtype);
    json_t *document = json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:s, s:s, s:i, s:I, s:I, s:o, s:o}", "schema",
                                 "moesim.priced/1", "profile", "name", profile->name, "label", profile->label, "digest",
                                 profile->digest, "overrides", profile->overrides, "model", model->name, "dtype",
                                 moesim_dtype_names[dtype], "moe_layers", (int)model->moe_layers, "expert_bytes",
                                 (json_int_t)v.expert_bytes, "all_expert_bytes", (json_int_t)v.all_bytes, "resident_bytes",
                                 bytes_or_null(v.resident_bytes), "kv_bytes", bytes_or_null(v.kv_bytes));
    json_object_set_new(document, "copy_seconds", moesim_json_real(v.copy));
    json_object_set_new(document, "cpu", times("tokens", cpu_tokens, v.cpu, NUM_CPU));
    json_object_set_new(document, "gpu_two_tokens", times("experts", gpu_experts, v.gpu, v.num_gpu));
    return moesim_print_json(out, document, err);
}
