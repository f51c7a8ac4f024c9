#!/usr/bin/env bash
# Builds the source distribution and the wheel into the given folder (dist). What the library needs from the system this
# runs on is copied into the wheel, see tools/repair_wheel.py, so that it installs where nothing is installed but Python.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-dist}
python=.venv/bin/python
[ -x "$python" ] || python=python3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CC=${CC:-cc} CXX=${CXX:-c++} # as CMake names them: what the tree has compiled is taken, see cmake/objects.cmake
mkdir -p "$folder"
rm -f "$folder"/um_cffi-*
"$python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$folder" >/dev/null
"$python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$scratch" "$folder"/um_cffi-*.tar.gz
"$python" tools/repair_wheel.py "$scratch"/um_cffi-*.whl "$folder"
