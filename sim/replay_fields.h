/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of a raw replay file as a table: written, read and compared by its rows. Inside of sim/replay_*.c.
 */
#ifndef MOESIM_SIM_REPLAY_FIELDS_H
#define MOESIM_SIM_REPLAY_FIELDS_H

#include "sim/replay_file.h"

typedef struct moesim_replay_field {
    const char *name;            /* of the attribute; NULL ends the table */
    size_t offset;               /* in moesim_replay_config */
    bool text;                   /* char *, else uint64_t */
    bool compared;               /* must agree among the parts of one grid */
} moesim_replay_field;

extern const moesim_replay_field moesim_replay_fields[];

static inline char **moesim_replay_text(moesim_replay_config *c, const moesim_replay_field *f)
{
    return (char **)(void *)((char *)c + f->offset);
}
static inline uint64_t *moesim_replay_number(moesim_replay_config *c, const moesim_replay_field *f)
{
    return (uint64_t *)(void *)((char *)c + f->offset);
}
static inline char *const *moesim_replay_text_const(const moesim_replay_config *c, const moesim_replay_field *f)
{
    return (char *const *)(const void *)((const char *)c + f->offset);
}
static inline const uint64_t *moesim_replay_number_const(const moesim_replay_config *c, const moesim_replay_field *f)
{
    return (const uint64_t *)(const void *)((const char *)c + f->offset);
}

/* Integer columns of the tables, and texts of table plans. */
enum { PLAN, CACHE, FULL, ALIASED, EVENTS, PLAN_NUMBERS };
enum { POLICY, OPTIONS, DECISIONS, PLAN_TEXTS };
enum { EVENT_PLAN, PASS, LAYER, ROWS, COUNTED, HITS, MOVED, CPU, EVENT_NUMBERS };
enum { CELL, CELL_PLAN, REPEAT, MODE, SESSION, VERIFIED, CELL_NUMBERS };
enum { TIME_CELL, NS, LEAD, LINK, GPU, BUSY_CPU, BYTES, TIME_NUMBERS };
extern const char *const moesim_replay_plan_names[], *const moesim_replay_plan_texts[], *const moesim_replay_event_names[],
    *const moesim_replay_cell_names[], *const moesim_replay_time_names[], *const moesim_replay_time_units[];

#endif
