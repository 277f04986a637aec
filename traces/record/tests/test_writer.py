# SPDX-License-Identifier: Apache-2.0
"""The writer alone: NumPy in, a valid file out, and nothing that a reader would refuse."""
import unittest
from unittest import mock

import h5py
import numpy as np

from support import TraceCase, load
from moesim_record import NO_ROUTE, Problem, TraceWriter

LAYERS, EXPERTS, TOP_K, BLOCK = 3, 16, 4, 8


def open_writer(path, **changed):
    options = dict(model_id="m", num_experts=EXPERTS, top_k=TOP_K, block_length=BLOCK, gate_kind="softmax, normalised",
                   confidence_kind="top-1 probability", moe_layer_id=[1, 2, 3], expert_bytes=100)
    return TraceWriter(path, **{**options, **changed})


def random_pass(rng, rows=BLOCK):
    expert = np.argsort(rng.random((rows, LAYERS, EXPERTS)), axis=-1)[..., :TOP_K]
    return dict(position=np.arange(rows), state=np.full(rows, 1), expert=expert, gate=np.full(expert.shape, 0.25),
                confidence=rng.random(rows))


class Writing(TraceCase):
    def test_what_is_written_is_read(self):
        rng, passes = np.random.default_rng(1), []
        writer = open_writer(self.path, flush_rows=50, token_ids=True, pass_times=True, forwards=True,
                             attributes=dict(commit_threshold=0.9, dataset="d"))
        writer.add_request("gsm8k", 5)
        for i in range(40):
            passes.append(random_pass(rng, 1 + i % BLOCK))
            writer.add_pass("denoise", 0, i // 8, i % 8, token_id=passes[-1]["position"] + 7, pass_ns=i, forward=i,
                            **passes[-1])
        writer.close()
        found = load(self.path)
        for name, key in (("routing/expert", "expert"), ("token/position", "position"), ("token/state", "state")):
            np.testing.assert_array_equal(found[name], np.concatenate([p[key] for p in passes]))
        np.testing.assert_array_equal(found["token/confidence"],
                                      np.concatenate([p["confidence"] for p in passes]).astype(np.float16))
        np.testing.assert_array_equal(found["pass/row_offset"], np.cumsum([0] + [len(p["position"]) for p in passes]))
        np.testing.assert_array_equal(found["observed/pass_ns"], np.arange(40))
        self.assertEqual(found["request/output_tokens"][0], len(found["token/state"]))
        self.assertEqual((found[""]["complete"], found[""]["commit_threshold"], found[""]["dataset"]), (1, 0.9, "d"))
        self.assert_valid()

    def test_format_of_the_file(self):
        writer = open_writer(self.path)
        writer.add_request("w", 0)
        writer.add_pass("denoise", 0, 0, 0, **random_pass(np.random.default_rng(1)))
        writer.close()
        with open(self.path, "rb") as f:
            self.assertEqual(f.read(9)[8], 3)           # superblock 3: checksummed
        with h5py.File(self.path) as f:
            expert = f["routing/expert"]
            self.assertEqual((expert.chunks, expert.maxshape), ((256, LAYERS, TOP_K), (None, LAYERS, TOP_K)))
            self.assertEqual((expert.shuffle, expert.compression, expert.fletcher32), (True, "gzip", True))

    def test_router_probabilities(self):
        writer, rng = open_writer(self.path, router_probs=True, flush_rows=10), np.random.default_rng(1)
        writer.add_request("w", 0)
        given = [rng.random((BLOCK, LAYERS, EXPERTS)) for _ in range(3)]
        for i, prob in enumerate(given):
            writer.add_pass("denoise", 0, 0, i, router_prob=prob, **random_pass(rng))
        writer.close()
        np.testing.assert_array_equal(load(self.path)["routing/router_prob"], np.concatenate(given).astype(np.float16))
        self.assert_valid()
        writer = open_writer(self.path, router_probs=True, overwrite=True)
        writer.add_request("w", 0)
        with self.assertRaisesRegex(Problem, "no /routing/router_prob"):
            writer.add_pass("denoise", 0, 0, 0, **random_pass(rng))
        writer.add_pass("denoise", 0, 0, 0, router_prob=np.full((BLOCK, LAYERS, EXPERTS), np.inf), **random_pass(rng))
        with self.assertRaisesRegex(Problem, "router score that is not finite"):
            writer.close()

    def test_without_gates_and_confidence(self):
        writer = open_writer(self.path, gates=None, confidence_kind="none")
        writer.add_request("w", 0)
        one = random_pass(np.random.default_rng(1))
        one["expert"][0, 0, 2:] = NO_ROUTE
        writer.add_pass("denoise", 0, 0, 0, **one)
        writer.close()
        found = load(self.path)
        self.assertNotIn("routing/gate", found)
        self.assertNotIn("token/confidence", found)
        self.assert_valid()

    def test_a_file_is_whole_between_pieces(self):
        writer, rng = open_writer(self.path, flush_rows=20), np.random.default_rng(1)
        writer.add_request("w", 0)
        for i in range(7):
            writer.add_pass("denoise", 0, 0, i, **random_pass(rng))
        found = load(self.path)                         # never closed: two pieces of three passes are there
        self.assertEqual(found[""]["complete"], 0)
        self.assertEqual(list(found["pass/row_offset"]), [0, 8, 16, 24, 32, 40, 48])
        for name in ("routing/expert", "routing/gate", "token/position", "token/state", "token/confidence"):
            self.assertEqual(len(found[name]), 48, name)

    def test_a_flush_that_broke_off_is_done_again(self):
        append = TraceWriter._append
        for broken in range(1, 11):                     # ten columns: after so many, Ctrl-C
            writer, rng, left = open_writer(self.path, overwrite=True), np.random.default_rng(1), [broken]

            def break_off(*args):
                append(*args)
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            passes = [random_pass(rng) for _ in range(4)]
            for i, one in enumerate(passes):
                writer.add_request(f"w{i}", i)
                writer.add_pass("denoise", i, 0, 0, **one)
                if i == 1:
                    with mock.patch.object(TraceWriter, "_append", side_effect=break_off), \
                            self.assertRaises(KeyboardInterrupt):
                        writer.flush()
            writer.close()
            with self.subTest(broken):
                found = load(self.path)
                for name, key in (("routing/expert", "expert"), ("token/position", "position"), ("token/state", "state")):
                    np.testing.assert_array_equal(found[name], np.concatenate([p[key] for p in passes]))
                self.assertEqual(list(found["pass/row_offset"]), [0, 8, 16, 24, 32])
                self.assertEqual(list(found["pass/request"]), [0, 1, 2, 3])
                self.assertEqual(list(found["request/prompt_tokens"]), [0, 1, 2, 3])
                self.assert_valid()

    def test_numbers_that_do_not_fit_are_refused(self):
        writer = open_writer(self.path, token_ids=True, pass_times=True, forwards=True)
        writer.add_request("w", 0)
        good = dict(random_pass(np.random.default_rng(1)), kind="denoise", request=0, block=0, step=0,
                    token_id=np.arange(BLOCK))
        for key, bad, text in (("expert", good["expert"] + 65536, r"/routing/expert has 655\d\d; it takes -1..65535"),
                               ("expert", good["expert"] - 17, "/routing/expert has -17"),
                               ("expert", good["expert"] + 0.5, "/routing/expert is of type float64"),
                               ("position", good["position"] + 2**31, "/token/position has 21474836"),
                               ("state", good["state"] + 256, "/token/state has 257; it takes 0..255"),
                               ("token_id", good["token_id"] - 2**32, "/token/id has -4294967296"),
                               ("block", 2**31, "/pass/block has 2147483648"),
                               ("step", -2**31 - 1, "/pass/step has -2147483649"),
                               ("forward", -1, "/pass/forward has -1; it takes 0..18446744073709551615"),
                               ("pass_ns", -1, "/observed/pass_ns has -1"), ("request", -1, "request -1 was not declared"),
                               ("kind", "denoize", "kind 'denoize'; known are prefill, denoise"), ("kind", 260, "kind 260")):
            with self.subTest(key), self.assertRaisesRegex(Problem, text):
                writer.add_pass(**{**good, key: bad})
        writer.add_pass(**{**good, "expert": np.where(good["expert"] == 0, -1, good["expert"]), "pass_ns": 2**64 - 1})
        writer.close()
        found = load(self.path)
        self.assertEqual((len(found["pass/kind"]), found["observed/pass_ns"][0]), (1, 2**64 - 1))
        np.testing.assert_array_equal(found["routing/expert"] == NO_ROUTE, good["expert"] == 0)
        self.assert_valid()

    def test_refusals(self):
        rng = np.random.default_rng(1)
        good = random_pass(rng)

        def with_(key, index, value):
            array = np.array(good[key])
            array[index] = value
            return {**good, key: array}
        twice = np.array(good["expert"])
        twice[3, 1, 1] = twice[3, 1, 0]
        for name, bad, text in (("id", with_("expert", (0, 0, 0), EXPERTS), "expert id 16"),
                                ("twice", {**good, "expert": twice}, "twice in one row"),
                                ("gate", with_("gate", (0, 0, 0), -1), "negative or not finite"),
                                ("nan", with_("gate", (0, 0, 0), np.nan), "negative or not finite"),
                                ("confidence", with_("confidence", 0, 1.5), "outside 0..1"),
                                ("state", with_("state", 0, 4), "unknown state"),
                                ("shape", {**good, "expert": good["expert"][:, :2]}, "expected")):
            with self.subTest(name), self.assertRaisesRegex(Problem, text):
                writer = open_writer(self.path, overwrite=True)
                writer.add_request("w", 0)
                writer.add_pass("denoise", 0, 0, 0, **bad)
                writer.close()
        with self.assertRaisesRegex(Problem, "exists"):
            open_writer(self.path)
        with self.assertRaisesRegex(Problem, "no pass"):
            open_writer(self.path, overwrite=True).close()
        with self.assertRaisesRegex(Problem, "no attribute 'colour'"):
            open_writer(self.path, overwrite=True, attributes=dict(colour="red"))
        with self.assertRaisesRegex(Problem, "was not declared"):
            open_writer(self.path, overwrite=True).add_pass("denoise", 0, 0, 0, **good)


if __name__ == "__main__":
    unittest.main()
