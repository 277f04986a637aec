/* SPDX-License-Identifier: Apache-2.0
 *
 * State of the cuda backend, shared by its files. One thread drives it; the loader of load_begin is the only other one that
 * calls CUDA.
 *
 * Streams: `compute` runs hits, moved experts, `other`, the head and what a gate brings to the host; `copy` brings experts;
 * `out` brings activations to the host; `back` brings the CPU's results to the device, so that a result waits for the copies
 * that have started and not for all of the event. Every event ends on `compute`: the gate waits for that stream alone.
 *
 * Slots: a gate waits for everything before it, so only readers of the same event matter to a copy: hits (one CUDA event
 * for the group) and earlier moved experts that were staged in the same slot (one CUDA event each).
 */
#ifndef MOESIM_HWPROFILE_CUDA_STATE_CUH
#define MOESIM_HWPROFILE_CUDA_STATE_CUH

#include <cuda_runtime.h>
#include <pthread.h>

extern "C" {
#include "hwprofile/device.h"
#include "hwprofile/device_memory.h"
#include "hwprofile/device_parts.h"
}

#define MOESIM_COPY_RING 64u     /* "has landed" events of copies, used in turn */
#define MOESIM_FEED_AHEAD 4u     /* copies queued at once while the CPU's result is outstanding */
#define MOESIM_LOAD_RING 16u     /* copies that load_begin keeps queued: milliseconds, so that a late thread leaves no gap */
#define MOESIM_LOAD_EVENTS (2u * MOESIM_LOAD_RING)   /* the events of copies that have ended stay readable */
#define MOESIM_QUEUE_MAX 400u    /* operations queued behind a latch: fewer than a stream takes before it blocks the host */

/* What `other` and the head multiply with; NULL without them. All seeded random bf16, `layers` copies of a layer's weights in
 * turn, together larger than the GPU's cache. */
struct moesim_cuda_other {
    uint32_t layers, next, width, router_rows, shared;   /* width: rows of the QKV product; shared: width of shared experts */
    uint64_t stride;                     /* elements of one layer */
    uint16_t *weights;                   /* [layers]: qkv, output projection, router, shared expert (gate, up, down) */
    uint16_t *keys, *values;             /* [context][kv_heads][head_dim] */
    float *qkv, *projected, *logits, *shared_y;
    uint16_t *attended, *shared_h;
    uint16_t *head;                      /* [vocab][hidden] */
    float *head_y;                       /* [max_rows][vocab] */
};

/* The event since the last gate. */
struct moesim_cuda_event {
    const moesim_device_work *work;      /* valid inside work() only */
    bool hits_queued, cpu_queued, cpu_running, cpu_back;
    uint32_t hits, moved, copied;        /* copied: moved experts whose copy is queued */
    size_t hit_routes, moved_routes, cpu_routes;
    size_t route;                        /* of the next moved expert */
    uint64_t busy_cpu, bytes;
};

struct moesim_cuda_load {
    pthread_t thread;
    bool running;
    int stop;                            /* atomic */
    size_t bytes;
    uint64_t copies;
    cudaError_t result;                  /* of the thread */
    const char *call;
    cudaEvent_t ring[MOESIM_LOAD_EVENTS], begin, end;
};

struct moesim_cuda {
    moesim_device base;
    moesim_device_config config;
    moesim_device_sizes sizes;
    moesim_device_order order;
    moesim_error first;                  /* the failure that ended the device's use; code MOESIM_OK: none */
    bool hung;                           /* the GPU did not answer: close waits for nothing */

    uint16_t *pool;                      /* host, [pool][weights]; pinned or not */
    bool pinned;
    moesim_cpu_team *team;
    moesim_cpu_job *jobs;                /* [max_rows·top_k] */
    uint16_t *host_x;                    /* pinned: activations that arrived at the host */
    float *host_y;                       /* pinned: [routes][hidden], the CPU's outputs */
    uint16_t *host_routing;              /* pinned: [max_rows][top_k] */
    uint32_t *latch;                     /* pinned */

    uint16_t *slots, *x, *h, *routing;   /* device: [slots][weights], [max_rows][hidden], [routes][intermediate], ids */
    float *y[2], *sum;                   /* device: [routes][hidden] of this event and the one before; [max_rows][hidden] */
    uint32_t now, written;               /* which y the next event writes; which one the last event wrote … */
    size_t out_routes;                   /* … and how many routes */
    uint32_t *row_start;                 /* [max_rows + 1] for sums: routes of row r are row_route[row_start[r] ..] */
    uint16_t *row_route;                 /* [routes] */
    uint64_t *moved_in;                  /* [slots] event in which a moved expert was staged here last … */
    uint32_t *moved_at;                  /* … and its place among the moved */
    struct moesim_cuda_other other;
    struct moesim_cuda_event event;

    cudaStream_t compute, copy, out, back;
    cudaEvent_t landed[MOESIM_COPY_RING], arrived, returned, gate;
    cudaEvent_t hits_begin, hits_end, link_begin, link_end, span_begin, span_end;        /* timed */
    cudaEvent_t *moved_begin, *moved_end;                        /* timed, [moved_room] */
    uint32_t moved_room;

    /* a slower link: further bytes behind each copy */
    size_t cap_bytes, cap_chunk, cap_at; /* bytes of one copy's share; of one call at most; next place in the pool */
    uint8_t *cap_scratch;                /* device, [cap_chunk] */

    /* measuring, allocated at first use */
    uint8_t *bench;                      /* device */
    size_t bench_bytes, bench_at;
    uint8_t *source[2];                  /* host: pageable, pinned */
    size_t source_bytes[2];
    uint16_t *bench_h;
    float *bench_y;
    size_t bench_routes;
    uint32_t checked_experts, checked_tokens;
    uint32_t slot_at;
    struct moesim_cuda_load load;

    char name[128], pci[32], pcie[64], driver[64];
    bool pcie_busy;                      /* pcie was read under load */
    int numa, capability, runtime, multiprocessors;
    size_t memory, cache;
};

static inline struct moesim_cuda *moesim_cuda_of(moesim_device *device)
{
    return (struct moesim_cuda *)device;
}

/* ---- errors (cuda.cu): the first failure is kept, and every later call returns it ------------------------------------- */

/* LIMIT for memory, IO for everything else; call: "cudaMemcpyAsync (moved expert 3)". */
moesim_code moesim_cuda_fail(struct moesim_cuda *d, cudaError_t e, const char *call, moesim_error *err);
moesim_code moesim_cuda_usable(const struct moesim_cuda *d, moesim_error *err);

#define MOESIM_CUDA(d, call, err)                                                              \
    do {                                                                                       \
        const cudaError_t moesim_e_ = (call);                                                  \
        if (moesim_e_ != cudaSuccess)                                                          \
            return moesim_cuda_fail((d), moesim_e_, #call, (err));                             \
    } while (0)

#define MOESIM_TRY(call)                                                                       \
    do {                                                                                       \
        const moesim_code moesim_c_ = (call);                                                  \
        if (moesim_c_ != MOESIM_OK)                                                            \
            return moesim_c_;                                                                  \
    } while (0)

/* Spins until `event` is reached; a GPU that does not answer for two minutes is an error. patience: the same for loops that
 * made progress at `since` last (moesim_clock_ns). */
moesim_code moesim_cuda_wait(struct moesim_cuda *d, cudaEvent_t event, moesim_error *err);
moesim_code moesim_cuda_patience(struct moesim_cuda *d, uint64_t since, moesim_error *err);

/* *out = device memory; call names it in errors. */
moesim_code moesim_cuda_alloc(struct moesim_cuda *d, void *out, size_t bytes, const char *call, moesim_error *err);

/* ---- parts --------------------------------------------------------------------------------------------------------- */

bool moesim_cuda_present(int index, char why[256]);                                            /* facts.cu */
moesim_code moesim_cuda_read_facts(struct moesim_cuda *d, moesim_error *err);
void moesim_cuda_read_pcie(struct moesim_cuda *d);               /* while the link is busy */
bool moesim_cuda_fact(moesim_device *device, size_t i, moesim_device_fact *out);

moesim_code moesim_cuda_open(const moesim_device_config *config, moesim_device **out, moesim_error *err);  /* open.cu */
void moesim_cuda_close(moesim_device **device);
moesim_code moesim_cuda_moved_room(struct moesim_cuda *d, uint32_t n, moesim_error *err);     /* events of n moved experts */

moesim_code moesim_cuda_fill(moesim_device *device, uint32_t slot, uint32_t pool, moesim_error *err);      /* event.cu */
moesim_code moesim_cuda_work(moesim_device *device, const moesim_device_work *work, moesim_error *err);
moesim_code moesim_cuda_gate(moesim_device *device, uint32_t num_rows, moesim_device_times *times, moesim_error *err);
/* A gate without the checks of its caller. */
moesim_code moesim_cuda_pass_gate(struct moesim_cuda *d, uint32_t num_rows, bool other, moesim_device_times *times,
                                  moesim_error *err);
moesim_code moesim_cuda_end_pass(moesim_device *device, uint32_t num_rows, bool with_head, moesim_device_times *times,
                                 moesim_error *err);
moesim_code moesim_cuda_outputs(moesim_device *device, float *out, size_t routes, moesim_error *err);
moesim_code moesim_cuda_inputs(moesim_device *device, uint16_t *out, uint32_t num_rows, moesim_error *err);
const uint16_t *moesim_cuda_weights(const moesim_device *device, uint32_t pool);

/* group.cu: experts as few launches as possible; routes from first_route on. */
moesim_code moesim_cuda_group(struct moesim_cuda *d, const moesim_device_expert *e, uint32_t n, size_t first_route, uint16_t *h,
                              float *y, moesim_error *err);
moesim_code moesim_cuda_combine(struct moesim_cuda *d, const moesim_device_work *work, moesim_error *err);

/* other.cu. other_bytes: what alloc will take. run: one layer. Both asynchronous on `compute`. */
uint64_t moesim_cuda_other_bytes(const struct moesim_cuda *d);
moesim_code moesim_cuda_other_alloc(struct moesim_cuda *d, moesim_error *err);
void moesim_cuda_other_free(struct moesim_cuda *d);
moesim_code moesim_cuda_other_run(struct moesim_cuda *d, uint32_t num_rows, moesim_error *err);
moesim_code moesim_cuda_head_run(struct moesim_cuda *d, uint32_t num_rows, moesim_error *err);

/* link.cu. further: a cap's bytes behind a copy. */
moesim_code moesim_cuda_further(struct moesim_cuda *d, moesim_error *err);
moesim_code moesim_cuda_set_cap(moesim_device *device, double bandwidth_cap, moesim_error *err);
moesim_code moesim_cuda_time_copy(moesim_device *device, size_t bytes, bool pinned, uint32_t streams, uint32_t repeat,
                                  double *seconds, moesim_error *err);
moesim_code moesim_cuda_time_return(moesim_device *device, size_t bytes, uint32_t repeat, double *to_host, double *to_device,
                                    moesim_error *err);
moesim_code moesim_cuda_load_begin(moesim_device *device, size_t bytes, moesim_error *err);                /* load.cu */
moesim_code moesim_cuda_load_end(moesim_device *device, uint64_t *bytes, double *seconds, moesim_error *err);

/* timed.cu. `repeat` operations of queue(context, i), each of at most `each` launches or copies, between two timed events on
 * `stream`, latched: behind a kernel that waits until all are queued. second: another stream that they use, or NULL.
 * *seconds: of one. */
typedef moesim_code moesim_cuda_queue(struct moesim_cuda *d, void *context, uint32_t i, moesim_error *err);
struct moesim_cuda_span { cudaStream_t stream, second; bool latched; uint32_t repeat, each; };
moesim_code moesim_cuda_timed(struct moesim_cuda *d, const struct moesim_cuda_span *span, moesim_cuda_queue *queue,
                              void *context, double *seconds, moesim_error *err);
/* Buffers for measurements, at least as large: device memory; host memory, pinned or not, of random bytes. */
moesim_code moesim_cuda_need_bench(struct moesim_cuda *d, size_t bytes, moesim_error *err);
moesim_code moesim_cuda_need_source(struct moesim_cuda *d, bool pinned, size_t bytes, moesim_error *err);

moesim_code moesim_cuda_time_grouped(moesim_device *device, uint32_t experts, uint32_t tokens, uint32_t repeat, double *seconds,
                                     moesim_error *err);                                       /* measure.cu */
moesim_code moesim_cuda_time_other(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *device_s, double *host_s,
                                   moesim_error *err);
moesim_code moesim_cuda_time_head(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds,
                                  moesim_error *err);
moesim_code moesim_cuda_time_empty(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds,
                                   moesim_error *err);

#endif
