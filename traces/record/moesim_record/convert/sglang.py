# SPDX-License-Identifier: Apache-2.0
"""From SGLang's records to passes: ranks, padding, physical and fused experts, dense layers, slots that are not used."""
import numpy as np

from ..writer import COMMITTED, COMMITTED_NOW, MASKED, Problem
from . import model as known
from .draft import Draft, Pass, check_ids
from .follow import DECODE, IDLE, MIXED, Follower, Segment
from .sglang_file import RECORD_AGAIN, read_file


def _merge(files, warn):
    """Records of all files in the order of their calls; those that tensor-parallel ranks repeat are kept once."""
    kept, repeated = {}, 0
    for records in files:
        for r in records:
            others = kept.setdefault(r.call, [])
            twice = next((o for o in others if o.rank == r.rank), None)
            if twice is not None:
                raise Problem(f"{r.place}: forward call {r.call} of rank {r.rank} is in {twice.place} already; give each dump "
                              "once, and each run of the server by itself")
            if any(r.same_as(o) for o in others):
                repeated += 1
            else:
                others.append(r)
    if repeated:
        warn(f"{repeated} forward calls were recorded alike by several ranks and are kept once")
    return [r for call in sorted(kept) for r in sorted(kept[call], key=lambda r: r.rank)]


def _logical(r, mapping, experts, fused, keep):
    """Physical ids of the layers `keep` as logical ones, without fused shared experts; returns ids and how many were cut."""
    ids = r.expert[:, keep].astype(np.int64)
    physical = mapping.shape[1] if mapping is not None else experts
    shared = (ids >= physical) if fused else np.zeros(ids.shape, dtype=bool)
    too_many = shared.sum(axis=-1) > (fused or 0)

    def place(row, layer):
        return f"{r.place}: topk_ids_of_layer[{keep[layer]}, {row}]"
    if too_many.any():
        row, layer = (int(i) for i in np.argwhere(too_many)[0])
        raise Problem(f"{place(row, layer)}: {shared[row, layer].sum()} ids from {physical} on, but --fused-shared is {fused}")
    ids[shared] = -1
    bad = (ids < -1) | (ids >= physical)
    if bad.any():
        row, layer, slot = (int(i) for i in np.argwhere(bad)[0])
        raise Problem(f"{place(row, layer)}: id {ids[row, layer, slot]}, but there are {physical} physical experts; if the "
                      "engine fuses shared experts, drop them with --fused-shared N")
    if mapping is not None:
        ids = np.where(ids < 0, -1, mapping[keep][np.arange(len(keep))[None, :, None], np.maximum(ids, 0)])
    check_ids(ids, experts, place)
    return ids.astype(np.int32), int(shared.sum())


def _segments(r, ids, options):
    out = []
    for begin, end in r.parts():
        if (np.diff(r.positions[begin:end]) != 1).any():
            raise Problem(f"{r.place}: positions of tokens {begin}..{end - 1} jump although they are of one request; the "
                          "file is damaged")
        tokens = r.ids[begin:end]
        masked = None if options.mask_id is None else tokens == options.mask_id
        out.append(Segment(int(r.positions[begin]), tokens, ids[begin:end], masked, r.mode == DECODE or
                           (r.mode == MIXED and end - begin == 1)))
    return out


def _check_modes(records, options):
    if options.mask_id is not None:
        if not any((r.ids == options.mask_id).any() for r in records):
            raise Problem(f"{records[0].path}: no token is --mask-id {options.mask_id}: another model's mask, or an "
                          "autoregressive recording, which has none")
        return
    other = next((r for r in records if r.mode > IDLE), None)
    if other is not None:
        raise Problem(f"{other.place}: forward_mode {other.mode} is neither prefill nor decode; of a diffusion model give "
                      "--mask-id N (LLaDA2: 156895), and record without speculative decoding")


def _cut_slots(passes, top_k, place):
    """Drops slots that no row uses: the recorder is 8 wide whatever the model's k is. Returns k."""
    used = np.zeros(passes[0].expert.shape[-1], dtype=bool)
    for p in passes:
        used |= (p.expert >= 0).any(axis=(0, 1))
    k = int(used.sum())
    if top_k is not None and k > top_k:
        raise Problem(f"{place}: {k} slots hold experts, but the model chooses {top_k}; if the engine fuses shared experts, "
                      "drop them with --fused-shared N")
    if top_k is not None and top_k > len(used):
        raise Problem(f"{place}: the recorder keeps {len(used)} slots, but the model chooses {top_k}: it cut the rest off")
    for p in passes:
        p.expert = p.expert[..., used]
    return k


def _moe_layers(records, options, model, warn):
    """Layers to keep: not those that are named dense, and not those without a route in any record."""
    place = records[0].path
    keep, numbers = known.select_layers(options, model, records[0].expert.shape[1], place)
    routed = np.any([(r.expert >= 0).any(axis=(0, 2)) for r in records], axis=0)
    empty = [i for i in keep if not routed[i]]
    if empty and model.layers is not None and options.dense_layers is None:
        raise Problem(f"{place}: layer {empty[0]} has experts in {model.source}, but no route in any record; give the "
                      "config.json of this model")
    if empty:
        warn(f"layers {', '.join(map(str, empty))} have no route in any record and are left out as dense")
    chosen = [(i, number) for i, number in zip(keep, numbers) if routed[i]]
    if not chosen:
        raise Problem(f"{place}: no layer has a route; {RECORD_AGAIN} while requests run")
    return [i for i, _ in chosen], [number for _, number in chosen]


def _report(follower, cut, warn):
    for n, text in ((cut, "slots of fused shared experts were dropped"),
                    (follower.ambiguous, "passes could belong to more than one request and were given to the oldest; "
                     "run one request at a time (--max-running-requests 1)"),
                    (follower.begun_late, "requests begin after position 0: a cached prefix, or they ran when the recording "
                     "began; what was before is not in the trace"),
                    (follower.left_over, "requests end with masks left; whether their last pass committed them is not known, "
                     "so they stay masked")):
        if n:
            warn(f"{n} {text}")


def _read_files(options, warn):
    """(records in the order of their calls, map or None)."""
    files = [read_file(path) for path in options.inputs]
    records = _merge([f[0] for f in files], warn)
    padding = sum(r.drop_padding() for r in records)
    if padding:
        warn(f"{padding} rows without any route (padding) were left out")
    records = [r for r in records if len(r.ids)]
    if not records:
        raise Problem(f"{options.inputs[0]}: no record has a token; {RECORD_AGAIN} while requests run")
    mappings = [m for _, m in files if m is not None]
    if len({r.expert.shape[1:] for r in records}) > 1 or any(not np.array_equal(m, mappings[0]) for m in mappings[1:]):
        raise Problem(f"{options.inputs[-1]}: another model, or another placement of experts, than {options.inputs[0]}; "
                      "convert them apart")
    return records, mappings[0] if mappings else None


def _follow(records, options, mapping, experts, keep, warn):
    """Passes and prompts of all records."""
    follower, idle, cut = Follower(), [], 0
    for index, r in enumerate(records):
        ids, dropped = _logical(r, mapping, experts, options.fused_shared, keep)
        cut += dropped
        if r.mode == IDLE:
            state = np.full(len(ids), COMMITTED, dtype=np.uint8)
            idle.append((len(follower.passes),
                         Pass("dummy", 0, -1, 0, r.positions, state, ids, token_id=r.ids, forward=index)))
        else:
            follower.take(_segments(r, ids, options), index, r.rank)
    follower.finish()
    for at, p in reversed(idle):
        follower.passes.insert(at, p)
    _report(follower, cut, warn)
    return follower


def read(options, model, warn):
    records, mapping = _read_files(options, warn)
    _check_modes(records, options)
    experts = known.num_experts(options, model, options.inputs[0], None if mapping is None else int(mapping.max()) + 1)
    keep, numbers = _moe_layers(records, options, model, warn)
    follower = _follow(records, options, mapping, experts, keep, warn)
    return _draft(follower, experts, numbers, options, model)


def _draft(follower, experts, numbers, options, model):
    passes, place = follower.passes, options.inputs[0]
    top_k = _cut_slots(passes, options.top_k or model.top_k, place)
    batched = len({p.forward for p in passes}) < len(passes)
    if not options.token_ids:
        for p in passes:
            p.token_id = None
    masks = max((int(np.isin(p.state, (MASKED, COMMITTED_NOW)).sum()) for p in passes if p.masked), default=1)
    return Draft("", experts, top_k, numbers, known.expert_bytes(options, model, len(numbers), place),
                 block_length=options.block_length or min(masks, 4096), batched=batched, passes=passes,
                 prompts=follower.prompts, attributes=known.attributes(model, options, engine="SGLang"))
