# SPDX-License-Identifier: Apache-2.0
"""SGLang's per_token dumps, synthesised from the fields of its recorder: requests, blocks, steps and states come back."""
import os
import unittest
from pathlib import Path

import numpy as np

from convert_support import SIZES, ConvertCase, random_routes
from sglang_server import BLOCK, DECODE, DIFFUSION, EXPERTS, EXTEND, IDLE, LAYERS, MASK, MIXED, TOP_K, Server
from support import needs_torch, torch

EMPTY = "layers 0 have no route"


@needs_torch
class Diffusion(ConvertCase):
    def setUp(self):
        super().setUp()
        self.pt = self.name("expert_distribution_recorder_1.0_0.pt")

    def assert_matches(self, found, server):
        np.testing.assert_array_equal(found["pass/kind"], server.kinds)
        np.testing.assert_array_equal(found["pass/block"], server.blocks)
        np.testing.assert_array_equal(found["pass/step"], server.steps)
        np.testing.assert_array_equal(found["token/state"], np.concatenate(server.states))
        np.testing.assert_array_equal(found["routing/expert"][..., :server.top_k], np.concatenate(server.routes))

    def two_requests(self, server):
        for prompt in (12, 20):
            server.prefill(0, server.rng.integers(1, 900, prompt))
            for b in range(3):
                server.block(prompt + b * BLOCK, b)
        return server

    def test_kinds_blocks_steps_and_states(self):
        server = self.two_requests(Server())
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, "--model", "m", warnings=[EMPTY])
        self.assert_matches(found, server)
        self.assertEqual(list(found["request/prompt_tokens"]), [12, 20])
        self.assertEqual(list(found["request/output_tokens"]), [24, 24])
        np.testing.assert_array_equal(found["model/moe_layer_id"], [1, 2, 3])
        second = server.kinds.index(0, 1)               # the second prefill
        np.testing.assert_array_equal(found["pass/request"], np.arange(len(server.kinds)) >= second)
        self.assertEqual((found[""]["block_length"], found[""]["top_k"], found[""]["confidence_kind"], found[""]["gate_kind"],
                          found[""]["engine"]), (BLOCK, TOP_K, "none", "not recorded", "SGLang"))
        for absent in ("routing/gate", "token/confidence", "token/id", "pass/forward"):
            self.assertNotIn(absent, found)
        self.assert_valid()

    def test_prompt_inside_the_first_block_and_no_commit_pass(self):
        """As SGLang's first versions: every pass of the first block holds the prompt; blocks end without another pass."""
        server = Server()
        ids = server.block(0, 0, before=server.rng.integers(1, 900, 5), commit=False)
        server.block(len(ids), 1, commit=False)
        server.block(len(ids) + BLOCK, 2, commit=True)
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY])
        self.assert_matches(found, server)
        self.assertEqual(list(found["request/prompt_tokens"]), [5])
        self.assertEqual(found[""]["block_length"], BLOCK)
        self.assert_valid()

    def test_last_pass_with_masks_stays_masked(self):
        server = Server()
        server.prefill(0, server.rng.integers(1, 900, 4))
        server.block(4, 0, commit=False)
        server.states[-1] = [0 if s == 1 else s for s in server.states[-1]]
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY, "1 requests end with masks left"])
        self.assert_matches(found, server)

    def test_edits(self):
        """JointThreshold: passes without a mask that change tokens are denoising; the last one wrote the cache."""
        server = Server()
        server.prefill(0, server.rng.integers(1, 900, 4))
        ids = server.block(4, 0, commit=False)
        edited = ids.copy()
        edited[2] += 1
        server.call([(4, ids)])
        server.expect("denoise", 0, server.steps[-1] + 1, [3 if i == 2 else 2 for i in range(BLOCK)])
        server.call([(4, edited)])
        server.expect("commit", 0, server.steps[-1] + 1, [2] * BLOCK)
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY])
        self.assert_matches(found, server)
        self.assert_valid()

    def test_chunked_prefill_and_cached_prefix(self):
        server = Server()
        server.prefill(0, server.rng.integers(1, 900, 16))
        server.prefill(16, server.rng.integers(1, 900, 4))
        server.block(20, 0)
        server.prefill(16, server.rng.integers(1, 900, 4))         # a second request whose first 16 tokens are cached
        server.block(20, 0)
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY, "1 requests begin after position 0"])
        self.assert_matches(found, server)
        self.assertEqual(list(found["request/prompt_tokens"]), [20, 20])
        self.assert_valid()

    def test_a_prompt_where_another_request_ended(self):
        """A prompt's first block covers the rows of the last request's only block and shares half of its tokens."""
        server = Server()
        ids = server.block(0, 0, before=server.rng.integers(1, 900, 6))
        prompt = ids.copy()
        prompt[4] += 1
        server.prefill(0, prompt)
        server.block(len(prompt), 0)
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY])
        self.assert_matches(found, server)
        self.assertEqual(list(found["request/prompt_tokens"]), [6, 14])

    def test_a_batch(self):
        """Two requests in one forward call share a number in /pass/forward."""
        server = Server()
        a, b = (server.rng.integers(1, 900, n) for n in (6, 9))
        server.call([(0, a), (0, b)])
        masks, done = np.full(BLOCK, MASK), server.rng.integers(1, 900, BLOCK)
        server.call([(6, masks), (9, masks)])
        server.call([(6, done), (9, done)])
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY])
        np.testing.assert_array_equal(found["pass/request"], [0, 1] * 3)
        np.testing.assert_array_equal(found["pass/forward"], [0, 0, 1, 1, 2, 2])
        np.testing.assert_array_equal(found["pass/kind"], [0, 0, 1, 1, 2, 2])
        np.testing.assert_array_equal(found["routing/expert"], np.concatenate(server.routes))
        self.assert_valid()

    def test_a_prompt_in_a_batch_that_denoises(self):
        """One call for all: the prompt's block runs as often as the other's, and a finished block until all are."""
        server, rng = Server(), np.random.default_rng(8)
        a, prompt = rng.integers(1, 900, BLOCK), rng.integers(1, 900, BLOCK)
        half = np.where(np.arange(BLOCK) < 4, a, MASK)
        server.call([(0, rng.integers(1, 900, BLOCK))])
        for ids in (np.full(BLOCK, MASK), half, a):
            server.call([(BLOCK, ids), (0, prompt)])
        b = np.where(half == MASK, rng.integers(1, 900, BLOCK), half)
        for first, second in ((np.full(BLOCK, MASK), np.full(BLOCK, MASK)), (a, half), (a, b)):
            server.call([(2 * BLOCK, first), (BLOCK, second)])
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY])
        np.testing.assert_array_equal(found["pass/request"], [0] + [0, 1] * 6)
        np.testing.assert_array_equal(found["pass/kind"], [0, 1, 0, 1, 0, 2, 0, 1, 1, 1, 1, 2, 2])
        np.testing.assert_array_equal(found["pass/step"], [0, 0, 0, 1, 0, 2, 0, 0, 0, 1, 1, 2, 2])
        np.testing.assert_array_equal(found["request/prompt_tokens"], [BLOCK, BLOCK])
        np.testing.assert_array_equal(found["request/output_tokens"], [2 * BLOCK, BLOCK])
        self.assert_valid()

    def test_tokens_tell_the_requests_of_a_batch(self):
        """Two requests at the same positions, whose order in the batch changes."""
        server, rng = Server(), np.random.default_rng(8)
        a, b = rng.integers(1, 900, BLOCK), rng.integers(1, 900, BLOCK)
        held = np.arange(BLOCK) < 6
        server.call([(0, rng.integers(1, 900, 4)), (0, rng.integers(1, 900, 5))])
        server.call([(4, np.full(BLOCK + 1, MASK)), (5, np.full(BLOCK, MASK))])
        server.call([(4, np.append(7, np.where(held, a, MASK))), (5, np.where(held, b, MASK))])
        server.call([(4, np.append(7, a)), (5, b)])
        for order in ((a, b), (b, a)):                  # the next block of both begins at 13
            server.call([(13, np.where(held, tokens, MASK)) for tokens in order])
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION,
                             warnings=[EMPTY, "1 passes could belong to more than one", "2 requests end with masks left"])
        np.testing.assert_array_equal(found["pass/request"], [0, 1] * 5 + [1, 0])

    def test_masks_that_route_alike_are_no_warm_up(self):
        server, ids = Server(), np.full(BLOCK, MASK)
        route = np.repeat(random_routes(np.random.default_rng(1), 1, LAYERS - 1, EXPERTS, TOP_K), BLOCK, axis=0)
        server.prefill(0, [5, 6, 7])
        for step in range(BLOCK + 1):
            server.call([(3, ids)], routes=route)
            ids = ids.copy()
            ids[step:step + 1] = 9
        server.call([(3 + BLOCK, np.full(80, MASK))], routes=np.repeat(route[:1], 80, axis=0))
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY, "1 requests end with masks left"])
        np.testing.assert_array_equal(found["pass/kind"], [0] + [1] * BLOCK + [2, 1])

    def test_ambiguous_batch_is_warned_of(self):
        server, masks = Server(), np.full(BLOCK, MASK)
        prompt = server.rng.integers(1, 900, 6)
        server.call([(0, prompt), (0, prompt)])
        server.call([(6, masks), (6, masks)])
        self.convert("sglang", server.save(self.pt), *DIFFUSION,
                     warnings=[EMPTY, "could belong to more than one request", "2 requests end with masks left"])

    def test_physical_to_logical(self):
        """24 physical experts, 8 of them copies: ids come back as logical ones."""
        rng = np.random.default_rng(5)
        mapping = np.stack([np.concatenate([rng.permutation(EXPERTS), rng.permutation(EXPERTS)[:8]]) for _ in range(LAYERS)])
        server = self.two_requests(Server(mapping=mapping))
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, warnings=[EMPTY])
        self.assert_matches(found, server)
        self.assertEqual(found[""]["num_experts"], EXPERTS)
        self.assert_valid()

    def test_fused_shared_experts(self):
        server = self.two_requests(Server(top_k=6))
        for record in server.records:
            record["topk_ids_of_layer"][1:, :, 6] = EXPERTS
            record["topk_ids_of_layer"][1:, :, 7] = EXPERTS + 1
        self.assert_refused("sglang", server.save(self.pt), *DIFFUSION, text="drop them with --fused-shared N")
        self.assert_refused("sglang", self.pt, *DIFFUSION, "--fused-shared", 1,
                            text="2 ids from 16 on, but --fused-shared is 1")
        found = self.convert("sglang", self.pt, *DIFFUSION, "--fused-shared", 2,
                             warnings=[EMPTY, "slots of fused shared experts were dropped"])
        self.assert_matches(found, server)
        self.assertEqual(found[""]["top_k"], 6)
        self.assert_valid()

    def test_unused_slots_go(self):
        """The recorder is 8 wide; a model with k = 4 leaves -1."""
        server = self.two_requests(Server(top_k=4))
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, "--top-k", 4, warnings=[EMPTY])
        self.assertEqual(found["routing/expert"].shape[-1], 4)
        self.assert_matches(found, server)
        os.unlink(self.path)
        self.assert_refused("sglang", self.pt, *DIFFUSION, "--top-k", 3, text="4 slots hold experts, but the model chooses 3")
        self.assert_refused("sglang", self.pt, *DIFFUSION, "--top-k", 9, text="keeps 8 slots, but the model chooses 9")

    def test_token_ids_only_if_asked(self):
        server = self.two_requests(Server())
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION, "--token-ids", warnings=[EMPTY])
        np.testing.assert_array_equal(found["token/id"], np.concatenate([r["input_ids"] for r in server.records]))
        self.assert_valid()

    def test_ranks_and_dumps(self):
        """Tensor-parallel ranks say the same; two dumps of one run continue each other."""
        server = self.two_requests(Server())
        half, all_records = len(server.records) // 2, server.records
        for name, part in (("a.pt", slice(0, half)), ("b.pt", slice(half, None))):
            server.records = all_records[part]
            server.save(self.name(name))
        server.records = [{**r, "rank": 1} for r in all_records]
        server.save(self.name("rank1.pt"))
        found = self.convert("sglang", self.name("b.pt"), self.name("rank1.pt"), self.name("a.pt"), *DIFFUSION,
                             warnings=[EMPTY, f"{len(all_records)} forward calls were recorded alike"])
        self.assert_matches(found, server)
        os.unlink(self.path)
        again = self.put("c.pt", Path(self.name("a.pt")).read_bytes())
        self.assert_refused("sglang", self.name("a.pt"), self.name("b.pt"), again, *DIFFUSION, text="of rank 0 is in")

    def test_data_parallel_ranks_are_requests_of_their_own(self):
        a, b = Server(), Server(rank=1)
        b.rng = np.random.default_rng(99)
        for server in (a, b):
            server.prefill(0, server.rng.integers(1, 900, 7))
            server.block(7, 0)
        found = self.convert("sglang", a.save(self.name("a.pt")), b.save(self.name("b.pt")), *DIFFUSION, warnings=[EMPTY])
        self.assertEqual(list(found["request/prompt_tokens"]), [7, 7])
        self.assertEqual(list(found["request/output_tokens"]), [8, 8])
        again = self.convert("sglang", self.name("b.pt"), self.name("a.pt"), *DIFFUSION, warnings=[EMPTY])
        np.testing.assert_array_equal(found["routing/expert"], again["routing/expert"])
        self.assert_valid()

    def test_padding_rows_and_idle_calls(self):
        server = self.two_requests(Server())
        server.call([(0, [0, 0])], mode=IDLE)
        server.expect("dummy", -1, 0, [2, 2])
        record = server.records[0]                      # two padded rows at the end of the first prefill
        record["input_ids"] += [0, 0]
        record["positions"] += [12, 13]
        record["extend_seq_lens"] = [14]
        padded = torch.full((LAYERS, 2, 8), -1, dtype=torch.int32)
        record["topk_ids_of_layer"] = torch.cat([record["topk_ids_of_layer"], padded], dim=1).contiguous()
        found = self.convert("sglang", server.save(self.pt), *DIFFUSION,
                             warnings=[EMPTY, "2 rows without any route (padding) were left out", "1 passes with 2 rows look"])
        self.assert_matches(found, server)
        self.assertEqual(list(found["request/prompt_tokens"]), [12, 20])
        self.assert_valid()


@needs_torch
class Autoregressive(ConvertCase):
    def test_prefill_and_decode(self):
        server = Server()
        for prompt in (5, 9):
            server.call([(0, server.rng.integers(1, 900, prompt))], mode=EXTEND)
            for i in range(4):
                server.call([(prompt + i, [7])], mode=DECODE, lengths=False)
        found = self.convert("sglang", server.save(self.name("a.pt")), *SIZES, warnings=[EMPTY])
        np.testing.assert_array_equal(found["pass/kind"], [0, 1, 1, 1, 1] * 2)
        np.testing.assert_array_equal(found["pass/block"], [-1, 0, 1, 2, 3] * 2)
        np.testing.assert_array_equal(found["pass/request"], [0] * 5 + [1] * 5)
        np.testing.assert_array_equal(found["token/state"], [2] * 5 + [1] * 4 + [2] * 9 + [1] * 4)
        self.assertEqual((found[""]["block_length"], list(found["request/prompt_tokens"])), (1, [5, 9]))
        self.assert_valid()

    def test_mixed_batch(self):
        """A prefill joins a decoding request in one call."""
        server = Server()
        server.call([(0, [1, 2, 3])], mode=EXTEND)
        server.call([(0, [4, 5, 6, 7]), (3, [9])], mode=MIXED)
        server.call([(4, [8]), (4, [8])], mode=DECODE, lengths=False)
        found = self.convert("sglang", server.save(self.name("a.pt")), *SIZES,
                             warnings=[EMPTY, "could belong to more than one request"])
        np.testing.assert_array_equal(found["pass/kind"], [0, 0, 1, 1, 1])
        np.testing.assert_array_equal(found["pass/request"], [0, 1, 0, 0, 1])
        np.testing.assert_array_equal(found["pass/forward"], [0, 1, 1, 2, 2])
        self.assert_valid()

    def test_what_begins_where_another_request_ended(self):
        """A prefill is a new request (its prefix is cached); so is a decode step after many calls without that request."""
        server = Server()
        server.call([(0, [1, 2, 3])], mode=EXTEND)
        server.call([(3, [4])], mode=DECODE, lengths=False)
        server.call([(4, [5, 6])], mode=EXTEND)
        for i in range(70):
            server.call([(6 + i, [7])], mode=DECODE, lengths=False)
        server.call([(4, [8])], mode=DECODE, lengths=False)
        found = self.convert("sglang", server.save(self.name("a.pt")), *SIZES,
                             warnings=[EMPTY, "2 requests begin after position 0"])
        np.testing.assert_array_equal(found["pass/request"], [0, 0] + [1] * 71 + [2])
        np.testing.assert_array_equal(found["request/prompt_tokens"], [3, 6, 4])

    def test_repeated_passes_are_marked(self):
        """Warm-up decode steps route alike, whatever their position."""
        server, route = Server(), random_routes(np.random.default_rng(1), 1, LAYERS - 1, EXPERTS, TOP_K)
        server.call([(0, [1, 2, 3])], mode=EXTEND)
        for i in range(9):
            server.call([(3 + i, [0])], mode=DECODE, routes=route, lengths=False)
        server.call([(0, [5, 6, 7])], mode=EXTEND)
        server.call([(3, [8])], mode=DECODE, lengths=False)
        pt = server.save(self.name("a.pt"))
        found = self.convert("sglang", pt, *SIZES, warnings=[EMPTY, "9 passes with 9 rows look like an engine's warm-up"])
        np.testing.assert_array_equal(found["pass/kind"], [0] + [3] * 9 + [0, 1])
        found = self.convert("sglang", pt, *SIZES, "--dummy", "drop", warnings=[EMPTY, "were dropped"])
        np.testing.assert_array_equal(found["pass/kind"], [0, 0, 1])
        found = self.convert("sglang", pt, *SIZES, "--dummy", "keep", warnings=[EMPTY])
        np.testing.assert_array_equal(found["pass/kind"], [0] + [1] * 9 + [0, 1])
        self.assert_warned_of("identical routes")

if __name__ == "__main__":
    unittest.main()
