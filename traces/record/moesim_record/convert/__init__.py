# SPDX-License-Identifier: Apache-2.0
"""Turns what other programs recorded into traces: `python -m moesim_record.convert --from SOURCE IN… -o OUT.h5`.

One module a source (`sglang`, `routed`, `jsonl`, `moelens`), one table of them in `cli`. A source reads its files, checks
every value where it stands, and returns a `Draft`; `draft` finds warm-up passes, and writes the file under a temporary name.
"""
