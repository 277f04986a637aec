/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics as an HDF5 file of plain 1-D datasets.
 */
#include "traces/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "traces/sink.h"

static const char *const groups[] = { "/activation", "/overlap", "/persistence", "/stability", "/regime", "/passes" };

static moesim_code write_header(moesim_sink_file *f, const moesim_trace_stats *s, const moesim_trace_info *info,
                                moesim_error *err)
{
    const struct { const char *name, *text; } texts[] = {
        { "format", "moesim-stats" }, { "model_id", info->model_id }, { "engine", info->engine }, { "dataset", info->dataset },
        { "trace_digest", info->digest },
    };
    const struct { const char *name; uint64_t value; } numbers[] = {
        { "num_moe_layers", s->num_layers }, { "num_experts", s->num_experts }, { "top_k", s->top_k },
        { "block_length", info->block_length }, { "num_requests", s->num_requests }, { "decode_passes", s->decode_passes },
        { "committed", s->committed },
    };
    moesim_code code = moesim_sink_u32(f, "format_version", 1, err);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && code == MOESIM_OK; i++)
        code = moesim_sink_text(f, texts[i].name, texts[i].text, err);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && code == MOESIM_OK; i++)
        code = moesim_sink_u64(f, numbers[i].name, numbers[i].value, err);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && code == MOESIM_OK; i++)
        code = moesim_sink_group(f, groups[i], err);
    return code;
}

/* Means by lag 1..10 and the number of samples behind each: `name` and `name`_n. */
static moesim_code write_means(moesim_sink_file *f, const char *name, const moesim_mean *mean, size_t n, moesim_error *err)
{
    double value[MOESIM_STATS_LAGS];
    uint64_t samples[MOESIM_STATS_LAGS];
    char with_n[64];
    for (size_t i = 0; i < n; i++) {
        value[i] = moesim_mean_value(&mean[i]);
        samples[i] = mean[i].n;
    }
    snprintf(with_n, sizeof with_n, "%s_n", name);
    const moesim_code code = moesim_sink_array(f, name, MOESIM_H5_F64, n, value, err);
    return code == MOESIM_OK ? moesim_sink_array(f, with_n, MOESIM_H5_U64, n, samples, err) : code;
}

static moesim_code write_lags(moesim_sink_file *f, const moesim_trace_stats *s, moesim_error *err)
{
    const struct { const char *name; const moesim_mean *mean; size_t n; } rows[] = {
        { "/overlap/over_new", s->overlap_new + 1, MOESIM_STATS_LAGS },
        { "/overlap/over_old", s->overlap_old + 1, MOESIM_STATS_LAGS },
        { "/overlap/boundary_over_new", &s->boundary_new, 1 },
        { "/overlap/boundary_over_old", &s->boundary_old, 1 },
        { "/persistence/all", s->persistence[MOESIM_STATS_ALL] + 1, MOESIM_STATS_LAGS },
        { "/persistence/masked", s->persistence[MOESIM_STATS_MASKED] + 1, MOESIM_STATS_LAGS },
        { "/persistence/just_committed", s->persistence[MOESIM_STATS_JUST] + 1, MOESIM_STATS_LAGS },
        { "/persistence/long_committed", s->persistence[MOESIM_STATS_LONG] + 1, MOESIM_STATS_LAGS },
    };
    uint64_t lag[MOESIM_STATS_LAGS];
    for (uint32_t i = 0; i < MOESIM_STATS_LAGS; i++)
        lag[i] = i + 1;
    moesim_code code = moesim_sink_array(f, "/overlap/lag", MOESIM_H5_U64, MOESIM_STATS_LAGS, lag, err);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && code == MOESIM_OK; i++)
        code = write_means(f, rows[i].name, rows[i].mean, rows[i].n, err);
    return code;
}

/* level is flattened: [bin][0..K]. */
static moesim_code write_stability(moesim_sink_file *f, const moesim_trace_stats *s, moesim_error *err)
{
    static const char *const names[2][3] = {
        { "/stability/masked_n", "/stability/masked_kept", "/stability/masked_level" },
        { "/stability/all_n", "/stability/all_kept", "/stability/all_level" },
    };
    double center[MOESIM_STATS_BINS];
    const size_t levels = (size_t)s->top_k + 1;
    uint64_t level[MOESIM_STATS_BINS * 65];
    for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++)
        center[b] = (b + 0.5) / MOESIM_STATS_BINS;
    moesim_code code = moesim_sink_array(f, "/stability/confidence", MOESIM_H5_F64, MOESIM_STATS_BINS, center, err);
    for (size_t i = 0; i < 2 && code == MOESIM_OK; i++) {
        const moesim_stability *st = &s->stability[i];
        for (size_t b = 0; b < MOESIM_STATS_BINS; b++)
            memcpy(level + b * levels, st->level[b], levels * sizeof *level);
        code = moesim_sink_array(f, names[i][0], MOESIM_H5_U64, MOESIM_STATS_BINS, st->n, err);
        if (code == MOESIM_OK)
            code = moesim_sink_array(f, names[i][1], MOESIM_H5_U64, MOESIM_STATS_BINS, st->kept, err);
        if (code == MOESIM_OK)
            code = moesim_sink_array(f, names[i][2], MOESIM_H5_U64, MOESIM_STATS_BINS * levels, level, err);
    }
    return code;
}

static moesim_code write_activation(moesim_sink_file *f, const moesim_trace_stats *s, moesim_error *err)
{
    moesim_code code = moesim_sink_array(f, "/activation/layer_sum", MOESIM_H5_U64, s->num_layers, s->active_sum, err);
    if (code == MOESIM_OK)
        code = moesim_sink_array(f, "/activation/histogram", MOESIM_H5_U64, (uint64_t)s->num_experts + 1, s->active_hist, err);
    if (code == MOESIM_OK)
        code = moesim_sink_array(f, "/passes/by_kind", MOESIM_H5_U64, 4, s->passes, err);
    return code == MOESIM_OK ? moesim_sink_array(f, "/passes/rows_by_kind", MOESIM_H5_U64, 4, s->rows, err) : code;
}

static moesim_code write_regime(moesim_sink_file *f, const moesim_trace_stats *s, const uint32_t *caches, size_t n,
                                moesim_error *err)
{
    static const char *const names[3] = { "/regime/mean", "/regime/p95", "/regime/above_one" };
    void *memory;
    moesim_code code = moesim_alloc(n, 3 * sizeof(double), "regimes", &memory, err);
    if (code != MOESIM_OK)
        return code;
    double *value = memory;
    for (size_t i = 0; i < n; i++) {
        const moesim_regime r = moesim_trace_stats_regime(s, caches[i]);
        value[i] = r.mean;
        value[n + i] = r.p95;
        value[2 * n + i] = r.above_one;
    }
    code = moesim_sink_array(f, "/regime/cache", MOESIM_H5_U32, n, caches, err);
    for (size_t i = 0; i < 3 && code == MOESIM_OK; i++)
        code = moesim_sink_array(f, names[i], MOESIM_H5_F64, n, value + i * n, err);
    free(memory);
    return code;
}

moesim_code moesim_trace_stats_write(const moesim_trace_stats *stats, const moesim_trace_info *info, const uint32_t *caches,
                                     size_t n, const char *path, moesim_error *err)
{
    const moesim_writer_options options = { .compression = MOESIM_ZSTD, .level = 0 };
    moesim_sink_file f;
    moesim_code code = moesim_sink_file_create(path, &options, &f, err);
    if (code != MOESIM_OK)
        return code;
    code = write_header(&f, stats, info, err);
    if (code == MOESIM_OK)
        code = write_activation(&f, stats, err);
    if (code == MOESIM_OK)
        code = write_lags(&f, stats, err);
    if (code == MOESIM_OK)
        code = write_stability(&f, stats, err);
    if (code == MOESIM_OK && n > 0)
        code = write_regime(&f, stats, caches, n, err);
    if (code == MOESIM_OK)
        return moesim_sink_file_finish(&f, err);
    moesim_sink_file_discard(&f);
    return code;
}
