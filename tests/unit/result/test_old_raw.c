/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw replay files that lack an attribute: refused, and for those from before machines were named the message says what to do.
 */
#include <string.h>

#include "sim/replay_fields.h"
#include "sim/result.h"
#include "tests/support/support.h"
#include "tests/unit/base/runner.h"

/* What reading says of a raw file with every attribute but one. */
static const char *said_without(const char *left_out)
{
    static moesim_error err;
    moesim_result r;
    moesim_replay_file f;
    moesim_result_init(&r);
    err = (moesim_error)MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_result_set(&r, "kind", MOESIM_REPLAY_KIND, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_result_set(&r, "raw", MOESIM_REPLAY_RAW, &err), MOESIM_OK);
    for (const moesim_replay_field *field = moesim_replay_fields; field->name != NULL; field++)
        if (strcmp(field->name, left_out) != 0)
            ck_assert_int_eq(moesim_result_set(&r, field->name, "0", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_result_write(&r, test_path("old.h5"), &err), MOESIM_OK);
    moesim_result_fini(&r);
    ck_assert_int_eq(moesim_replay_file_read(test_path("old.h5"), &f, &err), MOESIM_E_FORMAT);
    moesim_replay_file_fini(&f);
    return err.text;
}

START_TEST(test_machine)
{
    const char *text = said_without("machine");
    ck_assert_msg(strstr(text, "old.h5: attribute machine is missing") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "execute it again with this moesim-device, into a new file") != NULL, "%s", text);
}
END_TEST

START_TEST(test_another)
{
    const char *text = said_without("staging");
    ck_assert_msg(strstr(text, "attribute staging is missing; the file is damaged") != NULL, "%s", text);
    ck_assert_ptr_null(strstr(text, "again"));
}
END_TEST

RUN_TESTS("old raw files", test_machine, test_another)
