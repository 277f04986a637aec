/* SPDX-License-Identifier: Apache-2.0
 *
 * Printing shared by the commands.
 */
#include "cli/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const moesim_formats[] = { "table", "csv", "json", NULL };
const char *const moesim_formats_no_csv[] = { "table", "json", NULL };

void moesim_print_csv(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* A clean copy, owned; NULL without memory. */
static char *clean(const char *text)
{
    const size_t n = strlen(text);
    char *copy = malloc(n + 1);
    if (copy != NULL)
        moesim_text_clean(text, n, copy, n + 1);
    return copy;
}

void moesim_print_clean(FILE *out, const char *text)
{
    char *copy = clean(text);
    fputs(copy != NULL ? copy : "?", out);
    free(copy);
}

json_t *moesim_json_text(const char *text)
{
    char *copy = clean(text);
    json_t *string = copy != NULL ? json_string(copy) : NULL;
    free(copy);
    return string;
}

json_t *moesim_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

moesim_code moesim_print_json(FILE *out, json_t *document, moesim_error *err)
{
    if (document == NULL)
        return moesim_fail_nomem(err, "a JSON document", 0);
    const int failed = json_dumpf(document, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(document);
    if ((failed != 0 || fputc('\n', out) == EOF) && ferror(out) == 0)
        return moesim_fail(err, MOESIM_E_IO, "cannot write the JSON document");
    return MOESIM_OK;            /* what a write failed of is said where the stream is flushed */
}
