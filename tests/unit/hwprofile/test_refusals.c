/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule of the format, broken once: the message names file, place and rule.
 */
#include "tests/unit/hwprofile/hw.h"

typedef struct refusal { const char *from, *to, *message; } refusal;

static void refuse_text(const char *text, const char *message)
{
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(hw_parse(text, &p, &err), MOESIM_E_FORMAT);
    ck_assert_msg(strstr(err.text, message) != NULL, "expected '%s' in '%s'", message, err.text);
    ck_assert_msg(strncmp(err.text, "t.json:", 7) == 0, "%s", err.text);
}

static void refuse_all(const refusal *row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        refuse_text(hw_text(row[i].from, row[i].to), row[i].message);
}
#define REFUSE_ALL(rows) refuse_all(rows, sizeof rows / sizeof rows[0])

START_TEST(json)
{
    static const refusal row[] = {
        { "{'schema'", "{'schema", "t.json:1:" },
        { "'sync':", "'head': {'value': 1, 'unit': 's', 'n': 0}, 'head':", "duplicate object key" },
        { "'value': 4,", "'value': NaN,", "no valid JSON" },
        { "'value': 4,", "'value': Infinity,", "no valid JSON" },
        { "'value': 4,", "'value': 1e999,", "no valid JSON: real number overflow" },
        { "'text'", "'a\\u0000b'", "no valid JSON" },
        { "'text'", "'\xff'", "no valid JSON" },
        { "'text'", "'bell\\u0007'", "t.json: description: holds a control character" },
        { "'text'", "'\\u009b31m'", "t.json: description: holds a control character" },
        { "}}}\n", "}}} trailing", "no valid JSON: end of file expected" },
    };
    REFUSE_ALL(row);
    refuse_text("", "t.json:1:0: no valid JSON");
    refuse_text("[]", "t.json: whole file: must be an object");
    refuse_text("{}", "t.json: schema: is missing");
}
END_TEST

START_TEST(deep)
{
    static char text[100001];
    memset(text, '[', sizeof text - 1);
    refuse_text(text, "maximum parsing depth reached");
}
END_TEST

START_TEST(head)
{
    static const refusal row[] = {
        { "profile/1", "profile/2", "schema: 'moesim.profile/2' is not \"moesim.profile/1\"" },
        { "'schema': 'moesim.profile/1'", "'schema': 1", "schema: must be a text in quotes" },
        { "'name': 'mine', ", "", "name: is missing" },
        { "'mine'", "''", "name: must be made of letters" },
        { "'mine'", "'a b'", "name: must be made of letters" },
        { "'mine'", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "name: is longer than 63 bytes" },
        { "'measured'", "'guessed'", "label: 'guessed' is none of measured, provisional, derived, neutral, not measured" },
        { "'label'", "'raw_digest': '12ab', 'label'", "raw_digest: must be the SHA-256 of the raw samples" },
        { "'label'", "'raw_digest': 12, 'label'", "raw_digest: must be a text in quotes" },
        { "['model', 'paper']", "[]", "modes: must list model, paper or both" },
        { "['model', 'paper']", "'model'", "modes: must list model, paper or both" },
        { "['model', 'paper']", "['model', 'papers']", "modes[1]: 'papers' is neither model nor paper" },
        { "['model', 'paper']", "['count']", "modes[0]: 'count' is neither model nor paper" },
        { "['model', 'paper']", "[3]", "modes[0]: '(no text)' is neither" },
        { "['model', 'paper']", "['model', 'model']", "modes[1]: 'model' is listed twice" },
    };
    REFUSE_ALL(row);
}
END_TEST

START_TEST(keys)
{
    static const refusal row[] = {
        { "'link'", "'lnk'", "t.json: lnk: unknown key; did you mean 'link'?" },
        { "'sync'", "'frequency'", "t.json: frequency: unknown key; there are schema, name, label" },
        { "'bandwidth'", "'bandwith'", "t.json: link.bandwith: unknown key; did you mean 'bandwidth'?" },
        { "'alpha'", "'x'", "t.json: link.x: unknown key; there are alpha, bandwidth, nominal_bandwidth" },
        { "'spread'", "'spraed'", "t.json: link.alpha.spraed: unknown key; did you mean 'spread'?" },
        { "'expert_bytes'", "'bytes'", "t.json: cpu.table.bytes: unknown key" },
        { "'sync'", "'a\\u001b[31m'", "t.json: a?[31m: unknown key" },
        { "'table'", "'tables'", "t.json: cpu.tables: unknown key; did you mean 'table'?" },
        { "{'value': 15, 'unit': 'us', 'n': 0}", "15", "t.json: sync: must be an object" },
        { "'link': {", "'link': 3, 'other': {", "duplicate" },
    };
    REFUSE_ALL(row);
}
END_TEST

START_TEST(constants)
{
    static const refusal row[] = {
        { "'value': 4, ", "", "t.json: link.alpha.value: is missing" },
        { "'value': 4,", "'value': '4',", "link.alpha.value: must be a number without quotes" },
        { "'value': 4,", "'value': -4,", "link.alpha.value: -4 us is negative" },
        { "'value': 4,", "'value': 4e9,", "link.alpha.value: 4e+09 us is above one hour" },
        { "'unit': 'us', ", "", "link.alpha.unit: is missing" },
        { "'unit': 'us'", "'unit': 'min'", "link.alpha.unit: 'min' is none of s, ms, us, \xc2\xb5s or ns" },
        { "'unit': 'us'", "'unit': 'GB/s'", "link.alpha.unit: 'GB/s' is none of s, ms, us" },
        { "'GB/s'", "'Gb/s'", "link.bandwidth.unit: 'Gb/s' is none of B/s, kB/s, MB/s, GB/s, TB/s or GiB/s" },
        { "'value': 55", "'value': 0", "link.bandwidth.value: 0 GB/s must be above 0" },
        { "'value': 55", "'value': 1e-7", "link.bandwidth.value: 1e-07 GB/s is outside 1 kB/s to 10^7 GB/s" },
        { "'value': 0.11", "'value': 0", "paper.t_h2d.value: 0 ms must be above 0" },
        { "'n': 30, ", "", "link.alpha.n: is missing; write the number of samples" },
        { "'n': 30", "'n': -1", "link.alpha.n: must be a whole number of samples" },
        { "'n': 30", "'n': 1.5", "link.alpha.n: must be a whole number of samples" },
        { "'spread': 0.02", "'spread': -1", "link.alpha.spread: must be a number, not negative" },
        { "'residual': 0.01", "'residual': 'x'", "link.alpha.residual: must be a number, not negative" },
        { "'note': 'small'", "'note': 3", "link.alpha.note: must be a text in quotes" },
    };
    REFUSE_ALL(row);
}
END_TEST

START_TEST(long_note)
{
    char note[260];
    memset(note, 'x', sizeof note - 1);
    note[0] = note[sizeof note - 2] = '\'';
    note[sizeof note - 1] = '\0';
    refuse_text(hw_text("'small'", note), "link.alpha.note: is longer than 199 bytes");
}
END_TEST

START_TEST(tables)
{
    static const refusal row[] = {
        { "'tokens': [1, 2, 4], ", "", "cpu.table.tokens: is missing" },
        { "'tokens': [1, 2, 4], 'times': [100, 110, 150]", "'tokens': [1], 'times': [100]",
          "cpu.table.tokens: has 1 entries, at least 2 are needed" },
        { "[1, 2, 4]", "[]", "cpu.table.tokens: has 0 entries" },
        { "[1, 2, 4]", "[1, 2]", "cpu.table.times: has 3 entries for 2 tokens" },
        { "[1, 2, 4]", "[1, 4, 2]", "cpu.table.tokens[2]: 2 does not ascend: 4 comes before it" },
        { "[1, 2, 4]", "[1, 2, 2]", "cpu.table.tokens[2]: 2 does not ascend" },
        { "[1, 2, 4]", "[0, 2, 4]", "cpu.table.tokens[0]: 0 must be above 0" },
        { "[1, 2, 4]", "[1, 'x', 4]", "cpu.table.tokens[1]: must be a number" },
        { "[1, 2, 4]", "{}", "cpu.table.tokens: must be a list" },
        { "[100, 110, 150]", "[100, -1, 150]", "cpu.table.times[1]: -1 us must be above 0" },
        { "[100, 110, 150]", "[100, 110, 1e10]", "cpu.table.times[2]: 1e+10 us must be above 0 and at most 3.6e+09 us" },
        { "'expert_bytes': 1000000", "'expert_bytes': 0", "cpu.table.expert_bytes: must be the whole number of bytes" },
        { "'expert_bytes': 1000000", "'expert_bytes': 1.5", "cpu.table.expert_bytes: must be the whole number of bytes" },
        { "'unit': 'us', 'n': 1, 'tokens'", "'unit': 'GB/s', 'n': 1, 'tokens'", "cpu.table.unit: 'GB/s' is none of s, ms" },
        { "'unit': 'us', 'n': 1, 'tokens'", "'unit': 'us', 'tokens'", "cpu.table.n: is missing" },
        { "[1, 3]", "[3, 1]", "gpu.table.experts[1]: 1 does not ascend: 3 comes before it" },
        { "[1, 3]", "[1]", "gpu.table.experts: has 1 entries, at least 2" },
        { "[2, 4]", "[4, 2]", "gpu.table.tokens[1]: 2 does not ascend: 4 comes before it" },
        { "[[10, 14], [20, 28]]", "[[10, 14]]", "gpu.table.times: must have one list for each of the 2 numbers of experts" },
        { "[[10, 14], [20, 28]]", "[[10, 14], [20]]", "gpu.table.times[1]: has 1 entries for 2 tokens" },
        { "[[10, 14], [20, 28]]", "[[10, 14], 20]", "gpu.table.times[1]: must be a list" },
        { "[[10, 14], [20, 28]]", "[[10, 14], [20, 0]]", "gpu.table.times[1][1]: 0 us must be above 0" },
    };
    REFUSE_ALL(row);
}
END_TEST

START_TEST(too_many_points)
{
    char list[512] = "[";
    for (int i = 1; i <= (int)MOESIM_TABLE_MAX + 1; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", i > 1 ? ", " : "", i);
    snprintf(list + strlen(list), sizeof list - strlen(list), "]");
    refuse_text(hw_text("[1, 2, 4]", list), "cpu.table.tokens: has 65 entries, at most 64 are allowed");
}
END_TEST

/* What a listed mode reads must be there; what none reads may be left out. */
START_TEST(missing)
{
    static const refusal row[] = {
        { " 'dram': {'bandwidth': {'value': 200, 'unit': 'GB/s', 'n': 0}},\n", "",
          "t.json: mode model needs what is missing: dram.bandwidth; add it" },
        { ", 'tau': {'value': 220, 'unit': '\xc2\xb5s', 'n': 0}", "", "t.json: mode paper needs what is missing: paper.tau;" },
    };
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    REFUSE_ALL(row);
    refuse_text("{\"schema\": \"moesim.profile/1\", \"name\": \"a\", \"label\": \"neutral\", \"modes\": [\"model\"]}",
                "mode model needs what is missing: link.alpha, link.bandwidth, return.alpha, return.bandwidth, "
                "dram.bandwidth, cpu.step, cpu.combine, gpu.launch, other.gpu, other.host, sync, head, policy, cpu.table, "
                "gpu.table;");
    refuse_text("{\"schema\": \"moesim.profile/1\", \"name\": \"a\", \"label\": \"neutral\", \"modes\": [\"paper\"]}",
                "mode paper needs what is missing: link.nominal_bandwidth, paper.t_h2d, paper.tau, paper.layer;");
    ck_assert_int_eq(hw_parse(hw_text("['model', 'paper']", "['paper']"), &p, &err), MOESIM_OK);
    ck_assert_uint_eq(p.modes, 1u << MOESIM_TIME_PAPER);
}
END_TEST

START_TEST(contradictions)
{
    static const refusal row[] = {
        { "'value': 200", "'value': 54", "t.json: dram.bandwidth 54 GB/s is below link.bandwidth 55 GB/s" },
        { "[100, 110, 150]", "[4, 110, 150]",
          "t.json: dram.bandwidth 200 GB/s is below the 250 GB/s at which cpu.table.times[0] reads the weights" },
    };
    moesim_profile p;
    moesim_error err = MOESIM_ERROR_INIT;
    REFUSE_ALL(row);
    ck_assert_int_eq(hw_parse(hw_text("'value': 200", "'value': 55"), &p, &err), MOESIM_OK);
    ck_assert_int_eq(hw_parse(hw_text("[100, 110, 150]", "[5, 110, 150]"), &p, &err), MOESIM_OK);
}
END_TEST

RUN_TESTS("refusals", json, deep, head, keys, constants, long_note, tables, too_many_points, missing, contradictions)
