# SPDX-License-Identifier: Apache-2.0
"""SGLang's dumps that must be refused: damaged, hostile, of another mode, or without what a trace needs."""
import os
import pickle
import unittest
from pathlib import Path

import numpy as np

from convert_support import SIZES, ConvertCase
from sglang_server import DIFFUSION, EXPERTS, LAYERS, MASK, TOP_K, Server
from support import needs_torch, torch


@needs_torch
class Refusals(ConvertCase):
    def server(self):
        server = Server()
        server.prefill(0, server.rng.integers(1, 900, 12))
        server.block(12, 0)
        return server

    def refused(self, text, change=None, *arguments, **changed):
        server = self.server()
        if change is not None:
            change(server.records[1])
        self.assert_refused("sglang", server.save(self.name("a.pt"), **changed), *(arguments or DIFFUSION), text=text)

    def test_records(self):
        def set_(key, value):
            return lambda record: record.update({key: value})

        def topk(at, value):
            return lambda record: record["topk_ids_of_layer"].__setitem__(at, value)
        for text, change in (
                ("record 1: topk_ids_of_layer[2, 3]: id 16", topk((2, 3, 0), 16)),
                ("record 1: topk_ids_of_layer[2, 3]: id -7", topk((2, 3, 0), -7)),
                ("record 1: topk_ids_of_layer[2, 3]: an expert twice in one token", topk((2, 3), 5)),
                ("record 1: topk_ids_of_layer[2, 0]: all 8 slots are expert 0", topk(2, 0)),
                ("record 1 has no topk_ids_of_layer", lambda r: r.pop("topk_ids_of_layer")),
                ("record 1: topk_ids_of_layer is [4, 3, 8]",
                 set_("topk_ids_of_layer", torch.zeros(4, 3, 8, dtype=torch.int32))),
                ("record 1: topk_ids_of_layer is [4, 8, 8] torch.float32", set_("topk_ids_of_layer", torch.zeros(4, 8, 8))),
                ("record 1: topk_ids_of_layer is [4, 8, 8] torch.int32",        # a huge tensor over one number
                 set_("topk_ids_of_layer", torch.zeros(1, dtype=torch.int32).expand(4, 8, 8))),
                ("record 1: 5 layers, but last_physical_to_logical_map has 4",
                 set_("topk_ids_of_layer", torch.zeros(5, 8, 8, dtype=torch.int32))),
                ("record 1: positions is 2 values", set_("positions", [1, 2])),
                ("record 1: positions[0] is -1", set_("positions", [-1] * 8)),
                ("record 1: positions[0] is '1'", set_("positions", ["1"] * 8)),
                ("record 1: positions of tokens 0..7 jump", set_("positions", list(range(7)) + [99])),
                ("record 1: input_ids[0] is 10000000000000000000000", set_("input_ids", [10**22] * 8)),
                ("record 1: extend_seq_lens sum to 5 for 8 tokens", set_("extend_seq_lens", [5])),
                ("record 1: gatherer_key is 'child_a'", set_("gatherer_key", "child_a"))):
            with self.subTest(text):
                self.refused(text, change)

    def test_files(self):
        whole = Path(self.server().save(self.name("a.pt"))).read_bytes()
        for name, content in (("empty.pt", b""), ("text.pt", b"no torch file\n" * 9), ("cut.pt", whole[:len(whole) // 2]),
                              ("head.pt", whole[:64])):
            with self.subTest(name):
                self.assert_refused("sglang", self.put(name, content), *DIFFUSION, text=self.name(name) + ": ")
        self.assert_refused("sglang", self.name("none.pt"), *DIFFUSION, text="No such file")
        torch.save({"rank": 0, "logical_count": torch.zeros(2, 3, 4)}, self.name("stat.pt"))
        self.assert_refused("sglang", self.name("stat.pt"), *DIFFUSION, text="has no list `records`: modes stat and per_pass")
        torch.save({"records": []}, self.name("none.pt"))
        self.assert_refused("sglang", self.name("none.pt"), *DIFFUSION, text="no record has a token")

    def test_code_is_not_run(self):
        mark = self.name("mark")

        class Evil:
            def __reduce__(self):
                return os.mkdir, (mark,)
        torch.save({"records": [Evil()]}, self.name("evil.pt"))
        self.put("evil.pickle", pickle.dumps(Evil(), protocol=2))
        for name in ("evil.pt", "evil.pickle"):
            with self.subTest(name):
                self.assert_refused("sglang", self.name(name), *DIFFUSION, text="loading it could run code")
        self.assertFalse(os.path.exists(mark))

    def test_maps_and_masks(self):
        self.refused("holds experts outside 0..1023", None, last_physical_to_logical_map=torch.full((LAYERS, EXPERTS), 5000))
        self.refused("does not say how many experts", None, last_physical_to_logical_map=None)
        self.refused("no token is --mask-id 5", None, "--mask-id", 5, *SIZES)
        self.refused("forward_mode 10 is neither prefill nor decode", None, *SIZES)
        self.refused("does not say how many bytes an expert has", None, "--mask-id", MASK)
        self.refused("--dense-layers names layer 4", None, *DIFFUSION, "--dense-layers", "0,4")

    def test_config(self):
        """Layers, k and bytes come from config.json; a layer that must route but does not is refused."""
        config = dict(num_hidden_layers=LAYERS, first_k_dense_replace=1, num_experts=EXPERTS, num_experts_per_tok=TOP_K,
                      hidden_size=64, moe_intermediate_size=32, torch_dtype="bfloat16", num_shared_experts=1)
        path = self.put("config.json", config)
        pt = self.server().save(self.name("a.pt"))
        found = self.convert("sglang", pt, "--mask-id", MASK, "--config", path)
        np.testing.assert_array_equal(found["model/moe_layer_id"], [1, 2, 3])
        np.testing.assert_array_equal(found["model/expert_bytes"], [3 * 64 * 32 * 2] * 3)
        self.assertEqual([found[""][k] for k in ("hidden_size", "weight_dtype", "shared_experts")], [64, "bfloat16", 1])
        self.assert_valid()
        os.unlink(self.path)
        self.put("config.json", {**config, "first_k_dense_replace": 0})
        self.assert_refused("sglang", pt, "--mask-id", MASK, "--config", path, text="layer 0 has experts in")
        self.put("config.json", {**config, "num_hidden_layers": 9})
        self.assert_refused("sglang", pt, "--mask-id", MASK, "--config", path, text="4 layers are recorded, but")


if __name__ == "__main__":
    unittest.main()
