/* SPDX-License-Identifier: Apache-2.0
 *
 * Every refusal of the format that concerns attributes, shapes, types and values: one damaged place each.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"

#include <stdio.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

/* ---- attributes ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum tiny_attr_kind kind;
    const char *text;
    int64_t value;
    const char *want;
} attrs[] = {
    {"format", TINY_NO_ATTR, NULL, 0, "attribute format is missing"},
    {"format", TINY_TEXT, "something-else", 0, "attribute format is \"something-else\""},
    {"format", TINY_INT, NULL, 1, "attribute format has type int64, the format asks for a string"},
    {"format_version", TINY_NO_ATTR, NULL, 0, "attribute format_version is missing"},
    {"format_version", TINY_INT, NULL, 2, "attribute format_version is 2, this program reads version 1"},
    {"format_version", TINY_TEXT, "1", 0, "attribute format_version has type variable-length string"},
    {"complete", TINY_NO_ATTR, NULL, 0, "attribute complete is missing: the recording was cut short"},
    {"complete", TINY_INT, NULL, 0, "attribute complete is not 1"},
    {"model_id", TINY_NO_ATTR, NULL, 0, "attribute model_id is missing"},
    {"gate_kind", TINY_NO_ATTR, NULL, 0, "attribute gate_kind is missing"},
    {"confidence_kind", TINY_NO_ATTR, NULL, 0, "attribute confidence_kind is missing"},
    {"confidence_kind", TINY_REAL, NULL, 1, "attribute confidence_kind has type float64"},
    {"engine", TINY_INT, NULL, 4, "attribute engine has type int64"},
    {"num_moe_layers", TINY_NO_ATTR, NULL, 0, "attribute num_moe_layers is missing"},
    {"num_moe_layers", TINY_INT, NULL, 0, "attribute num_moe_layers is 0, allowed are 1 to 1024"},
    {"num_moe_layers", TINY_INT, NULL, 1025, "attribute num_moe_layers is 1025, allowed are 1 to 1024"},
    {"num_moe_layers", TINY_INT, NULL, -1, "attribute num_moe_layers is negative"},
    {"num_moe_layers", TINY_INT, NULL, INT64_MAX, "allowed are 1 to 1024"},
    {"num_moe_layers", TINY_REAL, NULL, 2, "attribute num_moe_layers has type float64, the format asks for an integer"},
    {"num_moe_layers", TINY_ARRAY, NULL, 2, "attribute num_moe_layers is not a scalar"},
    {"num_experts", TINY_INT, NULL, 0, "attribute num_experts is 0, allowed are 1 to 1024"},
    {"num_experts", TINY_INT, NULL, 1025, "attribute num_experts is 1025"},
    {"top_k", TINY_INT, NULL, 0, "attribute top_k is 0, allowed are 1 to 64"},
    {"top_k", TINY_INT, NULL, 65, "attribute top_k is 65"},
    {"top_k", TINY_INT, NULL, 5, "attribute top_k is 5, more than num_experts = 4"},
    {"block_length", TINY_INT, NULL, 0, "attribute block_length is 0, allowed are 1 to 4096"},
    {"block_length", TINY_INT, NULL, 4097, "attribute block_length is 4097"},
    {"hidden_size", TINY_TEXT, "64", 0, "attribute hidden_size has type variable-length string"},
    {"commit_threshold", TINY_TEXT, "0.9", 0, "attribute commit_threshold has type variable-length string"},
};

START_TEST(test_attributes)
{
    tiny t;
    tiny_init(&t);
    tiny_attr *a = tiny_attribute(&t, attrs[_i].name);
    a->kind = attrs[_i].kind;
    a->text = attrs[_i].text;
    a->value = attrs[_i].value;
    a->type = a->kind == TINY_REAL ? H5T_IEEE_F64LE : H5T_STD_I64LE;
    tiny_refused(&t, attrs[_i].name, attrs[_i].want);
}
END_TEST

/* ---- missing datasets ---------------------------------------------------------------------------------------------- */

static const char *const required[] = {
    "/model/moe_layer_id", "/model/expert_bytes",    "/pass/row_offset", "/pass/kind",       "/pass/request",
    "/pass/block",         "/pass/step",             "/routing/expert",  "/token/position",  "/token/state",
    "/token/confidence",   "/request/prompt_tokens", "/request/workload"};

START_TEST(test_missing)
{
    tiny t;
    char want[64];
    tiny_init(&t);
    tiny_find(&t, required[_i])->place = TINY_ABSENT;
    (void)snprintf(want, sizeof want, "dataset %s is missing", required[_i]);
    tiny_refused(&t, required[_i], want);
}
END_TEST

/* ---- types --------------------------------------------------------------------------------------------------------- */

/* Every dataset with a type of another size, another sign or class, and the other byte order. */
static const struct {
    const char *name, *want;
} typed[] = {
    {"/model/moe_layer_id", "int32"},      {"/model/expert_bytes", "uint64"},   {"/model/resident_bytes", "uint64"},
    {"/pass/row_offset", "uint64"},        {"/pass/kind", "uint8"},             {"/pass/request", "uint32"},
    {"/pass/block", "int32"},              {"/pass/step", "int32"},             {"/pass/forward", "uint64"},
    {"/observed/pass_ns", "uint64"},       {"/request/workload", "fixed string"},
    {"/request/prompt_tokens", "uint32"},  {"/request/output_tokens", "uint32"}, {"/token/position", "int32"},
    {"/token/state", "uint8"},             {"/token/confidence", "float16"},    {"/token/id", "int32"},
    {"/routing/expert", "uint16"},         {"/routing/gate", "float16 or float32"},
    {"/routing/router_prob", "float16"},   {"/observed/residency", "uint8"},
};

START_TEST(test_types)
{
    static const char *const names[] = {"int16", "uint64 big-endian", "float64", "int8"};
    tiny t;
    tiny_init(&t);   /* before HDF5's names of types, which start the library */
    const hid_t wrong[] = {H5T_STD_I16LE, H5T_STD_U64BE, H5T_IEEE_F64LE, H5T_STD_I8LE};
    for (int k = 0; k < COUNT(names); k++) {
        char want[128];
        tiny_init(&t);
        tiny_retype(tiny_find(&t, typed[_i].name), wrong[k]);
        (void)snprintf(want, sizeof want, "%s has type %s, the format asks for %s", typed[_i].name, names[k], typed[_i].want);
        tiny_refused(&t, typed[_i].name, want);
    }
}
END_TEST

START_TEST(test_odd_types)
{
    tiny t;
    tiny_init(&t);
    tiny_item *item = tiny_find(&t, "/request/workload");
    item->type = H5Tcopy(H5T_C_S1);
    ck_assert_int_ge(H5Tset_size(item->type, H5T_VARIABLE), 0);
    item->unwritten = true;
    tiny_refused(&t, "variable-length", "has type variable-length string, the format asks for fixed string");

    tiny_init(&t);
    item = tiny_find(&t, "/request/workload");
    item->type = H5Tcopy(H5T_C_S1);
    ck_assert_int_ge(H5Tset_size(item->type, 5000), 0);
    item->unwritten = true;
    tiny_refused(&t, "long string", "has type string of 5000 bytes");

    tiny_init(&t);
    item = tiny_find(&t, "/pass/kind");
    item->type = H5Tcreate(H5T_COMPOUND, 1);
    ck_assert_int_ge(H5Tinsert(item->type, "a", 0, H5T_STD_U8LE), 0);
    tiny_refused(&t, "compound", "has type compound of 1 bytes");

    tiny_init(&t);
    item = tiny_find(&t, "/pass/request");
    item->type = H5Tcopy(H5T_STD_U32LE);
    ck_assert_int_ge(H5Tset_precision(item->type, 24), 0);   /* what n-bit packs */
    tiny_refused(&t, "narrow precision", "/pass/request has type uint32, the format asks for uint32");
}
END_TEST

/* ---- shapes -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int dim;
    hsize_t n;
    const char *want;
} shapes[] = {
    {"/model/moe_layer_id", 0, 3, "dimension 0 of /model/moe_layer_id is 3, but num_moe_layers is 2"},
    {"/model/expert_bytes", 0, 1, "dimension 0 of /model/expert_bytes is 1, but num_moe_layers is 2"},
    {"/model/resident_bytes", 0, 2, "dimension 0 of /model/resident_bytes is 2"},
    {"/pass/kind", 0, 5, "dimension 0 of /pass/kind is 5, but the number of passes"},
    {"/pass/request", 0, 7, "dimension 0 of /pass/request is 7"},
    {"/pass/block", 0, 1, "dimension 0 of /pass/block is 1"},
    {"/pass/step", 0, 0, "dimension 0 of /pass/step is 0"},
    {"/pass/forward", 0, 5, "dimension 0 of /pass/forward is 5"},
    {"/pass/row_offset", 0, 0, "/pass/row_offset is empty"},
    {"/observed/pass_ns", 0, 5, "dimension 0 of /observed/pass_ns is 5"},
    {"/request/workload", 0, 1, "dimension 0 of /request/workload is 1, but the number of requests"},
    {"/request/output_tokens", 0, 3, "dimension 0 of /request/output_tokens is 3"},
    {"/routing/expert", 1, 1, "dimension 1 of /routing/expert is 1, but num_moe_layers is 2"},
    {"/routing/expert", 2, 1, "dimension 2 of /routing/expert is 1, but top_k is 2"},
    {"/routing/expert", 0, 11, "but the number of rows in /routing/expert is 11"},
    {"/routing/gate", 0, 11, "dimension 0 of /routing/gate is 11, but the number of rows in /routing/expert is 12"},
    {"/routing/gate", 1, 1, "dimension 1 of /routing/gate is 1"},
    {"/routing/gate", 2, 3, "dimension 2 of /routing/gate is 3, but top_k is 2"},
    {"/routing/router_prob", 2, 2, "dimension 2 of /routing/router_prob is 2, but num_experts is 4"},
    {"/observed/residency", 2, 1, "dimension 2 of /observed/residency is 1"},
    {"/token/position", 0, 13, "dimension 0 of /token/position is 13"},
    {"/token/state", 0, 11, "dimension 0 of /token/state is 11"},
    {"/token/confidence", 0, 1, "dimension 0 of /token/confidence is 1"},
    {"/token/id", 0, 24, "dimension 0 of /token/id is 24"},
};

START_TEST(test_shapes)
{
    tiny t;
    tiny_init(&t);
    tiny_item *item = tiny_find(&t, shapes[_i].name);
    item->dim[shapes[_i].dim] = shapes[_i].n;
    if (shapes[_i].dim > 0)
        item->chunk[shapes[_i].dim] = shapes[_i].n;
    tiny_refused(&t, shapes[_i].name, shapes[_i].want);
}
END_TEST

START_TEST(test_ranks)
{
    tiny t;
    tiny_init(&t);
    tiny_find(&t, "/routing/expert")->rank = 1;
    tiny_refused(&t, "rank 1", "/routing/expert has 1 dimensions, the format asks for 3");
    tiny_init(&t);
    tiny_item *kind = tiny_find(&t, "/pass/kind");
    kind->rank = 2;
    kind->dim[1] = 1;
    tiny_refused(&t, "rank 2", "/pass/kind has 2 dimensions, the format asks for 1");
    tiny_init(&t);
    tiny_find(&t, "/pass/kind")->rank = 0;
    tiny_refused(&t, "rank 0", "/pass/kind has 0 dimensions, the format asks for 1");
}
END_TEST

/* ---- values -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t index;
    uint64_t bits;
    const char *want;
} values[] = {
    {"/model/expert_bytes", 0, 0, "/model/expert_bytes[0] is 0; an expert has 1 to 2^34 bytes"},
    {"/model/expert_bytes", 1, (UINT64_C(1) << 34) + 1, "/model/expert_bytes[1] is 17179869185"},
    {"/pass/row_offset", 0, 1, "/pass/row_offset[0] is 1, but it begins at 0"},
    {"/pass/row_offset", 3, 4, "/pass/row_offset[3] is 4, below the entry before it (5)"},
    {"/pass/row_offset", 6, 11, "/pass/row_offset[6] is 11, but it ends at the number of rows"},
    {"/pass/row_offset", 6, 13, "/pass/row_offset[6] is 13, but /routing/expert has 12 rows"},
    {"/pass/row_offset", 2, UINT64_MAX, "/pass/row_offset[2] is 18446744073709551615, but /routing/expert has 12 rows"},
    {"/pass/kind", 4, 4, "/pass/kind[4] is 4, allowed are 0 prefill"},
    {"/pass/request", 5, 2, "/pass/request[5] is 2, but there are 2 requests"},
    {"/routing/expert", 21, 4, "/routing/expert[5, 0, 1] is 4, allowed are ids below num_experts = 4"},
    {"/routing/expert", 47, 65534, "/routing/expert[11, 1, 1] is 65534"},
    {"/routing/expert", 5, 1, "/routing/expert[1, 0, 1] is 1, as slot 0 is already"},
    {"/routing/gate", 9, 0xb400, "/routing/gate[2, 0, 1] is -0.25, a gate score is finite and not negative"},
    {"/routing/gate", 0, 0x7c00, "/routing/gate[0, 0, 0] is inf"},
    {"/routing/gate", 47, 0x7e00, "/routing/gate[11, 1, 1] is nan"},
    {"/token/confidence", 4, 0x3c01, "/token/confidence[4] is 1.00098, a confidence lies within 0 and 1"},
    {"/token/confidence", 6, 0xb800, "/token/confidence[6] is -0.5"},
    {"/token/confidence", 11, 0x7c00, "/token/confidence[11] is inf"},
    {"/token/confidence", 0, 0xfc00, "/token/confidence[0] is -inf"},
    {"/token/state", 8, 4, "/token/state[8] is 4, allowed are 0 masked"},
    {"/token/position", 10, 0xffffffff, "/token/position[10] is -1, a position is not negative"},
    {"/routing/router_prob", 95, 0x7e00, "/routing/router_prob[11, 1, 3] is nan, a router score is finite"},
    {"/observed/residency", 46, 3, "/observed/residency[11, 1, 0] is 3, allowed are 0 miss"},
};

START_TEST(test_values)
{
    tiny t;
    tiny_init(&t);
    tiny_set(&t, values[_i].name, values[_i].index, values[_i].bits);
    tiny_refused(&t, values[_i].name, values[_i].want);
}
END_TEST

START_TEST(test_first_offence)
{
    tiny t;
    tiny_init(&t);
    for (size_t row = 5; row < TINY_ROWS; row++)
        tiny_set(&t, "/token/state", row, 9);
    tiny_refused(&t, "first of many", "/token/state[5] is 9");
}
END_TEST

START_TEST(test_zero_filled)
{
    tiny t;
    tiny_init(&t);
    tiny_set(&t, "/routing/expert", 14, 0);
    tiny_set(&t, "/routing/expert", 15, 0);
    tiny_refused(&t, "dense layer", "/routing/expert[3, 1]: all 2 slots are 0: an engine fills dense layers with zeros");
}
END_TEST

START_TEST(test_float_gates)
{
    static const struct {
        uint32_t bits;
        const char *want;
    } bad[] = {{0xbe800000u, "/routing/gate[2, 0, 1] is -0.25"}, {0x7f800000u, "is inf"}, {0x7fc00000u, "is nan"}};
    for (int i = 0; i < COUNT(bad); i++) {
        tiny t;
        tiny_init(&t);
        tiny_item *gate = tiny_find(&t, "/routing/gate");
        tiny_retype(gate, H5T_IEEE_F32LE);
        memset(gate->data, 0, sizeof gate->data);
        tiny_set(&t, "/routing/gate", 9, bad[i].bits);
        tiny_refused(&t, "float gate", bad[i].want);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("refusals");
    TCase *tcase = tcase_create("refusals");
    tcase_add_loop_test(tcase, test_attributes, 0, COUNT(attrs));
    tcase_add_loop_test(tcase, test_missing, 0, COUNT(required));
    tcase_add_loop_test(tcase, test_types, 0, COUNT(typed));
    tcase_add_test(tcase, test_odd_types);
    tcase_add_loop_test(tcase, test_shapes, 0, COUNT(shapes));
    tcase_add_test(tcase, test_ranks);
    tcase_add_loop_test(tcase, test_values, 0, COUNT(values));
    tcase_add_test(tcase, test_first_offence);
    tcase_add_test(tcase, test_zero_filled);
    tcase_add_test(tcase, test_float_gates);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
