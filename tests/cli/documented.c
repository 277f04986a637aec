/* SPDX-License-Identifier: Apache-2.0
 *
 * The documents of result files name every column and dataset that the program writes, with its unit, and no other.
 * usage: documented MOESIM SOURCE_ROOT
 */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "sim/result.h"
#include "tests/cli/command.h"
#include "tests/support/support.h"

#define MAX_NAMES 256
#define CHARS 128

struct entry { char name[CHARS], unit[CHARS]; bool seen; };
struct document { struct entry entry[MAX_NAMES]; size_t n; };

static const char *source_root;

static void add(struct document *d, const char *name, const char *unit)
{
    ck_assert_uint_lt(d->n, MAX_NAMES);
    struct entry *e = &d->entry[d->n++];
    snprintf(e->name, sizeof e->name, "%s", name);
    snprintf(e->unit, sizeof e->unit, "%s", unit);
    e->seen = false;
}

/* A name, and its interval where the table is one of figures: tpot_ms has tpot_lo. */
static void add_name(struct document *d, const char *name, const char *unit, bool figure)
{
    char bound[CHARS];
    const size_t n = strlen(name), kept = n > 3 && strcmp(name + n - 3, "_ms") == 0 ? n - 3 : n;
    add(d, name, unit);
    snprintf(bound, sizeof bound, "%.*s_lo", (int)(kept < CHARS - 4 ? kept : CHARS - 4), name);
    if (figure)
        add(d, bound, unit);
    snprintf(bound, sizeof bound, "%.*s_hi", (int)(kept < CHARS - 4 ? kept : CHARS - 4), name);
    if (figure)
        add(d, bound, unit);
}

/* The text of cell k of a row "| … | … |", \| not being an end; without blanks around. */
static void cell_of(const char *row, int k, char out[CHARS])
{
    size_t n = 0;
    for (; *row != '\0' && k >= 0; row++) {
        if (*row == '|' && row[-1] != '\\')
            k--;
        else if (k == 0 && n + 1 < CHARS && (*row != ' ' || n > 0))
            out[n++] = *row;
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

/* Names in backticks of a row's first cell. */
static void add_row(struct document *d, const char *row, int unit_cell, bool figure)
{
    char names[4 * CHARS], unit[CHARS] = "";
    const char *end = strstr(row + 1, " |");
    snprintf(names, sizeof names, "%.*s", end != NULL ? (int)(end - row) : 0, row);
    if (unit_cell > 0)
        cell_of(row + 1, unit_cell, unit);
    char *rest = names;
    strsep(&rest, "`");
    for (char *name = strsep(&rest, "`"); name != NULL; name = strsep(&rest, "`")) {
        add_name(d, name, unit, figure);
        strsep(&rest, "`");
    }
}

/* Rows of the tables from the line that begins with `from` to the one that begins with `to`. The head of a table says where
 * its units stand. */
static void read_document(const char *file, const char *from, const char *to, struct document *d)
{
    char *line = NULL, head[CHARS];
    size_t size = 0;
    int unit_cell = -1;
    bool inside = false, figure = false;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", source_root, file);
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s cannot be read", file);
    d->n = 0;
    while (getline(&line, &size, in) > 0) {
        inside = (inside || strncmp(line, from, strlen(from)) == 0) && (!inside || strncmp(line, to, strlen(to)) != 0);
        if (inside && strncmp(line, "| `", 3) == 0)
            add_row(d, line, unit_cell, figure);
        if (strncmp(line, "| `", 3) == 0 || line[0] != '|' || line[1] == '-')
            continue;
        unit_cell = -1;
        for (int k = 0; k < 3; k++) {
            cell_of(line + 1, k, head);
            figure = k == 0 ? strcmp(head, "figure") == 0 : figure;
            unit_cell = strcmp(head, "unit") == 0 ? k : unit_cell;
        }
    }
    free(line);
    fclose(in);
    ck_assert_msg(d->n > 0, "%s has no table after %s", file, from);
}

static void find(struct document *d, const char *name, const char *unit)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->entry[i].name, name) == 0) {
            ck_assert_msg(!d->entry[i].seen, "%s is documented twice", name);
            ck_assert_msg(unit == NULL || strcmp(unit, d->entry[i].unit) == 0, "%s has the unit '%s', documented is '%s'", name,
                          unit, d->entry[i].unit);
            d->entry[i].seen = true;
            return;
        }
    ck_abort_msg("%s is not documented", name);
}

static void all_seen(const struct document *d)
{
    for (size_t i = 0; i < d->n; i++)
        ck_assert_msg(d->entry[i].seen, "%s is documented and not written", d->entry[i].name);
}

START_TEST(test_result)
{
    static const struct { const char *table, *from, *to; } section[] = {
        { "cells", "`/cells`", "`/requests`" }, { "requests", "`/requests`", "`/layers`" }, { "layers", "`/layers`", "## " },
    };
    struct document d;
    moesim_result r;
    moesim_error err = MOESIM_ERROR_INIT;
    const struct test_command done = test_shell("cd \"$WORK\" && \"$MOESIM\" sweep \"$SAMPLE\" --policy lru --cache 40 "
                                                "--profile h200-host --bound offline-cost -o r.h5");
    ck_assert_msg(done.status == 0, "%s", done.err);
    ck_assert_msg(moesim_result_read(test_path("r.h5"), &r, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(r.num_tables, COUNT(section));
    for (size_t i = 0; i < COUNT(section); i++) {
        const moesim_table *t = moesim_result_find(&r, section[i].table);
        ck_assert_ptr_nonnull(t);
        read_document("sim/RESULT.md", section[i].from, section[i].to, &d);
        for (size_t k = 0; k < t->num_columns; k++)
            find(&d, t->column[k].name, t->column[k].unit);
        all_seen(&d);
    }
    read_document("sim/RESULT.md", "Those that `attributes` lists", "## ", &d);
    for (size_t i = 0; i < r.num_attributes; i++)
        find(&d, r.attribute[i].name, NULL);
    moesim_result_fini(&r);
}
END_TEST

static herr_t visit(hid_t file, const char *name, const H5L_info_t *info, void *cookie)
{
    char path[CHARS];
    const hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    (void)info;
    snprintf(path, sizeof path, "/%s", name);
    ck_assert_int_ge(object, 0);
    if (H5Iget_type(object) == H5I_DATASET)
        find(cookie, path, NULL);
    H5Oclose(object);
    return 0;
}

static herr_t visit_attribute(hid_t file, const char *name, const H5A_info_t *info, void *cookie)
{
    (void)file;
    (void)info;
    find(cookie, name, NULL);
    return 0;
}

START_TEST(test_stats)
{
    struct document d;
    const struct test_command done = test_shell("cd \"$WORK\" && \"$MOESIM\" trace stats \"$SAMPLE\" -o s.h5");
    ck_assert_msg(done.status == 0, "%s", done.err);
    const hid_t file = H5Fopen(test_path("s.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
    read_document("traces/STATS.md", "## Datasets", "## ", &d);
    ck_assert_int_ge(H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, visit, &d), 0);
    all_seen(&d);
    read_document("traces/STATS.md", "## Attributes", "## Datasets", &d);
    ck_assert_int_ge(H5Aiterate(file, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_attribute, &d), 0);
    all_seen(&d);
    H5Fclose(file);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = { test_result, test_stats };
    source_root = argc == 3 ? argv[2] : "";
    return test_command_main("documented", argc, argv, tests, COUNT(tests));
}
