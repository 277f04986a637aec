/* SPDX-License-Identifier: Apache-2.0
 *
 * Executing with moesim-device, and what is done with the report.
 */
#include "cli/fidelity_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/output.h"
#include "base/paths.h"
#include "cli/pricing.h"
#include "cli/start.h"

#define TEMPORARY 4096

/* Rows that are not the device's. */
static const char *const own[] = { "output", "raw", "told", "set", "format", "csv", "markdown", "result", "witness",
                                  "calibrate", NULL };

static moesim_code check_files(const moesim_fidelity_settings *s, moesim_error *err)
{
    moesim_named_file input[MOESIM_MOST_RAW + 5];
    size_t n = 0;
    for (size_t i = 0; i < s->words.raw.n && n < MOESIM_MOST_RAW; i++)
        input[n++] = (moesim_named_file){ "option --raw", s->words.raw.item[i] };
    const char *profile = s->device.profile;
    input[n++] = (moesim_named_file){ "the trace", s->words.trace };
    input[n++] = (moesim_named_file){ "option --witness", s->words.witness };
    input[n++] = (moesim_named_file){ "option --decisions", s->device.decisions };
    input[n++] = (moesim_named_file){ "option --profile", moesim_profile_is_file(profile) ? profile : NULL };
    input[n++] = (moesim_named_file){ "option --told", moesim_profile_is_file(s->words.told) ? s->words.told : NULL };
    const moesim_named_file output[] = { { "option --csv", s->csv }, { "option --markdown", s->markdown },
                                         { "option --result", s->result }, { "option --output", s->device.output } };
    moesim_code code = moesim_check_outputs(input, n, output, 4, err);
    for (size_t i = 0; i < 3 && code == MOESIM_OK; i++)
        if (output[i].path != NULL)
            code = moesim_output_try(output[i].path, err);
    return code;
}

/* ---- executing ------------------------------------------------------------------------------------------------------- */

/* A folder of our own for the raw file that nobody keeps. */
static moesim_code make_temporary(char folder[TEMPORARY], char path[TEMPORARY + 16], moesim_error *err)
{
    const char *base = getenv("TMPDIR");
    if (snprintf(folder, TEMPORARY, "%s/moesim-XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp") >= TEMPORARY ||
        mkdtemp(folder) == NULL)
        return moesim_fail(err, MOESIM_E_IO, "cannot make a temporary folder for the raw file; set TMPDIR, or give -o FILE");
    snprintf(path, TEMPORARY + 16, "%s/raw.h5", folder);
    return MOESIM_OK;
}

/* What the device's program says is no part of the report: it goes to standard error. */
static moesim_code call(const char *verb, const moesim_list *words, int *status, moesim_error *err)
{
    void *argv = NULL;
    if (moesim_alloc(words->n + 1, sizeof(char *), "words", &argv, err) != MOESIM_OK)
        return err->code;
    memcpy(argv, words->item, words->n * sizeof *words->item);
    (void)fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    if (saved < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        if (saved >= 0)
            (void)close(saved);
        free(argv);
        return moesim_fail(err, MOESIM_E_IO, "cannot set standard output aside");
    }
    const moesim_code code = moesim_device_call(verb, (int)words->n, argv, status, err);
    free(argv);
    const bool back = dup2(saved, STDOUT_FILENO) >= 0;
    (void)close(saved);
    return back || code != MOESIM_OK ? code : moesim_fail(err, MOESIM_E_IO, "cannot take standard output back");
}

/* It has said why by itself, and once is enough; what ended it without a word is said here. */
static moesim_code translate(int status, const char *verb, const char *output, moesim_error *err)
{
    const bool said = status == 1 || status == 2 || status == 77;
    const moesim_code code = moesim_interrupted() ? MOESIM_E_INTERRUPTED : status == 77 ? MOESIM_E_ABSENT
                                                  : status == 2 ? MOESIM_E_USAGE : MOESIM_E_IO;
    if (status == 0)
        return MOESIM_OK;
    if (said) {
        *err = (moesim_error)MOESIM_ERROR_INIT;
        err->code = code;
        return code;
    }
    return moesim_fail(err, code, "moesim-device %s was ended %s %d%s%s", verb, status > 128 ? "by signal" : "with status",
                       status > 128 ? status - 128 : status, output != NULL ? "; finished cells are in " : "",
                       output != NULL ? output : "");
}

static moesim_code start(const moesim_usage *usage, const char *verb, const moesim_fidelity_settings *s,
                         const moesim_fidelity_settings *initial, const char *output, moesim_error *err)
{
    moesim_list words = { 0, 0, NULL };
    char *text = NULL, option[TEMPORARY + 32];
    int status = 0;
    snprintf(option, sizeof option, "--output=%s", output);
    moesim_code code = moesim_list_add(&words, verb, err);
    if (code == MOESIM_OK)
        code = moesim_list_add(&words, s->words.trace, err);
    if (code == MOESIM_OK)
        code = moesim_list_add(&words, option, err);
    if (code == MOESIM_OK && s->device.output == NULL)
        code = moesim_list_add(&words, "--scratch", err);
    if (code == MOESIM_OK)
        code = moesim_device_argv(usage->args, s, initial, own, &words, &text, err);
    if (code == MOESIM_OK)
        code = call(verb, &words, &status, err);
    if (code == MOESIM_OK)
        code = translate(status, verb, s->device.output, err);
    moesim_list_fini(&words);
    free(text);
    return code;
}

/* ---- printing -------------------------------------------------------------------------------------------------------- */

static moesim_code write_file(const char *path, const moesim_fidelity_report *r,
                              void (*print)(const moesim_fidelity_report *r, FILE *out), moesim_error *err)
{
    moesim_output *file = NULL;
    if (path == NULL)
        return MOESIM_OK;
    if (moesim_output_open(path, &file, err) != MOESIM_OK)
        return err->code;
    print(r, moesim_output_stream(file));
    return moesim_output_commit(&file, err);
}

static moesim_code print(const moesim_fidelity_report *r, const moesim_fidelity_settings *s,
                         void (*table)(const moesim_fidelity_report *report, FILE *out), moesim_error *err)
{
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
    if (write_file(s->csv, r, moesim_fidelity_print_csv, err) != MOESIM_OK ||
        write_file(s->markdown, r, moesim_fidelity_print_markdown, err) != MOESIM_OK)
        return err->code;
    if (s->result != NULL && moesim_fidelity_write(r, s->result, err) != MOESIM_OK)
        return err->code;
    if (s->format == MOESIM_FORMAT_JSON)
        return moesim_fidelity_print_json(r, stdout, err);
    if (s->format == MOESIM_FORMAT_CSV)
        moesim_fidelity_print_csv(r, stdout);
    else
        table(r, stdout);
    return MOESIM_OK;
}

/* The tables say it too; a script sees the exit status. */
static moesim_code judge(const moesim_fidelity_report *r, moesim_error *err)
{
    const moesim_fidelity *f = &r->main.result;
    if (f->num_same < r->main.num_cells)
        return moesim_fail(err, MOESIM_E_FORMAT, "%zu of %zu cells executed other decisions than this program makes: their "
                           "times say nothing about its predictions", r->main.num_cells - f->num_same, r->main.num_cells);
    return MOESIM_OK;
}

static moesim_code report(moesim_fidelity_settings *s, void (*table)(const moesim_fidelity_report *report, FILE *out),
                          moesim_error *err)
{
    moesim_fidelity_report r;
    s->words.profile = s->device.profile;
    s->words.decisions = s->device.decisions;
    s->words.seed = s->device.seed;
    moesim_code code = moesim_fidelity_load(&s->words, &r, err);
    if (code == MOESIM_OK)
        code = print(&r, s, table, err);
    if (code == MOESIM_OK)
        code = judge(&r, err);
    moesim_fidelity_report_fini(&r);
    return code;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------- */

static moesim_code execute(const moesim_usage *usage, const char *verb, moesim_fidelity_settings *s,
                           const moesim_fidelity_settings *initial,
                           void (*table)(const moesim_fidelity_report *report, FILE *out), moesim_error *err)
{
    char folder[TEMPORARY] = "", path[TEMPORARY + 16];
    if (moesim_fidelity_check_words(s, err) != MOESIM_OK)
        return err->code;
    if (s->device.output == NULL && make_temporary(folder, path, err) != MOESIM_OK)
        return err->code;
    const char *raw = s->device.output != NULL ? s->device.output : path;
    moesim_code code = start(usage, verb, s, initial, raw, err);
    s->words.warned = s->device.profile != NULL;     /* which it then reads in any case */
    if (code == MOESIM_OK)
        code = moesim_list_add(&s->words.raw, raw, err);
    if (code == MOESIM_OK)
        code = report(s, table, err);
    if (folder[0] != '\0') {
        (void)unlink(path);
        (void)rmdir(folder);
    }
    return code;
}

/* "a.h5,b.h5" to two paths, in place; *text owns them. */
static moesim_code split_raw(moesim_list *raw, char **text, moesim_error *err)
{
    moesim_list paths = { 0, 0, NULL };
    moesim_code code = moesim_pricing_split(raw, &paths, text, err);
    for (size_t i = 0; code == MOESIM_OK && i < paths.n; i++)
        if (paths.item[i][0] == '\0')
            code = moesim_fail(err, MOESIM_E_USAGE, "option --raw: a name is empty; write F,F");
    moesim_list_fini(raw);
    *raw = paths;
    return code;
}

moesim_code moesim_fidelity_run(const moesim_usage *usage, const char *verb, uint64_t repeat, int argc, char **argv,
                                void (*table)(const moesim_fidelity_report *report, FILE *out), moesim_error *err)
{
    moesim_fidelity_settings s, initial;
    moesim_list positional = { 0, 0, NULL };
    char *text = NULL;
    bool help = false;
    memset(&initial, 0, sizeof initial);
    moesim_device_defaults(&initial.device, repeat);
    s = initial;
    moesim_code code = moesim_args_parse(usage, argc, argv, &s, &positional, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(usage, stdout);
    if (code == MOESIM_OK && !help) {
        s.words.trace = positional.n > 0 ? positional.item[0] : NULL;
        code = split_raw(&s.words.raw, &text, err);
        if (code == MOESIM_OK && s.words.raw.n > 0)
            code = moesim_fidelity_check_raw(usage, &s, &initial, err);
        if (code == MOESIM_OK)
            code = check_files(&s, err);
        if (code == MOESIM_OK && s.words.raw.n > 0)
            code = report(&s, table, err);
        else if (code == MOESIM_OK)
            code = execute(usage, verb, &s, &initial, table, err);
    }
    moesim_list_fini(&positional);
    moesim_list_fini(&s.words.raw);
    free(text);
    moesim_list_fini(&s.words.set);
    moesim_device_words_fini(&s.device);
    return code;
}
