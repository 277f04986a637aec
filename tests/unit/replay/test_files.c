/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of grids: what is written is read, parts are merged, damage is refused.
 */
#include <stdlib.h>

#include "sim/replay_file.h"
#include "tests/unit/replay/common.h"

static void fill_file(moesim_replay_file *f, uint32_t cells, uint32_t first)
{
    moesim_error err = MOESIM_ERROR_INIT;
    uint32_t session = 0, plan = 0;
    moesim_replay_file_init(f);
    char **text[] = {&f->config.trace, &f->config.trace_digest, &f->config.model_id, &f->config.priced_as,
                     &f->config.device, &f->config.machine,
                     &f->config.isa, &f->config.cpus, &f->config.moesim_version, &f->config.profile, &f->config.profile_digest};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        WORKS(moesim_replay_set(text[i], i % 3 == 0 ? "" : "some text", &err));
    f->config.num_layers = 3;
    f->config.seed = UINT64_MAX;
    f->config.planned_cells = 8;
    WORKS(moesim_replay_add_session(f, "cpu\tFast One\npinned\tyes\n", &session, &err));
    WORKS(moesim_replay_add_plan(f, "oled:confidence=lag1", "a=1,b=2", 20, 1.6e10, 6, &plan, &err));
    memset(f->plan[0].decisions, 'a', MOESIM_DIGEST_CHARS - 1);
    for (uint32_t i = 0; i < 6; i++) {
        f->plan[0].pass[i] = UINT64_C(1) << 40;
        f->plan[0].layer[i] = i % 3;
        f->plan[0].counted[i] = i > 2;
        f->plan[0].hits[i] = i;
    }
    for (uint32_t c = 0; c < cells; c++) {
        moesim_replay_cell cell;
        WORKS(moesim_replay_new_cell(f, plan, &cell, &err));
        cell.order = cell.repeat = first + c;
        cell.session = session;
        cell.bandwidth_cap = 1.25e10;
        cell.worst_error = 1e-7;
        memset(cell.executed, 'a', MOESIM_DIGEST_CHARS - 1);
        for (uint32_t i = 0; i < 6; i++) {
            cell.ns[i] = UINT32_MAX - i;
            cell.bytes[i] = UINT64_C(1) << 35;
        }
        WORKS(moesim_replay_add_cell(f, &cell, &err));
    }
}

START_TEST(round_trip)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_replay_file f, g;
    char difference[256], fact[32];
    fill_file(&f, 3, 0);
    WORKS(moesim_replay_file_write(&f, test_path("raw.h5"), &err));
    WORKS(moesim_replay_file_read(test_path("raw.h5"), &g, &err));
    ck_assert_int_eq(moesim_replay_same(&f.config, &g.config, difference, sizeof difference), MOESIM_OK);
    ck_assert_str_eq(difference, "");
    ck_assert_uint_eq(g.config.seed, UINT64_MAX);
    ck_assert_uint_eq(g.num_cells, 3);
    ck_assert_uint_eq(g.num_sessions, 1);
    ck_assert_str_eq(g.session[0].facts, f.session[0].facts);
    moesim_replay_fact(&g.session[0], "pinned", fact, sizeof fact);
    ck_assert_str_eq(fact, "yes");
    moesim_replay_fact(&g.session[0], "pin", fact, sizeof fact);
    ck_assert_str_eq(fact, "");
    ck_assert_str_eq(g.plan[0].policy, "oled:confidence=lag1");
    ck_assert(g.plan[0].bandwidth == 1.6e10);
    ck_assert_mem_eq(g.plan[0].pass, f.plan[0].pass, 6 * sizeof *f.plan[0].pass);
    ck_assert_mem_eq(g.plan[0].hits, f.plan[0].hits, 6 * sizeof *f.plan[0].hits);
    ck_assert_mem_eq(g.cell[2].ns, f.cell[2].ns, 6 * sizeof *f.cell[2].ns);
    ck_assert_mem_eq(g.cell[2].bytes, f.cell[2].bytes, 6 * sizeof *f.cell[2].bytes);
    ck_assert_uint_eq(moesim_replay_find_cell(&g, 0, 1.25e10, MOESIM_REPLAY_LOCKED, 2), 2);
    ck_assert_uint_eq(moesim_replay_find_cell(&g, 0, 0, MOESIM_REPLAY_LOCKED, 2), 3);
    moesim_replay_file_fini(&f);
    moesim_replay_file_fini(&g);
}
END_TEST

START_TEST(parts)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_replay_file part[2], all;
    const char *path[] = {"a.h5", "b.h5"};
    fill_file(&part[0], 3, 5);
    fill_file(&part[1], 5, 0);
    WORKS(moesim_replay_merge(part, path, 2, &all, &err));
    ck_assert_uint_eq(all.num_cells, 8);
    ck_assert_uint_eq(all.num_plans, 1);
    ck_assert_uint_eq(all.num_sessions, 2);
    ck_assert(!moesim_replay_file_partial(&all));
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_uint_eq(all.cell[i].order, i);
        ck_assert_uint_eq(all.cell[i].session, i < 5);
    }
    WORKS(moesim_replay_file_write(&all, test_path("all.h5"), &err));
    moesim_replay_file_fini(&all);
    WORKS(moesim_replay_file_read(test_path("all.h5"), &all, &err));
    moesim_replay_file_fini(&all);
    fill_file(&part[0], 3, 0);
    fill_file(&part[1], 3, 2);
    REFUSED(moesim_replay_merge(part, path, 2, &all, &err), MOESIM_E_USAGE, "b.h5: cell 2");
    fill_file(&part[0], 1, 0);
    fill_file(&part[1], 1, 2);
    part[1].plan[0].decisions[0] = 'b';
    REFUSED(moesim_replay_merge(part, path, 2, &all, &err), MOESIM_E_USAGE, "decided differently");
    fill_file(&part[0], 1, 0);
    fill_file(&part[1], 1, 2);
    part[1].config.staging = 9;
    REFUSED(moesim_replay_merge(part, path, 2, &all, &err), MOESIM_E_USAGE, "staging: 0 and 9");
}
END_TEST

/* Two grids, each with full residency beside its own cells. */
START_TEST(two_grids)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_replay_file part[2], all;
    const char *path[] = {"a.h5", "b.h5"};
    for (uint32_t p = 0; p < 2; p++) {
        fill_file(&part[p], 2, 0);
        part[p].plan[0].full = true;
        part[p].config.planned_cells = 2;
        part[p].cell[0].ns[5] = 7 + p;
    }
    part[1].cell[1].ns[0] = 3;
    WORKS(moesim_replay_merge(part, path, 2, &all, &err));
    ck_assert_uint_eq(all.num_cells, 4);
    ck_assert_uint_eq(all.num_plans, 1);
    ck_assert(!moesim_replay_file_partial(&all));
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(all.cell[i].order, i / 2);
        ck_assert_uint_eq(all.cell[i].session, i % 2);
        ck_assert_uint_eq(all.cell[i].repeat, i % 2 == 0 ? i / 2 : 2 + i / 2);
    }
    moesim_replay_file_fini(&all);
    for (uint32_t p = 0; p < 2; p++) {
        fill_file(&part[p], 2, 0);
        part[p].plan[0].full = true;
    }
    REFUSED(moesim_replay_merge(part, path, 2, &all, &err), MOESIM_E_USAGE, "b.h5: cell 0");
}
END_TEST

/* Numbers that fit and cannot have been measured. */
START_TEST(impossible)
{
    static const struct { double worst; bool full; uint32_t moved; moesim_code code; const char *says; } row[] = {
        { 0.02, true, 0, MOESIM_OK, "" },
        { 0.021, false, 0, MOESIM_E_FORMAT, "row 2 of table cells" },
        { 0, true, 1, MOESIM_E_FORMAT, "row 4 of table events: a miss" },
        { 0, false, 1, MOESIM_OK, "" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_replay_file f;
        fill_file(&f, 3, 0);
        f.cell[2].worst_error = row[i].worst;
        f.plan[0].full = row[i].full;
        f.plan[0].moved[4] = row[i].moved;
        WORKS(moesim_replay_file_write(&f, test_path("raw.h5"), &err));
        moesim_replay_file_fini(&f);
        ck_assert_int_eq(moesim_replay_file_read(test_path("raw.h5"), &f, &err), row[i].code);
        ck_assert_msg(strstr(err.text, row[i].says) != NULL, "%s", err.text);
        moesim_replay_file_fini(&f);
    }
}
END_TEST

/* Refused with one line, or read as something that still fits together. */
START_TEST(damage)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_replay_file f;
    static unsigned char data[1 << 18], copy[1 << 18];
    moesim_rng rng;
    fill_file(&f, 3, 0);
    WORKS(moesim_replay_file_write(&f, test_path("raw.h5"), &err));
    moesim_replay_file_fini(&f);
    FILE *in = fopen(test_path("raw.h5"), "rb");
    const size_t bytes = fread(data, 1, sizeof data, in);
    ck_assert_int_eq(fclose(in), 0);
    ck_assert(bytes > 0 && bytes < sizeof data);
    moesim_rng_seed(&rng, 4);
    size_t refused = 0;
    for (int i = 0; i < 300; i++) {
        memcpy(copy, data, bytes);
        const size_t at = moesim_rng_below(&rng, (uint32_t)bytes), length = i % 10 == 0 ? at : bytes;
        copy[at] ^= (unsigned char)(1u << moesim_rng_below(&rng, 8));
        FILE *out = fopen(test_path("damaged.h5"), "wb");
        ck_assert_uint_eq(fwrite(copy, 1, length, out), length);
        ck_assert_int_eq(fclose(out), 0);
        err = (moesim_error)MOESIM_ERROR_INIT;
        const moesim_code code = moesim_replay_file_read(test_path("damaged.h5"), &f, &err);
        ck_assert(code == MOESIM_OK || strchr(err.text, '\n') == NULL);
        refused += code != MOESIM_OK;
        moesim_replay_file_fini(&f);
    }
    ck_assert_uint_gt(refused, 30);
}
END_TEST

RUN_TESTS("files", round_trip, parts, two_grids, impossible, damage)
