/* SPDX-License-Identifier: Apache-2.0
 *
 * Geometries of published models, for `--as MODEL`: bytes and sizes are taken over; experts and top-k must match the trace;
 * another number of layers is allowed and said in every output ("routing of X priced as Y").
 */
#ifndef MOESIM_HWPROFILE_GEOMETRY_H
#define MOESIM_HWPROFILE_GEOMETRY_H

#include <stdint.h>

#include "base/error.h"

/* Bytes a weight: 2, 1, 1/2 without scales, and 17/32 (MXFP4: 4-bit weights with one 8-bit scale for 32 of them). Scales of
 * fp8 (128 x 128 blocks: +0.02 %) and int4 (groups of 128: +3.1 %) are not included. */
enum moesim_dtype { MOESIM_BF16 = 0, MOESIM_FP8 = 1, MOESIM_INT4 = 2, MOESIM_MXFP4 = 3 };

/* "bf16", "fp8", "int4", "mxfp4" in the order of the enum, NULL-ended. */
extern const char *const moesim_dtype_names[];

typedef struct moesim_geometry {
    const char *name;            /* "llada2.0-mini" */
    uint32_t layers, moe_layers, experts, top_k, hidden, intermediate, shared_experts, heads, kv_heads, head_dim, vocab,
        dense_intermediate;      /* 0: unknown */
    const char *source;          /* where the numbers were read */
} moesim_geometry;

/* name NULL ends the table. */
extern const moesim_geometry moesim_geometries[];

/* Upper and lower case are the same. Unknown names are USAGE errors that suggest the nearest. */
moesim_code moesim_geometry_find(const char *name, const moesim_geometry **out, moesim_error *err);

/* Bytes of one routed expert: 3·hidden·intermediate weights (gate, up, down; no biases). */
uint64_t moesim_geometry_expert_bytes(const moesim_geometry *g, enum moesim_dtype dtype);

/* Everything else that stays on the GPU: attention, shared experts (each as wide as a routed one) and dense layers in
 * dtype (bf16 beside mxfp4 experts), router, embeddings and LM head in bf16; norms and biases are left out. 0 if a size is
 * unknown. */
uint64_t moesim_geometry_resident_bytes(const moesim_geometry *g, enum moesim_dtype dtype);

/* Keys and values of one token over all layers, bf16; 0 if a size is unknown. */
uint64_t moesim_geometry_kv_bytes(const moesim_geometry *g);

#endif
