# SPDX-License-Identifier: Apache-2.0
"""SGLang's per_token recorder, imitated: forward calls as it writes them, and what an importer must find in them."""
import numpy as np

from convert_support import SIZES, random_routes
from support import torch

LAYERS, EXPERTS, TOP_K, BLOCK, MASK = 4, 16, 8, 8, 999     # layer 0 is dense
EXTEND, DECODE, MIXED, IDLE, DLLM = 1, 2, 3, 4, 10
DIFFUSION = ["--mask-id", MASK, *SIZES]


def identity(experts=EXPERTS):
    return np.tile(np.arange(experts), (LAYERS, 1))


class Server:
    """Writes what the engine's recorder would: forward calls of one or several requests."""

    def __init__(self, top_k=TOP_K, mapping=None, rank=0):
        self.rng, self.top_k, self.rank = np.random.default_rng(3), top_k, rank
        self.mapping = identity() if mapping is None else mapping
        self.records, self.kinds, self.blocks, self.steps, self.states, self.routes = [], [], [], [], [], []

    def call(self, parts, mode=DLLM, lengths=True, routes=None):
        """parts: (start, ids) of each request in the batch."""
        ids = np.concatenate([np.asarray(i) for _, i in parts])
        positions = np.concatenate([np.arange(start, start + len(i)) for start, i in parts])
        n = len(ids)
        topk = np.full((LAYERS, n, 8), -1, dtype=np.int32)
        routes = random_routes(self.rng, n, LAYERS - 1, EXPERTS, self.top_k) if routes is None else routes
        topk[1:, :, :self.top_k] = routes.transpose(1, 0, 2)
        self.routes.append(self.mapping[1:][np.arange(LAYERS - 1)[None, :, None], routes])
        self.records.append(dict(
            forward_pass_id=len(self.records), rank=self.rank, gatherer_key="primary", input_ids=ids.tolist(),
            positions=positions.tolist(), extend_seq_lens=[len(i) for _, i in parts] if lengths else None, forward_mode=mode,
            topk_ids_of_layer=torch.from_numpy(topk), misc_objects=[],
            global_physical_count=torch.zeros(LAYERS, EXPERTS, dtype=torch.int32)))

    def expect(self, kind, block, step, state):
        self.kinds.append(dict(prefill=0, denoise=1, commit=2, dummy=3)[kind])
        self.blocks.append(block)
        self.steps.append(step)
        self.states.append(state)

    def prefill(self, start, ids, **more):
        self.call([(start, ids)], **more)
        self.expect("prefill", -1, 0, [2] * len(ids))

    def block(self, start, number, before=(), commit=True):
        """A block after `before`, tokens that each pass holds too; returns its tokens."""
        ids = np.array([*before, *[MASK] * BLOCK])
        final = np.array([*before, *self.rng.integers(1, 900, BLOCK)])
        step = 0
        while (ids == MASK).any():
            masked = np.flatnonzero(ids == MASK)
            now = self.rng.choice(masked, min(3, len(masked)), replace=False)
            state = np.where(ids == MASK, 0, 2)
            state[now] = 1
            self.call([(start, ids)])
            self.expect("denoise", number, step, state.tolist())
            ids, step = ids.copy(), step + 1
            ids[now] = final[now]
        if commit:
            self.call([(start, ids)])
            self.expect("commit", number, step, [2] * len(ids))
        return ids

    def save(self, path, **changed):
        torch.save({"records": self.records, "last_physical_to_logical_map": torch.from_numpy(self.mapping), **changed}, path)
        return path
