/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generator must know of a trace that it is to be like, pass by pass.
 */
#include <math.h>

#include "base/bits.h"
#include "traces/gen_like.h"

static uint32_t cell_of(float confidence)
{
    if (isnan(confidence))
        return MOESIM_GEN_CELLS;
    const uint32_t cell = (uint32_t)((double)confidence * MOESIM_GEN_CELLS);
    return cell < MOESIM_GEN_CELLS ? cell : MOESIM_GEN_CELLS - 1;
}

static enum moesim_gen_class class_of(uint8_t state)
{
    static const enum moesim_gen_class of[] = {
        [MOESIM_STATE_MASKED] = MOESIM_GEN_MASKED, [MOESIM_STATE_COMMITTED_NOW] = MOESIM_GEN_JUST,
        [MOESIM_STATE_COMMITTED] = MOESIM_GEN_LONG, [MOESIM_STATE_EDITED] = MOESIM_GEN_JUST,
    };
    return of[state];
}

static uint32_t count_states(const moesim_past *p, uint8_t state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->rows; i++)
        n += p->state[i] == state;
    return n;
}

static uint32_t masked_rows(const moesim_past *p)
{
    return count_states(p, MOESIM_STATE_MASKED) + count_states(p, MOESIM_STATE_COMMITTED_NOW);
}

/* True if the rows that commit are those from the threshold up, or the best one alone. */
static bool by_threshold(const moesim_past *p, double threshold)
{
    float least = INFINITY, best = -INFINITY;
    uint32_t commits = 0;
    for (uint32_t i = 0; i < p->rows; i++) {
        if (p->state[i] == MOESIM_STATE_COMMITTED_NOW) {
            commits++;
            least = fminf(least, p->confidence[i]);
        } else if (p->state[i] == MOESIM_STATE_MASKED) {
            best = fmaxf(best, p->confidence[i]);
        }
    }
    return commits == 0 || (double)least >= threshold - 1e-3 || (commits == 1 && best <= least);
}

static void count_sizes(moesim_gen_measure *m, const moesim_past *now, uint32_t masked)
{
    for (uint32_t l = 0; l < m->layers; l++)
        m->size[masked].sum += moesim_bits_count(now->active + (size_t)l * m->words, m->words);
    m->size[masked].n += m->layers;
    for (size_t i = 0; i < (size_t)now->rows * m->layers * m->top_k; i++)
        m->unrouted += now->expert[i] == UINT16_MAX;
}

static void count_members(moesim_gen_measure *m, const moesim_past *now)
{
    for (uint32_t w = 0; w < m->layers * m->words && m->member != NULL; w++)
        for (uint64_t in = now->active[w]; in != 0; in &= in - 1)
            m->member[(size_t)w * 64 + (uint32_t)__builtin_ctzll(in)]++;
}

static void count_leaves(moesim_gen_measure *m, const moesim_past *old, const moesim_past *now)
{
    moesim_mean *leave = &m->leave[masked_rows(old)];
    for (uint32_t l = 0; l < m->layers; l++) {
        const uint64_t *a = old->active + (size_t)l * m->words, *b = now->active + (size_t)l * m->words;
        uint32_t gone = 0;
        for (uint32_t w = 0; w < m->words; w++)
            gone += (uint32_t)__builtin_popcountll(a[w] & ~b[w]);
        leave->sum += gone / fmax(moesim_bits_count(a, m->words), 1.0);
    }
    leave->n += m->layers;
}

/* How many of the ids at a are among those at b. */
static uint32_t count_kept(const uint16_t *a, const uint16_t *b, uint32_t k)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = 0; j < k; j++)
            kept += a[i] == b[j] && a[i] != UINT16_MAX;
    return kept;
}

static void count_rows(moesim_gen_measure *m, const moesim_past *old, const moesim_past *now)
{
    const size_t k = m->top_k;
    for (uint32_t i = 0; i < now->rows; i++) {
        const enum moesim_gen_class class = class_of(old->state[i]);
        const double x = (double)old->confidence[i], y = (double)now->confidence[i];
        moesim_gen_pairs *p = &m->pairs[class];
        if (old->position[i] != now->position[i])
            continue;
        uint64_t *kept = m->kept[class][moesim_gen_cell_bin(cell_of(old->confidence[i]))];
        for (size_t l = 0; l < m->layers; l++) {
            const size_t at = (i * (size_t)m->layers + l) * k;
            kept[count_kept(old->expert + at, now->expert + at, m->top_k)]++;
        }
        if (isnan(x) || isnan(y))
            continue;
        p->n += 1.0;
        p->x += x;
        p->y += y;
        p->xx += x * x;
        p->yy += y * y;
        p->xy += x * y;
    }
}

static void count_decoder(moesim_gen_measure *m, const moesim_past *now, uint8_t kind, uint32_t masked)
{
    m->edited += count_states(now, MOESIM_STATE_EDITED);
    if (kind == MOESIM_PASS_COMMIT) {
        m->commit_passes++;
        for (uint32_t i = 0; i < now->rows; i++)
            m->held[cell_of(now->confidence[i])]++;
        return;
    }
    m->commits[masked][count_states(now, MOESIM_STATE_COMMITTED_NOW)]++;
    m->idle += masked == 0;
    m->unordered += !by_threshold(now, m->threshold);
    for (uint32_t i = 0; i < now->rows; i++)
        m->cell[class_of(now->state[i])][cell_of(now->confidence[i])]++;
}

void moesim_gen_measure_pass(void *cookie, const moesim_pass *pass, moesim_open_request *request)
{
    moesim_gen_measure *m = cookie;
    const moesim_past *now = moesim_open_request_pass(request, 0), *old = moesim_open_request_pass(request, 1);
    if (now->rows != m->block) {
        m->odd++;
        return;
    }
    const uint32_t masked = masked_rows(now);
    count_decoder(m, now, pass->kind, masked);
    count_sizes(m, now, masked);
    count_members(m, now);
    if (request->held == 0) {
        m->blocks++;
        m->start[masked]++;
    } else if (old->rows == m->block) {
        count_leaves(m, old, now);
        count_rows(m, old, now);
    }
}
