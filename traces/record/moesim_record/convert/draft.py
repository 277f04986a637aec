# SPDX-License-Identifier: Apache-2.0
"""What a source found, and how it becomes a file."""
import os
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

from ..writer import NO_ROUTE, Problem, TraceWriter

NOT_RECORDED = "not recorded"


@dataclass
class Pass:
    """One pass of one request: position, state [n]; expert [n, M, K] with -1 = no route; gate of its shape; prob [n, M, E]."""
    kind: str
    request: int
    block: int
    step: int
    position: np.ndarray
    state: np.ndarray
    expert: np.ndarray
    gate: Optional[np.ndarray] = None
    prob: Optional[np.ndarray] = None
    token_id: Optional[np.ndarray] = None
    forward: int = 0
    masked: bool = False                # its input had masks: equal rows are no sign of a warm-up

    def rows(self, begin, end):
        """The same pass with rows begin..end alone."""
        def cut(array):
            return None if array is None else array[begin:end]
        return Pass(self.kind, self.request, self.block, self.step, cut(self.position), cut(self.state), cut(self.expert),
                    cut(self.gate), cut(self.prob), cut(self.token_id), self.forward, self.masked)


@dataclass
class Draft:
    """A trace before it is written. `layers` are the numbers of the MoE layers in the real model."""
    model_id: str
    num_experts: int
    top_k: int
    layers: list
    expert_bytes: Any
    gate_kind: str = NOT_RECORDED
    gate_score: Optional[str] = None    # the score function, where gates are recorded
    block_length: int = 1
    batched: bool = False               # passes with one `forward` ran as one batch
    passes: list = field(default_factory=list)
    prompts: list = field(default_factory=list)         # prompt tokens of each request
    attributes: dict = field(default_factory=dict)

    def describe(self):
        """Text for gate_kind: says whether the scores sum to 1, as they are; nothing is renormalised."""
        used = [(p.gate, p.expert >= 0) for p in self.passes]
        sums = np.concatenate([np.where(there, gate, 0).sum(axis=-1)[there.all(axis=-1)] for gate, there in used])
        whole = len(sums) > 0 and np.abs(sums - 1).max() <= 0.005
        return f"{self.gate_score}, {'normalised over the selected experts' if whole else 'not normalised'}"


def check_ids(ids, experts, place):
    """ids [n, M, K] with -1 = no route. `place(row, layer)` names where a value stands in its file."""
    def refuse(bad, text):
        row, layer = (int(i) for i in np.argwhere(bad)[0][:2])
        raise Problem(f"{place(row, layer)}: {text(ids[row, layer])}")
    bad = (ids < -1) | (ids >= experts)
    if bad.any():
        refuse(bad, lambda v: f"expert id {int(v[(v < -1) | (v >= experts)][0])} of {experts} experts; correct --num-experts "
               "or --config, or cut fused shared experts off (--fused-shared, of sglang)")
    if ids.shape[-1] > 1:
        zero = (ids == 0).all(axis=-1)
        if zero.any():
            refuse(zero, lambda v: f"all {len(v)} slots are expert 0: engines fill dense layers with zeros, and positions "
                   "that they did not compute (a cached prefix); name dense layers with --dense-layers or --config, or record "
                   "without a prefix cache")
        ordered = np.sort(ids, axis=-1)
        twice = ((ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] >= 0)).any(axis=-1)
        if twice.any():
            refuse(twice, lambda v: f"an expert twice in one token: {v.tolist()}; a router chooses each once: the recording "
                   "is damaged, or --top-k, --layers or the order of its axes is wrong")


def check_gates(gates, place):
    """gates [n, M, K], finite and not negative."""
    bad = ~(np.isfinite(gates) & (gates >= 0))
    if bad.any():
        row, layer = (int(i) for i in np.argwhere(bad)[0][:2])
        raise Problem(f"{place(row, layer)}: a gate score that is negative or not finite: {gates[row, layer].tolist()}; a "
                      "trace holds gate scores, not logits: record what the router applies")


def _temporary(path):
    folder, name = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{name[:200]}.{os.getpid()}-0.tmp")


def _remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def write(draft, path, workload, compression):
    """Writes the draft as `path`: under a temporary name, then fsync and rename: nothing half-written has that name."""
    temporary = _temporary(path)
    try:
        _fill(draft, temporary, workload, compression)
        with open(temporary, "rb") as f:
            os.fsync(f.fileno())
        os.replace(temporary, os.path.realpath(path))
    except BaseException:
        _remove(temporary)
        raise
    folder = os.open(os.path.dirname(temporary), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fill(draft, path, workload, compression):
    first = draft.passes[0]
    writer = TraceWriter(
        path, model_id=draft.model_id, num_experts=draft.num_experts, top_k=draft.top_k, block_length=draft.block_length,
        gate_kind=draft.gate_kind, confidence_kind="none", moe_layer_id=draft.layers, expert_bytes=draft.expert_bytes,
        gates=None if first.gate is None else "f32", router_probs=first.prob is not None, token_ids=first.token_id is not None,
        forwards=draft.batched, attributes=draft.attributes, compression=compression, overwrite=True)
    for tokens in draft.prompts:
        writer.add_request(workload, tokens)
    for p in draft.passes:
        writer.add_pass(p.kind, p.request, p.block, p.step, position=p.position, state=p.state,
                        expert=np.where(p.expert < 0, NO_ROUTE, p.expert), gate=p.gate, router_prob=p.prob,
                        token_id=p.token_id, forward=p.forward)
    writer.close()
