#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the recorder costs a pass, in absolute time: the gates, attention and shared experts of a model of LLaDA2.0-mini's
routing shape run with and without it, interleaved, medians; CPU time of one thread on a CPU, wall time on a GPU. Routed experts
are left out: they cost the recorder nothing.

usage: overhead.py [cpu|cuda]
"""
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
from moesim_record import Recorder  # noqa: E402
from tiny_llada2 import LLaDA2MoeModelLM, LLaDA2MoeSparseMoeBlock, tiny_config  # noqa: E402

BLOCK, PASSES, ROUNDS = 32, 128, 3
CLOCKS = {"cpu": time.process_time}      # other load on the machine does not count


def without_experts(block, x):
    """The forward of a MoE block that computes its gate and shared expert alone."""
    block.gate(x)
    return block.shared_experts(x)


def passes(model, rec, device):
    """Seconds a pass."""
    clock = CLOCKS.get(device, time.perf_counter)
    ids, positions = torch.zeros(BLOCK, dtype=torch.long, device=device), torch.arange(BLOCK, device=device)
    committed = [False] * BLOCK
    start = clock()
    for step in range(PASSES):
        if rec is not None:
            rec.begin_pass("denoise", range(BLOCK), block=0, step=step, masked=[True] * BLOCK)
        logits = model(ids[None], positions[None]).logits[0]
        confidence = torch.softmax(logits.float(), -1).max(-1).values.cpu()     # what a decoder computes anyway
        if rec is not None:
            rec.end_pass(confidence=confidence, committed=committed)
    return (clock() - start) / PASSES


@torch.no_grad()
def main(device="cpu"):
    torch.set_num_threads(1)
    clock = CLOCKS.get(device, time.perf_counter)
    LLaDA2MoeSparseMoeBlock.forward = without_experts
    config = tiny_config(num_hidden_layers=20, num_experts=256, num_experts_per_tok=8, hidden_size=64)
    with torch.random.fork_rng(devices=[]):
        model = LLaDA2MoeModelLM(config).eval().requires_grad_(False).to(device)
    passes(model, None, device)
    plain, recorded = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.h5")
        for _ in range(ROUNDS):
            plain.append(passes(model, None, device))
            start = clock()         # with the writing of the file, from its beginning to its end
            with Recorder(model, path, block_length=BLOCK, overwrite=True) as rec:
                rec.request("overhead", 0)
                passes(model, rec, device)
            recorded.append((clock() - start) / PASSES)
        size = os.path.getsize(path) / PASSES
    a, b = statistics.median(plain) * 1e3, statistics.median(recorded) * 1e3
    print(f"{device}: 19 MoE layers, 256 experts, top 8, {BLOCK} rows a pass: {a:.2f} ms without, {b:.2f} ms with the "
          f"recorder, {b - a:.2f} ms a pass more, {size / 1024:.1f} KiB a pass in the file")


if __name__ == "__main__":
    main(*sys.argv[1:])
