/* SPDX-License-Identifier: Apache-2.0
 *
 * Geometries of published models, for `--as MODEL`: bytes and sizes are taken over; experts and top-k must match the trace;
 * another number of layers is allowed and said in every output ("routing of X priced as Y").
 */
#ifndef MOESIM_HWPROFILE_GEOMETRY_H
#define MOESIM_HWPROFILE_GEOMETRY_H

#include <stdint.h>

#include "base/error.h"

enum moesim_dtype { MOESIM_BF16 = 0, MOESIM_FP8 = 1, MOESIM_INT4 = 2 };

typedef struct moesim_geometry {
    const char *name;            /* "llada2.0-mini" */
    uint32_t layers, moe_layers, experts, top_k, hidden, intermediate, shared_experts, heads, kv_heads, head_dim, vocab,
        dense_intermediate;      /* 0: unknown */
    const char *source;
} moesim_geometry;

/* name NULL ends the table. */
extern const moesim_geometry moesim_geometries[];

/* Unknown names suggest the nearest. */
moesim_code moesim_geometry_find(const char *name, const moesim_geometry **out, moesim_error *err);

/* Bytes of one routed expert: 3·hidden·intermediate weights (scales not included). */
uint64_t moesim_geometry_expert_bytes(const moesim_geometry *g, enum moesim_dtype dtype);

/* Everything else that stays on the GPU: attention, router, shared experts, dense layers, embeddings; 0 if unknown. */
uint64_t moesim_geometry_resident_bytes(const moesim_geometry *g, enum moesim_dtype dtype);

/* Keys and values of one token over all layers, bf16. */
uint64_t moesim_geometry_kv_bytes(const moesim_geometry *g);

#endif
