/* SPDX-License-Identifier: Apache-2.0
 *
 * The host device between its files. Its memory is host memory, its link is one copying thread, its processor ("gpu") another
 * thread with the CPU kernel; CPU experts run on the team. The driver is who calls. Private to hwprofile/.
 *
 * Where this process may use fewer CPUs than these threads (the team's, both of these, the driver), gpu and link are pinned to
 * one CPU each, to such that the team leaves if there are any; not where the team is not pinned. On two CPUs with a team of
 * one thread the gpu has one for itself, and link and CPU experts share the other.
 *
 * One event is in flight at most. Counters of struct host_progress only grow within it; whoever waits for one sleeps after a
 * short spin. Fields of an event are written by the driver while both threads wait.
 */
#ifndef MOESIM_HWPROFILE_DEVICE_HOST_H
#define MOESIM_HWPROFILE_DEVICE_HOST_H

#include <pthread.h>

#include "hwprofile/cpu_parts.h"
#include "hwprofile/device_memory.h"
#include "hwprofile/device_parts.h"

/* Read and written with atomic operations. */
struct host_progress {
    uint32_t computed;           /* hits and moved experts that the gpu has computed: readers of slots that are done */
    uint32_t copied;             /* moved experts that lie in their slots */
    uint32_t cpu_ready;          /* 1: results of the CPU wait for the link */
    uint32_t returned;           /* 1: they are in device memory */
    uint32_t waiters;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct host_event {
    uint32_t num_rows, n_hits, n_moved, n_cpu;
    moesim_device_expert *expert;    /* [routes] hits, moved, cpu; rows lie in `rows` */
    uint16_t *rows;              /* [routes] */
    uint32_t *after;             /* [routes] copy i waits until so many have been computed: its slot's last reader is done */
    size_t routes, gpu_routes;
    uint64_t busy_link, busy_gpu, busy_cpu, bytes;
};

struct host_device {
    moesim_device base;
    moesim_device_config config;
    moesim_device_sizes sizes;
    moesim_device_order order;
    const moesim_cpu_kernel *kernel;
    moesim_cpu_team *team, *link, *gpu;
    moesim_cpu_crew *crew;       /* of the gpu: one thread */
    uint64_t pass;               /* passes of the crew so far */

    uint16_t *pool, *slots;
    uint16_t *x, *x_host;        /* [max_rows][hidden] in device memory, and what the CPU reads */
    float *out[2];               /* [routes][hidden] outputs of this and the last event */
    uint32_t which;              /* out of the event that is running or ran last */
    float *cpu_sum, *returned, *result;      /* [max_rows][hidden] added up by the CPU, the same after the link, all */
    uint16_t *routing, *routing_host;        /* [routes] */
    uint32_t *reader;            /* [slots] readers (+1) of this event */
    uint16_t *scratch;           /* what a capped link copies further bytes into */
    moesim_cpu_job *job;         /* [routes] */

    struct host_event event;
    struct host_progress progress;
    uint64_t spin_ns[2];         /* so long link and gpu spin before they sleep; [1]: in events with CPU experts */

    void *other_x;               /* prepared activations for `other` and head; NULL without */
    uint32_t other_k;            /* longest row of them */
    size_t other_at;             /* element of the pool where their weights begin next */
    double sink;

    /* measuring */
    size_t copy_from, copy_to;   /* bytes of pool and slots where time_copy goes on */
    bool slots_filled;
    uint32_t next_slot;
    uint32_t load_stop;          /* atomic */
    size_t load_copy;
    uint64_t load_bytes, load_ns;
};

#define HOST_SCRATCH 65536u      /* bytes */
#define HOST_BATCH 64u           /* tokens of one pass over weights */

/* device_host_copy.c: memcpy past the caches, where the machine can; done, for every thread, when it returns. */
void moesim_host_copy(void *to, const void *from, size_t bytes);

/* device_host_event.c: what one event is made of, on any of the threads. */
void moesim_host_advance(struct host_device *d, uint32_t *counter);
/* Until *a ≥ a_min or, where b is not NULL, *b ≥ b_min. */
void moesim_host_await(struct host_device *d, const uint32_t *a, uint32_t a_min, const uint32_t *b, uint32_t b_min);
/* One expert on the gpu thread; rows of x. */
void moesim_host_compute(struct host_device *d, const uint16_t *weights, const uint16_t *row, uint32_t tokens, float *y);
/* Driver: gate without checks; with_other executes `other` before. Then the same for an event whose fields are set. */
void moesim_host_gate(struct host_device *d, uint32_t num_rows, bool with_other);
void moesim_host_event(struct host_device *d);
void moesim_host_finish(struct host_device *d);              /* waits for the event, if one runs */
void moesim_host_stage(struct host_device *d, const moesim_device_work *work);

/* device_host_other.c, on the gpu thread: one layer's attention, router and shared experts, or the head, over num_rows rows. */
uint32_t moesim_host_other_k(const moesim_device_config *config);    /* longest row of their weights */
void moesim_host_other(struct host_device *d, uint32_t num_rows);
void moesim_host_head(struct host_device *d, uint32_t num_rows);

/* device_host_time.c: the measuring functions of hwprofile/device.h. */
moesim_code moesim_host_time_copy(moesim_device *device, size_t bytes, bool pinned, uint32_t streams, uint32_t repeat,
                                  double *seconds, moesim_error *err);
moesim_code moesim_host_time_return(moesim_device *device, size_t bytes, uint32_t repeat, double *to_host, double *to_device,
                                    moesim_error *err);
moesim_code moesim_host_time_grouped(moesim_device *device, uint32_t experts, uint32_t tokens, uint32_t repeat,
                                     double *seconds, moesim_error *err);
moesim_code moesim_host_time_other(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *device_s,
                                   double *host_s, moesim_error *err);
moesim_code moesim_host_time_head(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds,
                                  moesim_error *err);
moesim_code moesim_host_time_empty(moesim_device *device, uint32_t num_rows, uint32_t repeat, double *seconds,
                                   moesim_error *err);
moesim_code moesim_host_load_begin(moesim_device *device, size_t bytes, moesim_error *err);
moesim_code moesim_host_load_end(moesim_device *device, uint64_t *bytes, double *seconds, moesim_error *err);
void moesim_host_load_stop(struct host_device *d);           /* where a load runs */

#endif
