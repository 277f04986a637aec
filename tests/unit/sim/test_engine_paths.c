/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths that must agree: the path a policy declares and the generic one, whole and in pieces, for every registered policy;
 * and identities of the sums.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "policies/registry.h"
#include "sim/instance.h"
#include "tests/unit/sim/hand.h"

static const struct shape { uint32_t steps, layers, experts, rows, top_k, pool; } shapes[] = {
    {40, 3, 1, 1, 1, 1},    {60, 2, 5, 2, 2, 5},     {60, 3, 64, 4, 4, 20},  {60, 2, 100, 6, 5, 40},
    {60, 3, 256, 16, 8, 50}, {30, 2, 300, 8, 8, 90}, {20, 1, 1024, 32, 16, 500},
};

static const double *class_weights(void)
{
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++)
        if ((*p)->class_weight != NULL)
            return (*p)->class_weight;
    return NULL;
}

/* Several requests, each beginning with a prefill; the first one warms up. */
static void make(struct hand *h, const struct shape *s, uint64_t seed)
{
    hand_init(h, s->steps, s->layers, s->experts, s->rows, s->top_k);
    h->class_weight = class_weights();
    h->warmup = 1;
    for (uint32_t i = 0; i < s->steps; i++) {
        h->request[i] = i * 4u / s->steps;
        if (i == 0 || h->request[i] != h->request[i - 1])
            h->kind[i] = MOESIM_PREFILL;
        else if (i % 7 == 6)
            h->kind[i] = MOESIM_COMMIT;
    }
    for (uint32_t l = 0; l < s->layers; l++)
        h->expert_bytes[l] = 1000u + 10u * l;
    hand_random(h, &(struct hand_law){s->pool, 0.3, 0.2}, seed);
    hand_build(h);
}

static void same_outcome(const moesim_outcome *a, const moesim_outcome *b, const char *what)
{
    ck_assert_msg(memcmp(&a->total, &b->total, sizeof a->total) == 0, "%s: sums differ: misses %g and %g", what,
                  a->total.misses, b->total.misses);
    ck_assert_uint_eq(a->num_requests, b->num_requests);
    ck_assert_msg(memcmp(a->request, b->request, a->num_requests * sizeof *a->request) == 0, "%s: requests differ", what);
    ck_assert_uint_eq(a->num_layers, b->num_layers);
    ck_assert_msg(memcmp(a->layer, b->layer, a->num_layers * sizeof *a->layer) == 0, "%s: layers differ", what);
    ck_assert_uint_eq(a->evictions, b->evictions);
    ck_assert_uint_eq(a->insertions, b->insertions);
    ck_assert_uint_eq(a->all_hits, b->all_hits);
    ck_assert_uint_eq(a->read_bytes, b->read_bytes);
    ck_assert_uint_eq(a->pending, b->pending);
    ck_assert_uint_eq(a->refused, b->refused);
    ck_assert_msg(memcmp(&a->ratio_p95, &b->ratio_p95, sizeof a->ratio_p95) == 0, "%s: p95 differs", what);
}

/* Layers add up to the total, in every column. */
static void check_layers(const moesim_outcome *out, const struct hand *h)
{
    moesim_layer_sums sum = {0};
    ck_assert_uint_eq(out->num_layers, h->layers);
    for (uint32_t l = 0; l < h->layers; l++) {
        const moesim_layer_sums *s = &out->layer[l];
        ck_assert_uint_eq(s->events, (uint64_t)out->total.passes);
        ck_assert_uint_eq(s->active, s->hits + s->misses);
        ck_assert_uint_eq(s->misses, s->moved + s->cpu);
        ck_assert_uint_eq(s->moved_bytes, s->moved * h->expert_bytes[l]);
        sum.events += s->events;
        sum.active += s->active;
        sum.hits += s->hits;
        sum.moved += s->moved;
        sum.cpu += s->cpu;
        sum.moved_bytes += s->moved_bytes;
    }
    ck_assert_double_eq((double)sum.events, out->total.events);
    ck_assert_double_eq((double)sum.active, out->total.active);
    ck_assert_double_eq((double)sum.hits, out->total.hits);
    ck_assert_double_eq((double)sum.moved, out->total.moved);
    ck_assert_double_eq((double)sum.cpu, out->total.cpu);
    ck_assert_double_eq((double)sum.moved_bytes, out->total.moved_bytes);
}

/* Requests add up to the total; transfers to what became of them. */
static void check_identities(const moesim_instance *in, const moesim_outcome *out, const struct hand *h, const char *what)
{
    moesim_sums sum = {0};
    for (uint32_t r = 0; r < out->num_requests; r++) {
        sum.hits += out->request[r].hits;
        sum.active += out->request[r].active;
        sum.unused += out->request[r].unused;
        sum.transfers_used += out->request[r].transfers_used;
        sum.passes += out->request[r].passes;
        ck_assert_uint_eq(out->request_id[r], h->warmup + r);
    }
    check_layers(out, h);
    ck_assert_double_eq(sum.hits, out->total.hits);
    ck_assert_double_eq(sum.active, out->total.active);
    ck_assert_double_eq(sum.unused, out->total.unused);
    ck_assert_double_eq(sum.transfers_used, out->total.transfers_used);
    ck_assert_double_eq(sum.passes, out->total.passes);
    ck_assert_double_eq(out->total.hits + out->total.misses, out->total.active);
    ck_assert_double_ge(out->total.transfers_judged, out->total.transfers_used);
    if (in->account.free_reload)
        return;
    const double fate = out->total.unused + (double)in->account.used + (double)out->pending;
    ck_assert_msg(out->total.moved + out->total.prefetched == fate, "%s: %g transfers, %g fates", what,
                  out->total.moved + out->total.prefetched, fate);
}

/* pieces > 1: the window is handed over in so many parts. */
static void run(const struct hand *h, const moesim_config *config, const moesim_run_params *params, uint32_t pieces,
                moesim_outcome *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_instance *in;
    memset(out, 0, sizeof *out);
    ck_assert_msg(moesim_instance_create(&h->shape, params, config, &in, &err) == MOESIM_OK, "%s", err.text);
    for (uint32_t p = 0; p < pieces; p++) {
        const uint32_t from = h->steps * p / pieces, to = h->steps * (p + 1) / pieces;
        moesim_window w = h->window;
        const size_t events = (size_t)from * h->layers;
        w.num_steps = to - from;
        w.step += from;
        w.active += events * w.words;
        w.list_begin += events;
        w.mass_total += events;
        w.weighted_total += events;
        w.hindsight_total += events;
        w.next_active = to < h->steps ? h->window.active + (size_t)to * h->layers * w.words : h->window.next_active;
        ck_assert_msg(moesim_instance_advance(in, &w, &err) == MOESIM_OK, "%s", err.text);
    }
    ck_assert_msg(moesim_instance_finish(in, out, &err) == MOESIM_OK, "%s", err.text);
    check_identities(in, out, h, config->label);
    moesim_instance_destroy(&in);
}

/* Windows built by hand come without a profile and without another trace. */
static bool can_run(const moesim_policy_spec *spec)
{
    const uint32_t needs = spec->policy->needs != NULL ? spec->policy->needs(spec->options) : 0;
    return (needs & (MOESIM_NEED_COSTS | MOESIM_NEED_PRIOR)) == 0;
}

START_TEST(test_declared_is_generic)
{
    struct hand h;
    make(&h, &shapes[_i], 7u + (uint64_t)_i);
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++) {
        moesim_policy_spec spec;
        moesim_error err = MOESIM_ERROR_INIT;
        ck_assert_msg(moesim_policy_spec_init(&spec, (*p)->name, &err) == MOESIM_OK, "%s", err.text);
        const uint32_t caches[] = {0, 1, h.experts / 8, h.experts / 3, h.experts / 2, h.experts};
        for (size_t c = 0; can_run(&spec) && c < sizeof caches / sizeof *caches; c++) {
            moesim_run_params params, generic;
            moesim_run_params_defaults(&params);
            params.warmup = h.warmup;
            params.seed = 3;
            generic = params;
            generic.generic = true;
            const moesim_config config = {.policy = spec.policy, .options = spec.options, .label = (*p)->name,
                                          .cache = caches[c]};
            moesim_outcome a, b, pieces;
            run(&h, &config, &params, 1, &a);
            run(&h, &config, &generic, 1, &b);
            run(&h, &config, &params, 3, &pieces);
            same_outcome(&a, &b, (*p)->name);
            same_outcome(&a, &pieces, (*p)->name);
            moesim_outcome_fini(&a);
            moesim_outcome_fini(&b);
            moesim_outcome_fini(&pieces);
        }
        moesim_policy_spec_fini(&spec);
    }
    hand_fini(&h);
}
END_TEST

/* Residency of every step, by the generic path and by the declared one. */
START_TEST(test_residency_step_by_step)
{
    static const char *const names[] = {"lru", "naive", "lfu", "belady", "belady-forced"};
    struct hand h;
    make(&h, &shapes[4], 99);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        moesim_policy_spec spec;
        moesim_error err = MOESIM_ERROR_INIT;
        ck_assert(moesim_policy_spec_init(&spec, names[n], &err) == MOESIM_OK);
        moesim_run_params params;
        moesim_instance *in[2];
        moesim_run_params_defaults(&params);
        const moesim_config config = {.policy = spec.policy, .options = spec.options, .label = names[n], .cache = 45};
        for (int i = 0; i < 2; i++) {
            params.generic = i == 1;
            ck_assert(moesim_instance_create(&h.shape, &params, &config, &in[i], &err) == MOESIM_OK);
        }
        for (uint32_t s = 0; s < h.steps; s++) {
            moesim_window w = h.window;
            w.num_steps = 1;
            w.step += s;
            w.active += (size_t)s * h.layers * w.words;
            w.list_begin += (size_t)s * h.layers;
            for (int i = 0; i < 2; i++)
                ck_assert(moesim_instance_advance(in[i], &w, &err) == MOESIM_OK);
            ck_assert_mem_eq(in[0]->resident, in[1]->resident, h.layers * w.words * sizeof(uint64_t));
        }
        moesim_instance_destroy(&in[0]);
        moesim_instance_destroy(&in[1]);
        moesim_policy_spec_fini(&spec);
    }
    hand_fini(&h);
}
END_TEST

/* Merged steps: members share a step's sums equally, the total is the whole. */
START_TEST(test_merged_members_share)
{
    struct hand h;
    hand_init(&h, 4, 1, 4, 1, 2);
    hand_set(&h, 0, "01");
    hand_set(&h, 1, "23");
    hand_set(&h, 2, "01");
    hand_set(&h, 3, "01");
    hand_build(&h);
    /* the first two steps belong to requests 0 and 1, the others to request 1 alone */
    moesim_member member[6] = {{.request = 0, .starts = 1}, {.request = 1, .starts = 1}, {.request = 0, .ends = 1},
                               {.request = 1}, {.request = 1}, {.request = 1, .ends = 1, .committed = 3}};
    moesim_window w = h.window;
    w.member = member;
    for (uint32_t s = 0; s < 4; s++) {
        w.step[s].member = s < 2 ? 2 * s : s + 2;
        w.step[s].num_requests = s < 2 ? 2 : 1;
    }
    moesim_policy_spec spec;
    moesim_run_params params;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_instance *in;
    moesim_outcome out = {.num_requests = 0};
    moesim_run_params_defaults(&params);
    ck_assert(moesim_policy_spec_init(&spec, "lru", &err) == MOESIM_OK);
    const moesim_config config = {.policy = spec.policy, .label = "lru", .cache = 2};
    ck_assert(moesim_instance_create(&h.shape, &params, &config, &in, &err) == MOESIM_OK);
    ck_assert(moesim_instance_advance(in, &w, &err) == MOESIM_OK);
    ck_assert(moesim_instance_finish(in, &out, &err) == MOESIM_OK);
    ck_assert_uint_eq(out.num_requests, 2);
    ck_assert_double_eq(out.request[0].passes, 1);
    ck_assert_double_eq(out.request[1].passes, 3);
    ck_assert_double_eq(out.request[0].misses, 2);
    ck_assert_double_eq(out.request[1].misses, 4);
    ck_assert_double_eq(out.total.misses, 6);
    /* {0,1} of step 0 leave unused in step 1, {2,3} of step 1 in step 2: two owners each time */
    ck_assert_double_eq(out.request[0].unused, 2);
    ck_assert_double_eq(out.request[1].unused, 2);
    ck_assert_double_eq(out.total.unused, 4);
    ck_assert_double_eq(out.total.hits, 2);
    ck_assert_uint_eq(out.pending, 0);
    ck_assert_double_eq(out.request[1].output_tokens, 3);
    moesim_outcome_fini(&out);
    moesim_instance_destroy(&in);
    moesim_policy_spec_fini(&spec);
    hand_fini(&h);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine paths");
    TCase *tc = tcase_create("paths");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_declared_is_generic, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tc, test_residency_step_by_step);
    tcase_add_test(tc, test_merged_members_share);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
