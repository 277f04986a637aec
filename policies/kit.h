/* SPDX-License-Identifier: Apache-2.0
 *
 * What policy files share: layout of the state, *last*, bit iteration and a seeded generator. Everything is inline, so a
 * policy outside the tree needs this header and moesim/policy.h and nothing to link.
 * No function here allocates, fails or keeps global state.
 */
#ifndef MOESIM_POLICIES_KIT_H
#define MOESIM_POLICIES_KIT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "moesim/policy.h"

/* Compiles a function for AVX2 and for the baseline; the loader picks once. Both give the same bytes: neither target has
 * fused multiply-add, and no sum is reordered. Left out under sanitizers, whose start-up does not get along with ifuncs, and
 * under clang, which gives the resolver of a static function a global name. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define KIT_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KIT_SANITIZED 1
#endif
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && !defined(KIT_SANITIZED) && !defined(__clang__)
#define MOESIM_MULTIVERSION __attribute__((target_clones("avx2", "default")))
#else
#define MOESIM_MULTIVERSION
#endif

/* ---- state ----------------------------------------------------------------------------------------------------- */

/* The state of a policy is its own head struct, then `arrays` arrays of 8-byte elements per layer, each `stride` elements
 * long. The head begins with this; kit_open fills it. */
typedef struct kit_head {
    uint32_t layers, experts, words;
    uint32_t stride;             /* elements of one array: see kit_stride */
    uint32_t arrays;             /* arrays per layer */
    uint64_t offset;             /* bytes before the arrays: the head rounded up to a cache line */
} kit_head;

static inline size_t kit_round(size_t bytes)
{
    return (bytes + 63u) & ~(size_t)63u;
}

/* Whole cache lines, and one more, because arrays a power of two apart share cache sets and stall each other's loads. */
static inline uint32_t kit_stride(const moesim_shape *shape)
{
    return ((shape->num_experts + 7u) & ~7u) + 8u;
}

/* Bytes of the state: at most 1024 layers × 1024 experts, so the product fits. */
static inline size_t kit_bytes(const moesim_shape *shape, size_t head_bytes, uint32_t arrays)
{
    return kit_round(head_bytes) + (size_t)shape->num_layers * arrays * kit_stride(shape) * sizeof(double);
}

static inline void kit_open(kit_head *head, const moesim_shape *shape, size_t head_bytes, uint32_t arrays)
{
    head->layers = shape->num_layers;
    head->experts = shape->num_experts;
    head->words = shape->words;
    head->stride = kit_stride(shape);
    head->arrays = arrays;
    head->offset = kit_round(head_bytes);
}

/* Array `which` of a layer. */
static inline void *kit_array(kit_head *head, uint32_t layer, uint32_t which)
{
    const size_t index = ((size_t)layer * head->arrays + which) * head->stride;
    return (unsigned char *)head + head->offset + index * sizeof(double);
}

static inline double *kit_doubles(kit_head *head, uint32_t layer, uint32_t which)
{
    return (double *)kit_array(head, layer, which);
}

static inline uint64_t *kit_words(kit_head *head, uint32_t layer, uint32_t which)
{
    return (uint64_t *)kit_array(head, layer, which);
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* *last* of the i-th active expert: the clock, in scope global the serial number of its last touch. */
static inline double kit_last(const moesim_event *event, uint32_t i)
{
    return (double)(int64_t)(event->touch != NULL ? event->touch[i] : event->clock);   /* signed: one instruction */
}

/* Writes *last* of the active experts into last[E]. */
static inline void kit_touch(const moesim_event *event, double *last)
{
    for (uint32_t i = 0; i < event->n_active; i++)
        last[event->list[i]] = kit_last(event, i);
}

static inline int kit_test(const uint64_t *set, uint32_t e)
{
    return (int)((set[e >> 6] >> (e & 63u)) & 1u);
}

/* Loops e over the members of a set of `words` words, ascending. `break` leaves the inner loop only. */
#define KIT_EACH(e, set, words)                                                                              \
    for (uint32_t e##_word = 0; e##_word < (words); e##_word++)                                              \
        for (uint64_t e##_left = (set)[e##_word], e = 0;                                                     \
             e##_left != 0 && ((e = e##_word * 64u + (uint64_t)__builtin_ctzll(e##_left)), 1);               \
             e##_left &= e##_left - 1)

/* Decayed frequency F of surv and next-pass: F ← KEEP·F + GAIN·[e ∈ A]; a prefill counts as eight passes (.95⁸). */
#define KIT_KEEP 0.95
#define KIT_GAIN 0.05
#define KIT_KEEP_PREFILL 0.6634204312890623

/* keep·x, in steps of 2^-982: an endless decay would end in subnormal numbers, which are slow and stay for ever. Adding and
 * taking away the small number leaves everything above 1e-260 as it was, and needs no branch. */
static inline double kit_fade(double x, double keep)
{
    return x * keep + 0x1p-930 - 0x1p-930;
}

/* ---- seeded generator: splitmix64 (Steele, Lea, Flood) ----------------------------------------------------------- */

static inline uint64_t kit_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* [0, 1), 53 bits. */
static inline double kit_random_real(uint64_t *state)
{
    return (double)(kit_random(state) >> 11) * 0x1.0p-53;
}

#endif
