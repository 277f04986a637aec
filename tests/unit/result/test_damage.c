/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that break the format or are damaged: one error that names the place, no crash, nothing left in memory.
 */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/unit/result/common.h"
#include "tests/unit/traces_write/common.h"
#include "traces/h5.h"

enum { MUTATIONS = 400 };

/* HDF5 1.10 itself forgets a few hundred bytes whenever it refuses a damaged file. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static moesim_error err;

static void fresh(void)
{
    err = (moesim_error)MOESIM_ERROR_INIT;
}

/* ---- edits with raw HDF5 ------------------------------------------------------------------------------------------- */

static void put_text(hid_t file, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    ck_assert_int_ge(H5Tset_size(type, H5T_VARIABLE), 0);
    if (H5Aexists(file, name) > 0)
        ck_assert_int_ge(H5Adelete(file, name), 0);
    const hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(H5Awrite(attribute, type, &text), 0);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

static void put_number(hid_t file, const char *name, unsigned value)
{
    const hid_t space = H5Screate(H5S_SCALAR);
    ck_assert_int_ge(H5Adelete(file, name), 0);
    const hid_t attribute = H5Acreate2(file, name, H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(H5Awrite(attribute, H5T_NATIVE_UINT, &value), 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

/* In place of /layers/slots: a dataset of this type and shape; nothing is written into it. */
static void replace_slots(hid_t file, hid_t type, int rank, hsize_t rows, hsize_t chunk)
{
    const hsize_t dims[2] = {rows, 1}, chunks[2] = {chunk, 1};
    const hid_t space = H5Screate_simple(rank, dims, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
    ck_assert_int_ge(H5Ldelete(file, "/layers/slots", H5P_DEFAULT), 0);
    if (chunk > 0)
        ck_assert_int_ge(H5Pset_chunk(create, rank, chunks), 0);
    else
        ck_assert_int_ge(H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY), 0);
    const hid_t dataset = H5Dcreate2(file, "/layers/slots", type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    ck_assert_int_ge(dataset, 0);
    H5Dclose(dataset);
    H5Pclose(create);
    H5Sclose(space);
}

static char many[70000];

static void format_other(hid_t f) { put_text(f, "format", "moe-routing-trace"); }
static void format_gone(hid_t f) { H5Adelete(f, "format"); }
static void format_number(hid_t f) { put_text(f, "format_version", "1"); }
static void version_2(hid_t f) { put_number(f, "format_version", 2); }
static void incomplete(hid_t f) { put_number(f, "complete", 0); }
static void complete_gone(hid_t f) { H5Adelete(f, "complete"); }
static void no_attributes(hid_t f) { H5Adelete(f, "attributes"); }
static void attribute_gone(hid_t f) { H5Adelete(f, "seed"); }
static void attribute_twice(hid_t f) { put_text(f, "attributes", "seed,kind,seed"); }
static void attribute_reserved(hid_t f) { put_text(f, "attributes", "seed,format"); }
static void attribute_number(hid_t f) { put_text(f, "attributes", "seed,complete"); }
static void attribute_path(hid_t f) { put_text(f, "attributes", "seed,../kind"); }
static void no_tables(hid_t f) { H5Adelete(f, "tables"); }
static void table_twice(hid_t f) { put_text(f, "tables", "cells,cells"); }
static void table_empty_name(hid_t f) { put_text(f, "tables", "cells,,requests"); }
static void table_path(hid_t f) { put_text(f, "tables", "cells,requests/misses"); }
static void table_long(hid_t f) { put_text(f, "tables", "a_name_of_more_than_thirty_one_bytes"); }
static void table_unlisted_columns(hid_t f) { H5Adelete(f, "columns_layers"); }
static void table_gone(hid_t f) { H5Ldelete(f, "/layers", H5P_DEFAULT); }
static void column_gone(hid_t f) { H5Ldelete(f, "/layers/slots", H5P_DEFAULT); }
static void column_twice(hid_t f) { put_text(f, "columns_layers", "cell,layer,slots,layer"); }
static void column_group(hid_t f) { put_text(f, "columns_cells", "cell,."); }
static void column_short(hid_t f) { replace_slots(f, H5T_STD_I64LE, 1, 23, 0); }
static void column_f32(hid_t f) { replace_slots(f, H5T_IEEE_F32LE, 1, 24, 0); }
static void column_big_endian(hid_t f) { replace_slots(f, H5T_STD_I64BE, 1, 24, 0); }
static void column_flat(hid_t f) { replace_slots(f, H5T_STD_I64LE, 2, 24, 0); }
static void column_unwritten(hid_t f) { replace_slots(f, H5T_STD_I64LE, 1, 24, 24); }
static void column_absurd(hid_t f) { replace_slots(f, H5T_STD_I64LE, 1, (hsize_t)1 << 40, 1024); }
static void column_beyond(hid_t f) { replace_slots(f, H5T_STD_I64LE, 1, (hsize_t)1 << 50, 1024); }

static void first_absurd(hid_t f)
{
    column_absurd(f);
    put_text(f, "columns_layers", "slots");
}

static void column_soft(hid_t f)
{
    column_gone(f);
    ck_assert_int_ge(H5Lcreate_soft("/layers/layer", f, "/layers/slots", H5P_DEFAULT, H5P_DEFAULT), 0);
}

static void column_external(hid_t f)
{
    column_gone(f);
    ck_assert_int_ge(H5Lcreate_external("/etc/passwd", "/x", f, "/layers/slots", H5P_DEFAULT, H5P_DEFAULT), 0);
}

static void unit_long(hid_t f)
{
    const hid_t dataset = H5Dopen2(f, "/cells/tpot_ms", H5P_DEFAULT);
    put_text(dataset, "unit", "milliseconds each");
    H5Dclose(dataset);
}

static void list_long(hid_t f)
{
    memset(many, 'x', sizeof many - 1);
    put_text(f, "tables", many);
}

static void tables_many(hid_t f)
{
    size_t used = 0;
    char list[400], name[40];
    for (int i = 0; i < 17; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%st%d", i > 0 ? "," : "", i);
        (void)snprintf(name, sizeof name, "columns_t%d", i);
        put_text(f, name, "");
    }
    put_text(f, "tables", list);
}

static const struct edit {
    void (*make)(hid_t file);
    const char *message;
} edits[] = {
    {format_other, "not a result: attribute format is \"moe-routing-trace\""},
    {format_gone, "not a result: attribute format is \"\""},
    {format_number, "attribute format_version has type variable-length string"},
    {version_2, "format version 2 of results, this program reads version 1"},
    {incomplete, "attribute complete is not 1"},
    {complete_gone, "attribute complete is not 1"},
    {no_attributes, "attribute attributes is missing"},
    {attribute_gone, "attribute seed is missing, although `attributes` lists it"},
    {attribute_twice, "attribute seed is listed twice"},
    {attribute_reserved, "attribute format is listed twice, or is one of the format's own"},
    {attribute_number, "attribute complete is listed twice, or"},
    {attribute_path, "attribute attributes: name 1 (\"../kind\") is no identifier"},
    {no_tables, "attribute tables is missing"},
    {table_twice, "table cells is listed twice"},
    {table_empty_name, "attribute tables: name 1 (\"\") is no identifier"},
    {table_path, "attribute tables: name 1 (\"requests/misses\") is no identifier"},
    {table_long, "is no identifier of at most 31 bytes"},
    {table_unlisted_columns, "attribute columns_layers is missing"},
    {table_gone, "/layers/cell is missing"},
    {column_gone, "/layers/slots is missing"},
    {column_twice, "column /layers/layer is listed twice"},
    {column_group, "name 1 (\".\") is no identifier"},
    {column_short, "/layers/slots has 23 rows, the table's first column has 24"},
    {column_f32, "/layers/slots has type float32"},
    {column_big_endian, "/layers/slots has type int64 big-endian"},
    {column_flat, "/layers/slots has 2 dimensions"},
    {column_unwritten, "/layers/slots was cut short"},
    {column_absurd, "which a file of"},
    {column_beyond, "/layers/slots declares more than 2^48 bytes"},
    {first_absurd, "/layers/slots declares 8796093022208 bytes, which a file of"},
    {column_soft, "/layers/slots is a soft"},
    {column_external, "/layers/slots is an external link"},
    {unit_long, "/cells/tpot_ms: unit \"milliseconds each…\" has more than 15 bytes"},
    {list_long, "attribute tables is a string of 69999 bytes"},
    {tables_many, "at most 16 tables"},
};

START_TEST(refused)
{
    const struct edit *edit = &edits[_i];
    moesim_result r;
    write_sample(test_path("r.h5"), "", NULL);
    OK(moesim_h5_init(&err));
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    ck_assert_int_ge(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), 0);
    const hid_t file = H5Fopen(test_path("r.h5"), H5F_ACC_RDWR, access);
    ck_assert_int_ge(file, 0);
    edit->make(file);
    ck_assert_int_ge(H5Fclose(file), 0);
    H5Pclose(access);
    const moesim_code code = moesim_result_read(test_path("r.h5"), &r, &err);
    ck_assert_msg(code == MOESIM_E_FORMAT || code == MOESIM_E_LIMIT, "code %d: %s", code, err.text);
    ck_assert_msg(strstr(err.text, edit->message) != NULL, "\"%s\" lacks \"%s\"", err.text, edit->message);
    ck_assert_msg(strstr(err.text, "r.h5") != NULL, "\"%s\" lacks the file", err.text);
    ck_assert_uint_eq(r.num_tables, 0);
    ck_assert_uint_eq(r.num_attributes, 0);
}
END_TEST

/* ---- damage -------------------------------------------------------------------------------------------------------- */

START_TEST(truncated)
{
    size_t bytes;
    moesim_result r;
    write_sample(test_path("r.h5"), "", NULL);
    unsigned char *data = slurp(test_path("r.h5"), &bytes);
    for (size_t n = 0; n < bytes; n += n < 64 ? 1 : 997) {
        spill(test_path("cut.h5"), data, n);
        ck_assert_int_eq(moesim_result_read(test_path("cut.h5"), &r, &err), MOESIM_E_FORMAT);
        ck_assert_ptr_nonnull(strstr(err.text, "cut.h5"));
        fresh();
    }
    free(data);
}
END_TEST

START_TEST(foreign)
{
    moesim_result r;
    spill(test_path("x.h5"), "this is no HDF5 file", 20);
    ck_assert_int_eq(moesim_result_read(test_path("x.h5"), &r, &err), MOESIM_E_FORMAT);
    check_error(&err, MOESIM_E_FORMAT, "not an HDF5 file (no signature at byte 0), so not a result");
    OK(moesim_h5_init(&err));
    H5Fclose(H5Fcreate(test_path("old.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    ck_assert_int_eq(moesim_result_read(test_path("old.h5"), &r, &err), MOESIM_E_FORMAT);
    check_error(&err, MOESIM_E_FORMAT, "old format without checksums");
}
END_TEST

/* Changed bytes are found, or lie where nothing reads them; then the content is the same. Nothing crashes. */
START_TEST(mutated)
{
    size_t bytes;
    moesim_result r;
    moesim_rng rng;
    int found = 0;
    write_sample(test_path("r.h5"), "", NULL);
    unsigned char *data = slurp(test_path("r.h5"), &bytes);
    moesim_rng_seed(&rng, 7);
    for (int i = 0; i < MUTATIONS; i++) {
        unsigned char *copy = malloc(bytes);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, data, bytes);
        for (uint32_t k = moesim_rng_below(&rng, 4) + 1; k > 0; k--)
            copy[moesim_rng_below(&rng, (uint32_t)bytes)] = (unsigned char)moesim_rng_below(&rng, 256);
        spill(test_path("m.h5"), copy, bytes);
        free(copy);
        const moesim_code code = moesim_result_read(test_path("m.h5"), &r, &err);
        ck_assert_msg(code != MOESIM_E_INTERNAL, "round %d: %s", i, err.text);
        ck_assert_msg(code == MOESIM_OK || err.text[0] != '\0', "round %d: no message", i);
        found += code != MOESIM_OK;
        if (code == MOESIM_OK)
            moesim_result_fini(&r);
        fresh();
    }
    ck_assert_int_gt(found, MUTATIONS / 10);
    free(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("result damage");
    TCase *cases = tcase_create("result damage");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, fresh, NULL);
    tcase_add_loop_test(cases, refused, 0, sizeof edits / sizeof edits[0]);
    tcase_add_test(cases, truncated);
    tcase_add_test(cases, foreign);
    tcase_add_test(cases, mutated);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
