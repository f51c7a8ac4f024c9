#!/usr/bin/env bash
# Builds the source distribution and the wheel into the given folder (dist). The wheel is for systems like this one: it
# needs libpcre2-8 and libxml2 there. In a manylinux container, where auditwheel and patchelf are installed, it is then
# repaired: these libraries are put in, and the tag says on which systems it runs.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-dist}
python=.venv/bin/python
[ -x "$python" ] || python=python3
mkdir -p "$folder"
rm -f "$folder"/um_cffi-*
"$python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$folder" >/dev/null
"$python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$folder" "$folder"/um_cffi-*.tar.gz
if [ -n "${AUDITWHEEL_PLAT:-}" ] && command -v auditwheel >/dev/null && command -v patchelf >/dev/null; then
    auditwheel repair --plat "$AUDITWHEEL_PLAT" -w "$folder" "$folder"/um_cffi-*-linux_*.whl
    rm -f "$folder"/um_cffi-*-linux_*.whl
fi
ls -l "$folder"
