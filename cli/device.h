/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of moesim-device replay and fidelity: one table for the executable that drives devices (no GSL, so that it may be
 * linked with CUDA) and for `moesim`, which takes them too and passes them on (cli/start.h).
 */
#ifndef MOESIM_CLI_DEVICE_H
#define MOESIM_CLI_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/args.h"
#include "base/error.h"

/* Words of `moesim-device replay` and `fidelity`. Fill with moesim_device_defaults, free with moesim_device_words_fini. */
typedef struct moesim_device_words {
    moesim_list policy, cache, bandwidth;
    const char *as, *device, *decisions, *output, *profile, *isa, *cpus;
    int mode, other;             /* enum moesim_replay_mode; 0 off, 1 on */
    moesim_range requests;
    uint64_t warmup, batch, staging, repeat, seed, threads, context, host_pool, gpu_memory, index, hidden, intermediate, window;
    double time_limit;
    bool allow_pageable, scratch;
} moesim_device_words;

extern const char *const moesim_replay_modes[], *const moesim_off_on[];

#define MOESIM_DEVICE_MAX_CELLS 4096u    /* policies × capacities × caps × repeats */

/* The rows that belong to these words, for a struct `t` that holds them as member `w`; further rows may follow. */
#define MOESIM_DEVICE_ARGS(t, w) \
    { "policy", 0, MOESIM_ARG_LIST, offsetof(t, w.policy), "P[,P…]", 0, 64, NULL, \
      "Policies whose decisions are executed, written as for moesim run." }, \
    { "cache", 0, MOESIM_ARG_LIST, offsetof(t, w.cache), "N[,N…]", 0, 64, NULL, "Capacities: experts per layer." }, \
    { "as", 0, MOESIM_ARG_STRING, offsetof(t, w.as), "MODEL", 0, 0, NULL, \
      "Experts of the sizes of a published model with as many experts and the same top-k ('moesim profile models'); default: " \
      "the sizes that the trace records." }, \
    { "device", 0, MOESIM_ARG_STRING, offsetof(t, w.device), "D", 0, 0, NULL, \
      "cuda, host or null ('moesim-device devices' lists them; default: the first of these that this program has)." }, \
    { "index", 0, MOESIM_ARG_U64, offsetof(t, w.index), "I", 0, 255, NULL, "Which GPU (default 0)." }, \
    { "mode", 0, MOESIM_ARG_CHOICE, offsetof(t, w.mode), NULL, 0, 0, moesim_replay_modes, \
      "locked: execute decisions made before (default); live: the policy decides while its events are executed." }, \
    { "other", 0, MOESIM_ARG_CHOICE, offsetof(t, w.other), NULL, 0, 0, moesim_off_on, \
      "on: execute attention, router and shared experts of --as, too (default off: experts alone)." }, \
    { "context", 0, MOESIM_ARG_U64, offsetof(t, w.context), "L", 1, 1048576, NULL, \
      "KV entries that attention reads, with --other on (default 1024)." }, \
    { "repeat", 0, MOESIM_ARG_U64, offsetof(t, w.repeat), "N", 1, 1000, NULL, \
      "Executions of each cell, in ABBA order (default: replay 1, fidelity 3)." }, \
    { "requests", 0, MOESIM_ARG_RANGE, offsetof(t, w.requests), "a:b", 0, 0, NULL, "Requests a up to but without b." }, \
    { "warmup", 0, MOESIM_ARG_U64, offsetof(t, w.warmup), "N", 0, 1e15, NULL, \
      "The first N requests run and are not counted." }, \
    { "batch", 0, MOESIM_ARG_U64, offsetof(t, w.batch), "b", 1, 256, NULL, \
      "Merge the decode passes of b requests that run at the same time (default 1)." }, \
    { "staging", 0, MOESIM_ARG_U64, offsetof(t, w.staging), "N", 1, 65536, NULL, \
      "Slots that experts go through which are not kept (default 4)." }, \
    { "bandwidth", 0, MOESIM_ARG_LIST, offsetof(t, w.bandwidth), "B[,B…]", 0, 64, NULL, \
      "Caps of the link, in GB/s or with a unit: copies are as slow as on a link of that rate. none: as it is (default)." }, \
    { "profile", 0, MOESIM_ARG_STRING, offsetof(t, w.profile), "NAME|FILE", 0, 0, NULL, \
      "What policies that read costs are told (default pcie5-default)." }, \
    { "host-pool", 0, MOESIM_ARG_BYTES, offsetof(t, w.host_pool), "BYTES", 1, 0, NULL, \
      "Experts in host memory (default: all, at most 4 GiB and a quarter of what is free); others share them." }, \
    { "gpu-memory", 0, MOESIM_ARG_BYTES, offsetof(t, w.gpu_memory), "BYTES", 1, 0, NULL, \
      "Most memory of the device to use (default: what is free, less a reserve)." }, \
    { "allow-pageable", 0, MOESIM_ARG_FLAG, offsetof(t, w.allow_pageable), NULL, 0, 0, NULL, \
      "Go on where host memory cannot be pinned; said in every output." }, \
    { "threads", 0, MOESIM_ARG_U64, offsetof(t, w.threads), "N", 1, 256, NULL, \
      "Of CPU experts (default: one a physical core that this process may use)." }, \
    { "isa", 0, MOESIM_ARG_STRING, offsetof(t, w.isa), "I", 0, 0, NULL, \
      "Instruction set of CPU experts (default: the best that this CPU has)." }, \
    { "cpus", 0, MOESIM_ARG_STRING, offsetof(t, w.cpus), "L", 0, 0, NULL, \
      "CPUs that their threads are pinned to (0-7,16), or none (default: those that this process may use)." }, \
    { "hidden", 0, MOESIM_ARG_U64, offsetof(t, w.hidden), "N", 64, 65536, NULL, \
      "Hidden size of the experts, a multiple of 64, in place of the trace's." }, \
    { "intermediate", 0, MOESIM_ARG_U64, offsetof(t, w.intermediate), "N", 64, 65536, NULL, \
      "Their intermediate size, a multiple of 64, in place of the trace's." }, \
    { "seed", 0, MOESIM_ARG_U64, offsetof(t, w.seed), "S", 0, 0, NULL, \
      "Of random policies, weights, inputs and of what is verified (default 1)." }, \
    { "window", 0, MOESIM_ARG_BYTES, offsetof(t, w.window), "BYTES", 0, 0, NULL, \
      "Memory for one decoded window of the trace (default 32MiB)." }, \
    { "time-limit", 0, MOESIM_ARG_REAL, offsetof(t, w.time_limit), "S", 0.001, 1e9, NULL, \
      "Seconds after which no further cell begins; the same command goes on later." }

/* The row of --decisions, of replay alone. */
#define MOESIM_DEVICE_DECISIONS(t, w) \
    { "decisions", 0, MOESIM_ARG_STRING, offsetof(t, w.decisions), "FILE", 0, 0, NULL, \
      "Execute this decision log (moesim run --decisions) in place of --policy and --cache." }

void moesim_device_defaults(moesim_device_words *words, uint64_t repeat);
void moesim_device_words_fini(moesim_device_words *words);

/* The command line that gives `store` (which begins as `initial`) by the rows of `args`: what differs from `initial` is added
 * to argv as "--name=value" ("--name" for flags). Rows named in `skip` (NULL-ended, may be NULL) are left out. The texts are
 * owned by *text, freed by the caller after argv was used. */
moesim_code moesim_device_argv(const moesim_arg *args, const void *store, const void *initial, const char *const *skip,
                               moesim_list *argv, char **text, moesim_error *err);

#endif
