# SPDX-License-Identifier: Apache-2.0
"""Logs of meta and route lines, and MoELens's JSON, with what such recordings get wrong."""
import json
import os
import unittest

import numpy as np

from convert_support import SIZES, ConvertCase, random_routes

EXPERTS, TOP_K = 16, 4
BASE = ["--num-experts", EXPERTS, *SIZES]


class Log:
    """A log as a vLLM add-on writes it: calls of several tokens, token_idx anew in each."""

    def __init__(self, layer, seed=1, restart=True, **meta):
        self.layer, self.rng, self.restart, self.count = layer, np.random.default_rng(seed + layer), restart, 0
        self.lines = [dict(type="meta", model_id="Qwen/Qwen1.5-MoE-A2.7B-Chat", vllm_version="0.11.2", layers_logged=[layer],
                           top_k=TOP_K, **meta)]
        self.ids, self.weights = [], []

    def call(self, tokens, ids=None, weights=None, req="r0"):
        ids = random_routes(self.rng, tokens, 1, EXPERTS, TOP_K)[:, 0] if ids is None else np.tile(ids, (tokens, 1))
        weights = self.rng.random((tokens, TOP_K)) / 8 if weights is None else np.tile(weights, (tokens, 1))
        for i in range(tokens):
            self.lines.append(dict(type="route", req_id=req, token_idx=i if self.restart else self.count, layer=self.layer,
                                   topk_ids=ids[i].tolist(), topk_weights=weights[i].tolist()))
            self.count += 1
        self.ids.append(ids)
        self.weights.append(weights)
        return self

    def requests(self):
        for prompt in (6, 9):
            self.call(prompt)
            for _ in range(5):
                self.call(1)
        return self

    def bytes(self):
        return "".join(json.dumps(line) + "\n" for line in self.lines).encode()


class Jsonl(ConvertCase):
    def test_several_files(self):
        """A layer a file: kinds from calls, weights as they are."""
        logs = [Log(layer).requests() for layer in (12, 0)]
        files = [self.put(f"layer{log.layer}.jsonl", log.bytes()) for log in logs]
        found = self.convert("jsonl", *files, *BASE,
                             warnings=["1 calls of several tokens follow earlier ones of the same req_id"])
        np.testing.assert_array_equal(found["model/moe_layer_id"], [0, 12])
        np.testing.assert_array_equal(found["routing/expert"],
                                      np.stack([np.concatenate(g.ids) for g in reversed(logs)], axis=1))
        np.testing.assert_array_equal(found["routing/gate"], np.stack([np.concatenate(g.weights) for g in reversed(logs)],
                                                                      axis=1).astype(np.float32))
        np.testing.assert_array_equal(found["pass/kind"], [0, 1, 1, 1, 1, 1] * 2)
        np.testing.assert_array_equal(found["pass/block"], [-1, 0, 1, 2, 3, 4] * 2)
        np.testing.assert_array_equal(found["token/position"], [*range(11), *range(14)])
        np.testing.assert_array_equal(found["request/prompt_tokens"], [6, 9])
        self.assertEqual(found[""]["gate_kind"], "as logged, not normalised")
        self.assertEqual((found[""]["engine"], found[""]["engine_version"], found[""]["model_id"]),
                         ("vLLM", "0.11.2", "Qwen/Qwen1.5-MoE-A2.7B-Chat"))
        self.assert_valid()

    def test_layers_in_one_file(self):
        a, b = Log(3).requests(), Log(4).requests()
        b.lines[0] = a.lines[0]
        mixed = Log(3)
        mixed.lines = [a.lines[0], *(line for pair in zip(a.lines[1:], b.lines[1:]) for line in pair)]
        found = self.convert("jsonl", self.put("a.jsonl", mixed.bytes()), *BASE, warnings=["same req_id"])
        np.testing.assert_array_equal(found["routing/expert"], np.stack([np.concatenate(g.ids) for g in (a, b)], axis=1))
        self.assert_valid()

    def test_normalised_weights(self):
        log = Log(0)
        for _ in range(9):
            log.call(1, weights=[0.4, 0.3, 0.2, 0.1])
        log.lines[1]["req_id"] = log.lines[2]["req_id"] = "r0"
        found = self.convert("jsonl", self.put("a.jsonl", log.bytes()), *BASE)
        self.assertEqual(found[""]["gate_kind"], "as logged, normalised over the selected experts")
        self.assert_valid()

    def profiled(self, **more):
        """A profiling pass of thousands of equal rows, and a smaller one, before the requests."""
        log = Log(8, **more)
        log.call(2000, ids=[6, 3, 13, 4], weights=[0.04, 0.03, 0.03, 0.02])
        log.call(128, ids=[6, 3, 13, 4], weights=[0.05, 0.03, 0.03, 0.02])
        return log.requests()

    def test_profiling_passes(self):
        path = self.put("a.jsonl", self.profiled().bytes())
        found = self.convert("jsonl", path, *BASE,
                             warnings=["2 passes with 2128 rows look like an engine's warm-up", "same req_id"])
        np.testing.assert_array_equal(found["pass/kind"], [3, 3] + [0, 1, 1, 1, 1, 1] * 2)
        np.testing.assert_array_equal(found["request/prompt_tokens"], [6, 9])
        np.testing.assert_array_equal(found["pass/request"], [0] * 8 + [1] * 6)
        self.assert_valid()
        found = self.convert("jsonl", path, *BASE, "--dummy", "drop", warnings=["were dropped", "same req_id"])
        np.testing.assert_array_equal(found["pass/kind"], [0, 1, 1, 1, 1, 1] * 2)
        self.assertEqual(len(found["token/state"]), 25)
        self.assert_valid()
        found = self.convert("jsonl", path, *BASE, "--dummy", "keep", warnings=["same req_id"])
        np.testing.assert_array_equal(found["pass/kind"], [0, 0] + [0, 1, 1, 1, 1, 1] * 2)
        self.assertEqual(len(found["request/prompt_tokens"]), 4)
        self.assert_warned_of("not a single committed token")

    def test_profiling_rows_in_a_log_without_calls(self):
        """token_idx counts on: the equal rows are cut off the prefill that they stand in."""
        log = self.profiled(restart=False)
        path = self.put("a.jsonl", log.bytes())
        found = self.convert("jsonl", path, *BASE, warnings=["1 passes with 2128 rows", "token_idx never begins anew"])
        np.testing.assert_array_equal(found["pass/kind"], [3, 0])
        np.testing.assert_array_equal(found["pass/row_offset"], [0, 2128, 2153])
        np.testing.assert_array_equal(found["request/prompt_tokens"], [25])

    def test_prompt_tokens_of_a_log_without_calls(self):
        log = Log(0, restart=False).call(6).call(5)
        found = self.convert("jsonl", self.put("a.jsonl", log.bytes()), *BASE, "--prompt-tokens", 6)
        np.testing.assert_array_equal(found["pass/kind"], [0, 1, 1, 1, 1, 1])
        np.testing.assert_array_equal(found["token/position"], np.arange(11))
        self.assert_valid()

    def test_prompt_tokens_of_each_request(self):
        path = self.put("a.jsonl", Log(0).call(8).call(5, req="r1").bytes())
        found = self.convert("jsonl", path, *BASE, "--prompt-tokens", "6,3")
        np.testing.assert_array_equal(found["pass/kind"], [0, 1, 1, 0, 1, 1])
        np.testing.assert_array_equal(found["request/prompt_tokens"], [6, 3])
        self.assert_valid()
        os.unlink(self.path)
        self.assert_refused("jsonl", path, *BASE, "--prompt-tokens", "6,3,1", text="3 values for 2 requests")
        self.assert_refused("jsonl", path, *BASE, "--prompt-tokens", "0", text="a log's request begins with its prompt")

    def test_uniform_gates(self):
        """A start-up pass with empty activations: all logits, hence all gates, are equal."""
        log = Log(0)
        for i in range(9):
            log.call(1, ids=np.roll(np.arange(TOP_K), i), weights=[0.25] * TOP_K)
        log.call(10, weights=[0.25] * TOP_K)
        log.call(5).call(1)
        found = self.convert("jsonl", self.put("a.jsonl", log.bytes()), *BASE,
                             warnings=["1 passes with 10 rows look like an engine's warm-up", "2 calls of several tokens"])
        np.testing.assert_array_equal(found["pass/kind"], [0] + [1] * 8 + [3, 0, 1])
        self.assertEqual(found[""]["gate_kind"], "as logged, not normalised")
        self.assert_valid()

    def test_only_warm_up(self):
        log = Log(0).call(100, ids=[1, 2, 3, 4])
        self.assert_refused("jsonl", self.put("a.jsonl", log.bytes()), *BASE, text="only warm-up passes are in it")

    def test_refusals(self):
        def changed(at, **values):
            log = Log(0).requests()
            log.lines[at].update(values)
            return log.bytes()
        whole = Log(0).requests().bytes()
        for content, words in (
                (b"", "is empty"), (b"{}\n", "line 1: must be of type meta"), (whole[:-30], "line 26: is no JSON"),
                (whole + b"[]\n", "line 27: is no object"), (whole + b"x" * (1 << 21), "line 27: longer than"),
                (Log(0).bytes(), "no route line"), (b"\xff\xfe", "line 1: is no JSON"),
                (changed(0, top_k=100), "line 1: must be of type meta with top_k"),
                (changed(3, type="end"), "line 4: type is 'end'"), (changed(3, layer=-1), "line 4: layer is -1"),
                (changed(3, token_idx=True), "line 4: token_idx is True"),
                (changed(3, topk_ids=[1, 2, 3]), "line 4: topk_ids is [1, 2, 3], expected 4 expert ids"),
                (changed(3, topk_ids=[1, 2, 3, 1.5]), "line 4: topk_ids"),
                (changed(3, topk_ids=[1, 2, 3, 10**30]), "line 4: topk_ids"),
                (changed(3, topk_ids=[1, 2, 3, 16]), "line 4: expert id 16 of 16"),
                (changed(3, topk_ids=[1, 2, 3, 2]), "line 4: an expert twice in one token: [1, 2, 3, 2]"),
                (changed(3, topk_ids=[0] * 4), "line 4: all 4 slots are expert 0"),
                (changed(3, topk_weights=[0.1, 0.1, 0.1]), "line 4: topk_weights"),
                (changed(3, topk_weights=[0.1, 0.1, 0.1, -0.1]), "line 4: a gate score that is negative"),
                (changed(3, topk_weights=[0.1, 0.1, 0.1, float("nan")]), "line 4: is no JSON (NaN"),
                (changed(3, topk_weights=[0.1, 0.1, 0.1, 10**400]), "line 4: topk_weights"),
                (changed(3, topk_weights=None), "line 4: only a part of the lines has topk_weights")):
            with self.subTest(words):
                self.assert_refused("jsonl", self.put("a.jsonl", content), *BASE, text=words)

    def test_files_that_do_not_fit(self):
        a = self.put("a.jsonl", Log(0).requests().bytes())
        self.assert_refused("jsonl", a, self.put("b.jsonl", Log(0).requests().bytes()), *BASE, text="layer 0 is in")
        self.assert_refused("jsonl", a, self.put("b.jsonl", Log(1).requests().call(1).bytes()), *BASE,
                            text="b.jsonl: line 27: layer 1 parts from layer 0")
        other = Log(1).requests()
        other.lines[9]["req_id"] = "r7"
        self.assert_refused("jsonl", a, self.put("b.jsonl", other.bytes()), *BASE,
                            text="b.jsonl: line 10: layer 1 parts from layer 0")
        other = Log(1).requests()
        other.lines[0]["model_id"] = "other"
        self.assert_refused("jsonl", a, self.put("b.jsonl", other.bytes()), *BASE, text="another model_id or top_k")
        self.assert_refused("jsonl", a, *SIZES, text="give --num-experts N or --config")
        self.assert_refused("jsonl", self.put("c.jsonl", Log(0, num_experts=5000).requests().bytes()), *SIZES,
                            text="num_experts is 5000")


def moelens(tokens=7, seed=1, layers=4, dense=(0,), **changed):
    """As MoELens writes it; top weights are the probabilities, which do not sum to 1."""
    rng, out = np.random.default_rng(seed), []
    for layer in range(layers):
        probs = np.round(rng.dirichlet(np.full(EXPERTS, 0.5), tokens), 5)
        order = np.argsort(-probs, axis=1)[:, :TOP_K]
        rows = [dict(token_index=t, top_experts=order[t].tolist(), top_weights=probs[t, order[t]].tolist(),
                     all_probs=probs[t].tolist()) for t in range(tokens)]
        out.append(dict(layer=layer, is_dense=layer in dense, tokens=None if layer in dense else rows))
    return {**dict(prompt="p", model_id="deepseek-ai/deepseek-moe-16b-base", num_layers=layers, num_experts=EXPERTS,
                   top_k_experts=TOP_K, hidden_size=64, intermediate_size=32, shared_experts=2, dense_layer_indices=list(dense),
                   tokens=[dict(index=t, text="x") for t in range(tokens)], layers=out), **changed}


class MoeLens(ConvertCase):
    PREFILLS = "MoELens records prefills alone"

    def test_prompts(self):
        data = [moelens(7), moelens(5, seed=2)]
        files = [self.put(f"prompt-{i}.json", d) for i, d in enumerate(data)]
        found = self.convert("moelens", *files, "--weight-dtype", "bfloat16", warnings=[self.PREFILLS])
        for part, name, kind in (("top_experts", "expert", "<u2"), ("top_weights", "gate", "<f4"),
                                 ("all_probs", "router_prob", "<f2")):
            expected = [np.array([[t[part] for t in layer["tokens"]] for layer in d["layers"][1:]]) for d in data]
            expected = np.concatenate([e.swapaxes(0, 1) for e in expected]).astype(kind)
            np.testing.assert_array_equal(found[f"routing/{name}"], expected)
            self.assertEqual(found[f"routing/{name}"].dtype, np.dtype(kind))
        np.testing.assert_array_equal(found["model/moe_layer_id"], [1, 2, 3])
        np.testing.assert_array_equal(found["model/expert_bytes"], [3 * 64 * 32 * 2] * 3)
        np.testing.assert_array_equal(found["request/prompt_tokens"], [7, 5])
        np.testing.assert_array_equal(found["pass/kind"], [0, 0])
        self.assertEqual((found[""]["gate_kind"], found[""]["shared_experts"], found[""]["model_id"]),
                         ("softmax, not normalised", 2, "deepseek-ai/deepseek-moe-16b-base"))
        self.assert_warned_of("not a single committed token")

    def test_without_probabilities(self):
        data = moelens()
        for layer in data["layers"][1:]:
            for token in layer["tokens"]:
                del token["all_probs"]
        found = self.convert("moelens", self.put("a.json", data), *SIZES, warnings=[self.PREFILLS])
        self.assertNotIn("routing/router_prob", found)
        self.assertEqual(found[""]["gate_kind"], "unknown score function, not normalised")

    def test_refusals(self):
        def token(**values):
            data = moelens()
            data["layers"][2]["tokens"][3].update(values)
            return data
        place = "layers[2]: tokens[3]"
        later = "layer 2: tokens[3]"
        some = moelens()
        del some["layers"][1]["tokens"][0]["all_probs"]
        short = moelens()
        short["layers"][2]["tokens"].pop()
        twice = moelens()
        twice["layers"][2]["layer"] = 1
        for content, words in (
                (b"", "is empty"), (b"{", "is no JSON"), ([], "has no list `layers`"),
                (moelens(num_experts=0), "num_experts is 0"),
                (moelens(num_experts=10**30), "num_experts is 1"), (moelens(top_k_experts=True), "top_k_experts is True"),
                (moelens(layers=1), "no layer has tokens"),
                (token(top_experts=[1, 2]), f"{place}: top_experts is [1, 2], expected 4"),
                (token(top_experts=[1, 2, 3, 16]), f"{later}: expert id 16"),
                (token(top_experts=[1, 2, 3, 1]), f"{later}: an expert twice"),
                (token(top_experts=[0] * 4), f"{later}: all 4 slots"),
                (token(top_weights=[0.1, 0.1, 0.1, -1]), f"{later}: a gate score that is negative"),
                (token(top_weights=[0.1, "x", 0.1, 0.1]), f"{place}: top_weights"),
                (token(all_probs=[0.5]), f"{place}: all_probs is [0.5], expected 16 numbers"),
                (token(all_probs=[1e300] * 16), f"{place}: all_probs"),
                (token(top_weights=[float("nan")] * 4), "NaN is no number of JSON"), (some, "only some tokens have all_probs"),
                (short, "layers[2]: tokens: 6, expected 7 tokens"), (twice, "layer 1 twice"),
                (moelens(hidden_size=None), "give --expert-bytes N")):
            with self.subTest(words):
                self.assert_refused("moelens", self.put("a.json", content), "--weight-dtype", "bfloat16", text=words)
        self.assert_refused("moelens", self.put("a.json", moelens()), text="does not say how many bytes an expert has")
        self.assert_refused("moelens", self.put("a.json", moelens()), self.put("b.json", moelens(model_id="other")), *SIZES,
                            text="b.json: another model")


if __name__ == "__main__":
    unittest.main()
