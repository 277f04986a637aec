# SPDX-License-Identifier: Apache-2.0
"""Records the expert routing of Mixture-of-Experts models as trace files (format version 1, traces/FORMAT.md).

`TraceWriter` and its `Problem` need h5py and NumPy alone; `Recorder`, which hooks a PyTorch model, is imported on first use.
"""
from .writer import KINDS, NO_ROUTE, Problem, TraceWriter

__version__ = "0.3.0"
__all__ = ["KINDS", "NO_ROUTE", "Problem", "Recorder", "TraceWriter"]


def __getattr__(name):
    if name == "Recorder":
        from .recorder import Recorder
        return Recorder
    raise AttributeError(f"module {__name__} has no attribute {name}")
