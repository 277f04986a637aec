/* SPDX-License-Identifier: Apache-2.0
 *
 * The plug-in as another program sees it: a zstd dataset is read by plain HDF5, which knows the filter only through the
 * plug-in's folder.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void zstd(hid_t list)
{
    ck_assert_int_ge(H5Pset_filter(list, MOESIM_FILTER_ZSTD, H5Z_FLAG_MANDATORY, 0, NULL), 0);
}

static void write_in_child(const char *path)
{
    int status = 0;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        static tiny t;
        tiny_init(&t);
        tiny_find(&t, "/routing/expert")->filters = zstd;
        tiny_write(&t, path);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static herr_t read_experts(const char *path, uint16_t *ids)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/routing/expert", H5P_DEFAULT);
    const herr_t status = H5Dread(dataset, H5T_STD_U16LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids);
    ck_assert(file >= 0 && dataset >= 0);
    ck_assert(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    return status;
}

START_TEST(test_with_plugin)
{
    uint16_t ids[TINY_ROWS * TINY_LAYERS * TINY_TOP_K];
    const char *path = tiny_path("zstd.h5");
    write_in_child(path);
    ck_assert_int_ge(H5PLprepend(PLUGIN_FOLDER), 0);
    ck_assert_int_ge(read_experts(path, ids), 0);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        ck_assert_uint_eq(ids[i], (i / 4 + i / 2 % 2 + i % 2) % 4);
}
END_TEST

START_TEST(test_without_plugin)
{
    uint16_t ids[TINY_ROWS * TINY_LAYERS * TINY_TOP_K];
    const char *path = tiny_path("zstd.h5");
    write_in_child(path);
    ck_assert_int_ge(H5Eset_auto2(H5E_DEFAULT, NULL, NULL), 0);
    ck_assert_int_ge(H5PLset_loading_state(0), 0);
    ck_assert_int_lt(read_experts(path, ids), 0);   /* so it was the plug-in that read it */
}
END_TEST

RUN_TESTS("plugin", test_with_plugin, test_without_plugin)
