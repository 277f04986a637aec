/* SPDX-License-Identifier: Apache-2.0
 *
 * The warnings of the format: each is given once with its first index, and is an error under strict.
 */
#include "tests/unit/base/runner.h"
#include "tests/unit/traces/tiny.h"

#include <stdio.h>
#include <string.h>

#include "traces/validate.h"

typedef struct heard {
    int n;
    char text[4][512];
} heard;

static void hear(void *cookie, const char *text)
{
    heard *h = cookie;
    if (h->n < 4)
        (void)snprintf(h->text[h->n], sizeof h->text[0], "%s", text);
    h->n++;
}

static moesim_code validate(const tiny *t, bool strict, heard *h, moesim_error *err)
{
    moesim_trace *trace = NULL;
    *h = (heard){.n = 0};
    tiny_write(t, tiny_path("warn.h5"));
    moesim_code code = moesim_trace_open(tiny_path("warn.h5"), NULL, &trace, err);
    ck_assert_msg(code == MOESIM_OK, "%s", err->text);
    code = moesim_trace_validate(trace, strict, hear, h, err);
    moesim_trace_close(&trace);
    return code;
}

static void expect_warning(const tiny *t, const char *want)
{
    heard h;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(validate(t, false, &h, &err), MOESIM_OK);
    ck_assert_msg(h.n == 1, "%d warnings, wanted \"%s\": %s", h.n, want, h.text[0]);
    ck_assert_msg(strstr(h.text[0], want) != NULL, "wanted \"%s\": %s", want, h.text[0]);
    ck_assert_int_eq(validate(t, true, &h, &err), MOESIM_E_FORMAT);
    ck_assert_int_eq(h.n, 0);
    ck_assert_msg(strstr(err.text, want) != NULL && strstr(err.text, "--strict") != NULL, "%s", err.text);
}

START_TEST(test_clean)
{
    tiny t;
    heard h;
    moesim_error err = MOESIM_ERROR_INIT;
    tiny_init(&t);
    ck_assert_int_eq(validate(&t, true, &h, &err), MOESIM_OK);
    ck_assert_int_eq(h.n, 0);
}
END_TEST

START_TEST(test_reads_all_columns)
{
    tiny t;
    heard h;
    moesim_error err = MOESIM_ERROR_INIT;
    tiny_init(&t);
    tiny_set(&t, "/routing/router_prob", 95, 0x7c00);
    ck_assert_int_eq(validate(&t, false, &h, &err), MOESIM_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "/routing/router_prob[11, 1, 3] is inf"));
}
END_TEST

START_TEST(test_all_nan)
{
    tiny t;
    tiny_init(&t);
    for (size_t i = 0; i < TINY_ROWS; i++)
        tiny_set(&t, "/token/confidence", i, 0x7e00);
    expect_warning(&t, "/token/confidence: every value from row 0 on is NaN, but confidence_kind says \"top-1 probability\"");
    tiny_attribute(&t, "confidence_kind")->text = "none";
    heard h;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(validate(&t, true, &h, &err), MOESIM_OK);
}
END_TEST

START_TEST(test_gates)
{
    static const char *const quiet[] = {"softmax, not normalised", "sigmoid, unnormalised", "softmax",
                                        "sigmoid, normalised, scaled by 2.5"};
    static const char *const claims[] = {"softmax, Normalized", "sigmoid, normalised, not scaled"};
    tiny t;
    heard h;
    moesim_error err = MOESIM_ERROR_INIT;
    tiny_init(&t);
    tiny_set(&t, "/routing/gate", 22, 0x3400);   /* row 5, layer 1: ¼ + ¼ */
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        tiny_attribute(&t, "gate_kind")->text = claims[i];
        expect_warning(&t, "/routing/gate[5, 1]: the gates sum to 0.5000, but gate_kind says");
    }
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
        tiny_attribute(&t, "gate_kind")->text = quiet[i];
        ck_assert_int_eq(validate(&t, true, &h, &err), MOESIM_OK);
    }
    tiny_attribute(&t, "gate_kind")->text = claims[0];
    tiny_set(&t, "/routing/expert", 23, 65535);   /* a dropped slot explains the sum */
    ck_assert_int_eq(validate(&t, true, &h, &err), MOESIM_OK);
}
END_TEST

START_TEST(test_uncommitted)
{
    tiny t;
    tiny_init(&t);
    tiny_set(&t, "/token/state", 9, 0);
    tiny_set(&t, "/token/state", 10, 0);
    tiny_set(&t, "/token/state", 11, 1);   /* in the dummy pass: does not count */
    expect_warning(&t, "/token/state: request 1 has not a single committed token");
}
END_TEST

START_TEST(test_block_order)
{
    tiny t;
    tiny_init(&t);
    tiny_set(&t, "/pass/block", 2, 5);
    expect_warning(&t, "/pass/block[3] is 0, but request 0 has already been at block 5");
}
END_TEST

/* Twelve passes of one row each; those from `first` on share their routes, `length` of them. */
static void one_row_passes(tiny *t, size_t first, size_t length, bool same_rows)
{
    tiny_init(t);
    const char *const columns[] = {"/pass/kind", "/pass/request", "/pass/block", "/pass/step"};
    for (size_t i = 0; i < 4; i++) {
        tiny_item *item = tiny_find(t, columns[i]);
        item->dim[0] = TINY_ROWS;
        memset(item->data, 0, sizeof item->data);
    }
    tiny_find(t, "/pass/row_offset")->dim[0] = TINY_ROWS + 1;
    tiny_find(t, "/pass/forward")->place = TINY_ABSENT;
    tiny_find(t, "/observed/pass_ns")->place = TINY_ABSENT;
    for (size_t p = 0; p <= TINY_ROWS; p++)
        tiny_set(t, "/pass/row_offset", p, p);
    for (size_t p = 0; p < TINY_ROWS; p++) {
        tiny_set(t, "/pass/kind", p, 1);
        tiny_set(t, "/pass/request", p, p == TINY_ROWS - 1);
        tiny_set(t, "/token/state", p, 1);
        tiny_set(t, "/token/position", p, same_rows ? 3 : p);
        for (size_t i = 0; i < 4 && p >= first && p < first + length; i++)
            tiny_set(t, "/routing/expert", p * 4 + i, 2 + i % 2);
    }
}

START_TEST(test_repeated)
{
    tiny t;
    heard h;
    moesim_error err = MOESIM_ERROR_INIT;
    one_row_passes(&t, 3, 8, false);
    expect_warning(&t, "/routing/expert: 8 or more passes from pass 3 on have identical routes in all layers");
    one_row_passes(&t, 3, 7, false);
    ck_assert_int_eq(validate(&t, true, &h, &err), MOESIM_OK);
    one_row_passes(&t, 3, 8, true);   /* the same row again and again: a decoder at rest */
    ck_assert_int_eq(validate(&t, true, &h, &err), MOESIM_OK);
    one_row_passes(&t, 3, 8, false);
    tiny_set(&t, "/pass/kind", 6, 3);   /* already marked as a dummy */
    ck_assert_int_eq(validate(&t, true, &h, &err), MOESIM_OK);
}
END_TEST

/* Requests are 0 0 0 0 1 1; the numbers are put in place of 10 11 12 13 13 14. */
START_TEST(test_forward)
{
    static const struct { uint64_t number[TINY_PASSES]; const char *want; } row[] = {
        {{5, 4, 3, 2, 1, 0}, NULL},
        {{UINT64_MAX, 0, 1, 2, 2, 3}, NULL},
        {{1, 1, 2, 3, 4, 5}, "/pass/forward[1]: forward call 1 has a pass of request 0 already"},
        {{1, 2, 3, 3, 5, 6}, "/pass/forward[3]: forward call 3 has a pass of request 0 already"},
        {{1, 2, 3, 4, 5, 5}, NULL},   /* the last pass is a dummy */
        {{1, 2, 3, 4, 2, 5}, "/pass/forward[4]: forward call 2 comes back"},
        {{1, 2, 3, 2, 1, 3}, "/pass/forward[3]: forward call 2 comes back"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        tiny t;
        heard h;
        moesim_error err = MOESIM_ERROR_INIT;
        tiny_init(&t);
        memcpy(tiny_find(&t, "/pass/forward")->data, row[i].number, sizeof row[i].number);
        ck_assert_int_eq(validate(&t, false, &h, &err), row[i].want != NULL ? MOESIM_E_FORMAT : MOESIM_OK);
        ck_assert_msg(row[i].want == NULL || strstr(err.text, row[i].want) != NULL, "%s", err.text);
    }
}
END_TEST

static void expect_clean(const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    moesim_code code = moesim_trace_open(path, NULL, &trace, &err);
    if (code == MOESIM_OK)
        code = moesim_trace_validate(trace, true, NULL, NULL, &err);
    ck_assert_msg(code == MOESIM_OK, "%s", err.text);
    moesim_trace_close(&trace);
}

/* The sample always, the six recorded traces where MOESIM_TRACES names their folder. */
START_TEST(test_real)
{
    static const char *const names[] = {"gsm8k-b1", "gsm8k-b8", "gsm8k-b16", "gsm8k-b32", "humaneval-b16", "sample"};
    const char *folder = getenv("MOESIM_TRACES");
    char path[4096];
    int files = 1;
    expect_clean(SAMPLE);
    for (size_t i = 0; folder != NULL && i < sizeof names / sizeof names[0]; i++, files++) {
        (void)snprintf(path, sizeof path, "%s/%s.h5", folder, names[i]);
        expect_clean(path);
    }
    printf("%d recorded traces validated%s\n", files, folder == NULL ? " (MOESIM_TRACES is not set)" : "");
}
END_TEST

RUN_TESTS("validate", test_real, test_clean, test_reads_all_columns, test_all_nan, test_gates, test_uncommitted,
          test_block_order, test_repeated, test_forward)
