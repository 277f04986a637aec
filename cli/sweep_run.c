/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the parts that are not finished yet. FILE.partial is a result of the finished ones, written anew after each (at first of
 * none, so that another configuration is noticed); FILE.partial.K holds the state of part K while it runs.
 */
#include "cli/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/output.h"
#include "sim/checkpoint.h"

#define PATH_CHARS 4200u

typedef struct running {
    moesim_sweep *sweep;
    moesim_result *whole;        /* attributes; tables once a part is finished */
    char partial[PATH_CHARS];    /* "" without -o */
    bool began;                  /* it was not there before */
} running;

/* ---- partial file ---------------------------------------------------------------------------------------------------- */

static moesim_code check_partial(const running *run, const moesim_result *found, moesim_error *err)
{
    char difference[600];
    const char *mine = moesim_result_get(run->whole, "shard"), *its = moesim_result_get(found, "shard");
    if (moesim_result_same(found, run->whole, difference, sizeof difference) != MOESIM_OK)
        return moesim_fail(err, MOESIM_E_USAGE, "%s is of another sweep: %s; give that configuration to go on, or remove the "
                           "file", run->partial, difference);
    if (strcmp(mine != NULL ? mine : "1/1", its != NULL ? its : "1/1") != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "%s is of shard %s; give --shard %s to go on, or remove the file", run->partial,
                           its != NULL ? its : "1/1", its != NULL ? its : "1/1");
    return MOESIM_OK;
}

/* What killed sweeps left half written. */
static void clean(const running *run)
{
    moesim_output_clean(run->partial, true);
    moesim_output_clean(run->sweep->options->output, false);
}

static moesim_code take_partial(running *run, moesim_error *err)
{
    moesim_result found;
    if (run->partial[0] == '\0')
        return MOESIM_OK;
    run->began = access(run->partial, F_OK) != 0;
    if (run->began)
        return moesim_result_write(run->whole, run->partial, err);
    moesim_error why = MOESIM_ERROR_INIT;
    moesim_code code = moesim_result_read(run->partial, &found, &why);
    if (code != MOESIM_OK)
        moesim_fail(err, code, "%s cannot be gone on with (%s); remove it to start anew, or name another file with --output",
                    run->partial, why.text);
    else
        code = check_partial(run, &found, err);
    if (code != MOESIM_OK) {
        moesim_result_fini(&found);
        return code;
    }
    clean(run);
    moesim_result_fini(run->whole);
    *run->whole = found;
    return MOESIM_OK;
}

static bool finished(const running *run, int64_t cell)
{
    const moesim_table *cells = moesim_result_find(run->whole, "cells");
    const moesim_column_data *column = cells != NULL ? moesim_table_find(cells, "cell") : NULL;
    for (size_t i = 0; column != NULL && i < cells->rows; i++)
        if (column->integer != NULL && column->integer[i] == cell)
            return true;
    return false;
}

static moesim_code add_finished(running *run, moesim_result *part, bool last, moesim_error *err)
{
    moesim_result both;
    if (run->whole->num_tables > 0) {
        const moesim_result pair[2] = { *run->whole, *part };
        static const char *const names[2] = { "what is finished", "the part just run" };
        if (moesim_result_merge(pair, names, 2, &both, err) != MOESIM_OK)
            return err->code;
    } else {
        both = *part;
        moesim_result_init(part);
    }
    moesim_result_fini(run->whole);
    *run->whole = both;
    return run->partial[0] != '\0' && !last ? moesim_result_write(run->whole, run->partial, err) : MOESIM_OK;
}

static void state_path(const running *run, size_t part, char out[PATH_CHARS + 24])
{
    snprintf(out, PATH_CHARS + 24, "%s.%zu", run->partial, part + 1);
}

static void remove_partial(const running *run)
{
    char path[PATH_CHARS + 24];
    for (size_t k = 0; k < run->sweep->num_parts; k++) {
        state_path(run, k, path);
        (void)unlink(path);
    }
    clean(run);
    if (unlink(run->partial) != 0 && errno != ENOENT)
        moesim_log(MOESIM_LOG_WARN, "%s: cannot be removed: %s", run->partial, strerror(errno));
}

/* ---- one part -------------------------------------------------------------------------------------------------------- */

moesim_run_params moesim_sweep_params(const moesim_sweep *s, const moesim_sweep_part *part)
{
    const moesim_sweep_options *o = s->options;
    moesim_run_params p;
    moesim_run_params_defaults(&p);
    moesim_modes_params(&o->modes, &p);
    p.request_begin = part->trace->request_begin;
    p.request_end = part->trace->request_end;
    p.warmup = o->warmup;
    p.batch = part->batch;
    p.staging = (uint32_t)o->staging;
    p.prefetch_budget = (uint32_t)o->prefetch_budget;
    p.threads = (uint32_t)o->threads;
    p.seed = o->seed;
    p.window_bytes = o->window;
    return p;
}

static moesim_code identify(const moesim_sweep *s, size_t part, char out[MOESIM_DIGEST_CHARS], moesim_error *err)
{
    char text[96];
    moesim_digest *d = NULL;
    if (moesim_digest_create(&d, err) != MOESIM_OK)
        return err->code;
    snprintf(text, sizeof text, "/%" PRIu64 "/%" PRIu64 "/%zu", s->shard, s->shards, part);
    moesim_digest_update(d, s->config, strlen(s->config));
    moesim_digest_update(d, text, strlen(text));
    moesim_digest_hex(d, out);
    moesim_digest_destroy(&d);
    return MOESIM_OK;
}

/* The cells of one part that are run. */
typedef struct batch {
    size_t n, *index;
    moesim_cell *cell;
    moesim_cell_result *result;
} batch;

static void batch_fini(batch *b)
{
    if (b->result != NULL)
        moesim_cell_results_fini(b->result, b->n);
    free(b->index);
    free(b->cell);
    free(b->result);
}

static moesim_code batch_init(batch *b, const moesim_sweep *s, const moesim_sweep_part *part, moesim_error *err)
{
    void *index = NULL, *cell = NULL, *result = NULL;
    moesim_code code = moesim_alloc(part->cells, sizeof *b->index, "cells", &index, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(part->cells, sizeof *b->cell, "cells", &cell, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(part->cells, sizeof *b->result, "results", &result, err);
    *b = (batch){ 0, index, cell, result };
    for (size_t k = 0; k < part->cells && code == MOESIM_OK; k++) {
        if (!moesim_sweep_mine(s, part, k))
            continue;
        const moesim_sweep_cell c = moesim_sweep_cell_at(s, part, k);
        b->index[b->n] = k;
        b->cell[b->n++] = moesim_modes_cell(&s->options->modes, c.policy, c.cache, c.bandwidth);
    }
    return code;
}

static moesim_code run_cells(const running *run, size_t k, const batch *b, moesim_error *err)
{
    const moesim_sweep *s = run->sweep;
    const moesim_sweep_part *part = &s->part[k];
    char what[64], path[PATH_CHARS + 24], identity[MOESIM_DIGEST_CHARS];
    moesim_progress progress = { .what = what };
    moesim_run_params params = moesim_sweep_params(s, part);
    const moesim_checkpoint checkpoint = { .path = path, .identity = identity, .every_s = (double)s->options->checkpoint };
    const moesim_grid grid = {
        .run = &params, .profile = part->pricing.profile, .mode = part->pricing.mode, .effects = part->pricing.effects,
        .expert_bytes = part->pricing.expert_bytes, .hidden_bytes = part->pricing.hidden_bytes, .num_cells = b->n,
        .cell = b->cell, .checkpoint = run->partial[0] != '\0' ? &checkpoint : NULL,
    };
    params.progress = &progress;
    snprintf(what, sizeof what, s->num_parts > 1 ? "sweep %zu/%zu" : "sweep", k + 1, s->num_parts);
    state_path(run, k, path);
    if (identify(s, k, identity, err) != MOESIM_OK)
        return err->code;
    return moesim_grid_run(part->trace->trace, &grid, b->result, err);
}

static moesim_code run_part(running *run, size_t k, const batch *b, bool last, moesim_error *err)
{
    moesim_result part;
    char path[PATH_CHARS + 24];
    moesim_result_init(&part);
    moesim_code code = run_cells(run, k, b, err);
    if (code == MOESIM_OK)
        code = moesim_sweep_attributes(run->sweep, &part, err);
    if (code == MOESIM_OK)
        code = moesim_sweep_tables(run->sweep, &run->sweep->part[k], b->index, b->result, b->n, &part, err);
    if (code == MOESIM_OK)
        code = add_finished(run, &part, last, err);
    moesim_result_fini(&part);
    if (code == MOESIM_OK && !last && run->partial[0] != '\0') {
        state_path(run, k, path);
        (void)unlink(path);
    }
    return code;
}

static moesim_code run_parts(running *run, moesim_error *err)
{
    const moesim_sweep *s = run->sweep;
    moesim_code code = MOESIM_OK;
    for (size_t k = 0; k < s->num_parts && code == MOESIM_OK; k++) {
        batch b = { 0 };
        code = batch_init(&b, s, &s->part[k], err);
        if (code == MOESIM_OK && b.n > 0 && !finished(run, (int64_t)(s->part[k].first + b.index[0])))
            code = run_part(run, k, &b, k + 1 == s->num_parts, err);
        batch_fini(&b);
    }
    return code;
}

moesim_code moesim_sweep_run(moesim_sweep *s, moesim_result *out, moesim_error *err)
{
    running run = { .sweep = s, .whole = out };
    const char *output = s->options->output;
    if (output != NULL && strlen(output) + sizeof ".partial" > sizeof run.partial)
        return moesim_fail(err, MOESIM_E_USAGE, "option -o: the name is longer than %u bytes", PATH_CHARS);
    if (output != NULL)
        snprintf(run.partial, sizeof run.partial, "%s.partial", output);
    moesim_code code = moesim_sweep_attributes(s, out, err);
    if (code == MOESIM_OK)
        code = take_partial(&run, err);
    if (code == MOESIM_OK)
        code = run_parts(&run, err);
    if (code == MOESIM_E_INTERRUPTED && output != NULL)
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted; the same command goes on with what %s holds", run.partial);
    if (code == MOESIM_OK && output != NULL)
        code = moesim_result_write(out, output, err);
    /* words that cannot work together are found when the parts begin: nothing is there to go on with */
    const bool void_of_work = code == MOESIM_E_USAGE && run.began && out->num_tables == 0;
    if (output != NULL && (code == MOESIM_OK || void_of_work))
        remove_partial(&run);
    return code;
}
