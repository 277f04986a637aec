/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetches. With time they enter the link's queue by priority and land when their copies have ended, in any layer, before
 * the gate of the next event (sim/executor.h). Without time (--time count) what a policy asked for lands just before the next
 * event of its layer, by priority, at most params.prefetch_budget a layer and pass. What is over the budget stays asked for
 * until it lands, is resident already, or a new list replaces it. In a full layer a landing evicts victim()'s answer or the
 * worst standing keys; experts that have landed since the layer's last event are never evicted for one another.
 */
#ifndef MOESIM_SIM_PREFETCH_H
#define MOESIM_SIM_PREFETCH_H

#include "sim/instance.h"

/* Only for policies with a callback that can ask; entries offered to a policy: min(M·E, 65536). */
moesim_code moesim_prefetch_init(moesim_instance *in, moesim_error *err);

/* Most entries of a list of this instance; 0: it never asks. */
uint32_t moesim_prefetch_most(const moesim_instance *in);

/* An empty answer for a callback; valid until moesim_prefetch_accept. */
moesim_prefetch *moesim_prefetch_offer(moesim_instance *in);

/* Checks the answer and, if it is a new list, installs it. `callback` names it in messages. */
moesim_code moesim_prefetch_accept(moesim_instance *in, const char *callback, moesim_error *err);

/* Before the gate of a layer: before_layer is asked, then the layer's entries land. */
moesim_code moesim_prefetch_layer(moesim_instance *in, const moesim_window *w, const moesim_step *step, uint32_t layer,
                                  moesim_error *err);

#endif
