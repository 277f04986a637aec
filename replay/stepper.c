/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, work, end of pass. Verification stops the clock: an event that is verified ends at the next gate as every event does,
 * and that gate is repeated when the check is done, so that no time holds any of it.
 */
#include "replay/stepper.h"

#include "base/clock.h"

static uint32_t clip(uint64_t ns)
{
    return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static moesim_code name_event(const moesim_stepper *s, moesim_error *err)
{
    return moesim_fail_prefix(err, "event %zu (pass %llu, layer %u)", s->index, (unsigned long long)s->pass, s->layer);
}

static void record(const moesim_stepper *s, const moesim_device_times *t)
{
    moesim_replay_cell *c = s->cell;
    if (c == NULL)
        return;
    c->ns[s->index] = clip(t->gate - s->gate);
    c->link[s->index] = clip(t->busy_link);
    c->gpu[s->index] = clip(t->busy_gpu);
    c->busy_cpu[s->index] = clip(t->busy_cpu);
    c->bytes[s->index] = t->bytes;
}

/* The event in flight has ended. *stopped: a check took place since. */
static moesim_code finish(moesim_stepper *s, const moesim_device_times *t, bool *stopped, moesim_error *err)
{
    *stopped = false;
    if (!s->in_flight)
        return MOESIM_OK;
    record(s, t);
    s->in_flight = false;
    if (s->verifier == NULL || !moesim_verifier_chosen(s->verifier, s->index))
        return MOESIM_OK;
    *stopped = true;
    return moesim_verifier_check(s->verifier, s->work, s->id, err) == MOESIM_OK ? MOESIM_OK : name_event(s, err);
}

moesim_code moesim_stepper_gate(moesim_stepper *s, size_t index, uint64_t pass, uint32_t layer, uint32_t rows,
                                moesim_error *err)
{
    const moesim_device_ops *ops = s->device->ops;
    moesim_device_times t;
    bool stopped = false;
    if (ops->gate(s->device, rows, &t, err) != MOESIM_OK)
        return name_event(s, err);
    if (finish(s, &t, &stopped, err) != MOESIM_OK)
        return err->code;
    if (stopped && ops->gate(s->device, rows, &t, err) != MOESIM_OK)
        return name_event(s, err);
    if (layer == 0 && s->passed && s->cell != NULL)
        s->cell->lead[index] = clip(t.gate - s->ended);
    s->index = index;
    s->pass = pass;
    s->layer = layer;
    s->gate = t.gate;
    return MOESIM_OK;
}

moesim_code moesim_stepper_work(moesim_stepper *s, const moesim_device_work *work, const uint16_t *id, moesim_error *err)
{
    if (s->device->ops->work(s->device, work, err) != MOESIM_OK)
        return name_event(s, err);
    s->in_flight = true;
    s->work = work;
    s->id = id;
    for (uint32_t i = 0; i < work->n_moved; i++)
        s->content[work->moved[i].slot] = work->moved[i].pool;
    return MOESIM_OK;
}

moesim_code moesim_stepper_end(moesim_stepper *s, uint32_t rows, bool head, moesim_error *err)
{
    moesim_device_times t;
    bool stopped = false;
    if (s->device->ops->end_pass(s->device, rows, head, &t, err) != MOESIM_OK)
        return name_event(s, err);
    if (finish(s, &t, &stopped, err) != MOESIM_OK)
        return err->code;
    s->ended = stopped ? moesim_clock_ns() : t.gate;
    s->passed = true;
    return MOESIM_OK;
}
