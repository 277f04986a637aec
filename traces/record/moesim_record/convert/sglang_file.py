# SPDX-License-Identifier: Apache-2.0
"""Files of SGLang's expert-distribution recorder, mode `per_token`: one .pt for each rank and dump.

A file is a dict: `records`, one a forward call, with `forward_pass_id, rank, gatherer_key, input_ids [n], positions [n],
extend_seq_lens, forward_mode, topk_ids_of_layer int32 [layers, n, 8]`, and `last_physical_to_logical_map [layers, physical]`.
Ids are physical; -1 fills slots that are not used, layers that are dense, and padding. There are no gate scores, no
confidences and no request numbers.
"""
import pickle
import re

import numpy as np

from ..writer import Problem
from .follow import DECODE

RECORD_AGAIN = "record with --expert-distribution-recorder-mode per_token"


def _load(path):
    try:
        import torch
    except ImportError:
        raise Problem(f"{path}: .pt files need PyTorch: pip install torch (Debian: python3-torch)") from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except pickle.UnpicklingError as error:
        found = re.search(r"Unsupported [^\n]{1,80}", str(error))       # the rest is advice to load it all the same
        reason = found.group() if found else type(error).__name__
        raise Problem(f"{path}: holds more than tensors and plain values, so loading it could run code, or is damaged; "
                      f"refused ({reason}); {RECORD_AGAIN}") from None
    except Exception as error:              # a damaged file fails in as many ways as its layers have
        reason = str(error).strip().split("\n")[0][:160]
        raise Problem(f"{path}: is no whole PyTorch file ({type(error).__name__}: {reason}); dump or copy it again") from None


def _tensor(value, place, dims):
    """An integer tensor as an array; its size is bounded by the bytes of the file since it is contiguous."""
    import torch
    if not torch.is_tensor(value) or value.dim() != dims or value.is_floating_point() or value.is_complex() \
            or not value.is_contiguous():
        what = f"{list(value.shape)} {value.dtype}" if torch.is_tensor(value) else type(value).__name__
        raise Problem(f"{place} is {what}, expected an integer tensor of {dims} dimensions; {RECORD_AGAIN}")
    return value.numpy()


def _numbers(value, place, n, high):
    """A list (or tensor) of whole numbers within 0..high; n None: any length."""
    if hasattr(value, "tolist"):
        value = _tensor(value, place, 1).tolist()
    if not isinstance(value, (list, tuple)) or (n is not None and len(value) != n):
        size = f"{len(value)} values" if isinstance(value, (list, tuple)) else type(value).__name__
        raise Problem(f"{place} is {size}, expected {'a list' if n is None else f'{n} numbers'}; {RECORD_AGAIN}")
    for i, v in enumerate(value):
        if type(v) is not int or not 0 <= v <= high:
            raise Problem(f"{place}[{i}] is {v!r}, expected a whole number within 0..{high}; the file is damaged")
    return np.array(value, dtype=np.int64)


class Record:
    """One checked record: call, rank, mode, ids, positions [n], lengths or None, expert [n, layers, 8] physical."""

    def __init__(self, path, index, record):
        self.place = f"{path}: record {index}"
        self.path = path
        if not isinstance(record, dict):
            raise Problem(f"{self.place} is no dict; {RECORD_AGAIN}")
        missing = [k for k in ("input_ids", "positions", "forward_mode", "topk_ids_of_layer") if k not in record]
        if missing:
            raise Problem(f"{self.place} has no {missing[0]}: modes stat and per_pass count experts only; {RECORD_AGAIN}")
        if record.get("gatherer_key", "primary") != "primary":
            raise Problem(f"{self.place}: gatherer_key is {record['gatherer_key']!r}; record without two-batch overlap")
        self.call, self.rank, self.mode = (
            int(_numbers([record.get(k, 0)], f"{self.place}: {k}", 1, 2**62)[0])
            for k in ("forward_pass_id", "rank", "forward_mode"))
        self.ids = _numbers(record["input_ids"], f"{self.place}: input_ids", None, 2**31 - 1)
        n = len(self.ids)
        self.positions = _numbers(record["positions"], f"{self.place}: positions", n, 2**31 - 1)
        lengths = record.get("extend_seq_lens")
        if self.mode == DECODE:             # a token each
            lengths = None
        self.lengths = None if lengths is None else _numbers(lengths, f"{self.place}: extend_seq_lens", None, n)
        if self.lengths is not None and self.lengths.sum() != n:
            raise Problem(f"{self.place}: extend_seq_lens sum to {self.lengths.sum()} for {n} tokens; the file is damaged")
        topk = _tensor(record["topk_ids_of_layer"], f"{self.place}: topk_ids_of_layer", 3)
        if topk.shape[1] != n or not 1 <= topk.shape[0] <= 4096 or not 1 <= topk.shape[2] <= 64:
            raise Problem(f"{self.place}: topk_ids_of_layer is {list(topk.shape)}, expected [layers, {n}, k]; the "
                          "file is damaged")
        self.expert = topk.transpose(1, 0, 2)

    def drop_padding(self):
        """Leaves out rows without any route, which pad a batch; returns how many."""
        real = (self.expert >= 0).any(axis=(1, 2))
        if self.lengths is not None:
            ends = np.cumsum(self.lengths)
            self.lengths = np.array([real[e - n:e].sum() for n, e in zip(self.lengths, ends)], dtype=np.int64)
        self.ids, self.positions, self.expert = self.ids[real], self.positions[real], self.expert[real]
        return int((~real).sum())

    def parts(self):
        """(begin, end) of each request's rows."""
        n = len(self.ids)
        if self.mode == DECODE:
            return [(i, i + 1) for i in range(n)]
        if self.lengths is not None:
            ends = np.cumsum(self.lengths)
            return [(int(e - m), int(e)) for m, e in zip(self.lengths, ends) if m > 0]
        cuts = [0, *(np.flatnonzero(np.diff(self.positions) != 1) + 1).tolist(), n]
        return list(zip(cuts, cuts[1:]))

    def same_as(self, other):
        return np.array_equal(self.ids, other.ids) and np.array_equal(self.positions, other.positions) \
            and np.array_equal(self.expert, other.expert)


def read_file(path):
    data = _load(path)
    if not isinstance(data, dict) or not isinstance(data.get("records"), list):
        raise Problem(f"{path}: has no list `records`: modes stat and per_pass keep no tokens; {RECORD_AGAIN}")
    mapping = data.get("last_physical_to_logical_map")
    if mapping is not None:
        mapping = _tensor(mapping, f"{path}: last_physical_to_logical_map", 2)
        if mapping.size == 0 or mapping.min() < 0 or mapping.max() >= 1024 or mapping.shape[1] > 65534:
            raise Problem(f"{path}: last_physical_to_logical_map {list(mapping.shape)} holds experts outside 0..1023")
    records = [Record(path, i, record) for i, record in enumerate(data["records"])]
    for r in records:
        if mapping is not None and mapping.shape[0] != r.expert.shape[1]:
            raise Problem(f"{r.place}: {r.expert.shape[1]} layers, but last_physical_to_logical_map has {mapping.shape[0]}")
        if r.expert.shape[1] != records[0].expert.shape[1]:
            raise Problem(f"{r.place}: {r.expert.shape[1]} layers, but record 0 has {records[0].expert.shape[1]}")
    return records, mapping
