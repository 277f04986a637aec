# SPDX-License-Identifier: Apache-2.0
"""Finds the gates of a model and reads ids and gate scores from what they return.

A gate is a module whose output decides the routing. Two kinds exist in the wild:
- it returns the choice itself, a tuple with an integer tensor [tokens, K] of ids and a float tensor of the same shape;
- it is a plain linear layer that returns logits, and its parent block chooses. Then the choice is made again here by the
  same operations in the same precision, so it is the same choice.
A model is known by the class names of its gates and blocks: one row of `ADAPTERS` for each family.
"""
import re
from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch

from .writer import Problem


@dataclass(frozen=True)
class Adapter:
    """A family of models: `gate` and `block` are patterns of class names, of the gate and of the module that owns it."""
    name: str
    gate: str
    block: str
    score: str                             # how the gate scores, first word of gate_kind
    normalises: Optional[bool] = None      # True, False, or None: the block's or gate's `norm_topk_prob` says


ANY = r".*"
ADAPTERS = (
    Adapter("LLaDA2", r"LLaDA2Moe?Gate", ANY, "sigmoid, group-limited on score plus bias", True),
    Adapter("LLaDA-MoE", ANY, r"LLaDAMo[eE]SparseMo[eE]Block", "softmax"),
    Adapter("SDAR", ANY, r"SDARMo[eE]SparseMo[eE]Block", "softmax"),
    Adapter("RND1", ANY, r"RND1SparseMoeBlock", "softmax"),
    Adapter("Mixtral", ANY, r"MixtralSparseMoeBlock", "softmax", True),
    Adapter("Qwen2-MoE", ANY, r"Qwen2MoeSparseMoeBlock", "softmax"),
    Adapter("Qwen3-MoE", ANY, r"Qwen3(Next|_5Moe|VLMoeText)?(Moe)?SparseMoeBlock", "softmax"),
    Adapter("OLMoE", ANY, r"OlmoeSparseMoeBlock", "softmax"),
    Adapter("DeepSeek-V2", r"DeepseekV2TopkRouter|MoEGate", r"DeepseekV2Mo[eE]", "softmax", False),
    Adapter("DeepSeek-V3", r"DeepseekV3TopkRouter|MoEGate", r"DeepseekV3Mo[eE]",
            "sigmoid, group-limited on score plus bias"),
    Adapter("GLM-4-MoE", r"Glm4MoeTopkRouter", r"Glm4Moe(Lite)?MoE", "sigmoid, group-limited on score plus bias"),
    Adapter("gpt-oss", r"GptOssTopKRouter", r"GptOssMLP", "softmax over the selected logits", True),
    Adapter("ERNIE", ANY, r"Ernie4_5_MoeSparseMoeBlock", "softmax, selected on score plus bias", True),
)


@dataclass
class Gate:
    """One MoE layer of a model: the hooked module, its owner, and how the output is read."""
    name: str
    module: torch.nn.Module
    block: torch.nn.Module
    layer: int                              # the layer's number in the real model
    num_experts: int
    kind: str
    read: Callable[[torch.nn.Module, Any, Any], tuple]


def first(objects, *names):
    """The first attribute of `names` that one of `objects` has and that is not None."""
    for name in names:
        for thing in objects:
            value = getattr(thing, name, None)
            if value is not None:
                return value
    return None


def _layer_number(name, index):
    found = re.findall(r"(?:layers|blocks|h|layer)\.(\d+)\.", name)
    return int(found[-1]) if found else index


def _num_experts(module, block, config):
    count = first((module, block, config), "num_experts", "n_routed_experts", "num_local_experts", "n_experts")
    if isinstance(count, int):
        return count
    weight = getattr(module, "weight", None)
    return int(weight.shape[0]) if weight is not None and weight.dim() == 2 else None


def _kind(adapter, normalised, module, block, config):
    """The text of attribute gate_kind."""
    text = f"{adapter.score}, {'normalised over the selected experts' if normalised else 'not normalised'}"
    factor = first((module, block, config), "routed_scaling_factor")
    if isinstance(factor, (int, float)) and factor != 1:
        text += f", scaled by {factor:g}"
    return text


def choose_from_logits(logits, block, normalised):
    """What the blocks of the Qwen3-MoE shape compute: softmax in float32, top-k, optionally normalised."""
    top_k = first((block,), "top_k", "num_experts_per_tok", "num_selected_experts")
    if top_k is None:
        raise Problem(f"{type(block).__name__} has no top_k: pass read=, a function (module, inputs, output) -> (ids, gates)")
    if getattr(block, "score_func", "softmax") not in ("softmax", None) or getattr(block, "expert_bias", None) is not None:
        raise Problem(f"{type(block).__name__} does not choose by softmax alone: pass read=, a function (module, inputs, "
                      "output) -> (ids, gates)")
    probabilities = torch.nn.functional.softmax(logits, dim=-1, dtype=torch.float)
    gates, ids = torch.topk(probabilities, int(top_k), dim=-1)
    if normalised:
        gates = gates / gates.sum(dim=-1, keepdim=True)
    return ids, gates.to(logits.dtype)


def _is_integer(tensor):
    return torch.is_tensor(tensor) and not tensor.is_floating_point() and not tensor.is_complex() and tensor.dim() >= 2


def read_choice(parts):
    """(ids, gates) of a gate that returns its choice: the integer tensor and the float tensor of its shape next to it.

    A float tensor over all experts (gpt-oss in transformers 4) is looked up at the ids. None where there is no choice.
    """
    at = next((i for i, part in enumerate(parts) if _is_integer(part)), None)
    if at is None:
        return None
    ids = parts[at]
    floats = [(abs(i - at), part) for i, part in enumerate(parts) if torch.is_tensor(part) and part.is_floating_point()]
    same = [pair for pair in floats if pair[1].shape == ids.shape]
    if same:
        return ids, min(same, key=lambda pair: pair[0])[1]
    wide = [pair for pair in floats if pair[1].dim() == ids.dim() and pair[1].shape[:-1] == ids.shape[:-1]]
    if wide:
        return ids, torch.gather(min(wide, key=lambda pair: pair[0])[1], -1, ids.long())
    return ids, None


def reader(block, normalised):
    """Reads a gate's output as (ids, gates); `block` chooses where the gate does not."""
    def read(module, inputs, output):
        parts = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        choice = read_choice(parts)
        if choice is not None:
            return choice
        logits = next((part for part in parts if torch.is_tensor(part) and part.is_floating_point()), None)
        if logits is None:
            raise Problem(f"{type(module).__name__} returned {type(output).__name__}, neither a choice nor logits: pass read=")
        route = getattr(block, "route_tokens_to_experts", None)     # transformers 5.0: the block's own function
        if route is not None:
            choice = read_choice(tuple(route(logits)))
            if choice is not None:
                return choice
        return choose_from_logits(logits, block, normalised)
    return read


def _adapter_of(module, block):
    for adapter in ADAPTERS:
        if re.fullmatch(adapter.gate, type(module).__name__) and re.fullmatch(adapter.block, type(block).__name__):
            return adapter
    return None


def find_gates(model, pattern=None, read=None, gate_kind=None):
    """The gates of a model in the order of its modules.

    `pattern` selects modules by a regular expression over their names, or by a function (name, module) -> bool; without it
    the table does. `read` replaces the reading of outputs. Raises Problem where nothing is found.
    """
    modules = dict(model.named_modules())
    config = getattr(model, "config", None)
    config = getattr(config, "text_config", None) or config
    wanted = pattern if callable(pattern) else (lambda name, _: re.search(pattern, name) is not None)
    gates = []
    for name, module in modules.items():
        parent, _, leaf = name.rpartition(".")
        block = modules.get(parent, model)
        if pattern is not None:
            if not wanted(name, module):
                continue
            adapter = _adapter_of(module, block) or Adapter("pattern", ANY, ANY, "softmax")
        else:
            adapter = _adapter_of(module, block) if leaf in ("gate", "router") else None
            if adapter is None:
                continue
        normalised = adapter.normalises
        if normalised is None:
            normalised = bool(first((block, module, config), "norm_topk_prob"))
        kind = gate_kind or ("unknown" if read is not None or adapter.name == "pattern"
                             else _kind(adapter, normalised, module, block, config))
        gates.append(Gate(name, module, block, _layer_number(name + ".", len(gates)), _num_experts(module, block, config),
                          kind, read or reader(block, normalised)))
    if not gates:
        known = ", ".join(adapter.name for adapter in ADAPTERS)
        raise Problem(f"no gate found in {type(model).__name__}: known are {known}; for others pass gates=, a regular "
                      "expression over the names of model.named_modules() or a function (name, module) -> bool")
    return gates


def expert_bytes(block, num_experts):
    """Bytes of one routed expert of `block` as stored, or None where its experts cannot be told apart."""
    experts = getattr(block, "experts", None)
    if isinstance(experts, (torch.nn.ModuleList, torch.nn.ModuleDict)) and len(experts) > 0:
        one = next(iter(experts.values() if isinstance(experts, torch.nn.ModuleDict) else experts))
        return sum(t.numel() * t.element_size() for t in one.state_dict().values())
    if isinstance(experts, torch.nn.Module):
        tensors = list(experts.state_dict().values())
        if tensors and all(t.dim() >= 2 and t.shape[0] == num_experts for t in tensors):
            return sum(t.numel() * t.element_size() for t in tensors) // num_experts
    return None
