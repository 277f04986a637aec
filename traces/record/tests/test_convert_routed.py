# SPDX-License-Identifier: Apache-2.0
"""routed_experts as vLLM (.npy, base64 of one) and SGLang (base64 of raw int32) give them."""
import base64
import io
import os
import unittest

import numpy as np

from convert_support import SIZES, ConvertCase, random_routes

LAYERS, EXPERTS, TOP_K, PROMPT, TOKENS = 4, 16, 4, 5, 12       # layers 0 and 2 are dense
LAST = "keep the last pass of each position alone"
CONFIG = dict(num_hidden_layers=LAYERS, mlp_only_layers=[0], decoder_sparse_step=1, num_experts=EXPERTS, hidden_size=64,
              num_experts_per_tok=TOP_K, moe_intermediate_size=32, dtype="bfloat16")
EXPLICIT = ["--dense-layers", "0,2", "--num-experts", EXPERTS, *SIZES]


def routes(seed=1, tokens=TOKENS, top_k=TOP_K):
    """As an engine leaves them: zeros in dense layers."""
    ids = random_routes(np.random.default_rng(seed), tokens, LAYERS, EXPERTS, top_k)
    ids[:, [0, 2]] = 0
    return ids


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def text(data):
    return base64.b64encode(data).decode()


class Arrays(ConvertCase):
    def assert_is(self, found, arrays, prompts):
        np.testing.assert_array_equal(found["routing/expert"], np.concatenate([a[:, [1, 3]] for a in arrays]))
        np.testing.assert_array_equal(found["model/moe_layer_id"], [1, 3])
        kinds, states, blocks = [], [], []
        for array, prompt in zip(arrays, prompts):
            steps = len(array) - prompt
            kinds += [0] + [1] * steps
            states += [2] * prompt + [1] * steps
            blocks += [-1, *range(steps)]
        np.testing.assert_array_equal(found["pass/kind"], kinds)
        np.testing.assert_array_equal(found["pass/block"], blocks)
        np.testing.assert_array_equal(found["token/state"], states)
        np.testing.assert_array_equal(found["token/position"], np.concatenate([np.arange(len(a)) for a in arrays]))
        np.testing.assert_array_equal(found["request/prompt_tokens"], prompts)
        self.assertNotIn("routing/gate", found)
        self.assertEqual(found[""]["gate_kind"], "not recorded")

    def test_npy(self):
        a, b = routes(1), routes(2, 9)
        files = self.put("a.npy", npy(a)), self.put("b.npy", npy(b))
        found = self.convert("routed-experts", *files, *EXPLICIT, "--prompt-tokens", f"{PROMPT},3", warnings=[LAST])
        self.assert_is(found, [a, b], [PROMPT, 3])
        self.assert_valid()

    def test_kinds_of_npy(self):
        """Fortran order, other integers and byte orders say the same."""
        a = routes()
        for i, other in enumerate((np.asfortranarray(a), a.astype(">i8"), a.astype(np.uint8))):
            with self.subTest(i):
                found = self.convert("routed-experts", self.put("a.npy", npy(other)), *EXPLICIT, "--prompt-tokens", PROMPT,
                                     warnings=[LAST])
                self.assert_is(found, [a], [PROMPT])

    def test_sglang_generate(self):
        """Two answers of /generate in one list; the shape comes from config.json, the prompt from the answer."""
        a, b = routes(1), routes(2)
        value = [{"text": "x", "meta_info": {"prompt_tokens": PROMPT, "routed_experts": text(r.tobytes())}} for r in (a, b)]
        config = self.put("config.json", {**CONFIG, "mlp_only_layers": [0, 2]})
        found = self.convert("routed-experts", self.put("r.json", value), "--config", config, warnings=[LAST])
        self.assert_is(found, [a, b], [PROMPT, PROMPT])
        np.testing.assert_array_equal(found["model/expert_bytes"], [3 * 64 * 32 * 2] * 2)
        self.assert_valid()

    def test_openai_form(self):
        """vLLM's base64 of a NumPy file, and SGLang's sgl_ext, for each choice."""
        a, b = routes(1), routes(2)
        for name, choices in (("vllm", [{"routed_experts": text(npy(r))} for r in (a, b)]),
                              ("sglang", [{"sgl_ext": {"routed_experts": text(r.tobytes())}} for r in (a, b)])):
            with self.subTest(name):
                path = self.put("r.json", {"choices": choices, "usage": {"prompt_tokens": PROMPT}})
                found = self.convert("routed-experts", path, *EXPLICIT, "--layers", LAYERS, "--top-k", TOP_K, warnings=[LAST])
                self.assert_is(found, [a, b], [PROMPT, PROMPT])
                self.assert_valid()

    def test_lists_with_the_prompt_apart(self):
        """vLLM 0.21: nested lists, MoE layers alone, prompt_routed_experts once for all choices, -1 for a cached prefix."""
        a, b = (routes(seed)[:, [1, 3]] for seed in (1, 2))
        b[:PROMPT] = a[:PROMPT]
        path = self.put("r.json", {"prompt_routed_experts": a[:PROMPT].tolist(), "usage": {"prompt_tokens": PROMPT},
                                   "choices": [{"routed_experts": r[PROMPT:].tolist()} for r in (a, b)]})
        config = self.put("config.json", {**CONFIG, "mlp_only_layers": [0, 2]})
        found = self.convert("routed-experts", path, "--config", config, warnings=[LAST])
        whole = np.zeros((2, TOKENS, LAYERS, TOP_K), dtype=np.int32)
        whole[:, :, [1, 3]] = a, b
        self.assert_is(found, whole, [PROMPT, PROMPT])
        self.assert_valid()
        cached = a[:PROMPT].copy()
        cached[:3] = -1
        path = self.put("r.json", [{"choices": [{"text": "x", "routed_experts": None}]},       # a preempted request
                                   {"prompt_routed_experts": cached.tolist(),
                                    "choices": [{"routed_experts": a[PROMPT:].tolist()}]}])
        found = self.convert("routed-experts", path, "--config", config,
                             warnings=["3 positions without any route", LAST, "1 answers without routed_experts were left out"])
        np.testing.assert_array_equal(found["token/position"], np.arange(3, TOKENS))
        np.testing.assert_array_equal(found["routing/expert"], a[3:])
        np.testing.assert_array_equal(found["request/prompt_tokens"], [PROMPT])
        self.assert_valid()

    def test_start_len(self):
        a = routes()[3:]
        found = self.convert("routed-experts", self.put("a.npy", npy(a)), *EXPLICIT, "--prompt-tokens", PROMPT,
                             "--start-len", 3, warnings=[LAST])
        np.testing.assert_array_equal(found["token/position"], np.arange(3, TOKENS))
        np.testing.assert_array_equal(found["pass/row_offset"][:3], [0, PROMPT - 3, PROMPT - 2])
        self.assert_valid()

    def test_layers_left_out_already(self):
        """An engine that records MoE layers alone: config.json says which they are."""
        a = routes()
        config = self.put("config.json", {**CONFIG, "mlp_only_layers": [0, 2]})
        found = self.convert("routed-experts", self.put("a.npy", npy(a[:, [1, 3]])), "--config", config,
                             "--prompt-tokens", PROMPT, warnings=[LAST])
        self.assert_is(found, [a], [PROMPT])

    def test_dense_layers_of_one_expert_a_token(self):
        a = routes(top_k=1)
        found = self.convert("routed-experts", self.put("a.npy", npy(a)), "--num-experts", EXPERTS, *SIZES, "--prompt-tokens",
                             PROMPT, warnings=[LAST, "layers 0, 2 use expert 0 alone"])
        self.assertEqual(found["routing/expert"].shape, (TOKENS, LAYERS, 1))


class Refusals(ConvertCase):
    def refused(self, content, *arguments, text):
        self.assert_refused("routed-experts", self.put("in", content), *(arguments or (*EXPLICIT, "--prompt-tokens", PROMPT)),
                            text=text)

    def test_zero_filled_layers(self):
        """A dense layer looks like expert 0 in every slot; so does a position that was not computed."""
        a = routes()
        prompt = ("--prompt-tokens", PROMPT)
        self.refused(npy(a), "--num-experts", EXPERTS, *SIZES, *prompt, text="token 0, layer 0: all 4 slots are expert 0")
        self.refused(npy(a), "--num-experts", EXPERTS, *SIZES, *prompt, "--dense-layers", 0,
                     text="token 0, layer 2: all 4 slots are expert 0")
        self.refused(npy(a), *prompt, "--config", self.put("config.json", CONFIG), text="name dense layers with --dense-layers")
        a[3, 1] = 0
        self.refused(npy(a), text="token 3, layer 1: all 4 slots are expert 0")

    def test_values(self):
        for value, words in ((EXPERTS, "expert id 16 of 16"), (-2, "expert id -2"), (2**31 - 1, "expert id 2147483647")):
            a = routes()
            a[7, 3, 1] = value
            self.refused(npy(a), text=f"in: token 7, layer 3: {words}")
        a = routes()
        a[7, 3, 1] = a[7, 3, 0]
        self.refused(npy(a), text="token 7, layer 3: an expert twice in one token")

    def test_npy_files(self):
        whole = npy(routes())
        huge = whole.replace(b"(12, 4, 4)", b"(99999999999, 4, 4)").replace(b"         \n", b"\n")
        self.refused(whole[:-4], text="was cut short or damaged")
        self.refused(whole + b"1234", text="bytes, but")
        self.refused(whole[:40], text="is no whole NumPy file")
        self.refused(huge, text="99999999999, 4, 4")
        self.refused(npy(routes().astype(np.float32)), text="holds float32 [12, 4, 4], expected integers [tokens, layers, k]")
        self.refused(npy(routes().reshape(-1)), text="expected integers [tokens, layers, k]")
        self.refused(npy(np.array([[["a"]]], dtype=object)), text="holds object")
        self.refused(npy(routes(tokens=0)), text="leave requests without tokens out")
        self.refused(b"", text="is empty")

    def test_json(self):
        a = routes()

        def answer(data):
            return {"meta_info": {"prompt_tokens": PROMPT, "routed_experts": data}}
        shape = (*EXPLICIT, "--layers", LAYERS, "--top-k", TOP_K)
        for content, words in (
                (answer("!!!not base64"), "meta_info.routed_experts: is no base64"),
                (answer(text(a.tobytes())[:-3]), "is no base64"),
                (answer(text(a.tobytes())[:8] + "!" + text(a.tobytes())[8:]), "is no base64"),
                (answer(text(a.tobytes()[:-4])), "are no whole number of tokens of 4 layers x 4 experts x 4 bytes"),
                (answer(text(npy(a)[:-8])), "was cut short"),
                (answer(3), "is int, expected base64 or lists"), (answer([1, 2]), "meta_info.routed_experts[0]: 1, expected"),
                (answer([[[1, 2]], [[1]]]), "meta_info.routed_experts[1][0]: [1], expected"),
                (answer([[[1, 2.5]]]), "[0][0]: [1, 2.5], expected"), (answer([[[1, 10**30]]]), "[0][0]: [1, 1"),
                (answer([[[-1] * 4] * 4] * 6), "no token has a route"), (answer([]), "leave requests without tokens out"),
                ({"prompt_routed_experts": [[[1, 2]]], "choices": [{"routed_experts": a.tolist()}]}, "the response is damaged"),
                ({"choices": [{"text": "x"}]}, "no routed_experts in it"),
                ({"choices": 3}, "no routed_experts in it"),
                ([3], "is no response"), ("x", "is neither a .npy file nor a response"),
                (b"{\"a\": NaN}", "NaN is no number of JSON"), (b"[" * 100000, "nested too deeply"),
                (b"{\"a\"", "is no JSON"), (b"\xff\xfe\x00", "is no JSON"),
                (b"[" + b"9" * 10000 + b"]", "in")):
            with self.subTest(words):
                self.refused(content, *shape, text=words)
        self.refused(answer(text(a.tobytes())), *EXPLICIT, text="give --layers N and --top-k N, or --config")

    def test_numbers_that_are_not_there(self):
        a = npy(routes())
        self.refused(a, *EXPLICIT, text="give --prompt-tokens N")
        self.refused(a, *EXPLICIT, "--prompt-tokens", 5, "--layers", 3, text="layers are recorded, but --layers says 3")
        self.refused(a, *EXPLICIT, "--prompt-tokens", "1,2", text="--prompt-tokens has 2 values for 1 requests")
        self.refused(a, *EXPLICIT, "--prompt-tokens", TOKENS + 2, text="correct --prompt-tokens or --start-len")
        self.refused(a, *EXPLICIT, "--prompt-tokens", 5, "--top-k", 3, text="with a layer of experts and k = 3")
        self.refused(a, "--dense-layers", "0:4", "--num-experts", 16, *SIZES, "--prompt-tokens", 5,
                     text="with a layer of experts")
        self.refused(a, "--dense-layers", "0,2", *SIZES, "--prompt-tokens", 5, text="give --num-experts N or --config")
        self.refused(a, "--dense-layers", "0,2", "--num-experts", 16, "--prompt-tokens", 5, text="give --expert-bytes N")
        self.refused(a, *EXPLICIT[:4], "--expert-bytes", "1,2,3", "--prompt-tokens", 5, text="3 values for 2 MoE layers")
        other = self.put("b.npy", npy(routes(top_k=2)))
        self.assert_refused("routed-experts", self.put("a.npy", a), other, *EXPLICIT, "--prompt-tokens", 5,
                            text="b.npy: [12, 4, 2], expected tokens of [4, 4]")
        self.assertEqual(sorted(os.listdir(self._folder.name)), ["a.npy", "b.npy", "in"])


if __name__ == "__main__":
    unittest.main()
