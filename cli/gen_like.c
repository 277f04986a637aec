/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace gen --like: measuring the trace, and the two-sample check.
 */
#include "cli/gen_like.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/paths.h"
#include "cli/cli.h"
#include "cli/gen_report.h"
#include "cli/print.h"

typedef struct table { uint32_t n[3]; } table;     /* lines by verdict */

moesim_code moesim_gen_like_read(const char *path, bool old_format, const char *out, moesim_gen_config *config,
                                 moesim_trace_stats *stats, moesim_error *err)
{
    const moesim_named_file in = { "option --like", path }, to = { "the new trace", out };
    moesim_trace *trace = NULL;
    moesim_code code = moesim_check_outputs(&in, 1, &to, 1, err);
    if (code == MOESIM_OK)
        code = moesim_cli_open_trace(path, old_format, &trace, err);
    if (code == MOESIM_OK)
        code = moesim_gen_like_measure(trace, config, stats, err);
    moesim_trace_close(&trace);
    return code;
}

static void print_line(void *cookie, const moesim_gen_line *line)
{
    table *t = cookie;
    const double value[] = { line->trace, line->generated, line->tolerance };
    t->n[line->verdict]++;
    printf("%-44s", line->what);
    for (size_t i = 0; i < sizeof value / sizeof value[0]; i++)
        if (isfinite(value[i]))
            printf(" %8.3f", value[i]);
        else
            printf(" %8s", "-");
    printf(" %s\n", moesim_gen_verdicts[line->verdict]);
}

static moesim_code compare(moesim_trace *trace, const moesim_gen_config *c, const moesim_trace_stats *aim,
                           moesim_trace_stats *got, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    table t = { { 0 } };
    const moesim_code code = moesim_trace_stats_groups(trace, got, MOESIM_GEN_GROUPS, NULL, err);
    if (code != MOESIM_OK)
        return code;
    moesim_gen_print_file(info, c->seed);
    fputs("like ", stdout);
    moesim_print_clean(stdout, c->like->info.path);
    printf("\nSHA-256 %s\n%-44s %8s %8s %8s\n", c->like->info.digest, "", "trace", "made", "within");
    const uint32_t apart = moesim_gen_compare(aim, got, print_line, &t);
    if (apart + t.n[MOESIM_GEN_ALIKE] == 0)
        printf("two-sample check tells nothing: all %" PRIu32 " with too few samples; raise --requests\n", t.n[MOESIM_GEN_FEW]);
    else
        printf("two-sample check %s: %" PRIu32 " alike, %" PRIu32 " apart, %" PRIu32 " with too few samples to tell\n",
               apart == 0 ? "passed" : "FAILED", t.n[MOESIM_GEN_ALIKE], apart, t.n[MOESIM_GEN_FEW]);
    if (apart == 0)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: not like %s: %" PRIu32 " marked APART above; the "
                       "file stays, but says nothing of that trace", info->path, c->like->info.path, apart);
}

moesim_code moesim_gen_like_check(const char *out, const moesim_gen_config *config, const moesim_trace_stats *stats,
                                  moesim_error *err)
{
    moesim_trace *trace = NULL;
    moesim_trace_stats got[MOESIM_GEN_GROUPS] = { 0 };
    moesim_code code = moesim_cli_open_trace(out, false, &trace, err);
    if (code == MOESIM_OK)
        code = compare(trace, config, stats, got, err);
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++)
        moesim_trace_stats_fini(&got[g]);
    moesim_trace_close(&trace);
    return code;
}

void moesim_gen_like_release(moesim_gen_config *config, moesim_trace_stats *stats)
{
    moesim_gen_like_destroy(config);
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++)
        moesim_trace_stats_fini(&stats[g]);
}
