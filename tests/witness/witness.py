#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second witness: executes recorded cache decisions with PyTorch, by itself.

The simulator and the replayer of this project could share a mistake. This loop shares nothing with them but the decisions: its
own streams, its own pinned pool, its own slots, torch's matrix products. README.md beside this file says how to run it;
layout.py and execute.py, which hold the loop, are needed beside it.

  prepare   raw replay file + trace + decision logs -> work file (NumPy); needs h5py
  run       work file -> times (NumPy); needs torch, on a GPU or a CPU
  write     both -> raw replay file that `moesim fidelity --witness` reads; needs h5py
"""
import argparse
import json
import sys

import numpy as np

from layout import fail

NO_ROUTE = 65535


def clean(value):
    return value.decode() if isinstance(value, bytes) else str(value)


# ---- prepare -------------------------------------------------------------------------------------------------------------


def tokens_of(trace, log):
    """Rows of every expert of every event, in the order hits, moved, cpu: CSR over experts."""
    routes = trace["routing/expert"]
    begin = trace["pass/row_offset"][:].astype(np.int64)
    passes, layers = (log[f"event/{name}"][:].astype(np.int64) for name in ("pass", "layer"))
    ids = {k: (log[f"{k}/offset"][:].astype(np.int64), log[f"{k}/expert"][:]) for k in ("hits", "moved", "cpu")}
    offset, row = [0], []
    last, block = -1, None
    for e, (p, l) in enumerate(zip(passes, layers)):
        if p != last:
            block, last = routes[begin[p]:begin[p + 1]], p
        table = block[:, l, :]
        active = np.unique(table[table != NO_ROUTE])
        named = np.concatenate([x[o[e]:o[e + 1]] for o, x in ids.values()])
        if not np.array_equal(np.sort(named), active):
            fail(f"event {e} (pass {p}, layer {l}): the log's experts are not those that the trace activates")
        for expert in named:
            rows = np.nonzero((table == expert).any(axis=1))[0]
            row.append(rows)
            offset.append(offset[-1] + len(rows))
    rows = np.diff(begin)[passes]
    kind = np.int16 if rows.max(initial=0) < 32768 else np.int32
    return np.asarray(offset, np.int64), np.concatenate(row).astype(kind), rows.astype(np.int32)


def prepare(a):
    import h5py
    raw = h5py.File(a.raw, "r")
    trace = h5py.File(a.trace, "r")
    config = {k: clean(v) for k, v in raw.attrs.items()}
    digests = [clean(v) for v in raw["plans/decisions"][:]]
    if int(config["batch"]) != 1:
        fail("merged steps (--batch) are not executed by the witness")
    out, found = {"config": json.dumps(config), "num_plans": len(digests)}, set()
    for path in a.decisions:
        log = h5py.File(path, "r")
        if clean(log.attrs["trace_digest"]) != config["trace_digest"]:
            fail(f"{path}: a log of another trace than {a.raw}")
        plan = next((i for i, d in enumerate(digests) if d == clean(log.attrs["digest"])), None)
        if plan is None:
            print(f"{path}: none of the plans of {a.raw} decided so; left out", file=sys.stderr)
            continue
        found.add(plan)
        out[f"{plan}/decisions"] = digests[plan]
        offset, row, rows = tokens_of(trace, log)
        for name in ("hits", "moved", "cpu", "evicted"):
            # not unsigned: older NumPy makes uint64 + 1 a float
            out[f"{plan}/{name}/offset"] = log[f"{name}/offset"][:].astype(np.int64)
            out[f"{plan}/{name}/expert"] = log[f"{name}/expert"][:].astype(np.int64)
        out.update({f"{plan}/token/offset": offset, f"{plan}/token/row": row, f"{plan}/rows": rows,
                    f"{plan}/layer": log["event/layer"][:].astype(np.int32), f"{plan}/pass": log["event/pass"][:]})
    if not found:
        fail("no decision log fits the raw file")
    np.savez_compressed(a.output, plans=sorted(found), **out)
    print(f"{len(found)} of {len(digests)} plans prepared")


# ---- write ---------------------------------------------------------------------------------------------------------------


def text_column(group, name, values):
    width = max([1] + [len(v.encode()) for v in values])
    import h5py
    group.create_dataset(name, data=np.asarray([v.encode() for v in values], dtype=h5py.string_dtype("utf-8", width)))


def check_same(a, work, config, digests):
    """The raw file may be another than at `prepare` if it has experts of the same sizes and the same decisions."""
    before = json.loads(str(work["config"]))
    for key in ("trace_digest", "hidden", "intermediate", "request_begin", "request_end"):
        if config[key] != before[key]:
            fail(f"{a.raw}: {key} is {config[key]}, {a.work} was prepared for {before[key]}; prepare with this raw file")
    for plan in work["plans"].tolist():
        if plan >= len(digests) or digests[plan] != str(work[f"{plan}/decisions"]):
            fail(f"{a.raw}: plan {plan} decides otherwise than that of {a.work}; prepare with this raw file")


def write(a):
    import h5py
    work, times = np.load(a.work), np.load(a.times)
    raw, cells = h5py.File(a.raw, "r"), int(times["num_cells"])
    config = {k: clean(v) for k, v in raw.attrs.items()}
    digests = [clean(v) for v in raw["plans/decisions"][:]]
    check_same(a, work, config, digests)
    config.update(device="pytorch", pool=str(int(times["pool"])), threads=str(int(times["threads"])), isa="", cpus="",
                  partial="0", planned_cells=str(cells))
    with h5py.File(a.output, "w", libver=("v110", "v110")) as f:
        for table in ("plans", "events"):
            raw.copy(table, f)
        bytes_of = 6 * int(config["hidden"]) * int(config["intermediate"])
        plan, repeat, checked = (np.asarray([times[f"{i}/cell"][k] for i in range(cells)], np.int64) for k in range(3))
        c, zero = f.create_group("cells"), np.zeros(cells, np.int64)
        for name, values in (("cell", np.arange(cells)), ("plan", plan), ("repeat", repeat), ("mode", zero), ("session", zero),
                             ("verified", checked)):
            c.create_dataset(name, data=np.asarray(values, np.int64))
        c.create_dataset("bandwidth_cap", data=np.zeros(cells))
        c.create_dataset("worst_error", data=np.asarray([float(times[f"{i}/worst"]) for i in range(cells)]))
        text_column(c, "executed", [digests[p] for p in plan])
        t = f.create_group("times")
        moved = [np.diff(work[f"{p}/moved/offset"]).astype(np.int64) for p in plan]
        ns = np.concatenate([times[f"{i}/ns"] for i in range(cells)])
        columns = {"cell": np.repeat(np.arange(cells), [len(m) for m in moved]), "event_ns": ns,
                   "lead_ns": np.concatenate([times[f"{i}/lead"] for i in range(cells)]), "link_ns": 0 * ns, "gpu_ns": 0 * ns,
                   "cpu_ns": 0 * ns, "bytes": np.concatenate(moved) * bytes_of}
        for name, values in columns.items():
            t.create_dataset(name, data=np.asarray(values, np.int64))
        facts, g = json.loads(str(times["facts"])), f.create_group("facts")
        g.create_dataset("session", data=np.zeros(len(facts), np.int64))
        text_column(g, "key", list(facts))
        text_column(g, "value", list(facts.values()))
        names = {"plans": None, "events": None, "cells": list(c), "times": list(columns), "facts": ["session", "key", "value"]}
        for key, value in config.items():
            if key in ("format_version", "complete") or key.startswith("columns_"):
                continue
            f.attrs[key] = value
        for table, columns in names.items():
            f.attrs[f"columns_{table}"] = ",".join(columns) if columns else clean(raw.attrs[f"columns_{table}"])
        f.attrs["tables"] = ",".join(names)
        f.attrs["format_version"] = np.uint32(1)
        f.attrs["complete"] = np.uint32(1)
    print(f"{cells} cells written to {a.output}")


# ---- the command ---------------------------------------------------------------------------------------------------------


def run(a):
    import execute
    execute.run(a)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("prepare", help="raw replay file + trace + decision logs -> work file")
    p.add_argument("--raw", required=True)
    p.add_argument("--trace", required=True)
    p.add_argument("--decisions", nargs="+", required=True)
    p.add_argument("-o", "--output", required=True)
    p = verbs.add_parser("run", help="work file -> times")
    p.add_argument("work")
    p.add_argument("-o", "--output", required=True)
    p.add_argument("--device", default="cuda")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--pool", type=int, help="experts in host memory (default: as in the raw file)")
    p.add_argument("--threads", type=int)
    p.add_argument("--most-slots", type=int, help="slots of a layer; with more residents several read one slot")
    p.add_argument("--no-warm", dest="warm", action="store_false", help="no untimed execution of a plan before its repeats")
    p.add_argument("--no-grouped", dest="grouped", action="store_false", help="a product for each expert, no torch._grouped_mm")
    p.add_argument("--verify", type=int, default=97,
                   help="check every n-th event of the untimed execution and the last one of each (0: none)")
    p = verbs.add_parser("write", help="raw replay file of the witness")
    p.add_argument("work")
    p.add_argument("times")
    p.add_argument("--raw", required=True)
    p.add_argument("-o", "--output", required=True)
    a = parser.parse_args()
    {"prepare": prepare, "run": run, "write": write}[a.verb](a)


if __name__ == "__main__":
    main()
