# SPDX-License-Identifier: Apache-2.0
"""Records plain `model.generate(…)`: autoregressive decoding of one sequence, without any call from the user.

Forward calls that consume the prompt are prefill; each later one is a pass of kind denoise whose last row is committed, with
block = number of the decode step and step 0. The confidence of a last row is the probability (softmax of the raw logits,
float32) of the token that was chosen from it, which is seen one call later.
"""
import functools

import numpy as np
import torch

from .writer import Problem

CHOSEN = "probability of the chosen token, softmax of the raw logits"


class GenerateWatch:
    """Wraps `generate` of one model while its recorder is active, and `forward` while generate runs."""

    def __init__(self, recorder):
        self.recorder, self.model = recorder, recorder.model
        self._own = {}                  # attributes of the instance that were replaced
        self._held = None               # the pass whose chosen token is not known yet

    def start(self):
        generate = getattr(self.model, "generate", None)
        if self.recorder.block_length == 1 and callable(generate):
            self._replace("generate", lambda *args, **kwargs: self._run(generate, args, kwargs))

    def stop(self):
        for name in list(self._own):
            self._restore(name)

    def _replace(self, name, function):
        self._own[name] = self.model.__dict__.get(name)
        setattr(self.model, name, functools.wraps(getattr(self.model, name))(function))

    def _restore(self, name):
        before = self._own.pop(name)
        if before is None:
            delattr(self.model, name)   # the class's own is visible again
        else:
            setattr(self.model, name, before)

    def _run(self, generate, args, kwargs):
        prompt = args[0] if args else kwargs.get("inputs", kwargs.get("input_ids"))
        if not torch.is_tensor(prompt) or prompt.dim() != 2 or prompt.shape[0] != 1:
            raise Problem("generate() is recorded for token ids [1, n]: one sequence at a time, no embeddings")
        rec = self.recorder
        self._prompt, self._past, self._step, self._held = prompt.shape[1], 0, 0, None
        if not rec.fresh:
            rec.request("generate", self._prompt)
        rec.default_confidence_kind(CHOSEN)
        forward = self.model.forward
        self._replace("forward", lambda *a, **k: self._forward(forward, a, k))
        try:
            result = generate(*args, **kwargs)
        finally:
            self._restore("forward")
            rec.abandon_pass()
        sequence = result if torch.is_tensor(result) else result.sequences
        self._release(int(sequence[0, -1]))
        rec.output_tokens(rec.current, sequence.shape[1] - self._prompt)
        return result

    def _forward(self, forward, args, kwargs):
        ids = args[0] if args else kwargs.get("input_ids")
        if not torch.is_tensor(ids) or ids.shape[0] != 1:
            raise Problem("generate() calls the model with several sequences or with embeddings: record without beams, "
                          "num_return_sequences, guidance and assistants")
        self._release(int(ids[0, -1]))
        rows = ids.shape[1]
        start = 0 if rows > self._past else self._past      # more rows than were seen: no KV cache, all over again
        prefill = start + rows <= self._prompt
        self.recorder.begin_pass("prefill" if prefill else "denoise", np.arange(start, start + rows),
                                 block=-1 if prefill else self._step, ids=ids)
        output = forward(*args, **kwargs)
        committed = np.zeros(rows, dtype=bool)
        committed[-1] = not prefill
        logits = output.logits if hasattr(output, "logits") else output[0]
        self._held = self.recorder.take_pass(committed), torch.softmax(logits[0, -1].detach().float(), dim=-1)
        self._past = start + rows
        self._step += not prefill
        return output

    def _release(self, chosen):
        """Writes the pass that is held, now that the token chosen from it is known."""
        if self._held is None:
            return
        taken, probabilities = self._held
        self._held = None
        confidence = np.full(len(taken.state), np.nan, dtype=np.float32)
        confidence[-1] = float(probabilities[chosen])
        self.recorder.write_pass(taken, confidence)
