# SPDX-License-Identifier: Apache-2.0
"""A tiny, randomly initialised block-diffusion model with the interface of LLaDA2: class names, dense first layer, gate.

Gate: s = sigmoid(float32 logits). Choice on s + expert_bias: each group of experts counts the sum of its two best, the best
`topk_group` groups stay, top-k among their experts. Weight = s of the chosen, divided by their sum, times
routed_scaling_factor. Written for tests; it computes nothing useful.
"""
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

MASK_ID = 0


def tiny_config(**changed):
    values = dict(vocab_size=96, hidden_size=32, intermediate_size=64, moe_intermediate_size=16, num_hidden_layers=4,
                  first_k_dense_replace=1, num_attention_heads=4, num_experts=32, num_experts_per_tok=4, n_group=8,
                  topk_group=4, num_shared_experts=1, routed_scaling_factor=2.5, norm_topk_prob=True, model_type="llada2_moe")
    values.update(changed)
    return SimpleNamespace(**values)


class LLaDA2MoeMLP(nn.Module):
    def __init__(self, config, width):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.down_proj = nn.Linear(width, config.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LLaDA2MoeGate(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.top_k, self.num_experts = config.num_experts_per_tok, config.num_experts
        self.n_group, self.topk_group = config.n_group, config.topk_group
        self.routed_scaling_factor = config.routed_scaling_factor
        self.weight = nn.Parameter(torch.randn(config.num_experts, config.hidden_size) / config.hidden_size ** 0.5)
        self.register_buffer("expert_bias", torch.randn(config.num_experts) * 0.1)

    def forward(self, x):
        logits = F.linear(x.reshape(-1, x.shape[-1]).float(), self.weight.float())
        score = torch.sigmoid(logits)
        grouped = (score + self.expert_bias).view(len(score), self.n_group, -1)
        best_groups = grouped.topk(2, dim=-1).values.sum(-1).topk(self.topk_group, dim=-1).indices
        dropped = torch.ones(len(score), self.n_group, dtype=torch.bool, device=x.device).scatter(1, best_groups, False)
        ids = grouped.masked_fill(dropped[..., None], float("-inf")).flatten(1).topk(self.top_k, dim=-1).indices
        weight = score.gather(1, ids)
        weight = weight / (weight.sum(-1, keepdim=True) + 1e-20) * self.routed_scaling_factor
        return ids, weight, logits


class LLaDA2MoeSparseMoeBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.experts = nn.ModuleList(LLaDA2MoeMLP(config, config.moe_intermediate_size) for _ in range(config.num_experts))
        self.gate = LLaDA2MoeGate(config)
        self.shared_experts = LLaDA2MoeMLP(config, config.moe_intermediate_size * config.num_shared_experts)

    def forward(self, x):
        ids, weight, _ = self.gate(x)
        flat = x.reshape(-1, x.shape[-1])
        out = torch.zeros_like(flat)
        for expert in ids.unique().tolist():
            row, slot = torch.where(ids == expert)
            out.index_add_(0, row, self.experts[expert](flat[row]) * weight[row, slot, None].to(x.dtype))
        return out.view_as(x) + self.shared_experts(x)


class LLaDA2MoeAttention(nn.Module):
    """Every row sees the whole KV cache and all rows of its own call: attention is bidirectional within a block."""

    def __init__(self, config):
        super().__init__()
        self.heads = config.num_attention_heads
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=False)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def forward(self, x, past):
        batch, rows, hidden = x.shape
        q, k, v = self.query_key_value(x).view(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        attention = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
        return self.dense((attention @ v).transpose(1, 2).reshape(batch, rows, hidden)), (k, v)


class LLaDA2MoeDecoderLayer(nn.Module):
    def __init__(self, config, index):
        super().__init__()
        self.attention = LLaDA2MoeAttention(config)
        self.mlp = (LLaDA2MoeSparseMoeBlock(config) if index >= config.first_k_dense_replace
                    else LLaDA2MoeMLP(config, config.intermediate_size))
        self.input_layernorm = nn.LayerNorm(config.hidden_size)
        self.post_attention_layernorm = nn.LayerNorm(config.hidden_size)

    def forward(self, x, past):
        attended, present = self.attention(self.input_layernorm(x), past)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), present


class LLaDA2MoeModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(LLaDA2MoeDecoderLayer(config, i) for i in range(config.num_hidden_layers))
        self.norm = nn.LayerNorm(config.hidden_size)


class LLaDA2MoeModelLM(nn.Module):
    """Returns logits [batch, rows, vocabulary] and the KV cache of prefix and rows, one (key, value) a layer."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = LLaDA2MoeModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids, position_ids, past_key_values=None):
        angle = position_ids[..., None] * torch.arange(1, self.config.hidden_size + 1, device=input_ids.device) * 0.05
        x = self.model.word_embeddings(input_ids) + torch.sin(angle)
        presents = []
        for i, layer in enumerate(self.model.layers):
            x, present = layer(x, None if past_key_values is None else past_key_values[i])
            presents.append(present)
        return SimpleNamespace(logits=self.lm_head(self.model.norm(x)) * 12, past_key_values=presents)


def tiny_llada2(seed=1, **changed):
    """The model with weights drawn from `seed`; keywords change the configuration."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LLaDA2MoeModelLM(tiny_config(**changed)).eval().requires_grad_(False)
