# SPDX-License-Identifier: Apache-2.0
"""What the witness does in each event, laid out from the decisions alone, before any clock runs. NumPy, no torch."""
import sys

import numpy as np

GROUP = 8                        # moved experts that are computed together
HEAD = 4                         # copies that are under way before the hits are launched


def fail(text):
    sys.exit(f"witness.py: {text}")


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
