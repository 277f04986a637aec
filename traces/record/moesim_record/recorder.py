# SPDX-License-Identifier: Apache-2.0
"""Hooks the gates of a PyTorch model and writes what they chose, pass by pass.

The hooks return nothing and touch no random state, so the model computes what it would without them. Chosen ids and gate
scores are copied where they lie (a few kB a layer) and leave the device once a pass, in `end_pass`.
"""
import os
import time
from datetime import datetime, timezone

import numpy as np
import torch

from .adapters import expert_bytes, find_gates, first
from .generate import GenerateWatch
from .writer import COMMITTED, COMMITTED_NOW, EDITED, MASKED, OPTIONAL, Problem, TraceWriter

HELD = "top-1 probability at masked positions, probability of the held token elsewhere"
TOP_1 = "top-1 probability"


def _array(values, kind=None):
    """A 1-D NumPy array of a tensor, array, list or number."""
    if torch.is_tensor(values):
        values = values.detach().to("cpu", torch.float32 if values.is_floating_point() else None).numpy()
    array = np.asarray(values)
    return np.atleast_1d(array.reshape(-1) if array.ndim > 1 else array).astype(kind or array.dtype)


class _Pass:
    """What `begin_pass` was told, and what the gates said since."""

    def __init__(self, **given):
        self.__dict__.update(given)
        self.chosen = {}                # gate index -> (ids, gates)
        self.started = self.nanoseconds = 0


class Recorder:
    """Records the routing of `model` into `path`: a context manager around any decode loop.

    Three calls tell it what it cannot see: `request` before a request, `begin_pass` before and `end_pass` after each forward
    call. Inside `model.generate` nothing needs to be called. Forward calls outside a pass are not recorded.

    gates          regular expression over module names, or function (name, module) -> bool; default: the table of adapters
    read           function (module, inputs, output) -> (ids, gates or None), each [tokens, K]; default: by shape
    block_length   tokens of a block; 1 = autoregressive
    mask_id        token id of a masked position: with it, `begin_pass(ids=…)` knows which rows are masked
    token_ids      store /token/id. Off: with a tokenizer the ids spell the prompts and answers, so the file would carry the
                   data set's text, its licence and whatever is private in it. No policy reads them.
    gate_dtype     "f16", "f32", or None for no gate scores
    pass_times     store /observed/pass_ns, begin_pass to end_pass, the recorder's own work included; waits for the device
    forwards       store /pass/forward: for batches, see begin_pass
    expert_bytes   bytes of one expert, or a list of one for each MoE layer; default: from the parameters
    resident_bytes bytes of all other weights; default: what the parameters hold besides the routed experts
    Further keywords: model_id, gate_kind, confidence_kind ("none" leaves confidences out), compression ("gzip", "zstd"),
    overwrite, flush_rows, and the optional attributes of the format (dataset, license, decoder, commit_threshold, …).
    """

    def __init__(self, model, path, *, block_length=1, gates=None, read=None, mask_id=None, token_ids=False,
                 gate_dtype="f16", pass_times=False, forwards=False, expert_bytes=None, resident_bytes=None, model_id=None,
                 gate_kind=None, confidence_kind=None, compression="gzip", overwrite=False, flush_rows=4096, **attributes):
        unknown = sorted(set(attributes) - set(OPTIONAL))
        if unknown:
            raise TypeError(f"Recorder has no argument {unknown[0]!r}; attributes of the format: {', '.join(OPTIONAL)}")
        self.model, self.path, self.mask_id = model, os.fspath(path), mask_id
        self.gates = find_gates(model, gates, read, gate_kind)
        self._config = getattr(model, "config", None)
        self.block_length = block_length
        self._options = dict(gates=gate_dtype, token_ids=token_ids, pass_times=pass_times,
                             forwards=forwards, compression=compression, overwrite=overwrite, flush_rows=flush_rows)
        self._expert_bytes, self._resident_bytes = expert_bytes, resident_bytes
        self._model_id, self._attributes = model_id, attributes
        self._confidence_kind = confidence_kind
        self._writer = self._open = self.current = None
        self._handles, self._requests, self._forward = [], [], 0
        self.fresh = False              # the current request was declared and has no pass yet
        self._watch = GenerateWatch(self)
        if os.path.exists(self.path) and not overwrite:
            raise Problem(f"{self.path} exists; remove it, or pass overwrite=True")
        self._sizes = self._find_sizes()

    # ---- context ------------------------------------------------------------------------------------------------------

    def __enter__(self):
        for index, gate in enumerate(self.gates):
            self._handles.append(gate.module.register_forward_hook(self._hook(index, gate)))
        self._watch.start()
        return self

    def __exit__(self, kind, value, trace):
        self._detach()
        if kind is None:
            self.close()
        elif self._writer is not None:          # what is there stays, as a trace that was cut short
            self._writer.close(complete=False)

    def close(self):
        """Ends the recording and marks the file complete; leaving the `with` block does it, unless an exception left it."""
        self._detach()
        if self._open is not None:
            raise Problem("a pass is open: call end_pass before the recorder closes")
        if self._writer is None:
            raise Problem(f"{self.path}: no pass was recorded: call begin_pass and end_pass around the model, or generate()")
        writer, self._writer = self._writer, None
        writer.close()

    def _detach(self):
        self._watch.stop()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # ---- hooks --------------------------------------------------------------------------------------------------------

    def _hook(self, index, gate):
        def hook(module, inputs, output):
            if self._open is None:
                return
            if index in self._open.chosen:
                raise Problem(f"{gate.name} ran twice in one pass: call begin_pass and end_pass around each forward call")
            with torch.no_grad():
                ids, scores = gate.read(module, inputs, output)
                ids = ids.detach().reshape(-1, ids.shape[-1]).to(torch.int32, copy=True)
                if scores is not None:
                    scores = scores.detach().reshape(ids.shape).to(torch.float32, copy=True)
            self._open.chosen[index] = (ids, scores)
        return hook

    def _collect(self):
        """ids and gates of the open pass as arrays [rows, M, K]; gates None where a gate gave none."""
        chosen = self._open.chosen
        missing = [gate.name for i, gate in enumerate(self.gates) if i not in chosen]
        if missing:
            raise Problem(f"{missing[0]} did not run in this pass ({len(missing)} of {len(self.gates)} gates): no forward "
                          "call between begin_pass and end_pass, or a compiled or captured graph that skips hooks: record "
                          "in eager mode")
        device = chosen[0][0].device
        ids = torch.stack([chosen[i][0].to(device) for i in range(len(self.gates))], dim=1)
        scores = None
        if all(pair[1] is not None for pair in chosen.values()) and self._options["gates"] is not None:
            scores = torch.stack([chosen[i][1].to(device) for i in range(len(self.gates))], dim=1).cpu().numpy()
        return ids.cpu().numpy(), scores

    # ---- the three calls ----------------------------------------------------------------------------------------------

    def request(self, workload, prompt_tokens):
        """Declares the request that the next passes belong to; returns its number."""
        self._requests.append((workload, prompt_tokens))
        if self._writer is not None:
            self._writer.add_request(workload, prompt_tokens)
        self.current, self.fresh = len(self._requests) - 1, True
        return self.current

    def begin_pass(self, kind, positions, *, block=-1, step=0, ids=None, masked=None, request=None):
        """Before a forward call. kind: "prefill", "denoise", "commit" or "dummy"; positions: of its rows in the sequence.

        `masked` says which rows hold a mask on input; with `ids`, the input's token ids, and the recorder's mask_id it is
        known without. A batch of several requests: `request` is a list, and rows stand request by request, as many each.
        """
        if self._open is not None:
            raise Problem("begin_pass twice without end_pass")
        if self.current is None:
            raise Problem("call request(workload, prompt_tokens) before the first pass")
        requests = [self.current if request is None else request] if np.ndim(request) == 0 else list(request)
        if len(requests) > 1 and not self._options["forwards"]:
            raise Problem("a batch needs Recorder(…, forwards=True): its passes share one number in /pass/forward")
        self.fresh = False
        positions = _array(positions, np.int64)
        ids = None if ids is None else _array(ids, np.int64)
        if masked is None:
            masked = ids == self.mask_id if ids is not None and self.mask_id is not None else np.zeros(len(positions), bool)
        masked = _array(masked, bool)
        for name, given in (("masked", masked), ("ids", ids)):
            if given is not None and len(given) != len(positions):
                raise Problem(f"begin_pass: {len(given)} {name} for {len(positions)} positions")
        if len(positions) % len(requests):
            raise Problem(f"begin_pass: {len(positions)} rows cannot be shared out to {len(requests)} requests")
        self._open = _Pass(kind=kind, positions=positions, block=block, step=step, ids=ids, masked=masked, requests=requests)
        if self._options["pass_times"]:
            self._synchronise()
            self._open.started = time.perf_counter_ns()

    def end_pass(self, logits=None, confidence=None, committed=None, edited=None):
        """After the forward call. Give confidence [rows] (NaN = not known) or logits [rows, vocabulary], or neither.

        `committed` and `edited`: a boolean for each row; what this pass turned from mask into token, and from token into
        another token. From logits, the confidence of a masked row is its top-1 probability, and that of any other row the
        probability of the token it holds (if begin_pass was given ids; else top-1), softmax in float32.
        """
        taken = self.take_pass(committed, edited)
        if confidence is None and logits is not None:
            confidence = self._confidence(logits, taken, len(taken.state))
        self.write_pass(taken, None if confidence is None else _array(confidence, np.float32))

    def take_pass(self, committed=None, edited=None):
        """The first half of `end_pass`, for decoders that know a confidence only later: closes the pass and returns it."""
        if self._open is None:
            raise Problem("end_pass without begin_pass")
        now = self._open
        if self._options["pass_times"]:
            self._synchronise()
            now.nanoseconds = time.perf_counter_ns() - now.started
        now.expert, now.gate = self._collect()
        rows = len(now.positions)
        if len(now.expert) != rows:
            raise Problem(f"begin_pass was given {rows} positions, but the gates saw {len(now.expert)} tokens")
        now.state = np.where(now.masked, MASKED, COMMITTED).astype(np.uint8)
        if committed is not None:
            committed = self._rows("committed", committed, rows)
            if (committed & ~now.masked).any() and self.block_length > 1:
                raise Problem("end_pass: a row is committed that was not masked when the pass began (begin_pass: masked, or "
                              "ids with mask_id)")
            now.state[committed] = COMMITTED_NOW
        if edited is not None:
            edited = self._rows("edited", edited, rows)
            if (edited & now.masked).any():
                raise Problem("end_pass: a row is edited that was masked when the pass began: it is committed")
            now.state[edited] = EDITED
        self._open = None
        return now

    @staticmethod
    def _rows(name, values, rows):
        values = _array(values, bool)
        if len(values) != rows:
            raise Problem(f"end_pass: {len(values)} {name} for {rows} rows")
        return values

    def _confidence(self, logits, now, rows):
        with torch.no_grad():
            flat = logits.detach().reshape(-1, logits.shape[-1])
            if len(flat) != rows:
                raise Problem(f"end_pass: logits of {len(flat)} rows for {rows} rows")
            probabilities = torch.softmax(flat.float(), dim=-1)
            top = probabilities.max(dim=-1).values
            if now.ids is None:
                return top
            held = torch.as_tensor(np.where(now.masked, 0, now.ids), device=flat.device)[:, None]
            return torch.where(torch.as_tensor(now.masked, device=flat.device), top,
                               probabilities.gather(-1, held)[:, 0])

    def abandon_pass(self):
        """Forgets the open pass, if one is."""
        self._open = None

    def default_confidence_kind(self, text):
        """Names how confidences are computed, unless the user did or a pass is written already."""
        self._confidence_kind = self._confidence_kind or text

    def output_tokens(self, request, tokens):
        """Sets the tokens delivered to the user (not those after an end mark); default: the committed rows."""
        if self._writer is None:
            raise Problem("output_tokens before the first pass")
        self._writer.set_output_tokens(request, tokens)

    # ---- the file -----------------------------------------------------------------------------------------------------

    def write_pass(self, now, confidence):
        """The second half: confidence is an array [rows] or None."""
        if self._writer is None:
            self._create(now)
        rows = len(now.state)
        if confidence is not None and len(confidence) != rows:
            raise Problem(f"end_pass: {len(confidence)} confidences for {rows} rows")
        share = rows // len(now.requests)
        blocks, steps = (np.broadcast_to(v, (len(now.requests),)) for v in (now.block, now.step))
        for i, request in enumerate(now.requests):
            part = slice(i * share, (i + 1) * share)
            self._writer.add_pass(
                now.kind, request, int(blocks[i]), int(steps[i]), position=now.positions[part], state=now.state[part],
                expert=now.expert[part], gate=None if now.gate is None else now.gate[part],
                confidence=None if confidence is None else confidence[part],
                token_id=None if now.ids is None else now.ids[part], pass_ns=now.nanoseconds, forward=self._forward)
        self._forward += 1

    def _create(self, now):
        options = dict(self._options, block_length=self.block_length)
        if now.gate is None:
            options["gates"] = None
        resident = self._resident_bytes
        if resident is None:
            resident = self._all_bytes() - sum(g.num_experts * s for g, s in zip(self.gates, self._sizes))
        kind = self._confidence_kind or (HELD if now.ids is not None else TOP_1)
        self._writer = TraceWriter(
            self.path, model_id=self._model_id or self._name(), num_experts=self.gates[0].num_experts,
            top_k=now.expert.shape[-1], gate_kind=self.gates[0].kind,
            confidence_kind=kind, moe_layer_id=[gate.layer for gate in self.gates],
            expert_bytes=self._sizes, resident_bytes=max(0, resident), attributes=self._describe(), **options)
        for row in self._requests:
            self._writer.add_request(*row)

    def _find_sizes(self):
        counts = {gate.num_experts for gate in self.gates}
        if None in counts or len(counts) != 1:
            raise Problem(f"the gates have {sorted(map(str, counts))} experts; a trace holds one number for all layers: "
                          "select gates with gates=")
        if self._expert_bytes is not None:
            return [int(v) for v in np.broadcast_to(self._expert_bytes, (len(self.gates),))]
        sizes = [expert_bytes(gate.block, gate.num_experts) for gate in self.gates]
        if None in sizes:
            raise Problem(f"{self.gates[sizes.index(None)].name}: the bytes of one expert cannot be told from the module: pass "
                          "expert_bytes=")
        return sizes

    def _all_bytes(self):
        return sum(t.numel() * t.element_size() for t in self.model.parameters())

    def _name(self):
        return getattr(self._config, "_name_or_path", "") or type(self.model).__name__

    def _describe(self):
        config = getattr(self._config, "text_config", None) or self._config
        known = {
            "hidden_size": first((config,), "hidden_size"),
            "expert_intermediate_size": first((config,), "moe_intermediate_size", "expert_intermediate_size"),
            "shared_experts": first((config,), "n_shared_experts", "num_shared_experts", "moe_num_shared_experts"),
            "weight_dtype": str(next(self.model.parameters()).dtype).replace("torch.", ""),
            "engine": "PyTorch", "engine_version": torch.__version__,
            "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return {**{k: v for k, v in known.items() if v is not None}, **self._attributes}

    def _synchronise(self):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
