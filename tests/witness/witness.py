#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second witness: executes recorded cache decisions with PyTorch, by itself.

The simulator and the replayer of this project could share a mistake. This loop shares nothing with them but the decisions: its
own streams, its own pinned pool, its own slots, torch's matrix products. README.md beside this file says how to run it.

  prepare   raw replay file + trace + decision logs -> work file (NumPy); needs h5py
  run       work file -> times (NumPy); needs torch, on a GPU or a CPU
  write     both -> raw replay file that `moesim fidelity --witness` reads; needs h5py
"""
import argparse
import json

import sys
import time

import numpy as np

NO_ROUTE = 65535
FRESH = 64                       # experts of the pool that are drawn


def fail(text):
    sys.exit(f"witness.py: {text}")


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
        offset, row, rows = tokens_of(trace, log)
        for name in ("hits", "moved", "cpu", "evicted"):
            out[f"{plan}/{name}/offset"], out[f"{plan}/{name}/expert"] = log[f"{name}/offset"][:], log[f"{name}/expert"][:]
        out.update({f"{plan}/token/offset": offset, f"{plan}/token/row": row, f"{plan}/rows": rows,
                    f"{plan}/layer": log["event/layer"][:].astype(np.int32), f"{plan}/pass": log["event/pass"][:]})
    if not found:
        fail("no decision log fits the raw file")
    np.savez_compressed(a.output, plans=sorted(found), **out)
    print(f"{len(found)} of {len(digests)} plans prepared")


# ---- run -----------------------------------------------------------------------------------------------------------------


class Device:
    """Two streams on a GPU; on a CPU everything happens in order."""

    def __init__(self, torch, name):
        self.torch, self.name, self.gpu = torch, name, name.startswith("cuda")
        if self.gpu:
            self.copies, self.main = torch.cuda.Stream(name), torch.cuda.current_stream(name)

    def empty(self, *shape):
        return self.torch.empty(*shape, dtype=self.torch.bfloat16, device=self.name)

    def event(self, on_copies=False):
        if not self.gpu:
            return None
        e = self.torch.cuda.Event()
        e.record(self.copies if on_copies else self.main)
        return e

    def wait(self, event, on_copies=False):
        if event is not None:
            (self.copies if on_copies else self.main).wait_event(event)

    def copy(self, to, source):
        if not self.gpu:
            to.copy_(source)
            return
        with self.torch.cuda.stream(self.copies):
            to.copy_(source, non_blocking=True)

    def sync(self):
        if self.gpu:
            self.torch.cuda.synchronize()


class Pool:
    """Experts in host memory; expert e of layer l lies at (l E + e) mod size. [2I + I][H]: gate, up, down transposed."""

    def __init__(self, torch, dev, hidden, inter, experts, size):
        g = torch.Generator().manual_seed(1)
        self.experts, self.size, self.hidden, self.inter = experts, size, hidden, inter
        self.weight = torch.empty(size, 3 * inter, hidden, dtype=torch.bfloat16, pin_memory=dev.gpu)
        for i in range(size):        # new numbers for the first ones, the same shifted for the others
            self.weight[i] = torch.roll(self.weight[i % FRESH].flatten(), i).view(3 * inter, hidden) if i >= FRESH else \
                (torch.randn(3 * inter, hidden, generator=g) / hidden ** 0.5).to(torch.bfloat16)

    def of(self, layer, expert):
        return self.weight[(layer * self.experts + expert) % self.size]


def expert_output(torch, x, w, inter):
    """y = (silu(x Wg) * (x Wu)) Wd of one expert; w [3I][H]."""
    h = x @ w[:2 * inter].t()
    return (torch.nn.functional.silu(h[:, :inter]) * h[:, inter:]) @ w[2 * inter:]


def has_grouped(torch, dev):
    """One product for all hits, where this PyTorch has it for this GPU."""
    try:
        offs = torch.tensor([0, 16], dtype=torch.int32, device=dev.name)
        weight = dev.empty(2, 192, 64)
        h = torch._grouped_mm(dev.empty(16, 64), weight[:, :128].transpose(1, 2), offs=offs)
        torch._grouped_mm(h[:, :64].contiguous(), weight[:, 128:], offs=offs)
        dev.sync()
        return True
    except (AttributeError, RuntimeError):
        return False


class Loop:
    """One plan: slots and indices are laid out before the clock runs, so that Python's own work does not show in the times."""

    def __init__(self, torch, dev, config, work, plan, pool, limit):
        self.torch, self.dev, self.pool, self.config = torch, dev, pool, config
        self.hidden, self.inter, self.limit = pool.hidden, pool.inter, limit
        get = lambda name: work[f"{plan}/{name}"]
        self.layer, self.rows = get("layer"), get("rows")
        self.ids = {k: (get(f"{k}/offset"), get(f"{k}/expert").astype(np.int64)) for k in ("hits", "moved", "cpu", "evicted")}
        self.token_offset, self.token_row = get("token/offset"), get("token/row").astype(np.int64)
        counts = sum(np.diff(self.ids[k][0]).astype(np.int64) for k in ("hits", "moved", "cpu"))
        self.first = np.concatenate([[0], np.cumsum(counts)])
        self.max_rows, self.num_staging = int(config["max_rows"]), int(config["staging"])
        g = torch.Generator().manual_seed(2)
        self.x_host = torch.randn(self.max_rows, self.hidden, generator=g).to(torch.bfloat16)
        self.x = self.x_host.to(dev.name)
        self.out = torch.zeros(self.max_rows, self.hidden, dtype=torch.float32, device=dev.name)
        self.routing = torch.zeros(self.max_rows, 8, dtype=torch.int32, device=dev.name)
        self.row_on_device = torch.as_tensor(self.token_row, device=dev.name)
        self.zero = torch.zeros(1, dtype=torch.int64, device=dev.name)
        self.grouped = dev.gpu and has_grouped(torch, dev)
        self.plan()

    def list(self, name, e):
        offset, expert = self.ids[name]
        return expert[offset[e]:offset[e + 1]]

    # -- before the clock runs

    def residents(self):
        """Who is resident before the first event, and the most of each layer, from the log alone."""
        layers = int(self.config["num_layers"])
        initial, known, now = ([set() for _ in range(layers)] for _ in range(3))
        size = [0] * layers
        for e, l in enumerate(self.layer):
            for x in self.list("hits", e):
                if x not in known[l]:
                    initial[l].add(x), known[l].add(x), now[l].add(x)
            known[l].update(self.list("moved", e)), now[l].update(self.list("moved", e))
            for x in self.list("evicted", e):
                if x not in known[l]:
                    initial[l].add(x), known[l].add(x)
                now[l].discard(x)
            size[l] = max(size[l], len(now[l]))
        return initial, [max(n, len(i)) + 1 for n, i in zip(size, initial)]

    def plan(self):
        initial, self.num_slots = self.residents()
        aliased = self.limit is not None and max(self.num_slots) > self.limit
        if aliased and any(len(m) for m in (self.ids["moved"][1], self.ids["cpu"][1])):
            fail("--most-slots is for full residency alone")
        slot, free, self.fill = [], [], []
        for l, residents in enumerate(initial):
            self.num_slots[l] = self.limit if aliased else self.num_slots[l]
            place = {x: i % self.num_slots[l] for i, x in enumerate(sorted(residents))}
            slot.append(place)
            free.append(list(range(len(place), self.num_slots[l])))
            self.fill += [(l, i, int(x)) for x, i in place.items()]
        self.copies, self.hit_slots, index, offs, self.hit_at, next_ring = [], [], [], [], [0], 0
        for e, l in enumerate(self.layer):
            hits, moved, evicted = self.list("hits", e), list(self.list("moved", e)), set(self.list("evicted", e))
            at = [slot[l][x] for x in hits]
            order = np.argsort(at, kind="stable")
            index += [self.token_rows(e, i) for i in order]
            self.hit_at.append(self.hit_at[-1] + sum(len(self.token_rows(e, i)) for i in order))
            ends = np.zeros(self.num_slots[l], np.int32)
            for i in order:
                ends[at[i]] += len(self.token_rows(e, i))
            offs.append(np.cumsum(ends).astype(np.int32))
            self.hit_slots.append(at)
            # what was free, or leaves without being read here, comes before slots that hits still read
            read = {slot[l].pop(x) for x in evicted & set(hits)}
            free[l] += [slot[l].pop(x) for x in sorted(evicted - set(hits)) if x in slot[l] and x not in moved]
            copies = []
            for x in moved:
                if x in evicted:
                    copies.append((int(x), None, next_ring, False))
                    next_ring = (next_ring + 1) % self.num_staging
                    continue
                after = not free[l]
                slot[l][x] = read.pop() if after else free[l].pop()
                copies.append((int(x), slot[l][x], None, after))
            free[l] += sorted(read)
            self.copies.append(copies)
        as_device = lambda parts, kind: self.torch.as_tensor(np.concatenate(parts or [np.zeros(0, kind)]), device=self.dev.name)
        self.hit_index, self.hit_offs = as_device(index, np.int64), as_device(offs, np.int32)
        self.offs_at = np.concatenate([[0], np.cumsum([len(o) for o in offs])])

    def start(self):
        self.weight = [self.dev.empty(n, 3 * self.inter, self.hidden) for n in self.num_slots]
        self.staging = [self.dev.empty(3 * self.inter, self.hidden) for _ in range(self.num_staging)]
        self.ring_free = [None] * self.num_staging
        for l, slot, expert in self.fill:
            self.weight[l][slot].copy_(self.pool.of(l, expert))
        self.dev.sync()

    # -- one event

    def token_rows(self, e, at):
        """Rows of expert number `at` of the event; one row where the event is longer than what is computed."""
        first = self.first[e] + at
        rows = self.token_row[self.token_offset[first]:self.token_offset[first + 1]]
        return rows if self.rows[e] <= self.max_rows else np.zeros(1, np.int64)

    def add_expert(self, e, at, weight):
        first = self.first[e] + at
        rows = self.row_on_device[self.token_offset[first]:self.token_offset[first + 1]]
        rows = self.zero if self.rows[e] > self.max_rows else rows
        self.out.index_add_(0, rows, expert_output(self.torch, self.x[rows], weight, self.inter).float())

    def hits(self, e, l):
        torch, weight = self.torch, self.weight[l]
        if len(self.hit_slots[e]) == 0:
            return
        if not self.grouped:
            for i, slot in enumerate(self.hit_slots[e]):
                self.add_expert(e, i, weight[slot])
            return
        index, offs = self.hit_index[self.hit_at[e]:self.hit_at[e + 1]], self.hit_offs[self.offs_at[e]:self.offs_at[e + 1]]
        h = torch._grouped_mm(self.x[index], weight[:, :2 * self.inter].transpose(1, 2), offs=offs)
        h = torch.nn.functional.silu(h[:, :self.inter]) * h[:, self.inter:]
        self.out.index_add_(0, index, torch._grouped_mm(h, weight[:, 2 * self.inter:], offs=offs).float())

    def moved(self, e, l):
        n, after_hits = len(self.hit_slots[e]), self.dev.event()
        for i, (x, slot, ring, after) in enumerate(self.copies[e]):
            to = self.staging[ring] if slot is None else self.weight[l][slot]
            self.dev.wait(self.ring_free[ring] if slot is None else after_hits if after else None, on_copies=True)
            self.dev.copy(to, self.pool.of(l, x))
            self.dev.wait(self.dev.event(on_copies=True))
            self.add_expert(e, n + i, to)
            if slot is None:
                self.ring_free[ring] = self.dev.event()

    def cpu(self, e, l):
        cpu = self.list("cpu", e)
        n = len(self.hit_slots[e]) + len(self.copies[e])
        if len(cpu) == 0:
            return
        total = self.torch.zeros(self.out.shape, dtype=self.torch.float32, pin_memory=self.dev.gpu)
        for i, x in enumerate(cpu):
            rows = self.torch.as_tensor(self.token_rows(e, n + i))
            total.index_add_(0, rows, expert_output(self.torch, self.x_host[rows], self.pool.of(l, int(x)), self.inter).float())
        self.out.add_(total.to(self.dev.name, non_blocking=True))

    def reference(self, e, l):
        """The event's output in double precision, from the pool alone."""
        torch, out = self.torch, np.zeros(self.out.shape)
        for i, x in enumerate(np.concatenate([self.list(k, e) for k in ("hits", "moved", "cpu")])):
            w = self.pool.of(l, int(x)).double()
            rows = self.token_rows(e, i)
            h = self.x_host[torch.as_tensor(rows)].double() @ w[:2 * self.inter].t()
            h = (torch.nn.functional.silu(h[:, :self.inter]) * h[:, self.inter:]).to(torch.bfloat16).double()
            np.add.at(out, rows, (h @ w[2 * self.inter:]).numpy())
        return out

    def execute(self, verify):
        n = len(self.layer)
        ns, lead, worst, checked = np.zeros(n, np.int64), np.zeros(n, np.int64), 0.0, 0
        gate, end, last = 0, None, int(self.config["num_layers"]) - 1
        self.start()
        for e in range(n):
            l = int(self.layer[e])
            self.dev.sync()
            self.routing[:min(int(self.rows[e]), self.max_rows)].to("cpu")
            now = time.perf_counter_ns()
            if l > 0:
                ns[e - 1] = now - gate
            elif end is not None:
                lead[e] = now - end
            gate = now
            self.out.zero_()
            self.hits(e, l)
            self.moved(e, l)
            self.cpu(e, l)
            if l == last:
                self.dev.sync()
                end = time.perf_counter_ns()
                ns[e] = end - gate
            if verify > 0 and e % verify == 0:
                self.dev.sync()
                ours, theirs = self.out.cpu().double().numpy(), self.reference(e, l)
                worst, checked = max(worst, np.linalg.norm(ours - theirs) / max(np.linalg.norm(theirs), 1e-30)), checked + 1
                if worst > 0.02:
                    fail(f"event {e}: the output is off by {worst:.2g} of its norm")
        return ns, lead, worst, checked


def run(a):
    import torch
    torch.set_grad_enabled(False)
    if a.device.startswith("cuda") and not torch.cuda.is_available():
        print("witness.py: there is no GPU that this PyTorch can use", file=sys.stderr)
        sys.exit(77)
    if a.threads:
        torch.set_num_threads(a.threads)
    work = np.load(a.work)
    config, dev = json.loads(str(work["config"])), Device(torch, a.device)
    size = min(a.pool or int(config["pool"]), int(config["num_layers"]) * int(config["num_experts"]))
    pool = Pool(torch, dev, int(config["hidden"]), int(config["intermediate"]), int(config["num_experts"]), size)
    facts = {"program": f"tests/witness (PyTorch {torch.__version__})", "threads": str(torch.get_num_threads()),
             "gpu": torch.cuda.get_device_name() if dev.gpu else "",
             "hits": "torch._grouped_mm" if dev.gpu and has_grouped(torch, dev) else "a product for each expert"}
    out, order, plans = {"facts": json.dumps(facts), "pool": size, "threads": torch.get_num_threads()}, 0, list(work["plans"])
    loops = {}
    for repeat in range(a.repeat):
        for plan in plans if repeat % 2 == 0 else plans[::-1]:     # ABBA, so that a drift cancels
            loop = loops.get(plan) or Loop(torch, dev, config, work, plan, pool, a.most_slots)
            loops[plan] = loop
            if repeat == 0:      # warms up; its times are not kept
                loop.worst, loop.checked = loop.execute(a.verify)[2:]
            ns, lead = loop.execute(0)[:2]
            out.update({f"{order}/ns": ns, f"{order}/lead": lead, f"{order}/worst": 0.0 if repeat else loop.worst,
                        f"{order}/cell": np.asarray([plan, repeat, 0 if repeat else loop.checked])})
            loop.weight = None
            order += 1
            np.savez_compressed(a.output, num_cells=order, **out)
            print(f"plan {plan} repeat {repeat}: {ns.sum() / 1e9:.3f} s", flush=True)


# ---- write ---------------------------------------------------------------------------------------------------------------


def text_column(group, name, values):
    width = max([1] + [len(v.encode()) for v in values])
    import h5py
    group.create_dataset(name, data=np.asarray([v.encode() for v in values], dtype=h5py.string_dtype("utf-8", width)))


def write(a):
    import h5py
    work, times = np.load(a.work), np.load(a.times)
    config = json.loads(str(work["config"]))
    raw, cells = h5py.File(a.raw, "r"), int(times["num_cells"])
    config.update(device="pytorch", pool=str(int(times["pool"])), threads=str(int(times["threads"])), isa="", cpus="",
                  partial="0", planned_cells=str(cells))
    with h5py.File(a.output, "w", libver=("v110", "v110")) as f:
        for table in ("plans", "events"):
            raw.copy(table, f)
        bytes_of = 6 * int(config["hidden"]) * int(config["intermediate"])
        digests = [clean(v) for v in raw["plans/decisions"][:]]
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
    p.add_argument("--verify", type=int, default=97, help="check every n-th event of the execution that warms up (0: none)")
    p = verbs.add_parser("write", help="raw replay file of the witness")
    p.add_argument("work")
    p.add_argument("times")
    p.add_argument("--raw", required=True)
    p.add_argument("-o", "--output", required=True)
    a = parser.parse_args()
    {"prepare": prepare, "run": run, "write": write}[a.verb](a)


if __name__ == "__main__":
    main()
