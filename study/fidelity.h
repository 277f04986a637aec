/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the prediction is from the measurement: cells (policy × capacity × link) that were executed several times on a
 * device, against what the model says of the same decisions. The figures are those of docs/fidelity.md.
 *
 * TPOT = time of the counted passes / output tokens; miss time = TPOT less the TPOT of the reference, the cell in which every
 * expert is resident, so that what both sides have in common cannot flatter. Error = predicted / measured − 1.
 *
 * Two kinds of 95 % intervals, for two questions. Of a measured figure: would measuring the same decisions again give the
 * same? Student's t over repeats. Of an error: would other passes give the same? A bootstrap over units and repeats, both
 * drawn with replacement; a unit is a request, or with fewer than 20 of them a run of consecutive passes of one.
 */
#ifndef MOESIM_STUDY_FIDELITY_H
#define MOESIM_STUDY_FIDELITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/stats.h"

#define MOESIM_FIDELITY_FEW 20u          /* requests below which a unit is a run of passes */
#define MOESIM_FIDELITY_RUN 8u           /* least passes of such a run; it ends at a block's end */
#define MOESIM_MISS_CLASSES 9u           /* 0, 1, 2–3, 4–7, … 64–127, 128 and more misses */
#define MOESIM_NO_REQUEST UINT32_MAX
#define MOESIM_KNEE 1.05                 /* a knee is the least capacity with a TPOT of so many times the reference's */

/* The prediction, and the same with one effect switched off. */
enum moesim_variant {
    MOESIM_VARIANT_MODEL, MOESIM_VARIANT_NO_CONTENTION, MOESIM_VARIANT_NO_SYNC, MOESIM_VARIANT_NO_OVERLAP, MOESIM_VARIANTS
};
extern const char *const moesim_variant_names[MOESIM_VARIANTS];      /* "model", "without contention", … */
extern const char *const moesim_miss_classes[MOESIM_MISS_CLASSES];   /* "0", "1", "2-3", … */

/* One pass; events of pass p are p·num_layers .. (p+1)·num_layers. */
typedef struct moesim_fidelity_pass {
    uint32_t request;            /* below num_requests; MOESIM_NO_REQUEST: not counted (prefill, warm-up) */
    bool first;                  /* the first pass of a block */
} moesim_fidelity_pass;

typedef struct moesim_fidelity_cell {
    const char *policy;
    uint32_t cache;
    double cap;                  /* B/s of the link; 0: as fast as it is */
    bool reference;              /* every expert is resident */
    bool calibration;            /* constants were fitted on it, so it tests nothing */
    bool same_decisions;         /* what was executed is what was predicted, by digest */
    uint32_t repeats;            /* ≥ 1 */
    const uint32_t *const *measured;     /* [repeats][events] ns from gate to gate; 0: no time */
    const uint32_t *const *busy_link;    /* [repeats][events] ns, or NULL: the device cannot tell */
    const double *predicted[MOESIM_VARIANTS];    /* [events] s */
    const uint16_t *misses;      /* [events] */
    const uint8_t *link_bound;   /* [events] 1: the prediction says that copies take more than half of the event */
    const uint64_t *bytes;       /* [events] over the link */
    double link_rate;            /* B/s that the profile gives copies of whole experts */
} moesim_fidelity_cell;

typedef struct moesim_fidelity_input {
    uint32_t num_layers, num_passes, num_requests;
    const moesim_fidelity_pass *pass;    /* [num_passes] */
    const double *output_tokens;         /* [num_requests] */
    size_t num_cells;
    const moesim_fidelity_cell *cell;
    uint64_t seed;
} moesim_fidelity_input;

/* ln(measured / predicted) of n samples; samples without a time on either side are left out. NaN where n is 0. */
typedef struct moesim_residuals {
    size_t n;
    double bias;                 /* signed median: > 0 is slower than predicted */
    double p50, p90, p99;        /* of the absolute value, nearest rank */
} moesim_residuals;

typedef struct moesim_fidelity_figure {
    double predicted, measured;  /* s per output token */
    double error;
    moesim_interval measured_interval, error_interval;
} moesim_fidelity_figure;

typedef struct moesim_fidelity_row {     /* of one cell */
    moesim_fidelity_figure tpot, miss;   /* miss: NaN for the reference and without one */
    moesim_residuals event, pass;
    double link_rate, link_share;        /* measured B/s while the link decides; its share of the profile's; NaN without */
    size_t link_events;
} moesim_fidelity_row;

/* Over test cells: neither reference nor calibration. */
typedef struct moesim_fidelity_errors {
    size_t n;                    /* cells with an error */
    double mape, bias, worst;    /* mean |error|, mean error, largest |error|; NaN where n is 0 */
    size_t worst_cell;
} moesim_fidelity_errors;

typedef struct moesim_fidelity_variant {
    moesim_fidelity_errors tpot, miss;
    moesim_residuals event;
} moesim_fidelity_variant;

/* Test cells of equal capacity and link are a group; pairs are pairs within a group. */
typedef struct moesim_fidelity_order {
    size_t pairs, right;         /* right: the predicted difference has the sign of the measured one */
    size_t disjoint, disjoint_right;     /* of these: measured intervals do not touch */
    double tau;                  /* Kendall's τ-b pooled over groups: Σ (concordant − discordant) / √(Σ n_p · Σ n_m), where
                                  * n_p, n_m are the pairs not tied in prediction and in measurement */
    size_t groups, top1;         /* groups of two cells and more; those whose predicted best is the measured best */
    double regret, worst_regret; /* measured TPOT of the predicted best / of the measured best − 1: mean and largest */
} moesim_fidelity_order;

/* Where a curve (policy × link, over capacities) falls to MOESIM_KNEE times the reference, linear between capacities. */
typedef struct moesim_fidelity_knee {
    size_t cell;                 /* any of the curve */
    double predicted, measured;  /* capacities; NaN: not reached */
} moesim_fidelity_knee;

typedef struct moesim_fidelity {
    moesim_fidelity_row *row;            /* [num_cells] */
    moesim_fidelity_variant variant[MOESIM_VARIANTS];
    moesim_residuals pass;               /* of test cells, as the following */
    moesim_residuals *layer;             /* [num_layers] */
    moesim_residuals miss_class[MOESIM_MISS_CLASSES];
    moesim_fidelity_order order;
    moesim_fidelity_knee *knee;          /* [num_knees] curves of two capacities and more */
    size_t num_knees;
    size_t num_test, num_same;           /* test cells; cells of any kind with the decisions that were predicted */
    double link_share, least_link_share; /* over all test cells; the least of any */
    size_t num_units;
    bool unit_is_request;
    uint32_t resamples;
} moesim_fidelity;

/* Everything above; release with fini, also after an error. NOMEM; USAGE where no pass is counted. */
moesim_code moesim_fidelity_compute(const moesim_fidelity_input *input, moesim_fidelity *out, moesim_error *err);
void moesim_fidelity_fini(moesim_fidelity *fidelity);

#endif
