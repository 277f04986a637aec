/* SPDX-License-Identifier: Apache-2.0
 *
 * See shapes.h.
 */
#include "tests/property/shapes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t property_seeds, property_first = 1;

static uint32_t between(moesim_rng *rng, uint32_t low, uint32_t high)
{
    return low + moesim_rng_below(rng, high - low + 1);
}

static bool half(moesim_rng *rng)
{
    return moesim_rng_below(rng, 2) == 0;
}

struct test_shape property_shape(moesim_rng *rng)
{
    static const uint32_t most[] = {1, 2, 8, 8, 20, 20, 64, 65, 130, 1024};
    struct test_shape s = {.layers = between(rng, 1, 3)};
    s.experts = between(rng, 1, most[moesim_rng_below(rng, sizeof most / sizeof most[0])]);
    s.top_k = between(rng, 1, s.experts < 8 ? s.experts : 8);
    if (s.experts >= 64 && moesim_rng_below(rng, 3) == 0)
        s.top_k = between(rng, 1, 64);
    s.block_length = between(rng, 1, 6);
    s.requests = between(rng, 1, 4);
    s.blocks = between(rng, 1, 3);
    s.prefill_rows = half(rng) ? 0 : between(rng, 1, 12);
    s.max_steps = between(rng, 1, 5);
    s.commit_passes = half(rng);
    s.empty_passes = half(rng);
    s.dummy_passes = half(rng);
    s.unused_slots = half(rng);
    s.edits = half(rng);
    s.interleave = half(rng);
    s.forward_groups = s.interleave && half(rng) ? between(rng, 2, 4) : 0;
    s.redraw = moesim_rng_real(rng);
    return s;
}

moesim_run_params property_params(moesim_rng *rng, const struct test_shape *shape)
{
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    if (half(rng))
        params.request_begin = moesim_rng_below(rng, shape->requests);
    if (half(rng))
        params.request_end = between(rng, (uint32_t)params.request_begin + 1, shape->requests);
    if (params.request_end > shape->requests)
        params.request_end = shape->requests;
    params.warmup = half(rng) ? 0 : moesim_rng_below(rng, (uint32_t)(params.request_end - params.request_begin));
    params.batch = shape->forward_groups > 1 || half(rng) ? 1 : between(rng, 1, 4);
    return params;
}

const char *property_case(uint64_t seed, const struct test_shape *s, const moesim_run_params *p)
{
    static char text[512];
    snprintf(text, sizeof text, "seed %llu (M %u E %u K %u B %u, %u requests of %u blocks, prefill %u, commit %d, empty %d, "
             "interleave %d, forward %u; --requests %llu:%llu --warmup %llu --batch %u)", (unsigned long long)seed, s->layers,
             s->experts, s->top_k, s->block_length, s->requests, s->blocks, s->prefill_rows, s->commit_passes, s->empty_passes,
             s->interleave, s->forward_groups, (unsigned long long)p->request_begin, (unsigned long long)p->request_end,
             (unsigned long long)p->warmup, p->batch);
    return text;
}

int property_main(int argc, char **argv, const char *name, const struct TTest *test, uint64_t default_seeds)
{
    property_seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : default_seeds;
    property_first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 7200);
    tcase_add_test(tc, test);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
