/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a figure comes from: under the title the models, what was held and the requests; at the bottom, in small print, profile
 * and digests.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plots/fill.h"

#define FEW_REQUESTS 20u         /* below this, n is written with the word "few" */
#define DIGEST_DIGITS 16

void moesim_line_add_to(char *text, size_t bytes, const char *fmt, ...)
{
    const size_t used = strlen(text);
    size_t at = used;
    if (used > 0 && used + 1 < bytes)
        text[at++] = '\n';
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text + at, bytes - at, fmt, args);
    va_end(args);
}

const char *moesim_attribute_text(const moesim_result *r, const char *name)
{
    const char *text = moesim_result_get(r, name);
    return text != NULL ? text : "";
}

/* The distinct ones of names that are separated by commas, in order. */
static void distinct_names(const char *list, char *out, size_t bytes)
{
    out[0] = '\0';
    for (const char *at = list; *at != '\0';) {
        const size_t n = strcspn(at, ",");
        const char *before = list;
        while (before < at && !(strcspn(before, ",") == n && strncmp(before, at, n) == 0))
            before += strcspn(before, ",") + 1;
        if (before >= at && n > 0)
            moesim_text_add(out, bytes, "%s%.*s", out[0] != '\0' ? ", " : "", (int)n, at);
        at += n + (at[n] == ',' ? 1u : 0u);
    }
}

/* Whose times mode paper lays under the routing: what the result says of its one profile, else the name of the shown one. */
static void times_of(const moesim_result *r, const char *shown, char *out, size_t bytes)
{
    static const char between[] = " with the times of ";
    const char *note = moesim_attribute_text(r, "priced_as_note"), *of = strstr(note, between);
    if (of != NULL && strstr(of, "; ") == NULL)
        moesim_text_add(out, bytes, "%.300s", of);
    else
        moesim_text_add(out, bytes, "%sprofile %.100s", between,
                        shown[0] != '\0' ? shown : moesim_attribute_text(r, "profile"));
}

static void models(const moesim_result *r, bool priced, const char *shown, char *out, size_t bytes)
{
    char names[256];
    distinct_names(moesim_attribute_text(r, "model_id"), names, sizeof names);
    (void)snprintf(out, bytes, "routing of %s", names[0] != '\0' ? names : "(unnamed model)");
    const char *as = moesim_attribute_text(r, "priced_as");
    if (!priced)
        moesim_text_add(out, bytes, ", counts");
    else if (strcmp(moesim_attribute_text(r, "time"), "paper") == 0)
        times_of(r, shown, out, bytes);
    else
        moesim_text_add(out, bytes, " priced as %.100s", as[0] != '\0' ? as : names[0] != '\0' ? "itself" : "recorded");
}

/* Requests behind the cells; they may differ between traces. */
static moesim_code count_requests(const moesim_cells *c, size_t *least, size_t *most, moesim_error *err)
{
    *least = SIZE_MAX;
    *most = 0;
    for (size_t i = 0; i < c->n; i++) {
        size_t begin, end;
        const double said = moesim_cells_number(c->table, "requests", c->row[i]);
        if (moesim_cells_requests(c, c->row[i], &begin, &end, err) != MOESIM_OK)
            return err->code;
        const size_t n = said >= 0 && said < 1e15 ? (size_t)said : end - begin;
        *least = n < *least ? n : *least;
        *most = n > *most ? n : *most;
    }
    return MOESIM_OK;
}

static void say_requests(size_t least, size_t most, bool few, char *out, size_t bytes)
{
    if (least == most)
        (void)snprintf(out, bytes, "n = %zu requests", most);
    else
        (void)snprintf(out, bytes, "n = %zu to %zu requests", least, most);
    if (few)
        moesim_text_add(out, bytes, " (few)");
    moesim_text_add(out, bytes, least < 2 ? ", no intervals" : ", 95 %% intervals");
}

/* Traces of the shown cells with their digests, at most four. */
static void traces(const moesim_cells *c, moesim_chart *chart)
{
    const char *seen[5];
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const char *digest = moesim_cells_text(c->table, "trace_digest", c->row[i]);
        size_t k = 0;
        while (k < n && strcmp(seen[k], digest) != 0)
            k++;
        if (k < n || digest[0] == '\0')
            continue;
        if (n == 4) {
            moesim_text_add(chart->footer, sizeof chart->footer, ", …");
            return;
        }
        seen[n++] = digest;
        const char *name = moesim_cells_text(c->table, "trace", c->row[i]), *slash = strrchr(name, '/');
        char text[192];
        (void)snprintf(text, sizeof text, "%s%.80s sha256 %.*s", n == 1 ? "trace " : ", ", slash != NULL ? slash + 1 : name,
                       DIGEST_DIGITS, digest);
        if (n == 1)
            moesim_line_add(chart->footer, "%s", text);
        else
            moesim_text_add(chart->footer, sizeof chart->footer, "%s", text);
    }
}

static void profile(const moesim_cells *c, moesim_chart *chart)
{
    const char *name = moesim_attribute_text(c->result, "profile");
    const char *label = moesim_attribute_text(c->result, "profile_label");
    const char *shown = c->n > 0 ? moesim_cells_text(c->table, "profile", c->row[0]) : "";
    const char *overrides = moesim_attribute_text(c->result, "profile_overrides");
    const char *digest = moesim_attribute_text(c->result, "profile_digest");
    if (name[0] == '\0' && shown[0] == '\0')
        return;
    /* attributes of several profiles are lists; the column says which one is shown */
    const bool several = strchr(name, ',') != NULL;
    moesim_line_add(chart->footer, "profile %.100s", several && shown[0] != '\0' ? shown : name[0] != '\0' ? name : shown);
    if (label[0] != '\0')
        moesim_text_add(chart->footer, sizeof chart->footer, " (%.100s)", label);
    if (digest[0] != '\0')
        moesim_text_add(chart->footer, sizeof chart->footer, " sha256 %.*s", several ? 200 : DIGEST_DIGITS, digest);
    if (overrides[0] != '\0')
        moesim_text_add(chart->footer, sizeof chart->footer, ", set %.200s", overrides);
}

static bool any_marked(const moesim_cells *c, char mark)
{
    for (size_t i = 0; i < c->num_policies; i++)
        if (c->policy[i].mark == mark)
            return true;
    return false;
}

/* Are times shown or part of the result? Counts depend on no price. */
static bool is_priced(const moesim_cells *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (!isnan(moesim_cells_number(c->table, "tpot_ms", c->row[i])))
            return true;
    return false;
}

moesim_code moesim_caption_cells(const moesim_cells *cells, moesim_chart *chart, moesim_error *err)
{
    char text[512], held[MOESIM_CHART_TEXT];
    size_t least, most;
    const bool priced = is_priced(cells);
    if (count_requests(cells, &least, &most, err) != MOESIM_OK)
        return err->code;
    (void)snprintf(held, sizeof held, "%s", chart->subtitle);
    models(cells->result, priced, cells->n > 0 ? moesim_cells_text(cells->table, "profile", cells->row[0]) : "",
           chart->subtitle, sizeof chart->subtitle);
    if (held[0] != '\0')
        moesim_line_add(chart->subtitle, "%s", held);
    if (most > 0) {
        say_requests(least, most, least < FEW_REQUESTS, text, sizeof text);
        moesim_line_add(chart->subtitle, "%s", text);
    }
    if (any_marked(cells, '*'))
        moesim_line_add(chart->footer, "* clairvoyant: reads the future, a bound and not a policy one can build");
    if (any_marked(cells, '!'))
        moesim_line_add(chart->footer, "! non-causal: uses what no real system has at that moment");
    if (priced)
        profile(cells, chart);
    traces(cells, chart);
    const char *version = moesim_attribute_text(cells->result, "moesim_version");
    if (version[0] != '\0')
        moesim_text_add(chart->footer, sizeof chart->footer, "%s%.40s", "; moesim ", version);
    return MOESIM_OK;
}

void moesim_caption_stats(const moesim_result *result, moesim_chart *chart)
{
    char text[512];
    models(result, false, "", text, sizeof text);
    text[strlen(text) - strlen(", counts")] = '\0';
    moesim_line_add(chart->subtitle, "%s", text);
    const char *dataset = moesim_attribute_text(result, "dataset"), *digest = moesim_attribute_text(result, "trace_digest");
    if (dataset[0] != '\0')
        moesim_text_add(chart->subtitle, sizeof chart->subtitle, ", %.160s", dataset);
    const char *n = moesim_attribute_text(result, "num_requests");
    moesim_line_add(chart->subtitle, "n = %.20s requests%s, blocks of %.20s", n, strlen(n) < 2 || (strlen(n) == 2 && n[0] < '2')
                    ? " (few)" : "", moesim_attribute_text(result, "block_length"));
    if (digest[0] != '\0')
        moesim_line_add(chart->footer, "trace sha256 %.*s", DIGEST_DIGITS, digest);
}
