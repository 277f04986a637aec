# SPDX-License-Identifier: Apache-2.0
"""`witness.py run`: executes what layout.py laid out, with PyTorch on a GPU or a CPU, and times every event."""
import gc
import json
import sys
import time

import numpy as np

from layout import GROUP, Decisions, Layout, fail

FRESH = 64                       # experts of the pool that are drawn


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
