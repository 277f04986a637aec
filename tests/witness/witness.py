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
import gc
import json
import sys
import time

import numpy as np

NO_ROUTE = 65535
FRESH = 64                       # experts of the pool that are drawn
GROUP = 8                        # moved experts that are computed together
HEAD = 4                         # copies that are under way before the hits are launched


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
            # not unsigned: older NumPy makes uint64 + 1 a float
            out[f"{plan}/{name}/offset"] = log[f"{name}/offset"][:].astype(np.int64)
            out[f"{plan}/{name}/expert"] = log[f"{name}/expert"][:].astype(np.int64)
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
        self.arrived, self.read = [], []     # events: the copies of a group are there; a product has read its slots
        if self.gpu:
            self.copies, self.main = torch.cuda.Stream(name), torch.cuda.current_stream(name)

    def reserve(self, groups):
        """Events are made beforehand. Every gate waits for all of them, so the next event may record them anew."""
        while self.gpu and len(self.read) <= groups:
            self.arrived.append(self.torch.cuda.Event())
            self.read.append(self.torch.cuda.Event())

    def empty(self, *shape):
        return self.torch.empty(*shape, dtype=self.torch.bfloat16, device=self.name)

    def enqueue(self, copies, slots, pool):
        """Copies of one step, in order: each behind the product that read its slot before."""
        if not self.gpu:
            for _, slot, source, _ in copies:
                slots[slot].copy_(pool[source])
            return
        with self.torch.cuda.stream(self.copies):
            for wait, slot, source, arrived in copies:
                if wait >= 0:
                    self.copies.wait_event(self.read[wait])
                slots[slot].copy_(pool[source], non_blocking=True)
                if arrived >= 0:
                    self.arrived[arrived].record(self.copies)

    def wait_arrival(self, group):
        if self.gpu and group >= 0:
            self.main.wait_event(self.arrived[group])

    def mark_read(self, mark):
        if self.gpu and mark >= 0:
            self.read[mark].record(self.main)

    def sync(self):
        if self.gpu:
            self.torch.cuda.synchronize()


class Pool:
    """Experts in host memory; expert e of layer l lies at (l E + e) mod size. [2I + I][H]: gate, up, down transposed."""

    def __init__(self, torch, dev, hidden, inter, experts, size):
        g = torch.Generator().manual_seed(1)
        self.experts, self.size, self.hidden, self.inter = experts, size, hidden, inter
        self.weight = torch.empty(size, 3 * inter, hidden, dtype=torch.bfloat16, pin_memory=dev.gpu)
        flat = self.weight.view(size, -1)
        for i in range(size):        # new numbers for the first ones, the same shifted for the others
            if i < FRESH:
                self.weight[i] = (torch.randn(3 * inter, hidden, generator=g) / hidden ** 0.5).to(torch.bfloat16)
                continue
            shift = 1 + (i - 1) % (flat.shape[1] - 1)
            flat[i, :shift] = flat[i % FRESH, -shift:]
            flat[i, shift:] = flat[i % FRESH, :-shift]
        self.view = list(self.weight.unbind(0))

    def at(self, layer, expert):
        return int((layer * self.experts + expert) % self.size)

    def of(self, layer, expert):
        return self.view[self.at(layer, expert)]


def expert_output(torch, x, w, inter):
    """y = (silu(x Wg) * (x Wu)) Wd of one expert; w [3I][H]."""
    h = x @ w[:2 * inter].t()
    return (torch.nn.functional.silu(h[:, :inter]) * h[:, inter:]) @ w[2 * inter:]


def has_grouped(torch, dev):
    """One product for many experts, some of them without rows, where this PyTorch has it for this device."""
    try:
        offs = torch.tensor([0, 16], dtype=torch.int32, device=dev.name)
        weight = dev.empty(2, 192, 64)
        h = torch._grouped_mm(dev.empty(16, 64), weight[:, :128].transpose(1, 2), offs=offs)
        torch._grouped_mm(torch.nn.functional.silu(h[:, :64]), weight[:, 128:], offs=offs)
        dev.sync()
        return True
    except (AttributeError, RuntimeError):
        return False


def groups_of(is_staged, staging):
    """
    Moved experts, cut into groups that are computed together: GROUP of them, the last expert by itself, so that little is left
    to do once the last copy is there; no more staged ones than half of the ring: the link fills the other half meanwhile.
    """
    groups, group, staged = [], [], 0
    for i, ring in enumerate(is_staged):
        if group and (len(group) == GROUP or i == len(is_staged) - 1 or (ring and staged >= max(1, staging // 2))):
            groups.append(group)
            group, staged = [], 0
        group.append(i)
        staged += ring
    return groups + [group] if group else groups


def steps_of(copies, groups, has_hits):
    """
    What Python does in an event: steps of (copies to enqueue, part of the event to compute, group to wait for, mark). Part 0 is
    the hits, part g + 1 group g. copies: (slot, source, need), need the part that reads the slot before it, -1 if none. All
    copies whose slots are free by then are enqueued before a group is launched; before the hits only HEAD of them, enough for
    the link to be busy until the others follow, for hits must not wait for Python either.
    """
    need, n = [c[2] for c in copies], len(copies)
    ends, marks, waited, ordered = {g[-1]: k for k, g in enumerate(groups)}, set(need), -1, []
    for i, (slot, source, part) in enumerate(copies):
        ordered.append((part if part > waited else -1, slot, source, ends.get(i, -1)))
        waited = max(waited, part)
    at = next((i for i in range(min(HEAD, n)) if need[i] >= 0), min(HEAD, n)) if has_hits else 0
    steps = [(ordered[:at], 0, -1, 0 if 0 in marks else -1)] if has_hits else []
    for g in range(len(groups)):
        stop = next((i for i in range(at, n) if need[i] > g), n)
        steps.append((ordered[at:stop], g + 1, g, g + 1 if g + 1 in marks else -1))
        at = stop
    return steps


class Decisions:
    """One plan's events as the log has them."""

    def __init__(self, work, plan, max_rows):
        get = lambda name: work[f"{plan}/{name}"]
        self.layer = get("layer").astype(np.int64).tolist()
        self.rows = np.minimum(get("rows").astype(np.int64), max_rows).tolist()
        self.ids = {k: (get(f"{k}/offset").astype(np.int64).tolist(), get(f"{k}/expert").astype(np.int64))
                    for k in ("hits", "moved", "cpu", "evicted")}
        counts = sum(np.diff(self.ids[k][0]) for k in ("hits", "moved", "cpu"))
        self.first = np.concatenate([[0], np.cumsum(counts)]).tolist()     # of an event's experts: hits, moved, cpu
        # rows of each expert; row 0 alone where the event is longer than what is computed
        offset, row = get("token/offset").astype(np.int64), get("token/row").astype(np.int64)
        length, long = np.diff(offset), np.repeat(get("rows").astype(np.int64) > max_rows, counts)
        of_long = np.repeat(long, length)
        keep = ~of_long
        keep[offset[:-1][long]] = True
        self.row = np.where(of_long, 0, row)[keep]
        self.length = np.where(long, 1, length)
        self.begin = np.concatenate([[0], np.cumsum(self.length)])

    def list(self, name, e):
        offset, expert = self.ids[name]
        return expert[offset[e]:offset[e + 1]].tolist()

    def rows_of(self, number):
        return self.row[self.begin[number]:self.begin[number + 1]]

    def residents(self, layers):
        """Who is resident before the first event, and the most of each layer, from the log alone."""
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


class Layout:
    """
    Where every expert lies at every event, and the indices of every product, before the clock runs. A product covers some
    experts of an event; its operands are all slots of the layer with the staging behind them, those of others with no rows.
    """

    def __init__(self, log, config, pool, limit):
        self.log, self.pool, layers = log, pool, int(config["num_layers"])
        self.staging, self.ring = int(config["staging"]), [0] * layers      # slots of the ring that are used
        initial, self.num_slots = log.residents(layers)
        aliased = limit is not None and max(self.num_slots) > limit
        if aliased and any(len(log.ids[k][1]) for k in ("moved", "cpu")):
            fail("--most-slots is for full residency alone")
        self.slot, self.free, self.fill = [], [], []
        for l, residents in enumerate(initial):
            self.num_slots[l] = limit if aliased else self.num_slots[l]
            place = {x: i % self.num_slots[l] for i, x in enumerate(sorted(residents))}
            self.slot.append(place)
            self.free.append(list(range(len(place), self.num_slots[l])))
            self.fill += [(l, i, x) for x, i in place.items()]
        self.program, self.most_groups = [], 0
        self.experts, self.slots, self.ends, self.in_layer = [], [], [0], [[] for _ in range(layers)]
        for e, l in enumerate(log.layer):
            self.add_event(e, l)

    def add_product(self, l, chosen):
        """chosen: (slot, number of the expert)."""
        self.in_layer[l].append(len(self.ends) - 1)
        for slot, number in sorted(chosen):
            self.slots.append(slot)
            self.experts.append(number)
        self.ends.append(len(self.experts))

    def place(self, l, hits, moved, evicted):
        """(slot, source, number in the ring or -1, needs a slot that hits read) of each moved expert."""
        slot, free, arriving = self.slot[l], self.free[l], set(moved)
        # what was free, or leaves without being read here, comes before slots that hits still read
        read = [slot.pop(x) for x in sorted(evicted & set(hits))]
        free += [slot.pop(x) for x in sorted(evicted - set(hits)) if x in slot and x not in arriving]
        out, rung = [], 0
        for x in moved:
            if x in evicted:
                out.append((self.num_slots[l] + rung % self.staging, self.pool.at(l, x), rung, False))
                rung += 1
                continue
            after = not free
            slot[x] = read.pop() if after else free.pop()
            out.append((slot[x], self.pool.at(l, x), -1, after))
        free += read
        self.ring[l] = max(self.ring[l], min(rung, self.staging))
        return out

    def add_event(self, e, l):
        hits, first, product = self.log.list("hits", e), self.log.first[e], len(self.ends) - 1
        if hits:
            self.add_product(l, [(self.slot[l][x], first + i) for i, x in enumerate(hits)])
        placed = self.place(l, hits, self.log.list("moved", e), set(self.log.list("evicted", e)))
        groups = groups_of([p[2] >= 0 for p in placed], self.staging)
        copies, part_of_rung = [], {}
        for g, group in enumerate(groups):
            for i in group:
                slot, source, rung, after = placed[i]
                copies.append((slot, source, part_of_rung.get(rung - self.staging, -1) if rung >= 0 else 0 if after else -1))
                if rung >= 0:
                    part_of_rung[rung] = g + 1
            self.add_product(l, [(placed[i][0], first + len(hits) + i) for i in group])
        part = product if hits else product - 1
        self.program.append([(c, part + k, arrival, mark) for c, k, arrival, mark in steps_of(copies, groups, bool(hits))])
        self.most_groups = max(self.most_groups, len(groups))

    def tables(self):
        """Row indices in the order of products; where each expert's and each product's rows begin; ends per slot, by layer."""
        experts, slots = np.asarray(self.experts, np.int64), np.asarray(self.slots, np.int64)
        length = self.log.length[experts]
        begin = np.concatenate([[0], np.cumsum(length)])
        index = self.log.row[np.repeat(self.log.begin[experts] - begin[:-1], length) + np.arange(begin[-1])]
        ends = np.asarray(self.ends)
        product_of = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        number, offs = np.zeros(len(ends) - 1, np.int64), []
        for l, products in enumerate(self.in_layer):
            number[products] = np.arange(len(products))
            table = np.zeros((len(products), self.num_slots[l] + self.ring[l]), np.int32)
            ours = np.isin(product_of, products) if len(products) else np.zeros(len(product_of), bool)
            np.add.at(table, (number[product_of[ours]], slots[ours]), length[ours].astype(np.int32))
            offs.append(np.cumsum(table, axis=1, dtype=np.int32))
        return index, begin.tolist(), begin[ends].tolist(), offs, number.tolist()


class Loop:
    """One plan: everything is laid out before the clock runs, so that Python's own work does not show in the times."""

    def __init__(self, torch, dev, config, work, plan, pool, options):
        self.torch, self.dev, self.pool, self.config = torch, dev, pool, config
        self.hidden, self.inter, self.grouped = pool.hidden, pool.inter, options["grouped"]
        max_rows = int(config["max_rows"])
        self.log = Decisions(work, plan, max_rows)
        self.layout = Layout(self.log, config, pool, options["most_slots"])
        index, self.begin, self.product_begin, offs, self.number = self.layout.tables()
        self.index = torch.as_tensor(index, device=dev.name)
        self.offs = [torch.as_tensor(o, device=dev.name) for o in offs]
        self.row_on_host = torch.as_tensor(self.log.row)
        g = torch.Generator().manual_seed(2)
        self.x_host = torch.randn(max_rows, self.hidden, generator=g).to(torch.bfloat16)
        self.x = self.x_host.to(dev.name)
        zeros = lambda width, kind, **where: torch.zeros(max_rows, width, dtype=kind, **where)
        self.out = zeros(self.hidden, torch.float32, device=dev.name)
        self.cpu_out = zeros(self.hidden, torch.float32, device=dev.name)
        self.cpu_total = zeros(self.hidden, torch.float32, pin_memory=dev.gpu)
        self.routing = zeros(8, torch.int32, device=dev.name)
        self.routing_host = zeros(8, torch.int32, pin_memory=dev.gpu)
        dev.reserve(self.layout.most_groups)

    def start(self):
        widths = [n + ring for n, ring in zip(self.layout.num_slots, self.layout.ring)]
        self.weight = [self.dev.empty(n, 3 * self.inter, self.hidden) for n in widths]
        self.up = [w[:, :2 * self.inter].transpose(1, 2) for w in self.weight]
        self.down = [w[:, 2 * self.inter:] for w in self.weight]
        self.slot = [list(w.unbind(0)) for w in self.weight]
        for l, slot, expert in self.layout.fill:
            self.slot[l][slot].copy_(self.pool.of(l, expert), non_blocking=True)
        self.dev.sync()

    def stop(self):
        self.weight = self.up = self.down = self.slot = None
        if self.dev.gpu:
            self.torch.cuda.empty_cache()

    # -- one event

    def product(self, l, k):
        """Adds what the experts of product k give."""
        torch = self.torch
        if not self.grouped:
            for i in range(self.layout.ends[k], self.layout.ends[k + 1]):
                rows = self.index[self.begin[i]:self.begin[i + 1]]
                y = expert_output(torch, self.x[rows], self.slot[l][self.layout.slots[i]], self.inter)
                self.out.index_add_(0, rows, y.float())
            return
        index, offs = self.index[self.product_begin[k]:self.product_begin[k + 1]], self.offs[l][self.number[k]]
        h = torch._grouped_mm(torch.index_select(self.x, 0, index), self.up[l], offs=offs)
        h = torch.nn.functional.silu(h[:, :self.inter]).mul_(h[:, self.inter:])
        self.out.index_add_(0, index, torch._grouped_mm(h, self.down[l], offs=offs).float())

    def cpu(self, e, l):
        experts, log = self.log.list("cpu", e), self.log
        if not experts:
            return
        self.cpu_total.zero_()
        for i, x in enumerate(experts, log.first[e + 1] - len(experts)):
            rows = self.row_on_host[log.begin[i]:log.begin[i + 1]]
            y = expert_output(self.torch, self.x_host[rows], self.pool.of(l, x), self.inter)
            self.cpu_total.index_add_(0, rows, y.float())
        self.cpu_out.copy_(self.cpu_total, non_blocking=True)
        self.out.add_(self.cpu_out)

    def event(self, e, l):
        dev, slots, pool = self.dev, self.slot[l], self.pool.view
        self.out.zero_()
        for copies, k, arrival, mark in self.layout.program[e]:
            if copies:
                dev.enqueue(copies, slots, pool)
            dev.wait_arrival(arrival)
            self.product(l, k)
            dev.mark_read(mark)
        self.cpu(e, l)

    def gate(self, e):
        """Routing on the host; all of the event before has ended by then."""
        n = self.log.rows[e]
        self.routing_host[:n].copy_(self.routing[:n], non_blocking=True)
        if self.dev.gpu:
            self.dev.main.synchronize()

    # -- all of them

    def error(self, e, l):
        """Distance to the event's output in double precision, from the pool and the log alone; too far ends the run."""
        torch, log, ideal = self.torch, self.log, np.zeros(self.out.shape)
        for i, x in enumerate(log.list("hits", e) + log.list("moved", e) + log.list("cpu", e), log.first[e]):
            w, rows = self.pool.of(l, x).double(), log.rows_of(i)
            h = self.x_host[torch.as_tensor(rows)].double() @ w[:2 * self.inter].t()
            h = (torch.nn.functional.silu(h[:, :self.inter]) * h[:, self.inter:]).to(torch.bfloat16).double()
            np.add.at(ideal, rows, (h @ w[2 * self.inter:]).numpy())
        self.dev.sync()
        off = np.linalg.norm(self.out.cpu().double().numpy() - ideal) / max(np.linalg.norm(ideal), 1e-30)
        if not off <= 0.02:
            fail(f"event {e}: the output is off by {off:.2g} of its norm")
        return off

    def execute(self, every):
        """Times of all events. every > 0 checks one of so many (and spoils their times)."""
        layers = self.log.layer
        ns, lead, errors = np.zeros(len(layers), np.int64), np.zeros(len(layers), np.int64), []
        gate, end, last = 0, None, int(self.config["num_layers"]) - 1
        self.start()
        gc.collect()
        gc.disable()     # a collection in the midst of an event would be counted as the link's
        for e, l in enumerate(layers):
            self.gate(e)
            now = time.perf_counter_ns()
            if l > 0:
                ns[e - 1] = now - gate
            elif end is not None:
                lead[e] = now - end
            gate = now
            self.event(e, l)
            if l == last:
                self.dev.sync()
                end = time.perf_counter_ns()
                ns[e] = end - gate
            if every > 0 and e % every == 0:
                errors.append(self.error(e, l))
        gc.enable()
        return ns, lead, errors


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
    options = {"grouped": a.grouped and has_grouped(torch, dev), "most_slots": a.most_slots}
    facts = {"program": f"tests/witness (PyTorch {torch.__version__})", "threads": str(torch.get_num_threads()),
             "gpu": torch.cuda.get_device_name() if dev.gpu else "",
             "products": "torch._grouped_mm" if options["grouped"] else "one for each expert",
             "moved experts": f"computed in groups of {GROUP} or fewer, the last by itself; staged ones by half of the ring",
             "weights": f"{min(size, FRESH)} of {size} experts drawn, the others are these shifted",
             "first execution": "not timed" if a.warm else "timed"}
    out, order = {"facts": json.dumps(facts), "pool": size, "threads": torch.get_num_threads()}, 0
    loops, plans = {}, work["plans"].tolist()
    for repeat in range(a.repeat):
        for plan in plans if repeat % 2 == 0 else plans[::-1]:     # ABBA, so that a drift cancels
            loop = loops.get(plan) or Loop(torch, dev, config, work, plan, pool, options)
            loops[plan] = loop
            errors = loop.execute(a.verify)[2] if repeat == 0 and a.warm else []
            ns, lead, _ = loop.execute(0)
            if a.verify > 0:      # the output of the last event is still there
                errors.append(loop.error(len(ns) - 1, loop.log.layer[-1]))
            loop.stop()
            out.update({f"{order}/ns": ns, f"{order}/lead": lead, f"{order}/worst": max(errors, default=0.0),
                        f"{order}/cell": np.asarray([plan, repeat, len(errors)])})
            order += 1
            np.savez_compressed(a.output, num_cells=order, **out)
            print(f"plan {plan} repeat {repeat}: {ns.sum() / 1e9:.3f} s, {len(errors)} events checked", flush=True)


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
