/* SPDX-License-Identifier: Apache-2.0
 *
 * Salvaged traces whose bytes were damaged: as much as possible is kept, and nothing that was damaged.
 */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/unit/traces_write/salvaged.h"
#include "traces/h5.h"

/* A byte of a stored chunk is turned: the passes before its first row are kept, not one less. */
START_TEST(damaged_chunk)
{
    static const char *const name[] = {"/routing/expert", "/routing/gate", "/routing/router_prob", "/observed/residency"};
    struct test_trace t;
    moesim_salvage_result result;
    size_t bytes;
    salvage_trace(&t);
    test_trace_write(&t, test_path("in.h5"));
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_h5_file file;
    ck_assert_int_eq(moesim_h5_open(test_path("in.h5"), false, &file, &err), MOESIM_OK);
    const hid_t dataset = H5Dopen2(file.id, name[_i], H5P_DEFAULT);
    const hsize_t at[3] = {512, 0, 0};
    unsigned mask = 0;
    haddr_t address = 0;
    hsize_t size = 0;
    ck_assert_int_ge(H5Dget_chunk_info_by_coord(dataset, at, &mask, &address, &size), 0);
    (void)H5Dclose(dataset);
    moesim_h5_close(&file);
    unsigned char *data = slurp(test_path("in.h5"), &bytes);
    data[address + size / 2] ^= 0x10;
    spill(test_path("in.h5"), data, bytes);
    free(data);
    salvage_well("in.h5", &result);
    size_t passes = 0;
    while (test_trace_row(&t, passes + 1) <= 512)
        passes++;
    ck_assert(result.complete && result.kept.passes == passes && result.found_passes == t.num_passes);
    ck_assert_msg(strncmp(result.reason, name[_i], strlen(name[_i])) == 0, "%s", result.reason);
    check_kept(&t, passes);
    test_trace_fini(&t);
}
END_TEST

/* What breaks a rule in the middle of a chunk costs no pass before it. */
START_TEST(rule_in_a_chunk)
{
    struct test_trace t;
    moesim_salvage_result result;
    salvage_trace(&t);
    const size_t pass = 33, row = test_trace_row(&t, pass + 1) - 1;
    ck_assert_uint_gt(row, test_trace_row(&t, pass));
    const uint16_t id = t.expert[row * 15];
    t.expert[row * 15] = 24;
    test_trace_write(&t, test_path("in.h5"));
    t.expert[row * 15] = id;
    salvage_well("in.h5", &result);
    ck_assert_uint_eq(result.kept.passes, pass);
    ck_assert_ptr_nonnull(strstr(result.reason, "/routing/expert"));
    check_kept(&t, pass);
    test_trace_fini(&t);
}
END_TEST

/* Files cut anywhere and with turned bytes: a valid trace, or one error and nothing else. */
START_TEST(any_damage)
{
    struct test_trace t;
    moesim_salvage_result result;
    moesim_rng rng;
    size_t bytes, saved = 0;
    moesim_rng_seed(&rng, 7);
    salvage_trace(&t);
    test_trace_write(&t, test_path("in.h5"));
    test_trace_fini(&t);
    unsigned char *data = slurp(test_path("in.h5"), &bytes);
    for (int i = 0; i < 60; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        unsigned char *bad = malloc(bytes);
        ck_assert_ptr_nonnull(bad);
        memcpy(bad, data, bytes);
        const size_t keep = i % 2 == 0 ? bytes : 48 + (size_t)moesim_rng_below(&rng, (uint32_t)(bytes - 48));
        for (int k = 0; k < (i % 2 == 0 ? 1 + i / 10 : 0); k++)
            bad[48 + moesim_rng_below(&rng, (uint32_t)(bytes - 48))] ^= (unsigned char)(1u << moesim_rng_below(&rng, 8));
        spill(test_path("bad.h5"), bad, keep);
        free(bad);
        (void)remove(test_path("out.h5"));
        const moesim_code code = salvage("bad.h5", &result, &err);
        ck_assert((code == MOESIM_OK) == (err.text[0] == '\0'));
        const bool written = code == MOESIM_OK && !result.whole;
        if (written)
            moesim_trace_close(&(moesim_trace *){open_salvaged()});
        saved += written;
        ck_assert_uint_eq(count_entries(), written ? 3 : 2);
    }
    free(data);
    ck_assert_uint_gt(saved, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("salvaged traces, damaged");
    TCase *cases = tcase_create("salvage");
    tcase_set_timeout(cases, 100);
    tcase_add_loop_test(cases, damaged_chunk, 0, 4);
    tcase_add_test(cases, rule_in_a_chunk);
    tcase_add_test(cases, any_damage);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
