/* SPDX-License-Identifier: Apache-2.0
 *
 * One execution: warm up, make the first residents resident, go.
 */
#include <string.h>

#include "base/log.h"
#include "replay/bench.h"

#define WARM_FIRST 16u           /* passes before the first execution of a bench */
#define WARM_NEXT 4u             /* passes before every other one: clocks fall while nothing runs */
#define LISTS_BYTES ((size_t)2 << 30)    /* of prepared lists that are kept for the next execution */

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

static void make_room(moesim_bench *b, const moesim_bench_entry *keep)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < b->num_entries; i++)
        bytes += b->entry[i].list.bytes;
    for (uint32_t i = 0; i < b->num_entries && bytes > LISTS_BYTES; i++) {
        moesim_bench_entry *e = &b->entry[i];
        if (e == keep || !e->listed)
            continue;
        bytes -= e->list.bytes;
        moesim_worklist_fini(&e->list);
        e->listed = false;
    }
}

static moesim_code prepare(moesim_bench *b, moesim_bench_entry *e, moesim_error *err)
{
    const moesim_walk_params params = moesim_bench_walk(b);
    const moesim_slots_shape shape = moesim_bench_shape(b, e);
    if (e->listed)
        return MOESIM_OK;
    make_room(b, e);
    const moesim_code code = moesim_worklist_build(b->config.trace, e->log, &params, &e->facts, &shape, &e->list, err);
    e->listed = code == MOESIM_OK;
    if (code != MOESIM_OK)
        moesim_worklist_fini(&e->list);
    return code;
}

/* The plan as the file has it; its counts are those of what is executed. */
static moesim_code place_plan(moesim_bench *b, moesim_bench_entry *e, moesim_error *err)
{
    const moesim_declog_info *log = moesim_declog_get_info(e->log);
    const size_t found = moesim_replay_find_plan(&b->file, e->given, e->effective, e->cell.cache, e->cell.bandwidth);
    if (e->plan != MOESIM_NO_PLAN)
        return MOESIM_OK;
    if (found < b->file.num_plans && strcmp(b->file.plan[found].decisions, log->digest) != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "policy %s at %u slots decides otherwise than when the file was begun (another "
                           "version of moesim?); measure into another -o", e->given, e->cell.cache);
    e->plan = (uint32_t)found;
    if (found < b->file.num_plans)
        return MOESIM_OK;
    if (moesim_replay_add_plan(&b->file, e->given, e->effective, e->cell.cache, e->cell.bandwidth, e->list.num_events, &e->plan,
                               err) != MOESIM_OK)
        return err->code;
    moesim_replay_plan *p = &b->file.plan[e->plan];
    memcpy(p->decisions, log->digest, sizeof p->decisions);
    p->full = e->full;
    p->aliased = moesim_bench_shape(b, e).aliased;
    for (size_t i = 0; i < e->list.num_events; i++) {
        const moesim_worklist_event *event = &e->list.event[i];
        p->pass[i] = event->pass;
        p->layer[i] = event->layer;
        p->rows[i] = event->rows;
        p->counted[i] = event->counted;
        p->hits[i] = event->work.n_hits;
        p->moved[i] = event->work.n_moved;
        p->cpu[i] = event->work.n_cpu;
    }
    return MOESIM_OK;
}

/* ---- execution ------------------------------------------------------------------------------------------------- */

static moesim_code fill(moesim_bench *b, const moesim_worklist *list, moesim_error *err)
{
    for (uint32_t i = 0; i < list->slots; i++) {
        if (list->fill[i] == MOESIM_NO_SLOT || list->fill[i] == b->content[i])
            continue;
        if (moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        if (b->config.ops->fill(b->device, i, list->fill[i], err) != MOESIM_OK)
            return moesim_fail_prefix(err, "filling slot %u", i);
        b->content[i] = list->fill[i];
    }
    return MOESIM_OK;
}

/* The first `steps` passes of a list. */
static moesim_code execute(moesim_bench *b, const moesim_worklist *list, size_t steps, moesim_stepper *s, moesim_error *err)
{
    for (size_t i = 0; i < list->num_events && steps > 0; i++) {
        const moesim_worklist_event *e = &list->event[i];
        const uint32_t rows = e->work.num_rows;
        if (moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        if (rows > 0 && (moesim_stepper_gate(s, i, e->pass, e->layer, rows, err) != MOESIM_OK ||
                         moesim_stepper_work(s, &e->work, e->expert, err) != MOESIM_OK))
            return err->code;
        if (e->last && moesim_stepper_end(s, rows, b->config.other && rows > 0, err) != MOESIM_OK)
            return err->code;
        steps -= e->last;
    }
    return MOESIM_OK;
}

static moesim_code warm_up(moesim_bench *b, const moesim_worklist *list, moesim_error *err)
{
    moesim_stepper s = {.device = b->device, .content = b->content};
    moesim_code code = fill(b, list, err);
    if (code == MOESIM_OK)
        code = execute(b, list, b->warm ? WARM_NEXT : WARM_FIRST, &s, err);
    if (code == MOESIM_OK)
        code = fill(b, list, err);
    b->warm = true;
    return code;
}

static moesim_code set_cap(moesim_bench *b, double cap, moesim_error *err)
{
    if (cap == b->cap)
        return MOESIM_OK;
    const moesim_code code = b->config.ops->set_cap(b->device, cap, err);
    b->cap = code == MOESIM_OK ? cap : b->cap;
    return code;
}

static moesim_code run(moesim_bench *b, moesim_bench_entry *e, moesim_verifier *verifier, moesim_replay_cell *cell,
                       moesim_error *err)
{
    moesim_stepper s = {.device = b->device, .verifier = verifier, .cell = cell, .content = b->content};
    moesim_verifier_begin(verifier, e->list.num_events, b->config.seed + cell->order);
    if (b->config.mode == MOESIM_REPLAY_LIVE) {
        if (moesim_bench_live(b, e, &s, cell->executed, err) != MOESIM_OK)
            return err->code;
    } else {
        if (execute(b, &e->list, e->list.num_steps, &s, err) != MOESIM_OK)
            return err->code;
        memcpy(cell->executed, e->list.executed, sizeof cell->executed);
    }
    cell->verified = moesim_verifier_experts(verifier);
    cell->worst_error = moesim_verifier_worst(verifier);
    const char *decided = moesim_declog_get_info(e->log)->digest;
    if (strcmp(cell->executed, decided) != 0)
        return moesim_fail(err, MOESIM_E_INTERNAL, "the decisions that were executed have the digest %.16s…, those of the "
                           "simulator %.16s…: the policy does not decide the same twice", cell->executed, decided);
    return MOESIM_OK;
}

static moesim_code measure(moesim_bench *b, moesim_bench_entry *e, moesim_replay_cell *cell, moesim_error *err)
{
    moesim_verifier *verifier = NULL;
    moesim_code code = set_cap(b, cell->bandwidth_cap, err);
    if (code == MOESIM_OK)
        code = moesim_verifier_create(b->device, b->config.hidden, b->config.intermediate, b->max_rows, e->list.most_routes,
                                      &verifier, err);
    if (code == MOESIM_OK)
        code = warm_up(b, &e->list, err);
    if (code == MOESIM_OK)
        code = run(b, e, verifier, cell, err);
    moesim_verifier_destroy(&verifier);
    return code;
}

moesim_code moesim_bench_run(moesim_bench *b, uint32_t plan, double bandwidth_cap, uint32_t repeat, uint32_t order,
                             moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    moesim_bench_entry *e = &b->entry[plan];
    moesim_replay_cell cell;
    err = err != NULL ? err : &local;
    if (prepare(b, e, err) != MOESIM_OK || place_plan(b, e, err) != MOESIM_OK ||
        moesim_replay_new_cell(&b->file, e->plan, &cell, err) != MOESIM_OK)
        return err->code;
    cell.repeat = repeat;
    cell.order = order;
    cell.mode = b->config.mode;
    cell.session = b->session;
    cell.bandwidth_cap = bandwidth_cap;
    moesim_code code = measure(b, e, &cell, err);
    if (code == MOESIM_OK)
        code = moesim_replay_add_cell(&b->file, &cell, err);
    else if (code != MOESIM_E_INTERRUPTED)
        code = moesim_fail_prefix(err, "device %s: policy %s at %u slots", b->config.ops->name, e->given, e->cell.cache);
    moesim_replay_drop_cell(&cell);
    return code;
}

bool moesim_bench_has(const moesim_bench *b, uint32_t plan, double bandwidth_cap, uint32_t repeat)
{
    const moesim_bench_entry *e = &b->entry[plan];
    const size_t found = moesim_replay_find_plan(&b->file, e->given, e->effective, e->cell.cache, e->cell.bandwidth);
    return found < b->file.num_plans &&
           moesim_replay_find_cell(&b->file, (uint32_t)found, bandwidth_cap, b->config.mode, repeat) < b->file.num_cells;
}
