/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of thumb, each with where it comes from, and what they would have been worth on a machine that is known.
 */
#include "hwprofile/derive.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINK_SHARE 0.86                  /* of the nominal rate: 0.77 (PCIe 4) to 0.89 (PCIe 5) in published nvbandwidth runs */
#define DRAM_SHARE 0.80                  /* STREAM on server CPUs: 0.75 to 0.85 of the channels' rate */
#define HBM_SHARE 0.60                   /* grouped products of few rows read weights at 0.5 to 0.7 */
#define THREAD_RATE 10e9                 /* B/s of weights that one core streams */
#define THREAD_FLOPS 60e9                /* of one core on bf16 weights */
#define LINK_ALPHA 4e-6
#define RETURN_ALPHA 8e-6
#define CPU_STEP 10e-6
#define CPU_COMBINE 5e-6
#define GPU_LAUNCH 6e-6
#define GPU_ARRIVAL 8e-6                 /* a stream that waits for an event of another one, and a launch */
#define GPU_CALL 8e-6                    /* three products of one call, however small */
#define SYNC 15e-6
#define OTHER_LAUNCH 40e-6               /* the ten or so kernels of a layer before its gate */
#define OTHER_HOST 20e-6
#define HEAD_LAUNCH 20e-6
#define POLICY 2e-6
#define OTHER_UNKNOWN 60e-6              /* where the model's sizes are not known */
#define HEAD_UNKNOWN 300e-6

static void set(moesim_constant *c, double value, const char *fmt, ...) MOESIM_PRINTF(3, 4);

static void set(moesim_constant *c, double value, const char *fmt, ...)
{
    va_list args;
    *c = (moesim_constant){ .value = value, .spread = NAN, .residual = NAN, .given = true };
    va_start(args, fmt);
    vsnprintf(c->note, sizeof c->note, fmt, args);
    va_end(args);
}

static void derive_link(const moesim_nominal *nominal, moesim_profile *p)
{
    const char *tool = nominal->tool != NULL ? nominal->tool : "another tool";
    set(&p->link_alpha, LINK_ALPHA, "usual of a copy engine");
    set(&p->return_alpha, RETURN_ALPHA, "usual: a small copy and waiting for it");
    if (nominal->link_measured > 0.0)
        set(&p->link_bandwidth, nominal->link_measured, "as copied, by %s", tool);
    else
        set(&p->link_bandwidth, LINK_SHARE * nominal->link, "%g of the nominal %.4g GB/s", LINK_SHARE, nominal->link / 1e9);
    if (nominal->back > 0.0)
        set(&p->return_bandwidth, nominal->back, "as copied, by %s", tool);
    else
        set(&p->return_bandwidth, p->link_bandwidth.value, "that of the link");
    set(&p->dram_bandwidth, DRAM_SHARE * nominal->dram, "%g of the nominal %.4g GB/s", DRAM_SHARE, nominal->dram / 1e9);
}

/* Streams of weights until computing takes longer; a token is 2 operations a weight, a weight 2 bytes. */
static void derive_cpu(const moesim_nominal *nominal, double bytes, moesim_profile *p)
{
    static const double tokens[] = { 1, 2, 4, 8, 16, 32, 64 };
    const double threads = nominal->threads > 0 ? nominal->threads : MOESIM_DERIVE_THREADS;
    const double stream = bytes / fmin(threads * THREAD_RATE, p->dram_bandwidth.value);
    p->cpu.points = sizeof tokens / sizeof tokens[0];
    p->cpu.expert_bytes = bytes;
    for (uint32_t i = 0; i < p->cpu.points; i++) {
        p->cpu.tokens[i] = tokens[i];
        p->cpu.seconds[i] = fmax(stream, tokens[i] * bytes / (threads * THREAD_FLOPS));
    }
    set(&p->cpu.facts, 0.0, "%g threads, each %g GB/s of weights or %g GFLOP/s, within DRAM", threads, THREAD_RATE / 1e9,
        THREAD_FLOPS / 1e9);
    set(&p->cpu_step, CPU_STEP, "usual");
    set(&p->cpu_combine, CPU_COMBINE, "usual");
}

static void derive_gpu(const moesim_nominal *nominal, const moesim_geometry *model, double bytes, moesim_profile *p)
{
    const double experts[] = { 1, model->experts > 1 ? model->experts : 2 }, tokens[] = { 1, 16 };
    const double rate = HBM_SHARE * nominal->hbm;
    const double all = (double)moesim_geometry_resident_bytes(model, MOESIM_BF16);
    const double head = 2.0 * model->vocab * model->hidden;
    p->gpu.num_experts = p->gpu.num_tokens = 2;
    p->gpu.expert_bytes = bytes;
    for (unsigned i = 0; i < 2; i++) {
        p->gpu.experts[i] = experts[i];
        p->gpu.tokens[i] = tokens[i];
        for (unsigned j = 0; j < 2; j++)
            p->gpu.seconds[i][j] = GPU_CALL + experts[i] * bytes / rate;
    }
    set(&p->gpu.facts, 0.0, "%g us and the weights at %g of the nominal %.4g GB/s", GPU_CALL * 1e6, HBM_SHARE,
        nominal->hbm / 1e9);
    set(&p->gpu_launch, GPU_LAUNCH, "usual");
    set(&p->gpu_arrival, GPU_ARRIVAL, "usual");
    if (all > 0.0 && head > 0.0) {           /* embeddings, of which a row a token is read, are as large as the head */
        set(&p->other_gpu, OTHER_LAUNCH + fmax(all - 2.0 * head, 0.0) / model->layers / rate, "%g us and a layer's weights",
            OTHER_LAUNCH * 1e6);
        set(&p->head, HEAD_LAUNCH + head / rate, "%g us and the head's weights", HEAD_LAUNCH * 1e6);
    } else {
        set(&p->other_gpu, OTHER_UNKNOWN, "usual; sizes of the model are not known");
        set(&p->head, HEAD_UNKNOWN, "usual; sizes of the model are not known");
    }
    set(&p->other_host, OTHER_HOST, "usual");
    set(&p->sync, SYNC, "usual");
    set(&p->policy, POLICY, "usual");
}

moesim_code moesim_derive(const moesim_nominal *nominal, const moesim_geometry *model, const char *name, const char *path,
                          moesim_profile *out, moesim_error *err)
{
    const double bytes = (double)moesim_geometry_expert_bytes(model, MOESIM_BF16);
    memset(out, 0, sizeof *out);
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    (void)snprintf(out->label, sizeof out->label, "not measured");
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    (void)snprintf(out->description, sizeof out->description, "Not measured: derived from nominal rates by rules of thumb, for "
                   "experts of %s. 'moesim profile derive' prints what the same rules make of a machine that is known; measure "
                   "the machine before anything depends on it.", model->name);
    out->modes = 1u << MOESIM_TIME_MODEL;
    out->default_mode = MOESIM_TIME_MODEL;
    derive_link(nominal, out);
    derive_cpu(nominal, bytes, out);
    derive_gpu(nominal, model, bytes, out);
    return moesim_profile_check(out, err);
}

/* ---- what it is worth ------------------------------------------------------------------------------------------------- */

/* The H200 host by its data sheets: PCIe 5 x16, eight channels of DDR5-4800, HBM3e. */
static const moesim_nominal h200 = { .link = 64e9, .dram = 307.2e9, .hbm = 4.8e12, .threads = 16 };

static void add(moesim_derive_row *row, size_t *n, const char *what, const char *unit, double derived, double shipped,
                bool estimate)
{
    if (*n >= MOESIM_DERIVE_ROWS)
        return;
    row[*n] = (moesim_derive_row){ .unit = unit, .derived = derived, .shipped = shipped, .estimate = estimate };
    (void)snprintf(row[*n].what, sizeof row->what, "%s", what);
    ++*n;
}

moesim_code moesim_derive_error(moesim_derive_row row[MOESIM_DERIVE_ROWS], size_t *n, char label[32], moesim_error *err)
{
    static const double tokens[] = { 1, 4, 12 }, experts[] = { 1, 8, 60 };
    static moesim_profile derived, shipped;      /* too large for comfort on a stack */
    const moesim_geometry *model = NULL;
    moesim_profile_row a, b;
    char what[48];
    *n = 0;
    moesim_code code = moesim_geometry_find("llada2.0-mini", &model, err);
    if (code == MOESIM_OK)
        code = moesim_profile_load("h200-host", &shipped, err);
    if (code == MOESIM_OK)
        code = moesim_derive(&h200, model, "derived", "derived h200-host", &derived, err);
    if (code != MOESIM_OK)
        return code;
    const double bytes = (double)moesim_geometry_expert_bytes(model, MOESIM_BF16);
    (void)snprintf(label, 32, "%s", shipped.label);
    for (size_t i = 0; moesim_profile_get_row(&derived, i, &a) && moesim_profile_get_row(&shipped, i, &b); i++)
        if (a.constant->given && b.constant->given)
            add(row, n, a.key, a.unit, a.constant->value, b.constant->value, b.constant->n == 0);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        (void)snprintf(what, sizeof what, "cpu.table, %g tokens", tokens[i]);
        add(row, n, what, "s", moesim_profile_cpu_s(&derived, tokens[i], bytes),
            moesim_profile_cpu_s(&shipped, tokens[i], bytes), shipped.cpu.facts.n == 0);
    }
    for (size_t i = 0; i < sizeof experts / sizeof experts[0]; i++) {
        (void)snprintf(what, sizeof what, "gpu.table, %g experts", experts[i]);
        add(row, n, what, "s", moesim_profile_gpu_s(&derived, experts[i], 2.0, bytes),
            moesim_profile_gpu_s(&shipped, experts[i], 2.0, bytes), shipped.gpu.facts.n == 0);
    }
    return MOESIM_OK;
}
