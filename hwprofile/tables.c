/* SPDX-License-Identifier: Apache-2.0
 *
 * Interpolation of the cost tables.
 */
#include "hwprofile/profile.h"

/* Segment [i, i + 1] of the axis that x lies in or is continued from, and where: 0 at i, 1 at i + 1, above 1 beyond. */
static uint32_t segment(const double *axis, uint32_t n, double x, double *at)
{
    uint32_t i = 0;
    while (i + 2 < n && x >= axis[i + 1])
        i++;
    *at = x <= axis[0] ? 0.0 : (x - axis[i]) / (axis[i + 1] - axis[i]);
    return i;
}

/* Beyond the last point a falling segment is not continued: time would turn negative. */
static double line(double a, double b, double at)
{
    if (at > 1.0 && b < a)
        return b;
    return at == 1.0 ? b : a + (b - a) * at;
}

double moesim_profile_cpu_s(const moesim_profile *profile, double tokens, double expert_bytes)
{
    const moesim_cpu_table *t = &profile->cpu;
    double at;
    if (t->points < 2 || !(tokens > 0.0))
        return 0.0;
    const uint32_t i = segment(t->tokens, t->points, tokens, &at);
    return line(t->seconds[i], t->seconds[i + 1], at) * (expert_bytes / t->expert_bytes);
}

double moesim_profile_gpu_s(const moesim_profile *profile, double experts, double tokens_per_expert, double expert_bytes)
{
    const moesim_gpu_table *t = &profile->gpu;
    double at_experts, at_tokens;
    if (t->num_experts < 2 || t->num_tokens < 2 || !(experts > 0.0) || !(tokens_per_expert > 0.0))
        return 0.0;
    const uint32_t i = segment(t->experts, t->num_experts, experts, &at_experts);
    const uint32_t j = segment(t->tokens, t->num_tokens, tokens_per_expert, &at_tokens);
    const double few = line(t->seconds[i][j], t->seconds[i][j + 1], at_tokens);
    const double many = line(t->seconds[i + 1][j], t->seconds[i + 1][j + 1], at_tokens);
    return line(few, many, at_experts) * (expert_bytes / t->expert_bytes);
}
