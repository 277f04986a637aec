/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that changes in an instance from window to window, region by region in a fixed order: one walk serves saving and
 * restoring. Internal to sim/.
 */
#ifndef MOESIM_SIM_SNAPSHOT_H
#define MOESIM_SIM_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct moesim_instance;
struct moesim_account;
struct moesim_timer;
struct moesim_prefetcher;
struct moesim_pool;

/* Saves the bytes at `data`, or overwrites them. */
typedef struct moesim_visitor moesim_visitor;
struct moesim_visitor {
    moesim_code (*visit)(moesim_visitor *v, void *data, size_t bytes, moesim_error *err);
    bool restoring;              /* counts are read before what they count: make room first */
};

/* The instance must have been created from the same configuration. A failed restore leaves it unusable. */
moesim_code moesim_instance_visit(struct moesim_instance *in, moesim_visitor *v, moesim_error *err);

/* Its parts, each beside what it walks. */
moesim_code moesim_account_visit(struct moesim_instance *in, moesim_visitor *v, moesim_error *err);
moesim_code moesim_timer_visit(struct moesim_timer *timer, moesim_visitor *v, moesim_error *err);
moesim_code moesim_prefetch_visit(struct moesim_instance *in, moesim_visitor *v, moesim_error *err);
moesim_code moesim_pooled_visit(struct moesim_instance *in, moesim_visitor *v, moesim_error *err);

#endif
