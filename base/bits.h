/* SPDX-License-Identifier: Apache-2.0
 *
 * Bitsets of experts: expert e is bit (e & 63) of word (e >> 6).
 */
#ifndef MOESIM_BASE_BITS_H
#define MOESIM_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t moesim_words(uint32_t experts) { return (experts + 63u) >> 6; }
static inline void moesim_bit_set(uint64_t *w, uint32_t e) { w[e >> 6] |= UINT64_C(1) << (e & 63u); }
static inline void moesim_bit_clear(uint64_t *w, uint32_t e) { w[e >> 6] &= ~(UINT64_C(1) << (e & 63u)); }
static inline bool moesim_bit_test(const uint64_t *w, uint32_t e) { return (w[e >> 6] >> (e & 63u)) & 1u; }

static inline uint32_t moesim_bits_count(const uint64_t *w, uint32_t words)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < words; i++)
        n += (uint32_t)__builtin_popcountll(w[i]);
    return n;
}

/* Runs `body` for each set bit, ascending; `e` is a uint32_t in scope. */
#define MOESIM_EACH_BIT(e, set, words, body)                                               \
    do {                                                                                   \
        for (uint32_t mb_i = 0; mb_i < (words); mb_i++) {                                  \
            for (uint64_t mb_w = (set)[mb_i]; mb_w != 0; mb_w &= mb_w - 1) {               \
                const uint32_t e = mb_i * 64u + (uint32_t)__builtin_ctzll(mb_w);           \
                body                                                                       \
            }                                                                              \
        }                                                                                  \
    } while (0)

#endif
