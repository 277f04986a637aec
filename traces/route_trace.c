/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict line reader of `route_trace v1` CSV.
 */
#include "traces/route_trace.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char first_line[] = "# route_trace v1";
static const char columns[] = "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes";

moesim_code moesim_route_fail(const moesim_route_reader *r, moesim_error *err, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: line %llu: %s", r->path, (unsigned long long)r->line, text);
}

/* One line without its end into text. A last line without an end is refused: the file was cut short. */
static moesim_code read_line(moesim_route_reader *r, bool *end, moesim_error *err)
{
    size_t n = 0;
    int c = getc_unlocked(r->file);
    *end = c == EOF && !ferror(r->file);
    r->line += !*end;
    for (; c != EOF && c != '\n'; c = getc_unlocked(r->file)) {
        if (c == '\0')
            return moesim_route_fail(r, err, "holds a zero byte; this is not a text file");
        if (n + 1 >= sizeof r->text)
            return moesim_route_fail(r, err, "is longer than %zu bytes; this is not a route_trace file", sizeof r->text - 1);
        r->text[n++] = (char)c;
    }
    if (ferror(r->file))
        return moesim_fail(err, MOESIM_E_IO, "cannot read %s: %s", r->path, strerror(errno));
    if (c == EOF && !*end)
        return moesim_route_fail(r, err, "has no end; the file was cut short");
    if (n > 0 && r->text[n - 1] == '\r')
        n--;
    r->text[n] = '\0';
    return MOESIM_OK;
}

/* Decimal digits and nothing else at *at, moved behind them. */
static moesim_code number(const moesim_route_reader *r, const char **at, const char *what, uint64_t max, uint64_t *out,
                          moesim_error *err)
{
    const char *from = *at;
    uint64_t value = 0;
    bool large = false;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        const uint64_t digit = (uint64_t)(**at - '0');
        large = large || value > (UINT64_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    if (*at == from)
        return moesim_route_fail(r, err, "%s is not a whole number", what);
    if (large || value > max)
        return moesim_route_fail(r, err, "%s %.*s is above %llu", what, (int)(*at - from < 24 ? *at - from : 24), from,
                                 (unsigned long long)max);
    *out = value;
    return MOESIM_OK;
}

/* " key=digits" somewhere in the line, ended by a space or the line's end. */
static moesim_code keyed(const moesim_route_reader *r, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                         moesim_error *err)
{
    const char *at = strstr(r->text, key);
    if (at == NULL)
        return moesim_route_fail(r, err, "lacks%s", key);
    at += strlen(key);
    const moesim_code code = number(r, &at, key + 1, max, out, err);
    if (code != MOESIM_OK)
        return code;
    if ((*at != ' ' && *at != '\0') || *out < min)
        return moesim_route_fail(r, err, "%s must be a whole number in %llu..%llu", key + 1, (unsigned long long)min,
                                 (unsigned long long)max);
    return MOESIM_OK;
}

static moesim_code model_line(moesim_route_reader *r, moesim_error *err)
{
    static const char start[] = "# model=";
    const char *from = r->text + sizeof start - 1, *to = strstr(r->text, " arch=");
    uint64_t layers = 0, experts = 0, used = 0;
    if (r->header.num_layers != 0)
        return moesim_route_fail(r, err, "a second line with the model");
    if (to == NULL || to <= from)
        return moesim_route_fail(r, err, "lacks the model's name or arch=");
    snprintf(r->header.model, sizeof r->header.model, "%.*s", (int)(to - from), from);
    moesim_code code = keyed(r, " n_layer=", 1, MOESIM_ROUTE_LAYERS, &layers, err);
    if (code == MOESIM_OK)
        code = keyed(r, " n_expert=", 1, 1024, &experts, err);
    if (code == MOESIM_OK)
        code = keyed(r, " n_expert_used=", 1, experts < 64 ? experts : 64, &used, err);
    r->header.num_layers = (uint32_t)layers;
    r->header.num_experts = (uint32_t)experts;
    r->header.top_k = (uint32_t)used;
    return code;
}

/* Layers come in order, so their number says how many there were. */
static moesim_code layer_line(moesim_route_reader *r, uint32_t *layers, moesim_error *err)
{
    const uint64_t most = (uint64_t)1 << 48;
    uint64_t layer = 0;
    if (r->header.num_layers == 0)
        return moesim_route_fail(r, err, "the line with the model must come before those of the layers");
    moesim_code code = keyed(r, " layer=", 0, r->header.num_layers - 1, &layer, err);
    if (code == MOESIM_OK && layer != *layers)
        return moesim_route_fail(r, err, "layer %llu where layer %u was expected", (unsigned long long)layer, *layers);
    if (code == MOESIM_OK)
        code = keyed(r, " expert_bytes=", 0, most, &r->header.expert_bytes[layer], err);
    if (code == MOESIM_OK)
        code = keyed(r, " dense_bytes=", 0, most, &r->header.dense_bytes[layer], err);
    *layers += code == MOESIM_OK;
    return code;
}

static moesim_code read_header(moesim_route_reader *r, moesim_error *err)
{
    uint32_t layers = 0;
    bool end = false;
    moesim_code code = read_line(r, &end, err);
    if (code == MOESIM_OK && (end || strcmp(r->text, first_line) != 0))
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: line 1: must be \"%s\"", r->path, first_line);
    while (code == MOESIM_OK) {
        code = read_line(r, &end, err);
        if (code == MOESIM_OK && end)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: the file ends before the names of the columns", r->path);
        if (code != MOESIM_OK || r->text[0] != '#')
            break;
        if (strncmp(r->text, "# model=", 8) == 0)
            code = model_line(r, err);
        else if (strncmp(r->text, "# layer=", 8) == 0)
            code = layer_line(r, &layers, err);
    }
    if (code != MOESIM_OK)
        return code;
    if (strcmp(r->text, columns) != 0)
        return moesim_route_fail(r, err, "the columns must be %s", columns);
    if (r->header.num_layers == 0 || layers != r->header.num_layers)
        return moesim_route_fail(r, err, "the header describes %u of %u layers (n_layer)", layers, r->header.num_layers);
    return MOESIM_OK;
}

moesim_code moesim_route_open(moesim_route_reader *r, const char *path, moesim_error *err)
{
    struct stat st;
    *r = (moesim_route_reader){.path = path};
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return moesim_fail(err, MOESIM_E_IO, "cannot read %s: not a regular file", path);
    r->file = fopen(path, "re");
    if (r->file == NULL)
        return moesim_fail(err, MOESIM_E_IO, "cannot read %s: %s", path, strerror(errno));
    const moesim_code code = read_header(r, err);
    if (code != MOESIM_OK)
        moesim_route_close(r);
    return code;
}

static moesim_code weight_field(const moesim_route_reader *r, const char **at, float *out, moesim_error *err)
{
    const size_t n = strspn(*at, "0123456789.eE+-");
    char *end = NULL;
    *out = n > 0 ? strtof(*at, &end) : 0.0f;
    if (n == 0 || end != *at + n)
        return moesim_route_fail(r, err, "weight is not a number");
    if (!isfinite(*out) || signbit(*out))
        return moesim_route_fail(r, err, "weight must be finite and not negative");
    *at = end;
    return MOESIM_OK;
}

enum field { TURN, PHASE, STEP, LAYER, SLOT, EXPERT, WEIGHT, RESIDENCY, BYTES, FIELDS };

moesim_code moesim_route_next(moesim_route_reader *r, moesim_route_line *out, bool *end, moesim_error *err)
{
    const moesim_route_header *h = &r->header;
    const struct { const char *name; uint64_t max; } field[FIELDS] = {
        [TURN] = {"turn", UINT32_MAX}, [PHASE] = {"phase", 1}, [STEP] = {"step", INT32_MAX},
        [LAYER] = {"layer", h->num_layers - 1}, [SLOT] = {"slot", h->top_k - 1}, [EXPERT] = {"expert", h->num_experts - 1},
        [WEIGHT] = {"weight", 0}, [RESIDENCY] = {"residency", 2}, [BYTES] = {"expert_bytes", UINT64_MAX},
    };
    uint64_t value[FIELDS] = {0};
    moesim_code code = read_line(r, end, err);
    const char *at = r->text;
    for (int f = 0; f < FIELDS && code == MOESIM_OK && !*end; f++) {
        code = f == WEIGHT ? weight_field(r, &at, &out->weight, err)
                           : number(r, &at, field[f].name, field[f].max, &value[f], err);
        if (code == MOESIM_OK && *at != (f + 1 < FIELDS ? ',' : '\0'))
            return moesim_route_fail(r, err, "after %s: expected %s; a line has %d columns", field[f].name,
                                     f + 1 < FIELDS ? "a comma" : "the end of the line", (int)FIELDS);
        at++;
    }
    if (code != MOESIM_OK || *end)
        return code;
    const uint64_t bytes = h->expert_bytes[value[LAYER]];
    if (bytes == 0)
        return moesim_route_fail(r, err, "layer %llu has no experts (its expert_bytes are 0)",
                                 (unsigned long long)value[LAYER]);
    if (value[BYTES] != 0 && value[BYTES] != bytes)
        return moesim_route_fail(r, err, "expert_bytes must be 0 or the layer's %llu", (unsigned long long)bytes);
    const float weight = out->weight;
    *out = (moesim_route_line){.turn = value[TURN], .phase = (uint32_t)value[PHASE], .step = (uint32_t)value[STEP],
                               .layer = (uint32_t)value[LAYER], .slot = (uint32_t)value[SLOT],
                               .expert = (uint32_t)value[EXPERT], .weight = weight,
                               .residency = (uint32_t)value[RESIDENCY], .expert_bytes = value[BYTES]};
    return MOESIM_OK;
}

void moesim_route_close(moesim_route_reader *r)
{
    if (r->file != NULL)
        fclose(r->file);
    r->file = NULL;
}
