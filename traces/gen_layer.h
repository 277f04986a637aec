/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of one MoE layer of the generator. Internal to traces/gen*.c.
 */
#ifndef MOESIM_TRACES_GEN_LAYER_H
#define MOESIM_TRACES_GEN_LAYER_H

#include "base/rng.h"
#include "traces/gen.h"

#define MOESIM_GEN_NONE UINT16_MAX

static inline uint32_t moesim_gen_below(moesim_rng *r, uint32_t n)
{
    return (uint32_t)(((moesim_rng_u64(r) >> 32) * n) >> 32);
}

static inline void moesim_gen_shuffle(moesim_rng *r, uint16_t *ids, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t j = moesim_gen_below(r, i);
        const uint16_t e = ids[j];
        ids[j] = ids[i - 1];
        ids[i - 1] = e;
    }
}

/* Popularity of experts as an alias table (Vose): one draw takes one random number. */
typedef struct moesim_gen_popularity { uint32_t *cut; uint16_t *other; } moesim_gen_popularity;

/* What all layers share. */
typedef struct moesim_gen_shape {
    uint32_t rows, top_k, experts;
    double overlap, boundary, comeback;
    double leave;                /* share of A that leaves it, in place of the overlap; NaN: the overlap counts */
    double old_routes[MOESIM_GEN_CLASSES];   /* how often a row that takes experts prefers one that it held earlier */
    double weight[MOESIM_GEN_CLASSES][64];   /* of a rank when a row drops experts, ascending */
    uint8_t kind[MOESIM_GEN_MAX_BLOCK];      /* of each row in the pass before: enum moesim_gen_class */
    bool recent;                 /* like a trace: what was left last comes back first, and low ranks go first */
    /* only if recent: */
    double apart;                /* how often committed rows keep away from experts of masked ones */
    double expire;               /* how often experts that leave from masked rows alone do not come back in their block */
    double forget;               /* how often a row just committed does not come back to what it held as a masked one */
} moesim_gen_shape;

typedef struct moesim_gen_layer {
    uint16_t *ids;               /* [rows][K] in rank order */
    uint16_t *before;            /* [rows][K] of the pass before */
    uint16_t *dropped;           /* [rows][K] ring of what a row held earlier in the block */
    uint64_t *holders;           /* [E] rows that hold the expert, one bit each */
    uint16_t *active, *place;    /* [E] the set A, and where in it an expert is (NONE: nowhere) */
    uint16_t *left;              /* [E] what left A in this block and is not back */
    uint8_t *mark;               /* [E] enum moesim_gen_mark */
    uint8_t *ring;               /* [rows] */
    double *draw;                /* [rows] what decided last how many experts a row gives up */
    uint32_t size, gone;         /* of active, left */
    double target, drift;        /* mean |A|, and the deviation of now */
    void *memory;
} moesim_gen_layer;

moesim_code moesim_gen_layer_create(moesim_gen_layer *layer, const moesim_gen_shape *shape, double target, moesim_error *err);
void moesim_gen_layer_destroy(moesim_gen_layer *layer);

/* First pass of a block; first: of a request (nothing of the block before is kept). */
void moesim_gen_layer_begin(moesim_gen_layer *layer, const moesim_gen_shape *shape, const moesim_gen_popularity *popularity,
                            bool first, moesim_rng *rng);

/* Next pass of the block. drop [rows]: how many experts each row gives up; fewer where the layer has no others for it. */
void moesim_gen_layer_step(moesim_gen_layer *layer, const moesim_gen_shape *shape, const moesim_gen_popularity *popularity,
                           const uint8_t *drop, moesim_rng *rng);

/* ---- shared by gen_layer.c and gen_step.c ---- */

enum moesim_gen_mark { MOESIM_GEN_CORE = 1, MOESIM_GEN_LEFT = 2 };   /* stays as long as others can leave; lies in `left` */

#define MOESIM_GEN_TRIES 24u

static inline bool moesim_gen_contains(const uint16_t *ids, uint32_t n, uint16_t e)
{
    bool found = false;
    for (uint32_t i = 0; i < n; i++)
        found |= ids[i] == e;
    return found;
}

/* x rounded up or down at random, with mean x. */
static inline uint32_t moesim_gen_round(moesim_rng *rng, double x)
{
    return (uint32_t)(x + moesim_rng_real(rng));
}

void moesim_gen_enter(moesim_gen_layer *layer, uint16_t e);

/* Size of the next A: wanders around the target. */
uint32_t moesim_gen_next_size(moesim_gen_layer *layer, const moesim_gen_shape *shape, moesim_rng *rng);

/* An expert by popularity that is neither active nor marked; if there is none, any that is not active; NONE if all are. */
uint16_t moesim_gen_new_expert(const moesim_gen_layer *layer, const moesim_gen_shape *shape,
                               const moesim_gen_popularity *popularity, moesim_rng *rng);

/* Fills out [workloads][M], all zeroed: half of an expert's popularity is its layer's, half the workload's. */
moesim_code moesim_gen_popularity_fill(moesim_gen_popularity *out, const moesim_gen_config *config, moesim_rng *rng,
                                       moesim_error *err);
void moesim_gen_popularity_destroy(moesim_gen_popularity *p);

static inline uint16_t moesim_gen_draw(const moesim_gen_popularity *p, uint32_t experts, moesim_rng *rng)
{
    const uint64_t u = moesim_rng_u64(rng);
    const uint32_t i = (uint32_t)(((u >> 32) * experts) >> 32);
    return (uint32_t)u < p->cut[i] ? (uint16_t)i : p->other[i];
}

#endif
