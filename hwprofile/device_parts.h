/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the backends: their tables, and the rules that the calls of one event obey. Private to hwprofile/.
 */
#ifndef MOESIM_HWPROFILE_DEVICE_PARTS_H
#define MOESIM_HWPROFILE_DEVICE_PARTS_H

#include "base/clock.h"
#include "hwprofile/device.h"

/* cuda: in builds with MOESIM_CUDA only. */
extern const moesim_device_ops moesim_device_cuda, moesim_device_host, moesim_device_null;

/* What a device holds and where in a pass it is, for checks of every call before anything is started. */
#define MOESIM_SLOT_EMPTY UINT32_MAX
typedef struct moesim_device_order {
    const char *name;            /* of the device */
    const moesim_device_config *config;
    uint32_t *content;           /* [slots] pool index or MOESIM_SLOT_EMPTY */
    uint64_t *hit_in;            /* [slots] event (+1) in which it was a hit last */
    uint32_t *routes;            /* [max_rows] routes of a row in this event */
    uint64_t event;              /* number of work() calls so far */
    uint32_t gated_rows;         /* rows of the gate before; 0: none open */
    bool busy;                   /* work() since the last gate or end_pass */
} moesim_device_order;

/* config stays valid until fini. */
moesim_code moesim_device_order_init(moesim_device_order *o, const char *name, const moesim_device_config *config,
                                     moesim_error *err);
void moesim_device_order_fini(moesim_device_order *o);

/* Each returns MOESIM_E_INTERNAL that names event, expert and rule, or notes that the call was made:
 * fill     slot and pool in range; no event is running (its readers may be pending)
 * gate     1..max_rows rows
 * work     a gate with as many rows came before, one event a gate; slots, pool indices and rows in range; rows ascending,
 *          1..num_rows tokens; no row has more than top_k experts; a hit reads a slot that was filled, with the expert that it
 *          says; no two hits share a slot
 * end_pass 1..max_rows rows with the head, else 0 is allowed */
moesim_code moesim_device_order_fill(moesim_device_order *o, uint32_t slot, uint32_t pool, moesim_error *err);
moesim_code moesim_device_order_gate(moesim_device_order *o, uint32_t num_rows, moesim_error *err);
moesim_code moesim_device_order_work(moesim_device_order *o, const moesim_device_work *work, moesim_error *err);
moesim_code moesim_device_order_end(moesim_device_order *o, uint32_t num_rows, bool with_head, moesim_error *err);

/* Routes of an event: Σ tokens. */
size_t moesim_device_routes(const moesim_device_work *work);

#endif
