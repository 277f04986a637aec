/* SPDX-License-Identifier: Apache-2.0
 *
 * How the misses of one event are split between the link and the CPU (OLED-MoE §4.4). |M| misses, G of them copied to the
 * GPU; T_comp = max(|G|·T_H2D, [step + Σ over M\G of T_CPU(tokens)]).
 *
 * reuse: the round(ρ|M|) misses of highest p start in G (ties: lower id). Then, at most |M| times, the best of all moves and
 * swaps is made if it lowers (T_comp, −Σ over G of p) lexicographically, with λ > 0 if it lowers (T_comp − λ·Σp, −Σp), |G|
 * staying within max(1, ⌈.1|M|⌉) of ρ|M|. Of equally good ones: a move to the GPU, a move to the CPU, a swap; then more tokens
 * to the GPU, fewer to the CPU; then higher p to the GPU, lower p to the CPU; then lower id to the GPU, higher id to the CPU.
 * load: the split of least T_comp, p ignored; of equals the one with fewer on the CPU.
 *
 * Experts with the same tokens cost the same, so of each class of equal tokens only the best to move in (highest p) and the
 * best to move out (lowest p) can be best overall: G holds the first few of every class in the order of p, always.
 * Inline, like policies/kit.h. Nothing here allocates, fails or keeps state.
 */
#ifndef MOESIM_POLICIES_KIT_SPLIT_H
#define MOESIM_POLICIES_KIT_SPLIT_H

#include <math.h>
#include <stdint.h>

#include "policies/kit.h"

#define KIT_MOST_MISSES 1024u
#define KIT_NONE UINT16_MAX

/* The misses of one event, by ascending id, and what they cost. Costs are finite and ≥ 0. */
typedef struct kit_misses {
    uint32_t n;                  /* 1..KIT_MOST_MISSES */
    const uint32_t *tokens;      /* [n] ≥ 1 */
    const double *p;             /* [n] finite; NULL: all alike */
    double h2d_s;                /* copy of one expert */
    double step_s;               /* once if any runs on the CPU */
    const double *cpu_s;         /* [cpu_tokens + 1] one expert on the CPU by tokens */
    uint32_t cpu_tokens;         /* ≥ 1 */
} kit_misses;

/* The answer: order[r] is the miss (0..n−1) of rank r by falling p, ties ascending; moved[r] whether it goes to the GPU. */
typedef struct kit_split {
    uint16_t order[KIT_MOST_MISSES];
    unsigned char moved[KIT_MOST_MISSES];
} kit_split;

/* Seconds of one expert on the CPU: linear between whole tokens, by the last slope (0 if it falls) beyond the table. */
static inline double kit_cpu_s(const kit_misses *m, double tokens)
{
    const double last = m->cpu_tokens;
    if (tokens >= last) {
        const double slope = m->cpu_s[m->cpu_tokens] - m->cpu_s[m->cpu_tokens - 1];
        return m->cpu_s[m->cpu_tokens] + (slope > 0 ? slope * (tokens - last) : 0);
    }
    const uint32_t below = (uint32_t)tokens;
    return m->cpu_s[below] + (tokens - below) * (m->cpu_s[below + 1] - m->cpu_s[below]);
}

/* ρ = n̄·τ/(n̄·τ + T_H2D), n̄ tokens per missed expert, τ = T_CPU(n̄)/n̄. 1 where nothing costs anything. */
static inline double kit_rho(const kit_misses *m, double mean_tokens)
{
    const double cpu = kit_cpu_s(m, mean_tokens);
    return cpu + m->h2d_s > 0 ? cpu / (cpu + m->h2d_s) : 1;
}

/* ---- whole numbers of time ------------------------------------------------------------------------------------------ */

/* Times as multiples of 2^-24 of the CPU time of one token, in doubles: sums are exact in any order, and a table that is
 * linear in tokens stays so. Up to 2^42 each, so that 1024 of them fit 2^52. */
static inline double kit_unit(const kit_misses *m)
{
    const double unit = m->cpu_s[1] > 0 ? m->cpu_s[1] : m->h2d_s;
    return (unit > 0 ? unit : 1) * 0x1p-24;
}

static inline double kit_ticks(double seconds, double unit)
{
    const double x = seconds / unit;
    return (double)(int64_t)((x < 0x1p42 ? x : 0x1p42) + 0.5);
}

/* ---- order ---------------------------------------------------------------------------------------------------------- */

typedef struct kit_rank {
    double key;
    uint32_t index;
} kit_rank;

static inline int kit_rank_before(kit_rank a, kit_rank b)
{
    return a.key > b.key || (!(a.key < b.key) && a.index < b.index);
}

/* Falling key, ties by ascending index. Shell sort, gaps by Ciura: short and without recursion. */
static inline void kit_rank_sort(kit_rank *rank, uint32_t n)
{
    static const uint16_t gaps[] = { 701, 301, 132, 57, 23, 10, 4, 1 };
    for (uint32_t g = 0; g < sizeof gaps / sizeof gaps[0]; g++) {
        const uint32_t gap = gaps[g];
        for (uint32_t i = gap; i < n; i++) {
            const kit_rank moving = rank[i];
            uint32_t at = i;
            for (; at >= gap && kit_rank_before(moving, rank[at - gap]); at -= gap)
                rank[at] = rank[at - gap];
            rank[at] = moving;
        }
    }
}

/* The same for few keys, by counting those before each: n² comparisons, but none of them a branch to be guessed. */
#define KIT_FEW 96u
MOESIM_MULTIVERSION
static void kit_rank_few(const double *key, uint32_t n, kit_rank *rank)
{
    int64_t place[KIT_FEW];
    for (uint32_t i = 0; i < n; i++) {
        const double mine = key[i];
        int64_t before = 0;
        for (uint32_t j = 0; j < i; j++)
            before += key[j] >= mine;
        for (uint32_t j = i + 1; j < n; j++)
            before += key[j] > mine;
        place[i] = before;
    }
    for (uint32_t i = 0; i < n; i++)
        rank[place[i]] = (kit_rank){ key[i], i };
}

static inline void kit_rank_keys(const double *key, uint32_t n, kit_rank *rank)
{
    if (n <= KIT_FEW) {
        kit_rank_few(key, n, rank);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        rank[i] = (kit_rank){ key[i], i };
    kit_rank_sort(rank, n);
}

static inline void kit_order(const kit_misses *m, kit_rank *rank, kit_split *out)
{
    for (uint32_t i = 0; i < m->n && m->p == NULL; i++)
        rank[i] = (kit_rank){ 0, i };
    if (m->p != NULL)
        kit_rank_keys(m->p, m->n, rank);
    for (uint32_t r = 0; r < m->n; r++) {
        out->order[r] = (uint16_t)rank[r].index;
        out->moved[r] = 0;
    }
}

/* ---- load ------------------------------------------------------------------------------------------------------------ */

/* However many run on the CPU, the cheapest there cost least together: so every number of them is tried. */
static inline void kit_split_load(const kit_misses *m, kit_split *out)
{
    kit_rank rank[KIT_MOST_MISSES];
    double key[KIT_MOST_MISSES];
    unsigned char on_cpu[KIT_MOST_MISSES];
    const double unit = kit_unit(m), h2d = kit_ticks(m->h2d_s, unit);
    double cpu = kit_ticks(m->step_s, unit), best = m->n * h2d;
    uint32_t most = 0;
    kit_order(m, rank, out);
    for (uint32_t i = 0; i < m->n; i++)
        key[i] = -kit_ticks(kit_cpu_s(m, m->tokens[i]), unit);
    kit_rank_keys(key, m->n, rank);
    for (uint32_t k = 1; k <= m->n; k++) {
        const double link = (m->n - k) * h2d;
        cpu -= rank[k - 1].key;
        on_cpu[rank[k - 1].index] = 0;
        if ((link > cpu ? link : cpu) < best) {
            best = link > cpu ? link : cpu;
            most = k;
        }
    }
    for (uint32_t k = 0; k < most; k++)
        on_cpu[rank[k].index] = 1;
    for (uint32_t r = 0; r < m->n; r++)
        out->moved[r] = !on_cpu[out->order[r]];
}

/* ---- reuse ----------------------------------------------------------------------------------------------------------- */

/* Misses of equal tokens, linked by rank: in is the first that is not in G, out the last that is; KIT_NONE without. */
typedef struct kit_class {
    double cost, in_p, out_p;
    uint32_t tokens;
    uint16_t in, out, tail;
} kit_class;

typedef struct kit_search {
    kit_class group[KIT_MOST_MISSES];    /* tokens falling */
    kit_rank rank[KIT_MOST_MISSES];
    uint16_t next[KIT_MOST_MISSES], previous[KIT_MOST_MISSES];
    uint32_t groups, moved, least, most, n;
    double h2d, step, cpu, lambda;       /* cpu: of those not in G, without step */
} kit_search;

/* A step: rank group[in].in to the GPU, group[out].out to the CPU; KIT_NONE: neither. */
typedef struct kit_step {
    double change, gain;                 /* of the objective, of Σp */
    uint32_t in, out;
} kit_step;

/* The class of these tokens, made if there is none. */
static inline kit_class *kit_class_of(kit_search *s, const kit_misses *m, uint32_t tokens, double unit)
{
    uint32_t low = 0, high = s->groups;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (s->group[middle].tokens > tokens)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < s->groups && s->group[low].tokens == tokens)
        return &s->group[low];
    for (uint32_t c = s->groups++; c > low; c--)
        s->group[c] = s->group[c - 1];
    s->group[low] = (kit_class){ kit_ticks(kit_cpu_s(m, tokens), unit), 0, 0, tokens, KIT_NONE, KIT_NONE, KIT_NONE };
    return &s->group[low];
}

/* What is in and out of G now. */
static inline void kit_class_set(const kit_search *s, kit_class *c, uint16_t in, uint16_t out)
{
    c->in = in;
    c->out = out;
    c->in_p = in != KIT_NONE ? s->rank[in].key : 0;
    c->out_p = out != KIT_NONE ? s->rank[out].key : 0;
}

/* Classes in the order of p, the first `start` in G. */
static inline void kit_search_start(kit_search *s, const kit_misses *m, double unit, uint32_t start, unsigned char *moved)
{
    for (uint32_t r = 0; r < m->n; r++) {
        kit_class *c = kit_class_of(s, m, m->tokens[s->rank[r].index], unit);
        const int first = c->in == KIT_NONE;
        s->next[r] = KIT_NONE;
        s->previous[r] = c->tail;
        if (c->tail != KIT_NONE)
            s->next[c->tail] = (uint16_t)r;
        c->tail = (uint16_t)r;
        moved[r] = r < start;
        if (r < start)
            kit_class_set(s, c, KIT_NONE, (uint16_t)r);
        else if (first)
            kit_class_set(s, c, (uint16_t)r, c->out);
        s->cpu += r < start ? 0 : c->cost;
    }
    s->moved = start;
}

static inline double kit_time(const kit_search *s, uint32_t moved, double cpu)
{
    const double link = moved * s->h2d, total = moved < s->n ? s->step + cpu : 0;
    return link > total ? link : total;
}

static inline void kit_better(kit_step *best, double change, double gain, uint32_t in, uint32_t out)
{
    if (change < best->change || (!(change > best->change) && gain > best->gain))
        *best = (kit_step){ change, gain, in, out };
}

/* The first of equally good ones stays, so the order of these loops is the order of ties. */
static inline kit_step kit_best_step(const kit_search *s)
{
    const double now = kit_time(s, s->moved, s->cpu);
    kit_step best = { 0, 0, KIT_NONE, KIT_NONE };
    for (uint32_t a = 0; a < s->groups && s->moved < s->most; a++) {
        const kit_class *c = &s->group[a];
        if (c->in != KIT_NONE)
            kit_better(&best, kit_time(s, s->moved + 1, s->cpu - c->cost) - now - s->lambda * c->in_p, c->in_p, a, KIT_NONE);
    }
    for (uint32_t b = s->groups; b-- > 0 && s->moved > s->least;) {
        const kit_class *c = &s->group[b];
        if (c->out != KIT_NONE)
            kit_better(&best, kit_time(s, s->moved - 1, s->cpu + c->cost) - now + s->lambda * c->out_p, -c->out_p, KIT_NONE, b);
    }
    const double link = s->moved * s->h2d;
    for (uint32_t a = 0; a < s->groups; a++) {
        const double in_p = s->group[a].in_p, rest = s->step + s->cpu - s->group[a].cost;
        for (uint32_t b = s->group[a].in != KIT_NONE ? s->groups : 0; b-- > 0;) {
            const kit_class *c = &s->group[b];
            const double cpu = rest + c->cost, gain = in_p - c->out_p;
            if (c->out != KIT_NONE && b != a)
                kit_better(&best, (link > cpu ? link : cpu) - now - s->lambda * gain, gain, a, b);
        }
    }
    return best;
}

static inline void kit_take_step(kit_search *s, const kit_step *step, unsigned char *moved)
{
    if (step->in != KIT_NONE) {
        kit_class *c = &s->group[step->in];
        const uint16_t r = c->in;
        moved[r] = 1;
        s->moved++;
        s->cpu -= c->cost;
        kit_class_set(s, c, s->next[r], r);
    }
    if (step->out != KIT_NONE) {
        kit_class *c = &s->group[step->out];
        const uint16_t r = c->out;
        moved[r] = 0;
        s->moved--;
        s->cpu += c->cost;
        kit_class_set(s, c, r, s->previous[r]);
    }
}

/* Stage 1. rho in [0, 1]; lambda ≥ 0 in seconds per unit of p. */
static inline void kit_search_open(kit_search *s, const kit_misses *m, double rho, double lambda, kit_split *out)
{
    const double unit = kit_unit(m), target = rho * m->n, width = (m->n + 9) / 10, noise = 1e-9;
    const double least = ceil(target - width - noise), most = floor(target + width + noise);
    kit_order(m, s->rank, out);
    s->groups = 0;
    s->n = m->n;
    s->least = least > 0 ? (uint32_t)least : 0;
    s->most = most < m->n ? (uint32_t)most : m->n;
    s->h2d = kit_ticks(m->h2d_s, unit);
    s->step = kit_ticks(m->step_s, unit);
    s->cpu = 0;
    s->lambda = lambda / unit;
    kit_search_start(s, m, unit, (uint32_t)(target + 0.5 + noise), out->moved);
}

static inline void kit_split_reuse(const kit_misses *m, double rho, double lambda, kit_split *out)
{
    kit_search s;
    kit_search_open(&s, m, rho, lambda, out);
    for (uint32_t i = 0; i < m->n; i++) {
        const kit_step step = kit_best_step(&s);
        if (step.in == KIT_NONE && step.out == KIT_NONE)
            return;
        kit_take_step(&s, &step, out->moved);
    }
}

#endif
