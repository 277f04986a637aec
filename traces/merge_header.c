/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers of traces that are merged: the rules of traces/FORMAT.md, one table for each.
 */
#include "traces/merge_header.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FIELD(name) offsetof(moesim_trace_info, name)

static const char *text_of(const moesim_trace_info *info, size_t offset)
{
    return (const char *)info + offset;
}

static uint64_t number_of(const moesim_trace_info *info, size_t offset, bool wide)
{
    const char *at = (const char *)info + offset;
    return wide ? *(const uint64_t *)(const void *)at : *(const uint32_t *)(const void *)at;
}

static bool flag_of(const moesim_trace_info *info, size_t offset)
{
    return *(const bool *)(const void *)((const char *)info + offset);
}

moesim_code moesim_merge_refuse(const moesim_merge_part *first, const moesim_merge_part *part, moesim_error *err,
                                const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return moesim_fail(err, MOESIM_E_FORMAT, "%s and %s do not go together: %s; merge traces of one model, recorded the same "
                       "way", first->path, part->path, text);
}

static const char none[] = "none";   /* confidence_kind of a trace without confidences */

static bool either_is(const char *word, const char *a, const char *b)
{
    return strcmp(a, word) == 0 || strcmp(b, word) == 0;
}

/* What is 0 or "" where it is not recorded differs only if both know it; so do confidences. */
moesim_code moesim_merge_check(const moesim_merge_part *first, const moesim_merge_part *part, bool any_model,
                               moesim_error *err)
{
    static const struct { const char *name; size_t offset; bool wide; } number[] = {
        {"num_moe_layers", FIELD(num_layers), false}, {"num_experts", FIELD(num_experts), false},
        {"top_k", FIELD(top_k), false}, {"block_length", FIELD(block_length), false},
        {"hidden_size", FIELD(hidden_size), true},
        {"expert_intermediate_size", FIELD(expert_intermediate_size), true}, {"shared_experts", FIELD(shared_experts), true},
    };
    static const struct { const char *name; size_t offset; } text[] = {
        {"model_id", FIELD(model_id)}, {"gate_kind", FIELD(gate_kind)}, {"confidence_kind", FIELD(confidence_kind)},
        {"weight_dtype", FIELD(weight_dtype)},
    };
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        const uint64_t a = number_of(&first->info, number[i].offset, number[i].wide);
        const uint64_t b = number_of(&part->info, number[i].offset, number[i].wide);
        if (a != b && a != 0 && b != 0)
            return moesim_merge_refuse(first, part, err, "attribute %s is %llu in the first and %llu in the second",
                                       number[i].name, (unsigned long long)a, (unsigned long long)b);
    }
    for (size_t i = any_model ? 1 : 0; i < sizeof text / sizeof text[0]; i++) {
        const char *a = text_of(&first->info, text[i].offset), *b = text_of(&part->info, text[i].offset);
        const bool unknown = either_is("", a, b) || (text[i].offset == FIELD(confidence_kind) && either_is(none, a, b));
        if (strcmp(a, b) != 0 && !unknown)
            return moesim_merge_refuse(first, part, err, "attribute %s is \"%.100s\" in the first and \"%.100s\" in the second"
                                       "%s", text[i].name, a, b, i == 0 ? " (--model NAME gives one name to all)" : "");
    }
    if (first->info.has_resident_bytes && part->info.has_resident_bytes &&
        first->info.resident_bytes != part->info.resident_bytes)
        return moesim_merge_refuse(first, part, err, "/model/resident_bytes is %llu in the first and %llu in the second",
                                   (unsigned long long)first->info.resident_bytes,
                                   (unsigned long long)part->info.resident_bytes);
    return MOESIM_OK;
}

static void MOESIM_PRINTF(2, 3) note(const moesim_merge_options *options, const char *fmt, ...)
{
    char text[640];
    va_list args;
    if (options->note == NULL)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    options->note(options->cookie, text);
}

/* Distinct values in the order of the parts. */
static void join_text(const moesim_merge_part *part, size_t n, const moesim_merge_options *options, const char *name,
                      size_t offset, char *out)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const char *text = text_of(&part[i].info, offset);
        size_t k = 0;
        while (k < i && strcmp(text_of(&part[k].info, offset), text) != 0)
            k++;
        if (k < i || text[0] == '\0')
            continue;
        const size_t length = strlen(text), between = used > 0 ? 2 : 0;
        if (used + between + length >= sizeof(moesim_text)) {
            out[0] = '\0';
            note(options, "attribute %s is left out: the values of all parts together are longer than %zu bytes", name,
                 sizeof(moesim_text) - 1);
            return;
        }
        memcpy(out + used, "; ", between);
        memcpy(out + used + between, text, length + 1);
        used += between + length;
    }
}

static void join_texts(const moesim_merge_part *part, size_t n, const moesim_merge_options *options, moesim_trace_info *out)
{
    static const struct { const char *name; size_t offset; } text[] = {
        {"weight_dtype", FIELD(weight_dtype)}, {"engine", FIELD(engine)}, {"engine_version", FIELD(engine_version)},
        {"decoder", FIELD(decoder)}, {"dataset", FIELD(dataset)}, {"license", FIELD(license)}, {"created", FIELD(created)},
    };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        join_text(part, n, options, text[i].name, text[i].offset, (char *)out + text[i].offset);
    for (size_t i = 1; i < n; i++)
        if (memcmp(&part[i].info.commit_threshold, &part[0].info.commit_threshold, sizeof out->commit_threshold) != 0 &&
            !(isnan(part[i].info.commit_threshold) && isnan(part[0].info.commit_threshold))) {
            out->commit_threshold = NAN;
            note(options, "attribute commit_threshold is left out: %s and %s differ in it", part[0].path, part[i].path);
            return;
        }
}

/* Measured columns: all parts have them, or the merged trace has not. A column of confidences whose kind is "none" counts as
 * none: its values mean nothing. */
static void choose_columns(const moesim_merge_part *part, size_t n, const moesim_merge_options *options,
                           moesim_trace_info *out)
{
    static const struct { const char *name; size_t offset; } column[] = {
        {"/routing/gate", FIELD(has_gate)}, {"/token/confidence", FIELD(has_confidence_values)},
        {"/routing/router_prob", FIELD(has_prob)}, {"/token/id", FIELD(has_token_id)},
        {"/observed/residency", FIELD(has_residency)}, {"/observed/pass_ns", FIELD(has_pass_ns)},
    };
    for (size_t c = 0; c < sizeof column / sizeof column[0]; c++) {
        size_t with = n, without = n;
        for (size_t i = n; i-- > 0;)
            *(flag_of(&part[i].info, column[c].offset) ? &with : &without) = i;
        *(bool *)(void *)((char *)out + column[c].offset) = without == n;
        if (with < n && without < n)
            note(options, "%s is left out: %s has it, %s has not", column[c].name, part[with].path, part[without].path);
    }
    out->has_confidence = n == 1 ? part->info.has_confidence : out->has_confidence_values;
    if (!out->has_confidence_values)
        (void)snprintf(out->confidence_kind, sizeof out->confidence_kind, "%s", none);
}

/* What the model is, and what the format says an absent column means, is kept where any part has it. */
static void fill_known(const moesim_merge_part *part, size_t n, moesim_trace_info *out)
{
    static const size_t number[] = {FIELD(hidden_size), FIELD(expert_intermediate_size), FIELD(shared_experts)};
    for (size_t i = 0; i < n; i++) {
        const moesim_trace_info *info = &part[i].info;
        for (size_t k = 0; k < sizeof number / sizeof number[0]; k++)
            if (number_of(info, number[k], true) != 0)
                memcpy((char *)out + number[k], (const char *)info + number[k], sizeof(uint64_t));
        out->has_forward = out->has_forward || info->has_forward;
        out->has_output_tokens = out->has_output_tokens || info->has_output_tokens;
        out->gate_is_f32 = out->gate_is_f32 || info->gate_is_f32;
        if (info->has_resident_bytes) {
            out->has_resident_bytes = true;
            out->resident_bytes = info->resident_bytes;
        }
    }
}

void moesim_merge_header(const moesim_merge_part *part, size_t n, const moesim_merge_options *options,
                         moesim_trace_info *out)
{
    *out = part[0].info;
    out->source_digest[0] = '\0';
    if (options->model != NULL)
        (void)snprintf(out->model_id, sizeof out->model_id, "%s", options->model);
    fill_known(part, n, out);
    choose_columns(part, n, options, out);
    join_texts(part, n, options, out);
}
