#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the Python that has all modules: the one that MOESIM_PYTHON names, else python3 of PATH, else the system's, for which
# packages such as Debian's python3-torch are made. Status 1: none has them.
# usage: python.sh MODULE,…
set -euo pipefail
for python in ${MOESIM_PYTHON:-python3 /usr/bin/python3}; do
    if "$python" -c "import $1" 2>/dev/null; then
        echo "$python"
        exit 0
    fi
done
exit 1
