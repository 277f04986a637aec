/* SPDX-License-Identifier: Apache-2.0
 *
 * Dispatch of misses for policies (OLED-MoE §4.4): the options, the costs kept in the state, the running mean n̄, and the
 * answer to the host. The split itself is policies/kit_split.h.
 *
 * n̄, tokens per missed expert, is the running mean over the misses of all decode events of the run so far, this one's
 * included, all layers together; a prefill, whose experts get many more tokens, counts for itself alone.
 * Inline, like policies/kit.h; no function allocates or fails but kit_dispatch_open. One instance, one thread.
 */
#ifndef MOESIM_POLICIES_KIT_DISPATCH_H
#define MOESIM_POLICIES_KIT_DISPATCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "moesim/policy.h"
#include "policies/kit.h"
#include "policies/kit_split.h"

enum { KIT_MOVE_ALL, KIT_REUSE, KIT_LOAD };

/* Part of a policy's options. */
typedef struct kit_dispatch_options {
    double lambda;               /* seconds per unit of p; reuse alone reads it */
    int32_t how;
} kit_dispatch_options;

static const char *const kit_dispatch_names[] = { "all", "reuse", "load", NULL };

/* Two rows of an option table; `options` is the option struct, which has a kit_dispatch_options `dispatch`. */
#define KIT_DISPATCH_ROWS(options, def)                                                                                   \
    { "dispatch", MOESIM_OPTION_CHOICE, offsetof(options, dispatch.how), def, 0, 0, kit_dispatch_names,                   \
      "which misses run on the CPU: none, those that priority and least time leave there, or those of least time" },     \
    { "lambda", MOESIM_OPTION_REAL, offsetof(options, dispatch.lambda), "0", 0, 1e6, NULL,                                \
      "dispatch=reuse weighs priority against time by so many seconds; 0: time first, priority among equals" }

/* Part of a policy's state. */
typedef struct kit_dispatch {
    kit_dispatch_options options;
    uint32_t layers, cpu_tokens;
    double step_s;
    uint64_t tokens, misses;     /* of the decode events so far */
    uint64_t offset;             /* bytes from here to h2d_s[layers], cpu_s[cpu_tokens + 1] */
} kit_dispatch;

/* Entries of the CPU table that are kept; events with more tokens for one expert go on by the last slope. */
static inline uint32_t kit_dispatch_tokens(const moesim_shape *shape)
{
    return shape->max_rows < 1 ? 1 : shape->max_rows < 4096 ? shape->max_rows : 4096;
}

/* Bytes of the kept costs, a multiple of 8. */
static inline size_t kit_dispatch_bytes(const moesim_shape *shape)
{
    return ((size_t)shape->num_layers + kit_dispatch_tokens(shape) + 1) * sizeof(double);
}

static inline uint32_t kit_dispatch_needs(const kit_dispatch_options *options)
{
    return options->how != KIT_MOVE_ALL ? MOESIM_NEED_COSTS | MOESIM_NEED_COUNTS : 0;
}

/* Copies the costs into memory, of kit_dispatch_bytes, aligned to 8, in the same block as d. Returns 0, or what is wrong
 * with the options. */
static inline const char *kit_dispatch_open(kit_dispatch *d, const kit_dispatch_options *options, const moesim_open *open,
                                            void *memory, moesim_start *start)
{
    const moesim_costs *costs = open->costs;
    d->options = *options;
    if (options->lambda > 0 && options->how != KIT_REUSE)
        return "lambda takes effect only with dispatch=reuse";
    if (options->how == KIT_MOVE_ALL) {
        start->traits |= MOESIM_MOVES_ALL;
        return NULL;
    }
    if (costs == NULL || costs->cpu_tokens == 0)
        return "dispatch=reuse and dispatch=load need the costs of a hardware profile, which a run that counts does not have; "
               "give --time model";
    double *kept = (double *)memory;
    const uint32_t most = kit_dispatch_tokens(open->shape);
    d->layers = open->shape->num_layers;
    d->cpu_tokens = costs->cpu_tokens < most ? costs->cpu_tokens : most;
    d->step_s = costs->cpu_step_s;
    d->offset = (uint64_t)((unsigned char *)memory - (unsigned char *)d);
    memcpy(kept, costs->h2d_s, d->layers * sizeof *kept);
    memcpy(kept + d->layers, costs->cpu_s, (d->cpu_tokens + (size_t)1) * sizeof *kept);
    return NULL;
}

/* n̄ with the misses of this event. */
static inline double kit_dispatch_mean(kit_dispatch *d, const moesim_event *event, const kit_misses *m)
{
    uint64_t tokens = 0, misses = m->n;
    for (uint32_t i = 0; i < m->n; i++)
        tokens += m->tokens[i];
    if (event->kind != MOESIM_PREFILL) {
        tokens = d->tokens += tokens;
        misses = d->misses += misses;
    }
    return (double)tokens / (double)misses;
}

/* Fills the host's answer. p[n_active] runs parallel to event.list; NULL: all alike. Copies in the order of falling p. */
static inline void kit_dispatch_answer(kit_dispatch *d, const moesim_event *event, const double *p, moesim_dispatch *answer)
{
    const double *costs = (const double *)((const unsigned char *)d + d->offset);
    uint32_t tokens[KIT_MOST_MISSES];
    uint16_t id[KIT_MOST_MISSES];
    double priority[KIT_MOST_MISSES];
    kit_split split;
    kit_misses m = { 0, tokens, p != NULL ? priority : NULL, costs[event->layer], d->step_s, costs + d->layers,
                     d->cpu_tokens };
    for (uint32_t i = 0; i < event->n_active; i++) {
        id[m.n] = event->list[i];
        tokens[m.n] = event->count[i];
        priority[m.n] = p != NULL ? p[i] : 0;
        m.n += (uint32_t)kit_test(answer->misses, event->list[i]);
    }
    if (m.n == 0)
        return;
    const double mean = kit_dispatch_mean(d, event, &m);
    if (d->options.how == KIT_REUSE)
        kit_split_reuse(&m, kit_rho(&m, mean), d->options.lambda, &split);
    else
        kit_split_load(&m, &split);
    for (uint32_t r = 0; r < m.n; r++) {
        const uint32_t e = id[split.order[r]];
        answer->order[r] = (uint16_t)e;
        answer->cpu[e >> 6] |= (uint64_t)!split.moved[r] << (e & 63u);
    }
}

#endif
