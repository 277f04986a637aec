# SPDX-License-Identifier: Apache-2.0
"""The recorder on the tiny LLaDA2: what is in the file is what the gates returned, and the model computes what it would."""
import os
import signal
import unittest

import numpy as np

from support import MOESIM, TraceCase, load, needs_torch, torch
from moesim_record import Problem, Recorder

if torch is not None:
    from block_decoders import editing_decode, threshold_decode
    from tiny_llada2 import MASK_ID, tiny_llada2

BLOCK = 8


def group_limited(gate, x):
    """The rule of the gate, row by row in plain Python: ids in order of score plus bias, and weights."""
    ids, weights = [], []
    for score in torch.sigmoid(x.reshape(-1, x.shape[-1]).float() @ gate.weight.float().T).double():
        biased = (score + gate.expert_bias).tolist()
        size = gate.num_experts // gate.n_group
        groups = sorted(range(gate.n_group), key=lambda g: -sum(sorted(biased[g * size:(g + 1) * size])[-2:]))
        allowed = [e for g in groups[:gate.topk_group] for e in range(g * size, (g + 1) * size)]
        best = sorted(allowed, key=lambda e: -biased[e])[:gate.top_k]
        total = sum(float(score[e]) for e in best)
        ids.append(best)
        weights.append([float(score[e]) / total * gate.routed_scaling_factor for e in best])
    return ids, weights


class Watch:
    """An independent record of what each gate was given and returned, in the order of calls."""

    def __init__(self, model):
        self.calls = []
        self.gates = [m for m in model.modules() if type(m).__name__ == "LLaDA2MoeGate"]
        for gate in self.gates:
            gate.register_forward_hook(lambda g, given, out: self.calls.append((g, given[0].clone(), out[0], out[1])))

    def arrays(self):
        layers = [[c for c in self.calls if c[0] is gate] for gate in self.gates]
        return [np.stack([np.concatenate([c[i].numpy() for c in layer]) for layer in layers], axis=1) for i in (2, 3)]


def prompt_of(n=11):
    return torch.randint(1, 96, (n,), generator=torch.Generator().manual_seed(3))


STYLES = {
    "threshold": lambda model, rec: threshold_decode(model, rec, prompt_of(), 3, BLOCK, MASK_ID, threshold=0.6),
    "no commit pass": lambda model, rec: threshold_decode(model, rec, prompt_of(), 3, BLOCK, MASK_ID, 0.6, commit_pass=False),
    "editing": lambda model, rec: editing_decode(model, rec, prompt_of(), 3, BLOCK, MASK_ID),
}


class Silent:
    """Takes the recorder's calls and records nothing."""

    def request(self, *args):
        pass
    begin_pass = end_pass = lambda self, *args, **kwargs: None


@needs_torch
class Loops(TraceCase):
    def record(self, style, **options):
        model = tiny_llada2()
        watch = Watch(model)
        with Recorder(model, self.path, block_length=BLOCK, mask_id=MASK_ID, overwrite=True, **options) as rec:
            rec.request("random", 11)
            tokens = STYLES[style](model, rec)
        return watch, tokens, load(self.path)

    def test_ids_and_gates_are_the_gates_own(self):
        for style in STYLES:
            with self.subTest(style):
                watch, _, found = self.record(style, gate_dtype="f32")
                ids, weights = watch.arrays()
                np.testing.assert_array_equal(found["routing/expert"], ids)
                np.testing.assert_array_equal(found["routing/gate"], weights)
                self.assertEqual(list(found["model/moe_layer_id"]), [1, 2, 3])
                self.assert_valid()

    def test_half_precision_gates(self):
        watch, _, found = self.record("threshold")
        np.testing.assert_array_equal(found["routing/gate"], watch.arrays()[1].astype(np.float16))

    def test_ids_follow_the_group_limited_rule(self):
        watch, _, _ = self.record("threshold")
        rows = 0
        for gate, given, ids, weights in watch.calls[:12]:
            expected, expected_weights = group_limited(gate, given)
            self.assertEqual(ids.tolist(), expected)
            np.testing.assert_allclose(weights.numpy(), expected_weights, rtol=1e-5)
            rows += len(expected)
        self.assertGreater(rows, 50)

    def test_the_model_computes_what_it_would(self):
        for style in STYLES:
            with self.subTest(style):
                model = tiny_llada2()
                before = torch.get_rng_state()
                plain = STYLES[style](model, Silent())
                with Recorder(model, self.path, block_length=BLOCK, mask_id=MASK_ID, overwrite=True) as rec:
                    rec.request("random", 11)
                    self.assertEqual(STYLES[style](model, rec), plain)
                    x = model(prompt_of()[None], torch.arange(11)[None]).logits
                self.assertTrue(torch.equal(x, model(prompt_of()[None], torch.arange(11)[None]).logits))
                self.assertTrue(torch.equal(before, torch.get_rng_state()))
                self.assertFalse(any(m._forward_hooks for m in model.modules()))

    def test_states_and_kinds(self):
        for style, kinds in (("threshold", {0, 1, 2}), ("no commit pass", {0, 1}), ("editing", {0, 1})):
            with self.subTest(style):
                _, tokens, found = self.record(style)
                state, position = found["token/state"], found["token/position"]
                self.assertEqual(set(found["pass/kind"]), kinds)
                self.assertEqual(sorted(position[state == 1]), list(range(11, 11 + 3 * BLOCK)))     # each position once
                self.assertEqual(len(tokens), 11 + 3 * BLOCK)
                self.assertEqual(found["request/output_tokens"][0], 3 * BLOCK)
                self.assertEqual((state == 3).any(), style == "editing")
                committed_at = {p: i for i, (p, s) in enumerate(zip(position, state)) if s == 1}
                for i, (p, s) in enumerate(zip(position, state)):
                    if p >= 11 and s != 1:
                        self.assertEqual(i < committed_at[p], s == 0)       # masked before, held after
                starts = found["pass/row_offset"][:-1]
                decode = found["pass/kind"] > 0
                self.assertTrue((np.diff(found["pass/row_offset"])[decode] == BLOCK).all())
                self.assertTrue(np.isnan(found["token/confidence"][:11]).all())
                self.assertFalse(np.isnan(found["token/confidence"][starts[decode][0]:]).any())

    def test_threshold_is_respected(self):
        _, _, found = self.record("threshold")
        offset, several = found["pass/row_offset"], 0
        for p in np.flatnonzero(found["pass/kind"] == 1):
            rows = slice(offset[p], offset[p + 1])
            confidence, state = found["token/confidence"][rows].astype(float), found["token/state"][rows]
            if (state == 0).any():
                self.assertLess(confidence[state == 0].max(), 0.6 + 1e-3)
            if (state == 1).sum() > 1:
                several += 1
                self.assertGreater(confidence[state == 1].min(), 0.6 - 1e-3)
        self.assertGreater(several, 0)

    def test_token_ids_are_left_out_unless_asked_for(self):
        self.assertNotIn("token/id", self.record("threshold")[2])
        _, tokens, found = self.record("threshold", token_ids=True)
        commit = np.repeat(found["pass/kind"] == 2, np.diff(found["pass/row_offset"]).astype(int))
        self.assertEqual(list(found["token/id"][commit]), tokens[11:])
        self.assertEqual(list(found["token/id"][:11]), tokens[:11])
        self.assert_valid()

    def test_confidence_of_held_tokens(self):
        model = tiny_llada2()
        model.lm_head.weight /= 12                      # flat enough that every token has a probability to compare
        ids = torch.tensor([5, MASK_ID, 9, MASK_ID])
        with Recorder(model, self.path, block_length=4, mask_id=MASK_ID) as rec:
            rec.request("w", 0)
            rec.begin_pass("denoise", range(4), block=0, ids=ids)
            logits = model(ids[None], torch.arange(4)[None]).logits
            rec.end_pass(logits=logits, committed=[False, True, False, False])
        p = torch.softmax(logits[0], dim=-1)
        expected = [p[0, 5], p[1].max(), p[2, 9], p[3].max()]
        np.testing.assert_allclose(load(self.path)["token/confidence"], expected, rtol=1e-3)
        self.assertEqual(list(load(self.path)["token/state"]), [2, 1, 2, 0])

    def test_batch(self):
        model, ids = tiny_llada2(), torch.full((2, 4), MASK_ID)
        with Recorder(model, self.path, block_length=4, mask_id=MASK_ID, forwards=True, pass_times=True) as rec:
            pair = [rec.request("a", 0), rec.request("b", 0)]
            for step in range(4):
                rec.begin_pass("denoise", [0, 1, 2, 3] * 2, block=0, step=step, ids=ids, request=pair)
                logits = model(ids, torch.arange(4).expand(2, 4)).logits
                done = torch.zeros(2, 4, dtype=torch.bool)
                done[:, step] = True
                rec.end_pass(logits=logits, committed=done)
                ids = torch.where(done, torch.tensor(7 + step), ids)
        found = load(self.path)
        self.assertEqual(list(found["pass/forward"]), [0, 0, 1, 1, 2, 2, 3, 3])
        self.assertEqual(list(found["pass/request"]), [0, 1] * 4)
        self.assertTrue((found["observed/pass_ns"] > 0).all())
        self.assert_valid()


@needs_torch
class Faults(TraceCase):
    def test_a_killed_recorder_leaves_a_readable_file(self):
        child = os.fork()
        if child == 0:
            model = tiny_llada2()
            rec = Recorder(model, self.path, block_length=BLOCK, mask_id=MASK_ID, flush_rows=64)
            rec.__enter__()
            rec.request("random", 11)
            STYLES["threshold"](model, rec)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        found = load(self.path)
        rows = found["pass/row_offset"][-1]
        self.assertEqual(found[""]["complete"], 0)
        self.assertGreaterEqual(rows, 64)
        self.assertEqual(len(found["routing/expert"]), rows)
        if MOESIM is not None:
            self.assertNotEqual(self.run_moesim("trace", "validate", self.path).returncode, 0)
            whole = self.path + ".whole"
            done = self.run_moesim("trace", "salvage", self.path, whole)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_valid(whole)

    def test_an_exception_leaves_a_trace_that_was_cut_short(self):
        model = tiny_llada2()
        with self.assertRaises(KeyboardInterrupt):
            with Recorder(model, self.path, block_length=BLOCK, mask_id=MASK_ID) as rec:
                rec.request("random", 11)
                STYLES["threshold"](model, rec)
                raise KeyboardInterrupt
        found = load(self.path)
        self.assertEqual(found[""]["complete"], 0)
        self.assertGreater(found["pass/row_offset"][-1], 24)
        self.assertFalse(any(m._forward_hooks for m in model.modules()))

    def refused(self, text, use, **options):
        model = tiny_llada2()
        with self.assertRaisesRegex(Problem, text):
            with Recorder(model, self.path, block_length=4, mask_id=MASK_ID, overwrite=True, **options) as rec:
                rec.request("w", 0)
                use(rec, lambda n=4: model(torch.full((1, n), MASK_ID), torch.arange(n)[None]))

    def test_misuse(self):
        def begin(rec, **more):
            rec.begin_pass("denoise", range(4), block=0, masked=[True] * 4, **more)
        self.refused("ran twice in one pass", lambda rec, go: (begin(rec), go(), go()))
        self.refused("did not run in this pass", lambda rec, go: (begin(rec), rec.end_pass()))
        self.refused("the gates saw 3 tokens", lambda rec, go: (begin(rec), go(3), rec.end_pass()))
        self.refused("begin_pass twice", lambda rec, go: (begin(rec), begin(rec)))
        self.refused("end_pass without", lambda rec, go: rec.end_pass())
        self.refused("a pass is open", lambda rec, go: begin(rec))
        self.refused("no pass was recorded", lambda rec, go: go())
        self.refused("3 committed for 4", lambda rec, go: (begin(rec), go(), rec.end_pass(committed=[True] * 3)))
        self.refused("edited that was masked", lambda rec, go: (begin(rec), go(), rec.end_pass(edited=[True] * 4)))
        self.refused("committed that was not masked", lambda rec, go: (
            rec.begin_pass("denoise", range(4)), go(), rec.end_pass(committed=[True] * 4)))
        self.refused("forwards=True", lambda rec, go: begin(rec, request=[0, 0]))
        self.refused("outside 0..1", lambda rec, go: (begin(rec), go(), rec.end_pass(confidence=[2.0] * 4)))
        with self.assertRaisesRegex(Problem, "no gate found"):
            Recorder(torch.nn.Linear(2, 2), self.path + "x")
        with self.assertRaisesRegex(TypeError, "colour"):
            Recorder(tiny_llada2(), self.path + "x", colour="red")


if __name__ == "__main__":
    unittest.main()
