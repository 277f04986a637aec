# SPDX-License-Identifier: Apache-2.0
"""Tells requests, blocks, steps and token states from consecutive forward calls that say only tokens and positions.

A recording of forward calls names no request. What continues a request is known from positions: a prefill or the next block
begins where the request ended, and another step of a block covers the same positions with masks in fewer of them. The state
of a row at the end of a pass shows in the next pass over its block.
"""
from dataclasses import dataclass

import numpy as np

from ..writer import COMMITTED, COMMITTED_NOW, EDITED, MASKED
from .draft import Pass

FORGOTTEN = 64          # forward calls after which a request that did not come back has ended
NEAR = 8                # forward calls that a request of a running batch may pause, while others are prefilled
EXTEND, DECODE, MIXED, IDLE = 1, 2, 3, 4    # SGLang's ForwardMode as far as all its versions agree


@dataclass
class Segment:
    """The rows of one request in one forward call; `masked` is None for autoregressive models."""
    start: int
    ids: np.ndarray
    expert: np.ndarray
    masked: np.ndarray
    decode: bool

    @property
    def end(self):
        return self.start + len(self.ids)


class _Request:
    def __init__(self, number):
        self.number = number
        self.block, self.step = -1, 0       # of the last pass
        self.last = self.made = None        # segment and Pass of the last pass
        self.seen = 0                       # forward call of the last pass
        self.prompt = None                  # tokens, once the first block or decode step is there
        self.tail = None                    # the last pass of the block so far, if it had no masks

    def same_block(self, seg):
        """Is `seg` another step of the block: same rows, no new masks, the same prompt, half of the other tokens kept?"""
        last = self.last
        if self.block < 0 or seg.start != last.start or len(seg.ids) != len(last.ids) or (seg.masked & ~last.masked).any():
            return False
        prompt = max(0, self.prompt - seg.start)
        kept = seg.ids == last.ids
        others = kept[prompt:][~last.masked[prompt:]]
        return bool(kept[:prompt].all() and 2 * others.sum() >= len(others))

    def continued_by(self, seg, alone):
        """Does `seg` go on with this request? A batch runs a prompt's block again and again while others denoise."""
        follows = seg.start == self.last.end
        if seg.masked is None:
            return follows and (seg.decode or self.block < 0)
        if seg.masked.any():
            return follows or self.same_block(seg)
        if self.block >= 0:
            return self.same_block(seg)
        return follows or (not alone and seg.start == self.last.start and np.array_equal(seg.ids, self.last.ids))


class Follower:
    """Takes forward calls in order; `passes` and `prompts` are ready after `finish`."""

    def __init__(self):
        self.passes, self.prompts = [], []
        self.ambiguous = self.begun_late = self.left_over = 0
        self._requests, self._active, self._call = [], {}, 0

    def take(self, segments, forward, rank):
        """One forward call of one rank (ranks do not share requests); `segments` stand in the order of the batch."""
        self._call += 1
        free, now, alone = list(self._active.get(rank, ())), [], len(segments) == 1
        for seg in segments:
            fits = [r for r in free if r.continued_by(seg, alone)]
            same = [r for r in fits if r.last.start == seg.start]       # its tokens agree: more than a fitting end
            request = self._choose(same or fits, alone) if fits else self._new(seg)
            if fits:
                free.remove(request)
            self._pass(request, seg, forward)
            now.append(request)
        for r in now:
            r.seen = self._call
        self._active[rank] = now + [r for r in free if r.seen > self._call - FORGOTTEN]

    def _choose(self, fits, alone):
        """Of several: the one seen last; in a batch, which keeps its order, the oldest of those that may still run."""
        newest = max(r.seen for r in fits)
        near = [r for r in fits if r.seen >= newest - (0 if alone else NEAR)]
        self.ambiguous += len(near) > 1
        return min(near, key=lambda r: r.number)

    def _new(self, seg):
        self.begun_late += seg.start > 0
        self._requests.append(_Request(len(self._requests)))
        return self._requests[-1]

    def _pass(self, r, seg, forward):
        kind, state = "prefill", np.full(len(seg.ids), COMMITTED, dtype=np.uint8)
        masked = seg.masked is not None and bool(seg.masked.any())
        if seg.masked is None and seg.decode:
            kind, state[:] = "denoise", COMMITTED_NOW
            r.block, r.step = r.block + 1, 0
            r.prompt = seg.start if r.prompt is None else r.prompt
        elif seg.masked is not None and r.last is not None and r.same_block(seg):
            kind, r.step = "denoise", r.step + 1
            self._settle(r, seg)
        elif masked:
            kind = "denoise"
            self._end_block(r)
            r.block, r.step = r.block + 1, 0
            r.prompt = seg.start + int(seg.masked.argmax()) if r.prompt is None else r.prompt
        if masked:
            state[seg.masked] = MASKED
        r.made = Pass(kind, r.number, r.block, r.step, np.arange(seg.start, seg.end), state, seg.expert,
                      token_id=seg.ids, forward=forward, masked=masked)
        r.tail = r.made if kind == "denoise" and seg.masked is not None and not masked else None
        r.last = seg
        self.passes.append(r.made)

    @staticmethod
    def _settle(r, seg):
        """The next step over a block shows what the one before did."""
        r.made.state[r.last.masked & ~seg.masked] = COMMITTED_NOW
        r.made.state[~r.last.masked & (r.last.ids != seg.ids)] = EDITED

    @staticmethod
    def _end_block(r):
        """A block that is followed by another one is finished: its last pass wrote the cache, or committed what was left."""
        if r.tail is not None:
            r.tail.kind = "commit"
        elif r.last is not None and r.block >= 0:
            r.made.state[r.last.masked] = COMMITTED_NOW

    def finish(self):
        for r in self._requests:
            if r.tail is not None:
                r.tail.kind = "commit"
            elif r.last.masked is not None and r.last.masked.any():
                self.left_over += 1
            self.prompts.append(r.last.end if r.prompt is None else r.prompt)
