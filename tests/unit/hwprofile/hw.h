/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of hwprofile/ share: a small complete profile as text, and parsing with the outcome expected.
 */
#ifndef MOESIM_TESTS_UNIT_HWPROFILE_HW_H
#define MOESIM_TESTS_UNIT_HWPROFILE_HW_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/profile.h"
#include "tests/unit/base/runner.h"

#define HW_TEXT_MAX 8192

/* Both modes, every constant, both tables; single quotes stand for double ones. */
static const char hw_template[] =
    "{'schema': 'moesim.profile/1', 'name': 'mine', 'label': 'measured', 'description': 'text',\n"
    " 'modes': ['model', 'paper'],\n"
    " 'link': {'alpha': {'value': 4, 'unit': 'us', 'n': 30, 'spread': 0.02, 'residual': 0.01, 'note': 'small'},\n"
    "          'bandwidth': {'value': 55, 'unit': 'GB/s', 'n': 30},\n"
    "          'nominal_bandwidth': {'value': 58, 'unit': 'GB/s', 'n': 0}},\n"
    " 'return': {'alpha': {'value': 8, 'unit': 'us', 'n': 0}, 'bandwidth': {'value': 50, 'unit': 'GB/s', 'n': 0}},\n"
    " 'dram': {'bandwidth': {'value': 200, 'unit': 'GB/s', 'n': 0}},\n"
    " 'cpu': {'step': {'value': 10, 'unit': 'us', 'n': 0}, 'combine': {'value': 5, 'unit': 'us', 'n': 0},\n"
    "         'table': {'expert_bytes': 1000000, 'unit': 'us', 'n': 1, 'tokens': [1, 2, 4], 'times': [100, 110, 150]}},\n"
    " 'gpu': {'launch': {'value': 6, 'unit': 'us', 'n': 0},\n"
    "         'table': {'expert_bytes': 1000000, 'unit': 'us', 'n': 1, 'experts': [1, 3], 'tokens': [2, 4],\n"
    "                   'times': [[10, 14], [20, 28]]}},\n"
    " 'other': {'gpu': {'value': 60, 'unit': 'us', 'n': 0}, 'host': {'value': 20, 'unit': 'us', 'n': 0}},\n"
    " 'sync': {'value': 15, 'unit': 'us', 'n': 0}, 'head': {'value': 0.3, 'unit': 'ms', 'n': 0},\n"
    " 'policy': {'value': 2000, 'unit': 'ns', 'n': 0},\n"
    " 'paper': {'t_h2d': {'value': 0.11, 'unit': 'ms', 'n': 0}, 'tau': {'value': 220, 'unit': '\xc2\xb5s', 'n': 0},\n"
    "           'layer': {'value': 3.07, 'unit': 'ms', 'n': 0}}}\n";

/* The template with the first `from` replaced by `to` (both with single quotes); from must be there. */
static inline const char *hw_text(const char *from, const char *to)
{
    static char text[HW_TEXT_MAX];
    const char *at = strstr(hw_template, from);
    ck_assert_msg(at != NULL, "the template has no %s", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - hw_template), hw_template, to, at + strlen(from));
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    return text;
}

static inline moesim_code hw_parse(const char *text, moesim_profile *out, moesim_error *err)
{
    return moesim_profile_parse(text, strlen(text), "t.json", out, err);
}

/* The unchanged template, parsed. */
static inline void hw_good(moesim_profile *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const moesim_code code = hw_parse(hw_text("", ""), out, &err);
    ck_assert_msg(code == MOESIM_OK, "%s", err.text);
}

/* As moesim_profile_write writes it; the caller frees it. */
static inline char *hw_written(const moesim_profile *p)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(out);
    moesim_profile_write(p, out);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

#endif
