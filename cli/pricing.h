/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands that tell time share: the words of the command line that say how a trace is priced (mode, profile,
 * overrides, switches, another model's sizes) and what they come to for one trace.
 */
#ifndef MOESIM_CLI_PRICING_H
#define MOESIM_CLI_PRICING_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "base/args.h"
#include "cli/profile.h"
#include "policies/registry.h"
#include "sim/costing.h"
#include "traces/trace.h"

/* As given; -1 and NULL: not given. */
typedef struct moesim_pricing_words {
    int time;                    /* enum moesim_time_mode */
    const char *profile;
    moesim_list set, without;    /* each word may hold several, separated by commas */
    const char *as;
    int dtype;                   /* enum moesim_dtype, with `as` */
    bool bandwidth;              /* a bandwidth was given, which needs time too */
} moesim_pricing_words;

#define MOESIM_PRICED_AS_CHARS 800u

typedef struct moesim_pricing {
    enum moesim_time_mode mode;
    moesim_profile *profile;     /* owned; NULL in count mode */
    uint32_t effects;
    const moesim_geometry *model;    /* NULL without --as */
    enum moesim_dtype dtype;     /* of model */
    uint64_t *expert_bytes;      /* [M] owned; NULL: the trace's */
    uint64_t hidden_bytes;
    char priced_as[MOESIM_PRICED_AS_CHARS];    /* "routing of X priced as Y (N layers there, M here)"; mode paper:
                                               "… with the times of Z"; "" without */
} moesim_pricing;

extern const char *const moesim_time_names[];      /* count, paper, model */

/* Checks the words against each other and the trace. USAGE: words that cannot take effect, experts or top-k that differ from
 * those of the model, a trace without hidden size. Release with fini, also after an error. */
moesim_code moesim_pricing_load(const moesim_pricing_words *words, const moesim_trace_info *trace, moesim_pricing *out,
                                moesim_error *err);
void moesim_pricing_fini(moesim_pricing *pricing);

/* The split words of --set (they point into a copy that *text owns; free it). */
moesim_code moesim_pricing_split(const moesim_list *words, moesim_list *out, char **text, moesim_error *err);

/* Does the policy read costs, which counts do not have? The format of the message takes its name. */
bool moesim_pricing_missing(const moesim_policy_spec *spec);
#define MOESIM_PRICING_MISSING \
    "policy %s divides misses by what they cost, which counts do not tell; give --profile or --time model"

/* "provisional": what must be said wherever numbers of such a profile are shown; "" for measured ones. */
const char *moesim_pricing_caution(const moesim_pricing *pricing);

/* At most 80 columns a line: mode, profile, label, switches, priced_as. */
void moesim_pricing_print(const moesim_pricing *pricing, FILE *out);

/* Adds time, profile, without, priced_as to an object; nothing in count mode without --as. */
void moesim_pricing_json(const moesim_pricing *pricing, json_t *object);

#endif
