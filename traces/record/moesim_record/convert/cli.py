# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m moesim_record.convert --from SOURCE IN… -o OUT.h5`."""
import argparse
import os
import signal
import stat
import sys

from ..writer import Problem
from . import dummy, jsonl, moelens, routed, sglang
from .draft import write
from .model import BYTES, Model, read_config

PROGRAM = "moesim_record.convert"
COMMON = ("inputs", "source", "out", "model", "workload", "dummy", "compression")
MODEL = ("config", "num_experts", "expert_bytes", "weight_dtype")
LAYERS = ("dense_layers", "top_k")

# source: what it reads, and which of the options below it takes
SOURCES = {
    "sglang": (sglang.read, MODEL + LAYERS + ("mask_id", "block_length", "fused_shared", "token_ids")),
    "routed-experts": (routed.read, MODEL + LAYERS + ("layers", "prompt_tokens", "start_len")),
    "jsonl": (jsonl.read, MODEL + ("prompt_tokens",)),
    "moelens": (moelens.read, ("config", "expert_bytes", "weight_dtype")),
}

DESCRIPTION = """Turns what other programs recorded into a trace for moesim.

sources (--from):
  sglang          .pt files of SGLang's recorder in mode per_token, of several
                  ranks and dumps. Files that hold code are refused.
  routed-experts  routed_experts of vLLM or SGLang: .npy [tokens, layers, k], or
                  responses as JSON with base64. Only the last pass of each
                  position is left in them, so not for block-diffusion models.
  jsonl           logs of lines {"type": "meta"…} and {"type": "route"…}; of
                  several files, each holds other layers of one run.
  moelens         MoELens's JSON, a file a prompt, with all probabilities.
For the CSV route_trace v1 no Python is needed: `moesim trace import`.
"""


def _numbers(text):
    """"1,2,5:8" (5:8 are 5, 6, 7)."""
    out = []
    for part in text.split(","):
        low, colon, high = part.partition(":")
        if not low.isdecimal() or (colon and not high.isdecimal()):
            raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 0,3 or 0:3")
        first, end = int(low), int(high) if colon else int(low) + 1
        if end - first > 4096:
            raise argparse.ArgumentTypeError(f"{part!r} has more than 4096 numbers")
        out += range(first, end)
    return out


def _whole(low, high):
    def parse(text):
        if not text.isdecimal() or len(text) > 20 or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number within {low}..{high}")
        return int(text)
    return parse


def _list(low, high):
    def parse(text):
        return [_whole(low, high)(part) for part in text.split(",")]
    return parse


def _say(text):
    """To standard output at once, so that a full disk is told."""
    try:
        print(text, end="", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())      # or Python tries again when it ends
        raise Problem(f"cannot write to standard output: {error.strerror}") from None


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message, file=None):
        if file is not sys.stdout:
            return super()._print_message(message, file)
        try:
            _say(message)
        except Problem as problem:
            self.exit(1, f"{PROGRAM}: error: {problem}\n")

    def error(self, message):
        self.exit(2, f"{PROGRAM}: error: {message}\n")


def parser():
    p = _Parser(prog=f"python -m {PROGRAM}", description=DESCRIPTION, allow_abbrev=False,
                usage="%(prog)s --from SOURCE IN [IN …] -o OUT [options]",
                formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=80))
    p.add_argument("inputs", nargs="+", metavar="IN", help="the recording, in one or several files")
    p.add_argument("--from", dest="source", required=True, choices=list(SOURCES), metavar="SOURCE", help="what IN is")
    p.add_argument("-o", dest="out", required=True, metavar="OUT", help="the trace to write")
    p.add_argument("--model", metavar="NAME", help="the model's name; default: what IN or --config says, else \"unknown\"")
    p.add_argument("--workload", metavar="NAME", default="unknown", help="the workload of all requests; default: unknown")
    p.add_argument("--dummy", choices=("mark", "drop", "keep"), default="mark",
                   help="an engine's warm-up passes: mark them as dummy (the default), drop them, or keep them as they are")
    p.add_argument("--compression", choices=("gzip", "zstd"), default="gzip", help="how to compress; default gzip")
    p.add_argument("--config", metavar="FILE", help="the model's config.json: experts, top-k, dense layers, sizes")
    p.add_argument("--num-experts", type=_whole(1, 1024), metavar="N", help="routed experts a layer")
    p.add_argument("--top-k", type=_whole(1, 64), metavar="N", help="experts a token and layer")
    p.add_argument("--expert-bytes", type=_list(1, 1 << 34), metavar="N[,N…]",
                   help="bytes of one routed expert, or of one in each MoE layer")
    p.add_argument("--weight-dtype", choices=list(BYTES), help="type of the weights, to tell an expert's bytes from its shape")
    p.add_argument("--dense-layers", type=_numbers, metavar="LIST", help="recorded layers without experts: 0,3 or 0:3")
    p.add_argument("--layers", type=_whole(1, 4096), metavar="N", help="routed-experts: recorded layers of raw base64")
    p.add_argument("--prompt-tokens", type=_list(0, 2**31 - 1), metavar="N[,N…]",
                   help="routed-experts, jsonl: prompt tokens of all requests, or of each")
    p.add_argument("--start-len", type=_whole(0, 2**31 - 1), metavar="N",
                   help="routed-experts: the request's routed_experts_start_len; default 0")
    p.add_argument("--mask-id", type=_whole(0, 2**31 - 1), metavar="N",
                   help="sglang: the mask's token id (LLaDA2: 156895); leave it out for autoregressive models")
    p.add_argument("--block-length", type=_whole(1, 4096), metavar="N",
                   help="sglang: tokens a block; default: the most masks of one pass")
    p.add_argument("--fused-shared", type=_whole(1, 64), metavar="N",
                   help="sglang: drop N shared experts that the engine counts as routed, with ids above those")
    p.add_argument("--token-ids", action="store_true", default=None,
                   help="sglang: keep token ids. They spell the prompts and answers, so they are left out by default")
    return p


def _files_read(options):
    return options.inputs + ([] if options.config is None else [options.config])


def _check_options(p, options):
    takes = COMMON + SOURCES[options.source][1]
    for name, value in vars(options).items():
        if value is not None and name not in takes:
            p.error(f"--{name.replace('_', '-')} has no effect on --from {options.source}; leave it out")
    out = os.path.realpath(options.out)
    for path in _files_read(options):
        if os.path.exists(path) and os.path.exists(out) and os.path.samefile(path, out):
            p.error(f"{path} is the input and the output; name another -o")
    if os.path.exists(out) and not os.path.isfile(out):
        p.error(f"{options.out} is no regular file; name another -o")
    if not os.path.isdir(os.path.dirname(out)):
        p.error(f"the folder of {options.out} does not exist; make it, or name another -o")


def convert(options, warn):
    """Reads, treats and writes; returns the line to print."""
    for path in _files_read(options):           # before anything slow is imported or read
        if not stat.S_ISREG(os.stat(path).st_mode):         # a pipe cannot be read twice
            raise Problem(f"{path}: a folder, device or pipe, not a regular file")
    for path in options.inputs:
        with open(path, "rb") as f:
            if not f.read(1):
                raise Problem(f"{path}: is empty; record again")
    model = read_config(options.config) if options.config is not None else Model(source="")
    draft = SOURCES[options.source][0](options, model, warn)
    draft.model_id = options.model or draft.model_id or model.name or "unknown"
    passes = dummy.treat(draft, options.dummy, warn)
    if not passes:
        raise Problem(f"{options.inputs[0]}: only warm-up passes are in it; record while requests run (--dummy keep takes them "
                      "as they are)")
    if draft.gate_score is not None:
        draft.gate_kind = draft.describe()
    write(draft, options.out, options.workload, options.compression)
    dummies = sum(p.kind == "dummy" for p in passes)
    return (f"{options.out}: {len(draft.prompts)} requests, {len(passes)} passes ({dummies} dummy), "
            f"{sum(len(p.position) for p in passes)} rows; {len(draft.layers)} MoE layers of {draft.num_experts} experts, "
            f"top {draft.top_k}; gates: {draft.gate_kind}")


def main(arguments=None):
    p = parser()
    options = p.parse_args(arguments)
    _check_options(p, options)

    warnings = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))     # leaves no half-written file, as Ctrl-C
    try:
        done = convert(options, warnings.append)
        for text in warnings:
            print(f"{PROGRAM}: warning: {text}", file=sys.stderr)
        _say(done + "\n")
        return 0
    except Problem as problem:
        text = str(problem)
    except OSError as error:
        text = f"{error.filename or options.out}: {error.strerror or error}"
    except MemoryError:
        text = f"{options.inputs[0]}: does not fit in memory; convert fewer files at a time"
    except KeyboardInterrupt:
        return 130
    print(f"{PROGRAM}: error: {' '.join(text.split())}", file=sys.stderr)
    return 1
