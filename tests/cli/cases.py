#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests from files: cases/NAME.cmd is a shell script, NAME.out and NAME.err are what it must print (empty where
absent), NAME.exit its exit status (0 where absent). `moesim` is on PATH; the working folder is empty but for sample.h5 and
bad.h5. usage: cases.py MOESIM SOURCE_ROOT [--rewrite] [NAME…]"""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

TIMEOUT_S = 120


def prepare(folder, root):
    """Fills the working folder of a case."""
    os.symlink(root / "traces" / "samples" / "sample.h5", folder / "sample.h5")
    (folder / "bad.h5").write_bytes(b"this is no HDF5 file\n" * 64)


def run(script, moesim, root):
    """Returns (stdout, stderr, exit status), with decoded text."""
    env = {"PATH": f"{moesim.parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder, root)
        done = subprocess.run(["/bin/sh", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT_S, check=False)
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), done.returncode


def expected(case):
    def read(suffix, default):
        path = case.with_suffix(suffix)
        return path.read_text(encoding="utf-8") if path.exists() else default
    return read(".out", ""), read(".err", ""), int(read(".exit", "0"))


def rewrite(case, got):
    for suffix, text in ((".out", got[0]), (".err", got[1]), (".exit", f"{got[2]}\n" if got[2] else "")):
        path = case.with_suffix(suffix)
        if text:
            path.write_text(text, encoding="utf-8")
        else:
            path.unlink(missing_ok=True)


def report(name, got, want):
    print(f"FAILED {name}")
    for what, a, b in (("stdout", want[0], got[0]), ("stderr", want[1], got[1])):
        sys.stdout.writelines(line.rstrip("\n") + "\n" for line in difflib.unified_diff(
            a.splitlines(True), b.splitlines(True), f"{what} expected", f"{what} printed"))
    if got[2] != want[2]:
        print(f"exit status {got[2]}, expected {want[2]}")


def main():
    words = [w for w in sys.argv[1:] if w != "--rewrite"]
    moesim, root = pathlib.Path(words[0]).resolve(), pathlib.Path(words[1]).resolve()
    cases = sorted((root / "tests" / "cli" / "cases").glob("*.cmd"))
    if words[2:]:
        cases = [c for c in cases if c.stem in words[2:]]
    failed = 0
    for case in cases:
        got = run(case.read_text(encoding="utf-8"), moesim, root)
        if "--rewrite" in sys.argv:
            rewrite(case, got)
        elif got != expected(case):
            report(case.stem, got, expected(case))
            failed += 1
    print(f"cli cases checked: {len(cases)}, {failed} failed")
    return failed > 0 or not cases


sys.exit(main())
