/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiny trace and its writer.
 */
#include "tests/unit/traces/tiny.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static pid_t owner;

static void __attribute__((constructor)) make_folder(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/moesim-traces-" "XX" "XX" "XX");
    owner = getpid();
    if (mkdtemp(folder) == NULL) {
        perror("mkdtemp");
        abort();
    }
}

static void __attribute__((destructor)) drop_folder(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
    if (getpid() == owner && system(command) != 0)
        perror(command);
}

const char *tiny_path(const char *name)
{
    static char ring[8][256];
    static unsigned next;
    char *out = ring[next++ % 8];
    (void)snprintf(out, sizeof ring[0], "%s/%s", folder, name);
    return out;
}

#define MUST(call)                                                             \
    do {                                                                       \
        if ((call) < 0) {                                                      \
            fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #call);  \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* ---- content ------------------------------------------------------------------------------------------------------- */

static void put(tiny_item *item, size_t index, uint64_t bits)
{
    memcpy(item->data + index * item->element, &bits, item->element);
}

void tiny_set(tiny *t, const char *name, size_t index, uint64_t bits)
{
    put(tiny_find(t, name), index, bits);
}

void tiny_retype(tiny_item *item, hid_t type)
{
    uint64_t values[TINY_BYTES / 8] = {0};
    size_t n = 1;
    for (int i = 0; i < item->rank; i++)
        n *= (size_t)item->dim[i];
    for (size_t i = 0; i < n && i < TINY_BYTES / 8; i++)
        memcpy(&values[i], item->data + i * item->element, item->element < 8 ? item->element : 8);
    item->type = type;
    item->element = H5Tget_size(type);
    for (size_t i = 0; i < n && i < TINY_BYTES / 8 && item->element <= 8; i++)
        put(item, i, values[i]);
}

static tiny_item *add(tiny *t, const char *name, enum moesim_h5_type type, int rank, hsize_t n, hsize_t inner)
{
    tiny_item *item = &t->item[t->items++];
    item->name = name;
    item->type = type == MOESIM_H5_STRING ? H5Tcopy(H5T_C_S1) : moesim_h5_type_id(type);
    if (type == MOESIM_H5_STRING)
        MUST(H5Tset_size(item->type, 8));
    item->element = H5Tget_size(item->type);
    item->rank = rank;
    item->dim[0] = n;
    item->dim[1] = rank == 3 ? TINY_LAYERS : 0;
    item->dim[2] = inner;
    memcpy(item->chunk, item->dim, sizeof item->chunk);
    return item;
}

static void add_column(tiny *t, const char *name, enum moesim_h5_type type, hsize_t n, const int64_t *values)
{
    tiny_item *item = add(t, name, type, 1, n, 0);
    for (size_t i = 0; i < n; i++)
        put(item, i, (uint64_t)values[i]);
}

static void add_rows(tiny *t)
{
    static const int64_t states[TINY_ROWS] = {2, 2, 2, 0, 1, 1, 2, 2, 2, 1, 1, 0};
    static const int64_t positions[TINY_ROWS] = {0, 1, 2, 3, 4, 3, 4, 3, 4, 0, 1, 9};
    static const int64_t confidences[TINY_ROWS] = {0x7e00, 0x7e00, 0x7e00, 0x3800, 0x3a00, 0x3b00,
                                                   0x3c00, 0x3c00, 0x3c00, 0x3400, 0x0001, 0x0000};
    static const int64_t ids[TINY_ROWS] = {5, 6, 7, 99, 99, 99, 8, 9, 8, 99, 99, 0};
    const int first = t->items;
    tiny_item *expert = add(t, "/routing/expert", MOESIM_H5_U16, 3, TINY_ROWS, TINY_TOP_K);
    tiny_item *gate = add(t, "/routing/gate", MOESIM_H5_F16, 3, TINY_ROWS, TINY_TOP_K);
    tiny_item *prob = add(t, "/routing/router_prob", MOESIM_H5_F16, 3, TINY_ROWS, TINY_EXPERTS);
    tiny_item *residency = add(t, "/observed/residency", MOESIM_H5_U8, 3, TINY_ROWS, TINY_TOP_K);
    for (size_t i = 0; i < TINY_ROWS * TINY_LAYERS * TINY_TOP_K; i++) {
        const size_t row = i / 4, layer = i / 2 % 2, slot = i % 2;
        put(expert, i, (row + layer + slot) % TINY_EXPERTS);
        put(gate, i, slot == 0 ? 0x3a00 : 0x3400);   /* 0.75, 0.25 */
        put(residency, i, i % 3);
    }
    for (size_t i = 0; i < TINY_ROWS * TINY_LAYERS * TINY_EXPERTS; i++)
        put(prob, i, 0x3400);
    add_column(t, "/token/confidence", MOESIM_H5_F16, TINY_ROWS, confidences);
    add_column(t, "/token/state", MOESIM_H5_U8, TINY_ROWS, states);
    add_column(t, "/token/position", MOESIM_H5_I32, TINY_ROWS, positions);
    add_column(t, "/token/id", MOESIM_H5_I32, TINY_ROWS, ids);
    for (int i = first; i < t->items; i++) {
        t->item[i].layout = TINY_CHUNKED;
        t->item[i].chunk[0] = 4;
    }
}

static void add_attr(tiny *t, const char *name, enum tiny_attr_kind kind, const char *text, hid_t type, int64_t value)
{
    t->attr[t->attrs++] = (tiny_attr){name, kind, text, type, value};
}

static void add_attrs(tiny *t)
{
    add_attr(t, "format", TINY_TEXT, "moe-routing-trace", 0, 0);
    add_attr(t, "format_version", TINY_INT, NULL, H5T_STD_U32LE, 1);
    add_attr(t, "model_id", TINY_TEXT, "example/tiny", 0, 0);
    add_attr(t, "num_moe_layers", TINY_INT, NULL, H5T_STD_I64LE, TINY_LAYERS);
    add_attr(t, "num_experts", TINY_INT, NULL, H5T_STD_U16BE, TINY_EXPERTS);
    add_attr(t, "top_k", TINY_INT, NULL, H5T_STD_U8LE, TINY_TOP_K);
    add_attr(t, "block_length", TINY_INT, NULL, H5T_STD_I32LE, 2);
    add_attr(t, "gate_kind", TINY_FIXED, "softmax, normalised over the selected experts", 0, 0);
    add_attr(t, "confidence_kind", TINY_TEXT, "top-1 probability", 0, 0);
    add_attr(t, "hidden_size", TINY_INT, NULL, H5T_STD_U32LE, 64);
    add_attr(t, "commit_threshold", TINY_REAL, NULL, H5T_IEEE_F64LE, 1);
    add_attr(t, "engine", TINY_TEXT, "by hand", 0, 0);
    add_attr(t, "complete", TINY_INT, NULL, H5T_STD_U8LE, 1);
}

void tiny_init(tiny *t)
{
    moesim_error err = MOESIM_ERROR_INIT;
    MUST(-(int)moesim_h5_init(&err));
    memset(t, 0, sizeof *t);
    add_attrs(t);
    add_column(t, "/model/moe_layer_id", MOESIM_H5_I32, 2, (const int64_t[]){1, 2});
    add_column(t, "/model/expert_bytes", MOESIM_H5_U64, 2, (const int64_t[]){1000, 2000});
    add_column(t, "/model/resident_bytes", MOESIM_H5_U64, 1, (const int64_t[]){5000});
    add_column(t, "/pass/row_offset", MOESIM_H5_U64, TINY_PASSES + 1, (const int64_t[]){0, 3, 5, 7, 9, 11, 12});
    add_column(t, "/pass/kind", MOESIM_H5_U8, TINY_PASSES, (const int64_t[]){0, 1, 1, 2, 1, 3});
    add_column(t, "/pass/request", MOESIM_H5_U32, TINY_PASSES, (const int64_t[]){0, 0, 0, 0, 1, 1});
    add_column(t, "/pass/block", MOESIM_H5_I32, TINY_PASSES, (const int64_t[]){-1, 0, 0, 0, 0, 0});
    add_column(t, "/pass/step", MOESIM_H5_I32, TINY_PASSES, (const int64_t[]){0, 0, 1, 2, 0, 1});
    add_column(t, "/pass/forward", MOESIM_H5_U64, TINY_PASSES, (const int64_t[]){10, 11, 12, 13, 13, 14});
    add_column(t, "/observed/pass_ns", MOESIM_H5_U64, TINY_PASSES, (const int64_t[]){100, 101, 102, 103, 104, 105});
    add_column(t, "/request/prompt_tokens", MOESIM_H5_U32, TINY_REQUESTS, (const int64_t[]){3, 7});
    add_column(t, "/request/output_tokens", MOESIM_H5_U32, TINY_REQUESTS, (const int64_t[]){2, 1});
    tiny_item *workload = add(t, "/request/workload", MOESIM_H5_STRING, 1, TINY_REQUESTS, 0);
    memcpy(workload->data, "gsm8k\0\0\0eightchr", 16);
    add_rows(t);
}

tiny_item *tiny_find(tiny *t, const char *name)
{
    for (int i = 0; i < t->items; i++)
        if (strcmp(t->item[i].name, name) == 0)
            return &t->item[i];
    fprintf(stderr, "no dataset %s\n", name);
    abort();
}

tiny_attr *tiny_attribute(tiny *t, const char *name)
{
    for (int i = 0; i < t->attrs; i++)
        if (strcmp(t->attr[i].name, name) == 0)
            return &t->attr[i];
    fprintf(stderr, "no attribute %s\n", name);
    abort();
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static void write_attr(hid_t file, const tiny_attr *a)
{
    const hsize_t two = 2;
    const double real = 0.5 * (double)a->value;
    const int64_t pair[2] = {a->value, a->value};
    hid_t type = a->type;
    if (a->kind == TINY_NO_ATTR)
        return;
    if (a->kind == TINY_TEXT || a->kind == TINY_FIXED) {
        MUST(type = H5Tcopy(H5T_C_S1));
        MUST(H5Tset_size(type, a->kind == TINY_TEXT ? H5T_VARIABLE : strlen(a->text) + 1));
    }
    const hid_t space = a->kind == TINY_ARRAY ? H5Screate_simple(1, &two, NULL) : H5Screate(H5S_SCALAR);
    const hid_t id = H5Acreate2(file, a->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    MUST(id);
    if (a->kind == TINY_TEXT)
        MUST(H5Awrite(id, type, &a->text));
    else if (a->kind == TINY_FIXED)
        MUST(H5Awrite(id, type, a->text));
    else if (a->kind == TINY_REAL)
        MUST(H5Awrite(id, H5T_NATIVE_DOUBLE, &real));
    else
        MUST(H5Awrite(id, H5T_NATIVE_INT64, pair));
    MUST(H5Aclose(id));
    MUST(H5Sclose(space));
}

static hid_t make_properties(const tiny_item *item)
{
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    MUST(list);
    MUST(H5Pset_obj_track_times(list, false));
    if (item->layout == TINY_COMPACT)
        MUST(H5Pset_layout(list, H5D_COMPACT));
    if (item->layout == TINY_ELSEWHERE)
        MUST(H5Pset_external(list, tiny_path("elsewhere.raw"), 0, H5F_UNLIMITED));
    if (item->layout == TINY_VIRTUAL) {
        const hid_t space = H5Screate_simple(item->rank, item->dim, NULL);
        MUST(H5Pset_virtual(list, space, "other.h5", "/data", space));
        MUST(H5Sclose(space));
    }
    if (item->layout == TINY_CHUNKED) {
        MUST(H5Pset_chunk(list, item->rank, item->chunk));
        if (item->filters != NULL) {
            item->filters(list);
        } else {
            MUST(H5Pset_shuffle(list));
            MUST(H5Pset_deflate(list, 6));
        }
    }
    return list;
}

static void write_dataset(hid_t file, const tiny_item *item)
{
    hsize_t most[3] = {H5S_UNLIMITED, item->dim[1], item->dim[2]};
    for (int i = 1; i < 3; i++)   /* a chunk may only reach over the edge of a dimension that can grow */
        most[i] = item->chunk[i] > item->dim[i] ? H5S_UNLIMITED : item->dim[i];
    const hid_t space = H5Screate_simple(item->rank, item->dim, item->layout == TINY_CHUNKED ? most : NULL);
    const hid_t list = make_properties(item);
    const hid_t id = H5Dcreate2(file, item->name, item->type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    MUST(space);
    MUST(id);
    if (item->after != NULL)
        item->after(id);
    else if (!item->unwritten && item->layout != TINY_VIRTUAL)
        MUST(H5Dwrite(id, item->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, item->data));
    MUST(H5Dclose(id));
    MUST(H5Pclose(list));
    MUST(H5Sclose(space));
}

static void write_item(hid_t file, const tiny_item *item)
{
    hid_t id;
    switch (item->place) {
    case TINY_HARD:
        write_dataset(file, item);
        break;
    case TINY_SOFT:
        MUST(H5Lcreate_soft("/model/expert_bytes", file, item->name, H5P_DEFAULT, H5P_DEFAULT));
        break;
    case TINY_EXTERNAL:
        MUST(H5Lcreate_external("other.h5", "/data", file, item->name, H5P_DEFAULT, H5P_DEFAULT));
        break;
    case TINY_GROUP:
        MUST(id = H5Gcreate2(file, item->name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        MUST(H5Gclose(id));
        break;
    case TINY_ABSENT:
        break;
    }
}

void tiny_write(const tiny *t, const char *path)
{
    static const char *const groups[] = {"/model", "/pass", "/request", "/token", "/routing", "/observed"};
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    if (!t->old)
        MUST(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110));
    MUST(H5Pset_userblock(create, t->user_block));
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    MUST(file);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const hid_t group = H5Gcreate2(file, groups[i], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        MUST(group);
        MUST(H5Gclose(group));
    }
    for (int i = 0; i < t->items; i++)
        write_item(file, &t->item[i]);
    for (int i = 0; i < t->attrs; i++)
        write_attr(file, &t->attr[i]);
    if (t->edit != NULL)
        t->edit(file);
    MUST(H5Fclose(file));
    MUST(H5Pclose(create));
    MUST(H5Pclose(access));
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

moesim_code tiny_read(const char *path, moesim_error *err)
{
    moesim_trace *trace = NULL;
    moesim_cursor *cursor = NULL;
    moesim_pass pass;
    moesim_rows rows;
    moesim_code code = moesim_trace_open(path, NULL, &trace, err);
    if (code == MOESIM_OK)
        code = moesim_cursor_open(trace, UINT32_MAX, (size_t)64 << 20, &cursor, err);
    for (uint64_t p = 0; code == MOESIM_OK && p < moesim_trace_get_info(trace)->num_passes; p++) {
        code = moesim_trace_pass(trace, p, &pass, err);
        if (code == MOESIM_OK)
            code = moesim_cursor_rows(cursor, pass.row_begin, pass.row_end, &rows, err);
    }
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
    return code;
}

moesim_trace *tiny_open_trace(const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    const moesim_code code = moesim_trace_open(path, NULL, &trace, &err);
    ck_assert_msg(code == MOESIM_OK, "%s", err.text);
    return trace;
}

moesim_trace *tiny_open(const tiny *t)
{
    const char *path = tiny_path("tiny.h5");
    tiny_write(t, path);
    return tiny_open_trace(path);
}

moesim_cursor *tiny_open_cursor(moesim_trace *trace, uint32_t columns, size_t limit)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_cursor *cursor = NULL;
    ck_assert_int_eq(moesim_cursor_open(trace, columns, limit, &cursor, &err), MOESIM_OK);
    return cursor;
}

moesim_rows tiny_get_rows(moesim_cursor *cursor, uint64_t begin, uint64_t end)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_rows rows;
    const moesim_code code = moesim_cursor_rows(cursor, begin, end, &rows, &err);
    ck_assert_msg(code == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(rows.begin, begin);
    ck_assert_uint_eq(rows.end, end);
    return rows;
}

void tiny_refused_file(const char *path, const char *what, const char *want)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_code code = tiny_read(path, &err);
    ck_assert_msg(code == MOESIM_E_FORMAT || code == MOESIM_E_IO || code == MOESIM_E_LIMIT,
                  "%s: code %d, wanted a refusal with \"%s\": %s", what, (int)code, want, err.text);
    ck_assert_msg(code == err.code, "%s: code %d returned, %d in the error", what, (int)code, (int)err.code);
    ck_assert_msg(strstr(err.text, want) != NULL, "%s: wanted \"%s\" in: %s", what, want, err.text);
    ck_assert_msg(strstr(err.text, path) != NULL, "%s: no file name in: %s", what, err.text);
}

void tiny_refused(const tiny *t, const char *what, const char *want)
{
    const char *path = tiny_path("damaged.h5");
    tiny_write(t, path);
    tiny_refused_file(path, what, want);
}
