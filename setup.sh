#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh machine to the first comparison: installs what is missing (where it may), builds, runs the main job.
set -eu
cd "$(dirname "$0")"
build=${MOESIM_BUILD:-build}
needed=$(grep -v '^#' .ci/packages)

missing() {
    for package in $needed; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
    done
}

install_packages() {
    lacking=$(missing)
    [ -n "$lacking" ] || { echo "setup: every package is installed"; return 0; }
    if [ "$(id -u)" -eq 0 ]; then
        echo "setup: installing $lacking"
        apt-get update -qq
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $lacking >/dev/null
    else
        printf 'setup: these packages are missing; install them and run ./setup.sh again:\n\n' >&2
        printf '    sudo apt-get install %s\n\n' "$lacking" >&2
        exit 1
    fi
}

if command -v dpkg-query >/dev/null 2>&1; then
    install_packages
else
    echo "setup: not a Debian-like system; needed are a C11 compiler, meson >= 1.0, ninja, pkg-config and the"
    echo "setup: development files of HDF5 >= 1.10, zstd, zlib, nettle, GSL, jansson, Check; gnuplot for figures"
fi

if command -v nvcc >/dev/null 2>&1; then
    echo "setup: CUDA Toolkit found: $(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"
else
    echo "setup: no CUDA Toolkit (nvcc). It is optional: without it moesim-device runs on the CPU alone. To measure and"
    echo "setup: replay on a GPU take the package for your system from https://developer.nvidia.com/cuda-downloads, put nvcc on"
    echo "setup: PATH and run ./setup.sh again."
fi

if [ -f "$build/build.ninja" ]; then
    meson setup --reconfigure "$build" >"$build/setup.log" 2>&1 || { cat "$build/setup.log" >&2; exit 1; }
else
    mkdir -p "$build"
    meson setup "$build" >"$build/setup.log" 2>&1 || { cat "$build/setup.log" >&2; exit 1; }
fi
echo "setup: building into $build"
ninja -C "$build" >"$build/build.log" 2>&1 || { tail -40 "$build/build.log" >&2; exit 1; }

echo "setup: comparing policies on the built-in sample (recorded from a small trained block-diffusion MoE)"
set -- "$build/cli/moesim" run traces/samples/sample.h5 \
    --policy random,naive,lru,lfu,oled,surv,belady,ideal --cache 20,40,60,100
echo "setup: $*"
exec "$@"
