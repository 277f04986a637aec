/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile as a file. Numbers are written with the fewest digits that read back as the same double, in SI units, so that
 * nothing is rounded.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/parts.h"

#define EXACT_WHOLE 0x1p53

static void put_real(FILE *out, double value)
{
    char text[40];
    int digits = 1;
    if (value == floor(value) && fabs(value) < EXACT_WHOLE) {
        fprintf(out, "%.0f", value);
        return;
    }
    do
        snprintf(text, sizeof text, "%.*g", digits++, value);
    while (digits <= 17 && strtod(text, NULL) != value);
    fputs(text, out);
}

/* The loader lets no control characters in. */
static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* Paths and words of the command line may hold anything; JSON is UTF-8. */
static void put_ascii(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text >= ' ' && *text <= '~' ? *text : '?', out);
    }
    fputc('"', out);
}

static void put_facts(FILE *out, const moesim_constant *c)
{
    fprintf(out, "\"n\": %llu", (unsigned long long)c->n);
    if (!isnan(c->spread)) {
        fputs(", \"spread\": ", out);
        put_real(out, c->spread);
    }
    if (!isnan(c->residual)) {
        fputs(", \"residual\": ", out);
        put_real(out, c->residual);
    }
    if (c->note[0] != '\0') {
        fputs(", \"note\": ", out);
        put_string(out, c->note);
    }
}

static void put_list(FILE *out, const double *value, uint32_t n)
{
    fputc('[', out);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            fputs(", ", out);
        put_real(out, value[i]);
    }
    fputc(']', out);
}

static void put_table_head(FILE *out, double expert_bytes, const moesim_constant *facts)
{
    fputs("\"table\": {\n      \"expert_bytes\": ", out);
    fprintf(out, "%.0f, \"unit\": \"s\", ", expert_bytes);
    put_facts(out, facts);
    fputs(",\n", out);
}

static void put_cpu(FILE *out, const moesim_cpu_table *t)
{
    put_table_head(out, t->expert_bytes, &t->facts);
    fputs("      \"tokens\": ", out);
    put_list(out, t->tokens, t->points);
    fputs(",\n      \"times\": ", out);
    put_list(out, t->seconds, t->points);
    fputs("\n    }", out);
}

static void put_gpu(FILE *out, const moesim_gpu_table *t)
{
    put_table_head(out, t->expert_bytes, &t->facts);
    fputs("      \"experts\": ", out);
    put_list(out, t->experts, t->num_experts);
    fputs(",\n      \"tokens\": ", out);
    put_list(out, t->tokens, t->num_tokens);
    fputs(",\n      \"times\": [\n", out);
    for (uint32_t i = 0; i < t->num_experts; i++) {
        fputs("        ", out);
        put_list(out, t->seconds[i], t->num_tokens);
        fputs(i + 1 < t->num_experts ? ",\n" : "\n      ]\n    }", out);
    }
}

static void put_constant(FILE *out, const char *name, const moesim_profile_row *row)
{
    fprintf(out, "\"%s\": { \"value\": ", name);
    put_real(out, row->constant->value);
    fprintf(out, ", \"unit\": \"%s\", ", row->unit);
    put_facts(out, row->constant);
    fputs(" }", out);
}

/* A group under way; "" is the top level. */
typedef struct place { FILE *out; const char *group; bool open; } place;

/* Before each member: the comma, and the head of the group before its first one. */
static void member(place *p)
{
    if (p->group[0] == '\0') {
        fputs(",\n  ", p->out);
    } else if (p->open) {
        fputs(",\n    ", p->out);
    } else {
        fprintf(p->out, ",\n  \"%s\": {\n    ", p->group);
        p->open = true;
    }
}

static void put_group(FILE *out, const moesim_profile *profile, const char *group)
{
    place p = { out, group, false };
    moesim_profile_row row;
    const size_t n = strlen(group);
    for (size_t i = 0; moesim_profile_get_row(profile, i, &row); i++) {
        const char *dot = strchr(row.key, '.');
        const size_t chars = dot != NULL ? (size_t)(dot - row.key) : 0;
        if (!row.constant->given || chars != n || strncmp(row.key, group, n) != 0)
            continue;
        member(&p);
        put_constant(out, dot != NULL ? dot + 1 : row.key, &row);
    }
    if (strcmp(group, "cpu") == 0 && profile->cpu.points > 0) {
        member(&p);
        put_cpu(out, &profile->cpu);
    }
    if (strcmp(group, "gpu") == 0 && profile->gpu.num_experts > 0) {
        member(&p);
        put_gpu(out, &profile->gpu);
    }
    if (p.open)
        fputs("\n  }", out);
}

static void put_head(FILE *out, const moesim_profile *p)
{
    fprintf(out, "{\n  \"schema\": \"%s\",\n  \"name\": ", MOESIM_PROFILE_SCHEMA);
    put_string(out, p->name);
    fprintf(out, ",\n  \"label\": \"%s\",\n  \"description\": ", p->label);
    put_string(out, p->description);
    if (p->times_of[0] != '\0') {
        fputs(",\n  \"times_of\": ", out);
        put_string(out, p->times_of);
    }
    if (p->raw_digest[0] != '\0')
        fprintf(out, ",\n  \"raw_digest\": \"%s\"", p->raw_digest);
    fprintf(out, ",\n  \"modes\": [\"%s\"", moesim_profile_modes[p->default_mode]);
    for (unsigned m = 0; moesim_profile_modes[m] != NULL; m++)
        if ((p->modes & MOESIM_MODE_BIT(m)) != 0 && m != (unsigned)p->default_mode)
            fprintf(out, ", \"%s\"", moesim_profile_modes[m]);
    fprintf(out, "],\n  \"origin\": { \"path\": ");
    put_ascii(out, p->path);
    fprintf(out, ", \"digest\": \"%s\", \"overrides\": ", p->digest);
    put_ascii(out, p->overrides);
    fputs(" }", out);
}

void moesim_profile_write(const moesim_profile *profile, FILE *out)
{
    put_head(out, profile);
    for (const char *const *group = moesim_profile_groups; *group != NULL; group++)
        put_group(out, profile, *group);
    fputs("\n}\n", out);
}
