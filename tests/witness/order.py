#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies and products overlap on a GPU, not in a test on a CPU: so the order that layout.py lays out is checked by itself.

usage: order.py WORK_FILE
"""
import json
import sys

import numpy as np

import layout


class Pool:
    experts, size = 256, 1 << 20

    def at(self, layer, expert):     # all of them distinct
        return layer * self.experts + expert


def check_copy(copy, read, unread, waited, marks):
    """A copy may go to a slot once all that reads it is waited for; a wait for what is not recorded yet waits for nothing."""
    wait, slot, _, _ = copy
    assert wait < 0 or wait in marks, "waits for what is not recorded yet"
    assert read.get(slot, -1) <= max(waited, wait), "overwrites a slot that is being read"
    assert slot not in unread, "overwrites an expert that was never computed"


def check_event(laid, e, l, content, source):
    """content: what each slot holds; source: the experts of the event. Returns how often a copy waits."""
    read, arrived, unread, done, waited, waits, marks = {}, {}, set(), [], -1, 0, set()
    for copies, k, arrival, mark in laid.program[e]:
        for wait, slot, pool, group in copies:
            check_copy((wait, slot, pool, group), read, unread, waited, marks)
            waited, waits = max(waited, wait), waits + (wait >= 0)
            content[l, slot] = pool
            unread.add(slot)
            if group >= 0:
                arrived[group] = set(unread)
        part = 0 if arrival < 0 else arrival + 1
        for i in range(laid.ends[k], laid.ends[k + 1]):
            slot, number = laid.slots[i], laid.experts[i] - laid.log.first[e]
            assert content[l, slot] == source[number], "computes another expert"
            assert slot not in unread or slot in arrived[arrival], "computes an expert that is not there"
            unread.discard(slot)
            read[slot] = part
            done.append(number)
        if mark >= 0:
            assert mark == part, "records another product"
            marks.add(mark)
    assert sorted(done) == list(range(len(source))) and not unread, "leaves an expert out"
    return waits


def check(work, plan, staging):
    config = dict(json.loads(str(work["config"])), staging=staging)
    log = layout.Decisions(work, plan, int(config["max_rows"]))
    laid = layout.Layout(log, config, Pool(), None)
    content, waits = {(l, slot): Pool().at(l, x) for l, slot, x in laid.fill}, 0
    for e, l in enumerate(log.layer):
        waits += check_event(laid, e, l, content, [Pool().at(l, x) for k in ("hits", "moved") for x in log.list(k, e)])
    return waits


def main():
    work = np.load(sys.argv[1])
    waits = sum(check(work, plan, staging) for plan in work["plans"].tolist() for staging in (1, 2, 4, 7))
    assert waits, "no copy ever had to wait: this shows nothing"
    print(f"copies waited for what reads their slots {waits} times")


main()
