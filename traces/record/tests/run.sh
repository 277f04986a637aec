#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of the recorder and of the importers, where a python3 has h5py; those that hook models or read .pt files need torch,
# and nine of them transformers.
# usage: run.sh MOESIM
set -euo pipefail
MOESIM=$(realpath -e -- "$1")
export MOESIM
export HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
cd "$(dirname "$(realpath -e -- "$0")")"
find_python=../../../tests/support/python.sh
if python=$("$find_python" h5py,numpy,torch); then
    exec "$python" -W ignore::UserWarning -m unittest discover -p 'test_*.py'
fi
if ! python=$("$find_python" h5py,numpy); then
    echo "skipped: no python3 has h5py and numpy (Debian: python3-torch python3-h5py; MOESIM_PYTHON names another python3)"
    exit 77
fi
for tests in 'test_writer*.py' 'test_convert*.py'; do
    "$python" -m unittest discover -p "$tests"
done
echo "writer and importers were tested; recorder and .pt files were skipped: $python has no torch (Debian: python3-torch)"
exit 77
