/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of measuring, shared by both programs.
 */
#include "cli/measure.h"

#define AT(member) offsetof(moesim_measure_settings, member)

static const char *const off_on[] = { "off", "on", NULL };

const moesim_arg moesim_measure_args[] = {
    { .name = "device", .type = MOESIM_ARG_STRING, .offset = AT(device), .value = "NAME",
      .help = "What to measure: cuda (a GPU) or host (its memory is host memory, its link a copying thread: runs anywhere)." },
    { .name = "as", .type = MOESIM_ARG_STRING, .offset = AT(as), .value = "MODEL",
      .help = "Whose experts are copied and computed; 'moesim profile models' lists the names." },
    { .name = "output", .letter = 'o', .type = MOESIM_ARG_STRING, .offset = AT(output), .value = "FILE",
      .help = "Where the raw samples go: HDF5, complete or not at all." },
    { .name = "quick", .type = MOESIM_ARG_FLAG, .offset = AT(quick),
      .help = "Fewer points and 10 samples each (more with --rounds) instead of 30, for a first look; a profile fitted to them "
              "is provisional." },
    { .name = "rounds", .type = MOESIM_ARG_U64, .offset = AT(rounds), .value = "N", .min = 1, .max = 30,
      .help = "Go through all points so often in each of the two sweeps, with a share of the samples each time: spreads the "
              "samples of every point over the whole sweep, for a machine that others disturb. 1 is the default." },
    { .name = "threads", .type = MOESIM_ARG_U64, .offset = AT(threads), .value = "N", .min = 1, .max = 256,
      .help = "Most CPU threads; one a physical core that this process may use is the default. Fewer are measured too." },
    { .name = "isa", .type = MOESIM_ARG_STRING, .offset = AT(isa), .value = "NAME",
      .help = "Instruction set of CPU experts: plain, avx2, avx512, avx512bf16, amx; the last of them that this CPU has is the "
              "default." },
    { .name = "cpus", .type = MOESIM_ARG_STRING, .offset = AT(cpus), .value = "LIST",
      .help = "Where the threads are pinned, such as 0-7,16; none: not pinned." },
    { .name = "host-pool", .type = MOESIM_ARG_BYTES, .offset = AT(host_pool), .value = "BYTES", .min = 1,
      .help = "Experts in host memory, much more than the last cache holds; 2GiB (host: 512MiB) is the default." },
    { .name = "gpu-memory", .type = MOESIM_ARG_BYTES, .offset = AT(gpu_memory), .value = "BYTES", .min = 1,
      .help = "Slots in device memory; room for 320 experts (host: 64) and for 512MiB is the default. Grouped calls take no "
              "more." },
    { .name = "other", .type = MOESIM_ARG_CHOICE, .offset = AT(other), .choices = off_on,
      .help = "off: measure neither attention, router and shared expert nor the LM head; their constants become 0. Default "
              "on." },
    { .name = "context", .type = MOESIM_ARG_U64, .offset = AT(context), .value = "N", .min = 1, .max = 1 << 20,
      .help = "Tokens of KV cache that attention reads; 1024 is the default." },
    { .name = "index", .type = MOESIM_ARG_U64, .offset = AT(index), .value = "N", .min = 0, .max = 255,
      .help = "Which GPU; 0 is the default." },
    { .name = "allow-pageable", .type = MOESIM_ARG_FLAG, .offset = AT(allow_pageable),
      .help = "Go on, with a warning, where host memory cannot be pinned." },
    { .name = "hidden", .type = MOESIM_ARG_U64, .offset = AT(hidden), .value = "N", .min = 64, .max = 65536,
      .help = "Instead of the model's hidden size; a multiple of 64." },
    { .name = "intermediate", .type = MOESIM_ARG_U64, .offset = AT(intermediate), .value = "N", .min = 64, .max = 65536,
      .help = "Instead of the model's intermediate size of one expert; a multiple of 64." },
    { .name = NULL },
};
