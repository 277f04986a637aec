# SPDX-License-Identifier: Apache-2.0
"""The table of adapters on rebuilt blocks of each shape, gates by pattern and by function, and generate() without calls."""
import unittest
from types import SimpleNamespace

import numpy as np

from support import TraceCase, load, needs_torch, torch
from moesim_record import Problem, Recorder

if torch is not None:
    from torch import nn
    from moesim_record.adapters import read_choice
else:
    nn = SimpleNamespace(Module=object)

HIDDEN, EXPERTS, TOP_K = 16, 12, 3

# class of the block, what it says of normalising, what gate_kind must say
LINEAR = (("LLaDAMoESparseMoeBlock", False, "softmax, not normalised"),
          ("SDARMoeSparseMoeBlock", True, "softmax, normalised over the selected experts"),
          ("RND1SparseMoeBlock", True, "softmax, normalised over the selected experts"),
          ("Qwen3MoeSparseMoeBlock", True, "softmax, normalised over the selected experts"),
          ("Qwen2MoeSparseMoeBlock", False, "softmax, not normalised"),
          ("OlmoeSparseMoeBlock", False, "softmax, not normalised"),
          ("MixtralSparseMoeBlock", None, "softmax, normalised over the selected experts"))


class Block(nn.Module):
    """A linear gate, and a block that chooses: the shape of Qwen3-MoE's remote code and of transformers 4."""

    def __init__(self, normalises):
        super().__init__()
        self.top_k, self.num_experts = TOP_K, EXPERTS
        if normalises is not None:
            self.norm_topk_prob = normalises
        self.normalises = normalises is not False
        self.gate = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.experts = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(EXPERTS))
        self.seen = []

    def forward(self, x):
        probabilities = torch.softmax(self.gate(x), dim=-1, dtype=torch.float)
        gates, ids = torch.topk(probabilities, self.top_k, dim=-1)
        if self.normalises:
            gates /= gates.sum(dim=-1, keepdim=True)
        self.seen.append((ids.numpy().copy(), gates.numpy().copy()))
        return sum(gates[:, i, None] * torch.stack([self.experts[e](row) for e, row in zip(ids[:, i].tolist(), x)])
                   for i in range(self.top_k))


def stack(block_class, *args, layers=2):
    """A model of `layers` blocks under layers.N.mlp, after one dense layer."""
    model = nn.Module()
    model.layers = nn.ModuleList([nn.ModuleDict({"mlp": nn.Linear(HIDDEN, HIDDEN)})]
                                 + [nn.ModuleDict({"mlp": block_class(*args)}) for _ in range(layers)])
    return model.requires_grad_(False)


def run(model, x):
    for layer in model.layers:
        x = layer["mlp"](x)
    return x


@needs_torch
class Adapters(TraceCase):
    def record(self, model, **options):
        x = torch.randn(9, HIDDEN, generator=torch.Generator().manual_seed(1))
        with Recorder(model, self.path, block_length=9, gate_dtype="f32", overwrite=True, **options) as rec:
            rec.request("w", 0)
            rec.begin_pass("denoise", range(9), block=0, masked=[True] * 9)
            y = run(model, x)
            rec.end_pass(confidence=[0.5] * 9, committed=[True] * 9)
        self.assertTrue(torch.equal(y, run(model, x)))
        return load(self.path)

    def test_linear_gates(self):
        for name, normalises, kind in LINEAR:
            with self.subTest(name):
                torch.manual_seed(2)
                model = stack(type(name, (Block,), {}), normalises)
                found = self.record(model)
                seen = [layer["mlp"].seen[0] for layer in list(model.layers)[1:]]
                np.testing.assert_array_equal(found["routing/expert"], np.stack([s[0] for s in seen], axis=1))
                np.testing.assert_array_equal(found["routing/gate"], np.stack([s[1] for s in seen], axis=1))
                self.assertEqual((found[""]["gate_kind"], found[""]["num_experts"]), (kind, EXPERTS))
                self.assertEqual(list(found["model/moe_layer_id"]), [1, 2])
                self.assertEqual(list(found["model/expert_bytes"]), [HIDDEN * HIDDEN * 4] * 2)
                self.assert_valid()

    def test_unknown_class_by_pattern_and_by_function(self):
        torch.manual_seed(2)
        model = stack(type("Strange", (Block,), {}), True)
        with self.assertRaisesRegex(Problem, "no gate found"):
            self.record(model)
        expected = self.record(model, gates=r"layers\.\d+\.mlp\.gate$", gate_kind="softmax, normalised")["routing/expert"]
        found = self.record(model, gates=lambda name, module: name.endswith(".gate"))
        np.testing.assert_array_equal(found["routing/expert"], expected)
        self.assertEqual(found[""]["gate_kind"], "unknown")

        def read(module, inputs, output):
            best = output.topk(TOP_K, dim=-1)
            return best.indices, best.values.sigmoid()
        found = self.record(model, gates="gate$", read=read, gate_kind="sigmoid, not normalised")
        np.testing.assert_array_equal(found["routing/expert"], expected)
        self.assertEqual(found[""]["gate_kind"], "sigmoid, not normalised")

    def test_a_block_that_chooses_otherwise_is_refused(self):
        model = stack(type("LLaDAMoESparseMoeBlock", (Block,), {"score_func": "sigmoid"}), False)
        with self.assertRaisesRegex(Problem, "does not choose by softmax alone"):
            self.record(model)

    def test_outputs_of_gates(self):
        logits, scores = torch.randn(5, 12), torch.rand(5, 3)
        ids = torch.stack([torch.randperm(12)[:3] for _ in range(5)])
        dense = torch.zeros(5, 12).scatter(1, ids, scores)
        for parts in ((ids, scores), (ids, scores, logits), (logits, scores, ids), (scores, ids, logits), (dense, ids)):
            got = read_choice(parts)
            self.assertTrue(torch.equal(got[0], ids) and torch.equal(got[1], scores))
        self.assertIsNone(read_choice((logits,)))
        self.assertIsNone(read_choice((ids,))[1])
        all_ids = torch.stack([torch.randperm(3) for _ in range(5)])        # as many experts as slots
        self.assertTrue(torch.equal(read_choice((torch.randn(5, 3), scores, all_ids))[1], scores))
        self.assertTrue(torch.equal(read_choice((all_ids, scores, torch.randn(5, 3)))[1], scores))


class Tiny(nn.Module):
    """Greedy or sampled decoding in the manner of transformers' generate, with or without a cache (of positions alone)."""

    def __init__(self, cache):
        super().__init__()
        self.embed = nn.Embedding(40, HIDDEN)
        self.body = stack(type("Qwen3MoeSparseMoeBlock", (Block,), {}), True)
        self.head = nn.Linear(HIDDEN, 40)
        self.cache, self.logits = cache, []

    def forward(self, input_ids=None, past=0):
        logits = self.head(run(self.body, self.embed(input_ids[0])))[None] * 5
        return SimpleNamespace(logits=logits)

    def generate(self, input_ids, max_new_tokens, seed=None):
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        ids, past = input_ids, 0
        for _ in range(max_new_tokens):
            out = self(input_ids=ids[:, past:])
            past = ids.shape[1] if self.cache else 0
            p = torch.softmax(out.logits[0, -1], -1)
            self.logits.append(p)
            token = p.argmax()[None] if generator is None else torch.multinomial(p, 1, generator=generator)
            ids = torch.cat((ids, token[None]), dim=1)
        return ids


@needs_torch
class Generate(TraceCase):
    def test_generate(self):
        prompt = torch.tensor([[3, 1, 4, 1, 5]])
        for cache, seed in ((True, None), (False, None), (True, 3)):
            with self.subTest(cache=cache, seed=seed):
                torch.manual_seed(4)
                model = Tiny(cache).requires_grad_(False)
                plain = model.generate(prompt, max_new_tokens=6, seed=seed)
                model.logits.clear()
                with Recorder(model, self.path, overwrite=True) as rec:
                    out = model.generate(prompt, max_new_tokens=6, seed=seed)
                    rec.request("named", 5)
                    model.generate(input_ids=prompt, max_new_tokens=6, seed=seed)
                self.assertNotIn("generate", vars(model))
                self.assertNotIn("forward", vars(model))
                self.assertTrue(torch.equal(out, plain))
                found = load(self.path)
                self.assertEqual(list(found["pass/kind"]), ([0] + [1] * 5) * 2)
                self.assertEqual(list(found["pass/block"]), [-1, 0, 1, 2, 3, 4] * 2)
                self.assertEqual([w.decode() for w in found["request/workload"]], ["generate", "named"])
                self.assertEqual(list(found["request/output_tokens"]), [6, 6])
                last = found["pass/row_offset"][1:] - 1
                self.assertEqual(list(found["token/position"][last]), [4, 5, 6, 7, 8, 9] * 2)
                self.assertEqual(list(found["token/state"][last]), ([2] + [1] * 5) * 2)
                rows = [5] + [1] * 5 if cache else [5, 6, 7, 8, 9, 10]
                self.assertEqual(list(np.diff(found["pass/row_offset"])), rows * 2)
                chosen = [float(p[t]) for p, t in zip(model.logits, out[0, 5:].tolist() * 2)]
                np.testing.assert_allclose(found["token/confidence"][last], chosen, rtol=1e-3)
                self.assertIn("chosen token", found[""]["confidence_kind"])
                self.assert_valid()

    def test_several_sequences_are_refused(self):
        with self.assertRaisesRegex(Problem, "one sequence"), Recorder(Tiny(True).requires_grad_(False), self.path) as rec:
            rec.model.generate(torch.zeros(2, 3, dtype=torch.long), max_new_tokens=2)


if __name__ == "__main__":
    unittest.main()
