# SPDX-License-Identifier: Apache-2.0
"""Logs of vLLM add-ons: a line {"type": "meta", …}, then {"type": "route", req_id, token_idx, layer, topk_ids, topk_weights}.

`token_idx` begins anew with every forward call in some logs and counts on in others; `req_id` is often one for all. Of
several files, each holds other layers of one run; rows are put together in the order in which they stand.
"""
import json
from dataclasses import dataclass, field

import numpy as np

from ..writer import COMMITTED, COMMITTED_NOW, Problem
from . import model as known
from .draft import Draft, Pass, check_gates, check_ids

LONGEST_LINE = 1 << 20


@dataclass
class Layer:
    """The rows of one layer in the order of the file."""
    path: str
    lines: list = field(default_factory=list)
    keys: list = field(default_factory=list)            # (req_id, token_idx)
    ids: list = field(default_factory=list)
    weights: list = field(default_factory=list)

    def place(self, row):
        return f"{self.path}: line {self.lines[row]}"


def _line(text, place):
    try:
        value = json.loads(text, parse_constant=known.refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Problem(f"{place}: is no JSON ({error}); a log that was cut short loses its last line: remove it") from None
    if not isinstance(value, dict):
        raise Problem(f"{place}: is no object; expected lines of type meta and route")
    return value


def _number(line, key, place):
    value = line.get(key)
    if not known.is_whole(value) or not 0 <= value < 2**31:
        raise Problem(f"{place}: {key} is {value!r}, expected a whole number")
    return value


def _routes(line, top_k, place):
    ids, weights = line.get("topk_ids"), line.get("topk_weights")
    if not isinstance(ids, list) or len(ids) != top_k or not all(known.is_whole(v) and -1 <= v < 65535 for v in ids):
        raise Problem(f"{place}: topk_ids is {str(ids)[:80]}, expected {top_k} expert ids")
    if weights is not None and (not isinstance(weights, list) or len(weights) != top_k or
                                not all(type(v) in (int, float) and abs(v) < 1e30 for v in weights)):
        raise Problem(f"{place}: topk_weights is {str(weights)[:80]}, expected {top_k} numbers below 1e30")
    return ids, weights


def _row(layers, line, number, path, top_k):
    """One route line."""
    place = f"{path}: line {number}"
    key, token = _number(line, "layer", place), _number(line, "token_idx", place)
    ids, weights = _routes(line, top_k, place)
    layer = layers.setdefault(key, Layer(path))
    if layer.path != path:
        raise Problem(f"{place}: layer {key} is in {layer.path} already; give each layer once")
    if layer.ids and (weights is None) != (layer.weights[-1] is None):
        raise Problem(f"{place}: only a part of the lines has topk_weights; record again")
    layer.lines.append(number)
    layer.keys.append((str(line.get("req_id")), token))
    layer.ids.append(ids)
    layer.weights.append(weights)


def _read_file(path, layers):
    """Adds a file's rows to `layers`; returns its meta line."""
    meta = None
    with open(path, "rb") as f:
        number = 0
        while text := f.readline(LONGEST_LINE + 1):
            number += 1
            place = f"{path}: line {number}"
            if len(text) > LONGEST_LINE:
                raise Problem(f"{place}: longer than {LONGEST_LINE} bytes; this is no log of routes")
            line = _line(text, place)
            if meta is None:
                if line.get("type") != "meta" or not known.is_whole(line.get("top_k")) or not 1 <= line["top_k"] <= 64:
                    raise Problem(f"{place}: must be of type meta with top_k within 1..64; this is no log of routes")
                meta = line
            elif line.get("type") == "route":
                _row(layers, line, number, path, meta["top_k"])
            else:
                raise Problem(f"{place}: type is {line.get('type')!r}, expected route")
    return meta


def _check_same(layers):
    """Every layer must have the same rows."""
    numbers = sorted(layers)
    first = layers[numbers[0]]
    for number in numbers[1:]:
        other = layers[number]
        same = min(len(first.keys), len(other.keys))
        at = next((i for i in range(same) if first.keys[i] != other.keys[i]), same)
        if at < max(len(first.keys), len(other.keys)):
            row = min(at, len(other.keys) - 1)
            raise Problem(f"{other.place(row)}: layer {number} parts from layer {numbers[0]} in {first.path} at row {at} (of "
                          f"{len(other.keys)} and {len(first.keys)}); give files of one run, each whole")
    return numbers, first


def _calls(keys):
    """(request, begin, end) of the runs in which req_id stays and token_idx counts on: forward calls, if it begins anew."""
    begin = 0
    for i in range(1, len(keys) + 1):
        if i == len(keys) or keys[i] != (keys[i - 1][0], keys[i - 1][1] + 1):
            yield keys[begin][0], begin, i
            begin = i


class _Builder:
    """Passes from calls: many tokens are a prefill and begin a request, one token after a prefill is a decode step."""

    def __init__(self, prompts):
        self.given, self.open = prompts, {}             # req_id -> [request, end, decode steps]
        self.passes, self.prompts, self.again = [], [], 0

    def _prefill(self, name, keys, ids, gates):
        self.again += name in self.open
        request = len(self.prompts)
        self.prompts.append(len(keys))
        position = np.array([token for _, token in keys])
        self.open[name] = [request, int(position[-1]) + 1, 0]
        state = np.full(len(keys), COMMITTED, dtype=np.uint8)
        self.passes.append(Pass("prefill", request, -1, 0, position, state, ids, gates))

    def _decode(self, name, ids, gates):
        request, end, block = self.open[name]
        self.open[name] = [request, end + 1, block + 1]
        self.passes.append(Pass("denoise", request, block, 0, np.array([end]), np.array([COMMITTED_NOW], dtype=np.uint8), ids,
                                gates))

    def call(self, name, keys, ids, gates):
        def rows(a, b):
            return ids[a:b], None if gates is None else gates[a:b]
        if len(keys) == 1 and name in self.open:
            self._decode(name, *rows(0, 1))
            return
        prompt = len(keys)
        if self.given is not None:
            prompt = min(prompt, self.given[min(len(self.prompts), len(self.given) - 1)])
        self._prefill(name, keys[:prompt], *rows(0, prompt))
        for i in range(prompt, len(keys)):
            self._decode(name, *rows(i, i + 1))


def _arrays(layers, numbers, top_k):
    ids = np.array([layers[n].ids for n in numbers], dtype=np.int32).transpose(1, 0, 2)
    weighted = [layers[n].weights[0] is not None for n in numbers]
    if not all(weighted):
        if any(weighted):
            raise Problem(f"{layers[numbers[weighted.index(False)]].path}: layers without topk_weights beside layers with "
                          "them; record again")
        return ids, None
    return ids, np.array([layers[n].weights for n in numbers], dtype=np.float32).transpose(1, 0, 2)


def _read_files(paths):
    """(layers, meta of the first file); the files must be of one model."""
    layers, metas = {}, []
    for path in paths:
        metas.append(_read_file(path, layers))
        if (metas[-1]["top_k"], metas[-1].get("model_id")) != (metas[0]["top_k"], metas[0].get("model_id")):
            raise Problem(f"{path}: another model_id or top_k than {paths[0]}; convert them apart")
    if not layers:
        raise Problem(f"{paths[0]}: no route line; record again")
    return layers, metas[0]


def _build(options, keys, ids, gates, warn):
    if 0 in (options.prompt_tokens or ()):
        raise Problem(f"{options.inputs[0]}: --prompt-tokens 0, but a log's request begins with its prompt")
    builder = _Builder(options.prompt_tokens)
    for name, a, b in _calls(keys):
        builder.call(name, keys[a:b], ids[a:b], None if gates is None else gates[a:b])
    known.check_prompt_tokens(options, len(builder.prompts), options.inputs[0])
    if builder.again:
        warn(f"{builder.again} calls of several tokens follow earlier ones of the same req_id and begin requests of their "
             "own; decoding in batches looks the same: log one sequence at a time")
    if not any(p.kind == "denoise" for p in builder.passes):
        warn("token_idx never begins anew, so every request is one prefill; give --prompt-tokens if decode steps are in it")
    return builder


def _text(value):
    return value if isinstance(value, str) else ""


def read(options, model, warn):
    layers, meta = _read_files(options.inputs)
    place = options.inputs[0]
    numbers, first = _check_same(layers)
    counts = meta.get("num_experts") if known.is_whole(meta.get("num_experts")) else None
    experts = known.num_experts(options, model, place, counts)
    if not 1 <= experts <= 1024:
        raise Problem(f"{place}: line 1: num_experts is {experts}; a trace holds 1..1024")
    ids, gates = _arrays(layers, numbers, meta["top_k"])

    def where(row, layer):
        return layers[numbers[layer]].place(row)
    check_ids(ids, experts, where)
    if gates is not None:
        check_gates(gates, where)
    builder = _build(options, first.keys, ids, gates, warn)
    version = _text(meta.get("vllm_version"))
    attributes = known.attributes(model, options, engine="vLLM" if version else "", engine_version=version)
    return Draft(_text(meta.get("model_id")), experts, meta["top_k"], numbers,
                 known.expert_bytes(options, model, len(numbers), place), gate_score=None if gates is None else "as logged",
                 passes=builder.passes, prompts=builder.prompts, attributes=attributes)
