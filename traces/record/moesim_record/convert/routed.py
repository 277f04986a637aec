# SPDX-License-Identifier: Apache-2.0
"""`routed_experts` of vLLM and SGLang: for each request, integers [tokens, layers, k] in a .npy file or in JSON.

In JSON they are base64 of a NumPy file (vLLM), base64 of raw int32, whose shape travels out of band (SGLang), or nested lists
(vLLM 0.21, which gives the prompt's tokens apart). The engines keep one entry a position and overwrite it with every pass;
they leave zeros where a layer is dense, and zeros or -1 where a position was not computed.
"""
import base64
import binascii
import io
import os

import numpy as np

from ..writer import COMMITTED, COMMITTED_NOW, Problem
from . import model as known
from .draft import Draft, Pass, check_ids

MAGIC = b"\x93NUMPY"
LAST_PASS = ("routed_experts keep the last pass of each position alone: right for autoregressive models; of a block-diffusion "
             "model they are not how the experts were used (record with SGLang's per_token, or the recorder)")


def _parse_npy(stream, size, place):
    """The array of a NumPy file whose header and length agree; its bytes are not copied before that is known."""
    try:
        version = np.lib.format.read_magic(stream)
        reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = reader(stream)
    except KeyError:
        raise Problem(f"{place}: NumPy file of version {version}; save it with numpy.save as plain integers") from None
    except Exception as error:              # headers are Python literals: they fail in many ways
        raise Problem(f"{place}: is no whole NumPy file ({' '.join(str(error).split())[:120]}); save it again") from None
    if dtype.kind not in "iu" or len(shape) != 3:
        raise Problem(f"{place}: holds {dtype} {list(shape)}, expected integers [tokens, layers, k]")
    count, have = int(np.prod([int(n) for n in shape], dtype=object)), size - stream.tell()
    if count * dtype.itemsize != have:
        raise Problem(f"{place}: its header says {list(shape)} {dtype}, {count * dtype.itemsize} bytes, but {have} follow; it "
                      "was cut short or damaged: save it again")
    return np.frombuffer(stream.read(), dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _raw(data, place, options, model):
    """SGLang's raw int32: layers and k come from the user."""
    layers, k = options.layers or model.layers, options.top_k or model.top_k
    if layers is None or k is None:
        raise Problem(f"{place}: raw int32 does not say its shape; give --layers N and --top-k N, or --config")
    if len(data) % (4 * layers * k) != 0:
        raise Problem(f"{place}: {len(data)} bytes are no whole number of tokens of {layers} layers x {k} experts x 4 bytes; "
                      "correct --layers (all layers, dense ones too) and --top-k, or record again")
    return np.frombuffer(data, dtype="<i4").reshape(-1, layers, k)


def _nested(value, place):
    """Lists [tokens][layers][k] as an array; a list of another length somewhere is refused."""
    def refuse(at, what):
        raise Problem(f"{place}{at}: {what}, expected lists [tokens][layers][k] of expert ids; save the response as it came")
    first = value[0] if value and isinstance(value[0], list) else []
    layers, k = len(first), len(first[0]) if first and isinstance(first[0], list) else 0
    for t, token in enumerate(value):
        if not isinstance(token, list) or len(token) != layers or layers == 0:
            refuse(f"[{t}]", f"{str(token)[:40]}")
        for i, ids in enumerate(token):
            if not isinstance(ids, list) or len(ids) != k or not all(known.is_whole(v) and -1 <= v < 65535 for v in ids):
                refuse(f"[{t}][{i}]", f"{str(ids)[:40]}")
    return np.array(value, dtype=np.int32).reshape(len(value), layers, k)


def _decode(text, place, options, model):
    if isinstance(text, list):
        return _nested(text, place)
    if not isinstance(text, str):
        raise Problem(f"{place}: is {type(text).__name__}, expected base64 or lists")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Problem(f"{place}: is no base64 ({error}); save the response as it came") from None
    if data.startswith(MAGIC):
        return _parse_npy(io.BytesIO(data), len(data), place)
    return _raw(data, place, options, model)


def _count(holder, key):
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if known.is_whole(value) and 0 <= value < 2**31 else None


def _responses(value, place):
    """(place, routes, prompt tokens or None, the prompt's routes or None) of every request in a response, or in a list."""
    if isinstance(value, list):
        for i, one in enumerate(value):
            if not isinstance(one, (dict, list)):
                raise Problem(f"{place}[{i}]: is no response; give the engine's answers as they came")
            yield from _responses(one, f"{place}[{i}]")
        return
    meta, choices = value.get("meta_info"), value.get("choices")
    if isinstance(meta, dict) and meta.get("routed_experts") is not None:       # SGLang's /generate
        yield f"{place}.meta_info.routed_experts", meta["routed_experts"], _count(meta, "prompt_tokens"), None
    elif isinstance(choices, list):                                             # the OpenAI form, of either
        prompt = _count(value.get("usage"), "prompt_tokens")
        for i, choice in enumerate(choices):
            holder = choice if isinstance(choice, dict) else {}
            extra = holder.get("sgl_ext") if isinstance(holder.get("sgl_ext"), dict) else {}
            name = "sgl_ext.routed_experts" if extra.get("routed_experts") is not None else "routed_experts"
            routes = extra.get("routed_experts") if extra.get("routed_experts") is not None else holder.get("routed_experts")
            yield f"{place}.choices[{i}].{name}", routes, prompt, value.get("prompt_routed_experts")
    else:
        yield place, None, None, None


def _arrays(path, options, model, warn):
    """(place, array, prompt tokens or None) of every request in a file."""
    with open(path, "rb") as f:
        if f.read(len(MAGIC)) == MAGIC:
            f.seek(0)
            return [(path, _parse_npy(f, os.fstat(f.fileno()).st_size, path), None)]
    value = known.read_json(path, "an engine's response (nor a .npy file)")
    if not isinstance(value, (dict, list)):
        raise Problem(f"{path}: is neither a .npy file nor a response")
    out, without = [], 0
    for place, routes, prompt, prompt_routes in _responses(value, f"{path}: response"):
        if routes is None:                  # engines drop them, for example of preempted requests
            without += 1
            continue
        array = _decode(routes, place, options, model)
        if prompt_routes is not None:
            before = _decode(prompt_routes, f"{place} (prompt_routed_experts)", options, model)
            if len(array) and before.shape[1:] != array.shape[1:]:
                raise Problem(f"{place}: {list(array.shape)}, but prompt_routed_experts is {list(before.shape)}; the response "
                              "is damaged")
            array, prompt = np.concatenate([before, array]) if len(array) else before, len(before)
        out.append((place, array, prompt))
    if not out:
        raise Problem(f"{path}: no routed_experts in it; start the engine with --enable-return-routed-experts and ask for "
                      "return_routed_experts in each request")
    if without:
        warn(f"{path}: {without} answers without routed_experts were left out")
    return out


def _prompt(options, i, found, place):
    given = options.prompt_tokens
    if given is not None:
        return given[i if len(given) > 1 else 0]
    if found is None:
        raise Problem(f"{place}: does not say how many tokens the prompt has; give --prompt-tokens N")
    return found


def _passes(ids, request, prompt, first):
    """The prefill as one pass; then every token as a decode step, which is how the engine ran them. Not rows without routes."""
    there = (ids >= 0).any(axis=(1, 2))
    position, ids = first + np.flatnonzero(there), ids[there]
    n = int((position < prompt).sum())
    if n:
        yield Pass("prefill", request, -1, 0, position[:n], np.full(n, COMMITTED, dtype=np.uint8), ids[:n])
    for block, i in enumerate(range(n, len(ids))):
        yield Pass("denoise", request, block, 0, position[i:i + 1], np.array([COMMITTED_NOW], dtype=np.uint8), ids[i:i + 1])


def _check_shapes(found):
    """[layers, k] of all arrays."""
    empty = next((place for place, array, _ in found if len(array) == 0), None)
    if empty is not None:
        raise Problem(f"{empty}: has no token; leave requests without tokens out")
    place, first, _ = found[0]
    other = next(((at, array) for at, array, _ in found if array.shape[1:] != first.shape[1:]), None)
    if other is not None:
        raise Problem(f"{other[0]}: {list(other[1].shape)}, expected tokens of {list(first.shape[1:])} as in {place}; convert "
                      "different models apart")
    return first.shape[1:]


def _warn(found, numbers, passes, warn):
    absent = sum(len(array) for _, array, _ in found) - sum(len(p.position) for p in passes)
    if absent:
        warn(f"{absent} positions without any route (a cached prefix) were left out")
    warn(LAST_PASS)
    only = [str(n) for i, n in enumerate(numbers) if not any(p.expert[:, i].any() for p in passes)]
    if only:                                # with k = 1 no duplicate shows it
        warn(f"layers {', '.join(only)} use expert 0 alone; if they are dense, name them with --dense-layers or --config")


def read(options, model, warn):
    found = [one for path in options.inputs for one in _arrays(path, options, model, warn)]
    axis, place = _check_shapes(found), found[0][0]
    experts = known.num_experts(options, model, place)
    keep, numbers = known.select_layers(options, model, axis[0], place)
    top_k = options.top_k or model.top_k
    if not keep or axis[1] < 1 or (top_k is not None and axis[1] != top_k):
        raise Problem(f"{place}: [tokens, {axis[0]}, {axis[1]}] is not [tokens, layers, k] with a layer of experts and k = "
                      f"{top_k}; correct --top-k, --config or --dense-layers")
    if options.layers not in (None, axis[0]):
        raise Problem(f"{place}: {axis[0]} layers are recorded, but --layers says {options.layers}; correct it, or leave it "
                      "out")
    known.check_prompt_tokens(options, len(found), place)
    start, passes, prompts = options.start_len or 0, [], []
    for i, (place, array, prompt) in enumerate(found):
        ids = array[:, keep].astype(np.int64)
        check_ids(ids, experts, lambda row, layer, at=place: f"{at}: token {row}, layer {keep[layer]}")
        prompts.append(_prompt(options, i, prompt, place))
        if start + len(array) < prompts[-1] - 1:
            raise Problem(f"{place}: {len(array)} tokens from position {start} on, but the prompt has {prompts[-1]}; correct "
                          "--prompt-tokens or --start-len")
        passes += _passes(ids.astype(np.int32), i, prompts[-1], start)
    if not passes:
        raise Problem(f"{place}: no token has a route; record again")
    _warn(found, numbers, passes, warn)
    attributes = known.attributes(model, options)
    return Draft("", experts, axis[1], numbers, known.expert_bytes(options, model, len(keep), place), passes=passes,
                 prompts=prompts, attributes=attributes)
