/* SPDX-License-Identifier: Apache-2.0
 *
 * Import of route_trace v1: what arrives in the trace, and what is refused with the number of the line.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/traces_write/common.h"
#include "traces/import_route_trace.h"
#include "traces/validate.h"

/* Model layer 1 is dense. Turn 5: three prompt tokens, two decode steps; turn 6: two and one. In the last layer of the
 * prefill only the last token is routed. Lines 1..7 are the header, data begins in line 8. */
static const char head[] =
    "# route_trace v1\n"
    "# model=/data/models/tiny q.gguf arch=tiny n_layer=3 n_expert=4 n_expert_used=2\n"
    "# layer=0 expert_bytes=100 dense_bytes=10\n"
    "# layer=1 expert_bytes=0 dense_bytes=20\n"
    "# layer=2 expert_bytes=300 dense_bytes=30\n"
    "# any other remark\n"
    "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n";

static const char data[] =
    "5,0,0,0,0,1,0.75,0,100\n5,0,0,0,1,2,0.25,0,100\n"         /* 8, 9 */
    "5,0,1,0,0,2,0.5,0,0\n5,0,1,0,1,3,0.5,0,100\n"             /* 10, 11 */
    "5,0,2,0,0,1,1e0,1,0\n5,0,2,0,1,0,0,0,100\n"               /* 12, 13 */
    "5,0,2,2,0,3,0.625,0,300\n5,0,2,2,1,0,0.375,2,0\n"         /* 14, 15 */
    "5,1,3,0,0,1,0.9,1,0\n5,1,3,0,1,2,0.1,1,0\n"               /* 16, 17 */
    "5,1,3,2,0,1,0.5,0,300\n5,1,3,2,1,2,0.5,0,300\n"           /* 18, 19 */
    "5,1,4,0,1,2,0.1,1,0\n5,1,4,0,0,1,0.9,1,0\n"               /* 20, 21: slots in any order */
    "5,1,4,2,0,1,0.5,2,0\n5,1,4,2,1,3,0.5,2,0\n"               /* 22, 23 */
    "6,0,5,0,0,1,0.5,1,0\n6,0,5,0,1,2,0.5,1,0\n"               /* 24, 25 */
    "6,0,5,2,0,1,0.5,1,0\n6,0,5,2,1,2,0.5,1,0\n"               /* 26, 27 */
    "6,1,6,0,0,1,0.5,1,0\n6,1,6,0,1,2,0.5,1,0\n"               /* 28, 29 */
    "6,1,6,2,0,1,0.5,1,0\n6,1,6,2,1,2,0.5,1,0\n";              /* 30, 31 */

static void spill_text(const char *name, const char *text)
{
    spill(test_path(name), text, strlen(text));
}

static void write_good(const char *name)
{
    char text[sizeof head + sizeof data];
    snprintf(text, sizeof text, "%s%s", head, data);
    spill_text(name, text);
}

static void check_model(const moesim_trace *trace)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    ck_assert_str_eq(info->model_id, "tiny q.gguf");
    ck_assert_str_eq(info->confidence_kind, "none");
    ck_assert_ptr_null(strstr(info->gate_kind, "normalised"));
    ck_assert(info->num_layers == 2 && info->num_experts == 4 && info->top_k == 2 && info->block_length == 1);
    ck_assert(info->has_resident_bytes && info->resident_bytes == 60);
    ck_assert(info->gate_is_f32 && info->has_residency && !info->has_confidence_values && !info->has_output_tokens);
    ck_assert(moesim_trace_layer_ids(trace)[0] == 0 && moesim_trace_layer_ids(trace)[1] == 2);
    ck_assert(moesim_trace_expert_bytes(trace)[0] == 100 && moesim_trace_expert_bytes(trace)[1] == 300);
    ck_assert_uint_eq(moesim_trace_get_request(trace, 0)->prompt_tokens, 3);
    ck_assert_uint_eq(moesim_trace_get_request(trace, 1)->prompt_tokens, 1);
    ck_assert_str_eq(moesim_trace_get_request(trace, 1)->workload, "chat");
}

START_TEST(content)
{
    static const struct { uint32_t request, kind, rows; int32_t block, position; } want[] = {
        {0, MOESIM_PASS_PREFILL, 3, -1, 0}, {0, MOESIM_PASS_DENOISE, 1, 0, 3}, {0, MOESIM_PASS_DENOISE, 1, 1, 4},
        {1, MOESIM_PASS_PREFILL, 1, -1, 5}, {1, MOESIM_PASS_DENOISE, 1, 0, 6},
    };
    static const uint16_t expert[12] = {1, 2, 65535, 65535, 2, 3, 65535, 65535, 1, 0, 3, 0};
    static const float gate[12] = {0.75f, 0.25f, 0, 0, 0.5f, 0.5f, 0, 0, 1, 0, 0.625f, 0.375f};
    static const uint8_t residency[12] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2};
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_import_result result;
    moesim_trace *trace = NULL;
    moesim_cursor *cursor = NULL;
    moesim_rows rows;
    write_good("in.csv");
    ck_assert_msg(moesim_import_route_trace(test_path("in.csv"), test_path("t.h5"), NULL, "chat", NULL, &result, &err) ==
                  MOESIM_OK, "%s", err.text);
    ck_assert(result.lines == 24 && result.requests == 2 && result.passes == 5 && result.rows == 7 && result.dropped == 4);
    ck_assert_msg(moesim_trace_open(test_path("t.h5"), NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    check_model(trace);
    ck_assert_int_eq(moesim_cursor_open(trace, 0xff, 1 << 20, &cursor, &err), MOESIM_OK);
    for (size_t p = 0; p < sizeof want / sizeof want[0]; p++) {
        moesim_pass pass;
        ck_assert_int_eq(moesim_trace_pass(trace, p, &pass, &err), MOESIM_OK);
        ck_assert(pass.request == want[p].request && pass.kind == want[p].kind && pass.block == want[p].block);
        ck_assert(pass.step == 0 && pass.row_end - pass.row_begin == want[p].rows);
        ck_assert_msg(moesim_cursor_rows(cursor, pass.row_begin, pass.row_end, &rows, &err) == MOESIM_OK, "%s", err.text);
        for (uint32_t r = 0; r < want[p].rows; r++) {
            ck_assert_int_eq(rows.position[r], want[p].position + (int32_t)r);
            ck_assert_uint_eq(rows.state[r], pass.kind == MOESIM_PASS_PREFILL ? MOESIM_STATE_COMMITTED
                                                                              : MOESIM_STATE_COMMITTED_NOW);
            ck_assert(isnan(rows.confidence[r]));
        }
    }
    ck_assert_int_eq(moesim_cursor_rows(cursor, 0, 3, &rows, &err), MOESIM_OK);
    ck_assert_mem_eq(rows.expert, expert, sizeof expert);
    ck_assert_mem_eq(rows.gate, gate, sizeof gate);
    ck_assert_mem_eq(rows.residency, residency, sizeof residency);
    ck_assert_msg(moesim_trace_validate(trace, true, NULL, NULL, &err) == MOESIM_OK, "%s", err.text);
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
}
END_TEST

START_TEST(names_and_line_ends)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    char text[2 * (sizeof head + sizeof data)];
    size_t n = 0;
    for (const char *part = head; part != NULL; part = part == head ? data : NULL)
        for (const char *c = part; *c != '\0'; c++) {
            if (*c == '\n')
                text[n++] = '\r';
            text[n++] = *c;
        }
    spill(test_path("dos.csv"), text, n);
    write_good("in.csv");
    ck_assert_msg(moesim_import_route_trace(test_path("dos.csv"), test_path("a.h5"), "named", NULL, NULL, NULL, &err) ==
                  MOESIM_OK, "%s", err.text);
    ck_assert_int_eq(moesim_import_route_trace(test_path("in.csv"), test_path("b.h5"), "named", NULL, NULL, NULL, &err),
                     MOESIM_OK);
    check_same_content(test_path("a.h5"), test_path("b.h5"), 0, 0);
    ck_assert_int_eq(moesim_trace_open(test_path("a.h5"), NULL, &trace, &err), MOESIM_OK);
    ck_assert_str_eq(moesim_trace_get_info(trace)->model_id, "named");
    ck_assert_str_eq(moesim_trace_get_request(trace, 0)->workload, "unknown");
    moesim_trace_close(&trace);
}
END_TEST

/* One edit of the good file (the first occurrence of `from` becomes `to`) and what must be said of it. */
static const struct { const char *from, *to, *part; } damage[] = {
    {"# route_trace v1", "# route_trace v2", "line 1: must be"},
    {"# route_trace v1\n", "", "line 1: must be"},
    {" arch=tiny", "", "line 2: lacks the model's name or arch="},
    {" n_layer=3", "", "line 2: lacks n_layer="},
    {"n_layer=3", "n_layer=0", "line 2: n_layer= must be a whole number in 1..1024"},
    {"n_layer=3", "n_layer=1025", "line 2: n_layer= 1025 is above 1024"},
    {"n_layer=3", "n_layer=3x", "line 2: n_layer= must be"},
    {"n_layer=3", "n_layer=2", "line 5: layer= 2 is above 1"},
    {"n_layer=3", "n_layer=4", "line 7: the header describes 3 of 4 layers"},
    {"n_expert=4", "n_expert=0", "line 2: n_expert= must be"},
    {"n_expert=4", "n_expert=1025", "line 2: n_expert= 1025 is above"},
    {"n_expert_used=2", "n_expert_used=5", "line 2: n_expert_used= 5 is above 4"},
    {"# layer=0", "# model=again arch=x n_layer=1 n_expert=1 n_expert_used=1\n# layer=0", "line 3: a second line"},
    {"# layer=1", "# layer=2", "line 4: layer 2 where layer 1 was expected"},
    {"# layer=1 expert_bytes=0 dense_bytes=20\n", "", "line 4: layer 2 where layer 1"},
    {"# layer=2 expert_bytes=300 dense_bytes=30\n", "", "line 6: the header describes 2 of 3 layers"},
    {"dense_bytes=10", "dense=10", "line 3: lacks dense_bytes="},
    {"expert_bytes=100", "expert_bytes=99999999999999999999999", "line 3: expert_bytes= 99999999999999999999999 is above"},
    {"# model=", "# name=", "line 3: the line with the model must come before"},
    {",residency,", ",", "line 7: the columns must be"},
    {",expert_bytes\n", ",expert_bytes,dropped\n", "line 7: the columns must be"},
    {"5,0,0,0,0,1,", "x,0,0,0,0,1,", "line 8: turn is not a whole number"},
    {"5,0,0,0,0,1,", "-5,0,0,0,0,1,", "line 8: turn is not a whole number"},
    {"5,0,0,0,0,1,", "5 ,0,0,0,0,1,", "line 8: after turn: expected a comma"},
    {"5,0,0,0,0,1,", "5,2,0,0,0,1,", "line 8: phase 2 is above 1"},
    {"5,0,0,0,0,1,", "5,0,2147483648,0,0,1,", "line 8: step 2147483648 is above"},
    {"5,0,0,0,0,1,", "5,0,0,3,0,1,", "line 8: layer 3 is above 2"},
    {"5,0,0,0,0,1,", "5,0,0,1,0,1,", "line 8: layer 1 has no experts"},
    {"5,0,0,0,0,1,", "5,0,0,0,2,1,", "line 8: slot 2 is above 1"},
    {"5,0,0,0,0,1,", "5,0,0,0,0,4,", "line 8: expert 4 is above 3"},
    {"5,0,0,0,0,1,", "5,0,0,0,0,,", "line 8: expert is not a whole number"},
    {"0.75", "nan", "line 8: weight is not a number"},
    {"0.75", "0x1p3", "line 8: weight is not a number"},
    {"0.75", "-0.75", "line 8: weight must be finite and not negative"},
    {"0.75", "1e99", "line 8: weight must be finite"},
    {"0.75", "0.7.5", "line 8: weight is not a number"},
    {"0.75", " 0.75", "line 8: weight is not a number"},
    {"0.75,0,", "0.75,3,", "line 8: residency 3 is above 2"},
    {"0.75,0,100", "0.75,0,101", "line 8: expert_bytes must be 0 or the layer's 100"},
    {"0.75,0,100", "0.75,0,100,0", "line 8: after expert_bytes: expected the end of the line"},
    {"0.75,0,100", "0.75,0", "line 8: after residency: expected a comma"},
    {"5,0,0,0,0,1,", "# remark\n5,0,0,0,0,1,", "line 8: turn is not a whole number"},
    {"5,0,0,0,0,1,", "\n5,0,0,0,0,1,", "line 8: turn is not a whole number"},
    {"5,0,0,0,1,2,", "5,0,0,0,0,2,", "line 9: turn 5, phase 0, step 0, layer 0, slot 0 occurs twice"},
    {"5,0,0,0,1,2,", "5,0,0,0,1,1,", "line 9: expert 1 is in slot 0 of the same token"},
    {"5,0,1,0,0,2,", "5,0,2,0,0,2,", "line 10: step 2, but the steps of a phase must follow one another (next: 1)"},
    {"5,0,1,0,1,3,0.5,0,100\n", "", "turn 5 ends here, but its phase 0, step 1, layer 0 has no slot 1"},
    {"5,0,2,2,1,0,0.375,2,0\n", "", "phase 0, step 2, layer 2 has no slot 1"},
    {"5,1,3,2,0,1,0.5,0,300\n5,1,3,2,1,2,0.5,0,300\n", "",
     "line 22: turn 5 ends here, but its phase 1, step 3, layer 2 has no"},
    {"5,1,3,0,0,1,", "5,1,2,0,0,1,", "line 16: decode step 2 lies within the prefill, which ends at 2"},
    {"5,1,4,2,0,1,", "5,0,2,2,0,1,", "line 22: a line of the prefill after the decode phase"},
    {"6,0,5,0,0,1,", "4,0,5,0,0,1,", "line 24: turn 4 after turn 5"},
    {"6,1,6,2,1,2,0.5,1,0\n", "", "turn 6 ends here, but its phase 1, step 6, layer 2 has no slot 1"},
    {"6,1,6,2,1,2,0.5,1,0\n", "6,1,6,2,1,2,0.5,1,0", "line 31: has no end; the file was cut short"},
};

START_TEST(refusals)
{
    char good[sizeof head + sizeof data], bad[sizeof good + 256];
    moesim_error err = MOESIM_ERROR_INIT;
    snprintf(good, sizeof good, "%s%s", head, data);
    const char *at = strstr(good, damage[_i].from);
    ck_assert_ptr_nonnull(at);
    snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, damage[_i].to, at + strlen(damage[_i].from));
    spill_text("in.csv", bad);
    ck_assert_int_ne(moesim_import_route_trace(test_path("in.csv"), test_path("t.h5"), NULL, NULL, NULL, NULL, &err),
                     MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, damage[_i].part);
    ck_assert_uint_eq(count_entries(), 1);
}
END_TEST

static void refuse(const char *in, const char *out, moesim_code code, const char *part)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_ne(moesim_import_route_trace(in, out, NULL, NULL, NULL, NULL, &err), MOESIM_OK);
    check_error(&err, code, part);
}

START_TEST(bad_files)
{
    static char line[8000];
    memset(line, '1', sizeof line - 1);
    const char *in = test_path("in.csv"), *out = test_path("t.h5");
    refuse(test_path("absent.csv"), out, MOESIM_E_IO, "No such file");
    refuse(test_folder(), out, MOESIM_E_IO, "not a regular file");
    refuse("/dev/zero", out, MOESIM_E_IO, "not a regular file");
    spill(in, "", 0);
    refuse(in, out, MOESIM_E_FORMAT, "line 1: must be");
    spill(in, head, sizeof head - 1);
    refuse(in, out, MOESIM_E_FORMAT, "without a data line");
    refuse(in, in, MOESIM_E_USAGE, "is the input itself");
    spill(in, head, 20);
    refuse(in, out, MOESIM_E_FORMAT, "line 2: has no end");
    spill(in, head, 17);
    refuse(in, out, MOESIM_E_FORMAT, "ends before the names of the columns");
    spill(in, line, sizeof line);
    refuse(in, out, MOESIM_E_FORMAT, "line 1: is longer than 4095 bytes");
    spill(in, "# route_trace v1\n# mo\0el", 24);
    refuse(in, out, MOESIM_E_FORMAT, "line 2: holds a zero byte");
    ck_assert_uint_eq(count_entries(), 1);
    write_good("in.csv");
    refuse(in, test_path("absent/t.h5"), MOESIM_E_IO, "absent");
    ck_assert_uint_eq(count_entries(), 1);
}
END_TEST

/* A turn may not grow without bound: 1024 layers × 64 slots take 448 KiB a token. */
START_TEST(endless_turn)
{
    FILE *file = fopen(test_path("in.csv"), "w");
    ck_assert_ptr_nonnull(file);
    fputs("# route_trace v1\n# model=m arch=a n_layer=1024 n_expert=1024 n_expert_used=64\n", file);
    for (int l = 0; l < 1024; l++)
        fprintf(file, "# layer=%d expert_bytes=1 dense_bytes=0\n", l);
    fputs("turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n", file);
    for (int t = 0; t < 1000; t++)
        fprintf(file, "0,0,%d,0,0,1,1,0,1\n", t);
    ck_assert_int_eq(fclose(file), 0);
    refuse(test_path("in.csv"), test_path("t.h5"), MOESIM_E_LIMIT, "turn 0 has more tokens than fit in 256 MiB");
    ck_assert_uint_eq(count_entries(), 1);
}
END_TEST

/* ---- the public captures ------------------------------------------------------------------------------------------ */

static const struct { const char *name; uint64_t lines, passes, rows, dropped; uint32_t layers, top_k; } captures[] = {
    {"qwen", 44766, 129, 156, 162, 48, 6}, {"gemma", 28260, 129, 157, 0, 30, 6}, {"gptoss", 10560, 65, 149, 168, 36, 2},
};

/* Every line of the CSV, read here in another way, against the trace (all three files have one turn, rows = steps). */
static uint64_t compare_lines(const char *csv, const moesim_rows *rows, uint32_t layers, uint32_t top_k)
{
    char line[256];
    uint64_t n = 0;
    FILE *file = fopen(csv, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned turn, phase, step, layer, slot, expert, residency;
        float weight;
        if (sscanf(line, "%u,%u,%u,%u,%u,%u,%f,%u", &turn, &phase, &step, &layer, &slot, &expert, &weight, &residency) != 8)
            continue;
        const size_t cell = ((size_t)step * layers + layer) * top_k + slot;
        ck_assert_uint_eq(rows->expert[cell], expert);
        ck_assert(rows->gate[cell] == weight);
        ck_assert_uint_eq(rows->residency[cell], residency);
        ck_assert_int_eq(rows->position[step], (int)step);
        ck_assert_uint_eq(rows->state[step], phase == 0 ? 2 : 1);
        n++;
    }
    fclose(file);
    return n;
}

START_TEST(public_captures)
{
    const char *folder = getenv("MOESIM_KNOWN_ANSWERS");
    if (folder == NULL || folder[0] == '\0') {
        printf("skipped: MOESIM_KNOWN_ANSWERS does not name the folder with route-trace/\n");
        return;
    }
    char csv[1024];
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_import_result r;
    moesim_trace *trace = NULL;
    moesim_cursor *cursor = NULL;
    moesim_rows rows;
    snprintf(csv, sizeof csv, "%s/route-trace/%s.route.csv", folder, captures[_i].name);
    ck_assert_msg(moesim_import_route_trace(csv, test_path("t.h5"), NULL, NULL, NULL, &r, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(r.lines, captures[_i].lines);
    ck_assert(r.requests == 1 && r.passes == captures[_i].passes && r.rows == captures[_i].rows);
    ck_assert_uint_eq(r.dropped, captures[_i].dropped);
    ck_assert_msg(moesim_trace_open(test_path("t.h5"), NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_msg(moesim_trace_validate(trace, true, NULL, NULL, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_int_eq(moesim_cursor_open(trace, 0xff, 1 << 26, &cursor, &err), MOESIM_OK);
    ck_assert_msg(moesim_cursor_rows(cursor, 0, r.rows, &rows, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(compare_lines(csv, &rows, captures[_i].layers, captures[_i].top_k), captures[_i].lines);
    printf("%s: %llu lines equal\n", captures[_i].name, (unsigned long long)captures[_i].lines);
    moesim_cursor_close(&cursor);
    moesim_trace_close(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import of route_trace");
    TCase *cases = tcase_create("import");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, content);
    tcase_add_test(cases, names_and_line_ends);
    tcase_add_loop_test(cases, refusals, 0, (int)(sizeof damage / sizeof damage[0]));
    tcase_add_test(cases, bad_files);
    tcase_add_test(cases, endless_turn);
    tcase_add_loop_test(cases, public_captures, 0, 3);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
