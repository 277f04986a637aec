/* SPDX-License-Identifier: Apache-2.0
 *
 * What only the whole profile shows: missing and contradictory constants, tables that fall.
 */
#include <stdio.h>

#include "base/log.h"
#include "hwprofile/parts.h"

/* Collects "link.alpha, cpu.table" while they fit. */
static void add(char *list, size_t size, size_t *used, const char *key)
{
    if (*used < size) {
        const int n = snprintf(list + *used, size - *used, "%s%s", *used > 0 ? ", " : "", key);
        *used += n > 0 ? (size_t)n : 0;
    }
}

static moesim_code check_complete(const moesim_profile *p, unsigned mode, moesim_error *err)
{
    char list[512];
    size_t used = 0;
    moesim_profile_row row;
    if ((p->modes & MOESIM_MODE_BIT(mode)) == 0)
        return MOESIM_OK;
    for (size_t i = 0; moesim_profile_get_row(p, i, &row); i++)
        if ((moesim_profile_specs[i].needed & MOESIM_MODE_BIT(mode)) != 0 && !row.constant->given)
            add(list, sizeof list, &used, row.key);
    if (mode == MOESIM_TIME_MODEL && p->cpu.points == 0)
        add(list, sizeof list, &used, "cpu.table");
    if (mode == MOESIM_TIME_MODEL && p->gpu.num_experts == 0)
        add(list, sizeof list, &used, "gpu.table");
    if (used == 0)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: mode %s needs what is missing: %s; add it, or take the mode from 'modes'",
                       p->path, moesim_profile_modes[mode], list);
}

static moesim_code check_dram(const moesim_profile *p, moesim_error *err)
{
    const double dram = p->dram_bandwidth.value;
    if (!p->dram_bandwidth.given)
        return MOESIM_OK;
    if (p->link_bandwidth.given && dram < p->link_bandwidth.value)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: dram.bandwidth %g GB/s is below link.bandwidth %g GB/s: what the link "
                           "copies is read from host memory; raise the one or lower the other", p->path, dram / 1e9,
                           p->link_bandwidth.value / 1e9);
    for (uint32_t i = 0; i < p->cpu.points; i++) {
        const double stream = p->cpu.expert_bytes / p->cpu.seconds[i];
        if (dram < stream)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: dram.bandwidth %g GB/s is below the %g GB/s at which cpu.table."
                               "times[%u] reads the weights; raise the one or lower the other", p->path, dram / 1e9,
                               stream / 1e9, i);
    }
    return MOESIM_OK;
}

moesim_code moesim_profile_check(const moesim_profile *profile, moesim_error *err)
{
    moesim_code code = check_complete(profile, MOESIM_TIME_PAPER, err);
    if (code == MOESIM_OK)
        code = check_complete(profile, MOESIM_TIME_MODEL, err);
    return code == MOESIM_OK ? check_dram(profile, err) : code;
}

static void warn_cpu(const moesim_profile *p)
{
    for (uint32_t i = 1; i < p->cpu.points; i++) {
        if (p->cpu.seconds[i] < p->cpu.seconds[i - 1]) {
            moesim_log(MOESIM_LOG_WARN, "%s: cpu.table.times[%u] is below the time before it: more tokens cost less", p->path,
                       i);
            return;
        }
    }
}

/* The first fall along either axis. */
static void warn_gpu(const moesim_profile *p)
{
    const moesim_gpu_table *t = &p->gpu;
    for (uint32_t i = 0; i < t->num_experts; i++) {
        for (uint32_t j = 0; j < t->num_tokens; j++) {
            const bool experts = i > 0 && t->seconds[i][j] < t->seconds[i - 1][j];
            if (!experts && !(j > 0 && t->seconds[i][j] < t->seconds[i][j - 1]))
                continue;
            moesim_log(MOESIM_LOG_WARN, "%s: gpu.table.times[%u][%u] is below the time before it: more %s cost less", p->path,
                       i, j, experts ? "experts" : "tokens");
            return;
        }
    }
}

void moesim_profile_warn(const moesim_profile *profile)
{
    warn_cpu(profile);
    warn_gpu(profile);
}
