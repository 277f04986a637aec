# SPDX-License-Identifier: Apache-2.0
"""Warm-up and profiling passes of an engine that a recording holds as if they were real.

An engine runs placeholder tokens through the model before the first request, often thousands in one pass. Their routes are
all the same, or their gates are all equal. Left in, they would be counted as hits.
"""
import numpy as np

SAME_ROWS = 64          # rows with one route in all layers that no text produces
SAME_PASSES = 8         # as `trace validate` has it
UNIFORM_CELLS = 8       # rows x layers with gates all equal


def _row_changes(passes):
    """For every row of all passes, in order: does its route differ from that of the row before?"""
    changes, before = [], None
    for p in passes:
        flat = p.expert.reshape(len(p.expert), -1)
        differs = np.ones(len(flat), dtype=bool)
        if not p.masked:
            differs[1:] = (flat[1:] != flat[:-1]).any(axis=1)
            if before is not None and len(flat) and len(before) == flat.shape[1]:
                differs[0] = (flat[0] != before).any()
        before = flat[-1] if len(flat) and not p.masked else None
        changes.append(differs)
    return changes


def _long_runs(passes):
    """For every row: is it one of at least SAME_ROWS consecutive rows with the same route?"""
    changes = _row_changes(passes)
    if not changes:
        return []
    number = np.cumsum(np.concatenate(changes))
    long = np.bincount(number)[number] >= SAME_ROWS if len(number) else np.zeros(0, dtype=bool)
    return np.split(long, np.cumsum([len(c) for c in changes])[:-1])


def _split(passes):
    """Cuts a pass where a run of SAME_ROWS equal rows inside it begins or ends: logs that have no pass boundaries."""
    out = []
    for p, long in zip(passes, _long_runs(passes)):
        if p.kind != "prefill" or long.all() or not long.any():
            out.append(p)
            continue
        cuts = [0, *(np.flatnonzero(long[1:] != long[:-1]) + 1), len(long)]
        pieces = list(zip(cuts, cuts[1:]))
        if any(long[a] and b - a < SAME_ROWS for a, b in pieces):      # the run only touches this pass
            out.append(p)
            continue
        out += [p.rows(a, b) for a, b in pieces]
    return out


def _uniform(p):
    if p.gate is None or p.gate.shape[-1] < 2 or p.gate.shape[0] * p.gate.shape[1] < UNIFORM_CELLS:
        return False
    return bool((p.gate == p.gate.flat[0]).all())


def _same_passes(passes):
    """The validator's rule: SAME_PASSES or more in a row with the same routes although their rows differ."""
    flags, first = [False] * len(passes), 0
    for i in range(1, len(passes) + 1):
        a, b = passes[i - 1], passes[i] if i < len(passes) else None
        if (b is not None and len(b.expert) and not a.masked and not b.masked and np.array_equal(a.expert, b.expert)
                and (a.request != b.request or not np.array_equal(a.position, b.position))):
            continue
        if i - first >= SAME_PASSES:
            flags[first:i] = [True] * (i - first)
        first = i
    return flags


def _attach(passes, prompts):
    """Dummy passes go with the next request that has a real one (else the last); requests without any disappear."""
    real = sorted({p.request for p in passes if p.kind != "dummy"})
    new, following = {old: i for i, old in enumerate(real)}, len(real) - 1
    for p in reversed(passes):
        if p.kind != "dummy":
            following = new[p.request]
        p.request = following if p.kind == "dummy" else new[p.request]
    return passes, [prompts[old] for old in real]


def _mark(draft):
    """The passes of the draft, warm-up passes among them as dummies. Rows of such a prefill are no prompt."""
    passes = draft.passes if draft.batched else _split(draft.passes)
    for p, long, same in zip(passes, _long_runs(passes), _same_passes(passes)):
        if p.kind == "dummy" or not len(long) or not (long.all() or same or _uniform(p)):
            continue
        if p.kind == "prefill":
            draft.prompts[p.request] = max(0, draft.prompts[p.request] - len(p.position))
        p.kind, p.block, p.step = "dummy", -1, 0
    return passes


def treat(draft, how, warn):
    """Marks (how="mark"), drops ("drop") or keeps ("keep") warm-up passes, and says how many there were."""
    passes = draft.passes if how == "keep" else _mark(draft)
    dummies = [p for p in passes if p.kind == "dummy"]
    if dummies and how != "keep":
        rows = sum(len(p.position) for p in dummies)
        what = "marked as dummy (never counted)" if how == "mark" else "dropped"
        warn(f"{len(dummies)} passes with {rows} rows look like an engine's warm-up (all routes or all gates the same) and "
             f"were {what}; --dummy keep keeps them as they are")
    if how == "drop":
        passes = [p for p in passes if p.kind != "dummy"]
    if all(p.kind == "dummy" for p in passes):
        return []
    draft.passes, draft.prompts = _attach(passes, draft.prompts)
    return draft.passes
