/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 against the published vectors (FIPS 180-2), and of files.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "tests/unit/base/runner.h"

static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

START_TEST(vectors)
{
    moesim_digest *d = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    char hex[MOESIM_DIGEST_CHARS];
    ck_assert_int_eq(moesim_digest_create(&d, &err), MOESIM_OK);
    moesim_digest_hex(d, hex);
    ck_assert_str_eq(hex, empty);
    moesim_digest_update(d, "a", 1);   /* the object starts again after each result */
    moesim_digest_update(d, "bc", 2);
    moesim_digest_hex(d, hex);
    ck_assert_str_eq(hex, abc);
    moesim_digest_destroy(&d);
    ck_assert_ptr_null(d);
}
END_TEST

START_TEST(file)
{
    moesim_error err = MOESIM_ERROR_INIT;
    char hex[MOESIM_DIGEST_CHARS], path[] = "digest-XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    close(fd);
    const moesim_code code = moesim_digest_file(path, hex, &err);
    unlink(path);
    ck_assert_int_eq(code, MOESIM_OK);
    ck_assert_str_eq(hex, abc);
}
END_TEST

START_TEST(refused_files)
{
    moesim_error err = MOESIM_ERROR_INIT;
    char hex[MOESIM_DIGEST_CHARS] = "x";
    ck_assert_int_eq(moesim_digest_file("/nonexistent/file", hex, &err), MOESIM_E_IO);
    ck_assert_str_eq(err.text, "cannot open '/nonexistent/file': No such file or directory");
    ck_assert_str_eq(hex, "");
    ck_assert_int_eq(moesim_digest_file("/", hex, &err), MOESIM_E_IO);
    ck_assert_str_eq(err.text, "'/' is not a regular file");
}
END_TEST

RUN_TESTS("digest", vectors, file, refused_files)
