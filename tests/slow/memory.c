/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak memory over a long trace: generates a trace of many events, runs the command on it as a user would and reads the peak
 * resident size that the system recorded for that process. usage: memory MOESIM [EVENTS]; slow tier.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/support.h"

#define LAYERS 20u
#define EXPERTS 256u
#define TOP_K 2u
#define ROWS 4u
#define PASSES 16u               /* of one block */
#define LIMIT_KIB (256l * 1024)

extern char **environ;

/* Rows of one pass, their routes drawn anew in part. */
static void draw(moesim_rng *rng, uint16_t *ids, float *gate, float *confidence)
{
    for (size_t i = 0; i < (size_t)ROWS * LAYERS * TOP_K; i += TOP_K) {
        if (moesim_rng_below(rng, 4) == 0)
            ids[i] = (uint16_t)moesim_rng_below(rng, EXPERTS);
        ids[i + 1] = (uint16_t)((ids[i] + 1 + moesim_rng_below(rng, 8)) % EXPERTS);
        gate[i] = 0.75f;
        gate[i + 1] = 0.25f;
    }
    for (size_t r = 0; r < ROWS; r++)
        confidence[r] = (float)moesim_rng_below(rng, 1024) / 1024.0f;
}

static void write_blocks(moesim_writer *w, uint64_t requests, moesim_error *err)
{
    uint16_t ids[ROWS * LAYERS * TOP_K] = {0};
    float gate[ROWS * LAYERS * TOP_K], confidence[ROWS];
    uint8_t state[ROWS];
    int32_t position[ROWS];
    moesim_rng rng;
    moesim_rng_seed(&rng, 1);
    for (uint64_t q = 0; q < requests; q++)
        for (uint32_t step = 0; step < PASSES; step++) {
            draw(&rng, ids, gate, confidence);
            for (uint32_t r = 0; r < ROWS; r++) {
                uint32_t when = PASSES / ROWS * (r + 1) - 1;
                state[r] = step < when ? 0 : step == when ? 1 : 2;
                position[r] = (int32_t)r;
            }
            moesim_pass pass = {.forward = q * PASSES + step, .request = (uint32_t)q, .step = (int32_t)step, .kind = 1};
            moesim_rows rows = {.end = ROWS, .expert = ids, .gate = gate, .confidence = confidence, .state = state,
                                .position = position};
            if (moesim_writer_pass(w, &pass, &rows, 0, err) != MOESIM_OK)
                test_die("%s", err->text);
        }
}

static void generate(const char *path, uint64_t events)
{
    moesim_error err = MOESIM_ERROR_INIT;
    struct test_trace t;
    moesim_writer *w = NULL;
    uint64_t requests = events / (LAYERS * PASSES);
    moesim_trace_request request = {.workload = "long", .output_tokens = ROWS, .output_tokens_known = true};
    test_trace_init(&t, LAYERS, EXPERTS, TOP_K, ROWS);
    t.info.has_output_tokens = true;
    moesim_code code = moesim_writer_create(path, &t.info, t.layer_ids, t.expert_bytes, NULL, &w, &err);
    for (uint64_t q = 0; q < requests && code == MOESIM_OK; q++)
        code = moesim_writer_request(w, &request, &err);
    if (code == MOESIM_OK)
        write_blocks(w, requests, &err);
    if (code != MOESIM_OK || moesim_writer_finish(&w, &err) != MOESIM_OK)
        test_die("%s", err.text);
    test_trace_fini(&t);
}

/* In a process of its own: a child's peak includes what its parent held when it was started. */
static void generate_apart(const char *path, uint64_t events)
{
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        generate(path, events);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        test_die("the trace could not be generated");
}

/* Returns the peak in KiB. */
static long run(char *const argv[])
{
    pid_t child;
    int status = 0;
    struct rusage usage;
    if (posix_spawn(&child, argv[0], NULL, NULL, argv, environ) != 0 || wait4(child, &status, 0, &usage) != child)
        test_die("%s cannot be run", argv[0]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        test_die("%s ended with status %d", argv[0], status);
    return usage.ru_maxrss;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        test_die("usage: memory MOESIM [EVENTS]");
    uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 5000000;
    const char *path = test_path("long.h5");
    char *file = NULL, policies[] = "lru,oled,belady";
    if (asprintf(&file, "%s", path) < 0)
        test_die("no memory");
    generate_apart(path, events);
    char *command[] = {argv[1], "run", file, "--policy", policies, "--cache", "40,100", "--threads", "2", NULL};
    long peak = run(command);
    free(file);
    printf("%llu events: peak %ld KiB, limit %ld KiB\n", (unsigned long long)events, peak, LIMIT_KIB);
    return peak < LIMIT_KIB ? 0 : 1;
}
