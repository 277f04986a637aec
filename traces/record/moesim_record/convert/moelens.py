# SPDX-License-Identifier: Apache-2.0
"""MoELens's JSON: one prompt a file, its prefill alone, with ids, weights and the probabilities of all experts.

`num_layers, num_experts, top_k_experts, hidden_size, intermediate_size, tokens, layers[{layer, is_dense, tokens[{top_experts,
top_weights, all_probs}]}]`; `tokens` of a dense layer is null. Weights are rounded to five digits and not renormalised.
"""
import numpy as np

from ..writer import COMMITTED, Problem
from . import model as known
from .draft import Draft, Pass, check_gates, check_ids


def _count(data, key, low, high, path):
    value = data.get(key)
    if not known.is_whole(value) or not low <= value <= high:
        raise Problem(f"{path}: {key} is {value!r}, expected a whole number within {low}..{high}; this is no routing trace of "
                      "MoELens")
    return value


def _vector(token, key, n, whole, place):
    value = token.get(key) if isinstance(token, dict) else None
    kinds = (int,) if whole else (int, float)
    if not isinstance(value, list) or len(value) != n or not all(type(v) in kinds and abs(v) < 1e30 for v in value):
        raise Problem(f"{place}: {key} is {str(value)[:80]}, expected {n} {'expert ids' if whole else 'numbers'}")
    return value


class _Prompt:
    """One file, checked: layers, ids and weights [tokens, M, K], all probabilities [tokens, M, E] or None."""

    def __init__(self, path):
        data = known.read_json(path, "MoELens's routing trace")
        if not isinstance(data, dict) or not isinstance(data.get("layers"), list):
            raise Problem(f"{path}: has no list `layers`; this is no routing trace of MoELens")
        self.path = path
        self.experts = _count(data, "num_experts", 1, 1024, path)
        self.top_k = _count(data, "top_k_experts", 1, min(64, self.experts), path)
        self.hidden = data.get("hidden_size")
        self.inner = data.get("intermediate_size")
        self.shared = data.get("shared_experts")
        self.model_id = data.get("model_id") if isinstance(data.get("model_id"), str) else ""
        self.rows, found = None, {}
        for i, layer in enumerate(data["layers"]):
            place = f"{path}: layers[{i}]"
            if not isinstance(layer, dict):
                raise Problem(f"{place}: is no object; this is no routing trace of MoELens")
            if layer.get("is_dense") is True or layer.get("tokens") is None:
                continue
            number = _count(layer, "layer", 0, 2**31 - 1, place)
            if number in found:
                raise Problem(f"{place}: layer {number} twice")
            found[number] = self._layer(layer["tokens"], place)
        if not found:
            raise Problem(f"{path}: no layer has tokens; record again")
        self.layers = sorted(found)
        self._join([found[n] for n in self.layers])

    def _layer(self, tokens, place):
        if not isinstance(tokens, list) or not tokens or len(tokens) != (self.rows or len(tokens)):
            size = len(tokens) if isinstance(tokens, list) else type(tokens).__name__
            raise Problem(f"{place}: tokens: {size}, expected {self.rows or 'a list of'} tokens, as in the other layers")
        self.rows = len(tokens)
        out = []
        for t, token in enumerate(tokens):
            at = f"{place}: tokens[{t}]"
            with_probs = isinstance(token, dict) and token.get("all_probs") is not None
            out.append((_vector(token, "top_experts", self.top_k, True, at),
                        _vector(token, "top_weights", self.top_k, False, at),
                        _vector(token, "all_probs", self.experts, False, at) if with_probs else None))
        return out

    def _join(self, layers):
        def stack(part, kind):
            return np.array([[token[part] for token in layer] for layer in layers], dtype=kind).transpose(1, 0, 2)

        def place(row, layer):
            return f"{self.path}: layer {self.layers[layer]}: tokens[{row}]"
        self.ids, self.weights = stack(0, np.int64), stack(1, np.float32)
        check_ids(self.ids, self.experts, place)
        check_gates(self.weights, place)
        have = [token[2] is not None for layer in layers for token in layer]
        if any(have) and not all(have):
            raise Problem(f"{self.path}: only some tokens have all_probs; record again")
        self.probs = stack(2, np.float32) if all(have) else None
        if self.probs is not None:
            check_gates(self.probs, place)


def read(options, model, warn):
    prompts = [_Prompt(path) for path in options.inputs]
    first = prompts[0]
    for p in prompts[1:]:
        if (p.model_id, p.experts, p.top_k, p.layers, p.probs is None) != (
                first.model_id, first.experts, first.top_k, first.layers, first.probs is None):
            raise Problem(f"{p.path}: another model, other layers, or with and without all_probs, than {first.path}; convert "
                          "them apart")
    if model.hidden is None and model.inner is None:
        if all(known.is_whole(v) and 0 < v < 1 << 24 for v in (first.hidden, first.inner)):
            model.hidden, model.inner = first.hidden, first.inner
        model.shared = first.shared if known.is_whole(first.shared) and 0 <= first.shared < 1 << 16 else None
    passes = [Pass("prefill", i, -1, 0, np.arange(p.rows), np.full(p.rows, COMMITTED, dtype=np.uint8), p.ids.astype(np.int32),
                   p.weights, p.probs) for i, p in enumerate(prompts)]
    warn("MoELens records prefills alone: there is no decode step to simulate, and `trace validate --strict` says so")
    softmax = first.probs is not None and all(np.abs(p.probs.sum(axis=-1) - 1).max() < 0.005 for p in prompts)
    return Draft(first.model_id, first.experts, first.top_k, first.layers,
                 known.expert_bytes(options, model, len(first.layers), first.path),
                 gate_score="softmax" if softmax else "unknown score function", passes=passes,
                 prompts=[p.rows for p in prompts], attributes=known.attributes(model, options))
