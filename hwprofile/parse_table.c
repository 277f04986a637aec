/* SPDX-License-Identifier: Apache-2.0
 *
 * The two tables of a profile.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hwprofile/parts.h"

#define MOST_BYTES 1e15
#define MOST_SECONDS 3600.0

/* n numbers within (0, most], in units of den-ths; ascending as asked. */
typedef struct list { double most, num, den; bool ascending; const char *unit; } list;

static moesim_code parse_list(const moesim_profile_source *source, const json_t *array, const char *place, const list *rule,
                              double *out, uint32_t *n)
{
    char at[96];
    if (!json_is_array(array))
        return moesim_profile_refuse(source, place, array == NULL ? "is missing" : "must be a list [ … ]");
    if (json_array_size(array) > MOESIM_TABLE_MAX)
        return moesim_profile_refuse(source, place, "has %zu entries, at most %u are allowed", json_array_size(array),
                                     MOESIM_TABLE_MAX);
    *n = (uint32_t)json_array_size(array);
    for (uint32_t i = 0; i < *n; i++) {
        const json_t *value = json_array_get(array, i);
        snprintf(at, sizeof at, "%s[%u]", place, i);
        if (!json_is_number(value))
            return moesim_profile_refuse(source, at, "must be a number");
        out[i] = json_number_value(value) * rule->num / rule->den;
        if (!(out[i] > 0.0) || out[i] > rule->most)
            return moesim_profile_refuse(source, at, "%.9g%s must be above 0 and at most %g%s", json_number_value(value),
                                         rule->unit, rule->most * rule->den / rule->num, rule->unit);
        if (rule->ascending && i > 0 && out[i] <= out[i - 1])
            return moesim_profile_refuse(source, at, "%g does not ascend: %g comes before it", out[i], out[i - 1]);
    }
    return MOESIM_OK;
}

static moesim_code parse_axis(const moesim_profile_source *source, const json_t *table, const char *group, const char *key,
                              double *out, uint32_t *n)
{
    const list rule = { 1e9, 1.0, 1.0, true, "" };
    char place[64];
    snprintf(place, sizeof place, "%s.table.%s", group, key);
    const moesim_code code = parse_list(source, json_object_get(table, key), place, &rule, out, n);
    if (code == MOESIM_OK && *n < 2)
        return moesim_profile_refuse(source, place, "has %u entries, at least 2 are needed", *n);
    return code;
}

/* Keys, expert_bytes, unit and facts, which both tables have. */
static moesim_code parse_common(const moesim_profile_source *source, const json_t *table, const char *place,
                                const char *const *known, double *expert_bytes, list *times, char unit[16],
                                moesim_constant *facts)
{
    char at[64];
    moesim_code code = moesim_profile_keys(source, table, place, known);
    if (code == MOESIM_OK)
        code = moesim_profile_facts(source, table, place, facts);
    if (code == MOESIM_OK)
        code = moesim_profile_string(source, table, place, "unit", true, unit, 15);
    if (code != MOESIM_OK)
        return code;
    snprintf(at, sizeof at, "%s.unit", place);
    if (!moesim_profile_unit(MOESIM_SECONDS, unit, &times->num, &times->den))
        return moesim_profile_refuse(source, at, "'%s' is none of %s", unit, moesim_profile_units(MOESIM_SECONDS));
    memmove(unit + 1, unit, strlen(unit) + 1);
    unit[0] = ' ';
    times->unit = unit;
    snprintf(at, sizeof at, "%s.expert_bytes", place);
    const json_t *bytes = json_object_get(table, "expert_bytes");
    if (!json_is_integer(bytes) || json_integer_value(bytes) < 1 || (double)json_integer_value(bytes) > MOST_BYTES)
        return moesim_profile_refuse(source, at, "must be the whole number of bytes of the expert that was timed");
    *expert_bytes = (double)json_integer_value(bytes);
    return MOESIM_OK;
}

moesim_code moesim_profile_cpu_table(const moesim_profile_source *source, const json_t *table, moesim_cpu_table *out)
{
    static const char *const known[] = { "expert_bytes", "unit", "tokens", "times", "n", "spread", "residual", "note", NULL };
    list times = { .most = MOST_SECONDS, .ascending = false };
    char unit[16];
    uint32_t n = 0;
    moesim_code code = parse_common(source, table, "cpu.table", known, &out->expert_bytes, &times, unit, &out->facts);
    if (code == MOESIM_OK)
        code = parse_axis(source, table, "cpu", "tokens", out->tokens, &out->points);
    if (code == MOESIM_OK)
        code = parse_list(source, json_object_get(table, "times"), "cpu.table.times", &times, out->seconds, &n);
    if (code == MOESIM_OK && n != out->points)
        return moesim_profile_refuse(source, "cpu.table.times", "has %u entries for %u tokens", n, out->points);
    return code;
}

moesim_code moesim_profile_gpu_table(const moesim_profile_source *source, const json_t *table, moesim_gpu_table *out)
{
    static const char *const known[] = { "expert_bytes", "unit", "experts", "tokens", "times", "n", "spread", "residual",
                                         "note", NULL };
    list times = { .most = MOST_SECONDS, .ascending = false };
    char unit[16], place[64];
    moesim_code code = parse_common(source, table, "gpu.table", known, &out->expert_bytes, &times, unit, &out->facts);
    if (code == MOESIM_OK)
        code = parse_axis(source, table, "gpu", "experts", out->experts, &out->num_experts);
    if (code == MOESIM_OK)
        code = parse_axis(source, table, "gpu", "tokens", out->tokens, &out->num_tokens);
    if (code != MOESIM_OK)
        return code;
    const json_t *rows = json_object_get(table, "times");
    if (!json_is_array(rows) || json_array_size(rows) != out->num_experts)
        return moesim_profile_refuse(source, "gpu.table.times", "must have one list for each of the %u numbers of experts",
                                     out->num_experts);
    for (uint32_t i = 0; i < out->num_experts; i++) {
        uint32_t n = 0;
        snprintf(place, sizeof place, "gpu.table.times[%u]", i);
        code = parse_list(source, json_array_get(rows, i), place, &times, out->seconds[i], &n);
        if (code == MOESIM_OK && n != out->num_tokens)
            return moesim_profile_refuse(source, place, "has %u entries for %u tokens", n, out->num_tokens);
        if (code != MOESIM_OK)
            return code;
    }
    return MOESIM_OK;
}
