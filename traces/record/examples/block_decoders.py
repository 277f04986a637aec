#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two block-diffusion decode loops with the recorder's calls in place, in the styles of dInfer and of SGLang.

A model is called as model(ids [1, n], positions [1, n], kv cache) and returns logits [1, n, vocabulary] and the cache of
prefix and rows. usage: block_decoders.py threshold|no-commit|editing OUT.h5   (on the tiny model of ../tests, on a CPU)
"""
import sys
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent.parent / "tests")]


def candidates(logits):
    """The best token of each row and its probability."""
    return torch.softmax(logits.float(), dim=-1).max(dim=-1)


def prefill(model, rec, prompt):
    """One pass over the prompt [n]; returns the KV cache. A request without a prompt has none."""
    if len(prompt) == 0:
        return None
    positions = torch.arange(len(prompt))
    rec.begin_pass("prefill", positions, ids=prompt)
    out = model(prompt[None], positions[None])
    rec.end_pass()                                      # no confidence: nothing is decided in a prefill
    return out.past_key_values


@torch.no_grad()
def threshold_decode(model, rec, prompt, blocks, block_length, mask_id, threshold=0.9, commit_pass=True):
    """Commits every masked row above the threshold, and at least the best one.

    With `commit_pass`, one more pass over the finished block writes the KV cache that the next block sees. Without it, the
    last denoising pass has written it, although some of its rows were masked then.
    """
    past, tokens = prefill(model, rec, prompt), prompt.tolist()
    for block in range(blocks):
        ids = torch.full((block_length,), mask_id)
        positions = len(tokens) + torch.arange(block_length)
        step = 0
        while (ids == mask_id).any():
            rec.begin_pass("denoise", positions, block=block, step=step, ids=ids)
            out = model(ids[None], positions[None], past)
            logits = out.logits[0].clone()
            logits[:, mask_id] = float("-inf")          # a mask is no token
            confidence, token = candidates(logits)
            masked = ids == mask_id
            best = confidence[masked].max()
            committed = masked & (confidence >= min(threshold, float(best)))
            rec.end_pass(logits=logits, committed=committed)
            ids = torch.where(committed, token, ids)
            step += 1
        if commit_pass:
            rec.begin_pass("commit", positions, block=block, step=step, ids=ids)
            out = model(ids[None], positions[None], past)
            rec.end_pass(logits=out.logits[0])
        past = out.past_key_values
        tokens += ids.tolist()
    return tokens


@torch.no_grad()
def editing_decode(model, rec, prompt, blocks, block_length, mask_id, threshold=0.5, edit_threshold=0.0, post_steps=4):
    """Masks become tokens above `threshold`, and tokens become other tokens above `edit_threshold`.

    A block ends with a pass that neither commits nor edits, or after `post_steps` passes without a mask. That pass is the one
    that writes the KV cache: there is no separate commit pass.
    """
    past, tokens = prefill(model, rec, prompt), prompt.tolist()
    for block in range(blocks):
        ids = torch.full((block_length,), mask_id)
        positions = len(tokens) + torch.arange(block_length)
        step = after = 0
        while True:
            rec.begin_pass("denoise", positions, block=block, step=step, ids=ids)
            out = model(ids[None], positions[None], past)
            logits = out.logits[0].clone()
            logits[:, mask_id] = float("-inf")
            confidence, token = candidates(logits)
            masked = ids == mask_id
            committed = masked & (confidence > threshold)
            if masked.any() and not committed.any():
                committed[torch.where(masked, confidence, -confidence).argmax()] = True
            last = not masked.any() and after + 1 >= post_steps
            edited = ~masked & (token != ids) & (confidence > edit_threshold) & (not last)
            rec.end_pass(logits=logits, committed=committed, edited=edited)
            ids = torch.where(committed | edited, token, ids)
            step += 1
            after += int(not masked.any())
            if not masked.any() and not edited.any():
                break
        past = out.past_key_values
        tokens += ids.tolist()
    return tokens


def main(style, path):
    from moesim_record import Recorder
    from tiny_llada2 import MASK_ID, tiny_llada2
    model, block_length = tiny_llada2(), 8
    generator = torch.Generator().manual_seed(7)
    named = {"threshold": dict(decoder="threshold, separate commit pass", commit_threshold=0.9),
             "no-commit": dict(decoder="threshold, last denoising pass writes the cache", commit_threshold=0.9),
             "editing": dict(decoder="threshold with token edits", commit_threshold=0.5)}
    with Recorder(model, path, block_length=block_length, mask_id=MASK_ID, model_id="tiny-llada2", **named[style]) as rec:
        for _ in range(2):
            prompt = torch.randint(1, model.config.vocab_size, (12,), generator=generator)
            rec.request("random", len(prompt))
            if style == "editing":
                editing_decode(model, rec, prompt, 3, block_length, MASK_ID)
            else:
                threshold_decode(model, rec, prompt, 3, block_length, MASK_ID, commit_pass=style == "threshold")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("threshold", "no-commit", "editing"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
