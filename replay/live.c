/* SPDX-License-Identifier: Apache-2.0
 *
 * Live replay: the simulator's loop with a sink that executes each event as it is decided. What a policy takes to decide lies
 * between the gate and the work, as in a real engine.
 */
#include "base/log.h"
#include "replay/bench.h"

typedef struct live {
    moesim_bench *bench;
    moesim_stepper *stepper;
    moesim_join *join;
    moesim_slots *slots;
    moesim_digest *digest;
    size_t events;
    bool gated;
    moesim_device_work work;
    moesim_device_expert device[1024];   /* of one event: at most E */
    uint16_t id[1024];
} live;

static uint32_t listed_rows(const live *l, const moesim_step *step)
{
    return step->num_rows < l->bench->max_rows ? step->num_rows : l->bench->max_rows;
}

static moesim_code on_gate(void *cookie, const moesim_window *w, const moesim_step *step, size_t index, moesim_error *err)
{
    live *l = cookie;
    const uint32_t layer = (uint32_t)(index % w->num_layers);
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
    l->gated = true;
    if (step->num_rows == 0)
        return MOESIM_OK;
    return moesim_stepper_gate(l->stepper, l->events, step->pass, layer, listed_rows(l, step), err);
}

static moesim_code on_event(void *cookie, const moesim_window *w, const moesim_step *step, size_t index,
                            const moesim_decision *decision, moesim_error *err)
{
    live *l = cookie;
    moesim_walk_event event;
    moesim_decision executed;
    if (!l->gated && on_gate(cookie, w, step, index, err) != MOESIM_OK)
        return err->code;
    l->gated = false;
    if (moesim_join_event(l->join, w, step, index, decision, &event, err) != MOESIM_OK)
        return err->code;
    moesim_event_decision(&event, l->id, &executed);
    if (moesim_slots_event(l->slots, &event, l->device, &l->work, err) != MOESIM_OK ||
        (step->num_rows > 0 && moesim_stepper_work(l->stepper, &l->work, l->id, err) != MOESIM_OK))
        return err->code;
    moesim_decision_digest(l->digest, &executed);
    l->events++;
    return event.last ? moesim_stepper_end(l->stepper, event.listed_rows, l->bench->config.other && step->num_rows > 0, err)
                      : MOESIM_OK;
}

moesim_code moesim_bench_live(moesim_bench *b, moesim_bench_entry *e, moesim_stepper *stepper,
                              char digest[MOESIM_DIGEST_CHARS], moesim_error *err)
{
    const moesim_slots_shape shape = moesim_bench_shape(b, e);
    live l = {.bench = b, .stepper = stepper};
    const moesim_event_sink sink = {.cookie = &l, .gate = on_gate, .event = on_event};
    moesim_decide decide = moesim_bench_decide(b, &e->cell, e->given, e->effective);
    decide.run.sink = &sink;
    moesim_code code = moesim_join_create(b->info->num_layers, b->info->num_experts, b->info->top_k, b->max_rows, e->given,
                                          &l.join, err);
    if (code == MOESIM_OK)
        code = moesim_slots_create(&shape, &l.slots, err);
    if (code == MOESIM_OK)
        code = moesim_slots_reset(l.slots, e->facts.initial, err);
    if (code == MOESIM_OK)
        code = moesim_digest_create(&l.digest, err);
    if (code == MOESIM_OK)
        code = moesim_decide_log(b->config.trace, &decide, NULL, NULL, err);
    if (code == MOESIM_OK)
        moesim_digest_hex(l.digest, digest);
    moesim_digest_destroy(&l.digest);
    moesim_slots_destroy(&l.slots);
    moesim_join_destroy(&l.join);
    return code;
}
