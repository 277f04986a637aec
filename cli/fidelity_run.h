/* SPDX-License-Identifier: Apache-2.0
 *
 * What `moesim replay` and `moesim fidelity` share around their reports: words, the device's part, outputs.
 */
#ifndef MOESIM_CLI_FIDELITY_RUN_H
#define MOESIM_CLI_FIDELITY_RUN_H

#include "cli/device.h"
#include "cli/fidelity.h"
#include "cli/print.h"

typedef struct moesim_fidelity_settings {
    moesim_device_words device;
    moesim_fidelity_words words;
    int format;                  /* enum moesim_format */
    const char *csv, *markdown, *result;
} moesim_fidelity_settings;

/* Rows of both commands beside those of the device; `S` is moesim_fidelity_settings. */
#define MOESIM_REPORT_ARGS(S) \
    { "output", 'o', MOESIM_ARG_STRING, offsetof(S, device.output), "FILE", 0, 0, NULL, \
      "Keep the raw file (every event of every execution). One of the same grid that exists is gone on with." }, \
    { "raw", 0, MOESIM_ARG_LIST, offsetof(S, words.raw), "F[,F…]", 0, MOESIM_MOST_RAW, NULL, \
      "Execute nothing: report on raw files made before, here or with moesim-device; parts of one grid become one. " \
      "--profile is then the one that predicts." }, \
    { "told", 0, MOESIM_ARG_STRING, offsetof(S, words.told), "NAME", 0, 0, NULL, \
      "With --raw: the profile that the policies were told when they decided, where it is not under the path that the raw " \
      "file records (by default --profile or a built-in one is taken if it is the same, by digest)." }, \
    { "set", 0, MOESIM_ARG_LIST, offsetof(S, words.set), "K=V[,K=V…]", 0, 0, NULL, \
      "Override constants of the profile that predicts." }, \
    { "format", 0, MOESIM_ARG_CHOICE, offsetof(S, format), NULL, 0, 0, moesim_formats, "What is printed (default: table)." }, \
    { "csv", 0, MOESIM_ARG_STRING, offsetof(S, csv), "FILE", 0, 0, NULL, "Write the cells as CSV to a file as well." }, \
    { "markdown", 0, MOESIM_ARG_STRING, offsetof(S, markdown), "FILE", 0, 0, NULL, \
      "Write the tables as Markdown to a file as well." }, \
    { "result", 0, MOESIM_ARG_STRING, offsetof(S, result), "FILE", 0, 0, NULL, \
      "Write the cells to a result file, for moesim plot (figures fidelity, fidelity-miss, residuals)." }

/* fidelity_before.c. With --raw: refuses options of executing, which `s` has and `initial` (the defaults) has not. */
moesim_code moesim_fidelity_check_raw(const moesim_usage *usage, const moesim_fidelity_settings *s,
                                      const moesim_fidelity_settings *initial, moesim_error *err);

/* Without --raw: refuses what would only be found once everything has been executed (--profile and --set, --calibrate,
 * --witness). */
moesim_code moesim_fidelity_check_words(const moesim_fidelity_settings *s, moesim_error *err);

/* Executes (unless --raw), reports, prints with `table` where a table is asked for. verb: of moesim-device. */
moesim_code moesim_fidelity_run(const moesim_usage *usage, const char *verb, uint64_t repeat, int argc, char **argv,
                                void (*table)(const moesim_fidelity_report *report, FILE *out), moesim_error *err);

#endif
