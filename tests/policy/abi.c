/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes and offsets of the public structs, as they were when ABI 1 was fixed (64-bit). A line may be added for a field that
 * was appended; a line that has to change means a new ABI number.
 */
#include <check.h>
#include <stddef.h>
#include <stdlib.h>

#include "moesim/policy.h"

struct field { const char *name; size_t is, was; };

#define SIZE(type, bytes) { "sizeof " #type, sizeof(type), bytes }
#define AT(type, field, bytes) { #type "." #field, offsetof(type, field), bytes }

static const struct field fields[] = {
    SIZE(moesim_option, 56),
    AT(moesim_option, name, 0),
    AT(moesim_option, type, 8),
    AT(moesim_option, offset, 12),
    AT(moesim_option, def, 16),
    AT(moesim_option, min, 24),
    AT(moesim_option, max, 32),
    AT(moesim_option, choices, 40),
    AT(moesim_option, help, 48),
    SIZE(moesim_shape, 40),
    AT(moesim_shape, size, 0),
    AT(moesim_shape, num_layers, 4),
    AT(moesim_shape, num_experts, 8),
    AT(moesim_shape, top_k, 12),
    AT(moesim_shape, block_length, 16),
    AT(moesim_shape, words, 20),
    AT(moesim_shape, max_rows, 24),
    AT(moesim_shape, expert_bytes, 32),
    SIZE(moesim_costs, 32),
    AT(moesim_costs, size, 0),
    AT(moesim_costs, cpu_tokens, 4),
    AT(moesim_costs, h2d_s, 8),
    AT(moesim_costs, cpu_s, 16),
    AT(moesim_costs, cpu_step_s, 24),
    SIZE(moesim_prior, 24),
    AT(moesim_prior, size, 0),
    AT(moesim_prior, num_requests, 4),
    AT(moesim_prior, total, 8),
    AT(moesim_prior, request, 16),
    SIZE(moesim_open, 56),
    AT(moesim_open, size, 0),
    AT(moesim_open, global_scope, 4),
    AT(moesim_open, shape, 8),
    AT(moesim_open, slots, 16),
    AT(moesim_open, costs, 24),
    AT(moesim_open, prior, 32),
    AT(moesim_open, options, 40),
    AT(moesim_open, seed, 48),
    SIZE(moesim_start, 280),
    AT(moesim_start, size, 0),
    AT(moesim_start, traits, 4),
    AT(moesim_start, slots, 8),
    AT(moesim_start, initial, 16),
    AT(moesim_start, error, 24),
    SIZE(moesim_request, 32),
    AT(moesim_request, size, 0),
    AT(moesim_request, request, 4),
    AT(moesim_request, ended, 8),
    AT(moesim_request, prompt_tokens, 12),
    AT(moesim_request, output_tokens, 16),
    AT(moesim_request, workload, 24),
    SIZE(moesim_row, 56),
    AT(moesim_row, request, 0),
    AT(moesim_row, position, 4),
    AT(moesim_row, block, 8),
    AT(moesim_row, step, 12),
    AT(moesim_row, kind, 16),
    AT(moesim_row, input, 17),
    AT(moesim_row, first, 18),
    AT(moesim_row, reserved, 19),
    AT(moesim_row, confidence, 20),
    AT(moesim_row, expert, 24),
    AT(moesim_row, gate, 32),
    AT(moesim_row, prob, 40),
    AT(moesim_row, previous, 48),
    SIZE(moesim_event, 184),
    AT(moesim_event, size, 0),
    AT(moesim_event, layer, 4),
    AT(moesim_event, clock, 8),
    AT(moesim_event, decode_passes, 16),
    AT(moesim_event, kind, 24),
    AT(moesim_event, first, 28),
    AT(moesim_event, num_rows, 32),
    AT(moesim_event, num_masked, 36),
    AT(moesim_event, slots, 40),
    AT(moesim_event, n_active, 44),
    AT(moesim_event, n_hits, 48),
    AT(moesim_event, n_misses, 52),
    AT(moesim_event, resident, 56),
    AT(moesim_event, active, 64),
    AT(moesim_event, list, 72),
    AT(moesim_event, count, 80),
    AT(moesim_event, mass, 88),
    AT(moesim_event, weighted, 96),
    AT(moesim_event, hindsight, 104),
    AT(moesim_event, class_sum, 112),
    AT(moesim_event, masked, 120),
    AT(moesim_event, next_use, 128),
    AT(moesim_event, next_active, 136),
    AT(moesim_event, touch, 144),
    AT(moesim_event, row, 152),
    AT(moesim_event, mass_total, 160),
    AT(moesim_event, weighted_total, 168),
    AT(moesim_event, hindsight_total, 176),
    SIZE(moesim_keys, 48),
    AT(moesim_keys, size, 0),
    AT(moesim_keys, n_candidates, 4),
    AT(moesim_keys, candidates, 8),
    AT(moesim_keys, moved, 16),
    AT(moesim_keys, landed, 24),
    AT(moesim_keys, value, 32),
    AT(moesim_keys, tie, 40),
    SIZE(moesim_prefetch_entry, 16),
    AT(moesim_prefetch_entry, layer, 0),
    AT(moesim_prefetch_entry, expert, 4),
    AT(moesim_prefetch_entry, priority, 8),
    SIZE(moesim_prefetch, 32),
    AT(moesim_prefetch, size, 0),
    AT(moesim_prefetch, n, 4),
    AT(moesim_prefetch, capacity, 8),
    AT(moesim_prefetch, cancel, 12),
    AT(moesim_prefetch, pause, 16),
    AT(moesim_prefetch, reserved, 20),
    AT(moesim_prefetch, entry, 24),
    SIZE(moesim_boundary, 64),
    AT(moesim_boundary, size, 0),
    AT(moesim_boundary, kind, 4),
    AT(moesim_boundary, clock, 8),
    AT(moesim_boundary, decode_passes, 16),
    AT(moesim_boundary, num_ended, 24),
    AT(moesim_boundary, num_coming, 28),
    AT(moesim_boundary, ended, 32),
    AT(moesim_boundary, coming, 40),
    AT(moesim_boundary, slots, 48),
    AT(moesim_boundary, resident, 56),
    SIZE(moesim_boundary_answer, 24),
    AT(moesim_boundary_answer, size, 0),
    AT(moesim_boundary_answer, eager, 4),
    AT(moesim_boundary_answer, slots, 8),
    AT(moesim_boundary_answer, prefetch, 16),
    SIZE(moesim_before_layer, 48),
    AT(moesim_before_layer, size, 0),
    AT(moesim_before_layer, layer, 4),
    AT(moesim_before_layer, clock, 8),
    AT(moesim_before_layer, kind, 16),
    AT(moesim_before_layer, reserved, 20),
    AT(moesim_before_layer, active, 24),
    AT(moesim_before_layer, resident, 32),
    AT(moesim_before_layer, pending, 40),
    SIZE(moesim_dispatch, 32),
    AT(moesim_dispatch, size, 0),
    AT(moesim_dispatch, n_misses, 4),
    AT(moesim_dispatch, misses, 8),
    AT(moesim_dispatch, cpu, 16),
    AT(moesim_dispatch, order, 24),
    SIZE(moesim_counter, 16),
    AT(moesim_counter, name, 0),
    AT(moesim_counter, value, 8),
    SIZE(moesim_counters, 24),
    AT(moesim_counters, size, 0),
    AT(moesim_counters, n, 4),
    AT(moesim_counters, capacity, 8),
    AT(moesim_counters, reserved, 12),
    AT(moesim_counters, counter, 16),
    SIZE(moesim_policy, 160),
    AT(moesim_policy, abi, 0),
    AT(moesim_policy, size, 4),
    AT(moesim_policy, name, 8),
    AT(moesim_policy, summary, 16),
    AT(moesim_policy, source, 24),
    AT(moesim_policy, traits, 32),
    AT(moesim_policy, order, 36),
    AT(moesim_policy, host_mode, 40),
    AT(moesim_policy, options_size, 44),
    AT(moesim_policy, options, 48),
    AT(moesim_policy, class_weight, 56),
    AT(moesim_policy, needs, 64),
    AT(moesim_policy, state_bytes, 72),
    AT(moesim_policy, open, 80),
    AT(moesim_policy, request, 88),
    AT(moesim_policy, boundary, 96),
    AT(moesim_policy, before_layer, 104),
    AT(moesim_policy, dispatch, 112),
    AT(moesim_policy, retain, 120),
    AT(moesim_policy, retain_key, 128),
    AT(moesim_policy, retain_pass, 136),
    AT(moesim_policy, victim, 144),
    AT(moesim_policy, close, 152),
};

START_TEST(test_abi)
{
    ck_assert_uint_eq(MOESIM_POLICY_ABI, 1);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        ck_assert_msg(fields[i].is == fields[i].was, "%s is %zu, was %zu in ABI 1", fields[i].name, fields[i].is,
                      fields[i].was);
}
END_TEST

/* Numbers that travel between host and policy. */
START_TEST(test_numbers)
{
    ck_assert_int_eq(MOESIM_PREFILL, 0);
    ck_assert_int_eq(MOESIM_DENOISE, 1);
    ck_assert_int_eq(MOESIM_COMMIT, 2);
    ck_assert_int_eq(MOESIM_ROW_LONG, 2);
    ck_assert_int_eq(MOESIM_NEED_PRIOR, 1 << 4);
    ck_assert_int_eq(MOESIM_NEED_COUNTS, 1 << 8);
    ck_assert_int_eq(MOESIM_NEED_PREVIOUS, 1 << 14);
    ck_assert_int_eq(MOESIM_NON_CAUSAL, 1 << 3);
    ck_assert_int_eq(MOESIM_MOVES_ALL, 1 << 4);
    ck_assert_int_eq(MOESIM_ORDER_ACTIVE, 3);
    ck_assert_int_eq(MOESIM_HOST_BELADY_POOLED, 4);
    ck_assert_int_eq(MOESIM_OPTION_CHOICE, 4);
    ck_assert_uint_eq(MOESIM_NO_ROUTE, 65535);
    ck_assert(MOESIM_NEVER == UINT64_MAX);
    ck_assert_str_eq(MOESIM_POLICY_SYMBOL, "moesim_policy_export");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("abi");
    TCase *tests = tcase_create("abi");
    tcase_add_test(tests, test_abi);
    tcase_add_test(tests, test_numbers);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
