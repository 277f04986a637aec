#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of the recorder, where python3 has h5py; those that hook models need torch, and nine of them transformers.
# usage: run.sh MOESIM
set -euo pipefail
MOESIM=$(realpath -e -- "$1")
export MOESIM
export HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
python=${MOESIM_PYTHON:-python3}
cd "$(dirname "$(realpath -e -- "$0")")"
if ! "$python" -c 'import h5py, numpy' 2>/dev/null; then
    echo "skipped: $python has no h5py and numpy (Debian: python3-torch python3-h5py; MOESIM_PYTHON names another python3)"
    exit 77
fi
if "$python" -c 'import torch' 2>/dev/null; then
    exec "$python" -W ignore::UserWarning -m unittest discover -p 'test_*.py'
fi
"$python" -m unittest discover -p 'test_writer*.py'
echo "the writer was tested; the recorder was skipped: $python has no torch (Debian: python3-torch)"
exit 77
