/* SPDX-License-Identifier: Apache-2.0
 *
 * Row rules of the format.
 */
#include "traces/check.h"

#include <stdio.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define NO_ROUTE 65535u

/* ---- experts ------------------------------------------------------------------------------------------------------- */

/* One row and layer, any K: a bit for each id seen. */
static bool group_good(const uint16_t *id, uint32_t k, uint32_t experts)
{
    uint64_t seen[16] = {0};
    for (uint32_t i = 0; i < k; i++) {
        if (id[i] == NO_ROUTE)
            continue;
        if (id[i] >= experts || (seen[id[i] >> 6] >> (id[i] & 63u) & 1u) != 0)
            return false;
        seen[id[i] >> 6] |= UINT64_C(1) << (id[i] & 63u);
    }
    return true;
}

#if defined(__SSE2__)
/* Lanes that break a rule among 8 ids: too large, or equal to another lane. Rotations by 1 to 4 lanes meet all pairs. */
static inline __m128i bad_lanes(__m128i id, __m128i most)
{
    const __m128i unused = _mm_cmpeq_epi16(id, _mm_set1_epi16(-1));
    const __m128i by1 = _mm_or_si128(_mm_srli_si128(id, 2), _mm_slli_si128(id, 14));
    const __m128i by2 = _mm_shuffle_epi32(id, _MM_SHUFFLE(0, 3, 2, 1));
    const __m128i by3 = _mm_or_si128(_mm_srli_si128(id, 6), _mm_slli_si128(id, 10));
    const __m128i by4 = _mm_shuffle_epi32(id, _MM_SHUFFLE(1, 0, 3, 2));
    const __m128i twice = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi16(id, by1), _mm_cmpeq_epi16(id, by2)),
                                       _mm_or_si128(_mm_cmpeq_epi16(id, by3), _mm_cmpeq_epi16(id, by4)));
    return _mm_andnot_si128(unused, _mm_or_si128(twice, _mm_subs_epu16(id, most)));
}

static bool groups_good_narrow(const uint16_t *id, size_t groups, uint32_t k, uint32_t experts)
{
    const __m128i most = _mm_set1_epi16((short)(experts - 1));
    __m128i bad = _mm_setzero_si128();
    if (k == 8) {
        for (size_t g = 0; g < groups; g++)
            bad = _mm_or_si128(bad, bad_lanes(_mm_loadu_si128((const __m128i *)(const void *)(id + g * 8)), most));
    } else {
        uint16_t lane[8];
        memset(lane, 0xff, sizeof lane);
        for (size_t g = 0; g < groups; g++) {
            for (uint32_t i = 0; i < k; i++)
                lane[i] = id[g * k + i];
            bad = _mm_or_si128(bad, bad_lanes(_mm_loadu_si128((const __m128i *)(const void *)lane), most));
        }
    }
    return _mm_movemask_epi8(_mm_cmpeq_epi8(bad, _mm_setzero_si128())) == 0xffff;
}
#endif

static bool groups_good(const uint16_t *id, size_t groups, uint32_t k, uint32_t experts)
{
#if defined(__SSE2__)
    if (k <= 8)
        return groups_good_narrow(id, groups, k, experts);
#endif
    for (size_t g = 0; g < groups; g++)
        if (!group_good(id + g * k, k, experts))
            return false;
    return true;
}

/* The first rule that the ids of row r, layer l break. */
static moesim_code explain_group(const moesim_check *c, const uint16_t *id, uint64_t r, uint32_t l, moesim_error *err)
{
    const uint32_t k = c->info->top_k, experts = c->info->num_experts;
    const unsigned long long row = r;
    uint32_t zeros = 0;
    for (uint32_t i = 0; i < k; i++)
        zeros += id[i] == 0;
    if (zeros == k && k > 1)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: %s[%llu, %u]: all %u slots are 0: an engine fills dense layers with zeros; leave dense layers "
                           "out of the trace (num_moe_layers counts MoE layers only) or mark unused slots with 65535",
                           c->info->path, c->name, row, l, k);
    for (uint32_t i = 0; i < k; i++) {
        if (id[i] == NO_ROUTE)
            continue;
        if (id[i] >= experts)
            return moesim_fail(err, MOESIM_E_FORMAT,
                               "%s: %s[%llu, %u, %u] is %u, allowed are ids below num_experts = %u, and 65535 for no route",
                               c->info->path, c->name, row, l, i, id[i], experts);
        for (uint32_t j = 0; j < i; j++)
            if (id[j] == id[i])
                return moesim_fail(err, MOESIM_E_FORMAT,
                                   "%s: %s[%llu, %u, %u] is %u, as slot %u is already: a row uses an expert once per layer",
                                   c->info->path, c->name, row, l, i, id[i], j);
    }
    return moesim_fail(err, MOESIM_E_INTERNAL, "%s: %s[%llu, %u] was refused without a reason", c->info->path, c->name, row,
                       l);
}

moesim_code moesim_check_expert(const moesim_check *check, const void *data, moesim_error *err)
{
    const uint16_t *id = data;
    const uint32_t m = check->info->num_layers, k = check->info->top_k, experts = check->info->num_experts;
    if (groups_good(id, (size_t)check->n * m, k, experts))
        return MOESIM_OK;
    for (uint64_t r = 0; r < check->n; r++)
        for (uint32_t l = 0; l < m; l++, id += k)
            if (!group_good(id, k, experts))
                return explain_group(check, id, check->row + r, l, err);
    return moesim_fail(err, MOESIM_E_INTERNAL, "%s: %s: the quick check disagrees with the slow one", check->info->path,
                       check->name);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

/* "[row]" or "[row, i, j]" of element number e. */
static void index_text(const moesim_check *c, size_t e, char out[64])
{
    const size_t width = (size_t)c->inner[0] * c->inner[1];
    const unsigned long long row = c->row + e / width;
    if (width == 1)
        (void)snprintf(out, 64, "[%llu]", row);
    else
        (void)snprintf(out, 64, "[%llu, %zu, %zu]", row, e % width / c->inner[1], e % c->inner[1]);
}

static size_t elements(const moesim_check *c)
{
    return (size_t)c->n * c->inner[0] * c->inner[1];
}

static moesim_code refuse(const moesim_check *c, size_t e, double value, const char *rule, moesim_error *err)
{
    char at[64];
    index_text(c, e, at);
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s%s is %g, %s", c->info->path, c->name, at, value, rule);
}

static double half_value(uint16_t bits)
{
    float value;
    moesim_widen_half_scalar(&bits, &value, 1);
    return (double)value;
}

/* Each rule once as an expression over one element, so that the quick loop (which compilers vectorise) and the search for
 * the first offence cannot differ. −0 is 0. */
#define DEFINE_CHECK(function, type, is_bad, value, rule)                                                     \
    moesim_code function(const moesim_check *check, const void *data, moesim_error *err)                      \
    {                                                                                                         \
        const type *const p = data;                                                                           \
        const size_t n = elements(check);                                                                     \
        unsigned bad = 0;                                                                                     \
        for (size_t i = 0; i < n; i++)                                                                        \
            bad |= (unsigned)(is_bad);                                                                        \
        for (size_t i = 0; bad != 0 && i < n; i++)                                                            \
            if (is_bad)                                                                                       \
                return refuse(check, i, (value), rule, err);                                                  \
        return MOESIM_OK;                                                                                     \
    }

DEFINE_CHECK(moesim_check_gate_half, uint16_t, (p[i] >= 0x7c00u) & (p[i] != 0x8000u), half_value(p[i]),
             "a gate score is finite and not negative")
DEFINE_CHECK(moesim_check_gate_float, float, !(p[i] >= 0.0f && p[i] <= 3.4028234663852886e38f), (double)p[i],
             "a gate score is finite and not negative")
DEFINE_CHECK(moesim_check_confidence, uint16_t,
             (p[i] > 0x3c00u) & ((p[i] & 0x7fffu) <= 0x7c00u) & (p[i] != 0x8000u), half_value(p[i]),
             "a confidence lies within 0 and 1, or is NaN where it is not known")
DEFINE_CHECK(moesim_check_prob, uint16_t, (p[i] & 0x7c00u) == 0x7c00u, half_value(p[i]), "a router score is finite")
DEFINE_CHECK(moesim_check_state, uint8_t, p[i] > 3, (double)p[i],
             "allowed are 0 masked, 1 committed by this pass, 2 committed earlier, 3 edited by this pass")
DEFINE_CHECK(moesim_check_position, int32_t, p[i] < 0, (double)p[i], "a position is not negative")
DEFINE_CHECK(moesim_check_residency, uint8_t, p[i] > 2, (double)p[i],
             "allowed are 0 miss, 1 hit, 2 hit through prefetch")
