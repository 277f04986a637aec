# SPDX-License-Identifier: Apache-2.0
"""What a recording does not say of its model: from config.json, or from options. Options come first."""
import json
from dataclasses import dataclass
from typing import Any, Optional

from ..writer import Problem

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "fp8")
NAMES = {
    "experts": ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "n_experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts"),
    "layers": ("num_hidden_layers", "num_layers", "n_layer"),
    "hidden": ("hidden_size",),
    "inner": ("moe_intermediate_size", "expert_intermediate_size", "intermediate_size"),
    "shared": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"),
}


def refuse_constant(text):
    """For json.load's parse_constant: NaN and Infinity are no JSON."""
    raise ValueError(f"{text} is no number of JSON")


def read_json(path, what):
    """One JSON value of a file; every way in which it can be none is one message."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f, parse_constant=refuse_constant)
    except RecursionError:
        raise Problem(f"{path}: nested too deeply for {what}") from None
    except ValueError as error:             # JSON, UTF-8, and integers of thousands of digits
        raise Problem(f"{path}: is no JSON of {what} ({error}); give a whole file") from None


def is_whole(value):
    return type(value) is int


@dataclass
class Model:
    """Numbers that are known; None where they are not. `source` is the file that they came from."""
    source: str
    experts: Optional[int] = None
    top_k: Optional[int] = None
    layers: Optional[int] = None
    hidden: Optional[int] = None
    inner: Optional[int] = None
    shared: Optional[int] = None
    dtype: Optional[str] = None
    quantized: bool = False
    dense: Any = ()                     # layers without experts, in real numbers
    name: str = ""

    def moe_layers(self):
        return [i for i in range(self.layers or 0) if i not in self.dense]


def _dense_layers(config, layers, path):
    """Which layers have no experts, by the rules of DeepSeek and LLaDA2, of Qwen, and of ERNIE."""
    def number(name, default):
        value = config.get(name)
        if value is None:
            return default
        if not is_whole(value) or value < 0:
            raise Problem(f"{path}: {name} is {value!r}, no number of layers")
        return value
    first = max(number("first_k_dense_replace", 0), number("moe_layer_start_index", 0))
    steps = [max(1, number(name, 1)) for name in ("decoder_sparse_step", "moe_layer_interval")]
    frequency, only = config.get("moe_layer_freq", 1), config.get("mlp_only_layers") or []
    end = config.get("moe_layer_end_index", -1)
    if not isinstance(only, list) or not (is_whole(frequency) or isinstance(frequency, list)) or not is_whole(end):
        raise Problem(f"{path}: mlp_only_layers, moe_layer_freq or moe_layer_end_index is of another kind than known; name "
                      "the dense layers with --dense-layers")
    if is_whole(frequency):
        frequency = [i % max(1, frequency) == 0 for i in range(layers)]
    last = end if end >= 0 else layers - 1
    sparse = [i for i in range(first, min(last + 1, layers, len(frequency)))
              if frequency[i] and i not in only and all((i + 1) % step == 0 for step in steps)]
    return tuple(i for i in range(layers) if i not in sparse)


def read_config(path):
    config = read_json(path, "a model (config.json)")
    if isinstance(config, dict) and isinstance(config.get("text_config"), dict):
        config = {**config, **config["text_config"]}
    if not isinstance(config, dict):
        raise Problem(f"{path}: is no model's config.json: its outermost value is no object")
    model = Model(source=path)
    for name, keys in NAMES.items():
        value = next((config[k] for k in keys if config.get(k) is not None), None)
        if value is not None and (not is_whole(value) or not 0 <= value <= 1 << 24):
            raise Problem(f"{path}: {'/'.join(keys)} is {value!r}, no count")
        setattr(model, name, value)
    if (model.layers or 0) > 4096:
        raise Problem(f"{path}: {model.layers} layers; at most 4096")
    model.dense = _dense_layers(config, model.layers or 0, path)
    model.dtype = next((v for v in (config.get("dtype"), config.get("torch_dtype")) if isinstance(v, str)), None)
    model.quantized = config.get("quantization_config") is not None
    name = config.get("_name_or_path")
    model.name = name if isinstance(name, str) else ""
    return model


def _first(*values):
    return next((v for v in values if v is not None), None)


def _needed(value, text):
    if value is None:
        raise Problem(text)
    return value


def num_experts(options, model, place, known=None):
    value = _first(options.num_experts, known, model.experts)
    return _needed(value, f"{place}: does not say how many experts a layer has; give --num-experts N or --config")


def select_layers(options, model, axis, place):
    """Which of `axis` recorded layers have experts: (indices, numbers in the real model)."""
    if options.dense_layers is not None:
        wrong = [i for i in options.dense_layers if i >= axis]
        if wrong:
            raise Problem(f"{place}: --dense-layers names layer {wrong[0]}, but {axis} layers are recorded")
        keep = [i for i in range(axis) if i not in options.dense_layers]
        return keep, keep
    if model.layers is None or model.layers == axis:
        keep = [i for i in range(axis) if i not in model.dense]
        return keep, keep
    if len(model.moe_layers()) == axis:                 # dense layers were left out already
        return list(range(axis)), model.moe_layers()
    raise Problem(f"{place}: {axis} layers are recorded, but {model.source} has {model.layers}, {len(model.moe_layers())} of "
                  "them with experts; give the config.json of this model, or --dense-layers")


def expert_bytes(options, model, layers, place):
    """Bytes of one routed expert, a number or one for each of `layers` MoE layers: three matrices hidden x inner."""
    given = options.expert_bytes
    if given is not None:
        if len(given) not in (1, layers):
            raise Problem(f"{place}: --expert-bytes has {len(given)} values for {layers} MoE layers; give one, or one "
                          "for each")
        return given if len(given) > 1 else given[0]
    kind = options.weight_dtype
    if kind is None and model.quantized:
        raise Problem(f"{model.source}: the weights are quantised, so their bytes cannot be told from the shape; give "
                      "--expert-bytes N")
    kind = kind or ("float8" if model.dtype in FLOAT8 else model.dtype)
    if not model.hidden or not model.inner or kind not in BYTES:
        raise Problem(f"{place}: does not say how many bytes an expert has, which a trace must; give --expert-bytes N, or "
                      f"--config (with hidden_size and the experts' size) and --weight-dtype {'|'.join(BYTES)}")
    return 3 * model.hidden * model.inner * BYTES[kind]


def check_prompt_tokens(options, requests, place):
    given = options.prompt_tokens
    if given is not None and len(given) not in (1, requests):
        raise Problem(f"{place}: --prompt-tokens has {len(given)} values for {requests} requests; give one, or one for each")


def attributes(model, options, **more):
    """The optional attributes of the trace that are known."""
    known = {"hidden_size": model.hidden, "expert_intermediate_size": model.inner, "shared_experts": model.shared,
             "weight_dtype": options.weight_dtype or model.dtype, **more}
    return {k: v for k, v in known.items() if v not in (None, "")}
