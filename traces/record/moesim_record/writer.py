# SPDX-License-Identifier: Apache-2.0
"""Writer of trace files, format version 1 (traces/FORMAT.md), from NumPy arrays; needs no PyTorch.

A trace may be hours of work, so a killed process must not lose it. Rows are kept in memory and appended in pieces; between
two pieces the file is closed, hence whole, and while a piece is appended HDF5's single-writer mode orders the writes such that
what was there stays readable. Wide columns are extended first and `/pass/row_offset` last: rows that no pass covers can be cut
off. Attribute `complete` is 0 until `close`, so a reader knows a file that was cut short.
"""
import os

import h5py
import numpy as np

NO_ROUTE = 65535            # id of a slot that routed to no expert
KINDS = {"prefill": 0, "denoise": 1, "commit": 2, "dummy": 3}
MASKED, COMMITTED_NOW, COMMITTED, EDITED = range(4)         # states of a row
WIDE_ROWS, ROWS = 256, 8192  # rows of a chunk: of [M][K] and [M][E] columns, of all others
CHUNK_BYTES = 8 << 20       # wide chunks stay below
ZSTD = 32015                # registered number of the HDF5 filter
WORKLOAD = "S64"

# dataset, type, width ('' a row, 'K' [M][K], 'E' [M][E]), present if; in the order in which a piece is appended
ROW_COLUMNS = (("routing/expert", "<u2", "K", None), ("routing/gate", "gate", "K", "gates"),
               ("routing/router_prob", "<f2", "E", "router_probs"),
               ("token/position", "<i4", "", None), ("token/state", "u1", "", None),
               ("token/confidence", "<f2", "", "confidences"), ("token/id", "<i4", "", "token_ids"))
PASS_COLUMNS = (("pass/kind", "u1", "", None), ("pass/request", "<u4", "", None), ("pass/block", "<i4", "", None),
                ("pass/step", "<i4", "", None), ("pass/forward", "<u8", "", "forwards"),
                ("observed/pass_ns", "<u8", "", "pass_times"))
ROW_NAMES = {name for name, *_ in ROW_COLUMNS}
OPTIONAL = {"hidden_size": np.uint32, "expert_intermediate_size": np.uint32, "shared_experts": np.uint32,
            "commit_threshold": np.float64, "weight_dtype": str, "engine": str, "engine_version": str, "decoder": str,
            "dataset": str, "license": str, "created": str, "source_digest": str}


class Problem(ValueError):
    """What was asked for, or what a model did, cannot be written as a trace; the text names the remedy."""


def _in_range(name, value, low, high):
    if not low <= int(value) <= high:
        raise Problem(f"{name} is {value}; a trace holds {low}..{high}")
    return int(value)


def _cast(where, values, kind, low=None):
    """An array of that type. NumPy turns a whole number that does not fit into another one without a word."""
    array = np.asarray(values)
    if kind.kind == "f" or array.size == 0:
        return np.array(array, dtype=kind)
    high, low = np.iinfo(kind).max, np.iinfo(kind).min if low is None else low
    if array.dtype.kind not in "iub":
        raise Problem(f"{where} is of type {array.dtype}; it takes whole numbers {low}..{high}")
    if array.min() < low or array.max() > high:
        raise Problem(f"{where} has {array.min() if array.min() < low else array.max()}; it takes {low}..{high}")
    return np.array(array, dtype=kind)


def _new_file(path, groups):
    """A file of HDF5's 1.10 format with empty groups, without time stamps: the same content, the same bytes."""
    def timeless(kind):
        properties = h5py.h5p.create(kind)
        properties.set_obj_track_times(False)
        return properties
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    f = h5py.File(h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_TRUNC, timeless(h5py.h5p.FILE_CREATE), access))
    for name in groups:
        h5py.h5g.create(f.id, name.encode(), gcpl=timeless(h5py.h5p.GROUP_CREATE))
    return f


class TraceWriter:
    """One trace file. `add_request` and `add_pass` buffer; `flush` appends; `close` marks the file complete.

    `gates` is "f16", "f32" or None; `attributes` are the optional root attributes of the format. Not thread-safe.
    """

    def __init__(self, path, *, model_id, num_experts, top_k, block_length, gate_kind, confidence_kind, moe_layer_id,
                 expert_bytes, resident_bytes=None, gates="f16", router_probs=False, token_ids=False, pass_times=False,
                 forwards=False, attributes=None, compression="gzip", overwrite=False, flush_rows=4096):
        self.path = os.fspath(path)
        if os.path.exists(self.path) and not overwrite:
            raise Problem(f"{self.path} exists; remove it, or pass overwrite=True")
        self.layers = _in_range("the number of MoE layers", len(moe_layer_id), 1, 1024)
        self.experts = _in_range("num_experts", num_experts, 1, 1024)
        self.top_k = _in_range("top_k", top_k, 1, min(64, self.experts))
        _in_range("block_length", block_length, 1, 4096)
        if gates not in ("f16", "f32", None):
            raise Problem(f"gates={gates!r}; known are \"f16\", \"f32\" and None")
        self.gate_type = {"f16": "<f2", "f32": "<f4", None: None}[gates]
        self.flush_rows = flush_rows
        self._has = {"gates": gates is not None, "confidences": confidence_kind != "none", "token_ids": token_ids,
                     "router_probs": router_probs, "pass_times": pass_times, "forwards": forwards, None: True}
        self._filters = self._choose_filters(compression)
        self._pending = {name: [] for name, *_ in self._columns()}
        self._ends = []                 # row_offset values not yet in the file
        self.rows = self.passes = self._buffered = 0
        self._flushed = (0, 0)          # passes, rows in the file
        self._requests = []             # [workload, prompt tokens, output tokens]
        self._fixed = set()             # requests whose output tokens were set
        self._requests_changed = False
        self._create(dict(model_id=model_id, gate_kind=gate_kind, confidence_kind=confidence_kind), block_length,
                     moe_layer_id, expert_bytes, resident_bytes, dict(attributes or {}))

    def _columns(self):
        return [c for c in ROW_COLUMNS + PASS_COLUMNS if self._has[c[3]]]

    @staticmethod
    def _choose_filters(compression):
        if compression == "gzip":
            return dict(compression="gzip", compression_opts=4)
        if compression == "zstd":
            if not h5py.h5z.filter_avail(ZSTD):
                try:
                    import hdf5plugin  # noqa: F401  (registers its filters when it is imported)
                except ImportError:
                    pass
            if h5py.h5z.filter_avail(ZSTD):
                return dict(compression=ZSTD, compression_opts=(3,))
            raise Problem("h5py finds no zstd filter: install hdf5plugin, or before Python starts run "
                          "eval \"$(moesim trace plugin-path)\", or pass compression=\"gzip\" (readable everywhere)")
        raise Problem(f"compression={compression!r}; known are \"gzip\" and \"zstd\"")

    def _create(self, texts, block_length, moe_layer_id, expert_bytes, resident_bytes, optional):
        integers = {"format_version": 1, "num_moe_layers": self.layers, "num_experts": self.experts, "top_k": self.top_k,
                    "block_length": block_length}
        sizes = np.broadcast_to(np.asarray(expert_bytes, dtype="<u8"), (self.layers,))
        if sizes.min() < 1 or sizes.max() > 1 << 34:
            raise Problem("expert_bytes outside 1..2^34")
        unknown = sorted(set(optional) - set(OPTIONAL))
        if unknown:
            raise Problem(f"the format has no attribute {unknown[0]!r}; it has {', '.join(OPTIONAL)}")
        groups = {"model", "request", *(name.split("/")[0] for name, *_ in self._columns())}
        with _new_file(self.path, sorted(groups)) as f:
            f.attrs["format"] = "moe-routing-trace"
            for name, value in integers.items():
                f.attrs[name] = np.uint32(value)
            for name, value in texts.items():
                f.attrs[name] = str(value)
            for name, kind in OPTIONAL.items():
                if optional.get(name) is not None:
                    f.attrs[name] = kind(optional[name])
            f.attrs["complete"] = np.uint8(0)
            f["model/moe_layer_id"] = np.asarray(moe_layer_id, dtype="<i4")
            f["model/expert_bytes"] = sizes
            if resident_bytes is not None:
                f["model/resident_bytes"] = np.array([resident_bytes], dtype="<u8")
            for name, kind, width, _ in self._columns():
                self._new_column(f, name, self.gate_type if kind == "gate" else kind, width)
            self._new_column(f, "pass/row_offset", "<u8", "")
            f["pass/row_offset"].resize(1, axis=0)      # the fill value 0 begins it
            for name, kind in (("workload", WORKLOAD), ("prompt_tokens", "<u4"), ("output_tokens", "<u4")):
                self._new_column(f, "request/" + name, kind, "")

    def _inner(self, width):
        return {"": (), "K": (self.layers, self.top_k), "E": (self.layers, self.experts)}[width]

    def _new_column(self, f, name, kind, width):
        inner = self._inner(width)
        row_bytes = np.dtype(kind).itemsize * int(np.prod(inner, dtype=np.int64))
        rows = max(1, min(WIDE_ROWS if width else ROWS, CHUNK_BYTES // row_bytes))
        f.create_dataset(name, (0,) + inner, dtype=kind, maxshape=(None,) + inner, chunks=(rows,) + inner,
                         shuffle=np.dtype(kind).itemsize > 1, fletcher32=True, **self._filters)

    def add_request(self, workload, prompt_tokens):
        """Declares a request; returns its number. Committed rows count as its output unless `set_output_tokens` is called."""
        text = str(workload).encode()
        if not text or len(text) > 63:
            raise Problem(f"workload {workload!r}: 1..63 bytes")
        self._requests.append([text, _in_range("prompt_tokens", prompt_tokens, 0, 2**32 - 1), 0])
        self._requests_changed = True
        return len(self._requests) - 1

    def set_output_tokens(self, request, tokens):
        self._requests[request][2] = _in_range("output_tokens", tokens, 0, 2**32 - 1)
        self._fixed.add(request)
        self._requests_changed = True

    def add_pass(self, kind, request, block, step, *, position, state, expert, gate=None, router_prob=None, confidence=None,
                 token_id=None, pass_ns=0, forward=0):
        """One pass: position, state, confidence, token_id [R]; expert, gate [R, M, K] in the gate's own slot order;
        router_prob [R, M, E].

        The arrays are copied; they are checked here (shapes, types) and by `flush` (values).
        """
        if not 0 <= request < len(self._requests):
            raise Problem(f"request {request} was not declared by add_request")
        if kind not in KINDS and kind not in KINDS.values():
            raise Problem(f"kind {kind!r}; known are {', '.join(KINDS)}")
        rows = len(position)
        values = {"routing/expert": expert, "routing/gate": gate, "routing/router_prob": router_prob,
                  "token/position": position, "token/state": state, "token/confidence": confidence, "token/id": token_id,
                  "pass/kind": [KINDS.get(kind, kind)],
                  "pass/request": [request], "pass/block": [block], "pass/step": [step], "pass/forward": [forward],
                  "observed/pass_ns": [pass_ns]}
        ready = {}
        for column in self._columns():
            name, type_, width, _ = column
            inner = self._inner(width)
            n = rows if column in ROW_COLUMNS else 1
            array = values[name]
            if array is None and name == "token/confidence":
                array = np.full(rows, np.nan)
            if array is None:
                raise Problem(f"pass {self.passes} has no /{name}, but the file was opened with it")
            array = _cast(f"pass {self.passes}: /{name}", array, np.dtype(self.gate_type if type_ == "gate" else type_),
                          -1 if name == "routing/expert" else None)     # engines write -1 for no expert: 65535 as uint16
            if array.shape != (n,) + inner:
                raise Problem(f"pass {self.passes}: /{name} is {list(array.shape)}, expected {[n, *inner]}")
            ready[name] = array
        for name, array in ready.items():
            self._pending[name].append(array)
        if request not in self._fixed and ready["pass/kind"][0] != KINDS["dummy"]:
            self._requests[request][2] += int((ready["token/state"] == COMMITTED_NOW).sum())
            self._requests_changed = True
        self.rows += rows
        self.passes += 1
        self._buffered += rows
        self._ends.append(self.rows)
        if self._buffered >= self.flush_rows:
            self.flush()

    def _check(self, piece):
        """The rules that a reader would refuse the file for, with the first pass of the piece for orientation."""
        where = f"in passes {self.passes - len(self._ends)}..{self.passes - 1}"
        ids = piece["routing/expert"]
        if ((ids >= self.experts) & (ids != NO_ROUTE)).any():
            raise Problem(f"expert id {int(ids[(ids >= self.experts) & (ids != NO_ROUTE)][0])} of {self.experts} {where}")
        if self.top_k > 1:
            ordered = np.sort(ids, axis=-1)
            if ((ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != NO_ROUTE)).any():
                raise Problem(f"an expert twice in one row and layer {where}: a layer filled by the engine, or not ids")
        gate = piece.get("routing/gate")
        if gate is not None and not (np.isfinite(gate).all() and (gate >= 0).all()):
            raise Problem(f"a gate score that is negative or not finite {where}: logits are not gate scores"
                          + ("; values beyond 65504 need gates=\"f32\"" if gate.dtype == np.float16 else ""))
        confidence = piece.get("token/confidence")
        if confidence is not None and ((confidence < 0) | (confidence > 1)).any():
            raise Problem(f"a confidence outside 0..1 {where}: pass probabilities, not logits")
        prob = piece.get("routing/router_prob")
        if prob is not None and not np.isfinite(prob).all():
            raise Problem(f"a router score that is not finite {where}")
        if (piece["token/position"] < 0).any() or (piece["token/state"] > EDITED).any():
            raise Problem(f"a negative position or an unknown state {where}")

    def flush(self):
        """Appends what is buffered; the file is whole again when this returns."""
        if not self._ends and not self._requests_changed:
            return
        piece = {name: np.concatenate(parts) for name, parts in self._pending.items() if parts}
        if piece:
            self._check(piece)
        with h5py.File(self.path, "r+", libver=("v110", "v110")) as f:
            f.swmr_mode = True
            self._write_requests(f)
            for name, array in piece.items():
                self._append(f[name], self._flushed[name in ROW_NAMES], array)
            if self._ends:
                self._append(f["pass/row_offset"], self._flushed[0] + 1, np.array(self._ends, dtype="<u8"))
        self._requests_changed = False
        self._flushed = (self.passes, self.rows)
        for parts in self._pending.values():
            parts.clear()
        self._ends, self._buffered = [], 0

    @staticmethod
    def _append(dataset, first, array):
        """Entries from `first` on: again where an earlier try broke off, by Ctrl-C or for want of space."""
        dataset.resize(first + len(array), axis=0)
        dataset[first:] = array

    def _write_requests(self, f):
        if not self._requests_changed:
            return
        for i, name in enumerate(("workload", "prompt_tokens", "output_tokens")):
            dataset = f["request/" + name]
            dataset.resize(len(self._requests), axis=0)
            dataset[:] = np.array([row[i] for row in self._requests], dtype=dataset.dtype)

    def close(self, complete=True):
        """Appends the rest; with `complete` the file becomes a whole trace, without it one that was cut short."""
        self.flush()
        if complete:
            if self.passes == 0:
                raise Problem(f"{self.path}: no pass was recorded")
            with h5py.File(self.path, "r+", libver=("v110", "v110")) as f:
                f.attrs.modify("complete", np.uint8(1))
