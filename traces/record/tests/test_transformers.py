# SPDX-License-Identifier: Apache-2.0
"""Randomly initialised models of transformers: ids and gates against output_router_logits, generate(), and validation.

Run by itself it prints a line for each architecture.
"""
import unittest

import numpy as np

from support import TraceCase, load, needs_torch, torch
from moesim_record import Recorder

try:
    import transformers
except ImportError:
    transformers = None

EXPERTS, TOP_K = 8, 2
SHAPE = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=4, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MOE = dict(moe_intermediate_size=16, num_experts_per_tok=TOP_K)
DEEPSEEK = dict(**MOE, n_routed_experts=EXPERTS, n_group=4, topk_group=2, n_shared_experts=1, first_k_dense_replace=1,
                q_lora_rank=16, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8)
MODELS = {      # name: prefix of the classes, configuration, score, normalised, scaled by
    "Mixtral": ("Mixtral", dict(num_local_experts=EXPERTS, num_experts_per_tok=TOP_K), "softmax", True, 1),
    "Qwen2-MoE": ("Qwen2Moe", dict(**MOE, num_experts=EXPERTS, shared_expert_intermediate_size=16), "softmax", False, 1),
    "Qwen3-MoE": ("Qwen3Moe", dict(**MOE, num_experts=EXPERTS, norm_topk_prob=True, head_dim=8), "softmax", True, 1),
    "OLMoE": ("Olmoe", dict(num_experts=EXPERTS, num_experts_per_tok=TOP_K), "softmax", False, 1),
    "DeepSeek-V2": ("DeepseekV2", dict(DEEPSEEK, topk_method="greedy", routed_scaling_factor=1.0), "softmax", False, 1),
    "DeepSeek-V3": ("DeepseekV3", dict(DEEPSEEK, routed_scaling_factor=2.5), "sigmoid", True, 2.5),
    "GLM-4-MoE": ("Glm4Moe", dict(**MOE, n_routed_experts=EXPERTS, n_group=4, topk_group=2, n_shared_experts=1, head_dim=8,
                                  first_k_dense_replace=1, routed_scaling_factor=1.5), "sigmoid", True, 1.5),
    "gpt-oss": ("GptOss", dict(num_local_experts=EXPERTS, num_experts_per_tok=TOP_K, head_dim=8), "selected", True, 1),
    "ERNIE": ("Ernie4_5_Moe", dict(moe_intermediate_size=16, moe_num_experts=EXPERTS, moe_k=TOP_K, moe_num_shared_experts=1,
                                   moe_layer_start_index=1), "softmax", True, 1),
}


def build(name):
    prefix, config, *_ = MODELS[name]
    torch.manual_seed(5)
    config = getattr(transformers, prefix + "Config")(**{**SHAPE, **config})
    config._attn_implementation = "eager"
    model = getattr(transformers, prefix + "ForCausalLM")(config).eval().requires_grad_(False)
    for module in model.modules():      # untrained gates are zero in some architectures, and so are the biases
        if type(module).__name__.endswith(("Router", "Gate")) and isinstance(getattr(module, "weight", None), torch.Tensor):
            module.weight.normal_()
        bias = getattr(module, "e_score_correction_bias", None)
        if bias is not None:
            bias.copy_(torch.randn_like(bias) * 0.1)
    return model


def expected(logits, score, normalised, factor, bias):
    """ids in ascending order and their gates, from router logits [rows, experts] by the rule of the architecture."""
    logits = logits.double()
    scores = {"softmax": torch.softmax(logits, -1), "sigmoid": torch.sigmoid(logits), "selected": logits}[score]
    choice = scores + bias
    if score == "sigmoid":
        grouped = choice.view(len(choice), 4, -1)
        kept = grouped.topk(2, dim=-1).values.sum(-1).topk(2, dim=-1).indices
        dropped = torch.ones(len(choice), 4, dtype=torch.bool).scatter(1, kept, False)
        choice = grouped.masked_fill(dropped[..., None], float("-inf")).flatten(1)
    ids = choice.topk(TOP_K, dim=-1).indices.sort(dim=-1).values
    gates = scores.gather(1, ids)
    if score == "selected":
        gates = torch.softmax(gates, -1)
    elif normalised:
        gates = gates / gates.sum(-1, keepdim=True)
    return ids.numpy(), (gates * factor).numpy()


def biases(model):
    return [m.e_score_correction_bias.reshape(-1).double() for m in model.modules()
            if getattr(m, "e_score_correction_bias", None) is not None]


@needs_torch
@unittest.skipIf(transformers is None, "no transformers")
class Architectures(TraceCase):
    def check(self, name):
        _, _, score, normalised, factor = MODELS[name]
        model = build(name)
        ids = torch.randint(3, 64, (1, 16), generator=torch.Generator().manual_seed(1))
        plain = model(ids).logits
        before = model.generate(ids, max_new_tokens=6, do_sample=False)
        with Recorder(model, self.path, gate_dtype="f32", overwrite=True) as rec:
            rec.request("forward", 16)
            rec.begin_pass("denoise", range(16), block=0)
            out = model(ids, output_router_logits=True)
            rec.end_pass(committed=[True] * 16)
            after = model.generate(ids, max_new_tokens=6, do_sample=False)
        self.assertTrue(torch.equal(out.logits, plain))
        self.assertTrue(torch.equal(before, after))
        found = load(self.path)
        logits = [layer.reshape(-1, EXPERTS) for layer in out.router_logits]
        self.assertEqual(len(logits), found[""]["num_moe_layers"])
        bias = biases(model) or [0.0] * len(logits)
        self.assertEqual(len(bias), len(logits))
        for m, layer in enumerate(logits):
            want, gates = expected(layer, score, normalised, factor, bias[m])
            order = np.argsort(found["routing/expert"][:16, m], axis=-1)
            np.testing.assert_array_equal(np.take_along_axis(found["routing/expert"][:16, m], order, -1), want)
            np.testing.assert_allclose(np.take_along_axis(found["routing/gate"][:16, m], order, -1), gates, rtol=1e-4)
        self.assertGreater(len(np.unique(found["routing/expert"])), TOP_K)
        new = after.shape[1] - 16
        self.assertEqual(list(found["pass/kind"]), [1, 0] + [1] * (new - 1))
        self.assertEqual(list(found["token/position"][32:]), list(range(16, 16 + new - 1)))
        self.assertEqual(len(set(found["model/expert_bytes"])), 1)
        self.assert_valid()
        return found

    def run_all(self, name):
        found = self.check(name)
        kind, size, ids = found[""]["gate_kind"], found["model/expert_bytes"][0], found["model/moe_layer_id"].tolist()
        print(f"{name}: ids and gates equal, outputs unchanged; layers {ids}, {size} bytes an expert, {kind}")


def _add(name):
    setattr(Architectures, "test_" + name.lower().replace("-", "_"), lambda self: self.run_all(name))


for _name in MODELS:
    _add(_name)


if __name__ == "__main__":
    if torch is not None and transformers is not None:
        print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}")
    unittest.main()
