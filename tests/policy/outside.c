/* SPDX-License-Identifier: Apache-2.0
 *
 * An outside policy as a user would write it, plain recency, built as a shared object. FLAW, set at compile time, breaks
 * what the loader must see; option `fault` breaks the contract at run time.
 */
#include "moesim/policy.h"
#include "policies/kit.h"

enum { FLAW_NONE, FLAW_SYMBOL, FLAW_NULL, FLAW_ABI, FLAW_SIZE, FLAW_RETAIN, FLAW_KEY, FLAW_NAME, FLAW_OFFSET, FLAW_DEFAULT,
       FLAW_TWICE, FLAW_CLASS, FLAW_NEEDS, FLAW_HOST };

#ifndef FLAW
#define FLAW FLAW_NONE
#endif

enum { FAULT_NONE, FAULT_NAN, FAULT_UNSET, FAULT_TIE, FAULT_GROW, FAULT_WIDE, FAULT_OPEN_GROW, FAULT_CPU, FAULT_ORDER,
       FAULT_STOP, FAULT_OPEN, FAULT_NEVER, FAULT_MANY, FAULT_NO_NAME, FAULT_EMPTY, FAULT_CONTROL, FAULT_SAME, FAULT_INFINITE,
       FAULT_ELSEWHERE };

typedef struct outside_options {
    int64_t from;
    int32_t fault, pad;
} outside_options;

typedef struct outside_state {
    kit_head head;
    outside_options options;
} outside_state;

static int outside_is(const outside_state *s, uint64_t clock, int32_t fault)
{
    return s->options.fault == fault && clock >= (uint64_t)s->options.from;
}

static size_t outside_bytes(const moesim_shape *shape, const void *options)
{
    (void)options;
    return kit_bytes(shape, sizeof(outside_state), 1);
}

static int outside_open(void *state, const moesim_open *open, moesim_start *start)
{
    outside_state *s = state;
    kit_open(&s->head, open->shape, sizeof *s, 1);
    s->options = *(const outside_options *)open->options;
    if (s->options.fault == FAULT_OPEN_GROW)
        start->slots[0]++;
    if (s->options.fault == FAULT_OPEN)
        memcpy(start->error, "no luck today", sizeof "no luck today");
    return s->options.fault == FAULT_OPEN;
}

static int outside_boundary(void *state, const moesim_boundary *boundary, moesim_boundary_answer *answer)
{
    outside_state *s = state;
    if (outside_is(s, boundary->clock, FAULT_GROW))
        answer->slots[0]++;
    if (outside_is(s, boundary->clock, FAULT_WIDE))
        answer->slots[0] = UINT32_MAX;
    return 0;
}

static int outside_dispatch(void *state, const moesim_event *event, moesim_dispatch *dispatch)
{
    outside_state *s = state;
    if (outside_is(s, event->clock, FAULT_CPU))
        dispatch->cpu[0] = ~dispatch->misses[0];
    if (outside_is(s, event->clock, FAULT_ORDER))
        dispatch->order[0] = dispatch->order[dispatch->n_misses - 1];
    return 0;
}

static int outside_retain(void *state, const moesim_event *event, moesim_keys *keys)
{
    outside_state *s = state;
    double *last = kit_doubles(&s->head, event->layer, 0);
    kit_touch(event, last);
    for (uint32_t e = 0; e < s->head.experts && !outside_is(s, event->clock, FAULT_UNSET); e++) {
        keys->value[e] = outside_is(s, event->clock, FAULT_NAN) ? 0.0 / 0.0 : last[e];
        keys->value[e] = outside_is(s, event->clock, FAULT_NEVER) ? -1.0 / 0.0 : keys->value[e];
        keys->tie[e] = outside_is(s, event->clock, FAULT_TIE) ? 0.0 / 0.0 : 0;
    }
    return outside_is(s, event->clock, FAULT_STOP);
}

static void outside_close(void *state, moesim_counters *counters)
{
    const outside_state *s = state;
    const char *name = "counted";
    switch (s->options.fault) {
    case FAULT_NO_NAME: name = NULL; break;
    case FAULT_EMPTY: name = ""; break;
    case FAULT_CONTROL: name = "coun\x1bted"; break;
    case FAULT_SAME: name = "again"; break;
    default: break;
    }
    counters->counter[0] = (moesim_counter){ "again", 1.0 };
    counters->counter[1] = (moesim_counter){ name, s->options.fault == FAULT_INFINITE ? 1.0 / 0.0 : 2.0 };
    if (s->options.fault == FAULT_ELSEWHERE)
        counters->counter = NULL;
    counters->n = s->options.fault == FAULT_MANY ? counters->capacity + 1 : s->options.fault > FAULT_MANY ? 2 : 0;
}

static uint32_t outside_needs(const void *options)
{
    (void)options;
    return FLAW == FLAW_CLASS ? MOESIM_NEED_CLASS : FLAW == FLAW_NEEDS ? 1u << 30 : 0;
}

static const char *const outside_faults[] = { "none", "nan", "unset", "tie", "grow", "wide", "open-grow", "cpu", "order",
                                              "stop", "open", "never", "many", "no-name", "empty", "control", "same",
                                              "infinite", "elsewhere", NULL };

static const moesim_option outside_table[] = {
    { "from", MOESIM_OPTION_INT, FLAW == FLAW_OFFSET ? 4096 : offsetof(outside_options, from), FLAW == FLAW_DEFAULT ? "0" : "1",
      1, 1e9, NULL, "clock at which the fault begins" },
    { FLAW == FLAW_TWICE ? "from" : "fault", MOESIM_OPTION_CHOICE, offsetof(outside_options, fault), "none", 0, 0,
      outside_faults, "what to do wrong" },
    { .name = NULL },
};

static const moesim_policy outside_policy = {
    .abi = FLAW == FLAW_ABI ? MOESIM_POLICY_ABI + 1 : MOESIM_POLICY_ABI,
    .size = FLAW == FLAW_SIZE ? sizeof(moesim_policy) - 8 : sizeof(moesim_policy),
    .name = FLAW == FLAW_NAME ? "Not A Name" : "outside",
    .summary = "recency, from a shared object",
    .source = "the tests",
    .order = FLAW == FLAW_KEY ? MOESIM_ORDER_KEY : MOESIM_ORDER_GENERIC,
    .options_size = sizeof(outside_options),
    .options = outside_table,
    .needs = outside_needs,
    .state_bytes = outside_bytes,
    .open = outside_open,
    .boundary = outside_boundary,
    .dispatch = outside_dispatch,
    .retain = FLAW == FLAW_RETAIN ? NULL : outside_retain,
    .host_mode = FLAW == FLAW_HOST ? MOESIM_HOST_IDEAL : MOESIM_HOST_NONE,
    .close = outside_close,
};

#if FLAW == 1
#define EXPORTED outside_export
#else
#define EXPORTED moesim_policy_export
#endif

const moesim_policy *EXPORTED(void);

__attribute__((visibility("default"))) const moesim_policy *EXPORTED(void)
{
    return FLAW == FLAW_NULL ? NULL : &outside_policy;
}
