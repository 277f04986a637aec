/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of constants and units of the profile format.
 */
#include <math.h>
#include <string.h>

#include "hwprofile/parts.h"

#define MODEL MOESIM_MODE_BIT(MOESIM_TIME_MODEL)
#define PAPER MOESIM_MODE_BIT(MOESIM_TIME_PAPER)
#define AT(member) offsetof(moesim_profile, member)

/* Outside of these a number is a slip of the pen, and sums of many could overflow. */
#define MOST_SECONDS 3600.0
#define LEAST_BANDWIDTH 1e3
#define MOST_BANDWIDTH 1e16

const char *const moesim_profile_labels[] = { "measured", "provisional", "derived", "neutral", "not measured", NULL };
const char *const moesim_profile_modes[] = { "", "paper", "model", NULL };
const char *const moesim_profile_groups[] = { "link", "return", "dram", "cpu", "gpu", "other", "paper", "", NULL };

/* key, help, quantity, positive, needed, read, offset */
const moesim_profile_spec moesim_profile_specs[] = {
    { "link.alpha", "start of one copy", MOESIM_SECONDS, false, MODEL, MODEL, AT(link_alpha) },
    { "link.bandwidth", "host to device, pinned", MOESIM_BYTES_PER_SECOND, true, MODEL, MODEL | PAPER, AT(link_bandwidth) },
    { "link.nominal_bandwidth", "at which paper.t_h2d holds", MOESIM_BYTES_PER_SECOND, true, PAPER, PAPER,
      AT(link_nominal_bandwidth) },
    { "return.alpha", "start of activations to the host, and of CPU results back", MOESIM_SECONDS, false, MODEL, MODEL,
      AT(return_alpha) },
    { "return.bandwidth", "activations to the host, and CPU results back", MOESIM_BYTES_PER_SECOND, true, MODEL, MODEL,
      AT(return_bandwidth) },
    { "dram.bandwidth", "host memory, shared by link and CPU", MOESIM_BYTES_PER_SECOND, true, MODEL, MODEL,
      AT(dram_bandwidth) },
    { "cpu.step", "once per event that uses the CPU", MOESIM_SECONDS, false, MODEL, MODEL, AT(cpu_step) },
    { "cpu.combine", "adding CPU results to the layer's output", MOESIM_SECONDS, false, MODEL, MODEL, AT(cpu_combine) },
    { "gpu.launch", "once per event with hits", MOESIM_SECONDS, false, MODEL, MODEL, AT(gpu_launch) },
    { "gpu.arrival", "from the end of a copy to the start of its expert", MOESIM_SECONDS, false, 0, MODEL, AT(gpu_arrival) },
    { "gpu.moved", "what a copy takes from the computation beside it", MOESIM_SECONDS, false, 0, MODEL, AT(gpu_moved) },
    { "other.gpu", "attention, router and shared expert of a layer", MOESIM_SECONDS, false, MODEL, MODEL, AT(other_gpu) },
    { "other.host", "host overhead of a layer", MOESIM_SECONDS, false, MODEL, MODEL, AT(other_host) },
    { "sync", "routing to the host and launch, per layer", MOESIM_SECONDS, false, MODEL, MODEL, AT(sync) },
    { "head", "LM head and decoder, per pass", MOESIM_SECONDS, false, MODEL, MODEL, AT(head) },
    { "policy", "deciding, per layer", MOESIM_SECONDS, false, MODEL, MODEL, AT(policy) },
    { "paper.t_h2d", "copy of one expert", MOESIM_SECONDS, true, PAPER, PAPER, AT(paper_t_h2d) },
    { "paper.tau", "one token of a missed expert on the CPU", MOESIM_SECONDS, true, PAPER, PAPER, AT(paper_tau) },
    { "paper.layer", "a layer with every expert resident", MOESIM_SECONDS, false, PAPER, PAPER, AT(paper_layer) },
    { NULL, NULL, MOESIM_SECONDS, false, 0, 0, 0 },
};

/* num/den instead of one factor: 12 us / 10^6 is the double nearest to 12e-6, 12·1e-6 need not be. */
static const struct { enum moesim_quantity quantity; const char *name; double num, den; } units[] = {
    { MOESIM_SECONDS, "s", 1.0, 1.0 },
    { MOESIM_SECONDS, "ms", 1.0, 1e3 },
    { MOESIM_SECONDS, "us", 1.0, 1e6 },
    { MOESIM_SECONDS, "\xc2\xb5s", 1.0, 1e6 },        /* micro sign */
    { MOESIM_SECONDS, "\xce\xbcs", 1.0, 1e6 },        /* Greek mu, which looks the same */
    { MOESIM_SECONDS, "ns", 1.0, 1e9 },
    { MOESIM_BYTES_PER_SECOND, "B/s", 1.0, 1.0 },
    { MOESIM_BYTES_PER_SECOND, "kB/s", 1e3, 1.0 },
    { MOESIM_BYTES_PER_SECOND, "MB/s", 1e6, 1.0 },
    { MOESIM_BYTES_PER_SECOND, "GB/s", 1e9, 1.0 },
    { MOESIM_BYTES_PER_SECOND, "TB/s", 1e12, 1.0 },
    { MOESIM_BYTES_PER_SECOND, "GiB/s", 0x1p30, 1.0 },
};

bool moesim_profile_unit(enum moesim_quantity quantity, const char *unit, double *num, double *den)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].quantity == quantity && strcmp(units[i].name, unit) == 0) {
            *num = units[i].num;
            *den = units[i].den;
            return true;
        }
    }
    return false;
}

const char *moesim_profile_units(enum moesim_quantity quantity)
{
    return quantity == MOESIM_SECONDS ? "s, ms, us, \xc2\xb5s or ns" : "B/s, kB/s, MB/s, GB/s, TB/s or GiB/s";
}

const char *moesim_profile_bad_value(const moesim_profile_spec *spec, double value)
{
    if (!isfinite(value))
        return "is not finite";
    if (value < 0.0)
        return "is negative";
    if (spec->positive && value <= 0.0)
        return "must be above 0";
    if (spec->quantity == MOESIM_SECONDS)
        return value > MOST_SECONDS ? "is above one hour" : NULL;
    return value < LEAST_BANDWIDTH || value > MOST_BANDWIDTH ? "is outside 1 kB/s to 10^7 GB/s" : NULL;
}

moesim_constant *moesim_profile_constant(moesim_profile *profile, const moesim_profile_spec *spec)
{
    return (moesim_constant *)(void *)((char *)profile + spec->offset);
}

bool moesim_profile_get_row(const moesim_profile *profile, size_t i, moesim_profile_row *out)
{
    if (i >= sizeof moesim_profile_specs / sizeof moesim_profile_specs[0] - 1)
        return false;
    const moesim_profile_spec *spec = &moesim_profile_specs[i];
    out->key = spec->key;
    out->unit = spec->quantity == MOESIM_SECONDS ? "s" : "B/s";
    out->help = spec->help;
    out->constant = (const moesim_constant *)(const void *)((const char *)profile + spec->offset);
    return true;
}
