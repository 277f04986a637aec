/* SPDX-License-Identifier: Apache-2.0
 *
 * The policy interface of moesim: everything an expert-cache policy may see and answer.
 *
 * A policy advises, it never acts: it fills answers that the host owns, checks and applies, so no policy can exceed a
 * capacity, evict a missing expert, or read what it is not shown. Views are const and valid during the call only.
 * One instance is used by one thread at a time; many instances run at once, so a policy keeps no global state.
 * A policy uses neither a clock nor libc randomness (inside the tree, policies/kit.h has a seeded generator). Its state holds
 * no pointers: the host may copy it to resume a run, in another process too, so what open shows is copied or dropped.
 *
 * Vocabulary. pass: one forward pass. row: one token position in one pass. event: one (pass, MoE layer); its active set
 * A is the union of the experts of all rows. resident R, hits A∩R, misses A\R, moved G (misses copied to the GPU; the
 * other misses run on the CPU and never become resident). After the event the next R is the best `slots` experts of
 * R ∪ G ∪ landed prefetches in the order: higher value, higher tie key, already resident, lower expert id.
 *
 * Expert sets are bitsets: expert e is bit (e & 63) of word (e >> 6); `words` = (num_experts + 63) / 64 words.
 * Arrays marked [n_active] run parallel to `list`, the active experts in ascending order.
 *
 * Every struct begins with `size` (bytes the host filled in): fields are appended only, the order of existing ones never
 * changes within an ABI number. tests/policy/abi.c guards the offsets.
 */
#ifndef MOESIM_POLICY_H
#define MOESIM_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOESIM_POLICY_ABI 1u

/* The one symbol of an outside policy: `const moesim_policy *moesim_policy_export(void)`. */
#define MOESIM_POLICY_SYMBOL "moesim_policy_export"

#define MOESIM_NO_ROUTE 65535u       /* expert id of an unused slot of a row */
#define MOESIM_NEVER    UINT64_MAX   /* next use: not in a counted pass before the expert re-enters free, or never */

/* Kind of a pass (the same numbers as /pass/kind; dummy passes never reach a policy). */
enum moesim_kind { MOESIM_PREFILL = 0, MOESIM_DENOISE = 1, MOESIM_COMMIT = 2 };

/* Input class of a row: what its token was when the pass began. */
enum moesim_row_class {
    MOESIM_ROW_MASKED = 0,    /* M: input masked */
    MOESIM_ROW_JUST = 1,      /* J: committed or edited by the previous pass of the block */
    MOESIM_ROW_LONG = 2       /* L: committed longer ago (prompt tokens too) */
};

/* ---- what a policy declares ---------------------------------------------------------------------------------- */

/* needs(): the host refuses a trace that lacks them, naming what is missing, and computes each reduction once. */
enum moesim_need {
    MOESIM_NEED_GATE = 1u << 0,        /* /routing/gate */
    MOESIM_NEED_CONFIDENCE = 1u << 1,  /* /token/confidence (confidence_kind not "none") */
    MOESIM_NEED_PROB = 1u << 2,        /* /routing/router_prob */
    MOESIM_NEED_COSTS = 1u << 3,       /* a cost profile (open.costs) */
    MOESIM_NEED_PRIOR = 1u << 4,       /* totals of another trace (open.prior); the program has no option for one yet */
    MOESIM_NEED_COUNTS = 1u << 8,      /* event.count; shown undeclared too where open.costs was given */
    MOESIM_NEED_MASS = 1u << 9,        /* event.mass */
    MOESIM_NEED_WEIGHTED = 1u << 10,   /* event.weighted with the confidences of the previous pass (lag 1) */
    MOESIM_NEED_HINDSIGHT = 1u << 11,  /* event.hindsight: non-causal inside an event, causal in retain_pass */
    MOESIM_NEED_CLASS = 1u << 12,      /* event.class_sum (class_weight of the policy) and event.masked */
    MOESIM_NEED_ROWS = 1u << 13,       /* event.row */
    MOESIM_NEED_PREVIOUS = 1u << 14    /* row.previous */
};

enum moesim_trait {
    MOESIM_CLAIRVOYANT = 1u << 0,      /* reads event.next_use; said in every output */
    MOESIM_KEYS_AGE = 1u << 1,         /* keys of untouched experts change with time: refused in scope global */
    MOESIM_RETAIN_AT_PASS = 1u << 2,   /* R ∪ G stays until the pass ends; retain_pass selects (set by open) */
    MOESIM_NON_CAUSAL = 1u << 3,       /* uses what no real system has at that moment; said in every output (set by open) */
    MOESIM_MOVES_ALL = 1u << 4,        /* dispatch leaves nothing to the CPU: it is not asked (set by open) */
    MOESIM_PREFETCHES = 1u << 5        /* asks for prefetches: what has landed depends on time, so that each bandwidth needs
                                        * an instance of its own */
};

/* Order kinds select a fast path of the host; decisions equal those of the generic path. */
enum moesim_order {
    MOESIM_ORDER_GENERIC = 0,  /* retain() fills value and tie */
    MOESIM_ORDER_RECENCY = 1,  /* value = clock of the last event that activated the expert, tie = 0: host may never ask */
    MOESIM_ORDER_KEY = 2,      /* retain_key() gives one integer per expert that orders as (value, tie) do */
    MOESIM_ORDER_ACTIVE = 3    /* value = 1 if activated in this event, else 0, tie = 0: host may never ask */
};

/* Host modes: bounds that the host computes itself; retain may be NULL. All but FULL look ahead: MOESIM_CLAIRVOYANT. */
enum moesim_host_mode {
    MOESIM_HOST_NONE = 0,
    MOESIM_HOST_IDEAL = 1,          /* hits = min(slots, |A|) */
    MOESIM_HOST_IDEAL_POOLED = 2,   /* per pass: hits = min(Σ slots, Σ|A|) */
    MOESIM_HOST_FULL = 3,           /* every expert resident */
    MOESIM_HOST_BELADY_POOLED = 4   /* MIN with bypass over one pool of Σ slots */
};

/* Options: one table parses, checks, prints and documents. Stored in a struct of options_size bytes at `offset`:
 * INT as int64_t, REAL as double, BOOL as int32_t (0, 1), CHOICE as int32_t (index into choices). */
enum moesim_option_type { MOESIM_OPTION_INT = 1, MOESIM_OPTION_REAL, MOESIM_OPTION_BOOL, MOESIM_OPTION_CHOICE };

typedef struct moesim_option {
    const char *name;               /* NULL ends the table */
    uint32_t type;                  /* enum moesim_option_type */
    uint32_t offset;
    const char *def;                /* default, written as a user would */
    double min, max;                /* inclusive range of INT and REAL */
    const char *const *choices;     /* NULL-ended names of CHOICE */
    const char *help;               /* one line */
} moesim_option;

/* ---- what a policy sees ---------------------------------------------------------------------------------------- */

typedef struct moesim_shape {
    uint32_t size;
    uint32_t num_layers;            /* M, 1..1024 */
    uint32_t num_experts;           /* E, 1..1024 */
    uint32_t top_k;                 /* K, 1..64 */
    uint32_t block_length;          /* B, 1..4096 */
    uint32_t words;                 /* words of an expert bitset */
    uint32_t max_rows;              /* most rows of one decode event of this run */
    const uint64_t *expert_bytes;   /* [M] bytes of one routed expert */
} moesim_shape;

/* Profiled costs; NULL in --time count. Seconds. */
typedef struct moesim_costs {
    uint32_t size;
    uint32_t cpu_tokens;            /* entries of cpu_s minus one */
    const double *h2d_s;            /* [M] copy of one expert, alone on the link */
    const double *cpu_s;            /* [cpu_tokens + 1] one expert on the CPU by tokens; entry 0 is 0 */
    double cpu_step_s;              /* once per event that uses the CPU */
} moesim_costs;

/* Totals of another trace. */
typedef struct moesim_prior {
    uint32_t size;
    uint32_t num_requests;
    const double *total;            /* [M][E] activations over all decode events */
    const double *const *request;   /* [num_requests] of [M][E] */
} moesim_prior;

typedef struct moesim_open {
    uint32_t size;
    uint32_t global_scope;          /* 1: one budget in bytes over all layers */
    const moesim_shape *shape;
    const uint32_t *slots;          /* [M] slots per layer at the start (0 in scope global) */
    const moesim_costs *costs;      /* NULL without a profile */
    const moesim_prior *prior;      /* NULL without */
    const void *options;            /* the policy's option struct; lives as long as the instance */
    uint64_t seed;
} moesim_open;

/* Answer of open. `initial` is zeroed, `slots` holds open.slots. */
typedef struct moesim_start {
    uint32_t size;
    uint32_t traits;                /* traits that depend on options, added to the declared ones */
    uint32_t *slots;                /* [M] may be changed; the sum may not grow */
    uint64_t *initial;              /* [M][words] experts resident before the first event */
    char error[256];                /* why open failed */
} moesim_start;

typedef struct moesim_request {
    uint32_t size;
    uint32_t request;
    uint32_t ended;                 /* 0: it starts, 1: it has ended */
    uint32_t prompt_tokens;
    uint32_t output_tokens;         /* 0 while it starts */
    const char *workload;           /* "" if unknown */
} moesim_request;

typedef struct moesim_row {
    uint32_t request;
    int32_t position;
    int32_t block, step;            /* block −1 in prefill */
    uint8_t kind;                   /* enum moesim_kind of the row's pass */
    uint8_t input;                  /* enum moesim_row_class */
    uint8_t first;                  /* 1: first decode pass of the row's block */
    uint8_t reserved;
    float confidence;               /* what the previous pass of the block produced for this position; NaN where none */
    const uint16_t *expert;         /* [K] in router rank order; MOESIM_NO_ROUTE where unused; NULL in boundary */
    const float *gate;              /* [K] or NULL */
    const float *prob;              /* [E] or NULL */
    const uint16_t *previous;       /* [K] the row's experts at this layer in the previous pass of its block, or NULL */
} moesim_row;

/* One (pass, layer). Fields not declared through needs() are NULL. */
typedef struct moesim_event {
    uint32_t size;
    uint32_t layer;
    uint64_t clock;                 /* number of this pass among the non-dummy passes of the run, from 1 (with --order
                                     * flattened: number of the access) */
    uint64_t decode_passes;         /* decode passes begun so far, this one included */
    uint32_t kind;                  /* enum moesim_kind; a merged event is DENOISE if any of its rows is */
    uint32_t first;                 /* 1 if any row belongs to the first decode pass of its block */
    uint32_t num_rows;
    uint32_t num_masked;            /* rows whose input was masked */
    uint32_t slots;                 /* C(l) now */
    uint32_t n_active, n_hits, n_misses;
    const uint64_t *resident;       /* [words] before the event */
    const uint64_t *active;         /* [words] */
    const uint16_t *list;           /* [n_active] */
    const uint32_t *count;          /* [n_active] rows routed to the expert */
    const double *mass;             /* [n_active] Σ gate */
    const double *weighted;         /* [n_active] Σ gate·ψ(c), c by the lag-1 rule */
    const double *hindsight;        /* [n_active] Σ gate·ψ(c), c of this pass itself */
    const double *class_sum;        /* [n_active] Σ over rows of class_weight[class][min(rank, 7)] */
    const uint32_t *masked;         /* [n_active] rows with masked input routed to the expert */
    const uint64_t *next_use;       /* [n_active] clock of the next event of this layer that activates the expert, if
                                     * counted, else MOESIM_NEVER; NULL unless clairvoyant */
    const uint64_t *next_active;    /* [words] active set of the next event of this layer (all 0: none); NULL unless
                                     * clairvoyant */
    const uint64_t *touch;          /* [n_active] scope global: serial number of the expert's last touch (rows in order,
                                     * then slots; repeats refresh it), which is *last* there; NULL in scope layer, where
                                     * *last* is the clock */
    const moesim_row *row;          /* [num_rows] */
    double mass_total, weighted_total, hindsight_total;   /* sums over all routes, rows in order, then slots */
} moesim_event;

/* ---- what a policy answers ------------------------------------------------------------------------------------- */

/* Keys for retention. value is NaN and tie 0 on entry; the policy sets both for every candidate, by expert id.
 * value −∞: do not keep, even in a free slot. NaN for a candidate is an error of the policy. */
typedef struct moesim_keys {
    uint32_t size;
    uint32_t n_candidates;
    const uint64_t *candidates;     /* [words] R ∪ G ∪ landed */
    const uint64_t *moved;          /* [words] G */
    const uint64_t *landed;         /* [words] prefetches landed since this layer's previous event */
    double *value;                  /* [E] */
    double *tie;                    /* [E] */
} moesim_keys;

typedef struct moesim_prefetch_entry {
    uint32_t layer, expert;
    double priority;                /* higher first */
} moesim_prefetch_entry;

/* A new list (n > 0, or cancel = 1) replaces the entries that have not started. */
typedef struct moesim_prefetch {
    uint32_t size;
    uint32_t n;                     /* 0 on entry */
    uint32_t capacity;
    uint32_t cancel;                /* 1: drop what has not started */
    uint32_t pause;                 /* 1: start nothing until the next answer */
    uint32_t reserved;
    moesim_prefetch_entry *entry;   /* [capacity] */
} moesim_prefetch;

/* Between two passes. `ended` describes the rows of the pass that ended (with `confidence` = what that pass produced,
 * input as it was), `coming` the rows of the pass that starts, without routes. */
typedef struct moesim_boundary {
    uint32_t size;
    uint32_t kind;                  /* of the coming pass */
    uint64_t clock;                 /* of the coming pass */
    uint64_t decode_passes;         /* decode passes that have ended */
    uint32_t num_ended, num_coming;
    const moesim_row *ended;
    const moesim_row *coming;
    const uint32_t *slots;          /* [M] now */
    const uint64_t *resident;       /* [M][words] */
} moesim_boundary;

typedef struct moesim_boundary_answer {
    uint32_t size;
    uint32_t eager;                 /* 1: shrunk layers evict at once; 0: after their next event */
    uint32_t *slots;                /* [M] holds boundary.slots; may be changed, the sum may not grow */
    moesim_prefetch *prefetch;
} moesim_boundary_answer;

/* Before the gate of (pass, layer): routes of the earlier layers of this pass are known. */
typedef struct moesim_before_layer {
    uint32_t size;
    uint32_t layer;
    uint64_t clock;
    uint32_t kind;
    uint32_t reserved;
    const uint64_t *active;         /* [layer][words] active sets of the earlier layers of this pass */
    const uint64_t *resident;       /* [M][words] */
    const uint64_t *pending;        /* [M][words] prefetches asked for and not landed */
} moesim_before_layer;

/* Which misses run on the CPU. On entry cpu is 0 and order is ascending: all misses moved. */
typedef struct moesim_dispatch {
    uint32_t size;
    uint32_t n_misses;
    const uint64_t *misses;         /* [words] */
    uint64_t *cpu;                  /* [words] subset of misses */
    uint16_t *order;                /* [n_misses] all misses; those not on the CPU are copied in this order */
} moesim_dispatch;

typedef struct moesim_counter { const char *name; double value; } moesim_counter;

/* Named numbers that a policy reports at the end; names must outlive the instance (string literals). At most `capacity` are
 * written to `counter`; names are of 1 to 63 printable ASCII characters without blanks, none twice, and values finite. */
typedef struct moesim_counters {
    uint32_t size;
    uint32_t n;                     /* 0 on entry */
    uint32_t capacity;
    uint32_t reserved;
    moesim_counter *counter;
} moesim_counters;

/* ---- the policy ------------------------------------------------------------------------------------------------ */

/* Callbacks return 0, or non-zero to stop the run with an error that names policy and place. */
typedef struct moesim_policy {
    uint32_t abi;                   /* MOESIM_POLICY_ABI */
    uint32_t size;                  /* sizeof(moesim_policy) */
    const char *name;               /* [a-z0-9-]+ */
    const char *summary;            /* one line for `moesim policies` */
    const char *source;             /* paper and section the rule comes from */
    uint32_t traits;                /* enum moesim_trait */
    uint32_t order;                 /* enum moesim_order */
    uint32_t host_mode;             /* enum moesim_host_mode */
    uint32_t options_size;
    const moesim_option *options;   /* NULL-name-ended, or NULL */
    const double *class_weight;     /* [3][8] for event.class_sum, or NULL */

    uint32_t (*needs)(const void *options);                                     /* optional: none */
    size_t (*state_bytes)(const moesim_shape *shape, const void *options);      /* optional: 0; zeroed, freed by host */
    int (*open)(void *state, const moesim_open *open, moesim_start *start);     /* optional */
    int (*request)(void *state, const moesim_request *request, moesim_prefetch *prefetch);      /* optional */
    int (*boundary)(void *state, const moesim_boundary *boundary, moesim_boundary_answer *answer); /* optional */
    int (*before_layer)(void *state, const moesim_before_layer *before, moesim_prefetch *prefetch); /* optional */
    int (*dispatch)(void *state, const moesim_event *event, moesim_dispatch *dispatch);         /* optional: all moved */
    int (*retain)(void *state, const moesim_event *event, moesim_keys *keys);   /* required unless host_mode */
    int (*retain_key)(void *state, const moesim_event *event, const uint64_t **key);  /* ORDER_KEY: [E], by expert id;
                                                                                * called instead of retain */
    int (*retain_pass)(void *state, const moesim_event *event, moesim_keys *keys);    /* once per layer, ascending, when
                                                                                * the pass has ended; RETAIN_AT_PASS */
    int (*victim)(void *state, uint32_t layer, const uint64_t *resident, uint32_t *expert);  /* optional: worst keys */
    void (*close)(void *state, moesim_counters *counters);                      /* optional */
} moesim_policy;

#ifdef __cplusplus
}
#endif
#endif
